//! Steps: the commands that could go on with a run now, in a fixed order.
//!
//! Invariant: steps that launch work stand here only while nothing gates it; truth about effects and boundaries of
//! admitted work go on under every gate (T-36, HS-01.4). Called by the scheduler through `plan`.

use aiws::id::{AttemptId, DeliveryId, NodeId, OperationId};
use aiws::limits::MAX_LIST_ITEMS;
use aiws::record::{
    Attempt, AttemptStatus, ConsumptionState, DeliveryState as State, EffectClass, Lifecycle, Node,
    NodeKind, Operation, OperationStatus, RestartPolicy,
};

use super::waits::{Wait, is_in_flight, waits};
use super::{is_complete, is_open, is_ready};
use crate::admission::{is_in_force, needs_approval, serves};
use crate::decide::complete_run::{accepted, current};
use crate::decide::join;
use crate::decide::reconcile::is_uncertain;
use crate::event::Gate;
use crate::graph;
use crate::hold;
use crate::iteration;
use crate::run::{DeliveryState, NodeState, NodeStatus, RunState};

/// One thing that could be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Claim the delivery, verify its material, acknowledge it.
    Receive {
        /// The delivery.
        delivery_id: DeliveryId,
    },
    /// Admit the node with its acknowledged inputs.
    Admit {
        /// The node.
        node_id: NodeId,
    },
    /// Dispatch the prepared attempt.
    Dispatch {
        /// The node.
        node_id: NodeId,
        /// The operation.
        operation_id: OperationId,
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// Settle an attempt of an earlier epoch, prepared and never dispatched, as not applied (T-19).
    ReturnPrepared {
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// Prepare another attempt of an operation that is confirmed not applied.
    Retry {
        /// The operation.
        operation_id: OperationId,
    },
    /// Commit the node's boundary: its operation is applied or has no attempt left, or it is a control node whose
    /// evidence is there.
    Conclude {
        /// The node.
        node_id: NodeId,
    },
    /// Look up what a lost read did and, where nothing answers, settle it by the contract's rule (T-20).
    SettleLostRead {
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// Look up, read-only, what an attempt did.
    Lookup {
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// Place a TIME_LIMIT hold: only a deadline that was reached keeps the work that is left from going on.
    HoldForTime {
        /// The node whose own deadline it is, to be named as the hold's blocker; none for the contract's.
        node_id: Option<NodeId>,
    },
    /// Complete the run.
    CompleteRun,
    /// End the pending cancellation; a human's command.
    FinishCancel,
}

/// What could be done now: truth about effects first, then boundaries, then new work. `outer_gates` are the closed
/// gates of the mission and above; `now_ms` is trusted UTC time in milliseconds.
pub fn plan(state: &RunState, outer_gates: &[Gate], now_ms: u64) -> Vec<Step> {
    if state.lifecycle.is_terminal() {
        return Vec::new();
    }
    let mut steps: Vec<Step> = state
        .attempts
        .values()
        .filter_map(|attempt| truth(state, attempt))
        .collect();
    steps.extend(concluded(state, now_ms));
    if state.lifecycle == Lifecycle::Canceling && !state.attempts.values().any(is_in_flight) {
        steps.push(Step::FinishCancel);
    }
    if is_open(state, outer_gates) && !state.contract.deadline_ms.reached(now_ms) {
        launches(state, now_ms, &mut steps);
    }
    let held = hold::open(state).next().is_some();
    if is_open(state, outer_gates) && !held && is_complete(state) {
        steps.push(Step::CompleteRun);
    }
    if is_open(state, outer_gates) {
        // A held branch does not make a late one elsewhere any less late.
        let other = |wait: &Wait| !matches!(wait, Wait::Hold { .. });
        let idle = steps.is_empty() && !waits(state, outer_gates, now_ms).iter().any(other);
        steps.extend(out_of_time(state, idle, now_ms));
    }
    steps
}

/// A live run whose deadline was reached says so, because silence would look like work. A node's own deadline counts
/// only while the run is idle: until then other nodes go on.
fn out_of_time(state: &RunState, idle: bool, now_ms: u64) -> Option<Step> {
    let contract = state.contract.deadline_ms.reached(now_ms);
    let late = |node: &&Node| node.deadline_ms.is_some_and(|own| own.reached(now_ms));
    let left = |node: &&Node| {
        let own = state.nodes.get(&node.id);
        let held = hold::is_held(state, &node.id);
        !held && own.is_some_and(|own| launch(state, node, own).is_some())
    };
    let mut nodes = state.graph.iter().flat_map(|graph| &graph.nodes);
    if contract {
        let mut deliveries = state.deliveries.values();
        let receivable = deliveries.any(|delivery| is_receivable(state, delivery, now_ms));
        return (receivable || nodes.any(|node| left(&node)))
            .then_some(Step::HoldForTime { node_id: None });
    }
    let node = nodes.find(|node| idle && late(node) && left(node))?;
    let node_id = Some(node.id.clone());
    Some(Step::HoldForTime { node_id })
}

/// What brings an attempt's outcome to light without trying anything.
fn truth(state: &RunState, attempt: &Attempt) -> Option<Step> {
    let attempt_id = attempt.attempt_id.clone();
    let stale = attempt.status == AttemptStatus::Prepared && attempt.epoch.get() < state.epoch;
    if stale && state.config.restart_policy != RestartPolicy::Human {
        return Some(Step::ReturnPrepared { attempt_id });
    }
    if !is_uncertain(state, attempt) {
        return None;
    }
    match state.operations.get(&attempt.operation_id)?.effect {
        // The rule is for what no look-up answers; whoever carries the step out looks first.
        EffectClass::Read if state.contract.lost_reads.is_some() => {
            Some(Step::SettleLostRead { attempt_id })
        }
        EffectClass::Read | EffectClass::Idempotent | EffectClass::External => {
            Some(Step::Lookup { attempt_id })
        }
    }
}

/// Boundaries of admitted nodes that have their evidence.
fn concluded(state: &RunState, now_ms: u64) -> impl Iterator<Item = Step> {
    let nodes = state.graph.iter().flat_map(|graph| &graph.nodes);
    let active = nodes.filter_map(|node| {
        let own = state
            .nodes
            .get(&node.id)
            .filter(|own| own.status == NodeStatus::Active)?;
        evident(state, node, own, now_ms).then(|| Step::Conclude {
            node_id: node.id.clone(),
        })
    });
    active.collect::<Vec<_>>().into_iter()
}

fn evident(state: &RunState, node: &Node, own: &NodeState, now_ms: u64) -> bool {
    match node.kind {
        NodeKind::Task(_) | NodeKind::Loop(_) => {
            operations(state, own).any(|operation| match operation.status {
                OperationStatus::ConfirmedApplied => true,
                OperationStatus::ConfirmedNotApplied => !has_attempts_left(state, operation),
                OperationStatus::Open => false,
            })
        }
        NodeKind::Decision(_) | NodeKind::Fork | NodeKind::Join(_) | NodeKind::End => true,
        NodeKind::Approval => state
            .approvals
            .values()
            .any(|approval| is_in_force(approval, now_ms)),
        NodeKind::Verification => current(&state.verifications).is_some(),
        NodeKind::Acceptance => accepted(state).is_some(),
    }
}

fn operations<'a>(state: &'a RunState, own: &'a NodeState) -> impl Iterator<Item = &'a Operation> {
    state
        .operations
        .values()
        .filter(|operation| operation.activation_id.as_ref() == Some(&own.activation_id))
}

fn has_attempts_left(state: &RunState, operation: &Operation) -> bool {
    let used = aiws::decimal::Dec::from_u64(operation.attempts.len() as u64);
    used < state.contract.max_attempts.get() && operation.attempts.len() < MAX_LIST_ITEMS
}

/// New work: receipts, then what each node would launch, in the order of the graph.
fn launches(state: &RunState, now_ms: u64, steps: &mut Vec<Step>) {
    let free = state
        .deliveries
        .values()
        .filter(|delivery| is_receivable(state, delivery, now_ms));
    steps.extend(free.map(|delivery| Step::Receive {
        delivery_id: delivery.record.delivery_id.clone(),
    }));
    for node in state.graph.iter().flat_map(|graph| &graph.nodes) {
        let Some(own) = state.nodes.get(&node.id) else {
            continue;
        };
        let late = node.deadline_ms.is_some_and(|own| own.reached(now_ms));
        if late || hold::is_held(state, &node.id) {
            continue;
        }
        steps
            .extend(launch(state, node, own).filter(|_| !lacks_approval(state, node, own, now_ms)));
    }
}

/// What a node would launch next, whatever is held: its admission, or a try of its operation.
pub(super) fn launch(state: &RunState, node: &Node, own: &NodeState) -> Option<Step> {
    if is_ready(state, node) && is_received(state, node, own) {
        return Some(Step::Admit {
            node_id: node.id.clone(),
        });
    }
    let bound = state.consumptions.get(&own.activation_id);
    let stands = bound.is_some_and(|bound| bound.state == ConsumptionState::Valid);
    let goes_on = own.status == NodeStatus::Active && stands;
    let mut mine = operations(state, own).filter(|_| goes_on);
    mine.find_map(|operation| tried(state, node, operation))
}

/// Whether a node's work waits for an approval: none of its exact action is in force, or only ones that another
/// operation uses (T-80). Before the admission nobody knows the action, so any free approval may be meant.
pub(super) fn lacks_approval(state: &RunState, node: &Node, own: &NodeState, now_ms: u64) -> bool {
    let operation = operations(state, own).next();
    let named = operation.and_then(|operation| operation.approval_id.as_ref());
    if named.is_none() && !needs_approval(state, node) {
        return false;
    }
    let usable = |approval: &aiws::record::Approval| match (operation, named) {
        (Some(operation), Some(named)) => {
            approval.fingerprint == operation.fingerprint
                && serves(state, approval, named, &operation.operation_id)
        }
        _ => approval.operation_id.is_none(),
    };
    !state
        .approvals
        .values()
        .any(|approval| is_in_force(approval, now_ms) && usable(approval))
}

/// The next try of an active node's operation.
fn tried(state: &RunState, node: &Node, operation: &Operation) -> Option<Step> {
    let last = operation
        .attempts
        .last()
        .and_then(|id| state.attempts.get(id))?;
    let operation_id = operation.operation_id.clone();
    match last.status {
        AttemptStatus::Prepared if last.epoch.get() == state.epoch => {
            let (node_id, attempt_id) = (node.id.clone(), last.attempt_id.clone());
            Some(Step::Dispatch {
                node_id,
                operation_id,
                attempt_id,
            })
        }
        AttemptStatus::ConfirmedNotApplied if has_attempts_left(state, operation) => {
            Some(Step::Retry { operation_id })
        }
        _ => None,
    }
}

/// A delivery that its consumer still needs and accepts, that nobody has claimed, and that no hold keeps back.
fn is_receivable(state: &RunState, delivery: &DeliveryState, now_ms: u64) -> bool {
    let record = &delivery.record;
    let expired = record
        .claim
        .as_ref()
        .is_some_and(|claim| now_ms >= claim.expires_at_ms.get());
    let free = record.state == State::Pending || (record.state == State::Claimed && expired);
    let waits = state
        .nodes
        .get(&record.recipient.node_id)
        .is_some_and(|own| own.status == NodeStatus::Pending);
    let accepted = state
        .manifests
        .get(&record.handoff.handoff_id)
        .is_some_and(|committed| {
            let (producer, status) = (
                &committed.manifest.producer.node_id,
                committed.manifest.outcome.status,
            );
            graph::accepts(&state.config, &record.recipient.node_id, producer, status)
        });
    free && waits && accepted && !hold::is_held(state, &record.recipient.node_id)
}

/// Whether every port has its receipt, or an ANY join one that it may take.
fn is_received(state: &RunState, node: &Node, own: &NodeState) -> bool {
    if let Some(graph) = state.graph.as_deref().filter(|_| graph::takes_any(node)) {
        return join::is_received(state, graph, node, own);
    }
    let activation = iteration::received_as(state, node, own);
    graph::inputs(&state.config, node).iter().all(|input| {
        state
            .deliveries
            .values()
            .map(|delivery| &delivery.record)
            .any(|record| {
                record.state == State::Acknowledged
                    && record.recipient.activation_id == activation
                    && record.recipient.input_port == input.port
            })
    })
}

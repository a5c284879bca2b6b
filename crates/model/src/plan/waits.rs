//! Waits: what a run cannot do itself: people, running work, uncertain effects, gates.
//!
//! Invariant: whatever keeps a live run from going on has a name here, or the run is dead (HS-05.6). Called by the
//! scheduler and the report through `plan`.

use aiws::id::{AttemptId, DeliveryId, HoldId, NodeId};
use aiws::record::{
    Attempt, AttemptStatus, DeliveryState, EffectClass, HoldState, Node, NodeKind, RestartPolicy,
};

use super::steps::{lacks_approval, launch};
use crate::admission::is_in_force;
use crate::decide::complete_run::{accepted, current};
use crate::decide::reconcile::is_uncertain;
use crate::event::Gate;
use crate::run::{NodeStatus, RunState};

/// One thing that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A human's approval: of an active APPROVAL node, or of work whose approval is gone before its work was tried.
    Approval {
        /// The node.
        node_id: NodeId,
    },
    /// A human's acceptance; the node is active, or it is END and done.
    Acceptance {
        /// The node.
        node_id: NodeId,
    },
    /// A passing verification; the node is active, or it is END and done.
    Verification {
        /// The node.
        node_id: NodeId,
    },
    /// Evidence or a human: nobody knows what the attempt did, and nothing can look it up.
    Uncertain {
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// The end of an attempt that is being tried.
    Running {
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// The receipt of a delivery that somebody has claimed, or the end of that claim.
    Claim {
        /// The delivery.
        delivery_id: DeliveryId,
    },
    /// The end of a hold.
    Hold {
        /// The hold.
        hold_id: HoldId,
    },
    /// A gate of the mission or above it.
    Gate(
        /// The gate.
        Gate,
    ),
    /// A human who returns an attempt that an earlier owner prepared.
    Recovery,
}

/// What the run waits for now. `now_ms` is trusted UTC time in milliseconds.
pub fn waits(state: &RunState, outer_gates: &[Gate], now_ms: u64) -> Vec<Wait> {
    if state.lifecycle.is_terminal() {
        return Vec::new();
    }
    let mut all: Vec<Wait> = state
        .attempts
        .values()
        .filter_map(|attempt| attempt_wait(state, attempt))
        .collect();
    for node in state.graph.iter().flat_map(|graph| &graph.nodes) {
        all.extend(node_wait(state, node, now_ms));
    }
    all.extend(claims(state, now_ms));
    let open = state
        .holds
        .values()
        .filter(|hold| hold.state == HoldState::Open);
    all.extend(open.map(|hold| Wait::Hold {
        hold_id: hold.hold_id.clone(),
    }));
    all.extend(outer_gates.iter().cloned().map(Wait::Gate));
    let stale = |attempt: &Attempt| {
        attempt.status == AttemptStatus::Prepared && attempt.epoch.get() < state.epoch
    };
    if state.config.restart_policy == RestartPolicy::Human && state.attempts.values().any(stale) {
        all.push(Wait::Recovery);
    }
    all
}

/// Claims that live: whoever holds one may acknowledge, and where nobody does, time frees the delivery.
fn claims(state: &RunState, now_ms: u64) -> impl Iterator<Item = Wait> + '_ {
    let records = state.deliveries.values().map(|delivery| &delivery.record);
    let live = records.filter(move |record| {
        let claim = record.claim.as_ref();
        record.state == DeliveryState::Claimed
            && claim.is_some_and(|claim| now_ms < claim.expires_at_ms.get())
    });
    live.map(|record| Wait::Claim {
        delivery_id: record.delivery_id.clone(),
    })
}

/// What a node's person or assessment is waited for.
fn node_wait(state: &RunState, node: &Node, now_ms: u64) -> Option<Wait> {
    let own = state.nodes.get(&node.id)?;
    let node_id = node.id.clone();
    let active = own.status == NodeStatus::Active;
    match node.kind {
        NodeKind::Task(_) | NodeKind::Loop(_) => {
            let lacks =
                launch(state, node, own).is_some() && lacks_approval(state, node, own, now_ms);
            lacks.then_some(Wait::Approval { node_id })
        }
        NodeKind::Approval => {
            let given = state
                .approvals
                .values()
                .any(|approval| is_in_force(approval, now_ms));
            (active && !given).then_some(Wait::Approval { node_id })
        }
        NodeKind::Verification => (active && current(&state.verifications).is_none())
            .then_some(Wait::Verification { node_id }),
        NodeKind::Acceptance => {
            (active && accepted(state).is_none()).then_some(Wait::Acceptance { node_id })
        }
        // The run's own end: END is done, and the result is not verified or not accepted yet (FV-RUN.3).
        NodeKind::End if own.status == NodeStatus::Completed => {
            let verified = current(&state.verifications).is_some();
            if verified {
                accepted(state)
                    .is_none()
                    .then_some(Wait::Acceptance { node_id })
            } else {
                Some(Wait::Verification { node_id })
            }
        }
        NodeKind::Decision(_) | NodeKind::Fork | NodeKind::Join(_) | NodeKind::End => None,
    }
}

fn attempt_wait(state: &RunState, attempt: &Attempt) -> Option<Wait> {
    let attempt_id = attempt.attempt_id.clone();
    if !is_uncertain(state, attempt) {
        return (attempt.status == AttemptStatus::Dispatched)
            .then_some(Wait::Running { attempt_id });
    }
    let effect = state
        .operations
        .get(&attempt.operation_id)
        .map(|operation| operation.effect);
    let by_rule = effect == Some(EffectClass::Read) && state.contract.lost_reads.is_some();
    (!by_rule).then_some(Wait::Uncertain { attempt_id })
}

/// Tried, and not settled.
pub(super) fn is_in_flight(attempt: &Attempt) -> bool {
    matches!(
        attempt.status,
        AttemptStatus::Dispatched | AttemptStatus::Unknown
    )
}

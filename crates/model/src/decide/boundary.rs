//! What a boundary brings with it: recipients, skips, exclusions, outstanding effects, and the generated manifests.
//!
//! Invariant: everything here is derived from the pinned graph and the state, never taken from a caller
//! (HF-03.10, HF-05.5, HC-ENV.5). Called by commitBoundary, which compares, by draft, which fills in, and by
//! admitConsumer for what an ANY join leaves out.

use std::collections::BTreeSet;

use aiws::decimal::Dec;
use aiws::id::{ActivationId, CheckpointId, DeliveryId, HandoffId, Id, NodeId};
use aiws::json::Value;
use aiws::record::{
    AccountingQuote, Basis, Blocker, Cause, Context, Controls, DeliveryState, Graph, HoldReason,
    Manifest, Node, NodeKind, Outcome, OutcomeStatus, Outstanding, ProducedOperation, Producer,
    Protocol, Recipient, Ref, RequiredCheck, Resume, SkipAction,
};

use crate::facts::Facts;
use crate::graph;
use crate::iteration;
use crate::run::{NodeStatus, RunState};
use crate::stream::derived;

/// A place that a manifest goes to, without its delivery id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The consuming node.
    pub(crate) node_id: NodeId,
    /// Its activation.
    pub(crate) activation_id: ActivationId,
    /// Its input.
    pub(crate) input_port: Id,
}

/// A node that a boundary ends without work: skipped, or failed for a skipped required input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skip {
    /// The node.
    pub(crate) node_id: NodeId,
    /// Its activation.
    pub(crate) activation_id: ActivationId,
    /// Why it failed, where it did.
    pub(crate) cause: Option<Cause>,
    /// Who learns of it.
    pub(crate) places: Vec<Place>,
}

/// Everything that follows from an outcome of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Consequences {
    /// Where the node's own manifest goes.
    pub(crate) places: Vec<Place>,
    /// The nodes that are skipped with it, in the order of the graph.
    pub(crate) skips: Vec<Skip>,
    /// Deliveries that other producers made to nodes which are skipped now (T-75).
    pub(crate) excluded: Vec<DeliveryId>,
    /// Whether the node itself comes again, in its next iteration; nobody else receives anything then.
    pub(crate) again: bool,
}

impl Consequences {
    /// Which nodes may go on: the recipients, or the node itself.
    pub(crate) fn eligible(&self, node: &NodeId, status: OutcomeStatus) -> Vec<NodeId> {
        let nodes: BTreeSet<&NodeId> = self.places.iter().map(|place| &place.node_id).collect();
        match status {
            OutcomeStatus::Completed if !self.again => nodes.into_iter().cloned().collect(),
            OutcomeStatus::Completed | OutcomeStatus::Blocked => vec![node.clone()],
            _ => Vec::new(),
        }
    }
}

/// New ids for one manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestIds {
    /// The manifest's.
    pub(crate) handoff: HandoffId,
    /// The checkpoint's.
    pub(crate) checkpoint: CheckpointId,
    /// One per place.
    pub(crate) deliveries: Vec<DeliveryId>,
}

/// New ids for the manifest at this index of the event that is to be made; `deliveries` counts through the event.
pub(crate) fn new_ids(
    state: &RunState,
    index: usize,
    places: usize,
    deliveries: &mut usize,
) -> ManifestIds {
    let new =
        |kind: &str, index| derived(&state.stream, state.head.revision.get() + 1, kind, index);
    let first = *deliveries;
    *deliveries += places;
    ManifestIds {
        handoff: HandoffId::from(new("handoff", index)),
        checkpoint: CheckpointId::from(new("checkpoint", index)),
        deliveries: (first..*deliveries)
            .map(|at| DeliveryId::from(new("delivery", at)))
            .collect(),
    }
}

/// What follows from this outcome. Only COMPLETED goes anywhere: BLOCKED goes on later under the same activation,
/// and FAILED and CANCELED end the run.
pub(crate) fn consequences(
    state: &RunState,
    graph: &Graph,
    node: &Node,
    status: OutcomeStatus,
    result: &Value,
) -> Consequences {
    if status != OutcomeStatus::Completed {
        return Consequences::default();
    }
    if iteration::goes_on(node, status, result) {
        return Consequences {
            again: true,
            ..Consequences::default()
        };
    }
    let NodeKind::Decision(decision) = &node.kind else {
        let places = places(state, graph, &node.id, |_| true);
        return Consequences {
            places,
            ..Consequences::default()
        };
    };
    // Without the field nothing is chosen; commitBoundary refuses such a result before it matters.
    let Some(chosen) = graph::chosen(decision, result) else {
        return Consequences::default();
    };
    let unchosen = if *chosen == decision.then {
        &decision.otherwise
    } else {
        &decision.then
    };
    let skips = skips(state, graph, &node.id, unchosen);
    let excluded = excluded(state, &skips);
    let gone = |id: &NodeId| skips.iter().any(|skip| skip.node_id == *id);
    let places = places(state, graph, &node.id, |next| next == chosen && !gone(next));
    Consequences {
        places,
        skips,
        excluded,
        again: false,
    }
}

/// The operations of an activation with all their attempts (HF-03.2).
pub(crate) fn operations(state: &RunState, activation: &ActivationId) -> Vec<ProducedOperation> {
    let mine = state
        .operations
        .values()
        .filter(|operation| operation.activation_id.as_ref() == Some(activation));
    let produced = |operation: &aiws::record::Operation| ProducedOperation {
        operation_id: operation.operation_id.clone(),
        attempt_ids: operation.attempts.clone(),
    };
    mine.map(produced).collect()
}

/// Every attempt of an activation whose outcome is not confirmed (HF-03.9).
pub(crate) fn outstanding(state: &RunState, activation: &ActivationId) -> Vec<Outstanding> {
    let all = operations(state, activation);
    let attempts = all.iter().flat_map(|operation| &operation.attempt_ids);
    let open = attempts
        .filter_map(|id| state.attempts.get(id))
        .filter(|attempt| !attempt.status.is_confirmed());
    let listed = |attempt: &aiws::record::Attempt| Outstanding {
        operation_id: attempt.operation_id.clone(),
        attempt_id: attempt.attempt_id.clone(),
        status: attempt.status,
    };
    open.map(listed).collect()
}

/// What stands in the way of each outstanding attempt.
pub(crate) fn blockers(outstanding: &[Outstanding]) -> Vec<Blocker> {
    let blocker = |open: &Outstanding| Blocker {
        kind: HoldReason::UncertainEffect,
        subject_id: open.attempt_id.as_id(),
        evidence: Vec::new(),
    };
    outstanding.iter().map(blocker).collect()
}

/// What governed the work, as the host and the ledger know it.
pub(crate) fn controls(state: &RunState, facts: &Facts, approvals: Vec<Ref>) -> Controls {
    let attempts = Dec::from_u64(state.attempts.size() as u64);
    let quote = |revision: Dec, spent: Dec, reserved: Dec| AccountingQuote {
        revision,
        spent,
        reserved,
        attempts,
    };
    let accounting = match &facts.account {
        Some(row) => quote(row.revision.into(), row.spent, row.reserved),
        None => quote(Dec::ZERO, Dec::ZERO, Dec::ZERO),
    };
    Controls {
        policy: facts.policy.clone(),
        approvals,
        accounting,
    }
}

/// How work may go on: advisory but for the checks (REL-13, REL-14).
pub(crate) fn resume(eligible_node_ids: Vec<NodeId>, blockers: Vec<Blocker>) -> Resume {
    Resume {
        eligible_node_ids,
        blockers,
        required_checks: RequiredCheck::ALL.to_vec(),
    }
}

/// The position that the manifest stands on.
pub(crate) fn basis(state: &RunState) -> Basis {
    Basis {
        revision: state.head.revision.into(),
        event_hash: state.head.hash,
    }
}

/// Every coordinate of a producer (HF-03.2); none only for a state that is no run's.
pub(crate) fn producer(
    state: &RunState,
    graph: &Graph,
    node: &NodeId,
    activation: &ActivationId,
    checkpoint: CheckpointId,
) -> Option<Producer> {
    Some(Producer {
        mission_id: state.subject.mission_id.clone(),
        run_id: state.subject.run_id.clone()?,
        graph: pinned(graph),
        plan_revision: graph.plan_revision,
        node_id: node.clone(),
        activation_id: activation.clone(),
        checkpoint_id: checkpoint,
        operations: operations(state, activation),
        worker_id: None,
    })
}

/// The pinned graph by reference.
pub(crate) fn pinned(graph: &Graph) -> Ref {
    Ref {
        id: graph.graph_id.as_id(),
        revision: graph.revision,
    }
}

/// Places with their delivery ids; places beyond the ids are left out, so that lengths show the difference.
pub(crate) fn recipients(places: &[Place], ids: &[DeliveryId]) -> Vec<Recipient> {
    let recipient = |(place, id): (&Place, &DeliveryId)| Recipient {
        delivery_id: id.clone(),
        node_id: place.node_id.clone(),
        activation_id: place.activation_id.clone(),
        input_port: place.input_port.clone(),
    };
    places.iter().zip(ids).map(recipient).collect()
}

/// The generated manifest of a skipped node (HF-05.7).
pub(crate) fn skip_manifest(
    state: &RunState,
    graph: &Graph,
    facts: &Facts,
    skip: &Skip,
    ids: &ManifestIds,
) -> Option<Manifest> {
    let status = if skip.cause.is_some() {
        OutcomeStatus::Failed
    } else {
        OutcomeStatus::Skipped
    };
    Some(Manifest {
        protocol: Protocol::HandoffV1,
        handoff_id: ids.handoff.clone(),
        producer: producer(
            state,
            graph,
            &skip.node_id,
            &skip.activation_id,
            ids.checkpoint.clone(),
        )?,
        basis: basis(state),
        outcome: Outcome {
            status,
            criteria: Vec::new(),
            outstanding: Vec::new(),
            cause: skip.cause.clone(),
        },
        inputs: Vec::new(),
        recipients: recipients(&skip.places, &ids.deliveries),
        artifacts: Vec::new(),
        result: Value::Null,
        controls: controls(state, facts, Vec::new()),
        context: Context::default(),
        resume: resume(Vec::new(), Vec::new()),
        lineage: None,
    })
}

/// The successors that can still receive something, as places.
pub(super) fn places(
    state: &RunState,
    graph: &Graph,
    from: &NodeId,
    wanted: impl Fn(&NodeId) -> bool,
) -> Vec<Place> {
    let place = |next: &Node| {
        let own = state
            .nodes
            .get(&next.id)
            .filter(|own| own.status == NodeStatus::Pending)?;
        wanted(&next.id).then(|| Place {
            node_id: next.id.clone(),
            activation_id: own.activation_id.clone(),
            input_port: graph::port(&state.config, &next.id, from),
        })
    };
    graph::successors(graph, from)
        .into_iter()
        .filter_map(place)
        .collect()
}

/// What becomes of a node when inputs of it are skipped.
enum Fate {
    Stays,
    Skipped,
    Failed,
}

/// Carries a choice through the graph until nothing moves any more (T-42).
fn skips(state: &RunState, graph: &Graph, decision: &NodeId, unchosen: &NodeId) -> Vec<Skip> {
    let mut gone: BTreeSet<NodeId> = BTreeSet::new();
    let mut failed: BTreeSet<NodeId> = BTreeSet::new();
    // Producers come first, so one walk settles everything.
    for node in graph::in_order(graph) {
        let status = state.nodes.get(&node.id).map(|own| own.status);
        if status != Some(NodeStatus::Pending) {
            continue;
        }
        let skipped = |producer: &NodeId| {
            let own = state.nodes.get(producer).map(|own| own.status);
            own == Some(NodeStatus::Skipped)
                || gone.contains(producer)
                || (producer == decision && node.id == *unchosen)
                || (graph::takes_any(node) && is_left_out(state, graph, producer, &node.id))
        };
        match fate(state, node, skipped) {
            Fate::Stays => {}
            Fate::Skipped => drop(gone.insert(node.id.clone())),
            Fate::Failed => drop(failed.insert(node.id.clone())),
        }
    }
    let alive = |next: &NodeId| !gone.contains(next) && !failed.contains(next);
    let mut all = Vec::new();
    for node in &graph.nodes {
        let Some(own) = state.nodes.get(&node.id).filter(|_| !alive(&node.id)) else {
            continue;
        };
        let cause = failed.contains(&node.id).then(|| Cause {
            code: "REQUIRED_INPUT_SKIPPED".to_owned(),
            detail: format!(
                "node {} needs an input that the choice of {decision} skipped",
                node.id
            ),
        });
        let places = if cause.is_some() {
            Vec::new()
        } else {
            places(state, graph, &node.id, alive)
        };
        let (node_id, activation_id) = (node.id.clone(), own.activation_id.clone());
        all.push(Skip {
            node_id,
            activation_id,
            cause,
            places,
        });
    }
    all
}

/// Whether an earlier choice took another way than the one to this consumer. Whoever waits for all is skipped then; an
/// ANY join goes on waiting for the rest, and has to remember.
fn is_left_out(state: &RunState, graph: &Graph, producer: &NodeId, consumer: &NodeId) -> bool {
    let decides = |node: &Node| matches!(node.kind, NodeKind::Decision(_));
    let own = state.nodes.get(producer).map(|own| own.status);
    let told = |id: &HandoffId| {
        let committed = state.manifests.get(id);
        committed.is_some_and(|committed| committed.manifest.producer.node_id == *producer)
    };
    graph::node(graph, producer).is_some_and(decides)
        && own == Some(NodeStatus::Completed)
        && !state.deliveries.values().any(|delivery| {
            let record = &delivery.record;
            record.recipient.node_id == *consumer && told(&record.handoff.handoff_id)
        })
}

/// An ANY join needs one of its inputs, everything else each that is required (T-42).
fn fate(state: &RunState, node: &Node, skipped: impl Fn(&NodeId) -> bool) -> Fate {
    let inputs = graph::inputs(&state.config, node);
    let required = |input: &graph::Input<'_>| !input.optional && skipped(input.producer);
    let all = !inputs.is_empty() && inputs.iter().all(|input| skipped(input.producer));
    let required = match graph::takes_any(node) {
        true => all,
        false => inputs.iter().any(required),
    };
    match graph::skip_action(&state.config, &node.id) {
        SkipAction::Fail if required => Fate::Failed,
        _ if required || all => Fate::Skipped,
        _ => Fate::Stays,
    }
}

/// Open deliveries to nodes that are skipped now. An acknowledged one keeps its receipt (T-40).
pub(super) fn excluded(state: &RunState, skips: &[Skip]) -> Vec<DeliveryId> {
    let open = state.deliveries.values().map(|delivery| &delivery.record);
    let open = open.filter(|record| {
        matches!(
            record.state,
            DeliveryState::Pending | DeliveryState::Claimed
        )
    });
    let to_gone = open.filter(|record| {
        skips
            .iter()
            .any(|skip| skip.node_id == record.recipient.node_id)
    });
    to_gone.map(|record| record.delivery_id.clone()).collect()
}

/// How a node stands that ended so.
pub(super) fn status_of(status: OutcomeStatus) -> NodeStatus {
    match status {
        OutcomeStatus::Completed => NodeStatus::Completed,
        OutcomeStatus::Skipped => NodeStatus::Skipped,
        OutcomeStatus::Blocked => NodeStatus::Blocked,
        OutcomeStatus::Failed => NodeStatus::Failed,
        OutcomeStatus::Canceled => NodeStatus::Canceled,
    }
}

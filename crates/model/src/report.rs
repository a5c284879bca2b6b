//! The report: how a run stands, from committed state alone (REP-1).
//!
//! Invariant: a pure projection; no model, no clock beyond the last event's, no stored copy. Execution and hold
//! stand side by side, neither hides the other (HS-05.7). Called by the engine for `show` and by exports.

use std::collections::BTreeMap;

use aiws::decimal::{Dec, U64};
use aiws::digest::Digest;
use aiws::id::{ActivationId, AttemptId, HoldId, MissionId, NodeId, OperationId, RunId};
use aiws::record::{
    AttemptStatus, HoldMember, HoldReason, HoldScopeKind, HoldState, Lifecycle, NodeKind,
    OperationStatus,
};
use serde::{Serialize, Serializer};

use crate::decide::reconcile::is_uncertain;
use crate::hold;
use crate::iteration::iterates;
use crate::plan::{Aggregate, aggregate, ready_nodes};
use crate::run::{NodeState, NodeStatus, RunState};

/// A number as a record has it: a decimal text, which can be sent back as it is.
fn text<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    U64(*number).serialize(to)
}

fn maybe_text<S: Serializer>(number: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    number.map(U64).serialize(to)
}

fn texts<S: Serializer>(numbers: &BTreeMap<&'static str, u64>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(numbers.iter().map(|(name, number)| (name, U64(*number))))
}

/// How a run stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The mission.
    pub mission_id: MissionId,
    /// The run; none only for a state that is no run's.
    pub run_id: Option<RunId>,
    /// Revision of the last event.
    #[serde(serialize_with = "text")]
    pub revision: u64,
    /// Hash of the last event.
    pub last_hash: Digest,
    /// The ownership epoch.
    #[serde(serialize_with = "text")]
    pub epoch: u64,
    /// The lifecycle.
    pub lifecycle: Lifecycle,
    /// The code of why it ended badly; what was said about it is in the state and in the export alone.
    pub cause: Option<String>,
    /// How it stands, in one word.
    pub aggregate: Aggregate,
    /// Whether an open hold gates it or a branch of it, whatever its execution does.
    pub held: bool,
    /// Nodes, in the order of the graph.
    pub nodes: Vec<NodeReport>,
    /// Nodes that could be admitted.
    pub ready: Vec<NodeId>,
    /// Nodes that an open hold keeps from going on.
    pub blocked_nodes: Vec<NodeId>,
    /// Holds, open ones and closed ones.
    pub holds: Vec<HoldReport>,
    /// Attempts whose effect nobody knows.
    pub uncertain: Vec<AttemptId>,
    /// Deliveries by state.
    #[serde(serialize_with = "texts")]
    pub deliveries: BTreeMap<&'static str, u64>,
    /// Committed manifests.
    #[serde(serialize_with = "text")]
    pub manifests: u64,
    /// Recorded consumptions.
    #[serde(serialize_with = "text")]
    pub consumptions: u64,
    /// Attempts of the run so far.
    #[serde(serialize_with = "text")]
    pub attempts: u64,
    /// Spent by this run, in units.
    pub spent: Dec,
    /// Reserved by this run, in units.
    pub reserved: Dec,
}

/// How a node stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// The node.
    pub node_id: NodeId,
    /// What it is.
    pub kind: &'static str,
    /// Its status.
    pub status: NodeStatus,
    /// Its current activation.
    pub activation_id: ActivationId,
    /// The iteration of a LOOP, from 1; none of any other node.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_text")]
    pub iteration: Option<u64>,
    /// The node whose choice skipped it.
    pub skipped_by: Option<NodeId>,
    /// The open holds that cover it, whatever its status.
    pub held_by: Vec<HoldId>,
    /// Its operations, each with its attempts; of a LOOP those of all iterations.
    pub operations: Vec<OperationReport>,
    /// What its attempts spent, in units.
    pub spent: Dec,
}

/// How an operation stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationReport {
    /// The operation.
    pub operation_id: OperationId,
    /// What is known of its effect.
    pub status: OperationStatus,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptReport>,
}

/// How an attempt stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptReport {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// What is known of it.
    pub status: AttemptStatus,
    /// What it holds reserved, in units.
    pub reserved: Dec,
    /// What it cost, in units, once known.
    pub actual: Option<Dec>,
}

/// How a hold stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HoldReport {
    /// The hold.
    pub hold_id: HoldId,
    /// Where it stands.
    pub state: HoldState,
    /// Why.
    pub reason: HoldReason,
    /// Who owns it.
    pub owner: aiws::id::Id,
    /// What kind of thing it covers.
    pub scope: HoldScopeKind,
    /// What it covers: the whole run, or these nodes of it.
    pub members: Vec<HoldMember>,
}

/// The report of a run's state, as of its last event.
pub fn of(state: &RunState) -> Report {
    let attempts = || state.attempts.values();
    let mut deliveries = BTreeMap::new();
    for delivery in state.deliveries.values() {
        *deliveries.entry(delivery.record.state.name()).or_insert(0) += 1;
    }
    let told = |hold: &aiws::record::Hold| HoldReport {
        hold_id: hold.hold_id.clone(),
        state: hold.state,
        reason: hold.reason,
        owner: hold.owner.clone(),
        scope: hold.scope.kind,
        members: hold.members.clone(),
    };
    Report {
        mission_id: state.subject.mission_id.clone(),
        run_id: state.subject.run_id.clone(),
        revision: state.head.revision.get(),
        last_hash: state.head.hash,
        epoch: state.epoch,
        lifecycle: state.lifecycle,
        cause: state.cause.as_ref().map(|cause| cause.code.clone()),
        aggregate: aggregate(state, &[], state.last_ms),
        held: hold::open(state).next().is_some(),
        nodes: nodes(state),
        ready: ready_nodes(state),
        blocked_nodes: blocked(state),
        holds: state.holds.values().map(told).collect(),
        uncertain: attempts()
            .filter(|attempt| is_uncertain(state, attempt))
            .map(|attempt| attempt.attempt_id.clone())
            .collect(),
        deliveries,
        manifests: state.manifests.size() as u64,
        consumptions: state.consumptions.size() as u64,
        attempts: state.attempts.size() as u64,
        spent: sum(attempts().filter_map(|attempt| attempt.actual)),
        reserved: sum(attempts().map(|attempt| attempt.reserved)),
    }
}

/// Nodes that a hold keeps from going on: all that it covers and that are not done.
fn blocked(state: &RunState) -> Vec<NodeId> {
    let open = |own: &NodeState| {
        matches!(
            own.status,
            NodeStatus::Pending | NodeStatus::Active | NodeStatus::Blocked
        )
    };
    state
        .nodes
        .iter()
        .filter(|(id, own)| open(own) && hold::is_held(state, id))
        .map(|(id, _)| id.clone())
        .collect()
}

fn nodes(state: &RunState) -> Vec<NodeReport> {
    let nodes = state.graph.iter().flat_map(|graph| &graph.nodes);
    let report = |node: &aiws::record::Node| {
        let own = state.nodes.get(&node.id)?;
        let operations = operations(state, &node.id);
        let actual = operations
            .iter()
            .flat_map(|operation| &operation.attempts)
            .filter_map(|attempt| attempt.actual);
        Some(NodeReport {
            node_id: node.id.clone(),
            kind: kind(&node.kind),
            status: own.status,
            activation_id: own.activation_id.clone(),
            iteration: iterates(node).then_some(own.iteration),
            skipped_by: own.skipped_by.clone(),
            held_by: hold::covering(state, &node.id),
            spent: sum(actual),
            operations,
        })
    };
    nodes.filter_map(report).collect()
}

fn kind(kind: &NodeKind) -> &'static str {
    kind.name()
}

fn operations(state: &RunState, node: &NodeId) -> Vec<OperationReport> {
    let mine = state
        .operations
        .values()
        .filter(|operation| operation.node_id.as_ref() == Some(node));
    let attempt = |id: &AttemptId| {
        let attempt = state.attempts.get(id)?;
        Some(AttemptReport {
            attempt_id: id.clone(),
            status: attempt.status,
            reserved: attempt.reserved,
            actual: attempt.actual,
        })
    };
    let report = |operation: &aiws::record::Operation| OperationReport {
        operation_id: operation.operation_id.clone(),
        status: operation.status,
        attempts: operation.attempts.iter().filter_map(attempt).collect(),
    };
    mine.map(report).collect()
}

/// A sum; past 100 digits it stays at the largest decimal, which no settlement reaches (T-05).
fn sum(amounts: impl Iterator<Item = Dec>) -> Dec {
    amounts.fold(Dec::ZERO, |sum, amount| {
        sum.checked_add(amount).unwrap_or(Dec::max())
    })
}

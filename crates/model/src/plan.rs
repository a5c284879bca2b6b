//! Plan: what the scheduler could do next, what a run waits for, and the one word that says how it stands.
//!
//! Invariant: a courtesy, never a permission: every step is a command that decide judges again, and an effect with
//! an unknown outcome is never among the steps to try (FV-EFF.3). Called by the engine's scheduler and by report.

mod steps;
mod waits;

use aiws::id::NodeId;
use aiws::record::{Lifecycle, Node, NodeKind, OutcomeStatus};
use serde::Serialize;

use crate::decide::complete_run::{accepted, current};
use crate::decide::join;
use crate::event::Gate;
use crate::graph;
use crate::hold;
use crate::run::{NodeStatus, RunState};

pub use steps::{Step, plan};
pub use waits::{Wait, waits};

/// How a run stands, in one word (wire form section 10, aggregate status).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Aggregate {
    /// Ended, complete.
    Completed,
    /// Ended by a failure.
    Failed,
    /// Ended by cancellation.
    Canceled,
    /// Ended because its result or its plan was refused.
    Rejected,
    /// A cancellation is pending.
    Canceling,
    /// A human paused it.
    Paused,
    /// An attempt is being tried.
    Running,
    /// Something could be done now.
    Ready,
    /// A hold, a gate, a person or an uncertain effect is waited for.
    Waiting,
    /// Nothing can ever be done and nothing is waited for: a dead dependency (HS-05.6).
    Dead,
}

/// How the run stands under these gates of its mission, at this UTC time in milliseconds.
pub fn aggregate(state: &RunState, outer_gates: &[Gate], now_ms: u64) -> Aggregate {
    match state.lifecycle {
        Lifecycle::Completed => return Aggregate::Completed,
        Lifecycle::Failed => return Aggregate::Failed,
        Lifecycle::Canceled => return Aggregate::Canceled,
        Lifecycle::Rejected => return Aggregate::Rejected,
        Lifecycle::Canceling => return Aggregate::Canceling,
        Lifecycle::Paused => return Aggregate::Paused,
        Lifecycle::Running => {}
    }
    let waits = waits(state, outer_gates, now_ms);
    if waits
        .iter()
        .any(|wait| matches!(wait, Wait::Running { .. }))
    {
        return Aggregate::Running;
    }
    // A look-up asks, and what it asks about is waited for.
    let does = |step: &Step| !matches!(step, Step::Lookup { .. });
    if state.graph.is_none() || plan(state, outer_gates, now_ms).iter().any(does) {
        return Aggregate::Ready;
    }
    if waits.is_empty() {
        Aggregate::Dead
    } else {
        Aggregate::Waiting
    }
}

/// The nodes whose dependencies are satisfied and which were not admitted yet, in the order of the graph
/// (FV-GRAPH.13). Empty while the run itself gates new work; without those that a hold covers.
pub fn ready_nodes(state: &RunState) -> Vec<NodeId> {
    if !is_open(state, &[]) {
        return Vec::new();
    }
    let nodes = state.graph.iter().flat_map(|graph| &graph.nodes);
    nodes
        .filter(|node| is_ready(state, node) && !hold::is_held(state, &node.id))
        .map(|node| node.id.clone())
        .collect()
}

/// Whether nothing gates new work of the run as a whole. A branch may be held all the same.
fn is_open(state: &RunState, outer_gates: &[Gate]) -> bool {
    let held = hold::open(state).any(hold::is_whole);
    state.lifecycle == Lifecycle::Running && !held && outer_gates.is_empty()
}

/// A node whose producers are all done, where a skipped one is done for an optional input alone; an ANY join, once one
/// of them is complete and leaving out the others abandons no work.
fn is_ready(state: &RunState, node: &Node) -> bool {
    let status = |id: &NodeId| state.nodes.get(id).map(|own| own.status);
    let done = |input: &graph::Input<'_>| match status(input.producer) {
        Some(NodeStatus::Completed) => true,
        Some(NodeStatus::Skipped) => graph::accepts(
            &state.config,
            &node.id,
            input.producer,
            OutcomeStatus::Skipped,
        ),
        _ => false,
    };
    let Some(own) = state.nodes.get(&node.id) else {
        return false;
    };
    if own.status != NodeStatus::Pending {
        return false;
    }
    match state.graph.as_deref().filter(|_| graph::takes_any(node)) {
        Some(graph) => join::is_ready(state, graph, node, own),
        None => graph::inputs(&state.config, node).iter().all(done),
    }
}

/// Whether completeRun would find everything done (FV-RUN.2, FV-RUN.3).
fn is_complete(state: &RunState) -> bool {
    let Some(graph) = state.graph.as_deref() else {
        return false;
    };
    let status = |node: &Node| state.nodes.get(&node.id).map(|own| own.status);
    let gate = |node: &Node| matches!(node.kind, NodeKind::Verification | NodeKind::Acceptance);
    let done = |node: &Node| match status(node) {
        Some(NodeStatus::Completed) => true,
        Some(NodeStatus::Skipped) => !gate(node),
        _ => false,
    };
    let mut ends = graph
        .nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::End));
    graph.nodes.iter().all(done)
        && ends.any(|node| status(node) == Some(NodeStatus::Completed))
        && current(&state.verifications).is_some()
        && accepted(state).is_some()
}

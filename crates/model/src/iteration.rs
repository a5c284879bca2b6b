//! Iterations: what a LOOP's result means, and what its activations share.
//!
//! Invariant: an iteration has an activation and an operation of its own (T-27, FV-NODE-LOOP.2), all of them consume
//! the inputs that the node received at first, and none comes after the bound. Called by decide, draft and plan.
//!
//! `done: true` in a COMPLETED boundary ends the LOOP, `done: false` its iteration. After the last iteration that the
//! bound allows, `done: false` stands in a BLOCKED boundary with a hold for ATTEMPT_LIMIT, and nowhere else (HS-02.1).

use aiws::decimal::Dec;
use aiws::id::ActivationId;
use aiws::json::Value;
use aiws::record::{Manifest, Node, NodeKind, OutcomeStatus};

use praxis_plant::{self as plant, Plant};

use crate::run::{NodeState, RunState};
use crate::stream::activation;

/// Whether a node runs in iterations.
pub(crate) fn iterates(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Loop(_))
}

/// What a result says of `done`; none where it says neither true nor false.
pub(crate) fn says_done(result: &Value) -> Option<bool> {
    match result.get("done") {
        Some(Value::Bool(done)) => Some(*done),
        _ => None,
    }
}

/// Whether the current iteration is the last that a LOOP may have.
pub(crate) fn is_last(node: &Node, own: &NodeState) -> bool {
    match &node.kind {
        NodeKind::Loop(config) if plant::is(Plant::LoopPastBound) => {
            Dec::from_u64(own.iteration) > config.max_iterations.get()
        }
        NodeKind::Loop(config) => Dec::from_u64(own.iteration) >= config.max_iterations.get(),
        _ => true,
    }
}

/// Whether an outcome ends an iteration and not the LOOP.
pub(crate) fn goes_on(node: &Node, status: OutcomeStatus, result: &Value) -> bool {
    iterates(node) && status == OutcomeStatus::Completed && says_done(result) == Some(false)
}

/// Whether an outcome says that the bound is reached.
pub(crate) fn exhausts(node: &Node, status: OutcomeStatus, result: &Value) -> bool {
    iterates(node) && status == OutcomeStatus::Blocked && says_done(result) == Some(false)
}

/// Whether a manifest has counted this activation's iteration, so that another one of this status would count it again
/// (HF-02.12). What is exhausted may still fail or be canceled.
pub(crate) fn counts(
    node: &Node,
    counted: &Manifest,
    activation: &ActivationId,
    status: OutcomeStatus,
) -> bool {
    let outcome = counted.outcome.status;
    let again = matches!(status, OutcomeStatus::Completed | OutcomeStatus::Blocked);
    counted.producer.activation_id == *activation
        && (outcome == OutcomeStatus::Completed
            || (exhausts(node, outcome, &counted.result) && again))
}

/// The activation to which a node's inputs were delivered: its first one, since iterations receive nothing anew.
pub(crate) fn received_as(state: &RunState, node: &Node, own: &NodeState) -> ActivationId {
    match iterates(node) {
        true => activation(&state.stream, &node.id, 1),
        false => own.activation_id.clone(),
    }
}

//! activateGraph: pins a run's graph before any operation begins.
//!
//! Invariant: a run has one graph for its whole life (FV-GRAPH.1), and only a mission that negotiated the
//! hand-off protocol has one (HM-01.1). Called by `decide::run`.

use aiws::object;

use crate::admission::details;
use crate::command::{ActivateGraph, Body, Command};
use crate::decision::{Decision, Rejection};
use crate::event::Outcome;
use crate::facts::Facts;
use crate::graph;
use crate::guard::{Guard, check};
use crate::mission::PROTOCOL;
use crate::run::RunState;
use crate::transition::Transition;

/// Stage 8 of activateGraph.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &ActivateGraph,
    _facts: &Facts,
) -> Result<Decision, Rejection> {
    let negotiated = state
        .contract
        .extensions
        .iter()
        .flatten()
        .any(|extension| extension == PROTOCOL);
    check(Guard::GraphNegotiated, negotiated, || {
        details(&[("needed", PROTOCOL.into())])
    })?;
    let unset = state.graph.is_none() && state.operations.is_empty();
    check(Guard::GraphUnset, unset, || {
        let pinned = state
            .graph
            .as_deref()
            .map(|graph| graph.graph_id.as_str().to_owned());
        details(&[("graphId", pinned.into())])
    })?;
    graph::validate(&body.graph, &state.contract, &state.config)?;
    let outcome = Outcome {
        transitions: vec![Transition::GraphActivated {}],
        ..Outcome::default()
    };
    let result = object! {
        "graphId": &body.graph.graph_id,
        "revision": body.graph.revision,
        "planRevision": body.graph.plan_revision,
        "nodes": body.graph.nodes.len().to_string(),
    };
    Ok(Decision {
        command: Body::ActivateGraph(body.clone()),
        outcome,
        result,
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

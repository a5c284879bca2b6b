//! A branch of a run, as a person names it: a node, and with it all that depends on it.
//! Invariant: what is shown before a hold is placed is what the model puts into the hold. Part of the office.

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::id::{NodeId, RunId};
use aiws::object;
use aiws::record::{Hold, HoldScope, HoldScopeKind, NodeSet, Ref};
use praxis_model::hold::members;
use praxis_model::run::RunState;

use crate::answer::{Answer, View};
use crate::render::{escape, json, program};
use crate::store::Reader;

/// The scope of a hold over a whole run, or over the branch of a node.
///
/// # Errors
///
/// `SCOPE_UNSUPPORTED` where the run has no such node.
pub(super) fn scope(
    state: &RunState,
    run: &RunId,
    branch: Option<&str>,
) -> Result<HoldScope, Error> {
    let one = Dec::from_u64(1);
    let of = |kind, id, revision| HoldScope {
        kind,
        scope_ref: Ref { id, revision },
        resolver_revision: one,
    };
    let Some(name) = branch else {
        return Ok(of(HoldScopeKind::Run, run.as_id(), one));
    };
    let graph = state.graph.as_deref();
    let nodes = graph.map(|graph| graph.nodes.as_slice());
    let nodes = nodes.unwrap_or_default();
    match (graph, nodes.iter().find(|node| node.id.as_str() == name)) {
        (Some(graph), Some(node)) => Ok(of(HoldScopeKind::Branch, node.id.as_id(), graph.revision)),
        _ => {
            let known: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
            let message = format!(
                "expected a node of run {run} ({}), found {}",
                known.join(", "),
                escape::line(&aiws::error::beginning(name))
            );
            Err(Error::new(Code::ScopeUnsupported, message))
        }
    }
}

/// The nodes that a hold of this scope would cover, in the order of the graph; none for a whole run.
pub(super) fn covered(state: &RunState, scope: &HoldScope) -> Vec<NodeId> {
    let named = members(state, scope).into_iter();
    named
        .flat_map(|member| match member.node_ids {
            NodeSet::All => Vec::new(),
            NodeSet::Named(nodes) => nodes,
        })
        .collect()
}

/// Whether a hold is of exactly this scope.
pub(super) fn is_of(hold: &Hold, scope: &HoldScope) -> bool {
    hold.scope.kind == scope.kind && hold.scope.scope_ref.id == scope.scope_ref.id
}

/// What a hold of a branch would cover, before anybody places it.
///
/// # Errors
///
/// `RUN_NOT_FOUND`, `USAGE` where no branch is named, `SCOPE_UNSUPPORTED` where the run has no such node.
pub fn answer(
    reader: &Reader,
    run: &str,
    branch: Option<&str>,
    view: View,
) -> Result<Answer, Error> {
    let Some(node) = branch else {
        let message =
            "--dry-run: expected --branch beside it; a pause of a whole run covers all of it";
        return Err(Error::new(Code::Usage, message));
    };
    let subject = reader.find(Some(run))?;
    let (state, _) = reader.state(&subject)?;
    let run = super::control::run_of(&subject)?;
    let nodes = covered(&state, &scope(&state, &run, Some(node))?);
    let names: Vec<String> = nodes
        .iter()
        .map(|node| escape::line(node.as_str()))
        .collect();
    let value = json::object(
        "branch",
        object! { "run": run.as_str(), "branch": node, "nodes": names.clone() },
    );
    Ok(Answer::done(value, view, |_| {
        format!(
            "a hold of branch {node} of run {run} covers {}\nnext\n  {} pause {run} --branch {node}\n",
            names.join(", "),
            program()
        )
    }))
}

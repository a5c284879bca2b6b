//! What holds cover: a whole run, or a branch of it, which is a node with all that depends on it.
//!
//! Invariant: members come from the pinned graph (HLD-1). A graph never changes once it is pinned, so a node of a branch
//! is covered in every activation to come (HS-01.7, HS-01.8). Called by decide, evolve, plan and report; `members` also
//! by a host's authorizer, which answers for every member (HC-ENV.4).

use std::collections::BTreeSet;

use aiws::id::{HoldId, NodeId};
use aiws::record::{
    Attempt, Graph, Hold, HoldMember, HoldScope, HoldScopeKind, HoldState, NodeSet,
};

use praxis_plant::{self as plant, Plant};

use crate::command::Body;
use crate::event::Gate;
use crate::graph;
use crate::run::RunState;
use crate::table;

/// The members of a hold of this scope in this run: the run with every node that it will ever have, or a node of the
/// pinned graph with all that depends on it. Empty where the scope does not resolve in this run (HS-01.9).
#[must_use]
pub fn members(state: &RunState, scope: &HoldScope) -> Vec<HoldMember> {
    let Some(run_id) = state.subject.run_id.clone() else {
        return Vec::new();
    };
    let named = scope.scope_ref.id.as_str();
    let node_ids = match scope.kind {
        HoldScopeKind::Run => (run_id.as_str() == named).then_some(NodeSet::All),
        HoldScopeKind::Branch => state
            .graph
            .as_deref()
            .and_then(|graph| branch(graph, named))
            .map(NodeSet::Named),
        HoldScopeKind::WorkOrder => None,
    };
    let member = |node_ids| HoldMember {
        mission_id: state.subject.mission_id.clone(),
        run_id,
        node_ids,
    };
    node_ids.map(member).into_iter().collect()
}

/// A node and all that depends on it, in the order of the graph; none where the graph has no such node.
fn branch(graph: &Graph, root: &str) -> Option<Vec<NodeId>> {
    let root = graph.nodes.iter().find(|node| node.id.as_str() == root)?;
    let dependents = graph::dependents(graph);
    let mut covered: BTreeSet<&NodeId> = BTreeSet::new();
    let mut todo = vec![&root.id];
    while let Some(id) = todo.pop() {
        if covered.insert(id) && !plant::is(Plant::BranchHoldNarrow) {
            todo.extend(graph::of(&dependents, id).iter().map(|next| &next.id));
        }
    }
    let nodes = graph.nodes.iter().map(|node| &node.id);
    Some(nodes.filter(|id| covered.contains(id)).cloned().collect())
}

/// Whether these members contain a node; what belongs to no node is contained in a whole run alone.
pub(crate) fn contains(members: &[HoldMember], node: Option<&NodeId>) -> bool {
    members.iter().any(|member| match (&member.node_ids, node) {
        (NodeSet::All, _) => true,
        (NodeSet::Named(_), None) => false,
        (named, Some(node)) => named.contains(node),
    })
}

/// Whether these members contain an attempt's node.
pub(crate) fn contains_attempt(
    state: &RunState,
    members: &[HoldMember],
    attempt: &Attempt,
) -> bool {
    let operation = state.operations.get(&attempt.operation_id);
    contains(members, operation.and_then(|own| own.node_id.as_ref()))
}

/// The open holds of a run. They overlap, and each ends by itself (HS-03.2).
pub(crate) fn open(state: &RunState) -> impl Iterator<Item = &Hold> {
    let all = state.holds.values();
    all.filter(|hold| hold.state == HoldState::Open)
}

/// Whether a hold covers its whole run.
pub(crate) fn is_whole(hold: &Hold) -> bool {
    contains(&hold.members, None)
}

/// The open holds that cover a node.
pub(crate) fn covering(state: &RunState, node: &NodeId) -> Vec<HoldId> {
    let covers = |hold: &&Hold| contains(&hold.members, Some(node));
    let all = open(state).filter(covers);
    all.map(|hold| hold.hold_id.clone()).collect()
}

/// Whether any open hold covers a node.
pub fn is_held(state: &RunState, node: &NodeId) -> bool {
    open(state).any(|hold| contains(&hold.members, Some(node)))
}

/// The node in which a command would launch work; none where it concerns the whole run, or names what the run does not
/// have: every hold stops that.
pub(crate) fn reach(state: &RunState, body: &Body) -> Option<NodeId> {
    let recipient = |id| {
        let delivery = state.deliveries.get(id)?;
        Some(delivery.record.recipient.node_id.clone())
    };
    let known = |id: &NodeId| state.nodes.contains_key(id).then(|| id.clone());
    match body {
        Body::Dispatch(body) => known(&body.node_id),
        Body::AdmitConsumer(body) => known(&body.consumption.node_id),
        Body::Retry(body) => state.operations.get(&body.operation_id)?.node_id.clone(),
        Body::ClaimDelivery(body) => recipient(&body.delivery_id),
        Body::AcknowledgeDelivery(body) => recipient(&body.delivery_id),
        _ => None,
    }
}

/// What the event of a command says of where it launches work: its node, while a branch of the run is held, so that the
/// durable boundary can tell one branch from another (HS-01.12). No other event says it.
pub(crate) fn told(state: &RunState, body: &Body) -> Option<NodeId> {
    let held = open(state).any(|hold| !is_whole(hold));
    let gated = held && table::row(body.kind()).gated;
    gated.then(|| reach(state, body)).flatten()
}

/// The gate that a hold closes while it is open.
pub(crate) fn gate(hold: &Hold) -> Gate {
    let hold_id = hold.hold_id.clone();
    let mut named = Vec::new();
    for member in &hold.members {
        match &member.node_ids {
            NodeSet::All => return Gate::Hold { hold_id },
            NodeSet::Named(nodes) => named.extend(nodes.iter().cloned()),
        }
    }
    Gate::Branch {
        hold_id,
        node_ids: named,
    }
}

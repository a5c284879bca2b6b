//! What people say of branches, hand-offs and joins, and what somebody tries who cannot wait.
//!
//! Invariant: a branch, a hand-off or a hold is meant by a number that is taken modulo what the run has. Part of the
//! simulation.

use aiws::decimal::Dec;
use aiws::error::Error;
use aiws::object;
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::run::{NodeStatus, RunState};

use super::Sim;
use super::asks::run_id;
use super::hops::{Ask, ENGINE, Who};
use super::people::{at, hold};
use super::process::Process;
use crate::cast;

/// A hold over a node of the run with all that depends on it.
pub(super) fn branch_hold(
    state: &RunState,
    number: u32,
    pick: u8,
) -> Result<Option<HoldProposal>, Error> {
    let nodes: Vec<_> = state.graph.iter().flat_map(|graph| &graph.nodes).collect();
    let Some(node) = at(&nodes, pick) else {
        return Ok(None);
    };
    Ok(Some(HoldProposal {
        scope: HoldScope {
            kind: HoldScopeKind::Branch,
            scope_ref: cast::reference(node.id.as_str())?,
            resolver_revision: Dec::from_u64(1),
        },
        ..hold(state, number)?
    }))
}

/// A hold ends with the run that it holds.
pub(super) fn give_up(state: &RunState, pick: u8) -> Result<Option<Body>, Error> {
    let all = state.holds.values();
    let open: Vec<_> = all
        .filter(|hold| hold.state == HoldState::Open)
        .map(|hold| hold.hold_id.clone())
        .collect();
    let Some(hold_id) = at(&open, pick) else {
        return Ok(None);
    };
    Ok(Some(Body::ResolveHold(ResolveHold {
        hold_id,
        decision: HoldDecision::Cancel,
        decision_ref: cast::id("ann-decided")?,
        evidence: Vec::new(),
        rule: None,
    })))
}

/// The hand-offs of a run.
fn handoffs(state: &RunState) -> Vec<HandoffRef> {
    let all = state.manifests.iter();
    all.map(|(id, committed)| HandoffRef {
        handoff_id: id.clone(),
        digest: committed.digest,
    })
    .collect()
}

/// A person says something about a hand-off.
pub(super) fn summarize(state: &RunState, number: u32, pick: u8) -> Result<Option<Ask>, Error> {
    let Some(handoff) = at(&handoffs(state), pick) else {
        return Ok(None);
    };
    let summary = SummaryProposal {
        summary_id: cast::id(&format!("summary-{number}"))?,
        handoff,
        author: SummaryAuthor {
            kind: AuthorKind::Human,
            actor_id: cast::id("ann")?,
            operation_id: None,
        },
        text: format!("words {number}"),
    };
    let body = Body::RecordSummary(RecordSummary { summary });
    Ok(Some(Ask::of(Who::Person, body)))
}

impl Sim {
    /// A person says that a hand-off no longer counts.
    pub(super) fn invalidate(
        &mut self,
        process: &Process,
        state: &RunState,
        pick: u8,
    ) -> Result<Option<Ask>, Error> {
        let Some(handoff) = at(&handoffs(state), pick) else {
            return Ok(None);
        };
        let shown =
            object! { "wrong": handoff.handoff_id.as_str(), "run": run_id(state)?.as_str() };
        let evidence = self.evidence(process, &shown)?;
        let body = Body::InvalidateHandoff(InvalidateHandoff {
            handoff,
            reason: "it was wrong".to_owned(),
            evidence: vec![evidence.clone()],
            hold: None,
        });
        Ok(Some(Ask::of(Who::Person, body).with_evidence(&evidence)))
    }
}

/// A node goes on as soon as it has a receipt, whatever becomes of the others.
pub(super) fn join_early(state: &RunState, pick: u8) -> Result<Option<Ask>, Error> {
    let nodes = state.graph.iter().flat_map(|graph| &graph.nodes);
    let received = |node: &&Node| {
        let own = state.nodes.get(&node.id);
        let mut deliveries = state.deliveries.values();
        own.is_some_and(|own| own.status == NodeStatus::Pending)
            && deliveries.any(|delivery| {
                delivery.record.recipient.node_id == node.id
                    && delivery.record.state == DeliveryState::Acknowledged
            })
    };
    let early = nodes.filter(|node| node.depends_on.len() > 1 && !node.kind.runs_work());
    let early: Vec<_> = early.filter(received).map(|node| node.id.clone()).collect();
    Ok(at(&early, pick).map(|node_id| {
        let admission_ref = None;
        Ask::intent(
            ENGINE,
            Intent::Admit(AdmitIntent {
                node_id,
                admission_ref,
            }),
        )
    }))
}

/// Whoever runs a loop says that it is not done yet.
pub(super) fn loop_on(state: &RunState, pick: u8) -> Result<Option<Ask>, Error> {
    let nodes = state.graph.iter().flat_map(|graph| &graph.nodes);
    let active = |node: &&Node| {
        let own = state.nodes.get(&node.id);
        matches!(node.kind, NodeKind::Loop(_))
            && own.is_some_and(|own| own.status == NodeStatus::Active)
    };
    let loops: Vec<_> = nodes.filter(active).map(|node| node.id.clone()).collect();
    Ok(at(&loops, pick).map(|node_id| {
        let boundary = BoundaryIntent {
            node_id,
            status: OutcomeStatus::Completed,
            result: object! { "done": false },
            artifacts: Vec::new(),
            criteria: Vec::new(),
            approvals: Vec::new(),
            context: Context::default(),
            cause: None,
            hold: None,
        };
        Ask::intent(ENGINE, Intent::Boundary(boundary))
    }))
}

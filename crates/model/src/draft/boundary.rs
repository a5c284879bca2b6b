//! A boundary's draft: the producer says how it ended, and the coordinator knows the rest (HF-05.10).
//!
//! Invariant: whatever decide would compare is made here by the same functions that it compares with.
//! Called by `draft::command`.

use aiws::decimal::Dec;
use aiws::id::{CriterionId, EvidenceId, HoldId};
use aiws::record::{
    Assessment, Blocker, Criterion, CriterionStatus, HoldDecision, HoldReason, Manifest, Node,
    NodeKind, Outcome, OutcomeStatus, Protocol, Ref,
};

use super::{new_id, node};
use crate::admission::details;
use crate::command::{BoundaryIntent, CommitBoundary, HoldProposal};
use crate::decide::complete_run::{accepted, current};
use crate::decide::evidence::{ACCEPTANCE, VERIFICATION};
use crate::decide::{boundary, place_hold};
use crate::decision::Rejection;
use crate::facts::Facts;
use crate::guard::{Guard, need};
use crate::iteration;
use crate::run::{NodeState, RunState};

/// The boundary of a node's current activation.
pub(super) fn draft(
    state: &RunState,
    intent: &BoundaryIntent,
    facts: &Facts,
) -> Result<CommitBoundary, Rejection> {
    let (node, own) = node(state, &intent.node_id, Guard::ProducerKnown)?;
    let named = || details(&[("nodeId", (&node.id).into())]);
    let graph = need(Guard::ProducerKnown, state.graph.as_deref(), named)?;
    let (status, hold) = at_the_bound(state, node, own, intent, facts)?;
    let consequences = boundary::consequences(state, graph, node, status, &intent.result);
    let mut deliveries = 0;
    let ids = boundary::new_ids(state, 0, consequences.places.len(), &mut deliveries);
    let outstanding = boundary::outstanding(state, &own.activation_id);
    let mut blockers = boundary::blockers(&outstanding);
    blockers.extend(hold.iter().flat_map(|hold| hold.blockers.clone()));
    let producer = boundary::producer(
        state,
        graph,
        &node.id,
        &own.activation_id,
        ids.checkpoint.clone(),
    );
    let bound = state.consumptions.get(&own.activation_id);
    let manifest = Manifest {
        protocol: Protocol::HandoffV1,
        handoff_id: ids.handoff,
        producer: need(Guard::SubjectAgrees, producer, named)?,
        basis: boundary::basis(state),
        outcome: Outcome {
            status,
            criteria: criteria(state, node, intent)?,
            outstanding,
            cause: intent.cause.clone(),
        },
        inputs: bound
            .map(|consumption| consumption.inputs.clone())
            .unwrap_or_default(),
        recipients: boundary::recipients(&consequences.places, &ids.deliveries),
        artifacts: intent.artifacts.clone(),
        result: intent.result.clone(),
        controls: boundary::controls(state, facts, approvals(state, own, intent)),
        context: intent.context.clone(),
        resume: boundary::resume(consequences.eligible(&node.id, status), blockers),
        lineage: None,
    };
    let mut skipped = Vec::new();
    for (index, skip) in consequences.skips.iter().enumerate() {
        let ids = boundary::new_ids(state, index + 1, skip.places.len(), &mut deliveries);
        skipped.extend(boundary::skip_manifest(state, graph, facts, skip, &ids));
    }
    Ok(CommitBoundary {
        manifest,
        hold,
        skipped,
    })
}

/// How the boundary ends, with its hold. Whoever says that a LOOP's last iteration is not done need not know that it is
/// the last: the coordinator blocks the node and holds the run (HS-02.1).
fn at_the_bound(
    state: &RunState,
    node: &Node,
    own: &NodeState,
    intent: &BoundaryIntent,
    facts: &Facts,
) -> Result<(OutcomeStatus, Option<HoldProposal>), Rejection> {
    let goes_on = iteration::goes_on(node, intent.status, &intent.result);
    let run = state.subject.run_id.as_ref();
    let Some(run) = run.filter(|_| goes_on && iteration::is_last(node, own)) else {
        return Ok((intent.status, intent.hold.clone()));
    };
    let reason = HoldReason::AttemptLimit;
    let blocker = Blocker {
        kind: reason,
        subject_id: node.id.as_id(),
        evidence: Vec::new(),
    };
    let hold = HoldProposal {
        hold_id: HoldId::from(new_id(state, "hold", 0)),
        scope: place_hold::run_scope(state, run),
        reason,
        owner: facts.actor_id.as_id(),
        blockers: vec![blocker],
        allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
        stop_disposition: Vec::new(),
    };
    Ok((
        OutcomeStatus::Blocked,
        Some(intent.hold.clone().unwrap_or(hold)),
    ))
}

/// The approvals that the producer names and those that its own operations were admitted under, each once.
fn approvals(state: &RunState, own: &NodeState, intent: &BoundaryIntent) -> Vec<Ref> {
    let mine = state
        .operations
        .values()
        .filter(|operation| operation.activation_id.as_ref() == Some(&own.activation_id));
    let used = mine.filter_map(|operation| operation.approval_id.as_ref());
    let all: std::collections::BTreeSet<_> = intent.approvals.iter().chain(used).collect();
    all.into_iter()
        .map(|id| Ref {
            id: id.as_id(),
            revision: Dec::from_u64(1),
        })
        .collect()
}

/// What the producer says, and for a gate the assessment that the ledger knows to count.
fn criteria(
    state: &RunState,
    node: &Node,
    intent: &BoundaryIntent,
) -> Result<Vec<Criterion>, Rejection> {
    let mut all = intent.criteria.clone();
    let gate = match &node.kind {
        NodeKind::Verification => Some((VERIFICATION, current(&state.verifications))),
        NodeKind::Acceptance => Some((ACCEPTANCE, accepted(state))),
        _ => None,
    };
    let Some((name, Some(assessment))) = gate.filter(|_| intent.status == OutcomeStatus::Completed)
    else {
        return Ok(all);
    };
    if !all.iter().any(|said| said.criterion_id.as_str() == name) {
        all.push(met(name, assessment)?);
    }
    Ok(all)
}

fn met(name: &'static str, assessment: &Assessment) -> Result<Criterion, Rejection> {
    Ok(Criterion {
        criterion_id: CriterionId::new(name)?,
        status: CriterionStatus::Met,
        evidence: vec![EvidenceId::from(assessment.assessment_id.as_id())],
    })
}

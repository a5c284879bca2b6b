//! What a run's state says of the workflow: what waits for a decision, what a node consumed, what counts as evidence.
//! Invariant: pure questions over the state; the same state has the same answers.
//! Called by `program`, by the pages that show a run, and where people and rules decide.

use std::sync::Arc;

use aiws::digest::Digest;
use aiws::error::{Code, Error};
use aiws::id::{ApprovalId, AssessmentId, EvidenceId, Id, NodeId};
use aiws::json::Value;
use aiws::record::{
    ApprovalDecision, Artifact, Assessment, Manifest, OutcomeStatus, VerificationVerdict,
};
use praxis_model::command::Verify;
use praxis_model::run::RunState;
use praxis_model::stream::derived;

use super::contract::Job;
use super::graph::{self, Stage};
use super::outcome::{PATCH_FILE, PLAN_FILE, counts, named};
use super::program::unexpected;

/// The verification that follows from the passing check, once its node is there and it was not recorded yet.
///
/// # Errors
///
/// `EVIDENCE_INVALID` when no check passed.
pub fn verification(state: &RunState) -> Result<Option<Verify>, Error> {
    use praxis_model::run::NodeStatus as S;
    let node = graph::node_id(graph::VERIFY)?;
    let active = state
        .nodes
        .get(&node)
        .is_some_and(|node| node.status == S::Active);
    if !active || state.lifecycle.is_terminal() {
        return Ok(None);
    }
    let patch = digest_in(&inputs_of(state, &node), PATCH_FILE)?;
    if current(&state.verifications).is_some_and(|last| is_about(last, &patch)) {
        return Ok(None);
    }
    Ok(Some(Verify {
        assessment_id: AssessmentId::from(next_id(state, "assessment")),
        run_id: state
            .subject
            .run_id
            .clone()
            .ok_or_else(|| unexpected(&node))?,
        subject: Id::new(patch.to_string())?,
        verdict: VerificationVerdict::Pass,
        evidence: passing_evidence(state)?,
    }))
}

/// What a person decides on at an approval: the plan's artifact, the exact action, and its fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The plan.
    pub plan: Artifact,
    /// The action that would run.
    pub action: Value,
    /// SHA-256 of the action's canonical bytes.
    pub fingerprint: Digest,
}

/// What waits for an approval now; none where none is needed or one is current.
///
/// # Errors
///
/// None in practice; the codec's own.
pub fn proposal(state: &RunState, job: &Job, now_ms: u64) -> Result<Option<Proposal>, Error> {
    use praxis_model::run::NodeStatus as S;
    let status = |name: &str| state.nodes.get(name).map(|node| node.status);
    let planned = status(graph::PLAN) == Some(S::Completed);
    let begun = status(graph::IMPLEMENT) != Some(S::Pending);
    let manifest = manifest_of(state, graph::PLAN);
    let Some(plan) = manifest
        .as_ref()
        .and_then(|manifest| named(&manifest.artifacts, PLAN_FILE))
    else {
        return Ok(None);
    };
    let action = job.implement_action(&plan.digest);
    if !planned
        || begun
        || state.lifecycle.is_terminal()
        || current_approval(state, &action, now_ms)?.is_some()
    {
        return Ok(None);
    }
    let fingerprint = aiws::canonical::digest_of(&action)?;
    Ok(Some(Proposal {
        plan: plan.clone(),
        action,
        fingerprint,
    }))
}

/// What waits for an acceptance now: the verified patch, with the evidence of its check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The patch.
    pub patch: Artifact,
    /// Evidence of the passing check.
    pub evidence: Vec<EvidenceId>,
}

/// The result that waits for acceptance; none where there is none.
///
/// # Errors
///
/// As the ids of the evidence.
pub fn candidate(state: &RunState) -> Result<Option<Candidate>, Error> {
    use praxis_model::run::NodeStatus as S;
    let active = state
        .nodes
        .get(graph::ACCEPT)
        .is_some_and(|node| node.status == S::Active);
    let manifest = manifest_of(state, graph::VERIFY);
    let Some(patch) = manifest
        .as_ref()
        .and_then(|manifest| named(&manifest.artifacts, PATCH_FILE))
    else {
        return Ok(None);
    };
    let taken = current(&state.acceptances).is_some_and(|last| is_about(last, &patch.digest));
    if !active || taken || state.lifecycle.is_terminal() {
        return Ok(None);
    }
    Ok(Some(Candidate {
        patch: patch.clone(),
        evidence: passing_evidence(state)?,
    }))
}

/// The newest manifest of a node.
#[must_use]
pub fn manifest_of(state: &RunState, node: &str) -> Option<Arc<Manifest>> {
    let of_node = state
        .manifests
        .values()
        .filter(|committed| committed.manifest.producer.node_id.as_str() == node);
    of_node
        .max_by_key(|committed| committed.revision)
        .map(|committed| Arc::clone(&committed.manifest))
}

/// A new id for something that this state's next event makes.
#[must_use]
pub fn next_id(state: &RunState, kind: &str) -> Id {
    derived(&state.stream, state.head.revision.0 + 1, kind, 0)
}

/// The manifests that a node's current activation consumed, skipped ones included.
pub(super) fn inputs_of(state: &RunState, node: &NodeId) -> Vec<Arc<Manifest>> {
    let Some(own) = state.nodes.get(node) else {
        return Vec::new();
    };
    let from_consumption = state
        .consumptions
        .get(&own.activation_id)
        .map(|consumption| {
            consumption
                .inputs
                .iter()
                .map(|input| input.handoff.handoff_id.clone())
                .collect::<Vec<_>>()
        });
    // Before admission the deliveries say what will be consumed.
    let handoffs = from_consumption.unwrap_or_else(|| {
        let mine = state
            .deliveries
            .values()
            .filter(|delivery| delivery.record.recipient.activation_id == own.activation_id);
        mine.map(|delivery| delivery.record.handoff.handoff_id.clone())
            .collect()
    });
    let committed = handoffs
        .iter()
        .filter_map(|handoff| state.manifests.get(handoff));
    committed
        .map(|committed| Arc::clone(&committed.manifest))
        .collect()
}

/// The artifacts of these names from the inputs that were done.
pub(super) fn kept(inputs: &[Arc<Manifest>], names: &[&str]) -> Vec<Artifact> {
    let done = || {
        inputs
            .iter()
            .filter(|manifest| manifest.outcome.status == OutcomeStatus::Completed)
    };
    names
        .iter()
        .filter_map(|name| done().find_map(|manifest| named(&manifest.artifacts, name)))
        .cloned()
        .collect()
}

pub(super) fn digest_in(inputs: &[Arc<Manifest>], name: &str) -> Result<Digest, Error> {
    let kept = kept(inputs, &[name]);
    kept.first().map(|artifact| artifact.digest).ok_or_else(|| {
        Error::new(
            Code::ArtifactUnavailable,
            format!("expected {name} among the inputs of the node, found none"),
        )
    })
}

/// The newest approval of exactly this action that counts now.
pub(super) fn current_approval(
    state: &RunState,
    action: &Value,
    now_ms: u64,
) -> Result<Option<ApprovalId>, Error> {
    let fingerprint = aiws::canonical::digest_of(action)?;
    let counts = |approval: &&aiws::record::Approval| {
        approval.fingerprint == fingerprint
            && approval.decision == ApprovalDecision::Approved
            && !approval.revoked
            && !approval.expires_at_ms.reached(now_ms)
    };
    let newest = state
        .approvals
        .values()
        .filter(counts)
        .max_by_key(|approval| approval.granted_at_ms.0);
    Ok(newest.map(|approval| approval.approval_id.clone()))
}

/// Evidence of the check that passed.
pub(super) fn passing_evidence(state: &RunState) -> Result<Vec<EvidenceId>, Error> {
    let is_check = |node: &NodeId| matches!(Stage::of(node), Some(Stage::Check(_)));
    let passed = state.manifests.values().filter(|committed| {
        is_check(&committed.manifest.producer.node_id)
            && committed.manifest.outcome.status == OutcomeStatus::Completed
            && counts(&committed.manifest)
    });
    let check = passed
        .max_by_key(|committed| committed.revision)
        .map(|committed| Arc::clone(&committed.manifest));
    let produced = check
        .iter()
        .flat_map(|manifest| &manifest.producer.operations);
    let attempts = produced
        .flat_map(|operation| &operation.attempt_ids)
        .filter_map(|id| state.attempts.get(id));
    let mut attempts = attempts;
    let evidence: Vec<EvidenceId> = attempts
        .next_back()
        .map(|attempt| attempt.evidence.clone())
        .unwrap_or_default();
    if evidence.is_empty() {
        return Err(Error::new(
            Code::EvidenceInvalid,
            "expected a passing check with evidence, found none",
        ));
    }
    Ok(evidence)
}

pub(super) fn current(assessments: &[Assessment]) -> Option<&Assessment> {
    assessments
        .iter()
        .rev()
        .find(|assessment| assessment.invalidated.is_none())
}

pub(super) fn is_about(assessment: &Assessment, patch: &Digest) -> bool {
    assessment.subject.as_str() == patch.to_string()
}

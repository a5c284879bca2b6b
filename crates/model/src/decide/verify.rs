//! verify: someone says whether the result is right (FV-ASM.1).
//!
//! Invariant: assessments are numbered without gaps, and the last one that still counts is the current one; a
//! verification implies neither approval nor acceptance (FV-APR.5). Called by `decide::run`; `record` also by accept.

use aiws::canonical::digest_of;
use aiws::decimal::U64;
use aiws::id::{AssessmentId, EvidenceId, Id};
use aiws::object;
use aiws::record::{Assessment, AssessmentVerdict};

use super::pipeline::members;
use crate::command::{Body, Command, Verify};
use crate::decision::{Decision, Rejection};
use crate::event::{Identity, IdentityKind, Outcome};
use crate::facts::Facts;
use crate::guard::{Guard, check};
use crate::run::RunState;
use crate::transition::Transition;

/// Stage 8 of verify.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &Verify,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let said = Said {
        assessment_id: &body.assessment_id,
        verdict: body.verdict.into(),
        subject: &body.subject,
        evidence: &body.evidence,
    };
    let (assessment, outcome) = record(state, facts, &said)?;
    Ok(Decision {
        command: Body::Verify(body.clone()),
        outcome,
        result: result(&assessment),
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

/// An assessment as it was said.
pub(super) struct Said<'a> {
    /// Its new id.
    pub assessment_id: &'a AssessmentId,
    /// The answer.
    pub verdict: AssessmentVerdict,
    /// What was assessed.
    pub subject: &'a Id,
    /// What shows it.
    pub evidence: &'a [EvidenceId],
}

/// 8a: no assessment of the run had this name.
pub(super) fn is_new(state: &RunState, id: &AssessmentId) -> Result<(), Rejection> {
    let mut all = state.verifications.iter().chain(&state.acceptances);
    let known = all.any(|assessment| assessment.assessment_id == *id);
    check(Guard::AssessmentNew, !known, || {
        members(object! { "assessmentId": id })
    })
}

/// The record of an assessment, and the outcome that holds it.
pub(super) fn record(
    state: &RunState,
    facts: &Facts,
    said: &Said<'_>,
) -> Result<(Assessment, Outcome), Rejection> {
    is_new(state, said.assessment_id)?;
    let same_kind = match said.verdict {
        AssessmentVerdict::Pass | AssessmentVerdict::Fail => &state.verifications,
        AssessmentVerdict::Accepted | AssessmentVerdict::Rejected => &state.acceptances,
    };
    let assessment = Assessment {
        assessment_id: said.assessment_id.clone(),
        run_id: run_of(state)?,
        kind: said.verdict.kind(),
        revision: U64(same_kind.last().map_or(0, |last| last.revision.get()) + 1),
        verdict: said.verdict,
        subject: said.subject.clone(),
        evidence: said.evidence.to_vec(),
        assessor: facts.actor_id.clone(),
        invalidated: None,
    };
    let identity = Identity {
        kind: IdentityKind::Assessment,
        key: said.assessment_id.as_id(),
        digest: digest_of(&assessment)?,
    };
    let outcome = Outcome {
        transitions: vec![Transition::AssessmentRecorded {
            assessment: assessment.clone(),
        }],
        identities: vec![identity],
        ..Outcome::default()
    };
    Ok((assessment, outcome))
}

/// The response to an assessment.
pub(super) fn result(assessment: &Assessment) -> aiws::json::Value {
    object! {
        "assessmentId": &assessment.assessment_id,
        "kind": assessment.kind,
        "revision": assessment.revision,
        "verdict": assessment.verdict,
    }
}

/// The run that a run's state is about.
pub(super) fn run_of(state: &RunState) -> Result<aiws::id::RunId, Rejection> {
    crate::guard::need(Guard::SubjectAgrees, state.subject.run_id.clone(), || {
        members(object! { "missionId": &state.subject.mission_id })
    })
}

//! accept: the one who asked takes the result, or refuses it (FV-ASM.2).
//!
//! Invariant: what is accepted was verified before (FV-APR.5); a rejection ends the run. Called by `decide::run`;
//! the pipeline has asked for the human.

use aiws::object;
use aiws::record::{AcceptanceVerdict, Cause, Lifecycle};

use super::complete_run::current;
use super::pipeline::members;
use super::terminal;
use super::verify::{Said, is_new, record, result};
use crate::command::{Accept, Body, Command};
use crate::decision::{Decision, Rejection};
use crate::facts::Facts;
use crate::guard::{Guard, check};
use crate::run::RunState;

/// Stage 8 of accept.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &Accept,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    is_new(state, &body.assessment_id)?;
    let rejected = body.verdict == AcceptanceVerdict::Rejected;
    let last = current(&state.verifications);
    // A refusal needs no proof that the result is right.
    check(Guard::AcceptVerified, rejected || last.is_some(), || {
        let said = state.verifications.last();
        members(object! { "verification": said.map(|said| said.assessment_id.as_str()) })
    })?;
    let same = last.is_none_or(|last| last.subject == body.subject);
    check(Guard::AcceptSubject, rejected || same, || {
        let verified = last.map(|last| last.subject.as_str());
        members(object! { "subject": &body.subject, "verified": verified })
    })?;
    let said = Said {
        assessment_id: &body.assessment_id,
        verdict: body.verdict.into(),
        subject: &body.subject,
        evidence: &body.evidence,
    };
    let (assessment, mut outcome) = record(state, facts, &said)?;
    // Under a pending cancellation the run ends as canceled; the rejection is recorded all the same.
    if rejected && state.lifecycle == Lifecycle::Running {
        let detail = format!("acceptance {} rejected the result", body.assessment_id);
        terminal::end(
            state,
            facts,
            Lifecycle::Rejected,
            Some(Cause {
                code: "ACCEPTANCE_REJECTED".to_owned(),
                detail,
            }),
            &mut outcome,
        )?;
    }
    Ok(Decision {
        command: Body::Accept(body.clone()),
        outcome,
        result: result(&assessment),
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

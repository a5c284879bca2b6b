//! approve: a human's decision about exact action material (FV-APR.1).
//!
//! Invariant: an approval is bound to a fingerprint and a run, expires, and implies neither verification nor
//! acceptance (FV-APR.5); a denial ends the run. Called by `decide::run`; the pipeline has asked for the human.

use aiws::canonical::digest_of;
use aiws::decimal::U64;
use aiws::object;
use aiws::record::{Approval, ApprovalDecision, Cause, Lifecycle};

use super::pipeline::members;
use super::terminal;
use crate::command::{Approve, Body, Command};
use crate::decision::{Decision, Rejection};
use crate::event::{Identity, IdentityKind, Outcome};
use crate::facts::Facts;
use crate::guard::{Guard, check};
use crate::run::RunState;
use crate::transition::Transition;

/// Stages 8 and 9 of approve.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &Approve,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    check(
        Guard::ApprovalNew,
        !state.approvals.contains_key(&body.approval_id),
        || members(object! { "approvalId": &body.approval_id }),
    )?;
    let approved = body.decision == ApprovalDecision::Approved;
    // A denial has nothing that could expire, and a late no is still a no.
    check(
        Guard::ApprovalAhead,
        !approved || !body.expires_at_ms.reached(facts.now_ms),
        || members(object! { "expiresAtMs": body.expires_at_ms, "nowMs": U64(facts.now_ms) }),
    )?;
    let identity = Identity {
        kind: IdentityKind::Approval,
        key: body.approval_id.as_id(),
        digest: digest_of(body)?,
    };
    let mut outcome = Outcome {
        transitions: vec![Transition::ApprovalRecorded {
            approval: approval(body, facts),
        }],
        identities: vec![identity],
        ..Outcome::default()
    };
    // Under a pending cancellation the run ends as canceled; the denial is recorded all the same.
    if !approved && state.lifecycle == Lifecycle::Running {
        let detail = format!("approval {} was denied", body.approval_id);
        terminal::end(
            state,
            facts,
            Lifecycle::Rejected,
            Some(Cause {
                code: "APPROVAL_DENIED".to_owned(),
                detail,
            }),
            &mut outcome,
        )?;
    }
    Ok(Decision {
        command: Body::Approve(body.clone()),
        outcome,
        result: object! { "approvalId": &body.approval_id, "decision": body.decision },
        same: Vec::new(),
        before_ms: if approved {
            body.expires_at_ms.to_u64().into_iter().collect()
        } else {
            Vec::new()
        },
    })
}

/// The record; who decided and under which policy comes from the host alone (FV-GRT.6).
fn approval(body: &Approve, facts: &Facts) -> Approval {
    Approval {
        approval_id: body.approval_id.clone(),
        run_id: body.run_id.clone(),
        fingerprint: body.fingerprint,
        approver: facts.actor_id.clone(),
        decision: body.decision,
        granted_at_ms: U64(facts.now_ms),
        expires_at_ms: body.expires_at_ms,
        policy: facts.policy.clone(),
        revoked: false,
        operation_id: None,
    }
}

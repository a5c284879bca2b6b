//! revokeApproval: an approval stops being current, for whatever was not dispatched yet (FV-APR.3).
//!
//! Invariant: the record stays; what was dispatched under it stays dispatched. Called by `decide::run`.

use aiws::object;

use super::pipeline::members;
use crate::command::{Body, Command, RevokeApproval};
use crate::decision::{Decision, Rejection};
use crate::event::Outcome;
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::run::RunState;
use crate::transition::Transition;

/// Stage 8 of revokeApproval.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &RevokeApproval,
    _facts: &Facts,
) -> Result<Decision, Rejection> {
    let named = || members(object! { "approvalId": &body.approval_id });
    let approval = need(
        Guard::ApprovalKnown,
        state.approvals.get(&body.approval_id),
        named,
    )?;
    check(Guard::ApprovalStanding, !approval.revoked, named)?;
    let revoked = Transition::ApprovalRevoked {
        approval_id: body.approval_id.clone(),
    };
    Ok(Decision {
        command: Body::RevokeApproval(body.clone()),
        outcome: Outcome {
            transitions: vec![revoked],
            ..Outcome::default()
        },
        result: object! { "approvalId": &body.approval_id, "revoked": true },
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

//! finishCancelRun: a cancellation ends once nothing is in flight (HS-06.6).
//!
//! Invariant: no uncertain effect is left behind; prepared attempts are returned, open holds are closed as CANCELED.
//! Called by `decide::run`; the pipeline has asked for the human.

use aiws::object;
use aiws::record::{AttemptStatus, Cause, HoldDecision, HoldState, Lifecycle};

use super::pipeline::members;
use super::resolve_hold::{Closing, close};
use super::terminal;
use crate::command::{Body, Command, FinishCancelRun};
use crate::decision::{Decision, Rejection};
use crate::event::Outcome;
use crate::facts::Facts;
use crate::guard::{Guard, check};
use crate::run::RunState;

/// Stage 8 of finishCancelRun.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &FinishCancelRun,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    check(
        Guard::FinishCanceling,
        state.lifecycle == Lifecycle::Canceling,
        || members(object! { "lifecycle": state.lifecycle }),
    )?;
    let in_flight = |status| matches!(status, AttemptStatus::Dispatched | AttemptStatus::Unknown);
    let open: Vec<_> = state
        .attempts
        .values()
        .filter(|attempt| in_flight(attempt.status))
        .map(|attempt| attempt.attempt_id.as_str())
        .collect();
    check(Guard::FinishResolved, open.is_empty(), || {
        members(object! { "attempts": open.clone() })
    })?;
    let mut outcome = Outcome::default();
    for hold in state
        .holds
        .values()
        .filter(|hold| hold.state == HoldState::Open)
    {
        let closing = Closing {
            decision: HoldDecision::Cancel,
            decision_ref: &body.decision_ref,
            evidence: &[],
            rule: None,
        };
        close(state, hold, &closing, facts, &mut outcome);
    }
    let cause = Cause {
        code: "CANCELED".to_owned(),
        detail: body.reason.clone(),
    };
    terminal::end(state, facts, Lifecycle::Canceled, Some(cause), &mut outcome)?;
    Ok(Decision {
        command: Body::FinishCancelRun(body.clone()),
        outcome,
        result: object! { "runId": &body.run_id, "lifecycle": Lifecycle::Canceled },
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

//! The end of a run: what every terminal event writes beside the moved lifecycle.
//!
//! Invariant: a run that ends says so in its own register and leaves the start-up list. What was never tried gives
//! its reservation back; what was tried keeps it until its outcome is known.
//! Called by every command that can end a run.

use aiws::decimal::Dec;
use aiws::object;
use aiws::record::{AttemptStatus, Cause, Lifecycle, SettledOutcome};

use super::settle::{Said, confirm};
use crate::decision::Rejection;
use crate::event::{DueChange, DueKind, Outcome};
use crate::facts::Facts;
use crate::register::{RegisterKey, RegisterKind, RegisterWrite};
use crate::run::RunState;
use crate::transition::Transition;

/// Adds the end of the run to an outcome: prepared attempts, lifecycle, outcome register, start-up list.
pub(super) fn end(
    state: &RunState,
    facts: &Facts,
    to: Lifecycle,
    cause: Option<Cause>,
    outcome: &mut Outcome,
) -> Result<(), Rejection> {
    return_prepared(state, facts, outcome)?;
    outcome.transitions.push(Transition::LifecycleMoved {
        from: state.lifecycle,
        to,
        cause: cause.clone(),
    });
    outcome.due.push(DueChange {
        stream: state.stream.clone(),
        kind: DueKind::Live,
        at_ms: None,
    });
    // A run's state always has a run id; a mission's subject has no run to end.
    let Some(run_id) = &state.subject.run_id else {
        return Ok(());
    };
    let value = object! {
        "runId": run_id,
        "lifecycle": to,
        "cause": cause.map(|cause| object! { "code": cause.code, "detail": cause.detail }),
        "revision": (state.head.revision.get() + 1).to_string(),
    };
    let register = RegisterKey {
        mission_id: state.subject.mission_id.clone(),
        kind: RegisterKind::RunOutcome,
        key: run_id.as_id(),
    };
    outcome.registers.push(RegisterWrite { register, value });
    Ok(())
}

/// Nobody will dispatch what is only prepared: it had no effect, and its reservation ends (FV-ACC.4).
fn return_prepared(
    state: &RunState,
    facts: &Facts,
    outcome: &mut Outcome,
) -> Result<(), Rejection> {
    for attempt in state
        .attempts
        .values()
        .filter(|attempt| attempt.status == AttemptStatus::Prepared)
    {
        let said = Said {
            outcome: SettledOutcome::ConfirmedNotApplied,
            actual: Dec::ZERO,
            evidence: &[],
            rule: false,
        };
        let returned = confirm(state, facts, attempt, &said)?;
        outcome.transitions.extend(returned.transitions);
        outcome.accounts.extend(returned.accounts);
    }
    Ok(())
}

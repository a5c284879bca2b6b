//! cancelRun: a human asks that the run ends; nothing new starts from here on.
//!
//! Invariant: cancellation is never taken back, and it closes the run's gate at the durable boundary in the same
//! event. Called by `decide::run`; the pipeline has asked for the human. `begin` also by resolveHold.

use aiws::object;
use aiws::record::Lifecycle;

use super::pipeline::members;
use crate::command::{Body, CancelRun, Command};
use crate::decision::{Decision, Rejection};
use crate::event::{Gate, GateChange, Outcome};
use crate::facts::Facts;
use crate::guard::{Guard, check};
use crate::run::RunState;
use crate::transition::Transition;

/// Stage 8 of cancelRun.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &CancelRun,
    _facts: &Facts,
) -> Result<Decision, Rejection> {
    check(
        Guard::CancelOnce,
        state.lifecycle != Lifecycle::Canceling,
        || members(object! { "runId": &body.run_id }),
    )?;
    let mut outcome = Outcome::default();
    begin(state, &mut outcome);
    Ok(Decision {
        command: Body::CancelRun(body.clone()),
        outcome,
        result: object! { "runId": &body.run_id, "lifecycle": Lifecycle::Canceling },
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

/// Adds the beginning of a cancellation to an outcome: lifecycle and gate.
pub(super) fn begin(state: &RunState, outcome: &mut Outcome) {
    outcome.transitions.push(Transition::LifecycleMoved {
        from: state.lifecycle,
        to: Lifecycle::Canceling,
        cause: None,
    });
    outcome.gates.push(GateChange {
        scope: state.subject.clone(),
        gate: Gate::Cancel,
        closed: true,
    });
}

//! The end of a run: what every terminal event writes beside the moved lifecycle.
//!
//! Invariant: a run that ends says so in its own register and leaves the start-up list; nothing is refunded.
//! Called by every command that can end a run.

use aiws::object;
use aiws::record::{Cause, Lifecycle};

use crate::event::{DueChange, DueKind, Outcome};
use crate::register::{RegisterKey, RegisterKind, RegisterWrite};
use crate::run::RunState;
use crate::transition::Transition;

/// Adds the end of the run to an outcome: lifecycle, outcome register, start-up list.
pub(super) fn end(state: &RunState, to: Lifecycle, cause: Option<Cause>, outcome: &mut Outcome) {
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
        return;
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
}

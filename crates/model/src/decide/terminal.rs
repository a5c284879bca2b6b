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

/// Whether a run in this lifecycle has ended (FV-RUN.4).
pub(crate) fn is_terminal(lifecycle: Lifecycle) -> bool {
    matches!(
        lifecycle,
        Lifecycle::Completed | Lifecycle::Failed | Lifecycle::Canceled | Lifecycle::Rejected
    )
}

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
    let name = |value: Result<aiws::json::Value, _>| value.unwrap_or_default();
    let value = object! {
        "runId": run_id,
        "lifecycle": name(aiws::canonical::to_value(&to)),
        "cause": name(aiws::canonical::to_value(&cause)),
        "revision": (state.head.revision.get() + 1).to_string(),
    };
    let register = RegisterKey {
        mission_id: state.subject.mission_id.clone(),
        kind: RegisterKind::RunOutcome,
        key: run_id.as_id(),
    };
    outcome.registers.push(RegisterWrite { register, value });
}

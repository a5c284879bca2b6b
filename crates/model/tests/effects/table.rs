//! The table of refusals, and what a row must show.
//!
//! Invariant: a row is refused by its own guard and by no other, and is not refused so once that guard is off.
//! Filled by the `cases_*` files, read by the tests.

use praxis_model::decision::{Decision, Rejection};
use praxis_model::guard::Guard;

/// A command that the guard refuses.
#[derive(Clone, Copy)]
pub struct Case(pub Guard, pub fn() -> Result<Decision, Rejection>);

impl Case {
    /// Whether the row is refused by its guard.
    pub fn is_refused(&self) -> Result<(), String> {
        let Case(guard, run) = self;
        match run() {
            Ok(decision) => Err(format!(
                "{guard:?} let {} pass",
                decision.command.kind().name()
            )),
            Err(error) => {
                let requirement = error.details.get("requirement").and_then(|id| id.as_str());
                let own = error.code() == guard.code()
                    && error.stage == guard.stage()
                    && requirement == Some(guard.id())
                    && error.message == guard.sentence();
                if own {
                    Ok(())
                } else {
                    Err(format!(
                        "{guard:?} expected, found {error} {:?}",
                        error.details
                    ))
                }
            }
        }
    }
}

//! What to type next, in full.
//! Invariant: every command names the store where it has to, and can be pasted; what is for a person to fill in is in capitals.
//! Called by the pages, the inbox and the list of holds.

use aiws::record::{HoldDecision, HoldReason};

use super::page::short;
use super::program;

/// A verb on a run.
#[must_use]
pub fn on_run(verb: &str, run: &str) -> String {
    format!("{} {verb} {run}", program())
}

/// A yes: to the plan, or to the result.
#[must_use]
pub fn approve(run: &str) -> String {
    on_run("approve", run)
}

/// A no: to the plan, or to the result.
#[must_use]
pub fn deny(run: &str) -> String {
    format!("{} deny {run} --reason TEXT", program())
}

/// What a person may type about an open hold, by what it allows.
#[must_use]
pub fn on_hold(run: &str, id: &str, reason: HoldReason, allowed: &[HoldDecision]) -> Vec<String> {
    // No recheck gives more of what is used up; another run may have it.
    let more = match reason {
        HoldReason::AttemptLimit => Some("--max-corrections N"),
        HoldReason::CostLimit => Some("--budget N"),
        HoldReason::TimeLimit => Some(""),
        _ => None,
    };
    let again = more.map(|more| format!("{} code --from {run} {more}", program()));
    let useless = again.is_some();
    let again = again.map(|command| command.trim_end().to_owned());
    let command = |decision: &HoldDecision| match (decision, reason) {
        (HoldDecision::Recheck, HoldReason::Operator) => on_run("continue", run),
        (HoldDecision::Recheck, _) => format!("{} recheck {}", program(), short(id)),
        (HoldDecision::Cancel, _) => on_run("cancel", run),
    };
    let allowed = allowed
        .iter()
        .filter(|decision| !(useless && **decision == HoldDecision::Recheck));
    again.into_iter().chain(allowed.map(command)).collect()
}

//! What people want to be told of a run, from its events: something waits for them, nobody knows an outcome, an end.
//! Invariant: a pure function of an event and the states around it; the same event always makes the same notice.
//! Called by the outbox of the office, and by the verb `outbox` where no engine has the store.

use aiws::id::AttemptId;
use aiws::json::Value;
use aiws::object;
use aiws::record::{Hold, HoldReason, HoldScopeKind, HoldState, Lifecycle};
use praxis_model::run::RunState;

use crate::coding::contract::Job;
use crate::render::page::{Standing, short};
use crate::render::rows::is_uncertain;
use crate::render::{commands, json};

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A plan waits for its approval.
    ApprovalNeeded,
    /// A result waits for its acceptance.
    AcceptanceNeeded,
    /// A hold was placed.
    Hold,
    /// Nobody knows what an attempt did.
    Unknown,
    /// The run ended.
    Ended,
}

impl Kind {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ApprovalNeeded => "APPROVAL_NEEDED",
            Self::AcceptanceNeeded => "ACCEPTANCE_NEEDED",
            Self::Hold => "HOLD",
            Self::Unknown => "UNKNOWN",
            Self::Ended => "ENDED",
        }
    }
}

/// A notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The sequence of its event: its id, and what is acknowledged.
    pub sequence: u64,
    /// What it is about.
    pub kind: Kind,
    /// The run.
    pub run: String,
    /// When the event was recorded, UTC milliseconds.
    pub at_ms: u64,
    /// One line for people.
    pub text: String,
    /// What to type next, the most likely first.
    pub next: Vec<String>,
    /// The attempt that nobody knows about, if it is that.
    pub attempt: Option<AttemptId>,
}

impl Notice {
    /// The notice as one JSON object.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json::object(
            "notice",
            object! {
                "sequence": self.sequence.to_string(),
                "notice": self.kind.name(),
                "run": self.run.as_str(),
                "atMs": self.at_ms.to_string(),
                "text": self.text.as_str(),
                "next": self.next.clone(),
                "attempt": self.attempt.as_ref().map(|id| id.as_str().to_owned()),
            },
        )
    }
}

/// An event of a run, with the states around it.
pub struct Moved<'a> {
    /// Its sequence.
    pub sequence: u64,
    /// When it was recorded, UTC milliseconds.
    pub at_ms: u64,
    /// The run's state before it.
    pub before: &'a RunState,
    /// The run's state after it.
    pub after: &'a RunState,
    /// The run's job.
    pub job: &'a Job,
}

/// What people want to be told of an event; most events are nothing to them.
#[must_use]
pub fn of(moved: &Moved<'_>) -> Option<Notice> {
    let run = moved.job.run_id.as_str();
    let notice = |kind: Kind, text: String, next: Vec<String>, attempt: Option<AttemptId>| Notice {
        sequence: moved.sequence,
        kind,
        run: run.to_owned(),
        at_ms: moved.at_ms,
        text,
        next,
        attempt,
    };
    let (was, is) = (stands(moved, moved.before), stands(moved, moved.after));
    if is.has_ended() {
        let how = match moved.after.lifecycle {
            Lifecycle::Completed => "its result is accepted".to_owned(),
            other => format!("it is {}", other.name().to_lowercase()),
        };
        let next = vec![commands::on_run("report", run)];
        let text = format!("run {run} has ended: {how}");
        return (!was.has_ended()).then(|| notice(Kind::Ended, text, next, None));
    }
    if let Some(attempt) = newly_uncertain(moved) {
        let text = format!(
            "nobody knows what attempt {} of run {run} did",
            short(attempt.as_str())
        );
        let next = vec![commands::on_run("unknown", run)];
        return Some(notice(Kind::Unknown, text, next, Some(attempt)));
    }
    if let Some(hold) = newly_held(moved) {
        let id = hold.hold_id.as_str();
        let text = match (hold.scope.kind, hold.reason) {
            (HoldScopeKind::Branch, reason) => {
                format!("a branch of run {run} is held: {}", reason.name())
            }
            (_, HoldReason::Operator) => format!("run {run} is paused"),
            (_, reason) => format!("run {run} is held: {}", reason.name()),
        };
        let next = commands::on_hold(run, id, hold.reason, &hold.allowed_decisions);
        return Some(notice(Kind::Hold, text, next, None));
    }
    let yes_or_no = || vec![commands::approve(run), commands::deny(run)];
    if is == Standing::NeedsApproval && was != is {
        let text = format!("the plan of run {run} waits for approval");
        return Some(notice(Kind::ApprovalNeeded, text, yes_or_no(), None));
    }
    if is == Standing::NeedsAcceptance && was != is {
        let mut next = vec![commands::on_run("diff", run)];
        next.extend(yes_or_no());
        let text = format!("the result of run {run} waits for acceptance");
        return Some(notice(Kind::AcceptanceNeeded, text, next, None));
    }
    None
}

fn stands(moved: &Moved<'_>, state: &RunState) -> Standing {
    Standing::of(state, moved.job, moved.at_ms)
}

/// The attempt that nobody knows about since this event.
fn newly_uncertain(moved: &Moved<'_>) -> Option<AttemptId> {
    let known = |id: &AttemptId| {
        let before = moved.before.attempts.get(id);
        !before.is_some_and(|attempt| is_uncertain(moved.before, attempt))
    };
    let mut attempts = moved.after.attempts.values();
    let found = attempts
        .find(|attempt| is_uncertain(moved.after, attempt) && known(&attempt.attempt_id))?;
    Some(found.attempt_id.clone())
}

/// The hold that stands since this event. One of an uncertain effect goes with its attempt, which is told by itself.
fn newly_held<'a>(moved: &Moved<'a>) -> Option<&'a Hold> {
    let after: &'a RunState = moved.after;
    after.holds.values().find(|hold| {
        hold.state == HoldState::Open
            && hold.reason != HoldReason::UncertainEffect
            && !moved.before.holds.contains_key(&hold.hold_id)
    })
}

//! Deciding again: a recorded event is decided once more from its own command and facts.
//!
//! Invariant: nothing is asked of anybody but the state before the event, the event, and the gates that the log had
//! closed there; an event that was decided by these rules reaches its recorded outcome. Called by deep verification.
//!
//! [`ROWS`] says for every command which facts it looks at, and [`Fact::source`] where each of them is known from
//! when the event is read again. A fact that no event and no log tells would make its commands undecidable: none does.

use aiws::canonical::to_value;
use aiws::decimal::Dec;
use aiws::json::Value;
use serde::Serialize;

use crate::command::{Command, CommandType};
use crate::decide;
use crate::decision::{Decision, Rejection};
use crate::event::{Event, Gate};
use crate::facts::Facts;
use crate::mission::MissionState;
use crate::run::RunState;

mod differ;
mod rows;

pub use differ::Difference;
pub use rows::{Fact, ROWS, Row, Source, row};

/// The state that an event was decided on.
#[derive(Clone, Copy, Debug)]
pub enum Before<'a> {
    /// A mission's; none before its first event.
    Mission(Option<&'a MissionState>),
    /// A run's.
    Run(&'a RunState),
}

/// What became of an event that was decided again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The command, the outcome and the result are the recorded ones.
    Reached(Box<Decision>),
    /// Something else follows from the command and the facts.
    Differs(Difference),
    /// The command is refused: this event should not exist.
    Refused(Rejection),
}

/// Decides an event again. `outer_gates` are the gates of its mission that the log had closed before it.
pub fn again(before: Before<'_>, event: &Event, outer_gates: &[Gate]) -> Verdict {
    let (command, facts) = (command(event), facts(event, outer_gates));
    let decided = match before {
        Before::Mission(state) => decide::mission(state, &command, &facts),
        Before::Run(state) => decide::run(state, &command, &facts),
    };
    match decided {
        Err(refused) => Verdict::Refused(refused),
        Ok(decision) => match difference(&decision, event) {
            Some(difference) => Verdict::Differs(difference),
            None => Verdict::Reached(Box::new(decision)),
        },
    }
}

/// The command that the event records. What a caller expects of revision and epoch is not recorded; it was accepted,
/// so it was what the stream had (HC-ENV.2, HC-ENV.3).
pub fn command(event: &Event) -> Command {
    let before = event.revision.get().saturating_sub(1);
    Command {
        mission_id: event.subject.mission_id.clone(),
        run_id: event.subject.run_id.clone(),
        request_id: event.request_id.clone(),
        request_digest: event.request_digest,
        expected_revision: Some(Dec::from_u64(before)),
        owner_epoch: event.owner_epoch.map(Dec::from),
        body: event.command.clone(),
    }
}

/// The facts that the event was decided on.
pub fn facts(event: &Event, outer_gates: &[Gate]) -> Facts {
    let kept = &event.facts;
    Facts {
        // A command that policy does not allow leaves no event.
        allowed: true,
        actor_id: event.actor_id.clone(),
        actor_kind: event.actor_kind,
        policy: event.policy.clone(),
        decision_class: event.decision_class.clone(),
        decision_ref: event.decision_ref.clone(),
        authorized_at_ms: kept.authorized_at_ms.get(),
        now_ms: event.at_ms.get(),
        materials: kept.materials.clone(),
        material_errors: kept.material_errors.clone(),
        admissions: kept.admissions.clone(),
        registers: kept.registers.clone(),
        account: kept.account.clone(),
        outer_gates: outer_gates.to_vec(),
        clear_evidence: kept.clear_evidence.clone(),
        restart_allowed: kept.restart_allowed,
        claim_fingerprint: kept.claim_fingerprint,
        recovery_authority: kept.recovery_authority,
        // What was accepted was not refused for it.
        clock_stepped: false,
    }
}

/// The first member in which a decision and the event differ, in the order of the event's canonical form.
fn difference(decision: &Decision, event: &Event) -> Option<Difference> {
    of_member("/command", &decision.command, &event.command)
        .or_else(|| of_member("/outcome", &decision.outcome, &event.outcome))
        .or_else(|| of_member("/result", &decision.result, &event.result))
}

fn of_member<T: PartialEq + Serialize>(
    member: &str,
    decided: &T,
    recorded: &T,
) -> Option<Difference> {
    if decided == recorded {
        return None;
    }
    // What has no canonical form cannot have been recorded: the whole member differs.
    let value = |side: &T| to_value(side).unwrap_or(Value::Null);
    let (decided, recorded) = (value(decided), value(recorded));
    let first = differ::first(member, &decided, &recorded);
    Some(first.unwrap_or_else(|| differ::whole(member, &decided, &recorded)))
}

/// Whether a command's event can be decided again only where the log before it is whole: it looks at something that
/// the log tells and the event does not.
pub fn needs_log(kind: CommandType) -> bool {
    let mut reads = row(kind).reads();
    reads.any(|fact| fact.source() == Source::Log)
}

//! Evolve: what an event makes of a state. The only way a state ever changes.
//!
//! Invariant: total and strict. Every event must follow its stream's head, every move must start where the state
//! is, and nothing is asked of a clock, a rule or an adapter (HS-07.2). Called by the actors after a decision,
//! before the append, and by every replay.

mod apply;
mod handoffs;
mod invalidations;
mod mission;
mod work;

use aiws::digest::Digest;
use aiws::error::Code;

use crate::event::{Event, Head};
use crate::hold;
use crate::run::RunState;
use crate::stream::Subject;

pub use mission::mission;

/// An event that cannot follow the state: the history or the code is wrong, never the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: expected {expected}, found {found}")]
pub struct IllegalEvent {
    /// What was looked at.
    pub what: String,
    /// What the state asks for.
    pub expected: String,
    /// What the event has.
    pub found: String,
    /// CHAIN_BROKEN where the link is wrong, STORE_CORRUPT where the content is.
    pub code: Code,
}

impl IllegalEvent {
    /// The stable code.
    pub fn code(&self) -> Code {
        self.code
    }

    pub(crate) fn content(
        what: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        Self {
            what: what.into(),
            expected: expected.to_string(),
            found: found.to_string(),
            code: Code::StoreCorrupt,
        }
    }

    pub(crate) fn link(what: &str, expected: impl ToString, found: impl ToString) -> Self {
        Self {
            code: Code::ChainBroken,
            ..Self::content(what, expected, found)
        }
    }
}

/// The run's state after an event; `hash` is the event's own.
///
/// # Errors
/// `IllegalEvent` where the event does not follow: another stream, a gap, a wrong previous hash, a boundary whose
/// basis is not the event before it (HF-01.9), or a move that does not start where the state is.
pub fn run(mut state: RunState, event: &Event, hash: &Digest) -> Result<RunState, IllegalEvent> {
    follows(&state.subject, &state.head, state.last_ms, event)?;
    let epoch = event.owner_epoch.map(|epoch| epoch.get());
    same("the owner epoch", Some(state.epoch), epoch)?;
    handoffs::bases(&state, event)?;
    same(
        "the node that the event launches work in",
        hold::told(&state, &event.command).as_ref(),
        event.outcome.launched_in(),
    )?;
    for transition in &event.outcome.transitions {
        apply::transition(&mut state, event, transition)?;
    }
    state.head = Head {
        revision: event.revision,
        hash: *hash,
    };
    state.last_ms = event.at_ms.get();
    Ok(state)
}

/// The event is the next one of this stream.
fn follows(
    subject: &Subject,
    head: &Head,
    last_ms: u64,
    event: &Event,
) -> Result<(), IllegalEvent> {
    if event.subject != *subject || event.stream != subject.stream() {
        return Err(IllegalEvent::link(
            "the stream",
            subject.stream(),
            &event.stream,
        ));
    }
    let next = head.revision.get().checked_add(1);
    if next != Some(event.revision.get()) {
        return Err(IllegalEvent::link(
            "the revision",
            format!("{} + 1", head.revision),
            event.revision,
        ));
    }
    if event.prev_hash != head.hash {
        return Err(IllegalEvent::link(
            "the previous hash",
            head.hash,
            event.prev_hash,
        ));
    }
    if event.at_ms.get() < last_ms {
        return Err(IllegalEvent::content(
            "the time",
            format!("at least {last_ms}"),
            event.at_ms,
        ));
    }
    same("the type", event.command.kind(), event.kind)
}

/// Both values are equal.
fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    expected: T,
    found: T,
) -> Result<(), IllegalEvent> {
    if expected == found {
        return Ok(());
    }
    Err(IllegalEvent::content(
        what,
        format!("{expected:?}"),
        format!("{found:?}"),
    ))
}

/// The thing that a transition names.
fn known<T>(what: &str, id: impl std::fmt::Display, value: Option<T>) -> Result<T, IllegalEvent> {
    value.ok_or_else(|| IllegalEvent::content(format!("{what} {id}"), "one that exists", "none"))
}

/// The id that a transition gives away is still free.
fn free(what: &str, id: impl std::fmt::Display, taken: bool) -> Result<(), IllegalEvent> {
    if taken {
        Err(IllegalEvent::content(
            format!("{what} {id}"),
            "a new one",
            "one that exists",
        ))
    } else {
        Ok(())
    }
}

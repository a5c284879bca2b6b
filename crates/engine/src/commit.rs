//! From a decision to the log and back: which conditions an append carries, and what became of it.
//!
//! Invariant: every condition that the command table and the decision ask for is on the append; nobody is told
//! anything before the writer answered. Called by the actors between hop 2 and hop 5.

use std::sync::Arc;

use aiws::error::{Code, Error, Stage};
use praxis_journal::{Append, AppendError, Appended, Conditions, Refusal, StoreError};
use praxis_journal_format::Sealed;
use tokio::sync::oneshot;

use crate::core::Core;
use crate::crash::Point;

/// What became of an append.
pub(crate) enum Outcome {
    /// It is durable.
    Committed,
    /// The request had been committed before, as this event.
    Replayed(Arc<Sealed>),
    /// Something that was read has moved: an intent may be decided again (T-04).
    Moved {
        /// The refusal.
        error: Error,
        /// What moved.
        what: Moved,
    },
    /// Refused at the durable boundary.
    Refused(Error),
    /// Nobody can say before the log was looked at (T-10).
    InDoubt(StoreError),
}

/// What moved under a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// The own stream: somebody else appended to it.
    Head,
    /// A register.
    Register,
    /// Time reached a lease, an approval or a deadline: deciding again names which (T-81).
    Time,
}

/// Appends one event and waits for the writer's word.
pub(crate) async fn append(core: &Core, sealed: &Arc<Sealed>, conditions: Conditions) -> Outcome {
    pass(core, sealed, Point::BeforeCommit);
    let (answer, answered) = oneshot::channel();
    let append = Append {
        sealed: vec![Sealed::clone(sealed)],
        conditions,
    };
    let submitted = core
        .journal
        .submit(append, Box::new(move |result| drop(answer.send(result))));
    if let Err(refused) = submitted {
        return Outcome::Refused(Error::new(refused.code(), refused.to_string()));
    }
    match answered.await {
        Ok(Ok(Appended::Committed { .. })) => {
            count();
            pass(core, sealed, Point::AfterCommit);
            Outcome::Committed
        }
        Ok(Ok(Appended::Replayed { sequence })) => match core.read(sequence) {
            Ok(event) => Outcome::Replayed(event),
            Err(error) => Outcome::Refused(error),
        },
        Ok(Err(AppendError::Refused(refusal))) => refused(&refusal),
        Ok(Err(AppendError::Store(error))) => Outcome::InDoubt(error),
        Err(_) => Outcome::Refused(writer_gone()),
    }
}

fn refused(refusal: &Refusal) -> Outcome {
    let error = error_of(refusal);
    match refusal {
        Refusal::Head { .. } => Outcome::Moved {
            error,
            what: Moved::Head,
        },
        Refusal::Same { .. } => Outcome::Moved {
            error,
            what: Moved::Register,
        },
        Refusal::Before { .. } | Refusal::Clock { .. } => Outcome::Moved {
            error,
            what: Moved::Time,
        },
        _ => Outcome::Refused(error),
    }
}

/// The refusal in the protocol's form, in the stage that its condition guards.
fn error_of(refusal: &Refusal) -> Error {
    let error = Error::new(refusal.code(), refusal.to_string());
    match refusal {
        Refusal::Identity { .. } => error.in_stage(Stage::Object),
        Refusal::Gate { gate, .. } => match gate {
            praxis_model::event::Gate::Hold { hold_id }
            | praxis_model::event::Gate::Branch { hold_id, .. } => {
                error.with("gate", "HOLD").with("holdId", hold_id)
            }
            praxis_model::event::Gate::Cancel => error.with("gate", "CANCEL"),
        },
        _ => error,
    }
}

fn writer_gone() -> Error {
    Error::new(
        Code::ActorLost,
        "expected the journal's writer to answer, found that it stopped; open the engine and send the request again",
    )
}

#[cfg(debug_assertions)]
fn count() {
    crate::crash::committed();
}

#[cfg(not(debug_assertions))]
fn count() {}

/// Passes a crash point; nothing in release builds.
#[cfg(debug_assertions)]
pub(crate) fn pass(core: &Core, sealed: &Sealed, point: Point) {
    let number = match point {
        Point::BeforeCommit => crate::crash::next_number(),
        Point::AfterCommit | Point::BeforeReply => crate::crash::next_number() - 1,
    };
    let run_id = sealed.event.subject.run_id.clone();
    let passing = crate::crash::Passing {
        point,
        number,
        run_id,
        kind: sealed.event.kind,
    };
    crate::crash::pass(core.probe.as_ref(), &passing);
}

/// Passes a crash point; nothing in release builds.
#[cfg(not(debug_assertions))]
pub(crate) fn pass(_: &Core, _: &Sealed, _: Point) {}

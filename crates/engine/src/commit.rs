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
    /// The request had been committed before, as these events.
    Replayed(Vec<Arc<Sealed>>),
    /// Something that was read has moved: an intent may be decided again (T-04).
    Moved {
        /// The refusal.
        error: Error,
        /// What moved.
        what: Moved,
    },
    /// Refused at the durable boundary.
    Refused {
        /// The refusal.
        error: Error,
        /// The part that the writer refused, from 1; none where it refused all of them.
        part: Option<usize>,
    },
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

/// Appends the parts of one request together and waits for the writer's word.
pub(crate) async fn append(core: &Core, sealed: &[Arc<Sealed>], conditions: Conditions) -> Outcome {
    pass(core, sealed, Point::BeforeCommit);
    let (answer, answered) = oneshot::channel();
    let append = Append {
        sealed: sealed.iter().map(|part| Sealed::clone(part)).collect(),
        conditions,
    };
    let submitted = core
        .journal
        .submit(append, Box::new(move |result| drop(answer.send(result))));
    if let Err(refused) = submitted {
        return whole(Error::new(refused.code(), refused.to_string()));
    }
    match answered.await {
        Ok(Ok(Appended::Committed { .. })) => {
            count();
            pass(core, sealed, Point::AfterCommit);
            Outcome::Committed
        }
        Ok(Ok(Appended::Replayed { sequence })) => match core.parts(sequence) {
            Ok(events) => Outcome::Replayed(events),
            Err(error) => whole(error),
        },
        Ok(Err(AppendError::Refused { refusal, part })) => refused(&refusal, part),
        Ok(Err(AppendError::Store(error))) => Outcome::InDoubt(error),
        Err(_) => whole(writer_gone()),
    }
}

fn whole(error: Error) -> Outcome {
    Outcome::Refused { error, part: None }
}

fn refused(refusal: &Refusal, part: Option<usize>) -> Outcome {
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
        _ => Outcome::Refused { error, part },
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
pub(crate) fn pass(core: &Core, sealed: &[Arc<Sealed>], point: Point) {
    let Some(last) = sealed.last() else { return };
    let number = match point {
        Point::BeforeCommit => crate::crash::next_number(),
        Point::AfterCommit | Point::BeforeReply => crate::crash::next_number() - 1,
    };
    let run_id = last.event.subject.run_id.clone();
    let passing = crate::crash::Passing {
        point,
        number,
        run_id,
        kind: last.event.kind,
        kinds: sealed.iter().map(|part| part.event.kind).collect(),
    };
    crate::crash::pass(core.probe.as_ref(), &passing);
}

/// Passes a crash point; nothing in release builds.
#[cfg(not(debug_assertions))]
pub(crate) fn pass(_: &Core, _: &[Arc<Sealed>], _: Point) {}

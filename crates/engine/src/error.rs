//! Why an engine could not be opened or shut down.
//!
//! Invariant: every failure has one code of the protocol's table. Commands are refused with the protocol's
//! own error; this one is for the engine as a whole. Returned by `Engine::open` and `Engine::shutdown`.

use aiws::error::{Code, Error};

/// Why the engine as a whole could not do something.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store refused.
    #[error("{0}")]
    Store(#[from] praxis_journal::StoreError),
    /// A command that the engine needed was refused, such as the recovery of a run.
    #[error("{0}")]
    Refused(#[from] Error),
    /// The operating system gave no entropy.
    #[error(
        "expected 32 bytes of entropy for the process key, found none; check that /dev/urandom can be read"
    )]
    Entropy,
    /// An actor could not be started or did not answer.
    #[error(
        "expected the engine's supervisor to answer, found it gone: {0}; open the engine again"
    )]
    Actor(String),
}

impl EngineError {
    /// The code that callers branch on.
    pub fn code(&self) -> Code {
        match self {
            Self::Store(error) => error.code(),
            Self::Refused(error) => error.code(),
            Self::Entropy => Code::StoreIo,
            Self::Actor(_) => Code::ActorLost,
        }
    }
}

/// The refusal of a request whose actor is gone.
pub(crate) fn actor_lost() -> Error {
    Error::new(
        Code::ActorLost,
        "expected an answer from the run's owner, found that it stopped; send the same request again",
    )
}

/// The refusal of a request that found the mailbox full (T-55).
pub(crate) fn busy() -> Error {
    Error::new(
        Code::Busy,
        format!(
            "expected room in the mailbox, found {} requests waiting; send the same request again later",
            crate::limits::MAILBOX_PERMITS
        ),
    )
}

/// The refusal of a request that came after shutdown began.
pub(crate) fn closing() -> Error {
    Error::new(
        Code::ActorLost,
        "expected an open engine, found that it is shutting down; open it again",
    )
}

/// Whether the store had no room or failed for a moment: nothing is wrong with what was asked, and it was not stored.
pub(crate) fn may_be_sent_again(error: &Error) -> bool {
    matches!(error.code(), Code::Busy | Code::StoreIo | Code::StoreFull)
}

/// A store failure in the protocol's own form.
pub(crate) fn of_store(error: &praxis_journal::StoreError) -> Error {
    Error::new(error.code(), error.to_string())
}

/// An artifact failure in the protocol's own form.
pub(crate) fn of_artifact(error: &praxis_artifacts::ArtifactError) -> Error {
    Error::new(error.code(), error.to_string())
}

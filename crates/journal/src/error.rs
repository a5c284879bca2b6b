//! What can go wrong with a store, in one small enum.
//!
//! Invariant: each error says what was expected, what was found and what to do; an append that failed with one was
//! looked for in the log before it was answered. Made by every module, answered by the journal.

use std::io;

use aiws::digest::Digest;
use aiws::error::Code;
use praxis_journal_format::FormatError;
use praxis_journal_format::chain::ChainError;

/// Why a store cannot be opened, read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is nothing at the path.
    #[error("expected a store at {path}, found nothing; name an existing store, or create one")]
    NotFound {
        /// The path.
        path: String,
    },
    /// There is something else at the path.
    #[error(
        "{path} is not a store: {what}; name a store's directory, or an empty one to create a store in"
    )]
    NotAStore {
        /// The path.
        path: String,
        /// What was found instead.
        what: String,
    },
    /// A newer build wrote it.
    #[error(
        "expected format version {known} or older, found {found}; use the newer build, this one changed nothing"
    )]
    TooNew {
        /// The version found.
        found: u64,
        /// The version that this build knows.
        known: u64,
    },
    /// Another process, or another handle, has it open.
    #[error("the store is in use by {holder}; stop that one")]
    Locked {
        /// Who holds it, as it said itself.
        holder: String,
    },
    /// It can be read, not written.
    #[error("the store is read-only: {why}")]
    ReadOnly {
        /// Why.
        why: String,
    },
    /// The disk is full.
    #[error("no space left: {what}; nothing was stored, free space and try again")]
    Full {
        /// What could not be written.
        what: String,
    },
    /// Stored bytes are not what was written.
    #[error("damaged at {place}: {what}; keep the store as it is and restore from a backup")]
    Corrupt {
        /// Where: file, sequence, stream, revision, as far as known.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// The end of the log is missing although it was durable.
    #[error(
        "the index has seen sequence {expected} ({expected_hash}), the log has {found}; restore the missing segment or a backup that has it"
    )]
    TailLost {
        /// The sequence that the index has seen.
        expected: u64,
        /// The hash of that event.
        expected_hash: Digest,
        /// What the log has there.
        found: String,
    },
    /// An event does not link to the event before it.
    #[error("{0}; do not trust what follows, restore from a backup")]
    ChainBroken(Box<ChainError>),
    /// The directory or a file in it is open to others.
    #[error("{path}: {what}; mend it with: {mend}")]
    Permissions {
        /// The path.
        path: String,
        /// What is wrong.
        what: String,
        /// The command to type.
        mend: String,
    },
    /// The disk answered with an error, to a read or to a write; nothing of an append that got this is in the log.
    #[error("{what}; nothing was stored")]
    Io {
        /// What failed, and how.
        what: String,
    },
    /// The disk failed in the middle of a commit and cannot be asked: the append may be durable or not.
    #[error(
        "it cannot be told whether the event {hash} is durable: {what}; open the store again and look for it"
    )]
    InDoubt {
        /// The first event of the append.
        hash: Digest,
        /// What failed, and how.
        what: String,
    },
    /// The journal was closed.
    #[error("the journal is closed; open the store again")]
    Closed,
    /// A checkpoint that proofs were asked for is not of this log as it stands.
    #[error("the checkpoint does not fit: {what}")]
    Checkpoint {
        /// What callers branch on.
        code: Code,
        /// What was expected and what was found.
        what: String,
    },
    /// A state that should be impossible.
    #[error("internal: {what}; run verify and report what it says")]
    Internal {
        /// What was found.
        what: String,
    },
}

impl StoreError {
    /// The code that callers branch on.
    pub fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } => Code::StoreNotFound,
            Self::NotAStore { .. } => Code::NotAStore,
            Self::TooNew { .. } => Code::StoreTooNew,
            Self::Locked { .. } => Code::StoreLocked,
            Self::ReadOnly { .. } => Code::StoreReadOnly,
            Self::Full { .. } => Code::StoreFull,
            Self::Corrupt { .. } => Code::StoreCorrupt,
            Self::TailLost { .. } => Code::TailLost,
            Self::ChainBroken(_) => Code::ChainBroken,
            Self::Permissions { .. } => Code::StorePermissions,
            Self::Io { .. } | Self::InDoubt { .. } | Self::Closed => Code::StoreIo,
            Self::Checkpoint { code, .. } => *code,
            Self::Internal { .. } => Code::InternalStore,
        }
    }

    /// Whether the append that got this may nevertheless be durable.
    pub fn in_doubt(&self) -> bool {
        matches!(self, Self::InDoubt { .. })
    }

    /// An I/O error while doing something with something, e.g. `"open log-000001.redb"`.
    pub(crate) fn io(doing: &str, cause: &io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full {
                what: format!("{doing}: {cause}"),
            },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Self::ReadOnly {
                why: format!("{doing}: {cause}"),
            },
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Self::Corrupt {
                place: doing.to_owned(),
                what: cause.to_string(),
            },
            _ => Self::Io {
                what: format!("{doing}: {cause}"),
            },
        }
    }

    /// An error of redb while doing something with a file.
    pub(crate) fn redb(doing: &str, cause: impl Into<redb::Error>) -> Self {
        match cause.into() {
            redb::Error::Io(cause) => Self::io(doing, &cause),
            redb::Error::Corrupted(what) => Self::Corrupt {
                place: doing.to_owned(),
                what,
            },
            redb::Error::DatabaseAlreadyOpen => Self::Locked {
                holder: format!("another opener ({doing})"),
            },
            redb::Error::UpgradeRequired(found) => Self::TooNew {
                found: u64::from(found),
                known: 0,
            },
            other => Self::Io {
                what: format!("{doing}: {other}"),
            },
        }
    }

    /// Damage of one event.
    pub(crate) fn event(sequence: u64, cause: FormatError) -> Self {
        match cause {
            FormatError::Chain(error) => Self::ChainBroken(error),
            FormatError::UnknownCodec { found, known } => Self::TooNew {
                found: found.into(),
                known: known.into(),
            },
            FormatError::UnknownRules { found, known } => Self::TooNew { found, known },
            other => Self::Corrupt {
                place: format!("sequence {sequence}"),
                what: other.to_string(),
            },
        }
    }
}

/// The queue of the writer is full, or the journal is closed; nothing was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// As many appends wait as may wait.
    #[error("the journal's queue is full; try again when an earlier append was answered")]
    Full,
    /// The writer has stopped.
    #[error("the journal is closed; open the store again")]
    Closed,
}

impl Busy {
    /// The code that callers branch on.
    pub fn code(&self) -> Code {
        match self {
            Self::Full => Code::Busy,
            Self::Closed => Code::StoreIo,
        }
    }
}

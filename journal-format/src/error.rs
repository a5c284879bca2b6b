//! Why bytes are not what this format says, in one small enum.
//!
//! Invariant: each error names what was expected and what was found; none is ever answered with a guess.
//! Made by every module of the crate; the journal adds where in the store it happened.

use aiws::digest::Digest;
use aiws::error::Code;

use crate::chain::ChainError;
use crate::note::NoteError;

/// Why something could not be sealed, or stored bytes could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// An event is larger than a stored event may be.
    #[error(
        "expected an event of at most {limit} bytes, found {found}; keep large content in artifacts"
    )]
    TooLarge {
        /// Its size in bytes.
        found: usize,
        /// The bound in bytes.
        limit: usize,
    },
    /// A frame begins with a codec byte of another version.
    #[error("expected codec {known}, found {found}; a newer build wrote this, use that one")]
    UnknownCodec {
        /// The byte found.
        found: u8,
        /// The byte that this build writes and reads.
        known: u8,
    },
    /// A frame is not laid out as it should be.
    #[error("the frame is damaged: {what}")]
    Frame {
        /// What is wrong.
        what: String,
    },
    /// The bytes of an event do not hash to the hash kept beside them.
    #[error("expected the event to hash to {expected}, found {found}; its bytes were changed")]
    Hash {
        /// The hash kept beside the event.
        expected: Digest,
        /// The hash of the bytes.
        found: Digest,
    },
    /// The bytes of an event are JSON, but not its one canonical form.
    #[error("expected canonical JSON, found another form of the same value from byte {at} on")]
    NotCanonical {
        /// The first byte that differs.
        at: usize,
    },
    /// The bytes of an event are not an event.
    #[error("not an event: {0}")]
    Event(aiws::error::Error),
    /// What was to be sealed would not be read back as the same event.
    #[error(
        "expected an event that reads back as it was sealed: {what}; nothing was stored, make the command smaller or plainer"
    )]
    NotReadBack {
        /// Why not.
        what: String,
    },
    /// An event was decided under rules that this build does not know.
    #[error(
        "expected an event of codec version {known}, found {found}; a newer build wrote this, use that one"
    )]
    UnknownRules {
        /// The version found.
        found: u64,
        /// The one that this build writes and reads.
        known: u64,
    },
    /// An event does not fit to the events before it.
    #[error(transparent)]
    Chain(#[from] Box<ChainError>),
    /// An export is not laid out as it should be.
    #[error("line {line} of the export: {what}")]
    Export {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A checkpoint cannot be read, is of another log, or is not signed by the key that was named.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// An event, or a checkpoint's root, is not proven by the tree.
    #[error(
        "sequence {sequence} is not proven: its event, its place or the proof is not what the checkpoint vouches for"
    )]
    Proof {
        /// The event's sequence, or the size of the checkpoint.
        sequence: u64,
    },
}

impl FormatError {
    /// The code that callers branch on.
    pub fn code(&self) -> Code {
        match self {
            Self::TooLarge { .. } => Code::EventTooLarge,
            Self::NotReadBack { .. } => Code::SchemaInvalid,
            Self::UnknownCodec { .. } | Self::UnknownRules { .. } => Code::StoreTooNew,
            Self::Chain(_) => Code::ChainBroken,
            Self::Note(error) => error.code(),
            Self::Proof { .. } => Code::CheckpointForked,
            Self::Frame { .. }
            | Self::Hash { .. }
            | Self::NotCanonical { .. }
            | Self::Event(_)
            | Self::Export { .. } => Code::StoreCorrupt,
        }
    }
}

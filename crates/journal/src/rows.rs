//! The rows of the projections, as they are in memory and in the index.
//!
//! Invariant: every row but the owners' marker and the cursors follows from the log alone.
//! Called by view (memory), tables (bytes) and verify.

use aiws::digest::Digest;
use aiws::id::{Id, MissionId, StreamId};
use aiws::json::Value;
use praxis_model::event::{DueKind, Head, IdentityKind};

/// Where a stream stands, and where in the log its last event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadRow {
    /// Revision and hash; revision 0 with the opening hash before the first event.
    pub head: Head,
    /// Log sequence of the last event; 0 before the first.
    pub sequence: u64,
}

/// Who owns a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerRow {
    /// The current epoch.
    pub epoch: u64,
    /// The boot in which the run was last appended to by a live owner; 0 once the owner let go (T-16). After an
    /// unclean end the runs with another boot's marker are the ones to recover.
    pub boot: u64,
}

/// The first result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Digest of the request's material.
    pub digest: Digest,
    /// Log sequence of its first event.
    pub sequence: u64,
}

/// A register's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterRow {
    /// How often it was written.
    pub revision: u64,
    /// The last value.
    pub value: Value,
}

/// An identity that can be taken once per mission (HF-02).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdentityKey {
    /// The mission.
    pub mission_id: MissionId,
    /// What it names.
    pub kind: IdentityKind,
    /// The name.
    pub key: Id,
}

/// Who took an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRow {
    /// Digest of the material under it.
    pub digest: Digest,
    /// Log sequence of the event.
    pub sequence: u64,
    /// The event's stream.
    pub stream: StreamId,
}

/// A due time; rows are in the order of time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueKey {
    /// When, in UTC milliseconds.
    pub at_ms: u64,
    /// Which stream.
    pub stream: StreamId,
    /// Why.
    pub kind: DueKind,
}

/// A place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogCursor {
    /// The sequence of the last event that is covered; 0 for none.
    pub sequence: u64,
    /// Its hash; zeros for none.
    pub hash: Digest,
}

impl LogCursor {
    /// Before the first event.
    pub const START: Self = Self {
        sequence: 0,
        hash: Digest::ZERO,
    };
}

//! The event: one accepted command with everything that follows from it (wire form 1.7, T-76).
//!
//! Invariant: an event holds all that replay needs; nothing is asked again of a clock, a rule or an adapter.
//! Made by `seal` in the journal format, folded by evolve, stored by the journal.

use aiws::decimal::U64;
use aiws::digest::Digest;
use aiws::id::{ActorId, Id, NodeId, RequestId, StreamId};
use aiws::json::Value;
use aiws::record::{ActorKind, Ref};
use serde::{Deserialize, Serialize};

use crate::account::Posting;
use crate::command::{Body, CommandType};
use crate::facts::RecordedFacts;
use crate::register::RegisterWrite;
use crate::stream::Subject;
use crate::transition::Transition;

/// The version of event semantics that this build writes. Version 0 may change until 0.1.0 (T-85).
pub const CODEC_VERSION: u64 = 0;

/// Which rules an event was decided under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Codec {
    /// The profile: `aiws-handoff/1`.
    pub profile: String,
    /// The codec version.
    pub version: U64,
}

/// Part k of N of one append (T-82); both 1 for a single command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Part {
    /// This part, from 1.
    pub k: U64,
    /// How many parts.
    pub of: U64,
}

/// One event of a stream. Its hash stands beside it, never in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Event {
    /// The stream, derived from the subject.
    pub stream: StreamId,
    /// Position in the stream, from 1, without gaps.
    pub revision: U64,
    /// Hash of the stream's previous event. A mission's first event has 64 zeros; a run's first event
    /// has the hash of the mission event that admitted the run.
    pub prev_hash: Digest,
    /// Whom it is about.
    pub subject: Subject,
    /// The command's type.
    #[serde(rename = "type")]
    pub kind: CommandType,
    /// The request's id; null for what the engine does itself.
    pub request_id: Option<RequestId>,
    /// Digest of the request, the token replaced by its fingerprint (T-23).
    pub request_digest: Digest,
    /// Part of a sequence.
    pub part: Part,
    /// Who acted, from the authorizer (FV-GRT.6).
    pub actor_id: ActorId,
    /// What kind of actor.
    pub actor_kind: ActorKind,
    /// Under which policy revision.
    pub policy: Ref,
    /// What class of decision the authorizer made, such as `POLICY`, `AT_TERMINAL`, `IN_ADVANCE`.
    pub decision_class: String,
    /// The decision's own reference, where there is one.
    pub decision_ref: Option<Id>,
    /// Trusted UTC time in milliseconds; never below the stream's previous event.
    pub at_ms: U64,
    /// The run's ownership epoch under which it was decided; null in mission streams.
    pub owner_epoch: Option<U64>,
    /// The command, canonical, with tokens replaced by fingerprints.
    pub command: Body,
    /// What was not determined by state and command.
    pub facts: RecordedFacts,
    /// What follows.
    pub outcome: Outcome,
    /// The response that a replay of the request returns.
    pub result: Value,
    /// Under which rules.
    pub codec: Codec,
}

/// What an event changes. `transitions` concern the deciding stream's own state; the other members are
/// what the journal projects without knowing any workflow word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    /// Changes of the stream's own state, in order.
    pub transitions: Vec<Transition>,
    /// Register writes.
    pub registers: Vec<RegisterWrite>,
    /// Account postings.
    pub accounts: Vec<Posting>,
    /// Identities that become taken, mission-wide (T-06).
    pub identities: Vec<Identity>,
    /// Gates that close or open.
    pub gates: Vec<GateChange>,
    /// Streams that become open, with this event's hash as their first previous hash.
    pub opens: Vec<StreamId>,
    /// The run's new owner epoch.
    pub owner: Option<Owner>,
    /// Due times set or cleared.
    pub due: Vec<DueChange>,
}

impl Outcome {
    /// The node in which it launches work, where it says one: the gate of a branch without it lets it pass. Where it says
    /// none, every gate is in its way (HS-01.8).
    #[must_use]
    pub fn launched_in(&self) -> Option<&NodeId> {
        self.transitions.iter().find_map(|one| match one {
            Transition::LaunchedIn { node_id } => Some(node_id),
            _ => None,
        })
    }
}

/// An identity that may be used once in its mission.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Identity {
    /// What it names.
    pub kind: IdentityKind,
    /// The name.
    pub key: Id,
    /// Digest of the material under it.
    pub digest: Digest,
}

/// The closed set of mission-wide identities (HF-02).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum IdentityKind {
    /// A run id.
    Run,
    /// A grant id.
    Grant,
    /// A hand-off (manifest) id.
    Handoff,
    /// A delivery id.
    Delivery,
    /// An operation id.
    Operation,
    /// An attempt id.
    Attempt,
    /// An approval id.
    Approval,
    /// An assessment id.
    Assessment,
    /// A hold id.
    Hold,
    /// A summary id.
    Summary,
}

/// One gate of a scope that closes or opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateChange {
    /// The scope: a run or a mission.
    pub scope: Subject,
    /// Which gate.
    pub gate: Gate,
    /// True when it closes (blocks), false when it opens again.
    pub closed: bool,
}

/// A gate's name inside its scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Gate {
    /// An OPEN hold over the whole scope.
    Hold {
        /// The hold.
        hold_id: aiws::id::HoldId,
    },
    /// An OPEN hold over a part of the scope.
    Branch {
        /// The hold.
        hold_id: aiws::id::HoldId,
        /// The nodes that it covers.
        node_ids: Vec<NodeId>,
    },
    /// Cancellation was requested.
    Cancel,
}

impl Gate {
    /// Whether it is in the way of what launches work in this node, or, where there is none, anywhere in the scope.
    #[must_use]
    pub fn stops(&self, node: Option<&NodeId>) -> bool {
        match self {
            Self::Hold { .. } | Self::Cancel => true,
            Self::Branch { node_ids, .. } => node.is_none_or(|node| node_ids.contains(node)),
        }
    }
}

/// A run's ownership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Owner {
    /// The run's stream.
    pub stream: StreamId,
    /// Its epoch from now on.
    pub epoch: U64,
}

/// A due time of a stream, set or cleared. The rows are both the timer and the start-up work list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DueChange {
    /// The stream that has something to do.
    pub stream: StreamId,
    /// What is due.
    pub kind: DueKind,
    /// When, in UTC milliseconds; null clears the row.
    pub at_ms: Option<U64>,
}

/// Why a stream is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DueKind {
    /// The run is not terminal: it belongs on the start-up list.
    Live,
}

/// Where a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Head {
    /// Revision of the last event; 0 before the first.
    pub revision: U64,
    /// Hash of the last event, or the stream's opening hash.
    pub hash: Digest,
}

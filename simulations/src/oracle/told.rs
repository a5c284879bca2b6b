//! What the oracle is told: batches, answers, projections, the world.
//!
//! Invariant: plain texts and numbers, none of the engine's types. Made by the simulation, read by the oracle.

use std::collections::BTreeMap;

/// One event: its hash and its canonical bytes, as sealed or as read from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The event's hash.
    pub hash: [u8; 32],
    /// The event's canonical bytes.
    pub bytes: Vec<u8>,
}

/// Who asked for what, as texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The principal.
    pub actor: String,
    /// The request's id.
    pub request: String,
    /// Digest of the request's material, in hexadecimal digits.
    pub digest: String,
}

/// One append of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Which instance of an owner: a number that is never used again; 0 for people and for the mission's actor.
    pub writer: u32,
    /// The epoch that it acts under.
    pub claims_epoch: Option<u64>,
    /// The request, if there is one.
    pub request: Option<Request>,
    /// The events.
    pub rows: Vec<Row>,
}

/// What an append was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is durable.
    Stored {
        /// The sequence of its first event.
        sequence: u64,
        /// The hash of its last event.
        hash: [u8; 32],
    },
    /// It was there already.
    Replayed {
        /// The sequence of the first event of the request.
        sequence: u64,
    },
    /// It was refused, and nothing is stored.
    Refused {
        /// The code of the refusal.
        code: String,
    },
    /// The commit failed, and nothing is stored.
    NotStored,
    /// Nobody knows until the store is opened again.
    InDoubt,
}

/// The projections: table, key, value, as canonical texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// `heads`, `owners`, `registers`, `gates`, `accounts`, `due`, `cursors`.
    pub tables: BTreeMap<&'static str, BTreeMap<String, String>>,
}

/// One line of the provider's own record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldEntry {
    /// The operation.
    pub operation: String,
    /// The attempt.
    pub attempt: String,
    /// What it cost, in units.
    pub cost: u64,
    /// Whether the provider had forgotten that it knew the key.
    pub forgot: bool,
}

/// What reached the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Applied at this cost.
    Applied {
        /// In units.
        cost: u64,
    },
    /// Not applied.
    NotApplied,
    /// Nothing came in time.
    Lost,
}

/// What a look-up answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// What settles the matter.
    Conclusive(Response),
    /// Nothing that settles it.
    Nothing,
}

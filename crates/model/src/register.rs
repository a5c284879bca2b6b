//! Registers: keyed rows with a revision, by which streams learn from each other.
//!
//! Invariant: only events write registers, a write raises the row's revision by one, and a row that was
//! never written has revision 0. Called by decide (reads in facts, writes in outcomes) and by the journal.

use aiws::id::{Id, MissionId};
use aiws::json::Value;
use serde::{Deserialize, Serialize};

/// The closed set of register kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RegisterKind {
    /// The mission's contract and hand-off configuration, keyed by the mission id. Written by openMission.
    Contract,
    /// A grant, keyed by its id. Written by grant.
    Grant,
    /// A run's admission, keyed by the run id. Written by startRun.
    RunAdmission,
    /// A run's final lifecycle, keyed by the run id. Written by the run's own terminal event.
    RunOutcome,
}

/// Where a register stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegisterKey {
    /// The mission that the row belongs to.
    pub mission_id: MissionId,
    /// What it holds.
    pub kind: RegisterKind,
    /// Which one.
    pub key: Id,
}

/// A register as it was read: what `same(register, revision)` pins at the durable boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegisterRead {
    /// Where it stands.
    pub register: RegisterKey,
    /// The row's revision when it was read; 0 if it was never written.
    pub revision: aiws::decimal::U64,
    /// The row's value, or null if it was never written.
    pub value: Value,
}

/// A register write in an event's outcome; the row's revision becomes one more than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegisterWrite {
    /// Where it stands.
    pub register: RegisterKey,
    /// The new value.
    pub value: Value,
}

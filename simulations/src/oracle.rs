//! The oracle: a reference model that judges what the engine did from the events alone.
//!
//! Invariant: it imports nothing of the engine, so that a mistake of the engine is not its mistake too; what it cannot read
//! is a broken promise, never a panic. Called by the simulation around every commit, after every reopening and at rest.

use std::collections::{BTreeMap, BTreeSet};

use crate::invariant::Broken;

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
    pub id: String,
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
        /// The sequence of its last event.
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
    /// Whether only a part of it was applied.
    pub partial: bool,
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

/// The reference model with what it was told.
#[derive(Debug, Default)]
pub struct Oracle {
    off: bool,
    marks: BTreeSet<&'static str>,
}

impl Oracle {
    /// An oracle of an empty store.
    pub fn new() -> Self {
        Self::default()
    }
    /// One that accepts everything, for the control.
    pub fn switched_off() -> Self {
        Self {
            off: true,
            ..Self::default()
        }
    }
    /// A batch, before its commit.
    pub fn hand_in(&mut self, _batch: &[Handed]) {}
    /// The batch's answers, one for each append.
    ///
    /// # Errors
    /// The invariant that they break.
    pub fn answered(&mut self, _answers: &[Answer]) -> Result<(), Broken> {
        Ok(())
    }
    /// The process ended; a batch that was handed in has no answer.
    pub fn power_lost(&mut self) {}
    /// The store was opened; the whole log as found, in order.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn reopened(&mut self, _log: &[Row]) -> Result<(), Broken> {
        Ok(())
    }
    /// The projections, after any step.
    ///
    /// # Errors
    /// The invariant that they break.
    pub fn shown(&mut self, _shown: &Shown) -> Result<(), Broken> {
        Ok(())
    }
    /// The provider's record grew.
    pub fn world(&mut self, _entry: WorldEntry) {}
    /// What reached the owner.
    pub fn response(&mut self, _attempt: &str, _response: Response) {}
    /// What a look-up answered.
    pub fn looked_up(&mut self, _attempt: &str, _answer: Lookup) {}
    /// An owner calls the provider.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn called(&mut self, _writer: u32, _attempt: &str) -> Result<(), Broken> {
        Ok(())
    }
    /// What a read of the outbox returned, in order.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn delivered(
        &mut self,
        _consumer: &str,
        _events: &[(u64, [u8; 32])],
    ) -> Result<(), Broken> {
        Ok(())
    }
    /// A consumer acknowledged, and the call returned well.
    pub fn acknowledged(&mut self, _consumer: &str, _sequence: u64) {}
    /// An artifact was put; whether the call returned well.
    pub fn put(&mut self, _digest: [u8; 32], _ok: bool) {}
    /// An artifact was read: its bytes, or the code of the failure.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn read(&mut self, _digest: [u8; 32], _found: Result<&[u8], &str>) -> Result<(), Broken> {
        Ok(())
    }
    /// An artifact was collected.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn collected(&mut self, _digest: [u8; 32]) -> Result<(), Broken> {
        Ok(())
    }
    /// The artifact directory after a reopening: names and bytes.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn files(&mut self, _durable: &[(String, Vec<u8>)]) -> Result<(), Broken> {
        Ok(())
    }
    /// This artifact was damaged on purpose: from now on it may be unreadable, though never read as good.
    pub fn damaged_material(&mut self, _digest: [u8; 32]) {}
    /// The store was damaged on purpose: from now on loss is allowed where it was detected.
    pub fn damaged(&mut self) {}
    /// The damage was detected.
    pub fn detected(&mut self) {}
    /// The healed end.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn rest(&mut self) -> Result<(), Broken> {
        Ok(())
    }
    /// Interesting states that were reached.
    pub fn seen(&self) -> &BTreeSet<&'static str> {
        &self.marks
    }
}

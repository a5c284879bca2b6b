//! The world: a provider of effects with an append-only record of its own.
//!
//! Invariant: what happened is what the record says, whatever the provider answered; the record never shrinks. Called by
//! the simulated owners, judged by the oracle.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It is applied and answered.
    Applied,
    /// It is refused, nothing is applied, and that is answered.
    Refused,
    /// It is applied, and the answer is lost.
    AnswerLost,
    /// Nothing is applied, and nothing is answered.
    TimesOut,
    /// It is applied long after the caller gave up.
    Late,
    /// A part of it is applied, and it fails.
    InPart,
    /// It is applied once and answered twice.
    AnsweredTwice,
    /// The provider has forgotten its idempotency keys, and applies.
    KeysForgotten,
    /// It is applied and answered, and the provider's status query says for a while that there was no such call.
    StatusWrong,
    /// It is applied, and costs more than was reserved.
    Dear,
}

/// What an effect costs more than anybody thought.
const BEYOND: u64 = 60;

/// One effect that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The operation, which is the idempotency key.
    pub operation: String,
    /// The attempt that was called.
    pub attempt: String,
    /// What it cost, in units.
    pub cost: u64,
    /// Whether the provider had forgotten that it knew the key.
    pub forgot: bool,
}

/// What is asked of the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation, which is the idempotency key where the provider knows such.
    pub operation: String,
    /// The attempt.
    pub attempt: String,
    /// Whether the provider knows idempotency keys for this effect.
    pub keyed: bool,
    /// What it costs, in units.
    pub cost: u64,
}

/// What reaches the caller, or its time limit.
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

/// What the status query answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Applied at this cost.
    Applied {
        /// In units.
        cost: u64,
    },
    /// There is no such call, as far as the provider can tell now.
    Absent,
}

/// The provider.
#[derive(Clone, Debug, Default)]
pub struct World {
    record: Vec<Entry>,
    late: Vec<Call>,
    hidden: BTreeMap<String, u8>,
    closed: BTreeSet<String>,
}

/// How many status queries are wrong.
const WRONG: u8 = 2;

impl World {
    /// What happened, in order.
    pub fn record(&self) -> &[Entry] {
        &self.record
    }

    /// A call; gives what reaches the caller, once or twice.
    pub fn call(&mut self, call: &Call, fate: Fate) -> Vec<Response> {
        let cost = match fate {
            Fate::Dear => call.cost * 2 + BEYOND,
            _ => call.cost,
        };
        let applied = Response::Applied { cost };
        match fate {
            Fate::Refused => return vec![Response::NotApplied],
            Fate::TimesOut => return vec![Response::Lost],
            Fate::Late => {
                self.late.push(call.clone());
                return vec![Response::Lost];
            }
            _ => self.apply(call, cost, fate == Fate::KeysForgotten),
        }
        match fate {
            Fate::AnswerLost | Fate::InPart => vec![Response::Lost],
            Fate::AnsweredTwice => vec![applied, applied],
            Fate::StatusWrong => {
                self.hidden.insert(call.attempt.clone(), WRONG);
                vec![Response::Lost]
            }
            _ => vec![applied],
        }
    }

    /// What was called long ago is applied now; true if there was such a thing.
    pub fn late(&mut self) -> bool {
        let late = std::mem::take(&mut self.late);
        let mut any = false;
        for call in late
            .iter()
            .filter(|call| !self.closed.contains(&call.attempt))
            .cloned()
            .collect::<Vec<_>>()
        {
            self.apply(&call, call.cost, false);
            any = true;
        }
        any
    }

    /// The read-only status query, which may be wrong for a while.
    pub fn look_up(&mut self, attempt: &str) -> Status {
        if let Some(left) = self.hidden.get_mut(attempt).filter(|left| **left > 0) {
            *left -= 1;
            return Status::Absent;
        }
        self.truth(attempt)
    }

    /// A person has the provider close the call: nothing is applied after that, and the answer is the truth.
    pub fn close(&mut self, attempt: &str) -> Status {
        self.closed.insert(attempt.to_owned());
        self.truth(attempt)
    }

    /// What the record says of an attempt.
    pub fn truth(&self, attempt: &str) -> Status {
        let found = self.record.iter().find(|entry| entry.attempt == attempt);
        found.map_or(Status::Absent, |entry| Status::Applied { cost: entry.cost })
    }

    fn apply(&mut self, call: &Call, cost: u64, forgot: bool) {
        let known = self
            .record
            .iter()
            .any(|entry| entry.operation == call.operation);
        // A provider with keys does nothing for one that it knows; what it did then is its answer now.
        if known && call.keyed && !forgot {
            return;
        }
        self.record.push(Entry {
            operation: call.operation.clone(),
            attempt: call.attempt.clone(),
            cost,
            forgot: forgot && known,
        });
    }
}

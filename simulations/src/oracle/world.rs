//! World: what the provider's own record says, and what the engine was told (invariants 43, 45, 47).
//!
//! Invariant: the record alone says what happened. Told by the simulation, asked by the fold.

use std::collections::BTreeMap;

use super::effects::Effects;
use super::{Lookup, Response, WorldEntry};
use crate::invariant::{Broken, Invariant};

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    lost: bool,
    answered: bool,
    found: bool,
}

/// The provider's record, and what reached the owners.
#[derive(Debug, Default)]
pub(super) struct World {
    /// How often an attempt was applied, by its id.
    attempts: BTreeMap<String, u64>,
    /// How often an operation was applied, by its id.
    operations: BTreeMap<String, u64>,
    told: BTreeMap<String, Told>,
    calls: BTreeMap<String, u64>,
    /// The log lost events: what it says of the world is no longer all.
    pub lossy: bool,
    /// What the record broke since the last judgement.
    pub broken: Option<Broken>,
}

impl World {
    /// The record grew.
    pub fn happened(&mut self, effects: &Effects, entry: WorldEntry) {
        let before = self.operations.entry(entry.operation.clone()).or_default();
        *before += 1;
        let twice = *before > 1 && !entry.forgot && !effects.is_read(&entry.operation);
        *self.attempts.entry(entry.attempt.clone()).or_default() += 1;
        if self.lossy || self.broken.is_some() {
            return;
        }
        if twice {
            let what = format!(
                "operation {} was applied again by attempt {}",
                entry.operation, entry.attempt
            );
            self.broken = Some(Broken::new(Invariant::WorldAgrees, what));
        } else if effects.is_denied(&entry.attempt) {
            let what = format!(
                "attempt {} is CONFIRMED_NOT_APPLIED and was applied afterwards",
                entry.attempt
            );
            self.broken = Some(Broken::new(Invariant::WorldAgrees, what));
        }
    }

    /// What reached the owner.
    pub fn heard(&mut self, attempt: &str, response: Response) {
        let told = self.told.entry(attempt.to_owned()).or_default();
        match response {
            Response::Lost => told.lost = true,
            Response::Applied { .. } | Response::NotApplied => told.answered = true,
        }
    }

    /// What a look-up answered.
    pub fn looked_up(&mut self, attempt: &str, answer: Lookup) {
        let told = self.told.entry(attempt.to_owned()).or_default();
        told.found |= matches!(answer, Lookup::Conclusive(response) if response != Response::Lost);
    }

    /// Whether all that is known of an attempt is that its answer was lost.
    pub fn only_lost(&self, attempt: &str) -> bool {
        let told = self.told.get(attempt).copied().unwrap_or_default();
        told.lost && !told.answered && !told.found
    }

    /// The provider is called for an attempt, which happens once.
    pub fn called(&mut self, attempt: &str) -> Result<(), Broken> {
        let calls = self.calls.entry(attempt.to_owned()).or_default();
        *calls += 1;
        if *calls == 1 || self.lossy {
            return Ok(());
        }
        let what =
            format!("a provider is called for attempt {attempt} again, {calls} times in all");
        Err(Broken::new(Invariant::NoRetryByItself, what))
    }

    /// What the log says of an attempt is in the record, or is not.
    pub fn agrees(&self, attempt: &str, operation: &str, applied: bool) -> Result<(), Broken> {
        if self.lossy {
            return Ok(());
        }
        // A provider that knows its keys answers a later try by what an earlier one did.
        let there = match applied {
            true => self.operations.contains_key(operation),
            false => self.attempts.contains_key(attempt),
        };
        if there == applied {
            return Ok(());
        }
        let what = match applied {
            true => {
                format!("attempt {attempt} is CONFIRMED_APPLIED, and the world's record lacks it")
            }
            false => {
                format!("attempt {attempt} is CONFIRMED_NOT_APPLIED, and the world's record has it")
            }
        };
        Err(Broken::new(Invariant::WorldAgrees, what))
    }
}

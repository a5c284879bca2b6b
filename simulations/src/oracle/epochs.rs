//! Epochs: takeovers, fences, writers (invariants 9 to 13).
//!
//! Invariant: a run's epoch only rises, and one writer acts under each. Called by the fold, and before a provider is called.

use std::collections::BTreeMap;

use super::event::{Event, member, number, text};
use super::state::Whose;
use super::tables::Tables;
use crate::invariant::{Broken, Invariant};

/// The epochs of all runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Epochs {
    current: BTreeMap<String, u64>,
    /// What was raised by the batch that is being folded: the epoch before.
    raised: BTreeMap<String, u64>,
    /// Who acted under which epoch of which run.
    writers: BTreeMap<(String, u64), u32>,
}

/// Commands that need the ownership of their run.
const OWNED: [&str; 16] = [
    "activateGraph",
    "dispatch",
    "settle",
    "reconcile",
    "retry",
    "completeRun",
    "commitBoundary",
    "claimDelivery",
    "acknowledgeDelivery",
    "releaseDelivery",
    "admitConsumer",
    "placeHold",
    "resolveHold",
    "invalidateHandoff",
    "recordSummary",
    TAKEOVER,
];

const TAKEOVER: &str = "recoverOwnership";

impl Epochs {
    /// A new batch begins.
    pub fn begin(&mut self) {
        self.raised.clear();
    }

    /// A run's current epoch.
    pub fn of(&self, stream: &str) -> Option<u64> {
        self.current.get(stream).copied()
    }

    /// The epoch is the run's own and current; a takeover raises it.
    pub fn fold(&mut self, event: &Event, whose: Whose, tables: &mut Tables) -> Result<(), Broken> {
        if event.run.is_some() {
            let claimed = whose.epoch.filter(|_| OWNED.contains(&event.kind.as_str()));
            for epoch in event.epoch.iter().chain(claimed.iter()) {
                self.is_current(event, *epoch)?;
            }
            self.one_writer(event, whose)?;
        }
        let owner = member(member(&event.value, "outcome")?, "owner")?;
        if owner.is_null() {
            if event.kind == TAKEOVER {
                let what = format!("{} leaves the epoch as it was", event.named());
                return Err(Broken::new(Invariant::EpochRises, what));
            }
            return Ok(());
        }
        let (stream, epoch) = (text(owner, "stream")?, number(owner, "epoch")?);
        let before = self.of(stream);
        if before.is_some_and(|before| epoch <= before) {
            let what = format!(
                "{} takes over from epoch {} to epoch {epoch}",
                event.named(),
                before.unwrap_or(0)
            );
            return Err(Broken::new(Invariant::EpochRises, what));
        }
        if let Some(before) = before {
            self.raised.entry(stream.to_owned()).or_insert(before);
        }
        self.current.insert(stream.to_owned(), epoch);
        tables.owners.insert(stream.to_owned(), epoch.to_string());
        Ok(())
    }

    fn is_current(&self, event: &Event, epoch: u64) -> Result<(), Broken> {
        let current = self.of(&event.stream).unwrap_or(0);
        let own = event.kind == TAKEOVER && epoch == current + 1;
        if epoch == current || own {
            return Ok(());
        }
        let invariant = match self.raised.get(&event.stream) {
            _ if epoch > current => Invariant::EpochDurable,
            Some(before) if epoch >= *before => Invariant::EpochAtHead,
            _ => Invariant::EpochCurrent,
        };
        let what = format!(
            "{} acts under epoch {epoch}, the run's is {current}",
            event.named()
        );
        Err(Broken::new(invariant, what))
    }

    fn one_writer(&mut self, event: &Event, whose: Whose) -> Result<(), Broken> {
        let Some(epoch) = whose.epoch.filter(|_| whose.writer != 0) else {
            return Ok(());
        };
        // Before a takeover is granted, its writer acts under no epoch of its own.
        let takes = event.kind == TAKEOVER && Some(epoch) == self.of(&event.stream);
        if takes || !OWNED.contains(&event.kind.as_str()) {
            return Ok(());
        }
        let key = (event.stream.clone(), epoch);
        let first = *self.writers.entry(key).or_insert(whose.writer);
        if first == whose.writer {
            return Ok(());
        }
        let what = format!(
            "{} was written by owner {}, and owner {first} wrote under epoch {epoch} before",
            event.named(),
            whose.writer
        );
        Err(Broken::new(Invariant::OneWriter, what))
    }

    /// An owner is about to call a provider for an attempt of this epoch.
    pub fn calls(
        &self,
        writer: u32,
        stream: &str,
        attempt: &str,
        epoch: u64,
    ) -> Result<(), Broken> {
        let current = self.of(stream).unwrap_or(0);
        let own = self.writers.get(&(stream.to_owned(), epoch));
        if own != Some(&writer) {
            let deposed = self
                .writers
                .iter()
                .any(|((of, _), known)| of == stream && *known == writer);
            let invariant = if deposed && epoch < current {
                Invariant::EpochCurrent
            } else {
                Invariant::EpochDurable
            };
            let what = format!(
                "owner {writer} calls for attempt {attempt} of epoch {epoch}, which is not durably its own"
            );
            return Err(Broken::new(invariant, what));
        }
        if epoch != current {
            let what = format!(
                "owner {writer} calls for attempt {attempt} of epoch {epoch}, the run's is {current}"
            );
            return Err(Broken::new(Invariant::EpochCurrent, what));
        }
        Ok(())
    }
}

//! Outbox: what consumers were shown and what they acknowledged (invariants 36 to 38).
//!
//! Invariant: a cursor moves by its consumer alone, and nothing before it is skipped. Told by the simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::event::hex;
use super::tables::Table;
use crate::invariant::{Broken, Invariant};

#[derive(Debug, Default)]
struct Consumer {
    /// What is surely acknowledged.
    acknowledged: u64,
    /// What it asked to acknowledge, without an answer yet.
    asked: Option<u64>,
    /// The last sequence that it was ever shown.
    shown: u64,
    /// Whether it read since its cursor was looked at.
    read: bool,
}

/// All consumers.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    consumers: BTreeMap<String, Consumer>,
    /// Cursors are kept beside the log; where that was damaged they may begin again.
    pub lossy: bool,
}

impl Outbox {
    fn of(&mut self, consumer: &str) -> &mut Consumer {
        self.consumers.entry(consumer.to_owned()).or_default()
    }

    /// A consumer is about to acknowledge.
    pub fn acknowledging(&mut self, consumer: &str, sequence: u64) {
        let of = self.of(consumer);
        of.asked = of.asked.max(Some(sequence));
    }

    /// A consumer acknowledged.
    pub fn acknowledged(&mut self, consumer: &str, sequence: u64) {
        let of = self.of(consumer);
        of.acknowledged = of.acknowledged.max(sequence);
        of.asked = None;
    }

    /// What was asked without an answer stays open until the cursor is seen.
    pub fn power_lost(&mut self) {
        self.consumers.values_mut().for_each(|it| it.read = false);
    }

    /// The cursors as shown.
    pub fn shown(&mut self, cursors: &Table) -> Result<(), Broken> {
        if self.lossy {
            return Ok(());
        }
        let mut names: BTreeSet<String> = self.consumers.keys().cloned().collect();
        names.extend(cursors.keys().cloned());
        for name in names {
            let shown = cursors.get(&name).map(|text| text.trim_matches('"'));
            let found = shown.and_then(|text| text.parse().ok()).unwrap_or(0);
            let of = self.of(&name);
            let read = std::mem::take(&mut of.read);
            if found == of.acknowledged {
                continue;
            }
            let most = of.asked.unwrap_or(0).max(of.acknowledged);
            if found > of.acknowledged && found <= most {
                // It moved although nobody heard of it.
                of.acknowledged = found;
                continue;
            }
            let invariant = if read && found == of.shown {
                Invariant::OutboxAgain
            } else {
                Invariant::OutboxConsumer
            };
            let what = format!(
                "the cursor of {name} stands at {found}, acknowledged is {}",
                of.acknowledged
            );
            return Err(Broken::new(invariant, what));
        }
        Ok(())
    }

    /// What a read returned: the log from the cursor on, without a gap, each event under its own hash.
    pub fn delivered(
        &mut self,
        consumer: &str,
        events: &[(u64, [u8; 32])],
        log: &[([u8; 32], Rc<[u8]>)],
        marks: &mut BTreeSet<&'static str>,
    ) -> Result<(), Broken> {
        let lossy = self.lossy;
        let of = self.of(consumer);
        of.read = true;
        let Some((first, _)) = events.first() else {
            return Ok(());
        };
        let most = of.asked.unwrap_or(0).max(of.acknowledged);
        if *first > most + 1 && !lossy {
            let invariant = if of.shown >= first - 1 {
                Invariant::OutboxAgain
            } else {
                Invariant::OutboxWhole
            };
            let what = format!("{consumer} acknowledged {most}, and is shown {first} next");
            return Err(Broken::new(invariant, what));
        }
        if *first <= of.shown {
            marks.insert("delivered-again");
        }
        for (at, (sequence, hash)) in (*first..).zip(events) {
            if *sequence != at {
                let what = format!("{consumer} is shown {sequence} where {at} comes");
                return Err(Broken::new(Invariant::OutboxWhole, what));
            }
            let place = usize::try_from(at).unwrap_or(0).checked_sub(1);
            let known = place.and_then(|place| log.get(place)).map(|row| row.0);
            if known != Some(*hash) {
                let what = format!(
                    "{consumer} is shown {} at sequence {at}, the log has {}",
                    hex(*hash),
                    known.map_or("nothing".to_owned(), hex)
                );
                return Err(Broken::new(Invariant::OutboxWhole, what));
            }
            of.shown = of.shown.max(at);
        }
        Ok(())
    }
}

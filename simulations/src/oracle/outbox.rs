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
    /// Where its cursor stands at least: an acknowledgement of this returned well.
    kept: u64,
    /// Where it stands at most: what the consumer asked for.
    asked: u64,
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

    /// A consumer asks for its cursor to move; whether it did is not known yet.
    pub fn asked(&mut self, consumer: &str, sequence: u64) {
        let of = self.of(consumer);
        of.asked = of.asked.max(sequence);
    }

    /// An acknowledgement returned well: the cursor never goes back behind it.
    /// The index was lost to an error of the disk and made anew: cursors begin again, and events come again.
    pub fn index_lost(&mut self) {
        self.consumers.values_mut().for_each(|of| of.kept = 0);
    }

    pub fn kept(&mut self, consumer: &str, sequence: u64) {
        let of = self.of(consumer);
        of.kept = of.kept.max(sequence);
        of.asked = of.asked.max(sequence);
    }

    /// What was read before the process ended says nothing of a cursor after it.
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
        let mut wrong = None;
        // A read that moves a cursor moves its reader's alone, to what it was shown last.
        let mut by_reading = true;
        for name in names {
            let shown = cursors.get(&name).map(|text| text.trim_matches('"'));
            let found = shown.and_then(|text| text.parse().ok()).unwrap_or(0);
            let of = self.of(&name);
            let read = std::mem::take(&mut of.read);
            if (of.kept..=of.asked).contains(&found) {
                continue;
            }
            by_reading &= read && found == of.shown;
            wrong.get_or_insert_with(|| {
                format!(
                    "the cursor of {name} stands at {found}, kept is {}, asked for {}",
                    of.kept, of.asked
                )
            });
        }
        match wrong {
            None => Ok(()),
            Some(what) if by_reading => Err(Broken::new(Invariant::OutboxAgain, what)),
            Some(what) => Err(Broken::new(Invariant::OutboxConsumer, what)),
        }
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
        let most = of.asked;
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

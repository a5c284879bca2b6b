//! The log as the oracle holds it: what is durable, what is in flight, what is in doubt (invariants 1, 3, 5, 6).
//!
//! Invariant: what is answered as stored is folded at once; what is in doubt is folded when a reopening shows it. Part of
//! the oracle.

use std::rc::Rc;

use super::event::{Event, hex, unknown};
use super::requests::{self, Key};
use super::state::{State, Whose};
use super::tables::Last;
use super::{Answer, Handed, Oracle, Row};
use crate::invariant::{Broken, Invariant};

/// The durable log, and what may join it.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub rows: Vec<([u8; 32], Rc<[u8]>)>,
    pub batch: Option<Vec<Handed>>,
    pub doubt: Vec<Handed>,
    /// Answered as not stored, for the words of a report.
    denied: std::collections::BTreeSet<[u8; 32]>,
    pub last: Last,
}

impl Oracle {
    pub(super) fn take_batch(&mut self, batch: &[Handed]) {
        // A batch without an answer stays in doubt.
        self.doubt_batch();
        self.log.batch = Some(batch.to_vec());
    }

    pub(super) fn doubt_batch(&mut self) {
        self.log
            .doubt
            .extend(self.log.batch.take().unwrap_or_default());
    }

    pub(super) fn take_answers(&mut self, answers: &[Answer]) -> Result<(), Broken> {
        let batch = self.log.batch.take().unwrap_or_default();
        if batch.len() != answers.len() {
            let (asked, told) = (batch.len(), answers.len());
            return Err(unknown(format!("{asked} appends have {told} answers")));
        }
        self.state.epochs.begin();
        let refused = |it: &Answer| matches!(it, Answer::Refused { .. });
        self.log.last = match answers {
            all if all.contains(&Answer::NotStored) => Last::Failed,
            all if all.iter().any(refused) => Last::Refused,
            _ => Last::Stored,
        };
        for (handed, answer) in batch.into_iter().zip(answers) {
            match answer {
                Answer::Stored { sequence, hash } => self.stored(&handed, *sequence, *hash)?,
                Answer::Replayed { sequence } => self.replayed(&handed, *sequence)?,
                Answer::Refused { code } => self.refused(&handed, code)?,
                Answer::NotStored => {
                    self.mark("commit-failed");
                    self.deny(&handed);
                }
                Answer::InDoubt => self.log.doubt.push(handed),
            }
        }
        Ok(())
    }

    fn deny(&mut self, handed: &Handed) {
        self.log
            .denied
            .extend(handed.rows.iter().map(|row| row.hash));
    }

    fn stored(&mut self, handed: &Handed, sequence: u64, hash: [u8; 32]) -> Result<(), Broken> {
        let next = self.log.rows.len() as u64 + 1;
        if sequence != next {
            let what = format!(
                "an append is answered as stored at sequence {sequence}, the log ends at {}",
                next - 1
            );
            return Err(Broken::new(Invariant::SequenceGapFree, what));
        }
        let last = handed.rows.last().map(|row| row.hash);
        if last != Some(hash) {
            let what = format!(
                "an append whose last event is {} is answered as stored with {}",
                last.map_or("missing".to_owned(), hex),
                hex(hash)
            );
            return Err(Broken::new(Invariant::HeadsAreLast, what));
        }
        if handed.rows.len() > 1 {
            self.mark("sequence-stored");
        }
        for row in &handed.rows {
            self.log.denied.remove(&row.hash);
            self.fold(row, whose(handed))?;
        }
        Ok(())
    }

    /// Folds one durable event.
    fn fold(&mut self, row: &Row, whose: Whose) -> Result<(), Broken> {
        let event = Event::read(row)?;
        let sequence = self.log.rows.len() as u64 + 1;
        let rooms = super::state::Rooms {
            world: &mut self.world,
            artifacts: &mut self.artifacts,
            marks: &mut self.marks,
        };
        self.state.fold(&event, sequence, whose, rooms)?;
        self.log
            .rows
            .push((row.hash, Rc::from(row.bytes.as_slice())));
        Ok(())
    }

    fn replayed(&mut self, handed: &Handed, sequence: u64) -> Result<(), Broken> {
        let Some((key, digest)) = request(handed)? else {
            return Err(unknown(format!(
                "an append without a request is answered as a replay of sequence {sequence}"
            )));
        };
        if self.lossy {
            return Ok(());
        }
        let before = self.state.requests.replayed(&key, &digest, sequence)?;
        self.mark("replayed");
        if before {
            self.mark("duplicate-after-reopening");
        }
        Ok(())
    }

    fn refused(&mut self, handed: &Handed, code: &str) -> Result<(), Broken> {
        self.deny(handed);
        if code != "IDENTITY_CONFLICT"
            && !self.lossy
            && let Some((key, digest)) = request(handed)?
        {
            self.state.requests.refused(&key, &digest, code)?;
        }
        match code {
            "IDENTITY_CONFLICT" => {
                let events: Result<Vec<Event>, Broken> =
                    handed.rows.iter().map(Event::read).collect();
                let request = request(handed)?;
                let (key, digest) = request.unzip();
                let digest = digest.unwrap_or_default();
                if self
                    .state
                    .requests
                    .conflict(&events?, key.as_ref(), &digest)?
                {
                    self.mark("replayed-conflict");
                }
            }
            "STALE_OWNER" => self.mark("deposed-owner-refused"),
            "BUDGET_EXCEEDED" => self.mark("budget-refused"),
            "HOLD_ACTIVE" => self.mark("gate-refused"),
            "REVISION_CONFLICT" => self.mark("head-refused"),
            "DEADLINE_PASSED" => self.mark("late-refused"),
            _ => {}
        }
        Ok(())
    }

    /// The whole log as found: what is known stands first, then what was in doubt.
    pub(super) fn find(&mut self, log: &[Row]) -> Result<(), Broken> {
        self.doubt_batch();
        self.log.last = Last::Stored;
        self.state.epochs.begin();
        if let Err(broken) = self.known_first(log) {
            if !(self.is_damaged && self.is_detected) {
                return Err(broken);
            }
            return self.begin_again(log);
        }
        self.state.requests.opened += 1;
        let doubt = std::mem::take(&mut self.log.doubt);
        let mut rest = &log[self.log.rows.len()..];
        for handed in doubt {
            let there = handed.rows.len() <= rest.len()
                && handed
                    .rows
                    .iter()
                    .zip(rest)
                    .all(|(left, right)| left == right);
            if !there || handed.rows.is_empty() {
                self.mark("in-doubt-was-not-stored");
                continue;
            }
            self.mark("in-doubt-was-stored");
            self.state.epochs.begin();
            for row in &handed.rows {
                self.fold(row, whose(&handed))?;
            }
            rest = &rest[handed.rows.len()..];
        }
        if let Some(row) = rest.first() {
            let answered = if self.log.denied.contains(&row.hash) {
                "was answered as not stored"
            } else {
                "was not handed in, or not as a part"
            };
            let what = format!(
                "the event {} at sequence {} {answered}",
                hex(row.hash),
                self.log.rows.len() + 1
            );
            return Err(unknown(what));
        }
        self.mark("reopened");
        if self.state.holds.any_open() {
            self.mark("hold-over-restart");
        }
        Ok(())
    }

    fn known_first(&self, log: &[Row]) -> Result<(), Broken> {
        for (at, ((hash, bytes), row)) in self.log.rows.iter().zip(log).enumerate() {
            if *hash == row.hash && **bytes == *row.bytes {
                continue;
            }
            let sequence = at + 1;
            let made = aiws::digest::tagged("aiws-event", &row.bytes);
            if made.0 != row.hash {
                let what = format!(
                    "the event at sequence {sequence} is kept under {}, and hashes to {made}",
                    hex(row.hash)
                );
                return Err(Broken::new(Invariant::HashCovers, what));
            }
            let what = format!(
                "sequence {sequence} was acknowledged as {}, and is {} after a reopening",
                hex(*hash),
                hex(row.hash)
            );
            return Err(Broken::new(Invariant::PrefixStays, what));
        }
        if log.len() < self.log.rows.len() {
            let what = format!(
                "{} events were acknowledged, {} are there after a reopening",
                self.log.rows.len(),
                log.len()
            );
            return Err(Broken::new(Invariant::PrefixStays, what));
        }
        Ok(())
    }

    /// After a loss that was detected: the log is what is there now.
    fn begin_again(&mut self, log: &[Row]) -> Result<(), Broken> {
        let opened = self.state.requests.opened + 1;
        self.lossy = true;
        self.world.lossy = true;
        self.artifacts.lossy = true;
        self.outbox.lossy = true;
        self.state = State::default();
        self.log = Log::default();
        for row in log {
            self.fold(row, Whose::default())?;
        }
        self.state.requests.opened = opened;
        Ok(())
    }
}

fn whose(handed: &Handed) -> Whose {
    Whose {
        writer: handed.writer,
        epoch: handed.claims_epoch,
    }
}

/// The request of an append with its digest: what was said, else what its first event says.
fn request(handed: &Handed) -> Result<Option<(Key, String)>, Broken> {
    let first = handed.rows.first().map(Event::read).transpose()?;
    if let Some(said) = &handed.request {
        let mission = first.map_or(String::new(), |event| event.mission);
        let key = (mission, said.actor.clone(), said.request.clone());
        return Ok(Some((key, said.digest.clone())));
    }
    Ok(first.and_then(|event| Some((requests::key(&event)?, event.digest))))
}

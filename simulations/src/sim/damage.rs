//! The last step of a plan that has it: the disk lies, and that must be noticed.
//!
//! Invariant: after the lie nothing is promised but this: either something says so, or nothing was lost. Part of the
//! simulation.

use super::*;
use crate::disk::Strike;
use aiws::error::Code;
use praxis_journal::{Ledger, StoreError};

/// What is left after a lie of the disk.
#[derive(Debug)]
enum Left {
    /// Events, and nothing says that something is wrong.
    Quiet(Vec<Digest>),
    /// The store says that something is wrong.
    Told,
    /// The store fails, and what it says is not that it is damaged.
    Beside(String),
}

impl Sim {
    /// Damages the disk and opens what is left.
    pub(super) fn damage(&mut self, process: Process, step: &Step) -> Result<(), Broken> {
        let Step::Damage { fault, seed } = step else {
            return Ok(());
        };
        let Some(fault) = Fault::named(fault) else {
            return Ok(());
        };
        self.oracle.damaged();
        let log = match fault {
            Fault::BitFlip | Fault::Rollback => {
                drop(process.ledger.close());
                self.at_rest_damage(fault, u64::from(*seed))
            }
            _ => self.lies(process, fault, *seed),
        };
        if matches!(fault, Fault::BitFlip | Fault::Rollback) {
            self.struck.insert(fault);
        }
        self.trace
            .note(format_args!("after the damage: {}", words::plain(&log)));
        match log {
            // The outside checkpoint: everything that was acknowledged is there, as it was.
            Left::Quiet(log) => self.outside(&log, fault),
            Left::Told => {
                self.oracle.detected();
                Ok(())
            }
            Left::Beside(what) => Err(Broken::new(
                Invariant::Opens,
                format!("after {fault} the store says {what}, which tells nobody of damage"),
            )),
        }
    }

    fn at_rest_damage(&mut self, fault: Fault, seed: u64) -> Left {
        let disk = self.disk.settled();
        let names: Vec<String> = disk
            .names()
            .into_iter()
            .filter(|name| name.ends_with(".redb"))
            .collect();
        let Some(name) = names.get(usize::try_from(seed).unwrap_or(0) % names.len().max(1)) else {
            return Left::Beside("that there is nothing to damage".to_owned());
        };
        match fault {
            Fault::BitFlip => disk.flip(name, seed),
            _ => disk.rollback(name, seed),
        }
        self.disk = disk;
        self.open_damaged()
    }

    /// Some more commits on a disk that lies, then a loss of power.
    fn lies(&mut self, mut process: Process, fault: Fault, seed: u32) -> Left {
        let strike = match fault {
            Fault::LyingSync => Strike::LyingSync,
            Fault::MisdirectedWrite => Strike::MisdirectedWrite,
            _ => Strike::StaleRead,
        };
        self.disk.arm(u64::from(seed % 12), strike);
        for _ in 0..4 {
            // What it promises from now on the disk may have made up; the promises count all the same. A grant is
            // always taken, so each turn is a commit.
            let step = Step::Person {
                run: 0,
                does: crate::plan::Person::Grant,
                pick: 0,
            };
            if self.step(&mut process, &step).is_err() {
                // Seen by the oracle alone, which is not the product's detection: what is left is looked at.
                break;
            }
            drop(process.ledger.flush_index());
        }
        let detected = process.ledger.read_only().is_some();
        drop(process);
        if detected {
            return Left::Told;
        }
        self.disk = self.disk.after_loss(&power::loss(&power::DROP));
        self.open_damaged()
    }

    /// Opens, verifies and reads what is left.
    fn open_damaged(&self) -> Left {
        let read = |ledger: Ledger| -> Result<Vec<Digest>, StoreError> {
            if let Some(why) = ledger.read_only() {
                return Err(why.clone());
            }
            let report = ledger.verify(&mut |_, _| ())?;
            if let Some(finding) = report.findings.first() {
                let (place, what) = ("verify".to_owned(), finding.what.clone());
                return Err(StoreError::Corrupt { place, what });
            }
            let log: Result<Vec<Sealed>, StoreError> = (1..=ledger.view().sequence())
                .map(|sequence| {
                    let lost = || StoreError::Corrupt {
                        place: format!("sequence {sequence}"),
                        what: "it is not there".to_owned(),
                    };
                    ledger.read(sequence)?.ok_or_else(lost)
                })
                .collect();
            Ok(log?.iter().map(|sealed| sealed.hash).collect())
        };
        let opened = Ledger::open(Arc::new(self.disk.clone()), &self.store);
        match opened.and_then(read) {
            Ok(log) => Left::Quiet(log),
            Err(error) => match error.code() {
                // What a person understands as: something is wrong with what is there.
                Code::StoreCorrupt
                | Code::ChainBroken
                | Code::TailLost
                | Code::StoreTooNew
                | Code::StoreReadOnly => Left::Told,
                // An operation that failed on the way is no damage: it was that one operation.
                _ if self.disk.take_struck() => self.open_damaged(),
                _ => Left::Beside(error.to_string()),
            },
        }
    }

    /// Whoever kept the head sees what a rollback or a lying sync took away, and nobody else can; changed events are
    /// seen by everybody.
    fn outside(&mut self, log: &[Digest], fault: Fault) -> Result<(), Broken> {
        let kept = self.acknowledged.len().min(log.len());
        let shorter = log.len() < self.acknowledged.len();
        let changed = log[..kept] != self.acknowledged[..kept];
        let against_checkpoint = matches!(fault, Fault::Rollback | Fault::LyingSync);
        match changed || (shorter && !against_checkpoint) {
            true => Err(Broken::new(
                Invariant::PrefixStays,
                format!(
                    "{fault}: {} of {} events are left and nothing says so",
                    log.len(),
                    self.acknowledged.len()
                ),
            )),
            false => Ok(()),
        }
    }
}

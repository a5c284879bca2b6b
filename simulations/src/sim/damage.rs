//! The last step of a plan that has it: the disk lies, and that must be noticed.
//!
//! Invariant: after the lie nothing is promised but this: either something says so, or nothing was lost. Part of the
//! simulation.

use super::*;
use crate::disk::Strike;
use praxis_journal::Ledger;

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
        self.trace.note(format_args!("after the damage: {log:?}"));
        match log {
            // The outside checkpoint: everything that was acknowledged is there, as it was.
            Some(log) => self.outside(&log, fault),
            None => {
                self.oracle.detected();
                Ok(())
            }
        }
    }

    fn at_rest_damage(&mut self, fault: Fault, seed: u64) -> Option<Vec<Digest>> {
        let disk = self.disk.settled();
        let names: Vec<String> = disk
            .names()
            .into_iter()
            .filter(|name| name.ends_with(".redb"))
            .collect();
        let name = names.get(usize::try_from(seed).unwrap_or(0) % names.len().max(1))?;
        match fault {
            Fault::BitFlip => disk.flip(name, seed),
            _ => disk.rollback(name, seed),
        }
        self.disk = disk;
        self.open_damaged()
    }

    /// Some more commits on a disk that lies, then a loss of power.
    fn lies(&mut self, mut process: Process, fault: Fault, seed: u32) -> Option<Vec<Digest>> {
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
            return None;
        }
        self.disk = self.disk.after_loss(&power::loss(&power::DROP));
        self.open_damaged()
    }

    /// The events that are there, if nothing says that something is wrong.
    fn open_damaged(&self) -> Option<Vec<Digest>> {
        let ledger = Ledger::open(Arc::new(self.disk.clone()), &self.store).ok()?;
        if ledger.read_only().is_some() {
            return None;
        }
        let report = ledger.verify(&mut |_, _| ()).ok()?;
        if !report.findings.is_empty() {
            return None;
        }
        let log = self.read_log(&ledger).ok()?;
        Some(log.iter().map(|sealed: &Sealed| sealed.hash).collect())
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

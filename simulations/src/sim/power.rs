//! The end of a process and the beginning of the next: power lost, recovery, takeover.
//!
//! Invariant: the next process has nothing but what the disk has; a store on an honest disk opens for writing after every
//! loss. Part of the simulation.

use std::collections::BTreeMap;
use std::sync::Arc;

use aiws::decimal::Dec;
use aiws::digest::Digest;
use aiws::record::{Attempt, AttemptStatus};
use praxis_artifacts::FileArtifacts;
use praxis_journal::{Ledger, StoreError};
use praxis_journal_format::Sealed;
use praxis_model::command::{Body, RecoverOwnership};
use praxis_model::run::RunState;
use praxis_plant::{self as plant, Plant};

use super::commit::row;
use super::hops::{self, Ask, Who};
use super::process::{By, Owner, Prepared, Process, Then};
use super::{Flow, Sim};
use crate::cast;
use crate::disk::{CrashDisk, Loss, LossKind, short};
use crate::fault::Fault;
use crate::invariant::{Broken, Invariant};
use crate::plan::{Flush, LOSSES, Outage};

/// The class of a takeover's decision.
const RECOVERY: &str = "RECOVERY";

/// What survives, of an outage in data.
pub(super) fn loss(outage: &Outage) -> Loss {
    let at = usize::from(outage.kind) % LOSSES.len();
    let kind = match LOSSES[at] {
        Fault::KeepAll => LossKind::KeepAll,
        Fault::DropSubset => LossKind::DropSubset,
        Fault::KeepOne => LossKind::KeepOne,
        Fault::DropOne => LossKind::DropOne,
        Fault::Prefix => LossKind::Prefix,
        Fault::Sectors => LossKind::Sectors,
        Fault::ByteTear => LossKind::ByteTear,
        Fault::LengthLost => LossKind::LengthLost,
        Fault::LengthEarly => LossKind::LengthEarly,
        _ => LossKind::DropAll,
    };
    Loss {
        kind,
        seed: u64::from(outage.seed),
        // Which names survive is drawn as well, except where they are what the kind is about.
        names: match LOSSES[at] {
            Fault::NamesLost => outage.seed as usize % 3,
            _ => outage.seed as usize % 7,
        },
    }
}

impl Sim {
    /// The kind of fault of an outage.
    fn count_outage(&mut self, outage: &Outage, depth: usize) {
        let at = usize::from(outage.kind) % LOSSES.len();
        self.struck.insert(LOSSES[at]);
        let deeper = [
            Fault::CrashInRecovery,
            Fault::CrashTwiceInRecovery,
            Fault::CrashThriceInRecovery,
        ];
        if let Some(fault) = depth.checked_sub(1).and_then(|at| deeper.get(at)) {
            self.struck.insert(*fault);
        }
    }

    /// The power is gone: what survives, the recoveries that it goes in again, and the process that comes up.
    pub(super) fn power_lost(
        &mut self,
        process: Option<Process>,
    ) -> Result<Option<Process>, Broken> {
        drop(process);
        self.was_struck();
        self.oracle.power_lost();
        let (outage, again) = self.armed.take().unwrap_or((DROP, Vec::new()));
        self.count_outage(&outage, 0);
        self.beside(&outage)?;
        let mut disk = self.disk.after_loss(&loss(&outage));
        self.image(&disk);
        for (depth, outage) in again.iter().enumerate() {
            disk.crash_after(u64::from(outage.after));
            // It fails, or the power goes only while the files are closed.
            drop(self.open_on(&disk));
            self.struck_since |= disk.take_struck();
            self.count_outage(outage, depth + 1);
            disk = disk.after_loss(&loss(outage));
            self.image(&disk);
        }
        self.disk = disk;
        self.come_up()
    }

    /// Some more ways in which the same loss could have gone, each opened and compared with what was promised.
    fn beside(&mut self, outage: &Outage) -> Result<(), Broken> {
        for turn in 0..self.options.beside {
            let other = Outage {
                after: 0,
                kind: outage.kind.wrapping_add(turn),
                seed: outage
                    .seed
                    .wrapping_mul(31)
                    .wrapping_add(u32::from(turn) * 7919 + 1),
            };
            let disk = self.disk.after_loss(&loss(&other));
            if !self.image(&disk) {
                continue;
            }
            // What is armed is for the life that is gone on with.
            disk.heal();
            let found = match Ledger::open(Arc::new(disk), &self.store) {
                Ok(ledger) => match ledger.read_only() {
                    Some(why) => return Err(opens(why)),
                    None => self.walk(&ledger, |sealed| sealed.hash)?,
                },
                Err(StoreError::NotAStore { .. }) if !self.created => continue,
                Err(error) => return Err(opens(&error)),
            };
            self.compare(&found)?;
        }
        Ok(())
    }

    /// The acknowledged prefix is there; behind it stand appends that were in flight, each whole, in their order.
    fn compare(&self, found: &[Digest]) -> Result<(), Broken> {
        let lost = |what: String| Err(Broken::new(Invariant::PrefixStays, what));
        let acknowledged = &self.acknowledged;
        if found.len() < acknowledged.len() || found[..acknowledged.len()] != acknowledged[..] {
            return lost(format!(
                "{} events were acknowledged, {} are there",
                acknowledged.len(),
                found.len()
            ));
        }
        let mut rest = &found[acknowledged.len()..];
        for append in &self.in_flight {
            rest = rest.strip_prefix(&append[..]).unwrap_or(rest);
        }
        match rest.first() {
            None => Ok(()),
            Some(hash) => Err(Broken::new(
                Invariant::NothingUnknown,
                format!("event {hash} was not in flight"),
            )),
        }
    }

    /// Counts a state of the disk; true if it is new.
    pub(super) fn image(&mut self, disk: &CrashDisk) -> bool {
        let identity = disk.identity();
        self.trace.note(format_args!("image {identity}"));
        self.images.insert(short(&identity))
    }

    fn open_on(&self, disk: &CrashDisk) -> Result<(Ledger, FileArtifacts), StoreError> {
        let ledger = Ledger::open(Arc::new(disk.clone()), &self.store)?;
        let clock: Arc<dyn praxis_journal::Clock> = self.clock.clone();
        let artifacts = FileArtifacts::open_on(Box::new(disk.artifacts(clock)));
        let artifacts = artifacts.map_err(|error| StoreError::Io {
            what: error.to_string(),
        })?;
        Ok((ledger, artifacts))
    }

    /// The process dies; the machine and what it has in its cache live on.
    pub(super) fn killed(&mut self, process: Process) -> Result<Option<Process>, Broken> {
        drop(process);
        self.oracle.power_lost();
        self.come_up()
    }

    /// The process ends as it should.
    pub(super) fn restarted(&mut self, process: Process) -> Result<Option<Process>, Broken> {
        let mut process = process;
        self.end_flush(&mut process);
        // Nothing of it may hold a file once the next one opens them.
        let Process { ledger, .. } = process;
        // What it cannot write any more costs replay time.
        drop(ledger.close());
        if !self.disk.has_power() {
            return self.power_lost(None);
        }
        self.come_up()
    }

    /// Opens what is there; none where the power went while it was done.
    pub(super) fn come_up(&mut self) -> Result<Option<Process>, Broken> {
        let opened = match self.open_on(&self.disk) {
            Err(StoreError::NotAStore { .. }) if !self.created => {
                let id = cast::id("simulated").map_err(|error| self.internal(&error))?;
                let disk = Arc::new(self.disk.clone());
                Ledger::create(disk, id, &self.store).and_then(|ledger| {
                    drop(ledger);
                    self.open_on(&self.disk)
                })
            }
            opened => opened,
        };
        if !self.disk.has_power() {
            return Ok(None);
        }
        let (ledger, artifacts) = match opened {
            Ok(opened) => opened,
            // An operation that was to fail fails once; the next try finds it working.
            Err(_) if self.was_struck() => return self.come_up(),
            Err(error) => return Err(opens(&error)),
        };
        if let Some(why) = ledger.read_only() {
            if self.was_struck() {
                drop(ledger);
                return self.come_up();
            }
            return Err(opens(why));
        }
        self.created = true;
        if self.was_struck() || std::mem::take(&mut self.struck_since) {
            // An index that could not be read or written is made anew, and the cursors with it.
            self.oracle.index_lost();
            self.struck_since = false;
        }
        let log = match self.read_log(&ledger) {
            Ok(log) => log,
            Err(_) if self.was_struck() => return self.come_up(),
            Err(error) => return Err(error),
        };
        self.keep_frames(&ledger, &log);
        self.found(&log)?;
        let mission = hops::fold_mission(&log).map_err(|error| self.internal(&error))?;
        let process = Process {
            ledger,
            artifacts,
            log,
            mission,
            owners: BTreeMap::new(),
            held: Default::default(),
            heard: Default::default(),
            begun: false,
            flush: None,
        };
        self.see(&process)?;
        let mut process = process;
        // The flusher works about once a second, so most processes begin with an index that is written.
        if self.number().is_multiple_of(2) {
            return match self.index(&mut process, Flush::Whole)? {
                Flow::Goes if self.disk.has_power() => Ok(Some(process)),
                _ if self.disk.has_power() => self.killed(process),
                _ => Ok(None),
            };
        }
        Ok(Some(process))
    }

    /// The oracle sees the log and the artifacts as they were found.
    fn found(&mut self, log: &[Sealed]) -> Result<(), Broken> {
        self.trace.note(format_args!("found {} events", log.len()));
        let rows: Vec<_> = log.iter().map(row).collect();
        self.oracle.reopened(&rows)?;
        self.acknowledged = log.iter().map(|sealed| sealed.hash).collect();
        self.in_flight.clear();
        self.oracle.files(&self.disk.artifact_files())
    }

    pub(super) fn read_log(&self, ledger: &Ledger) -> Result<Vec<Sealed>, Broken> {
        self.walk(ledger, Sealed::clone)
    }

    /// Something of every event of the log, each checked unless these very bytes were checked at this place before.
    fn walk<T>(&self, ledger: &Ledger, take: impl Fn(&Sealed) -> T) -> Result<Vec<T>, Broken> {
        let end = ledger.view().sequence();
        let broken = |sequence: u64, error: StoreError| {
            Broken::new(
                Invariant::HashCovers,
                format!("sequence {sequence}: {error}"),
            )
        };
        let mut all = Vec::new();
        let mut next = 1;
        while next <= end {
            let frames = ledger.frames(next).map_err(|error| broken(next, error))?;
            let before = next;
            for (sequence, frame) in frames {
                if sequence != next || sequence > end {
                    break;
                }
                let known = self.frames.get(all.len());
                match known.filter(|(bytes, _)| *bytes == frame) {
                    Some((_, sealed)) => all.push(take(sealed)),
                    None => {
                        let read = ledger.read(sequence);
                        let read = read.map_err(|error| broken(sequence, error))?;
                        all.extend(read.as_ref().map(&take));
                    }
                }
                next += 1;
            }
            if next == before {
                let what = format!("sequence {next} of {end} is missing");
                return Err(Broken::new(Invariant::SequenceGapFree, what));
            }
        }
        Ok(all)
    }

    /// Keeps the bytes of what was read and checked.
    pub(super) fn keep_frames(&mut self, ledger: &Ledger, log: &[Sealed]) {
        for (at, sealed) in log.iter().enumerate() {
            let sequence = at as u64 + 1;
            if self
                .frames
                .get(at)
                .is_some_and(|(_, kept)| kept.hash == sealed.hash)
            {
                continue;
            }
            self.frames.truncate(at);
            let Ok(chunk) = ledger.frames(sequence) else {
                return;
            };
            let rest = log[at..].iter().cloned();
            let frames = chunk.into_iter().map(|(_, bytes)| bytes);
            self.frames.extend(frames.zip(rest));
            return;
        }
    }

    /// Every live run gets a new owner, which takes it over from the one that is gone.
    pub(super) fn take_charge(&mut self, process: &mut Process) -> Result<Flow, Broken> {
        for run in 0..self.cast.runs() {
            if process.owner(run, 0).is_some() {
                continue;
            }
            let flow = self.take_over(process, run, false)?;
            if flow == Flow::Dies {
                return Ok(flow);
            }
        }
        Ok(Flow::Goes)
    }

    /// A new owner for a live run; with `beside`, what the old one decided meanwhile goes with the same commit.
    pub(super) fn take_over(
        &mut self,
        process: &mut Process,
        run: u8,
        beside: bool,
    ) -> Result<Flow, Broken> {
        let Some(state) = self.folded(process, run)? else {
            return Ok(Flow::Goes);
        };
        // An ended run needs an owner as long as somebody has to say what an attempt did.
        if at_rest(&state) {
            return Ok(Flow::Goes);
        }
        let number = self.number();
        let epoch = state.epoch;
        self.trace.note(format_args!(
            "owner {number} takes run {run} over from epoch {epoch}"
        ));
        if plant::is(Plant::ActsBeforeTakeover) {
            for attempt in super::people::uncertain(&state).into_iter().chain(
                state
                    .attempts
                    .values()
                    .filter(|it| it.status == AttemptStatus::Dispatched)
                    .map(|it| it.attempt_id.clone()),
            ) {
                self.oracle.called(number, attempt.as_str())?;
            }
        }
        let owners = process.owners.entry(run).or_default();
        owners.push(Owner {
            number,
            state,
            epoch,
            tokens: BTreeMap::new(),
            looked: Vec::new(),
            charged: plant::is(Plant::RestartWithoutTakeover),
        });
        if plant::is(Plant::RestartWithoutTakeover) {
            return Ok(Flow::Goes);
        }
        let body = Body::RecoverOwnership(RecoverOwnership {
            expected_epoch: Dec::from_u64(epoch),
            reason: "the owner is gone".to_owned(),
            decision_ref: None,
        });
        let ask = Ask::of(Who::Engine(RECOVERY), body);
        let then = Then::Charge(number);
        let Some(mut prepared) = self.decide(process, run, number, &ask, then)? else {
            self.only_in_charge(process, run, number);
            return Ok(Flow::Goes);
        };
        // It acts under the epoch that it asks for, once that is granted.
        if let By::Owner { epoch, next, .. } = &mut prepared.by {
            *epoch = next.epoch;
        }
        let old = if beside {
            self.old_beside(process, run, &prepared)?
        } else {
            None
        };
        let flow = self.commit(process, std::iter::once(prepared).chain(old).collect())?;
        self.only_in_charge(process, run, number);
        Ok(flow)
    }

    /// An owner that could not take the run over acts no more.
    fn only_in_charge(&self, process: &mut Process, run: u8, number: u32) {
        if let Some(owners) = process.owners.get_mut(&run) {
            owners.retain(|owner| {
                owner.number != number || owner.epoch == owner.state.epoch && owner.charged
            });
        }
    }

    /// What the old owner hands in with the same commit, linked to the takeover itself: only the epoch is wrong.
    fn old_beside(
        &mut self,
        process: &mut Process,
        run: u8,
        taken: &Prepared,
    ) -> Result<Option<Prepared>, Broken> {
        let By::Owner { next, .. } = &taken.by else {
            return Ok(None);
        };
        let mut ahead = (**next).clone();
        let Some(old) = process.owner(run, 1) else {
            return Ok(None);
        };
        ahead.epoch = old.epoch;
        let (number, before) = (old.number, std::mem::replace(&mut old.state, ahead));
        let act = crate::plan::Act {
            run,
            owner: 1,
            pick: 0,
            fate: crate::world::Fate::Applied,
            cost: 1,
            kill: crate::plan::Kill::No,
            paired: false,
        };
        let prepared = self.prepare(process, &act)?;
        if let Some(old) = process.numbered(run, number) {
            old.state = before;
        }
        Ok(prepared)
    }
}

/// Whether nothing of the run is left to do.
pub(super) fn at_rest(state: &RunState) -> bool {
    let ended = |attempt: &Attempt| {
        !matches!(
            attempt.status,
            AttemptStatus::Prepared | AttemptStatus::Dispatched | AttemptStatus::Unknown
        )
    };
    state.lifecycle.is_terminal() && state.attempts.values().all(ended)
}

/// Nothing survives: how a process ends whose outage nobody drew.
pub(super) const DROP: Outage = Outage {
    after: 0,
    kind: 0,
    seed: 0,
};

fn opens(why: &StoreError) -> Broken {
    Broken::new(Invariant::Opens, format!("{}: {why}", why.code()))
}

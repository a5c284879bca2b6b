//! Crash scenarios: what is done, where the power goes, and what of the unsynced writes survives.
//!
//! Invariant: no state that the disk could be in after a crash loses an acknowledged event or keeps half a batch; the
//! first one that does ends the scenario. Called by the crash tests, and by the tests that plant a defect.

use std::collections::BTreeSet;
use std::fmt;

use aiws::digest::Digest;
use praxis_journal::{Append, Ledger, Options};

use crate::crash::{HOT_LOG, Told, Violation, drive, drive_on, go_on, judge};
use crate::disk::{CrashDisk, Failure, Kind, Survival};
use crate::fault::Fault;
use crate::script::Script;

mod artifacts;
mod backup;
mod damage;
mod errors;
mod exhaustive;
mod index;
mod log;
mod losses;
mod reads;
mod recovery;
mod sync;
mod table;

pub use exhaustive::ALL as EXHAUSTIVE_ONES;
pub use table::ALL;

/// Up to this many pending writes all subsets are tried.
const EXHAUSTIVE: usize = 14;

/// One in so many distinct states is not only judged but also goes on to the end of the story.
const GOES_ON: usize = 32;

/// A scenario that can be run by its name.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What happens in it and what of it is enumerated.
    pub what: &'static str,
    /// The kinds of fault that it makes.
    pub faults: &'static [Fault],
    work: fn(&mut Count) -> Result<(), Violation>,
}

impl Scenario {
    /// The scenario of a name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter()
            .chain(EXHAUSTIVE_ONES.iter().copied())
            .find(|scenario| scenario.name == name)
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// The first promise that is broken, with the state in which it was.
    pub fn run(&self) -> Result<Count, Violation> {
        let mut count = Count::default();
        (self.work)(&mut count).map(|()| count)
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

/// What a scenario went through.
#[derive(Clone, Debug, Default)]
pub struct Count {
    /// Crash states that were made.
    pub tried: u64,
    /// The most writes that were pending at once.
    pub most_pending: usize,
    images: BTreeSet<(Digest, usize, bool)>,
}

impl Count {
    /// How many distinct images were judged.
    pub fn judged(&self) -> usize {
        self.images.len()
    }

    /// The distinct images, whatever was promised of them.
    pub fn identities(&self) -> impl Iterator<Item = u128> + '_ {
        self.images
            .iter()
            .map(|(identity, ..)| crate::disk::short(identity))
    }

    /// Counts a damaged image, which is not judged by the promises of a crash.
    fn damaged(&mut self, disk: &CrashDisk) {
        self.tried += 1;
        self.images.insert((disk.identity(), 0, false));
    }

    /// Counts an image; true unless it was there under the same promises.
    fn is_new(&mut self, disk: &CrashDisk, promises: usize) -> bool {
        self.tried += 1;
        self.images.insert((disk.identity(), promises, false))
    }

    /// Judges a disk unless the same image was judged under the same promises.
    fn state(
        &mut self,
        disk: &CrashDisk,
        story: &Story,
        told: &Told,
        what: fmt::Arguments<'_>,
    ) -> Result<(), Violation> {
        self.fresh(disk, story, told, what).map(|_| ())
    }

    /// The same; true if it is new.
    fn fresh(
        &mut self,
        disk: &CrashDisk,
        story: &Story,
        told: &Told,
        what: fmt::Arguments<'_>,
    ) -> Result<bool, Violation> {
        self.tried += 1;
        let image = (disk.identity(), told.acknowledged.len(), told.denied);
        if !self.images.insert(image) {
            return Ok(false);
        }
        let at = |Violation(violation)| Violation(format!("{what}: {violation}"));
        let ledger = judge(disk, &story.options, told).map_err(at)?;
        if self.images.len() % GOES_ON == 1 {
            go_on(ledger, told, &story.batches).map_err(at)?;
        }
        Ok(true)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} crash states, {} distinct images judged, at most {} writes pending",
            self.tried,
            self.images.len(),
            self.most_pending
        )
    }
}

/// What is done before and after the crash.
struct Story {
    options: Options,
    batches: Vec<Vec<Append>>,
    /// Whether the index is written after each batch.
    flush: bool,
    /// And after the last one.
    last_flush: bool,
    /// An operation that fails, after which its batch is handed in again.
    fails: Option<(u64, Failure)>,
}

impl Story {
    /// Six appends, one of them in two parts, each a commit of its own.
    fn six(flush: bool) -> Result<Self, Violation> {
        Self::six_filled(flush, 400)
    }

    /// The same with so many bytes of filling in each event.
    fn six_filled(flush: bool, filling: usize) -> Result<Self, Violation> {
        let mut script = Script::new("mission")?;
        script.filling = filling;
        let batches = vec![
            vec![script.start_run("one")?],
            vec![script.note("one")?],
            vec![script.spend("one", 7)?],
            vec![script.start_run("two")?],
            vec![script.note("two")?],
            vec![script.complete("one", 1)?],
        ];
        Ok(Self {
            options: Options::default(),
            batches,
            flush,
            last_flush: true,
            fails: None,
        })
    }

    /// Two commits of several appends each.
    fn batched() -> Result<Self, Violation> {
        let mut story = Self::six(false)?;
        let mut batches = std::mem::take(&mut story.batches).into_iter();
        let first = batches.by_ref().take(3).flatten().collect();
        story.batches = vec![first, batches.flatten().collect()];
        Ok(story)
    }

    /// Some appends of which every one but the first begins a new segment.
    fn rolling(appends: usize) -> Result<Self, Violation> {
        let mut story = Self::six(false)?;
        story.options.segment_bytes = 1;
        story.batches.truncate(appends);
        Ok(story)
    }

    /// How many operations the creation takes.
    fn created(&self) -> usize {
        let disk = CrashDisk::new();
        drop(drive(&disk, &self.options, &[], |_, _| ()));
        disk.kinds().len()
    }

    fn between(&self) -> impl FnMut(usize, &mut Ledger) {
        let (flush, last) = (self.flush, self.batches.len().saturating_sub(1));
        let last_flush = self.last_flush;
        move |number, ledger| {
            if flush && (last_flush || number < last) {
                // Refused once the power is gone, which is what a scenario is about.
                drop(ledger.flush_index());
            }
        }
    }

    /// The story up to so many batches.
    fn first(&self, batches: usize) -> Self {
        Self {
            options: self.options.clone(),
            batches: self.batches[..batches].to_vec(),
            ..*self
        }
    }

    /// Tells it on a disk.
    fn tell(&self, disk: &CrashDisk) -> (Told, Option<Ledger>) {
        let tries = match self.fails {
            Some((at, failure)) => {
                disk.fail_at(at, failure);
                2
            }
            None => 1,
        };
        drive_on(disk, &self.options, &self.batches, tries, self.between())
    }

    /// How many operations the undisturbed story takes until the ledger is closed.
    fn length(&self) -> usize {
        let disk = CrashDisk::new();
        let open = self.tell(&disk);
        let length = disk.kinds().len();
        drop(open);
        length
    }

    /// The kinds of the operations of the undisturbed story.
    fn kinds(&self) -> Vec<Kind> {
        let disk = CrashDisk::new();
        drop(self.tell(&disk));
        disk.kinds()
    }

    /// The disk and what was told when the power goes at an operation.
    fn crashed(&self, operation: usize) -> (CrashDisk, Told) {
        let disk = CrashDisk::new();
        disk.crash_at(operation as u64);
        let (told, ledger) = self.tell(&disk);
        drop(ledger);
        (disk, told)
    }
}

/// The operations at which a sync begins: there the most writes are pending, and every state that an earlier crash of
/// the same interval can leave is one of the subsets.
fn syncs(kinds: &[Kind]) -> impl Iterator<Item = usize> + '_ {
    (0..kinds.len()).filter(|at| matches!(kinds[*at], Kind::Sync | Kind::SyncNames))
}

/// The mask of so many pending writes, all of them surviving.
fn all(pending: usize) -> u64 {
    1u64.checked_shl(u32::try_from(pending).unwrap_or(u32::MAX))
        .map_or(u64::MAX, |bit| bit - 1)
}

/// None, all, every other one, each alone, all but each, each prefix.
fn edges(pending: usize) -> BTreeSet<u64> {
    let all_of = all(pending);
    let ones = (0..pending).flat_map(|at| [1 << at, all_of & !(1 << at), all(at)]);
    let few = [0, all_of, 0x5555_5555 & all_of, 0xaaaa_aaaa & all_of];
    few.into_iter().chain(ones).collect()
}

/// The masks of a commit's pending writes: every one, for few enough writes.
fn subsets(pending: usize) -> Result<std::ops::RangeInclusive<u64>, Violation> {
    match pending <= EXHAUSTIVE {
        true => Ok(0..=all(pending)),
        false => Err(Violation(format!(
            "{pending} pending writes are too many to try all subsets"
        ))),
    }
}

/// Survival of some of the hot log's writes and of no other change.
fn log_writes(mask: u64) -> Survival {
    Survival {
        mask,
        ..Survival::default()
    }
}

/// The hot log's pending writes.
fn pending(disk: &CrashDisk, count: &mut Count) -> usize {
    let pending = disk.pending(HOT_LOG);
    count.most_pending = count.most_pending.max(pending);
    pending
}

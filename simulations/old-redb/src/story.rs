//! One story: records are appended, the power goes at a sync, again inside the recovery, and what is found is judged.
//!
//! Invariant: all of it follows from the seed; the judge knows only what was answered. Called once for each state.

use std::sync::{Arc, Mutex, PoisonError};

use praxis_journal::{Disk as _, StorageBackend};
use praxis_simulations::disk::{CrashDisk, Survival};
use praxis_simulations::rng::Rng;

use crate::engine::Engine;
use crate::store::Way;

/// The one file.
const FILE: &str = "records.redb";

/// The most records of a story.
const RECORDS: u64 = 6;

/// The longest record in bytes.
const RECORD_BYTES: u64 = 300;

/// The most syncs of a recovery that are told apart; one further is a recovery that comes to its end.
const RECOVERY_SYNCS: u64 = 5;

/// A file that remembers where its syncs were.
#[derive(Clone, Debug)]
pub struct File {
    disk: CrashDisk,
    inner: Arc<dyn StorageBackend>,
    syncs: Arc<Mutex<Syncs>>,
}

/// How many syncs there were, and at which the power goes.
#[derive(Debug, Default)]
struct Syncs {
    begun: u64,
    cut: Option<u64>,
}

impl File {
    fn open(disk: &CrashDisk, cut: Option<u64>) -> Result<Self, String> {
        let inner = disk.open(FILE, true).map_err(|error| error.to_string())?;
        Ok(Self {
            disk: disk.clone(),
            inner,
            syncs: Arc::new(Mutex::new(Syncs { begun: 0, cut })),
        })
    }
}

impl StorageBackend for File {
    fn len(&self) -> std::io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        let mut syncs = self.syncs.lock().unwrap_or_else(PoisonError::into_inner);
        if syncs.cut == Some(syncs.begun) {
            self.disk.crash_at(self.disk.operations());
        }
        syncs.begun += 1;
        drop(syncs);
        self.inner.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.inner.write(offset, data)
    }
}

/// A record of a story.
fn record(rng: &mut Rng) -> Vec<u8> {
    let len = 1 + rng.below(RECORD_BYTES);
    (0..len).map(|_| rng.small(255)).collect()
}

/// Which bytes of the torn write are new.
#[derive(Clone, Copy, Debug)]
enum Tear {
    Head,
    Tail,
    Middle,
    AllButMiddle,
}

/// The disk after a loss of power: any subset of the pending writes, and often one of them torn at bytes.
fn lost(disk: &CrashDisk, rng: &mut Rng) -> Result<CrashDisk, String> {
    let pending = disk.pending(FILE);
    let all = 1u64
        .checked_shl(pending as u32)
        .map_or(u64::MAX, |bit| bit - 1);
    let mask = match rng.below(4) {
        0 => rng.number() & all,
        1 => 0,
        _ => all,
    };
    let survival = |mask| Survival {
        mask,
        ..Survival::default()
    };
    if pending == 0 || rng.chance(25) {
        return Ok(disk.after_power_loss(FILE, &survival(mask)));
    }
    // The first writes of an interval are the pages, the last is most often the header: each has its share.
    let index = match rng.chance(50) {
        true => pending as u64 - 1,
        false => rng.below(pending as u64),
    };
    let len = disk.pending_len(FILE, index as usize) as u64;
    let bit = 1u64.checked_shl(index as u32).unwrap_or(0);
    let image = |mask| {
        let disk = disk.after_power_loss(FILE, &survival(mask));
        disk.bytes(FILE).ok_or("the file is gone")
    };
    let (old, new) = (image(mask & !bit)?, image(mask | bit)?);
    let found = CrashDisk::new();
    found.put(FILE, torn(old, &new, len, rng));
    Ok(found)
}

/// The old image with some bytes of a write of that length as they are in the new one.
fn torn(mut old: Vec<u8>, new: &[u8], len: u64, rng: &mut Rng) -> Vec<u8> {
    old.resize(new.len().max(old.len()), 0);
    let differs = |at: &usize| old.get(*at) != new.get(*at);
    let Some(first) = (0..new.len()).find(differs) else {
        return old;
    };
    let last = (first..new.len()).rev().find(differs).unwrap_or(first);
    let span = (last + 1 - first) as u64;
    // A tear may also lie where both are the same; what differs is what counts.
    let (one, two) = (rng.below(span + 1), rng.below(span.min(len.max(1)) + 1));
    let (low, high) = (one.min(two) as usize + first, one.max(two) as usize + first);
    let tear = [Tear::Head, Tear::Tail, Tear::Middle, Tear::AllButMiddle];
    let tear = *rng.pick(&tear).unwrap_or(&Tear::Head);
    for at in first..=last {
        let is_new = match tear {
            Tear::Head => at < low,
            Tear::Tail => at >= low,
            Tear::Middle => (low..high).contains(&at),
            Tear::AllButMiddle => !(low..high).contains(&at),
        };
        if is_new {
            old[at] = new[at];
        }
    }
    old
}

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Whether acknowledged records are gone and nobody says so; else the file is of no use, which at least is seen.
    pub lost: bool,
    /// In words.
    pub what: String,
}

impl Finding {
    fn of(lost: bool, what: String) -> Option<Self> {
        Some(Self { lost, what })
    }
}

/// Tells the story of a seed; what was broken, if something was.
///
/// # Errors
/// The harness itself failed: the other program is gone, a store could not even be made on a disk without faults.
pub fn tell(engine: &mut dyn Engine, way: Way, seed: u64) -> Result<Option<Finding>, String> {
    let mut rng = Rng::new(seed);
    let records: Vec<_> = (0..2 + rng.below(RECORDS - 1))
        .map(|_| record(&mut rng))
        .collect();
    let (disk, told) = crashed(engine, way, &records, &mut rng)?;
    let first = lost(&disk, &mut rng)?;
    // The recovery, and the power goes again.
    let again = rng.below(RECOVERY_SYNCS + 1);
    let found = match again {
        RECOVERY_SYNCS => first,
        sync => {
            let file = File::open(&first, Some(sync))?;
            // What it answers is not judged: the power may have gone.
            drop(engine.open(&file, way)?);
            engine.power_lost(&file, &first)?;
            lost(&first, &mut rng)?
        }
    };
    let file = File::open(&found, None)?;
    let verdict = judge(engine, way, &file, &records, told)?;
    engine.close(&file)?;
    let after = match again {
        RECOVERY_SYNCS => "after one loss of power".to_owned(),
        sync => format!(
            "after a second loss of power, at sync {} of the recovery",
            sync + 1
        ),
    };
    Ok(verdict.map(|Finding { lost, what }| Finding {
        lost,
        what: format!("{what} ({after})"),
    }))
}

/// Appends until the power goes at a sync; the disk then, and how many records were acknowledged.
fn crashed(
    engine: &mut dyn Engine,
    way: Way,
    records: &[Vec<u8>],
    rng: &mut Rng,
) -> Result<(CrashDisk, usize), String> {
    let disk = CrashDisk::new();
    let made = disk.create(FILE).and_then(|_| disk.sync_directory());
    made.map_err(|error| error.to_string())?;
    let file = File::open(&disk, None)?;
    engine.open(&file, way)??;
    engine.append(&file, 0, &records[0])??;
    // A creation that is cut short is another story: the journal makes its files under another name.
    let mut syncs = file.syncs.lock().unwrap_or_else(PoisonError::into_inner);
    syncs.cut = Some(syncs.begun + rng.below(records.len() as u64 * 2));
    drop(syncs);
    let mut told = 1;
    for (number, record) in records.iter().enumerate().skip(1) {
        match engine.append(&file, number as u64, record)? {
            Ok(()) => told += 1,
            Err(_) => break,
        }
    }
    engine.power_lost(&file, &disk)?;
    Ok((disk, told))
}

/// Every acknowledged record is there, the one in flight whole or not at all, and nothing else.
fn judge(
    engine: &mut dyn Engine,
    way: Way,
    file: &File,
    records: &[Vec<u8>],
    told: usize,
) -> Result<Option<Finding>, String> {
    if let Err(error) = engine.open(file, way)? {
        return Ok(Finding::of(
            false,
            format!("the file does not open: {error}"),
        ));
    }
    let found = match engine.records(file)? {
        Ok(found) => found,
        Err(error) => return Ok(Finding::of(false, format!("it cannot be read: {error}"))),
    };
    if found.len() < told {
        let what = format!(
            "{told} records were acknowledged, {} are there",
            found.len()
        );
        return Ok(Finding::of(true, what));
    }
    if found.len() > records.len().min(told + 1) {
        let what = format!(
            "{} records are there, more than were handed in",
            found.len()
        );
        return Ok(Finding::of(true, what));
    }
    let wanted = (0..).zip(records.iter().cloned());
    match found
        .into_iter()
        .zip(wanted)
        .all(|(found, wanted)| found == wanted)
    {
        true => Ok(None),
        false => Ok(Finding::of(true, "a record holds other bytes".to_owned())),
    }
}

impl File {
    /// The power goes now, if it has not yet: whatever the engine does when it lets the file go reaches no disk.
    pub fn cut(&self) {
        self.disk.crash_at(self.disk.operations());
    }
}

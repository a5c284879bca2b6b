//! What a loss of power leaves, for every file at once, and the faults that strike a single operation.
//!
//! Invariant: the same loss of the same disk leaves the same bytes; what was synced survives every loss, unless a sync lied.
//! Part of the disk.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use super::image::Image;
use super::world::{FileState, Pending, World};
use super::{CrashDisk, Kind};
use crate::fault::Fault;

/// Which of the unsynced writes survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// None.
    DropAll,
    /// All.
    KeepAll,
    /// Any of them.
    DropSubset,
    /// One.
    KeepOne,
    /// All but one.
    DropOne,
    /// The first so many.
    Prefix,
    /// Each sector of each by itself.
    Sectors,
    /// The first so many, and of the next the first bytes.
    ByteTear,
    /// Data, but no change of a length.
    LengthLost,
    /// Changes of length, but no data.
    LengthEarly,
}

impl LossKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::DropAll,
        Self::KeepAll,
        Self::DropSubset,
        Self::KeepOne,
        Self::DropOne,
        Self::Prefix,
        Self::Sectors,
        Self::ByteTear,
        Self::LengthLost,
        Self::LengthEarly,
    ];
}

/// A loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Which writes survive.
    pub kind: LossKind,
    /// What is drawn from.
    pub seed: u64,
    /// How many of the unsynced changes of names survive, oldest first.
    pub names: usize,
}

/// A fault of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strike {
    /// A sync fails; the pages stay in the cache and count as clean.
    SyncErrorKept,
    /// A sync fails; the pages are thrown away.
    SyncErrorReverted,
    /// A sync of the directory fails.
    DirectorySyncError,
    /// A change of a name fails.
    NameError,
    /// A write finds the disk full.
    FullOnWrite,
    /// A growing file finds the disk full.
    FullOnGrowth,
    /// A write fails.
    WriteError,
    /// A read fails.
    ReadError,
    /// A read ends early.
    ShortRead,
    /// The storage engine panics.
    EnginePanic,
    /// From then on syncs of data are confirmed and not made.
    LyingSync,
    /// A write lands in the next sector.
    MisdirectedWrite,
    /// A read returns what stood there before the last sync.
    StaleRead,
}

impl Strike {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::SyncErrorKept,
        Self::SyncErrorReverted,
        Self::DirectorySyncError,
        Self::NameError,
        Self::FullOnWrite,
        Self::FullOnGrowth,
        Self::WriteError,
        Self::ReadError,
        Self::ShortRead,
        Self::EnginePanic,
        Self::LyingSync,
        Self::MisdirectedWrite,
        Self::StaleRead,
    ];

    /// The kind in the catalogue.
    pub fn fault(self) -> Fault {
        match self {
            Self::SyncErrorKept => Fault::SyncErrorKept,
            Self::SyncErrorReverted => Fault::SyncErrorReverted,
            Self::DirectorySyncError => Fault::DirectorySyncError,
            Self::NameError => Fault::NameError,
            Self::FullOnWrite => Fault::FullOnWrite,
            Self::FullOnGrowth => Fault::FullOnGrowth,
            Self::WriteError => Fault::WriteError,
            Self::ReadError => Fault::ReadError,
            Self::ShortRead => Fault::ShortRead,
            Self::EnginePanic => Fault::EnginePanic,
            Self::LyingSync => Fault::LyingSync,
            Self::MisdirectedWrite => Fault::MisdirectedWrite,
            Self::StaleRead => Fault::StaleRead,
        }
    }

    /// The strike of a kind in the catalogue, if it is one.
    pub fn of(fault: Fault) -> Option<Self> {
        Self::ALL.into_iter().find(|strike| strike.fault() == fault)
    }

    /// Whether it strikes an operation of this kind; none for a read.
    fn fits(self, kind: Option<Kind>) -> bool {
        match self {
            Self::SyncErrorKept | Self::SyncErrorReverted | Self::LyingSync => {
                kind == Some(Kind::Sync)
            }
            Self::DirectorySyncError => kind == Some(Kind::SyncNames),
            Self::NameError => kind == Some(Kind::Name),
            Self::FullOnWrite | Self::WriteError | Self::MisdirectedWrite => {
                kind == Some(Kind::Write)
            }
            Self::FullOnGrowth => kind == Some(Kind::Length),
            Self::ReadError | Self::ShortRead | Self::StaleRead => kind.is_none(),
            Self::EnginePanic => matches!(kind, Some(Kind::Write | Kind::Length)),
        }
    }

    /// What the operation answers, where it answers with an error.
    pub(super) fn error(self) -> Option<io::Error> {
        Some(match self {
            Self::FullOnWrite | Self::FullOnGrowth => io::ErrorKind::StorageFull.into(),
            Self::ShortRead => io::ErrorKind::UnexpectedEof.into(),
            Self::LyingSync | Self::MisdirectedWrite | Self::StaleRead => return None,
            _ => super::device_error(),
        })
    }
}

impl World {
    /// The armed fault that strikes an operation now, if one does.
    pub(super) fn strikes(&mut self, kind: Option<Kind>) -> Option<Strike> {
        let now = self.operations;
        let armed = self.armed.iter();
        let due = armed
            .into_iter()
            .position(|(at, strike)| *at <= now && strike.fits(kind));
        let strike = match due {
            Some(at) => self.armed.remove(at).1,
            None => self.counted(kind)?,
        };
        self.struck.insert(strike.fault());
        self.struck_now = true;
        self.lying |= strike == Strike::LyingSync;
        Some(strike)
    }

    /// The fault that was to strike this operation by its number among those of its kind.
    fn counted(&mut self, kind: Option<Kind>) -> Option<Strike> {
        let (left, strike) = self.nth.filter(|(_, strike)| strike.fits(kind))?;
        self.nth = left.checked_sub(1).map(|left| (left, strike));
        (left == 0).then_some(strike)
    }
}

impl CrashDisk {
    /// The power goes when so many operations more have begun; with 0 it goes now.
    pub fn crash_after(&self, operations: u64) {
        let mut world = self.world();
        world.crash_at = Some(world.operations + operations);
        world.dead |= operations == 0;
    }

    /// Whether the power is on.
    pub fn has_power(&self) -> bool {
        !self.world().dead
    }

    /// A fault strikes the first operation of its kind that comes at or after so many operations from now.
    pub fn arm(&self, after: u64, strike: Strike) {
        let mut world = self.world();
        let at = world.operations + after;
        world.armed.push((at, strike));
    }

    /// A fault strikes the operation of its kind that comes after so many others of its kind.
    pub fn arm_nth(&self, others: u64, strike: Strike) {
        self.world().nth = Some((others, strike));
    }

    /// Whether a fault has struck since this was last asked.
    pub fn take_struck(&self) -> bool {
        std::mem::take(&mut self.world().struck_now)
    }

    /// The kinds of fault that have struck.
    pub fn struck(&self) -> BTreeSet<Fault> {
        self.world().struck.clone()
    }

    /// Nothing strikes any more, no loss of power is due, and syncs tell the truth.
    pub fn heal(&self) {
        let mut world = self.world();
        world.armed.clear();
        world.nth = None;
        world.misdirect = false;
        world.crash_at = None;
        world.fail_at = None;
        world.fail_sync = None;
        world.lying = false;
        world.struck_now = false;
    }

    /// The names that the running system sees.
    pub fn names(&self) -> Vec<String> {
        self.world().names.keys().cloned().collect()
    }

    /// A bit of a file changes at rest.
    pub fn flip(&self, name: &str, seed: u64) {
        let mut world = self.world();
        let Some(inode) = world.names.get(name).copied() else {
            return;
        };
        let file = &mut world.files[inode];
        let Some(last) = file.cache.len().checked_sub(1) else {
            return;
        };
        let at = below(mix(seed), last + 1);
        file.cache.flip(at, (seed % 8) as u8);
        file.durable = file.cache.clone();
        file.pending.clear();
    }

    /// A file becomes what it was at an earlier sync.
    pub fn rollback(&self, name: &str, seed: u64) {
        let mut world = self.world();
        let Some(inode) = world.names.get(name).copied() else {
            return;
        };
        let file = &mut world.files[inode];
        let at = below(mix(seed), file.kept.len().max(1));
        if let Some(image) = file.kept.get(at).cloned() {
            file.cache = image.clone();
            file.durable = image;
            file.pending.clear();
        }
    }

    /// The disk as it is found after a loss of power now.
    pub fn after_loss(&self, loss: &Loss) -> Self {
        let world = self.world();
        let mut names = world.durable_names.clone();
        let kept = world.pending_names.iter().take(loss.names);
        kept.for_each(|change| change.apply(&mut names));
        let files = world.files.iter().enumerate();
        let files = files
            .map(|(inode, file)| {
                let seed = mix(loss.seed ^ (inode as u64).wrapping_mul(0x9e37_79b9));
                let bytes = survivors(file, loss.kind, seed);
                FileState {
                    kept: file.kept.clone(),
                    at_ms: file.at_ms,
                    ..FileState::settled(bytes)
                }
            })
            .collect();
        let found = World {
            files,
            durable_names: names.clone(),
            names,
            struck: world.struck.clone(),
            // What was armed strikes the next life too.
            armed: world
                .armed
                .iter()
                .map(|(at, strike)| (at.saturating_sub(world.operations), *strike))
                .collect(),
            ..World::default()
        };
        Self {
            world: Arc::new(Mutex::new(found)),
        }
    }
}

/// The bytes of a file after a loss of power.
fn survivors(file: &FileState, kind: LossKind, seed: u64) -> Image {
    let mut bytes = file.durable.clone();
    let count = file.pending.len();
    let one = below(seed, count.max(1));
    for (at, pending) in file.pending.iter().enumerate() {
        let length = matches!(pending, Pending::Length(_));
        let drawn = mix(seed.wrapping_add(at as u64));
        let survives = match kind {
            LossKind::DropAll => false,
            LossKind::KeepAll => true,
            LossKind::DropSubset => drawn.is_multiple_of(2),
            LossKind::KeepOne => at == one,
            LossKind::DropOne => at != one,
            LossKind::Prefix => at < one,
            LossKind::Sectors => {
                sectors(pending, drawn, &mut bytes);
                continue;
            }
            LossKind::ByteTear if at == one => {
                let cut = below(drawn, pending.len().max(1));
                pending.apply_part(cut, &mut bytes);
                continue;
            }
            LossKind::ByteTear => at < one,
            LossKind::LengthLost => !length,
            LossKind::LengthEarly => length,
        };
        if survives {
            pending.apply(&mut bytes);
        }
    }
    match kind {
        // What a write put behind the old end goes with the length.
        LossKind::LengthLost => bytes.resize(file.durable.len()),
        LossKind::LengthEarly => bytes.resize(file.cache.len()),
        _ => {}
    }
    bytes
}

/// Each sector of a write survives or not by itself.
fn sectors(pending: &Pending, seed: u64, image: &mut Image) {
    let Pending::Write(offset, data) = pending else {
        if seed.is_multiple_of(2) {
            pending.apply(image);
        }
        return;
    };
    for at in 0..data.len().div_ceil(SECTOR_BYTES) {
        if mix(seed.wrapping_add(at as u64)).is_multiple_of(2) {
            let start = at * SECTOR_BYTES;
            let sector = data.part(start, SECTOR_BYTES);
            Pending::Write(offset + start as u64, sector).apply(image);
        }
    }
}

/// What a disk writes as one.
pub(super) const SECTOR_BYTES: usize = 512;

fn below(number: u64, bound: usize) -> usize {
    usize::try_from(number % bound as u64).unwrap_or(0)
}

/// Numbers that differ for neighbours (the finalizer of SplitMix64).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

//! What the simulated disk is made of: files with their unsynced writes, names with their unsynced changes.
//!
//! Invariant: what is pending is kept in order, and applying all of it gives what the running system sees. Held by the
//! disk behind one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::image::{Data, Image};
use super::{Failure, Kind, Strike};
use crate::fault::Fault;

#[derive(Debug, Default)]
pub(super) struct World {
    pub files: Vec<FileState>,
    pub names: BTreeMap<String, usize>,
    pub durable_names: BTreeMap<String, usize>,
    pub pending_names: Vec<NameChange>,
    pub operations: u64,
    pub crash_at: Option<u64>,
    pub fail_at: Option<(u64, Failure)>,
    pub fail_sync: Option<(String, Failure)>,
    pub failed_on: Option<String>,
    pub capacity: Option<u64>,
    pub dead: bool,
    pub kinds: Vec<Kind>,
    /// Faults that strike the first operation of their kind from an operation on.
    pub armed: Vec<(u64, Strike)>,
    /// A fault that strikes after so many operations of its kind.
    pub nth: Option<(u64, Strike)>,
    pub struck: BTreeSet<Fault>,
    pub struck_now: bool,
    pub lying: bool,
    /// The next write lands in the next sector.
    pub misdirect: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct FileState {
    pub durable: Image,
    pub cache: Image,
    pub pending: Vec<Pending>,
    /// What it was at earlier syncs, oldest first.
    pub kept: Vec<Image>,
    /// When it was last written, in milliseconds of the simulated clock.
    pub at_ms: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Pending {
    Write(u64, Data),
    Length(u64),
}

#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

impl World {
    pub(super) fn alive(&self) -> io::Result<()> {
        match self.dead {
            true => Err(io::Error::other("the power is gone")),
            false => Ok(()),
        }
    }

    pub(super) fn take_failing_sync(&mut self, inode: usize) -> Option<Failure> {
        let names = &self.names;
        let (_, failure) = self
            .fail_sync
            .take_if(|(name, _)| names.get(name) == Some(&inode))?;
        self.failed_on = std::thread::current().name().map(str::to_owned);
        Some(failure)
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.names
            .values()
            .map(|inode| self.files[*inode].cache.len() as u64)
            .sum()
    }

    pub(super) fn room(&self, more: u64) -> io::Result<()> {
        match self.capacity {
            Some(capacity) if self.size_bytes() + more > capacity => {
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }
}

impl FileState {
    /// A file of which everything is durable.
    pub(super) fn settled(image: Image) -> Self {
        Self {
            durable: image.clone(),
            cache: image,
            ..Self::default()
        }
    }

    /// What it was before its last sync.
    pub(super) fn earlier(&self) -> &Image {
        self.kept.last().unwrap_or(&self.durable)
    }

    /// Takes a write, or a change of length, into the cache.
    pub(super) fn take(&mut self, pending: Pending) {
        pending.apply(&mut self.cache);
        self.pending.push(pending);
    }

    /// Syncs it; what it was before is kept, for a rollback.
    pub(super) fn sync(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        self.kept.push(self.durable.clone());
        let pending = std::mem::take(&mut self.pending);
        pending
            .iter()
            .for_each(|pending| pending.apply(&mut self.durable));
    }
}

/// Images of earlier syncs that are kept of each file.
const KEPT: usize = 8;

impl Pending {
    /// Its bytes; none for a change of length.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Write(_, data) => data.len(),
            Self::Length(_) => 0,
        }
    }

    pub(super) fn apply(&self, image: &mut Image) {
        match self {
            Self::Write(_, data) => self.apply_part(data.len(), image),
            Self::Length(len) => image.resize(usize::try_from(*len).unwrap_or(usize::MAX)),
        }
    }

    pub(super) fn apply_part(&self, kept: usize, image: &mut Image) {
        if let Self::Write(offset, data) = self {
            image.put(usize::try_from(*offset).unwrap_or(usize::MAX), data, kept);
        }
    }
}

impl NameChange {
    /// The name that it is about.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Create(name, _) | Self::Rename(name, _) | Self::Remove(name) => name,
        }
    }

    pub(super) fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, inode) => drop(names.insert(name.clone(), *inode)),
            Self::Remove(name) => drop(names.remove(name)),
            Self::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }
}

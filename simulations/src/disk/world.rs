//! What the simulated disk is made of: files with their unsynced writes, names with their unsynced changes.
//!
//! Invariant: what is pending is kept in order, and applying all of it gives what the running system sees. Held by the
//! disk behind one lock.

use std::collections::BTreeMap;
use std::io;

use super::{Failure, Kind};

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
}

#[derive(Clone, Debug, Default)]
pub(super) struct FileState {
    pub durable: Vec<u8>,
    pub cache: Vec<u8>,
    pub pending: Vec<Pending>,
}

#[derive(Clone, Debug)]
pub(super) enum Pending {
    Write(u64, Vec<u8>),
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

impl Pending {
    pub(super) fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(_, data) => self.apply_part(data.len(), bytes),
            Self::Length(len) => bytes.resize(usize::try_from(*len).unwrap_or(usize::MAX), 0),
        }
    }

    pub(super) fn apply_part(&self, kept: usize, bytes: &mut Vec<u8>) {
        let Self::Write(offset, data) = self else {
            return;
        };
        let start = usize::try_from(*offset).unwrap_or(usize::MAX);
        let end = start + kept.min(data.len());
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(&data[..end - start]);
    }
}

impl NameChange {
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

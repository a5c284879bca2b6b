//! A disk that keeps what is not synced apart, and loses it when the power goes.
//!
//! Invariant: what `sync_data` or `sync_directory` confirmed survives; of the rest any subset may. The faults that the
//! store must survive: power lost at any operation, any subset of unsynced writes, a write torn at any byte, a name
//! change lost, an operation that fails, a sync that fails with the pages kept but clean or reverted, a full disk.
//! Called by scenarios; it stands below the real storage engine, never in place of it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aiws::digest::{Digest, Hasher};
use praxis_journal::{Disk, StorageBackend};

mod artifacts;
mod image;
mod loss;
mod world;

pub use artifacts::{CrashArtifacts, artifact_name};
pub use loss::{Loss, LossKind, Strike};

use image::{Data, Image};
use world::{FileState, NameChange, Pending, World};

/// A directory of files in memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CrashDisk {
    world: Arc<Mutex<World>>,
}

/// How an operation fails when it is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An error of the device. A failed sync keeps the pages in the cache and calls them clean, so that a later sync
    /// does not write them.
    Device,
    /// As `Device`, but a failed sync throws the unsynced pages away.
    Reverting,
    /// The code above panics in the middle of the operation.
    Panic,
}

/// What survives a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survival {
    /// Which pending writes of the watched file reach the platter: bit i for the i-th.
    pub mask: u64,
    /// A pending write of the watched file of which only the first bytes do; it counts as not in the mask.
    pub torn: Option<(usize, usize)>,
    /// Whether the pending writes of all other files reach it.
    pub others: bool,
    /// How many of the pending name changes do, oldest first.
    pub names: usize,
}

/// What an operation was, for scenarios that walk along them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A write into a file.
    Write,
    /// A change of a file's length.
    Length,
    /// A sync of a file.
    Sync,
    /// A creation, rename or removal.
    Name,
    /// A sync of the directory.
    SyncNames,
}

impl CrashDisk {
    /// An empty disk with power.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations that change something were begun.
    pub fn operations(&self) -> u64 {
        self.world().operations
    }

    /// What the operations were, in order.
    pub fn kinds(&self) -> Vec<Kind> {
        self.world().kinds.clone()
    }

    /// The power goes when `operation` (counted from 0) begins: it and everything after it fails.
    pub fn crash_at(&self, operation: u64) {
        self.world().crash_at = Some(operation);
    }

    /// The operation (counted from 0) fails once.
    pub fn fail_at(&self, operation: u64, failure: Failure) {
        self.world().fail_at = Some((operation, failure));
    }

    /// The next sync of the file that has this name then fails once, whichever operation it is: for stores with threads,
    /// whose operations have no fixed order.
    pub fn fail_sync_of(&self, name: &str, failure: Failure) {
        self.world().fail_sync = Some((name.to_owned(), failure));
    }

    /// The name of the thread on which that sync failed; none if it has not come yet, or the thread has no name.
    pub fn failed_on(&self) -> Option<String> {
        self.world().failed_on.clone()
    }

    /// Files together may not grow past this many bytes; none for no bound.
    pub fn capacity(&self, bytes: Option<u64>) {
        self.world().capacity = bytes;
    }

    /// The size of all files together in bytes, as the running system sees it.
    pub fn size_bytes(&self) -> u64 {
        self.world().size_bytes()
    }

    /// How many writes of a file are not synced.
    pub fn pending(&self, name: &str) -> usize {
        let world = self.world();
        world
            .names
            .get(name)
            .map_or(0, |inode| world.files[*inode].pending.len())
    }

    /// How long the pending write is, in bytes; 0 for a change of length.
    pub fn pending_len(&self, name: &str, index: usize) -> usize {
        let world = self.world();
        let inode = world.names.get(name);
        match inode.and_then(|inode| world.files[*inode].pending.get(index)) {
            Some(Pending::Write(_, data)) => data.len(),
            _ => 0,
        }
    }

    /// How many name changes are not synced.
    pub fn pending_names(&self) -> usize {
        self.world().pending_names.len()
    }

    /// The disk as it is found after a loss of power now. `watched` is the file that the mask speaks of.
    pub fn after_power_loss(&self, watched: &str, survival: &Survival) -> Self {
        let world = self.world();
        let watched = world.names.get(watched).copied();
        let files = world.files.iter().enumerate().map(|(inode, file)| {
            let mut bytes = file.durable.clone();
            for (index, pending) in file.pending.iter().enumerate() {
                let torn = survival.torn.filter(|(at, _)| *at == index);
                match (Some(inode) == watched, torn) {
                    (true, Some((_, kept))) => pending.apply_part(kept, &mut bytes),
                    (true, None) if survival.mask >> index & 1 == 1 => pending.apply(&mut bytes),
                    (false, _) if survival.others => pending.apply(&mut bytes),
                    _ => {}
                }
            }
            FileState::settled(bytes)
        });
        let mut names = world.durable_names.clone();
        world
            .pending_names
            .iter()
            .take(survival.names)
            .for_each(|change| change.apply(&mut names));
        let files = files.collect();
        let found = World {
            files,
            durable_names: names.clone(),
            names,
            ..World::default()
        };
        Self {
            world: Arc::new(Mutex::new(found)),
        }
    }

    /// A disk with the same files, all of it durable: what a clean end leaves.
    pub fn settled(&self) -> Self {
        let world = self.world();
        let files = world.files.iter().map(|file| FileState {
            kept: file.kept.clone(),
            at_ms: file.at_ms,
            ..FileState::settled(file.cache.clone())
        });
        let (files, names) = (files.collect(), world.names.clone());
        let found = World {
            files,
            durable_names: names.clone(),
            names,
            struck: world.struck.clone(),
            ..World::default()
        };
        Self {
            world: Arc::new(Mutex::new(found)),
        }
    }

    /// The bytes of a file as the running system sees them.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let world = self.world();
        world
            .names
            .get(name)
            .map(|inode| world.files[*inode].cache.to_vec())
    }

    /// The digest of every name and byte that the running system sees: the identity of a crash state.
    pub fn identity(&self) -> Digest {
        let world = self.world();
        let mut hasher = Hasher::new();
        for (name, inode) in &world.names {
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name.as_bytes());
            hasher.update(world.files[*inode].cache.digest().as_bytes());
        }
        hasher.finish()
    }

    /// Puts a file there, durably: damage at rest, or an older image.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut world = self.world();
        let inode = world.files.len();
        world
            .files
            .push(FileState::settled(Image::from(&bytes[..])));
        world.names.insert(name.to_owned(), inode);
        world.durable_names.insert(name.to_owned(), inode);
    }

    /// Takes a file away, durably.
    pub fn take(&self, name: &str) {
        let mut world = self.world();
        world.names.remove(name);
        world.durable_names.remove(name);
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, inode: usize) -> Arc<dyn StorageBackend> {
        Arc::new(CrashFile {
            disk: self.clone(),
            inode,
        })
    }

    /// Counts an operation and lets it fail if it is to fail.
    fn begin(&self, kind: Kind) -> io::Result<(MutexGuard<'_, World>, Option<Failure>)> {
        let mut world = self.world();
        let operation = world.operations;
        if world.crash_at == Some(operation) {
            world.dead = true;
        }
        world.alive()?;
        world.operations += 1;
        world.kinds.push(kind);
        let failure = world
            .fail_at
            .filter(|(at, _)| *at == operation)
            .map(|(_, failure)| failure);
        if failure == Some(Failure::Panic) {
            drop(world);
            std::panic::panic_any("the simulated storage engine panics");
        }
        if let Some(strike) = world.strikes(Some(kind)) {
            return match strike {
                Strike::EnginePanic => {
                    drop(world);
                    std::panic::panic_any("the simulated storage engine panics")
                }
                Strike::SyncErrorKept => Ok((world, Some(Failure::Device))),
                Strike::SyncErrorReverted => Ok((world, Some(Failure::Reverting))),
                Strike::MisdirectedWrite => {
                    world.misdirect = true;
                    Ok((world, failure))
                }
                other => match other.error() {
                    Some(error) => Err(error),
                    None => Ok((world, failure)),
                },
            };
        }
        Ok((world, failure))
    }
}

fn device_error() -> io::Error {
    io::Error::other("the simulated device failed")
}

impl Disk for CrashDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let world = self.world();
        world.alive()?;
        let names = world.names.keys();
        Ok(names
            .filter(|name| !name.starts_with(artifacts::PREFIX))
            .cloned()
            .collect())
    }

    fn open(&self, name: &str, _write: bool) -> io::Result<Arc<dyn StorageBackend>> {
        let world = self.world();
        world.alive()?;
        let inode = world
            .names
            .get(name)
            .copied()
            .ok_or(io::ErrorKind::NotFound)?;
        drop(world);
        Ok(self.file(inode))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageBackend>> {
        let (mut world, failure) = self.begin(Kind::Name)?;
        if failure.is_some() {
            return Err(device_error());
        }
        let inode = world.files.len();
        world.files.push(FileState::default());
        world.change(NameChange::Create(name.to_owned(), inode));
        drop(world);
        Ok(self.file(inode))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (mut world, failure) = self.begin(Kind::Name)?;
        if failure.is_some() {
            return Err(device_error());
        }
        if !world.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        world.change(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (mut world, failure) = self.begin(Kind::Name)?;
        if failure.is_some() {
            return Err(device_error());
        }
        if !world.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        world.change(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.sync_names(|name| !name.starts_with(artifacts::PREFIX))
    }
}

#[derive(Debug)]
struct CrashFile {
    disk: CrashDisk,
    inode: usize,
}

impl StorageBackend for CrashFile {
    fn len(&self) -> io::Result<u64> {
        let world = self.disk.world();
        world.alive()?;
        Ok(world.files[self.inode].cache.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut world = self.disk.world();
        world.alive()?;
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let strike = world.strikes(None);
        if let Some(error) = strike.and_then(Strike::error) {
            return Err(error);
        }
        let file = &world.files[self.inode];
        let stale = strike == Some(Strike::StaleRead) && file.earlier().read(start, out);
        match stale || file.cache.read(start, out) {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let (mut world, failure) = self.disk.begin(Kind::Length)?;
        if failure.is_some() {
            return Err(device_error());
        }
        let now = world.files[self.inode].cache.len() as u64;
        if len > now {
            world.room(len - now)?;
        }
        world.files[self.inode].take(Pending::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.sync_file(self.inode)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (mut world, failure) = self.disk.begin(Kind::Write)?;
        if failure.is_some() {
            return Err(device_error());
        }
        let end = offset + data.len() as u64;
        let now = world.files[self.inode].cache.len() as u64;
        if end > now {
            world.room(end - now)?;
        }
        let offset = match std::mem::take(&mut world.misdirect) {
            true => offset + loss::SECTOR_BYTES as u64,
            false => offset,
        };
        world.files[self.inode].take(Pending::Write(offset, Data::new(data)));
        Ok(())
    }
}

/// Enough of a digest to tell states apart.
pub fn short(digest: &Digest) -> u128 {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.0[..16]);
    u128::from_le_bytes(bytes)
}

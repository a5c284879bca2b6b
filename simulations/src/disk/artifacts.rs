//! The artifact directory on the simulated disk: the same power, the same faults, names and syncs of its own.
//!
//! Invariant: its names begin with `artifacts/` on the disk, and a sync of the store's directory does nothing for them. It
//! stands below the real artifact store, never in place of it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aiws::digest::Digest;
use praxis_artifacts::fs::{FileFacts, Fs, Handle};
use praxis_journal::Clock;

use super::image::Data;
use super::loss::SECTOR_BYTES;
use super::world::{NameChange, Pending, World};
use super::{CrashDisk, Failure, Kind, Strike, device_error};

/// What the names of the directory begin with.
pub(super) const PREFIX: &str = "artifacts/";

/// The artifact directory of a disk.
#[derive(Debug)]
pub struct CrashArtifacts {
    disk: CrashDisk,
    clock: Arc<dyn Clock>,
    numbers: AtomicU64,
    /// Locks of open files: which file, and whether alone.
    locks: Arc<Mutex<Vec<(usize, bool)>>>,
}

/// An open file; its locks go with it.
#[derive(Debug)]
struct Open {
    inode: usize,
    /// How far it was read.
    at: usize,
    locks: Arc<Mutex<Vec<(usize, bool)>>>,
    held: Mutex<Option<bool>>,
}

impl Open {
    fn lock(&self, alone: bool) -> bool {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let others = locks.iter().filter(|(inode, _)| *inode == self.inode);
        let taken = others.into_iter().any(|(_, other)| alone || *other);
        if taken || held.is_some() {
            return held.is_some();
        }
        locks.push((self.inode, alone));
        *held = Some(alone);
        true
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(alone) = held.take() {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            let mine = (self.inode, alone);
            if let Some(at) = locks.iter().position(|lock| *lock == mine) {
                locks.remove(at);
            }
        }
    }
}

impl CrashDisk {
    /// The artifact directory of this disk, with times from a clock.
    pub fn artifacts(&self, clock: Arc<dyn Clock>) -> CrashArtifacts {
        CrashArtifacts {
            disk: self.clone(),
            clock,
            numbers: AtomicU64::new(0),
            locks: Arc::default(),
        }
    }

    /// The artifact directory as the running system sees it: names and bytes.
    pub fn artifact_files(&self) -> Vec<(String, Vec<u8>)> {
        let world = self.world();
        let names = world.names.iter();
        names
            .filter_map(|(name, inode)| {
                let name = name.strip_prefix(PREFIX)?;
                Some((name.to_owned(), world.files[*inode].cache.to_vec()))
            })
            .collect()
    }
}

/// The name of an artifact's file on the disk.
pub fn artifact_name(digest: &Digest) -> String {
    full(&digest.to_string())
}

fn full(name: &str) -> String {
    format!("{PREFIX}{name}")
}

fn opened(file: &Handle) -> io::Result<&Open> {
    file.downcast_ref()
        .ok_or_else(|| io::Error::other("a file of another port"))
}

impl CrashArtifacts {
    fn handle(&self, inode: usize) -> Open {
        Open {
            inode,
            at: 0,
            locks: Arc::clone(&self.locks),
            held: Mutex::new(None),
        }
    }

    /// A change of a name, unless it is to fail.
    fn change(&self, change: NameChange) -> io::Result<()> {
        let (mut world, failure) = self.disk.begin(Kind::Name)?;
        if failure.is_some() {
            return Err(device_error());
        }
        world.change(change);
        Ok(())
    }

    /// Begins a write. The storage engine has no part in it, so its panic waits for another.
    fn begin_write(&self) -> io::Result<(MutexGuard<'_, World>, Option<Failure>)> {
        let panics = |(_, strike): &(u64, Strike)| *strike == Strike::EnginePanic;
        let waiting: Vec<_> = {
            let mut world = self.disk.world();
            let (panics, others) = world.armed.drain(..).partition(panics);
            world.armed = others;
            panics
        };
        match self.disk.begin(Kind::Write) {
            Ok((mut world, failure)) => {
                world.armed.extend(waiting);
                Ok((world, failure))
            }
            Err(error) => {
                self.disk.world().armed.extend(waiting);
                Err(error)
            }
        }
    }

    fn inode(&self, name: &str) -> io::Result<usize> {
        let world = self.disk.world();
        world.alive()?;
        let inode = world.names.get(&full(name)).copied();
        inode.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Fs for CrashArtifacts {
    fn temporary_name(&self) -> String {
        format!("temporary-{}", self.numbers.fetch_add(1, Ordering::SeqCst))
    }

    fn facts(&self, file: &Handle) -> io::Result<FileFacts> {
        let open = opened(file)?;
        let world = self.disk.world();
        world.alive()?;
        let names = world.names.iter();
        let own = names.filter(|(_, inode)| **inode == open.inode);
        Ok(FileFacts {
            odd: None,
            len: world.files[open.inode].cache.len() as u64,
            links: own.count() as u64,
            last_put_ms: world.files[open.inode].at_ms,
        })
    }

    fn lock_shared(&self, file: &Handle) -> io::Result<()> {
        // Nobody waits here: a simulation is one thread, and who holds a lock alone lets it go before another comes.
        match opened(file)?.lock(false) {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn lock_alone(&self, file: &Handle) -> io::Result<bool> {
        Ok(opened(file)?.lock(true))
    }

    fn create(&self, name: &str) -> io::Result<Handle> {
        let (mut world, failure) = self.disk.begin(Kind::Name)?;
        if failure.is_some() {
            return Err(device_error());
        }
        if world.names.contains_key(&full(name)) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = world.files.len();
        world.files.push(super::world::FileState {
            at_ms: self.clock.now_ms(),
            ..Default::default()
        });
        world.change(NameChange::Create(full(name), inode));
        drop(world);
        let open = self.handle(inode);
        open.lock(true);
        Ok(Box::new(open))
    }

    fn write(&self, file: &mut Handle, bytes: &[u8]) -> io::Result<()> {
        let inode = opened(file)?.inode;
        let (mut world, failure) = self.begin_write()?;
        if failure.is_some() {
            return Err(device_error());
        }
        world.room(bytes.len() as u64)?;
        let elsewhere = match std::mem::take(&mut world.misdirect) {
            true => SECTOR_BYTES as u64,
            false => 0,
        };
        let file = &mut world.files[inode];
        let offset = file.cache.len() as u64 + elsewhere;
        file.take(Pending::Write(offset, Data::new(bytes)));
        file.at_ms = self.clock.now_ms();
        Ok(())
    }

    fn sync(&self, file: &Handle) -> io::Result<()> {
        self.disk.sync_file(opened(file)?.inode)
    }

    fn publish(&self, temporary: &str, name: &str) -> io::Result<()> {
        self.inode(temporary)?;
        if self.inode(name).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(NameChange::Rename(full(temporary), full(name)))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.disk.sync_names(|name| name.starts_with(PREFIX))
    }

    fn remove(&self, temporary: &str) -> io::Result<()> {
        self.inode(temporary)?;
        self.change(NameChange::Remove(full(temporary)))
    }

    fn sweep(&self, temporary: &str) -> io::Result<bool> {
        let open = self.handle(self.inode(temporary)?);
        match open.lock(true) {
            true => self.remove(temporary).map(|()| true),
            false => Ok(false),
        }
    }

    fn open(&self, name: &str) -> io::Result<Handle> {
        Ok(Box::new(self.handle(self.inode(name)?)))
    }

    fn read(&self, file: &mut Handle, buffer: &mut [u8]) -> io::Result<usize> {
        let open: &mut Open = file
            .downcast_mut()
            .ok_or_else(|| io::Error::other("a file of another port"))?;
        let mut world = self.disk.world();
        world.alive()?;
        let strike = world.strikes(None);
        let file = &world.files[open.inode];
        let image = match strike {
            Some(Strike::StaleRead) => file.earlier(),
            _ => &file.cache,
        };
        let mut count = image.len().saturating_sub(open.at).min(buffer.len());
        match strike {
            // Half of it, which a reader of a stream has to expect.
            Some(Strike::ShortRead) => count = count.div_ceil(2),
            Some(strike) => strike.error().map_or(Ok(()), Err)?,
            None => {}
        }
        image.read(open.at, &mut buffer[..count]);
        open.at += count;
        Ok(count)
    }

    fn touch(&self, file: &Handle) -> io::Result<()> {
        let inode = opened(file)?.inode;
        let mut world = self.disk.world();
        world.alive()?;
        world.files[inode].at_ms = self.clock.now_ms();
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let world = self.disk.world();
        world.alive()?;
        let names = world.names.keys();
        Ok(names
            .filter_map(|name| name.strip_prefix(PREFIX))
            .map(str::to_owned)
            .collect())
    }

    fn is_in_place(&self) -> io::Result<bool> {
        self.disk.world().alive()?;
        Ok(true)
    }
}

impl CrashDisk {
    /// Makes a file durable, unless that is to fail.
    pub(super) fn sync_file(&self, inode: usize) -> io::Result<()> {
        let (mut world, failure) = self.begin(Kind::Sync)?;
        let failure = failure.or_else(|| world.take_failing_sync(inode));
        let lying = world.lying;
        let file = &mut world.files[inode];
        match failure {
            None if lying => return Ok(()),
            None => {
                file.sync();
                return Ok(());
            }
            // The pages stay in the cache and count as clean: no later sync writes them.
            Some(Failure::Device | Failure::Panic) => file.pending.clear(),
            Some(Failure::Reverting) => {
                file.pending.clear();
                file.cache = file.durable.clone();
            }
        }
        Err(device_error())
    }

    /// Makes the names of one directory durable, unless that is to fail.
    pub(super) fn sync_names(&self, own: impl Fn(&str) -> bool) -> io::Result<()> {
        let (mut world, failure) = self.begin(Kind::SyncNames)?;
        if failure.is_some() {
            return Err(device_error());
        }
        let changes = std::mem::take(&mut world.pending_names);
        for change in changes {
            match own(change.name()) {
                true => change.apply(&mut world.durable_names),
                false => world.pending_names.push(change),
            }
        }
        Ok(())
    }
}

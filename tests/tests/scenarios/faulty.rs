//! A disk that fails on demand: the store's own files, of which the n-th operation from now on fails, once or for good.
//! Invariant: a failed operation changes nothing; what was done before it is on the real file system.
//! The cases about storage open their worlds on it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use praxis_journal::{Disk, FileDisk, StorageBackend};

/// How often an operation fails from its turn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fails {
    /// Once; the next one works.
    Once,
    /// Every one, until the disk is mended.
    ForGood,
}

/// What the case and all files share.
#[derive(Debug, Default)]
struct Turn {
    /// Operations that still work; the one after them fails.
    left: AtomicU64,
    /// Whether anything is to fail.
    armed: AtomicBool,
    /// Whether it stays so.
    for_good: AtomicBool,
    /// Whether the disk is full rather than broken: only what writes fails.
    full: AtomicBool,
    /// Operations that failed.
    failed: AtomicU64,
}

impl Turn {
    fn next(&self, writes: bool) -> io::Result<()> {
        let full = self.full.load(Ordering::SeqCst);
        if !self.armed.load(Ordering::SeqCst) || (full && !writes) {
            return Ok(());
        }
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                Some(left.saturating_sub(1))
            });
        if left.is_ok_and(|left| left > 0) {
            return Ok(());
        }
        self.armed
            .store(self.for_good.load(Ordering::SeqCst), Ordering::SeqCst);
        self.failed.fetch_add(1, Ordering::SeqCst);
        match full {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Err(io::Error::other("the device failed, as the case wants it")),
        }
    }
}

/// The disk.
#[derive(Debug)]
pub struct Faulty {
    files: FileDisk,
    turn: Arc<Turn>,
}

#[derive(Debug)]
struct FaultyFile {
    file: Arc<dyn StorageBackend>,
    turn: Arc<Turn>,
}

impl Faulty {
    /// The files of a directory, with nothing wrong yet.
    pub fn new(directory: &std::path::Path) -> Arc<Faulty> {
        Arc::new(Faulty {
            files: FileDisk::new(directory),
            turn: Arc::default(),
        })
    }

    /// The operation after `works` others fails.
    pub fn fail_after(&self, works: u64, fails: Fails) {
        self.turn.left.store(works, Ordering::SeqCst);
        self.turn
            .for_good
            .store(fails == Fails::ForGood, Ordering::SeqCst);
        self.turn.failed.store(0, Ordering::SeqCst);
        self.turn.armed.store(true, Ordering::SeqCst);
    }

    /// No space is left.
    pub fn fill(&self) {
        self.turn.full.store(true, Ordering::SeqCst);
        self.fail_after(0, Fails::ForGood);
    }

    /// Everything works again; says whether anything had failed.
    pub fn mend(&self) -> bool {
        self.turn.armed.store(false, Ordering::SeqCst);
        self.turn.full.store(false, Ordering::SeqCst);
        self.turn.failed.load(Ordering::SeqCst) > 0
    }

    fn file(&self, file: Arc<dyn StorageBackend>) -> Arc<dyn StorageBackend> {
        Arc::new(FaultyFile {
            file,
            turn: Arc::clone(&self.turn),
        })
    }
}

impl Disk for Faulty {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn StorageBackend>> {
        self.turn.next(false)?;
        Ok(self.file(self.files.open(name, write)?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageBackend>> {
        self.turn.next(true)?;
        Ok(self.file(self.files.create(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.turn.next(true)?;
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.turn.next(true)?;
        self.files.sync_directory()
    }
}

impl StorageBackend for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.turn.next(false)?;
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.turn.next(true)?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.turn.next(true)?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.turn.next(true)?;
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}

//! One file of the log: a redb database with a single table, sequence to frame.
//!
//! Invariant: a segment comes to life under a temporary name and is synced before it gets its own; every commit is
//! two-phase with quick_repair; a sealed one is opened for reading only. Called by the log alone.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use redb::backends::InMemoryBackend;
use redb::{
    Builder, ReadOnlyDatabase, ReadTransaction, StorageBackend, TableDefinition, WriteTransaction,
};

use crate::backend::Watched;
use crate::database::Db;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::limits::{CACHE_BYTES, COPY_BYTES, SEALED_CACHE_BYTES};
use crate::overlay::Overlay;

/// The one table of a segment.
pub(crate) const LOG: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("log");

/// What a file is called until it is whole; leftovers of a crash are removed at the next opening.
pub(crate) const UNFINISHED: &str = ".unfinished";

#[derive(Debug)]
pub(crate) struct Segment {
    pub number: u64,
    pub watched: Watched,
    db: Db,
}

impl Segment {
    /// Makes an empty segment durable under its name and opens it for appending.
    pub fn create(disk: &dyn Disk, number: u64) -> Result<Self, StoreError> {
        let name = name(number);
        let unfinished = format!("{name}{UNFINISHED}");
        let doing = format!("create {name}");
        let watched = Watched::new(
            disk.create(&unfinished)
                .map_err(|cause| StoreError::io(&doing, &cause))?,
        );
        let made = guarded(&doing, || {
            let db = Builder::new()
                .create_with_backend(watched.clone())
                .map_err(|cause| StoreError::redb(&doing, cause))?;
            let db = Db::write(db);
            let transaction = db
                .begin_write()
                .map_err(|cause| StoreError::redb(&doing, cause))?;
            drop(
                transaction
                    .open_table(LOG)
                    .map_err(|cause| StoreError::redb(&doing, cause))?,
            );
            transaction
                .commit()
                .map_err(|cause| StoreError::redb(&doing, cause))
        });
        made.and_then(|()| {
            finish(disk, &unfinished, &name).map_err(|cause| StoreError::io(&doing, &cause))
        })
        .inspect_err(|_| drop(disk.remove(&unfinished)))?;
        Self::open(disk, number)
    }

    /// Opens the hot segment for appending; redb repairs what a crash left.
    pub fn open(disk: &dyn Disk, number: u64) -> Result<Self, StoreError> {
        let name = name(number);
        let doing = format!("open {name}");
        let watched =
            existing(disk, &name, true).map_err(|cause| StoreError::io(&doing, &cause))?;
        let db = guarded(&doing, || {
            let mut builder = Builder::new();
            builder.set_cache_size(CACHE_BYTES);
            builder
                .create_with_backend(watched.clone())
                .map_err(|cause| StoreError::redb(&doing, cause))
        })?;
        Ok(Self {
            number,
            watched,
            db: Db::write(db),
        })
    }

    /// Opens a segment for reading. One that a crash left unrepaired is repaired first, in the file if `repair`
    /// allows it, else in a copy in memory.
    pub fn open_read(disk: &dyn Disk, number: u64, repair: bool) -> Result<Self, StoreError> {
        let name = name(number);
        let doing = format!("open {name} for reading");
        let watched =
            existing(disk, &name, false).map_err(|cause| StoreError::io(&doing, &cause))?;
        let plain = guarded(&doing, || read_only(&watched, &doing));
        let db = match plain {
            Ok(db) => Db::read(db),
            Err(StoreError::Locked { holder }) => return Err(StoreError::Locked { holder }),
            Err(_) if repair => {
                drop(Self::open(disk, number)?);
                Db::read(guarded(&doing, || read_only(&watched, &doing))?)
            }
            Err(_) => return Self::open_copy(disk, number),
        };
        Ok(Self {
            number,
            watched,
            db,
        })
    }

    /// Opens a copy of a segment in memory: what is left to read from when its file can no longer be written.
    pub fn open_copy(disk: &dyn Disk, number: u64) -> Result<Self, StoreError> {
        let name = name(number);
        let doing = format!("read {name} into memory");
        let memory: Arc<dyn StorageBackend> = Arc::new(InMemoryBackend::new());
        let source =
            existing(disk, &name, false).map_err(|cause| StoreError::io(&doing, &cause))?;
        copy(&source, &*memory).map_err(|cause| StoreError::io(&doing, &cause))?;
        let watched = Watched::new(memory);
        let db = guarded(&doing, || {
            let opened = Builder::new().create_with_backend(watched.clone());
            let mut db = Db::write(opened.map_err(|cause| StoreError::redb(&doing, cause))?);
            if let Err(error) = db.checked(&doing) {
                tracing::warn!(%error, "a damaged segment is read as far as it goes");
            }
            Ok(db)
        })?;
        Ok(Self {
            number,
            watched,
            db,
        })
    }

    /// A transaction that appends.
    pub fn begin_write(&self) -> Result<WriteTransaction, redb::TransactionError> {
        self.db.begin_write()
    }

    /// Runs `work` on a snapshot of the segment; a panic of the storage engine on damaged pages becomes an error.
    pub fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let doing = format!("read {}", name(self.number));
        guarded(&doing, || {
            let transaction = self.db.begin_read();
            let transaction = transaction.map_err(|cause| StoreError::redb(&doing, cause))?;
            work(&transaction).map_err(|cause| StoreError::redb(&doing, cause))
        })
    }
}

/// The file name of a segment.
pub(crate) fn name(number: u64) -> String {
    format!("log-{number:06}.redb")
}

/// The number of a segment's file name.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log-")?.strip_suffix(".redb")?;
    let number = digits.parse().ok()?;
    (self::name(number) == name).then_some(number)
}

/// The numbers of the segments that are there, without a gap.
pub(crate) fn numbers(disk: &dyn Disk) -> Result<Vec<u64>, StoreError> {
    let names = disk
        .list()
        .map_err(|cause| StoreError::io("list the store", &cause))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
    numbers.sort_unstable();
    match (1..)
        .zip(&numbers)
        .find(|(expected, found)| expected != *found)
    {
        Some((missing, _)) => Err(StoreError::Corrupt {
            place: name(missing),
            what: "the segment is missing".to_owned(),
        }),
        None => Ok(numbers),
    }
}

/// A segment begins where the one before it ends.
pub(crate) fn follows(expected: u64, found: u64, number: u64) -> Result<(), StoreError> {
    if expected == found {
        return Ok(());
    }
    let what = format!("expected its first event at sequence {expected}, found {found}");
    Err(StoreError::Corrupt {
        place: name(number),
        what,
    })
}

/// Runs `work`, which calls redb; a panic there becomes an error, and the process goes on.
pub(crate) fn guarded<T>(
    doing: &str,
    work: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let what = "the storage engine panicked on what it found there".to_owned();
        Err(StoreError::Corrupt {
            place: doing.to_owned(),
            what,
        })
    })
}

/// An existing file with content; redb would make a new database of an empty one.
pub(crate) fn existing(disk: &dyn Disk, name: &str, write: bool) -> io::Result<Watched> {
    let watched = Watched::new(disk.open(name, write)?);
    match watched.len()? {
        0 => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "expected a database, found an empty file",
        )),
        _ => Ok(watched),
    }
}

/// Whether every page of a file has the bytes that its checksum says, before anything reads or writes it: a write over a
/// damaged page can end in a panic within a panic, which ends the process, and a read believes what stands there.
///
/// # Errors
/// [`StoreError::Corrupt`] if not; what the disk answered.
pub(crate) fn sound(disk: &dyn Disk, name: &str) -> Result<(), StoreError> {
    let doing = format!("check {name}");
    let file = existing(disk, name, false).map_err(|cause| StoreError::io(&doing, &cause))?;
    let file = Overlay::new(Arc::new(file)).map_err(|cause| StoreError::io(&doing, &cause))?;
    let checked = guarded(&doing, || {
        let mut builder = Builder::new();
        builder.set_cache_size(SEALED_CACHE_BYTES);
        let opened = builder.create_with_backend(file.clone());
        let mut db = Db::write(opened.map_err(|cause| StoreError::redb(&doing, cause))?);
        db.checked(&doing)
    });
    file.release();
    checked
}

/// Copies a whole file.
pub(crate) fn copy(from: &dyn StorageBackend, to: &dyn StorageBackend) -> io::Result<()> {
    let len = from.len()?;
    to.set_len(len)?;
    let mut piece = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < len {
        let size = usize::try_from(len - at)
            .unwrap_or(COPY_BYTES)
            .min(COPY_BYTES);
        from.read(at, &mut piece[..size])?;
        to.write(at, &piece[..size])?;
        at += size as u64;
    }
    Ok(())
}

/// Syncs a finished file, gives it its name, and syncs the name.
pub(crate) fn finish(disk: &dyn Disk, unfinished: &str, name: &str) -> io::Result<()> {
    disk.open(unfinished, true)?.sync_data()?;
    disk.rename(unfinished, name)?;
    disk.sync_directory()
}

fn read_only(watched: &Watched, doing: &str) -> Result<ReadOnlyDatabase, StoreError> {
    let mut builder = Builder::new();
    builder.set_cache_size(SEALED_CACHE_BYTES);
    builder
        .open_read_only_with_backend(watched.clone())
        .map_err(|cause| StoreError::redb(doing, cause))
}

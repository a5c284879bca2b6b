//! A file with one table of small records: the storage engine under test, in few lines.
//!
//! Invariant: the same text is compiled against each version of redb, so that a verdict is of the version and of the way
//! of committing, never of the caller. Called by the harness for the version of the project, by the program in `engine`
//! for the old one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{
    Builder, Database, ReadableDatabase as _, ReadableTable as _, StorageBackend, TableDefinition,
    TableError,
};

const TABLE: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("records");

/// Small, so that a page that is read again is read from the disk.
const CACHE_BYTES: usize = 64 * 1024;

/// How a transaction becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As redb does it unless it is told otherwise.
    OnePhase,
    /// As the journal sets it: two-phase, with quick_repair.
    TwoPhase,
}

/// A record with its number.
pub type Record = (u64, Vec<u8>);

/// An open file.
pub struct Store {
    db: Option<Database>,
    way: Way,
}

impl Store {
    /// Opens a file, or makes a store of an empty one; redb recovers what a crash left.
    ///
    /// # Errors
    /// What redb says, or that it panicked.
    pub fn open(file: impl StorageBackend, way: Way) -> Result<Self, String> {
        guarded(|| {
            let mut builder = Builder::new();
            builder.set_cache_size(CACHE_BYTES);
            let db = builder.create_with_backend(file).map_err(said)?;
            Ok(Self { db: Some(db), way })
        })
    }

    /// Appends a record; durable once it is answered.
    ///
    /// # Errors
    /// What redb says, or that it panicked; then the record may be there or not.
    pub fn append(&self, number: u64, record: &[u8]) -> Result<(), String> {
        let db = self.db.as_ref().ok_or("closed")?;
        guarded(|| {
            let mut transaction = db.begin_write().map_err(said)?;
            if self.way == Way::TwoPhase {
                transaction.set_two_phase_commit(true);
                transaction.set_quick_repair(true);
            }
            let mut table = transaction.open_table(TABLE).map_err(said)?;
            table.insert(number, record).map_err(said)?;
            drop(table);
            transaction.commit().map_err(said)
        })
    }

    /// Every record, in order; none if there is no table.
    ///
    /// # Errors
    /// What redb says, or that it panicked.
    pub fn records(&self) -> Result<Vec<Record>, String> {
        let db = self.db.as_ref().ok_or("closed")?;
        guarded(|| {
            let transaction = db.begin_read().map_err(said)?;
            let table = match transaction.open_table(TABLE) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(vec![]),
                table => table.map_err(said)?,
            };
            let mut records = Vec::new();
            for row in table.iter().map_err(said)? {
                let (number, record) = row.map_err(said)?;
                records.push((number.value(), record.value().to_vec()));
            }
            Ok(records)
        })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Without power redb may panic while it closes, and there is nothing left to save.
        let db = self.db.take();
        drop(catch_unwind(AssertUnwindSafe(|| drop(db))));
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().copied();
        let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let words = words.unwrap_or_default().lines().next().unwrap_or_default();
        Err(format!("the engine panicked: {words}"))
    })
}

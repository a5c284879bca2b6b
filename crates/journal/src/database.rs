//! An open redb file, for writing or for reading, that can always be let go.
//!
//! Invariant: dropping one never panics, whatever state a fault left the storage engine in, and one that was found damaged
//! is not closed at all; every commit is two-phase with quick_repair. Called by segments and the index.

use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{
    Database, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, TransactionError,
    WriteTransaction,
};

use crate::error::StoreError;

pub(crate) enum Db {
    Write(Held<Database>),
    Read(Held<ReadOnlyDatabase>),
}

/// Closes quietly: redb may panic while it closes a file after a panic, and then there is nothing left to save.
pub(crate) struct Held<T>(Option<T>, Close);

/// What becomes of the file when it is let go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Close {
    /// It is closed.
    Whole,
    /// It is damaged, and to close it means to write to it: it is let go without a word.
    Never,
}

impl Db {
    pub fn write(db: Database) -> Self {
        Self::Write(Held(Some(db), Close::Whole))
    }

    pub fn read(db: ReadOnlyDatabase) -> Self {
        Self::Read(Held(Some(db), Close::Whole))
    }

    /// Compares every page with its checksum. Only for a file that may be repaired, such as a copy.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a page that is not what was written; the file is then never closed.
    pub fn checked(&mut self, doing: &str) -> Result<(), StoreError> {
        let Self::Write(Held(Some(db), close)) = self else {
            return Ok(());
        };
        let checked = catch_unwind(AssertUnwindSafe(|| db.check_integrity()));
        let error = match checked {
            Ok(Ok(true)) => return Ok(()),
            Ok(Err(cause)) => match StoreError::redb(doing, cause) {
                StoreError::Corrupt { what, .. } => what,
                other => return Err(other),
            },
            Ok(Ok(false)) | Err(_) => "a page is not what was written to it".to_owned(),
        };
        *close = Close::Never;
        Err(StoreError::Corrupt {
            place: doing.to_owned(),
            what: error,
        })
    }

    /// A snapshot of what is committed.
    pub fn begin_read(&self) -> Result<ReadTransaction, TransactionError> {
        let closed = || TransactionError::Storage(redb::StorageError::DatabaseClosed);
        match self {
            Self::Write(db) => db.0.as_ref().ok_or_else(closed)?.begin_read(),
            Self::Read(db) => db.0.as_ref().ok_or_else(closed)?.begin_read(),
        }
    }

    /// A transaction that is durable once committed (redb's default), two-phase, so that a torn header is never
    /// followed, and with the allocator state, so that opening after a crash is quick.
    pub fn begin_write(&self) -> Result<WriteTransaction, TransactionError> {
        let closed = || TransactionError::Storage(redb::StorageError::DatabaseClosed);
        let Self::Write(Held(Some(db), _)) = self else {
            return Err(closed());
        };
        let mut transaction = db.begin_write()?;
        transaction.set_two_phase_commit(true);
        transaction.set_quick_repair(true);
        Ok(transaction)
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        let held = self.0.take();
        if self.1 == Close::Never {
            return std::mem::forget(held);
        }
        drop(catch_unwind(AssertUnwindSafe(|| drop(held))));
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Write(_) => "Write",
            Self::Read(_) => "Read",
        })
    }
}

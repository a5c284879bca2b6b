//! An open redb file, for writing or for reading, that can always be let go.
//!
//! Invariant: dropping one never panics, whatever state a fault left the storage engine in; every commit is two-phase
//! with quick_repair. Called by segments and the index.

use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{
    Database, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, TransactionError,
    WriteTransaction,
};

pub(crate) enum Db {
    Write(Held<Database>),
    Read(Held<ReadOnlyDatabase>),
}

/// Closes quietly: redb may panic while it closes a file after a panic, and then there is nothing left to save.
pub(crate) struct Held<T>(Option<T>);

impl Db {
    pub fn write(db: Database) -> Self {
        Self::Write(Held(Some(db)))
    }

    pub fn read(db: ReadOnlyDatabase) -> Self {
        Self::Read(Held(Some(db)))
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
        let Self::Write(Held(Some(db))) = self else {
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

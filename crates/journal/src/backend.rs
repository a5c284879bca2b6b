//! The backend that redb sees: passes everything on and remembers what failed.
//!
//! Invariant: the kind of the failed operation is known when redb reports an error, because a failed sync has another
//! cure than a failed write. Made by segments and the index for every file they open; the one place that
//! implements redb's storage trait in this crate.

use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use praxis_plant::{self as plant, Plant};
use redb::{BackendError, StorageBackend};

/// Which operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    Read,
    Write,
    Sync,
}

/// A failed operation, for the cure and for the sentence.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub failed: Failed,
    pub kind: io::ErrorKind,
    pub what: String,
}

/// A backend that remembers its worst fault. Clones share file and memory.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    inner: Arc<dyn StorageBackend>,
    fault: Arc<Mutex<Option<Fault>>>,
}

impl Watched {
    pub(crate) fn new(inner: Arc<dyn StorageBackend>) -> Self {
        Self {
            inner,
            fault: Arc::default(),
        }
    }

    /// The first fault, or the first failed sync if there was one: after it the file is not to be trusted.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn watch<T>(&self, failed: Failed, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|cause| {
            let mut slot = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
            let worse = slot
                .as_ref()
                .is_none_or(|old| old.failed != Failed::Sync && failed == Failed::Sync);
            if worse {
                *slot = Some(Fault {
                    failed,
                    kind: cause.kind(),
                    what: format!("{failed:?} failed: {cause}"),
                });
            }
        })
    }
}

impl StorageBackend for Watched {
    fn len(&self) -> io::Result<u64> {
        self.watch(Failed::Read, self.inner.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.watch(Failed::Read, self.inner.read(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.watch(Failed::Write, self.inner.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        if plant::is(Plant::SyncSkipped) {
            return Ok(());
        }
        let synced = self.inner.sync_data();
        let synced = synced.or_else(|cause| match plant::is(Plant::SyncRetried) {
            true => self.inner.sync_data(),
            false => Err(cause),
        });
        self.watch(Failed::Sync, synced)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.watch(Failed::Write, self.inner.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}

//! A copy of a store's log in another directory, as it was at one moment.
//!
//! Invariant: appends that go on meanwhile are not in the copy, and nobody else opens it meanwhile. Called for backups.

use std::path::Path;
use std::sync::Arc;

use super::Journal;
use crate::disk::{Disk, FileDisk};
use crate::error::StoreError;
use crate::ledger::Options;
use crate::ledger::copy::{self, Copied};
use crate::lock::{StoreLock, check_directory, make_directory};

impl Journal {
    /// Copies what is committed now into a new store at a path, which must be free or an empty directory: the events,
    /// byte for byte, under the same store id, and the cursors of the outbox. Everything is synced when this returns.
    /// The store's own file is written last but one step, so that a copy that was cut off is no store; who wants no
    /// half copy under a name at all copies beside it and renames.
    ///
    /// # Errors
    /// The damage of a damaged log, of which nothing is copied; [`StoreError::NotAStore`] for a directory that is not
    /// empty; [`StoreError::Corrupt`] for an event that does not hash to what it was; what either disk answered.
    pub fn copy_to(&self, path: &Path) -> Result<Copied, StoreError> {
        let view = self.view();
        // Looked at before a directory is made.
        if let Some(damage) = view.damage() {
            return Err(damage.clone());
        }
        make_directory(path)?;
        check_directory(path)?;
        let options = Options::default();
        let _lock = StoreLock::exclusive(path, options.clock.now_ms())?;
        let disk: Arc<dyn Disk> = Arc::new(FileDisk::new(path));
        let id = self.store_id().clone();
        copy::onto(&self.shared.log, &view, id, disk, &options)
    }
}

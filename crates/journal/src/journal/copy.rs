//! A copy of a store's log in another directory, as it was at one moment.
//!
//! Invariant: the copy has the same store id and the same bytes of every event up to that moment, checked on the way,
//! and opens to the very same cursor; appends that go on meanwhile are not in it. Called for backups.

use std::path::Path;
use std::sync::Arc;

use aiws::digest::Digest;

use super::Journal;
use crate::disk::{Disk, FileDisk};
use crate::error::StoreError;
use crate::ledger::{Ledger, Options, sealed};
use crate::lock::{StoreLock, check_directory, make_directory};
use crate::log::{Frames, Log};
use crate::store;
use crate::view::View;

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// How many events, which is the sequence of the last one.
    pub events: u64,
    /// The hash of the last one.
    pub last: Digest,
}

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
        if let Some(damage) = view.damage() {
            return Err(damage.clone());
        }
        make_directory(path)?;
        check_directory(path)?;
        let options = Options::default();
        let _lock = StoreLock::exclusive(path, options.clock.now_ms())?;
        let disk: Arc<dyn Disk> = Arc::new(FileDisk::new(path));
        store::make_room(&*disk)?;
        let log = Log::create(Arc::clone(&disk), options.segment_bytes)?;
        self.copy_frames(&log, view.sequence())?;
        log.close();
        drop(log);
        store::write(&*disk, self.store_id().clone())?;
        let mut ledger = Ledger::open(disk, &options)?;
        same_end(&view, &ledger.view())?;
        for (consumer, sequence) in view.cursors() {
            ledger.acknowledge(consumer, *sequence)?;
        }
        ledger.close()?;
        Ok(Copied {
            events: view.cursor.sequence,
            last: view.cursor.hash,
        })
    }

    /// Appends the frames up to a sequence to another log, each checked against its hash.
    fn copy_frames(&self, log: &Log, end: u64) -> Result<(), StoreError> {
        let mut next = 1;
        let mut frames = Frames::default();
        while next <= end {
            let first = next;
            frames.clear();
            for (sequence, bytes) in self.shared.log.chunk(next)? {
                if sequence != next || sequence > end {
                    break;
                }
                sealed(sequence, &bytes)?;
                frames.bytes.extend_from_slice(&bytes);
                frames.ends.push(frames.bytes.len());
                next += 1;
            }
            if next == first {
                return Err(StoreError::Corrupt {
                    place: format!("sequence {next}"),
                    what: "the event is missing".to_owned(),
                });
            }
            log.append(first, &frames).map_err(|fault| fault.error)?;
            log.roll_over()?;
        }
        Ok(())
    }
}

/// That the copy opened to where the original stood.
fn same_end(from: &View, copy: &View) -> Result<(), StoreError> {
    if let Some(why) = &copy.read_only {
        return Err(why.clone());
    }
    if copy.cursor == from.cursor {
        return Ok(());
    }
    Err(StoreError::Internal {
        what: format!(
            "the copy ends at sequence {}, the original at {}",
            copy.sequence(),
            from.sequence()
        ),
    })
}

#[cfg(test)]
mod tests;

//! A copy of a store's log on another disk, as it was at one moment.
//!
//! Invariant: the copy has the same store id and the same bytes of every event up to that moment, checked on the way,
//! and opens to the very same cursor. Called by the journal, for backups.

use std::sync::Arc;

use aiws::digest::Digest;
use aiws::id::StoreId;

use super::{Ledger, Options, sealed};
use crate::disk::Disk;
use crate::error::StoreError;
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

impl Ledger {
    /// Copies what is committed now onto another disk that holds nothing, or a copy that was cut off; see
    /// [`crate::Journal::copy_to`].
    ///
    /// # Errors
    /// As there, but for the lock and the directory, which are the caller's.
    pub fn copy_onto(&self, disk: Arc<dyn Disk>, options: &Options) -> Result<Copied, StoreError> {
        onto(
            &self.log,
            &self.view,
            self.store_id().clone(),
            disk,
            options,
        )
    }
}

/// Copies a log up to a view's end onto another disk.
pub(crate) fn onto(
    from: &Log,
    view: &View,
    id: StoreId,
    disk: Arc<dyn Disk>,
    options: &Options,
) -> Result<Copied, StoreError> {
    if let Some(damage) = view.damage() {
        return Err(damage.clone());
    }
    store::make_room(&*disk, true)?;
    let log = Log::create(Arc::clone(&disk), options.segment_bytes)?;
    copy_frames(from, &log, view.sequence())?;
    log.close();
    drop(log);
    store::write(&*disk, id)?;
    let mut ledger = Ledger::open(disk, options)?;
    same_end(view, &ledger.view())?;
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
fn copy_frames(from: &Log, log: &Log, end: u64) -> Result<(), StoreError> {
    let mut next = 1;
    let mut frames = Frames::default();
    while next <= end {
        let first = next;
        frames.clear();
        for (sequence, bytes) in from.chunk(next)? {
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

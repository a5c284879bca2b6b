//! Hop 4 of 5, the core: conditions, one durable commit, projections. Previous: journal-format/seal, next: engine/run_actor.
//!
//! Invariant: the view is what the durable log folds to; it moves only after a commit, and nobody is answered before
//! that. No threads and no clock of its own: driven by the journal's writer and, directly, by the simulator.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

use aiws::id::{ConsumerId, StoreId, StreamId};
use praxis_journal_format::{Frame, Sealed};
use praxis_plant::{self as plant, Plant};

use crate::RequestKey;
use crate::append::{Append, AppendError, AppendResult, Appended};
use crate::conditions::{Checked, Hint, Lookup, Now, check, illegal};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::index::{Flush, Index, Snapshot};
use crate::limits;
use crate::log::{Frames, Log};
use crate::rows::{IdentityKey, IdentityRow, LogCursor, RequestRow};
use crate::view::{Dirty, View};

mod check;
pub(crate) mod copy;
mod mend;
mod open;
mod options;
pub(crate) mod outbox;
pub(crate) mod tree;

pub use options::{Clock, Options, SystemClock};

/// The index in use; none while there is none that can be used. Shared with the readers.
pub(crate) type IndexCell = RwLock<Option<Arc<Index>>>;

/// What the index lacks, taken for a write that may happen on another thread, beside commits of the log.
#[derive(Debug)]
pub struct FlushJob {
    index: Arc<Index>,
    flush: Flush,
}

impl FlushJob {
    /// Writes it, durably. The result goes to [`Ledger::end_flush`].
    ///
    /// # Errors
    /// What the index answered.
    pub fn write(&self) -> Result<(), StoreError> {
        self.index.write(&self.flush)
    }
}

/// The single-threaded core of a store.
#[derive(Debug)]
pub struct Ledger {
    disk: Arc<dyn Disk>,
    store: StoreId,
    log: Arc<Log>,
    index: Arc<IndexCell>,
    view: Arc<View>,
    dirty: Dirty,
    flushed: LogCursor,
    flushing: bool,
    frames: Frames,
    batch_max: usize,
    clock_steps: u64,
}

impl Ledger {
    /// The projections of the durable log.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view)
    }

    /// The store's id.
    pub fn store_id(&self) -> &StoreId {
        &self.store
    }

    /// Why the store takes no appends, if it takes none.
    pub fn read_only(&self) -> Option<&StoreError> {
        self.view.read_only.as_ref()
    }

    /// Checks and commits appends in order, many in one durable commit; the answers are in the order of the batch.
    /// `now_ms` is the writer's clock; the time of the log is never undercut.
    pub fn commit(&mut self, batch: &[Append], now_ms: u64) -> Vec<AppendResult> {
        let mut answers = Vec::with_capacity(batch.len());
        let mut rest = batch;
        while !rest.is_empty() {
            let (group, tail) = rest.split_at(group_len(rest, self.batch_max));
            let before = self.view.sequence();
            let answered = catch_unwind(AssertUnwindSafe(|| self.commit_group(group, now_ms)));
            answers.extend(answered.unwrap_or_else(|_| self.after_panic(group, before)));
            rest = tail;
        }
        answers
    }

    /// Writes the index up to the log's end, durably. One that the disk failed under is made anew, whatever it lacks.
    ///
    /// # Errors
    /// [`StoreError`] if neither the index nor a rebuilt one could be written; the store is read-only then.
    pub fn flush_index(&mut self) -> Result<(), StoreError> {
        if has_failed(&self.index) && !self.flushing && self.view.read_only.is_none() {
            return self.renew_index();
        }
        self.begin_flush().map_or(Ok(()), |job| {
            let result = job.write();
            self.end_flush(job, result)
        })
    }

    /// Lets go of a run (passivation): its marker is cleared in the index at the next flush, and the run is not
    /// recovered after an unclean end (T-16). Losing this costs one needless recovery.
    pub fn release_owner(&mut self, stream: &StreamId) {
        let view = Arc::make_mut(&mut self.view);
        view.release(stream, &mut self.dirty);
    }

    /// Moves a consumer's cursor of the outbox and makes that durable (OUT-1, OUT-3). A cursor never moves back.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], [`StoreError::Internal`] for a sequence that the log does not have, or what the
    /// index answered; the consumer then sees the events again.
    pub fn acknowledge(&mut self, consumer: &ConsumerId, sequence: u64) -> Result<(), StoreError> {
        if let Some(why) = &self.view.read_only {
            return Err(StoreError::ReadOnly {
                why: why.to_string(),
            });
        }
        if sequence > self.view.sequence() {
            let what = format!(
                "sequence {sequence} was acknowledged, the log ends at {}",
                self.view.sequence()
            );
            return Err(StoreError::Internal { what });
        }
        let sequence = match plant::is(Plant::OutboxAcknowledgesAll) {
            true => self.view.sequence(),
            false => sequence,
        };
        if sequence > self.view.acknowledged(consumer) {
            Arc::make_mut(&mut self.view)
                .cursors
                .insert_mut(consumer.clone(), sequence);
            self.dirty.cursors.insert(consumer.clone());
        }
        self.flush_index()
    }

    /// The first result of a request; none if it was never committed.
    ///
    /// # Errors
    /// What the index answered.
    pub fn lookup_request(&self, key: &RequestKey) -> Result<Option<RequestRow>, StoreError> {
        lookup_request(&self.view, &self.index, key)
    }

    /// As [`Journal::pending`](crate::Journal::pending).
    ///
    /// # Errors
    /// As there.
    pub fn pending(
        &self,
        consumer: &ConsumerId,
        limit: usize,
    ) -> Result<Vec<(u64, Sealed)>, StoreError> {
        outbox::pending(&self.log, &self.view, consumer, limit)
    }

    /// The event at a sequence, checked against its hash.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the sequence, or what the disk answered.
    pub fn read(&self, sequence: u64) -> Result<Option<Sealed>, StoreError> {
        read(&self.log, sequence)
    }

    /// Some frames from a sequence on, as they are stored and unchecked, each with its sequence; none behind the last.
    /// For whoever compares bytes; [`Self::read`] checks.
    ///
    /// # Errors
    /// What the disk answered.
    pub fn frames(&self, from: u64) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        self.log.chunk(from)
    }

    /// Writes the index and closes the files.
    ///
    /// # Errors
    /// As [`Ledger::flush_index`]; the log is durable whatever happens here.
    pub fn close(mut self) -> Result<(), StoreError> {
        let flushed = match self.view.read_only {
            Some(_) => Ok(()),
            None => self.flush_index(),
        };
        // Readers may still hold the log and the index; the files are let go all the same.
        self.log.close();
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = None;
        flushed
    }

    pub(crate) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    pub(crate) fn index(&self) -> &Arc<IndexCell> {
        &self.index
    }

    /// What the index lacks, for a write that may happen on another thread; none if there is nothing to write or a
    /// write is under way. Must be followed by [`Ledger::end_flush`].
    pub fn begin_flush(&mut self) -> Option<FlushJob> {
        let current = self.flushed == self.view.cursor && self.dirty.is_empty();
        if self.flushing || current || self.view.read_only.is_some() {
            return None;
        }
        let index = usable(&self.index)?;
        self.flushing = true;
        Some(FlushJob {
            index,
            flush: Flush {
                view: Arc::clone(&self.view),
                dirty: std::mem::take(&mut self.dirty),
            },
        })
    }

    /// Takes the result of a write of the index; a failed one is replaced by an index made anew from the log.
    ///
    /// # Errors
    /// As [`Ledger::flush_index`].
    pub fn end_flush(
        &mut self,
        job: FlushJob,
        result: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        // The index may be replaced, and nobody may hold it then.
        let FlushJob { index, flush } = job;
        drop(index);
        self.flushing = false;
        match result {
            Ok(()) => {
                self.flushed = flush.view.cursor;
                Arc::make_mut(&mut self.view).settle_keys(flush.view.sequence(), &flush.view);
                Ok(())
            }
            Err(error) => {
                tracing::warn!(%error, "the index could not be written; making it anew from the log");
                self.dirty.merge(flush.dirty);
                self.renew_index()
            }
        }
    }

    fn commit_group(&mut self, group: &[Append], now_ms: u64) -> Vec<AppendResult> {
        if let Some(why) = &self.view.read_only {
            return all(
                group,
                &StoreError::ReadOnly {
                    why: why.to_string(),
                },
            );
        }
        let lookup = match self.lookup() {
            Ok(lookup) => lookup,
            Err(error) => return all(group, &error),
        };
        let now_ms = match plant::is(Plant::WallClock) {
            true => now_ms,
            false => now_ms.max(self.view.last_ms),
        };
        let now = Now {
            ms: now_ms,
            clock_steps: self.clock_steps,
        };
        let mut next = View::clone(&self.view);
        self.frames.clear();
        let mut answers = Vec::with_capacity(group.len());
        for append in group {
            let start = &self.view;
            let checked = check(start, &next, append, now, &lookup, &mut self.dirty);
            if checked.is_err() && plant::is(Plant::RefusalLeavesRow) {
                next.leave(append);
            }
            answers.push(self.accept(append, checked, &mut next));
        }
        drop(lookup);
        if self.frames.ends.is_empty() {
            return answers;
        }
        self.plant_cursor_ahead(&next);
        let first = self.view.sequence() + 1;
        if plant::is(Plant::AnsweredBeforeCommit) {
            self.view = Arc::new(next);
            drop(self.log.append(first, &self.frames));
            return answers;
        }
        let committed = match self.log.append(first, &self.frames) {
            Ok(()) => Ok(()),
            Err(fault) => self.look(fault, next.cursor, group),
        };
        match committed {
            Ok(()) => {
                self.view = Arc::new(next);
                self.roll_over();
                answers
            }
            // Refusals and replays may rest on appends of this batch that are not in the log.
            Err(error) => {
                if plant::is(Plant::ViewKeptAfterFailure) {
                    self.view = Arc::new(next);
                }
                all(group, &error)
            }
        }
    }

    /// Puts an accepted append into the commit's frames and its effects into `next`.
    fn accept(
        &mut self,
        append: &Append,
        checked: Result<Checked, AppendError>,
        next: &mut View,
    ) -> AppendResult {
        let (folded, hints) = match checked? {
            Checked::Replayed { sequence } => return Ok(Appended::Replayed { sequence }),
            Checked::Accepted { next, hints } => (next, hints),
        };
        let (bytes, frames) = (self.frames.bytes.len(), self.frames.ends.len());
        for ((part, sealed), Hint { previous, boot }) in (1..).zip(&append.sealed).zip(hints) {
            if let Err(cause) = Frame::of(sealed, previous, boot).encode(&mut self.frames.bytes) {
                self.frames.bytes.truncate(bytes);
                self.frames.ends.truncate(frames);
                return Err(illegal(cause.to_string()).at_part(part));
            }
            self.frames.ends.push(self.frames.bytes.len());
        }
        let answer = Appended::Committed {
            sequence: next.sequence() + 1,
            hash: folded.cursor.hash,
        };
        *next = *folded;
        Ok(answer)
    }

    fn plant_cursor_ahead(&self, next: &View) {
        if let Some(index) = usable(&self.index).filter(|_| plant::is(Plant::CursorAhead)) {
            let (view, dirty) = (Arc::new(next.clone()), Dirty::default());
            drop(index.write(&Flush { view, dirty }));
        }
    }

    fn roll_over(&mut self) {
        if let Err(error) = self.log.roll_over() {
            self.stop(StoreError::ReadOnly {
                why: format!("a sealed segment cannot be read: {error}"),
            });
        }
    }

    /// A look at the index for the conditions; a broken index is made anew first.
    fn lookup(&mut self) -> Result<Snapshot, StoreError> {
        let snapshot = |cell: &IndexCell| {
            let index = usable(cell).filter(|index| !index.has_failed());
            index.map(|index| index.snapshot())
        };
        if let Some(Ok(snapshot)) = snapshot(&self.index) {
            return Ok(snapshot);
        }
        self.renew_index()?;
        let what = "the index is gone right after it was made".to_owned();
        snapshot(&self.index).unwrap_or(Err(StoreError::Internal { what }))
    }
}

/// What an index that is not there answers.
pub(crate) struct NoIndex;

impl Lookup for NoIndex {
    fn request(&self, _: &RequestKey) -> Result<Option<RequestRow>, StoreError> {
        Ok(None)
    }

    fn identity(&self, _: &IdentityKey) -> Result<Option<IdentityRow>, StoreError> {
        Ok(None)
    }
}

/// The index, if there is one.
pub(crate) fn usable(cell: &IndexCell) -> Option<Arc<Index>> {
    cell.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Whether the disk failed under the index.
pub(crate) fn has_failed(cell: &IndexCell) -> bool {
    usable(cell).is_some_and(|index| index.has_failed())
}

pub(crate) fn lookup_request(
    view: &View,
    cell: &IndexCell,
    key: &RequestKey,
) -> Result<Option<RequestRow>, StoreError> {
    if let Some(row) = view.requests.get(key) {
        return Ok(Some(*row));
    }
    match usable(cell) {
        Some(index) => index.snapshot()?.request(key),
        None => NoIndex.request(key),
    }
}

pub(crate) fn read(log: &Log, sequence: u64) -> Result<Option<Sealed>, StoreError> {
    let Some(bytes) = log.frame(sequence)? else {
        return Ok(None);
    };
    sealed(sequence, &bytes).map(|(sealed, _)| Some(sealed))
}

/// The event of a frame, checked, with the marker and the previous sequence beside it.
pub(crate) fn sealed(sequence: u64, bytes: &[u8]) -> Result<(Sealed, Hint), StoreError> {
    let frame = Frame::decode(bytes).map_err(|cause| StoreError::event(sequence, cause))?;
    let sealed = Sealed::from_frame(&frame).map_err(|cause| StoreError::event(sequence, cause))?;
    Ok((
        sealed,
        Hint {
            previous: frame.previous,
            boot: frame.boot,
        },
    ))
}

pub(crate) fn tail_lost(expected: LogCursor, found: String) -> StoreError {
    StoreError::TailLost {
        expected: expected.sequence,
        expected_hash: expected.hash,
        found,
    }
}

fn all(group: &[Append], error: &StoreError) -> Vec<AppendResult> {
    group
        .iter()
        .map(|_| Err(AppendError::Store(error.clone())))
        .collect()
}

/// How many appends make up the next commit: at least one, at most the bounds in number and bytes.
fn group_len(appends: &[Append], batch_max: usize) -> usize {
    let mut bytes = 0;
    let size = |append: &Append| {
        append
            .sealed
            .iter()
            .map(|sealed| sealed.bytes.len())
            .sum::<usize>()
    };
    let fits = appends.iter().take(batch_max.max(1)).take_while(|append| {
        bytes += size(append);
        bytes <= limits::BATCH_BYTES
    });
    fits.count().max(1)
}

//! The log: numbered segments, one growing; the only thing that must be durable at a reply.
//!
//! Invariant: sequences are gap-free over the segments; after a storage error the log is reopened and looked at, and
//! after a failed sync the file is never trusted again: it is copied. A segment that an error of the disk hit while it
//! was read is opened again, because redb refuses every later use of it. Appended to by the ledger, read by everyone.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use praxis_journal_format::Frame;
use praxis_plant::{self as plant, Plant};
use redb::{ReadableTable, StorageBackend};

use crate::backend::{Failed, Watched};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::rows::LogCursor;
use crate::segment::{self, LOG, Segment, UNFINISHED, finish, follows, name, numbers};

/// Most bytes of frames that a reader takes in one hold of the lock, and most frames.
const CHUNK_BYTES: usize = 4 << 20;
const CHUNK_FRAMES: usize = 1024;

#[derive(Debug)]
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    segment_bytes: u64,
    write: bool,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    /// Full segments with the sequence of their first event, oldest first.
    sealed: Vec<(u64, Segment)>,
    /// The growing segment; none only after a storage error that nothing could mend yet.
    hot: Option<Segment>,
    /// The first sequence that is or will be in the hot segment.
    hot_first: u64,
    /// The last commit failed and was not looked at yet: until then only [`Log::reopen`] may open the segment again,
    /// which knows whether its file is to be trusted. Set under the lock that commits share.
    unsettled: AtomicBool,
    closed: bool,
}

/// Encoded frames of one commit.
#[derive(Default)]
pub(crate) struct Frames {
    pub bytes: Vec<u8>,
    pub ends: Vec<usize>,
}

aiws::veiled! { Frames { ends } bytes; }

/// A commit that failed, and what must be done before anybody is answered.
#[derive(Debug)]
pub(crate) struct LogFault {
    /// The file is not to be trusted: copy it.
    pub copy: bool,
    pub error: StoreError,
}

impl Frames {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.bytes[start..*end])
    }
}

impl Log {
    /// Makes the first segment of a new store.
    pub fn create(disk: Arc<dyn Disk>, segment_bytes: u64) -> Result<Self, StoreError> {
        let hot = Segment::create(&*disk, 1)?;
        Ok(Self::with(
            disk,
            segment_bytes,
            true,
            State::new(Vec::new(), hot, 1),
        ))
    }

    /// Opens the segments that are there; with `write` false nothing on the disk changes.
    pub fn open(disk: Arc<dyn Disk>, segment_bytes: u64, write: bool) -> Result<Self, StoreError> {
        let numbers = numbers(&*disk)?;
        let Some((last, full)) = numbers.split_last() else {
            return Err(StoreError::Corrupt {
                place: name(1),
                what: "expected a log, found no segment".to_owned(),
            });
        };
        let mut sealed = Vec::with_capacity(full.len());
        let mut next = 1;
        for number in full {
            let segment = Segment::open_read(&*disk, *number, write)?;
            let (first, end) = ends(&segment)?.unwrap_or((0, 0));
            follows(next, first, *number)?;
            next = end + 1;
            sealed.push((first, segment));
        }
        let hot = if write {
            Segment::open(&*disk, *last)?
        } else {
            Segment::open_read(&*disk, *last, false)?
        };
        if let Some((first, _)) = ends(&hot)? {
            follows(next, first, *last)?;
        }
        Ok(Self::with(
            disk,
            segment_bytes,
            write,
            State::new(sealed, hot, next),
        ))
    }

    fn with(disk: Arc<dyn Disk>, segment_bytes: u64, write: bool, state: State) -> Self {
        Self {
            disk,
            segment_bytes,
            write,
            state: RwLock::new(state),
        }
    }

    /// The last event's place.
    pub fn last(&self) -> Result<LogCursor, StoreError> {
        self.reading(|state| {
            let sealed = state.sealed.iter().rev().map(|(_, segment)| segment);
            let mut segments = std::iter::once(state.hot()?).chain(sealed);
            let found = segments.find_map(|segment| last(segment).transpose());
            found.unwrap_or(Ok(LogCursor::START))
        })
    }

    /// The frame at a sequence.
    pub fn frame(&self, sequence: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.reading(|state| {
            let Some(segment) = state.segment_of(sequence)? else {
                return Ok(None);
            };
            segment.read(|transaction| {
                let table = transaction.open_table(LOG)?;
                Ok(table.get(sequence)?.map(|row| row.value().to_vec()))
            })
        })
    }

    /// Some frames from a sequence on, in order; empty at the end of the log.
    pub fn chunk(&self, from: u64) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        self.reading(|state| {
            let Some(segment) = state.segment_of(from)? else {
                return Ok(Vec::new());
            };
            segment.read(|transaction| {
                let table = transaction.open_table(LOG)?;
                let mut frames = Vec::new();
                let mut size = 0;
                for row in table.range(from..)? {
                    let (key, value) = row?;
                    size += value.value().len();
                    frames.push((key.value(), value.value().to_vec()));
                    if size >= CHUNK_BYTES || frames.len() >= CHUNK_FRAMES {
                        break;
                    }
                }
                Ok(frames)
            })
        })
    }

    /// Reads, and once more if that failed and the segments that the disk failed under could be opened again.
    fn reading<T>(&self, work: impl Fn(&State) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let read = work(&self.state());
        read.or_else(|error| match self.renewed() {
            true => {
                tracing::warn!(%error, "a read of the log failed; reading again");
                work(&self.state())
            }
            false => Err(error),
        })
    }

    /// Opens again each segment that the disk failed under since it was opened; false if reading again is of no use.
    fn renewed(&self) -> bool {
        let mut state = self.state_mut();
        if state.closed || state.unsettled.load(Ordering::Relaxed) {
            return false;
        }
        let failed = |segment: &Segment| segment.watched.fault().is_some();
        for (_, segment) in state.sealed.iter_mut().filter(|(_, it)| failed(it)) {
            match Segment::open_read(&*self.disk, segment.number, self.write) {
                Ok(opened) => *segment = opened,
                Err(_) => return false,
            }
        }
        if state.hot.as_ref().is_none_or(failed) {
            let number = state.hot_number();
            drop(state.hot.take());
            state.hot = match self.write {
                true => Segment::open(&*self.disk, number).ok(),
                false => Segment::open_read(&*self.disk, number, false).ok(),
            };
        }
        state.hot.is_some()
    }

    /// Commits frames at the right edge, durably.
    pub fn append(&self, first: u64, frames: &Frames) -> Result<(), LogFault> {
        let state = self.state();
        let Some(hot) = &state.hot else {
            let why = "the log's last segment could not be opened again".to_owned();
            return Err(LogFault {
                copy: false,
                error: StoreError::ReadOnly { why },
            });
        };
        let doing = format!("append to {}", name(hot.number));
        let committed = catch_unwind(AssertUnwindSafe(|| commit(hot, first, frames)));
        let fault = hot.watched.fault();
        let stored = matches!(committed, Ok(Ok(())));
        state.unsettled.store(!stored, Ordering::Relaxed);
        match committed {
            Ok(Ok(())) => Ok(()),
            // Without a word from below (a panic, or redb's own refusal) the file gets the stricter cure.
            Ok(Err(cause)) => {
                let copy = fault
                    .as_ref()
                    .is_none_or(|fault| fault.failed == Failed::Sync);
                let error = fault.map_or_else(
                    || StoreError::redb(&doing, cause),
                    |fault| StoreError::io(&doing, &io::Error::new(fault.kind, fault.what)),
                );
                Err(LogFault { copy, error })
            }
            Err(_) => {
                let what = format!("{doing}: the storage engine panicked");
                Err(LogFault {
                    copy: true,
                    error: StoreError::Io { what },
                })
            }
        }
    }

    /// Closes the hot segment and opens it again, as a copy if the file is not to be trusted. On success what is
    /// then seen in the log is durable. On an error the log is left readable from memory if it can be.
    pub fn reopen(&self, copy: bool) -> Result<(), StoreError> {
        let mut state = self.state_mut();
        let number = state.hot_number();
        drop(state.hot.take());
        let copy = copy && !plant::is(Plant::ReopenInPlace);
        let in_place = match copy {
            true => None,
            false => Segment::open(&*self.disk, number)
                .ok()
                .filter(|hot| hot.watched.sync_data().is_ok()),
        };
        let opened = match in_place {
            Some(hot) => Ok(hot),
            None => replace(&*self.disk, number).and_then(|()| Segment::open(&*self.disk, number)),
        };
        state.unsettled.store(opened.is_err(), Ordering::Relaxed);
        match opened {
            Ok(hot) => {
                state.hot = Some(hot);
                Ok(())
            }
            Err(error) => {
                state.hot = Segment::open_copy(&*self.disk, number).ok();
                Err(error)
            }
        }
    }

    /// Seals the hot segment and begins a new one, if it has grown to the bound. If the new one cannot be made (a full
    /// disk), the old one stays in use and the answer is false; an error means that the old one can no longer be read.
    pub fn roll_over(&self) -> Result<bool, StoreError> {
        let full = self.reading(|state| {
            let Some(hot) = &state.hot else {
                return Ok(None);
            };
            let size = hot
                .watched
                .len()
                .map_err(|cause| StoreError::io(&name(hot.number), &cause))?;
            match size < self.segment_bytes {
                true => Ok(None),
                false => Ok(ends(hot)?.map(|ends| (hot.number, ends))),
            }
        })?;
        let Some((number, (first, last))) = full else {
            return Ok(false);
        };
        let fresh = match Segment::create(&*self.disk, number + 1) {
            Ok(fresh) => fresh,
            Err(error) => {
                tracing::warn!(%error, segment = number, "the segment is over its bound and stays in use");
                return Ok(false);
            }
        };
        let mut state = self.state_mut();
        // Until the full one is open for reading it is the last one, which whoever needs it opens again.
        drop(state.hot.take());
        let sealed = match Segment::open_read(&*self.disk, number, true) {
            Ok(sealed) => sealed,
            Err(_) => Segment::open_copy(&*self.disk, number)?,
        };
        state.hot = Some(fresh);
        state.sealed.push((first, sealed));
        state.hot_first = last + 1;
        Ok(true)
    }

    /// Lets all files go; whoever reads afterwards is told that the journal is closed.
    pub fn close(&self) {
        let mut state = self.state_mut();
        state.closed = true;
        state.sealed.clear();
        state.hot = None;
    }

    /// What is wrong with the pages of the growing segment, if anything is.
    pub fn damage(disk: &dyn Disk) -> Result<Option<StoreError>, StoreError> {
        let Some(last) = numbers(disk)?.last().copied() else {
            return Ok(None);
        };
        match segment::sound(disk, &name(last)) {
            Err(error @ StoreError::Corrupt { .. }) => Ok(Some(error)),
            other => other.map(|()| None),
        }
    }

    /// Removes what a crash left under temporary names, and makes the names that are there durable.
    pub fn sweep(disk: &dyn Disk) -> Result<(), StoreError> {
        let names = disk
            .list()
            .map_err(|cause| StoreError::io("list the store", &cause))?;
        let leftovers: Vec<_> = names
            .into_iter()
            .filter(|name| name.ends_with(UNFINISHED))
            .collect();
        for name in &leftovers {
            disk.remove(name)
                .map_err(|cause| StoreError::io(&format!("remove {name}"), &cause))?;
        }
        // Always: the process before may have renamed a copy into place and failed to make that durable. What is appended
        // to such a file is lost with its name.
        disk.sync_directory()
            .map_err(|cause| StoreError::io("sync the store's directory", &cause))
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(sealed: Vec<(u64, Segment)>, hot: Segment, hot_first: u64) -> Self {
        Self {
            sealed,
            hot: Some(hot),
            hot_first,
            unsettled: AtomicBool::new(false),
            closed: false,
        }
    }

    /// The number of the growing segment, whether it could be opened or not.
    fn hot_number(&self) -> u64 {
        let next = 1 + self.sealed.len() as u64;
        self.hot.as_ref().map_or(next, |hot| hot.number)
    }

    /// The growing segment.
    fn hot(&self) -> Result<&Segment, StoreError> {
        if self.closed {
            return Err(StoreError::Closed);
        }
        self.hot.as_ref().ok_or_else(|| StoreError::ReadOnly {
            why: "the log's last segment cannot be read until the store is reopened".to_owned(),
        })
    }

    fn segment_of(&self, sequence: u64) -> Result<Option<&Segment>, StoreError> {
        if self.closed {
            return Err(StoreError::Closed);
        }
        if sequence == 0 {
            return Ok(None);
        }
        if sequence >= self.hot_first {
            return self.hot().map(Some);
        }
        let after = self.sealed.partition_point(|(first, _)| *first <= sequence);
        Ok(after.checked_sub(1).map(|at| &self.sealed[at].1))
    }
}

fn commit(hot: &Segment, first: u64, frames: &Frames) -> Result<(), redb::Error> {
    let mut transaction = hot.begin_write()?;
    if plant::is(Plant::CommitNotDurable) {
        transaction.set_durability(redb::Durability::None)?;
    }
    if plant::is(Plant::ReopenInPlace) {
        transaction.set_quick_repair(false);
        transaction.set_two_phase_commit(false);
    }
    let first = first + u64::from(plant::is(Plant::SequenceSkipped) && first > 4);
    {
        let mut table = transaction.open_table(LOG)?;
        for (sequence, frame) in (first..).zip(frames.iter()) {
            table.insert(sequence, frame)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Puts a synced copy of a segment in its place.
fn replace(disk: &dyn Disk, number: u64) -> Result<(), StoreError> {
    let name = name(number);
    let unfinished = format!("{name}{UNFINISHED}");
    let copied = || -> io::Result<()> {
        let from: Watched = segment::existing(disk, &name, false)?;
        segment::copy(&from, &*disk.create(&unfinished)?)?;
        finish(disk, &unfinished, &name)
    };
    copied().map_err(|cause| {
        drop(disk.remove(&unfinished));
        StoreError::io(&format!("copy {name} after a storage error"), &cause)
    })
}

/// The first and the last sequence of a segment; none if it is empty.
pub(crate) fn ends(segment: &Segment) -> Result<Option<(u64, u64)>, StoreError> {
    segment.read(|transaction| {
        let table = transaction.open_table(LOG)?;
        let first = table.first()?.map(|(key, _)| key.value());
        let last = table.last()?.map(|(key, _)| key.value());
        Ok(first.zip(last))
    })
}

fn last(segment: &Segment) -> Result<Option<LogCursor>, StoreError> {
    let row = segment.read(|transaction| {
        let table = transaction.open_table(LOG)?;
        Ok(table
            .last()?
            .map(|(key, value)| (key.value(), value.value().to_vec())))
    })?;
    let Some((sequence, bytes)) = row else {
        return Ok(None);
    };
    let frame =
        Frame::decode_unhashed(&bytes).map_err(|cause| StoreError::event(sequence, cause))?;
    Ok(Some(LogCursor {
        sequence,
        hash: frame.hash,
    }))
}

#[cfg(test)]
mod tests;

//! Creating, opening and catching up: what happens before the first append.
//!
//! Invariant: opening never loses a durable event and never goes on over a lost or damaged one: such a store is
//! opened read-only and says so. A missing, torn, stale or foreign index costs replay time. Called by the journal.

use std::sync::{Arc, PoisonError, RwLock};

use aiws::id::StoreId;
use praxis_journal_format::tree::CompactRange;
use praxis_plant::{self as plant, Plant};

use super::{IndexCell, Ledger, Options, sealed, tail_lost, tree};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::index::{Flush, Index};
use crate::limits::{AHEAD_MS, REBUILD_EVENTS};
use crate::log::{Frames, Log};
use crate::rows::LogCursor;
use crate::store;
use crate::view::{Dirty, View};

/// Why a replay stopped before the end of the log.
enum Stopped {
    /// The log is damaged.
    Log(StoreError),
    /// The index could not be written.
    Index(StoreError),
}

/// What the log and the index come to.
struct CaughtUp {
    index: Option<Index>,
    view: View,
    dirty: Dirty,
    flushed: LogCursor,
}

impl Ledger {
    /// Makes an empty store of files and opens it.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] if the files hold a store or anything else; what the disk answered.
    pub fn create(
        disk: Arc<dyn Disk>,
        store_id: StoreId,
        options: &Options,
    ) -> Result<Self, StoreError> {
        store::make_room(&*disk, false)?;
        drop(Log::create(Arc::clone(&disk), options.segment_bytes)?);
        // The store's file comes last: whoever finds it finds a whole log.
        store::write(&*disk, store_id)?;
        Self::open(disk, options)
    }

    /// Opens a store, replaying what its index does not cover. Look at [`Ledger::read_only`]: a store whose log lost
    /// its tail or is damaged after the index's cursor is opened all the same, for reading.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`], [`StoreError::TooNew`], [`StoreError::Locked`], [`StoreError::Corrupt`] for a log
    /// that cannot be opened at all, or what the disk answered.
    pub fn open(disk: Arc<dyn Disk>, options: &Options) -> Result<Self, StoreError> {
        let store = store::read(&*disk)?;
        let write = !options.read_only;
        if write {
            Log::sweep(&*disk)?;
        }
        let damage = match options.check_pages {
            true => Log::damage(&*disk)?,
            false => None,
        };
        let write = write && damage.is_none();
        let log = Log::open(Arc::clone(&disk), options.segment_bytes, write)?;
        let CaughtUp {
            index,
            mut view,
            dirty,
            flushed,
        } = catch_up(&*disk, &store, &log, write, options.check_pages)?;
        // What the log itself says is wrong names the place better.
        view.read_only = view.read_only.take().or(damage);
        if write {
            view.boot = next_boot(view.boot)?;
        } else if view.read_only.is_none() {
            view.read_only = Some(StoreError::ReadOnly {
                why: "it was opened for reading".to_owned(),
            });
        }
        Ok(Self {
            disk,
            store,
            log: Arc::new(log),
            index: Arc::new(IndexCell::from(RwLock::new(index.map(Arc::new)))),
            view: Arc::new(view),
            dirty,
            flushed,
            flushing: false,
            frames: Frames::default(),
            batch_max: options.batch_max,
            clock_steps: 0,
        })
    }

    /// Makes the index anew from the log. On an error the store is read-only: without an index a request could be
    /// taken twice. The old one stays until then: whoever looks for a request meanwhile is told that it fails, and not that
    /// there was none.
    pub(super) fn renew_index(&mut self) -> Result<(), StoreError> {
        let renewed = fresh(&*self.disk, &self.store, &self.log, Some(&self.view));
        match renewed {
            Ok(caught_up) if caught_up.view.cursor == self.view.cursor => {
                *self.index.write().unwrap_or_else(PoisonError::into_inner) =
                    caught_up.index.map(Arc::new);
                self.view = Arc::new(caught_up.view);
                self.dirty = caught_up.dirty;
                self.flushed = caught_up.flushed;
                Ok(())
            }
            Ok(caught_up) => {
                let what = format!("the log folds to sequence {}", caught_up.view.sequence());
                let lost = caught_up
                    .view
                    .read_only
                    .clone()
                    .unwrap_or_else(|| tail_lost(self.view.cursor, what));
                self.stop(lost.clone());
                Err(lost)
            }
            Err(error) => {
                self.stop(StoreError::ReadOnly {
                    why: format!("the index cannot be made anew: {error}"),
                });
                Err(error)
            }
        }
    }
}

/// The number of this boot. Markers of the last number there is would stand for every later boot as well.
fn next_boot(boot: u64) -> Result<u64, StoreError> {
    boot.checked_add(1).ok_or_else(|| StoreError::Corrupt {
        place: "the owner markers of the log".to_owned(),
        what: format!("expected a boot number below {}, found it", u64::MAX),
    })
}

/// Folds everything after the view's cursor, without an index.
pub(super) fn fold(log: &Log, view: &mut View, dirty: &mut Dirty) -> Result<(), StoreError> {
    replay(log, view, dirty, None)
        .map(|_| ())
        .map_err(|stopped| match stopped {
            Stopped::Log(error) | Stopped::Index(error) => error,
        })
}

fn catch_up(
    disk: &dyn Disk,
    store: &StoreId,
    log: &Log,
    write: bool,
    check: bool,
) -> Result<CaughtUp, StoreError> {
    let (index, mut view) = match Index::open(disk, store, write, check) {
        Ok(opened) => opened,
        Err(StoreError::Locked { holder }) => return Err(StoreError::Locked { holder }),
        Err(error) => {
            tracing::info!(%error, "there is no usable index; folding the whole log");
            return if write {
                fresh(disk, store, log, None)
            } else {
                Ok(in_memory(log, None))
            };
        }
    };
    if let Some(what) = beyond_the_log(log, &view)? {
        tracing::warn!(
            what,
            "the index says what no log can make it say; folding the whole log"
        );
        drop(index);
        return if write {
            fresh(disk, store, log, None)
        } else {
            Ok(in_memory(log, None))
        };
    }
    if let Some(lost) = lost_tail(log, view.cursor)?.filter(|_| !plant::is(Plant::TailUnchecked)) {
        tracing::error!(error = %lost, "the log is shorter than the index has seen it");
        return Ok(in_memory(log, Some(lost)));
    }
    let mut dirty = Dirty::default();
    // An index that has no tree of its cursor gets one with its next write.
    let start = match view.tree.size() == view.sequence() {
        true => view.cursor,
        false => LogCursor::START,
    };
    let planted = grown(log, &mut view).map_err(Stopped::Log);
    match planted.and_then(|()| replay(log, &mut view, &mut dirty, write.then_some(&index))) {
        Ok(written) => Ok(CaughtUp {
            index: Some(index),
            view,
            dirty,
            flushed: written.unwrap_or(start),
        }),
        Err(Stopped::Log(error)) => {
            view.read_only = Some(error);
            Ok(CaughtUp {
                index: Some(index),
                view,
                dirty,
                flushed: start,
            })
        }
        Err(Stopped::Index(error)) => {
            tracing::warn!(%error, "the index cannot be written; making it anew from the log");
            drop(index);
            fresh(disk, store, log, None)
        }
    }
}

/// What the index says that the log up to its cursor cannot have made it say: such an index is not believed at all. A
/// time far ahead would end every lease, a cursor beyond the end would hide events, the last boot number allows no next.
fn beyond_the_log(log: &Log, view: &View) -> Result<Option<&'static str>, StoreError> {
    if view.boot == u64::MAX {
        return Ok(Some("its boot is the last number there is"));
    }
    if view.cursors.values().any(|at| *at > view.sequence()) {
        return Ok(Some("it has an outbox cursor beyond its own"));
    }
    let Some(bytes) = log.frame(view.sequence())? else {
        return Ok(None);
    };
    // A damaged event is reported by whoever looks for a lost tail.
    let Ok((last, _)) = sealed(view.sequence(), &bytes) else {
        return Ok(None);
    };
    let ahead = view.last_ms.saturating_sub(last.event.at_ms.0) > AHEAD_MS;
    Ok(ahead.then_some("its time is far beyond that of the log"))
}

/// What contradicts the index's word about the log, if anything does.
fn lost_tail(log: &Log, seen: LogCursor) -> Result<Option<StoreError>, StoreError> {
    if seen.sequence == 0 {
        return Ok(None);
    }
    let Some(bytes) = log.frame(seen.sequence)? else {
        let last = log.last()?;
        return Ok(Some(tail_lost(
            seen,
            format!("its end at sequence {}", last.sequence),
        )));
    };
    Ok(match praxis_journal_format::Frame::decode(&bytes) {
        Ok(frame) if frame.hash == seen.hash => None,
        Ok(frame) => Some(tail_lost(
            seen,
            format!("another event there ({})", frame.hash),
        )),
        Err(cause) => Some(StoreError::event(seen.sequence, cause)),
    })
}

/// A new index, filled from the first event on. What the log does not know (cursors, released markers) is taken from
/// the view of before, where there is one.
fn fresh(
    disk: &dyn Disk,
    store: &StoreId,
    log: &Log,
    before: Option<&View>,
) -> Result<CaughtUp, StoreError> {
    let index = Index::create(disk, store)?;
    let (mut view, mut dirty) = (View::default(), Dirty::default());
    let written = match replay(log, &mut view, &mut dirty, Some(&index)) {
        Ok(written) => written.unwrap_or(LogCursor::START),
        Err(Stopped::Index(error)) => return Err(error),
        Err(Stopped::Log(error)) => {
            view.read_only = Some(error);
            return Ok(CaughtUp {
                index: Some(index),
                view,
                dirty,
                flushed: LogCursor::START,
            });
        }
    };
    if let Some(before) = before {
        view.boot = before.boot;
        view.cursors = before.cursors.clone();
        view.owners = before.owners.clone();
        dirty.cursors.extend(before.cursors.keys().cloned());
        dirty.owners.extend(before.owners.keys().cloned());
    }
    Index::publish(disk)?;
    Ok(CaughtUp {
        index: Some(index),
        view,
        dirty,
        flushed: written,
    })
}

/// Everything in memory, for a store that is opened for reading.
fn in_memory(log: &Log, trouble: Option<StoreError>) -> CaughtUp {
    let (mut view, mut dirty) = (View::default(), Dirty::default());
    let folded = fold(log, &mut view, &mut dirty);
    view.read_only = trouble.or(folded.err());
    CaughtUp {
        index: None,
        view,
        dirty,
        flushed: LogCursor::START,
    }
}

/// Makes the tree up to the view's cursor from the log, where the index had none.
fn grown(log: &Log, view: &mut View) -> Result<(), StoreError> {
    if view.tree.size() == view.sequence() {
        return Ok(());
    }
    tracing::info!("the index has no tree; making it from the log");
    view.tree = CompactRange::default();
    tree::each_hash(log, view.sequence(), |hash| view.tree.push(hash.as_bytes()))
}

/// Folds the log after the view's cursor; writes the index every so often, if there is one, and gives the last cursor
/// that was written.
fn replay(
    log: &Log,
    view: &mut View,
    dirty: &mut Dirty,
    index: Option<&Index>,
) -> Result<Option<LogCursor>, Stopped> {
    let mut written: Option<LogCursor> = None;
    let mut unwritten = 0;
    loop {
        let chunk = log.chunk(view.sequence() + 1).map_err(Stopped::Log)?;
        if chunk.is_empty() {
            return Ok(written);
        }
        let start = view.clone();
        for (at, (sequence, bytes)) in chunk.iter().enumerate() {
            if let Err(error) = step(view, *sequence, bytes, dirty) {
                // An event that cannot be folded may have left half of itself in the view: fold up to it again.
                *view = start;
                let whole = chunk[..at]
                    .iter()
                    .try_for_each(|(sequence, bytes)| step(view, *sequence, bytes, dirty));
                return Err(Stopped::Log(whole.err().unwrap_or(error)));
            }
            unwritten += 1;
        }
        if let Some(index) = index.filter(|_| unwritten >= REBUILD_EVENTS) {
            let flush = Flush {
                view: Arc::new(view.clone()),
                dirty: std::mem::take(dirty),
            };
            index.write(&flush).map_err(Stopped::Index)?;
            view.settle_keys(view.sequence(), &flush.view);
            written = Some(view.cursor);
            unwritten = 0;
        }
    }
}

fn step(view: &mut View, sequence: u64, bytes: &[u8], dirty: &mut Dirty) -> Result<(), StoreError> {
    let place = format!("sequence {sequence}");
    if sequence != view.sequence() + 1 {
        let what = format!("expected sequence {}", view.sequence() + 1);
        return Err(StoreError::Corrupt { place, what });
    }
    let (sealed, hint) = sealed(sequence, bytes)?;
    let event = &sealed.event;
    let place = format!(
        "{place}, stream {}, revision {}",
        event.stream, event.revision
    );
    view.apply(&sealed, hint.boot, dirty)
        .map_err(|what| StoreError::Corrupt { place, what })?;
    view.boot = view.boot.max(hint.boot);
    Ok(())
}

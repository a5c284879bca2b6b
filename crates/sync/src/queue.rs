//! The commit queue: many submitters hand appends to the one journal writer, which drains them in groups.
//! Invariant: an accepted item reaches the drain exactly once, in the order of its submitter; a refused one comes back.
//! Run actors submit; the writer thread drains, and the index flusher drains with a timeout.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use crate::limits::{QUEUE_CAPACITY_MAX, QUEUE_SLOTS_AT_START};
use crate::sync::{Arc, Condvar, Mutex, lock, wait, wait_timeout};

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

/// A queue for at most `capacity` waiting items, brought into 1..=[`QUEUE_CAPACITY_MAX`].
#[must_use]
pub fn channel<T>(capacity: usize) -> (Submitter<T>, Drain<T>) {
    let capacity = capacity.clamp(1, QUEUE_CAPACITY_MAX);
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            items: VecDeque::with_capacity(capacity.min(QUEUE_SLOTS_AT_START)),
            capacity,
            submitters: 1,
            open: true,
        }),
        filled: Condvar::new(),
    });
    let submitter = Submitter {
        shared: Arc::clone(&shared),
    };
    (submitter, Drain { shared })
}

/// The side that hands in items; clone it for every producer. Dropping the last one closes the queue.
pub struct Submitter<T> {
    shared: Arc<Shared<T>>,
}

/// The side that takes items out; there is one. Dropping it closes the queue and drops what still waits in it.
pub struct Drain<T> {
    shared: Arc<Shared<T>>,
}

/// Why a submission was refused; the item comes back unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Refused<T> {
    /// As many items wait as the queue holds: answer BUSY, or try again when an earlier item was answered.
    Full(T),
    /// The queue is closed and stays so: the writer is gone or is going.
    Closed(T),
}

/// What a wait for items ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// At least one item was taken.
    Ready,
    /// The time passed and no item came; never returned by [`Drain::next_batch`].
    TimedOut,
    /// The queue is closed and everything accepted was taken: no item will ever come.
    Closed,
}

impl<T> Submitter<T> {
    /// Queues `item` for the drain. Never waits for room.
    ///
    /// # Errors
    ///
    /// [`Refused::Closed`] once the queue is closed, else [`Refused::Full`] when it is at its capacity; both give the
    /// item back, and the queue is as before.
    pub fn submit(&self, item: T) -> Result<(), Refused<T>> {
        let mut state = lock(&self.shared.state);
        if !state.open {
            return Err(Refused::Closed(item));
        }
        if state.items.len() >= state.capacity {
            return Err(Refused::Full(item));
        }
        let was_empty = state.items.is_empty();
        state.items.push_back(item);
        drop(state);
        // The one drain sleeps only on an empty queue, so only the first item has anyone to wake.
        if was_empty {
            self.shared.filled.notify_one();
        }
        Ok(())
    }

    /// Closes the queue for all submitters. Items accepted before are still drained.
    pub fn close(&self) {
        self.shared.close();
    }
}

impl<T> Clone for Submitter<T> {
    fn clone(&self) -> Self {
        lock(&self.shared.state).submitters += 1;
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Drop for Submitter<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.submitters -= 1;
        let last = state.submitters == 0;
        drop(state);
        if last {
            self.shared.close();
        }
    }
}

impl<T> Drain<T> {
    /// Blocks until an item waits or the queue is closed, then appends to `out` all that waits, oldest first, at most
    /// `max` (0 counts as 1). It does not linger for more: what arrives during a commit is the next group.
    ///
    /// Returns [`Wait::Ready`] with at least one item, or [`Wait::Closed`] with none.
    pub fn next_batch(&mut self, max: usize, out: &mut Vec<T>) -> Wait {
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(done) = state.take(max, out) {
                return done;
            }
            state = wait(&self.shared.filled, state);
        }
    }

    /// As [`next_batch`](Drain::next_batch), but gives up with [`Wait::TimedOut`] after `timeout`. With a timeout of
    /// zero it takes what is there; one too long for the clock to express waits without end.
    pub fn next_batch_timeout(&mut self, max: usize, out: &mut Vec<T>, timeout: Duration) -> Wait {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(done) = state.take(max, out) {
                return done;
            }
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => timeout,
            };
            if left.is_zero() {
                return Wait::TimedOut;
            }
            state = wait_timeout(&self.shared.filled, state, left);
        }
    }

    /// Closes the queue for all submitters. Items accepted before can still be drained from it.
    pub fn close(&self) {
        self.shared.close();
    }

    /// How many items wait at this moment.
    #[must_use]
    pub fn waiting(&self) -> usize {
        lock(&self.shared.state).items.len()
    }
}

impl<T> Drop for Drain<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.open = false;
        let left = std::mem::take(&mut state.items);
        drop(state);
        // Outside the lock: dropping an item runs the caller's code, which may well submit again.
        drop(left);
    }
}

impl<T> Refused<T> {
    /// The item that was refused.
    #[must_use]
    pub fn into_item(self) -> T {
        match self {
            Self::Full(item) | Self::Closed(item) => item,
        }
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "expected room in the queue, found it full: wait for an earlier item's answer, then retry",
            Self::Closed(_) => "expected an open queue, found it closed: its reader has stopped; open the store again",
        })
    }
}

// By hand, so that an item need not be Debug and is never printed.
impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> std::error::Error for Refused<T> {}

impl<T> fmt::Debug for Submitter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submitter").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Drain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").finish_non_exhaustive()
    }
}

struct Shared<T> {
    state: Mutex<State<T>>,
    /// Notified when the queue stops being empty, and when it closes.
    filled: Condvar,
}

struct State<T> {
    items: VecDeque<T>,
    capacity: usize,
    submitters: usize,
    open: bool,
}

impl<T> Shared<T> {
    fn close(&self) {
        lock(&self.state).open = false;
        self.filled.notify_one();
    }
}

impl<T> State<T> {
    /// Takes what waits, or says that nothing ever will; `None` while the drain has to wait.
    fn take(&mut self, max: usize, out: &mut Vec<T>) -> Option<Wait> {
        if self.items.is_empty() {
            return if self.open { None } else { Some(Wait::Closed) };
        }
        let count = self.items.len().min(max.max(1));
        out.extend(self.items.drain(..count));
        Some(Wait::Ready)
    }
}

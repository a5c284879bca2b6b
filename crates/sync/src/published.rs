//! The published snapshot: the latest committed view that many threads read and few replace.
//! Invariant: versions rise by one per store, and no reader sees an older value after a newer one.
//! The journal writer publishes heads, registers and gates through it; actors and client handles read them.

// The caller's value sits in a std `Arc` also under loom: it is the caller's, and only passes through.
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, wait_timeout};

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

/// A value together with the version under which it was published.
#[derive(Debug)]
pub struct Versioned<T> {
    /// 0 for the initial value, then one more per [`Published::store`].
    pub version: u64,
    /// The snapshot; immutable, shared.
    pub value: Arc<T>,
}

impl<T> Clone for Versioned<T> {
    fn clone(&self) -> Self {
        Self {
            version: self.version,
            value: Arc::clone(&self.value),
        }
    }
}

/// The latest snapshot of something, replaced as a whole.
///
/// What [`store`](Published::store) published is seen by every load that is ordered after the store's return: publish
/// before replying, and whoever got the reply reads the new view or a newer one.
#[derive(Debug)]
pub struct Published<T> {
    slot: Mutex<Versioned<T>>,
    newer: Condvar,
    // Equal to the slot's version, readable without the lock; written under it, so it is never ahead of what a load
    // that follows returns.
    version: AtomicU64,
}

impl<T> Published<T> {
    /// Publishes `initial` as version 0.
    #[must_use]
    pub fn new(initial: Arc<T>) -> Self {
        Self {
            slot: Mutex::new(Versioned {
                version: 0,
                value: initial,
            }),
            newer: Condvar::new(),
            version: AtomicU64::new(0),
        }
    }

    /// Replaces the snapshot, wakes those that wait for a newer one, and returns the new version.
    ///
    /// The caller decides what is newer: concurrent stores are ordered by who takes the lock first.
    pub fn store(&self, value: Arc<T>) -> u64 {
        let mut slot = lock(&self.slot);
        let replaced = std::mem::replace(&mut slot.value, value);
        slot.version += 1;
        let version = slot.version;
        self.version.store(version, Ordering::Release);
        drop(slot);
        self.newer.notify_all();
        // Dropped only here: the last owner of a large snapshot must not free it under the readers' lock.
        drop(replaced);
        version
    }

    /// The latest snapshot.
    #[must_use]
    pub fn load(&self) -> Arc<T> {
        Arc::clone(&lock(&self.slot).value)
    }

    /// The latest snapshot with its version, as one consistent pair.
    #[must_use]
    pub fn load_versioned(&self) -> Versioned<T> {
        lock(&self.slot).clone()
    }

    /// The latest version, without taking the lock: a cheap look whether a load would bring something new. A load
    /// that follows returns this version or a newer one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Blocks until a version above `seen` is there and returns it; `None` after `timeout` without one. A newer
    /// version that is there already is returned at once, also with a timeout of zero. A timeout too long for the
    /// clock to express waits without end.
    #[must_use]
    pub fn wait_newer(&self, seen: u64, timeout: Duration) -> Option<Versioned<T>> {
        let deadline = Instant::now().checked_add(timeout);
        let mut slot = lock(&self.slot);
        loop {
            if slot.version > seen {
                return Some(slot.clone());
            }
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => timeout,
            };
            if left.is_zero() {
                return None;
            }
            slot = wait_timeout(&self.newer, slot, left);
        }
    }
}

//! The fence: which ownership epoch of one run is current in this process.
//! Invariant: the epoch strictly rises; of two advances to the same epoch exactly one succeeds.
//! The supervisor advances it when it takes a run over; effect workers and late replies ask it before they act.

use std::fmt;

use crate::sync::{AtomicU64, Ordering};

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

/// The current ownership epoch of one run.
///
/// # What it guarantees
///
/// Once [`advance`](Fence::advance) to `e + 1` has returned, and whatever else is ordered after that return (the same
/// thread, a lock, a channel, a reply), [`holds(e)`](Fence::holds) is false, for ever. No thread sees the epoch fall.
///
/// # What it does not
///
/// It is a courtesy, not the law. A deposed owner may have asked just before the advance and act just after it, and
/// an owner in another process never asks at all. What protects the log is the fence *condition* of an append,
/// checked by the writer at the log's very head. This type only spares the deposed owner, and the world, work that
/// the condition would refuse anyway.
#[derive(Debug)]
pub struct Fence {
    epoch: AtomicU64,
}

impl Fence {
    /// A fence at `epoch`, the epoch that is durable for the run.
    #[must_use]
    pub fn new(epoch: u64) -> Self {
        Self {
            epoch: AtomicU64::new(epoch),
        }
    }

    /// Raises the epoch to `to`. Call it once the new epoch is durable: a new owner acts only after that.
    ///
    /// # Errors
    ///
    /// [`Stale`] when the epoch is `to` already or above; nothing changes then. Of several callers with the same
    /// `to`, one succeeds.
    pub fn advance(&self, to: u64) -> Result<(), Stale> {
        // One read-modify-write decides: a load and a store apart would let two advancers both win.
        let current = self.epoch.fetch_max(to, Ordering::AcqRel);
        if current < to {
            Ok(())
        } else {
            Err(Stale { current, to })
        }
    }

    /// Whether `epoch` is the current one at this moment; see the type for what that is worth.
    #[must_use]
    pub fn holds(&self, epoch: u64) -> bool {
        self.current() == epoch
    }

    /// The current epoch.
    #[must_use]
    pub fn current(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}

/// An advance that would not have raised the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stale {
    /// The epoch that was current when the advance was refused.
    pub current: u64,
    /// The epoch that was asked for.
    pub to: u64,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected an epoch above {}, got {}: another owner has taken the run over; stop acting for it",
            self.current, self.to
        )
    }
}

impl std::error::Error for Stale {}

//! The store's time: the port's clock, which never goes back, and what is known when the port's does.
//!
//! Invariant: time is never below the last time of the log or of an earlier answer. A step back within the tolerance is
//! waited out; a larger one is counted, and is one condition of the whole store (T-29). Read by actors and writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::ports::Clock;

/// How the store's time stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    /// The store's time, UTC milliseconds.
    pub now_ms: u64,
    /// By how much the host's clock is behind it, in milliseconds; 0 where all is well.
    pub behind_ms: u64,
    /// How large a step back is waited out without a word, in milliseconds.
    pub tolerance_ms: u64,
    /// Steps back beyond that, since the store was opened. Claims that were live then are not judged any more: their
    /// runs want to be taken over first.
    pub steps: u64,
}

/// The store's time.
#[derive(Debug)]
pub(crate) struct StoreClock {
    port: Arc<dyn Clock>,
    floor_ms: AtomicU64,
    tolerance_ms: u64,
    steps: AtomicU64,
    behind: AtomicBool,
}

impl StoreClock {
    /// Time of `port`, with no floor yet.
    pub(crate) fn new(port: Arc<dyn Clock>, tolerance_ms: u64) -> Self {
        Self {
            port,
            floor_ms: AtomicU64::new(0),
            tolerance_ms,
            steps: AtomicU64::new(0),
            behind: AtomicBool::new(false),
        }
    }

    /// Raises the floor, such as to the last time of a log that was opened.
    pub(crate) fn raise(&self, floor_ms: u64) {
        self.floor_ms.fetch_max(floor_ms, Ordering::SeqCst);
    }

    /// How often the port stepped back beyond the tolerance, as far as it was looked at.
    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Ordering::SeqCst)
    }

    /// How time stands now.
    pub(crate) fn state(&self) -> ClockState {
        let (now_ms, behind_ms) = self.look();
        ClockState {
            now_ms,
            behind_ms,
            tolerance_ms: self.tolerance_ms,
            steps: self.steps(),
        }
    }

    /// The store's time, and by how much the port is behind it.
    fn look(&self) -> (u64, u64) {
        // Before the port is asked: a thread that is delayed in between must not take its own delay for a step.
        let known_ms = self.floor_ms.load(Ordering::SeqCst);
        let port_ms = self.port.now_ms();
        let behind_ms = known_ms.saturating_sub(port_ms);
        let behind = behind_ms > self.tolerance_ms;
        if self.behind.swap(behind, Ordering::SeqCst) != behind && behind {
            self.steps.fetch_add(1, Ordering::SeqCst);
            tracing::warn!(
                behind_ms,
                "the clock stepped back; claims that are live now wait for their runs to be taken over"
            );
        }
        let now_ms = self.floor_ms.fetch_max(port_ms, Ordering::SeqCst);
        (now_ms.max(port_ms), behind_ms)
    }
}

impl Clock for StoreClock {
    fn now_ms(&self) -> u64 {
        self.look().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::ManualClock;

    /// Proves T-29: a clock that is set back does not make the store's time go back; beyond the tolerance it is one step,
    /// until it has caught up and steps back again.
    #[test]
    fn store_time_never_goes_back() {
        let port = Arc::new(ManualClock::new(100));
        let clock = StoreClock::new(port.clone(), 50);
        assert_eq!((clock.now_ms(), clock.steps()), (100, 0));
        clock.raise(120);
        assert_eq!((clock.now_ms(), clock.steps()), (120, 0), "waited out");
        port.set(900);
        assert_eq!(clock.now_ms(), 900);
        port.set(850);
        assert_eq!((clock.now_ms(), clock.steps()), (900, 0), "waited out");
        for port_ms in [849, 10, 849] {
            port.set(port_ms);
            assert_eq!((clock.now_ms(), clock.steps()), (900, 1));
        }
        port.set(901);
        assert_eq!((clock.now_ms(), clock.steps()), (901, 1));
        port.set(0);
        assert_eq!(clock.now_ms(), 901);
        let state = clock.state();
        assert_eq!(
            (state.steps, state.behind_ms, state.tolerance_ms),
            (2, 901, 50)
        );
    }

    /// Proves T-29: a log that is ahead of the clock when it is opened is a step, too.
    #[test]
    fn a_log_ahead_of_the_clock_is_a_step() {
        let clock = StoreClock::new(Arc::new(ManualClock::new(100)), 50);
        clock.raise(500);
        assert_eq!((clock.now_ms(), clock.steps()), (500, 1));
    }
}

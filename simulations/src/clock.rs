//! The simulated clock.
//!
//! Invariant: it moves only when a step of the plan moves it, forward, back, or not at all.
//! Read by the store, the artifacts and the owners of a simulation.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// UTC milliseconds that a plan moves.
#[derive(Debug)]
pub struct SimClock {
    now_ms: AtomicU64,
    frozen: AtomicBool,
}

impl SimClock {
    /// A clock that stands at a time.
    pub fn new(now_ms: u64) -> Self {
        Self {
            now_ms: AtomicU64::new(now_ms),
            frozen: AtomicBool::new(false),
        }
    }

    /// Time goes by, unless the clock is frozen.
    pub fn tick(&self, by_ms: u64) {
        if !self.frozen.load(Ordering::SeqCst) {
            self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
        }
    }

    /// The clock jumps, also when it is frozen; never below 1.
    pub fn jump(&self, by_ms: i64) {
        let now = self.now_ms.load(Ordering::SeqCst);
        self.now_ms
            .store(now.saturating_add_signed(by_ms).max(1), Ordering::SeqCst);
    }

    /// Stops the clock, or lets it go on.
    pub fn freeze(&self, frozen: bool) {
        self.frozen.store(frozen, Ordering::SeqCst);
    }
}

impl praxis_journal::Clock for SimClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }
}

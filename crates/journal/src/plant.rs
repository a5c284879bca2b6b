//! Planted defects, by which the crash simulator is proved: each must make the scenario fail that is there for it.
//!
//! Invariant: no release build contains this file or a place that asks it. A plant holds on the thread that sets it,
//! and only for the work that it is set for. Set by the simulator's own tests, asked by the ledger and the log.

use std::cell::Cell;

/// A defect that somebody could write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A failed sync is tried again, and the second answer is believed.
    SyncRetried,
    /// After a failed sync the file is opened again and trusted, instead of being copied, and commits are one-phase as
    /// the storage engine makes them by default. (With two-phase commits alone no state was found that the copy saves:
    /// the copy and the second phase each close this hole.)
    ReopenInPlace,
    /// A commit of the log is answered without being durable.
    CommitNotDurable,
    /// The index is written up to a commit before the log has that commit.
    CursorAhead,
}

impl Plant {
    /// All of them.
    pub const ALL: [Self; 3] = [
        Self::ReopenInPlace,
        Self::CommitNotDurable,
        Self::CursorAhead,
    ];
}

thread_local! {
    static PLANTED: Cell<Option<Plant>> = const { Cell::new(None) };
}

/// Takes the plant out again, also when the work panics.
struct Uproot;

impl Drop for Uproot {
    fn drop(&mut self) {
        PLANTED.set(None);
    }
}

/// Does the work with a plant on this thread.
pub fn with<T>(plant: Plant, work: impl FnOnce() -> T) -> T {
    PLANTED.set(Some(plant));
    let _uproot = Uproot;
    work()
}

/// Whether a plant is set on this thread.
pub(crate) fn is(plant: Plant) -> bool {
    PLANTED.get() == Some(plant)
}

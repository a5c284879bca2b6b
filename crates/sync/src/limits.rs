//! The bounds of this crate, each with its reason.
//! Invariant: nothing in the crate grows past a number written here.
//! `queue::channel` reads it.

/// Largest capacity of a commit queue, in items.
///
/// A queued item is an append that waits for its durable commit. At the 16 k appends a second that one writer
/// sustains, this many are about four seconds of work: a caller that waits longer is better told BUSY.
pub const QUEUE_CAPACITY_MAX: usize = 65_536;

/// Slots that a commit queue reserves when it is made, in items; it grows from here to its capacity.
///
/// One group commit takes about this many, so the steady state allocates nothing and an idle store holds little.
pub const QUEUE_SLOTS_AT_START: usize = 1_024;

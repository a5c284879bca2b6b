//! The bounds of the store, each with its reason.
//!
//! Invariant: memory, batches, files and queues stay within these whatever callers do.
//! Called by every module of the crate.

/// Size at which a log segment is sealed, in bytes: what quick_repair writes on each commit grows with the file, and
/// what a sync error has to copy is one segment.
pub const SEGMENT_BYTES: u64 = 128 << 20;

/// Most appends in one commit: beyond it only latency grows.
pub const BATCH_MAX: usize = 512;

/// Most bytes of events in one commit; a batch is closed when the next append would pass it. Keeps the memory of a
/// transaction far below what redb may hold.
pub const BATCH_BYTES: usize = 32 << 20;

/// Most events in one append (T-82): an intent carries a handful of commands.
pub const APPEND_EVENTS: usize = 64;

/// How far an event's time may lie ahead of the writer's clock, in milliseconds: a day. The time of the log is never
/// undercut, so that one event from the far future would end every lease and every approval.
pub const AHEAD_MS: u64 = 86_400_000;

/// Most appends that wait for the writer; the next one is BUSY.
pub const QUEUE_APPENDS: usize = 1024;

/// How long the index may lag behind the log while commits come in, in milliseconds; it is what replay has to make up.
pub const FLUSH_INTERVAL_MS: u64 = 1_000;

/// Most events that an index transaction covers while a lost index is rebuilt: bounds the memory of the rebuild.
pub const REBUILD_EVENTS: u64 = 20_000;

/// Page cache of the hot segment and of the index, in bytes each.
pub const CACHE_BYTES: usize = 64 << 20;

/// Page cache of one sealed segment, in bytes; there may be hundreds.
pub const SEALED_CACHE_BYTES: usize = 2 << 20;

/// Piece in which a file is copied after a sync error, in bytes.
pub const COPY_BYTES: usize = 1 << 20;

/// Largest `praxis-store.json` and largest text of a lock holder that is read, in bytes.
pub const SMALL_FILE_BYTES: u64 = 64 << 10;

/// How often a lock is tried whose named holder has ended, and the pause between two tries in milliseconds: a second
/// in all, far longer than a child of a killed holder takes from fork to exec.
pub const LOCK_TRIES: u32 = 50;
/// See [`LOCK_TRIES`].
pub const LOCK_WAIT_MS: u64 = 20;

/// Most events that one look at the outbox returns: what a consumer stores before it acknowledges.
pub const PENDING_EVENTS: usize = 1_000;

/// Most findings that a verification lists; the count goes on.
pub const VERIFY_FINDINGS: usize = 100;

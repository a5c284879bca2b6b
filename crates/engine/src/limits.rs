//! Every bound of the engine, each with its reason.
//!
//! Invariant: no queue, loop or payload of this crate grows past a number that stands here.
//! Read by the actors, the client handles, the effect workers and the process adapter.

/// Requests that may wait in or be handled by one actor at a time; the next caller gets BUSY (T-55).
/// A run takes them one by one at about one commit each, so more than this only adds waiting.
pub const MAILBOX_PERMITS: usize = 64;

/// How often an intent is decided again after another stream moved under it (T-04).
pub const DECIDE_AGAIN: u32 = 8;

/// How far the host's clock may step back before the store says so, in milliseconds: what a time service corrects by
/// itself is below it, and a lease is not worth much that it would spoil (T-29).
pub const CLOCK_TOLERANCE_MS: u64 = 1_000;

/// Restarts of one run's actor inside [`RESTART_WINDOW_MS`] before it is held and not started again (T-21).
pub const RESTARTS: usize = 3;

/// The window in which restarts count, in milliseconds of trusted time.
pub const RESTART_WINDOW_MS: u64 = 60_000;

/// Steps of one sequence (T-82); the journal takes as many events in one append.
pub const SEQUENCE_STEPS: usize = praxis_journal::limits::APPEND_EVENTS;

/// Deliveries that the scheduler receives in one sequence: two steps each, with room for an admission and a dispatch.
pub const RECEIPTS: usize = SEQUENCE_STEPS / 2 - 1;

/// How long a known outcome waits for the program's word of what follows, in milliseconds, so that both are one append.
/// A process that dies meanwhile leaves the attempt uncertain, as one that died while the evidence was stored: so no
/// longer than a slow disk takes for that.
pub const CONCLUDE_AHEAD_MS: u64 = 100;

/// How often a finished effect's report is handed to a new actor after the one that had it was lost, or again to one whose
/// append the store could not take.
/// Beyond it the attempt stays uncertain, which recovery and people can resolve.
pub const REPORT_DELIVERIES: u32 = 16;

/// The first pause before a report that the store could not take is handed in again, in milliseconds: some commits.
/// Each pause is twice the one before.
pub const REPORT_PAUSE_MS: u64 = 25;

/// The longest of these pauses, in milliseconds: a drain waits for it.
pub const REPORT_PAUSE_MOST_MS: u64 = 1_000;

/// How long a worker that waits for a delivery goes without asking the clock whether a lease ended, in milliseconds.
pub const LEASE_LOOK_MS: u64 = 1_000;

/// Bytes of verified input that one effect call may carry; more is refused before dispatch.
pub const INPUT_BYTES: u64 = 256 * 1024 * 1024;

/// Bytes of an effect's evidence record. The record is read back to conclude a node.
pub const EVIDENCE_BYTES: u64 = 1024 * 1024;

/// How long an owner waits before it takes a step or a recovery again that the store could not take, in milliseconds: a
/// try is a look at the disk, and a full one is not full for less.
pub const STORE_PAUSE_MS: u64 = 1_000;

/// Steps that the scheduler remembers as stalled; a plan never has more than one step per node and attempt.
pub const STALLED_STEPS: usize = 4096;

/// Default wall-clock bound of a process, in milliseconds: one hour.
pub const PROCESS_WALL_MS: u64 = 3_600_000;

/// Bytes kept of each of a process's two output streams: its end, which is where failures speak.
pub const PROCESS_TAIL_BYTES: usize = 64 * 1024;

/// Bytes of a process's output that go to its transcript, both streams together; the rest is counted and dropped.
pub const PROCESS_TRANSCRIPT_BYTES: u64 = 16 * 1024 * 1024;

/// How long the output of a process is awaited after the process ended, in milliseconds. A descendant that left
/// the group may keep a pipe open for ever.
pub const PROCESS_PIPE_MS: u64 = 2_000;

/// Bytes of one of a shim's own files: a command line of a few KiB, names, and digests.
pub const SHIM_FILE_BYTES: u64 = 256 * 1024;

/// Bytes of one output that a shim records: a patch or a transcript, read whole to compare its digest.
pub const SHIM_OUTPUT_BYTES: u64 = 256 * 1024 * 1024;

/// How long what a command left behind is killed again and again until nothing is left, in milliseconds. A process
/// that waits for a broken disk cannot be killed at all.
pub const SHIM_KILL_MS: u64 = 10_000;

/// Bytes that a value has at least to be masked: a shorter one would be found in every text.
pub const MASK_MIN_BYTES: usize = 4;

//! The bounds of what is stored and exported, each with its reason.
//!
//! Invariant: nothing larger is ever sealed, so nothing larger needs to be read.
//! Called by seal, frame, export, tree, note and proofs.

/// Largest event in canonical bytes (wire form 1.7): one command of full size with its facts and outcome.
pub const MAX_EVENT_BYTES: usize = aiws::limits::MAX_EVENT_BYTES;

/// Bytes of a frame before the event: codec 1, previous 8, boot 8, hash 32, check 8, length 8.
pub const FRAME_HEADER_BYTES: usize = 65;

/// Largest frame: a full event behind its header. A longer one is refused before it is looked into.
pub const MAX_FRAME_BYTES: usize = FRAME_HEADER_BYTES + MAX_EVENT_BYTES;

/// Largest line of an export that holds an event: the event, its hash, its sequence and their names.
pub const MAX_EXPORT_LINE_BYTES: usize = MAX_EVENT_BYTES + 256;

/// Deepest nesting of an export's line: an event of full depth inside the line's own object.
pub const MAX_LINE_DEPTH: usize = aiws::limits::MAX_DEPTH + 1;

/// Most streams of one export whose heads a reader keeps and a trailer lists: bounds the memory of verification.
/// A head takes about 200 bytes, so this is about 2 GB; a longer log is exported in parts.
pub const MAX_STREAMS: usize = 10_000_000;

/// Most hashes of an inclusion proof: one per level of a tree of 2^64 leaves.
pub const MAX_PROOF_HASHES: usize = 64;

/// Most hashes of a consistency proof: one per level, and the root of what both trees have.
pub const MAX_CONSISTENCY_HASHES: usize = MAX_PROOF_HASHES + 1;

/// Largest line of an export with proofs: an event's line and 64 hashes in hex, each with its quotes and comma.
pub const MAX_PROOF_LINE_BYTES: usize = MAX_EXPORT_LINE_BYTES + 67 * MAX_PROOF_HASHES + 16;

/// Largest signed note: a checkpoint with the sixteen signatures that any reader has to take, at 7 KiB each, and twice that.
pub const MAX_NOTE_BYTES: usize = 256 << 10;

/// Most signatures of a note: sixteen have to be taken, the rest is room for witnesses.
pub const MAX_SIGNATURES: usize = 64;

/// Longest name of a key in bytes: an origin of the longest store id, all of it escaped, fits.
pub const MAX_KEY_NAME_BYTES: usize = 4 << 10;

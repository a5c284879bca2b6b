//! Events to bytes and back: links, seals, frames, chains and exports. The byte tables stand in `FORMAT.md`.
//!
//! Invariant: pure functions over bytes; what was sealed is found again bit for bit, or refused with the place.
//! Called by the engine's actors (link, seal), by the journal (frames) and by whoever reads an export.
//!
//! | module | what it is |
//! |---|---|
//! | [`mod@link`] | a decision becomes the next event of its stream |
//! | [`mod@seal`] | an event becomes canonical bytes and a hash, and back |
//! | [`frame`] | what one row of the log holds around an event |
//! | [`chain`] | the rules that hold over many events: sequence, revision, previous hash, openings |
//! | [`export`] | the log as JSON Lines with a trailer, for any other language |
//! | [`tree`] | the Merkle tree over the log: heads, proofs, and their verification |
//! | [`note`] | signed notes, and the keys that sign and verify them |
//! | [`checkpoint`] | a head of the log as a signed note |
//! | [`proofs`] | one mission's events, each proven to stand under a checkpoint |

mod base64;
pub mod chain;
pub mod checkpoint;
mod codec;
pub mod error;
pub mod export;
pub mod frame;
pub mod limits;
pub mod link;
pub mod note;
pub mod proofs;
pub mod seal;
pub mod tree;

pub use error::FormatError;
pub use frame::Frame;
pub use link::link;
pub use seal::{Sealed, seal};

/// The version of everything in this crate: frames, exports, the store's directory. Version 0 may change until the
/// product's version 0.1.0, each time with a note in the changelog (T-85).
pub const FORMAT_VERSION: u8 = 0;

/// The draft of version 0 that this build writes; draft 2 has a check over a frame's hints. Stores of another draft are
/// not read. From version 1 on there are no drafts.
pub const FORMAT_DRAFT: u32 = 2;

//! The bounds of the artifact store, each with its reason.
//! Invariant: no read, write, loop or listing of this crate goes past a number written here.
//! `file`, `directory` and `provider` read it.

/// Largest artifact, in bytes: 256 MiB.
///
/// A read hands out a verified copy in memory, and a few of them happen at once; larger material belongs in a store
/// of its own behind another provider.
pub const ARTIFACT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Size of one piece when a file is copied, hashed or compared, in bytes: 64 KiB.
///
/// Large enough that system calls do not show, small enough to stay in the cache while it is hashed.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// Most entries that a listing of the directory takes, files of all kinds together: about a million.
///
/// Their names are held in memory, 100 bytes each; a store beyond that needs a collection first, and is told so.
pub const ENTRIES_MAX: usize = 1 << 20;

/// Most names tried for one temporary file.
///
/// Names come from the process id and a counter, so one that is taken is a leftover of a dead process with the same
/// id; more than a handful in a row means that the directory is not ours alone.
pub const TEMPORARY_NAMES_MAX: u32 = 64;

/// Longest media type of an artifact, in bytes; RFC 6838 allows 127 for each of its two names.
pub const MEDIA_TYPE_BYTES_MAX: usize = 255;

//! Durable content-addressed bytes behind one provider.
//! Invariant: bytes that are handed out hash to the digest that was asked for, and what a put reported is durable.
//! The engine calls it on blocking threads at boundary, receipt, admission and dispatch.
//!
//! [`ArtifactProvider`] is what the engine knows; [`FileArtifacts`] is the store in a directory, `artifacts/` of an
//! engine's store. An artifact is a file named by its SHA-256 and nothing else: ids, keys and media types are data in
//! records and never become paths.
//!
//! # What the directory promises
//!
//! - A put writes a temporary file, syncs it, publishes it under its digest only if that name is free, and syncs the
//!   directory; any of these failing fails the put (ART-1, ART-3). So a final name never shows part of an artifact.
//! - A name that is taken must hold the very same bytes (ART-2); a digest is never pointed at others (HF-04.10).
//! - A read gives a copy that was checked against digest and size (ART-4, ART-7); past its retention it gives nothing,
//!   although the bytes stay (ART-5).
//! - Nothing here deletes an artifact by itself. [`ArtifactProvider::orphans`] lists what no record names, and
//!   [`FileArtifacts::collect`] removes one such, for a host that decides so under its own retention policy (ART-9).
//! - A symlink, FIFO, device, directory or file of several names under a digest, and a directory that was exchanged
//!   for another, are refused.
//!
//! # What the host must see to
//!
//! Untrusted agents must not be able to write in the directory (ART-8). It is created 0700 with files 0600, and one
//! that others may enter is refused at open; agents that run under the engine's own login are not kept out by that.
//!
//! # Faults for tests
//!
//! Every step that a put takes passes through [`fs::Fs`], whose production form is [`directory::Directory`]. A test wraps
//! that one, fails or stops at a chosen step, and looks at the real directory afterwards; the crash simulator has a
//! directory of its own, on a disk that loses power.

mod collect;
pub mod directory;
pub mod error;
mod facts;
pub mod file;
pub mod fs;
pub mod limits;
pub mod provider;

pub use error::ArtifactError;
pub use file::FileArtifacts;
pub use provider::{ArtifactProvider, Orphan, read_verified, verify};

//! What the engine knows of any artifact store, and the check that it trusts no provider without.
//! Invariant: bytes pass `verify` against their record before anyone acts on them, whoever supplied them (ART-6).
//! The engine calls it at boundary, receipt, admission and dispatch; `FileArtifacts` and hosts implement it.

use std::collections::BTreeSet;

use aiws::digest::{Digest, sha256};
use aiws::id::ActorId;
use aiws::record::Artifact;

use crate::error::ArtifactError;

/// A store of immutable bytes, found by digest.
///
/// The calls block on a disk or a network: make them on a thread that may block. Implementations other than
/// [`FileArtifacts`](crate::FileArtifacts) are read through [`read_verified`].
pub trait ArtifactProvider: Send + Sync {
    /// Stores `bytes` and returns their record. When this returns, the bytes survive a crash (HF-04.1); putting the
    /// same bytes again is the same artifact, whatever the other arguments say.
    ///
    /// `locator_key` is the producer's name for them, data that is never used as a path; `retention_owner` keeps them
    /// until `retain_until_ms`, in milliseconds of trusted time.
    ///
    /// # Errors
    ///
    /// `SCHEMA_INVALID` when the facts form no record or the bytes are too many; `ARTIFACT_MISMATCH` when other bytes
    /// stand under their digest (ART-2); a store code when a step failed (ART-3). Nothing is announced in any case.
    fn put(
        &self,
        bytes: &[u8],
        locator_key: &str,
        media_type: &str,
        retention_owner: &ActorId,
        retain_until_ms: u64,
    ) -> Result<Artifact, ArtifactError>;

    /// A copy of the artifact's bytes, checked against digest and size (ART-4). It is the caller's own: a later
    /// change of what is stored does not reach it (HF-04.12).
    ///
    /// # Errors
    ///
    /// `ARTIFACT_UNAVAILABLE` when the bytes are missing or `now_ms` has reached the end of their retention, even
    /// though they are there (ART-5); `ARTIFACT_MISMATCH` when digest or size differ; a store code when a step failed.
    fn read(&self, artifact: &Artifact, now_ms: u64) -> Result<Vec<u8>, ArtifactError>;

    /// A copy of the bytes under `digest`, checked against it, at most `max_bytes` of them. For records that are
    /// found by digest alone, such as evidence; what a manifest names is read with its record, which has a retention.
    ///
    /// # Errors
    ///
    /// `ARTIFACT_UNAVAILABLE` when the bytes are missing; `ARTIFACT_MISMATCH` when they hash to something else;
    /// `SCHEMA_INVALID` when they are more than `max_bytes`; a store code when a step failed.
    fn read_digest(&self, digest: &Digest, max_bytes: u64) -> Result<Vec<u8>, ArtifactError>;

    /// Whether something is stored under `digest`. A hint: only a read says whether it is the right bytes.
    ///
    /// # Errors
    ///
    /// A store code when the look failed.
    fn contains(&self, digest: &Digest) -> Result<bool, ArtifactError>;

    /// The stored artifacts that `referenced` does not name, by digest: what failed commits left (ART-9).
    ///
    /// `referenced` must hold every digest of every record of the log, of mission and run alike, read *after* the
    /// last put whose commit is still open; [`Orphan::is_past`] gives such commits their time. Nothing is removed.
    ///
    /// # Errors
    ///
    /// A store code when the listing failed; never a part of a list.
    fn orphans(&self, referenced: &BTreeSet<Digest>) -> Result<Vec<Orphan>, ArtifactError>;
}

/// A stored artifact that no record names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// What it is stored under.
    pub digest: Digest,
    /// How much space it takes, in bytes.
    pub size_bytes: u64,
    /// When the same bytes were last put, in milliseconds since 1970 by the file system's clock.
    pub last_put_ms: u64,
}

impl Orphan {
    /// Whether it may be collected at `now_ms` under the host's policy to keep what is unreferenced for
    /// `retention_ms` after its last put (ART-9). That must be longer than any commit may take.
    #[must_use]
    pub fn is_past(&self, retention_ms: u64, now_ms: u64) -> bool {
        now_ms >= self.last_put_ms.saturating_add(retention_ms)
    }
}

/// Reads through any provider and trusts only what was checked here (ART-6, ART-7): retention before the call, size
/// and digest after it.
///
/// # Errors
///
/// As [`ArtifactProvider::read`].
pub fn read_verified(
    provider: &dyn ArtifactProvider,
    artifact: &Artifact,
    now_ms: u64,
) -> Result<Vec<u8>, ArtifactError> {
    check_retention(artifact, now_ms)?;
    let bytes = provider.read(artifact, now_ms)?;
    verify(artifact, &bytes)?;
    Ok(bytes)
}

/// Checks that `bytes` are the artifact's, by size and digest (HF-04.5).
///
/// # Errors
///
/// `ARTIFACT_MISMATCH` when either differs.
pub fn verify(artifact: &Artifact, bytes: &[u8]) -> Result<(), ArtifactError> {
    check_size(artifact, bytes.len() as u64)?;
    let found = sha256(bytes);
    if found == artifact.digest {
        Ok(())
    } else {
        Err(ArtifactError::DigestMismatch {
            expected: artifact.digest,
            found,
        })
    }
}

pub(crate) fn check_retention(artifact: &Artifact, now_ms: u64) -> Result<(), ArtifactError> {
    if artifact.retain_until_ms.reached(now_ms) {
        return Err(ArtifactError::Expired {
            digest: artifact.digest,
            retain_until_ms: artifact.retain_until_ms.to_string(),
            now_ms,
        });
    }
    Ok(())
}

pub(crate) fn check_size(artifact: &Artifact, found: u64) -> Result<(), ArtifactError> {
    if artifact.size_bytes.to_u64() == Some(found) {
        return Ok(());
    }
    Err(ArtifactError::SizeMismatch {
        digest: artifact.digest,
        expected: artifact.size_bytes.to_string(),
        found,
    })
}

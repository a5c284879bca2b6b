//! Material: which artifacts a command vouches for, read and verified.
//!
//! Invariant: what a request says of its material counts for nothing (CRD-5); bytes are read through the provider,
//! verified here, and kept as copies for the effect that may follow (ART-7). Called by facts gathering.

use std::collections::BTreeMap;
use std::sync::Arc;

use aiws::decimal::U64;
use aiws::error::{Code, Error};
use aiws::record::Artifact;
use praxis_artifacts::{ArtifactError, read_verified};
use praxis_model::facts::{Facts, MaterialError, VerifiedMaterial};

use super::Copies;
use crate::core::Core;
use crate::error::actor_lost;
use crate::limits::INPUT_BYTES;

/// Reads and verifies material on a thread that may block, and records what was found (CRD-5, ART-6).
pub(super) async fn materials(
    core: &Arc<Core>,
    artifacts: Vec<Artifact>,
    facts: &mut Facts,
) -> Result<Copies, Error> {
    if artifacts.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (provider, now_ms) = (Arc::clone(&core.artifacts), facts.now_ms);
    let read = tokio::task::spawn_blocking(move || {
        let mut total_bytes = 0u64;
        let mut found = Vec::with_capacity(artifacts.len());
        for artifact in artifacts {
            total_bytes =
                total_bytes.saturating_add(artifact.size_bytes.to_u64().unwrap_or(u64::MAX));
            let bytes = (total_bytes <= INPUT_BYTES)
                .then(|| read_verified(provider.as_ref(), &artifact, now_ms));
            found.push((artifact, bytes));
        }
        found
    });
    let mut copies = BTreeMap::new();
    for (artifact, bytes) in read.await.map_err(|_| actor_lost())? {
        match bytes {
            Some(Ok(bytes)) => {
                let verified = VerifiedMaterial {
                    size_bytes: U64(bytes.len() as u64),
                };
                facts.materials.insert(artifact.digest, verified);
                copies.insert(artifact.digest, Arc::from(bytes));
            }
            Some(Err(error)) => {
                facts
                    .material_errors
                    .insert(artifact.digest, material_error(&error));
            }
            None => {
                facts
                    .material_errors
                    .insert(artifact.digest, MaterialError::Unavailable);
            }
        }
    }
    Ok(copies)
}

fn material_error(error: &ArtifactError) -> MaterialError {
    match error.code() {
        Code::ArtifactMismatch => MaterialError::Mismatch,
        _ => MaterialError::Unavailable,
    }
}

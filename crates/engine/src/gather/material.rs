//! Material: which artifacts a command vouches for, read and verified.
//!
//! Invariant: what a request says of its material counts for nothing (CRD-5); bytes are read through the provider,
//! verified here, and kept as copies for the effect that may follow (ART-7). Called by facts gathering.

use std::collections::BTreeMap;
use std::sync::Arc;

use aiws::decimal::U64;
use aiws::error::{Code, Error};
use aiws::id::ActivationId;
use aiws::record::Artifact;
use praxis_artifacts::{ArtifactError, read_verified};
use praxis_model::command::Body;
use praxis_model::facts::{Facts, MaterialError, VerifiedMaterial};
use praxis_model::run::RunState;

use super::Copies;
use crate::core::Core;
use crate::error::actor_lost;
use crate::limits::INPUT_BYTES;

/// The artifacts that the command vouches for: at boundary, receipt, admission, dispatch and retry (ART-7).
pub(super) fn artifacts_of(state: &RunState, body: &Body) -> Vec<Artifact> {
    let of_handoff = |id| {
        state
            .manifests
            .get(id)
            .map(|committed| committed.manifest.artifacts.clone())
            .unwrap_or_default()
    };
    let of_activation = |id: &ActivationId| -> Vec<Artifact> {
        let inputs = state
            .consumptions
            .get(id)
            .map(|consumption| consumption.inputs.as_slice())
            .unwrap_or_default();
        inputs
            .iter()
            .flat_map(|input| of_handoff(&input.handoff.handoff_id))
            .collect()
    };
    let of_operation = |id| {
        let activation = state
            .operations
            .get(id)
            .and_then(|operation| operation.activation_id.as_ref());
        activation.map(&of_activation).unwrap_or_default()
    };
    match body {
        Body::CommitBoundary(body) => body.manifest.artifacts.clone(),
        Body::AcknowledgeDelivery(body) => state
            .deliveries
            .get(&body.delivery_id)
            .map(|delivery| of_handoff(&delivery.record.handoff.handoff_id))
            .unwrap_or_default(),
        Body::AdmitConsumer(body) => body
            .consumption
            .inputs
            .iter()
            .flat_map(|input| of_handoff(&input.handoff.handoff_id))
            .collect(),
        Body::Dispatch(body) => of_operation(&body.operation_id),
        Body::Retry(body) => of_operation(&body.operation_id),
        _ => Vec::new(),
    }
}

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

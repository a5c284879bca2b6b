//! What a recheck looks at where stored material was lost: the artifacts that the run's open deliveries still hand on.
//! Invariant: a hold for lost material is lifted by nobody's word alone; every artifact was read back and has its digest.
//! Called by the office before a person's recheck and by the policy before it confirms evidence; the engine reads them
//! again when the work is admitted (HF-04.9).

use std::collections::BTreeMap;

use aiws::digest::Digest;
use aiws::error::{Code, Error};
use aiws::id::NodeId;
use aiws::record::{Artifact, DeliveryState, Hold, HoldReason};
use praxis_artifacts::{ArtifactError, ArtifactProvider};
use praxis_model::run::{NodeStatus, RunState};

use crate::render::program;

/// Whether a hold waits for material.
#[must_use]
pub fn is_awaited(hold: &Hold) -> bool {
    let mut kinds = hold.blockers.iter().map(|blocker| blocker.kind);
    hold.reason == HoldReason::Artifact || kinds.any(|kind| kind == HoldReason::Artifact)
}

/// The digests of everything that the run still hands on, each read back whole; it blocks on the disk.
///
/// # Errors
///
/// `HOLD_NOT_CLEAR` with the first artifact that is missing or damaged, and what to do; a store code where it could not
/// be read.
pub fn whole(
    state: &RunState,
    artifacts: &dyn ArtifactProvider,
    now_ms: u64,
) -> Result<Vec<Digest>, Error> {
    let wanted = handed_on(state);
    for artifact in wanted.values() {
        artifacts
            .read(artifact, now_ms)
            .map_err(|cause| refused(artifact, &cause))?;
    }
    Ok(wanted.into_keys().collect())
}

fn refused(artifact: &Artifact, cause: &ArtifactError) -> Error {
    let code = match cause.code() {
        Code::ArtifactUnavailable | Code::ArtifactMismatch => Code::HoldNotClear,
        other => other,
    };
    let message = format!(
        "expected every artifact that the run still hands on whole in the store, found {}: {cause}; put its bytes back under artifacts/{}, then {} recheck again",
        artifact.digest,
        artifact.digest,
        program()
    );
    Error::new(code, message)
}

/// What open deliveries bring to nodes that are not done, each digest once.
fn handed_on(state: &RunState) -> BTreeMap<Digest, &Artifact> {
    let is_done = |node: &NodeId| {
        let status = state.nodes.get(node).map(|own| own.status);
        !matches!(
            status,
            Some(NodeStatus::Pending | NodeStatus::Active | NodeStatus::Blocked)
        )
    };
    let open = state.deliveries.values().filter(|delivery| {
        !matches!(
            delivery.record.state,
            DeliveryState::Excluded | DeliveryState::Invalidated
        ) && !is_done(&delivery.record.recipient.node_id)
    });
    let manifests =
        open.filter_map(|delivery| state.manifests.get(&delivery.record.handoff.handoff_id));
    manifests
        .flat_map(|committed| &committed.manifest.artifacts)
        .map(|artifact| (artifact.digest, artifact))
        .collect()
}

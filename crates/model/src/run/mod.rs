//! A run's state: everything that its stream determines.
//!
//! Invariant: the state is the fold of the run's stream over its admission; maps are persistent, so that a
//! copy costs nothing. Held by the run's actor, changed by evolve alone.

use std::sync::Arc;

use aiws::digest::Digest;
use aiws::id::{
    ActivationId, ActorId, ApprovalId, AssessmentId, AttemptId, CheckpointId, DeliveryId,
    HandoffId, HoldId, NodeId, OperationId, StreamId, SummaryId,
};
use aiws::record::{
    Approval, Assessment, Attempt, Cause, Claim, ClaimEnd, Consumption, Contract, Delivery,
    DeliveryState as DeliveryStatus, Graph, HandoffConfig, Hold, Invalidation, Lifecycle, Manifest,
    Operation, Summary,
};
use rpds::RedBlackTreeMapSync as Map;
use serde::{Deserialize, Serialize};

use crate::event::Head;
use crate::stream::Subject;

/// Where a node's execution stands. READY is derived, HELD is a projection (HS-01.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NodeStatus {
    /// Not admitted yet.
    Pending,
    /// Admitted.
    Active,
    /// Its boundary committed COMPLETED.
    Completed,
    /// Its boundary committed BLOCKED; resumable.
    Blocked,
    /// Skipped by a choice.
    Skipped,
    /// Its boundary committed FAILED.
    Failed,
    /// Its boundary committed CANCELED.
    Canceled,
}

/// A node of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    /// Its status.
    pub status: NodeStatus,
    /// Its current activation.
    pub activation_id: ActivationId,
    /// Iteration, from 1.
    pub iteration: u64,
    /// The node whose choice skipped it.
    pub skipped_by: Option<NodeId>,
}

/// A committed manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Committed {
    /// The manifest.
    pub manifest: Arc<Manifest>,
    /// Its digest.
    pub digest: Digest,
    /// Revision of the event that committed it.
    pub revision: u64,
    /// When, UTC milliseconds.
    pub at_ms: u64,
}

/// A delivery with the history of its claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryState {
    /// The record.
    pub record: Delivery,
    /// Claims that ended without a receipt.
    pub ended_claims: Vec<(Claim, ClaimEnd)>,
}

/// Where in the stream an approval was given and withdrawn. Times can be equal; positions cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalLife {
    /// Revision of the event that gave it.
    pub given: u64,
    /// Revision of the event that withdrew it.
    pub revoked: Option<u64>,
}

/// The state of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunState {
    /// Mission and run.
    pub subject: Subject,
    /// Its stream.
    pub stream: StreamId,
    /// Where the stream stands.
    pub head: Head,
    /// Trusted time of the last event, UTC milliseconds.
    pub last_ms: u64,
    /// The ownership epoch.
    pub epoch: u64,
    /// The lifecycle.
    pub lifecycle: Lifecycle,
    /// Why it ended badly.
    pub cause: Option<Cause>,
    /// The mission's immutable contract.
    pub contract: Arc<Contract>,
    /// The mission's immutable hand-off configuration.
    pub config: Arc<HandoffConfig>,
    /// The pinned graph.
    pub graph: Option<Arc<Graph>>,
    /// Nodes.
    pub nodes: Map<NodeId, NodeState>,
    /// Operations.
    pub operations: Map<OperationId, Operation>,
    /// Attempts.
    pub attempts: Map<AttemptId, Attempt>,
    /// Approvals.
    pub approvals: Map<ApprovalId, Approval>,
    /// When each approval was given and withdrawn, by position.
    pub approval_lives: Map<ApprovalId, ApprovalLife>,
    /// Verifications, oldest first.
    pub verifications: Vec<Assessment>,
    /// Acceptances, oldest first.
    pub acceptances: Vec<Assessment>,
    /// Revision of the event that recorded each assessment.
    pub assessed: Map<AssessmentId, u64>,
    /// The verification that was the last to pass when the last acceptance or refusal was said.
    pub accepted_on: Option<AssessmentId>,
    /// Manifests.
    pub manifests: Map<HandoffId, Committed>,
    /// Which manifest a checkpoint belongs to.
    pub checkpoints: Map<CheckpointId, HandoffId>,
    /// Deliveries.
    pub deliveries: Map<DeliveryId, DeliveryState>,
    /// Input sets by activation.
    pub consumptions: Map<ActivationId, Consumption>,
    /// Hand-offs that no longer count, with what hung on them.
    pub invalidations: Map<HandoffId, Invalidation>,
    /// Words about hand-offs. Nothing else in the state follows from them (SUM-5).
    pub summaries: Map<SummaryId, Summary>,
    /// Holds.
    pub holds: Map<HoldId, Hold>,
    /// Who asked for cancellation, if anybody did.
    pub canceled_by: Option<ActorId>,
}

impl RunState {
    /// A delivery whose claim is live at this time, if there is one.
    pub fn live_claim(&self, now_ms: u64) -> Option<&Delivery> {
        let mut all = self.deliveries.values().map(|delivery| &delivery.record);
        all.find(|record| {
            let claim = record.claim.as_ref();
            record.state == DeliveryStatus::Claimed
                && claim.is_some_and(|claim| now_ms < claim.expires_at_ms.get())
        })
    }
}

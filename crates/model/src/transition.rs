//! Transitions: the closed vocabulary of changes of a stream's own state.
//!
//! Invariant: each names its subject and where it moves from and to, so that an illegal move is seen in
//! replay. Records that stand in the event's command are not repeated here. Made by decide, applied by evolve.

use aiws::decimal::{Dec, U64};
use aiws::id::{
    ActivationId, ApprovalId, AssessmentId, AttemptId, DeliveryId, EvidenceId, GrantId, HoldId,
    NodeId, OperationId, RunId, SummaryId,
};
use aiws::record::{
    Ack, Approval, Assessment, Attempt, AttemptStatus, Cause, Claim, ClaimEnd, Consumption,
    ConsumptionState, Delivery, DeliveryState, HandoffRef, Hold, HoldResolution, HoldState,
    Invalidation, Lifecycle, Operation,
};
use serde::{Deserialize, Serialize};

use crate::run::NodeStatus;

/// One change of state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Transition {
    /// The mission is open under the command's contract and configuration.
    MissionOpened {},
    /// The command's grant is in force.
    GrantRecorded {
        /// The grant.
        grant_id: GrantId,
    },
    /// A run exists, with its first epoch.
    RunAdmitted {
        /// The run.
        run_id: RunId,
        /// Its epoch.
        epoch: U64,
    },
    /// The command's graph is pinned; every node is PENDING with its first activation.
    GraphActivated {},
    /// A node moves.
    NodeMoved {
        /// The node.
        node_id: NodeId,
        /// From.
        from: NodeStatus,
        /// To.
        to: NodeStatus,
        /// The node whose choice skipped it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skipped_by: Option<NodeId>,
    },
    /// Work is launched in this node. Said while a branch of the run is held, and first, so that the durable boundary can
    /// tell one branch from another; it changes nothing (HS-01.12).
    LaunchedIn {
        /// The node.
        node_id: NodeId,
    },
    /// An iteration of a LOOP ends; the node is PENDING again, in its next activation (T-27).
    IterationEnded {
        /// The node.
        node_id: NodeId,
        /// The iteration that ends, from 1.
        iteration: U64,
    },
    /// A logical operation exists, with its first attempt PREPARED and its amount reserved.
    OperationAdmitted {
        /// The operation.
        operation: Operation,
        /// Its first attempt.
        attempt: Attempt,
    },
    /// A retry's attempt is PREPARED.
    AttemptPrepared {
        /// The attempt.
        attempt: Attempt,
    },
    /// An attempt moves.
    AttemptMoved {
        /// The attempt.
        attempt_id: AttemptId,
        /// From.
        from: AttemptStatus,
        /// To.
        to: AttemptStatus,
        /// What it really cost, once known.
        actual: Option<Dec>,
        /// What shows it.
        evidence: Vec<EvidenceId>,
    },
    /// An approval or a denial is recorded.
    ApprovalRecorded {
        /// The record.
        approval: Approval,
    },
    /// An approval is bound to the one operation that may use it (T-80).
    ApprovalBound {
        /// The approval.
        approval_id: ApprovalId,
        /// The operation.
        operation_id: OperationId,
    },
    /// An approval is withdrawn.
    ApprovalRevoked {
        /// The approval.
        approval_id: ApprovalId,
    },
    /// An input set is bound to an activation.
    ConsumptionRecorded {
        /// The record.
        consumption: Consumption,
    },
    /// A consumption moves.
    ConsumptionMoved {
        /// The activation that it is bound to.
        activation_id: ActivationId,
        /// From.
        from: ConsumptionState,
        /// To.
        to: ConsumptionState,
    },
    /// A manifest of the command is committed: the main one (`skipped` null) or a generated one by its index.
    ManifestCommitted {
        /// Id and digest.
        handoff: HandoffRef,
        /// Index into the command's skipped manifests.
        skipped: Option<U64>,
    },
    /// A delivery is PENDING.
    DeliveryOpened {
        /// The record.
        delivery: Delivery,
    },
    /// A delivery moves.
    DeliveryMoved {
        /// The delivery.
        delivery_id: DeliveryId,
        /// From.
        from: DeliveryState,
        /// To.
        to: DeliveryState,
        /// How the claim before ended, if one did.
        ended: Option<ClaimEnd>,
        /// The new claim, if one begins.
        claim: Option<Claim>,
        /// The receipt, if one is given.
        acknowledgement: Option<Ack>,
    },
    /// A verification or an acceptance is recorded.
    AssessmentRecorded {
        /// The record.
        assessment: Assessment,
    },
    /// An assessment no longer counts, for the reason and the evidence of the command.
    AssessmentInvalidated {
        /// The assessment.
        assessment_id: AssessmentId,
    },
    /// A hand-off no longer counts. Comes after the moves of everything that the record lists.
    HandoffInvalidated {
        /// The record.
        invalidation: Invalidation,
    },
    /// The command's summary is kept.
    SummaryRecorded {
        /// The summary.
        summary_id: SummaryId,
    },
    /// A hold is OPEN.
    HoldOpened {
        /// The record.
        hold: Hold,
    },
    /// A hold is closed.
    HoldClosed {
        /// The hold.
        hold_id: HoldId,
        /// RELEASED or CANCELED.
        to: HoldState,
        /// Who decided, and on what.
        resolution: HoldResolution,
    },
    /// The run has a new owner.
    EpochRaised {
        /// From.
        from: U64,
        /// To.
        to: U64,
    },
    /// The run's lifecycle moves.
    LifecycleMoved {
        /// From.
        from: Lifecycle,
        /// To.
        to: Lifecycle,
        /// Why, where it ended badly.
        cause: Option<Cause>,
    },
}

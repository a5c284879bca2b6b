//! Commands: the closed vocabulary, and what a caller may ask for in short (intents).
//!
//! Invariant: a command that is not built is absent and refused as SCHEMA_INVALID (T-86); every command is
//! closed. Parsed at the boundary, drafted from intents, decided by decide, recorded in events.

use std::fmt;

use aiws::decimal::{Dec, DecPlus, Ms};
use aiws::digest::Digest;
use aiws::error::Error;
use aiws::id::{
    ApprovalId, AssessmentId, AttemptId, DeliveryId, EvidenceId, HoldId, Id, MissionId, NodeId,
    OperationId, RequestId, RunId,
};
use aiws::json::Value;
use aiws::record::{
    AcceptanceVerdict, ApprovalDecision, Artifact, Cause, Consumption, Context, Contract,
    Criterion, Grant, Graph, HandoffConfig, HandoffRef, HoldDecision, Manifest, OutcomeStatus, Ref,
    SettledOutcome, VerificationVerdict,
};
use aiws::veil::{Content, Veiled};
use serde::{Deserialize, Serialize};

mod proposals;

pub use proposals::{HoldName, HoldProposal, SummaryProposal};

/// A member of a command in its Debug form: a reason is somebody's words, and is not shown.
macro_rules! shown {
    (reason, $text:expr) => {
        &Veiled($text.extent())
    };
    ($field:ident, $value:expr) => {
        $value
    };
}

macro_rules! commands {
    ($($(#[$doc:meta])* $variant:ident = $name:literal { $($(#[$fdoc:meta])* $field:ident : $ty:ty,)* })*) => {
        /// A command's type, which is also its event's type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum CommandType { $($(#[$doc])* #[serde(rename = $name)] $variant,)* }

        impl CommandType {
            /// All types, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// The wire name.
            pub fn name(self) -> &'static str { match self { $(Self::$variant => $name,)* } }
            /// The type of a wire name.
            pub fn parse(name: &str) -> Option<Self> { match name { $($name => Some(Self::$variant),)* _ => None } }
        }

        $(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(rename_all = "camelCase", deny_unknown_fields)]
            pub struct $variant { $($(#[$fdoc])* pub $field : $ty,)* }

            impl fmt::Debug for $variant {
                fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                    out.debug_struct(stringify!($variant))$(.field(stringify!($field), shown!($field, &self.$field)))*.finish()
                }
            }
        )*

        /// A command's body.
        #[allow(clippy::large_enum_variant, reason = "a body lives for one decision; boxes would stand in every match")]
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "type")]
        pub enum Body { $($(#[$doc])* #[serde(rename = $name)] $variant($variant),)* }

        impl Body {
            /// Its type.
            pub fn kind(&self) -> CommandType { match self { $(Self::$variant(_) => CommandType::$variant,)* } }
        }

        impl Body {
            fn from_closed(kind: CommandType, rest: &Value) -> Result<Self, Error> {
                Ok(match kind { $(CommandType::$variant => Self::$variant(aiws::canonical::from_value(rest)?),)* })
            }
        }
    };
}

commands! {
    /// Opens a mission under an immutable contract and hand-off configuration. Mission stream, revision 1.
    OpenMission = "openMission" {
        /// The contract.
        contract: Contract,
        /// The hand-off configuration of every run.
        config: HandoffConfig,
    }
    /// Admits a run. Mission stream.
    StartRun = "startRun" {
        /// The new run.
        run_id: RunId,
    }
    /// Puts a grant in force. Mission stream.
    GrantCommand = "grant" {
        /// The grant, inside its parent in every dimension.
        grant: Grant,
    }
    /// Pins a run's graph before any operation begins.
    ActivateGraph = "activateGraph" {
        /// The run.
        run_id: RunId,
        /// The owner's epoch.
        owner_epoch: Dec,
        /// The graph.
        graph: Graph,
    }
    /// Records a decision about exact action material.
    Approve = "approve" {
        /// The new approval.
        approval_id: ApprovalId,
        /// The run.
        run_id: RunId,
        /// Fingerprint of the action.
        fingerprint: Digest,
        /// Approved or denied.
        decision: ApprovalDecision,
        /// When it stops being current, UTC milliseconds.
        expires_at_ms: Ms,
    }
    /// Withdraws an approval.
    RevokeApproval = "revokeApproval" {
        /// The approval.
        approval_id: ApprovalId,
        /// The run.
        run_id: RunId,
        /// Why.
        #[serde(deserialize_with = "aiws::record::fields::some_text")]
        reason: String,
    }
    /// Authorizes a prepared attempt to be tried. Durable before any adapter is called.
    Dispatch = "dispatch" {
        /// The run.
        run_id: RunId,
        /// The owner's epoch.
        owner_epoch: Dec,
        /// The ready node.
        node_id: NodeId,
        /// The operation.
        operation_id: OperationId,
        /// The prepared attempt.
        attempt_id: AttemptId,
        /// The caller's policy; overwritten by the authorizer's (FV-GRT.4).
        policy: Ref,
    }
    /// Reports an attempt's outcome.
    Settle = "settle" {
        /// The run.
        run_id: RunId,
        /// The attempt.
        attempt_id: AttemptId,
        /// CONFIRMED_APPLIED, CONFIRMED_NOT_APPLIED or UNKNOWN.
        outcome: SettledOutcome,
        /// What it cost, in units; 0 for UNKNOWN.
        actual: Dec,
        /// What shows it.
        #[serde(deserialize_with = "aiws::record::fields::unique")]
        evidence: Vec<EvidenceId>,
    }
    /// Settles an uncertain attempt from a read-only look-up or by a human.
    Reconcile = "reconcile" {
        /// The run.
        run_id: RunId,
        /// The attempt.
        attempt_id: AttemptId,
        /// CONFIRMED_APPLIED or CONFIRMED_NOT_APPLIED.
        outcome: SettledOutcome,
        /// What it cost, in units.
        actual: Dec,
        /// What shows it; never empty.
        #[serde(deserialize_with = "aiws::record::fields::unique")]
        evidence: Vec<EvidenceId>,
    }
    /// Prepares another attempt of an operation that was confirmed not applied.
    Retry = "retry" {
        /// The run.
        run_id: RunId,
        /// The owner's epoch.
        owner_epoch: Dec,
        /// The operation, unchanged.
        operation_id: OperationId,
        /// The new attempt.
        attempt_id: AttemptId,
        /// What it may cost, in units.
        amount: Dec,
        /// The caller's policy; overwritten by the authorizer's.
        policy: Ref,
    }
    /// Records a verification.
    Verify = "verify" {
        /// The new assessment.
        assessment_id: AssessmentId,
        /// The run.
        run_id: RunId,
        /// What was assessed.
        subject: Id,
        /// PASS or FAIL.
        verdict: VerificationVerdict,
        /// What shows it.
        #[serde(deserialize_with = "aiws::record::fields::unique")]
        evidence: Vec<EvidenceId>,
    }
    /// Records an acceptance.
    Accept = "accept" {
        /// The new assessment.
        assessment_id: AssessmentId,
        /// The run.
        run_id: RunId,
        /// What was assessed.
        subject: Id,
        /// ACCEPTED or REJECTED.
        verdict: AcceptanceVerdict,
        /// What shows it.
        #[serde(deserialize_with = "aiws::record::fields::unique")]
        evidence: Vec<EvidenceId>,
    }
    /// Completes a run whose END is done and whose gates are passed.
    CompleteRun = "completeRun" {
        /// The run.
        run_id: RunId,
        /// The owner's epoch.
        owner_epoch: Dec,
    }
    /// Requests cancellation. Human only.
    CancelRun = "cancelRun" {
        /// The run.
        run_id: RunId,
        /// Why.
        #[serde(deserialize_with = "aiws::record::fields::some_text")]
        reason: String,
        /// The human decision.
        decision_ref: Id,
    }
    /// Ends a cancellation once nothing is in flight. Human only.
    FinishCancelRun = "finishCancelRun" {
        /// The run.
        run_id: RunId,
        /// Why.
        #[serde(deserialize_with = "aiws::record::fields::some_text")]
        reason: String,
        /// The human decision.
        decision_ref: Id,
    }
    /// Commits a node's boundary: checkpoint, manifest, deliveries, skips and hold together (HF-05).
    CommitBoundary = "commitBoundary" {
        /// The manifest.
        manifest: Manifest,
        /// The hold of a BLOCKED boundary.
        #[serde(deserialize_with = "aiws::record::fields::nullable")]
        hold: Option<HoldProposal>,
        /// Manifests of nodes that this boundary skips; made by the coordinator.
        #[serde(default, deserialize_with = "aiws::record::fields::list")]
        skipped: Vec<Manifest>,
    }
    /// Claims a delivery for validation.
    ClaimDelivery = "claimDelivery" {
        /// The delivery.
        delivery_id: DeliveryId,
        /// Wanted lease, at most the host's bound, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "aiws::record::fields::optional")]
        lease_ms: Option<DecPlus>,
    }
    /// Acknowledges receipt of verified material.
    AcknowledgeDelivery = "acknowledgeDelivery" {
        /// The delivery.
        delivery_id: DeliveryId,
        /// The exact manifest.
        handoff: HandoffRef,
        /// Fingerprint of the claim token; on the wire the token itself (HD-02.10).
        claim_token: Digest,
        /// The claim's generation.
        generation: DecPlus,
    }
    /// Gives a claim back.
    ReleaseDelivery = "releaseDelivery" {
        /// The delivery.
        delivery_id: DeliveryId,
        /// Fingerprint of the claim token; on the wire the token itself.
        claim_token: Digest,
        /// The claim's generation.
        generation: DecPlus,
    }
    /// Binds the selected input set to one activation and one operation (or a control entitlement).
    AdmitConsumer = "admitConsumer" {
        /// The consumption.
        consumption: Consumption,
        /// Manifests of nodes that an ANY join leaves out; made by the coordinator, whatever was sent (T-41).
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "aiws::record::fields::list")]
        skipped: Vec<Manifest>,
    }
    /// Opens a hold.
    PlaceHold = "placeHold" {
        /// The proposal; members are derived.
        hold: HoldProposal,
    }
    /// Rechecks or cancels a hold.
    ResolveHold = "resolveHold" {
        /// The hold.
        hold_id: HoldId,
        /// RECHECK or CANCEL.
        decision: HoldDecision,
        /// The decision's reference.
        decision_ref: Id,
        /// What shows it.
        #[serde(deserialize_with = "aiws::record::fields::unique")]
        evidence: Vec<EvidenceId>,
        /// The rule, under a rule-based policy.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "aiws::record::fields::optional")]
        rule: Option<Ref>,
    }
    /// Says that a hand-off no longer counts: what hangs on it becomes invalid and the run is held (HD-05.1).
    InvalidateHandoff = "invalidateHandoff" {
        /// The exact manifest.
        handoff: HandoffRef,
        /// Why.
        #[serde(deserialize_with = "aiws::record::fields::some_text")]
        reason: String,
        /// What shows it; never empty.
        #[serde(deserialize_with = "aiws::record::fields::some_unique")]
        evidence: Vec<EvidenceId>,
        /// Name and owner of the hold that it opens; derived where absent. An ended run opens none.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "aiws::record::fields::optional")]
        hold: Option<HoldName>,
    }
    /// Takes over a run's ownership.
    RecoverOwnership = "recoverOwnership" {
        /// The epoch that ends.
        expected_epoch: Dec,
        /// Why.
        #[serde(deserialize_with = "aiws::record::fields::some_text")]
        reason: String,
        /// The human decision, where the policy asks for one.
        #[serde(deserialize_with = "aiws::record::fields::nullable")]
        decision_ref: Option<Id>,
    }
    /// Keeps words about a hand-off. They decide nothing.
    RecordSummary = "recordSummary" {
        /// What is said, and by whom; time and revision are derived.
        summary: SummaryProposal,
    }
}

impl Body {
    /// The body of `type` in the members of `rest` (which has no member `type`); pointers of errors start at `rest`.
    ///
    /// # Errors
    /// SCHEMA_INVALID where a member is missing, unknown or misformed, or where members contradict each other: nobody
    /// reconciles into not knowing, and what nobody knows has no cost yet (FV-EFF.2, FV-EFF.4).
    pub fn from_members(kind: CommandType, rest: &Value) -> Result<Self, Error> {
        let body = Self::from_closed(kind, rest)?;
        let unknown = SettledOutcome::Unknown;
        match &body {
            Self::Reconcile(body) if body.outcome == unknown => Err(Error::schema(
                "/outcome",
                "expected CONFIRMED_APPLIED or CONFIRMED_NOT_APPLIED, found UNKNOWN",
            )),
            Self::Settle(body) if body.outcome == unknown && !body.actual.is_zero() => {
                Err(Error::schema(
                    "/actual",
                    format!("expected 0 for UNKNOWN, found {}", body.actual),
                ))
            }
            _ => Ok(body),
        }
    }
}

/// A command addressed to its stream, with what the caller expects of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The mission.
    pub mission_id: MissionId,
    /// The run; none for the mission's own commands.
    pub run_id: Option<RunId>,
    /// The request; none for what the engine does itself.
    pub request_id: Option<RequestId>,
    /// Digest of the request's material (T-23).
    pub request_digest: Digest,
    /// The stream's revision that the caller has seen; none only where the command allows it (STO-3).
    pub expected_revision: Option<Dec>,
    /// The epoch that the caller acts under; none for mission commands and for commands without ownership.
    pub owner_epoch: Option<Dec>,
    /// What is asked.
    pub body: Body,
}

/// What a worker or the scheduler asks for; the actor fills in revision, epoch, basis and derived members.
#[allow(clippy::large_enum_variant, reason = "an intent lives for one message")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "intent",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Intent {
    /// Any command whose body needs nothing derived but its epoch (the epoch member is overwritten).
    Command {
        /// The body.
        body: Body,
    },
    /// A boundary of a node's current activation.
    Boundary(BoundaryIntent),
    /// Admission of a node's current activation with all its acknowledged inputs.
    Admit(AdmitIntent),
    /// Dispatch of the node's prepared attempt.
    DispatchNode {
        /// The node.
        node_id: NodeId,
    },
    /// Retry of an operation under the same amount.
    RetryOperation {
        /// The operation.
        operation_id: OperationId,
    },
}

/// What the producer itself says at a boundary (HF-05.10: all of it may be empty).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BoundaryIntent {
    /// The node.
    pub node_id: NodeId,
    /// How its execution ended.
    pub status: OutcomeStatus,
    /// The result value.
    pub result: Value,
    /// Durable artifacts.
    #[serde(default, deserialize_with = "aiws::record::fields::list")]
    pub artifacts: Vec<Artifact>,
    /// Criteria met or not; those that the ledger knows are derived.
    #[serde(default, deserialize_with = "aiws::record::fields::list")]
    pub criteria: Vec<Criterion>,
    /// Approvals that an APPROVAL node rests on.
    #[serde(default, deserialize_with = "aiws::record::fields::unique")]
    pub approvals: Vec<ApprovalId>,
    /// Intent, decisions, assumptions, limitations.
    #[serde(default)]
    pub context: Context,
    /// Why, for FAILED and CANCELED.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "aiws::record::fields::optional"
    )]
    pub cause: Option<Cause>,
    /// The hold of a BLOCKED boundary.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "aiws::record::fields::optional"
    )]
    pub hold: Option<HoldProposal>,
}

/// Admission of a node: its inputs are all acknowledged deliveries of its current activation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdmitIntent {
    /// The node.
    pub node_id: NodeId,
    /// The effect admission that the host prepared in the facts; none for control nodes.
    #[serde(deserialize_with = "aiws::record::fields::nullable")]
    pub admission_ref: Option<Id>,
}

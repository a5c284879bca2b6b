//! Operations and their attempts, approvals, assessments, effect admissions.
//! Invariant: an operation is a piece of logical work and keeps its id through retries (FV-ACC.5); each of these is a record of its own (FV-APR.5).
//! Called by the model; the host prepares admissions.

use serde::{Deserialize, Serialize};

use super::{Record, Ref, checked, fields, names};
use crate::decimal::{Dec, Ms, U64};
use crate::digest::Digest;
use crate::error::Error;
use crate::id::{
    ActivationId, ActorId, ApprovalId, AssessmentId, AttemptId, EvidenceId, GrantId, Id, NodeId,
    OperationId, RunId,
};
use crate::json::Value;

names! {
    /// Where a run stands; the last four are final (FV-RUN.4). A hold is a gate, not a lifecycle (HS-01.2).
    Lifecycle {
        /// Work may go on.
        Running = "RUNNING",
        /// A human paused it.
        Paused = "PAUSED",
        /// Cancellation was asked for; effects are being settled.
        Canceling = "CANCELING",
        /// Ended, complete.
        Completed = "COMPLETED",
        /// Ended by a cause that cannot be mended.
        Failed = "FAILED",
        /// Ended by cancellation.
        Canceled = "CANCELED",
        /// Ended because its result was not accepted.
        Rejected = "REJECTED",
    }
    /// What is known of the effect of an operation as a whole.
    OperationStatus {
        /// An attempt is prepared, under way or uncertain.
        Open = "OPEN",
        /// The effect is confirmed.
        ConfirmedApplied = "CONFIRMED_APPLIED",
        /// The last attempt is confirmed to have had no effect.
        ConfirmedNotApplied = "CONFIRMED_NOT_APPLIED",
    }
    /// What is known of one attempt.
    AttemptStatus {
        /// Admitted with its reservation, not tried.
        Prepared = "PREPARED",
        /// Durably about to be tried, or being tried.
        Dispatched = "DISPATCHED",
        /// Tried, with an outcome nobody knows.
        Unknown = "UNKNOWN",
        /// Its effect is confirmed.
        ConfirmedApplied = "CONFIRMED_APPLIED",
        /// It is confirmed to have had no effect.
        ConfirmedNotApplied = "CONFIRMED_NOT_APPLIED",
    }
    /// What a settlement or reconciliation says about an attempt.
    SettledOutcome {
        /// It had its effect.
        ConfirmedApplied = "CONFIRMED_APPLIED",
        /// It had no effect.
        ConfirmedNotApplied = "CONFIRMED_NOT_APPLIED",
        /// Nobody knows; the reservation stays.
        Unknown = "UNKNOWN",
    }
    /// How an operation's effect behaves when its answer is lost; the adapter declares it.
    EffectClass {
        /// It changes nothing; a lost one may be tried again under the contract's rule (T-20).
        Read = "READ",
        /// It has a key of its own and a look-up that tells whether it happened.
        Idempotent = "IDEMPOTENT",
        /// Nobody can tell from outside; evidence or a human decides.
        External = "EXTERNAL",
    }
    /// What an approver decided.
    ApprovalDecision {
        /// Yes, for exactly this material.
        Approved = "APPROVED",
        /// No.
        Denied = "DENIED",
    }
    /// Which question an assessment answers.
    AssessmentKind {
        /// Is the result right?
        Verification = "VERIFICATION",
        /// Does the one who asked take it?
        Acceptance = "ACCEPTANCE",
    }
    /// The answer of a verification.
    VerificationVerdict {
        /// It is right.
        Pass = "PASS",
        /// It is not.
        Fail = "FAIL",
    }
    /// The answer of an acceptance.
    AcceptanceVerdict {
        /// Taken.
        Accepted = "ACCEPTED",
        /// Refused.
        Rejected = "REJECTED",
    }
    /// The answer of an assessment of either kind.
    AssessmentVerdict {
        /// A verification that passed.
        Pass = "PASS",
        /// A verification that failed.
        Fail = "FAIL",
        /// An acceptance.
        Accepted = "ACCEPTED",
        /// A rejection.
        Rejected = "REJECTED",
    }
}

impl Lifecycle {
    /// Whether nothing enabling happens any more.
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Lifecycle::Completed | Lifecycle::Failed | Lifecycle::Canceled | Lifecycle::Rejected
        )
    }
}

impl AttemptStatus {
    /// Whether the outcome is settled.
    pub const fn is_confirmed(self) -> bool {
        matches!(
            self,
            AttemptStatus::ConfirmedApplied | AttemptStatus::ConfirmedNotApplied
        )
    }
}

impl From<SettledOutcome> for AttemptStatus {
    fn from(outcome: SettledOutcome) -> AttemptStatus {
        match outcome {
            SettledOutcome::ConfirmedApplied => AttemptStatus::ConfirmedApplied,
            SettledOutcome::ConfirmedNotApplied => AttemptStatus::ConfirmedNotApplied,
            SettledOutcome::Unknown => AttemptStatus::Unknown,
        }
    }
}

impl AssessmentVerdict {
    /// The kind of assessment that gives this answer.
    pub const fn kind(self) -> AssessmentKind {
        match self {
            AssessmentVerdict::Pass | AssessmentVerdict::Fail => AssessmentKind::Verification,
            AssessmentVerdict::Accepted | AssessmentVerdict::Rejected => AssessmentKind::Acceptance,
        }
    }

    /// Whether it opens its gate.
    pub const fn is_positive(self) -> bool {
        matches!(self, AssessmentVerdict::Pass | AssessmentVerdict::Accepted)
    }
}

impl From<VerificationVerdict> for AssessmentVerdict {
    fn from(verdict: VerificationVerdict) -> AssessmentVerdict {
        match verdict {
            VerificationVerdict::Pass => AssessmentVerdict::Pass,
            VerificationVerdict::Fail => AssessmentVerdict::Fail,
        }
    }
}

impl From<AcceptanceVerdict> for AssessmentVerdict {
    fn from(verdict: AcceptanceVerdict) -> AssessmentVerdict {
        match verdict {
            AcceptanceVerdict::Accepted => AssessmentVerdict::Accepted,
            AcceptanceVerdict::Rejected => AssessmentVerdict::Rejected,
        }
    }
}

/// A piece of logical work with its exact action.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Operation {
    /// Unique in the mission; retries keep it.
    pub operation_id: OperationId,
    /// Its run.
    pub run_id: RunId,
    /// Its node, where the run has a graph.
    #[serde(deserialize_with = "fields::nullable")]
    pub node_id: Option<NodeId>,
    /// The activation it is bound to.
    #[serde(deserialize_with = "fields::nullable")]
    pub activation_id: Option<ActivationId>,
    /// Fingerprint of the action.
    pub fingerprint: Digest,
    /// The exact action, an object.
    #[serde(deserialize_with = "fields::object")]
    pub action: Value,
    /// How its effect behaves when its answer is lost.
    pub effect: EffectClass,
    /// The grant that covers it.
    pub grant_id: GrantId,
    /// The approval it uses, where one is needed (T-80).
    #[serde(deserialize_with = "fields::nullable")]
    pub approval_id: Option<ApprovalId>,
    /// What one attempt may cost, in units.
    pub amount: Dec,
    /// Its attempts, oldest first.
    #[serde(deserialize_with = "fields::unique")]
    pub attempts: Vec<AttemptId>,
    /// What is known of its effect.
    pub status: OperationStatus,
}

/// One try of an operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attempt {
    /// Unique in the mission; the wire member is `id`.
    #[serde(rename = "id")]
    pub attempt_id: AttemptId,
    /// Its operation.
    pub operation_id: OperationId,
    /// The ownership epoch it was prepared in.
    pub epoch: U64,
    /// What is known of it.
    pub status: AttemptStatus,
    /// What it holds reserved, in units.
    pub reserved: Dec,
    /// What it cost, in units, once that is known.
    #[serde(deserialize_with = "fields::nullable")]
    pub actual: Option<Dec>,
    /// What shows its outcome.
    #[serde(deserialize_with = "fields::unique")]
    pub evidence: Vec<EvidenceId>,
}

/// A decision about exact action material (FV-APR.1).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approval {
    /// Unique in the mission.
    pub approval_id: ApprovalId,
    /// The only run it counts in.
    pub run_id: RunId,
    /// Fingerprint of the action it is about.
    pub fingerprint: Digest,
    /// Who decided.
    pub approver: ActorId,
    /// What was decided.
    pub decision: ApprovalDecision,
    /// When, UTC milliseconds.
    pub granted_at_ms: U64,
    /// It is no longer current once this time is reached.
    pub expires_at_ms: Ms,
    /// The policy it was decided under.
    pub policy: Ref,
    /// Whether it was withdrawn.
    pub revoked: bool,
    /// The one operation that uses it, once there is one (T-80).
    #[serde(deserialize_with = "fields::nullable")]
    pub operation_id: Option<OperationId>,
}

/// A verification or an acceptance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Assessment {
    /// Unique in the mission.
    pub assessment_id: AssessmentId,
    /// Its run.
    pub run_id: RunId,
    /// Which question it answers.
    pub kind: AssessmentKind,
    /// One more than the assessment of the same kind before it, so never zero.
    #[serde(deserialize_with = "fields::positive")]
    pub revision: U64,
    /// The answer; of the kind's own vocabulary.
    pub verdict: AssessmentVerdict,
    /// What was assessed.
    pub subject: Id,
    /// What shows it.
    #[serde(deserialize_with = "fields::unique")]
    pub evidence: Vec<EvidenceId>,
    /// Who assessed.
    pub assessor: ActorId,
    /// Why it no longer counts, where that is so.
    #[serde(deserialize_with = "fields::nullable")]
    pub invalidated: Option<Invalidated>,
}

/// Why an assessment no longer counts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Invalidated {
    /// The reason.
    #[serde(deserialize_with = "fields::some_text")]
    pub reason: String,
    /// What shows it.
    #[serde(deserialize_with = "fields::unique")]
    pub evidence: Vec<EvidenceId>,
}

crate::veiled! { Invalidated { evidence } reason; }

/// An effect admission that the host prepared and the coordinator checks (HD-03.12).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdmissionProposal {
    /// The operation.
    pub operation_id: OperationId,
    /// Its first attempt.
    pub attempt_id: AttemptId,
    /// The exact action, an object.
    #[serde(deserialize_with = "fields::object")]
    pub action: Value,
    /// Fingerprint of the action.
    pub fingerprint: Digest,
    /// How its effect behaves when its answer is lost.
    pub effect: EffectClass,
    /// The grant that covers it.
    pub grant_id: GrantId,
    /// The approval it uses, where one is needed.
    #[serde(deserialize_with = "fields::nullable")]
    pub approval_id: Option<ApprovalId>,
    /// What it may cost, in units.
    pub amount: Dec,
}

impl Record for Operation {}
impl Record for Attempt {}
impl Record for Approval {}
impl Record for AdmissionProposal {}

checked! { Assessment }

impl Record for Assessment {}

impl Assessment {
    /// Each kind answers in its own vocabulary.
    fn check(&self) -> Result<(), Error> {
        if self.verdict.kind() == self.kind {
            return Ok(());
        }
        Err(Error::schema(
            "/verdict",
            format!(
                "expected a verdict of {}, found {}",
                self.kind, self.verdict
            ),
        ))
    }
}

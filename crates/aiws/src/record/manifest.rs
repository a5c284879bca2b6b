//! The hand-off manifest: what a node passes on, immutable and complete.
//! Invariant: it holds references and short text, never large content (HF-01.4), never its own digest (CJ-2), never a credential (HF-04.3).
//! Called by the model, which compares every member with the ledger; a shape-valid manifest may still be false (HF-01.3).

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use super::{AttemptStatus, HandoffRef, HoldReason, Record, Ref, fields, names};
use crate::decimal::{Dec, Ms};
use crate::digest::Digest;
use crate::error::{Code, Error};
use crate::id::{
    ActivationId, ActorId, AttemptId, CheckpointId, CriterionId, DeliveryId, EvidenceId, HandoffId,
    Id, MissionId, NodeId, OperationId, RunId,
};
use crate::json::Value;

names! {
    /// The hand-off protocol.
    Protocol {
        /// `aiws-handoff/1`.
        HandoffV1 = "aiws-handoff/1",
    }
    /// How an activation ended (HF-03.5). COMPLETED says nothing about verification (HF-03.6).
    OutcomeStatus {
        /// Its kind's evidence is there.
        Completed = "COMPLETED",
        /// A branch or a skipped input left it out.
        Skipped = "SKIPPED",
        /// A bound or a blocker stops it; a hold goes with it.
        Blocked = "BLOCKED",
        /// It failed and ends the run.
        Failed = "FAILED",
        /// It was canceled and ends the run.
        Canceled = "CANCELED",
    }
    /// What the producer says of a success criterion.
    CriterionStatus {
        /// Met.
        Met = "MET",
        /// Not met.
        NotMet = "NOT_MET",
        /// Not looked at.
        Unknown = "UNKNOWN",
    }
    /// The checks that precede every continuation; a manifest lists all of them (REL-14).
    RequiredCheck {
        /// Current authority.
        Authority = "AUTHORITY",
        /// Material read back and verified.
        Material = "MATERIAL",
        /// Room in every bound.
        Limits = "LIMITS",
        /// The current ownership epoch.
        Ownership = "OWNERSHIP",
        /// No open hold.
        Holds = "HOLDS",
    }
}

/// A hand-off manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// The protocol.
    pub protocol: Protocol,
    /// Unique in the mission.
    pub handoff_id: HandoffId,
    /// Who produced it: every coordinate (HF-03.2).
    pub producer: Producer,
    /// The last committed position before the boundary (HF-01.7).
    pub basis: Basis,
    /// How the activation ended.
    pub outcome: Outcome,
    /// The inputs it consumed.
    #[serde(deserialize_with = "fields::list")]
    pub inputs: Vec<InputRef>,
    /// Whom it goes to, derived from the pinned graph (HF-03.10).
    #[serde(deserialize_with = "fields::list")]
    pub recipients: Vec<Recipient>,
    /// Durable artifacts.
    #[serde(deserialize_with = "fields::list")]
    pub artifacts: Vec<Artifact>,
    /// The result value.
    pub result: Value,
    /// Policy, approvals and accounting at the basis.
    pub controls: Controls,
    /// What the producer says; never authority.
    pub context: Context,
    /// What a continuation has to look at; advisory but for the checks.
    pub resume: Resume,
    /// What it corrects, where it is a correction.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional"
    )]
    pub lineage: Option<Lineage>,
}

/// Where a manifest comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Producer {
    /// The mission.
    pub mission_id: MissionId,
    /// The run.
    pub run_id: RunId,
    /// The pinned graph.
    pub graph: Ref,
    /// The plan's revision.
    pub plan_revision: Dec,
    /// The node.
    pub node_id: NodeId,
    /// The activation.
    pub activation_id: ActivationId,
    /// The node event of the same transaction (HF-01.8).
    pub checkpoint_id: CheckpointId,
    /// Its operations with their attempts; empty for a control node (HF-03.3).
    #[serde(deserialize_with = "fields::list")]
    pub operations: Vec<ProducedOperation>,
    /// The worker, for information.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional"
    )]
    pub worker_id: Option<ActorId>,
}

/// An operation of the producer with all its attempts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProducedOperation {
    /// The operation.
    pub operation_id: OperationId,
    /// Its attempts, oldest first.
    #[serde(deserialize_with = "fields::unique")]
    pub attempt_ids: Vec<AttemptId>,
}

/// A position in the ledger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Basis {
    /// The revision of the last event.
    pub revision: Dec,
    /// The hash of the last event.
    pub event_hash: Digest,
}

/// How an activation ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    /// The disposition.
    pub status: OutcomeStatus,
    /// Success criteria with their evidence.
    #[serde(deserialize_with = "fields::list")]
    pub criteria: Vec<Criterion>,
    /// Every effect without a known outcome (HF-03.9).
    #[serde(deserialize_with = "fields::list")]
    pub outstanding: Vec<Outstanding>,
    /// Why, for FAILED and CANCELED.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional"
    )]
    pub cause: Option<Cause>,
}

/// What the producer says of one success criterion.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Criterion {
    /// The criterion.
    pub criterion_id: CriterionId,
    /// Met or not.
    pub status: CriterionStatus,
    /// What shows it.
    #[serde(deserialize_with = "fields::unique")]
    pub evidence: Vec<EvidenceId>,
}

/// An effect without a known outcome.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outstanding {
    /// The operation.
    pub operation_id: OperationId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// What is known of it.
    pub status: AttemptStatus,
}

/// Why something ended badly.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cause {
    /// A short code.
    #[serde(deserialize_with = "fields::name")]
    pub code: String,
    /// A sentence.
    #[serde(deserialize_with = "fields::text")]
    pub detail: String,
}

/// An input that was consumed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InputRef {
    /// The delivery it came by.
    pub delivery_id: DeliveryId,
    /// The exact manifest.
    pub handoff: HandoffRef,
}

/// A place that a manifest goes to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Recipient {
    /// The delivery, unique in the mission.
    pub delivery_id: DeliveryId,
    /// The consuming node.
    pub node_id: NodeId,
    /// Its activation.
    pub activation_id: ActivationId,
    /// The input of the node that it arrives at.
    pub input_port: Id,
}

/// A durable artifact by reference (HF-04.2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Artifact {
    /// Where the bytes are.
    pub locator: Locator,
    /// SHA-256 of the exact bytes (HF-04.5).
    pub digest: Digest,
    /// Their number.
    pub size_bytes: Dec,
    /// Their media type.
    #[serde(deserialize_with = "fields::name")]
    pub media_type: String,
    /// Digest of the schema they follow, where there is one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional"
    )]
    pub schema_digest: Option<Digest>,
    /// Who keeps them.
    pub retention_owner: ActorId,
    /// Until when, at least.
    pub retain_until_ms: Ms,
}

/// Where an artifact's bytes are: names, never a signed URL and never a credential (HF-04.3).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Locator {
    /// The store.
    #[serde(deserialize_with = "plain_name")]
    pub store: Id,
    /// The key in the store.
    #[serde(deserialize_with = "plain_name")]
    pub key: Id,
    /// The immutable version of the key.
    #[serde(deserialize_with = "plain_name")]
    pub version: Id,
}

/// What governed the work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Controls {
    /// The policy, at its exact revision.
    pub policy: Ref,
    /// Approvals, by reference only.
    #[serde(deserialize_with = "fields::unique")]
    pub approvals: Vec<Ref>,
    /// The mission's accounting at the basis.
    pub accounting: AccountingQuote,
}

/// The mission's account as it stood.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccountingQuote {
    /// The revision of the account.
    pub revision: Dec,
    /// Spent, in units.
    pub spent: Dec,
    /// Reserved, in units.
    pub reserved: Dec,
    /// Attempts so far.
    pub attempts: Dec,
}

/// What the producer says to whoever goes on. Text, never authority.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Context {
    /// What the work is for.
    #[serde(deserialize_with = "fields::text")]
    pub intent: String,
    /// What was decided.
    #[serde(deserialize_with = "fields::texts")]
    pub decisions: Vec<String>,
    /// What was assumed.
    #[serde(deserialize_with = "fields::texts")]
    pub assumptions: Vec<String>,
    /// What it does not do.
    #[serde(deserialize_with = "fields::texts")]
    pub limitations: Vec<String>,
}

/// How work may go on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resume {
    /// Nodes that could go on; advisory (REL-13).
    #[serde(deserialize_with = "fields::unique")]
    pub eligible_node_ids: Vec<NodeId>,
    /// What stands in the way.
    #[serde(deserialize_with = "fields::list")]
    pub blockers: Vec<Blocker>,
    /// All of [`RequiredCheck::ALL`], in any order.
    #[serde(deserialize_with = "all_checks")]
    pub required_checks: Vec<RequiredCheck>,
}

/// Something that stands in the way of work.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Blocker {
    /// Its kind, of the same vocabulary as a hold's reason.
    pub kind: HoldReason,
    /// What it is about.
    pub subject_id: Id,
    /// What shows it.
    #[serde(deserialize_with = "fields::unique")]
    pub evidence: Vec<EvidenceId>,
}

/// What a corrected result replaces.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lineage {
    /// The manifest that it replaces.
    pub replaces: HandoffRef,
    /// Why.
    #[serde(deserialize_with = "fields::some_text")]
    pub reason: String,
}

impl Record for Manifest {
    fn supported(value: &Value) -> Result<(), Error> {
        match value.get("protocol").and_then(Value::as_str) {
            Some(found) if Protocol::parse(found).is_none() => {
                let found: String = found.chars().take(64).collect();
                let message = format!("expected protocol \"aiws-handoff/1\", found {found:?}");
                Err(Error::new(Code::UnsupportedProtocol, message).at("/protocol"))
            }
            _ => Ok(()),
        }
    }
}

impl Record for Artifact {}

/// A locator's part. A URL with user information, a query or a fragment can carry a credential, and a name needs none.
fn plain_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
    let name = Id::deserialize(deserializer)?;
    let text = name.as_str();
    let authority = text
        .split_once("//")
        .map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let user_information = authority.is_some_and(|authority| authority.contains('@'));
    let query = text
        .split_once('?')
        .is_some_and(|(_, query)| authority.is_some() || query.contains('='));
    let fragment = authority.is_some() && text.contains('#');
    if user_information || query || fragment {
        return Err(D::Error::custom(
            "expected a plain name, found a URL with user information, a query or a fragment",
        ));
    }
    Ok(name)
}

fn all_checks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RequiredCheck>, D::Error> {
    let checks: Vec<RequiredCheck> = fields::unique(deserializer)?;
    match RequiredCheck::ALL
        .iter()
        .find(|check| !checks.contains(check))
    {
        Some(missing) => Err(D::Error::custom(format_args!(
            "expected every required check, found none of {missing}"
        ))),
        None => Ok(checks),
    }
}

//! The hand-off manifest: what a node passes on, immutable and complete.
//! Invariant: it holds references and short text, never large content (HF-01.4), never its own digest (CJ-2), never a credential (HF-04.3).
//! Called by the model, which compares every member with the ledger; a shape-valid manifest may still be false (HF-01.3).

use serde::de::{Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::{
    Artifact, AttemptStatus, HandoffRef, HoldReason, Record, Ref, checked, fields, names, repeated,
};
use crate::decimal::Dec;
use crate::digest::Digest;
use crate::error::{Code, Error, beginning};
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
}

/// A check that precedes a continuation. A manifest lists all of [`RequiredCheck::ALL`] (REL-14), and may ask for
/// more under names of its own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RequiredCheck {
    /// Current authority.
    Authority,
    /// Material read back and verified.
    Material,
    /// Room in every bound.
    Limits,
    /// The current ownership epoch.
    Ownership,
    /// No open hold.
    Holds,
    /// A check that the producer asks for beside these; never the name of one of them.
    Other(Id),
}

/// A hand-off manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
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
    /// The inputs it consumed, each delivery once.
    #[serde(deserialize_with = "fields::list")]
    pub inputs: Vec<InputRef>,
    /// Whom it goes to, derived from the pinned graph (HF-03.10); no delivery and no place twice.
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
    /// Its operations with their attempts, each once; empty for a control node (HF-03.3).
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
    /// Success criteria with their evidence, each once.
    #[serde(deserialize_with = "fields::list")]
    pub criteria: Vec<Criterion>,
    /// Every effect without a known outcome (HF-03.9), each attempt once; a confirmed one is none.
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
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cause {
    /// A short code.
    #[serde(deserialize_with = "fields::name")]
    pub code: String,
    /// A sentence.
    #[serde(deserialize_with = "fields::text")]
    pub detail: String,
}

crate::veiled! { Cause { code } detail; }

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
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
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

crate::veiled! { Context {} intent decisions assumptions limitations; }

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
    /// All of [`RequiredCheck::ALL`] and perhaps more, each once, in any order.
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
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lineage {
    /// The manifest that it replaces.
    pub replaces: HandoffRef,
    /// Why.
    #[serde(deserialize_with = "fields::some_text")]
    pub reason: String,
}

crate::veiled! { Lineage { replaces } reason; }

impl RequiredCheck {
    /// The checks that no manifest leaves out.
    pub const ALL: &'static [RequiredCheck] = &[
        RequiredCheck::Authority,
        RequiredCheck::Material,
        RequiredCheck::Limits,
        RequiredCheck::Ownership,
        RequiredCheck::Holds,
    ];

    /// The name on the wire.
    pub fn name(&self) -> &str {
        match self {
            RequiredCheck::Authority => "AUTHORITY",
            RequiredCheck::Material => "MATERIAL",
            RequiredCheck::Limits => "LIMITS",
            RequiredCheck::Ownership => "OWNERSHIP",
            RequiredCheck::Holds => "HOLDS",
            RequiredCheck::Other(name) => name.as_str(),
        }
    }
}

impl std::fmt::Display for RequiredCheck {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

impl Serialize for RequiredCheck {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for RequiredCheck {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RequiredCheck, D::Error> {
        let name = Id::deserialize(deserializer)?;
        let mut known = RequiredCheck::ALL.iter();
        Ok(match known.find(|check| check.name() == name.as_str()) {
            Some(check) => check.clone(),
            None => RequiredCheck::Other(name),
        })
    }
}

impl Record for Manifest {
    fn supported(value: &Value) -> Result<(), Error> {
        match value.get("protocol").and_then(Value::as_str) {
            Some(found) if Protocol::parse(found).is_none() => {
                let found = beginning(found);
                let message = format!("expected protocol \"aiws-handoff/1\", found {found:?}");
                Err(Error::new(Code::UnsupportedProtocol, message).at("/protocol"))
            }
            _ => Ok(()),
        }
    }
}

checked! { Manifest }

impl Manifest {
    /// Nothing stands twice, and an effect whose outcome is known is not outstanding.
    fn check(&self) -> Result<(), Error> {
        let recipients = || self.recipients.iter();
        let place = |to: &Recipient| {
            let Recipient {
                delivery_id: _,
                node_id,
                activation_id,
                input_port,
            } = to.clone();
            (node_id, activation_id, input_port)
        };
        let outcome = &self.outcome;
        let twice = [
            (
                "/producer/operations",
                repeated(self.producer.operations.iter().map(|one| &one.operation_id)),
            ),
            (
                "/outcome/criteria",
                repeated(outcome.criteria.iter().map(|one| &one.criterion_id)),
            ),
            (
                "/outcome/outstanding",
                repeated(outcome.outstanding.iter().map(|one| &one.attempt_id)),
            ),
            (
                "/inputs",
                repeated(self.inputs.iter().map(|one| &one.delivery_id)),
            ),
            (
                "/recipients",
                repeated(recipients().map(|to| &to.delivery_id)),
            ),
            ("/recipients", repeated(recipients().map(place))),
        ];
        for (list, index) in twice {
            if let Some(index) = index {
                let pointer = format!("{list}/{index}");
                return Err(Error::schema(
                    pointer,
                    "expected each of them once, found one again",
                ));
            }
        }
        let mut outstanding = outcome.outstanding.iter();
        match outstanding.position(|one| one.status.is_confirmed()) {
            Some(index) => Err(Error::schema(
                format!("/outcome/outstanding/{index}/status"),
                "expected an outcome that nobody knows yet, found a confirmed one",
            )),
            None => Ok(()),
        }
    }
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

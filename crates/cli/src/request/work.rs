//! What a worker asks of a run: one closed set, with what may be left out.
//! Invariant: a worker's request has no say of authority; a claim's token is shown in no message of this program.
//! Part of `request`, answered by `office`.

use std::fmt;

use aiws::decimal::{Dec, DecPlus};
use aiws::id::{ApprovalId, AttemptId, DeliveryId, GrantId, MissionId, NodeId, OperationId, RunId};
use aiws::json::Value;
use aiws::record::{Artifact, Cause, Context, Criterion, EffectClass, HandoffRef, OutcomeStatus};
use serde::{Deserialize, Serialize};

/// What a worker asks of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Work {
    /// The worker's own name, `agent:NAME`.
    pub worker: String,
    /// The mission.
    pub mission_id: MissionId,
    /// The run.
    pub run_id: RunId,
    /// The worker's name for this request: sent again, it gets the first answer.
    pub request_id: String,
    /// What is asked.
    pub ask: WorkAsk,
}

/// The asks.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum WorkAsk {
    /// Claims a delivery for validation.
    Claim {
        /// The delivery.
        delivery_id: DeliveryId,
        /// Wanted lease in milliseconds; the mission's own bound unless given.
        #[serde(default)]
        lease_ms: Option<DecPlus>,
    },
    /// Says that the material of a claimed delivery was received.
    Acknowledge {
        /// The delivery.
        delivery_id: DeliveryId,
        /// The manifest that was looked at.
        handoff: HandoffRef,
        /// The token that the claim gave.
        claim_token: Token,
        /// The claim's generation.
        generation: DecPlus,
    },
    /// Gives a claim back.
    Release {
        /// The delivery.
        delivery_id: DeliveryId,
        /// The token that the claim gave.
        claim_token: Token,
        /// The claim's generation.
        generation: DecPlus,
    },
    /// Admits a node with all its acknowledged inputs, and the effect of a TASK.
    Admit {
        /// The node.
        node_id: NodeId,
        /// The effect; absent for control nodes.
        #[serde(default)]
        effect: Option<Effect>,
    },
    /// Makes the node's prepared attempt DISPATCHED: only then may the effect be had.
    Dispatch {
        /// The node.
        node_id: NodeId,
    },
    /// Prepares another attempt of an operation that is confirmed not applied.
    Retry {
        /// The operation.
        operation_id: OperationId,
    },
    /// Says what became of an attempt.
    Report {
        /// The attempt.
        attempt_id: AttemptId,
        /// What happened.
        outcome: Reported,
        /// What it cost, in units; for APPLIED alone.
        #[serde(default)]
        actual: Option<Dec>,
        /// What shows it, at most a mebibyte; stored before the attempt is settled.
        evidence: Value,
    },
    /// Commits a node's boundary and so hands its result on.
    Boundary(Box<Boundary>),
    /// Keeps bytes as an artifact that a boundary can name.
    Store {
        /// The worker's name for them.
        name: String,
        /// Their media type.
        media_type: String,
        /// The bytes as text.
        #[serde(default)]
        text: Option<String>,
        /// The bytes in hex, where they are no text.
        #[serde(default)]
        hex: Option<String>,
    },
    /// The bytes of an artifact that a manifest of this run names.
    Fetch {
        /// Its digest.
        digest: aiws::digest::Digest,
    },
}

/// Its kind alone.
impl fmt::Debug for WorkAsk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::named(out, "WorkAsk", aiws::canonical::to_value(self), "kind")
    }
}

/// The effect that is proposed with an admission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Effect {
    /// The exact action `{action, scope, payload}`.
    pub action: Value,
    /// What a lost answer may mean.
    pub class: EffectClass,
    /// The grant, which names this worker.
    pub grant_id: GrantId,
    /// What it may cost, in units; reserved from now on.
    pub amount: Dec,
    /// The approval of this very action, where one is needed.
    #[serde(default)]
    pub approval_id: Option<ApprovalId>,
}

/// What a worker says of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reported {
    /// The effect was had.
    Applied,
    /// It was not.
    NotApplied,
    /// Nobody can say.
    Uncertain,
}

/// What a worker says at a boundary; what is absent is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Boundary {
    /// The node.
    pub node_id: NodeId,
    /// How it ended; COMPLETED unless given.
    #[serde(default)]
    pub status: Option<OutcomeStatus>,
    /// The result value; an empty object unless given, and END's disposition.
    #[serde(default)]
    pub result: Option<Value>,
    /// Artifacts, as `store` answered them.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    /// Criteria met or not.
    #[serde(default)]
    pub criteria: Vec<Criterion>,
    /// Approvals that an APPROVAL node rests on.
    #[serde(default)]
    pub approvals: Vec<ApprovalId>,
    /// Intent, decisions, assumptions, limitations.
    #[serde(default)]
    pub context: Context,
    /// Why, for FAILED and CANCELED.
    #[serde(default)]
    pub cause: Option<Cause>,
}

/// A claim's token on its way.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub String);

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(json: &str) -> Result<WorkAsk, aiws::error::Error> {
        aiws::canonical::from_value(&aiws::strict::parse(json.as_bytes()).unwrap())
    }

    #[test]
    fn asks_are_closed() {
        ask(r#"{"kind":"claim","deliveryId":"d"}"#).unwrap();
        ask(r#"{"kind":"boundary","nodeId":"n"}"#).unwrap();
        for odd in [
            r#"{"kind":"approve","nodeId":"n"}"#,
            r#"{"kind":"verify","nodeId":"n"}"#,
            r#"{"kind":"claim"}"#,
            r#"{"kind":"claim","deliveryId":"d","as":"alice"}"#,
            r#"{"kind":"boundary","nodeId":"n","hold":null}"#,
            r#"{"kind":"report","attemptId":"a","outcome":"MAYBE","evidence":null}"#,
            r#"{"deliveryId":"d"}"#,
        ] {
            assert!(ask(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let json = r#"{"kind":"release","deliveryId":"d","claimToken":"secret","generation":"1"}"#;
        let shown = format!("{:?}", ask(json).unwrap());
        assert!(!shown.contains("secret"), "{shown}");
    }
}

//! Holds: gates with an owner, a reason and the decisions that may end them.
//! Invariant: a hold names at least one member and at least one allowed decision (HS-01.9, HS-03.5); OPEN has no resolution, a closed one has.
//! Called by the model; members and blockers are derived there, never supplied (HF-05.5).

use serde::de::{Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::{ActorKind, Blocker, Record, Ref, checked, fields, names, repeated};
use crate::decimal::{Dec, U64};
use crate::error::Error;
use crate::id::{
    ActorId, AttemptId, EvidenceId, HoldId, Id, MissionId, NodeId, OperationId, RunId,
};
use crate::json::Value;

names! {
    /// Where a hold stands; the last two are final (HS-01.1).
    HoldState {
        /// It gates.
        Open = "OPEN",
        /// Its blockers are clear.
        Released = "RELEASED",
        /// It was closed into cancellation.
        Canceled = "CANCELED",
    }
    /// Why something is held.
    HoldReason {
        /// Iterations or attempts are used up.
        AttemptLimit = "ATTEMPT_LIMIT",
        /// The cost bound is used up.
        CostLimit = "COST_LIMIT",
        /// The time bound is used up.
        TimeLimit = "TIME_LIMIT",
        /// Material is missing or wrong.
        Artifact = "ARTIFACT",
        /// An effect has no known outcome.
        UncertainEffect = "UNCERTAIN_EFFECT",
        /// An input was invalidated.
        InvalidatedInput = "INVALIDATED_INPUT",
        /// The owner was lost and the policy asks before going on.
        Restart = "RESTART",
        /// An operator placed it.
        Operator = "OPERATOR",
        /// A rule placed it.
        Rule = "RULE",
    }
    /// What a hold covers. Which of these can be fenced is the model's answer, `SCOPE_UNSUPPORTED` where not.
    HoldScopeKind {
        /// One run.
        Run = "RUN",
        /// A branch of a run.
        Branch = "BRANCH",
        /// A whole work order.
        WorkOrder = "WORK_ORDER",
    }
    /// The decisions that end a hold (HS-03.1).
    HoldDecision {
        /// Look at every blocker and gate again.
        Recheck = "RECHECK",
        /// Close it and cancel.
        Cancel = "CANCEL",
    }
    /// What becomes of work in flight when something is held or canceled (HS-05.2).
    StopAction {
        /// Let it finish.
        Drain = "DRAIN",
        /// Ask it to stop.
        Cancel = "CANCEL",
        /// Find out what it did.
        Reconcile = "RECONCILE",
    }
}

/// A hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Hold {
    /// Unique in the domain, never used again (HS-06.7).
    pub hold_id: HoldId,
    /// Where it stands.
    pub state: HoldState,
    /// Why.
    pub reason: HoldReason,
    /// Who owns it.
    pub owner: Id,
    /// What it covers.
    pub scope: HoldScope,
    /// Who is in it; at least one, each run once.
    #[serde(deserialize_with = "fields::some_list")]
    pub members: Vec<HoldMember>,
    /// What stands in the way; each once.
    #[serde(deserialize_with = "fields::unique")]
    pub blockers: Vec<Blocker>,
    /// The decisions that may end it; at least one.
    #[serde(deserialize_with = "fields::some_unique")]
    pub allowed_decisions: Vec<HoldDecision>,
    /// What becomes of work in flight; one disposition per attempt.
    #[serde(deserialize_with = "fields::list")]
    pub stop_disposition: Vec<StopDisposition>,
    /// Who opened it.
    pub opened_by: ActorId,
    /// When, UTC milliseconds.
    pub opened_at_ms: U64,
    /// At which revision of its stream.
    pub opened_revision: U64,
    /// How it ended; none while it is OPEN.
    #[serde(deserialize_with = "fields::nullable")]
    pub resolution: Option<HoldResolution>,
}

/// What a hold covers, pinned to the resolver that found its members (HS-01.6).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HoldScope {
    /// What kind of thing.
    pub kind: HoldScopeKind,
    /// Which one.
    #[serde(rename = "ref")]
    pub scope_ref: Ref,
    /// The revision of the resolver.
    pub resolver_revision: Dec,
}

/// One run's part in a hold.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HoldMember {
    /// The mission.
    pub mission_id: MissionId,
    /// The run.
    pub run_id: RunId,
    /// Which of its nodes.
    pub node_ids: NodeSet,
}

/// Some nodes of a run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NodeSet {
    /// All present and future ones (HS-01.7); written `"ALL"`.
    All,
    /// The named ones, each once and at least one; written as a list.
    Named(Vec<NodeId>),
}

impl NodeSet {
    /// Whether a node is in it.
    pub fn contains(&self, node: &NodeId) -> bool {
        match self {
            NodeSet::All => true,
            NodeSet::Named(nodes) => nodes.contains(node),
        }
    }
}

/// What becomes of one attempt in flight.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopDisposition {
    /// The operation.
    pub operation_id: OperationId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// What becomes of it.
    pub action: StopAction,
}

/// How a hold ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HoldResolution {
    /// The decision.
    pub decision: HoldDecision,
    /// Who decided.
    pub actor_id: ActorId,
    /// What kind of actor that is.
    pub actor_kind: ActorKind,
    /// The decision's reference.
    pub decision_ref: Id,
    /// What shows that it may end.
    #[serde(deserialize_with = "fields::unique")]
    pub evidence: Vec<EvidenceId>,
    /// The policy, at its exact revision.
    pub policy: Ref,
    /// The rule, where a rule decided (HS-03.9).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional"
    )]
    pub rule: Option<Ref>,
    /// When, UTC milliseconds.
    pub at_ms: U64,
    /// At which revision of its stream.
    pub revision: U64,
}

checked! { Hold }

impl Record for Hold {}

impl Hold {
    fn check(&self) -> Result<(), Error> {
        let runs = self.members.iter();
        if let Some(index) = repeated(runs.map(|member| (&member.mission_id, &member.run_id))) {
            return Err(Error::schema(
                format!("/members/{index}"),
                "expected each run once, found one again",
            ));
        }
        let attempts = self.stop_disposition.iter().map(|said| &said.attempt_id);
        if let Some(index) = repeated(attempts) {
            return Err(Error::schema(
                format!("/stopDisposition/{index}/attemptId"),
                "expected one disposition per attempt, found another one",
            ));
        }
        self.check_resolution()
    }

    /// RECHECK releases and CANCEL cancels, and only a decision that was allowed has ended the hold (HS-03.5).
    fn check_resolution(&self) -> Result<(), Error> {
        let ended_by = match self.state {
            HoldState::Open => None,
            HoldState::Released => Some(HoldDecision::Recheck),
            HoldState::Canceled => Some(HoldDecision::Cancel),
        };
        let decision = self
            .resolution
            .as_ref()
            .map(|resolution| resolution.decision);
        if ended_by.is_some() != decision.is_some() {
            let expected = ended_by.map_or("null", |_| "a resolution");
            return Err(Error::schema(
                "/resolution",
                format!("expected {expected} for a hold that is {}", self.state),
            ));
        }
        let Some(found) = decision else {
            return Ok(());
        };
        if decision != ended_by {
            return Err(Error::schema(
                "/resolution/decision",
                format!(
                    "expected the decision of a hold that is {}, found {found}",
                    self.state
                ),
            ));
        }
        if !self.allowed_decisions.contains(&found) {
            return Err(Error::schema(
                "/resolution/decision",
                format!("expected an allowed decision, found {found}"),
            ));
        }
        Ok(())
    }
}

impl Serialize for NodeSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            NodeSet::All => serializer.serialize_str("ALL"),
            NodeSet::Named(nodes) => nodes.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for NodeSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NodeSet, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match value.as_str() {
            Some("ALL") => Ok(NodeSet::All),
            Some(_) => Err(D::Error::custom(
                "expected \"ALL\" or a list of node ids, found another string",
            )),
            None => {
                let named: Named =
                    crate::canonical::from_value(&value).map_err(crate::de::nested::<D::Error>)?;
                Ok(NodeSet::Named(named.0))
            }
        }
    }
}

#[derive(Deserialize)]
struct Named(#[serde(deserialize_with = "fields::some_unique")] Vec<NodeId>);

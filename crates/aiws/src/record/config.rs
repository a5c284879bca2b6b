//! The hand-off configuration of a run: inputs, mappings, skips, restart, leases.
//! Invariant: immutable once a store or run has it; workers cannot choose what stands here (HS-04.8).
//! Called by the model at activation and wherever a delivery is judged.

use serde::{Deserialize, Serialize};

use super::{
    HoldScopeKind, OutcomeStatus, Record, Ref, StopAction, checked, fields, names, repeated,
};
use crate::decimal::{Dec, DecPlus};
use crate::error::Error;
use crate::id::{Id, NodeId};
use crate::json::Value;

names! {
    /// What a skipped required input means for its consumer (HD-04.5).
    SkipAction {
        /// The consumer is skipped too.
        Propagate = "PROPAGATE",
        /// The consumer fails.
        Fail = "FAIL",
    }
    /// Whether a run whose owner was lost goes on by itself (HS-06.2).
    RestartPolicy {
        /// It does, after every gate was looked at again.
        Auto = "AUTO",
        /// A RESTART hold waits for a human.
        Human = "HUMAN",
        /// A RESTART hold waits for the configured rule, or for a human; none is opened where the rule allows to go on.
        Rule = "RULE",
    }
}

/// The hand-off configuration of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct HandoffConfig {
    /// Inputs that may be skipped (HD-04.3).
    #[serde(deserialize_with = "fields::unique")]
    pub optional_inputs: Vec<OptionalInput>,
    /// What arrives where, and what each consumer accepts (HF-04.7).
    #[serde(deserialize_with = "fields::list")]
    pub mappings: Vec<Mapping>,
    /// What an ANY join may do with the candidates that it does not take (HD-04.7); without a policy it leaves none
    /// of them out.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "fields::list"
    )]
    pub join_policy: Vec<JoinPolicy>,
    /// What a skipped required input means, per consumer.
    #[serde(deserialize_with = "fields::list")]
    pub required_skip: Vec<RequiredSkip>,
    /// Whether a run goes on by itself after its owner was lost.
    pub restart_policy: RestartPolicy,
    /// The rule policy under which holds of the run may be resolved, at the revision that was approved (HS-03.9).
    /// RULE has one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional"
    )]
    pub rule: Option<Ref>,
    /// The longest lease of a claim, in milliseconds (HD-02.7).
    pub lease_ms: DecPlus,
    /// What becomes of work in flight where nothing else is said.
    pub default_stop: StopAction,
    /// How long, in milliseconds, what a boundary announces is retained at least: long enough for a recovery and for the
    /// consumers behind it (HF-04.4). Without it, as long as its producer says.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional"
    )]
    pub recovery_window_ms: Option<DecPlus>,
    /// The largest fan-out of one boundary (HF-01.5).
    pub max_recipients: DecPlus,
    /// The scopes that holds may name, with the resolver that this run trusts (HS-01.6).
    #[serde(deserialize_with = "fields::unique")]
    pub scope_bindings: Vec<ScopeBinding>,
}

/// An input that may be skipped.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OptionalInput {
    /// The consuming node.
    pub node_id: NodeId,
    /// Its input.
    pub input_port: Id,
}

/// What arrives at one input of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mapping {
    /// The consuming node.
    pub node_id: NodeId,
    /// Its input.
    pub input_port: Id,
    /// The producing node.
    pub from_node_id: NodeId,
    /// The outcomes that the consumer accepts; at least one.
    #[serde(deserialize_with = "fields::some_unique")]
    pub accepts: Vec<OutcomeStatus>,
    /// The consumer's schema for the producer's result; any value where absent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional_object"
    )]
    pub schema: Option<Value>,
}

/// What one ANY join may do with the candidates that it does not take.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinPolicy {
    /// The join.
    pub node_id: NodeId,
    /// Whether candidates that are not done may be left out, and open deliveries closed.
    pub exclude_losers: bool,
}

/// What a skipped required input means for one node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequiredSkip {
    /// The consuming node.
    pub node_id: NodeId,
    /// What happens to it.
    pub action: SkipAction,
}

/// A scope that holds may name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScopeBinding {
    /// Which one.
    #[serde(rename = "ref")]
    pub scope_ref: Ref,
    /// What kind of thing.
    pub kind: HoldScopeKind,
    /// The revision of its resolver.
    pub resolver_revision: Dec,
}

checked! { HandoffConfig }

impl Record for HandoffConfig {}

impl HandoffConfig {
    /// One answer per question: no input is mapped twice from the same node, no node has two skip rules, no join
    /// two policies, and RULE has its rule.
    fn check(&self) -> Result<(), Error> {
        let inputs = self
            .mappings
            .iter()
            .map(|mapping| (&mapping.node_id, &mapping.input_port, &mapping.from_node_id));
        if let Some(index) = repeated(inputs) {
            return Err(Error::schema(
                format!("/mappings/{index}"),
                "expected one mapping per input and producer",
            ));
        }
        if let Some(index) = repeated(self.join_policy.iter().map(|policy| &policy.node_id)) {
            return Err(Error::schema(
                format!("/joinPolicy/{index}"),
                "expected one policy per join",
            ));
        }
        if self.restart_policy == RestartPolicy::Rule && self.rule.is_none() {
            return Err(Error::schema(
                "/rule",
                "expected a rule where RULE restarts",
            ));
        }
        if let Some(index) = repeated(self.required_skip.iter().map(|rule| &rule.node_id)) {
            return Err(Error::schema(
                format!("/requiredSkip/{index}"),
                "expected one skip rule per node",
            ));
        }
        Ok(())
    }
}

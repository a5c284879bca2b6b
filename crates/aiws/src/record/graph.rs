//! The graph of a run and its nodes, each with the configuration of its kind.
//! Invariant: a node's `config` is exactly the one of its `kind`; a kind that is not built is refused (T-86).
//! Called by the model when a graph is activated; cycles, dangling names and the like are the model's checks.

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::{Record, fields, names};
use crate::canonical::from_value_at;
use crate::de::nested;
use crate::decimal::{Dec, DecPlus, Ms};
use crate::error::{Error, beginning};
use crate::id::{GraphId, NodeId};
use crate::json::{Object, Value};

names! {
    /// Who or what does a TASK's work (FV-NODE-TASK.1).
    ExecutionKind {
        /// A model-driven agent.
        Agent = "AGENT",
        /// A function of the host.
        Function = "FUNCTION",
        /// A tool.
        Tool = "TOOL",
        /// A person.
        Human = "HUMAN",
    }
    /// How a JOIN waits.
    JoinMode {
        /// For every required predecessor (FV-NODE-JOIN.1).
        All = "ALL",
        /// For one predecessor that is complete (HD-04.6).
        Any = "ANY",
    }
}

/// A graph at one revision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Graph {
    /// The graph's id.
    pub graph_id: GraphId,
    /// The graph's revision.
    pub revision: Dec,
    /// The revision of the plan that it was made from.
    pub plan_revision: Dec,
    /// Its nodes; at least one.
    #[serde(deserialize_with = "fields::some_list")]
    pub nodes: Vec<Node>,
}

/// A node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Unique in the graph.
    pub id: NodeId,
    /// What it is, with its configuration.
    pub kind: NodeKind,
    /// The nodes it waits for, each once.
    pub depends_on: Vec<NodeId>,
    /// Schema of its action payload; any JSON object where absent (FV-GRAPH.8).
    pub input_schema: Option<Value>,
    /// Schema of its result; any JSON object where absent.
    pub output_schema: Option<Value>,
    /// New work of this node is refused once this time is reached.
    pub deadline_ms: Option<Ms>,
}

/// The kinds of nodes, each with its configuration; the wire writes the name as `kind` and the rest as `config`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// Runs one operation.
    Task(TaskConfig),
    /// Chooses one of two branches by a member of its data.
    Decision(DecisionConfig),
    /// Sets off all that depend on it at once.
    Fork,
    /// Waits for its predecessors.
    Join(JoinConfig),
    /// Runs one operation per iteration, until it is done or its bound is reached.
    Loop(LoopConfig),
    /// Waits for a current approval.
    Approval,
    /// Waits for a current passing verification.
    Verification,
    /// Waits for a current acceptance.
    Acceptance,
    /// Ends the graph.
    End,
}

/// Configuration of a TASK.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskConfig {
    /// Who or what does the work.
    pub execution_kind: ExecutionKind,
}

/// Configuration of a DECISION: `then` where the member `field` equals `equals`, otherwise `else`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecisionConfig {
    /// The member of the completion data that is compared.
    #[serde(deserialize_with = "fields::name")]
    pub field: String,
    /// What it is compared with.
    pub equals: Value,
    /// The node that goes on where they are equal.
    pub then: NodeId,
    /// The node that goes on where they differ.
    #[serde(rename = "else")]
    pub otherwise: NodeId,
}

/// Configuration of a JOIN.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinConfig {
    /// How it waits.
    pub mode: JoinMode,
}

/// Configuration of a LOOP.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoopConfig {
    /// The most iterations (FV-NODE-LOOP.1).
    pub max_iterations: DecPlus,
}

impl NodeKind {
    /// The names of the kinds that are built.
    pub const NAMES: &'static [&'static str] = &[
        "TASK",
        "DECISION",
        "FORK",
        "JOIN",
        "LOOP",
        "APPROVAL",
        "VERIFICATION",
        "ACCEPTANCE",
        "END",
    ];

    /// The kind's name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            NodeKind::Task(_) => "TASK",
            NodeKind::Decision(_) => "DECISION",
            NodeKind::Fork => "FORK",
            NodeKind::Join(_) => "JOIN",
            NodeKind::Loop(_) => "LOOP",
            NodeKind::Approval => "APPROVAL",
            NodeKind::Verification => "VERIFICATION",
            NodeKind::Acceptance => "ACCEPTANCE",
            NodeKind::End => "END",
        }
    }

    /// Whether the node carries an operation; all others are control nodes with no operation (HF-03.3).
    pub const fn runs_work(&self) -> bool {
        matches!(self, NodeKind::Task(_) | NodeKind::Loop(_))
    }

    fn config(&self) -> Result<Value, Error> {
        match self {
            NodeKind::Task(config) => crate::canonical::to_value(config),
            NodeKind::Decision(config) => crate::canonical::to_value(config),
            NodeKind::Join(config) => crate::canonical::to_value(config),
            NodeKind::Loop(config) => crate::canonical::to_value(config),
            NodeKind::Fork
            | NodeKind::Approval
            | NodeKind::Verification
            | NodeKind::Acceptance
            | NodeKind::End => Ok(Value::Object(Object::new())),
        }
    }

    fn read(kind: &str, config: &Value) -> Result<NodeKind, Error> {
        let empty = |kind: NodeKind| from_value_at::<Empty>(config, "/config").map(|Empty {}| kind);
        match kind {
            "TASK" => from_value_at(config, "/config").map(NodeKind::Task),
            "DECISION" => from_value_at(config, "/config").map(NodeKind::Decision),
            "FORK" => empty(NodeKind::Fork),
            "JOIN" => from_value_at(config, "/config").map(NodeKind::Join),
            "LOOP" => from_value_at(config, "/config").map(NodeKind::Loop),
            "APPROVAL" => empty(NodeKind::Approval),
            "VERIFICATION" => empty(NodeKind::Verification),
            "ACCEPTANCE" => empty(NodeKind::Acceptance),
            "END" => empty(NodeKind::End),
            other => {
                let known = NodeKind::NAMES.join(", ");
                let found = beginning(other);
                Err(Error::schema(
                    "/kind",
                    format!("expected one of the node kinds {known}, found {found:?}"),
                ))
            }
        }
    }
}

/// The wire form of a node, where `config` can only be read once `kind` is known.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireNode {
    id: NodeId,
    kind: String,
    #[serde(deserialize_with = "fields::unique")]
    depends_on: Vec<NodeId>,
    config: Value,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional_object"
    )]
    input_schema: Option<Value>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional_object"
    )]
    output_schema: Option<Value>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional"
    )]
    deadline_ms: Option<Ms>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WireNode {
            id: self.id.clone(),
            kind: self.kind.name().to_owned(),
            depends_on: self.depends_on.clone(),
            config: self.kind.config().map_err(serde::ser::Error::custom)?,
            input_schema: self.input_schema.clone(),
            output_schema: self.output_schema.clone(),
            deadline_ms: self.deadline_ms,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let wire = WireNode::deserialize(deserializer)?;
        let kind = NodeKind::read(&wire.kind, &wire.config).map_err(nested::<D::Error>)?;
        Ok(Node {
            id: wire.id,
            kind,
            depends_on: wire.depends_on,
            input_schema: wire.input_schema,
            output_schema: wire.output_schema,
            deadline_ms: wire.deadline_ms,
        })
    }
}

impl Record for Graph {}
impl Record for Node {}

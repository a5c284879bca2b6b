//! Fixtures: contracts, configurations, graphs, actions, by the names of the scenarios.
//! Invariant: budget 10, amounts of 3, three attempts, leases of 100 ms, restart policy HUMAN.
//! Used by the world and by every test.

use aiws::decimal::{Dec, DecPlus, Ms, U64};
use aiws::digest::Digest;
use aiws::id::{ActorId, Id, NodeId};
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    Artifact, Contract, DecisionConfig, EffectClass, ExecutionKind, Graph, HandoffConfig,
    JoinConfig, JoinMode, JoinPolicy, Locator, LoopConfig, Mapping, Node, NodeKind, OptionalInput,
    OutcomeStatus, RestartPolicy, StopAction, TaskConfig,
};
use praxis_model::facts::VerifiedMaterial;

use super::World;

/// An id of any kind from its text.
pub fn id<T: From<Id>>(text: &str) -> T {
    T::from(Id::new(text).expect("an id"))
}

/// A decimal.
pub fn dec(number: u64) -> Dec {
    Dec::from_u64(number)
}

/// The usual contract: one root grant of everything that the fixtures do, for the engine.
pub fn contract() -> Contract {
    aiws::canonical::from_value(&object! {
        "edition": "0.4",
        "features": Vec::<Value>::new(),
        "missionId": "mission",
        "contractId": "contract",
        "revision": "1",
        "budget": "10",
        "deadlineMs": "100000",
        "maxAttempts": "3",
        "authority": object! { "rootGrants": vec![grant("root", Value::Null)] },
        "extensions": vec!["aiws-handoff/1"],
    })
    .expect("a contract")
}

/// A grant record's value: actions `do` and `undo`, scope `here`, up to 5, until 90000.
pub fn grant(id: &str, parent: Value) -> Value {
    object! {
        "grantId": id,
        "parentGrantId": parent,
        "subject": "agent:w1",
        "actions": vec!["do", "undo"],
        "scopes": vec!["here"],
        "maxAmount": "5",
        "notAfterMs": "90000",
    }
}

/// The usual configuration.
pub fn config() -> HandoffConfig {
    HandoffConfig {
        optional_inputs: Vec::new(),
        mappings: Vec::new(),
        join_policy: Vec::new(),
        required_skip: Vec::new(),
        restart_policy: RestartPolicy::Human,
        rule: None,
        lease_ms: DecPlus::new(dec(100)).expect("positive"),
        default_stop: StopAction::Drain,
        recovery_window_ms: None,
        max_recipients: DecPlus::new(dec(8)).expect("positive"),
        scope_bindings: Vec::new(),
    }
}

/// A graph of these nodes.
pub fn graph(nodes: Vec<Node>) -> Graph {
    Graph {
        graph_id: id("graph"),
        revision: dec(1),
        plan_revision: dec(1),
        nodes,
    }
}

/// A node of this kind.
pub fn node(name: &str, kind: NodeKind, depends_on: &[&str]) -> Node {
    Node {
        id: id(name),
        kind,
        depends_on: depends_on.iter().map(|name| id(name)).collect(),
        input_schema: None,
        output_schema: None,
        deadline_ms: None,
    }
}

/// A TASK.
pub fn task(name: &str, depends_on: &[&str]) -> Node {
    node(
        name,
        NodeKind::Task(TaskConfig {
            execution_kind: ExecutionKind::Agent,
        }),
        depends_on,
    )
}

/// A FORK.
pub fn fork(name: &str, depends_on: &[&str]) -> Node {
    node(name, NodeKind::Fork, depends_on)
}

/// A LOOP of at most this many iterations.
pub fn looped(name: &str, most: u64, depends_on: &[&str]) -> Node {
    let config = LoopConfig {
        max_iterations: DecPlus::new(dec(most)).expect("positive"),
    };
    node(name, NodeKind::Loop(config), depends_on)
}

/// A JOIN ALL.
pub fn join(name: &str, depends_on: &[&str]) -> Node {
    node(
        name,
        NodeKind::Join(JoinConfig {
            mode: JoinMode::All,
        }),
        depends_on,
    )
}

/// A JOIN ANY.
pub fn join_any(name: &str, depends_on: &[&str]) -> Node {
    node(
        name,
        NodeKind::Join(JoinConfig {
            mode: JoinMode::Any,
        }),
        depends_on,
    )
}

/// The policy that lets an ANY join leave out candidates that are not done.
pub fn excluding(join: &str) -> JoinPolicy {
    JoinPolicy {
        node_id: id(join),
        exclude_losers: true,
    }
}

/// A DECISION on the member `pass`.
pub fn decision(name: &str, depends_on: &[&str], then: &str, otherwise: &str) -> Node {
    let config = DecisionConfig {
        field: "pass".to_owned(),
        equals: true.into(),
        then: id(then),
        otherwise: id(otherwise),
    };
    node(name, NodeKind::Decision(config), depends_on)
}

/// END.
pub fn end(depends_on: &[&str]) -> Node {
    node("end", NodeKind::End, depends_on)
}

/// LIN: a -> b -> end.
pub fn lin() -> Graph {
    graph(vec![task("a", &[]), task("b", &["a"]), end(&["b"])])
}

/// ALL: s (FORK) -> x and y -> j (ALL) -> end.
pub fn all_graph() -> Graph {
    graph(vec![
        fork("s", &[]),
        task("x", &["s"]),
        task("y", &["s"]),
        join("j", &["x", "y"]),
        end(&["j"]),
    ])
}

/// ANY: s (FORK) -> x and y -> j (ANY) -> end.
pub fn any_graph() -> Graph {
    graph(vec![
        fork("s", &[]),
        task("x", &["s"]),
        task("y", &["s"]),
        join_any("j", &["x", "y"]),
        end(&["j"]),
    ])
}

/// ANY, whose join may leave out losers.
pub fn any_world() -> World {
    World::configured(any_graph(), |config| {
        config.join_policy = vec![excluding("j")]
    })
}

/// LOOP3: l (at most three iterations) -> end.
pub fn loop3() -> Graph {
    graph(vec![looped("l", 3, &[]), end(&["l"])])
}

/// DEC: d chooses x, or y -> y2; both into j (ALL) -> end.
pub fn dec_graph() -> Graph {
    graph(vec![
        decision("d", &[], "x", "y"),
        task("x", &["d"]),
        task("y", &["d"]),
        task("y2", &["y"]),
        join("j", &["x", "y2"]),
        end(&["j"]),
    ])
}

/// DEC with both inputs of j optional.
pub fn dec_world() -> World {
    World::configured(dec_graph(), |config| {
        config.optional_inputs = vec![optional("j", "x"), optional("j", "y2")];
    })
}

/// Every gate in a line: approval p, task a behind it, verification v, acceptance c, end.
pub fn gates_graph() -> Graph {
    graph(vec![
        node("p", NodeKind::Approval, &[]),
        task("a", &["p"]),
        node("v", NodeKind::Verification, &["a"]),
        node("c", NodeKind::Acceptance, &["v"]),
        end(&["c"]),
    ])
}

/// An optional input at the producer's own port.
pub fn optional(node: &str, producer: &str) -> OptionalInput {
    OptionalInput {
        node_id: id(node),
        input_port: id(producer),
    }
}

/// A mapping.
pub fn mapping(
    node: &str,
    port: &str,
    from: &str,
    accepts: &[OutcomeStatus],
    schema: Option<Value>,
) -> Mapping {
    Mapping {
        node_id: id(node),
        input_port: id(port),
        from_node_id: id(from),
        accepts: accepts.to_vec(),
        schema,
    }
}

/// The action of an operation.
pub fn action(name: &str, scope: &str, payload: Value) -> Value {
    object! { "action": name, "scope": scope, "payload": payload }
}

/// An action that every fixture's grant covers, different for every subject.
pub fn action_of(subject: &str) -> Value {
    action("do", "here", object! { "what": subject })
}

/// The fingerprint of an action.
pub fn fingerprint(action: &Value) -> Digest {
    aiws::canonical::digest_of(action).expect("an action has canonical bytes")
}

/// An admission that the host prepared for a node: operation `op-NODE`, attempt `at-NODE-1`, amount 3.
pub fn proposal(node: &str) -> aiws::record::AdmissionProposal {
    let action = action_of(node);
    aiws::record::AdmissionProposal {
        operation_id: id(&format!("op-{node}")),
        attempt_id: id(&format!("at-{node}-1")),
        fingerprint: fingerprint(&action),
        action,
        effect: EffectClass::External,
        grant_id: id("root"),
        approval_id: None,
        amount: dec(3),
    }
}

/// An artifact of this content, retained until 50000.
pub fn artifact(content: &str) -> Artifact {
    let digest = aiws::digest::sha256(content.as_bytes());
    Artifact {
        locator: Locator {
            store: id("files"),
            key: id(&digest.to_string()),
            version: id("1"),
        },
        digest,
        size_bytes: dec(content.len() as u64),
        media_type: "text/plain".to_owned(),
        schema_digest: None,
        retention_owner: ActorId::new("human:op").expect("an actor"),
        retain_until_ms: Ms::from_u64(50_000),
    }
}

impl World {
    /// Puts an artifact's bytes where the host can verify them.
    pub fn store(&mut self, artifact: &Artifact) {
        let size = artifact.size_bytes.to_u64().expect("a small size");
        self.materials.insert(
            artifact.digest,
            VerifiedMaterial {
                size_bytes: U64(size),
            },
        );
    }

    /// The node's id.
    pub fn node_id(name: &str) -> NodeId {
        id(name)
    }
}

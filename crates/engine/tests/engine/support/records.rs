//! Records by the names of the scenarios: contract, configuration, graph, effects.
//! Invariant: budget 10, amounts of 3, three attempts, leases of 100 ms.
//! Used by the world and by every test.

use aiws::decimal::{Dec, DecPlus};
use aiws::id::{Id, MissionId, NodeId};
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    AdmissionProposal, Contract, EffectClass, ExecutionKind, Graph, HandoffConfig, Node, NodeKind,
    RestartPolicy, StopAction, TaskConfig,
};
use praxis_engine::{Conclusion, Draft};
use praxis_model::command::BoundaryIntent;

/// The boundary of a node that went well.
pub fn boundary_of(node: &Node) -> BoundaryIntent {
    match Conclusion::completed(node) {
        Conclusion::Boundary(boundary) => boundary,
        other => panic!("a boundary, not {other:?}"),
    }
}

/// The action of a node's operation.
pub fn action_of(node: &NodeId) -> Value {
    object! { "action": "do", "scope": "here", "payload": object! { "what": node } }
}

/// The effect admission of a node, amount 3, under a reference of the node's name.
pub fn draft_of(node: &str) -> Draft {
    let action = action_of(&id(node));
    Draft {
        admission_ref: id(&format!("admission-{node}")),
        proposal: AdmissionProposal {
            operation_id: id(&format!("op-{node}")),
            attempt_id: id(&format!("at-{node}-1")),
            fingerprint: aiws::canonical::digest_of(&action).expect("canonical"),
            action,
            effect: EffectClass::External,
            grant_id: id("root"),
            approval_id: None,
            amount: dec(3),
        },
    }
}

/// Budget 10, three attempts, one root grant; with or without a rule for lost reads.
pub fn contract(lost_reads: bool) -> Contract {
    let mut value = object! {
        "edition": "0.4",
        "features": Vec::<Value>::new(),
        "missionId": "mission",
        "contractId": "contract",
        "revision": "1",
        "budget": "10",
        "deadlineMs": "100000",
        "maxAttempts": "3",
        "authority": object! { "rootGrants": vec![object! {
            "grantId": "root",
            "parentGrantId": Value::Null,
            "subject": "agent:w1",
            "actions": vec!["do"],
            "scopes": vec!["here"],
            "maxAmount": "5",
            "notAfterMs": "90000",
        }] },
        "extensions": vec!["aiws-handoff/1"],
    };
    if lost_reads && let Value::Object(members) = &mut value {
        let rule = object! {
            "rule": object! { "id": "lost-reads", "revision": "1" },
            "approvedBy": "human:op",
            "decisionRef": "decision-lost-reads",
        };
        members.insert("lostReads".to_owned(), rule);
    }
    aiws::canonical::from_value(&value).expect("a contract")
}

/// Leases of 100 ms under this restart policy.
pub fn config(restart_policy: RestartPolicy) -> HandoffConfig {
    HandoffConfig {
        optional_inputs: Vec::new(),
        mappings: Vec::new(),
        join_policy: Vec::new(),
        required_skip: Vec::new(),
        restart_policy,
        rule: None,
        lease_ms: DecPlus::new(dec(100)).expect("positive"),
        default_stop: StopAction::Drain,
        recovery_window_ms: None,
        max_recipients: DecPlus::new(dec(8)).expect("positive"),
        scope_bindings: Vec::new(),
    }
}

/// LIN: a -> b -> end.
pub fn lin() -> Graph {
    let node = |name: &str, kind, depends_on: &[&str]| Node {
        id: id(name),
        kind,
        depends_on: depends_on.iter().map(|name| id(name)).collect(),
        input_schema: None,
        output_schema: None,
        deadline_ms: None,
    };
    let task = || {
        NodeKind::Task(TaskConfig {
            execution_kind: ExecutionKind::Agent,
        })
    };
    let nodes = vec![
        node("a", task(), &[]),
        node("b", task(), &["a"]),
        node("end", NodeKind::End, &["b"]),
    ];
    Graph {
        graph_id: id("graph"),
        revision: dec(1),
        plan_revision: dec(1),
        nodes,
    }
}

/// An id of any kind from its text.
pub fn id<T: From<Id>>(text: &str) -> T {
    T::from(Id::new(text).expect("an id"))
}

/// A decimal.
pub fn dec(number: u64) -> Dec {
    Dec::from_u64(number)
}

/// The one mission.
pub fn mission() -> MissionId {
    id("mission")
}

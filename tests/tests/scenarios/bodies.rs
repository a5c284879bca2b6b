//! Bodies of commands as JSON, made by hand from what a client can see of a run.
//! Invariant: nothing of the engine's own drafting is used, so that both must agree on what a body is.
//! The cases call these; the world wraps them into requests.

use aiws::id::{DeliveryId, NodeId};
use praxis_model::run::{NodeStatus, RunState};
use serde_json::{Value as Json, json};

use crate::world::MISSION;

/// LIN: a, then b, then end.
pub fn lin() -> Json {
    graph(vec![task("a", &[]), task("b", &["a"]), end(&["b"])])
}

/// ALL without its fork: two tasks into a join.
pub fn all() -> Json {
    graph(vec![
        task("x", &[]),
        task("y", &[]),
        join("j", &["x", "y"]),
        end(&["j"]),
    ])
}

/// ALL: s (FORK), then x and y, then j; and what follows j.
pub fn forked(after_join: Vec<Json>) -> Json {
    let fork = json!({"id": "s", "kind": "FORK", "dependsOn": [], "config": {}});
    let branches = [task("x", &["s"]), task("y", &["s"]), join("j", &["x", "y"])];
    graph(
        [fork]
            .into_iter()
            .chain(branches)
            .chain(after_join)
            .collect(),
    )
}

/// A run that can be everywhere at once: a with two consumers, and the further roots c, e and f.
pub fn wide() -> Json {
    let roots = [
        task("a", &[]),
        task("c", &[]),
        task("e", &[]),
        task("f", &[]),
    ];
    let rest = [
        task("b", &["a"]),
        task("b2", &["a"]),
        end(&["b", "b2", "c", "e", "f"]),
    ];
    graph(roots.into_iter().chain(rest).collect())
}

/// An APPROVAL before two tasks of the same kind.
pub fn guarded() -> Json {
    let approval = json!({"id": "p", "kind": "APPROVAL", "dependsOn": [], "config": {}});
    graph(vec![
        approval,
        task("a", &["p"]),
        task("b", &["p"]),
        end(&["a", "b"]),
    ])
}

/// DEC: d chooses x, or y and then y2; both into j, then end.
pub fn choice() -> Json {
    let config = json!({"field": "pass", "equals": true, "then": "x", "else": "y"});
    let decision = json!({"id": "d", "kind": "DECISION", "dependsOn": [], "config": config});
    let tasks = [task("x", &["d"]), task("y", &["d"]), task("y2", &["y"])];
    graph(
        [decision]
            .into_iter()
            .chain(tasks)
            .chain([join("j", &["x", "y2"]), end(&["j"])])
            .collect(),
    )
}

/// A graph of these nodes.
pub fn graph(nodes: Vec<Json>) -> Json {
    json!({"graphId": "graph", "revision": "1", "planRevision": "1", "nodes": nodes})
}

/// A TASK of an agent.
pub fn task(id: &str, depends_on: &[&str]) -> Json {
    json!({"id": id, "kind": "TASK", "dependsOn": depends_on, "config": {"executionKind": "AGENT"}})
}

fn join(id: &str, depends_on: &[&str]) -> Json {
    json!({"id": id, "kind": "JOIN", "dependsOn": depends_on, "config": {"mode": "ALL"}})
}

/// END.
pub fn end(depends_on: &[&str]) -> Json {
    json!({"id": "end", "kind": "END", "dependsOn": depends_on, "config": {}})
}

/// The contract: budget 10, three attempts, one root grant of `agent:w1`.
pub fn contract() -> Json {
    let grant = json!({
        "grantId": "root", "parentGrantId": null, "subject": "agent:w1", "actions": ["do"], "scopes": ["here"],
        "maxAmount": "5", "notAfterMs": "900000",
    });
    json!({
        "edition": "0.4", "features": [], "missionId": MISSION, "contractId": "contract", "revision": "1",
        "budget": "10", "deadlineMs": "1000000", "maxAttempts": "3", "authority": {"rootGrants": [grant]},
        "extensions": ["aiws-handoff/1"],
    })
}

/// The configuration: leases of 100 ms, restart policy HUMAN.
pub fn config() -> Json {
    json!({
        "optionalInputs": [], "mappings": [], "requiredSkip": [], "restartPolicy": "HUMAN", "leaseMs": "100",
        "defaultStop": "DRAIN", "maxRecipients": "8", "scopeBindings": [],
    })
}

/// The action of a node's operation.
pub fn action(what: &str) -> Json {
    json!({"action": "do", "scope": "here", "payload": {"what": what}})
}

/// An effect admission of an action: amount 3, under the root grant.
pub fn proposal(operation: &str, attempt: &str, action: &Json, approval: Option<&str>) -> Json {
    json!({
        "operationId": operation, "attemptId": attempt, "action": action, "fingerprint": fingerprint(action),
        "effect": "EXTERNAL", "grantId": "root", "approvalId": approval, "amount": "3",
    })
}

/// The fingerprint of an action.
pub fn fingerprint(action: &Json) -> String {
    let bytes = serde_json::to_vec(action).unwrap();
    let value = aiws::strict::parse(&bytes).unwrap();
    aiws::canonical::digest_of(&value).unwrap().to_string()
}

/// Any record as JSON.
pub fn json_of(record: &impl serde::Serialize) -> Json {
    serde_json::to_value(record).unwrap()
}

fn run(state: &RunState) -> &str {
    state.subject.run_id.as_ref().unwrap().as_str()
}

fn activation<'a>(state: &'a RunState, node: &str) -> &'a str {
    state
        .nodes
        .get(&NodeId::new(node).unwrap())
        .expect("a node of the graph")
        .activation_id
        .as_str()
}

/// activateGraph.
pub fn activate(state: &RunState, graph: Json) -> Json {
    json!({"type": "activateGraph", "runId": run(state), "ownerEpoch": state.epoch.to_string(), "graph": graph})
}

/// admitConsumer with all acknowledged inputs of the node; `operation` with its admission for a task.
pub fn admit(state: &RunState, node: &str, operation: Option<(&str, &str)>) -> Json {
    let own = activation(state, node);
    let records = state.deliveries.values().map(|delivery| &delivery.record);
    let received: Vec<_> = records
        .filter(|record| {
            record.acknowledgement.is_some() && record.recipient.activation_id.as_str() == own
        })
        .collect();
    let inputs: Vec<Json> = received
        .iter()
        .map(|record| json!({"deliveryId": record.delivery_id, "handoff": record.handoff}))
        .collect();
    let selected: Vec<Json> = received
        .iter()
        .map(|record| json!(record.delivery_id))
        .collect();
    json!({"type": "admitConsumer", "consumption": {
        "missionId": MISSION, "runId": run(state), "nodeId": node, "activationId": own,
        "operationId": operation.map(|(operation, _)| operation), "admissionRef": operation.map(|(_, key)| key),
        "inputs": inputs, "ownerEpoch": state.epoch.to_string(),
        "revision": (state.head.revision.get() + 1).to_string(),
        "join": {"mode": "ALL", "selected": selected, "excluded": [], "unselectedAcknowledged": []},
        "state": "VALID", "entitlement": if operation.is_some() { "OPERATION" } else { "CONTROL" },
    }})
}

/// dispatch of a node's attempt.
pub fn dispatch(state: &RunState, node: &str, operation: &str, attempt: &str) -> Json {
    json!({
        "type": "dispatch", "runId": run(state), "ownerEpoch": state.epoch.to_string(), "nodeId": node,
        "operationId": operation, "attemptId": attempt, "policy": {"id": "policy", "revision": "1"},
    })
}

/// settle or reconcile of an attempt; unknown outcomes have no evidence.
pub fn settle(state: &RunState, kind: &str, attempt: &str, outcome: &str, actual: u64) -> Json {
    let evidence = if outcome == "UNKNOWN" {
        json!([])
    } else {
        json!(["evidence"])
    };
    json!({
        "type": kind, "runId": run(state), "attemptId": attempt, "outcome": outcome, "actual": actual.to_string(),
        "evidence": evidence,
    })
}

/// A boundary of a node.
pub struct Boundary {
    /// COMPLETED, FAILED.
    pub status: &'static str,
    /// The result.
    pub result: Json,
    /// Artifact records.
    pub artifacts: Vec<Json>,
    /// Approvals by id.
    pub approvals: Vec<&'static str>,
}

impl Boundary {
    /// COMPLETED with this result.
    pub fn completed(result: Json) -> Boundary {
        Boundary {
            status: "COMPLETED",
            result,
            artifacts: Vec::new(),
            approvals: Vec::new(),
        }
    }

    /// commitBoundary of the node's current activation.
    pub fn of(&self, state: &RunState, node: &str) -> Json {
        let cause =
            (self.status == "FAILED").then(|| json!({"code": "BROKEN", "detail": "it broke"}));
        let mut outcome =
            json!({"status": self.status, "criteria": [], "outstanding": outstanding(state, node)});
        if let Some(cause) = cause {
            outcome["cause"] = cause;
        }
        let approvals: Vec<Json> = self
            .approvals
            .iter()
            .map(|id| json!({"id": id, "revision": "1"}))
            .collect();
        let recipients = if self.status == "COMPLETED" {
            recipients(state, node)
        } else {
            json!([])
        };
        let zero = json!({"revision": "0", "spent": "0", "reserved": "0", "attempts": "0"});
        let checks = json!(["AUTHORITY", "MATERIAL", "LIMITS", "OWNERSHIP", "HOLDS"]);
        json!({"type": "commitBoundary", "hold": null, "skipped": [], "manifest": {
            "protocol": "aiws-handoff/1", "handoffId": format!("h-{}-{node}", run(state)),
            "producer": producer(state, node),
            "basis": {"revision": state.head.revision, "eventHash": state.head.hash},
            "outcome": outcome, "inputs": inputs(state, node), "recipients": recipients,
            "artifacts": self.artifacts, "result": self.result,
            "controls": {"policy": {"id": "policy", "revision": "1"}, "approvals": approvals, "accounting": zero},
            "context": {"intent": "", "decisions": [], "assumptions": [], "limitations": []},
            "resume": {"eligibleNodeIds": [], "blockers": [], "requiredChecks": checks},
        }})
    }
}

fn producer(state: &RunState, node: &str) -> Json {
    let own = activation(state, node);
    let mine = state.operations.values().filter(|operation| {
        operation
            .activation_id
            .as_ref()
            .is_some_and(|activation| activation.as_str() == own)
    });
    let operations: Vec<Json> = mine
        .map(|operation| json!({"operationId": operation.operation_id, "attemptIds": operation.attempts}))
        .collect();
    json!({
        "missionId": MISSION, "runId": run(state), "graph": {"id": "graph", "revision": "1"}, "planRevision": "1",
        "nodeId": node, "activationId": own, "checkpointId": format!("k-{}-{node}", run(state)),
        "operations": operations,
    })
}

fn outstanding(state: &RunState, node: &str) -> Json {
    let of_node = |operation: &aiws::record::Operation| {
        operation
            .node_id
            .as_ref()
            .is_some_and(|id| id.as_str() == node)
    };
    let mine = state
        .operations
        .values()
        .filter(|operation| of_node(operation));
    let attempts = mine
        .flat_map(|operation| &operation.attempts)
        .filter_map(|id| state.attempts.get(id));
    let open = attempts.filter(|attempt| !attempt.status.is_confirmed());
    let listed = |attempt: &aiws::record::Attempt| json!({"operationId": attempt.operation_id, "attemptId": attempt.attempt_id, "status": attempt.status});
    Json::Array(open.map(listed).collect())
}

fn inputs(state: &RunState, node: &str) -> Json {
    let own = activation(state, node);
    let bound = state.consumptions.iter().find(|(id, _)| id.as_str() == own);
    bound.map_or(json!([]), |(_, consumption)| json_of(&consumption.inputs))
}

fn recipients(state: &RunState, node: &str) -> Json {
    let graph = state.graph.as_ref().expect("a graph");
    let next = graph
        .nodes
        .iter()
        .filter(|next| next.depends_on.iter().any(|id| id.as_str() == node));
    let waits = next.filter_map(|next| {
        let own = state.nodes.get(&next.id).filter(|own| own.status == NodeStatus::Pending)?;
        let delivery = format!("d-{}-{node}-{}", run(state), next.id);
        Some(json!({
            "deliveryId": delivery, "nodeId": next.id, "activationId": own.activation_id, "inputPort": node,
        }))
    });
    Json::Array(waits.collect())
}

/// claimDelivery.
pub fn claim(delivery: &str) -> Json {
    json!({"type": "claimDelivery", "deliveryId": delivery})
}

/// acknowledgeDelivery with this token and generation.
pub fn ack(state: &RunState, delivery: &str, token: &str, generation: u64) -> Json {
    let record = &state
        .deliveries
        .get(&DeliveryId::new(delivery).unwrap())
        .expect("a delivery")
        .record;
    json!({
        "type": "acknowledgeDelivery", "deliveryId": delivery, "handoff": record.handoff, "claimToken": token,
        "generation": generation.to_string(),
    })
}

/// releaseDelivery with this token and generation.
pub fn release(delivery: &str, token: &str, generation: u64) -> Json {
    json!({
        "type": "releaseDelivery", "deliveryId": delivery, "claimToken": token, "generation": generation.to_string(),
    })
}

/// approve an action, until a time.
pub fn approve(state: &RunState, id: &str, action: &Json, expires_at_ms: u64) -> Json {
    json!({
        "type": "approve", "approvalId": id, "runId": run(state), "fingerprint": fingerprint(action),
        "decision": "APPROVED", "expiresAtMs": expires_at_ms.to_string(),
    })
}

/// verify or accept, with a verdict.
pub fn assess(state: &RunState, kind: &str, id: &str, verdict: &str) -> Json {
    json!({
        "type": kind, "assessmentId": id, "runId": run(state), "subject": "result", "verdict": verdict,
        "evidence": ["evidence"],
    })
}

/// cancelRun or finishCancelRun.
pub fn cancel(state: &RunState, kind: &str) -> Json {
    json!({"type": kind, "runId": run(state), "reason": "no longer wanted", "decisionRef": "decision-1"})
}

/// completeRun.
pub fn complete(state: &RunState) -> Json {
    json!({"type": "completeRun", "runId": run(state), "ownerEpoch": state.epoch.to_string()})
}

/// placeHold over the run with a reason and the decisions that may end it.
pub fn hold(state: &RunState, id: &str, reason: &str, allowed: &[&str]) -> Json {
    let scope =
        json!({"kind": "RUN", "ref": {"id": run(state), "revision": "1"}, "resolverRevision": "1"});
    json!({"type": "placeHold", "hold": {
        "holdId": id, "scope": scope, "reason": reason, "owner": "human:op", "blockers": [],
        "allowedDecisions": allowed,
    }})
}

/// resolveHold with a decision and evidence.
pub fn resolve(id: &str, decision: &str, evidence: &[&str]) -> Json {
    json!({
        "type": "resolveHold", "holdId": id, "decision": decision, "decisionRef": "decision-1", "evidence": evidence,
    })
}

/// invalidateHandoff of what a node handed over.
pub fn invalidate(state: &RunState, node: &str) -> Json {
    json!({
        "type": "invalidateHandoff", "handoff": handoff(state, node), "reason": "it is wrong",
        "evidence": ["evidence"],
    })
}

/// The exact hand-off of a node.
pub fn handoff(state: &RunState, node: &str) -> Json {
    let mut all = state.manifests.values();
    let committed = all.find(|committed| committed.manifest.producer.node_id.as_str() == node);
    let committed = committed.expect("a manifest");
    json!({
        "handoffId": committed.manifest.handoff_id.as_str(), "digest": committed.digest.to_string(),
    })
}

/// recordSummary about what a node handed over: a model's words where an operation is named, else an author's of a kind.
pub fn summary(
    state: &RunState,
    node: &str,
    author: (&str, &str, Option<&str>),
    text: &str,
) -> Json {
    let (kind, actor, operation) = author;
    json!({"type": "recordSummary", "summary": {
        "summaryId": format!("summary-of-{node}"), "handoff": handoff(state, node),
        "author": {"kind": kind, "actorId": actor, "operationId": operation}, "text": text,
    }})
}

/// recoverOwnership from an epoch.
pub fn recover(expected_epoch: u64, decision: Option<&str>) -> Json {
    json!({
        "type": "recoverOwnership", "expectedEpoch": expected_epoch.to_string(), "reason": "the owner is gone",
        "decisionRef": decision,
    })
}

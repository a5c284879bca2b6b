//! Choices: what a DECISION leaves out is skipped on the record, and whoever waits for it learns it.
//! Invariant: a skipped node has its manifest in the deciding event; a missing input is never taken for a skipped one.
//! Case F-04 and the variants of X-04.

use aiws::error::Code;
use aiws::id::{DeliveryId, NodeId};
use aiws::record::{DeliveryState, Lifecycle, OutcomeStatus};
use praxis_engine::IntentRequest;
use praxis_model::command::{AdmitIntent, BoundaryIntent, Intent};
use praxis_model::run::{NodeStatus, RunState};
use serde_json::{Value as Json, json};

use crate::bodies::{self, choice};
use crate::kinds::pass;
use crate::wire::{id, request_id};
use crate::world::{HUMAN, MISSION, W1, World, both, configured};

/// Sends an intent, and again in a world that loses replies.
pub async fn intend(w: &World, actor: &str, name: &str, intent: Intent) {
    let (mission_id, run_id) = (id(MISSION), id(&w.run));
    let request = IntentRequest {
        mission_id,
        run_id,
        request_id: request_id(name),
        intent,
    };
    let first = w
        .engine()
        .submit(&w.capability(actor), &request)
        .await
        .expect(name);
    if w.lost {
        let again = w
            .engine()
            .submit(&w.capability(actor), &request)
            .await
            .expect(name);
        assert!(again.event.is_none());
        assert_eq!(
            (again.revision, again.result),
            (first.revision, first.result)
        );
    }
}

/// Admits the decision and commits it with this answer.
async fn choose(w: &World, pass: bool) {
    let node_id: NodeId = id("d");
    let admit = AdmitIntent {
        node_id: node_id.clone(),
        admission_ref: None,
    };
    intend(w, W1, "choice-admit", Intent::Admit(admit)).await;
    let chosen = BoundaryIntent {
        node_id,
        status: OutcomeStatus::Completed,
        result: aiws::object! { "pass": pass },
        artifacts: Vec::new(),
        criteria: Vec::new(),
        approvals: Vec::new(),
        context: Default::default(),
        cause: None,
        hold: None,
    };
    intend(w, W1, "choice-commit", Intent::Boundary(chosen)).await;
}

async fn only_delivery(w: &World, node: &str) -> String {
    let state = w.state().await;
    let mine: Vec<_> = state
        .deliveries
        .values()
        .filter(|delivery| delivery.record.recipient.node_id.as_str() == node)
        .collect();
    assert_eq!(mine.len(), 1);
    mine[0].record.delivery_id.as_str().to_owned()
}

/// Proves F-04, X-04, HD-04.5, HF-05.7: only one branch is taken and the join needs both; the skip goes through to the
/// end, and the run does not complete.
#[tokio::test]
async fn f_04_x_04_one_branch_of_a_join_of_two() {
    both(choice(), async |w: &mut World| {
        let node = |name: &str| id::<NodeId>(name);
        choose(w, true).await;
        let state = w.state().await;
        for name in ["y", "y2"] {
            let mut all = state.manifests.values();
            let skip = all.find(|one| one.manifest.producer.node_id == node(name));
            let skip = skip.expect("a manifest of what was skipped");
            assert_eq!(skip.manifest.outcome.status, OutcomeStatus::Skipped);
            assert_eq!(
                skip.revision,
                state.head.revision.get(),
                "{name}, in the deciding event"
            );
        }
        w.receive(W1, only_delivery(w, "x").await.as_str()).await;
        w.work("x").await;
        let state = w.state().await;
        for (name, status) in [
            ("x", NodeStatus::Completed),
            ("y", NodeStatus::Skipped),
            ("y2", NodeStatus::Skipped),
            ("j", NodeStatus::Skipped),
            ("end", NodeStatus::Skipped),
        ] {
            assert_eq!(
                state.nodes.get(&node(name)).unwrap().status,
                status,
                "{name}"
            );
            let mut told = state
                .manifests
                .values()
                .map(|committed| &committed.manifest.producer.node_id);
            assert!(
                told.any(|producer| *producer == node(name)),
                "{name} has a manifest"
            );
        }
        for (kind, actor, name, verdict) in [
            ("verify", W1, "v-1", "PASS"),
            ("accept", HUMAN, "c-1", "ACCEPTED"),
        ] {
            let body = bodies::assess(&*w.state().await, kind, name, verdict);
            w.send(actor, body).await;
        }
        let complete = bodies::complete(&*w.state().await);
        w.refuse(W1, complete, Code::NodeNotReady).await;
        assert_eq!(w.state().await.lifecycle, Lifecycle::Running);
    })
    .await;
}

fn status(state: &RunState, node: &str) -> NodeStatus {
    state.nodes.get(&id::<NodeId>(node)).expect("a node").status
}

/// Proves X-04, HD-04.3, HD-04.4: the join takes the skipped branch as an explicit input where it may be skipped, and not
/// without it.
#[tokio::test]
async fn x_04_an_optional_input_is_skipped_on_the_record() {
    let mut config = bodies::config();
    config["optionalInputs"] =
        json!([{"nodeId": "j", "inputPort": "x"}, {"nodeId": "j", "inputPort": "y2"}]);
    configured(choice(), config, async |w: &mut World| {
        choose(w, true).await;
        let (to_x, skipped) = (only_delivery(w, "x").await, only_delivery(w, "j").await);
        w.receive(W1, &to_x).await;
        w.work("x").await;
        let told = w.delivery("x", "j");
        w.receive(W1, &told).await;
        let without = bodies::admit(&*w.state().await, "j", None);
        w.refuse(W1, without, Code::NodeNotReady).await;
        w.receive(W1, &skipped).await;
        let with = bodies::admit(&*w.state().await, "j", None);
        w.send(W1, with).await;
        let state = w.state().await;
        let bound = state
            .consumptions
            .values()
            .find(|bound| bound.node_id.as_str() == "j")
            .unwrap();
        let statuses = bound.inputs.iter().map(|input| {
            state
                .manifests
                .get(&input.handoff.handoff_id)
                .unwrap()
                .manifest
                .outcome
                .status
        });
        let statuses: Vec<_> = statuses.collect();
        assert_eq!(statuses, [OutcomeStatus::Completed, OutcomeStatus::Skipped]);
    })
    .await;
}

/// Proves X-04, HD-04.5: where the graph's rule is FAIL, a required input that is skipped fails the run, with its cause.
#[tokio::test]
async fn x_04_a_required_input_that_is_skipped_fails_the_run() {
    let mut config = bodies::config();
    config["requiredSkip"] = json!([{"nodeId": "j", "action": "FAIL"}]);
    configured(choice(), config, async |w: &mut World| {
        choose(w, true).await;
        let state = w.state().await;
        assert_eq!(
            (state.lifecycle, status(&state, "j")),
            (Lifecycle::Failed, NodeStatus::Failed)
        );
        assert_eq!(
            state.cause.as_ref().map(|cause| cause.code.as_str()),
            Some("REQUIRED_INPUT_SKIPPED")
        );
        let claim = bodies::claim(&only_delivery(w, "x").await);
        w.refuse(W1, claim, Code::TerminalExecution).await;
    })
    .await;
}

/// A graph in which the second branch has another predecessor, p.
fn with_predecessor() -> Json {
    let mut graph = choice();
    let nodes = graph["nodes"].as_array_mut().unwrap();
    nodes.push(
        json!({"id": "p", "kind": "TASK", "dependsOn": [], "config": {"executionKind": "AGENT"}}),
    );
    for node in nodes {
        if node["id"] == "y" {
            node["dependsOn"] = json!(["d", "p"]);
        }
    }
    graph
}

/// DEC with an assessment on the branch that is not taken: d chooses x, or y and then the VERIFICATION v.
fn with_criterion() -> Json {
    let mut graph = choice();
    for node in graph["nodes"].as_array_mut().unwrap() {
        if node["id"] == "y2" {
            *node = json!({"id": "v", "kind": "VERIFICATION", "dependsOn": ["y"], "config": {}});
        }
        if node["id"] == "j" {
            node["dependsOn"] = json!(["x", "v"]);
        }
    }
    graph
}

/// Proves X-04, HF-03.7: what is required stands on the branch that is skipped; every node is done, and the run does not
/// complete without it.
#[tokio::test]
async fn x_04_a_required_criterion_of_a_skipped_branch_blocks_completion() {
    let mut config = bodies::config();
    config["optionalInputs"] =
        json!([{"nodeId": "j", "inputPort": "x"}, {"nodeId": "j", "inputPort": "v"}]);
    configured(with_criterion(), config, async |w: &mut World| {
        choose(w, true).await;
        let (to_x, skipped) = (only_delivery(w, "x").await, only_delivery(w, "j").await);
        w.receive(W1, &to_x).await;
        w.work("x").await;
        let told = w.delivery("x", "j");
        w.receive(W1, &told).await;
        w.receive(W1, &skipped).await;
        pass(w, "j", json!({})).await;
        let last = w.delivery("j", "end");
        w.receive(W1, &last).await;
        pass(w, "end", json!({"disposition": "COMPLETED"})).await;
        for (kind, actor, name, verdict) in [
            ("verify", W1, "v-1", "PASS"),
            ("accept", HUMAN, "c-1", "ACCEPTED"),
        ] {
            let body = bodies::assess(&*w.state().await, kind, name, verdict);
            w.send(actor, body).await;
        }
        let complete = bodies::complete(&*w.state().await);
        let error = w.refuse(W1, complete, Code::EvidenceInvalid).await;
        let requirement = error.details.get("requirement");
        assert_eq!(requirement.and_then(|id| id.as_str()), Some("HF-03.7"));
        assert_eq!(w.state().await.lifecycle, Lifecycle::Running);
    })
    .await;
}

/// Proves X-04, HD-01.T4, T-75: a delivery that another node made to the branch that is skipped now is EXCLUDED in the
/// deciding event, pending or claimed.
#[tokio::test]
async fn x_04_a_delivery_to_the_skipped_branch_is_excluded() {
    for claimed in [false, true] {
        both(with_predecessor(), async |w: &mut World| {
            w.work("p").await;
            let made = w.delivery("p", "y");
            let token = if claimed {
                Some(w.claim(W1, &made).await)
            } else {
                None
            };
            choose(w, true).await;
            let state = w.state().await;
            assert_eq!(status(&state, "y"), NodeStatus::Skipped);
            let left = state.deliveries.get(&id::<DeliveryId>(&made)).unwrap();
            assert_eq!(left.record.state, DeliveryState::Excluded);
            assert_eq!(left.record.revision, state.head.revision);
            assert_eq!(left.ended_claims.len(), usize::from(claimed));
            w.refuse(W1, bodies::claim(&made), Code::DeliveryState)
                .await;
            if let Some(token) = token {
                let late = w.ack_of(&made, &token).await;
                w.refuse(W1, late, Code::DeliveryState).await;
            }
        })
        .await;
    }
}

//! JOIN ANY and LOOP on the wire and in the store: what a choice closes, and what a bound that is reached leaves.
//! Invariant: as in all cases, every request is sent twice in one of the two worlds, and the store is verified at the end.
//! Case E-15, and the store's side of what the model's own cases show.

use aiws::error::Code;
use aiws::id::{DeliveryId, NodeId};
use aiws::record::{DeliveryState, HoldReason, HoldState, JoinMode, Lifecycle, OutcomeStatus};
use praxis_model::command::{BoundaryIntent, Intent};
use praxis_model::run::{NodeStatus, RunState};
use serde_json::{Value as Json, json};

use crate::bodies;
use crate::choices::intend;
use crate::wire::id;
use crate::world::{HUMAN, W1, World, both, configured};

fn node(id: &str, kind: &str, depends_on: &[&str], config: Json) -> Json {
    json!({"id": id, "kind": kind, "dependsOn": depends_on, "config": config})
}

fn task(id: &str, depends_on: &[&str]) -> Json {
    node(id, "TASK", depends_on, json!({"executionKind": "AGENT"}))
}

/// ANY: s (FORK), then x and y, then j (ANY), then end.
pub fn any() -> Json {
    bodies::graph(vec![
        node("s", "FORK", &[], json!({})),
        task("x", &["s"]),
        task("y", &["s"]),
        node("j", "JOIN", &["x", "y"], json!({"mode": "ANY"})),
        node("end", "END", &["j"], json!({})),
    ])
}

/// The usual configuration, under which j may leave out losers.
pub fn excluding() -> Json {
    let mut config = bodies::config();
    config["joinPolicy"] = json!([{"nodeId": "j", "excludeLosers": true}]);
    config
}

/// Admits a control node and completes it with this result.
pub async fn pass(w: &mut World, node: &str, result: Json) {
    let admit = bodies::admit(&*w.state().await, node, None);
    w.send(W1, admit).await;
    w.commit(node, &bodies::Boundary::completed(result)).await;
}

/// The delivery from one node to another, whoever named it.
pub async fn between(w: &World, from: &str, to: &str) -> String {
    let state = w.state().await;
    let mut mine = state.deliveries.values().filter(|delivery| {
        let record = &delivery.record;
        let committed = state.manifests.get(&record.handoff.handoff_id).unwrap();
        committed.manifest.producer.node_id.as_str() == from
            && record.recipient.node_id.as_str() == to
    });
    let found = mine.next().expect("a delivery");
    found.record.delivery_id.as_str().to_owned()
}

/// The admission of j with one delivery alone.
pub async fn taking(w: &World, delivery: &str) -> Json {
    let mut body = bodies::admit(&*w.state().await, "j", None);
    let inputs = body["consumption"]["inputs"].as_array_mut().unwrap();
    inputs.retain(|input| input["deliveryId"] == delivery);
    body["consumption"]["join"]["selected"] = json!([delivery]);
    body
}

fn status(state: &RunState, node: &str) -> NodeStatus {
    state.nodes.get(&id::<NodeId>(node)).expect("a node").status
}

fn delivery(state: &RunState, name: &str) -> DeliveryState {
    let delivery = state.deliveries.get(&id::<DeliveryId>(name));
    delivery.expect("a delivery").record.state
}

/// A fork that is passed, and one branch done and received.
pub async fn one_branch(w: &mut World, branch: &str) -> String {
    pass(w, "s", json!({})).await;
    let to_branch = between(w, "s", branch).await;
    w.receive(W1, &to_branch).await;
    w.work(branch).await;
    let to_join = between(w, branch, "j").await;
    w.receive(W1, &to_join).await;
    to_join
}

/// Proves E-15, HD-04.6, HD-04.9, HD-04.10, T-40: x and y are both received, j takes x, and y stays received; another
/// admission with y is refused, and so is one with both.
#[tokio::test]
async fn e_15_an_any_join_keeps_its_input() {
    configured(any(), excluding(), async |w: &mut World| {
        let from_x = one_branch(w, "x").await;
        let to_y = between(w, "s", "y").await;
        w.receive(W1, &to_y).await;
        w.work("y").await;
        let from_y = between(w, "y", "j").await;
        w.receive(W1, &from_y).await;
        let whole = bodies::admit(&*w.state().await, "j", None);
        w.refuse(W1, whole, Code::InputSetConflict).await;
        let chosen = taking(w, &from_x).await;
        w.send(W1, chosen).await;
        let state = w.state().await;
        let mut bound = state.consumptions.values();
        let bound = bound.find(|bound| bound.node_id.as_str() == "j").unwrap();
        assert_eq!(bound.join.mode, JoinMode::Any);
        assert_eq!(bound.inputs.len(), 1);
        assert_eq!(bound.join.unselected_acknowledged, [id(&from_y)]);
        assert_eq!(delivery(&state, &from_y), DeliveryState::Acknowledged);
        let other = taking(w, &from_y).await;
        w.refuse(W1, other, Code::InputSetConflict).await;
    })
    .await;
}

/// Proves T-41, HD-04.7, HD-04.8, ERR-JOIN_UNSETTLED, FV-GRAPH.7: while y has work the join waits; what was not begun is
/// skipped in the store with the admission, and the run ends without it.
#[tokio::test]
async fn a_store_keeps_what_a_join_left_out() {
    configured(any(), excluding(), async |w: &mut World| {
        let from_x = one_branch(w, "x").await;
        let chosen = taking(w, &from_x).await;
        w.send(W1, chosen).await;
        let state = w.state().await;
        assert_eq!(status(&state, "y"), NodeStatus::Skipped);
        let (to_y, from_y) = (between(w, "s", "y").await, between(w, "y", "j").await);
        for closed in [&to_y, &from_y] {
            assert_eq!(delivery(&state, closed), DeliveryState::Excluded);
        }
        w.refuse(W1, bodies::claim(&to_y), Code::DeliveryState)
            .await;
        w.commit("j", &bodies::Boundary::completed(json!({}))).await;
        let to_end = between(w, "j", "end").await;
        w.receive(W1, &to_end).await;
        pass(w, "end", json!({"disposition": "COMPLETED"})).await;
        for (kind, actor, name, verdict) in [
            ("verify", W1, "v-1", "PASS"),
            ("accept", HUMAN, "c-1", "ACCEPTED"),
        ] {
            let body = bodies::assess(&*w.state().await, kind, name, verdict);
            w.send(actor, body).await;
        }
        let complete = bodies::complete(&*w.state().await);
        w.send(W1, complete).await;
        assert_eq!(w.state().await.lifecycle, Lifecycle::Completed);
    })
    .await;
    configured(any(), excluding(), async |w: &mut World| {
        let from_x = one_branch(w, "x").await;
        let to_y = between(w, "s", "y").await;
        w.receive(W1, &to_y).await;
        w.admit("y").await;
        let chosen = taking(w, &from_x).await;
        w.refuse(W1, chosen, Code::JoinUnsettled).await;
    })
    .await;
    both(any(), async |w: &mut World| {
        let from_x = one_branch(w, "x").await;
        let chosen = taking(w, &from_x).await;
        w.refuse(W1, chosen, Code::JoinUnsettled).await;
    })
    .await;
}

/// An iteration of l, up to its settlement.
async fn iterate(w: &mut World, number: u64) {
    let name = format!("l.{number}");
    w.prepare(&name, &bodies::action(&name), None);
    let (operation, attempt, reference) =
        (w.operation(&name), w.attempt(&name), w.reference(&name));
    let admit = bodies::admit(&*w.state().await, "l", Some((&operation, &reference)));
    w.send(W1, admit).await;
    let dispatch = bodies::dispatch(&*w.state().await, "l", &operation, &attempt);
    w.send(W1, dispatch).await;
    w.settle(&name, "CONFIRMED_APPLIED", 3).await;
}

/// Says of an iteration of l whether the loop is done.
async fn say(w: &World, name: &str, done: bool) {
    let said = BoundaryIntent {
        node_id: id("l"),
        status: OutcomeStatus::Completed,
        result: aiws::object! { "done": done },
        artifacts: Vec::new(),
        criteria: Vec::new(),
        approvals: Vec::new(),
        context: Default::default(),
        cause: None,
        hold: None,
    };
    intend(w, W1, name, Intent::Boundary(said)).await;
}

/// Proves HS-02.1, HS-02.4, HS-02.5, FV-NODE-LOOP.2: after the last iteration that is not done the store has a BLOCKED
/// manifest and an open ATTEMPT_LIMIT hold of one event; a restart forgets none of it, and a recheck releases nothing.
#[tokio::test]
async fn a_store_keeps_a_bound_that_is_reached() {
    let graph = bodies::graph(vec![
        node("l", "LOOP", &[], json!({"maxIterations": "2"})),
        node("end", "END", &["l"], json!({})),
    ]);
    both(graph, async |w: &mut World| {
        iterate(w, 1).await;
        say(w, "first", false).await;
        iterate(w, 2).await;
        say(w, "last", false).await;
        let before = w.state().await;
        w.restart().await;
        let state = w.state().await;
        assert_eq!(state.nodes, before.nodes);
        assert_eq!(status(&state, "l"), NodeStatus::Blocked);
        assert_eq!(state.lifecycle, Lifecycle::Running);
        let mut manifests = state.manifests.values();
        let last = manifests.find(|one| one.manifest.outcome.status == OutcomeStatus::Blocked);
        let mut holds = before.holds.keys().filter_map(|id| state.holds.get(id));
        let hold = holds.next().expect("a hold");
        assert_eq!(
            last.expect("a BLOCKED manifest").revision,
            hold.opened_revision.get()
        );
        assert_eq!(
            (hold.state, hold.reason),
            (HoldState::Open, HoldReason::AttemptLimit)
        );
        let recheck = bodies::resolve(hold.hold_id.as_str(), "RECHECK", &[]);
        w.refuse(HUMAN, recheck, Code::HoldNotClear).await;
    })
    .await;
}

//! Held branches in the store: one branch waits, the other goes to its end, across a restart and behind lost replies.
//! Invariant: as in all cases, every request is sent twice in one of the two worlds, and the store is verified at the end.

use aiws::error::Code;
use aiws::record::{HoldState, Lifecycle};
use praxis_model::event::Gate;
use praxis_model::plan::Aggregate;
use praxis_model::report;
use praxis_model::run::NodeStatus;
use praxis_model::stream::Subject;
use serde_json::{Value as Json, json};

use crate::bodies::{self, Boundary};
use crate::kinds::pass;
use crate::wire::id;
use crate::world::{HUMAN, W1, World, both};

fn node(id: &str, kind: &str, depends_on: &[&str], config: Json) -> Json {
    json!({"id": id, "kind": kind, "dependsOn": depends_on, "config": config})
}

/// ALL: x and y, then j, then end.
fn all() -> Json {
    let task = json!({"executionKind": "AGENT"});
    bodies::graph(vec![
        node("x", "TASK", &[], task.clone()),
        node("y", "TASK", &[], task),
        node("j", "JOIN", &["x", "y"], json!({"mode": "ALL"})),
        node("end", "END", &["j"], json!({})),
    ])
}

/// placeHold over a node of the graph with all that depends on it.
async fn branch(w: &World, id: &str, node: &str, reason: &str) -> Json {
    let mut body = bodies::hold(&*w.state().await, id, reason, &["RECHECK", "CANCEL"]);
    body["hold"]["scope"] =
        json!({"kind": "BRANCH", "ref": {"id": node, "revision": "1"}, "resolverRevision": "1"});
    body
}

async fn status(w: &World, node: &str) -> NodeStatus {
    let state = w.state().await;
    let own = state.nodes.get(&id::<aiws::id::NodeId>(node));
    own.expect("a node").status
}

/// The run's closed gates, as the store has them.
async fn gates(w: &World) -> Vec<Gate> {
    let state = w.state().await;
    let subject: &Subject = &state.subject;
    w.host().journal().view().gates(subject).to_vec()
}

/// An admission of the node is refused, and the branch's hold is what stops it.
async fn refuse_admission(w: &mut World, node: &str) {
    let body = w.admission(node).await;
    let error = w.refuse(W1, body, Code::HoldActive).await;
    let hold = error.details.get("holdId").and_then(|hold| hold.as_str());
    assert_eq!(hold, Some("held"));
}

/// The human releases what a restart left, and nothing else.
async fn release_restarts(w: &mut World) {
    let state = w.state().await;
    let all = state.holds.values();
    let restarts = all.filter(|hold| {
        hold.state == HoldState::Open && hold.reason == aiws::record::HoldReason::Restart
    });
    let ids: Vec<String> = restarts.map(|hold| hold.hold_id.to_string()).collect();
    for hold in ids {
        w.send(HUMAN, bodies::resolve(&hold, "RECHECK", &[])).await;
    }
}

/// Proves X-05, HS-01.8, HS-03.2, HS-05.4, HS-05.5, HS-05.7, HS-06.1, HLD-1: x is held and y goes to its end, also under a
/// new owner; j and the end wait; released, x and the run go on.
#[tokio::test]
async fn x_05_a_held_branch_beside_a_free_one() {
    both(
        bodies::forked(vec![bodies::end(&["j"])]),
        async |w: &mut World| {
            pass(w, "s", json!({})).await;
            for node in ["x", "y"] {
                let given = w.delivery("s", node);
                w.receive(W1, &given).await;
            }
            let held = branch(w, "held", "x", "OPERATOR").await;
            w.send(HUMAN, held).await;
            let node_ids = vec![id("x"), id("j"), id("end")];
            let hold_id = id("held");
            assert_eq!(gates(w).await, [Gate::Branch { hold_id, node_ids }]);
            refuse_admission(w, "x").await;
            w.restart().await;
            release_restarts(w).await;
            refuse_admission(w, "x").await;
            let state = w.state().await;
            let hold = state.holds.get(&id::<aiws::id::HoldId>("held"));
            assert_eq!(hold.expect("a hold").state, HoldState::Open);
            w.admit("y").await;
            w.dispatch("y").await;
            let told = report::of(&*w.state().await);
            assert_eq!((told.aggregate, told.held), (Aggregate::Running, true));
            assert_eq!(told.blocked_nodes.len(), 3);
            w.settle("y", "CONFIRMED_APPLIED", 2).await;
            w.commit("y", &Boundary::completed(json!({}))).await;
            let to_join = w.delivery("y", "j");
            w.refuse(W1, bodies::claim(&to_join), Code::HoldActive)
                .await;
            let told = report::of(&*w.state().await);
            assert_eq!((told.aggregate, told.held), (Aggregate::Waiting, true));
            w.send(HUMAN, bodies::resolve("held", "RECHECK", &[])).await;
            assert!(gates(w).await.is_empty());
            w.work("x").await;
            w.receive(W1, &to_join).await;
            assert_eq!(status(w, "x").await, NodeStatus::Completed);
            assert_eq!(w.state().await.lifecycle, Lifecycle::Running);
        },
    )
    .await;
}

/// Proves HC-ENV.4, ERR-AUTHORIZATION_DENIED: who may not hold one node of a branch holds none of it, and lifts no hold that
/// covers it; the policy is told every member, whatever the request names.
#[tokio::test]
async fn a_branch_is_held_by_who_may_hold_all_of_it() {
    both(all(), async |w: &mut World| {
        let op = HUMAN.to_owned();
        w.policy
            .rules()
            .untouchable
            .insert((op.clone(), "j".to_owned()));
        for node in ["x", "y", "j"] {
            let body = branch(w, "held", node, "OPERATOR").await;
            w.refuse(HUMAN, body, Code::AuthorizationDenied).await;
        }
        let whole = bodies::hold(&*w.state().await, "held", "OPERATOR", &["RECHECK"]);
        w.refuse(HUMAN, whole, Code::AuthorizationDenied).await;
        let end = branch(w, "last", "end", "OPERATOR").await;
        w.send(HUMAN, end).await;
        w.policy.rules().untouchable.clear();
        let held = branch(w, "held", "x", "OPERATOR").await;
        w.send(HUMAN, held).await;
        w.policy.rules().untouchable.insert((op, "j".to_owned()));
        let recheck = |hold| bodies::resolve(hold, "RECHECK", &[]);
        w.refuse(HUMAN, recheck("held"), Code::AuthorizationDenied)
            .await;
        w.send(HUMAN, recheck("last")).await;
        w.policy.rules().untouchable.clear();
        w.send(HUMAN, recheck("held")).await;
        assert!(gates(w).await.is_empty());
    })
    .await;
}

/// Proves E-07, HS-01.12, HS-01.13, ERR-SCOPE_UNSUPPORTED: a work order, a node that the graph does not have and a graph at
/// another revision are refused, and no narrower hold is made of them.
#[tokio::test]
async fn a_scope_that_does_not_resolve_holds_nothing() {
    both(all(), async |w: &mut World| {
        let good = branch(w, "held", "x", "OPERATOR").await;
        let scope = |kind: &str, id: &str, revision: &str| {
            let mut body = good.clone();
            body["hold"]["scope"]["kind"] = json!(kind);
            body["hold"]["scope"]["ref"] = json!({"id": id, "revision": revision});
            body
        };
        for (kind, id, revision) in [
            ("WORK_ORDER", "x", "1"),
            ("BRANCH", "ghost", "1"),
            ("BRANCH", "x", "2"),
            ("RUN", "x", "1"),
        ] {
            let body = scope(kind, id, revision);
            w.refuse(HUMAN, body, Code::ScopeUnsupported).await;
        }
        assert!(gates(w).await.is_empty() && w.state().await.holds.is_empty());
        w.send(HUMAN, good).await;
    })
    .await;
}

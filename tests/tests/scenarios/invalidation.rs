//! A hand-off is found to be wrong: against a dispatch, twice, and while a receipt is on its way.
//! Invariant: the order of the ledger settles it; nothing is both refused and called. Scenarios R-01, and L-04 up to the
//! refusal on restored bytes.

use aiws::error::Code;
use aiws::id::DeliveryId;
use aiws::record::{AttemptStatus, ConsumptionState, DeliveryState, HoldReason, HoldState};
use praxis_artifacts::ArtifactProvider;
use praxis_model::run::NodeStatus;
use serde_json::json;

use crate::bodies::{self, lin};
use crate::kinds::pass;
use crate::oracle::money;
use crate::wire::id;
use crate::world::{HUMAN, RULE, W1, World, both};

/// LIN with b received and admitted.
async fn admitted(w: &mut World) {
    w.work("a").await;
    let delivery = w.delivery("a", "b");
    let token = w.claim(W1, &delivery).await;
    w.ack(W1, &delivery, &token).await;
    w.admit("b").await;
}

fn attempt(w: &World, state: &praxis_model::run::RunState) -> AttemptStatus {
    let id = id::<aiws::id::AttemptId>(&w.attempt("b"));
    state.attempts.get(&id).expect("an attempt").status
}

/// Proves R-01, HD-05.5, HD-05.3, HD-05.2: dispatch and invalidation at once. What was dispatched first is kept, with its
/// stop on record, and settled; what was invalidated first is not dispatched, stale at first and held once it is fresh.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_01_invalidation_against_dispatch() {
    for invalidation_first in [false, true] {
        both(lin(), async |w: &mut World| {
            admitted(w).await;
            let spent = money(w).0;
            let dispatch = w.dispatch_of("b").await;
            let mut sent = w.request(dispatch).await;
            let body = bodies::invalidate(&*w.state().await, "a");
            let invalidation = w.request(body).await;
            let (one, two) = (sent.bytes(), invalidation.bytes());
            let (engine, worker, human) =
                (w.engine().clone(), w.capability(W1), w.capability(HUMAN));
            let (dispatched, invalidated) = if invalidation_first {
                let (b, a) = tokio::join!(engine.apply(&human, &two), engine.apply(&worker, &one));
                (a, b)
            } else {
                tokio::join!(engine.apply(&worker, &one), engine.apply(&human, &two))
            };
            let called = dispatched.is_ok();
            assert_ne!(called, invalidated.is_ok(), "one position, one event");
            let late = if called { invalidated } else { dispatched };
            let late = late.expect_err("the second of two");
            assert_eq!(late.code(), Code::RevisionConflict);
            if called {
                let body = bodies::invalidate(&*w.state().await, "a");
                w.send(HUMAN, body).await;
            } else {
                sent.revision = w.state().await.head.revision.to_string();
                w.refuse_sent(W1, &sent, Code::HoldActive).await;
            }
            let state = w.state().await;
            let hold = state.holds.values().next().expect("a hold");
            assert_eq!(
                (hold.reason, hold.state, hold.stop_disposition.len()),
                (
                    HoldReason::InvalidatedInput,
                    HoldState::Open,
                    usize::from(called)
                )
            );
            if called {
                assert_eq!(attempt(w, &state), AttemptStatus::Dispatched);
                w.settle("b", "CONFIRMED_APPLIED", 2).await;
                assert_eq!(money(w), (spent + 2, 0));
            } else {
                assert_eq!(attempt(w, &state), AttemptStatus::Prepared);
            }
        })
        .await;
    }
}

/// Proves HD-01.T6, HF-02.7, HF-02.8, HC-IV.1: the same request gets the first result and makes nothing; another one of
/// the same hand-off is refused, a changed one conflicts, and a worker invalidates nothing.
#[tokio::test]
async fn an_invalidation_is_answered_once_and_again() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let body = bodies::invalidate(&*w.state().await, "a");
        w.refuse(W1, body.clone(), Code::AuthorizationDenied).await;
        let sent = w.request(body.clone()).await;
        let first = w.deliver(RULE, &sent).await;
        let again = w.once(RULE, &sent.bytes()).await.expect("a replay");
        assert!(again.event.is_none());
        assert_eq!(
            (again.revision, &again.result),
            (first.revision, &first.result)
        );
        let state = w.state().await;
        assert_eq!((state.invalidations.size(), state.holds.size()), (1, 1));
        let delivery = id::<DeliveryId>(&w.delivery("a", "b"));
        let delivery = &state.deliveries.get(&delivery).expect("a delivery").record;
        assert_eq!(delivery.state, DeliveryState::Invalidated);
        let mut changed = sent.clone();
        changed.body["reason"] = "another".into();
        w.refuse_sent(RULE, &changed, Code::IdentityConflict).await;
        w.refuse(HUMAN, body, Code::DeliveryState).await;
        let claim = bodies::claim(&w.delivery("a", "b"));
        w.refuse(W1, claim, Code::HoldActive).await;
        w.restart().await;
        let again = w.once(RULE, &sent.bytes()).await.expect("a replay");
        assert!(again.event.is_none() && again.result == first.result);
    })
    .await;
}

/// ALL, with a j that works: a JOIN has no operation that could be in flight, a TASK of two inputs waits for both as well.
fn joined() -> serde_json::Value {
    let mut graph = bodies::forked(vec![bodies::end(&["j"])]);
    for node in graph["nodes"].as_array_mut().unwrap() {
        if node["id"] == "j" {
            *node = bodies::task("j", &["x", "y"]);
        }
    }
    graph
}

/// Proves L-04, HD-05.1, HD-05.2, HD-05.8, HF-04.9, HF-04.10, HD-01.T7: x turns out to be wrong while the work on x and y is in
/// flight. The work is settled and counted, history stays, and the old bytes, lost and restored identically, clear nothing:
/// x is invalid, not missing. What a replacement needs has no command yet, and the scenario ends there.
#[tokio::test]
async fn l_04_invalidation_of_one_of_two_inputs() {
    both(joined(), async |w: &mut World| {
        pass(w, "s", json!({})).await;
        let mut made = Vec::new();
        for node in ["x", "y"] {
            let to_branch = w.delivery("s", node);
            w.receive(W1, &to_branch).await;
            made.push(
                w.work_with(node, format!("patch of {node}").as_bytes())
                    .await,
            );
            let to_join = w.delivery(node, "j");
            w.receive(W1, &to_join).await;
        }
        w.admit("j").await;
        w.dispatch("j").await;
        let before = w.state().await;
        let body = bodies::invalidate(&before, "x");
        w.send(HUMAN, body).await;

        let from_x = w.delivery("x", "j");
        let delivery = |state: &praxis_model::run::RunState, name: &str| {
            let found = state.deliveries.get(&id::<DeliveryId>(name));
            found.expect("a delivery").record.clone()
        };
        let state = w.state().await;
        let mut bound = state.consumptions.values();
        let bound = bound.find(|bound| bound.node_id.as_str() == "j").unwrap();
        assert_eq!(bound.state, ConsumptionState::Invalidated);
        let gone = delivery(&state, &from_x);
        assert_eq!(gone.state, DeliveryState::Invalidated);
        assert!(
            gone.acknowledgement.is_some(),
            "the receipt stays on record"
        );
        let kept = delivery(&state, &w.delivery("y", "j"));
        assert_eq!(kept.state, DeliveryState::Acknowledged);
        assert_eq!(state.manifests.size(), before.manifests.size());
        w.settle("j", "CONFIRMED_APPLIED", 3).await;
        assert_eq!(money(w), (9, 0), "both inputs and the work on them");

        // The very bytes are lost and put back.
        let path = w.artifacts().join(made[0].digest.to_string());
        std::fs::remove_file(&path).unwrap();
        let put = w
            .shelf
            .put(b"patch of x", "x", "text/plain", &id(HUMAN), 500_000);
        assert_eq!(put.unwrap().digest, made[0].digest);
        let state = w.state().await;
        let mut holds = state.holds.values();
        let hold = holds.next().expect("a hold");
        assert_eq!(
            (hold.reason, hold.state, state.holds.size()),
            (HoldReason::InvalidatedInput, HoldState::Open, 1)
        );
        for evidence in [&[][..], &["evidence"]] {
            let recheck = bodies::resolve(hold.hold_id.as_str(), "RECHECK", evidence);
            w.refuse(HUMAN, recheck, Code::HoldNotClear).await;
        }
        w.refuse(W1, bodies::claim(&from_x), Code::HoldActive).await;
        let again = bodies::invalidate(&state, "x");
        w.refuse(HUMAN, again, Code::DeliveryState).await;
        // T-36: what j did is told, and reaches nobody.
        w.commit("j", &bodies::Boundary::completed(json!({}))).await;
        let to_end = w.delivery("j", "end");
        w.refuse(W1, bodies::claim(&to_end), Code::HoldActive).await;
        let state = w.state().await;
        let own = state.nodes.get(&id::<aiws::id::NodeId>("j"));
        assert_eq!(own.expect("a node").status, NodeStatus::Completed);
        assert_eq!(delivery(&state, &from_x), gone);
        let complete = bodies::complete(&state);
        w.refuse(W1, complete, Code::HoldActive).await;
    })
    .await;
}

//! A hand-off is found to be wrong: against a dispatch, twice, and while a receipt is on its way.
//! Invariant: the order of the ledger settles it; nothing is both refused and called. Scenario R-01.

use aiws::error::Code;
use aiws::id::DeliveryId;
use aiws::record::{AttemptStatus, DeliveryState, HoldReason, HoldState};

use crate::bodies::{self, lin};
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

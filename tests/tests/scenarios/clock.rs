//! Time at the boundary: leases between the host's bounds, a clock that steps back, an authorization that waited too long.
//! Invariant: the durable boundary decides by the writer's clock, whatever was right when the command was decided.
//! Beside R-04 and E-13, which are about a clock that goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiws::error::{Code, Error};
use aiws::id::DeliveryId;
use aiws::record::{Claim, ClaimEndCause, DeliveryState};
use praxis_engine::crash::{Passing, Point};
use praxis_engine::{LeaseBounds, Shutdown};
use praxis_model::command::CommandType;
use serde_json::json;

use crate::bodies::{self, end, graph, lin, task, wide};
use crate::driven::{calls_of, driven, until};
use crate::wire::id;
use crate::world::{ENGINE, HUMAN, Probe, W1, W2, World, both};

/// What is done once, right before an event of this type goes to the writer.
type Late = Arc<std::sync::Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A probe that does what the case puts in the slot, when the next event of this type was decided.
fn decided(kind: CommandType) -> (Probe, Late) {
    let slot = Late::default();
    let taken = Arc::clone(&slot);
    let probe = move |passing: &Passing| {
        if passing.point == Point::BeforeCommit
            && passing.kind == kind
            && let Some(act) = taken.lock().unwrap().take()
        {
            act();
        }
    };
    (Arc::new(probe), slot)
}

fn requirement(error: &Error) -> Option<&str> {
    error.details.get("requirement").and_then(|id| id.as_str())
}

async fn claim_of(w: &World, delivery: &str) -> (DeliveryState, Option<Claim>) {
    let state = w.state().await;
    let found = state.deliveries.get(&id::<DeliveryId>(delivery)).unwrap();
    (found.record.state, found.record.claim.clone())
}

/// Proves HD-02.7, HC-ENV.5: the host says how long a claim lasts: what is asked for ends up between its bounds, and never
/// above the mission's. What the request says of time counts for nothing else.
#[tokio::test]
async fn hd_02_7_the_host_bounds_a_lease() {
    both(wide(), async |w: &mut World| {
        w.work("a").await;
        let delivery = w.delivery("a", "b");
        let bounds = |min_ms, max_ms| Some(LeaseBounds { min_ms, max_ms });
        for (host, wanted, granted) in [
            (None, None, 100),
            (bounds(20, 60), None, 60),
            (bounds(20, 60), Some("7"), 20),
            (bounds(20, 60), Some("30"), 30),
            (bounds(20, 60), Some(&"9".repeat(100)[..]), 60),
            (bounds(500, 600), Some("7"), 100),
        ] {
            w.policy.rules().lease = host;
            let mut body = bodies::claim(&delivery);
            if let Some(wanted) = wanted {
                body["leaseMs"] = json!(wanted);
            }
            let mut timed = body.clone();
            timed["expiresAtMs"] = json!("999999");
            w.refuse(W1, timed, Code::SchemaInvalid).await;
            let token = w.send(W1, body).await.token.expect("a token");
            let (_, claim) = claim_of(w, &delivery).await;
            let claim = claim.expect("a claim");
            let lease_ms = claim.expires_at_ms.get() - claim.claimed_at_ms.get();
            assert_eq!(lease_ms, granted, "{host:?} {wanted:?}");
            let release = bodies::release(&delivery, &token, claim.generation.get());
            w.send(W1, release).await;
        }
        w.policy.rules().lease = bounds(0, 0);
        w.refuse(W1, bodies::claim(&delivery), Code::AuthorizationDenied)
            .await;
    })
    .await;
}

/// Proves HD-02.7, T-81: a claim that waits for the writer longer than its lease is decided again, and is live when it is
/// there.
#[tokio::test]
async fn hd_02_7_a_claim_is_live_when_it_is_written() {
    for lost in [false, true] {
        let (probe, late) = decided(CommandType::ClaimDelivery);
        let mut w = World::new(lost, Some(probe)).await;
        w.start(&wide(), &bodies::config()).await;
        w.work("a").await;
        let delivery = w.delivery("a", "b");
        let clock = Arc::clone(&w.clock);
        *late.lock().unwrap() = Some(Box::new(move || clock.set(5_000)));
        w.claim(W1, &delivery).await;
        let (_, claim) = claim_of(&w, &delivery).await;
        let claim = claim.expect("a claim");
        let times = (claim.claimed_at_ms.get(), claim.expires_at_ms.get());
        assert_eq!(times, (5_000, 5_100));
        w.finish().await;
    }
}

/// Proves HS-04.6, T-29, HD-02.8: inside the tolerance a step back is waited out. Beyond it, a live lease is judged by nobody
/// any more, also when the clock has caught up, until the run is taken over, which ends it; what needs no lease goes on.
#[tokio::test]
async fn hs_04_6_a_clock_that_steps_back() {
    both(wide(), async |w: &mut World| {
        w.work("a").await;
        let (one, two) = (w.delivery("a", "b"), w.delivery("a", "b2"));
        w.clock.set(50_000);
        let quick = w.claim(W1, &two).await;
        w.clock.set(49_000);
        w.ack(W1, &two, &quick).await;
        assert_eq!(w.engine().clock().steps, 0, "within the tolerance");

        let token = w.claim(W1, &one).await;
        w.clock.set(48_999);
        let held = w.ack_of(&one, &token).await;
        let leased = [held, bodies::release(&one, &token, 1), bodies::claim(&one)];
        for now_ms in [48_999, 10_000, 50_050] {
            w.clock.set(now_ms);
            for body in &leased {
                let error = w.refuse(W1, body.clone(), Code::StaleOwner).await;
                assert_eq!(requirement(&error), Some("HS-04.6"), "{error}");
            }
        }
        let state = w.engine().clock();
        assert_eq!((state.steps, state.behind_ms), (1, 0), "one condition");
        w.admit("c").await;

        w.send(HUMAN, bodies::recover(1, Some("decision-1"))).await;
        assert_eq!(claim_of(w, &one).await.0, DeliveryState::Pending);
        w.release_holds().await;
        let error = w.refuse(W1, leased[0].clone(), Code::StaleOwner).await;
        assert_ne!(requirement(&error), Some("HS-04.6"), "the token is old now");
        w.receive(W2, &one).await;
    })
    .await;
}

/// Proves T-29: with no lease to be in doubt, a step back stops nobody; the store's time stands still meanwhile.
#[tokio::test]
async fn t_29_no_lease_no_doubt() {
    both(wide(), async |w: &mut World| {
        w.work("a").await;
        w.clock.set(50_000);
        w.admit("c").await;
        w.clock.set(2_000);
        let delivery = w.delivery("a", "b");
        let token = w.claim(W1, &delivery).await;
        assert_eq!(w.engine().clock().steps, 1);
        let (_, claim) = claim_of(w, &delivery).await;
        assert_eq!(claim.expect("a claim").claimed_at_ms.get(), 50_000);
        w.ack(W1, &delivery, &token).await;
    })
    .await;
}

/// Proves HS-04.6, T-29: a store that is opened by a clock behind its log has stepped back, and so do the leases in it feel.
#[tokio::test]
async fn hs_04_6_a_store_ahead_of_the_clock() {
    both(wide(), async |w: &mut World| {
        w.work("a").await;
        let (one, two) = (w.delivery("a", "b"), w.delivery("a", "b2"));
        w.clock.set(50_000);
        w.claim(W1, &one).await;
        w.close(Shutdown::Drain).await;
        w.clock.set(2_000);
        w.open().await;
        let error = w.refuse(W2, bodies::claim(&two), Code::StaleOwner).await;
        assert_eq!(requirement(&error), Some("HS-04.6"), "{error}");
        assert_eq!(w.engine().clock().behind_ms, 48_000);
        w.send(HUMAN, bodies::recover(1, Some("decision-1"))).await;
        w.release_holds().await;
        w.receive(W2, &two).await;
        w.receive(W2, &one).await;
    })
    .await;
}

/// Proves HS-04.6, T-29, T-81: the clock steps back when the receipt is already decided and not yet written. The boundary does
/// not take it.
#[tokio::test]
async fn hs_04_6_the_clock_steps_back_before_the_commit() {
    for lost in [false, true] {
        let (probe, late) = decided(CommandType::AcknowledgeDelivery);
        let mut w = World::new(lost, Some(probe)).await;
        w.start(&wide(), &bodies::config()).await;
        w.work("a").await;
        w.clock.set(50_000);
        let delivery = w.delivery("a", "b");
        let token = w.claim(W1, &delivery).await;
        let clock = Arc::clone(&w.clock);
        let passed = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&passed);
        *late.lock().unwrap() = Some(Box::new(move || {
            told.store(true, Ordering::SeqCst);
            clock.set(2_000);
        }));
        let ack = w.ack_of(&delivery, &token).await;
        let error = w.refuse(W1, ack, Code::StaleOwner).await;
        assert!(passed.load(Ordering::SeqCst), "it was decided first");
        assert_eq!(requirement(&error), Some("HS-04.6"), "{error}");
        assert_eq!(claim_of(&w, &delivery).await.0, DeliveryState::Claimed);
        w.finish().await;
    }
}

/// Proves T-29: a run that the engine drives is not left behind by a step of the clock between its decision and its commit:
/// the claim is decided again by the clock as it is then, and the run goes on to its end, each effect had once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_29_a_driven_run_goes_on() {
    for lost in [false, true] {
        let root = tempfile::TempDir::new().unwrap();
        let mut w = driven(root.path(), lost, true);
        w.clock.set(50_000);
        let clock = Arc::clone(&w.clock);
        w.at_point(
            Point::BeforeCommit,
            // Of b's claim, receipt, admission and dispatch, which are one append.
            CommandType::Dispatch,
            2,
            move || clock.set(2_000),
        );
        w.open().await;
        let mut config = bodies::config();
        config["restartPolicy"] = json!("AUTO");
        w.start(&lin(), &config).await;
        until(&w, |state| state.manifests.size() == 3).await;
        assert_eq!(w.engine().clock().steps, 1);
        let calls = (calls_of(root.path(), "a"), calls_of(root.path(), "b"));
        assert_eq!(calls, (1, 1));
        w.finish().await;
    }
}

/// Proves HS-04.6, T-29, HD-02.8, HS-06.2: in a run that the engine drives a worker's claim is live when the clock steps back.
/// The engine takes its own run over, which ends that claim and no other work, and goes on: at once under AUTO, and under
/// HUMAN once a human said so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hs_04_6_a_driven_run_is_taken_over_under_its_own_claim() {
    for (lost, policy) in [(false, "AUTO"), (true, "AUTO"), (false, "HUMAN")] {
        let root = tempfile::TempDir::new().unwrap();
        let mut w = driven(root.path(), lost, true);
        w.clock.set(50_000);
        // The engine leaves the deliveries to workers for now.
        let rule = (ENGINE.to_owned(), CommandType::ClaimDelivery);
        w.policy.rules().denied.insert(rule.clone());
        w.open().await;
        let mut config = bodies::config();
        config["restartPolicy"] = json!(policy);
        let two = [task("b", &["a"]), task("b2", &["a"])];
        let nodes = [task("a", &[])].into_iter().chain(two);
        let nodes = nodes.chain([end(&["b", "b2"])]).collect();
        w.start(&graph(nodes), &config).await;
        until(&w, |state| state.manifests.size() == 1).await;
        let state = w.state().await;
        let mut all = state.deliveries.values().map(|delivery| &delivery.record);
        let delivery = all.find(|record| record.recipient.node_id.as_str() == "b");
        let delivery = delivery.unwrap().delivery_id.to_string();
        let token = w.claim(W1, &delivery).await;
        let ack = w.ack_of(&delivery, &token).await;
        w.policy.rules().denied.remove(&rule);
        w.clock.set(2_000);
        // What needs no lease is taken all the same, and the engine looks at the run again.
        let verify = bodies::assess(&*w.state().await, "verify", "v-1", "FAIL");
        w.send(W1, verify).await;
        let state = until(&w, |state| state.epoch == 2).await;
        let human = policy == "HUMAN";
        assert_eq!(state.holds.size(), usize::from(human));
        if human {
            // Held, so that nothing moves meanwhile.
            w.refuse(W1, ack, Code::HoldActive).await;
            let (state, claim) = claim_of(&w, &delivery).await;
            let end = claim.and_then(|claim| claim.end).map(|end| end.cause);
            assert_eq!(
                (state, end),
                (DeliveryState::Pending, Some(ClaimEndCause::Fenced))
            );
            w.release_holds().await;
        }
        let state = until(&w, |state| state.manifests.size() == 4).await;
        assert_eq!((state.epoch, w.engine().clock().steps), (2, 1));
        let calls = ["a", "b", "b2"].map(|node| calls_of(root.path(), node));
        assert_eq!(calls, [1, 1, 1]);
        w.finish().await;
    }
}

/// Proves CRD-3, T-30: what was allowed waits for the writer longer than an authorization lasts. It is asked for anew, and what
/// policy says by then counts.
#[tokio::test]
async fn crd_3_an_authorization_that_waited_too_long() {
    for (lost, denied) in [(false, true), (true, true), (false, false), (true, false)] {
        let (probe, late) = decided(CommandType::Verify);
        let mut w = World::new(lost, Some(probe)).await;
        w.start(&wide(), &bodies::config()).await;
        let verify = bodies::assess(&*w.state().await, "verify", "v-1", "PASS");
        let (clock, policy) = (Arc::clone(&w.clock), Arc::clone(&w.policy));
        *late.lock().unwrap() = Some(Box::new(move || {
            clock.set(601_001);
            if denied {
                let rule = (W1.to_owned(), CommandType::Verify);
                policy.rules().denied.insert(rule);
            }
        }));
        if denied {
            w.refuse(W1, verify, Code::AuthorizationDenied).await;
        } else {
            w.send(W1, verify).await;
            assert_eq!(w.state().await.last_ms, 601_001);
        }
        w.finish().await;
    }
}

//! Cases from the field that are about runs, holds and joins.
//! Invariant: each states its input and the one right outcome. Cases F-02 to F-33.

use aiws::error::Code;
use aiws::record::{AttemptStatus, Contract, HandoffConfig, HoldState, Lifecycle};
use praxis_engine::Shutdown;
use praxis_model::command::{Body, Intent, PlaceHold};
use praxis_model::report;
use serde_json::{Value as Json, json};

use crate::bodies::{self, Boundary, all, lin, wide};
use crate::choices::intend;
use crate::oracle::{hash_of, money};
use crate::wire::{id, record};
use crate::world::{HUMAN, W1, W2, World, both, configured};

fn states(state: &praxis_model::run::RunState) -> Vec<(String, HoldState)> {
    state
        .holds
        .values()
        .map(|hold| (hold.hold_id.as_str().to_owned(), hold.state))
        .collect()
}

/// Proves F-02: three holds opened at once have their own ids, and each answer reaches its own.
#[tokio::test]
async fn f_02_three_holds_at_once() {
    both(lin(), async |w: &mut World| {
        let state = w.state().await;
        let place = |name: &str| {
            let mut body = bodies::hold(&state, name, "OPERATOR", &["RECHECK"]);
            Intent::Command {
                body: Body::PlaceHold(PlaceHold {
                    hold: record(&body["hold"].take()),
                }),
            }
        };
        let (one, two, three) = (place("h1"), place("h2"), place("h3"));
        tokio::join!(
            intend(w, HUMAN, "i-1", one),
            intend(w, HUMAN, "i-2", two),
            intend(w, HUMAN, "i-3", three),
        );
        assert_eq!(w.state().await.holds.size(), 3);
        w.send(HUMAN, bodies::resolve("h2", "RECHECK", &[])).await;
        let wanted = [
            ("h1", HoldState::Open),
            ("h2", HoldState::Released),
            ("h3", HoldState::Open),
        ];
        let wanted: Vec<_> = wanted.map(|(name, state)| (name.to_owned(), state)).into();
        assert_eq!(states(&*w.state().await), wanted);
    })
    .await;
}

/// Proves F-03: an answer to a hold that does not exist is refused, and the open one stays.
#[tokio::test]
async fn f_03_resolve_an_unknown_hold() {
    both(lin(), async |w: &mut World| {
        let hold = bodies::hold(&*w.state().await, "h1", "OPERATOR", &["RECHECK"]);
        w.send(HUMAN, hold).await;
        w.refuse(
            HUMAN,
            bodies::resolve("h9", "RECHECK", &[]),
            Code::HoldState,
        )
        .await;
        assert_eq!(
            states(&*w.state().await),
            [("h1".to_owned(), HoldState::Open)]
        );
    })
    .await;
}

/// Proves F-06, HD-04.2: the engine dies between the two arrivals at a join; the join is admitted once, with both.
#[tokio::test]
async fn f_06_crash_between_two_arrivals() {
    both(all(), async |w: &mut World| {
        w.work("x").await;
        let first = w.delivery("x", "j");
        w.receive(W1, &first).await;
        let early = bodies::admit(&*w.state().await, "j", None);
        w.refuse(W1, early, Code::NodeNotReady).await;
        w.restart().await;
        w.release_holds().await;
        w.work("y").await;
        let second = w.delivery("y", "j");
        w.receive(W1, &second).await;
        let admit = bodies::admit(&*w.state().await, "j", None);
        w.send(W1, admit).await;
        let state = w.state().await;
        let joined: Vec<_> = state
            .consumptions
            .values()
            .filter(|bound| bound.node_id.as_str() == "j")
            .collect();
        assert_eq!((joined.len(), joined[0].inputs.len()), (1, 2));
        let again = bodies::admit(&state, "j", None);
        w.refuse(W1, again, Code::InputSetConflict).await;
    })
    .await;
}

/// Proves F-08, STO-5: the store is opened twice more; manifests and states are the very same, nothing twice.
#[tokio::test]
async fn f_08_restore_twice() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let before = w.state().await;
        let digests = |state: &praxis_model::run::RunState| {
            state
                .manifests
                .values()
                .map(|committed| committed.digest)
                .collect::<Vec<_>>()
        };
        for _ in 0..2 {
            w.close(Shutdown::Drain).await;
            w.open().await;
            let after = w.state().await;
            assert_eq!(
                (digests(&before), hash_of(&*before)),
                (digests(&after), hash_of(&*after))
            );
            assert_eq!((after.manifests.size(), after.deliveries.size()), (1, 1));
        }
    })
    .await;
}

/// Proves F-09: 9 of 10 units are spent, the process ends, and 1 is left, not 10.
#[tokio::test]
async fn f_09_spend_survives_a_restart() {
    both(wide(), async |w: &mut World| {
        for node in ["a", "c", "e"] {
            w.work(node).await;
        }
        w.restart().await;
        w.release_holds().await;
        assert_eq!(money(w), (9, 0));
        let admission = w.admission("f").await;
        w.refuse(W1, admission.clone(), Code::BudgetExceeded).await;
        let mut proposal = bodies::proposal(
            &w.operation("f"),
            &w.attempt("f"),
            &bodies::action("f"),
            None,
        );
        proposal["amount"] = json!("1");
        w.policy
            .rules()
            .admissions
            .insert(id(&w.reference("f")), record(&proposal));
        w.send(W1, admission).await;
        assert_eq!(money(w), (9, 1));
    })
    .await;
}

/// Proves F-11: a bound of 0, of -1 or of 101 digits is refused where it stands, and never read as no bound.
#[test]
fn f_11_bounds_that_are_none() {
    fn refused<T: serde::de::DeserializeOwned>(mut json: Json, name: &str, bound: &str) {
        json[name] = json!(bound);
        let value = aiws::strict::parse(&serde_json::to_vec(&json).unwrap()).unwrap();
        let Err(error) = aiws::canonical::from_value::<T>(&value) else {
            panic!("{name} of {bound:?} is taken")
        };
        let pointer = format!("/{name}");
        assert_eq!(
            (error.code(), error.pointer.as_deref()),
            (Code::SchemaInvalid, Some(pointer.as_str()))
        );
    }
    let long = "9".repeat(101);
    for bound in ["-1", &long, "", "unlimited", "0"] {
        refused::<Contract>(bodies::contract(), "maxAttempts", bound);
        refused::<HandoffConfig>(bodies::config(), "leaseMs", bound);
        refused::<HandoffConfig>(bodies::config(), "maxRecipients", bound);
        // A budget of nothing is a budget.
        if bound != "0" {
            refused::<Contract>(bodies::contract(), "budget", bound);
        }
    }
}

/// Proves F-18: work takes three leases; its receipt stands, and its effect is what it says, not UNKNOWN.
#[tokio::test]
async fn f_18_work_longer_than_its_lease() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let delivery = w.delivery("a", "b");
        w.receive(W1, &delivery).await;
        w.admit("b").await;
        w.dispatch("b").await;
        w.clock.advance(300);
        w.refuse(W2, bodies::claim(&delivery), Code::DeliveryState)
            .await;
        w.settle("b", "CONFIRMED_APPLIED", 3).await;
        w.commit("b", &Boundary::completed(json!({}))).await;
        let state = w.state().await;
        assert!(
            state
                .attempts
                .values()
                .all(|attempt| attempt.status == AttemptStatus::ConfirmedApplied)
        );
        assert_eq!(money(w), (6, 0));
    })
    .await;
}

/// Proves F-16: a run without a name is refused at the door, with the place.
#[tokio::test]
async fn f_16_a_run_without_a_name() {
    both(lin(), async |w: &mut World| {
        let body = json!({"type": "startRun", "runId": ""});
        let error = w.refuse(HUMAN, body, Code::SchemaInvalid).await;
        assert_eq!(error.pointer.as_deref(), Some("/command/runId"));
    })
    .await;
}

/// Proves F-31, FV-ACC.1, FV-ACC.6: an attempt that did nothing is retried, and the process ends in the middle of the second
/// call. What the account enforces is the sum of the ledger at every step, and the operation costs what it cost once.
#[tokio::test]
async fn f_31_retry_and_restart_mid_call() {
    let mut config = bodies::config();
    config["restartPolicy"] = json!("AUTO");
    configured(lin(), config, async |w: &mut World| {
        w.admit("a").await;
        w.dispatch("a").await;
        w.settle("a", "CONFIRMED_NOT_APPLIED", 0).await;
        assert_eq!(money(w), (0, 0));
        let retry = json!({
            "type": "retry", "runId": w.run, "ownerEpoch": "1", "operationId": w.operation("a"),
            "attemptId": "at-2", "amount": "4", "policy": {"id": "policy", "revision": "1"},
        });
        w.send(W1, retry).await;
        let operation = w.operation("a");
        let second = bodies::dispatch(&*w.state().await, "a", &operation, "at-2");
        w.send(W1, second).await;
        assert_eq!(money(w), (0, 4));
        w.restart().await;
        assert_eq!(money(w), (0, 4), "mid-call, so still reserved");
        let again = json!({
            "type": "retry", "runId": w.run, "ownerEpoch": "2", "operationId": w.operation("a"),
            "attemptId": "at-3", "amount": "4", "policy": {"id": "policy", "revision": "1"},
        });
        w.refuse(W1, again, Code::EffectUnresolved).await;
        let found = bodies::settle(
            &*w.state().await,
            "reconcile",
            "at-2",
            "CONFIRMED_APPLIED",
            2,
        );
        w.send(HUMAN, found).await;
        assert_eq!(money(w), (2, 0));
        let told = report::of(&*w.state().await);
        assert_eq!(
            (told.spent.to_u64(), told.reserved.to_u64()),
            (Some(2), Some(0))
        );
        w.commit("a", &Boundary::completed(json!({}))).await;
    })
    .await;
}

/// Proves F-33, F-34: two runs, one canceled; the other goes on, and every view says the same of both.
#[tokio::test]
async fn f_33_f_34_cancel_one_of_two_runs() {
    both(lin(), async |w: &mut World| {
        w.run = "other".to_owned();
        w.start_run(&lin()).await;
        w.run = "run".to_owned();
        w.admit("a").await;
        for kind in ["cancelRun", "finishCancelRun"] {
            let body = bodies::cancel(&*w.state().await, kind);
            w.send(HUMAN, body).await;
        }
        assert_eq!(w.state().await.lifecycle, Lifecycle::Canceled);
        let listed: Vec<(String, Lifecycle)> = w
            .engine()
            .runs()
            .into_iter()
            .map(|run| (run.run_id.as_str().to_owned(), run.lifecycle))
            .collect();
        assert_eq!(
            listed,
            [
                ("other".to_owned(), Lifecycle::Running),
                ("run".to_owned(), Lifecycle::Canceled)
            ]
        );
        assert_eq!(report::of(&*w.state().await).lifecycle, Lifecycle::Canceled);
        let admission = w.admission("a").await;
        w.refuse(W1, admission, Code::TerminalExecution).await;
        w.run = "other".to_owned();
        w.work("a").await;
        assert_eq!(money(w).0, 3);
        let state = w.state().await;
        assert_eq!((state.manifests.size(), state.deliveries.size()), (1, 1));
    })
    .await;
}

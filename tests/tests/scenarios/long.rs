//! A whole life of a run, every command sent, counted and found again after a reopen.
//! Invariant: the list of events is fixed; a second sending adds nothing to it. Scenario L-01.

use aiws::decimal::{Dec, DecPlus};
use aiws::id::ConsumerId;
use aiws::record::{Lifecycle, OutcomeStatus, SettledOutcome};
use praxis_engine::{Draft, Shutdown};
use praxis_model::command::BoundaryIntent;
use praxis_model::report;
use serde_json::json;

use crate::bodies::{self, Boundary, lin};
use crate::oracle::{Mark, export_of, hash_of, money, replay};
use crate::wire::{id, request_id};
use crate::world::{HUMAN, MISSION, W1, World, both};

/// The events of LIN's full life, in the order of the log.
const LIFE: &[&str] = &[
    "openMission",
    "startRun",
    "activateGraph",
    "admitConsumer",
    "dispatch",
    "settle",
    "commitBoundary",
    "claimDelivery",
    "acknowledgeDelivery",
    "admitConsumer",
    "dispatch",
    "settle",
    "commitBoundary",
    "verify",
    "accept",
    "claimDelivery",
    "acknowledgeDelivery",
    "admitConsumer",
    "commitBoundary",
    "completeRun",
];

/// Proves L-01, HF-02.7, HF-03.1, STO-5, REP-1, AUD-1, FV-RUN.2: LIN from its start to its completion,
/// a reopen, and the outbox; every command sent twice makes the same events once.
#[tokio::test]
async fn l_01_full_life() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let delivery = w.delivery("a", "b");
        w.receive(W1, &delivery).await;
        w.work("b").await;
        for (kind, actor, name, verdict) in [
            ("verify", W1, "v-1", "PASS"),
            ("accept", HUMAN, "c-1", "ACCEPTED"),
        ] {
            let body = bodies::assess(&*w.state().await, kind, name, verdict);
            w.send(actor, body).await;
        }
        let delivery = w.delivery("b", "end");
        w.receive(W1, &delivery).await;
        let admit = bodies::admit(&*w.state().await, "end", None);
        w.send(W1, admit).await;
        w.commit(
            "end",
            &Boundary::completed(json!({"disposition": "COMPLETED"})),
        )
        .await;
        let complete = bodies::complete(&*w.state().await);
        w.send(W1, complete).await;

        let consumer: ConsumerId = id("reader");
        let pending = w.host().journal().pending(&consumer, 100).unwrap();
        let kinds: Vec<&str> = pending
            .iter()
            .map(|(_, sealed)| sealed.event.kind.name())
            .collect();
        assert_eq!(kinds, LIFE);
        let state = w.state().await;
        assert_eq!((state.lifecycle, money(w)), (Lifecycle::Completed, (6, 0)));

        assert_eq!(state.manifests.size(), state.nodes.size());

        let before = Mark::of(w).await;
        w.close(Shutdown::Drain).await;
        w.open().await;
        assert_eq!(Mark::of(w).await, before);
        let replayed = replay(&export_of(w));
        let folded = &replayed.runs[&state.stream];
        assert_eq!(replayed.events, LIFE.len());
        assert_eq!(
            hash_of(&report::of(folded)),
            hash_of(&report::of(&*w.state().await))
        );

        let (last, _) = pending.last().unwrap();
        w.host().journal().acknowledge(&consumer, *last).unwrap();
        assert!(
            w.host()
                .journal()
                .pending(&consumer, 100)
                .unwrap()
                .is_empty()
        );
        w.close(Shutdown::Drain).await;
        w.open().await;
        assert!(
            w.host()
                .journal()
                .pending(&consumer, 100)
                .unwrap()
                .is_empty()
        );
        assert_eq!(Mark::of(w).await, before);
    })
    .await;
}

/// Asks twice in a world that loses replies, and demands the first answer without an event.
macro_rules! ask {
    ($w:expr, $call:expr) => {{
        let first = $call.await.expect(stringify!($call));
        if $w.lost {
            let again = $call.await.expect(stringify!($call));
            assert!(again.event.is_none());
            assert_eq!(
                (again.revision, &again.result),
                (first.revision, &first.result)
            );
        }
    }};
}

/// Proves HC-ENV.5, API-5: the same life by a worker's intents, in which the owner fills in revision, epoch, basis
/// and recipients, makes the same events.
#[tokio::test]
async fn the_same_life_by_intents() {
    both(lin(), async |w: &mut World| {
        for node in ["a", "b", "end"] {
            if node != "a" {
                receive_next(w, node).await;
            }
            if node == "end" {
                for (kind, actor, name, verdict) in [
                    ("verify", W1, "v-1", "PASS"),
                    ("accept", HUMAN, "c-1", "ACCEPTED"),
                ] {
                    let body = bodies::assess(&*w.state().await, kind, name, verdict);
                    w.send(actor, body).await;
                }
            }
            work_by_intents(w, node).await;
        }
        let complete = bodies::complete(&*w.state().await);
        w.send(W1, complete).await;
        let pending = w
            .host()
            .journal()
            .pending(&id::<ConsumerId>("reader"), 100)
            .unwrap();
        let mut kinds: Vec<&str> = pending
            .iter()
            .map(|(_, sealed)| sealed.event.kind.name())
            .collect();
        let mut life = LIFE.to_vec();
        // The two assessments come a little later here; nothing else differs.
        kinds.sort_unstable();
        life.sort_unstable();
        assert_eq!(kinds, life);
        assert_eq!(
            (w.state().await.lifecycle, money(w)),
            (Lifecycle::Completed, (6, 0))
        );
    })
    .await;
}

/// Waits for the next delivery and receives it as a worker does.
async fn receive_next(w: &mut World, node: &str) {
    let worker = w.engine().worker(w.capability(W1), id(MISSION), id(&w.run));
    let delivery = worker.next_delivery().await.expect("a delivery");
    assert_eq!(delivery.recipient.node_id.as_str(), node);
    let (claim, ack) = (
        request_id(&format!("claim-{node}")),
        request_id(&format!("ack-{node}")),
    );
    let mut claimed = worker
        .claim(&claim, &delivery.delivery_id, None)
        .await
        .expect("a claim");
    if w.lost {
        claimed = worker
            .claim(&claim, &delivery.delivery_id, None)
            .await
            .expect("the first answer");
        assert!(claimed.response.event.is_none());
    }
    let token = claimed.token.expect("a token");
    w.tokens.push(token.expose());
    let (name, handoff) = (&delivery.delivery_id, &delivery.handoff);
    let generation = DecPlus::new(Dec::from_u64(1)).unwrap();
    ask!(
        w,
        worker.acknowledge(&ack, name, handoff, &token, generation)
    );
}

/// Admits a node, has its effect if it is a task, and commits its boundary, by intents alone.
async fn work_by_intents(w: &mut World, node: &str) {
    let worker = w.engine().worker(w.capability(W1), id(MISSION), id(&w.run));
    let name = |step: &str| request_id(&format!("{step}-{node}"));
    let node_id = id(node);
    if node == "end" {
        ask!(w, worker.admit(&name("admit"), &node_id, None));
    } else {
        w.prepare(node, &bodies::action(node), None);
        let (admission_ref, attempt) = (id(&w.reference(node)), id(&w.attempt(node)));
        let proposal = w.policy.rules().admissions[&admission_ref].clone();
        let draft = Draft {
            admission_ref,
            proposal,
        };
        ask!(
            w,
            worker.admit(&name("admit"), &node_id, Some(draft.clone()))
        );
        ask!(w, worker.dispatch(&name("dispatch"), &node_id));
        let (applied, cost) = (SettledOutcome::ConfirmedApplied, Dec::from_u64(3));
        ask!(
            w,
            worker.settle(
                &name("settle"),
                &attempt,
                applied,
                cost,
                vec![id("evidence")]
            )
        );
    }
    let boundary = BoundaryIntent {
        node_id,
        status: OutcomeStatus::Completed,
        result: aiws::object! { "disposition": "COMPLETED" },
        artifacts: Vec::new(),
        criteria: Vec::new(),
        approvals: Vec::new(),
        context: Default::default(),
        cause: None,
        hold: None,
    };
    ask!(w, worker.commit_boundary(&name("commit"), boundary.clone()));
}

//! Crash boundaries: what is left when the client, an owner or the whole process goes at a bad moment.
//! Invariant: a kill is a real SIGKILL of a process that runs the same case, or a panic of the owner itself.
//! Scenarios C-02 to C-14.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiws::error::Code;
use aiws::id::{ConsumerId, DeliveryId, NodeId};
use aiws::record::{Delivery, DeliveryState, HoldReason, HoldState};
use praxis_engine::crash::{Passing, Point};
use praxis_model::command::CommandType;
use praxis_model::run::{NodeStatus, RunState};
use serde_json::json;
use tempfile::TempDir;

use crate::bodies::{self, Boundary, lin, wide};
use crate::host::run;
use crate::oracle::{money, outbox};
use crate::wire::{Sent, id};
use crate::world::{ENGINE, HUMAN, Probe, W1, W2, World, both};

/// Says to a process started by [`killed`] where its store is.
const CHILD: &str = "PRAXIS_SCENARIO_ROOT";

/// Runs the case `name` of this program again, in a process that is killed at `point` of its n-th event, and gives
/// the directory that it left.
pub fn killed(name: &str, event: u64, point: Point) -> TempDir {
    let root = TempDir::new().unwrap();
    let program = std::env::current_exe().unwrap();
    let ended = run(Command::new(program)
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, root.path())
        .env("PRAXIS_CRASH_AT", format!("{event}:{point}")));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.signal(), Some(9), "{:?}\n{said}", ended.status);
    assert!(said.contains(&format!("{event}:{point}")), "{said}");
    root
}

/// The root of the store, in a process that is to be killed.
pub fn doomed() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Sends a request whose answer nobody will hear, and leaves its bytes where the next process finds them.
async fn last_words(w: &mut World, root: &Path, sent: &Sent) {
    std::fs::write(root.join("sent.json"), sent.bytes()).unwrap();
    let _ = w.once(W1, &sent.bytes()).await;
    panic!("the process outlived its crash point");
}

fn delivery(state: &RunState, id_text: &str) -> Delivery {
    state
        .deliveries
        .get(&id::<DeliveryId>(id_text))
        .expect("a delivery")
        .record
        .clone()
}

fn status(state: &RunState, node: &str) -> NodeStatus {
    state.nodes.get(&id::<NodeId>(node)).expect("a node").status
}

fn open_holds(state: &RunState) -> Vec<HoldReason> {
    state
        .holds
        .values()
        .filter(|hold| hold.state == HoldState::Open)
        .map(|hold| hold.reason)
        .collect()
}

/// A probe that panics at a point of a run's event of one type, once it is armed.
fn trap(run: &'static str, kind: CommandType, point: Point) -> (Probe, Arc<AtomicBool>) {
    let armed = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&armed);
    let probe = move |passing: &Passing| {
        let here = passing.kind == kind && passing.point == point;
        let mine = passing.run_id.as_ref().is_some_and(|id| id.as_str() == run);
        if here && mine && switch.swap(false, Ordering::SeqCst) {
            panic!("the owner of {run} fails here, as the case wants it");
        }
    };
    (Arc::new(probe), armed)
}

/// Proves C-02, FV-REC.1: killed before the boundary was sent; it is sent under the new epoch,
/// and spent once.
#[tokio::test]
async fn c_02_boundary_never_sent() {
    if let Some(root) = doomed() {
        let mut w = World::at(&root, false, None).await;
        w.start(&lin(), &bodies::config()).await;
        w.apply("a").await;
        panic!("the process outlived its crash point");
    }
    for lost in [false, true] {
        // openMission, startRun, activateGraph, admitConsumer, dispatch, settle.
        let root = killed("crash::c_02_boundary_never_sent", 6, Point::AfterCommit);
        let mut w = World::closed(root.path(), lost, None);
        // The policy of this host asks a human to take over, so the engine by itself may not.
        w.policy.rules().recovery.remove(ENGINE);
        w.open().await;
        let state = w.state().await;
        w.refuse(
            W1,
            Boundary::completed(json!({})).of(&state, "a"),
            Code::AuthorizationDenied,
        )
        .await;
        let answer = w.send(HUMAN, bodies::recover(1, Some("decision-1"))).await;
        assert_eq!(
            answer
                .result
                .get("unresolved")
                .and_then(|list| list.as_array())
                .map(<[_]>::len),
            Some(0)
        );
        let state = w.state().await;
        assert_eq!(
            (state.epoch, status(&state, "a"), status(&state, "b")),
            (2, NodeStatus::Active, NodeStatus::Pending)
        );
        assert!(state.manifests.is_empty() && state.deliveries.is_empty());
        assert_eq!(open_holds(&state), [HoldReason::Restart]);
        w.release_holds().await;
        w.commit("a", &Boundary::completed(json!({}))).await;
        let state = w.state().await;
        assert_eq!(
            (state.manifests.size(), state.deliveries.size(), money(&w)),
            (1, 1, (3, 0))
        );
        w.finish().await;
    }
}

/// Proves C-03, HF-05.3, HF-02.7, API-5: killed right after the boundary committed, and before the reply; the
/// delivery is pending, and the same bytes get the first result with no event.
#[tokio::test]
async fn c_03_committed_pending_delivery() {
    if let Some(root) = doomed() {
        let mut w = World::at(&root, false, None).await;
        w.start(&lin(), &bodies::config()).await;
        w.apply("a").await;
        let body = Boundary::completed(json!({"answer": 42})).of(&*w.state().await, "a");
        let sent = w.request(body).await;
        last_words(&mut w, &root, &sent).await;
    }
    for point in [Point::AfterCommit, Point::BeforeReply] {
        for lost in [false, true] {
            let root = killed("crash::c_03_committed_pending_delivery", 7, point);
            let mut w = World::at(root.path(), lost, None).await;
            let sent = std::fs::read(root.path().join("sent.json")).unwrap();
            let state = w.state().await;
            assert_eq!(status(&state, "a"), NodeStatus::Completed);
            let pending = delivery(&state, "d-run-a-b");
            assert_eq!(
                (pending.state, pending.generation.get()),
                (DeliveryState::Pending, 0)
            );
            let events = outbox(&w).len();
            for _ in 0..2 {
                let answer = w.once(W1, &sent).await.expect("the first result");
                assert!(answer.event.is_none());
                assert_eq!(answer.revision, 5);
                assert_eq!(
                    answer.result.get("checkpointId").and_then(|id| id.as_str()),
                    Some("k-run-a")
                );
            }
            assert_eq!(outbox(&w).len(), events);
            assert_eq!(w.state().await.deliveries.size(), 1);
            w.finish().await;
        }
    }
}

/// Proves C-05, HF-02.7, HD-02.1, HD-02.4, HD-02.10, T-24: a lost claim is asked for again; the token works until
/// the lease ends, and not after.
#[tokio::test]
async fn c_05_lost_claim_response() {
    both(wide(), async |w: &mut World| {
        w.work("a").await;
        let (first, second) = (w.delivery("a", "b"), w.delivery("a", "b2"));
        let (one, two) = (w.request(bodies::claim(&first)).await, {
            w.request(bodies::claim(&second)).await
        });
        // The answer is lost: nothing of it is used.
        drop(w.once(W1, &one.bytes()).await.expect("a claim"));
        let mut two = two;
        two.revision = w.state().await.head.revision.to_string();
        drop(w.once(W1, &two.bytes()).await.expect("a claim"));
        let events = outbox(w).len();
        let hash = |token: &str| aiws::digest::sha256(token.as_bytes());

        w.clock.set(1050);
        let again = w.once(W1, &one.bytes()).await.expect("the first result");
        assert!(again.event.is_none());
        assert_eq!(
            again
                .result
                .get("generation")
                .and_then(|generation| generation.as_str()),
            Some("1")
        );
        let token = w
            .once(W1, &two.bytes())
            .await
            .expect("the first result")
            .token
            .expect("a live token");
        let stored = delivery(&*w.state().await, &first)
            .claim
            .expect("a claim")
            .token_hash;
        assert_eq!(again.token.as_deref().map(hash), Some(stored));
        w.ack(W1, &second, &token).await;
        assert_eq!(outbox(w).len(), events + 1);

        w.clock.set(1100);
        let late = w.once(W1, &one.bytes()).await.expect("the first result");
        assert!(late.event.is_none() && late.token.is_none());
        assert_eq!(
            (late.revision, &late.result),
            (again.revision, &again.result)
        );
        let dead = w
            .ack_of(&first, &again.token.expect("the token of 1050"))
            .await;
        w.refuse(W1, dead, Code::ClaimExpired).await;
        w.claim(W2, &first).await;
        assert_eq!(delivery(&*w.state().await, &first).generation.get(), 2);
        assert_eq!(
            w.state()
                .await
                .deliveries
                .get(&id::<DeliveryId>(&first))
                .unwrap()
                .ended_claims
                .len(),
            1
        );
    })
    .await;
}

/// Proves C-06, HD-02.5, HD-02.8, HD-01.T3, HS-06.1, T-70: the owner crashes between claim and receipt; the old
/// token is refused at each step, and the next claim has generation 2.
#[tokio::test]
async fn c_06_crash_between_claim_and_ack() {
    for lost in [false, true] {
        let (probe, armed) = trap("run", CommandType::Verify, Point::BeforeCommit);
        let mut w = World::new(lost, Some(probe)).await;
        w.start(&lin(), &bodies::config()).await;
        w.work("a").await;
        let name = w.delivery("a", "b");
        let token = w.claim(W1, &name).await;
        let mut old = w.request(w.ack_of(&name, &token).await).await;

        let verify = bodies::assess(&*w.state().await, "verify", "v-1", "PASS");
        let verify = w.request(verify).await;
        armed.store(true, Ordering::SeqCst);
        let crashed = w.once(HUMAN, &verify.bytes()).await.expect_err("a crash");
        assert_eq!(crashed.code(), Code::ActorLost);
        let state = w.wait_for_epoch(2).await;
        assert_eq!(
            (delivery(&state, &name).state, open_holds(&state)),
            (DeliveryState::Pending, vec![HoldReason::Restart])
        );
        assert!(state.verifications.is_empty());

        w.refuse_sent(W1, &old, Code::RevisionConflict).await;
        old.revision = w.state().await.head.revision.to_string();
        w.refuse_sent(W1, &old, Code::StaleOwner).await;
        old.epoch = Some("2".to_owned());
        w.refuse_sent(W1, &old, Code::HoldActive).await;
        w.release_holds().await;
        old.revision = w.state().await.head.revision.to_string();
        w.refuse_sent(W1, &old, Code::StaleOwner).await;
        w.receive(W2, &name).await;
        let received = delivery(&*w.state().await, &name);
        assert_eq!(
            (received.state, received.generation.get()),
            (DeliveryState::Acknowledged, 2)
        );
        w.finish().await;
    }
}

/// Proves C-08, HD-03.2, HD-03.9, HD-01.T10, HS-06.2: the receipt committed and the process was killed before the reply;
/// under the new epoch the node is admitted once, with no second claim.
#[tokio::test]
async fn c_08_acknowledged_not_admitted() {
    if let Some(root) = doomed() {
        let mut w = World::at(&root, false, None).await;
        w.start(&lin(), &bodies::config()).await;
        w.work("a").await;
        let token = w.claim(W1, "d-run-a-b").await;
        let sent = w.request(w.ack_of("d-run-a-b", &token).await).await;
        last_words(&mut w, &root, &sent).await;
    }
    for lost in [false, true] {
        // As C-03, then claimDelivery and acknowledgeDelivery.
        let root = killed(
            "crash::c_08_acknowledged_not_admitted",
            9,
            Point::BeforeReply,
        );
        let mut w = World::at(root.path(), lost, None).await;
        let state = w.state().await;
        assert_eq!(
            (state.epoch, open_holds(&state)),
            (2, vec![HoldReason::Restart])
        );
        assert_eq!(
            delivery(&state, "d-run-a-b").state,
            DeliveryState::Acknowledged
        );
        let sent = std::fs::read(root.path().join("sent.json")).unwrap();
        let replayed = w.once(W1, &sent).await.expect("the first result");
        assert!(replayed.event.is_none());
        let admission = w.admission("b").await;
        w.refuse(W1, admission, Code::HoldActive).await;
        w.release_holds().await;
        w.admit("b").await;
        assert_eq!(money(&w), (3, 3));
        let again = w.admission("b").await;
        w.refuse(W1, again, Code::InputSetConflict).await;
        assert_eq!(delivery(&*w.state().await, "d-run-a-b").generation.get(), 1);
        w.finish().await;
    }
}

/// Proves C-13, OUT-1, OUT-2, OUT-3: a consumer stored three of five events and acknowledged two; after a restart
/// the third comes again under the same id, then the others, and the runs are as they were.
#[tokio::test]
async fn c_13_outbox() {
    both(lin(), async |w: &mut World| {
        w.admit("a").await;
        w.dispatch("a").await;
        let consumer = id::<ConsumerId>("reader");
        let pending = |w: &World| {
            w.host()
                .journal()
                .pending(&consumer, 100)
                .expect("an outbox")
        };
        let first = pending(w);
        assert_eq!(first.len(), 5);
        w.host()
            .journal()
            .acknowledge(&consumer, first[1].0)
            .expect("an acknowledgement");
        let before = w.state().await;
        w.restart().await;
        let again = pending(w);
        let ids = |events: &[(u64, praxis_journal_format::Sealed)]| {
            events
                .iter()
                .map(|(sequence, sealed)| (*sequence, sealed.hash))
                .collect::<Vec<_>>()
        };
        // The restart itself is one event more: the recovery of the run.
        assert_eq!(again.len(), 4);
        assert_eq!(ids(&first[2..]), ids(&again[..3]));
        assert_eq!(again[3].1.event.kind, CommandType::RecoverOwnership);
        w.host()
            .journal()
            .acknowledge(&consumer, again[3].0)
            .expect("an acknowledgement");
        assert!(pending(w).is_empty());
        assert_eq!(
            w.state().await.head.revision.get(),
            before.head.revision.get() + 1
        );
    })
    .await;
}

/// Proves C-14, HC-RO.1, HD-02.8, HF-02.7, FV-REC.4: the owner panics after the first of three commands committed;
/// that one counts, the others are reported lost, and another run goes on.
#[tokio::test]
async fn c_14_actor_panic_with_queued_messages() {
    for lost in [false, true] {
        let (probe, armed) = trap("r1", CommandType::Settle, Point::AfterCommit);
        let mut w = World::new(lost, Some(probe)).await;
        w.open_mission(&bodies::config()).await;
        for run in ["r1", "r2"] {
            w.run = run.to_owned();
            w.start_run(&wide()).await;
        }
        w.run = "r1".to_owned();
        w.work("a").await;
        w.admit("c").await;
        w.dispatch("c").await;
        let (held, free) = (w.delivery("a", "b"), w.delivery("a", "b2"));
        let token = w.claim(W1, &held).await;
        let settle = bodies::settle(
            &*w.state().await,
            "settle",
            &w.attempt("c"),
            "CONFIRMED_APPLIED",
            3,
        );
        let settle = w.request(settle).await;
        let mut claim = w.request(bodies::claim(&free)).await;
        let mut release = w.request(bodies::release(&held, &token, 1)).await;

        armed.store(true, Ordering::SeqCst);
        let (engine, capability) = (w.engine().clone(), w.capability(W1));
        let bytes = [settle.bytes(), claim.bytes(), release.bytes()];
        let (first, second, third) = tokio::join!(
            engine.apply(&capability, &bytes[0]),
            engine.claim(&capability, &bytes[1]),
            engine.apply(&capability, &bytes[2]),
        );
        assert_eq!(first.expect_err("a crash").code(), Code::ActorLost);
        assert_eq!(second.expect_err("a lost message").code(), Code::ActorLost);
        assert_eq!(third.expect_err("a lost message").code(), Code::ActorLost);
        assert_eq!(w.wait_for_epoch(2).await.epoch, 2);
        assert_eq!(money(&w), (6, 0));

        w.run = "r2".to_owned();
        assert_eq!(w.state().await.epoch, 1);
        w.admit("e").await;
        w.run = "r1".to_owned();

        let replayed = w.once(W1, &settle.bytes()).await.expect("the first result");
        assert!(replayed.event.is_none());
        assert_eq!(
            replayed
                .result
                .get("status")
                .and_then(|status| status.as_str()),
            Some("CONFIRMED_APPLIED")
        );
        for sent in [&mut claim, &mut release] {
            w.refuse_sent(W1, sent, Code::RevisionConflict).await;
            sent.revision = w.state().await.head.revision.to_string();
            w.refuse_sent(W1, sent, Code::StaleOwner).await;
        }
        w.refuse(W1, bodies::claim(&free), Code::HoldActive).await;
        w.refuse(W1, bodies::release(&held, &token, 1), Code::StaleOwner)
            .await;
        w.release_holds().await;
        w.receive(W2, &free).await;
        w.receive(W2, &held).await;
        assert_eq!(delivery(&*w.state().await, &held).generation.get(), 2);
        w.finish().await;
    }
}

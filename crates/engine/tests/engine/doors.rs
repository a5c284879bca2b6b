//! Doors: what is refused before it reaches an owner or a store, and what waits at them.
//! Invariant: a refusal stores nothing and starts nothing; whoever waits is woken by what it waits for.
//! Through the engine's public API, on real stores.

use aiws::decimal::{Dec, DecPlus};
use aiws::error::Code;
use aiws::json::Value;
use aiws::object;
use aiws::record::{DeliveryState, EffectClass, HoldDecision, RestartPolicy};
use aiws::token::ClaimToken;
use praxis_engine::crash::Point;
use praxis_engine::limits::MAILBOX_PERMITS;
use praxis_engine::{EffectOutcome, EffectReport, Shutdown, Worker};
use praxis_model::command::{
    AcknowledgeDelivery, Body, CommandType, Intent, PlaceHold, ReleaseDelivery, ResolveHold,
};

use crate::owners::hold;
use crate::support::{
    Open, World, action_of, boundary_of, dec, draft_of, id, intent, lin, mission, poll_once,
    settled,
};

const RUN: &str = "run";

fn worker(open: &Open, name: &str) -> Worker {
    open.engine.worker(open.agent(name), mission(), id(RUN))
}

fn applied(evidence: &str) -> EffectReport {
    EffectReport {
        outcome: EffectOutcome::Applied { actual: dec(3) },
        evidence: object! { "seen": evidence },
    }
}

/// Node a is in flight.
async fn dispatched(open: &Open) -> Worker {
    open.lin(RUN, RestartPolicy::Human, false).await;
    let worker = worker(open, "agent:w1");
    worker
        .admit(&id("q-admit"), &id("a"), Some(draft_of("a")))
        .await
        .expect("admitted");
    worker
        .dispatch(&id("q-dispatch"), &id("a"))
        .await
        .expect("dispatched");
    worker
}

/// Node a's result is on its way to b, and nobody has claimed it.
async fn delivered(open: &Open) -> (Worker, aiws::record::Delivery) {
    let worker = dispatched(open).await;
    worker
        .report_outcome(&id("at-a-1"), applied("done"))
        .await
        .expect("recorded");
    worker
        .commit_boundary(&id("q-boundary"), boundary_of(&lin().nodes[0]))
        .await
        .expect("committed");
    let state = open.state(RUN).await;
    let delivery = state.deliveries.values().next().expect("a delivery");
    (worker, delivery.record.clone())
}

/// Proves T-24: what the log shows of a claim's token does not stand for the token, in an acknowledgement or in a
/// release; another token is refused too, and nothing changes before the right one comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_24_a_fingerprint_is_no_token() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    let (worker, delivery) = delivered(&open).await;
    let claimed = worker
        .claim(&id("q-claim"), &delivery.delivery_id, None)
        .await;
    let token = claimed.expect("claimed").token.expect("a token");
    let state = open.state(RUN).await;
    let record = &state.deliveries[&delivery.delivery_id].record;
    let claim = record.claim.clone().expect("a claim");
    let generation = DecPlus::new(Dec::from(claim.generation)).expect("positive");
    let bodies = [
        Body::AcknowledgeDelivery(AcknowledgeDelivery {
            delivery_id: delivery.delivery_id.clone(),
            handoff: delivery.handoff.clone(),
            claim_token: claim.token_hash,
            generation,
        }),
        Body::ReleaseDelivery(ReleaseDelivery {
            delivery_id: delivery.delivery_id.clone(),
            claim_token: claim.token_hash,
            generation,
        }),
    ];
    let agent = open.agent("agent:w1");
    for (number, body) in bodies.into_iter().enumerate() {
        let request = intent(RUN, &format!("q-bare-{number}"), Intent::Command { body });
        let bare = open.engine.submit(&agent, &request).await;
        assert_eq!(bare.expect_err("no token").code(), Code::SchemaInvalid);
        let other = ClaimToken::from_bytes([9; 32]);
        let wrong = open
            .engine
            .submit_with_token(&agent, &request, &other)
            .await;
        assert_eq!(wrong.expect_err("another token").code(), Code::StaleOwner);
    }
    assert_eq!(
        open.state(RUN).await.head,
        state.head,
        "refusals change nothing"
    );
    let right = worker
        .acknowledge(
            &id("q-ack"),
            &delivery.delivery_id,
            &delivery.handoff,
            &token,
            generation,
        )
        .await;
    right.expect("acknowledged");
    drop(worker);
    world.close(open, Shutdown::Drain).await;
}

/// Bytes below the store of artifacts.
fn stored_bytes(world: &World) -> u64 {
    let (mut bytes, mut folders) = (0, vec![world.dir.path().join("artifacts")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => bytes += entry.metadata().expect("a file").len(),
            }
        }
    }
    bytes
}

/// Proves T-25: whoever may not settle learns nothing about attempts from a report, and nothing of it is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_25_a_report_without_authority_is_refused_before_anything_else() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    drop(dispatched(&open).await);
    let denied = || world.policy.denied.lock().expect("policy");
    denied().insert(CommandType::Settle);
    let stranger = worker(&open, "agent:stranger");
    let before = stored_bytes(&world);
    for attempt in ["at-a-1", "no-such-attempt"] {
        let refused = stranger
            .report_outcome(&id(attempt), applied("a stranger's word"))
            .await
            .expect_err("no authority");
        assert_eq!(refused.code(), Code::AuthorizationDenied, "{attempt}");
    }
    assert_eq!(stored_bytes(&world), before);
    denied().clear();
    let unknown = stranger
        .report_outcome(&id("no-such-attempt"), applied("x"))
        .await;
    assert_eq!(unknown.expect_err("none").code(), Code::NotFound);
    drop(stranger);
    world.close(open, Shutdown::Drain).await;
}

/// Reports and looks at the state take room in the mailbox like any request, and the next one is BUSY (T-55).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_and_looks_take_room_in_the_mailbox() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    let worker = dispatched(&open).await;
    let (entered, has_entered) = tokio::sync::oneshot::channel();
    let (let_go, wait) = std::sync::mpsc::channel::<()>();
    world.at_point(
        |passing| passing.point == Point::BeforeCommit && passing.kind == CommandType::Settle,
        move || {
            let _ = entered.send(());
            let _ = wait.recv();
        },
    );
    let (attempt, m, run) = (id("at-a-1"), mission(), id(RUN));
    let mut sent: Vec<std::pin::Pin<Box<dyn Future<Output = bool> + Send + '_>>> = Vec::new();
    for number in 0..MAILBOX_PERMITS {
        let (worker, attempt, engine, m, run) = (&worker, &attempt, &open.engine, &m, &run);
        sent.push(match number % 2 {
            0 => {
                Box::pin(async move { worker.report_outcome(attempt, applied("x")).await.is_ok() })
            }
            _ => Box::pin(async move { engine.run_state(m, run).await.is_ok() }),
        });
    }
    for future in &mut sent {
        assert!(poll_once(future).await.is_none(), "there is room");
    }
    settled(has_entered).await.expect("the first is in hand");
    let report = settled(worker.report_outcome(&attempt, applied("y"))).await;
    assert_eq!(report.expect_err("full").code(), Code::Busy);
    let look = settled(open.engine.run_state(&m, &run)).await;
    assert_eq!(look.expect_err("full").code(), Code::Busy);
    let_go.send(()).expect("the owner waits");
    for answer in sent {
        assert!(settled(answer).await);
    }
    drop(worker);
    world.close(open, Shutdown::Drain).await;
}

/// Proves HD-02.4: whoever waits for a delivery is woken when the lease of another worker ends, though nothing is
/// committed then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd_02_4_a_waiting_worker_wakes_when_a_lease_ends() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    let (holder, delivery) = delivered(&open).await;
    let claimed = holder
        .claim(&id("q-claim"), &delivery.delivery_id, None)
        .await;
    claimed.expect("claimed");
    let waiting = worker(&open, "agent:w2");
    let mut next: std::pin::Pin<Box<dyn Future<Output = _> + Send + '_>> =
        Box::pin(waiting.next_delivery());
    assert!(poll_once(&mut next).await.is_none(), "it is claimed");
    world.clock.set(5_000);
    let found = settled(next).await.expect("a delivery");
    assert_eq!(found.delivery_id, delivery.delivery_id);
    assert_eq!(found.state, DeliveryState::Claimed, "no event said so");
    drop((waiting, holder));
    world.close(open, Shutdown::Drain).await;
}

/// Proves HS-01.3: a delivery whose consumer is held is not offered to a worker, and is once the hold is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hs_01_3_a_held_delivery_is_not_offered() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    let (worker, delivery) = delivered(&open).await;
    let placed = Body::PlaceHold(PlaceHold { hold: hold("h") });
    open.command(RUN, "q-hold", placed).await.expect("held");
    let mut next: std::pin::Pin<Box<dyn Future<Output = _> + Send + '_>> =
        Box::pin(worker.next_delivery());
    assert!(poll_once(&mut next).await.is_none(), "it is held");
    let recheck = ResolveHold {
        hold_id: id("h"),
        decision: HoldDecision::Recheck,
        decision_ref: id("decision"),
        evidence: Vec::new(),
        rule: None,
    };
    let resolved = open.command(RUN, "q-recheck", Body::ResolveHold(recheck));
    resolved.await.expect("resolved");
    let found = settled(next).await.expect("a delivery");
    assert_eq!(found.delivery_id, delivery.delivery_id);
    drop(worker);
    world.close(open, Shutdown::Drain).await;
}

/// Proves STO-4: a result so deep that its event could not be read back is the caller's mistake, and the store goes
/// on: what is stored can be exported and read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sto_4_what_could_not_be_read_back_is_refused() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    let worker = dispatched(&open).await;
    worker
        .report_outcome(&id("at-a-1"), applied("done"))
        .await
        .expect("recorded");
    let before = open.state(RUN).await.head;
    let mut refused = 0;
    for depth in [64usize, 63, 62, 61, 60, 59, 58] {
        let mut boundary = boundary_of(&lin().nodes[0]);
        let deep = (0..depth).fold(Value::Int(1), |value, _| Value::Array(vec![value]));
        boundary.result = object! { "deep": deep };
        match worker
            .commit_boundary(&id(&format!("q-{depth}")), boundary)
            .await
        {
            Ok(_) => break,
            Err(error) => {
                assert_eq!(error.code(), Code::SchemaInvalid, "{depth}: {error}");
                assert_eq!(open.state(RUN).await.head, before, "{depth}");
                refused += 1;
            }
        }
    }
    assert!(
        (1..7).contains(&refused),
        "some are too deep and one is not: {refused}"
    );
    let mut export = Vec::new();
    open.host.journal().export(&mut export).expect("exported");
    praxis_journal_format::export::read(&export).expect("read");
    let report = open
        .host
        .journal()
        .verify(&mut |_, _| ())
        .expect("verified");
    assert!(report.is_sound(), "{:?}", report.findings);
    drop(worker);
    world.close(open, Shutdown::Drain).await;
}

/// A grant that the mission's owner committed wakes the runs that wait for it, also when the owner failed before it
/// could tell them (T-08).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mission_owner_that_fails_after_its_commit_wakes_the_runs() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.mission(RestartPolicy::Auto, false).await;
    let denied = || world.policy.denied.lock().expect("policy");
    denied().insert(CommandType::AdmitConsumer);
    open.run("driven-one").await;
    let mut refused = world.policy.refused.subscribe();
    settled(refused.wait_for(|count| *count > 0))
        .await
        .expect("refused");
    // Answered behind the refused step, so the owner waits now for something to move.
    let waiting = open.state("driven-one").await;
    assert!(waiting.operations.is_empty(), "{:?}", action_of(&id("a")));
    denied().clear();
    world.at_point(
        |passing| passing.point == Point::AfterCommit && passing.kind == CommandType::StartRun,
        || panic!("the mission's owner fails"),
    );
    let lost = open
        .engine
        .start_run(&open.human(), &mission(), &id("q-other"), id("other"))
        .await;
    assert_eq!(lost.expect_err("lost").code(), Code::ActorLost);
    open.until("driven-one", |state| !state.operations.is_empty())
        .await;
    world.close(open, Shutdown::Drain).await;
}

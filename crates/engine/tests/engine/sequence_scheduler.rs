//! The scheduler's sequences: what a driven run appends together, what it does where it may not, and how long an outcome
//! waits.
//! Invariant: the log itself says what was appended together; deep verification ends every case.
//! Tests of the scheduler over sequences.

use std::sync::{Arc, Mutex};

use aiws::record::{AttemptStatus, EffectClass, RestartPolicy};
use praxis_engine::Shutdown;
use praxis_engine::crash::{Passing, Point};
use praxis_model::command::{Body, CommandType};
use praxis_model::run::{NodeStatus, RunState};

use crate::sequences::{appends, events, sound};
use crate::support::{Behaviour, World, id, settled};

const DRIVEN: &str = "driven";

/// Counts the durable commits of a run's appends.
fn counted(world: &World) -> Arc<Mutex<Vec<String>>> {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let wanted = move |passing: &Passing| {
        if passing.point == Point::AfterCommit && passing.run_id.is_some() {
            kept.lock().expect("seen").push(passing.names());
        }
        false
    };
    world.at_point(wanted, || ());
    seen
}

fn is_done(state: &RunState, node: &str) -> bool {
    let own = state.nodes.get(node);
    own.is_some_and(|own| own.status == NodeStatus::Completed)
}

/// Proves T-82, FV-EFF.1: the scheduler takes two commits for a task where it took six with each command alone: one that
/// launches it and one that ends it; no call comes before its DISPATCHED is durable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_the_scheduler_takes_two_commits_for_a_task() {
    let world = World::new(EffectClass::External);
    let seen = counted(&world);
    let open = world.open().await;
    open.lin(DRIVEN, RestartPolicy::Auto, false).await;
    open.until(DRIVEN, |state| is_done(state, "end")).await;
    let expected = [
        "activateGraph",
        "admitConsumer+dispatch",
        "settle+commitBoundary",
        "claimDelivery+acknowledgeDelivery+admitConsumer+dispatch",
        "settle+commitBoundary",
        "claimDelivery+acknowledgeDelivery+admitConsumer",
        "commitBoundary",
    ];
    assert_eq!(appends(&open, DRIVEN), expected);
    assert_eq!(*seen.lock().expect("seen"), expected);
    println!(
        "{} events of LIN in {} commits",
        events(&open, DRIVEN).len(),
        expected.len()
    );
    assert_eq!(world.outside.count(), 2);
    assert!(
        !world
            .outside
            .early
            .load(std::sync::atomic::Ordering::SeqCst)
    );
    assert_eq!(*world.driver.asked.lock().expect("asked"), (2, 3));
    sound(&open);
    world.close(open, Shutdown::Drain).await;
}

/// Proves T-82: what the scheduler may not do as one it does in the parts that stand alone: a dispatch that is refused
/// leaves the node admitted and its attempt prepared, an admission that is refused leaves the receipt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_the_scheduler_goes_on_in_parts() {
    for (denied, expected) in [
        (
            CommandType::Dispatch,
            "claimDelivery+acknowledgeDelivery+admitConsumer",
        ),
        (
            CommandType::AdmitConsumer,
            "claimDelivery+acknowledgeDelivery",
        ),
    ] {
        let world = World::new(EffectClass::External);
        let open = world.open().await;
        let mut refusals = world.policy.refused.subscribe();
        let gate = world.outside.gate.acquire_many(1000).await.expect("a gate");
        open.lin(DRIVEN, RestartPolicy::Auto, false).await;
        world
            .outside
            .arrived
            .acquire()
            .await
            .expect("a call")
            .forget();
        world.policy.denied.lock().expect("policy").insert(denied);
        drop(gate);
        // Once as a part of the sequence, once alone; then it waits.
        settled(refusals.wait_for(|count| *count == 2))
            .await
            .expect("refused");
        let log = appends(&open, DRIVEN);
        assert_eq!(log.last().map(String::as_str), Some(expected));
        assert_eq!(world.outside.count(), 1);
        world.policy.denied.lock().expect("policy").clear();
        open.command(DRIVEN, "q-wake", verify_of(DRIVEN))
            .await
            .expect("an event");
        open.until(DRIVEN, |state| is_done(state, "end")).await;
        assert_eq!(world.outside.count(), 2);
        sound(&open);
        world.close(open, Shutdown::Drain).await;
    }
}

/// Proves T-82, FV-ACC.5, FV-EFF.1: the scheduler prepares and dispatches another try with one append.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_another_try_is_one_append() {
    let world = World::new(EffectClass::External);
    *world.outside.behaviour.lock().expect("behaviour") = Behaviour::DeclineFirst;
    let open = world.open().await;
    open.lin(DRIVEN, RestartPolicy::Auto, false).await;
    open.until(DRIVEN, |state| is_done(state, "end")).await;
    let log = appends(&open, DRIVEN);
    let expected = [
        "activateGraph",
        "admitConsumer+dispatch",
        "settle",
        "retry+dispatch",
        "settle+commitBoundary",
    ];
    assert_eq!(log[..expected.len()], expected);
    assert_eq!(world.outside.count(), 3);
    let early = &world.outside.early;
    assert!(!early.load(std::sync::atomic::Ordering::SeqCst));
    sound(&open);
    world.close(open, Shutdown::Drain).await;
}

/// Proves T-82: a dispatch that is refused leaves the other try prepared, and it alone is what goes on later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_another_try_goes_on_in_parts() {
    let world = World::new(EffectClass::External);
    *world.outside.behaviour.lock().expect("behaviour") = Behaviour::DeclineFirst;
    let open = world.open().await;
    let mut refusals = world.policy.refused.subscribe();
    let gate = world.outside.gate.acquire_many(1000).await.expect("a gate");
    open.lin(DRIVEN, RestartPolicy::Auto, false).await;
    let arrived = world.outside.arrived.acquire().await;
    arrived.expect("a call").forget();
    let denied = |denied: bool| {
        let mut all = world.policy.denied.lock().expect("policy");
        match denied {
            true => all.insert(CommandType::Dispatch),
            false => all.remove(&CommandType::Dispatch),
        };
    };
    denied(true);
    drop(gate);
    // Once as a part of the sequence, once alone; then it waits.
    settled(refusals.wait_for(|count| *count == 2))
        .await
        .expect("refused");
    let log = appends(&open, DRIVEN);
    assert_eq!(log[log.len() - 2..], ["settle", "retry"]);
    assert_eq!(world.outside.count(), 1);
    denied(false);
    open.command(DRIVEN, "q-wake", verify_of(DRIVEN))
        .await
        .expect("an event");
    open.until(DRIVEN, |state| is_done(state, "end")).await;
    assert_eq!(world.outside.count(), 3);
    sound(&open);
    world.close(open, Shutdown::Drain).await;
}

/// Proves T-29, HS-04.6: the clock steps back between a driven run's claim and its receipt, which are one append. No log has
/// that claim: nobody is deposed for it, no restart is held, and the step is taken by the clock as it is then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_29_a_claim_that_no_log_has_deposes_nobody() {
    // Once where the receipt is only drawn up, to ask the program what follows, and once where it is taken.
    for (policy, number) in [
        (RestartPolicy::Auto, 1),
        (RestartPolicy::Auto, 2),
        (RestartPolicy::Human, 2),
    ] {
        let world = World::new(EffectClass::External);
        world.clock.set(20_000);
        let clock = Arc::clone(&world.clock);
        *world.policy.asked.lock().expect("policy") = Some((
            CommandType::AcknowledgeDelivery,
            number,
            Box::new(move || clock.set(2_000)),
        ));
        let open = world.open().await;
        open.lin(DRIVEN, policy, false).await;
        let state = open.until(DRIVEN, |state| is_done(state, "end")).await;
        assert_eq!(open.engine.clock().steps, 1);
        assert_eq!((state.epoch, state.holds.size()), (1, 0), "{policy}");
        assert_eq!(world.outside.count(), 2);
        sound(&open);
        world.close(open, Shutdown::Drain).await;
    }
}

fn verify_of(run: &str) -> Body {
    Body::Verify(praxis_model::command::Verify {
        assessment_id: id("v"),
        run_id: id(run),
        subject: id("result"),
        verdict: aiws::record::VerificationVerdict::Fail,
        evidence: vec![id("seen")],
    })
}

/// Proves T-82, FV-EFF.2: a program that takes its time does not hold an outcome back: it is recorded alone, the program
/// is not asked a second time, and its answer is the boundary.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_an_outcome_does_not_wait_for_a_slow_program() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    let thinks = world
        .driver
        .thinks
        .acquire_many(1000)
        .await
        .expect("a gate");
    open.lin(DRIVEN, RestartPolicy::Auto, false).await;
    let confirmed = |state: &Arc<RunState>| {
        let mut attempts = state.attempts.values();
        attempts.any(|attempt| attempt.status == AttemptStatus::ConfirmedApplied)
    };
    open.until(DRIVEN, confirmed).await;
    assert_eq!(
        appends(&open, DRIVEN).last().map(String::as_str),
        Some("settle")
    );
    assert_eq!(world.driver.asked.lock().expect("asked").1, 1);
    drop(thinks);
    open.until(DRIVEN, |state| is_done(state, "end")).await;
    let log = appends(&open, DRIVEN);
    assert_eq!(log[2..4], ["settle", "commitBoundary"]);
    assert_eq!(world.driver.asked.lock().expect("asked").1, 3);
    sound(&open);
    world.close(open, Shutdown::Drain).await;
}

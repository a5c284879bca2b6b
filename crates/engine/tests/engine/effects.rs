//! Effects whose answers are lost: late reports, look-ups, the contract's rule for lost reads, shutdown at once.
//! Invariant: no outcome is guessed; the outside's own record says how often it was called.
//! Tests of the effect workers and of reports.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use aiws::record::{AttemptStatus, EffectClass, HoldReason, RestartPolicy, SettledOutcome};
use praxis_engine::crash::Point;
use praxis_engine::{Capability, EffectOutcome, EffectReport, Shutdown};
use praxis_model::command::{Body, CommandType, Intent, Reconcile, Verify};
use praxis_model::run::RunState;

use crate::support::{Behaviour, Open, World, again, dec, draft_of, id, intent, mission, settled};

const RUN: &str = "driven";

fn first(state: &RunState) -> Option<AttemptStatus> {
    state.attempts.values().next().map(|attempt| attempt.status)
}

/// Holds every call back until the test lets it go.
fn hold_back(world: &World) {
    world.outside.gate.forget_permits(1000);
}

/// Waits until a call came in.
async fn arrival(world: &World) {
    settled(world.outside.arrived.acquire())
        .await
        .expect("open")
        .forget();
}

async fn fail_the_owner(world: &World, open: &Open) {
    world.at_point(
        |passing| passing.point == Point::BeforeReply && passing.kind == CommandType::Verify,
        || panic!("the owner fails"),
    );
    let body = Body::Verify(Verify {
        assessment_id: id("v"),
        run_id: id(RUN),
        subject: id("result"),
        verdict: aiws::record::VerificationVerdict::Fail,
        evidence: vec![id("seen")],
    });
    let request = intent(RUN, "q-fail", Intent::Command { body });
    let human = open.human();
    again(|| Box::pin(open.engine.submit(&human, &request)))
        .await
        .expect("replayed by the next owner");
}

/// Proves HD-02.12: a report that comes after the owner changed is evidence that the current owner settles
/// under its own epoch; the effect is called once and the run goes on (T-18).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd_02_12_a_late_report_is_reconciled_by_the_new_owner() {
    let world = World::new(EffectClass::External);
    hold_back(&world);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    arrival(&world).await;
    fail_the_owner(&world, &open).await;
    let state = open.until(RUN, |state| state.epoch == 2).await;
    assert_eq!(
        first(&state),
        Some(AttemptStatus::Dispatched),
        "recovery only lists it"
    );
    world.outside.gate.add_permits(2);
    let state = open.until(RUN, |state| state.attempts.size() == 2).await;
    let settled_first = state
        .attempts
        .values()
        .find(|attempt| attempt.epoch.get() == 1)
        .expect("the first attempt");
    assert_eq!(settled_first.status, AttemptStatus::ConfirmedApplied);
    open.until(RUN, |state| {
        state
            .attempts
            .values()
            .all(|attempt| attempt.status.is_confirmed())
    })
    .await;
    assert_eq!(world.outside.count(), 2, "one call per node");
    world.close(open, Shutdown::Drain).await;
}

/// Leaves the engine while a call is in flight, as a killed process does, and opens the store again.
async fn leave_in_flight(world: &World, lost_reads: bool) -> Open {
    hold_back(world);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, lost_reads).await;
    arrival(world).await;
    world.close(open, Shutdown::Now).await;
    world.outside.gate.add_permits(1000);
    world.open().await
}

/// Proves FV-EFF.4: an effect whose answer was lost with the engine is looked up, read-only, and the conclusive
/// answer settles it; it is not called again (T-20). So whatever its class: the rule for lost reads is for what no
/// look-up answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fv_eff_4_a_lost_answer_is_looked_up() {
    let classes = [
        (EffectClass::Idempotent, false),
        (EffectClass::External, false),
        (EffectClass::Read, true),
    ];
    for (class, rule) in classes {
        looked_up(class, rule).await;
    }
}

async fn looked_up(class: EffectClass, rule: bool) {
    let world = World::new(class);
    world.outside.answers.store(true, Ordering::SeqCst);
    let open = leave_in_flight(&world, rule).await;
    let state = open.until(RUN, |state| state.attempts.size() == 2).await;
    let lost = state
        .attempts
        .values()
        .find(|attempt| attempt.epoch.get() == 1)
        .expect("the first attempt");
    assert_eq!(lost.status, AttemptStatus::ConfirmedApplied);
    assert_eq!(lost.actual, Some(dec(3)));
    assert_eq!(world.outside.lookups.load(Ordering::SeqCst), 1);
    let reconcile = Body::Reconcile(Reconcile {
        run_id: id(RUN),
        attempt_id: lost.attempt_id.clone(),
        outcome: SettledOutcome::ConfirmedApplied,
        actual: dec(3),
        evidence: vec![id("seen")],
    });
    let request = intent(RUN, "q-anonymous", Intent::Command { body: reconcile });
    let anonymous = Capability::anonymous().expect("anonymous");
    let refused = open
        .engine
        .submit(&anonymous, &request)
        .await
        .expect_err("refused");
    assert_eq!(refused.code().name(), "AUTHORIZATION_DENIED");
    open.until(RUN, |state| {
        state
            .attempts
            .values()
            .all(|attempt| attempt.status.is_confirmed())
    })
    .await;
    assert_eq!(world.outside.count(), 2, "one call per node");
    world.close(open, Shutdown::Drain).await;
}

/// An effect of class `external` that was in flight when the engine stopped at once stays as it was,
/// with its reservation, and waits for evidence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_external_effect_waits_for_evidence() {
    let world = World::new(EffectClass::External);
    let open = leave_in_flight(&world, false).await;
    let state = open.state(RUN).await;
    assert_eq!(
        (first(&state), state.epoch),
        (Some(AttemptStatus::Dispatched), 2)
    );
    assert_eq!(
        state
            .attempts
            .values()
            .next()
            .map(|attempt| attempt.reserved),
        Some(dec(3))
    );
    world.close(open, Shutdown::Drain).await;
    assert_eq!(world.outside.count(), 1);
}

/// A lost read is settled by the rule of the contract, at its full reservation, and tried again within the bound
/// (T-20).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_read_is_settled_by_the_rule_and_tried_again() {
    let world = World::new(EffectClass::Read);
    let open = leave_in_flight(&world, true).await;
    let retried = |state: &Arc<RunState>| {
        state
            .operations
            .values()
            .any(|operation| operation.attempts.len() == 2)
            && state
                .attempts
                .values()
                .filter(|attempt| attempt.status == AttemptStatus::ConfirmedApplied)
                .count()
                >= 1
    };
    let state = open.until(RUN, retried).await;
    let lost = state
        .attempts
        .values()
        .find(|attempt| attempt.epoch.get() == 1)
        .expect("the lost attempt");
    assert_eq!(
        (lost.status, lost.actual),
        (AttemptStatus::ConfirmedNotApplied, Some(dec(3)))
    );
    let stream = state.stream.clone();
    let events = open.host.journal().stream(&stream).expect("readable");
    let rule = events
        .iter()
        .find(|sealed| sealed.event.kind == CommandType::Reconcile)
        .expect("a reconciliation");
    assert_eq!(rule.event.decision_class, "LOST_READ_RULE");
    world.close(open, Shutdown::Drain).await;
}

/// Proves FV-ACC.5: what was confirmed as not applied is tried again under new attempt ids until the
/// bound, and no further.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fv_acc_5_retries_are_new_attempts_and_end_at_the_bound() {
    let world = World::new(EffectClass::External);
    *world.outside.behaviour.lock().expect("behaviour") = Behaviour::Decline;
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    let state = open
        .until(RUN, |state| {
            state.attempts.size() == 3
                && state
                    .attempts
                    .values()
                    .all(|attempt| attempt.status.is_confirmed())
        })
        .await;
    assert_eq!(state.operations.size(), 1);
    open.state(RUN).await;
    world.close(open, Shutdown::Drain).await;
    let calls = world.outside.calls.lock().expect("calls");
    assert_eq!(calls.len(), 3);
    assert_eq!(
        calls
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        3,
        "three attempts"
    );
}

/// A step that does not fit the budget closes a gate with a COST_LIMIT hold and is not tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spent_budget_opens_a_hold() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.mission(RestartPolicy::Auto, false).await;
    for number in 0..3 {
        open.run(&format!("other{number}")).await;
        let worker = open.engine.worker(
            open.agent("agent:w1"),
            mission(),
            id(&format!("other{number}")),
        );
        let mut draft = draft_of("a");
        draft.proposal.operation_id = id(&format!("op-{number}"));
        draft.proposal.attempt_id = id(&format!("at-{number}"));
        worker
            .admit(&id(&format!("q-{number}")), &id("a"), Some(draft))
            .await
            .expect("admitted");
    }
    open.run(RUN).await;
    let state = open.until(RUN, |state| state.holds.size() == 1).await;
    assert!(
        state
            .holds
            .values()
            .all(|hold| hold.reason == HoldReason::CostLimit)
    );
    let head = open.state(RUN).await.head;
    assert_eq!(open.state(RUN).await.head, head);
    assert_eq!(world.outside.count(), 0);
    world.close(open, Shutdown::Drain).await;
}

/// A worker whose run was recovered still may say what happened; policy decides, and the owner of
/// now records it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_reports_without_owning() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin("run", RestartPolicy::Auto, false).await;
    let worker = open
        .engine
        .worker(open.agent("agent:w1"), mission(), id("run"));
    worker
        .admit(&id("q-admit"), &id("a"), Some(draft_of("a")))
        .await
        .expect("admitted");
    worker
        .dispatch(&id("q-dispatch"), &id("a"))
        .await
        .expect("dispatched");
    open.recover("run", "q-recover", 1)
        .await
        .expect("recovered");
    let applied = EffectOutcome::Applied { actual: dec(3) };
    let report = EffectReport {
        outcome: applied.clone(),
        evidence: aiws::object! { "seen": true },
    };
    // It is uncertain already, so nothing is recorded, and the worker hears why.
    let refused = worker.report_outcome(&id("at-a-1"), report.clone()).await;
    assert_eq!(
        refused.expect_err("nobody confirmed it").code().name(),
        "EVIDENCE_INVALID"
    );
    assert_eq!(
        first(&*open.state("run").await),
        Some(AttemptStatus::Dispatched),
        "nobody confirmed the agent's word"
    );
    let operator = open.engine.worker(open.human(), mission(), id("run"));
    operator
        .report_outcome(&id("at-a-1"), report)
        .await
        .expect("recorded");
    assert_eq!(
        first(&*open.state("run").await),
        Some(AttemptStatus::ConfirmedApplied)
    );
    drop((worker, operator));
    world.close(open, Shutdown::Drain).await;
}

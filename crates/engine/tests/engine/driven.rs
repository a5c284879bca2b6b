//! Runs that a program drives: the whole way, effects that throw, look-ups, lost reads, late reports.
//! Invariant: the outside's own record is the judge of what was called.
//! Tests of the scheduler, the effect workers and reports.

use std::sync::atomic::Ordering;

use aiws::record::{
    AcceptanceVerdict, AttemptStatus, EffectClass, Lifecycle, RestartPolicy, VerificationVerdict,
};
use praxis_engine::Shutdown;
use praxis_model::command::{Accept, Body, Verify};
use praxis_model::run::NodeStatus;

use crate::support::{Behaviour, Open, World, dec, digest, id};

const RUN: &str = "driven";

/// Verification and acceptance by the operator, which completion asks for.
async fn approve_result(open: &Open) {
    let verify = Verify {
        assessment_id: id("verification"),
        run_id: id(RUN),
        subject: id("result"),
        verdict: VerificationVerdict::Pass,
        evidence: vec![id("seen")],
    };
    open.command(RUN, "q-verify", Body::Verify(verify))
        .await
        .expect("verified");
    let accept = Accept {
        assessment_id: id("acceptance"),
        run_id: id(RUN),
        subject: id("result"),
        verdict: AcceptanceVerdict::Accepted,
        evidence: vec![id("verification")],
    };
    open.command(RUN, "q-accept", Body::Accept(accept))
        .await
        .expect("accepted");
}

/// Proves FV-EFF.1, STO-5: each adapter call finds its DISPATCHED in the log, each node is called once, and a
/// clean close and reopen gives the same state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fv_eff_1_lin_is_driven_to_its_end_and_reopens_equal() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    open.until(RUN, |state| {
        state
            .nodes
            .get("end")
            .is_some_and(|node| node.status == NodeStatus::Completed)
    })
    .await;
    approve_result(&open).await;
    let state = open.until(RUN, |state| state.lifecycle.is_terminal()).await;
    assert_eq!(state.lifecycle, Lifecycle::Completed);
    assert_eq!(world.outside.count(), 2);
    assert!(
        !world.outside.early.load(Ordering::SeqCst),
        "a call came before its DISPATCHED was durable"
    );
    let mission = open
        .engine
        .mission_state(&crate::support::mission())
        .await
        .expect("mission");
    let account = open
        .host
        .journal()
        .view()
        .account(&praxis_model::mission::cost_account(&mission.subject))
        .cloned();
    let account = account.expect("an account");
    assert_eq!((account.spent, account.reserved), (dec(6), dec(0)));
    world.close(open, Shutdown::Drain).await;

    let open = world.open().await;
    let reopened = open.state(RUN).await;
    assert_eq!(digest(&reopened), digest(&state));
    assert_eq!(reopened.epoch, 1, "a clean close needs no recovery");
    world.close(open, Shutdown::Drain).await;
}

/// Proves FV-EFF.2, FV-EFF.3: an adapter that throws leaves its attempt UNKNOWN with the reservation kept, and
/// nothing calls it again, not after other events and not after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fv_eff_2_a_throwing_adapter_leaves_the_attempt_unknown_for_good() {
    let world = World::new(EffectClass::External);
    *world.outside.behaviour.lock().expect("behaviour") = Behaviour::Panic;
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    let unknown = |state: &std::sync::Arc<praxis_model::run::RunState>| {
        state
            .attempts
            .values()
            .any(|attempt| attempt.status == AttemptStatus::Unknown)
    };
    let state = open.until(RUN, unknown).await;
    let attempt = state.attempts.values().next().expect("an attempt");
    assert_eq!(attempt.reserved, dec(3));
    for number in 0..5 {
        let verify = Verify {
            assessment_id: id(&format!("v{number}")),
            run_id: id(RUN),
            subject: id("result"),
            verdict: VerificationVerdict::Fail,
            evidence: vec![id("seen")],
        };
        open.command(RUN, &format!("q-{number}"), Body::Verify(verify))
            .await
            .expect("an event");
        open.state(RUN).await;
    }
    world.close(open, Shutdown::Drain).await;
    let open = world.open().await;
    let state = open.state(RUN).await;
    assert!(unknown(&state));
    world.close(open, Shutdown::Drain).await;
    assert_eq!(world.outside.count(), 1);
}

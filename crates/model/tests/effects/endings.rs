//! The ends of a run: a no, a cancellation, and what is still settled afterwards.
//!
//! Invariant: every state is reached through accepted commands. Each test names what it proves.

use aiws::record::SettledOutcome::ConfirmedApplied;
use aiws::record::*;
use praxis_model::command::*;

use crate::bench::*;
use crate::refusals::guarded;
use crate::steps::*;

/// Proves FV-RUN.4, FV-RUN.5: a denial and a rejection end the run as REJECTED, in every view; under a pending
/// cancellation they are recorded and the cancellation goes on.
#[test]
fn a_no_ends_the_run() {
    let _on = guarded();
    for body in [
        approve_body("no", ApprovalDecision::Denied, 0),
        accept_body("a", AcceptanceVerdict::Rejected),
    ] {
        let mut bench = Bench::new();
        bench.act(body.clone(), Who::Human);
        assert_eq!(bench.run.lifecycle, Lifecycle::Rejected);
        assert_eq!(
            bench
                .outcome()
                .and_then(|row| row.get("lifecycle").cloned()),
            Some("REJECTED".into())
        );
        assert!(bench.live.is_empty() && bench.run.cause.is_some());
        let mut bench = Bench::new().canceling();
        bench.act(body, Who::Human);
        assert_eq!(bench.run.lifecycle, Lifecycle::Canceling);
        assert_eq!(bench.run.approvals.size() + bench.run.acceptances.len(), 1);
        assert_eq!(bench.outcome(), None);
    }
}

/// Proves F-34: a canceled run has the same end in its state, its register, its report and its projection.
#[test]
fn every_view_shows_the_same_end_of_a_cancellation() {
    let _on = guarded();
    let mut bench = Bench::free_admitted()
        .held(HoldReason::Operator)
        .canceling();
    bench.act(finish_body(), Who::Human);
    let report = praxis_model::report::of(&bench.run);
    let row = bench.outcome().expect("an outcome");
    assert_eq!(
        (bench.run.lifecycle, report.lifecycle),
        (Lifecycle::Canceled, Lifecycle::Canceled)
    );
    assert_eq!(row.get("lifecycle"), Some(&"CANCELED".into()));
    let aggregate = praxis_model::plan::aggregate(&bench.run, &[], bench.now_ms);
    assert_eq!(
        (aggregate, report.aggregate),
        (praxis_model::plan::Aggregate::Canceled, aggregate)
    );
    assert_eq!(bench.run.canceled_by, Some(id("ann")));
    assert!(bench.live.is_empty());
    // What was only prepared came back, and the open hold is closed with a resolution.
    assert_eq!(
        (bench.money(), bench.attempt("at-free").status),
        ((0, 0), AttemptStatus::ConfirmedNotApplied)
    );
    let hold = bench
        .run
        .holds
        .get(&id::<aiws::id::HoldId>("h"))
        .expect("a hold");
    assert_eq!(hold.state, HoldState::Canceled);
    assert_eq!(
        hold.resolution.as_ref().map(|end| end.actor_kind),
        Some(ActorKind::Human)
    );
}

/// Proves F-33: canceling one run closes the gate of that run, and another of the mission goes on.
#[test]
fn canceling_one_run_leaves_the_other_alone() {
    let _on = guarded();
    let canceled = Bench::free_admitted().canceling();
    assert_eq!(canceled.gates.len(), 1);
    assert!(
        canceled
            .gates
            .iter()
            .all(|(scope, _)| *scope == canceled.run.subject)
    );
    // The other run of the mission: same ids inside, its own stream.
    let start = Body::StartRun(StartRun {
        run_id: id("other"),
    });
    let started = decide_mission(Some(&canceled.mission), &start, 2_000).expect("starts");
    assert!(started.outcome.gates.is_empty());
    let other = praxis_model::stream::Subject::run(id("m"), id("other"));
    assert_eq!(started.outcome.opens, [other.stream()]);
    assert_ne!(other.stream(), canceled.run.stream);
    assert!(
        !canceled.gates.iter().any(|(scope, _)| *scope == other),
        "no gate of the other run is closed"
    );
}

/// Proves HS-06.5, HF-05.9, E-20: in an ended run nothing starts again, and an old uncertain effect is still settled.
#[test]
fn an_ended_run_settles_but_never_starts() {
    let _on = guarded();
    let mut bench = Bench::free_unknown().held(HoldReason::Operator).rejected();
    for body in [
        dispatch_body(&bench, "free", "at-free"),
        retry_body(&bench, "free", "at-2", 10),
        resolve_body("h", HoldDecision::Recheck, &[]),
        Body::ClaimDelivery(ClaimDelivery {
            delivery_id: id("any"),
            lease_ms: None,
        }),
        admit_body(&bench, "free", &free_read(), &mut bench.facts(Who::System)),
    ] {
        let refused = bench
            .decide(&body, &bench.facts(Who::Human))
            .expect_err("refused");
        assert_eq!(
            refused.code(),
            aiws::error::Code::TerminalExecution,
            "{}",
            body.kind().name()
        );
    }
    let facts = confirming(bench.facts(Who::Human), &["probe"]);
    bench.act_on(
        &settle_body("at-free", ConfirmedApplied, 8, &["probe"]),
        &facts,
    );
    assert_eq!(
        (bench.money(), bench.run.lifecycle),
        ((8, 0), Lifecycle::Rejected)
    );
    // The hold may still be closed, and ownership recovered; neither reopens the run.
    bench.act(resolve_body("h", HoldDecision::Cancel, &[]), Who::Human);
    bench.act(recover_body(1), Who::System);
    assert_eq!(
        (bench.run.lifecycle, bench.run.epoch),
        (Lifecycle::Rejected, 2)
    );
    assert!(bench.gates.is_empty());
}

/// Proves T-19, FV-ACC.4: whatever ends a run, what was only prepared comes back with its reservation in that event;
/// what was tried keeps its reservation until its outcome is known.
#[test]
fn a_prepared_attempt_of_an_ended_run_is_returned() {
    let _on = guarded();
    let failed = BoundaryIntent {
        node_id: id("free"),
        status: OutcomeStatus::Failed,
        result: aiws::object! {},
        artifacts: Vec::new(),
        criteria: Vec::new(),
        approvals: Vec::new(),
        context: Default::default(),
        cause: Some(Cause {
            code: "BROKEN".to_owned(),
            detail: "it broke".to_owned(),
        }),
        hold: None,
    };
    let fail = |mut bench: Bench| {
        let facts = bench.facts(Who::System);
        bench.intend(&Intent::Boundary(failed.clone()), &facts);
        bench
    };
    let reject = |mut bench: Bench| {
        bench.act(accept_body("a", AcceptanceVerdict::Rejected), Who::Human);
        bench
    };
    let ends: [&dyn Fn(Bench) -> Bench; 3] = [&Bench::rejected, &fail, &reject];
    for end in ends {
        let bench = end(Bench::free_admitted());
        assert!(bench.run.lifecycle.is_terminal());
        assert_eq!(
            (bench.money(), bench.attempt("at-free").status),
            ((0, 0), AttemptStatus::ConfirmedNotApplied)
        );
        let bench = end(Bench::free_dispatched());
        assert_eq!(
            (bench.money(), bench.attempt("at-free").status),
            ((0, 10), AttemptStatus::Dispatched)
        );
    }
}

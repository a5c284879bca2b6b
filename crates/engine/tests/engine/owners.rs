//! Owners that fail, are deposed, or share an engine: crashes, recoveries, mailboxes, budgets.
//! Invariant: a crash is a panic inside the real actor, at a point around a real append.
//! Tests of the supervisor and of the run's owner.

use std::sync::Arc;

use aiws::error::Error;
use aiws::record::{
    AttemptStatus, EffectClass, HoldDecision, HoldReason, HoldScope, HoldScopeKind, HoldState, Ref,
    RestartPolicy, SettledOutcome, VerificationVerdict,
};
use praxis_engine::crash::{Passing, Point};
use praxis_engine::limits::MAILBOX_PERMITS;
use praxis_engine::{Response, Shutdown};
use praxis_model::command::{
    Body, ClaimDelivery, CommandType, HoldProposal, Intent, PlaceHold, ResolveHold, Verify,
};
use praxis_model::run::RunState;

use crate::support::{
    Open, World, again, boundary_of, dec, draft_of, id, intent, lin, poll_once, settled,
};

pub const RUN: &str = "run";

pub fn verify(name: &str) -> Body {
    Body::Verify(Verify {
        assessment_id: id(name),
        run_id: id(RUN),
        subject: id("result"),
        verdict: VerificationVerdict::Pass,
        evidence: vec![id("seen")],
    })
}

/// Drives `a` of LIN by hand to its boundary, so that `b` has a PENDING delivery.
pub async fn boundary_of_a(open: &Open, run: &str) {
    let worker = open
        .engine
        .worker(open.agent("agent:w1"), crate::support::mission(), id(run));
    worker
        .admit(&id("q-admit"), &id("a"), Some(draft_of("a")))
        .await
        .expect("admitted");
    worker
        .dispatch(&id("q-dispatch"), &id("a"))
        .await
        .expect("dispatched");
    let settled = SettledOutcome::ConfirmedApplied;
    worker
        .settle(
            &id("q-settle"),
            &id("at-a-1"),
            settled,
            dec(3),
            vec![id("seen")],
        )
        .await
        .expect("settled");
    worker
        .commit_boundary(&id("q-boundary"), boundary_of(&lin().nodes[0]))
        .await
        .expect("committed");
}

fn is_at(point: Point, kind: CommandType) -> impl Fn(&Passing) -> bool + Send + 'static {
    move |passing| {
        passing.point == point && passing.kind == kind && passing.run_id.as_ref() == Some(&id(RUN))
    }
}

pub fn code(answer: Result<Response, Error>) -> &'static str {
    answer.map_or_else(|error| error.code().name(), |_| "accepted")
}

/// Proves HF-02.7: scenario C-14. An owner that fails after its commit loses the queue; the run is
/// recovered under a higher epoch, the commit counts once, replays get the first result, and another run goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_14_an_owner_that_fails_with_messages_queued() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    open.run("other").await;
    boundary_of_a(&open, RUN).await;
    let before = open.state(RUN).await;
    let delivery = before.deliveries.keys().next().expect("a delivery").clone();
    world.at_point(is_at(Point::AfterCommit, CommandType::Verify), || {
        panic!("the owner fails")
    });

    let human = open.human();
    let (first, claim) = (
        intent(RUN, "q-1", Intent::Command { body: verify("v1") }),
        {
            let body = Body::ClaimDelivery(ClaimDelivery {
                delivery_id: delivery.clone(),
                lease_ms: None,
            });
            intent(RUN, "q-2", Intent::Command { body })
        },
    );
    let third = intent(RUN, "q-3", Intent::Command { body: verify("v3") });
    let (one, two, three) = settled(async {
        tokio::join!(
            open.engine.submit(&human, &first),
            open.engine.submit(&human, &claim),
            open.engine.submit(&human, &third)
        )
    })
    .await;
    assert_eq!(code(one), "ACTOR_LOST");
    // What was queued behind it was lost with it, or came to the new owner; either way nothing happened twice.
    for answer in [two, three] {
        assert!(matches!(code(answer), "ACTOR_LOST" | "accepted"));
    }
    let state = open.until(RUN, |state| state.epoch == 2).await;
    assert_eq!(
        state
            .verifications
            .iter()
            .filter(|found| found.assessment_id == id("v1"))
            .count(),
        1
    );
    let replayed = again(|| Box::pin(open.engine.submit(&human, &first)))
        .await
        .expect("a replay");
    assert!(
        replayed.event.is_none(),
        "the first result, and no second event"
    );
    let again_claim = again(|| Box::pin(open.engine.submit(&human, &claim))).await;
    assert!(matches!(code(again_claim), "accepted"));
    let other = open.state("other").await;
    assert_eq!(other.epoch, 1);
    world.close(open, Shutdown::Drain).await;
}

pub fn hold(name: &str) -> HoldProposal {
    HoldProposal {
        hold_id: id(name),
        scope: HoldScope {
            kind: HoldScopeKind::Run,
            scope_ref: Ref {
                id: id(RUN),
                revision: dec(1),
            },
            resolver_revision: dec(1),
        },
        reason: HoldReason::Operator,
        owner: id("human:op"),
        blockers: Vec::new(),
        allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
        stop_disposition: Vec::new(),
    }
}

/// A mailbox takes as many requests as it has permits, and the next caller is told BUSY (T-55).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_mailbox_is_busy() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    let (entered, has_entered) = tokio::sync::oneshot::channel();
    let (let_go, wait) = std::sync::mpsc::channel::<()>();
    world.at_point(is_at(Point::BeforeCommit, CommandType::Verify), move || {
        let _ = entered.send(());
        let _ = wait.recv();
    });
    let human = open.human();
    let requests: Vec<_> = (0..=MAILBOX_PERMITS)
        .map(|number| {
            intent(
                RUN,
                &format!("q-{number}"),
                Intent::Command {
                    body: verify(&format!("v{number}")),
                },
            )
        })
        .collect();
    let mut sent: Vec<std::pin::Pin<Box<dyn Future<Output = _> + Send + '_>>> = Vec::new();
    for request in &requests {
        sent.push(Box::pin(open.engine.submit(&human, request)));
    }
    let last = sent.pop().expect("one more than fits");
    for future in &mut sent {
        assert!(poll_once(future).await.is_none(), "there is room");
    }
    settled(has_entered).await.expect("the first is in hand");
    assert_eq!(code(settled(last).await), "BUSY");
    let_go.send(()).expect("the owner waits");
    for answer in sent {
        assert_eq!(code(settled(answer).await), "accepted");
    }
    world.close(open, Shutdown::Drain).await;
}

/// Proves FV-ACC.1, HD-03.7: scenario R-06. Ten runs admit 3 of a budget of 10 at once: three succeed, seven are
/// refused and keep nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_06_the_last_budget_unit_is_given_once() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.mission(RestartPolicy::Auto, false).await;
    let mut admissions = tokio::task::JoinSet::new();
    for number in 0..10 {
        open.run(&format!("r{number}")).await;
    }
    for number in 0..10 {
        let worker = open.engine.worker(
            open.agent("agent:w1"),
            crate::support::mission(),
            id(&format!("r{number}")),
        );
        let mut draft = draft_of("a");
        draft.proposal.operation_id = id(&format!("op-{number}"));
        draft.proposal.attempt_id = id(&format!("at-{number}"));
        admissions.spawn(async move {
            worker
                .admit(&id(&format!("q-{number}")), &id("a"), Some(draft))
                .await
        });
    }
    let mut codes = Vec::new();
    while let Some(answer) = settled(admissions.join_next()).await {
        codes.push(code(answer.expect("no panic")));
    }
    codes.sort_unstable();
    assert_eq!(
        codes,
        [vec!["BUDGET_EXCEEDED"; 7], vec!["accepted"; 3]].concat()
    );
    let key = praxis_model::mission::cost_account(&praxis_model::stream::Subject::mission(
        crate::support::mission(),
    ));
    let account = open
        .host
        .journal()
        .view()
        .account(&key)
        .cloned()
        .expect("an account");
    assert_eq!((account.spent, account.reserved), (dec(0), dec(9)));
    let mut consumptions = 0;
    for number in 0..10 {
        consumptions += open.state(&format!("r{number}")).await.consumptions.size();
    }
    assert_eq!(consumptions, 3);
    world.close(open, Shutdown::Drain).await;
}

/// Proves HC-RO.1: scenario R-08. The supervisor and the operator recover at once: one epoch step, one
/// restart hold; and each hold that is left keeps the gate closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_08_two_recoveries_and_two_holds() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Human, false).await;
    world.at_point(is_at(Point::BeforeReply, CommandType::Verify), || {
        panic!("the owner fails")
    });
    assert_eq!(
        code(open.command(RUN, "q-1", verify("v1")).await),
        "ACTOR_LOST"
    );
    let human = open.human();
    let body = Body::RecoverOwnership(praxis_model::command::RecoverOwnership {
        expected_epoch: dec(1),
        reason: "the operator was quicker".to_owned(),
        decision_ref: Some(id("decision")),
    });
    let request = intent(RUN, "q-recover", Intent::Command { body });
    let operator = again(|| Box::pin(open.engine.submit(&human, &request))).await;
    let outcome = code(operator);
    assert!(
        matches!(
            outcome,
            "accepted" | "STALE_EPOCH" | "STALE_OWNER" | "REVISION_CONFLICT"
        ),
        "{outcome}"
    );
    let state = open.until(RUN, |state| state.epoch >= 2).await;
    assert_eq!(state.epoch, 2, "one step, whoever took it");
    let restart: Vec<_> = state
        .holds
        .values()
        .filter(|hold| hold.reason == HoldReason::Restart)
        .collect();
    assert_eq!(restart.len(), 1);
    let restart = restart[0].hold_id.clone();
    for name in ["h1", "h2"] {
        assert_eq!(
            code(
                open.command(RUN, name, Body::PlaceHold(PlaceHold { hold: hold(name) }))
                    .await
            ),
            "accepted"
        );
    }
    for hold_id in [id("h1"), restart] {
        let recheck = ResolveHold {
            hold_id: aiws::id::HoldId::clone(&hold_id),
            decision: HoldDecision::Recheck,
            decision_ref: id("decision"),
            evidence: Vec::new(),
            rule: None,
        };
        let answer = open
            .command(RUN, &format!("q-{hold_id}"), Body::ResolveHold(recheck))
            .await;
        assert_eq!(code(answer), "accepted");
    }
    let worker = open
        .engine
        .worker(open.agent("agent:w1"), crate::support::mission(), id(RUN));
    assert_eq!(
        code(
            worker
                .admit(&id("q-admit"), &id("a"), Some(draft_of("a")))
                .await
        ),
        "HOLD_ACTIVE"
    );
    let open_holds = open
        .state(RUN)
        .await
        .holds
        .values()
        .filter(|hold| hold.state == HoldState::Open)
        .count();
    assert_eq!(open_holds, 1);
    world.close(open, Shutdown::Drain).await;
}

/// Owners that fail again and again are not started for ever: past the limit one RESTART hold stands, and it stays
/// one (T-21).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_owners_keep_failing_is_held_once() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    let human = open.human();
    for round in 0..praxis_engine::limits::RESTARTS + 2 {
        world.at_point(is_at(Point::BeforeReply, CommandType::Verify), || {
            panic!("the owner fails")
        });
        let request = intent(
            RUN,
            &format!("q-{round}"),
            Intent::Command {
                body: verify(&format!("v{round}")),
            },
        );
        // Sent until it is answered: the commit stands, so the answer is its replay.
        let answer = again(|| Box::pin(open.engine.submit(&human, &request)))
            .await
            .expect("answered");
        assert!(answer.event.is_none());
    }
    let state = open
        .until(RUN, |state| {
            state
                .holds
                .values()
                .any(|hold| hold.reason == HoldReason::Restart)
        })
        .await;
    let state = if state.epoch as usize > praxis_engine::limits::RESTARTS {
        open.state(RUN).await
    } else {
        state
    };
    assert_eq!(
        state
            .holds
            .values()
            .filter(|hold| hold.reason == HoldReason::Restart)
            .count(),
        1
    );
    world.close(open, Shutdown::Drain).await;
}

/// Proves FV-REC.1, FV-REC.2: recovery raises the epoch, lists what is unresolved, calls nothing; what was prepared
/// before can no longer be dispatched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fv_rec_1_recovery_lists_and_calls_nothing() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.mission(RestartPolicy::Auto, false).await;
    for run in ["tried", "prepared"] {
        open.run(run).await;
        let worker = open
            .engine
            .worker(open.agent("agent:w1"), crate::support::mission(), id(run));
        let mut draft = draft_of("a");
        draft.proposal.operation_id = id(&format!("op-{run}"));
        draft.proposal.attempt_id = id(&format!("at-{run}"));
        worker
            .admit(&id(&format!("q-admit-{run}")), &id("a"), Some(draft))
            .await
            .expect("admitted");
        if run == "tried" {
            worker
                .dispatch(&id("q-dispatch"), &id("a"))
                .await
                .expect("dispatched");
        }
    }
    let listed = open
        .recover("tried", "q-r1", 1)
        .await
        .expect("recovered")
        .result;
    assert_eq!(
        listed.get("epoch").and_then(aiws::json::Value::as_str),
        Some("2")
    );
    let unresolved = listed
        .get("unresolved")
        .and_then(aiws::json::Value::as_array)
        .expect("a list");
    let ids: Vec<_> = unresolved
        .iter()
        .filter_map(|one| one.get("attemptId")?.as_str())
        .collect();
    assert_eq!(ids, ["at-tried"]);
    open.recover("prepared", "q-r2", 1)
        .await
        .expect("recovered");
    let worker = open.engine.worker(
        open.agent("agent:w1"),
        crate::support::mission(),
        id("prepared"),
    );
    let refused = worker.dispatch(&id("q-late"), &id("a")).await;
    assert_ne!(code(refused), "accepted", "prepared under an earlier epoch");
    let state: Arc<RunState> = open.state("prepared").await;
    assert_eq!(
        state.attempts.values().next().map(|attempt| attempt.status),
        Some(AttemptStatus::Prepared)
    );
    assert_eq!(world.outside.count(), 0);
    drop(worker);
    world.close(open, Shutdown::Drain).await;
}

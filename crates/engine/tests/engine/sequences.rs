//! Sequences: one append, all or nothing, every step under its own guards, the first answers again for a replay.
//! Invariant: the log itself says what was appended together; deep verification ends every case.
//! Tests of `submit_sequence` and of the scheduler's sequences.

use aiws::error::{Code, Error};
use aiws::record::{
    AttemptStatus, EffectClass, HoldDecision, HoldReason, HoldScope, HoldScopeKind, Ref,
    RestartPolicy, SettledOutcome,
};
use praxis_engine::crash::{Passing, Point};
use praxis_engine::limits::SEQUENCE_STEPS;
use praxis_engine::{SequenceStep, Sequenced, Shutdown, Worker};
use praxis_journal_format::Sealed;
use praxis_model::command::{
    AcknowledgeDelivery, AdmitIntent, Body, ClaimDelivery, CommandType, HoldProposal, Intent,
    PlaceHold, RecoverOwnership, Settle,
};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use crate::support::{Open, World, boundary_of, dec, draft_of, id, lin, mission};

pub const RUN: &str = "run";

pub fn worker(open: &Open) -> Worker {
    open.engine
        .worker(open.agent("agent:w1"), mission(), id(RUN))
}

fn admit(node: &str) -> SequenceStep {
    let draft = draft_of(node);
    SequenceStep::Intent {
        intent: Intent::Admit(AdmitIntent {
            node_id: id(node),
            admission_ref: Some(draft.admission_ref.clone()),
        }),
        draft: Some(draft),
    }
}

pub fn launch(node: &str) -> Vec<SequenceStep> {
    let dispatch = Intent::DispatchNode { node_id: id(node) };
    vec![admit(node), dispatch.into()]
}

/// Claim, acknowledge, admit, dispatch.
pub fn receive(state: &RunState, node: &str) -> Vec<SequenceStep> {
    let mut deliveries = state.deliveries.values().map(|delivery| &delivery.record);
    let delivery = deliveries
        .find(|record| record.recipient.node_id.as_str() == node)
        .expect("a delivery");
    let delivery_id = delivery.delivery_id.clone();
    let body = Body::ClaimDelivery(ClaimDelivery {
        delivery_id: delivery_id.clone(),
        lease_ms: None,
    });
    let mut steps = vec![
        Intent::Command { body }.into(),
        SequenceStep::Acknowledge { delivery_id },
    ];
    steps.extend(launch(node));
    steps
}

/// Settle, boundary.
pub fn conclude(node: usize) -> Vec<SequenceStep> {
    let node = &lin().nodes[node];
    let body = Body::Settle(Settle {
        run_id: id(RUN),
        attempt_id: id(&format!("at-{}-1", node.id)),
        outcome: SettledOutcome::ConfirmedApplied,
        actual: dec(3),
        evidence: vec![id("seen")],
    });
    let settle = Intent::Command { body };
    vec![settle.into(), Intent::Boundary(boundary_of(node)).into()]
}

pub fn events(open: &Open, run: &str) -> Vec<Sealed> {
    let stream = Subject::run(mission(), id(run)).stream();
    open.host.journal().stream(&stream).expect("a stream")
}

/// The appends of a run, each as the types of its events.
pub fn appends(open: &Open, run: &str) -> Vec<String> {
    let mut appends: Vec<String> = Vec::new();
    for sealed in events(open, run) {
        let name = sealed.event.kind.name();
        match appends.last_mut().filter(|_| sealed.event.part.k.get() > 1) {
            Some(last) => last.push_str(&format!("+{name}")),
            None => appends.push(name.to_owned()),
        }
    }
    appends
}

pub fn sound(open: &Open) {
    let report = open
        .host
        .journal()
        .verify_deep(&mut |_, _| {})
        .expect("read");
    assert!(report.is_sound(), "{:?}", report.findings);
}

/// What two answers have in common, whether or not one is a replay.
pub fn answers(sequenced: &Sequenced) -> Vec<(u64, aiws::json::Value)> {
    let steps = sequenced.steps.iter().map(|step| &step.response);
    steps
        .map(|response| (response.revision, response.result.clone()))
        .collect()
}

fn refused(answer: Result<Sequenced, Error>) -> (Code, Option<String>) {
    let error = answer.expect_err("a refusal");
    let step = error.details.get("step").and_then(|step| step.as_str());
    (error.code(), step.map(str::to_owned))
}

pub async fn opened(world: &World) -> Open {
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    open
}

/// Proves T-82, T-84, T-22: a worker's node takes two appends; each step is an event of its own under the shared request,
/// linked to the part before; a replay has every first answer and no event, also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_a_node_in_two_appends_and_its_replays() {
    let world = World::new(EffectClass::External);
    let open = opened(&world).await;
    let (w1, mut asked) = (worker(&open), Vec::new());
    let mut firsts = Vec::new();
    for step in 0..4 {
        let state = open.state(RUN).await;
        let steps = match step {
            0 => launch("a"),
            1 => conclude(0),
            2 => receive(&state, "b"),
            _ => conclude(1),
        };
        let request = id(&format!("q-{step}"));
        asked.push((request, steps));
        let (request, steps) = &asked[step];
        let first = w1.sequence(request, steps.clone()).await.expect("accepted");
        assert!(first.refused.is_none());
        firsts.push(first);
    }
    let expected = [
        "activateGraph",
        "admitConsumer+dispatch",
        "settle+commitBoundary",
        "claimDelivery+acknowledgeDelivery+admitConsumer+dispatch",
        "settle+commitBoundary",
    ];
    assert_eq!(appends(&open, RUN), expected);
    let log = events(&open, RUN);
    for pair in log.windows(2) {
        assert_eq!(pair[1].event.prev_hash, pair[0].hash);
    }
    let parts = &log[5..9];
    let request = parts[0].event.request_id.clone();
    assert!(parts.iter().all(|part| part.event.request_id == request));
    assert_eq!(request, Some(id("q-2")));
    let state = open.state(RUN).await;
    let account = open.host.journal().view();
    let account = account
        .account(&praxis_model::mission::cost_account(&state.subject))
        .cloned()
        .expect("an account");
    // What a boundary quotes is the account behind the settlement that stands before it.
    let quoted: Vec<_> = log
        .iter()
        .filter(|sealed| sealed.event.kind == CommandType::CommitBoundary)
        .filter_map(|sealed| sealed.event.facts.account.as_ref())
        .map(|row| (row.spent, row.reserved))
        .collect();
    assert_eq!(quoted, [(dec(3), dec(0)), (dec(6), dec(0))]);
    assert_eq!((account.spent, account.reserved), (dec(6), dec(0)));
    sound(&open);
    let mut open = open;
    for restarted in [false, true] {
        if restarted {
            world.close(open, Shutdown::Drain).await;
            open = world.open().await;
        }
        let w1 = worker(&open);
        for ((request, steps), first) in asked.iter().zip(&firsts) {
            let again = w1.sequence(request, steps.clone()).await.expect("replayed");
            assert_eq!(answers(&again), answers(first));
            let silent = |step: &praxis_engine::Claimed| {
                step.response.event.is_none() && step.token.is_none()
            };
            assert!(again.refused.is_none() && again.steps.iter().all(silent));
            let other = w1.sequence(request, launch("end")).await;
            assert_eq!(refused(other).0, Code::IdentityConflict);
        }
    }
    assert_eq!(events(&open, RUN).len(), log.len());
    world.close(open, Shutdown::Drain).await;
}

/// Proves T-82, ERR-PREC.3: whichever step of claim, acknowledge, admit and dispatch is refused, nothing of the sequence
/// is kept, and the refusal has the step's own code and its number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_a_refused_step_leaves_nothing() {
    let world = World::new(EffectClass::External);
    let open = opened(&world).await;
    let w1 = worker(&open);
    for (request, steps) in [("q-a", launch("a")), ("q-b", conclude(0))] {
        w1.sequence(&id(request), steps).await.expect("accepted");
    }
    let before = open.state(RUN).await;
    let steps = receive(&before, "b");
    let kinds = [
        CommandType::ClaimDelivery,
        CommandType::AcknowledgeDelivery,
        CommandType::AdmitConsumer,
        CommandType::Dispatch,
    ];
    for (kind, step) in kinds.into_iter().zip(1..) {
        world.policy.denied.lock().expect("policy").insert(kind);
        let answer = w1.sequence(&id("q-1"), steps.clone()).await;
        let expected = (Code::AuthorizationDenied, Some(step.to_string()));
        assert_eq!(refused(answer), expected, "{kind:?}");
        world.policy.denied.lock().expect("policy").clear();
        assert_eq!(open.state(RUN).await.head, before.head, "{kind:?}");
    }
    // The same request id is free, for nothing was stored under it.
    let accepted = w1.sequence(&id("q-1"), steps).await.expect("accepted");
    assert_eq!(accepted.steps.len(), 4);
    sound(&open);
    world.close(open, Shutdown::Drain).await;
}

/// Proves T-82: a settlement is kept though the boundary behind it is refused, its replay has the same answer and says
/// that the rest was refused, and the rest can be asked for anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_a_settlement_outlives_its_boundary() {
    let world = World::new(EffectClass::External);
    let open = opened(&world).await;
    let w1 = worker(&open);
    w1.sequence(&id("q-1"), launch("a"))
        .await
        .expect("launched");
    let deny = |kind| world.policy.denied.lock().expect("policy").insert(kind);
    deny(CommandType::CommitBoundary);
    let first = w1.sequence(&id("q-2"), conclude(0)).await.expect("kept");
    let error = first.refused.as_ref().expect("the boundary is refused");
    assert_eq!(error.code(), Code::AuthorizationDenied);
    assert_eq!(
        error.details.get("step").and_then(|step| step.as_str()),
        Some("2")
    );
    assert_eq!(first.steps.len(), 1);
    world.policy.denied.lock().expect("policy").clear();
    let again = w1
        .sequence(&id("q-2"), conclude(0))
        .await
        .expect("replayed");
    assert_eq!(answers(&again), answers(&first));
    let error = again.refused.expect("the rest was refused then");
    assert_eq!(error.code(), Code::StateInvalid);
    let state = open.state(RUN).await;
    let attempt = state.attempts.values().next().expect("an attempt");
    assert_eq!(attempt.status, AttemptStatus::ConfirmedApplied);
    assert!(state.manifests.is_empty());
    w1.commit_boundary(&id("q-3"), boundary_of(&lin().nodes[0]))
        .await
        .expect("committed");
    let expected = [
        "activateGraph",
        "admitConsumer+dispatch",
        "settle",
        "commitBoundary",
    ];
    assert_eq!(appends(&open, RUN), expected);
    sound(&open);
    // A boundary before a settlement is no truth about an effect.
    deny(CommandType::Settle);
    let mut turned = conclude(1);
    turned.reverse();
    let before = open.state(RUN).await.head;
    assert!(w1.sequence(&id("q-4"), turned).await.is_err());
    assert_eq!(open.state(RUN).await.head, before);
    world.close(open, Shutdown::Drain).await;
}

fn hold() -> Body {
    Body::PlaceHold(PlaceHold {
        hold: HoldProposal {
            hold_id: id("hold"),
            scope: HoldScope {
                kind: HoldScopeKind::Run,
                scope_ref: Ref {
                    id: id(RUN),
                    revision: dec(1),
                },
                resolver_revision: dec(1),
            },
            reason: HoldReason::Operator,
            owner: id("operator"),
            blockers: Vec::new(),
            allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
            stop_disposition: Vec::new(),
        },
    })
}

/// Proves T-82: what a step changes holds for the steps behind it; what has to be sent alone, too many steps and none are
/// refused by their shape; an acknowledgement needs a claim of the same sequence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_what_a_sequence_may_say() {
    let world = World::new(EffectClass::External);
    let open = opened(&world).await;
    let w1 = worker(&open);
    let before = open.state(RUN).await;
    let held = Intent::Command { body: hold() };
    let mut steps = vec![held.into()];
    steps.extend(launch("a"));
    let human = open.engine.worker(open.human(), mission(), id(RUN));
    let answer = human.sequence(&id("q-held"), steps).await;
    assert_eq!(refused(answer), (Code::HoldActive, Some("2".to_owned())));
    let unclaimed = SequenceStep::Acknowledge {
        delivery_id: id("d"),
    };
    let answer = w1.sequence(&id("q-ack"), vec![unclaimed]).await;
    assert_eq!(refused(answer), (Code::DeliveryState, Some("1".to_owned())));
    let recover = Body::RecoverOwnership(RecoverOwnership {
        expected_epoch: dec(1),
        reason: "now".to_owned(),
        decision_ref: None,
    });
    let fingerprint = Body::AcknowledgeDelivery(AcknowledgeDelivery {
        delivery_id: id("d"),
        handoff: aiws::record::HandoffRef {
            handoff_id: id("h"),
            digest: aiws::digest::Digest::ZERO,
        },
        claim_token: aiws::digest::Digest::ZERO,
        generation: "1".parse().expect("a generation"),
    });
    for body in [recover, fingerprint] {
        let mut steps = launch("a");
        steps.push(Intent::Command { body }.into());
        let answer = w1.sequence(&id("q-alone"), steps).await;
        assert_eq!(refused(answer), (Code::SchemaInvalid, Some("3".to_owned())));
    }
    let many = vec![admit("a"); SEQUENCE_STEPS + 1];
    for steps in [Vec::new(), many] {
        let answer = w1.sequence(&id("q-many"), steps).await;
        assert_eq!(refused(answer), (Code::SchemaInvalid, None));
    }
    assert_eq!(open.state(RUN).await.head, before.head);
    world.close(open, Shutdown::Drain).await;
}

/// Proves T-82, HF-02.7: an owner that fails around the append of a sequence leaves all of it or nothing; whoever lost the
/// response asks again and gets the first answers of all steps, or does it now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_a_lost_response_of_a_sequence() {
    for (point, kept) in [
        (Point::BeforeCommit, false),
        (Point::AfterCommit, true),
        (Point::BeforeReply, true),
    ] {
        let world = World::new(EffectClass::External);
        let open = opened(&world).await;
        let w1 = worker(&open);
        for (request, steps) in [("q-a", launch("a")), ("q-b", conclude(0))] {
            w1.sequence(&id(request), steps).await.expect("accepted");
        }
        let before = open.state(RUN).await.head.revision.get();
        let steps = receive(&*open.state(RUN).await, "b");
        let here = move |passing: &Passing| passing.point == point && passing.kinds.len() == 4;
        world.at_point(here, || panic!("the owner fails"));
        let lost = w1.sequence(&id("q-1"), steps.clone()).await;
        assert_eq!(refused(lost).0, Code::ActorLost);
        open.until(RUN, |state| state.epoch == 2).await;
        let again = w1.sequence(&id("q-1"), steps).await.expect("answered");
        let log = events(&open, RUN);
        let (revisions, results): (Vec<u64>, Vec<_>) = answers(&again).into_iter().unzip();
        let first = if kept { before + 1 } else { before + 2 };
        assert_eq!(revisions, (first..first + 4).collect::<Vec<_>>(), "{point}");
        for (revision, result) in revisions.iter().zip(results) {
            assert_eq!(log[*revision as usize - 1].event.result, result);
        }
        let silent = again.steps.iter().all(|step| step.response.event.is_none());
        assert_eq!(silent, kept, "{point}");
        let expected = before as usize + 5;
        assert_eq!(
            log.len(),
            expected,
            "the sequence and one recovery: {point}"
        );
        sound(&open);
        world.close(open, Shutdown::Drain).await;
    }
}

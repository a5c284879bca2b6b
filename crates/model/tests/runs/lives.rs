//! Lives of runs: crashes, recoveries, clocks and late truth, as rows of commands.

use aiws::decimal::Dec;
use aiws::error::Code;
use aiws::record::{
    DeliveryState, HoldDecision, HoldReason, Lifecycle, OutcomeStatus, RestartPolicy,
    SettledOutcome,
};
use praxis_model::command::{Body, PlaceHold, RecoverOwnership, ResolveHold};
use praxis_model::plan::plan;
use praxis_model::run::NodeStatus;

use crate::driver::{coding_world, drive};
use crate::world::*;

fn recover(world: &mut World) {
    let expected_epoch = Dec::from_u64(world.state().epoch);
    let body = RecoverOwnership {
        expected_epoch,
        reason: "crash".to_owned(),
        decision_ref: None,
    };
    world
        .send(ENGINE, Body::RecoverOwnership(body))
        .expect("recoverOwnership");
}

/// A human clears every open hold that can be cleared.
fn clear(world: &mut World) {
    let open: Vec<_> = world
        .state()
        .holds
        .values()
        .filter(|hold| hold.state == aiws::record::HoldState::Open)
        .map(|hold| hold.hold_id.clone())
        .collect();
    for hold_id in open {
        let body = ResolveHold {
            hold_id,
            decision: HoldDecision::Recheck,
            decision_ref: id("decision-1"),
            evidence: Vec::new(),
            rule: None,
        };
        world
            .send(HUMAN, Body::ResolveHold(body))
            .expect("resolveHold");
    }
}

fn code(step: Step) -> Result<(), Code> {
    step.map(drop).map_err(|error| error.code())
}

/// Proves HD-02.1, HD-02.4, HD-02.5, HD-02.8, HD-01.T3: a crash between claim and receipt: the old token is stale under
/// the old epoch and the new one, gated by the restart hold first, and another worker receives under generation 2.
#[test]
fn a_crash_between_claim_and_receipt() {
    let mut world = World::with(lin());
    world.work("a").expect("a");
    let delivery = world.pending("b");
    world.claim(AGENT, &delivery).expect("claim");
    let old = Body::AcknowledgeDelivery(world.ack_of(&delivery));
    let mut zombie = world.command(old.clone());
    recover(&mut world);
    assert_eq!(world.deliveries("b", DeliveryState::Pending).len(), 1);
    let facts = world.facts(AGENT);
    assert_eq!(
        code(world.apply(&zombie, &facts)),
        Err(Code::RevisionConflict),
        "T-69: the revision comes first"
    );
    zombie.expected_revision = Some(world.state().head.revision.into());
    assert_eq!(code(world.apply(&zombie, &facts)), Err(Code::StaleOwner));
    assert_eq!(code(world.send(AGENT, old.clone())), Err(Code::HoldActive));
    clear(&mut world);
    assert_eq!(code(world.send(AGENT, old)), Err(Code::StaleOwner));
    world.claim("agent:w2", &delivery).expect("claim");
    world.ack("agent:w2", &delivery).expect("acknowledge");
    let record = &world
        .state()
        .deliveries
        .get(&delivery)
        .expect("a delivery")
        .record;
    assert_eq!(
        (record.generation.get(), record.state),
        (2, DeliveryState::Acknowledged)
    );
}

/// Proves HD-01.T10, HD-03.9, HD-01.T9: a receipt outlives its lease and its epoch; after recovery the node is admitted
/// under the new epoch with no second claim.
#[test]
fn a_receipt_outlives_its_owner() {
    let mut world = World::with(lin());
    world.work("a").expect("a");
    world.receive("b").expect("b");
    world.now_ms += 1_000;
    recover(&mut world);
    clear(&mut world);
    world.admit("b").expect("admit");
    let row = world.account.clone().expect("an account");
    assert_eq!((world.state().epoch, row.reserved), (2, dec(3)));
}

/// Proves HD-03.10, FV-REC.2, FV-EFF.7: a crash after admission goes on with the same operation; there is no second
/// one, and the attempt of the old owner is not dispatched.
#[test]
fn a_crash_after_admission_keeps_the_operation() {
    let mut world = World::configured(lin(), |config| config.restart_policy = RestartPolicy::Auto);
    world.admit("a").expect("admit");
    recover(&mut world);
    assert_eq!(code(world.dispatch("a")), Err(Code::StaleEpoch));
    assert_eq!(code(world.admit("a")), Err(Code::InputSetConflict));
    world
        .settle("at-a-1", SettledOutcome::ConfirmedNotApplied, 0)
        .expect("returned");
    let retry = praxis_model::command::Intent::RetryOperation {
        operation_id: id("op-a"),
    };
    world.intend(ENGINE, &retry).expect("retry");
    world.dispatch("a").expect("dispatch");
    assert_eq!(world.state().operations.size(), 1);
    assert_eq!(
        world
            .state()
            .operations
            .get("op-a")
            .map(|operation| operation.attempts.len()),
        Some(2)
    );
}

/// Proves HD-02.9, FV-EFF.3: claims go on after recovery, and the uncertain operation beside them is not tried again.
#[test]
fn a_claim_does_not_redispatch() {
    let nodes = vec![
        task("a", &[]),
        task("u", &[]),
        task("b", &["a"]),
        end(&["b", "u"]),
    ];
    let mut world = World::configured(graph(nodes), |config| {
        config.restart_policy = RestartPolicy::Auto
    });
    world.work("a").expect("a");
    world.admit("u").expect("admit");
    world.dispatch("u").expect("dispatch");
    recover(&mut world);
    let delivery = world.pending("b");
    world.claim(AGENT, &delivery).expect("claim");
    let body = praxis_model::command::Dispatch {
        run_id: run_id(),
        owner_epoch: dec(2),
        node_id: id("u"),
        operation_id: id("op-u"),
        attempt_id: id("at-u-1"),
        policy: world.facts(ENGINE).policy,
    };
    assert!(world.send(ENGINE, Body::Dispatch(body)).is_err());
    let retry = praxis_model::command::Intent::RetryOperation {
        operation_id: id("op-u"),
    };
    assert_eq!(
        code(world.intend(ENGINE, &retry)),
        Err(Code::EffectUnresolved)
    );
}

/// Proves HD-04.1: the recipients of a fan-out go their own ways.
#[test]
fn recipients_progress_apart() {
    let nodes = vec![
        task("a", &[]),
        task("x", &["a"]),
        task("y", &["a"]),
        join("j", &["x", "y"]),
        end(&["j"]),
    ];
    let mut world = World::with(graph(nodes));
    world.work("a").expect("a");
    world.work("x").expect("x");
    assert_eq!(world.deliveries("y", DeliveryState::Pending).len(), 1);
    assert_eq!(
        (world.status("x"), world.status("y")),
        (NodeStatus::Completed, NodeStatus::Pending)
    );
}

/// Proves CRD-3, HD-02.4: the time of the commit decides, not that of the authorization: a slow reading of bytes does
/// not stretch a lease, and at equality the next claimant may begin (T-30).
#[test]
fn a_slow_receipt_is_late() {
    let mut world = World::with(lin());
    world.work("a").expect("a");
    let delivery = world.pending("b");
    world.claim(AGENT, &delivery).expect("claim");
    let expires = world.now_ms + 100;
    let body = Body::AcknowledgeDelivery(world.ack_of(&delivery));
    let mut facts = world.facts(AGENT);
    facts.authorized_at_ms = expires - 55;
    facts.now_ms = expires + 5;
    assert_eq!(
        code(world.apply(&world.command(body), &facts)),
        Err(Code::ClaimExpired)
    );
    world.now_ms = expires;
    world.claim("agent:w2", &delivery).expect("claim");
    let kept = world.state().deliveries.get(&delivery).expect("a delivery");
    assert_eq!(
        (kept.record.generation.get(), kept.ended_claims.len()),
        (2, 1)
    );
}

/// Proves HS-04.5, FV-APR.4: an approval and a deadline run out under a hold as they do without one.
#[test]
fn time_runs_under_a_hold() {
    let mut world = coding_world();
    world.prepare(crate::driver::small("plan"));
    let admission_ref = Some(reference("plan"));
    let intent = praxis_model::command::AdmitIntent {
        node_id: id("plan"),
        admission_ref,
    };
    world
        .intend(ENGINE, &praxis_model::command::Intent::Admit(intent))
        .expect("admit");
    world.dispatch("plan").expect("dispatch");
    world
        .settle("at-plan-1", SettledOutcome::ConfirmedApplied, 1)
        .expect("settle");
    world.complete("plan", aiws::object! {}).expect("plan");
    world.receive("ok").expect("ok");
    world.admit_control("ok").expect("admit");
    world.approve("p1", &action_of("impl")).expect("approve");
    world
        .send(
            HUMAN,
            Body::PlaceHold(PlaceHold {
                hold: hold("h1", HoldReason::Operator),
            }),
        )
        .expect("placeHold");
    world.now_ms = 5_000;
    clear(&mut world);
    let rests = praxis_model::command::BoundaryIntent {
        approvals: vec![id("p1")],
        ..boundary("ok", OutcomeStatus::Completed)
    };
    assert_eq!(code(world.commit(rests)), Err(Code::ApprovalStale));
    let mut late = World::with(lin());
    late.now_ms = 100_000;
    assert_eq!(
        code(late.admit("a")),
        Err(Code::GrantExceeded),
        "the grant ended before the contract"
    );
    let mut control = World::with(gates_graph());
    control.now_ms = 99_999;
    control
        .clone()
        .admit_control("p")
        .expect("before the deadline");
    control.now_ms = 100_000;
    assert_eq!(code(control.admit_control("p")), Err(Code::DeadlinePassed));
    assert_eq!(
        plan(control.state(), &[], control.now_ms),
        [praxis_model::plan::Step::HoldForTime { node_id: None }]
    );
}

/// Proves HS-06.5, HD-02.12, HF-05.9: an ended run still takes late truth, and nothing else.
#[test]
fn late_truth_is_settled_after_the_end() {
    let mut world = World::with(lin());
    world.admit("a").expect("admit");
    world.dispatch("a").expect("dispatch");
    let failed = praxis_model::command::BoundaryIntent {
        cause: Some(cause()),
        ..boundary("a", OutcomeStatus::Failed)
    };
    world.commit(failed).expect("boundary");
    let before = world.state().clone();
    world
        .settle("at-a-1", SettledOutcome::ConfirmedApplied, 5)
        .expect("settle");
    assert_eq!(
        (world.state().lifecycle, &world.state().nodes),
        (Lifecycle::Failed, &before.nodes)
    );
    assert_eq!(
        world.account.clone().map(|row| (row.spent, row.reserved)),
        Some((dec(5), dec(0)))
    );
}

/// Proves REL-13: what a manifest says about going on is advice; the plan is the same whatever it says.
#[test]
fn the_plan_ignores_advice() {
    let mut world = World::with(lin());
    world.work("a").expect("a");
    let before = plan(world.state(), &[], world.now_ms);
    let run = world.run.as_mut().expect("a run");
    let (id_of, committed) = run
        .manifests
        .iter()
        .next()
        .map(|(id, committed)| (id.clone(), committed.clone()))
        .expect("a manifest");
    let mut manifest = (*committed.manifest).clone();
    manifest.resume.eligible_node_ids = vec![id("end")];
    run.manifests.insert_mut(
        id_of,
        praxis_model::run::Committed {
            manifest: std::sync::Arc::new(manifest),
            ..committed
        },
    );
    assert_eq!(plan(world.state(), &[], world.now_ms), before);
}

/// Proves REL-5: in every position of a run deliveries, recipients, manifests and claims name each other exactly.
#[test]
fn projections_agree() {
    let mut world = coding_world();
    drive(&mut world, false);
    let (admission, hash) = &world.events[1];
    let mut state = praxis_model::run::RunState::admitted(admission, hash).expect("an admission");
    for (event, hash) in &world.events[2..] {
        state = praxis_model::evolve::run(state, event, hash).expect("a legal event");
        for (id, delivery) in &state.deliveries {
            let record = &delivery.record;
            let committed = state
                .manifests
                .get(&record.handoff.handoff_id)
                .expect("a manifest");
            assert_eq!(
                (id, committed.digest),
                (&record.recipient.delivery_id, record.handoff.digest)
            );
            assert!(committed.manifest.recipients.contains(&record.recipient));
            let generation = record
                .claim
                .as_ref()
                .map_or(0, |claim| claim.generation.get());
            assert_eq!(generation, record.generation.get());
        }
    }
}

/// Proves FV-CMD.8: names are opaque: slashes, dots, spaces and any Unicode behave alike.
#[test]
fn names_are_opaque() {
    let odd = ["../../etc", "a b", "\u{1f980}", "x:y#z?q=1"];
    let nodes = vec![
        task(odd[0], &[]),
        task(odd[1], &[odd[0]]),
        join(odd[2], &[odd[1]]),
        node(odd[3], aiws::record::NodeKind::End, &[odd[2]]),
    ];
    let mut world = World::with(graph(nodes));
    world.work(odd[0]).expect("a task");
    world.work(odd[1]).expect("a task");
    world.pass(odd[2], aiws::object! {}).expect("a join");
    world
        .pass(odd[3], aiws::object! { "disposition": "COMPLETED" })
        .expect("an end");
    assert_eq!(world.status(odd[3]), NodeStatus::Completed);
}

/// Proves HS-04.3, HS-07.2: two runs of the same story are the same bytes, and no model, clock or chance is asked.
#[test]
fn the_same_story_is_the_same_bytes() {
    let tell = || {
        let mut world = coding_world();
        drive(&mut world, false);
        aiws::canonical::bytes_of(
            &world
                .events
                .iter()
                .map(|(event, _)| event.clone())
                .collect::<Vec<_>>(),
        )
        .expect("canonical")
    };
    assert_eq!(tell(), tell());
}

/// Proves FV-APR.2, FV-APR.4: work whose approval ran out before it was tried waits for a human, and goes on under a new
/// approval of exactly the same action, which then belongs to that operation alone (T-80).
#[test]
fn a_lapsed_approval_is_given_again() {
    let mut world = World::with(gates_graph());
    world.admit_control("p").expect("admit");
    world.approve("p1", &action_of("a")).expect("approve");
    let rests = praxis_model::command::BoundaryIntent {
        approvals: vec![id("p1")],
        ..boundary("p", OutcomeStatus::Completed)
    };
    world.commit(rests).expect("boundary");
    world.receive("a").expect("a");
    let mut before = world.clone();
    world.prepare(aiws::record::AdmissionProposal {
        approval_id: Some(id("p1")),
        ..proposal("a")
    });
    let admission_ref = Some(reference("a"));
    let intent = praxis_model::command::Intent::Admit(praxis_model::command::AdmitIntent {
        node_id: id("a"),
        admission_ref,
    });
    world.intend(ENGINE, &intent).expect("admit");
    let waits = |world: &World| praxis_model::plan::waits(world.state(), &[], world.now_ms);
    let wait = vec![praxis_model::plan::Wait::Approval { node_id: id("a") }];
    for world in [&mut world, &mut before] {
        assert_eq!(waits(world), Vec::new());
        world.now_ms = 5_000;
        assert_eq!(waits(world), wait);
        assert!(plan(world.state(), &[], world.now_ms).is_empty());
    }
    assert_eq!(code(world.dispatch("a")), Err(Code::ApprovalStale));
    let approve = |world: &mut World, name: &str, action: &aiws::json::Value| {
        let body = praxis_model::command::Approve {
            approval_id: id(name),
            run_id: run_id(),
            fingerprint: fingerprint(action),
            decision: aiws::record::ApprovalDecision::Approved,
            expires_at_ms: aiws::decimal::Ms::from_u64(9_000),
        };
        world.send(HUMAN, Body::Approve(body)).expect("approve");
    };
    approve(&mut world, "other", &action_of("b"));
    assert_eq!(
        code(world.dispatch("a")),
        Err(Code::ApprovalStale),
        "another action"
    );
    assert_eq!(waits(&world), wait);
    approve(&mut world, "p2", &action_of("a"));
    world.dispatch("a").expect("dispatch");
    let bound = world
        .state()
        .approvals
        .get("p2")
        .and_then(|approval| approval.operation_id.clone());
    assert_eq!(bound, Some(id("op-a")));
    // An admission names its approval itself: the lapsed one gets no other.
    before.prepare(aiws::record::AdmissionProposal {
        approval_id: Some(id("p1")),
        ..proposal("a")
    });
    approve(&mut before, "p2", &action_of("a"));
    assert_eq!(
        code(before.intend(ENGINE, &intent)),
        Err(Code::ApprovalStale)
    );
}

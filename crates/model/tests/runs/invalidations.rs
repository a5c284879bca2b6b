//! Runs in which a hand-off turns out to be wrong: joins, branches, gates, and what is left to do.

use aiws::error::Code;
use aiws::object;
use aiws::record::{
    AcceptanceVerdict, AttemptStatus, ConsumptionState, Criterion, CriterionStatus, DeliveryState,
    Graph, HandoffRef, HoldDecision, HoldState, Lifecycle, NodeKind, OutcomeStatus, SettledOutcome,
    VerificationVerdict,
};
use praxis_model::command::{
    Body, BoundaryIntent, FinishCancelRun, InvalidateHandoff, ResolveHold,
};
use praxis_model::plan::{Aggregate, Step as Next, Wait, aggregate, plan, waits};
use praxis_model::run::{NodeStatus, RunState};
use praxis_model::{evolve, report};

use crate::world::*;

/// The hand-off of a node.
fn handoff(world: &World, node: &str) -> HandoffRef {
    let mut all = world.state().manifests.values();
    let found = all
        .find(|committed| committed.manifest.producer.node_id.as_str() == node)
        .expect("a manifest");
    HandoffRef {
        handoff_id: found.manifest.handoff_id.clone(),
        digest: found.digest,
    }
}

fn invalidate(world: &mut World, actor: &str, node: &str) -> Step {
    let body = InvalidateHandoff {
        handoff: handoff(world, node),
        reason: format!("{node} is wrong"),
        evidence: vec![id("review")],
        hold: None,
    };
    world.send(actor, Body::InvalidateHandoff(body))
}

fn code(step: Step) -> Result<(), Code> {
    step.map(drop).map_err(|error| error.code())
}

fn consumption(world: &World, node: &str) -> ConsumptionState {
    let own = world.state().nodes.get(node).expect("a node");
    let bound = world.state().consumptions.get(&own.activation_id);
    bound.expect("a consumption").state
}

/// x and y before the task j, which takes both.
fn diamond() -> Graph {
    graph(vec![
        task("x", &[]),
        task("y", &[]),
        task("j", &["x", "y"]),
        task("k", &["j"]),
        end(&["k"]),
    ])
}

/// Proves HD-05.1, HD-05.2, HD-05.3, HS-05.2: one of two inputs is invalidated while the work on both is in flight.
/// The work is settled and tells its result, which nobody receives; the other input stays; the run ends by cancellation.
#[test]
fn an_input_goes_while_its_consumer_works() {
    let mut world = World::with(diamond());
    world.work_with("x", &artifact("patch")).expect("x");
    world.work("y").expect("y");
    world.receive("j").expect("received");
    world.admit("j").expect("admitted");
    world.dispatch("j").expect("dispatched");
    invalidate(&mut world, HUMAN, "x").expect("invalidated");
    assert_eq!(consumption(&world, "j"), ConsumptionState::Invalidated);
    let states = |state| world.deliveries("j", state).len();
    assert_eq!(
        (
            states(DeliveryState::Invalidated),
            states(DeliveryState::Acknowledged)
        ),
        (1, 1),
        "y's delivery keeps its receipt"
    );
    assert_eq!(
        aggregate(world.state(), &[], world.now_ms),
        Aggregate::Running
    );
    world
        .settle("at-j-1", SettledOutcome::ConfirmedApplied, 2)
        .expect("settled late");
    let row = world.account.clone().expect("an account");
    assert_eq!(row.spent, dec(8), "what was really spent, of all three");
    // T-36: what was admitted before tells its result; it reaches nobody.
    let steps = plan(world.state(), &[], world.now_ms);
    assert_eq!(steps, [Next::Conclude { node_id: id("j") }]);
    world.complete("j", object! {}).expect("told");
    let told = world.pending("k");
    assert_eq!(code(world.claim(AGENT, &told)), Err(Code::HoldActive));
    // The bytes are there as they ever were; the hand-off is invalid all the same.
    let hold_id = world.state().holds.keys().next().expect("a hold").clone();
    let resolve = |decision| {
        Body::ResolveHold(ResolveHold {
            hold_id: hold_id.clone(),
            decision,
            decision_ref: id("decision-1"),
            evidence: Vec::new(),
            rule: None,
        })
    };
    let recheck = world.send(HUMAN, resolve(HoldDecision::Recheck));
    assert_eq!(code(recheck), Err(Code::HoldNotClear));
    world
        .send(HUMAN, resolve(HoldDecision::Cancel))
        .expect("canceled");
    let finish = FinishCancelRun {
        run_id: run_id(),
        reason: "x is wrong".to_owned(),
        decision_ref: id("decision-1"),
    };
    world
        .send(HUMAN, Body::FinishCancelRun(finish))
        .expect("finished");
    assert_eq!(world.state().lifecycle, Lifecycle::Canceled);
    assert_eq!(world.status("j"), NodeStatus::Completed, "history stays");
}

/// Proves HD-01.T5, HD-01.T7: what a choice had excluded stays excluded when its hand-off is invalidated, and is not
/// among what was affected.
#[test]
fn an_excluded_delivery_stays_excluded() {
    let nodes = vec![
        task("p", &[]),
        decision("d", &[], "x", "y"),
        task("x", &["d", "p"]),
        task("y", &["d", "p"]),
        join("j", &["x", "y"]),
        end(&["j"]),
    ];
    let mut world = World::configured(graph(nodes), |config| {
        config.optional_inputs = vec![optional("j", "x"), optional("j", "y")];
    });
    world.work("p").expect("p");
    let (chosen, unchosen) = (world.pending("x"), world.pending("y"));
    world.admit_control("d").expect("d");
    world.complete("d", object! { "pass": true }).expect("d");
    invalidate(&mut world, "rule:r1", "p").expect("invalidated");
    let state = |delivery| {
        let found = world.state().deliveries.get(delivery);
        found.expect("a delivery").record.state
    };
    assert_eq!(
        (state(&chosen), state(&unchosen)),
        (DeliveryState::Invalidated, DeliveryState::Excluded)
    );
    let record = world.state().invalidations.values().next().expect("one");
    assert_eq!(record.affected_deliveries, [chosen]);
}

/// Proves FV-ASM.3, FV-NODE-VERIFICATION.1, FV-NODE-ACCEPTANCE.1: a gate that was admitted before rests on nothing once
/// what was assessed is invalid; with a new assessment it may be told, and the run stays held.
#[test]
fn a_gate_closes_with_its_assessment() {
    for kind in [NodeKind::Verification, NodeKind::Acceptance] {
        let nodes = vec![
            task("a", &[]),
            node("gate", kind.clone(), &["a"]),
            end(&["gate"]),
        ];
        let mut world = World::with(graph(nodes));
        world.work("a").expect("a");
        world.receive("gate").expect("received");
        world.admit_control("gate").expect("admitted");
        world
            .verify("v1", VerificationVerdict::Pass)
            .expect("verified");
        world
            .accept("c1", AcceptanceVerdict::Accepted)
            .expect("accepted");
        let told = |name: &str| BoundaryIntent {
            criteria: vec![Criterion {
                criterion_id: id(kind.name()),
                status: CriterionStatus::Met,
                evidence: vec![id(name)],
            }],
            ..boundary("gate", OutcomeStatus::Completed)
        };
        let first = match kind {
            NodeKind::Verification => ["v1", "v2"],
            _ => ["c1", "c2"],
        };
        let before = world.clone();
        invalidate(&mut world, ENGINE, "a").expect("invalidated");
        assert_eq!(
            code(world.commit(told(first[0]))),
            Err(Code::EvidenceInvalid)
        );
        assert_eq!(
            code(before.clone().commit(told(first[0]))),
            Ok(()),
            "it was open before"
        );
        world
            .verify("v2", VerificationVerdict::Pass)
            .expect("verified again");
        world
            .accept("c2", AcceptanceVerdict::Accepted)
            .expect("accepted again");
        world.commit(told(first[1])).expect("told");
        let end = world.pending("end");
        assert_eq!(code(world.claim(AGENT, &end)), Err(Code::HoldActive));
    }
}

/// Proves HD-05.1, FV-ASM.3: an assessment that the invalidated hand-off itself cites goes with it, although it was said
/// before.
#[test]
fn a_cited_assessment_goes_with_its_gate() {
    let mut world = World::with(gates_graph());
    world.approve("p1", &action_of("a")).expect("approved");
    world.admit_control("p").expect("p");
    let rests = BoundaryIntent {
        approvals: vec![id("p1")],
        ..boundary("p", OutcomeStatus::Completed)
    };
    world.commit(rests).expect("p");
    world.receive("a").expect("received");
    world.prepare(aiws::record::AdmissionProposal {
        approval_id: Some(id("p1")),
        ..proposal("a")
    });
    let admit = praxis_model::command::AdmitIntent {
        node_id: id("a"),
        admission_ref: Some(reference("a")),
    };
    world
        .intend(ENGINE, &praxis_model::command::Intent::Admit(admit))
        .expect("admitted");
    world.dispatch("a").expect("dispatched");
    world
        .settle("at-a-1", SettledOutcome::ConfirmedApplied, 3)
        .expect("settled");
    world.complete("a", object! {}).expect("a");
    world
        .verify("v1", VerificationVerdict::Pass)
        .expect("verified");
    world.pass("v", object! {}).expect("v");
    invalidate(&mut world, HUMAN, "v").expect("invalidated");
    let record = world.state().invalidations.values().next().expect("one");
    assert_eq!(record.affected_assessments, [id("v1")]);
    // Invalidating again something further up finds nothing that still counts.
    invalidate(&mut world, HUMAN, "a").expect("invalidated");
    let record = world
        .state()
        .invalidations
        .get(&handoff(&world, "a").handoff_id)
        .expect("one");
    assert!(record.affected_assessments.is_empty());
    assert_eq!(world.state().holds.size(), 2, "each has its own hold");
}

/// Proves HS-06.5, HD-05.2: late evidence against a hand-off of a completed run is recorded, and the run stays completed.
#[test]
fn a_completed_run_stays_completed() {
    let mut world = World::lin_done();
    world.finish().expect("completed");
    let before = world.clone();
    invalidate(&mut world, HUMAN, "a").expect("invalidated");
    let (now, old) = (world.state(), before.state());
    assert_eq!(
        (now.lifecycle, &now.nodes, &now.attempts, &now.holds),
        (Lifecycle::Completed, &old.nodes, &old.attempts, &old.holds)
    );
    assert_eq!(
        (&world.account, &world.registers),
        (&before.account, &before.registers)
    );
    assert_eq!(consumption(&world, "b"), ConsumptionState::Invalidated);
    assert!(plan(now, &[], world.now_ms).is_empty() && waits(now, &[], world.now_ms).is_empty());
    let again = invalidate(&mut world, HUMAN, "a");
    assert_eq!(code(again), Err(Code::DeliveryState));
}

/// Proves HS-07.2, HS-07.4, HD-05.1, REP-2: the invalidation is one event with actor, policy, time and result, the events
/// alone make the state, and the report shows what is invalid, held and waited for.
#[test]
fn an_invalidation_is_one_event() {
    let mut world = World::with(diamond());
    world.work("x").expect("x");
    world.receive("j").expect("received");
    let events = world.events.len();
    let result = invalidate(&mut world, HUMAN, "x").expect("invalidated");
    assert_eq!(world.events.len(), events + 1);
    let (event, _) = world.events.last().expect("an event");
    assert_eq!(
        (event.kind.name(), event.actor_id.as_str(), &event.result),
        ("invalidateHandoff", HUMAN, &result)
    );
    for member in ["invalidationId", "handoff", "deliveries", "holdId"] {
        assert!(result.get(member).is_some_and(|found| !found.is_null()));
    }
    let (admission, hash) = &world.events[1];
    let mut state = RunState::admitted(admission, hash).expect("admitted");
    for (event, hash) in &world.events[2..] {
        state = evolve::run(state, event, hash).expect("folds");
    }
    assert_eq!(&state, world.state());
    let report = report::of(world.state());
    assert_eq!(report.deliveries.get("INVALIDATED"), Some(&1));
    assert!(report.held && report.blocked_nodes.contains(&id("j")));
    assert_eq!(report.aggregate, Aggregate::Waiting);
    let hold = world.state().holds.values().next().expect("a hold");
    assert_eq!(hold.state, HoldState::Open);
    let hold_id = hold.hold_id.clone();
    assert_eq!(
        waits(world.state(), &[], world.now_ms),
        [Wait::Hold { hold_id }]
    );
    let attempts = world.state().attempts.values();
    let mut open = attempts.filter(|attempt| attempt.status == AttemptStatus::Dispatched);
    assert!(open.next().is_none());
}

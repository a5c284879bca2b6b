//! Where invalidation meets JOIN ANY and LOOP: what was taken, what was left out, what was generated, what iterates.
//!
//! Invariant: what a choice closed stays closed, what it consumed becomes invalid, and nothing is launched any more.

use aiws::error::Code;
use aiws::object;
use aiws::record::{
    ConsumptionState, DeliveryState, HandoffRef, HoldDecision, HoldReason, HoldState, Invalidation,
    Lifecycle, OutcomeStatus, SettledOutcome,
};
use praxis_model::command::{
    Body, BoundaryIntent, FinishCancelRun, InvalidateHandoff, ResolveHold,
};
use praxis_model::evolve;
use praxis_model::plan::{Step as Next, plan};
use praxis_model::run::{NodeStatus, RunState};
use praxis_model::stream::activation;

use crate::driver::{racing_world, take};
use crate::walk::{Before, check};
use crate::world::*;

/// The last hand-off of a node.
fn handoff(world: &World, node: &str) -> HandoffRef {
    let all = world.state().manifests.values();
    let mine = all.filter(|one| one.manifest.producer.node_id.as_str() == node);
    let found = mine.max_by_key(|one| one.revision).expect("a manifest");
    HandoffRef {
        handoff_id: found.manifest.handoff_id.clone(),
        digest: found.digest,
    }
}

fn send(world: &mut World, handoff: HandoffRef) -> Step {
    let body = InvalidateHandoff {
        handoff,
        reason: "it is wrong".to_owned(),
        evidence: vec![id("review")],
        hold: None,
    };
    world.send(HUMAN, Body::InvalidateHandoff(body))
}

/// Invalidates the last hand-off of a node; what was affected. The events alone make the state afterwards, too.
fn invalidate(world: &mut World, node: &str) -> Invalidation {
    let handoff = handoff(world, node);
    send(world, handoff.clone()).expect("invalidated");
    refolds(world);
    let record = world.state().invalidations.get(&handoff.handoff_id);
    record.expect("a record").clone()
}

fn refolds(world: &World) {
    let (admission, hash) = &world.events[1];
    let mut state = RunState::admitted(admission, hash).expect("admitted");
    for (event, hash) in &world.events[2..] {
        state = evolve::run(state, event, hash).expect("folds");
    }
    assert_eq!(&state, world.state());
}

fn state_of(world: &World, from: &str, to: &str) -> DeliveryState {
    let delivery = world.state().deliveries.get(&world.between(from, to));
    delivery.expect("a delivery").record.state
}

fn bound(world: &World, node: &str, iteration: u64) -> ConsumptionState {
    let activation = activation(&world.state().stream, &id(node), iteration);
    let bound = world.state().consumptions.get(&activation);
    bound.expect("a consumption").state
}

fn code(step: Step) -> Result<(), Code> {
    step.map(drop).map_err(|error| error.code())
}

/// As if no hold had ever been opened.
fn unheld(world: &World) -> World {
    let mut world = world.clone();
    world.run.as_mut().expect("a run").holds = Default::default();
    world
}

fn resolve(world: &mut World, hold_id: &aiws::id::HoldId, decision: HoldDecision) -> Step {
    let body = ResolveHold {
        hold_id: hold_id.clone(),
        decision,
        decision_ref: id("decision-1"),
        evidence: Vec::new(),
        rule: None,
    };
    world.send(HUMAN, Body::ResolveHold(body))
}

/// x is done and received, and j has taken it; y was not begun and is left out.
fn chosen() -> World {
    let mut world = any_world();
    world.pass("s", object! {}).expect("s");
    world.work("x").expect("x");
    world.take("x", "j").expect("received");
    world.admit_control("j").expect("admitted");
    world
}

/// Proves HD-05.1, HD-05.2, HD-01.T7, HD-04.6: the one input that an ANY join took goes: its consumption is invalid, its
/// receipt stays, and the delivery of the loser's generated hand-off stays closed. The join tells its result to nobody.
#[test]
fn the_taken_input_goes() {
    let mut world = chosen();
    assert_eq!(state_of(&world, "y", "j"), DeliveryState::Excluded);
    let record = invalidate(&mut world, "x");
    assert_eq!(record.affected_deliveries, [world.between("x", "j")]);
    assert_eq!(record.affected_consumptions.len(), 1);
    assert_eq!(bound(&world, "j", 1), ConsumptionState::Invalidated);
    assert_eq!(state_of(&world, "x", "j"), DeliveryState::Invalidated);
    assert_eq!(state_of(&world, "y", "j"), DeliveryState::Excluded);
    let steps = plan(world.state(), &[], world.now_ms);
    assert_eq!(steps, [Next::Conclude { node_id: id("j") }]);
    world.complete("j", object! {}).expect("told");
    let told = world.pending("end");
    assert_eq!(code(world.claim(AGENT, &told)), Err(Code::HoldActive));
    // What was left out does not come back for what was taken.
    assert_eq!(world.status("y"), NodeStatus::Skipped);
}

/// Proves HD-05.1, HD-04.9, T-40: a loser's receipt becomes invalid with its hand-off, and the choice stands: what was not
/// taken is no basis of it.
#[test]
fn a_loser_goes_and_the_choice_stands() {
    let mut world = World::with(any_graph());
    world.pass("s", object! {}).expect("s");
    world.work("x").expect("x");
    world.work("y").expect("y");
    world.take("y", "j").expect("received");
    world.take("x", "j").expect("received");
    world.admit_control("j").expect("admitted");
    let record = invalidate(&mut world, "x");
    assert_eq!(record.affected_deliveries, [world.between("x", "j")]);
    assert!(record.affected_consumptions.is_empty());
    assert_eq!(state_of(&world, "x", "j"), DeliveryState::Invalidated);
    assert_eq!(bound(&world, "j", 1), ConsumptionState::Valid);
}

/// Proves HD-01.T5, HD-01.T7, HF-05.7: what a join left out and what was generated for it can be found wrong, too: nothing
/// moves, and the run is held all the same.
#[test]
fn what_was_left_out_stays_out() {
    let mut late = any_world();
    late.pass("s", object! {}).expect("s");
    late.work("x").expect("x");
    late.work("y").expect("y");
    late.take("x", "j").expect("received");
    late.admit_control("j").expect("admitted");
    for mut world in [chosen(), late] {
        let record = invalidate(&mut world, "y");
        assert!(record.affected_deliveries.is_empty() && record.affected_consumptions.is_empty());
        assert_eq!(state_of(&world, "y", "j"), DeliveryState::Excluded);
        assert_eq!(bound(&world, "j", 1), ConsumptionState::Valid);
        assert_eq!(world.state().holds.size(), 1);
        let again = handoff(&world, "y");
        assert_eq!(code(send(&mut world, again)), Err(Code::DeliveryState));
    }
}

/// Proves HD-05.5, HD-04.6, ERR-DELIVERY_STATE: an invalid receipt is no candidate of an ANY join, not even were there no
/// hold; a valid one is, and the invalid one is neither taken, closed nor remembered.
#[test]
fn an_invalid_receipt_is_not_taken() {
    let mut world = any_world();
    world.pass("s", object! {}).expect("s");
    world.work("x").expect("x");
    world.take("x", "j").expect("received");
    invalidate(&mut world, "x");
    assert_eq!(code(world.admit_control("j")), Err(Code::HoldActive));
    let mut world = unheld(&world);
    assert_eq!(code(world.admit_control("j")), Err(Code::NodeNotReady));
    world.work("y").expect("y");
    world.take("y", "j").expect("received");
    world.admit_control("j").expect("admitted");
    let own = world.state().nodes.get("j").expect("a join");
    let kept = world.state().consumptions.get(&own.activation_id);
    let kept = kept.expect("a consumption");
    assert_eq!(kept.join.selected, [world.between("y", "j")]);
    assert!(kept.join.excluded.is_empty() && kept.join.unselected_acknowledged.is_empty());
}

/// a (FORK) -> l (at most three iterations) -> end, with this iteration in flight.
fn iterating(number: u64) -> World {
    let nodes = vec![fork("a", &[]), looped("l", 3, &["a"]), end(&["l"])];
    let mut world = World::with(graph(nodes));
    world.pass("a", object! {}).expect("a");
    world.receive("l").expect("received");
    for before in 1..number {
        world.iterate("l", before, false).expect("an iteration");
    }
    world.admit_iteration("l", number).expect("admitted");
    world.dispatch("l").expect("dispatched");
    world
}

fn says(done: bool) -> BoundaryIntent {
    BoundaryIntent {
        result: object! { "done": done },
        ..boundary("l", OutcomeStatus::Completed)
    }
}

/// Proves HD-05.1, HD-05.3, HD-05.5, FV-NODE-LOOP.2, T-36: every iteration has consumed what the LOOP received, so all of
/// them are invalid with it. The one in flight tells its result, and none follows, not even were there no hold.
#[test]
fn every_iteration_goes_with_its_input() {
    let mut world = iterating(2);
    let record = invalidate(&mut world, "a");
    assert_eq!(record.affected_deliveries, [world.between("a", "l")]);
    assert_eq!(record.affected_consumptions.len(), 2);
    for number in 1..=2 {
        assert_eq!(bound(&world, "l", number), ConsumptionState::Invalidated);
    }
    world
        .settle("at-l.2-1", SettledOutcome::ConfirmedApplied, 1)
        .expect("settled late");
    world.commit(says(false)).expect("told");
    let own = world.state().nodes.get("l").expect("a loop").clone();
    assert_eq!((own.status, own.iteration), (NodeStatus::Pending, 3));
    assert!(plan(world.state(), &[], world.now_ms).is_empty());
    assert_eq!(code(world.admit_iteration("l", 3)), Err(Code::HoldActive));
    let mut free = unheld(&world);
    assert_eq!(
        code(free.admit_iteration("l", 3)),
        Err(Code::NodeNotReady),
        "nothing is drafted for it"
    );
    assert!(plan(free.state(), &[], free.now_ms).is_empty());
}

/// Proves HS-02.1, HD-05.1, HD-05.8, HS-03.2: a LOOP whose input goes while its last iteration is in flight still reaches
/// its bound in one BLOCKED commit. The two holds stand beside each other, neither clears, and a cancellation ends both.
#[test]
fn a_bound_is_reached_under_an_invalidation() {
    let mut world = iterating(3);
    invalidate(&mut world, "a");
    world
        .settle("at-l.3-1", SettledOutcome::ConfirmedApplied, 1)
        .expect("settled late");
    world.commit(says(false)).expect("the bound");
    assert_eq!(world.status("l"), NodeStatus::Blocked);
    // The BLOCKED hand-off reached nobody; it can be found wrong like any other.
    let record = invalidate(&mut world, "l");
    assert!(record.affected_deliveries.is_empty() && record.affected_consumptions.is_empty());
    assert_eq!(world.status("l"), NodeStatus::Blocked);
    let holds = world.state().holds.values();
    let mut reasons: Vec<HoldReason> = holds.map(|hold| hold.reason).collect();
    reasons.sort();
    let (bound, invalid) = (HoldReason::AttemptLimit, HoldReason::InvalidatedInput);
    assert_eq!(reasons, [bound, invalid, invalid]);
    let ids: Vec<_> = world.state().holds.keys().cloned().collect();
    for hold_id in &ids {
        let recheck = resolve(&mut world, hold_id, HoldDecision::Recheck);
        assert_eq!(code(recheck), Err(Code::HoldNotClear));
    }
    resolve(&mut world, &ids[0], HoldDecision::Cancel).expect("canceled");
    finish(&mut world);
    let mut all = world.state().holds.values();
    assert!(all.all(|hold| hold.state != HoldState::Open));
    refolds(&world);
}

fn finish(world: &mut World) {
    let body = FinishCancelRun {
        run_id: run_id(),
        reason: "it is wrong".to_owned(),
        decision_ref: id("decision-1"),
    };
    world
        .send(HUMAN, Body::FinishCancelRun(body))
        .expect("finished");
    assert_eq!(world.state().lifecycle, Lifecycle::Canceled);
}

/// Proves HD-05.1, HD-05.3, HD-05.5, HF-05.7, FV-NODE-JOIN.2, FV-NODE-LOOP.2: whichever hand-off goes, wherever in a run with
/// FORK, LOOP and JOIN ANY: what was admitted tells its result, nothing is launched, and a cancellation ends the run.
#[test]
fn wherever_a_hand_off_goes_the_run_stops() {
    let mut tried = 0;
    for (last, done_in) in [(true, 1), (true, 2), (true, 9), (false, 1), (false, 2)] {
        let mut world = racing_world();
        for _ in 0..60 {
            tried += everything_goes(&world);
            let steps = plan(world.state(), &[], world.now_ms);
            let next = if last { steps.last() } else { steps.first() };
            let Some(next) = next else { break };
            let iteration = world.state().nodes.get("l").expect("a loop").iteration;
            take(&mut world, next, iteration >= done_in).expect("a step");
        }
    }
    assert!(tried > 100, "only {tried} invalidations");
}

/// Invalidates each hand-off of a world in a copy of it, and lets the copy end; how many there were.
fn everything_goes(world: &World) -> usize {
    let all = world.state().manifests.values();
    let live = !world.state().lifecycle.is_terminal();
    for one in all {
        let mut world = world.clone();
        let digest = one.digest;
        let handoff_id = one.manifest.handoff_id.clone();
        let handoff = HandoffRef { handoff_id, digest };
        checked(&mut world, |world| send(world, handoff));
        for _ in 0..10 {
            let Some(next) = plan(world.state(), &[], world.now_ms).first().cloned() else {
                break;
            };
            assert!(matches!(next, Next::Conclude { .. }), "{next:?}");
            checked(&mut world, |world| take(world, &next, false));
        }
        assert!(plan(world.state(), &[], world.now_ms).is_empty());
        if live {
            let holds = world.state().holds.values();
            let mut open = holds.filter(|hold| hold.reason == HoldReason::InvalidatedInput);
            let hold_id = open.next().expect("a hold").hold_id.clone();
            resolve(&mut world, &hold_id, HoldDecision::Cancel).expect("canceled");
            finish(&mut world);
        }
        refolds(&world);
    }
    world.state().manifests.size()
}

/// Does one thing that must be accepted, and whatever holds after every step of a walk holds after it.
fn checked(world: &mut World, act: impl FnOnce(&mut World) -> Step) {
    let before = Before::of(world);
    let step = act(world);
    check(&before, world, &step);
    step.unwrap_or_else(|error| panic!("{error} {:?}", error.details));
}

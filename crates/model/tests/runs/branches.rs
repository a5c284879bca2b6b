//! Runs with a held branch: what the plan, the report and the fold say of both sides of it.
//!
//! Invariant: beside a held branch everything goes on, and in it nothing begins.

use std::collections::BTreeSet;

use aiws::id::NodeId;
use aiws::record::{
    HoldDecision, HoldReason, HoldScopeKind, Lifecycle, NodeSet, RestartPolicy, SettledOutcome,
};
use praxis_model::command::{Body, PlaceHold, RecoverOwnership};
use praxis_model::event::{Event, Gate};
use praxis_model::evolve::{self, IllegalEvent};
use praxis_model::plan::{Aggregate, Step as Next, Wait, aggregate, plan, ready_nodes, waits};
use praxis_model::report;
use praxis_model::run::{NodeStatus, RunState};
use praxis_model::transition::Transition;

use crate::driver::{drive, take};
use crate::world::*;

fn steps(world: &World) -> Vec<Next> {
    plan(world.state(), &[], world.now_ms)
}

fn at(world: &World) -> Aggregate {
    aggregate(world.state(), &[], world.now_ms)
}

fn names(nodes: &[NodeId]) -> Vec<&str> {
    nodes.iter().map(NodeId::as_str).collect()
}

/// Does what the plan says until it says nothing more.
fn run_out(world: &mut World) {
    for _ in 0..100 {
        let Some(next) = steps(world).first().cloned() else {
            return;
        };
        take(world, &next, true).unwrap_or_else(|error| panic!("{next:?}: {error}"));
    }
    panic!("the plan does not end");
}

/// The run's state, from its events alone.
fn refold(events: &[(Event, aiws::digest::Digest)]) -> Result<RunState, IllegalEvent> {
    let (admission, hash) = &events[1];
    let mut state = RunState::admitted(admission, hash)?;
    for (event, hash) in &events[2..] {
        state = evolve::run(state, event, hash)?;
    }
    Ok(state)
}

/// Proves X-05, HS-01.8, HS-05.4, HS-05.5, HS-05.7, HLD-1, REP-2: beside the held branch of x the branch of y goes to its
/// end; j and the end wait with x. The run is READY while something can be done, RUNNING while y is tried and WAITING once
/// y is idle, and the report tells the execution and the hold side by side.
#[test]
fn x_05_a_held_branch_beside_a_free_one() {
    let mut world = World::with(all_graph());
    world.pass("s", aiws::object! {}).expect("s");
    let artifact = aiws::record::Blocker {
        kind: HoldReason::Artifact,
        subject_id: id("patch"),
        evidence: Vec::new(),
    };
    let hold = praxis_model::command::HoldProposal {
        reason: HoldReason::Artifact,
        blockers: vec![artifact],
        ..branch_hold("h1", "x")
    };
    world
        .send("rule:r1", Body::PlaceHold(PlaceHold { hold }))
        .expect("held");
    let to_y = world.between("s", "y");
    assert_eq!(steps(&world), [Next::Receive { delivery_id: to_y }]);
    assert_eq!(names(&ready_nodes(world.state())), ["y"]);
    assert_eq!(at(&world), Aggregate::Ready);
    world.receive("y").expect("received");
    world.admit("y").expect("admitted");
    world.dispatch("y").expect("dispatched");
    assert_eq!(at(&world), Aggregate::Running);
    let told = report::of(world.state());
    assert_eq!((told.aggregate, told.held), (Aggregate::Running, true));
    let blocked: BTreeSet<&str> = names(&told.blocked_nodes).into_iter().collect();
    assert_eq!(blocked, BTreeSet::from(["x", "j", "end"]));
    for node in &told.nodes {
        let held = ["x", "j", "end"].contains(&node.node_id.as_str());
        assert_eq!(!node.held_by.is_empty(), held, "{}", node.node_id);
    }
    assert_eq!(told.holds[0].scope, HoldScopeKind::Branch);
    let nodes = NodeSet::Named(vec![id("x"), id("j"), id("end")]);
    assert_eq!(told.holds[0].members[0].node_ids, nodes);
    world
        .settle("at-y-1", SettledOutcome::ConfirmedApplied, 3)
        .expect("settled");
    run_out(&mut world);
    assert_eq!(world.status("y"), NodeStatus::Completed);
    assert_eq!(world.status("j"), NodeStatus::Pending);
    assert!(world.state().consumptions.size() == 2, "s and y alone");
    assert_eq!(at(&world), Aggregate::Waiting);
    let hold_id = id("h1");
    assert_eq!(
        waits(world.state(), &[], world.now_ms),
        [Wait::Hold { hold_id }]
    );
    assert_eq!(refold(&world.events).as_ref(), Ok(world.state()));
}

/// Proves HS-01.8, HS-03.2, HS-05.8: released, the branch goes on where it stood, and the run to its end.
#[test]
fn a_released_branch_goes_on() {
    for held in ["x", "y", "j", "end", "s"] {
        let mut world = World::with(all_graph());
        world.hold_branch("h1", held).expect("held");
        run_out(&mut world);
        let before = world.clone();
        assert_eq!(at(&world), Aggregate::Waiting, "{held}");
        let mut reached: Vec<&str> = ["s", "x", "y", "j", "end"]
            .into_iter()
            .filter(|node| world.status(node) == NodeStatus::Completed)
            .collect();
        let expected: &[&str] = match held {
            "x" => &["s", "y"],
            "y" => &["s", "x"],
            "j" => &["s", "x", "y"],
            "end" => &["s", "x", "y", "j"],
            _ => &[],
        };
        reached.sort_by_key(|node| expected.iter().position(|one| one == node));
        assert_eq!(reached, expected, "{held}");
        world
            .end_hold("h1", HoldDecision::Recheck)
            .expect("released");
        let (now, old) = (world.state(), before.state());
        assert_eq!(
            (&now.nodes, &now.operations, &now.deliveries),
            (&old.nodes, &old.operations, &old.deliveries),
            "a release starts nothing"
        );
        drive(&mut world, true);
        assert_eq!(world.state().lifecycle, Lifecycle::Completed, "{held}");
        assert_eq!(refold(&world.events).as_ref(), Ok(world.state()));
    }
}

/// Proves HS-01.8, HS-01.12: while a branch is held, an event that launches work says in which node, and nothing else does; a
/// fold notices where it says another one, or says it where it should not.
#[test]
fn an_event_says_where_it_launches_work() {
    let mut world = World::with(all_graph());
    world.pass("s", aiws::object! {}).expect("s");
    let before = world.events.len();
    world.hold_branch("h1", "x").expect("held");
    let held = world.events.len();
    world.work("y").expect("y");
    world
        .end_hold("h1", HoldDecision::Recheck)
        .expect("released");
    let after = world.events.len();
    world.work("x").expect("x");
    let launching = |event: &Event| praxis_model::table::row(event.kind).gated;
    for (number, (event, _)) in world.events.iter().enumerate() {
        let told = event.outcome.launched_in().map(NodeId::as_str);
        let inside = (held..after).contains(&number) && launching(event);
        assert_eq!(told, inside.then_some("y"), "{}", event.kind.name());
    }
    assert_eq!(refold(&world.events).as_ref(), Ok(world.state()));
    let changed = |number: usize, node: Option<&str>| {
        let mut events = world.events.clone();
        let all = &mut events[number].0.outcome.transitions;
        all.retain(|one| !matches!(one, Transition::LaunchedIn { .. }));
        let launched = node.map(|node| Transition::LaunchedIn { node_id: id(node) });
        all.splice(0..0, launched);
        refold(&events).expect_err("it is noticed").what
    };
    let what = "the node that the event launches work in";
    assert_eq!(changed(held, None), what);
    assert_eq!(changed(held, Some("x")), what);
    assert_eq!(changed(before, Some("y")), what);
    assert_eq!(changed(after, Some("x")), what);
    let mut events = world.events.clone();
    let node_id = id("x");
    let twice = Transition::LaunchedIn { node_id };
    events[held].0.outcome.transitions.push(twice);
    let two = refold(&events).expect_err("it is noticed").what;
    assert_eq!(two, "the one node that the event launches work in");
}

/// Proves HLD-1, HS-01.6, HS-01.13: a fold notices a hold over other nodes than its scope has.
#[test]
fn a_hold_over_other_members_is_noticed() {
    let mut world = World::with(all_graph());
    world.hold_branch("h1", "x").expect("held");
    let tell = |node_ids: NodeSet| {
        let mut events = world.events.clone();
        let (event, _) = events.last_mut().expect("an event");
        for one in &mut event.outcome.transitions {
            if let Transition::HoldOpened { hold } = one {
                hold.members[0].node_ids = node_ids.clone();
            }
        }
        refold(&events).map(drop).map_err(|error| error.what)
    };
    assert_eq!(
        tell(NodeSet::Named(vec![id("x"), id("j"), id("end")])),
        Ok(())
    );
    let what = Err("the members of a new hold".to_owned());
    assert_eq!(tell(NodeSet::All), what);
    assert_eq!(tell(NodeSet::Named(vec![id("x")])), what);
}

/// Proves HS-02.7, HS-05.6: a late node is held for its time although another branch is held, and a held one is not told
/// to be late.
#[test]
fn a_late_node_is_told_beside_a_held_branch() {
    let late = |node: &str| {
        let mut nodes = all_graph().nodes;
        for own in &mut nodes {
            if own.id.as_str() == node {
                own.deadline_ms = Some(aiws::decimal::Ms::from_u64(2_000));
            }
        }
        World::with(graph(nodes))
    };
    let mut world = late("y");
    world.hold_branch("h1", "x").expect("held");
    world.now_ms = 3_000;
    run_out_but_late(&mut world);
    let node_id = Some(id("y"));
    assert_eq!(steps(&world), [Next::HoldForTime { node_id }]);
    let mut world = late("x");
    world.hold_branch("h1", "x").expect("held");
    world.now_ms = 3_000;
    run_out_but_late(&mut world);
    assert_eq!(world.status("y"), NodeStatus::Completed);
    assert!(steps(&world).is_empty(), "{:?}", steps(&world));
}

fn run_out_but_late(world: &mut World) {
    for _ in 0..100 {
        match steps(world).first().cloned() {
            None | Some(Next::HoldForTime { .. }) => return,
            Some(next) => drop(take(world, &next, true).expect("a step")),
        }
    }
}

/// Proves HS-06.1, HS-06.2, HS-03.10, HS-01.11: a recovery keeps the branch's hold beside its own; after an automatic one
/// the sibling alone goes on.
#[test]
fn a_branchs_hold_outlives_its_owner() {
    for policy in [RestartPolicy::Auto, RestartPolicy::Human] {
        let mut world = World::configured(all_graph(), |config| config.restart_policy = policy);
        world.pass("s", aiws::object! {}).expect("s");
        world.hold_branch("h1", "x").expect("held");
        let held = world.state().holds.get("h1").cloned();
        let body = RecoverOwnership {
            expected_epoch: dec(1),
            reason: "crash".to_owned(),
            decision_ref: None,
        };
        world
            .send(ENGINE, Body::RecoverOwnership(body))
            .expect("recovered");
        assert_eq!(world.state().holds.get("h1").cloned(), held);
        let (event, _) = world.events.last().expect("an event");
        let human = policy == RestartPolicy::Human;
        assert_eq!(event.outcome.gates.len(), usize::from(human));
        if human {
            assert!(steps(&world).is_empty(), "the restart is a human's");
            let restart = world
                .state()
                .holds
                .keys()
                .find(|hold| hold.as_str() != "h1");
            let restart = restart.expect("a hold").to_string();
            world
                .end_hold(&restart, HoldDecision::Recheck)
                .expect("released");
        }
        run_out(&mut world);
        assert_eq!(world.status("y"), NodeStatus::Completed);
        assert_eq!(world.status("x"), NodeStatus::Pending);
    }
}

/// Proves HS-01.1, HS-06.6, HD-01.T7: a decision beside a held branch may skip it; what the skip leaves over stays held, and
/// a cancellation closes the hold with its own gate.
#[test]
fn a_held_branch_may_be_skipped_and_canceled() {
    let mut world = dec_world();
    world.hold_branch("h1", "y").expect("held");
    world.hold_branch("h2", "end").expect("held");
    world.admit_control("d").expect("d");
    world
        .complete("d", aiws::object! { "pass": true })
        .expect("d chooses x");
    assert_eq!(world.status("y"), NodeStatus::Skipped);
    run_out(&mut world);
    assert_eq!(world.status("x"), NodeStatus::Completed);
    assert_eq!(world.status("j"), NodeStatus::Pending, "j is of the branch");
    world
        .end_hold("h1", HoldDecision::Cancel)
        .expect("canceled");
    let (event, _) = world.events.last().expect("an event");
    let opened = event.outcome.gates.iter().filter(|gate| !gate.closed);
    let opened: Vec<&Gate> = opened.map(|gate| &gate.gate).collect();
    assert!(
        matches!(opened.as_slice(), [Gate::Branch { .. }]),
        "{opened:?}"
    );
    assert_eq!(world.state().lifecycle, Lifecycle::Canceling);
    // The end of the cancellation closes what else is held.
    let finish = praxis_model::command::FinishCancelRun {
        run_id: run_id(),
        reason: "enough".to_owned(),
        decision_ref: id("decision-1"),
    };
    world
        .send(HUMAN, Body::FinishCancelRun(finish))
        .expect("finished");
    let (event, _) = world.events.last().expect("an event");
    let closed = |gate: &Gate| {
        world.events.iter().any(|(event, _)| {
            let mut all = event.outcome.gates.iter();
            all.any(|change| change.closed && change.gate == *gate)
        })
    };
    let mut gates = event.outcome.gates.iter().filter(|change| !change.closed);
    assert!(gates.any(|change| matches!(change.gate, Gate::Branch { .. }) && closed(&change.gate)));
    assert_eq!(world.state().lifecycle, Lifecycle::Canceled);
    assert_eq!(refold(&world.events).as_ref(), Ok(world.state()));
}

//! Cases of holds over a branch: what they stop, and what goes on beside them. Invariant and use as in `cases`.

use aiws::error::Code;
use aiws::object;
use aiws::record::{HoldDecision, HoldState, NodeSet, OutcomeStatus, SettledOutcome};
use praxis_model::command::{
    AdmitIntent, Body, BoundaryIntent, ClaimDelivery, CompleteRun, Intent,
};
use praxis_model::event::Gate;
use praxis_model::guard::Guard;
use praxis_model::run::NodeStatus;

use super::common::*;
use super::{Must, Outcome, accepted, cases, ensure, refused, stopped};
use crate::world::*;

/// Two branches of two tasks each: p -> x -> x2 and p -> y -> y2, both into j (ALL), then end.
fn two() -> World {
    World::with(graph(vec![
        fork("p", &[]),
        task("x", &["p"]),
        task("x2", &["x"]),
        task("y", &["p"]),
        task("y2", &["y"]),
        join("j", &["x2", "y2"]),
        end(&["j"]),
    ]))
}

/// The worlds before each launching command of a branch, with that command.
fn launches(branch: &str) -> Result<Vec<(&'static str, World, Body)>, String> {
    let next = format!("{branch}2");
    let mut all = Vec::new();
    let mut world = two();
    world.pass("p", object! {}).must()?;
    world.work(branch).must()?;
    let delivery_id = world.pending(&next);
    let claim = ClaimDelivery {
        delivery_id: delivery_id.clone(),
        lease_ms: None,
    };
    all.push(("claimDelivery", world.clone(), Body::ClaimDelivery(claim)));
    world.claim(AGENT, &delivery_id).must()?;
    let ack = Body::AcknowledgeDelivery(world.ack_of(&delivery_id));
    all.push(("acknowledgeDelivery", world.clone(), ack));
    world.ack(AGENT, &delivery_id).must()?;
    world.prepare(proposal(&next));
    let draft = |world: &World, intent: &Intent| {
        praxis_model::draft::command(world.state(), intent, &world.facts(ENGINE))
            .map_err(|error| error.to_string())
    };
    let (node_id, admission_ref) = (id(&next), Some(reference(&next)));
    let admit = draft(
        &world,
        &Intent::Admit(AdmitIntent {
            node_id,
            admission_ref,
        }),
    )?;
    all.push(("admitConsumer", world.clone(), admit));
    world.admit(&next).must()?;
    let dispatch = draft(&world, &Intent::DispatchNode { node_id: id(&next) })?;
    all.push(("dispatch", world.clone(), dispatch));
    world.dispatch(&next).must()?;
    world
        .settle(
            &format!("at-{next}-1"),
            SettledOutcome::ConfirmedNotApplied,
            0,
        )
        .must()?;
    let retry = Intent::RetryOperation {
        operation_id: id(&format!("op-{next}")),
    };
    let retry = draft(&world, &retry)?;
    all.push(("retry", world, retry));
    Ok(all)
}

fn named(world: &World, hold: &str) -> Result<Vec<String>, String> {
    let hold = world.state().holds.get(hold).ok_or("no hold")?;
    match hold.members.as_slice() {
        [member] => match &member.node_ids {
            NodeSet::Named(nodes) => Ok(nodes.iter().map(ToString::to_string).collect()),
            NodeSet::All => Err("all".to_owned()),
        },
        other => Err(format!("{other:?}")),
    }
}

/// Every launching command of both branches once this is held, and the guard that stops it.
fn matrix(hold: impl Fn(&mut World) -> Step, stops: impl Fn(&str) -> Option<Guard>) -> Outcome {
    for branch in ["x", "y"] {
        for (name, mut world, body) in launches(branch)? {
            hold(&mut world).must()?;
            let send = |world: &mut World| world.send(AGENT, body.clone());
            let tell = match stops(branch) {
                None => accepted(&world, send).map(drop),
                Some(guard) => stopped(&world, guard, Code::HoldActive, send),
            };
            tell.map_err(|error| format!("{name} in {branch}: {error}"))?;
        }
    }
    Ok(())
}

cases! {
    /// Proves HS-01.8, HS-01.6, HLD-1: the members of a branch are the named node and all that depends on it in the pinned graph, in the graph's order and one by one.
    #[test]
    fn a_branch_is_a_node_with_all_that_depends_on_it() {
        for (node, expected) in [
            ("p", vec!["p", "x", "x2", "y", "y2", "j", "end"]),
            ("x", vec!["x", "x2", "j", "end"]),
            ("y2", vec!["y2", "j", "end"]),
            ("end", vec!["end"]),
        ] {
            let after = accepted(&two(), |world| world.hold_branch("h1", node))?;
            let found = named(&after, "h1")?;
            ensure(found == expected, format!("{node} covers {found:?}"))?;
            let (event, _) = after.events.last().ok_or("no event")?;
            let node_ids = expected.iter().map(|node| id(node)).collect();
            let gate = Gate::Branch { hold_id: id("h1"), node_ids };
            ensure(event.outcome.gates.len() == 1 && event.outcome.gates[0].gate == gate, "another gate")?;
        }
        Ok(())
    }

    /// Proves HS-01.8, HS-01.3, HS-01.11, ERR-HOLD_ACTIVE: claim, receipt, admission, dispatch and retry of a covered node are refused, and those of the branch beside it go on.
    #[test]
    fn a_held_branch_stops_and_its_sibling_goes_on() {
        matrix(|world| world.hold_branch("h1", "x"), |branch| (branch == "x").then_some(Guard::NodeNotHeld))?;
        // What is held upstream is held down here, and what is held downstream is not.
        matrix(|world| world.hold_branch("h1", "p"), |_| Some(Guard::NodeNotHeld))?;
        matrix(|world| world.hold_branch("h1", "j"), |_| None)
    }

    /// Proves HS-01.11, HS-03.2, HS-03.3: holds overlap: a node goes on once no hold covers it any more, whichever ended first, and a hold over the run outlives those over branches.
    #[test]
    fn holds_overlap_and_each_ends_by_itself() {
        let run = |world: &mut World| {
            let hold = hold("h9", aiws::record::HoldReason::Operator);
            world.send(HUMAN, Body::PlaceHold(praxis_model::command::PlaceHold { hold }))
        };
        let both = |world: &mut World| {
            world.hold_branch("h1", "x")?;
            world.hold_branch("h2", "p")
        };
        let ended = |place: &dyn Fn(&mut World) -> Step, world: &mut World, name: &str| {
            place(world)?;
            world.end_hold(name, HoldDecision::Recheck)
        };
        matrix(both, |_| Some(Guard::NodeNotHeld))?;
        matrix(|world| ended(&both, world, "h1"), |_| Some(Guard::NodeNotHeld))?;
        matrix(|world| ended(&both, world, "h2"), |branch| (branch == "x").then_some(Guard::NodeNotHeld))?;
        let all = |world: &mut World| { both(world)?; run(world) };
        matrix(all, |_| Some(Guard::NoOpenHold))?;
        matrix(|world| ended(&all, world, "h9"), |_| Some(Guard::NodeNotHeld))?;
        matrix(|world| { ended(&all, world, "h1")?; world.end_hold("h2", HoldDecision::Recheck) }, |_| Some(Guard::NoOpenHold))?;
        matrix(|world| {
            ended(&all, world, "h2")?;
            world.end_hold("h9", HoldDecision::Recheck)?;
            world.end_hold("h1", HoldDecision::Recheck)
        }, |_| None)
    }

    /// Proves HS-01.8, HS-01.7, T-27: an activation that comes later inherits the hold of its node.
    #[test]
    fn a_later_activation_is_held_too() {
        let nodes = vec![looped("l", 3, &[]), task("y", &[]), end(&["l", "y"])];
        let mut world = World::with(graph(nodes));
        world.apply_iteration("l", 1).must()?;
        world.hold_branch("h1", "l").must()?;
        // T-36: what was admitted tells its result, and the next activation begins under the hold.
        let done = BoundaryIntent { result: object! { "done": false }, ..completed("l") };
        world.commit(done).must()?;
        let own = world.state().nodes.get("l").ok_or("no loop")?;
        ensure(own.iteration == 2 && own.status == NodeStatus::Pending, "no new activation")?;
        stopped(&world, Guard::NodeNotHeld, Code::HoldActive, |world| world.admit_iteration("l", 2))?;
        accepted(&world, |world| world.admit("y"))?;
        world.end_hold("h1", HoldDecision::Recheck).must()?;
        accepted(&world, |world| world.admit_iteration("l", 2)).map(drop)
    }

    /// Proves HS-01.8, HS-01.3, FV-RUN.2: a run with a held branch is not completed, although everything in it is done.
    #[test]
    fn a_run_with_a_held_branch_is_not_completed() {
        let mut world = World::lin_done();
        world.hold_branch("h1", "b").must()?;
        let complete = Body::CompleteRun(CompleteRun { run_id: run_id(), owner_epoch: dec(1) });
        stopped(&world, Guard::NodeNotHeld, Code::HoldActive, |world| world.send(ENGINE, complete.clone()))?;
        world.end_hold("h1", HoldDecision::Recheck).must()?;
        accepted(&world, |world| world.send(ENGINE, complete)).map(drop)
    }

    /// Proves HS-01.3, HS-01.9: whoever names what the run does not have is stopped by any hold; without one the object is what is missed.
    #[test]
    fn what_is_not_known_is_not_beside_a_branch() {
        let mut world = two();
        let ghost = |world: &mut World| world.claim(AGENT, &id("ghost"));
        refused(&world, Code::DeliveryState, ghost)?;
        world.hold_branch("h1", "x").must()?;
        stopped(&world, Guard::NodeNotHeld, Code::HoldActive, ghost)
    }

    /// Proves HF-05.8, HF-02.14, HS-01.8: the hold of a BLOCKED boundary may cover its node's branch alone, and covers the node in any case; the node goes on after its hold, and the sibling meanwhile.
    #[test]
    fn a_blocked_boundary_may_hold_its_branch() {
        let mut world = two();
        world.pass("p", object! {}).must()?;
        world.apply_task("x").must()?;
        let blocking = |node: &str| BoundaryIntent {
            hold: Some(branch_hold("h1", node)),
            ..boundary("x", OutcomeStatus::Blocked)
        };
        for beside in ["x2", "y", "j"] {
            stopped(&world, Guard::BlockedIsHeld, Code::StateInvalid, |world| world.commit(blocking(beside)))?;
        }
        accepted(&world, |world| world.commit(blocking("p")))?;
        let mut after = accepted(&world, |world| world.commit(blocking("x")))?;
        ensure(named(&after, "h1")? == ["x", "x2", "j", "end"], "another branch")?;
        stopped(&after, Guard::ContinuationCleared, Code::HoldActive, |world| world.complete("x", object! {}))?;
        after.work("y").must()?;
        after.work("y2").must()?;
        ensure(after.status("y2") == NodeStatus::Completed, "the sibling stopped")?;
        after.end_hold("h1", HoldDecision::Recheck).must()?;
        accepted(&after, |world| world.complete("x", object! {})).map(drop)
    }

    /// Proves HS-01.8, HD-04.7, FV-NODE-JOIN.2: an ANY join waits with a held candidate, whatever its policy: neither is the held one left out nor another taken before the hold ends.
    #[test]
    fn an_any_join_waits_with_a_held_candidate() {
        let mut world = any_world();
        world.pass("s", object! {}).must()?;
        world.work("x").must()?;
        world.take("x", "j").must()?;
        accepted(&world, |world| world.admit_control("j"))?;
        world.hold_branch("h1", "y").must()?;
        stopped(&world, Guard::NodeNotHeld, Code::HoldActive, |world| world.admit_control("j"))?;
        ensure(world.status("y") == NodeStatus::Pending, "the held candidate was left out")?;
        world.end_hold("h1", HoldDecision::Recheck).must()?;
        let after = accepted(&world, |world| world.admit_control("j"))?;
        ensure(after.status("y") == NodeStatus::Skipped, "it is left out afterwards")
    }

    /// Proves HF-02.14, T-44: a hold of another branch is no reason to keep a blocked node from going on.
    #[test]
    fn a_blocked_node_minds_its_own_branch() {
        let mut world = two();
        world.pass("p", object! {}).must()?;
        world.apply_task("x").must()?;
        let intent = BoundaryIntent { hold: Some(branch_hold("h1", "x")), ..boundary("x", OutcomeStatus::Blocked) };
        world.commit(intent).must()?;
        world.hold_branch("h2", "y").must()?;
        if let Some(run) = &mut world.run {
            // As if the hold were closed, and the node not continued yet.
            let mut hold = run.holds.get("h1").ok_or("no hold")?.clone();
            hold.state = HoldState::Released;
            run.holds.insert_mut(id("h1"), hold);
        }
        accepted(&world, |world| world.complete("x", object! {})).map(drop)
    }
}

//! Whole runs of each kind of node, driven by plan alone.
//!
//! Invariant: what a run of a kind must show is read from its events and its state, not from how it was driven.

use aiws::id::NodeId;
use aiws::record::Lifecycle;
use praxis_model::plan::{Aggregate, Step as Next, Wait, aggregate, plan, waits};
use praxis_model::run::RunState;

use crate::driver::{answer, drive, take};
use crate::world::*;

/// Proves FV-NODE-FORK.1, FV-NODE-JOIN.1, FV-RUN.2: a FORK and its JOIN go to the run's end by plan alone, and both
/// branches have run.
#[test]
fn a_forked_run_ends_by_its_plan() {
    let mut world = World::with(all_graph());
    drive(&mut world, true);
    assert_eq!(world.state().lifecycle, Lifecycle::Completed);
    assert_eq!(
        (
            world.state().operations.size(),
            world.state().manifests.size()
        ),
        (2, 5)
    );
}

/// Proves HD-04.6, HD-04.7, FV-NODE-JOIN.2, FV-RUN.2: an ANY join goes to the run's end by plan alone: with its policy
/// after the first branch that is done, without one after both; no branch is left with work that nobody settled.
#[test]
fn a_run_with_an_any_join_ends_by_its_plan() {
    for (mut world, works) in [(any_world(), 1), (World::with(any_graph()), 2)] {
        drive_one(&mut world);
        assert_eq!(world.state().lifecycle, Lifecycle::Completed);
        assert_eq!(world.state().operations.size(), works);
        assert_eq!(world.state().manifests.size(), 5, "one manifest per node");
        let row = world.account.clone().expect("an account");
        assert_eq!((row.spent, row.reserved), (dec(works as u64), dec(0)));
        assert!(plan(world.state(), &[], world.now_ms).is_empty());
    }
}

/// Proves FV-NODE-LOOP.2, HS-02.1, HS-02.2, FV-RUN.2: a LOOP goes on by plan alone until it is done, and where its bound
/// comes first the run stands still under its hold.
#[test]
fn a_run_with_a_loop_ends_by_its_plan() {
    for done_in in 1..=4 {
        let mut world = World::with(loop3());
        for _ in 0..40 {
            let (now_ms, state) = (world.now_ms, world.state().clone());
            let iteration = state.nodes.get("l").expect("a loop").iteration;
            match (
                plan(&state, &[], now_ms).first(),
                waits(&state, &[], now_ms).first(),
            ) {
                (Some(next), _) => take(&mut world, next, iteration >= done_in),
                (None, Some(wait)) => answer(&mut world, wait),
                (None, None) => break,
            }
            .expect("a step");
        }
        let works = done_in.min(3);
        assert_eq!(world.state().operations.size() as u64, works);
        let row = world.account.clone().expect("an account");
        assert_eq!((row.spent, row.reserved), (dec(works), dec(0)));
        if done_in <= 3 {
            assert_eq!(world.state().lifecycle, Lifecycle::Completed);
            assert_eq!(world.state().manifests.size() as u64, works + 1);
        } else {
            assert_eq!(world.state().lifecycle, Lifecycle::Running);
            let waits = waits(world.state(), &[], world.now_ms);
            assert!(matches!(waits.as_slice(), [Wait::Hold { .. }]), "{waits:?}");
            let one = aggregate(world.state(), &[], world.now_ms);
            assert_eq!(one, Aggregate::Waiting);
        }
    }
}

/// Drives a run and leaves the branch of x alone while anything else can be done.
pub fn drive_one(world: &mut World) {
    for _ in 0..200 {
        let (now_ms, state) = (world.now_ms, world.state().clone());
        let steps = plan(&state, &[], now_ms);
        let ahead = steps
            .iter()
            .find(|step| node_of(&state, step) != Some(id("x")));
        if let Some(next) = ahead.or(steps.first()) {
            take(world, next, true).unwrap_or_else(|error| panic!("{next:?}: {error}"));
        } else if let Some(wait) = waits(&state, &[], now_ms).first() {
            answer(world, wait).unwrap_or_else(|error| panic!("{wait:?}: {error}"));
        } else {
            return;
        }
    }
    panic!("the run does not end");
}

fn node_of(state: &RunState, step: &Next) -> Option<NodeId> {
    match step {
        Next::Receive { delivery_id } => {
            let delivery = state.deliveries.get(delivery_id)?;
            Some(delivery.record.recipient.node_id.clone())
        }
        Next::Admit { node_id } | Next::Dispatch { node_id, .. } | Next::Conclude { node_id } => {
            Some(node_id.clone())
        }
        _ => None,
    }
}

//! Cases of what a JOIN ANY leaves out, and of choices that leave a JOIN ANY out. Invariant and use as in `cases`.

use aiws::error::Code;
use aiws::object;
use aiws::record::{
    DeliveryState, Graph, Lifecycle, NodeKind, OutcomeStatus, RequiredSkip, SkipAction,
};
use praxis_model::guard::Guard;
use praxis_model::plan::{Step as Next, plan, ready_nodes};
use praxis_model::run::NodeStatus;
use praxis_model::stream::derived;

use super::common::*;
use super::{Must, accepted, cases, ensure, stopped};
use crate::world::*;

/// s (FORK) -> x0 -> x and y -> j (ANY) -> end.
fn long() -> Graph {
    graph(vec![
        fork("s", &[]),
        task("x0", &["s"]),
        task("x", &["x0"]),
        task("y", &["s"]),
        join_any("j", &["x", "y"]),
        end(&["j"]),
    ])
}

/// The graph up to y's receipt at j, whose losers may be left out.
fn y_received(graph: Graph) -> Result<World, String> {
    let mut world = World::configured(graph, |config| config.join_policy = vec![excluding("j")]);
    world.pass("s", object! {}).must()?;
    world.work("y").must()?;
    world.take("y", "j").must()?;
    Ok(world)
}

fn admit(world: &mut World) -> Step {
    world.admit_control("j")
}

cases! {
    /// Proves T-41, HF-05.7, HD-01.T4, FV-GRAPH.7: a candidate that was not begun is skipped with a manifest and a checkpoint of its own, and its delivery is closed in the event of the choice.
    #[test]
    fn a_candidate_that_was_not_begun_is_skipped() {
        let world = y_received(any_graph())?;
        let open = world.between("s", "x");
        let after = accepted(&world, admit)?;
        ensure(after.events.len() == world.events.len() + 1, "one event")?;
        let own = after.state().nodes.get("x").ok_or("no node")?;
        ensure(own.status == NodeStatus::Skipped && own.skipped_by == Some(id("j")), "x is not skipped by j")?;
        let told = after.state().deliveries.get(&after.between("x", "j")).ok_or("no delivery")?;
        let committed = after.state().manifests.get(&told.record.handoff.handoff_id).ok_or("no manifest")?;
        let manifest = &committed.manifest;
        ensure(manifest.outcome.status == OutcomeStatus::Skipped && manifest.producer.operations.is_empty(), "another manifest")?;
        ensure(after.state().checkpoints.contains_key(&manifest.producer.checkpoint_id), "no checkpoint")?;
        ensure(told.record.state == DeliveryState::Excluded, "the join's delivery is open")?;
        let sent = after.state().deliveries.get(&open).ok_or("no delivery")?;
        ensure(sent.record.state == DeliveryState::Excluded, "what was sent to x is open")?;
        let join = after.state().nodes.get("j").ok_or("no join")?;
        let bound = after.state().consumptions.get(&join.activation_id).ok_or("no consumption")?;
        ensure(bound.join.excluded == vec![after.between("x", "j")], "the choice lists another set")?;
        stopped(&after, Guard::ConsumerPending, Code::NodeNotReady, |world| world.admit("x"))?;
        ensure(plan(after.state(), &[], after.now_ms) == [Next::Conclude { node_id: id("j") }], "the loser is still planned")
    }

    /// Proves FV-GRAPH.7, FV-RUN.2: a node that an ANY join left out does not keep the run open.
    #[test]
    fn a_run_ends_without_what_a_join_left_out() {
        let mut world = y_received(any_graph())?;
        admit(&mut world).must()?;
        world.complete("j", object! {}).must()?;
        world.verify("v1", aiws::record::VerificationVerdict::Pass).must()?;
        world.accept("c1", aiws::record::AcceptanceVerdict::Accepted).must()?;
        world.pass_end().must()?;
        let after = accepted(&world, |world| world.finish())?;
        ensure(after.state().lifecycle == Lifecycle::Completed, "the run goes on")
    }

    /// Proves FV-NODE-JOIN.2, HD-04.8, T-41: what leads to a loser alone is left out with it, and keeps the join waiting while it has work.
    #[test]
    fn a_losing_branch_is_left_out_whole() {
        let mut world = y_received(long())?;
        let after = accepted(&world, admit)?;
        for node in ["x0", "x"] {
            ensure(after.status(node) == NodeStatus::Skipped, format!("{node} is not skipped"))?;
        }
        ensure(after.between("x", "j") != after.between("y", "j"), "x tells j of its skip")?;
        world.receive("x0").must()?;
        world.admit("x0").must()?;
        ensure(!ready_nodes(world.state()).contains(&id("j")), "the join is ready over running work")?;
        stopped(&world, Guard::JoinSettled, Code::JoinUnsettled, admit)?;
        world.dispatch("x0").must()?;
        world.settle("at-x0-1", aiws::record::SettledOutcome::ConfirmedApplied, 3).must()?;
        world.complete("x0", object! {}).must()?;
        let after = accepted(&world, admit)?;
        ensure(after.status("x") == NodeStatus::Skipped && after.status("x0") == NodeStatus::Completed, "done work is undone")?;
        let sent = after.state().deliveries.get(&world.between("x0", "x")).ok_or("no delivery")?;
        ensure(sent.record.state == DeliveryState::Excluded, "what was sent to x is open")
    }

    /// Proves HD-04.7, FV-GRAPH.7: a candidate for which another node waits, too, is not skipped; only the join hears no more of it.
    #[test]
    fn a_shared_candidate_goes_on() {
        let nodes = vec![
            fork("s", &[]),
            task("x", &["s"]),
            task("y", &["s"]),
            join_any("j", &["x", "y"]),
            task("k", &["x"]),
            end(&["j", "k"]),
        ];
        let world = y_received(graph(nodes))?;
        let mut after = accepted(&world, admit)?;
        ensure(after.status("x") == NodeStatus::Pending && after.status("k") == NodeStatus::Pending, "k lost its producer")?;
        after.work("x").must()?;
        let to: Vec<String> = last_manifest(&after)?.recipients.iter().map(|to| to.node_id.to_string()).collect();
        ensure(to == ["k"], format!("{to:?}"))?;
        after.work("k").must()?;
        ensure(after.status("k") == NodeStatus::Completed, "k cannot go on")
    }

    /// Proves HF-02.3, HF-02.4, ERR-IDENTITY_CONFLICT: names that the coordinator makes are new like any other.
    #[test]
    fn generated_names_are_new() {
        let world = y_received(any_graph())?;
        let revision = world.state().head.revision.get() + 1;
        let squat = |kind: &str, change: &dyn Fn(&mut praxis_model::command::CommitBoundary, aiws::id::Id)| {
            let mut world = World::configured(any_graph(), |config| config.join_policy = vec![excluding("j")]);
            world.pass("s", object! {}).must()?;
            world.apply_task("y").must()?;
            let mut body = drafted(&world, completed("y"))?;
            change(&mut body, derived(&world.state().stream, revision, kind, 0));
            world.send(ENGINE, praxis_model::command::Body::CommitBoundary(body)).must()?;
            world.take("y", "j").must()?;
            Ok::<World, String>(world)
        };
        let conflict = Code::IdentityConflict;
        let taken = squat("checkpoint", &|body, id| body.manifest.producer.checkpoint_id = id.into())?;
        stopped(&taken, Guard::CheckpointNew, conflict, admit)?;
        let taken = squat("handoff", &|body, id| body.manifest.handoff_id = id.into())?;
        stopped(&taken, Guard::HandoffNew, conflict, admit)?;
        let taken = squat("delivery", &|body, id| body.manifest.recipients[0].delivery_id = id.into())?;
        stopped(&taken, Guard::DeliveryNew, conflict, admit)
    }

    /// Proves T-42, HD-04.5: an ANY join is skipped once all of its inputs are, and not before; under the rule FAIL it fails then.
    #[test]
    fn an_any_join_is_skipped_with_its_last_input() {
        let nodes = || graph(vec![
            decision("d", &[], "x", "y"),
            task("x", &["d"]),
            task("y", &["d"]),
            task("y2", &["y"]),
            join_any("j", &["y", "y2"]),
            join_any("k", &["x", "j"]),
            end(&["k"]),
        ]);
        let world = deciding(World::with(nodes()))?;
        let after = accepted(&world, |world| world.complete("d", choose(true)))?;
        ensure(after.status("j") == NodeStatus::Skipped, "j has nothing to wait for")?;
        ensure(after.status("k") == NodeStatus::Pending && after.status("end") == NodeStatus::Pending, "k has x")?;
        let failing = deciding(World::configured(nodes(), |config| {
            config.required_skip = vec![RequiredSkip { node_id: id("j"), action: SkipAction::Fail }];
        }))?;
        let after = accepted(&failing, |world| world.complete("d", choose(true)))?;
        ensure(after.state().lifecycle == Lifecycle::Failed && after.status("j") == NodeStatus::Failed, "the run goes on")
    }

    /// Proves T-42, HD-04.5, HS-05.6: an ANY join that an earlier choice did not take remembers it, and is skipped when what was left is skipped too.
    #[test]
    fn a_way_not_taken_stays_not_taken() {
        let nodes = vec![
            decision("d", &[], "e", "j"),
            decision("e", &["d"], "x", "z"),
            task("x", &["e"]),
            task("z", &["e"]),
            join_any("j", &["d", "x"]),
            end(&["j"]),
            node("end2", NodeKind::End, &["z"]),
        ];
        let mut world = deciding(World::with(graph(nodes)))?;
        world.complete("d", choose(true)).must()?;
        ensure(world.status("j") == NodeStatus::Pending, "x may still come")?;
        world.receive("e").must()?;
        world.admit_control("e").must()?;
        let taken = accepted(&world, |world| world.complete("e", choose(true)))?;
        ensure(taken.status("j") == NodeStatus::Pending, "x is coming")?;
        let after = accepted(&world, |world| world.complete("e", choose(false)))?;
        ensure(after.status("j") == NodeStatus::Skipped && after.status("end") == NodeStatus::Skipped, "j waits for nobody")
    }

    /// Proves HD-04.6, FV-NODE-DECISION.2: a choice that leads straight to an ANY join is one of its candidates, and the other way's skip keeps it from nothing.
    #[test]
    fn a_choice_may_lead_straight_to_the_join() {
        let nodes = || graph(vec![
            decision("d", &[], "x", "j"),
            task("x", &["d"]),
            join_any("j", &["d", "x"]),
            end(&["j"]),
        ]);
        for pass in [true, false] {
            let mut world = deciding(World::with(nodes()))?;
            world.complete("d", choose(pass)).must()?;
            let winner = if pass { "x" } else { "d" };
            if pass {
                ensure(!ready_nodes(world.state()).contains(&id("j")), "d did not choose j")?;
                world.work("x").must()?;
            }
            ensure(ready_nodes(world.state()).contains(&id("j")), "j is not ready")?;
            world.take(winner, "j").must()?;
            accepted(&world, admit)?;
        }
        Ok(())
    }
}

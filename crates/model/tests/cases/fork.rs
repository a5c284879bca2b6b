//! Cases of FORK nodes. Invariant and use as in `cases`.

use aiws::error::Code;
use aiws::object;
use aiws::record::{DeliveryState, ProducedOperation};
use praxis_model::command::{AdmitIntent, Intent};
use praxis_model::guard::Guard;
use praxis_model::plan::ready_nodes;
use praxis_model::run::NodeStatus;

use super::common::*;
use super::{Must, accepted, cases, ensure, stopped};
use crate::world::*;

fn ready(world: &World) -> Vec<String> {
    let ready = ready_nodes(world.state());
    ready.iter().map(ToString::to_string).collect()
}

cases! {
    /// Proves FV-NODE-FORK.1, HD-04.1: once complete a FORK frees all that depend on it, each with a delivery of its own.
    #[test]
    fn a_fork_frees_all_its_dependents() {
        let mut world = World::with(all_graph());
        ensure(ready(&world) == ["s"], "something runs before the fork")?;
        world.admit_control("s").must()?;
        ensure(ready(&world).is_empty(), "a branch is ready before the fork is complete")?;
        let world = accepted(&world, |world| world.complete("s", object! {}))?;
        ensure(world.status("s") == NodeStatus::Completed && ready(&world) == ["x", "y"], format!("{:?}", ready(&world)))?;
        for node in ["x", "y"] {
            ensure(world.deliveries(node, DeliveryState::Pending).len() == 1, format!("{node} receives nothing"))?;
        }
        // One branch goes its way while the other has not moved.
        let world = accepted(&world, |world| world.work("y"))?;
        ensure(ready(&world) == ["x"], format!("{:?}", ready(&world)))
    }

    /// Proves HF-03.10, HF-03.12: nobody leaves a branch of a FORK out.
    #[test]
    fn no_branch_of_a_fork_is_left_out() {
        let mut world = World::with(all_graph());
        world.admit_control("s").must()?;
        tampered(&world, completed("s"), Guard::RecipientsExact, Code::EvidenceInvalid, |body| {
            body.manifest.recipients.truncate(1);
        })
    }

    /// Proves HD-03.5, HF-03.3, FV-GRAPH.14: a FORK has neither operation nor admission, lists none, and is never dispatched.
    #[test]
    fn a_fork_runs_nothing() {
        let mut world = World::with(all_graph());
        world.prepare(proposal("s"));
        stopped(&world, Guard::ControlNoEffect, Code::StateInvalid, |world| {
            let intent = AdmitIntent { node_id: id("s"), admission_ref: Some(reference("s")) };
            world.intend(ENGINE, &Intent::Admit(intent))
        })?;
        world.admissions.clear();
        world.admit_control("s").must()?;
        stopped(&world, Guard::DraftPrepared, Code::StateInvalid, |world| world.dispatch("s"))?;
        tampered(&world, completed("s"), Guard::ControlNoOperations, Code::EvidenceInvalid, |body| {
            body.manifest.producer.operations = vec![ProducedOperation { operation_id: id("op"), attempt_ids: Vec::new() }];
        })
    }

    /// Proves FV-GRAPH.16, FV-GRAPH.7: no branch is admitted before its FORK is complete, and a FORK that was not passed keeps the run open.
    #[test]
    fn no_branch_starts_before_its_fork() {
        let mut world = World::with(all_graph());
        stopped(&world, Guard::InputsComplete, Code::NodeNotReady, |world| world.admit("x"))?;
        world.admit_control("s").must()?;
        stopped(&world, Guard::InputsComplete, Code::NodeNotReady, |world| world.admit("x"))
    }

    /// Proves HF-05.7, HD-04.5: a FORK that a choice does not take is skipped, and with it all its branches.
    #[test]
    fn a_fork_is_skipped_with_its_branches() {
        let nodes = vec![
            decision("d", &[], "x", "s"),
            task("x", &["d"]),
            fork("s", &["d"]),
            task("y", &["s"]),
            task("z", &["s"]),
            end(&["x"]),
            node("end2", aiws::record::NodeKind::End, &["y", "z"]),
        ];
        let world = deciding(World::with(graph(nodes)))?;
        let after = accepted(&world, |world| world.complete("d", choose(true)))?;
        for node in ["s", "y", "z", "end2"] {
            ensure(after.status(node) == NodeStatus::Skipped, format!("{node} is not skipped"))?;
        }
        ensure(after.status("x") == NodeStatus::Pending, "the chosen branch is gone")
    }
}

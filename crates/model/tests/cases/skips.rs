//! Cases of choices and what they skip. Invariant and use as in `cases`.

use aiws::error::Code;
use aiws::object;
use aiws::record::{DeliveryState, Lifecycle, Manifest, Node, NodeKind};
use praxis_model::command::BoundaryIntent;
use praxis_model::guard::Guard;
use praxis_model::run::NodeStatus;

use super::common::*;
use super::{Must, accepted, cases, ensure, stopped};
use crate::world::*;

cases! {
    /// Proves HF-05.7, FV-NODE-DECISION.2, HF-05.1: a choice skips the other branch transitively, each node with its own manifest and checkpoint, in the same event.
    #[test]
    fn a_choice_skips_the_other_branch() {
        let world = deciding(dec_world())?;
        for (pass, gone, live, told) in [(true, vec!["y", "y2"], "x", "j"), (false, vec!["x"], "y", "j")] {
            let intent = BoundaryIntent { result: choose(pass), ..completed("d") };
            ensure(skipped(&drafted(&world, intent.clone())?) == gone, "other skips")?;
            let after = accepted(&world, |world| world.commit(intent))?;
            for node in &gone {
                ensure(after.status(node) == NodeStatus::Skipped, format!("{node} is not skipped"))?;
            }
            ensure(after.state().manifests.size() == 1 + gone.len(), "one manifest per disposition")?;
            ensure(after.deliveries(live, DeliveryState::Pending).len() == 1, "the chosen branch receives")?;
            ensure(after.deliveries(told, DeliveryState::Pending).len() == 1, "the join learns of the skip")?;
            ensure(after.status("j") == NodeStatus::Pending, "the join stays")?;
        }
        Ok(())
    }

    /// Proves HF-05.7, REL-4, HC-ENV.5: a generated skip is neither left out, nor added, nor written by the caller.
    #[test]
    fn skips_are_exact() {
        let world = deciding(dec_world())?;
        let intent = || BoundaryIntent { result: choose(true), ..completed("d") };
        let wrong = Code::EvidenceInvalid;
        tampered(&world, intent(), Guard::SkipsExact, wrong, |body| drop(body.skipped.pop()))?;
        tampered(&world, intent(), Guard::SkipsExact, wrong, |body| {
            body.skipped[0].result = object! { "forged": true };
        })?;
        tampered(&world, intent(), Guard::SkipsExact, wrong, |body| body.skipped.swap(0, 1))?;
        let linear = applied()?;
        let extra = drafted(&world, intent())?.skipped[0].clone();
        tampered(&linear, completed("a"), Guard::SkipsExact, wrong, |body| {
            let basis = body.manifest.basis.clone();
            body.skipped.push(Manifest { basis, ..extra });
        })
    }

    /// Proves HD-04.5: a required input that was skipped skips its consumer, and so on to the end (T-42).
    #[test]
    fn a_required_skip_goes_on() {
        let world = deciding(World::with(dec_graph()))?;
        let after = accepted(&world, |world| world.complete("d", choose(true)))?;
        for node in ["y", "y2", "j", "end"] {
            ensure(after.status(node) == NodeStatus::Skipped, format!("{node} is not skipped"))?;
        }
        // x was chosen and can still be worked on, but nobody waits for it any more.
        ensure(after.status("x") == NodeStatus::Pending, "x is gone too")
    }

    /// Proves HD-04.5, HS-05.6: a consumer whose rule is FAIL ends the run explicitly.
    #[test]
    fn a_required_skip_can_fail() {
        let mut world = deciding(World::configured(dec_graph(), |config| {
            config.required_skip =
                vec![aiws::record::RequiredSkip { node_id: id("j"), action: aiws::record::SkipAction::Fail }];
        }))?;
        world.complete("d", choose(true)).must()?;
        ensure(world.status("j") == NodeStatus::Failed && world.state().lifecycle == Lifecycle::Failed, "the run goes on")?;
        let code = world.state().cause.as_ref().map(|cause| cause.code.as_str());
        ensure(code == Some("REQUIRED_INPUT_SKIPPED"), format!("{code:?}"))
    }

    /// Proves HD-01.T4: what others had sent to a node that is skipped now is excluded, pending or claimed, in the same event (T-75).
    #[test]
    fn a_skip_excludes_open_deliveries() {
        let nodes = vec![
            task("p", &[]),
            decision("d", &[], "x", "y"),
            task("x", &["d"]),
            task("y", &["d", "p"]),
            join("j", &["x", "y"]),
            end(&["j"]),
        ];
        let mut world = World::configured(graph(nodes), |config| {
            config.optional_inputs = vec![optional("j", "x"), optional("j", "y")];
        });
        world.work("p").must()?;
        let delivery = world.pending("y");
        let mut claimed = deciding(world.clone())?;
        claimed.claim(AGENT, &delivery).must()?;
        for (world, ended) in [(deciding(world)?, 0), (claimed, 1)] {
            let after = accepted(&world, |world| world.complete("d", choose(true)))?;
            let kept = after.state().deliveries.get(&delivery).ok_or("no delivery")?;
            ensure(kept.record.state == DeliveryState::Excluded, "it is still open")?;
            ensure(kept.ended_claims.len() == ended, "its claim did not end")?;
            stopped(&after, Guard::ClaimFree, Code::DeliveryState, |world| world.claim(AGENT, &delivery))?;
        }
        Ok(())
    }

    /// Proves HD-04.5, HF-05.7: what a choice skips does not depend on the order in which the graph lists its nodes.
    #[test]
    fn skips_do_not_depend_on_the_order_of_the_graph() {
        let of = |mut nodes: Vec<Node>, reversed: bool| {
            if reversed {
                nodes.reverse();
            }
            let mut world = deciding(World::with(graph(nodes)))?;
            world.complete("d", choose(true)).must()?;
            let gone = world.state().nodes.iter().filter(|(_, own)| own.status == NodeStatus::Skipped);
            Ok::<Vec<String>, String>(gone.map(|(id, _)| id.to_string()).collect())
        };
        let nodes = || {
            let mut nodes = vec![decision("d", &[], "x", "y0"), task("x", &["d"]), end(&["x"])];
            nodes.push(task("y0", &["d"]));
            nodes.extend((1..40).map(|index| task(&format!("y{index}"), &[format!("y{}", index - 1).as_str()])));
            nodes.push(node("end2", NodeKind::End, &["y39"]));
            nodes
        };
        let (straight, reversed) = (of(nodes(), false)?, of(nodes(), true)?);
        ensure(straight.len() == 41, format!("{straight:?}"))?;
        ensure(straight == reversed, format!("{reversed:?}"))
    }
}

//! Cases of JOIN ANY: what it takes, and what it may not leave behind. Invariant and use as in `cases`.

use aiws::error::Code;
use aiws::object;
use aiws::record::{
    Consumption, DeliveryState, Graph, InputRef, JoinMode, OutcomeStatus, SettledOutcome,
};
use praxis_model::command::{AdmitConsumer, AdmitIntent, Body, Intent};
use praxis_model::guard::Guard;
use praxis_model::plan::{Step as Next, plan};
use praxis_model::run::NodeStatus;

use super::common::*;
use super::{Must, Outcome, accepted, cases, ensure, refused, stopped};
use crate::world::*;

/// The admission of the join that the coordinator would make.
fn admission(world: &World, join: &str) -> Result<AdmitConsumer, String> {
    let intent = Intent::Admit(AdmitIntent {
        node_id: id(join),
        admission_ref: None,
    });
    match praxis_model::draft::command(world.state(), &intent, &world.facts(ENGINE)) {
        Ok(Body::AdmitConsumer(body)) => Ok(body),
        _ => Err("no draft".to_owned()),
    }
}

/// The admission of `j` with these producers' deliveries.
fn taking(world: &World, producers: &[&str]) -> Result<AdmitConsumer, String> {
    let mut body = admission(world, "j")?;
    let input = |producer: &&str| {
        let delivery = world
            .state()
            .deliveries
            .get(&world.between(producer, "j"))
            .expect("a delivery");
        InputRef {
            delivery_id: delivery.record.delivery_id.clone(),
            handoff: delivery.record.handoff.clone(),
        }
    };
    body.consumption.inputs = producers.iter().map(input).collect();
    Ok(body)
}

fn send(world: &mut World, body: AdmitConsumer) -> Step {
    world.send(ENGINE, Body::AdmitConsumer(body))
}

fn bound(world: &World) -> Result<Consumption, String> {
    let own = world.state().nodes.get("j").ok_or("no join")?;
    world
        .state()
        .consumptions
        .get(&own.activation_id)
        .cloned()
        .ok_or_else(|| "no consumption".to_owned())
}

/// Without a policy: both candidates are done, and what they handed on is received.
fn both_received() -> Result<World, String> {
    let mut world = World::with(any_graph());
    world.pass("s", object! {}).must()?;
    world.work("x").must()?;
    world.work("y").must()?;
    world.take("y", "j").must()?;
    world.take("x", "j").must()?;
    Ok(world)
}

/// With a policy: x is done and received, y was not begun.
fn x_received() -> Result<World, String> {
    let mut world = any_world();
    world.pass("s", object! {}).must()?;
    world.work("x").must()?;
    world.take("x", "j").must()?;
    Ok(world)
}

cases! {
    /// Proves HD-04.6: an ANY join takes one complete input, the one received first where nobody says which, and its set is fixed with the admission.
    #[test]
    fn an_any_join_takes_one_input() {
        let world = both_received()?;
        let after = accepted(&world, |world| world.admit_control("j"))?;
        let kept = bound(&after)?;
        ensure(kept.inputs.len() == 1 && kept.inputs[0].delivery_id == world.between("y", "j"), "y was received first")?;
        ensure(kept.join.mode == JoinMode::Any && kept.join.selected == vec![world.between("y", "j")], "another record")?;
        let chosen = accepted(&world, |world| { let body = taking(world, &["x"]).expect("x"); send(world, body) })?;
        ensure(bound(&chosen)?.inputs[0].delivery_id == world.between("x", "j"), "the chosen one counts")?;
        let after = accepted(&after, |world| world.complete("j", object! {}))?;
        let manifest = last_manifest(&after)?;
        ensure(manifest.inputs == kept.inputs, "the boundary names another set")
    }

    /// Proves HD-04.6, ERR-INPUT_SET_CONFLICT: two inputs are not one, whoever is taken.
    #[test]
    fn an_any_join_takes_no_two() {
        let world = both_received()?;
        let two = taking(&world, &["x", "y"])?;
        stopped(&world, Guard::AnyTakesOne, Code::InputSetConflict, |world| send(world, two))?;
        let again = taking(&world, &["x", "x"])?;
        stopped(&world, Guard::InputsUnique, Code::InputSetConflict, |world| send(world, again))
    }

    /// Proves HD-04.4, HD-04.6: without a receipt there is nothing to take, and what was only sent is not received.
    #[test]
    fn an_any_join_takes_no_less_than_one() {
        let mut world = any_world();
        world.pass("s", object! {}).must()?;
        stopped(&world, Guard::InputsComplete, Code::NodeNotReady, |world| world.admit_control("j"))?;
        world.work("x").must()?;
        let sent = taking(&world, &["x"])?;
        stopped(&world, Guard::InputAcknowledged, Code::DeliveryState, |world| send(world, sent))
    }

    /// Proves HD-04.6, ERR-INPUT_INCOMPATIBLE: a skipped candidate is never the one that is taken, not even where a mapping lets the join hear of it.
    #[test]
    fn a_skipped_candidate_does_not_win() {
        let nodes = vec![
            decision("d", &[], "x", "y"),
            task("x", &["d"]),
            task("y", &["d"]),
            join_any("j", &["x", "y"]),
            end(&["j"]),
        ];
        let mut world = World::configured(graph(nodes), |config| {
            let accepts = [OutcomeStatus::Completed, OutcomeStatus::Skipped];
            config.mappings = vec![mapping("j", "y", "y", &accepts, None)];
        });
        world.pass("d", choose(true)).must()?;
        world.take("y", "j").must()?;
        let skipped = taking(&world, &["y"])?;
        stopped(&world, Guard::AnyCompleted, Code::InputIncompatible, |world| send(world, skipped))?;
        ensure(admission(&world, "j")?.consumption.inputs.is_empty(), "a skip was drafted as the winner")?;
        world.work("x").must()?;
        world.take("x", "j").must()?;
        let after = accepted(&world, |world| world.admit_control("j"))?;
        ensure(bound(&after)?.inputs[0].delivery_id == world.between("x", "j"), "x is the one that is complete")
    }

    /// Proves HF-04.7, ERR-INPUT_INCOMPATIBLE: a candidate that does not fit is received by nobody, and keeps no join waiting that can take another.
    #[test]
    fn a_candidate_that_does_not_fit_is_no_candidate() {
        let schema = object! { "type": "object", "required": vec!["patch"] };
        let mut world = World::configured(any_graph(), |config| {
            config.mappings = vec![mapping("j", "x", "x", &[OutcomeStatus::Completed], Some(schema))];
        });
        world.pass("s", object! {}).must()?;
        world.work("x").must()?;
        world.work("y").must()?;
        let misfit = world.between("x", "j");
        world.claim(AGENT, &misfit).must()?;
        stopped(&world, Guard::InputFits, Code::InputIncompatible, |world| world.ack(AGENT, &misfit))?;
        world.take("y", "j").must()?;
        let after = accepted(&world, |world| world.admit_control("j"))?;
        ensure(bound(&after)?.join.excluded.is_empty(), "without a policy nothing is closed")
    }

    /// Proves HD-04.8, FV-NODE-JOIN.2, ERR-JOIN_UNSETTLED: a candidate with admitted, running, lost or blocked work is not left behind, whatever the policy says; once it is settled the join goes on.
    #[test]
    fn work_is_not_abandoned() {
        let mut world = x_received()?;
        let admit = |world: &mut World| world.admit_control("j");
        let unsettled = |world: &World| {
            let steps = plan(world.state(), &[], world.now_ms);
            ensure(!steps.contains(&Next::Admit { node_id: id("j") }), "it is planned all the same")?;
            stopped(world, Guard::JoinSettled, Code::JoinUnsettled, admit)
        };
        accepted(&world, admit)?;
        world.receive("y").must()?;
        world.admit("y").must()?;
        unsettled(&world)?;
        world.dispatch("y").must()?;
        unsettled(&world)?;
        let mut lost = world.clone();
        lost.settle("at-y-1", SettledOutcome::Unknown, 0).must()?;
        unsettled(&lost)?;
        let mut held = world.clone();
        held.settle("at-y-1", SettledOutcome::ConfirmedNotApplied, 0).must()?;
        held.commit(blocked("y")).must()?;
        refused(&held, Code::HoldActive, admit)?;
        if let Some(run) = &mut held.run {
            // As if the hold were closed, and the node not continued yet.
            run.holds = Default::default();
        }
        unsettled(&held)?;
        world.settle("at-y-1", SettledOutcome::ConfirmedApplied, 3).must()?;
        unsettled(&world)?;
        world.complete("y", object! {}).must()?;
        accepted(&world, admit).map(drop)
    }

    /// Proves HD-04.7, HD-01.T4: without a policy a candidate that was not begun, or was not received, keeps the join waiting; with one it does not.
    #[test]
    fn losers_are_left_out_by_policy_alone() {
        let silent = |graph: Graph| World::with(graph);
        let forbidden = |graph: Graph| World::configured(graph, |config| {
            config.join_policy = vec![aiws::record::JoinPolicy { exclude_losers: false, ..excluding("j") }];
        });
        let admit = |world: &mut World| world.admit_control("j");
        let waits = |world: &World| -> Outcome {
            let steps = plan(world.state(), &[], world.now_ms);
            ensure(!steps.contains(&Next::Admit { node_id: id("j") }), "it is planned all the same")?;
            stopped(world, Guard::LosersExcludable, Code::JoinUnsettled, admit)
        };
        for mut world in [silent(any_graph()), forbidden(any_graph())] {
            world.pass("s", object! {}).must()?;
            world.work("x").must()?;
            world.take("x", "j").must()?;
            waits(&world)?;
            world.work("y").must()?;
            waits(&world)?;
            let delivery = world.between("y", "j");
            world.claim(AGENT, &delivery).must()?;
            waits(&world)?;
            world.ack(AGENT, &delivery).must()?;
            let after = accepted(&world, admit)?;
            ensure(bound(&after)?.join.excluded.is_empty(), "something was closed")?;
        }
        accepted(&x_received()?, admit).map(drop)
    }

    /// Proves HD-04.9, T-40: a loser that is complete and received stays received, is listed, and is consumed by nobody.
    #[test]
    fn a_received_loser_is_remembered() {
        let world = both_received()?;
        let after = accepted(&world, |world| world.admit_control("j"))?;
        let loser = world.between("x", "j");
        ensure(bound(&after)?.join.unselected_acknowledged == vec![loser.clone()], "it is not listed")?;
        let kept = after.state().deliveries.get(&loser).ok_or("no delivery")?;
        ensure(kept.record.state == DeliveryState::Acknowledged, "its receipt is gone")?;
        ensure(kept.record.acknowledgement.is_some() && after.status("x") == NodeStatus::Completed, "its history is gone")?;
        let consumed = after.state().consumptions.values().flat_map(|one| &one.inputs);
        ensure(consumed.filter(|input| input.delivery_id == loser).count() == 0, "it was consumed")
    }

    /// Proves T-40, HD-01.T4, HD-01.T7: a loser that was sent or claimed is closed with the admission, its claim ended; nothing opens it again.
    #[test]
    fn an_open_loser_is_closed() {
        for claimed in [false, true] {
            let mut world = x_received()?;
            world.work("y").must()?;
            let loser = world.between("y", "j");
            if claimed {
                world.claim(AGENT, &loser).must()?;
            }
            let mut after = accepted(&world, |world| world.admit_control("j"))?;
            ensure(after.events.len() == world.events.len() + 1, "one event")?;
            ensure(bound(&after)?.join.excluded == vec![loser.clone()], "it is not listed")?;
            let kept = after.state().deliveries.get(&loser).ok_or("no delivery")?.clone();
            ensure(kept.record.state == DeliveryState::Excluded, "it is open")?;
            ensure(kept.ended_claims.len() == usize::from(claimed), "its claim did not end")?;
            let ack = after.ack_of(&loser);
            refused(&after, Code::DeliveryState, |world| world.send(AGENT, Body::AcknowledgeDelivery(ack)))?;
            stopped(&after, Guard::ClaimFree, Code::DeliveryState, |world| world.claim(AGENT, &loser))?;
            after.complete("j", object! {}).must()?;
            ensure(after.status("y") == NodeStatus::Completed, "the loser's work is gone")?;
        }
        Ok(())
    }

    /// Proves HD-04.10, HD-03.6, ERR-INPUT_SET_CONFLICT: of two admissions of one position one wins; the other is late by revision, and refreshed it finds the set fixed (E-15).
    #[test]
    fn one_of_two_racing_sets_wins() {
        let world = both_received()?;
        for (winner, loser) in [("x", "y"), ("y", "x")] {
            let (first, second) = (taking(&world, &[winner])?, taking(&world, &[loser])?);
            let late = world.command(Body::AdmitConsumer(second.clone()));
            let after = accepted(&world, |world| send(world, first))?;
            let facts = after.facts(ENGINE);
            stopped(&after, Guard::ExpectedRevision, Code::RevisionConflict, |world| world.apply(&late, &facts))?;
            stopped(&after, Guard::ActivationUnbound, Code::InputSetConflict, |world| send(world, second))?;
            ensure(bound(&after)?.inputs[0].delivery_id == world.between(winner, "j"), "another set")?;
        }
        Ok(())
    }

    /// Proves HC-ENV.5, REL-11, HF-05.7: what a caller writes about the choice is replaced by what the coordinator knows.
    #[test]
    fn the_coordinator_records_the_choice() {
        let world = x_received()?;
        let mut sent = admission(&world, "j")?;
        sent.consumption.join.mode = JoinMode::All;
        sent.consumption.join.unselected_acknowledged = vec![id("forged")];
        sent.skipped = vec![drafted(&{ let mut world = world.clone(); world.apply_task("y").must()?; world }, completed("y"))?.manifest];
        let after = accepted(&world, |world| send(world, sent))?;
        let plain = accepted(&world, |world| world.admit_control("j"))?;
        ensure(after == plain, "a caller's word was kept")
    }

    /// Proves HD-03.5: an ANY join runs nothing.
    #[test]
    fn an_any_join_has_no_operation() {
        let mut world = both_received()?;
        world.prepare(proposal("j"));
        stopped(&world, Guard::ControlNoEffect, Code::StateInvalid, |world| {
            let intent = AdmitIntent { node_id: id("j"), admission_ref: Some(reference("j")) };
            world.intend(ENGINE, &Intent::Admit(intent))
        })
    }

    /// Proves ERR-PREC.1: the checks of a choice answer in their order: input state, compatibility, input set, unsettled work, policy.
    #[test]
    fn the_checks_of_a_choice_answer_in_order() {
        let mut world = World::with(any_graph());
        world.pass("s", object! {}).must()?;
        world.work("x").must()?;
        world.receive("y").must()?;
        world.admit("y").must()?;
        let sent = taking(&world, &["x"])?;
        let twice = |body: &AdmitConsumer| {
            let mut body = body.clone();
            body.consumption.inputs.extend(body.consumption.inputs.clone());
            body
        };
        refused(&world, Code::DeliveryState, |world| send(world, twice(&sent)))?;
        world.take("x", "j").must()?;
        refused(&world, Code::InputSetConflict, |world| send(world, twice(&sent)))?;
        stopped(&world, Guard::JoinSettled, Code::JoinUnsettled, |world| send(world, sent.clone()))?;
        world.dispatch("y").must()?;
        world.settle("at-y-1", SettledOutcome::ConfirmedApplied, 3).must()?;
        world.complete("y", object! {}).must()?;
        stopped(&world, Guard::LosersExcludable, Code::JoinUnsettled, |world| send(world, sent.clone()))?;
        world.take("y", "j").must()?;
        accepted(&world, |world| send(world, sent)).map(drop)
    }
}

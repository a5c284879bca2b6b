//! Plan: every run ends by doing what plan says, and plan never names what must not be done.

use std::collections::BTreeSet;

use aiws::decimal::Dec;
use aiws::id::NodeId;
use aiws::record::{
    AcceptanceVerdict, EffectClass, HoldReason, Lifecycle, LostReads, NodeKind, OutcomeStatus, Ref,
    RestartPolicy, SettledOutcome, VerificationVerdict,
};
use praxis_model::command::{Body, CancelRun, PlaceHold, RecoverOwnership};
use praxis_model::event::Gate;
use praxis_model::plan::{Aggregate, Step as Next, Wait, aggregate, plan, ready_nodes, waits};
use praxis_model::report;
use praxis_model::run::{NodeStatus, RunState};

use crate::driver::{coding_world, drive, take};
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

fn auto(graph: aiws::record::Graph) -> World {
    World::configured(graph, |config| config.restart_policy = RestartPolicy::Auto)
}

/// LIN with a's operation of this class dispatched and its owner lost.
fn lost(effect: EffectClass, lost_reads: bool) -> World {
    let mut world = auto(lin());
    if lost_reads {
        let rule = LostReads {
            rule: Ref {
                id: id("rule"),
                revision: dec(1),
            },
            approved_by: id("human:op"),
            decision_ref: id("d"),
        };
        let run = world.run.as_mut().expect("a run");
        run.contract = std::sync::Arc::new(aiws::record::Contract {
            lost_reads: Some(rule),
            ..contract()
        });
    }
    world.prepare(aiws::record::AdmissionProposal {
        effect,
        ..proposal("a")
    });
    let intent = praxis_model::command::AdmitIntent {
        node_id: id("a"),
        admission_ref: Some(reference("a")),
    };
    world
        .intend(ENGINE, &praxis_model::command::Intent::Admit(intent))
        .expect("admit");
    world.dispatch("a").expect("dispatch");
    recover(&mut world);
    world
}

/// Proves FV-RUN.1, FV-RUN.2, FV-RUN.3, HF-03.1, HF-05.10: the coding graph ends COMPLETED by plan alone, on the first
/// pass and through the correction, with one manifest per node.
#[test]
fn a_run_ends_by_its_plan() {
    for (pass, skipped) in [(true, vec!["chk1", "fix1"]), (false, vec!["pass0"])] {
        let mut world = coding_world();
        drive(&mut world, pass);
        assert_eq!(world.state().lifecycle, Lifecycle::Completed, "pass {pass}");
        assert_eq!(world.state().manifests.size(), 12, "one manifest per node");
        let gone: Vec<&str> = world
            .state()
            .nodes
            .iter()
            .filter(|(_, own)| own.status == NodeStatus::Skipped)
            .map(|(id, _)| id.as_str())
            .collect();
        assert_eq!(gone, skipped);
        let works = if pass { 3 } else { 5 };
        let row = world.account.clone().expect("an account");
        assert_eq!((row.spent, row.reserved), (dec(works), dec(0)));
        assert!(plan(world.state(), &[], world.now_ms).is_empty());
    }
}

/// The readiness that the requirement states, without the code that is tested.
fn by_hand(state: &RunState, optional: &[(&str, &str)]) -> Vec<NodeId> {
    let Some(graph) = &state.graph else {
        return Vec::new();
    };
    let status = |id: &NodeId| state.nodes.get(id).map(|own| own.status);
    let mut ready = Vec::new();
    for node in &graph.nodes {
        let mut good = status(&node.id) == Some(NodeStatus::Pending);
        for producer in &node.depends_on {
            let may_skip = optional.contains(&(node.id.as_str(), producer.as_str()));
            let done = status(producer) == Some(NodeStatus::Completed);
            good &= done || (may_skip && status(producer) == Some(NodeStatus::Skipped));
        }
        if good {
            ready.push(node.id.clone());
        }
    }
    ready
}

/// Proves FV-GRAPH.13: at every position of a whole run the ready nodes are those that a brute force finds.
#[test]
fn ready_nodes_are_those_found_by_hand() {
    let optional = [("j", "pass0"), ("j", "chk1")];
    let mut seen = BTreeSet::new();
    for pass in [true, false] {
        let mut world = coding_world();
        drive(&mut world, pass);
        let (admission, hash) = &world.events[1];
        let mut state = RunState::admitted(admission, hash).expect("an admission");
        for (event, hash) in &world.events[2..] {
            state = praxis_model::evolve::run(state, event, hash).expect("a legal event");
            if state.lifecycle == Lifecycle::Running {
                let ready = ready_nodes(&state);
                assert_eq!(
                    ready,
                    by_hand(&state, &optional),
                    "after revision {}",
                    state.head.revision
                );
                seen.extend(ready);
            }
        }
    }
    assert_eq!(seen.len(), 12, "every node was ready once");
}

/// Proves FV-EFF.3, FV-EFF.4: an uncertain effect is looked up, settled by rule or waited for, by its class, and is
/// never among the steps to try.
#[test]
fn an_uncertain_effect_is_never_tried_again() {
    let attempt_id = || id("at-a-1");
    let lookup = || {
        let attempt_id = attempt_id();
        Some(Next::Lookup { attempt_id })
    };
    let cases = [
        (EffectClass::External, false, lookup(), true),
        (EffectClass::Idempotent, false, lookup(), true),
        (EffectClass::Read, false, lookup(), true),
        (
            EffectClass::Read,
            true,
            Some(Next::SettleLostRead {
                attempt_id: attempt_id(),
            }),
            false,
        ),
    ];
    for (effect, rule, step, waited) in cases {
        let world = lost(effect, rule);
        let steps = plan(world.state(), &[], world.now_ms);
        assert_eq!(steps, Vec::from_iter(step), "{effect} {rule}");
        let waits = waits(world.state(), &[], world.now_ms);
        assert_eq!(
            waits.contains(&Wait::Uncertain {
                attempt_id: attempt_id()
            }),
            waited,
            "{effect} {rule}"
        );
    }
}

/// Proves FV-REC.2, FV-REC.3: an attempt that an earlier owner prepared is not dispatched; under AUTO it is returned
/// and retried, under HUMAN it waits.
#[test]
fn a_prepared_attempt_of_a_lost_owner_is_returned() {
    let mut world = auto(lin());
    world.admit("a").expect("admit");
    recover(&mut world);
    let returned = Next::ReturnPrepared {
        attempt_id: id("at-a-1"),
    };
    assert_eq!(
        plan(world.state(), &[], world.now_ms),
        vec![returned.clone()]
    );
    take(&mut world, &returned, true).expect("settle");
    let retried = Next::Retry {
        operation_id: id("op-a"),
    };
    assert_eq!(
        plan(world.state(), &[], world.now_ms),
        vec![retried.clone()]
    );
    take(&mut world, &retried, true).expect("retry");
    assert!(matches!(
        plan(world.state(), &[], world.now_ms).as_slice(),
        [Next::Dispatch { .. }]
    ));
    let mut world = World::with(lin());
    world.admit("a").expect("admit");
    recover(&mut world);
    assert!(plan(world.state(), &[], world.now_ms).is_empty());
    assert!(waits(world.state(), &[], world.now_ms).contains(&Wait::Recovery));
}

/// Proves FV-ACC.6: past the last attempt there is no retry; the node has to be concluded.
#[test]
fn after_the_last_attempt_comes_the_boundary() {
    let mut world = auto(lin());
    world.admit("a").expect("admit");
    for attempt in 1..=3 {
        world.dispatch("a").expect("dispatch");
        let last = world
            .state()
            .operations
            .get("op-a")
            .and_then(|operation| operation.attempts.last().cloned())
            .expect("an attempt");
        world
            .settle(last.as_str(), SettledOutcome::ConfirmedNotApplied, 0)
            .expect("settle");
        let steps = plan(world.state(), &[], world.now_ms);
        if attempt < 3 {
            assert_eq!(
                steps,
                vec![Next::Retry {
                    operation_id: id("op-a")
                }]
            );
            take(&mut world, &steps[0], true).expect("retry");
        } else {
            assert_eq!(steps, vec![Next::Conclude { node_id: id("a") }]);
        }
    }
}

/// Proves FV-CON.5, HS-05.6: a live run that only a deadline stops asks for a hold; the contract's deadline always, a
/// node's own once nothing else of the run moves.
#[test]
fn a_run_out_of_time_asks_for_a_hold() {
    let mut world = auto(lin());
    world.work("a").expect("a");
    let of = |world: &World| plan(world.state(), &[], world.now_ms);
    assert!(matches!(of(&world).as_slice(), [Next::Receive { .. }]));
    world.now_ms = 100_000;
    assert_eq!(of(&world), vec![Next::HoldForTime { node_id: None }]);
    take(&mut world, &Next::HoldForTime { node_id: None }, true).expect("placeHold");
    assert!(of(&world).is_empty());
    let held = [Wait::Hold {
        hold_id: id("late"),
    }];
    assert_eq!(waits(world.state(), &[], world.now_ms), held);
    let mut nodes = vec![task("a", &[]), task("b", &[]), end(&["a", "b"])];
    nodes[0].deadline_ms = Some(aiws::decimal::Ms::from_u64(2_000));
    let mut world = auto(graph(nodes));
    world.now_ms = 2_000;
    assert_eq!(of(&world), vec![Next::Admit { node_id: id("b") }]);
    world.admit("b").expect("admit");
    world.dispatch("b").expect("dispatch");
    assert!(of(&world).is_empty(), "b is under way");
    world
        .settle("at-b-1", SettledOutcome::ConfirmedApplied, 1)
        .expect("settle");
    assert_eq!(of(&world), vec![Next::Conclude { node_id: id("b") }]);
    world.complete("b", aiws::object! {}).expect("boundary");
    let node_id = Some(id("a"));
    let receive = of(&world);
    assert!(matches!(receive.as_slice(), [Next::Receive { .. }]));
    take(&mut world, &receive[0], true).expect("receive");
    assert_eq!(of(&world), vec![Next::HoldForTime { node_id }]);
}

/// Proves HS-05.6, FV-RUN.3: a run whose END is done waits for its verification and its acceptance by name.
#[test]
fn a_run_that_is_done_waits_for_its_assessments() {
    let mut world = World::with(graph(vec![task("a", &[]), end(&["a"])]));
    world.work("a").expect("a");
    world.pass_end().expect("end");
    let node_id = || id("end");
    let of = |world: &World| waits(world.state(), &[], world.now_ms);
    assert_eq!(of(&world), [Wait::Verification { node_id: node_id() }]);
    world
        .verify("v1", VerificationVerdict::Pass)
        .expect("verify");
    assert_eq!(of(&world), [Wait::Acceptance { node_id: node_id() }]);
    world
        .accept("c1", AcceptanceVerdict::Accepted)
        .expect("accept");
    assert_eq!(of(&world), []);
    assert_eq!(plan(world.state(), &[], world.now_ms), [Next::CompleteRun]);
}

/// Proves HS-01.3, HS-01.11: under a hold, a mission gate or a pending cancellation plan launches nothing, and still
/// tells what admitted work has to say (T-36).
#[test]
fn gates_stop_launches_in_the_plan() {
    let mut world = World::with(lin());
    world.apply_task("a").expect("a");
    let conclude = vec![Next::Conclude { node_id: id("a") }];
    let outer = [Gate::Cancel];
    assert_eq!(plan(world.state(), &outer, world.now_ms), conclude);
    let mut held = world.clone();
    held.send(
        HUMAN,
        Body::PlaceHold(PlaceHold {
            hold: hold("h1", HoldReason::Operator),
        }),
    )
    .expect("placeHold");
    assert_eq!(plan(held.state(), &[], held.now_ms), conclude);
    held.complete("a", aiws::object! {}).expect("boundary");
    assert!(plan(held.state(), &[], held.now_ms).is_empty());
    assert_eq!(ready_nodes(held.state()), Vec::new());
    assert_eq!(
        waits(held.state(), &[], held.now_ms),
        vec![Wait::Hold { hold_id: id("h1") }]
    );
    world.complete("a", aiws::object! {}).expect("boundary");
    let cancel = CancelRun {
        run_id: run_id(),
        reason: "enough".to_owned(),
        decision_ref: id("d"),
    };
    world
        .send(HUMAN, Body::CancelRun(cancel))
        .expect("cancelRun");
    assert_eq!(
        plan(world.state(), &[], world.now_ms),
        vec![Next::FinishCancel]
    );
}

/// Proves HS-05.4, HS-05.5, HS-05.6: the one word of a run, in the order of its table.
#[test]
fn the_aggregate_follows_its_table() {
    let at = |world: &World| aggregate(world.state(), &[], world.now_ms);
    let mut world = World::with(lin());
    assert_eq!(at(&world), Aggregate::Ready);
    world.admit("a").expect("admit");
    assert_eq!(at(&world), Aggregate::Ready);
    world.dispatch("a").expect("dispatch");
    assert_eq!(at(&world), Aggregate::Running);
    let mut held = world.clone();
    held.send(
        HUMAN,
        Body::PlaceHold(PlaceHold {
            hold: hold("h1", HoldReason::Operator),
        }),
    )
    .expect("placeHold");
    assert_eq!(
        at(&held),
        Aggregate::Running,
        "a hold does not stop what runs"
    );
    held.settle("at-a-1", SettledOutcome::Unknown, 0)
        .expect("settle");
    assert_eq!(at(&held), Aggregate::Waiting);
    let cancel = CancelRun {
        run_id: run_id(),
        reason: "enough".to_owned(),
        decision_ref: id("d"),
    };
    held.send(HUMAN, Body::CancelRun(cancel))
        .expect("cancelRun");
    assert_eq!(at(&held), Aggregate::Canceling);
    let failed = praxis_model::command::BoundaryIntent {
        cause: Some(cause()),
        ..boundary("a", OutcomeStatus::Failed)
    };
    world.commit(failed).expect("boundary");
    assert_eq!(at(&world), Aggregate::Failed);
    let mut done = World::lin_done();
    done.finish().expect("completeRun");
    assert_eq!(at(&done), Aggregate::Completed);
    let mut paused = World::with(lin());
    paused.run.as_mut().expect("a run").lifecycle = Lifecycle::Paused;
    assert_eq!(at(&paused), Aggregate::Paused);
    let mut waiting = World::with(gates_graph());
    waiting.admit_control("p").expect("admit");
    assert_eq!(at(&waiting), Aggregate::Waiting);
    // Everything is skipped but x, and the run has no END to reach: nothing is waited for.
    let mut dead = World::with(dec_graph());
    dead.pass("d", aiws::object! { "pass": true }).expect("d");
    dead.work("x").expect("x");
    assert_eq!(at(&dead), Aggregate::Dead);
}

/// Proves REP-1, REP-2, HS-05.7: the report has both dimensions and the sums of its run.
#[test]
fn the_report_tells_execution_and_hold() {
    let mut world = World::with(lin());
    world.work("a").expect("a");
    world.receive("b").expect("b");
    world.admit("b").expect("admit");
    world.dispatch("b").expect("dispatch");
    world
        .send(
            HUMAN,
            Body::PlaceHold(PlaceHold {
                hold: hold("h1", HoldReason::Operator),
            }),
        )
        .expect("placeHold");
    let report = report::of(world.state());
    assert_eq!((report.aggregate, report.held), (Aggregate::Running, true));
    assert_eq!((report.spent, report.reserved), (dec(3), dec(3)));
    assert_eq!(
        (report.manifests, report.consumptions, report.attempts),
        (1, 2, 2)
    );
    assert_eq!(report.deliveries.get("ACKNOWLEDGED"), Some(&1));
    assert_eq!(report.blocked_nodes, vec![id::<NodeId>("b"), id("end")]);
    assert_eq!(
        report.nodes[0].operations[0].attempts[0].actual,
        Some(dec(3))
    );
    let text = aiws::canonical::to_value(&report);
    assert!(text.is_ok(), "the report has a canonical form: {text:?}");
    assert!(matches!(
        world
            .state()
            .graph
            .as_ref()
            .map(|graph| &graph.nodes[2].kind),
        Some(NodeKind::End)
    ));
}

/// Proves HS-05.6: a run whose only way on is a delivery that somebody has claimed waits for that claim, and is not dead;
/// once the claim has expired the delivery is received anew. A claimant that had ended with its process once left its
/// run looking dead until the lease was over.
#[test]
fn a_live_claim_is_waited_for() {
    let mut world = auto(lin());
    world.work("a").expect("work and boundary");
    let delivery = world
        .state()
        .deliveries
        .keys()
        .next()
        .cloned()
        .expect("a delivery");
    world.claim(AGENT, &delivery).expect("claim");
    let (state, now_ms) = (world.state().clone(), world.now_ms);
    assert!(plan(&state, &[], now_ms).is_empty());
    let delivery_id = delivery.clone();
    assert_eq!(waits(&state, &[], now_ms), [Wait::Claim { delivery_id }]);
    assert_eq!(aggregate(&state, &[], now_ms), Aggregate::Waiting);
    let later_ms = now_ms + 20_000;
    assert!(waits(&state, &[], later_ms).is_empty());
    assert!(plan(&state, &[], later_ms).contains(&Next::Receive {
        delivery_id: delivery
    }));
}

//! Cases of LOOP nodes: iterations, their bound, and what reaching it means. Invariant and use as in `cases`.

use aiws::error::Code;
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    Consumption, DeliveryState, HoldDecision, HoldReason, HoldState, Lifecycle, Manifest, Node,
    NodeKind, OutcomeStatus, SettledOutcome,
};
use praxis_model::command::{Body, BoundaryIntent, CommitBoundary, ResolveHold};
use praxis_model::guard::Guard;
use praxis_model::plan::{Step as Next, plan, ready_nodes, waits};
use praxis_model::report;
use praxis_model::run::{NodeState, NodeStatus};
use praxis_model::stream::activation;
use praxis_model::transition::Transition;

use super::common::*;
use super::{Must, Outcome, accepted, cases, ensure, refused, stopped};
use crate::world::*;

fn own(world: &World) -> Result<NodeState, String> {
    world
        .state()
        .nodes
        .get("l")
        .cloned()
        .ok_or_else(|| "no loop".to_owned())
}

fn bound(world: &World) -> Result<Consumption, String> {
    let own = own(world)?;
    world
        .state()
        .consumptions
        .get(&own.activation_id)
        .cloned()
        .ok_or_else(|| "no consumption".to_owned())
}

fn says(done: Value) -> BoundaryIntent {
    BoundaryIntent {
        result: object! { "done": done },
        ..completed("l")
    }
}

/// LOOP3 with this iteration applied, and those before it not done.
fn applied_in(number: u64) -> Result<World, String> {
    let mut world = World::with(loop3());
    for before in 1..number {
        world.iterate("l", before, false).must()?;
    }
    world.apply_iteration("l", number).must()?;
    Ok(world)
}

/// LOOP3 with its bound reached.
fn exhausted() -> Result<World, String> {
    let mut world = applied_in(3)?;
    world.commit(says(false.into())).must()?;
    Ok(world)
}

fn resolve(world: &mut World, decision: HoldDecision) -> Step {
    let open = world
        .state()
        .holds
        .values()
        .find(|hold| hold.state == HoldState::Open);
    let hold_id = open.expect("an open hold").hold_id.clone();
    let (decision_ref, evidence) = (id("decision-1"), Vec::new());
    world.send(
        HUMAN,
        Body::ResolveHold(ResolveHold {
            hold_id,
            decision,
            decision_ref,
            evidence,
            rule: None,
        }),
    )
}

/// As if no hold had ever been opened.
fn unheld(world: &World) -> World {
    let mut world = world.clone();
    if let Some(run) = &mut world.run {
        run.holds = Default::default();
    }
    world
}

cases! {
    /// Proves T-27, IDM-6, FV-NODE-LOOP.2: an iteration that is not done is followed by another in a new activation, derived from run, node and number, with an operation of its own.
    #[test]
    fn an_iteration_has_its_own_activation() {
        let mut world = World::with(loop3());
        let mut seen = Vec::new();
        for number in 1..=3 {
            let now = own(&world)?;
            let expected = activation(&world.state().stream, &id("l"), number);
            ensure(now.iteration == number && now.activation_id == expected, format!("{now:?}"))?;
            ensure(now.status == NodeStatus::Pending && ready_nodes(world.state()) == [id("l")], "it is not ready")?;
            world.apply_iteration("l", number).must()?;
            ensure(bound(&world)?.operation_id == Some(id(&format!("op-l.{number}"))), "another operation")?;
            seen.push(now.activation_id);
            if number < 3 {
                let events = world.events.len();
                world.commit(says(false.into())).must()?;
                ensure(world.events.len() == events + 1, "one event")?;
                let manifest = last_manifest(&world)?;
                ensure(manifest.outcome.status == OutcomeStatus::Completed && manifest.recipients.is_empty(), "it went on")?;
                ensure(manifest.resume.eligible_node_ids == [id("l")], "the loop itself comes next")?;
                ensure(world.state().deliveries.is_empty(), "an iteration was handed on")?;
            }
        }
        seen.dedup();
        ensure(seen.len() == 3 && world.state().operations.size() == 3, "three activations, three operations")
    }

    /// Proves IDM-6, FV-ACC.5: another try of an iteration keeps its activation and its operation.
    #[test]
    fn a_retry_is_no_iteration() {
        let mut world = World::with(loop3());
        world.admit_iteration("l", 1).must()?;
        let before = own(&world)?;
        world.dispatch("l").must()?;
        world.settle("at-l.1-1", SettledOutcome::ConfirmedNotApplied, 0).must()?;
        let retry = praxis_model::command::Intent::RetryOperation { operation_id: id("op-l.1") };
        world.intend(ENGINE, &retry).must()?;
        ensure(own(&world)? == before && world.state().operations.size() == 1, "a retry went on to another iteration")
    }

    /// Proves FV-NODE-LOOP.2, HF-03.11: a LOOP that is done frees its dependents, in whichever iteration.
    #[test]
    fn a_loop_that_is_done_goes_on() {
        for number in 1..=3 {
            let world = applied_in(number)?;
            let after = accepted(&world, |world| world.commit(says(true.into())))?;
            ensure(after.status("l") == NodeStatus::Completed && own(&after)?.iteration == number, "it is not complete")?;
            ensure(after.deliveries("end", DeliveryState::Pending).len() == 1, "end receives nothing")?;
            ensure(after.state().manifests.size() as u64 == number, "one manifest per iteration")?;
            stopped(&after, Guard::ActivationUndecided, Code::IdentityConflict, |world| world.commit(says(true.into())))?;
        }
        Ok(())
    }

    /// Proves FV-NODE-LOOP.2: a result that does not say `done` as true or false ends no iteration.
    #[test]
    fn an_iteration_says_whether_it_is_done() {
        let world = applied_in(1)?;
        stopped(&world, Guard::LoopDone, Code::EvidenceInvalid, |world| world.commit(completed("l")))?;
        for done in [Value::from("true"), Value::Int(1), Value::Null, Value::Array(vec![true.into()])] {
            stopped(&world, Guard::LoopDone, Code::EvidenceInvalid, |world| world.commit(says(done)))?;
        }
        Ok(())
    }

    /// Proves FV-NODE-LOOP.2, HF-03.4, FV-GRAPH.12: an iteration is done by its own confirmed operation, never by an earlier one.
    #[test]
    fn an_iteration_needs_its_own_operation() {
        let mut world = World::with(loop3());
        world.iterate("l", 1, false).must()?;
        let commit = |world: &mut World| world.commit(says(true.into()));
        stopped(&world, Guard::BoundaryActive, Code::NodeNotReady, commit)?;
        world.admit_iteration("l", 2).must()?;
        stopped(&world, Guard::CompletedSettled, Code::EffectUnresolved, commit)?;
        world.dispatch("l").must()?;
        world.settle("at-l.2-1", SettledOutcome::ConfirmedNotApplied, 0).must()?;
        stopped(&world, Guard::LoopConfirmed, Code::EvidenceInvalid, commit)?;
        let mut body = drafted(&world, says(true.into()))?;
        body.manifest.producer.operations = last_of(&world, 1)?.producer.operations;
        stopped(&world, Guard::OperationsExact, Code::EvidenceInvalid, |world| world.send(ENGINE, Body::CommitBoundary(body)))
    }

    /// Proves FV-NODE-LOOP.2, FV-GRAPH.15, ERR-IDENTITY_CONFLICT: an operation of one iteration is never that of another.
    #[test]
    fn an_operation_is_used_once() {
        let mut world = World::with(loop3());
        world.iterate("l", 1, false).must()?;
        stopped(&world, Guard::OperationNew, Code::IdentityConflict, |world| world.admit_iteration("l", 1))?;
        world.admit_iteration("l", 2).must()?;
        // The operation of the first iteration is not dispatched in the second.
        let body = praxis_model::command::Dispatch {
            run_id: run_id(),
            owner_epoch: dec(1),
            node_id: id("l"),
            operation_id: id("op-l.1"),
            attempt_id: id("at-l.1-1"),
            policy: world.facts(ENGINE).policy,
        };
        refused(&world, Code::StateInvalid, |world| world.send(ENGINE, Body::Dispatch(body)))
    }

    /// Proves HF-02.12, HF-02.13: an iteration counts once, whatever new names come with its operation, and gets no second outcome.
    #[test]
    fn an_iteration_counts_once() {
        let mut world = applied_in(1)?;
        world.commit(says(false.into())).must()?;
        let fresh = |world: &World, intent: BoundaryIntent| {
            let mut body = drafted(world, intent)?;
            let counted = last_of(world, 1)?;
            body.manifest.producer.activation_id = counted.producer.activation_id;
            body.manifest.producer.operations = counted.producer.operations;
            Ok::<CommitBoundary, String>(body)
        };
        let pending = world.clone();
        world.admit_iteration("l", 2).must()?;
        for world in [pending, world] {
            for intent in [says(false.into()), says(true.into()), blocked("l"), failed("l")] {
                let body = fresh(&world, intent)?;
                stopped(&world, Guard::IterationOnce, Code::IdentityConflict, |world| {
                    world.send(ENGINE, Body::CommitBoundary(body))
                })?;
            }
            ensure(own(&world)?.iteration == 2, "it was counted")?;
        }
        Ok(())
    }

    /// Proves HD-04.2, HD-03.6: every iteration consumes what the node received at first; a receipt for another node is none.
    #[test]
    fn iterations_share_their_inputs() {
        let nodes = vec![task("a", &[]), looped("l", 2, &["a"]), task("b", &["a"]), end(&["l", "b"])];
        let mut world = World::with(graph(nodes));
        world.work_with("a", &artifact("patch")).must()?;
        world.apply_iteration("l", 1).must()?;
        let first = bound(&world)?;
        world.commit(says(false.into())).must()?;
        ensure(plan(world.state(), &[], world.now_ms).contains(&Next::Admit { node_id: id("l") }), "it is not planned")?;
        // HF-04.11: an old receipt is no pass, in no iteration.
        let unread = World { materials: Default::default(), ..world.clone() };
        stopped(&unread, Guard::MaterialAvailable, Code::ArtifactUnavailable, |world| world.admit_iteration("l", 2))?;
        let after = accepted(&world, |world| world.admit_iteration("l", 2))?;
        ensure(first.inputs.len() == 1 && bound(&after)?.inputs == first.inputs, "other inputs")?;
        ensure(bound(&after)?.activation_id != first.activation_id, "the same activation")?;
        let mut foreign = world.clone();
        foreign.receive("b").must()?;
        let other = foreign.between("a", "b");
        let intent = praxis_model::command::AdmitIntent { node_id: id("l"), admission_ref: Some(reference("l.2")) };
        foreign.prepare(proposal("l.2"));
        let drafted = praxis_model::draft::command(
            foreign.state(), &praxis_model::command::Intent::Admit(intent), &foreign.facts(ENGINE));
        let Ok(Body::AdmitConsumer(mut body)) = drafted else { return Err("no draft".to_owned()) };
        accepted(&foreign, |world| world.send(ENGINE, Body::AdmitConsumer(body.clone())))?;
        body.consumption.inputs[0].delivery_id = other;
        stopped(&foreign, Guard::InputAcknowledged, Code::DeliveryState, |world| {
            world.send(ENGINE, Body::AdmitConsumer(body))
        })
    }

    /// Proves HS-02.1: the last iteration that is not done is one commit of iteration, attempts and cost, BLOCKED checkpoint and open ATTEMPT_LIMIT hold.
    #[test]
    fn a_bound_that_is_reached_is_one_commit() {
        let world = applied_in(3)?;
        let after = accepted(&world, |world| world.commit(says(false.into())))?;
        ensure(after.events.len() == world.events.len() + 1, "one event")?;
        let manifest = last_manifest(&after)?;
        ensure(manifest.outcome.status == OutcomeStatus::Blocked && manifest.result == object! { "done": false }, "another outcome")?;
        ensure(manifest.producer.operations.len() == 1 && manifest.producer.operations[0].attempt_ids == [id("at-l.3-1")], "no attempts")?;
        ensure(manifest.controls.accounting.spent == dec(9) && manifest.controls.accounting.attempts == dec(3), "no cost")?;
        ensure(after.state().checkpoints.contains_key(&manifest.producer.checkpoint_id), "no checkpoint")?;
        ensure(manifest.recipients.is_empty() && manifest.resume.blockers.iter().any(|one| one.kind == HoldReason::AttemptLimit), "it goes on")?;
        let hold = after.state().holds.values().next().ok_or("no hold")?;
        ensure(hold.state == HoldState::Open && hold.reason == HoldReason::AttemptLimit, "another hold")?;
        ensure(hold.blockers.iter().any(|one| one.subject_id.as_str() == "l"), "the hold does not name the node")?;
        let (event, _) = after.events.last().ok_or("no event")?;
        let opened = event.outcome.transitions.iter().filter(|one| matches!(one, Transition::HoldOpened { .. }));
        ensure(opened.count() == 1 && event.outcome.gates.iter().any(|gate| gate.closed), "not in this event")?;
        let own = own(&after)?;
        ensure(own.status == NodeStatus::Blocked && own.iteration == 3, format!("{own:?}"))
    }

    /// Proves HS-02.2, HS-05.6: a bound that is reached leaves the node incomplete and the run live, waiting for its hold.
    #[test]
    fn a_bound_that_is_reached_fails_nothing() {
        let after = exhausted()?;
        ensure(after.state().lifecycle == Lifecycle::Running && after.state().cause.is_none(), "the run failed")?;
        ensure(after.status("l") == NodeStatus::Blocked && after.status("end") == NodeStatus::Pending, "the node ended")?;
        ensure(plan(after.state(), &[], after.now_ms).is_empty(), "something is planned")?;
        ensure(waits(after.state(), &[], after.now_ms).len() == 1, "nothing is waited for")
    }

    /// Proves HS-02.1: what the bound means is not left to the caller: no COMPLETED past it, no BLOCKED before it, no other hold, no unfinished iteration.
    #[test]
    fn a_bound_is_reached_in_one_way() {
        let world = applied_in(3)?;
        let good = drafted(&world, says(false.into()))?;
        accepted(&world, |world| world.send(ENGINE, Body::CommitBoundary(good.clone())))?;
        let mut completed = good.clone();
        (completed.manifest.outcome.status, completed.hold) = (OutcomeStatus::Completed, None);
        stopped(&world, Guard::LoopBound, Code::EvidenceInvalid, |world| world.send(ENGINE, Body::CommitBoundary(completed)))?;
        let mut other = good.clone();
        other.hold = Some(hold("h1", HoldReason::Operator));
        stopped(&world, Guard::LoopExhausted, Code::EvidenceInvalid, |world| world.send(ENGINE, Body::CommitBoundary(other)))?;
        let mut none = good;
        none.hold = None;
        stopped(&world, Guard::BlockedHasHold, Code::StateInvalid, |world| world.send(ENGINE, Body::CommitBoundary(none)))?;
        let undone = |node: &str| BoundaryIntent { result: object! { "done": false }, ..blocked(node) };
        let early = applied_in(2)?;
        stopped(&early, Guard::LoopExhausted, Code::EvidenceInvalid, |world| world.commit(undone("l")))?;
        let mut open = World::with(loop3());
        open.iterate("l", 1, false).must()?;
        open.iterate("l", 2, false).must()?;
        open.admit_iteration("l", 3).must()?;
        stopped(&open, Guard::CompletedSettled, Code::EffectUnresolved, |world| world.commit(undone("l")))?;
        open.dispatch("l").must()?;
        open.settle("at-l.3-1", SettledOutcome::ConfirmedNotApplied, 0).must()?;
        stopped(&open, Guard::LoopConfirmed, Code::EvidenceInvalid, |world| world.commit(undone("l")))
    }

    /// Proves FV-GRAPH.11, HS-02.1: the result of an iteration fits the node's schema, of the last one, too.
    #[test]
    fn every_iterations_result_fits() {
        let schema = object! { "type": "object", "required": vec!["note"] };
        let node = Node { output_schema: Some(schema), ..looped("l", 2, &[]) };
        let mut world = World::with(graph(vec![node, end(&["l"])]));
        for number in 1..=2 {
            world.apply_iteration("l", number).must()?;
            stopped(&world, Guard::ResultFits, Code::EvidenceInvalid, |world| world.commit(says(false.into())))?;
            world.complete("l", object! { "done": false, "note": "n" }).must()?;
        }
        ensure(world.status("l") == NodeStatus::Blocked, "the bound was not reached")
    }

    /// Proves HS-02.4, HS-02.5, ERR-HOLD_NOT_CLEAR: neither a recheck nor a cancellation of the hold buys another iteration; counts, effects and money stay.
    #[test]
    fn dismissing_the_hold_buys_nothing() {
        let world = exhausted()?;
        stopped(&world, Guard::ResolveAttempts, Code::HoldNotClear, |world| resolve(world, HoldDecision::Recheck))?;
        let again = |world: &mut World| world.admit_iteration("l", 4);
        refused(&world, Code::HoldActive, again)?;
        let mut canceled = accepted(&world, |world| resolve(world, HoldDecision::Cancel))?;
        ensure(canceled.state().lifecycle == Lifecycle::Canceling, "the run goes on")?;
        refused(&canceled, Code::HoldActive, again)?;
        refused(&canceled, Code::HoldActive, |world| world.commit(says(true.into())))?;
        let kept = (world.state().operations.clone(), world.state().attempts.clone(), world.account.clone());
        ensure((canceled.state().operations.clone(), canceled.state().attempts.clone(), canceled.account.clone()) == kept, "something was given back")?;
        let finish = praxis_model::command::FinishCancelRun { run_id: run_id(), reason: "enough".to_owned(), decision_ref: id("d") };
        canceled.send(HUMAN, Body::FinishCancelRun(finish)).must()?;
        refused(&canceled, Code::TerminalExecution, again)?;
        ensure(own(&canceled)?.iteration == 3, "another iteration began")
    }

    /// Proves HF-02.12, HS-02.4: a bound that was reached is not reached again nor overruled, not even were there no hold; it may fail, with its cause.
    #[test]
    fn an_exhausted_iteration_counts_once() {
        let world = unheld(&exhausted()?);
        let once = |world: &World, intent: BoundaryIntent| -> Outcome {
            stopped(world, Guard::IterationOnce, Code::IdentityConflict, |world| world.commit(intent))
        };
        once(&world, says(true.into()))?;
        once(&world, blocked("l"))?;
        let mut body = drafted(&world, says(true.into()))?;
        body.manifest.result = object! { "done": true, "again": true };
        stopped(&world, Guard::IterationOnce, Code::IdentityConflict, |world| world.send(ENGINE, Body::CommitBoundary(body)))?;
        refused(&world, Code::InputSetConflict, |world| world.admit_iteration("l", 4))?;
        let after = accepted(&world, |world| world.commit(failed("l")))?;
        ensure(after.state().lifecycle == Lifecycle::Failed, "a failure is told")
    }

    /// Proves HF-02.14, FV-NODE-LOOP.2: an iteration that something else blocked goes on in the same activation and is counted when it is done.
    #[test]
    fn a_blocked_iteration_is_not_counted() {
        let mut world = applied_in(2)?;
        let intent = BoundaryIntent { hold: Some(hold("h1", HoldReason::Operator)), ..boundary("l", OutcomeStatus::Blocked) };
        world.commit(intent).must()?;
        ensure(own(&world)?.iteration == 2, "it was counted")?;
        resolve(&mut world, HoldDecision::Recheck).must()?;
        let before = own(&world)?;
        ensure(before.status == NodeStatus::Active, "it does not go on")?;
        let after = accepted(&world, |world| world.commit(says(false.into())))?;
        ensure(own(&after)?.iteration == 3 && own(&after)?.status == NodeStatus::Pending, "it was not counted")?;
        // Without a recheck in between the boundary itself continues the node.
        let mut direct = applied_in(2)?;
        direct.commit(BoundaryIntent { hold: Some(hold("h1", HoldReason::Operator)), ..boundary("l", OutcomeStatus::Blocked) }).must()?;
        let after = accepted(&unheld(&direct), |world| world.commit(says(false.into())))?;
        ensure(own(&after)?.iteration == 3, "it was not counted")
    }

    /// Proves HS-03.3, FV-CON.5, FV-ACC.1: a bound on cost or time stops a LOOP before its own does.
    #[test]
    fn other_bounds_stop_a_loop_too() {
        let mut world = World::with(graph(vec![looped("l", 9, &[]), end(&["l"])]));
        for number in 1..=3 {
            world.iterate("l", number, false).must()?;
        }
        refused(&world, Code::BudgetExceeded, |world| world.admit_iteration("l", 4))?;
        ensure(own(&world)?.iteration == 4 && world.status("l") == NodeStatus::Pending, "it was counted")?;
        let mut late = World::with(loop3());
        late.iterate("l", 1, false).must()?;
        late.now_ms = 100_000;
        refused(&late, Code::GrantExceeded, |world| world.admit_iteration("l", 2))
    }

    /// Proves FV-APR.2, T-80: behind an APPROVAL every iteration has an approval of its own operation.
    #[test]
    fn every_iteration_is_approved() {
        let nodes = vec![node("p", NodeKind::Approval, &[]), looped("l", 3, &["p"]), end(&["l"])];
        let mut world = World::with(graph(nodes));
        world.admit_control("p").must()?;
        world.approve("p1", &action_of("l.1")).must()?;
        world.commit(BoundaryIntent { approvals: vec![id("p1")], ..completed("p") }).must()?;
        world.receive("l").must()?;
        let admit = |world: &mut World, number: u64, approval: &str| {
            let name = format!("l.{number}");
            let action = action_of("l.1");
            world.prepare(aiws::record::AdmissionProposal {
                fingerprint: fingerprint(&action),
                action,
                approval_id: Some(id(approval)),
                ..proposal(&name)
            });
            let intent = praxis_model::command::AdmitIntent { node_id: id("l"), admission_ref: Some(reference(&name)) };
            world.intend(ENGINE, &praxis_model::command::Intent::Admit(intent))
        };
        admit(&mut world, 1, "p1").must()?;
        world.dispatch("l").must()?;
        world.settle("at-l.1-1", SettledOutcome::ConfirmedApplied, 3).must()?;
        world.commit(says(false.into())).must()?;
        refused(&world, Code::ApprovalStale, |world| admit(world, 2, "p1"))?;
        let waiting = praxis_model::plan::Wait::Approval { node_id: id("l") };
        ensure(waits(world.state(), &[], world.now_ms) == [waiting], "nobody is asked")?;
        world.approve("p2", &action_of("l.1")).must()?;
        accepted(&world, |world| admit(world, 2, "p2")).map(drop)
    }

    /// Proves HD-04.8, FV-NODE-JOIN.2: a LOOP between two iterations was begun; an ANY join does not leave it behind.
    #[test]
    fn a_begun_loop_is_not_left_behind() {
        let nodes = vec![looped("l", 3, &[]), task("x", &[]), join_any("j", &["l", "x"]), end(&["j"])];
        let mut world = World::configured(graph(nodes), |config| config.join_policy = vec![excluding("j")]);
        world.work("x").must()?;
        world.take("x", "j").must()?;
        let after = accepted(&world, |world| world.admit_control("j"))?;
        ensure(after.status("l") == NodeStatus::Skipped, "a loop that was not begun is left out")?;
        world.iterate("l", 1, false).must()?;
        stopped(&world, Guard::JoinSettled, Code::JoinUnsettled, |world| world.admit_control("j"))?;
        world.iterate("l", 2, true).must()?;
        accepted(&world, |world| world.admit_control("j")).map(drop)
    }

    /// Proves REP-2, HF-03.1: the report has the iteration and the operations of all of them.
    #[test]
    fn the_report_tells_the_iterations() {
        let world = exhausted()?;
        let told = report::of(world.state());
        let node = told.nodes.first().ok_or("no node")?;
        ensure(node.iteration == Some(3) && node.operations.len() == 3 && node.spent == dec(9), format!("{node:?}"))?;
        ensure(told.held && told.blocked_nodes.contains(&id("l")) && told.manifests == 3, format!("{told:?}"))?;
        ensure(told.nodes[1].iteration.is_none(), "END has no iterations")
    }
}

/// The manifest of the iteration of this number.
fn last_of(world: &World, number: u64) -> Result<Manifest, String> {
    let activation = activation(&world.state().stream, &id("l"), number);
    let mut all = world.state().manifests.values();
    let found = all.find(|committed| committed.manifest.producer.activation_id == activation);
    Ok((*found.ok_or("no manifest")?.manifest).clone())
}

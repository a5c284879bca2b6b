//! Cases of the stages that every command passes. Invariant and use as in `cases`.

use aiws::decimal::Dec;
use aiws::error::Code;
use aiws::id::{Id, MissionId, RunId};
use aiws::record::{
    HoldDecision, HoldReason, Lifecycle, OutcomeStatus, SettledOutcome, VerificationVerdict,
};
use praxis_model::command::{
    Body, BoundaryIntent, CancelRun, Command, CompleteRun, Intent, PlaceHold, RecoverOwnership,
    ResolveHold,
};
use praxis_model::event::Gate;
use praxis_model::facts::Facts;
use praxis_model::guard::Guard;

use super::{Must, accepted, cases, ensure, refused, stopped};
use crate::world::*;

/// LIN with a claimable delivery to b, and the claim of it.
fn claimable() -> Result<(World, Body), String> {
    let mut world = World::with(lin());
    world.work("a").must()?;
    let delivery_id = world.pending("b");
    let body = Body::ClaimDelivery(praxis_model::command::ClaimDelivery {
        delivery_id,
        lease_ms: None,
    });
    Ok((world, body))
}

fn changed(world: &mut World, body: &Body, change: impl FnOnce(&mut Command, &mut Facts)) -> Step {
    let (mut command, mut facts) = (world.command(body.clone()), world.facts(AGENT));
    change(&mut command, &mut facts);
    world.apply(&command, &facts)
}

fn cancel(world: &mut World) -> Step {
    let body = CancelRun {
        run_id: run_id(),
        reason: "enough".to_owned(),
        decision_ref: id("decision-1"),
    };
    world.send(HUMAN, Body::CancelRun(body))
}

fn hold_run(world: &mut World) -> Step {
    world.send(
        HUMAN,
        Body::PlaceHold(PlaceHold {
            hold: hold("h1", HoldReason::Operator),
        }),
    )
}

/// What every gated command does, on worlds where it would be accepted.
fn gated() -> Result<Vec<(&'static str, World, Body)>, String> {
    let mut all = Vec::new();
    let ungraphed = World::started(contract(), config());
    let graph = Body::ActivateGraph(praxis_model::command::ActivateGraph {
        run_id: run_id(),
        owner_epoch: dec(1),
        graph: lin(),
    });
    all.push(("activateGraph", ungraphed, graph));
    let (mut world, claim) = claimable()?;
    all.push(("claimDelivery", world.clone(), claim));
    let delivery = world.pending("b");
    world.claim(AGENT, &delivery).must()?;
    all.push((
        "acknowledgeDelivery",
        world.clone(),
        Body::AcknowledgeDelivery(world.ack_of(&delivery)),
    ));
    world.ack(AGENT, &delivery).must()?;
    world.prepare(proposal("b"));
    let intent = Intent::Admit(praxis_model::command::AdmitIntent {
        node_id: id("b"),
        admission_ref: Some(reference("b")),
    });
    let draft = |world: &World, intent: &Intent| {
        praxis_model::draft::command(world.state(), intent, &world.facts(ENGINE))
            .map_err(|error| error.to_string())
    };
    all.push(("admitConsumer", world.clone(), draft(&world, &intent)?));
    world.admit("b").must()?;
    all.push((
        "dispatch",
        world.clone(),
        draft(&world, &Intent::DispatchNode { node_id: id("b") })?,
    ));
    world.dispatch("b").must()?;
    world
        .settle("at-b-1", SettledOutcome::ConfirmedNotApplied, 0)
        .must()?;
    all.push((
        "retry",
        world.clone(),
        draft(
            &world,
            &Intent::RetryOperation {
                operation_id: id("op-b"),
            },
        )?,
    ));
    let done = World::lin_done();
    all.push((
        "completeRun",
        done,
        Body::CompleteRun(CompleteRun {
            run_id: run_id(),
            owner_epoch: dec(1),
        }),
    ));
    Ok(all)
}

cases! {
    /// Proves HC-ENV.2, ERR-REVISION_CONFLICT: an older, a newer and a revision beyond u64 conflict (T-57).
    #[test]
    fn the_expected_revision_is_the_head() {
        let (world, body) = claimable()?;
        let head = world.state().head.revision.get();
        for expected in [dec(head - 1), dec(head + 1), Dec::max()] {
            stopped(&world, Guard::ExpectedRevision, Code::RevisionConflict, |world| {
                changed(world, &body, |command, _| command.expected_revision = Some(expected))
            })?;
        }
        // STO-3: without an expectation the owner's own position counts.
        accepted(&world, |world| changed(world, &body, |command, _| command.expected_revision = None)).map(drop)
    }

    /// Proves REL-1, HF-03.13: another mission or run, in the command or in its records, is not this stream's.
    #[test]
    fn command_and_records_name_this_run() {
        let (world, body) = claimable()?;
        let mission = MissionId::new("other").map_err(|error| error.to_string())?;
        let run = RunId::new("other").map_err(|error| error.to_string())?;
        let other = |world: &mut World| changed(world, &body, |command, _| command.mission_id = mission.clone());
        stopped(&world, Guard::SubjectAgrees, Code::StaleOwner, other)?;
        let other = |world: &mut World| changed(world, &body, |command, _| command.run_id = Some(run.clone()));
        stopped(&world, Guard::SubjectAgrees, Code::StaleOwner, other)?;
        let complete = Body::CompleteRun(CompleteRun { run_id: run.clone(), owner_epoch: dec(1) });
        stopped(&world, Guard::SubjectAgrees, Code::StaleOwner, |world| world.send(ENGINE, complete))?;
        let mut world = World::with(lin());
        world.apply_task("a").must()?;
        let intent = Intent::Boundary(boundary("a", OutcomeStatus::Completed));
        let draft = praxis_model::draft::command(world.state(), &intent, &world.facts(ENGINE));
        let Ok(Body::CommitBoundary(mut body)) = draft else { return Err("no draft".to_owned()) };
        body.manifest.producer.run_id = run;
        stopped(&world, Guard::SubjectAgrees, Code::StaleOwner, |world| world.send(ENGINE, Body::CommitBoundary(body)))
    }

    /// Proves HC-ENV.3, ERR-STALE_OWNER, HD-02.8: with a fresh revision, whoever acts under another epoch is stale, in every owned command.
    #[test]
    fn a_deposed_owner_is_refused_everywhere() {
        for (name, world, body) in gated()? {
            for epoch in [Some(dec(0)), Some(dec(2)), Some(Dec::max()), None] {
                let stale = |world: &mut World| changed(world, &body, |command, facts| {
                    command.owner_epoch = epoch;
                    *facts = Facts { actor_id: facts.actor_id.clone(), ..facts.clone() };
                });
                stopped(&world, Guard::EpochCurrent, Code::StaleOwner, stale).map_err(|error| format!("{name} {epoch:?}: {error}"))?;
            }
        }
        Ok(())
    }

    /// Proves FV-GRT.3, ERR-AUTHORIZATION_DENIED: what policy no longer allows is refused, whatever was allowed before.
    #[test]
    fn policy_is_asked_at_every_command() {
        for (name, world, body) in gated()? {
            stopped(&world, Guard::PolicyAllows, Code::AuthorizationDenied, |world| {
                changed(world, &body, |_, facts| facts.allowed = false)
            })
            .map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    }

    /// Proves CRD-3: an authorization from the future or from long ago is none (T-30).
    #[test]
    fn an_authorization_has_its_time() {
        let (mut world, body) = claimable()?;
        world.now_ms = 700_000;
        // Past the contract's deadline claims are still possible: they start no work.
        accepted(&world, |world| changed(world, &body, |_, facts| facts.authorized_at_ms = 100_000))?;
        for at in [99_999, 700_001] {
            stopped(&world, Guard::AuthorizedInTime, Code::AuthorizationDenied, |world| {
                changed(world, &body, |_, facts| facts.authorized_at_ms = at)
            })?;
        }
        Ok(())
    }

    /// Proves ERR-HUMAN_REQUIRED, HS-03.11: an agent, a rule and a human without a decision cancel nothing.
    #[test]
    fn a_human_decision_needs_a_human() {
        let world = World::with(lin());
        let body = Body::CancelRun(CancelRun { run_id: run_id(), reason: "x".to_owned(), decision_ref: id("d") });
        for actor in [AGENT, ENGINE, "rule:r1"] {
            stopped(&world, Guard::HumanDecides, Code::HumanRequired, |world| world.send(actor, body.clone()))?;
        }
        stopped(&world, Guard::HumanDecides, Code::HumanRequired, |world| {
            let mut facts = world.facts(HUMAN);
            facts.decision_ref = None;
            world.apply(&world.command(body), &facts)
        })
    }

    /// Proves HC-RO.1: recovery needs the host's authority.
    #[test]
    fn recovery_needs_authority() {
        let world = World::with(lin());
        let body = RecoverOwnership { expected_epoch: dec(1), reason: "crash".to_owned(), decision_ref: None };
        stopped(&world, Guard::RecoveryTrusted, Code::AuthorizationDenied, |world| {
            changed(world, &Body::RecoverOwnership(body), |_, facts| facts.recovery_authority = false)
        })
    }

    /// Proves FV-RUN.4, ERR-TERMINAL_EXECUTION, HS-06.5: each of the terminal lifecycles refuses everything that enables work.
    #[test]
    fn an_ended_run_refuses_work() {
        for (name, mut world, body) in gated()? {
            for lifecycle in [Lifecycle::Completed, Lifecycle::Failed, Lifecycle::Canceled, Lifecycle::Rejected] {
                if let Some(run) = &mut world.run {
                    run.lifecycle = lifecycle;
                }
                stopped(&world, Guard::NotTerminal, Code::TerminalExecution, |world| world.send(ENGINE, body.clone()))
                    .map_err(|error| format!("{name} {lifecycle}: {error}"))?;
            }
        }
        let mut world = World::lin_done();
        world.finish().must()?;
        refused(&world, Code::TerminalExecution, |world| world.verify("v2", VerificationVerdict::Fail))?;
        refused(&world, Code::TerminalExecution, |world| world.approve("p1", &action_of("a")))?;
        refused(&world, Code::TerminalExecution, |world| world.complete("a", aiws::object! {}))?;
        refused(&world, Code::TerminalExecution, cancel)?;
        refused(&world, Code::TerminalExecution, hold_run)
    }

    /// Proves HS-01.3, ERR-HOLD_ACTIVE, ERR-PREC.2: an open hold gates what launches work, and nothing else.
    #[test]
    fn an_open_hold_gates_launches() {
        for (name, mut world, body) in gated()? {
            hold_run(&mut world).must()?;
            stopped(&world, Guard::NoOpenHold, Code::HoldActive, |world| world.send(ENGINE, body.clone()))
                .map_err(|error| format!("{name}: {error}"))?;
        }
        // T-36, HS-01.4: settlement, release and the boundary of admitted work go on.
        let mut world = World::with(lin());
        world.admit("a").must()?;
        world.dispatch("a").must()?;
        hold_run(&mut world).must()?;
        world.settle("at-a-1", SettledOutcome::ConfirmedApplied, 3).must()?;
        world.complete("a", aiws::object! {}).must()?;
        let delivery = world.pending("b");
        refused(&world, Code::HoldActive, |world| world.claim(AGENT, &delivery))?;
        ensure(world.status("b") == praxis_model::run::NodeStatus::Pending, "b was started under a hold")
    }

    /// Proves HS-01.4, HD-01.T3: a claim can be given back under a hold.
    #[test]
    fn a_release_is_never_gated() {
        let (mut world, _) = claimable()?;
        let delivery = world.pending("b");
        world.claim(AGENT, &delivery).must()?;
        hold_run(&mut world).must()?;
        let body = Body::ReleaseDelivery(world.release_of(&delivery));
        accepted(&world, |world| world.send(AGENT, body)).map(drop)
    }

    /// Proves HS-03.3, ERR-HOLD_ACTIVE: a pending cancellation gates launches like a hold, and keeps doing so when a hold is released (T-32, T-37).
    #[test]
    fn a_pending_cancellation_gates_launches() {
        for (name, mut world, body) in gated()? {
            cancel(&mut world).must()?;
            stopped(&world, Guard::NotCanceling, Code::HoldActive, |world| world.send(ENGINE, body.clone()))
                .map_err(|error| format!("{name}: {error}"))?;
        }
        let (mut world, body) = claimable()?;
        hold_run(&mut world).must()?;
        cancel(&mut world).must()?;
        let recheck = ResolveHold {
            hold_id: id("h1"),
            decision: HoldDecision::Recheck,
            decision_ref: id("decision-1"),
            evidence: Vec::new(),
            rule: None,
        };
        world.send(HUMAN, Body::ResolveHold(recheck)).must()?;
        stopped(&world, Guard::NotCanceling, Code::HoldActive, |world| world.send(ENGINE, body))
    }

    /// Proves HS-01.11: a closed gate of the mission gates every run of it.
    #[test]
    fn an_outer_gate_gates_launches() {
        for (name, world, body) in gated()? {
            for gate in [Gate::Cancel, Gate::Hold { hold_id: id("outer") }] {
                stopped(&world, Guard::NoOuterGate, Code::HoldActive, |world| {
                    changed(world, &body, |_, facts| facts.outer_gates = vec![gate])
                })
                .map_err(|error| format!("{name}: {error}"))?;
            }
        }
        Ok(())
    }

    /// Proves ERR-PREC.1: with everything broken at once the stages answer in their order, as one after the other is mended.
    #[test]
    fn the_stages_answer_in_order() {
        let (mut world, body) = claimable()?;
        let delivery = world.pending("b");
        world.claim("agent:w2", &delivery).must()?;
        hold_run(&mut world).must()?;
        let broken = |mended: usize| {
            let body = body.clone();
            move |world: &mut World| changed(world, &body, |command, facts| {
                if mended < 1 { command.expected_revision = Some(dec(0)); }
                if mended < 2 { command.owner_epoch = Some(dec(7)); }
                if mended < 3 { facts.allowed = false; }
            })
        };
        refused(&world, Code::RevisionConflict, broken(0))?;
        refused(&world, Code::StaleOwner, broken(1))?;
        refused(&world, Code::AuthorizationDenied, broken(2))?;
        refused(&world, Code::HoldActive, broken(3))?;
        if let Some(run) = &mut world.run {
            *run = praxis_model::run::RunState { holds: Default::default(), ..run.clone() };
        }
        refused(&world, Code::DeliveryState, broken(3))
    }

    /// Proves ERR-PREC.1: a terminal run is named before a hold, and a human is missed before the hold's state.
    #[test]
    fn terminal_comes_before_holds() {
        let (mut world, body) = claimable()?;
        hold_run(&mut world).must()?;
        if let Some(run) = &mut world.run {
            run.lifecycle = Lifecycle::Failed;
        }
        refused(&world, Code::TerminalExecution, |world| world.send(AGENT, body))
    }

    /// Proves HC-ENV.5, HC-ENV.6, FV-GRT.4: a dispatch records the host's policy, whatever the caller wrote.
    #[test]
    fn the_hosts_policy_is_recorded() {
        let mut world = World::with(lin());
        world.admit("a").must()?;
        let draft = praxis_model::draft::command(world.state(), &Intent::DispatchNode { node_id: id("a") }, &world.facts(ENGINE));
        let Ok(Body::Dispatch(mut body)) = draft else { return Err("no draft".to_owned()) };
        body.policy = aiws::record::Ref { id: Id::new("forged").map_err(|error| error.to_string())?, revision: dec(9) };
        world.send(ENGINE, Body::Dispatch(body)).must()?;
        let recorded = world.events.last().map(|(event, _)| event.command.clone());
        let Some(Body::Dispatch(recorded)) = recorded else { return Err("no dispatch".to_owned()) };
        ensure(recorded.policy.id.as_str() == "policy", format!("recorded {:?}", recorded.policy))
    }

    /// Proves HC-ENV.6: an intent of an actor without authority learns nothing about objects.
    #[test]
    fn a_draft_asks_policy_first() {
        let world = World::with(lin());
        refused(&world, Code::AuthorizationDenied, |world| {
            let mut facts = world.facts(AGENT);
            facts.allowed = false;
            let intent = Intent::Boundary(BoundaryIntent { node_id: id("ghost"), ..boundary("a", OutcomeStatus::Completed) });
            praxis_model::draft::command(world.state(), &intent, &facts).map(|_| aiws::json::Value::Null)
        })
    }
}

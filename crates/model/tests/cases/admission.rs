//! Cases of admitConsumer and completeRun. Invariant and use as in `cases`.

use aiws::error::Code;
use aiws::id::DeliveryId;
use aiws::object;
use aiws::record::{AcceptanceVerdict, Consumption, DeliveryState, NodeKind, VerificationVerdict};
use praxis_model::command::{AdmitConsumer, AdmitIntent, Body, Intent};
use praxis_model::facts::MaterialError;
use praxis_model::guard::Guard;
use praxis_model::run::NodeStatus;

use super::{Must, Outcome, accepted, cases, ensure, refused, stopped};
use crate::world::*;

/// LIN with b's input received and its admission prepared.
fn received() -> Result<World, String> {
    let mut world = World::with(lin());
    world.work_with("a", &artifact("patch")).must()?;
    world.receive("b").must()?;
    world.prepare(proposal("b"));
    Ok(world)
}

fn consumption(world: &World, node: &str) -> Result<Consumption, String> {
    let admission_ref = world
        .admissions
        .contains_key(&reference(node))
        .then(|| reference(node));
    let intent = Intent::Admit(AdmitIntent {
        node_id: id(node),
        admission_ref,
    });
    match praxis_model::draft::command(world.state(), &intent, &world.facts(ENGINE)) {
        Ok(Body::AdmitConsumer(body)) => Ok(body.consumption),
        _ => Err("no draft".to_owned()),
    }
}

fn send(world: &mut World, consumption: Consumption) -> Step {
    world.send(
        ENGINE,
        Body::AdmitConsumer(AdmitConsumer {
            consumption,
            skipped: Vec::new(),
        }),
    )
}

/// The drafted admission is accepted, and refused by this guard once it is changed.
fn tampered(
    world: &World,
    node: &str,
    guard: Guard,
    code: Code,
    change: impl FnOnce(&mut Consumption),
) -> Outcome {
    let mut sent = consumption(world, node)?;
    accepted(world, |world| send(world, sent.clone()))?;
    change(&mut sent);
    stopped(world, guard, code, |world| send(world, sent))
}

/// Two roots into a JOIN, both received.
fn joined() -> Result<World, String> {
    let mut world = World::with(graph(vec![
        task("a", &[]),
        task("b", &[]),
        join("j", &["a", "b"]),
        end(&["j"]),
    ]));
    world.work("a").must()?;
    world.work("b").must()?;
    world.receive("j").must()?;
    Ok(world)
}

cases! {
    /// Proves HD-03.4, HC-AD.1, FV-ACC.2: consumption, operation and reservation come in one event.
    #[test]
    fn an_admission_is_one_event() {
        let world = received()?;
        let after = accepted(&world, |world| world.admit("b"))?;
        ensure(after.events.len() == world.events.len() + 1, "one event")?;
        let own = after.state().nodes.get("b").ok_or("no node")?;
        let bound = after.state().consumptions.get(&own.activation_id).ok_or("no consumption")?;
        ensure(bound.inputs.len() == 1 && bound.operation_id == Some(id("op-b")), "another binding")?;
        ensure(after.state().operations.contains_key("op-b") && own.status == NodeStatus::Active, "no operation")?;
        let reserved = |world: &World| world.account.as_ref().map(|row| row.reserved);
        ensure((reserved(&world), reserved(&after)) == (Some(dec(0)), Some(dec(3))), "not reserved")
    }

    /// Proves REL-7, ERR-BASIS_STALE: the consumer is a node of the graph, in its current activation, and its inputs stand once.
    #[test]
    fn the_consumer_is_exact() {
        let world = received()?;
        tampered(&world, "b", Guard::ConsumerKnown, Code::BasisStale, |sent| sent.node_id = id("ghost"))?;
        tampered(&world, "b", Guard::ConsumerKnown, Code::BasisStale, |sent| sent.activation_id = id("other"))?;
        tampered(&world, "b", Guard::InputsUnique, Code::InputSetConflict, |sent| {
            let again = sent.inputs.clone();
            sent.inputs.extend(again);
        })
    }

    /// Proves FV-GRAPH.14: a skipped node is never admitted, and a node without a prepared attempt is not dispatched.
    #[test]
    fn a_skipped_node_is_not_admitted() {
        let mut world = dec_world();
        world.admit_control("d").must()?;
        let mut sent = consumption(&world, "y")?;
        world.complete("d", object! { "pass": true }).must()?;
        world.prepare(proposal("y"));
        sent.admission_ref = Some(reference("y"));
        sent.operation_id = Some(id("op-y"));
        stopped(&world, Guard::ConsumerPending, Code::NodeNotReady, |world| send(world, sent))?;
        stopped(&world, Guard::DraftPrepared, Code::StateInvalid, |world| world.dispatch("x"))
    }

    /// Proves HD-04.2, FV-NODE-JOIN.1, ERR-DELIVERY_STATE: every input of an ALL join is received, for this very activation.
    #[test]
    fn every_input_is_received() {
        let mut world = World::with(graph(vec![task("a", &[]), task("b", &[]), join("j", &["a", "b"]), end(&["j"])]));
        world.work("a").must()?;
        world.work("b").must()?;
        let full = joined()?;
        let sent = consumption(&full, "j")?;
        stopped(&world, Guard::InputAcknowledged, Code::DeliveryState, |world| send(world, sent.clone()))?;
        let mut claimed = world.clone();
        for delivery in claimed.deliveries("j", DeliveryState::Pending) {
            claimed.claim(AGENT, &delivery).must()?;
        }
        stopped(&claimed, Guard::InputAcknowledged, Code::DeliveryState, |world| send(world, sent))?;
        // A receipt for another node is none for this one.
        let mut world = full;
        world.admit_control("j").must()?;
        world.complete("j", object! {}).must()?;
        let foreign = world.deliveries("j", DeliveryState::Acknowledged);
        world.receive("end").must()?;
        tampered(&world, "end", Guard::InputAcknowledged, Code::DeliveryState, |sent| {
            sent.inputs[0].delivery_id = foreign[0].clone();
        })
    }

    /// Proves HD-03.1, ERR-BASIS_STALE: an admission names the exact hand-offs that were received.
    #[test]
    fn inputs_name_the_exact_handoff() {
        let world = received()?;
        tampered(&world, "b", Guard::HandoffExact, Code::BasisStale, |sent| sent.inputs[0].handoff.digest = token(0))?;
        tampered(&world, "b", Guard::DeliveryKnown, Code::DeliveryState, |sent| {
            sent.inputs[0].delivery_id = id::<DeliveryId>("ghost");
        })
    }

    /// Proves HF-04.11, HF-04.8: the material is verified again at admission; an old receipt is no pass.
    #[test]
    fn material_is_verified_again() {
        let mut world = received()?;
        let digest = artifact("patch").digest;
        stopped(&world, Guard::MaterialAvailable, Code::ArtifactUnavailable, |world| {
            world.materials.clear();
            world.admit("b")
        })?;
        stopped(&world, Guard::MaterialMatches, Code::ArtifactMismatch, |world| {
            world.material_errors.insert(digest, MaterialError::Mismatch);
            world.admit("b")
        })?;
        world.now_ms = 50_000;
        stopped(&world, Guard::MaterialRetained, Code::ArtifactUnavailable, |world| world.admit("b"))
    }

    /// Proves HD-03.6, HF-02.5, ERR-INPUT_SET_CONFLICT: a bound activation keeps its inputs and its operation.
    #[test]
    fn a_bound_activation_is_not_bound_again() {
        let world = received()?;
        let mut sent = consumption(&world, "b")?;
        let mut after = accepted(&world, |world| send(world, sent.clone()))?;
        stopped(&after, Guard::ActivationUnbound, Code::InputSetConflict, |world| send(world, sent.clone()))?;
        let other = aiws::record::AdmissionProposal { operation_id: id("op-b2"), attempt_id: id("at-b2"), ..proposal("b") };
        after.admissions.insert(reference("b2"), other);
        sent.admission_ref = Some(reference("b2"));
        sent.operation_id = Some(id("op-b2"));
        stopped(&after, Guard::ActivationUnbound, Code::InputSetConflict, |world| send(world, sent))
    }

    /// Proves HD-04.4, HD-04.3: a missing input is never a skip, and a skipped one is named.
    #[test]
    fn a_missing_input_is_not_a_skip() {
        let world = joined()?;
        tampered(&world, "j", Guard::InputsComplete, Code::NodeNotReady, |sent| drop(sent.inputs.pop()))?;
        let mut world = dec_world();
        world.pass("d", object! { "pass": true }).must()?;
        world.work("x").must()?;
        world.receive("j").must()?;
        let skipped = |world: &World, input: &aiws::record::InputRef| {
            let manifest = world.state().manifests.get(&input.handoff.handoff_id);
            manifest.is_some_and(|committed| committed.manifest.outcome.status == aiws::record::OutcomeStatus::Skipped)
        };
        let sent = consumption(&world, "j")?;
        ensure(sent.inputs.iter().filter(|input| skipped(&world, input)).count() == 1, "the skip is an input")?;
        let before = world.clone();
        tampered(&world, "j", Guard::InputsComplete, Code::NodeNotReady, |sent| {
            sent.inputs.retain(|input| !skipped(&before, input));
        })
    }

    /// Proves FV-GRAPH.15, FV-EFF.7, FV-ACC.7: operations and attempts of this run are never named again.
    #[test]
    fn operations_are_new() {
        let world = received()?;
        for (operation, attempt) in [("op-a", "at-b-1"), ("op-b", "at-a-1")] {
            let mut world = world.clone();
            let taken = aiws::record::AdmissionProposal { operation_id: id(operation), attempt_id: id(attempt), ..proposal("b") };
            world.admissions.insert(reference("b"), taken);
            stopped(&world, Guard::OperationNew, Code::IdentityConflict, |world| {
                let admission_ref = Some(reference("b"));
                world.intend(ENGINE, &Intent::Admit(AdmitIntent { node_id: id("b"), admission_ref }))
            })?;
            // Identity comes before basis: the name is taken, whatever else is wrong with the activation (ERR-PREC.1).
            let admission_ref = Some(reference("b"));
            let intent = Intent::Admit(AdmitIntent { node_id: id("b"), admission_ref });
            let drafted = praxis_model::draft::command(world.state(), &intent, &world.facts(ENGINE));
            let Ok(Body::AdmitConsumer(mut body)) = drafted else {
                return Err("no admission was drafted".to_owned());
            };
            body.consumption.activation_id = id("another");
            stopped(&world, Guard::OperationNew, Code::IdentityConflict, |world| {
                world.send(ENGINE, Body::AdmitConsumer(body))
            })?;
        }
        Ok(())
    }

    /// Proves HD-03.5, HD-03.12: a control node has neither operation nor admission, and work has both.
    #[test]
    fn control_nodes_run_nothing() {
        let mut world = joined()?;
        world.prepare(proposal("j"));
        stopped(&world, Guard::ControlNoEffect, Code::StateInvalid, |world| {
            let intent = AdmitIntent { node_id: id("j"), admission_ref: Some(reference("j")) };
            world.intend(ENGINE, &Intent::Admit(intent))
        })?;
        world.admissions.clear();
        let world = accepted(&world, |world| world.admit_control("j"))?;
        ensure(world.state().operations.size() == 2, "an operation came with a control node")?;
        let work = World::with(lin());
        stopped(&work, Guard::ControlNoEffect, Code::StateInvalid, |world| world.admit_control("a"))
    }

    /// Proves HD-03.12, ERR-PREC.1: an admission that the host did not prepare is refused.
    #[test]
    fn the_host_prepares_admissions() {
        let world = received()?;
        tampered(&world, "b", Guard::AdmissionKnown, Code::NotFound, |sent| sent.admission_ref = Some(id("ghost")))
    }

    /// Proves HD-03.4, HD-03.12, FV-APR.1: consumption and admission speak of one operation and one action.
    #[test]
    fn admission_and_consumption_agree() {
        let world = received()?;
        tampered(&world, "b", Guard::AdmissionAgrees, Code::EvidenceInvalid, |sent| sent.operation_id = Some(id("op-x")))?;
        let mut world = world;
        let other = aiws::record::AdmissionProposal { action: action_of("other"), ..proposal("b") };
        world.admissions.insert(reference("b"), other);
        stopped(&world, Guard::AdmissionAgrees, Code::EvidenceInvalid, |world| {
            let admission_ref = Some(reference("b"));
            world.intend(ENGINE, &Intent::Admit(AdmitIntent { node_id: id("b"), admission_ref }))
        })
    }

    /// Proves HC-ENV.5, REL-11: epoch, revision, state and join of the recorded consumption are the coordinator's.
    #[test]
    fn the_coordinator_completes_the_consumption() {
        let world = received()?;
        let mut sent = consumption(&world, "b")?;
        (sent.owner_epoch, sent.revision) = (dec(77), dec(99));
        sent.join.selected.clear();
        sent.join.excluded = vec![id("forged")];
        let after = accepted(&world, |world| send(world, sent))?;
        let own = after.state().nodes.get("b").ok_or("no node")?;
        let kept = after.state().consumptions.get(&own.activation_id).ok_or("no consumption")?;
        ensure(kept.owner_epoch == dec(1) && kept.revision == after.state().head.revision.into(), "forged position")?;
        ensure(kept.join.selected.len() == 1 && kept.join.excluded.is_empty(), "forged join")
    }

    /// Proves HD-03.7: an admission that the budget refuses leaves nothing.
    #[test]
    fn a_refused_admission_leaves_nothing() {
        let mut world = received()?;
        world.account = world.account.map(|row| praxis_model::account::AccountRow { spent: dec(8), ..row });
        refused(&world, Code::BudgetExceeded, |world| world.admit("b"))
    }

    /// Proves FV-GRAPH.1: without a graph nothing is admitted and nothing completes.
    #[test]
    fn a_run_needs_a_graph() {
        let world = World::started(contract(), config());
        stopped(&world, Guard::GraphPinned, Code::BasisStale, |world| world.finish())
    }

    /// Proves FV-RUN.2: END done is not the run completed, and the run is not completed before END.
    #[test]
    fn end_and_completion_are_two_steps() {
        let mut world = World::with(lin());
        world.work("a").must()?;
        world.work("b").must()?;
        world.verify("v1", VerificationVerdict::Pass).must()?;
        world.accept("c1", AcceptanceVerdict::Accepted).must()?;
        stopped(&world, Guard::EndDone, Code::NodeNotReady, |world| world.finish())?;
        world.pass_end().must()?;
        ensure(world.state().lifecycle == aiws::record::Lifecycle::Running, "END ended the run")?;
        accepted(&world, |world| world.finish()).map(drop)
    }

    /// Proves FV-GRAPH.7, FV-RUN.3: a node that was neither done nor skipped keeps the run open.
    #[test]
    fn every_node_is_done() {
        let two_ends = vec![task("a", &[]), end(&["a"]), task("b", &[]), node("end2", NodeKind::End, &["b"])];
        let mut world = World::with(graph(two_ends));
        world.work("a").must()?;
        world.verify("v1", VerificationVerdict::Pass).must()?;
        world.accept("c1", AcceptanceVerdict::Accepted).must()?;
        world.pass_end().must()?;
        stopped(&world, Guard::NodesDone, Code::NodeNotReady, |world| world.finish())
    }

    /// Proves FV-ASM.4, FV-RUN.3, FV-APR.5, FV-ASM.1, FV-ASM.2: a run is completed by a current pass and a current acceptance, and by neither alone.
    #[test]
    fn a_run_is_verified_and_accepted() {
        let mut world = World::with(lin());
        world.work("a").must()?;
        world.work("b").must()?;
        world.pass_end().must()?;
        stopped(&world, Guard::RunVerified, Code::EvidenceInvalid, |world| world.finish())?;
        world.verify("v1", VerificationVerdict::Pass).must()?;
        stopped(&world, Guard::RunAccepted, Code::EvidenceInvalid, |world| world.finish())?;
        world.accept("c1", AcceptanceVerdict::Accepted).must()?;
        accepted(&world, |world| world.finish())?;
        let mut failed = world.clone();
        failed.verify("v2", VerificationVerdict::Fail).must()?;
        stopped(&failed, Guard::RunVerified, Code::EvidenceInvalid, |world| world.finish())?;
        // What passes after the acceptance is not what was accepted.
        world.verify("v2", VerificationVerdict::Pass).must()?;
        stopped(&world, Guard::RunAccepted, Code::EvidenceInvalid, |world| world.finish())?;
        world.accept("c2", AcceptanceVerdict::Accepted).must()?;
        accepted(&world, |world| world.finish()).map(drop)
    }

    /// Proves FV-RUN.2, HD-04.5: a run whose END was skipped has nothing to complete.
    #[test]
    fn a_skipped_end_completes_nothing() {
        let nodes = vec![
            decision("d", &[], "x", "y"),
            task("x", &["d"]),
            task("y", &["d"]),
            join("j", &["x", "y"]),
            end(&["j"]),
        ];
        let mut world = World::with(graph(nodes));
        world.pass("d", aiws::object! { "pass": true }).must()?;
        world.work("x").must()?;
        world.verify("v1", VerificationVerdict::Pass).must()?;
        world.accept("c1", AcceptanceVerdict::Accepted).must()?;
        ensure(world.status("end") == NodeStatus::Skipped, "END was not skipped")?;
        stopped(&world, Guard::EndDone, Code::NodeNotReady, |world| world.finish())
    }

    /// Proves HF-03.7, FV-GRAPH.7: a gate that was skipped is no gate that was passed.
    #[test]
    fn a_skipped_gate_is_not_passed() {
        let nodes = vec![
            decision("d", &[], "x", "v"),
            task("x", &["d"]),
            node("v", NodeKind::Verification, &["d"]),
            join("j", &["x", "v"]),
            end(&["j"]),
        ];
        let mut world = World::configured(graph(nodes), |config| {
            config.optional_inputs = vec![optional("j", "x"), optional("j", "v")];
        });
        world.pass("d", object! { "pass": true }).must()?;
        world.work("x").must()?;
        world.pass("j", object! {}).must()?;
        world.verify("v1", VerificationVerdict::Pass).must()?;
        world.accept("c1", AcceptanceVerdict::Accepted).must()?;
        world.pass_end().must()?;
        stopped(&world, Guard::GatesNotSkipped, Code::EvidenceInvalid, |world| world.finish())
    }

    /// Proves ERR-PREC.1: the checks of an admission answer in their order, as one after the other is mended: input state, exact hand-off, material, input set, admission, budget.
    #[test]
    fn the_checks_of_an_admission_answer_in_order() {
        let mut world = received()?;
        world.account = world.account.map(|row| praxis_model::account::AccountRow { spent: dec(8), ..row });
        let good = consumption(&world, "b")?;
        let stored = world.materials.clone();
        let unread: World = World { materials: Default::default(), ..world.clone() };
        let ghost = |sent: &Consumption| Consumption { admission_ref: Some(id("ghost")), ..sent.clone() };
        let broken = |inputs: Vec<aiws::record::InputRef>| Consumption { inputs, ..ghost(&good) };
        let input = good.inputs[0].clone();
        let unknown = aiws::record::InputRef { delivery_id: id("ghost"), ..input.clone() };
        let forged = aiws::record::InputRef {
            handoff: aiws::record::HandoffRef { digest: token(0), ..input.handoff.clone() },
            ..input.clone()
        };
        refused(&unread, Code::DeliveryState, |world| send(world, broken(vec![forged.clone(), unknown])))?;
        refused(&unread, Code::BasisStale, |world| send(world, broken(vec![forged, input.clone()])))?;
        refused(&unread, Code::ArtifactUnavailable, |world| send(world, broken(vec![input.clone(), input.clone()])))?;
        let read = World { materials: stored, ..unread };
        refused(&read, Code::InputSetConflict, |world| send(world, broken(vec![input.clone(), input.clone()])))?;
        refused(&read, Code::NotFound, |world| send(world, broken(vec![input])))?;
        refused(&read, Code::BudgetExceeded, |world| send(world, good.clone()))
    }
}

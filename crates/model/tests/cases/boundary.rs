//! Cases of commitBoundary. Invariant and use as in `cases`.

use aiws::digest::Digest;
use aiws::error::Code;
use aiws::id::{AttemptId, Id};
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    Criterion, CriterionStatus, DeliveryState, HoldReason, HoldScopeKind, HoldState, InputRef,
    Lifecycle, Manifest, Node, OutcomeStatus, ProducedOperation, Ref, SettledOutcome,
    VerificationVerdict,
};
use praxis_model::command::{Body, BoundaryIntent, CommitBoundary, Intent};
use praxis_model::facts::MaterialError;
use praxis_model::guard::Guard;
use praxis_model::run::NodeStatus;

use super::{Must, Outcome, accepted, cases, ensure, stopped};
use crate::world::*;

/// LIN with a's operation applied, ready for its boundary.
fn applied() -> Result<World, String> {
    let mut world = World::with(lin());
    world.apply_task("a").must()?;
    Ok(world)
}

/// The boundary that the coordinator would make of an intent.
fn drafted(world: &World, intent: BoundaryIntent) -> Result<CommitBoundary, String> {
    match praxis_model::draft::command(
        world.state(),
        &Intent::Boundary(intent),
        &world.facts(ENGINE),
    ) {
        Ok(Body::CommitBoundary(body)) => Ok(body),
        Ok(_) => Err("another command was drafted".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The drafted boundary is accepted, and refused by this guard once it is changed.
fn tampered(
    world: &World,
    intent: BoundaryIntent,
    guard: Guard,
    code: Code,
    change: impl FnOnce(&mut CommitBoundary),
) -> Outcome {
    let mut body = drafted(world, intent)?;
    accepted(world, |world| {
        world.send(ENGINE, Body::CommitBoundary(body.clone()))
    })?;
    change(&mut body);
    stopped(world, guard, code, |world| {
        world.send(ENGINE, Body::CommitBoundary(body))
    })
}

fn completed(node: &str) -> BoundaryIntent {
    boundary(node, OutcomeStatus::Completed)
}

fn blocked(node: &str) -> BoundaryIntent {
    BoundaryIntent {
        hold: Some(hold("h1", HoldReason::AttemptLimit)),
        ..boundary(node, OutcomeStatus::Blocked)
    }
}

fn failed(node: &str) -> BoundaryIntent {
    BoundaryIntent {
        cause: Some(cause()),
        ..boundary(node, OutcomeStatus::Failed)
    }
}

/// DEC with the decision admitted.
fn deciding(world: World) -> Result<World, String> {
    let mut world = world;
    world.admit_control("d").must()?;
    Ok(world)
}

fn choose(pass: bool) -> Value {
    object! { "pass": pass }
}

fn skipped(body: &CommitBoundary) -> Vec<&str> {
    body.skipped
        .iter()
        .map(|manifest| manifest.producer.node_id.as_str())
        .collect()
}

fn last_manifest(world: &World) -> Result<Manifest, String> {
    match world.events.last().map(|(event, _)| &event.command) {
        Some(Body::CommitBoundary(body)) => Ok(body.manifest.clone()),
        _ => Err("the last event is no boundary".to_owned()),
    }
}

cases! {
    /// Proves FV-GRAPH.16: a node that was never admitted has no boundary.
    #[test]
    fn a_boundary_needs_an_admission() {
        let world = World::with(lin());
        stopped(&world, Guard::BoundaryActive, Code::NodeNotReady, |world| world.complete("a", object! {}))?;
        stopped(&world, Guard::BoundaryActive, Code::NodeNotReady, |world| world.commit(failed("b")))
    }

    /// Proves HF-05.1, HF-03.11, HF-05.3, HF-05.10: one event makes checkpoint, manifest and one pending delivery per recipient, with nothing said by the agent.
    #[test]
    fn a_boundary_is_one_event() {
        let world = applied()?;
        let after = accepted(&world, |world| world.complete("a", object! {}))?;
        ensure(after.events.len() == world.events.len() + 1, "one event")?;
        let delivery = after.pending("b");
        let record = &after.state().deliveries.get(&delivery).ok_or("no delivery")?.record;
        let committed = after.state().manifests.get(&record.handoff.handoff_id).ok_or("no manifest")?;
        ensure(committed.digest == record.handoff.digest, "the delivery names the manifest's digest")?;
        ensure(after.state().checkpoints.contains_key(&committed.manifest.producer.checkpoint_id), "no checkpoint")?;
        ensure(after.status("a") == NodeStatus::Completed, "a is not complete")
    }

    /// Proves HF-02.2, HF-02.3, HF-02.4, ERR-IDENTITY_CONFLICT, HF-01.6: checkpoint, hand-off and delivery ids are used once (T-26).
    #[test]
    fn names_of_a_boundary_are_new() {
        let mut world = applied()?;
        world.complete("a", object! {}).must()?;
        let before = last_manifest(&world)?;
        world.receive("b").must()?;
        world.apply_task("b").must()?;
        let conflict = Code::IdentityConflict;
        tampered(&world, completed("b"), Guard::CheckpointNew, conflict, |body| {
            body.manifest.producer.checkpoint_id = before.producer.checkpoint_id.clone();
        })?;
        tampered(&world, completed("b"), Guard::HandoffNew, conflict, |body| {
            body.manifest.handoff_id = before.handoff_id.clone();
        })?;
        tampered(&world, completed("b"), Guard::DeliveryNew, conflict, |body| {
            body.manifest.recipients[0].delivery_id = before.recipients[0].delivery_id.clone();
        })
    }

    /// Proves HF-02.6, HS-06.7: a hold's id is never used again, not even once it is closed.
    #[test]
    fn a_boundarys_hold_is_new() {
        let mut world = applied()?;
        world.commit(blocked("a")).must()?;
        if let Some(run) = &mut world.run {
            // As after a continuation: active again, the hold closed, its id spent.
            let mut own = run.nodes.get("a").cloned().ok_or("no node")?;
            own.status = NodeStatus::Active;
            run.nodes.insert_mut(id("a"), own);
        }
        stopped(&world, Guard::HoldNew, Code::IdentityConflict, |world| world.commit(blocked("a")))
    }

    /// Proves HF-02.13: an activation has one final outcome, whatever new names come with another.
    #[test]
    fn an_activation_ends_once() {
        let mut world = applied()?;
        world.complete("a", object! {}).must()?;
        stopped(&world, Guard::ActivationUndecided, Code::IdentityConflict, |world| world.complete("a", object! {}))?;
        stopped(&world, Guard::ActivationUndecided, Code::IdentityConflict, |world| world.commit(failed("a")))
    }

    /// Proves HF-03.2, ERR-BASIS_STALE: the producer is a node of the graph in its current activation, with all its operations.
    #[test]
    fn the_producer_is_exact() {
        let world = applied()?;
        tampered(&world, completed("a"), Guard::ProducerKnown, Code::BasisStale, |body| {
            body.manifest.producer.node_id = id("ghost");
        })?;
        tampered(&world, completed("a"), Guard::BasisActivation, Code::BasisStale, |body| {
            body.manifest.producer.activation_id = id("other");
        })?;
        let wrong = Code::EvidenceInvalid;
        tampered(&world, completed("a"), Guard::OperationsExact, wrong, |body| {
            body.manifest.producer.operations.clear();
        })?;
        tampered(&world, completed("a"), Guard::OperationsExact, wrong, |body| {
            body.manifest.producer.operations[0].attempt_ids.push(AttemptId::from(Id::new("more").unwrap_or_else(|_| id("x"))));
        })
    }

    /// Proves HF-03.3: a control node lists no operation.
    #[test]
    fn a_control_node_has_no_operation() {
        let world = deciding(dec_world())?;
        let intent = BoundaryIntent { result: choose(true), ..completed("d") };
        tampered(&world, intent, Guard::ControlNoOperations, Code::EvidenceInvalid, |body| {
            body.manifest.producer.operations = vec![ProducedOperation { operation_id: id("op"), attempt_ids: Vec::new() }];
        })
    }

    /// Proves HF-01.7, REL-2, ERR-BASIS_STALE: the basis is the last committed revision and hash, in every manifest.
    #[test]
    fn the_basis_is_the_head() {
        let world = applied()?;
        tampered(&world, completed("a"), Guard::BasisIsHead, Code::BasisStale, |body| {
            body.manifest.basis.revision = dec(1);
        })?;
        tampered(&world, completed("a"), Guard::BasisIsHead, Code::BasisStale, |body| {
            body.manifest.basis.event_hash = Digest::ZERO;
        })?;
        let world = deciding(dec_world())?;
        let intent = BoundaryIntent { result: choose(true), ..completed("d") };
        tampered(&world, intent, Guard::BasisIsHead, Code::BasisStale, |body| {
            body.skipped[0].basis.event_hash = Digest::ZERO;
        })
    }

    /// Proves HD-05.6, HF-03.2, ERR-BASIS_STALE: graph and plan revision are the pinned ones.
    #[test]
    fn the_graph_is_the_pinned_one() {
        let world = applied()?;
        tampered(&world, completed("a"), Guard::BasisGraph, Code::BasisStale, |body| {
            body.manifest.producer.plan_revision = dec(2);
        })?;
        tampered(&world, completed("a"), Guard::BasisGraph, Code::BasisStale, |body| {
            body.manifest.producer.graph.id = id("other");
        })
    }

    /// Proves HF-04.1, HF-04.4, ART-4: no boundary announces bytes that are not there, not retained or not the same.
    #[test]
    fn artifacts_come_first() {
        let mut world = applied()?;
        let artifacts = vec![artifact("patch")];
        let commit = |world: &mut World| world.commit(BoundaryIntent { artifacts: artifacts.clone(), ..completed("a") });
        stopped(&world, Guard::MaterialAvailable, Code::ArtifactUnavailable, commit)?;
        world.store(&artifacts[0]);
        accepted(&world, commit)?;
        stopped(&world, Guard::MaterialMatches, Code::ArtifactMismatch, |world| {
            world.material_errors.insert(artifacts[0].digest, MaterialError::Mismatch);
            commit(world)
        })?;
        world.now_ms = 50_000;
        stopped(&world, Guard::MaterialRetained, Code::ArtifactUnavailable, commit)
    }

    /// Proves HF-03.4, FV-NODE-TASK.2: an operation that is prepared, under way, lost or not applied completes no task.
    #[test]
    fn a_task_needs_its_confirmed_operation() {
        let mut world = World::with(lin());
        let complete = |world: &mut World| world.complete("a", object! {});
        world.admit("a").must()?;
        stopped(&world, Guard::CompletedSettled, Code::EffectUnresolved, complete)?;
        world.dispatch("a").must()?;
        stopped(&world, Guard::CompletedSettled, Code::EffectUnresolved, complete)?;
        let mut lost = world.clone();
        lost.settle("at-a-1", SettledOutcome::Unknown, 0).must()?;
        stopped(&lost, Guard::CompletedSettled, Code::EffectUnresolved, complete)?;
        world.settle("at-a-1", SettledOutcome::ConfirmedNotApplied, 0).must()?;
        stopped(&world, Guard::TaskConfirmed, Code::EvidenceInvalid, complete)
    }

    /// Proves HF-03.9, HF-05.8: whatever the caller leaves out, every unresolved attempt stands in the manifest.
    #[test]
    fn unresolved_effects_are_listed() {
        let mut world = World::with(lin());
        world.admit("a").must()?;
        world.dispatch("a").must()?;
        world.settle("at-a-1", SettledOutcome::Unknown, 0).must()?;
        tampered(&world, blocked("a"), Guard::OutstandingExact, Code::EffectUnresolved, |body| {
            body.manifest.outcome.outstanding.clear();
        })?;
        let after = accepted(&world, |world| world.commit(blocked("a")))?;
        let manifest = last_manifest(&after)?;
        ensure(manifest.outcome.outstanding.len() == 1, "the attempt is listed")?;
        ensure(manifest.resume.blockers.iter().any(|blocker| blocker.subject_id.as_str() == "at-a-1"), "it is a blocker")?;
        let hold = after.state().holds.get("h1").ok_or("no hold")?;
        ensure(hold.blockers.iter().any(|blocker| blocker.kind == HoldReason::UncertainEffect), "the hold says so too")
    }

    /// Proves HF-05.7: a node never skips itself.
    #[test]
    fn a_skip_is_generated() {
        let world = applied()?;
        stopped(&world, Guard::BoundaryGenerated, Code::StateInvalid, |world| {
            world.commit(boundary("a", OutcomeStatus::Skipped))
        })
    }

    /// Proves HF-05.4, HF-05.8: a hold comes with BLOCKED, and BLOCKED with a hold.
    #[test]
    fn holds_and_blocked_go_together() {
        let world = applied()?;
        let held = BoundaryIntent { hold: Some(hold("h1", HoldReason::Operator)), ..completed("a") };
        stopped(&world, Guard::HoldOnlyBlocked, Code::StateInvalid, |world| world.commit(held))?;
        stopped(&world, Guard::BlockedHasHold, Code::StateInvalid, |world| {
            world.commit(boundary("a", OutcomeStatus::Blocked))
        })
    }

    /// Proves HS-01.12, HS-01.13, HF-05.8, ERR-SCOPE_UNSUPPORTED: the hold of a boundary covers this run, or the boundary is refused.
    #[test]
    fn a_boundarys_hold_covers_the_run() {
        let world = applied()?;
        for kind in [HoldScopeKind::Branch, HoldScopeKind::WorkOrder] {
            tampered(&world, blocked("a"), Guard::ScopeIsRun, Code::ScopeUnsupported, |body| {
                body.hold = body.hold.take().map(|mut hold| {
                    hold.scope.kind = kind;
                    hold
                });
            })?;
        }
        tampered(&world, blocked("a"), Guard::ScopeIsRun, Code::ScopeUnsupported, |body| {
            body.hold = body.hold.take().map(|mut hold| {
                hold.scope.scope_ref = Ref { id: id("other"), revision: dec(1) };
                hold
            });
        })
    }

    /// Proves HS-02.3, HF-05.9: FAILED and CANCELED name a cause and end the run; nothing else names one.
    #[test]
    fn a_failure_ends_the_run() {
        let world = applied()?;
        stopped(&world, Guard::CauseGiven, Code::EvidenceInvalid, |world| {
            world.commit(boundary("a", OutcomeStatus::Failed))
        })?;
        stopped(&world, Guard::CauseGiven, Code::EvidenceInvalid, |world| {
            world.commit(BoundaryIntent { cause: Some(cause()), ..completed("a") })
        })?;
        for (status, lifecycle) in [(OutcomeStatus::Failed, Lifecycle::Failed), (OutcomeStatus::Canceled, Lifecycle::Canceled)] {
            let intent = BoundaryIntent { cause: Some(cause()), ..boundary("a", status) };
            let after = accepted(&world, |world| world.commit(intent))?;
            ensure(after.state().lifecycle == lifecycle, "the run goes on")?;
            ensure(after.deliveries("b", DeliveryState::Pending).is_empty(), "a failure was handed on")?;
            let (event, _) = after.events.last().ok_or("no event")?;
            ensure(event.outcome.registers.len() == 1 && event.outcome.due.len() == 1, "the end is published")?;
            stopped(&after, Guard::NotTerminal, Code::TerminalExecution, |world| world.complete("a", object! {}))?;
        }
        Ok(())
    }

    /// Proves HC-CB.2, HF-05.6, HF-05.9: a failed or blocked boundary keeps what is reserved, and the truth can still be settled.
    #[test]
    fn a_boundary_clears_no_exposure() {
        let mut world = World::with(lin());
        world.admit("a").must()?;
        world.dispatch("a").must()?;
        for intent in [blocked("a"), failed("a")] {
            let mut after = accepted(&world, |world| world.commit(intent))?;
            ensure(after.account == world.account, "the reservation moved")?;
            after.settle("at-a-1", SettledOutcome::ConfirmedApplied, 3).must()?;
            let row = after.account.clone().ok_or("no account")?;
            ensure(row.spent == dec(3) && row.reserved == dec(0), format!("{row:?}"))?;
        }
        Ok(())
    }

    /// Proves HF-05.8, HF-05.5, HS-02.2: a blocked boundary opens its hold over the run and leaves the node to be continued.
    #[test]
    fn a_blocked_boundary_opens_its_hold() {
        let world = applied()?;
        let after = accepted(&world, |world| world.commit(blocked("a")))?;
        let hold = after.state().holds.get("h1").ok_or("no hold")?;
        ensure(hold.state == HoldState::Open && hold.members.len() == 1, "the hold is open over the run")?;
        ensure(after.status("a") == NodeStatus::Blocked && after.state().lifecycle == Lifecycle::Running, "blocked, not failed")?;
        let (event, _) = after.events.last().ok_or("no event")?;
        ensure(event.outcome.gates.len() == 1 && event.outcome.gates[0].closed, "the gate is closed")
    }

    /// Proves HF-02.14: a blocked activation goes on only after its hold, with the same consumption and a new checkpoint (T-44).
    #[test]
    fn a_blocked_node_goes_on_after_its_hold() {
        let mut world = applied()?;
        let intent = BoundaryIntent { hold: Some(hold("h1", HoldReason::Operator)), ..boundary("a", OutcomeStatus::Blocked) };
        world.commit(intent).must()?;
        let before = last_manifest(&world)?;
        stopped(&world, Guard::ContinuationCleared, Code::HoldActive, |world| world.complete("a", object! {}))?;
        // HF-05.9: a failure is told whatever is held.
        accepted(&world, |world| world.commit(failed("a")))?;
        let recheck = praxis_model::command::ResolveHold {
            hold_id: id("h1"),
            decision: aiws::record::HoldDecision::Recheck,
            decision_ref: id("decision-1"),
            evidence: Vec::new(),
            rule: None,
        };
        world.send(HUMAN, Body::ResolveHold(recheck)).must()?;
        world.complete("a", object! {}).must()?;
        let after = last_manifest(&world)?;
        ensure(after.inputs == before.inputs && after.producer.activation_id == before.producer.activation_id, "another consumption")?;
        ensure(after.producer.checkpoint_id != before.producer.checkpoint_id && after.handoff_id != before.handoff_id, "old names")
    }

    /// Proves HF-05.1, REL-3: the manifest's inputs are the consumption of its activation.
    #[test]
    fn inputs_are_the_consumption() {
        let mut world = World::with(lin());
        world.work("a").must()?;
        world.apply_task("b").must()?;
        tampered(&world, completed("b"), Guard::InputsBound, Code::EvidenceInvalid, |body| body.manifest.inputs.clear())?;
        tampered(&world, completed("b"), Guard::InputsBound, Code::EvidenceInvalid, |body| {
            let again: Vec<InputRef> = body.manifest.inputs.clone();
            body.manifest.inputs.extend(again);
        })
    }

    /// Proves REL-3: a manifest names no approval that this run does not have, nor another revision of one.
    #[test]
    fn approvals_exist() {
        let mut world = applied()?;
        world.approve("p1", &action_of("a")).must()?;
        let with = |name: &str, revision: u64| vec![Ref { id: id(name), revision: dec(revision) }];
        tampered(&world, completed("a"), Guard::ApprovalsKnown, Code::EvidenceInvalid, |body| {
            body.manifest.controls.approvals = with("ghost", 1);
        })?;
        tampered(&world, completed("a"), Guard::ApprovalsKnown, Code::EvidenceInvalid, |body| {
            body.manifest.controls.approvals = with("p1", 2);
        })
    }

    /// Proves FV-NODE-DECISION.1: the decision's data contain its field.
    #[test]
    fn a_decision_needs_its_field() {
        let world = deciding(dec_world())?;
        stopped(&world, Guard::DecisionField, Code::EvidenceInvalid, |world| world.complete("d", object! { "other": true }))
    }

    /// Proves FV-NODE-APPROVAL.1, FV-APR.3, FV-APR.4: an approval of another run, a withdrawn one and an expired one pass nothing.
    #[test]
    fn an_approval_node_needs_a_current_approval() {
        let mut world = World::with(gates_graph());
        world.admit_control("p").must()?;
        let pass = |world: &mut World| world.commit(BoundaryIntent { approvals: vec![id("p1")], ..completed("p") });
        let none = |world: &mut World| world.commit(completed("p"));
        stopped(&world, Guard::ApprovalCurrent, Code::ApprovalStale, none)?;
        world.approve("p1", &action_of("a")).must()?;
        accepted(&world, pass)?;
        // FV-APR.4: the approval runs out at its time, and not before.
        world.now_ms = 4_999;
        accepted(&world, pass)?;
        world.now_ms = 5_000;
        stopped(&world, Guard::ApprovalCurrent, Code::ApprovalStale, pass)?;
        world.now_ms = 1_000;
        let body = praxis_model::command::RevokeApproval { approval_id: id("p1"), run_id: run_id(), reason: "no".to_owned() };
        world.send(HUMAN, Body::RevokeApproval(body)).must()?;
        stopped(&world, Guard::ApprovalCurrent, Code::ApprovalStale, pass)
    }

    /// Proves FV-NODE-VERIFICATION.1, FV-ASM.1: a VERIFICATION names the current passing verification, not an earlier one and not a failed one.
    #[test]
    fn a_verification_node_needs_the_current_pass() {
        let mut world = World::with(graph(vec![node("v", aiws::record::NodeKind::Verification, &[]), end(&["v"])]));
        world.admit_control("v").must()?;
        let naming = |name: &str| BoundaryIntent {
            criteria: vec![Criterion { criterion_id: id("VERIFICATION"), status: CriterionStatus::Met, evidence: vec![id(name)] }],
            ..completed("v")
        };
        stopped(&world, Guard::VerificationCurrent, Code::EvidenceInvalid, |world| world.commit(naming("v1")))?;
        world.verify("v1", VerificationVerdict::Pass).must()?;
        accepted(&world, |world| world.commit(naming("v1")))?;
        accepted(&world, |world| world.commit(completed("v")))?;
        world.verify("v2", VerificationVerdict::Fail).must()?;
        stopped(&world, Guard::VerificationCurrent, Code::EvidenceInvalid, |world| world.commit(naming("v1")))?;
        stopped(&world, Guard::VerificationCurrent, Code::EvidenceInvalid, |world| world.commit(naming("v2")))?;
        world.verify("v3", VerificationVerdict::Pass).must()?;
        stopped(&world, Guard::VerificationCurrent, Code::EvidenceInvalid, |world| world.commit(naming("v1")))
    }

    /// Proves FV-NODE-ACCEPTANCE.1, FV-ASM.2, FV-APR.5: an ACCEPTANCE names the current acceptance; a verification is none.
    #[test]
    fn an_acceptance_node_needs_the_acceptance() {
        let mut world = World::with(graph(vec![node("c", aiws::record::NodeKind::Acceptance, &[]), end(&["c"])]));
        world.admit_control("c").must()?;
        world.verify("v1", VerificationVerdict::Pass).must()?;
        stopped(&world, Guard::AcceptanceCurrent, Code::EvidenceInvalid, |world| world.commit(completed("c")))?;
        world.accept("c1", aiws::record::AcceptanceVerdict::Accepted).must()?;
        accepted(&world, |world| world.commit(completed("c"))).map(drop)
    }

    /// Proves FV-NODE-END.1: END says COMPLETED and nothing else.
    #[test]
    fn end_says_completed() {
        let mut world = World::with(graph(vec![end(&[])]));
        world.admit_control("end").must()?;
        for said in [object! {}, object! { "disposition": "FAILED" }] {
            stopped(&world, Guard::EndDisposition, Code::EvidenceInvalid, |world| world.complete("end", said))?;
        }
        accepted(&world, |world| world.complete("end", object! { "disposition": "COMPLETED" })).map(drop)
    }

    /// Proves FV-GRAPH.8, FV-GRAPH.11: a result is a JSON object, and fits the node's own schema where it has one.
    #[test]
    fn a_result_fits_its_schema() {
        let world = applied()?;
        stopped(&world, Guard::ResultFits, Code::EvidenceInvalid, |world| world.complete("a", Value::from("text")))?;
        let schema = object! { "type": "object", "required": vec!["patch"] };
        let mut world = World::with(graph(vec![Node { output_schema: Some(schema), ..task("a", &[]) }, end(&["a"])]));
        world.apply_task("a").must()?;
        stopped(&world, Guard::ResultFits, Code::EvidenceInvalid, |world| world.complete("a", object! {}))?;
        accepted(&world, |world| world.complete("a", object! { "patch": "diff" })).map(drop)
    }

    /// Proves REL-4: no recipient stands twice.
    #[test]
    fn recipients_are_unique() {
        let world = applied()?;
        tampered(&world, completed("a"), Guard::RecipientsUnique, Code::EvidenceInvalid, |body| {
            let mut again = body.manifest.recipients[0].clone();
            again.delivery_id = id("more");
            body.manifest.recipients.push(again);
        })
    }

    /// Proves HF-03.10, HF-03.12, HC-CB.1: nobody adds, drops or changes a recipient.
    #[test]
    fn recipients_come_from_the_graph() {
        let world = applied()?;
        tampered(&world, completed("a"), Guard::RecipientsExact, Code::EvidenceInvalid, |body| {
            body.manifest.recipients.clear();
        })?;
        tampered(&world, completed("a"), Guard::RecipientsExact, Code::EvidenceInvalid, |body| {
            let mut extra = body.manifest.recipients[0].clone();
            (extra.delivery_id, extra.node_id) = (id("more"), id("end"));
            body.manifest.recipients.push(extra);
        })?;
        tampered(&world, completed("a"), Guard::RecipientsExact, Code::EvidenceInvalid, |body| {
            body.manifest.recipients[0].input_port = id("other");
        })
    }

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

    /// Proves HC-ENV.5, REL-14: policy, accounting and checks are the coordinator's, whatever the caller wrote.
    #[test]
    fn controls_are_the_coordinators() {
        let world = applied()?;
        let mut body = drafted(&world, completed("a"))?;
        body.manifest.controls.policy = Ref { id: id("forged"), revision: dec(9) };
        body.manifest.controls.accounting.spent = dec(0);
        body.manifest.resume.eligible_node_ids = vec![id("end")];
        body.manifest.resume.required_checks.clear();
        let after = accepted(&world, |world| world.send(ENGINE, Body::CommitBoundary(body)))?;
        let kept = last_manifest(&after)?;
        ensure(kept.controls.policy.id.as_str() == "policy" && kept.controls.accounting.spent == dec(3), "forged controls")?;
        ensure(kept.resume.required_checks.len() == 5 && kept.resume.eligible_node_ids == vec![id("b")], "forged resume")
    }

    /// Proves HF-03.6: a completed node is neither verified nor accepted.
    #[test]
    fn completed_is_not_verified() {
        let world = applied()?;
        let after = accepted(&world, |world| world.complete("a", object! {}))?;
        ensure(after.state().verifications.is_empty() && after.state().acceptances.is_empty(), "it was assessed")
    }
}

//! Cases of commitBoundary. Invariant and use as in `cases`.

use aiws::digest::Digest;
use aiws::error::Code;
use aiws::id::{AttemptId, Id};
use aiws::object;
use aiws::record::{
    DeliveryState, HoldReason, HoldScopeKind, HoldState, Lifecycle, OutcomeStatus,
    ProducedOperation, Ref, SettledOutcome,
};
use praxis_model::command::{Body, BoundaryIntent, Intent};
use praxis_model::facts::MaterialError;
use praxis_model::guard::Guard;
use praxis_model::run::NodeStatus;

use super::common::*;
use super::{Must, accepted, cases, ensure, stopped};
use crate::world::*;

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

    /// Proves HF-04.1, HF-04.4, T-81: a boundary is written while what it announces is kept, and not when that time has come.
    #[test]
    fn a_boundary_is_written_while_its_material_is_kept() {
        let mut world = applied()?;
        let kept = artifact("patch");
        world.store(&kept);
        let mut intent = completed("a");
        intent.artifacts.push(kept);
        let body = praxis_model::draft::command(world.state(), &Intent::Boundary(intent), &world.facts(AGENT));
        let body = body.map_err(|error| error.to_string())?;
        let decided = praxis_model::decide::run(world.state(), &world.command(body.clone()), &world.facts(AGENT));
        let before_ms = decided.map_err(|error| error.to_string())?.before_ms;
        ensure(before_ms == [50_000], format!("{before_ms:?}"))?;
        world.now_ms = 50_000;
        stopped(&world, Guard::MaterialRetained, Code::ArtifactUnavailable, |world| world.send(AGENT, body))
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

    /// Proves HF-03.2, HF-01.3, ERR-BASIS_STALE: the producer is a node of the graph in its current activation, with all its operations.
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

    /// Proves HF-04.4, T-81: what a boundary announces is retained through the recovery window from then on, also by the
    /// writer's time; without a window it is while it is announced. A window beyond every time is covered by nothing.
    #[test]
    fn what_is_announced_outlasts_the_window() {
        let window = |window_ms: Option<&str>| -> Result<World, String> {
            let ms = window_ms.map(|ms| ms.parse().map_err(|error: aiws::error::Error| error.to_string()));
            let ms = ms.transpose()?;
            let mut world = World::configured(lin(), |config| config.recovery_window_ms = ms);
            world.apply_task("a").must()?;
            world.store(&artifact("patch"));
            Ok(world)
        };
        let commit = |world: &mut World| {
            world.commit(BoundaryIntent { artifacts: vec![artifact("patch")], ..completed("a") })
        };
        // The artifact is retained until 50,000.
        for (window_ms, last_ms) in [(None, 49_999), (Some("1"), 49_999), (Some("20000"), 30_000)] {
            let mut world = window(window_ms)?;
            world.now_ms = last_ms;
            let body = drafted(&world, BoundaryIntent { artifacts: vec![artifact("patch")], ..completed("a") })?;
            let (command, facts) = (world.command(Body::CommitBoundary(body)), world.facts(ENGINE));
            let decided = praxis_model::decide::run(world.state(), &command, &facts);
            let before_ms = decided.map_err(|error| error.to_string())?.before_ms;
            ensure(before_ms == [last_ms + 1], format!("{window_ms:?}: {before_ms:?}"))?;
            world.now_ms = last_ms + 1;
            let (guard, code) = (Guard::MaterialOutlasts, Code::ArtifactUnavailable);
            if last_ms < 49_999 {
                stopped(&world, guard, code, commit)?;
            }
        }
        for window_ms in ["50001", &"9".repeat(100)] {
            stopped(&window(Some(window_ms))?, Guard::MaterialOutlasts, Code::ArtifactUnavailable, commit)?;
        }
        Ok(())
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
        // The run's own name is no node's, so no branch is meant.
        for kind in [HoldScopeKind::Branch, HoldScopeKind::WorkOrder] {
            tampered(&world, blocked("a"), Guard::ScopeResolves, Code::ScopeUnsupported, |body| {
                body.hold = body.hold.take().map(|mut hold| {
                    hold.scope.kind = kind;
                    hold
                });
            })?;
        }
        tampered(&world, blocked("a"), Guard::ScopeResolves, Code::ScopeUnsupported, |body| {
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
            let (event, _) = after.events.last().ok_or("no event")?;
            let owner = event.result.get("reconciliationOwner").and_then(|owner| owner.as_str().map(str::to_owned));
            let ended = after.state().lifecycle.is_terminal();
            ensure(owner.is_some() == ended, "an end with open effects has its owner")?;
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

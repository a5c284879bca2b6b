//! Cases of the evidence that a boundary must show, per kind of node. Invariant and use as in `cases`.

use aiws::error::Code;
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    Blocker, Criterion, CriterionStatus, HandoffRef, HoldReason, InputRef, Lineage, Node, Ref,
    SettledOutcome, VerificationVerdict,
};
use praxis_model::command::{Body, BoundaryIntent};
use praxis_model::guard::Guard;

use super::common::*;
use super::{Must, accepted, cases, ensure, refused, refused_by, stopped};
use crate::world::*;

cases! {
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

    /// Proves HF-05.5, FV-CMD.4: what the ledger adds to a boundary counts against the bound of its lists, whoever drafts it; nothing is written that could not be read back.
    #[test]
    fn what_the_ledger_adds_fits_too() {
        let mut gate = World::with(graph(vec![node("v", aiws::record::NodeKind::Verification, &[]), end(&["v"])]));
        gate.admit_control("v").must()?;
        gate.verify("v1", VerificationVerdict::Pass).must()?;
        let said = |number: usize| Criterion { criterion_id: id(&format!("c{number}")), status: CriterionStatus::Met, evidence: Vec::new() };
        let naming = |many: usize| BoundaryIntent { criteria: (0..many).map(said).collect(), ..completed("v") };
        let most = aiws::limits::MAX_LIST_ITEMS;
        accepted(&gate, |world| world.commit(naming(most - 1)))?;
        refused(&gate, Code::SchemaInvalid, |world| world.commit(naming(most)))?;
        let mut lost = World::with(lin());
        lost.admit("a").must()?;
        lost.dispatch("a").must()?;
        lost.settle("at-a-1", SettledOutcome::Unknown, 0).must()?;
        let mut body = drafted(&lost, blocked("a"))?;
        let uncertain = |number: usize| Blocker { kind: HoldReason::UncertainEffect, subject_id: id(&format!("s{number}")), evidence: Vec::new() };
        if let Some(hold) = &mut body.hold {
            hold.blockers = (0..most).map(uncertain).collect();
        }
        let (command, facts) = (lost.command(Body::CommitBoundary(body)), lost.facts(ENGINE));
        refused_by(Guard::BoundaryShape, praxis_model::decide::run(lost.state(), &command, &facts))
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

    /// Proves FV-GRAPH.12, HF-03.4: another node's applied operation proves nothing for this one.
    #[test]
    fn evidence_is_the_nodes_own() {
        let mut world = World::with(graph(vec![task("a", &[]), task("b", &[]), end(&["a", "b"])]));
        world.apply_task("a").must()?;
        world.admit("b").must()?;
        world.dispatch("b").must()?;
        world.settle("at-b-1", SettledOutcome::ConfirmedNotApplied, 0).must()?;
        let mut own = drafted(&world, completed("b"))?;
        stopped(&world, Guard::TaskConfirmed, Code::EvidenceInvalid, |world| {
            world.send(ENGINE, Body::CommitBoundary(own.clone()))
        })?;
        own.manifest.producer.operations = drafted(&world, completed("a"))?.manifest.producer.operations;
        stopped(&world, Guard::OperationsExact, Code::EvidenceInvalid, |world| {
            world.send(ENGINE, Body::CommitBoundary(own))
        })
    }

    /// Proves REL-3: a correction replaces a manifest that this run really committed.
    #[test]
    fn a_correction_names_a_committed_manifest() {
        let mut world = World::with(lin());
        world.work("a").must()?;
        world.apply_task("b").must()?;
        let before = last_handoff(&world, "a")?;
        let lineage = |replaces: HandoffRef| Some(Lineage { replaces, reason: "better".to_owned() });
        let mut body = drafted(&world, completed("b"))?;
        body.manifest.lineage = lineage(before.clone());
        accepted(&world, |world| world.send(ENGINE, Body::CommitBoundary(body)))?;
        for wrong in [HandoffRef { digest: token(0), ..before.clone() }, HandoffRef { handoff_id: id("ghost"), ..before }] {
            tampered(&world, completed("b"), Guard::LineageKnown, Code::EvidenceInvalid, |body| {
                body.manifest.lineage = lineage(wrong);
            })?;
        }
        Ok(())
    }
}

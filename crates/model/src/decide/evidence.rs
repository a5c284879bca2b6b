//! Evidence: what a node's boundary must show, per kind of node (T-39).
//!
//! Invariant: identities are compared with the ledger, and an operation's id alone proves nothing (HF-03.4).
//! Called by commitBoundary.

use aiws::id::EvidenceId;
use aiws::json::Value;
use aiws::record::{
    Approval, Assessment, CriterionStatus, DecisionConfig, HoldReason, Manifest, Node, NodeKind,
    OperationStatus, OutcomeStatus,
};
use aiws::schema::Schema;

use super::boundary;
use super::complete_run::{accepted, current};
use crate::admission::{details, is_in_force};
use crate::command::CommitBoundary;
use crate::decision::Rejection;
use crate::facts::Facts;
use crate::graph;
use crate::guard::{Guard, check};
use crate::iteration;
use crate::run::{NodeState, RunState};

/// The criterion by which a VERIFICATION node names the verification it rests on.
pub(crate) const VERIFICATION: &str = "VERIFICATION";

/// The criterion by which an ACCEPTANCE node names the acceptance it rests on.
pub(crate) const ACCEPTANCE: &str = "ACCEPTANCE";

/// Everything that the manifest says of the ledger is so. Returns the times that the writer's clock must not
/// have reached.
pub(super) fn complete(
    state: &RunState,
    node: &Node,
    own: &NodeState,
    body: &CommitBoundary,
    facts: &Facts,
) -> Result<Vec<u64>, Rejection> {
    let named = || details(&[("nodeId", (&node.id).into())]);
    let manifest = &body.manifest;
    // A LOOP's last iteration is done although its node is not.
    let completed = manifest.outcome.status == OutcomeStatus::Completed
        || iteration::exhausts(node, manifest.outcome.status, &manifest.result);
    if !node.kind.runs_work() {
        check(
            Guard::ControlNoOperations,
            manifest.producer.operations.is_empty(),
            named,
        )?;
    }
    let operations = boundary::operations(state, &own.activation_id);
    check(
        Guard::OperationsExact,
        manifest.producer.operations == operations,
        named,
    )?;
    let outstanding = boundary::outstanding(state, &own.activation_id);
    check(
        Guard::OutstandingExact,
        manifest.outcome.outstanding == outstanding,
        named,
    )?;
    check(
        Guard::CompletedSettled,
        !completed || outstanding.is_empty(),
        named,
    )?;
    let bound = state.consumptions.get(&own.activation_id);
    let inputs = bound.map_or(&[][..], |consumption| &consumption.inputs);
    check(Guard::InputsBound, manifest.inputs == inputs, named)?;
    let mut known = manifest.controls.approvals.iter();
    let known = known.all(|sent| {
        sent.revision == aiws::decimal::Dec::from_u64(1)
            && approval(state, sent.id.as_str()).is_some()
    });
    check(Guard::ApprovalsKnown, known, named)?;
    let replaced = manifest.lineage.as_ref().map(|lineage| &lineage.replaces);
    let known = replaced.is_none_or(|replaced| {
        let committed = state.manifests.get(&replaced.handoff_id);
        committed.is_some_and(|committed| committed.digest == replaced.digest)
    });
    check(Guard::LineageKnown, known, named)?;
    if !completed {
        return Ok(Vec::new());
    }
    let before_ms = of_kind(state, node, own, body, facts)?;
    let bad = misfit(node, &manifest.result);
    check(Guard::ResultFits, bad.is_none(), || {
        details(&[("nodeId", (&node.id).into()), ("pointer", bad.into())])
    })?;
    Ok(before_ms)
}

fn of_kind(
    state: &RunState,
    node: &Node,
    own: &NodeState,
    body: &CommitBoundary,
    facts: &Facts,
) -> Result<Vec<u64>, Rejection> {
    let manifest = &body.manifest;
    let named = || {
        details(&[
            ("nodeId", (&node.id).into()),
            ("kind", node.kind.name().into()),
        ])
    };
    match &node.kind {
        NodeKind::Task(_) => check(Guard::TaskConfirmed, confirmed(state, own), named)?,
        NodeKind::Decision(config) => check(
            Guard::DecisionField,
            decided(config, &manifest.result),
            named,
        )?,
        NodeKind::Loop(_) => iterated(state, node, own, body)?,
        // A FORK or a JOIN is done by its admission.
        NodeKind::Fork | NodeKind::Join(_) => {}
        NodeKind::Approval => {
            let current =
                approvals(state, manifest).find(|approval| is_in_force(approval, facts.now_ms));
            check(Guard::ApprovalCurrent, current.is_some(), named)?;
            return Ok(current
                .and_then(|approval| approval.expires_at_ms.to_u64())
                .into_iter()
                .collect());
        }
        NodeKind::Verification => {
            let rests = rests_on(manifest, VERIFICATION, current(&state.verifications));
            check(Guard::VerificationCurrent, rests, named)?;
        }
        NodeKind::Acceptance => {
            let rests = rests_on(manifest, ACCEPTANCE, accepted(state));
            check(Guard::AcceptanceCurrent, rests, named)?;
        }
        NodeKind::End => {
            let said =
                manifest.result.get("disposition").and_then(Value::as_str) == Some("COMPLETED");
            check(Guard::EndDisposition, said, named)?;
        }
    }
    Ok(Vec::new())
}

/// An iteration is done by its own operation, says whether the LOOP is, and what is not done at the bound is blocked
/// with a hold that says so (HS-02.1).
fn iterated(
    state: &RunState,
    node: &Node,
    own: &NodeState,
    body: &CommitBoundary,
) -> Result<(), Rejection> {
    let named = || {
        details(&[
            ("nodeId", (&node.id).into()),
            ("iteration", own.iteration.to_string().into()),
        ])
    };
    let status = body.manifest.outcome.status;
    let done = iteration::says_done(&body.manifest.result);
    check(Guard::LoopConfirmed, confirmed(state, own), named)?;
    check(Guard::LoopDone, done.is_some(), named)?;
    let last = iteration::is_last(node, own);
    if status == OutcomeStatus::Completed {
        return check(Guard::LoopBound, done == Some(true) || !last, named);
    }
    let hold = body.hold.as_ref();
    let says_so = hold.is_some_and(|hold| hold.reason == HoldReason::AttemptLimit);
    check(Guard::LoopExhausted, last && says_so, named)
}

/// The node's own operation has its effect (FV-NODE-TASK.2, FV-NODE-LOOP.2).
fn confirmed(state: &RunState, own: &NodeState) -> bool {
    let mut mine = state
        .operations
        .values()
        .filter(|operation| operation.activation_id.as_ref() == Some(&own.activation_id));
    mine.any(|operation| operation.status == OperationStatus::ConfirmedApplied)
}

fn decided(config: &DecisionConfig, result: &Value) -> bool {
    graph::chosen(config, result).is_some()
}

fn approval<'a>(state: &'a RunState, id: &str) -> Option<&'a Approval> {
    state.approvals.get(id)
}

fn approvals<'a>(
    state: &'a RunState,
    manifest: &'a Manifest,
) -> impl Iterator<Item = &'a Approval> {
    manifest
        .controls
        .approvals
        .iter()
        .filter_map(|sent| approval(state, sent.id.as_str()))
}

/// The manifest's criterion is met by exactly the assessment that counts now.
fn rests_on(manifest: &Manifest, criterion: &str, current: Option<&Assessment>) -> bool {
    let Some(current) = current else { return false };
    let cites = |evidence: &EvidenceId| evidence.as_str() == current.assessment_id.as_str();
    manifest.outcome.criteria.iter().any(|said| {
        said.criterion_id.as_str() == criterion
            && said.status == CriterionStatus::Met
            && said.evidence.iter().any(cites)
    })
}

/// Where the result does not fit; any JSON object fits where the node has no schema (FV-GRAPH.8).
fn misfit(node: &Node, result: &Value) -> Option<String> {
    let Some(schema) = &node.output_schema else {
        return result.as_object().is_none().then(String::new);
    };
    // The schema was compiled at activation, so a failure here is the result's.
    let verdict = Schema::compile(schema).and_then(|schema| schema.validate(result));
    verdict.err().map(|error| error.pointer.unwrap_or_default())
}

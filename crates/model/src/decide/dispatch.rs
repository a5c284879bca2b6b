//! dispatch: a prepared attempt may be tried; durable before any adapter is called (FV-EFF.1).
//!
//! Invariant: nothing that was true at admission is believed here: authority, ownership, gates, material, approval
//! and deadlines are checked again (HD-03.8). Called by `decide::run`.

use aiws::id::ActivationId;
use aiws::object;
use aiws::record::{AttemptStatus, Operation};

use super::material;
use super::pipeline::members;
use crate::admission::{self, Wanted};
use crate::command::{Body, Command, Dispatch};
use crate::decision::{Decision, Rejection};
use crate::event::Outcome;
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::run::{NodeStatus, RunState};
use crate::transition::Transition;

/// Stages 8 and 9 of dispatch.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &Dispatch,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let named =
        || members(object! { "operationId": &body.operation_id, "attemptId": &body.attempt_id });
    let attempt = need(
        Guard::AttemptKnown,
        state.attempts.get(&body.attempt_id),
        named,
    )?;
    let operation = need(
        Guard::OperationKnown,
        state.operations.get(&body.operation_id),
        named,
    )?;
    let of_node = || members(object! { "nodeId": &body.node_id });
    let node = need(
        Guard::ConsumerKnown,
        admission::find_node(state, &body.node_id),
        of_node,
    )?;
    let place = need(
        Guard::ConsumerKnown,
        state.nodes.get(&body.node_id),
        of_node,
    )?;
    check(
        Guard::DispatchEpoch,
        attempt.epoch.get() == state.epoch,
        || members(object! { "attemptEpoch": attempt.epoch, "epoch": state.epoch.to_string() }),
    )?;
    check(Guard::DispatchTask, node.kind.runs_work(), of_node)?;
    check(
        Guard::DispatchActive,
        place.status == NodeStatus::Active,
        of_node,
    )?;
    let bound = attempt.operation_id == body.operation_id
        && operation.node_id.as_ref() == Some(&body.node_id)
        && operation.activation_id.as_ref() == Some(&place.activation_id);
    check(Guard::DispatchBinding, bound, named)?;
    check(
        Guard::DispatchPrepared,
        attempt.status == AttemptStatus::Prepared,
        named,
    )?;
    let mut before_ms = consumed(state, facts, &place.activation_id)?;
    admission::payload(node, &operation.action)?;
    let wanted = Wanted {
        node,
        operation_id: &body.operation_id,
        action: &operation.action,
        grant_id: &operation.grant_id,
        approval_id: operation.approval_id.as_ref(),
        amount: attempt.reserved,
    };
    let cleared = admission::check(state, facts, &wanted, || {
        about_to_run(operation, facts)?;
        let kept = facts
            .account
            .as_ref()
            .is_none_or(|row| row.reserved >= attempt.reserved);
        check(Guard::DispatchReserved, kept, named)
    })?;
    before_ms.extend(cleared.before_ms);
    let moved = Transition::AttemptMoved {
        attempt_id: body.attempt_id.clone(),
        from: attempt.status,
        to: AttemptStatus::Dispatched,
        actual: None,
        evidence: Vec::new(),
    };
    Ok(Decision {
        // Whatever policy the caller named, the authorizer's counts (FV-GRT.4).
        command: Body::Dispatch(Dispatch {
            policy: facts.policy.clone(),
            ..body.clone()
        }),
        outcome: Outcome {
            transitions: cleared.bind.into_iter().chain([moved]).collect(),
            ..Outcome::default()
        },
        result: object! {
            "operationId": &body.operation_id,
            "attemptId": &body.attempt_id,
            "status": AttemptStatus::Dispatched,
        },
        same: cleared.same,
        before_ms,
    })
}

/// The material that the activation consumed is there and unchanged: an old receipt is no pass (HF-04.11). Returns
/// the ends of its retention.
fn consumed(
    state: &RunState,
    facts: &Facts,
    activation: &ActivationId,
) -> Result<Vec<u64>, Rejection> {
    let bound = admission::standing(state, activation)?;
    let inputs = bound
        .inputs
        .iter()
        .filter_map(|input| state.manifests.get(&input.handoff.handoff_id));
    let artifacts = inputs.flat_map(|committed| &committed.manifest.artifacts);
    material::verified(artifacts.clone(), facts)?;
    Ok(material::retained_until(artifacts).collect())
}

/// Where the host says what it is about to run, that is exactly what was admitted (FV-APR.2, F-12).
fn about_to_run(operation: &Operation, facts: &Facts) -> Result<(), Rejection> {
    for proposal in facts
        .admissions
        .values()
        .filter(|proposal| proposal.operation_id == operation.operation_id)
    {
        let fingerprint = aiws::canonical::digest_of(&proposal.action)?;
        let same =
            fingerprint == operation.fingerprint && proposal.fingerprint == operation.fingerprint;
        check(Guard::DispatchMaterial, same, || {
            members(object! { "operationId": &operation.operation_id })
        })?;
    }
    Ok(())
}

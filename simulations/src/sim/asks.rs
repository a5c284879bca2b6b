//! What owners and people ask for: the commands of their steps, made from a run's state.
//!
//! Invariant: nothing is decided here, and nothing is done; the same state gives the same command. Part of the simulation.

use aiws::decimal::{Dec, DecPlus};
use aiws::digest::sha256;
use aiws::error::Error;
use aiws::id::{AttemptId, DeliveryId, EvidenceId, NodeId, OperationId};
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::run::RunState;
use praxis_model::stream::derived;

use super::acts::Wanted;
use super::hops::{Ask, ENGINE};
use super::process::{Process, Then};
use crate::cast::{self, Cast};
use crate::plan::{Act, Kill};
use crate::world::Call;

pub(super) fn activate(cast: &Cast, run: u8) -> Wanted {
    let body = Body::ActivateGraph(ActivateGraph {
        run_id: cast::id(&cast::run_name(run))?,
        owner_epoch: Dec::ZERO,
        graph: cast.graph(run)?,
    });
    Ok(Some((Ask::of(ENGINE, body), Then::Nothing)))
}

pub(super) fn claim(state: &RunState, number: u32, delivery_id: &DeliveryId) -> Wanted {
    let Some(delivery) = state.deliveries.get(delivery_id) else {
        return Ok(None);
    };
    let generation = delivery.record.generation.get() + 1;
    let token = sha256(format!("{number} {delivery_id} {generation} {}", state.epoch).as_bytes());
    let body = Body::ClaimDelivery(ClaimDelivery {
        delivery_id: delivery_id.clone(),
        lease_ms: None,
    });
    let mut ask = Ask::of(ENGINE, body);
    ask.claim = Some(token);
    let then = Then::Token(delivery_id.clone(), token, generation);
    Ok(Some((ask, then)))
}

pub(super) fn acknowledge(process: &mut Process, run: u8, number: u32, id: &DeliveryId) -> Wanted {
    let Some(owner) = process.numbered(run, number) else {
        return Ok(None);
    };
    let Some((token, generation)) = owner.tokens.get(id).copied() else {
        return Ok(None);
    };
    acknowledgement(&owner.state, id, token, generation)
        .map(|body| body.map(|body| (Ask::of(ENGINE, body), Then::Nothing)))
}

/// The acknowledgement of a delivery with a token.
pub(super) fn acknowledgement(
    state: &RunState,
    id: &DeliveryId,
    token: aiws::digest::Digest,
    generation: u64,
) -> Result<Option<Body>, Error> {
    let Some(delivery) = state.deliveries.get(id) else {
        return Ok(None);
    };
    Ok(Some(Body::AcknowledgeDelivery(AcknowledgeDelivery {
        delivery_id: id.clone(),
        handoff: delivery.record.handoff.clone(),
        claim_token: token,
        generation: DecPlus::new(Dec::from_u64(generation))?,
    })))
}

/// Admission of a node; a task's with its effect.
pub(super) fn admit(cast: &Cast, state: &RunState, act: &Act, node_id: &NodeId) -> Wanted {
    let graph = state.graph.iter().flat_map(|graph| &graph.nodes);
    let works = graph
        .into_iter()
        .any(|node| node.id == *node_id && node.kind.runs_work());
    if !works {
        let admit = AdmitIntent {
            node_id: node_id.clone(),
            admission_ref: None,
        };
        return Ok(Some((
            Ask::intent(ENGINE, Intent::Admit(admit)),
            Then::Nothing,
        )));
    }
    let revision = state.head.revision.get() + 1;
    let derived = |kind| derived(&state.stream, revision, kind, 0);
    let node = node_id.as_str();
    let proposal = AdmissionProposal {
        operation_id: OperationId::from(derived("operation")),
        attempt_id: AttemptId::from(derived("attempt")),
        action: cast.action(node),
        fingerprint: cast.fingerprint(node),
        effect: cast.effect(node),
        grant_id: cast::id("root")?,
        approval_id: cast
            .is_gated(node)
            .then(|| approval(cast, state, true))
            .flatten(),
        amount: Dec::from_u64(8 + u64::from(act.cost)),
    };
    let admission = derived("admission");
    let admit = AdmitIntent {
        node_id: node_id.clone(),
        admission_ref: Some(admission.clone()),
    };
    let mut ask = Ask::intent(ENGINE, Intent::Admit(admit));
    ask.admission = Some((admission, proposal));
    Ok(Some((ask, Then::Nothing)))
}

pub(super) fn dispatch(
    cast: &Cast,
    state: &RunState,
    act: &Act,
    node_id: &NodeId,
    operation_id: &OperationId,
    attempt_id: &AttemptId,
) -> (Ask, Then) {
    let attempt = state.attempts.get(attempt_id);
    let reserved = attempt
        .and_then(|attempt| attempt.reserved.to_u64())
        .unwrap_or(0);
    let call = Call {
        operation: operation_id.as_str().to_owned(),
        attempt: attempt_id.as_str().to_owned(),
        keyed: cast.effect(node_id.as_str()) == EffectClass::Idempotent,
        cost: u64::from(act.cost).min(reserved),
    };
    let then = Then::Call {
        call,
        fate: act.fate,
        dies: act.kill == Kill::InCall,
    };
    let intent = Intent::DispatchNode {
        node_id: node_id.clone(),
    };
    (Ask::intent(ENGINE, intent), then)
}

pub(super) fn complete(state: &RunState) -> Wanted {
    let body = Body::CompleteRun(CompleteRun {
        run_id: run_id(state)?,
        owner_epoch: Dec::from_u64(state.epoch),
    });
    Ok(Some((Ask::of(ENGINE, body), Then::Nothing)))
}

/// A settlement.
pub(super) fn settle(
    state: &RunState,
    attempt_id: &AttemptId,
    outcome: SettledOutcome,
    actual: u64,
    evidence: &[EvidenceId],
) -> Result<Body, Error> {
    Ok(Body::Settle(Settle {
        run_id: run_id(state)?,
        attempt_id: attempt_id.clone(),
        outcome,
        actual: Dec::from_u64(actual),
        evidence: evidence.to_vec(),
    }))
}

/// A reconciliation.
pub(super) fn reconcile(
    state: &RunState,
    attempt_id: &AttemptId,
    outcome: SettledOutcome,
    actual: u64,
    evidence: &[EvidenceId],
) -> Result<Body, Error> {
    Ok(Body::Reconcile(Reconcile {
        run_id: run_id(state)?,
        attempt_id: attempt_id.clone(),
        outcome,
        actual: Dec::from_u64(actual),
        evidence: evidence.to_vec(),
    }))
}

/// The run of a state.
pub(super) fn run_id(state: &RunState) -> Result<aiws::id::RunId, Error> {
    state.subject.run_id.clone().ok_or_else(|| {
        Error::new(
            aiws::error::Code::InternalStore,
            "expected a run's state, found a mission's",
        )
    })
}

/// An approval that is in force for the work behind a gate; if asked for, one that nothing uses yet.
pub(super) fn approval(
    cast: &Cast,
    state: &RunState,
    unused: bool,
) -> Option<aiws::id::ApprovalId> {
    let wanted = cast.approved();
    let mut standing = state.approvals.values().filter(|approval| {
        approval.fingerprint == wanted
            && !approval.revoked
            && approval.decision == ApprovalDecision::Approved
            && !(unused && approval.operation_id.is_some())
    });
    standing.next().map(|approval| approval.approval_id.clone())
}

/// Whether the work of a node's current activation was applied.
pub(super) fn is_applied(state: &RunState, node_id: &NodeId) -> bool {
    let activation = state.nodes.get(node_id).map(|own| &own.activation_id);
    let mut own = state
        .operations
        .values()
        .filter(|operation| operation.activation_id.as_ref() == activation);
    own.any(|operation| {
        operation.attempts.iter().any(|id| {
            state
                .attempts
                .get(id)
                .is_some_and(|attempt| attempt.status == AttemptStatus::ConfirmedApplied)
        })
    })
}

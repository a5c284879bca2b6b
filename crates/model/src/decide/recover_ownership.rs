//! recoverOwnership: a new owner takes over; whatever the old one still sends is stale from here on (HC-RO.1).
//!
//! Invariant: keeps holds, deliveries, consumptions, effects and accounts as they are and calls no adapter (HS-06.1);
//! fencing and permission to go on are separate facts (T-15). Called by `decide::run`.

use aiws::decimal::U64;
use aiws::id::HoldId;
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    Attempt, ClaimEnd, ClaimEndCause, DeliveryState, HoldDecision, HoldReason, HoldState,
    RestartPolicy,
};

use super::pipeline::members;
use super::place_hold::{derive, in_flight, open, own_scope};
use super::reconcile::is_human;
use super::resolve_hold::is_evaluated;
use crate::command::{Body, Command, HoldProposal, RecoverOwnership};
use crate::decision::{Decision, Rejection};
use crate::event::{Outcome, Owner};
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::run::RunState;
use crate::stream::derived;
use crate::transition::Transition;
use praxis_plant::{self as plant, Plant};

/// Stage 5 of recoverOwnership: of two that take over from one owner, the second is stale.
pub(super) fn ownership(state: &RunState, body: &RecoverOwnership) -> Result<(), Rejection> {
    let current = body.expected_epoch.to_u64() == Some(state.epoch);
    check(Guard::RecoverEpoch, current, || epochs(state, body))
}

fn epochs(state: &RunState, body: &RecoverOwnership) -> aiws::json::Object {
    members(object! { "expectedEpoch": body.expected_epoch, "epoch": state.epoch.to_string() })
}

/// Stage 6 of recoverOwnership, beside the host's recovery authority: who names a human decision is a human.
pub(super) fn authority(
    _state: &RunState,
    body: &RecoverOwnership,
    facts: &Facts,
) -> Result<(), Rejection> {
    check(
        Guard::RecoverHuman,
        body.decision_ref.is_none() || is_human(facts),
        || members(object! { "actor": &facts.actor_id, "actorKind": facts.actor_kind }),
    )
}

/// Stage 8 of recoverOwnership.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &RecoverOwnership,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let next = match plant::is(Plant::EpochNotRaised) {
        true => Some(state.epoch),
        false => state.epoch.checked_add(1),
    };
    let epoch = U64(need(Guard::RecoverEpoch, next, || epochs(state, body))?);
    let mut outcome = Outcome {
        transitions: vec![Transition::EpochRaised {
            from: U64(state.epoch),
            to: epoch,
        }],
        owner: Some(Owner {
            stream: state.stream.clone(),
            epoch,
        }),
        ..Outcome::default()
    };
    fence_claims(state, facts, &mut outcome);
    let hold = restart_hold(state, epoch, facts, &mut outcome)?;
    let unresolved: Vec<Value> = state
        .attempts
        .values()
        .filter(|attempt| in_flight(attempt))
        .map(listed)
        .collect();
    Ok(Decision {
        command: Body::RecoverOwnership(body.clone()),
        outcome,
        result: object! {
            "epoch": epoch,
            "unresolved": unresolved,
            "holdId": hold.as_ref().map(HoldId::as_str),
        },
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

fn listed(attempt: &Attempt) -> Value {
    object! { "operationId": &attempt.operation_id, "attemptId": &attempt.attempt_id, "status": attempt.status }
}

fn is_given_back(state: DeliveryState) -> bool {
    let receipt = state == DeliveryState::Acknowledged;
    state == DeliveryState::Claimed || receipt && plant::is(Plant::ReceiptLostOnTakeover)
}

/// Claims that ended without a receipt: their deliveries can be claimed again (HD-02.8).
fn fence_claims(state: &RunState, facts: &Facts, outcome: &mut Outcome) {
    for (id, delivery) in &state.deliveries {
        let Some(claim) = delivery
            .record
            .claim
            .as_ref()
            .filter(|_| is_given_back(delivery.record.state))
        else {
            continue;
        };
        // A lease that had run out before ended by that, not by the recovery.
        let expired = facts.now_ms >= claim.expires_at_ms.get();
        let cause = if expired {
            ClaimEndCause::Expired
        } else {
            ClaimEndCause::Fenced
        };
        outcome.transitions.push(Transition::DeliveryMoved {
            delivery_id: id.clone(),
            from: delivery.record.state,
            to: DeliveryState::Pending,
            ended: Some(ClaimEnd {
                cause,
                at_ms: U64(facts.now_ms),
            }),
            claim: None,
            acknowledgement: None,
        });
    }
}

/// Whether the run goes on by itself. Under RULE it does where the host evaluated the approved rule, which allows the
/// restart and names what it saw; a hold that is open already stays (HS-06.1).
fn goes_on(state: &RunState, facts: &Facts) -> bool {
    match state.config.restart_policy {
        RestartPolicy::Auto => true,
        RestartPolicy::Human => false,
        RestartPolicy::Rule => {
            let seen = !facts.clear_evidence.is_empty();
            facts.restart_allowed && seen && is_evaluated(state, facts)
        }
    }
}

/// Where the run does not go on by itself, one RESTART hold waits for who decides: kept where it is open, else opened
/// under the next stable id.
fn restart_hold(
    state: &RunState,
    epoch: U64,
    facts: &Facts,
    outcome: &mut Outcome,
) -> Result<Option<HoldId>, Rejection> {
    if goes_on(state, facts) || state.lifecycle.is_terminal() {
        return Ok(None);
    }
    let mut closed = 0;
    let hold_id = loop {
        // No event has revision 0, so these ids meet no other derived one; a closed hold's id is never used again.
        let id = HoldId::from(derived(&state.stream, 0, "restart-hold", closed));
        match state.holds.get(&id).map(|hold| hold.state) {
            None => break id,
            Some(HoldState::Open) => return Ok(Some(id)),
            Some(HoldState::Released | HoldState::Canceled) => closed += 1,
        }
    };
    // The new epoch makes what is in flight uncertain, so the hold is derived from the state as it will be.
    let next = RunState {
        epoch: epoch.get(),
        ..state.clone()
    };
    let hold = derive(&next, &proposal(state, hold_id.clone(), facts)?, facts)?;
    open(state, hold, outcome)?;
    Ok(Some(hold_id))
}

fn proposal(state: &RunState, hold_id: HoldId, facts: &Facts) -> Result<HoldProposal, Rejection> {
    Ok(HoldProposal {
        hold_id,
        scope: own_scope(state)?,
        reason: HoldReason::Restart,
        owner: facts.actor_id.as_id(),
        blockers: Vec::new(),
        allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
        stop_disposition: Vec::new(),
    })
}

//! invalidateHandoff: a hand-off no longer counts, and what rests on it stops (HD-05.1).
//!
//! Invariant: one event has the record, every delivery, consumption and assessment that hangs on the hand-off, and the
//! hold that gates what is downstream; receipts, effects, money and authority stay as they are (HD-05.2, HD-05.4).
//! Called by `decide::run`.

use aiws::canonical::{from_value, to_value};
use aiws::decimal::U64;
use aiws::id::{HoldId, InvalidationId};
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    ActorKind, Blocker, Claim, ClaimEnd, ClaimEndCause, ConsumptionState, Delivery, DeliveryState,
    Hold, HoldDecision, HoldReason, Invalidation,
};

use super::pipeline::members;
use super::{affected, place_hold};
use crate::command::{Body, Command, HoldName, HoldProposal, InvalidateHandoff};
use crate::decision::{Decision, Rejection};
use crate::event::Outcome;
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::run::{Committed, RunState};
use crate::stream::derived;
use crate::transition::Transition;

/// Stage 6 of invalidateHandoff: who may say so. Whoever works under the hand-offs does not end them.
pub(super) fn authority(facts: &Facts) -> Result<(), Rejection> {
    let invalidator = matches!(
        facts.actor_kind,
        ActorKind::Human | ActorKind::Rule | ActorKind::System
    );
    check(Guard::Invalidator, invalidator, || {
        members(object! { "actor": &facts.actor_id, "actorKind": facts.actor_kind })
    })
}

/// Stage 8 of invalidateHandoff.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &InvalidateHandoff,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let name = name(state, body, facts);
    if let Some(name) = &name {
        place_hold::is_new(state, &name.hold_id)?;
    }
    let committed = known(state, body)?;
    let before = state.invalidations.get(&body.handoff.handoff_id);
    check(Guard::InvalidOnce, before.is_none(), || {
        let before = before.map(|record| record.invalidation_id.as_str());
        members(object! { "handoffId": &body.handoff.handoff_id, "invalidationId": before })
    })?;
    let record = record(state, body, facts, committed, name.as_ref());
    // What the ledger adds counts too: an event that cannot be read back must never be written.
    let unread = from_value::<Invalidation>(&to_value(&record)?).err();
    check(Guard::InvalidShape, unread.is_none(), || {
        let why = unread.map(|error| error.to_string());
        members(object! { "handoffId": &body.handoff.handoff_id, "why": why })
    })?;
    let hold = name
        .map(|name| hold(state, body, facts, name))
        .transpose()?;
    let result = result(&record)?;
    Ok(Decision {
        command: Body::InvalidateHandoff(body.clone()),
        outcome: outcome(state, facts, record, hold)?,
        result,
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

/// The manifest of this run that the reference names, to the digest. A reference that names none is told as the
/// delivery that is not there, whichever of its members is wrong.
fn known<'a>(state: &'a RunState, body: &InvalidateHandoff) -> Result<&'a Committed, Rejection> {
    let named = || members(object! { "handoffId": &body.handoff.handoff_id });
    let committed = need(
        Guard::InvalidKnown,
        state.manifests.get(&body.handoff.handoff_id),
        named,
    )?;
    let exact = committed.digest == body.handoff.digest;
    check(Guard::InvalidKnown, exact, named)?;
    Ok(committed)
}

/// The hold that the invalidation opens, with its owner; an ended run is gated for good and gets none (HS-06.5).
fn name(state: &RunState, body: &InvalidateHandoff, facts: &Facts) -> Option<HoldName> {
    let derived = || HoldName {
        hold_id: HoldId::from(new_id(state, "invalidation-hold")),
        owner: facts.actor_id.as_id(),
    };
    (!state.lifecycle.is_terminal()).then(|| body.hold.clone().unwrap_or_else(derived))
}

fn new_id(state: &RunState, kind: &str) -> aiws::id::Id {
    derived(&state.stream, state.head.revision.get() + 1, kind, 0)
}

fn record(
    state: &RunState,
    body: &InvalidateHandoff,
    facts: &Facts,
    committed: &Committed,
    hold: Option<&HoldName>,
) -> Invalidation {
    let id = &body.handoff.handoff_id;
    let deliveries = affected::deliveries(state, id);
    Invalidation {
        invalidation_id: InvalidationId::from(new_id(state, "invalidation")),
        handoff: body.handoff.clone(),
        reason: body.reason.clone(),
        evidence: body.evidence.clone(),
        actor_id: facts.actor_id.clone(),
        affected_deliveries: deliveries
            .map(|record| record.delivery_id.clone())
            .collect(),
        affected_consumptions: affected::consumptions(state, id),
        affected_assessments: affected::assessments(state, committed),
        hold_id: hold.map(|name| name.hold_id.clone()),
        at_ms: U64(facts.now_ms),
        revision: U64(state.head.revision.get() + 1),
    }
}

/// The hold over the run, with the configured stop of everything in flight (HD-05.3). It allows a recheck, which finds
/// the hand-off invalid as long as it is (HD-05.8), and a cancellation.
fn hold(
    state: &RunState,
    body: &InvalidateHandoff,
    facts: &Facts,
    name: HoldName,
) -> Result<Hold, Rejection> {
    let blocker = Blocker {
        kind: HoldReason::InvalidatedInput,
        subject_id: body.handoff.handoff_id.as_id(),
        evidence: body.evidence.clone(),
    };
    let proposal = HoldProposal {
        hold_id: name.hold_id,
        scope: place_hold::own_scope(state)?,
        reason: HoldReason::InvalidatedInput,
        owner: name.owner,
        blockers: vec![blocker],
        allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
        stop_disposition: Vec::new(),
    };
    place_hold::derive(state, &proposal, facts)
}

fn outcome(
    state: &RunState,
    facts: &Facts,
    record: Invalidation,
    hold: Option<Hold>,
) -> Result<Outcome, Rejection> {
    let mut outcome = Outcome::default();
    let deliveries = affected::deliveries(state, &record.handoff.handoff_id);
    outcome
        .transitions
        .extend(deliveries.map(|delivery| moved(delivery, facts)));
    let consumptions = record.affected_consumptions.iter();
    let invalid = |activation_id: &aiws::id::ActivationId| Transition::ConsumptionMoved {
        activation_id: activation_id.clone(),
        from: ConsumptionState::Valid,
        to: ConsumptionState::Invalidated,
    };
    outcome.transitions.extend(consumptions.map(invalid));
    let assessments = record.affected_assessments.iter();
    let gone = |id: &aiws::id::AssessmentId| Transition::AssessmentInvalidated {
        assessment_id: id.clone(),
    };
    outcome.transitions.extend(assessments.map(gone));
    if let Some(hold) = hold {
        place_hold::open(state, hold, &mut outcome)?;
    }
    outcome.transitions.push(Transition::HandoffInvalidated {
        invalidation: record,
    });
    Ok(outcome)
}

/// A delivery becomes invalid: a claim on it ends, a receipt stays (HD-05.2).
fn moved(delivery: &Delivery, facts: &Facts) -> Transition {
    let end = |claim: &Claim| ClaimEnd {
        cause: if facts.now_ms >= claim.expires_at_ms.get() {
            ClaimEndCause::Expired
        } else {
            ClaimEndCause::Fenced
        },
        at_ms: U64(facts.now_ms),
    };
    let claim = delivery.claim.as_ref();
    Transition::DeliveryMoved {
        delivery_id: delivery.delivery_id.clone(),
        from: delivery.state,
        to: DeliveryState::Invalidated,
        ended: claim
            .filter(|_| delivery.state == DeliveryState::Claimed)
            .map(end),
        claim: None,
        acknowledgement: None,
    }
}

fn result(record: &Invalidation) -> Result<Value, Rejection> {
    let deliveries = record.affected_deliveries.iter().map(Value::from);
    let consumptions = record.affected_consumptions.iter().map(Value::from);
    let assessments = record.affected_assessments.iter().map(Value::from);
    Ok(object! {
        "invalidationId": &record.invalidation_id,
        "handoff": to_value(&record.handoff)?,
        "deliveries": Value::Array(deliveries.collect()),
        "consumptions": Value::Array(consumptions.collect()),
        "assessments": Value::Array(assessments.collect()),
        "holdId": record.hold_id.as_ref().map(HoldId::as_str),
    })
}

//! claimDelivery: a lease to validate a delivery, and nothing more (HD-02.3).
//!
//! Invariant: every claim has a higher generation, and admits and spends nothing (HC-CL.1). An expired claim is
//! ended by the next one, in the same event (T-28). Called by `decide::run`.

use aiws::decimal::U64;
use aiws::object;
use aiws::record::{Claim, ClaimEnd, ClaimEndCause, DeliveryState as State};

use super::claims;
use crate::admission::details;
use crate::command::{Body, ClaimDelivery, Command};
use crate::decision::{Decision, Rejection};
use crate::event::Outcome;
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::run::RunState;
use crate::transition::Transition;
use praxis_plant::{self as plant, Plant};

/// Stage 8 of claimDelivery.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &ClaimDelivery,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let delivery = claims::known(state, &body.delivery_id)?;
    let record = &delivery.record;
    let ended = ended(
        record
            .claim
            .as_ref()
            .filter(|_| record.state == State::Claimed),
        facts.now_ms,
    );
    check(
        Guard::ClaimFree,
        record.state == State::Pending || ended.is_some(),
        || {
            details(&[
                ("deliveryId", (&body.delivery_id).into()),
                ("state", record.state.name().into()),
            ])
        },
    )?;
    let (_, committed) = claims::based(state, delivery)?;
    claims::accepted(state, delivery, committed)?;
    let token_hash = need(
        Guard::ClaimFingerprint,
        facts.claim_fingerprint,
        Default::default,
    )?;
    let claim = Claim {
        claimant: facts.actor_id.clone(),
        token_hash,
        generation: U64(generation(record.generation.get())),
        owner_epoch: U64(state.epoch),
        claimed_at_ms: U64(facts.now_ms),
        expires_at_ms: U64(facts.now_ms.saturating_add(lease_ms(state, body))),
        end: None,
    };
    let result = object! {
        "deliveryId": &record.delivery_id,
        "handoff": aiws::canonical::to_value(&record.handoff)?,
        "claimant": &claim.claimant,
        "generation": claim.generation,
        "expiresAtMs": claim.expires_at_ms,
    };
    // A lease that ran out before the claim is written gives nobody anything.
    let before_ms = vec![claim.expires_at_ms.get()];
    let moved = Transition::DeliveryMoved {
        delivery_id: record.delivery_id.clone(),
        from: record.state,
        to: State::Claimed,
        ended,
        claim: Some(claim),
        acknowledgement: None,
    };
    let outcome = Outcome {
        transitions: vec![moved],
        ..Outcome::default()
    };
    Ok(Decision {
        command: Body::ClaimDelivery(body.clone()),
        outcome,
        result,
        same: Vec::new(),
        before_ms,
    })
}

/// The generation of the claim after this one.
fn generation(last: u64) -> u64 {
    match plant::is(Plant::GenerationKept) {
        true => last.max(1),
        false => last.saturating_add(1),
    }
}

/// The end of a claim whose lease has run out.
fn ended(claim: Option<&Claim>, now_ms: u64) -> Option<ClaimEnd> {
    let twice = plant::is(Plant::ClaimedTwice);
    let expired = claim.filter(|claim| twice || now_ms >= claim.expires_at_ms.get())?;
    Some(ClaimEnd {
        cause: ClaimEndCause::Expired,
        at_ms: expired.expires_at_ms,
    })
}

/// The host's bound, or less where the claimant wants less (HD-02.7).
fn lease_ms(state: &RunState, body: &ClaimDelivery) -> u64 {
    let bound = state.config.lease_ms.to_u64().unwrap_or(u64::MAX);
    body.lease_ms
        .and_then(|wanted| wanted.to_u64())
        .map_or(bound, |wanted| wanted.min(bound))
}

//! acknowledgeDelivery: a durable receipt of verified material.
//!
//! Invariant: a receipt completes no task and frees no reservation (HC-AK.1); it rests on bytes that the host
//! itself read back (HD-03.3). Called by `decide::run`.

use aiws::decimal::U64;
use aiws::object;
use aiws::record::{Ack, DeliveryState as State};

use super::claims::{self, Presented};
use super::material;
use crate::admission::details;
use crate::command::{AcknowledgeDelivery, Body, Command};
use crate::decision::{Decision, Rejection};
use crate::event::Outcome;
use crate::facts::Facts;
use crate::guard::{Guard, check};
use crate::run::RunState;
use crate::transition::Transition;

/// Stage 8 of acknowledgeDelivery.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &AcknowledgeDelivery,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let presented = Presented {
        delivery_id: &body.delivery_id,
        token: body.claim_token,
        generation: body.generation,
    };
    let (delivery, claim) = claims::held(state, facts, &presented)?;
    let record = &delivery.record;
    check(Guard::HandoffExact, body.handoff == record.handoff, || {
        details(&[
            ("handoffId", (&record.handoff.handoff_id).into()),
            ("sent", (&body.handoff.handoff_id).into()),
        ])
    })?;
    let (_, committed) = claims::based(state, delivery)?;
    material::verified(committed.manifest.artifacts.iter(), facts)?;
    claims::accepted(state, delivery, committed)?;
    claims::fits(state, delivery, committed)?;
    let revision = U64(state.head.revision.get() + 1);
    let acknowledgement = Ack {
        delivery_id: record.delivery_id.clone(),
        handoff: record.handoff.clone(),
        claimant: claim.claimant.clone(),
        generation: claim.generation,
        token_hash: claim.token_hash,
        owner_epoch: U64(state.epoch),
        at_ms: U64(facts.now_ms),
        revision,
        materials: material::receipt(&committed.manifest.artifacts, facts),
    };
    let result = object! {
        "deliveryId": &record.delivery_id,
        "handoff": aiws::canonical::to_value(&record.handoff)?,
        "generation": claim.generation,
    };
    let moved = Transition::DeliveryMoved {
        delivery_id: record.delivery_id.clone(),
        from: record.state,
        to: State::Acknowledged,
        ended: None,
        claim: None,
        acknowledgement: Some(acknowledgement),
    };
    let outcome = Outcome {
        transitions: vec![moved],
        ..Outcome::default()
    };
    // The receipt says that the material was there: the lease and the retention last until it is written.
    let retained = material::retained_until(&committed.manifest.artifacts);
    let before_ms = std::iter::once(claim.expires_at_ms.get())
        .chain(retained)
        .collect();
    Ok(Decision {
        command: Body::AcknowledgeDelivery(body.clone()),
        outcome,
        result,
        same: Vec::new(),
        before_ms,
    })
}

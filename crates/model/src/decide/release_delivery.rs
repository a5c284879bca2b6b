//! releaseDelivery: a holder gives its claim back.
//!
//! Invariant: only the holder of a live claim releases it, and a release resets no effect and no accounting
//! (HC-RL.1). An expired claim is no longer the holder's to give back (T-31). Called by `decide::run`.

use aiws::decimal::U64;
use aiws::object;
use aiws::record::{ClaimEnd, ClaimEndCause, DeliveryState as State};

use super::claims::{self, Presented};
use crate::command::{Body, Command, ReleaseDelivery};
use crate::decision::{Decision, Rejection};
use crate::event::Outcome;
use crate::facts::Facts;
use crate::run::RunState;
use crate::transition::Transition;

/// Stage 8 of releaseDelivery.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &ReleaseDelivery,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let presented = Presented {
        delivery_id: &body.delivery_id,
        token: body.claim_token,
        generation: body.generation,
    };
    let (delivery, claim) = claims::held(state, facts, &presented)?;
    let moved = Transition::DeliveryMoved {
        delivery_id: delivery.record.delivery_id.clone(),
        from: delivery.record.state,
        to: State::Pending,
        ended: Some(ClaimEnd {
            cause: ClaimEndCause::Released,
            at_ms: U64(facts.now_ms),
        }),
        claim: None,
        acknowledgement: None,
    };
    let result =
        object! { "deliveryId": &delivery.record.delivery_id, "generation": claim.generation };
    let outcome = Outcome {
        transitions: vec![moved],
        ..Outcome::default()
    };
    let before_ms = vec![claim.expires_at_ms.get()];
    Ok(Decision {
        command: Body::ReleaseDelivery(body.clone()),
        outcome,
        result,
        same: Vec::new(),
        before_ms,
    })
}

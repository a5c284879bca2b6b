//! Replays: the answer to a request that was committed before (HF-02.7).
//!
//! Invariant: a replay appends nothing and has no event; a claim's token comes back only while the claim is live
//! (T-24). Part of the run's owner.

use aiws::error::Error;
use aiws::record::DeliveryState;
use aiws::token::ClaimToken;
use praxis_journal_format::Sealed;
use praxis_model::command::Body;
use praxis_model::run::RunState;

use super::{Done, RunOwner};
use crate::error::actor_lost;
use crate::gather;
use crate::message::{Request, Response};

impl RunOwner {
    /// The answer to a request that was committed before (T-24: a claim's token only while the claim is live).
    pub(super) async fn replay(
        &mut self,
        request: &Request,
        sealed: &Sealed,
    ) -> Result<Done, Error> {
        if sealed.event.request_digest != request.digest {
            return Err(request
                .request_id
                .as_ref()
                .map_or_else(actor_lost, crate::core::other_material));
        }
        let token = match &sealed.event.command {
            Body::ClaimDelivery(body) => {
                let state = self.current().await?;
                self.live_token(&state, &body.delivery_id, request)?
            }
            _ => None,
        };
        let (revision, result) = (sealed.event.revision.get(), sealed.event.result.clone());
        Ok(Done {
            response: Response {
                event: None,
                revision,
                result,
            },
            token,
            bytes: gather::Copies::new(),
        })
    }

    /// The token of a live claim that the same request made; none once the claim ended.
    pub(crate) fn live_token(
        &self,
        state: &RunState,
        delivery_id: &aiws::id::DeliveryId,
        request: &Request,
    ) -> Result<Option<ClaimToken>, Error> {
        let Some(delivery) = state.deliveries.get(delivery_id) else {
            return Ok(None);
        };
        let Some(claim) = delivery
            .record
            .claim
            .as_ref()
            .filter(|claim| claim.end.is_none())
        else {
            return Ok(None);
        };
        let live = delivery.record.state == DeliveryState::Claimed
            && claim.owner_epoch.get() == state.epoch
            && self.core.now_ms().max(state.last_ms) < claim.expires_at_ms.get();
        let principal = request.capability.actor_id();
        let (generation, epoch) = (claim.generation.get(), claim.owner_epoch.get());
        let token = self.core.token(
            delivery_id,
            generation,
            epoch,
            principal,
            request.request_id.as_ref(),
        )?;
        Ok(Some(token).filter(|token| live && token.fingerprint().ct_eq(&claim.token_hash)))
    }
}

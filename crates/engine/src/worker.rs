//! The worker API: typed calls of one principal to one run's owner.
//!
//! Invariant: a worker reaches the actor's mailbox and nothing behind it (FV-REC.5); every call is an intent or a
//! report under its own request id. Made by `Engine::worker`, used by worker authors.

use std::time::Duration;

use aiws::decimal::{Dec, DecPlus};
use aiws::error::Error;
use aiws::id::{AttemptId, DeliveryId, EvidenceId, MissionId, NodeId, RequestId, RunId};
use aiws::record::{Delivery, DeliveryState, HandoffRef, SettledOutcome};
use aiws::token::ClaimToken;
use praxis_model::command::{
    AcknowledgeDelivery, AdmitIntent, Body, BoundaryIntent, ClaimDelivery, Intent, ReleaseDelivery,
    Settle,
};
use praxis_model::hold::is_held;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use crate::adapter::EffectReport;
use crate::capability::Capability;
use crate::effects;
use crate::engine::{Engine, IntentRequest, SequenceRequest, SequenceStep};
use crate::error::{actor_lost, closing};
use crate::limits::LEASE_LOOK_MS;
use crate::message::{Claimed, Response, Sequenced};
use crate::ports::Draft;

/// A worker's handle to one run. Each call's `request_id` makes it safe to send again: the same id with the same
/// arguments gets the first answer, with `event` none.
#[derive(Clone)]
pub struct Worker {
    engine: Engine,
    capability: Capability,
    mission_id: MissionId,
    run_id: RunId,
}

impl Worker {
    pub(crate) fn new(
        engine: Engine,
        capability: Capability,
        mission_id: MissionId,
        run_id: RunId,
    ) -> Self {
        Self {
            engine,
            capability,
            mission_id,
            run_id,
        }
    }

    /// Waits for a delivery that can be claimed and returns it, without claiming it. Another worker may be first.
    ///
    /// # Errors
    ///
    /// ACTOR_LOST when the engine closes.
    pub async fn next_delivery(&self) -> Result<Delivery, Error> {
        let mut states = self.engine.watch(&self.mission_id, &self.run_id).await?;
        loop {
            let wait_ms = {
                let state = states.borrow_and_update();
                let now_ms = self.engine.core().now_ms().max(state.last_ms);
                if let Some(delivery) = claimable(&state, now_ms) {
                    return Ok(delivery.clone());
                }
                lease_end_ms(&state, now_ms).map(|end_ms| end_ms.saturating_sub(now_ms))
            };
            let changed = states.changed();
            // A lease ends without an event; the port's clock tells when, and is asked again every so often.
            let changed = match wait_ms {
                None => changed.await,
                Some(wait_ms) => {
                    let pause = Duration::from_millis(wait_ms.clamp(1, LEASE_LOOK_MS));
                    match tokio::time::timeout(pause, changed).await {
                        Ok(changed) => changed,
                        Err(_) if self.engine.core().is_closing() => return Err(closing()),
                        Err(_) => Ok(()),
                    }
                }
            };
            changed.map_err(|_| actor_lost())?;
        }
    }

    /// Claims a delivery for validation. A claim permits nothing else (HD-02.3).
    ///
    /// # Errors
    ///
    /// The first stage's code that refuses, such as DELIVERY_STATE or HOLD_ACTIVE.
    pub async fn claim(
        &self,
        request_id: &RequestId,
        delivery_id: &DeliveryId,
        lease_ms: Option<DecPlus>,
    ) -> Result<Claimed, Error> {
        let body = Body::ClaimDelivery(ClaimDelivery {
            delivery_id: delivery_id.clone(),
            lease_ms,
        });
        self.engine
            .submit_claim(
                &self.capability,
                &self.request(request_id, Intent::Command { body }),
            )
            .await
    }

    /// Acknowledges receipt; the owner verifies the material itself (HD-03.3).
    ///
    /// # Errors
    ///
    /// The first stage's code that refuses, such as STALE_OWNER, CLAIM_EXPIRED or ARTIFACT_MISMATCH.
    pub async fn acknowledge(
        &self,
        request_id: &RequestId,
        delivery_id: &DeliveryId,
        handoff: &HandoffRef,
        token: &ClaimToken,
        generation: DecPlus,
    ) -> Result<Response, Error> {
        let body = Body::AcknowledgeDelivery(AcknowledgeDelivery {
            delivery_id: delivery_id.clone(),
            handoff: handoff.clone(),
            claim_token: token.fingerprint(),
            generation,
        });
        self.claimed(request_id, body, token).await
    }

    /// Gives a claim back.
    ///
    /// # Errors
    ///
    /// The first stage's code that refuses, such as STALE_OWNER or CLAIM_EXPIRED.
    pub async fn release(
        &self,
        request_id: &RequestId,
        delivery_id: &DeliveryId,
        token: &ClaimToken,
        generation: DecPlus,
    ) -> Result<Response, Error> {
        let body = Body::ReleaseDelivery(ReleaseDelivery {
            delivery_id: delivery_id.clone(),
            claim_token: token.fingerprint(),
            generation,
        });
        self.claimed(request_id, body, token).await
    }

    /// Admits a node with all its acknowledged inputs. `draft` proposes the effect of a TASK node; it counts only
    /// if the host's authorizer stands for it (HD-03.12).
    ///
    /// # Errors
    ///
    /// The first stage's code that refuses, such as INPUT_SET_CONFLICT or BUDGET_EXCEEDED.
    pub async fn admit(
        &self,
        request_id: &RequestId,
        node_id: &NodeId,
        draft: Option<Draft>,
    ) -> Result<Response, Error> {
        let admission_ref = draft.as_ref().map(|draft| draft.admission_ref.clone());
        let intent = Intent::Admit(AdmitIntent {
            node_id: node_id.clone(),
            admission_ref,
        });
        let request = self.request(request_id, intent);
        match draft {
            Some(draft) => {
                self.engine
                    .submit_admission(&self.capability, &request, draft)
                    .await
            }
            None => self.engine.submit(&self.capability, &request).await,
        }
    }

    /// Makes the node's prepared attempt DISPATCHED. Only a response with an event permits the effect (FV-EFF.6).
    ///
    /// # Errors
    ///
    /// The first stage's code that refuses, such as HOLD_ACTIVE or APPROVAL_STALE.
    pub async fn dispatch(
        &self,
        request_id: &RequestId,
        node_id: &NodeId,
    ) -> Result<Response, Error> {
        let intent = Intent::DispatchNode {
            node_id: node_id.clone(),
        };
        self.engine
            .submit(&self.capability, &self.request(request_id, intent))
            .await
    }

    /// Takes several steps as one, all or nothing: a claim with its acknowledgement, the admission and the dispatch; or
    /// a settlement and the boundary behind it (T-82). A settlement is kept though a later step is refused.
    ///
    /// # Errors
    ///
    /// The refusal of the first step that is refused, with its number in the detail `step`; as for
    /// [`Engine::submit_sequence`].
    pub async fn sequence(
        &self,
        request_id: &RequestId,
        steps: Vec<SequenceStep>,
    ) -> Result<Sequenced, Error> {
        let request = SequenceRequest {
            mission_id: self.mission_id.clone(),
            run_id: self.run_id.clone(),
            request_id: request_id.clone(),
            steps,
        };
        self.engine
            .submit_sequence(&self.capability, &request)
            .await
    }

    /// Settles an attempt.
    ///
    /// # Errors
    ///
    /// The first stage's code that refuses, such as EVIDENCE_INVALID.
    pub async fn settle(
        &self,
        request_id: &RequestId,
        attempt_id: &AttemptId,
        outcome: SettledOutcome,
        actual: Dec,
        evidence: Vec<EvidenceId>,
    ) -> Result<Response, Error> {
        let (run_id, attempt_id) = (self.run_id.clone(), attempt_id.clone());
        self.command(
            request_id,
            Body::Settle(Settle {
                run_id,
                attempt_id,
                outcome,
                actual,
                evidence,
            }),
        )
        .await
    }

    /// Commits a node's boundary; the owner fills in basis, recipients and controls (HC-ENV.5).
    ///
    /// # Errors
    ///
    /// The first stage's code that refuses, such as BASIS_STALE or ARTIFACT_UNAVAILABLE.
    pub async fn commit_boundary(
        &self,
        request_id: &RequestId,
        boundary: BoundaryIntent,
    ) -> Result<Response, Error> {
        self.engine
            .submit(
                &self.capability,
                &self.request(request_id, Intent::Boundary(boundary)),
            )
            .await
    }

    /// Says what became of an attempt, with no claim to own the run: whoever owns it now records it as evidence and
    /// settles under its own epoch, if policy allows this principal to (T-18).
    ///
    /// # Errors
    ///
    /// AUTHORIZATION_DENIED for whoever may not settle, and nothing is stored then; NOT_FOUND for an attempt of another
    /// run; BUSY where the run's mailbox is full; else the refusal of the settlement.
    pub async fn report_outcome(
        &self,
        attempt_id: &AttemptId,
        report: EffectReport,
    ) -> Result<(), Error> {
        self.capability.authenticated()?;
        let subject = Subject::run(self.mission_id.clone(), self.run_id.clone());
        effects::deliver(
            self.engine.core(),
            &subject,
            self.capability.clone(),
            attempt_id,
            report,
        )
        .await
    }

    async fn command(&self, request_id: &RequestId, body: Body) -> Result<Response, Error> {
        self.engine
            .submit(
                &self.capability,
                &self.request(request_id, Intent::Command { body }),
            )
            .await
    }

    /// A command of who holds a claim.
    async fn claimed(
        &self,
        request_id: &RequestId,
        body: Body,
        token: &ClaimToken,
    ) -> Result<Response, Error> {
        let request = self.request(request_id, Intent::Command { body });
        self.engine
            .submit_with_token(&self.capability, &request, token)
            .await
    }

    fn request(&self, request_id: &RequestId, intent: Intent) -> IntentRequest {
        IntentRequest {
            mission_id: self.mission_id.clone(),
            run_id: self.run_id.clone(),
            request_id: request_id.clone(),
            intent,
        }
    }
}

/// When the next lease of a claimed delivery ends, UTC milliseconds; none where none is live.
fn lease_end_ms(state: &RunState, now_ms: u64) -> Option<u64> {
    let claimed = state.deliveries.values().map(|delivery| &delivery.record);
    claimed
        .filter(|delivery| delivery.state == DeliveryState::Claimed)
        .filter_map(|delivery| delivery.claim.as_ref())
        .map(|claim| claim.expires_at_ms.get())
        .filter(|end_ms| *end_ms > now_ms)
        .min()
}

/// The first delivery, in the order of ids, that somebody may claim now: no hold covers the node that it goes to.
fn claimable(state: &RunState, now_ms: u64) -> Option<&Delivery> {
    let open = |delivery: &Delivery| match delivery.state {
        DeliveryState::Pending => true,
        DeliveryState::Claimed => delivery
            .claim
            .as_ref()
            .is_some_and(|claim| now_ms >= claim.expires_at_ms.get()),
        _ => false,
    };
    state
        .deliveries
        .values()
        .map(|delivery| &delivery.record)
        .find(|delivery| open(delivery) && !is_held(state, &delivery.recipient.node_id))
}

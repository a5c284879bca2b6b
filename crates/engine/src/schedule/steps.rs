//! The steps that need no program: receipts, dispatch, look-ups, returns, lost reads.
//!
//! Invariant: each is one or two ordinary commands of the engine; an adapter starts only behind a durable DISPATCHED
//! (FV-EFF.1). Called by the scheduler.

use std::sync::Arc;

use aiws::decimal::{Dec, DecPlus};
use aiws::error::{Code, Error};
use aiws::id::{AttemptId, DeliveryId, NodeId};
use aiws::object;
use aiws::record::SettledOutcome;
use praxis_model::command::{AcknowledgeDelivery, Body, ClaimDelivery, Intent, Reconcile, Settle};
use praxis_model::plan::Step;
use praxis_model::run::RunState;
use ractor::ActorRef;

use super::run_of;
use crate::adapter::{Adapter, EffectOutcome, EffectReport};
use crate::capability::{CLASS_LOST_READ_RULE, CLASS_SCHEDULER, Capability};
use crate::effects;
use crate::message::RunMessage;
use crate::run_actor::{RunOwner, own_request};

impl RunOwner {
    /// Claims and acknowledges a delivery in the engine's own name.
    pub(super) async fn receive(
        &mut self,
        state: &Arc<RunState>,
        delivery_id: &DeliveryId,
    ) -> Result<(), Error> {
        let body = Body::ClaimDelivery(ClaimDelivery {
            delivery_id: delivery_id.clone(),
            lease_ms: None,
        });
        let request = own_request(
            Capability::system(CLASS_SCHEDULER)?,
            Intent::Command { body },
        )?;
        let token = match self.live_token(state, delivery_id, &request)? {
            Some(token) => Some(token),
            None => self.take(&request).await?.token,
        };
        let state = self.current().await?;
        let (Some(token), Some(delivery)) = (token, state.deliveries.get(delivery_id)) else {
            return Err(Error::new(
                Code::DeliveryState,
                "expected a live claim of the engine, found none",
            ));
        };
        let body = Body::AcknowledgeDelivery(AcknowledgeDelivery {
            delivery_id: delivery_id.clone(),
            handoff: delivery.record.handoff.clone(),
            claim_token: token.fingerprint(),
            generation: DecPlus::new(Dec::from(delivery.record.generation))?,
        });
        self.own(CLASS_SCHEDULER, Intent::Command { body })
            .await
            .map(drop)
    }

    /// Makes the attempt's DISPATCHED durable, then starts its worker (FV-EFF.1).
    pub(super) async fn dispatch(
        &mut self,
        node_id: &NodeId,
        attempt_id: &AttemptId,
        adapter: Arc<dyn Adapter>,
    ) -> Result<(), Error> {
        let done = self
            .own(
                CLASS_SCHEDULER,
                Intent::DispatchNode {
                    node_id: node_id.clone(),
                },
            )
            .await?;
        let state = self.current().await?;
        let Some(call) = effects::call_of(&self.core, &state, attempt_id, &done.bytes) else {
            // Nothing was called, and nothing will be: that is an outcome, and a known one.
            let evidence = object! { "called": false };
            let report = EffectReport {
                outcome: EffectOutcome::NotApplied,
                evidence,
            };
            return self
                .report(&Capability::system(CLASS_SCHEDULER)?, attempt_id, &report)
                .await;
        };
        effects::start(
            &self.core,
            &self.subject,
            Arc::clone(&self.kept.fence),
            adapter,
            call,
        );
        Ok(())
    }

    pub(super) fn look_up(
        &mut self,
        state: &Arc<RunState>,
        attempt_id: &AttemptId,
        step: &Step,
        myself: &ActorRef<RunMessage>,
    ) -> Result<(), Error> {
        let call = effects::call_of(&self.core, state, attempt_id, &Default::default());
        let Some(mut call) = call else {
            return Err(Error::new(
                Code::NotFound,
                "expected the attempt to belong to a node, found none",
            ));
        };
        call.inputs.clear();
        let Some(adapter) = self.adapter_of(&call.operation_id) else {
            self.ask_program(state, step, &call.node_id, myself);
            return Ok(());
        };
        self.schedule.looked_up.insert(attempt_id.clone(), false);
        self.schedule.again = true;
        effects::look_up(&self.core, &self.subject, adapter?, call);
        Ok(())
    }

    pub(super) async fn settle(
        &mut self,
        state: &RunState,
        attempt_id: &AttemptId,
        outcome: SettledOutcome,
    ) -> Result<(), Error> {
        let body = Body::Settle(Settle {
            run_id: run_of(state)?,
            attempt_id: attempt_id.clone(),
            outcome,
            actual: Dec::ZERO,
            evidence: Vec::new(),
        });
        self.own(CLASS_SCHEDULER, Intent::Command { body })
            .await
            .map(drop)
    }

    /// The contract's rule: not applied, the full reservation spent, never refunded (T-20).
    pub(super) async fn settle_lost_read(
        &mut self,
        state: &RunState,
        attempt_id: &AttemptId,
    ) -> Result<(), Error> {
        let reserved = state
            .attempts
            .get(attempt_id)
            .map(|attempt| attempt.reserved)
            .unwrap_or_default();
        let body = Body::Reconcile(Reconcile {
            run_id: run_of(state)?,
            attempt_id: attempt_id.clone(),
            outcome: SettledOutcome::ConfirmedNotApplied,
            actual: reserved,
            evidence: Vec::new(),
        });
        self.own(CLASS_LOST_READ_RULE, Intent::Command { body })
            .await
            .map(drop)
    }
}

//! The steps that need no program: look-ups, returns, lost reads.
//!
//! Invariant: each is one ordinary command of the engine or a question without an effect. Called by the scheduler.

use std::sync::Arc;

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::id::AttemptId;
use aiws::record::SettledOutcome;
use praxis_model::command::{Body, Intent, Reconcile, Settle};
use praxis_model::plan::Step;
use praxis_model::run::RunState;
use ractor::ActorRef;

use super::run_of;
use crate::capability::{CLASS_LOST_READ_RULE, CLASS_SCHEDULER};
use crate::effects;
use crate::message::RunMessage;
use crate::run_actor::RunOwner;

impl RunOwner {
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

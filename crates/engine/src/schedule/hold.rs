//! What follows when a step is refused or a run's owners keep failing: it waits, and a gate may close.
//!
//! Invariant: a refused step is not tried again before the run's state or a register changes; one hold per cause, not
//! one per try (T-21, T-45). Called by the scheduler and by the supervisor's message.

use std::sync::Arc;

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::id::HoldId;
use aiws::record::{HoldDecision, HoldReason, HoldScope, HoldScopeKind, HoldState, Ref};
use praxis_model::command::{Body, HoldProposal, Intent, PlaceHold};
use praxis_model::plan::Step;
use praxis_model::run::RunState;
use praxis_model::stream::derived;

use super::run_of;
use crate::capability::{CLASS_SCHEDULER, Capability};
use crate::limits::STALLED_STEPS;
use crate::run_actor::RunOwner;

impl RunOwner {
    /// Keeps one RESTART hold open over a run whose owners fail too often (T-21).
    pub(crate) async fn park(&mut self) {
        let Ok(state) = self.current().await else {
            return;
        };
        if state.lifecycle.is_terminal() {
            return;
        }
        let mut closed = 0;
        let hold_id = loop {
            let id = HoldId::from(derived(&self.stream, 0, "restart-hold", closed));
            match state.holds.get(&id).map(|hold| hold.state) {
                None => break id,
                Some(HoldState::Open) => return,
                Some(_) => closed += 1,
            }
        };
        let placed = self.hold(&state, hold_id, HoldReason::Restart).await;
        if let Err(error) = placed {
            tracing::error!(code = error.code().name(), message = %error.message, "the restart hold was refused");
        }
    }

    /// A refused step waits; a bound that was reached or material that is gone closes a gate besides (T-45).
    pub(super) async fn stall(&mut self, state: &Arc<RunState>, step: Step, error: &Error) {
        tracing::info!(?step, code = error.code().name(), message = %error.message, "a step was refused");
        let launches = matches!(
            step,
            Step::Receive { .. } | Step::Admit { .. } | Step::Dispatch { .. } | Step::Retry { .. }
        );
        if error.code() == Code::Busy {
            // The journal's queue is full: the step stays first, behind what waits in the mailbox meanwhile.
            self.schedule.again = true;
            return tokio::task::yield_now().await;
        }
        self.remember(step);
        let reason = match error.code() {
            Code::BudgetExceeded => HoldReason::CostLimit,
            Code::DeadlinePassed => HoldReason::TimeLimit,
            Code::ArtifactUnavailable | Code::ArtifactMismatch => HoldReason::Artifact,
            _ => return,
        };
        if !launches {
            return;
        }
        let hold_id = HoldId::from(derived(
            &self.stream,
            state.head.revision.get() + 1,
            "hold",
            0,
        ));
        if let Err(error) = self.hold(state, hold_id, reason).await {
            tracing::warn!(code = error.code().name(), message = %error.message, "a hold was refused");
        }
    }

    pub(super) fn remember(&mut self, step: Step) {
        self.schedule.again = true;
        if self.schedule.stalled.len() < STALLED_STEPS {
            self.schedule.stalled.push(step);
        }
    }

    pub(super) async fn hold(
        &mut self,
        state: &RunState,
        hold_id: HoldId,
        reason: HoldReason,
    ) -> Result<(), Error> {
        let run = run_of(state)?;
        let bound = state.config.scope_bindings.iter().find(|binding| {
            binding.kind == HoldScopeKind::Run && binding.scope_ref.id.as_str() == run.as_str()
        });
        let one = Dec::from_u64(1);
        let scope_ref = bound.map_or_else(
            || Ref {
                id: run.as_id(),
                revision: one,
            },
            |found| found.scope_ref.clone(),
        );
        let proposal = HoldProposal {
            hold_id,
            scope: HoldScope {
                kind: HoldScopeKind::Run,
                scope_ref,
                resolver_revision: bound.map_or(one, |found| found.resolver_revision),
            },
            reason,
            owner: Capability::system(CLASS_SCHEDULER)?.actor_id().as_id(),
            blockers: Vec::new(),
            allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
            stop_disposition: Vec::new(),
        };
        let body = Body::PlaceHold(PlaceHold { hold: proposal });
        self.own(CLASS_SCHEDULER, Intent::Command { body })
            .await
            .map(drop)
    }
}

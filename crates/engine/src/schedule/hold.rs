//! What follows when a step is refused or a run's owners keep failing: it waits, and a gate may close.
//!
//! Invariant: a refused step is not tried again before the run's state or a register changes, one that the store could
//! not take only after a pause; one hold per cause, not one per try (T-21, T-45). Called by the scheduler and by the supervisor's message.

use std::sync::Arc;
use std::time::Duration;

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::id::{HoldId, Id, NodeId};
use aiws::json::Value;
use aiws::record::{Blocker, HoldDecision, HoldReason, HoldScope, HoldScopeKind, HoldState, Ref};
use praxis_model::command::{Body, HoldProposal, Intent, PlaceHold};
use praxis_model::decide::needed_units;
use praxis_model::guard::Guard;
use praxis_model::plan::Step;
use praxis_model::run::RunState;
use praxis_model::stream::derived;

use super::run_of;
use crate::capability::{CLASS_SCHEDULER, Capability};
use crate::error::may_be_sent_again;
use crate::limits::{STALLED_STEPS, STORE_PAUSE_MS};
use crate::message::{Request, RunMessage, What};
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
        let placed = self
            .hold(&state, hold_id, HoldReason::Restart, Vec::new())
            .await;
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
        if error.details.get("requirement").and_then(Value::as_str)
            == Some(Guard::ClockTrusted.id())
        {
            return self.after_a_step_back(state).await;
        }
        self.remember(step.clone());
        if may_be_sent_again(error) {
            return self.look_again_later();
        }
        let reason = match error.code() {
            Code::BudgetExceeded => HoldReason::CostLimit,
            Code::DeadlinePassed => HoldReason::TimeLimit,
            Code::ArtifactUnavailable | Code::ArtifactMismatch => HoldReason::Artifact,
            _ => return,
        };
        if !launches {
            return;
        }
        let blockers = named(&step, reason, error);
        let hold_id = self.next_hold(state);
        if let Err(error) = self.hold(state, hold_id, reason, blockers).await {
            tracing::warn!(code = error.code().name(), message = %error.message, "a hold was refused");
        }
    }

    /// The claims that are live in the run are in doubt, and taking it over ends them (T-29). A claim that no log has is
    /// in nobody's hand: its step is planned anew by the clock as it is now, and nobody is deposed for it.
    async fn after_a_step_back(&mut self, state: &RunState) {
        if state.live_claim(self.core.now_ms()).is_none() {
            self.schedule.again = true;
            return;
        }
        let reason = "the clock stepped back under a live claim".to_owned();
        self.recover(state.epoch, reason).await
    }

    /// Nothing but a deadline that was reached keeps the run's work from going on: the gate closes and says so.
    pub(super) async fn hold_for_time(
        &mut self,
        state: &RunState,
        node_id: Option<&NodeId>,
    ) -> Result<(), Error> {
        let reason = HoldReason::TimeLimit;
        let blockers = node_id.map(|node_id| blocker(reason, node_id.as_id()));
        let hold_id = self.next_hold(state);
        self.hold(state, hold_id, reason, blockers.into_iter().collect())
            .await
    }

    /// What a request needed is gone or altered: the request was refused, and the host wants the run held for it (T-45).
    pub(crate) async fn hold_for_material(&mut self, request: &Request, error: &Error) {
        let lost = matches!(
            error.code(),
            Code::ArtifactUnavailable | Code::ArtifactMismatch
        );
        if !lost || !self.core.hold_lost_material || !consumes(&request.what) {
            return;
        }
        let Ok(state) = self.current().await else {
            return;
        };
        let hold_id = self.next_hold(&state);
        let placed = self
            .hold(&state, hold_id, HoldReason::Artifact, Vec::new())
            .await;
        if let Err(error) = placed {
            tracing::warn!(code = error.code().name(), message = %error.message, "a hold was refused");
        }
    }

    /// The id of a hold that the next event opens.
    fn next_hold(&self, state: &RunState) -> HoldId {
        let revision = state.head.revision.get() + 1;
        HoldId::from(derived(&self.stream, revision, "hold", 0))
    }

    /// The store failed for a moment, and nothing else may ever happen to the run: one tick later all steps are looked at.
    fn look_again_later(&mut self) {
        let Some(entry) = self.core.directory.run(&self.subject) else {
            return;
        };
        if std::mem::replace(&mut self.schedule.later, true) {
            return;
        }
        let owner = entry.actor;
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(STORE_PAUSE_MS)).await;
            // An owner that is gone has left nothing to look at.
            let _ = owner.cast(RunMessage::Tick { moved: true });
        });
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
        blockers: Vec<Blocker>,
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
            blockers,
            allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
            stop_disposition: Vec::new(),
        };
        let body = Body::PlaceHold(PlaceHold { hold: proposal });
        self.own(CLASS_SCHEDULER, Intent::Command { body })
            .await
            .map(drop)
    }
}

/// Whether the request takes what another node handed over. A boundary whose own artifacts are not there yet is its
/// producer's affair.
fn consumes(what: &What) -> bool {
    let body = match what {
        What::Acknowledge { .. } => return true,
        What::Strict(command) => &command.body,
        What::Intent { intent, .. } => match intent {
            Intent::Command { body } => body,
            Intent::Admit(_) | Intent::DispatchNode { .. } => return true,
            _ => return false,
        },
    };
    matches!(
        body,
        Body::AcknowledgeDelivery(_) | Body::AdmitConsumer(_) | Body::Dispatch(_)
    )
}

/// What a bound stopped: the node, and for the budget what it needs, so that a recheck asks the same question.
fn named(step: &Step, reason: HoldReason, error: &Error) -> Vec<Blocker> {
    let node = match step {
        Step::Admit { node_id } | Step::Dispatch { node_id, .. } => Some(node_id),
        _ => None,
    };
    match reason {
        HoldReason::TimeLimit => {
            let nodes = node.map(|node_id| blocker(reason, node_id.as_id()));
            nodes.into_iter().collect()
        }
        HoldReason::CostLimit => {
            let amount = error.details.get("amount").and_then(Value::as_str);
            let needed = amount
                .and_then(|amount| amount.parse().ok())
                .and_then(|amount| needed_units(amount).ok());
            let nodes = node.map(|node_id| blocker(reason, node_id.as_id()));
            nodes.into_iter().chain(needed).collect()
        }
        _ => Vec::new(),
    }
}

fn blocker(kind: HoldReason, subject_id: Id) -> Blocker {
    Blocker {
        kind,
        subject_id,
        evidence: Vec::new(),
    }
}

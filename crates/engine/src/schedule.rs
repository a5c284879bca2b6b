//! The scheduler: what a run that a program drives does next, one step at a time.
//!
//! Invariant: it looks only at `plan`, every step is an ordinary command under every guard, and a step that was
//! refused waits until the run's state or a register changes: it never spins. Part of the run's owner (hop 1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aiws::decimal::{Dec, DecPlus};
use aiws::error::{Code, Error};
use aiws::id::{AttemptId, DeliveryId, HoldId, NodeId, OperationId};
use aiws::record::{
    AdmissionProposal, HoldDecision, HoldReason, HoldScope, HoldScopeKind, HoldState, Node, Ref,
    SettledOutcome,
};
use praxis_model::command::{
    AcknowledgeDelivery, AdmitIntent, Body, ClaimDelivery, CompleteRun, HoldProposal, Intent,
    PlaceHold, Reconcile, Settle,
};
use praxis_model::plan::{self, Step};
use praxis_model::run::RunState;
use praxis_model::stream::derived;
use praxis_model::table::{self, StreamKind};
use ractor::ActorRef;

use crate::adapter::{Adapter, EffectOutcome, Lookup};
use crate::ask;
use crate::capability::{CLASS_LOOKUP, CLASS_LOST_READ_RULE, CLASS_SCHEDULER, Capability};
use crate::effects;
use crate::limits::STALLED_STEPS;
use crate::message::{Planned, RunMessage, What};
use crate::ports::Draft;
use crate::program::{Conclusion, EffectPlan};
use crate::run_actor::{RunOwner, own_request};

/// What the scheduler remembers between two steps. None of it is needed for what is right, only for what is quick.
#[derive(Default)]
pub(crate) struct Schedule {
    /// Steps that were refused or wait, at this revision of the run.
    stalled: Vec<Step>,
    /// The revision that was last looked at.
    seen_revision: Option<u64>,
    /// The step that the program is being asked about.
    asking: Option<Step>,
    /// Adapters of operations that this process admitted or asked about.
    adapters: BTreeMap<OperationId, String>,
    /// Attempts that were looked up in this epoch.
    looked_up: BTreeSet<AttemptId>,
    /// A tick is in the mailbox.
    ticking: bool,
    /// The last tick left something to try at the same revision.
    again: bool,
}

impl Schedule {
    /// After a recovery everything is looked at anew.
    pub(crate) fn forget(&mut self) {
        let ticking = self.ticking;
        *self = Self {
            ticking,
            ..Self::default()
        };
    }
}

impl RunOwner {
    /// Puts a tick in the own mailbox, behind what waits there, if there may be something to do.
    pub(crate) fn reschedule(&mut self, myself: &ActorRef<RunMessage>) {
        let Some(state) = self.in_memory() else {
            return;
        };
        let fresh =
            self.schedule.seen_revision != Some(state.head.revision.get()) || self.schedule.again;
        if !fresh
            || self.schedule.ticking
            || self.schedule.asking.is_some()
            || !self.may_schedule(&state)
        {
            return;
        }
        self.schedule.ticking = myself.cast(RunMessage::Tick { moved: false }).is_ok();
    }

    /// Does the first step of the plan that is neither stalled nor in hand.
    pub(crate) async fn tick(&mut self, moved: bool, myself: &ActorRef<RunMessage>) {
        // A notice from outside is no tick of our own, but it does for one.
        self.schedule.ticking = false;
        self.schedule.again = false;
        let Ok(state) = self.current().await else {
            return;
        };
        if moved || self.schedule.seen_revision != Some(state.head.revision.get()) {
            self.schedule.stalled.clear();
        }
        self.schedule.seen_revision = Some(state.head.revision.get());
        if self.schedule.asking.is_some() || !self.may_schedule(&state) {
            return;
        }
        let Some(step) = self.next_step(&state) else {
            return;
        };
        if let Err(error) = self.perform(&state, &step, myself).await {
            self.stall(&state, step, &error).await;
        }
    }

    /// The program's answer for a step, used only if the plan still has that step.
    pub(crate) async fn planned(&mut self, step: Step, answer: Result<Planned, Error>) {
        if self.schedule.asking.as_ref() == Some(&step) {
            self.schedule.asking = None;
        }
        self.schedule.again = true;
        let Ok(state) = self.current().await else {
            return;
        };
        if !self.may_schedule(&state) || !self.plan(&state).contains(&step) {
            return;
        }
        let done = match answer {
            Ok(Planned::Effect(effect)) => self.with_effect(&state, &step, effect).await,
            Ok(Planned::Conclusion(conclusion)) => self.with_conclusion(&step, conclusion).await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            self.stall(&state, step, &error).await;
        }
    }

    /// A look-up's answer: a conclusive one reconciles, anything else waits for evidence or a person (T-20).
    pub(crate) async fn looked_up(&mut self, attempt_id: &AttemptId, found: Lookup) {
        self.schedule.again = true;
        match found {
            Lookup::Conclusive(report)
                if !matches!(report.outcome, EffectOutcome::Uncertain { .. }) =>
            {
                let recorded = match Capability::system(CLASS_LOOKUP) {
                    Ok(capability) => self.report(&capability, attempt_id, &report).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = recorded {
                    tracing::warn!(attempt = %attempt_id, code = error.code().name(), "a look-up was not recorded");
                }
            }
            Lookup::Conclusive(_) => {
                tracing::info!(attempt = %attempt_id, "a look-up was uncertain itself")
            }
            Lookup::Inconclusive { why } => {
                tracing::info!(attempt = %attempt_id, why, "a look-up found nothing")
            }
        }
    }

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

    fn may_schedule(&self, state: &RunState) -> bool {
        !self.core.is_draining()
            && !self.core.is_closing()
            && !self.is_blocked()
            && !state.lifecycle.is_terminal()
            && self.core.drives(state).is_some()
    }

    fn plan(&self, state: &RunState) -> Vec<Step> {
        let gates = self.core.outer_gates(&self.subject.mission_id);
        plan::plan(state, &gates, self.core.now_ms().max(state.last_ms))
    }

    fn next_step(&self, state: &RunState) -> Option<Step> {
        self.plan(state).into_iter().find(|step| {
            let in_hand = match step {
                // As long as this process has the call in flight, nothing is lost (T-18).
                Step::Lookup { attempt_id } | Step::SettleLostRead { attempt_id } => {
                    self.core.work.has(&self.subject, attempt_id)
                        || (matches!(step, Step::Lookup { .. })
                            && self.schedule.looked_up.contains(attempt_id))
                }
                _ => false,
            };
            !in_hand && !self.schedule.stalled.contains(step)
        })
    }

    async fn perform(
        &mut self,
        state: &Arc<RunState>,
        step: &Step,
        myself: &ActorRef<RunMessage>,
    ) -> Result<(), Error> {
        match step {
            Step::Receive { delivery_id } => self.receive(state, delivery_id).await,
            Step::Admit { node_id } if !node(state, node_id)?.kind.runs_work() => {
                let admit = AdmitIntent {
                    node_id: node_id.clone(),
                    admission_ref: None,
                };
                self.own(CLASS_SCHEDULER, Intent::Admit(admit))
                    .await
                    .map(drop)
            }
            Step::Admit { node_id } | Step::Conclude { node_id } => {
                self.ask_program(state, step, node_id, myself);
                Ok(())
            }
            Step::Dispatch {
                node_id,
                operation_id,
                attempt_id,
            } => match self.adapter_of(operation_id) {
                Some(adapter) => self.dispatch(node_id, attempt_id, adapter?).await,
                None => {
                    self.ask_program(state, step, node_id, myself);
                    Ok(())
                }
            },
            Step::Lookup { attempt_id } => self.look_up(state, attempt_id, step, myself),
            Step::ReturnPrepared { attempt_id } => {
                // The ledger itself shows that it was never dispatched (T-19).
                self.settle(state, attempt_id, SettledOutcome::ConfirmedNotApplied)
                    .await
            }
            Step::Retry { operation_id } => {
                let retry = Intent::RetryOperation {
                    operation_id: operation_id.clone(),
                };
                self.own(CLASS_SCHEDULER, retry).await.map(drop)
            }
            Step::SettleLostRead { attempt_id } => self.settle_lost_read(state, attempt_id).await,
            Step::CompleteRun => {
                let body = Body::CompleteRun(CompleteRun {
                    run_id: run_of(state)?,
                    owner_epoch: Dec::from_u64(state.epoch),
                });
                self.own(CLASS_SCHEDULER, Intent::Command { body })
                    .await
                    .map(drop)
            }
            // A person asked for the cancellation and a person ends it.
            Step::FinishCancel => Err(Error::new(
                Code::HumanRequired,
                "expected a person to finish the cancellation",
            )),
        }
    }

    /// Claims and acknowledges a delivery in the engine's own name.
    async fn receive(
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
    async fn dispatch(
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
        if let Some(call) = effects::call_of(&self.core, &state, attempt_id, &done.bytes) {
            effects::start(
                &self.core,
                &self.subject,
                Arc::clone(&self.kept.fence),
                adapter,
                call,
            );
        }
        Ok(())
    }

    fn look_up(
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
        self.schedule.looked_up.insert(attempt_id.clone());
        self.schedule.again = true;
        effects::look_up(&self.core, &self.subject, adapter?, call);
        Ok(())
    }

    async fn settle(
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
    async fn settle_lost_read(
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

    fn ask_program(
        &mut self,
        state: &Arc<RunState>,
        step: &Step,
        node_id: &NodeId,
        myself: &ActorRef<RunMessage>,
    ) {
        let (Some(program), Ok(node)) = (self.core.drives(state), node(state, node_id)) else {
            return;
        };
        self.schedule.asking = Some(step.clone());
        ask::program(
            &self.core,
            program,
            Arc::clone(state),
            node.clone(),
            step.clone(),
            myself.clone(),
        );
    }

    /// Goes on with a step for which the program named the effect.
    async fn with_effect(
        &mut self,
        state: &Arc<RunState>,
        step: &Step,
        effect: EffectPlan,
    ) -> Result<(), Error> {
        let adapter = self.registered(&effect.adapter)?;
        match step {
            Step::Admit { node_id } => self.admit(state, node_id, &adapter, effect).await,
            Step::Dispatch {
                node_id,
                operation_id,
                attempt_id,
            } => {
                self.schedule
                    .adapters
                    .insert(operation_id.clone(), effect.adapter);
                self.dispatch(node_id, attempt_id, adapter).await
            }
            Step::Lookup { attempt_id } => {
                if let Some(attempt) = state.attempts.get(attempt_id) {
                    self.schedule
                        .adapters
                        .insert(attempt.operation_id.clone(), effect.adapter);
                }
                // The next tick finds the step again, and its adapter now.
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn admit(
        &mut self,
        state: &Arc<RunState>,
        node_id: &NodeId,
        adapter: &Arc<dyn Adapter>,
        effect: EffectPlan,
    ) -> Result<(), Error> {
        let revision = state.head.revision.get() + 1;
        let operation_id = OperationId::from(derived(&self.stream, revision, "operation", 0));
        let admission_ref = derived(&self.stream, revision, "admission", 0);
        let proposal = AdmissionProposal {
            operation_id: operation_id.clone(),
            attempt_id: AttemptId::from(derived(&self.stream, revision, "attempt", 0)),
            fingerprint: aiws::canonical::digest_of(&effect.action)?,
            action: effect.action,
            effect: adapter.class(),
            grant_id: effect.grant_id,
            approval_id: effect.approval_id,
            amount: effect.amount,
            limit_scopes: Vec::new(),
        };
        let admit = AdmitIntent {
            node_id: node_id.clone(),
            admission_ref: Some(admission_ref.clone()),
        };
        let mut request = own_request(Capability::system(CLASS_SCHEDULER)?, Intent::Admit(admit))?;
        if let What::Intent { draft, .. } = &mut request.what {
            *draft = Some(Draft {
                admission_ref,
                proposal,
            });
        }
        self.take(&request).await?;
        self.schedule.adapters.insert(operation_id, effect.adapter);
        Ok(())
    }

    /// Goes on with a node for which the program said what follows.
    async fn with_conclusion(&mut self, step: &Step, conclusion: Conclusion) -> Result<(), Error> {
        match conclusion {
            Conclusion::Boundary(boundary) => self
                .own(CLASS_SCHEDULER, Intent::Boundary(boundary))
                .await
                .map(drop),
            Conclusion::Command(body) if table::row(body.kind()).stream == StreamKind::Mission => {
                let request = own_request(
                    Capability::system(CLASS_SCHEDULER)?,
                    Intent::Command { body },
                )?;
                ask::mission_command(&self.core, &self.subject.mission_id, request)
                    .await
                    .map(drop)
            }
            Conclusion::Command(body) => self
                .own(CLASS_SCHEDULER, Intent::Command { body })
                .await
                .map(drop),
            Conclusion::Wait { what } => {
                tracing::debug!(what, "a node waits");
                self.remember(step.clone());
                Ok(())
            }
        }
    }

    /// A refused step waits; a bound that was reached or material that is gone closes a gate besides (T-45).
    async fn stall(&mut self, state: &Arc<RunState>, step: Step, error: &Error) {
        tracing::info!(?step, code = error.code().name(), message = %error.message, "a step was refused");
        let launches = matches!(
            step,
            Step::Receive { .. } | Step::Admit { .. } | Step::Dispatch { .. } | Step::Retry { .. }
        );
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

    fn remember(&mut self, step: Step) {
        self.schedule.again = true;
        if self.schedule.stalled.len() < STALLED_STEPS {
            self.schedule.stalled.push(step);
        }
    }

    async fn hold(
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

    /// The adapter of an operation that this process knows; none where the program has to be asked.
    fn adapter_of(&self, operation: &OperationId) -> Option<Result<Arc<dyn Adapter>, Error>> {
        self.schedule
            .adapters
            .get(operation)
            .map(|name| self.registered(name))
    }

    fn registered(&self, name: &str) -> Result<Arc<dyn Adapter>, Error> {
        let adapter = self.core.adapters.get(name).cloned();
        adapter.ok_or_else(|| {
            let known = self
                .core
                .adapters
                .keys()
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            Error::new(
                Code::NotFound,
                format!("expected a registered adapter ({known}), found {name:?}"),
            )
        })
    }
}

fn node<'a>(state: &'a RunState, node_id: &NodeId) -> Result<&'a Node, Error> {
    let graph = state.graph.as_deref();
    let found = graph.and_then(|graph| graph.nodes.iter().find(|node| node.id == *node_id));
    found.ok_or_else(|| {
        Error::new(
            Code::NotFound,
            format!("expected a node of the graph, found {node_id}"),
        )
    })
}

fn run_of(state: &RunState) -> Result<aiws::id::RunId, Error> {
    state
        .subject
        .run_id
        .clone()
        .ok_or_else(|| Error::new(Code::InternalStore, "expected a run's state, found none"))
}

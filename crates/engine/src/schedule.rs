//! The scheduler: what a run that a program drives does next, one step at a time.
//!
//! Invariant: it looks only at `plan`, every step is one or more ordinary commands under every guard, and a step that was
//! refused waits until the run's state or a register changes, one that the store could not take for a pause: it never
//! spins. Part of the run's owner (hop 1).

mod ahead;
mod hold;
mod launch;
mod program;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::id::{AttemptId, NodeId, OperationId};
use aiws::record::{Node, SettledOutcome};
use praxis_model::command::{AdmitIntent, Body, CompleteRun, Intent};
use praxis_model::plan::{self, Step};
use praxis_model::run::RunState;
use ractor::ActorRef;

use crate::adapter::{EffectOutcome, Lookup};
use crate::capability::{CLASS_LOOKUP, CLASS_SCHEDULER, Capability};
use crate::error::may_be_sent_again;
use crate::message::{Planned, RunMessage, Taken};
use crate::run_actor::RunOwner;
use ahead::Ahead;

/// What the scheduler remembers between two steps. None of it is needed for what is right, only for what is quick.
#[derive(Default)]
pub(crate) struct Schedule {
    /// Steps that were refused or wait, at this revision of the run.
    stalled: Vec<Step>,
    /// The revision that was last looked at.
    seen_revision: Option<u64>,
    /// The step that the program is being asked about.
    asking: Option<Step>,
    /// An outcome that waits for the program's word of what follows.
    ahead: Option<Ahead>,
    /// Adapters of operations that this process admitted or asked about.
    adapters: BTreeMap<OperationId, String>,
    /// Attempts that were looked up in this epoch, and whether the answer was that nothing answers.
    looked_up: BTreeMap<AttemptId, bool>,
    /// A tick is in the mailbox.
    ticking: bool,
    /// The last tick left something to try at the same revision.
    again: bool,
    /// A tick comes after a pause, because the store could not take a step.
    later: bool,
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
        self.schedule.later &= !moved;
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
        let Some(answer) = self.answered_ahead(&step, answer).await else {
            return;
        };
        let Ok(state) = self.current().await else {
            return;
        };
        if !self.may_schedule(&state) || !self.plan(&state).contains(&step) {
            return;
        }
        let done = match answer {
            Ok(Planned::Effect(effect)) => self.with_effect(&state, &step, effect).await,
            Ok(Planned::Conclusion(conclusion)) => self.with_conclusion(&step, conclusion).await,
            Ok(Planned::Retry) => self.retry(&state, &step).await,
            Err(error) => match &step {
                Step::Receive { delivery_id } => self.receive_alone(&state, delivery_id).await,
                _ => Err(error),
            },
        };
        if let Err(error) = done {
            self.stall(&state, step, &error).await;
        }
    }

    /// A look-up's answer: a conclusive one reconciles, anything else waits for evidence or a person (T-20).
    pub(crate) async fn looked_up(&mut self, attempt_id: &AttemptId, found: Lookup) -> Taken {
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
                    if may_be_sent_again(&error) {
                        return Taken::Again;
                    }
                }
            }
            Lookup::Conclusive(_) => {
                tracing::info!(attempt = %attempt_id, "a look-up was uncertain itself");
                self.schedule.looked_up.insert(attempt_id.clone(), true);
            }
            Lookup::Inconclusive { .. } => {
                tracing::info!(attempt = %attempt_id, "a look-up found nothing");
                self.schedule.looked_up.insert(attempt_id.clone(), true);
            }
        }
        Taken::Done
    }

    fn may_schedule(&self, state: &RunState) -> bool {
        self.core.journal.view().read_only.is_none()
            && !self.core.is_draining()
            && !self.core.is_closing()
            && !self.is_blocked()
            && !state.lifecycle.is_terminal()
            && self.core.drives(state).is_some()
    }

    fn plan(&self, state: &RunState) -> Vec<Step> {
        let gates = self.core.outer_gates(&self.subject.mission_id);
        plan::plan(state, &gates, self.core.now_ms().max(state.last_ms))
    }

    /// The first step of the plan that is free. A receipt that may launch work lets the others go first, as the plan
    /// has receipts before launches.
    fn next_step(&self, state: &RunState) -> Option<Step> {
        let mut steps = self.free_steps(state);
        let first = steps.next()?;
        if !launch::may_launch(state, &first) {
            return Some(first);
        }
        let receives = |step: &Step| matches!(step, Step::Receive { .. });
        let quiet = steps.find(|step| receives(step) && !launch::may_launch(state, step));
        quiet.or(Some(first))
    }

    fn free_steps(&self, state: &RunState) -> impl Iterator<Item = Step> {
        self.plan(state).into_iter().filter(|step| {
            let in_hand = match step {
                // As long as this process has the call in flight, nothing is lost (T-18).
                Step::Lookup { attempt_id } | Step::SettleLostRead { attempt_id } => {
                    let answer = self.schedule.looked_up.get(attempt_id);
                    let settles = matches!(step, Step::SettleLostRead { .. });
                    self.core.work.has(&self.subject, attempt_id)
                        || answer.is_some_and(|nothing| !(settles && *nothing))
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
            Step::Receive { delivery_id } => self.receive(state, step, delivery_id, myself).await,
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
                let operation = state.operations.get(operation_id);
                match operation.and_then(|operation| operation.node_id.clone()) {
                    Some(node_id) => self.ask_program(state, step, &node_id, myself),
                    None => self.retry(state, step).await?,
                }
                Ok(())
            }
            Step::SettleLostRead { attempt_id } => {
                match self.schedule.looked_up.contains_key(attempt_id) {
                    true => self.settle_lost_read(state, attempt_id).await,
                    false => self.look_up(state, attempt_id, step, myself),
                }
            }
            Step::CompleteRun => {
                let body = Body::CompleteRun(CompleteRun {
                    run_id: run_of(state)?,
                    owner_epoch: Dec::from_u64(state.epoch),
                });
                self.own(CLASS_SCHEDULER, Intent::Command { body })
                    .await
                    .map(drop)
            }
            Step::HoldForTime { node_id } => self.hold_for_time(state, node_id.as_ref()).await,
            // A person asked for the cancellation and a person ends it.
            Step::FinishCancel => Err(Error::new(
                Code::HumanRequired,
                "expected a person to finish the cancellation",
            )),
        }
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

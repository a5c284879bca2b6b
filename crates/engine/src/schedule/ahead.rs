//! An outcome and what follows from it: settlement and boundary as one sequence, where the program says in time what
//! follows.
//!
//! Invariant: a known outcome waits for the program a bounded moment and no longer, and is recorded whatever the program
//! says; it is never lost to a boundary that is refused (T-82). Called by the run's owner.

use std::time::Duration;

use aiws::error::Error;
use aiws::id::AttemptId;
use praxis_model::command::{BoundaryIntent, Intent};
use praxis_model::event::Head;
use praxis_model::plan::Step;
use ractor::ActorRef;

use crate::adapter::EffectOutcome;
use crate::capability::CLASS_SCHEDULER;
use crate::limits::CONCLUDE_AHEAD_MS;
use crate::message::{Planned, Reported, Request, RunMessage, What};
use crate::program::Conclusion;
use crate::run_actor::{RunOwner, own_sequence};

/// A report whose attempt's node the program is being asked about, on the state that its settlement leads to.
pub(crate) struct Ahead {
    reported: Reported,
    settle: Request,
    /// Where the run stood.
    head: Head,
    /// What the program is asked about.
    step: Step,
}

impl RunOwner {
    /// Takes a worker's report: at once, or together with what the program says follows from it.
    pub(crate) async fn reported(&mut self, reported: Reported, myself: &ActorRef<RunMessage>) {
        match self.ask_ahead(&reported, myself).await {
            Some((settle, head, step)) => {
                self.schedule.ahead = Some(Ahead {
                    reported,
                    settle,
                    head,
                    step,
                });
            }
            None => self.record(reported).await,
        }
    }

    /// The program has had its time.
    pub(crate) async fn overdue(&mut self, attempt_id: &AttemptId) {
        let late = |ahead: &mut Ahead| ahead.reported.attempt_id == *attempt_id;
        if let Some(ahead) = self.schedule.ahead.take_if(late) {
            // Its answer comes all the same, and is then about a node that can be concluded.
            self.record(ahead.reported).await;
        }
    }

    /// The program's answer about a step, if an outcome waits for it. What is left to do with the answer is given back.
    pub(super) async fn answered_ahead(
        &mut self,
        step: &Step,
        answer: Result<Planned, Error>,
    ) -> Option<Result<Planned, Error>> {
        let Some(ahead) = self.schedule.ahead.take_if(|ahead| ahead.step == *step) else {
            return Some(answer);
        };
        let Ok(Planned::Conclusion(Conclusion::Boundary(boundary))) = &answer else {
            self.record(ahead.reported).await;
            return Some(answer);
        };
        let same = self.in_memory().filter(|state| state.head == ahead.head);
        let Some(state) = same.filter(|state| self.may_schedule(state)) else {
            self.record(ahead.reported).await;
            return Some(answer);
        };
        let taken = match with_boundary(&ahead.settle, boundary) {
            Ok(sequence) => self.take_all(&sequence).await,
            Err(error) => Err(error.into()),
        };
        match taken {
            Ok(accepted) => {
                ahead.reported.answer(Ok(()));
                if let Some(refused) = accepted.refused {
                    self.stall(&state, step.clone(), &refused.error).await;
                }
                None
            }
            Err(_) => {
                // Nothing of it was kept; alone, the report is recorded as well as it can be.
                self.record(ahead.reported).await;
                Some(answer)
            }
        }
    }

    /// Asks the program what follows for the attempt's node once this report is recorded, if that settles the matter.
    async fn ask_ahead(
        &mut self,
        reported: &Reported,
        myself: &ActorRef<RunMessage>,
    ) -> Option<(Request, Head, Step)> {
        let known = !matches!(reported.report.outcome, EffectOutcome::Uncertain { .. });
        if !known || !reported.capability.is_engine() || self.schedule.asking.is_some() {
            return None;
        }
        let state = self.current().await.ok()?;
        if !self.may_schedule(&state) {
            return None;
        }
        let attempt = state.attempts.get(&reported.attempt_id)?;
        let operation = state.operations.get(&attempt.operation_id)?;
        let step = Step::Conclude {
            node_id: operation.node_id.clone()?,
        };
        let settle = self
            .settlement(&state, &reported.capability, attempt, &reported.report)
            .await?;
        let settled = self
            .draw(&state, std::slice::from_ref(&settle))
            .await
            .ok()?;
        if !self.plan(&settled.next).contains(&step) {
            return None;
        }
        let Step::Conclude { node_id } = &step else {
            return None;
        };
        self.ask_program(&settled.next, &step, node_id, myself);
        self.schedule.asking.as_ref()?;
        let (owner, attempt_id) = (myself.clone(), reported.attempt_id.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(CONCLUDE_AHEAD_MS)).await;
            // An owner that is gone has lost what waited, and its worker reports again.
            let _ = owner.cast(RunMessage::Overdue { attempt_id });
        });
        Some((settle, state.head, step))
    }

    /// Records a report by itself and answers it.
    async fn record(&mut self, reported: Reported) {
        let recorded = self
            .report(&reported.capability, &reported.attempt_id, &reported.report)
            .await;
        reported.answer(recorded);
    }
}

/// The settlement and the boundary behind it, as one request.
fn with_boundary(settle: &Request, boundary: &BoundaryIntent) -> Result<Vec<Request>, Error> {
    let boundary = What::Intent {
        intent: Intent::Boundary(boundary.clone()),
        draft: None,
    };
    let mut sequence = own_sequence(CLASS_SCHEDULER, vec![settle.what.clone(), boundary])?;
    if let Some(first) = sequence.first_mut() {
        // A reconciliation is in a class of its own.
        first.capability = settle.capability.clone();
        first.stored_evidence = settle.stored_evidence.clone();
    }
    Ok(sequence)
}

impl Reported {
    /// Tells the worker; the room in the mailbox is given back first.
    fn answer(self, recorded: Result<(), Error>) {
        drop(self.permit);
        // Whoever stopped listening has no use for it.
        let _ = self.reply.send(recorded);
    }
}

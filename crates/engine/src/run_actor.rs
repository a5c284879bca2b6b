//! Hop 1 of 5 / Hop 5 of 5: a run's owner takes a command, and answers once the new state is the log's.
//! Next after hop 1: model/decide (2); before hop 5: journal/writer (4), fed by journal-format/seal (3).
//!
//! Invariant: memory is never ahead of disk: one append is in flight, the next state is folded before it and
//! swapped in after it, and a reply is sent only then. An owner whose epoch ended stops. Started by the supervisor.

mod ownership;
mod replay;
mod sequence;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use aiws::error::Error;
use aiws::id::StreamId;
use aiws::token::ClaimToken;
use praxis_journal_format::Sealed;
use praxis_model::command::{CommandType, Intent};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::capability::Capability;
use crate::commit::{self, Moved, Outcome};
use crate::core::Core;
use crate::crash::Point;
use crate::directory::RunKept;
use crate::error::{actor_lost, of_store};
use crate::gather;
use crate::limits::DECIDE_AGAIN;
use crate::message::{Claimed, Request, Response, RunMessage, What};
use crate::schedule::Schedule;
use ownership::{deposed, fold};

pub(crate) use sequence::{Accepted, Drawn, Refused, described, own_sequence};

/// The actor's behaviour; its state is [`RunOwner`].
pub(crate) struct RunActor;

/// What a run's actor owns.
pub(crate) struct RunOwner {
    pub(crate) core: Arc<Core>,
    pub(crate) subject: Subject,
    pub(crate) stream: StreamId,
    pub(crate) kept: RunKept,
    /// The state; none before the first fold and after a storage error.
    state: Option<Arc<RunState>>,
    /// The epoch that this owner acts under; none before the first fold.
    epoch: Option<u64>,
    /// How often the clock had stepped back when the run last had no live claim.
    clock_seen: u64,
    /// Why nothing but a recovery is taken.
    blocked: Option<Error>,
    /// What the scheduler remembers.
    pub(crate) schedule: Schedule,
}

/// An accepted command.
pub(crate) struct Done {
    pub(crate) response: Response,
    pub(crate) token: Option<ClaimToken>,
    /// Verified copies of the command's material.
    pub(crate) bytes: gather::Copies,
}

impl Actor for RunActor {
    type Msg = RunMessage;
    type State = RunOwner;
    type Arguments = RunOwner;

    async fn pre_start(
        &self,
        _: ActorRef<RunMessage>,
        owner: RunOwner,
    ) -> Result<RunOwner, ActorProcessingErr> {
        Ok(owner)
    }

    async fn handle(
        &self,
        myself: ActorRef<RunMessage>,
        message: RunMessage,
        owner: &mut RunOwner,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RunMessage::Take {
                request,
                permit,
                reply,
            } => {
                let answer = owner.take(&request).await;
                if let Err(error) = &answer {
                    owner.hold_for_material(&request, error).await;
                }
                let answer = answer.map(|done| Claimed {
                    response: done.response,
                    token: done.token,
                });
                // Given back first, so that whoever has the answer finds the room.
                drop(permit);
                // Whoever stopped listening asks again under the same request id.
                let _ = reply.send(answer);
            }
            RunMessage::TakeAll {
                requests,
                permit,
                reply,
            } => {
                let answer = owner.take_all(&requests).await;
                // A step behind a settlement that is kept is refused as well.
                let refused = match &answer {
                    Ok(accepted) => accepted.refused.as_ref(),
                    Err(refused) => Some(refused),
                };
                if let Some(refused) = refused
                    && let Some(request) = refused.of(&requests)
                {
                    owner.hold_for_material(request, &refused.error).await;
                }
                drop(permit);
                let _ = reply.send(answer.map(Accepted::told).map_err(Refused::told));
            }
            RunMessage::Snapshot { permit, reply } => {
                let state = owner.current().await;
                drop(permit);
                let _ = reply.send(state);
            }
            RunMessage::Recover {
                expected_epoch,
                reason,
            } => owner.recover(expected_epoch, reason).await,
            RunMessage::Park => owner.park().await,
            RunMessage::Report(reported) => owner.reported(*reported, &myself).await,
            RunMessage::Overdue { attempt_id } => owner.overdue(&attempt_id).await,
            RunMessage::Planned { step, answer } => owner.planned(step, *answer).await,
            RunMessage::LookedUp {
                attempt_id,
                found,
                taken,
            } => {
                let _ = taken.send(owner.looked_up(&attempt_id, *found).await);
            }
            RunMessage::Release => owner.release(),
            RunMessage::Tick { moved } => owner.tick(moved, &myself).await,
        }
        owner.reschedule(&myself);
        if owner.is_deposed() {
            myself.stop(Some("deposed".to_owned()));
        }
        Ok(())
    }
}

impl RunOwner {
    /// An owner that folds its stream when it is first needed.
    pub(crate) fn new(core: Arc<Core>, subject: Subject, kept: RunKept) -> Self {
        let stream = subject.stream();
        Self {
            core,
            subject,
            stream,
            kept,
            state: None,
            epoch: None,
            clock_seen: 0,
            blocked: None,
            schedule: Schedule::default(),
        }
    }

    /// Takes one command: a sequence of one.
    pub(crate) async fn take(&mut self, request: &Request) -> Result<Done, Error> {
        let accepted = self.take_all(std::slice::from_ref(request)).await;
        let mut done = accepted.map_err(|refused| refused.error)?.done;
        done.pop().ok_or_else(actor_lost)
    }

    /// Takes the steps of one request: replays first (stage 3), then facts and decision of each, one append, swap.
    pub(crate) async fn take_all(&mut self, requests: &[Request]) -> Result<Accepted, Refused> {
        let Some(first) = requests.first() else {
            return Err(actor_lost().into());
        };
        first.capability.authenticated()?;
        let mission = self.subject.mission_id.clone();
        let seen = self.core.replayed(
            &mission,
            &first.capability,
            first.request_id.as_ref(),
            &first.digest,
        )?;
        if let Some(events) = seen {
            return self.replay_all(requests, &events).await;
        }
        requests
            .iter()
            .try_for_each(|request| self.may_act(request))?;
        let mut rounds = match first.what {
            What::Strict(_) => 0,
            What::Intent { .. } | What::Acknowledge { .. } => DECIDE_AGAIN,
        };
        let (mut late, mut asked, mut cut) = (false, requests, None);
        loop {
            match self.round(asked).await {
                Ok(Taken::Done(done)) => return Ok(Accepted { done, refused: cut }),
                Ok(Taken::Replayed(events)) => return self.replay_all(requests, &events).await,
                // The same command decided at the writer's time is refused with the code of what ended.
                Ok(Taken::Moved(_, Moved::Time)) if !late => late = true,
                Ok(Taken::Moved(error, _)) if rounds == 0 => return Err(error.into()),
                Ok(Taken::Moved(..)) => rounds -= 1,
                Err(refused) => match sequence::kept(asked, &refused) {
                    0 => return Err(refused),
                    // Each cut is shorter, so this ends.
                    kept => (asked, cut) = (&asked[..kept], Some(refused)),
                },
            }
        }
    }

    /// Hops 2 to 5, once.
    async fn round(&mut self, requests: &[Request]) -> Result<Taken, Refused> {
        let state = self.current().await?;
        let drawn = self.draw(&state, requests).await?;
        self.clock_seen = drawn.clock_seen;
        let (sealed, conditions) = (drawn.sealed(), drawn.conditions.clone());
        match commit::append(&self.core, &sealed, conditions).await {
            Outcome::Committed => Ok(Taken::Done(self.swap(drawn))),
            Outcome::Replayed(events) => Ok(Taken::Replayed(events)),
            Outcome::Moved { error, what } => {
                if what == Moved::Head {
                    self.state = None;
                    self.current().await?;
                }
                Ok(Taken::Moved(error, what))
            }
            Outcome::Refused { error, part: step } => Err(Refused { step, error }),
            Outcome::InDoubt(error) => self.look(drawn, &error).await,
        }
    }

    /// After a storage error: folds the log again and looks for the last event in flight; the epoch stays (T-10).
    async fn look(
        &mut self,
        drawn: Drawn,
        error: &praxis_journal::StoreError,
    ) -> Result<Taken, Refused> {
        tracing::warn!(
            code = error.code().name(),
            "an append is in doubt; the run is folded again"
        );
        self.state = None;
        let state = self.current().await?;
        if state.head.hash == drawn.next.head.hash {
            return Ok(Taken::Done(self.swap(drawn)));
        }
        Err(of_store(error).into())
    }

    /// Hop 5: the new state is swapped in and published; the caller replies.
    fn swap(&mut self, drawn: Drawn) -> Vec<Done> {
        self.install(&drawn.next);
        let sealed = drawn.sealed();
        let recovery = |part: &Arc<Sealed>| part.event.kind == CommandType::RecoverOwnership;
        if sealed.iter().any(recovery) {
            self.blocked = None;
            self.schedule.forget();
        }
        commit::pass(&self.core, &sealed, Point::BeforeReply);
        drawn.parts.into_iter().map(sequence::Part::done).collect()
    }

    fn install(&mut self, state: &Arc<RunState>) {
        self.epoch = Some(state.epoch);
        self.state = Some(Arc::clone(state));
        // Already there or above only if another owner of this process took over; the log's fence decides then.
        let _ = self.kept.fence.advance(state.epoch);
        self.kept.publish(state);
    }

    /// The current state, folded from the log where it is not in memory.
    ///
    /// # Errors
    ///
    /// STALE_OWNER when the log has another epoch than this owner's: somebody took the run over.
    pub(crate) async fn current(&mut self) -> Result<Arc<RunState>, Error> {
        if let Some(state) = &self.state {
            return Ok(Arc::clone(state));
        }
        let (core, subject) = (Arc::clone(&self.core), self.subject.clone());
        let folded = tokio::task::spawn_blocking(move || fold(&core, &subject))
            .await
            .map_err(|_| actor_lost())??;
        if let Some(epoch) = self.epoch
            && epoch != folded.epoch
        {
            let deposed = deposed(epoch, folded.epoch);
            self.blocked = Some(deposed.clone());
            return Err(deposed);
        }
        let state = Arc::new(folded);
        self.install(&state);
        Ok(state)
    }

    /// The state, where it is in memory.
    pub(crate) fn in_memory(&self) -> Option<Arc<RunState>> {
        self.state.clone()
    }

    /// A command of the engine itself: SYSTEM, in one class of decision, without a request id.
    pub(crate) async fn own(&mut self, class: &str, intent: Intent) -> Result<Done, Error> {
        let request = own_request(Capability::system(class)?, intent)?;
        self.take(&request).await
    }
}

/// What became of one round of deciding.
enum Taken {
    Done(Vec<Done>),
    Replayed(Vec<Arc<Sealed>>),
    Moved(Error, Moved),
}

/// A request of the engine itself.
pub(crate) fn own_request(capability: Capability, intent: Intent) -> Result<Request, Error> {
    let digest = aiws::canonical::digest_of(&intent)?;
    let what = What::Intent {
        intent,
        draft: None,
    };
    Ok(Request {
        capability,
        request_id: None,
        digest,
        what,
        stored_evidence: Default::default(),
    })
}

//! Hop 1 of 5 / Hop 5 of 5: a run's owner takes a command, and answers once the new state is the log's.
//! Next after hop 1: model/decide (2); before hop 5: journal/writer (4), fed by journal-format/seal (3).
//!
//! Invariant: memory is never ahead of disk: one append is in flight, the next state is folded before it and
//! swapped in after it, and a reply is sent only then. An owner whose epoch ended stops. Started by the supervisor.

mod ownership;
mod replay;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use aiws::error::Error;
use aiws::id::StreamId;
use aiws::token::ClaimToken;
use praxis_journal::Conditions;
use praxis_journal_format::{Sealed, link, seal};
use praxis_model::command::{CommandType, Intent};
use praxis_model::limits::MAX_AUTHORIZATION_AGE_MS;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use praxis_model::{decide, evolve};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::capability::Capability;
use crate::commit::{self, Moved, Outcome};
use crate::core::Core;
use crate::crash::Point;
use crate::directory::RunKept;
use crate::error::{actor_lost, of_store};
use crate::gather::{self, Gathered};
use crate::limits::DECIDE_AGAIN;
use crate::message::{Claimed, Request, Response, RunMessage, What};
use crate::schedule::Schedule;
use ownership::{deposed, fold, unfoldable};

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
            RunMessage::Report {
                capability,
                attempt_id,
                report,
                permit,
                reply,
            } => {
                let recorded = owner.report(&capability, &attempt_id, &report).await;
                drop(permit);
                let _ = reply.send(recorded);
            }
            RunMessage::Planned { step, answer } => owner.planned(step, *answer).await,
            RunMessage::LookedUp {
                attempt_id,
                found,
                taken,
            } => {
                owner.looked_up(&attempt_id, *found).await;
                drop(taken);
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

    /// Takes one command: replays first (stage 3), then facts, decision, append, swap.
    pub(crate) async fn take(&mut self, request: &Request) -> Result<Done, Error> {
        request.capability.authenticated()?;
        let mission = self.subject.mission_id.clone();
        let seen = self.core.replayed(
            &mission,
            &request.capability,
            request.request_id.as_ref(),
            &request.digest,
        )?;
        if let Some(event) = seen {
            return self.replay(request, &event).await;
        }
        self.may_act(request)?;
        let mut rounds = match request.what {
            What::Strict(_) => 0,
            What::Intent { .. } => DECIDE_AGAIN,
        };
        let mut late = false;
        loop {
            let state = self.current().await?;
            let gathered = gather::run(&self.core, &state, request).await?;
            match self.decide(&state, gathered).await? {
                Taken::Done(done) => return Ok(*done),
                Taken::Replayed(event) => return self.replay(request, &event).await,
                // The same command decided at the writer's time is refused with the code of what ended.
                Taken::Moved(_, Moved::Time) if !late => late = true,
                Taken::Moved(error, _) if rounds == 0 => return Err(error),
                Taken::Moved(..) => rounds -= 1,
            }
        }
    }

    /// Hops 2 to 5 for a command with its facts.
    async fn decide(&mut self, state: &Arc<RunState>, gathered: Gathered) -> Result<Taken, Error> {
        let Gathered {
            command,
            mut facts,
            bytes,
            token,
        } = gathered;
        let steps = self.core.clock.steps();
        if steps != self.clock_seen && state.live_claim(facts.now_ms).is_none() {
            self.clock_seen = steps;
        }
        facts.clock_stepped = steps != self.clock_seen;
        let decision = decide::run(state, &command, &facts)?;
        let event = link(
            self.subject.clone(),
            state.head,
            &command,
            &decision,
            &facts,
            facts.now_ms,
            Some(state.epoch),
        );
        let sealed =
            Arc::new(seal(event).map_err(|error| Error::new(error.code(), error.to_string()))?);
        // Folded before it is written: an event that cannot be folded never reaches the disk.
        let next =
            evolve::run(RunState::clone(state), &sealed.event, &sealed.hash).map_err(unfoldable)?;
        let mut conditions = Conditions::of(
            &self.subject,
            Some(state.epoch),
            &command,
            &decision,
            &facts.actor_id,
        );
        conditions.clock_steps = decide::leased(&command.body).then_some(steps);
        // What was allowed is allowed for as long as it may wait for the writer, and no longer (CRD-3, T-30).
        let allowed_ms = facts
            .authorized_at_ms
            .saturating_add(MAX_AUTHORIZATION_AGE_MS + 1);
        conditions.before_ms.push(allowed_ms);
        match commit::append(&self.core, &sealed, conditions).await {
            Outcome::Committed => Ok(Taken::Done(Box::new(self.swap(sealed, next, token, bytes)))),
            Outcome::Replayed(event) => Ok(Taken::Replayed(event)),
            Outcome::Moved { error, what } => {
                if what == Moved::Head {
                    self.state = None;
                    self.current().await?;
                }
                Ok(Taken::Moved(error, what))
            }
            Outcome::Refused(error) => Err(error),
            Outcome::InDoubt(error) => self.look(sealed, next, token, bytes, &error).await,
        }
    }

    /// After a storage error: folds the log again and looks for the event in flight; the epoch stays (T-10).
    async fn look(
        &mut self,
        sealed: Arc<Sealed>,
        next: RunState,
        token: Option<ClaimToken>,
        bytes: gather::Copies,
        error: &praxis_journal::StoreError,
    ) -> Result<Taken, Error> {
        tracing::warn!(
            code = error.code().name(),
            "an append is in doubt; the run is folded again"
        );
        self.state = None;
        let state = self.current().await?;
        if state.head.hash == sealed.hash {
            return Ok(Taken::Done(Box::new(self.swap(sealed, next, token, bytes))));
        }
        Err(of_store(error))
    }

    /// Hop 5: the new state is swapped in and published; the caller replies.
    fn swap(
        &mut self,
        sealed: Arc<Sealed>,
        next: RunState,
        token: Option<ClaimToken>,
        bytes: gather::Copies,
    ) -> Done {
        let next = Arc::new(next);
        self.install(&next);
        if sealed.event.kind == CommandType::RecoverOwnership {
            self.blocked = None;
            self.schedule.forget();
        }
        commit::pass(&self.core, &sealed, Point::BeforeReply);
        let (revision, result) = (sealed.event.revision.get(), sealed.event.result.clone());
        Done {
            response: Response {
                event: Some(sealed),
                revision,
                result,
            },
            token,
            bytes,
        }
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
    Done(Box<Done>),
    Replayed(Arc<Sealed>),
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

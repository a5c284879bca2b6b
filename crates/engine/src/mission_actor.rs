//! A mission's owner: contract, grants and admission of runs.
//!
//! Invariant: as the run's owner: one append in flight, the state swapped in after it, replies only then. After a
//! crash it folds its stream; a mission has no epoch, its head condition is enough. Started by the supervisor.

use std::sync::Arc;

use aiws::error::{Code, Error};
use aiws::id::MissionId;
use praxis_journal::Conditions;
use praxis_journal_format::{Sealed, link, seal};
use praxis_model::event::Head;
use praxis_model::mission::MissionState;
use praxis_model::stream::Subject;
use praxis_model::{decide, evolve};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::commit::{self, Moved, Outcome};
use crate::core::Core;
use crate::crash::Point;
use crate::error::{actor_lost, of_store};
use crate::gather::{self, Gathered};
use crate::limits::DECIDE_AGAIN;
use crate::message::{MissionMessage, Request, Response, What};

/// The actor's behaviour; its state is [`MissionOwner`].
pub(crate) struct MissionActor;

/// What a mission's actor owns.
pub(crate) struct MissionOwner {
    core: Arc<Core>,
    subject: Subject,
    /// The state; the outer option is none before the first fold, the inner before the mission was opened.
    state: Option<Option<Arc<MissionState>>>,
}

/// What became of one round of deciding.
enum Taken {
    Done(Response),
    Moved(Error, Moved),
}

impl Actor for MissionActor {
    type Msg = MissionMessage;
    type State = MissionOwner;
    type Arguments = MissionOwner;

    async fn pre_start(
        &self,
        _: ActorRef<MissionMessage>,
        owner: MissionOwner,
    ) -> Result<MissionOwner, ActorProcessingErr> {
        Ok(owner)
    }

    async fn handle(
        &self,
        _: ActorRef<MissionMessage>,
        message: MissionMessage,
        owner: &mut MissionOwner,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            MissionMessage::Take {
                request,
                permit,
                reply,
            } => {
                let answer = owner.take(&request).await;
                // Given back first, so that whoever has the answer finds the room.
                drop(permit);
                // Whoever stopped listening asks again under the same request id.
                let _ = reply.send(answer);
            }
            MissionMessage::Snapshot { permit, reply } => {
                let state = owner.current().await;
                drop(permit);
                let _ = reply.send(state);
            }
        }
        Ok(())
    }
}

impl MissionOwner {
    /// An owner that folds its stream when it is first needed.
    pub(crate) fn new(core: Arc<Core>, mission: MissionId) -> Self {
        Self {
            core,
            subject: Subject::mission(mission),
            state: None,
        }
    }

    async fn take(&mut self, request: &Request) -> Result<Response, Error> {
        request.capability.authenticated()?;
        let mission = self.subject.mission_id.clone();
        let seen = self.core.replayed(
            &mission,
            &request.capability,
            request.request_id.as_ref(),
            &request.digest,
        )?;
        if let Some(event) = seen.as_ref().and_then(|parts| parts.first()) {
            return Ok(replay(event));
        }
        let mut rounds = match request.what {
            What::Strict(_) => 0,
            What::Intent { .. } | What::Acknowledge { .. } => DECIDE_AGAIN,
        };
        let mut late = false;
        loop {
            let state = self.current().await?;
            let gathered = gather::mission(&self.core, &self.subject, state.as_deref(), request)?;
            match self.decide(state.as_deref(), gathered).await? {
                Taken::Done(response) => return Ok(response),
                Taken::Moved(_, Moved::Time) if !late => late = true,
                Taken::Moved(error, _) if rounds == 0 => return Err(error),
                Taken::Moved(..) => rounds -= 1,
            }
        }
    }

    async fn decide(
        &mut self,
        state: Option<&MissionState>,
        gathered: Gathered,
    ) -> Result<Taken, Error> {
        let Gathered { command, facts, .. } = gathered;
        let decision = decide::mission(state, &command, &facts)?;
        let head = state.map_or(
            Head {
                revision: 0.into(),
                hash: aiws::digest::Digest::ZERO,
            },
            |state| state.head,
        );
        let event = link(
            self.subject.clone(),
            head,
            &command,
            &decision,
            &facts,
            facts.now_ms,
            None,
        );
        let sealed =
            Arc::new(seal(event).map_err(|error| Error::new(error.code(), error.to_string()))?);
        let next =
            evolve::mission(state.cloned(), &sealed.event, &sealed.hash).map_err(unfoldable)?;
        let conditions = Conditions::of(&self.subject, None, &command, &decision, &facts.actor_id);
        match commit::append(&self.core, std::slice::from_ref(&sealed), conditions).await {
            Outcome::Committed => Ok(Taken::Done(self.swap(sealed, next))),
            Outcome::Replayed(events) => match events.first() {
                Some(first) if first.event.request_digest == command.request_digest => {
                    Ok(Taken::Done(replay(first)))
                }
                _ => Err(command
                    .request_id
                    .as_ref()
                    .map_or_else(actor_lost, crate::core::other_material)),
            },
            Outcome::Moved { error, what } => {
                if what == Moved::Head {
                    self.state = None;
                }
                Ok(Taken::Moved(error, what))
            }
            Outcome::Refused { error, .. } => Err(error),
            Outcome::InDoubt(error) => {
                self.state = None;
                let found = self.current().await?;
                if found.is_some_and(|state| state.head.hash == sealed.hash) {
                    return Ok(Taken::Done(self.swap(sealed, next)));
                }
                Err(of_store(&error))
            }
        }
    }

    /// The new state is swapped in, and the mission's runs learn that something around them moved.
    fn swap(&mut self, sealed: Arc<Sealed>, next: MissionState) -> Response {
        self.state = Some(Some(Arc::new(next)));
        self.core.directory.moved(&self.subject.mission_id);
        commit::pass(
            &self.core,
            std::slice::from_ref(&sealed),
            Point::BeforeReply,
        );
        let (revision, result) = (sealed.event.revision.get(), sealed.event.result.clone());
        Response {
            event: Some(sealed),
            revision,
            result,
        }
    }

    async fn current(&mut self) -> Result<Option<Arc<MissionState>>, Error> {
        if let Some(state) = &self.state {
            return Ok(state.clone());
        }
        let (core, stream) = (Arc::clone(&self.core), self.subject.stream());
        let read = tokio::task::spawn_blocking(move || core.journal.stream(&stream));
        let events = read
            .await
            .map_err(|_| actor_lost())?
            .map_err(|error| of_store(&error))?;
        let mut state = None;
        for sealed in &events {
            state = Some(evolve::mission(state, &sealed.event, &sealed.hash).map_err(unfoldable)?);
        }
        let state = state.map(Arc::new);
        self.state = Some(state.clone());
        Ok(state)
    }
}

/// Whether a request would open a mission that was never opened: decided without an owner, and never appended here.
///
/// # Errors
///
/// The code of the first stage that refuses.
pub(crate) fn before_opening(
    core: &Arc<Core>,
    mission: &MissionId,
    request: &Request,
) -> Result<(), Error> {
    request.capability.authenticated()?;
    let gathered = gather::mission(core, &Subject::mission(mission.clone()), None, request)?;
    decide::mission(None, &gathered.command, &gathered.facts).map(drop)
}

/// The answer to a request that was committed before.
fn replay(sealed: &Sealed) -> Response {
    Response {
        event: None,
        revision: sealed.event.revision.get(),
        result: sealed.event.result.clone(),
    }
}

/// An event that the model cannot fold: nothing was changed, and nothing can be decided on.
fn unfoldable(illegal: evolve::IllegalEvent) -> Error {
    Error::new(
        Code::InternalStore,
        format!("{illegal}; run verify and report what it says"),
    )
}

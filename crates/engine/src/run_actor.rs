//! Hop 1 of 5 / Hop 5 of 5: a run's owner takes a command, and answers once the new state is the log's.
//! Next after hop 1: model/decide (2); before hop 5: journal/writer (4), fed by journal-format/seal (3).
//!
//! Invariant: memory is never ahead of disk: one append is in flight, the next state is folded before it and
//! swapped in after it, and a reply is sent only then. An owner whose epoch ended stops. Started by the supervisor.

use std::sync::Arc;

use aiws::error::{Code, Error, Stage};
use aiws::id::StreamId;
use aiws::record::DeliveryState;
use aiws::token::ClaimToken;
use praxis_journal_format::{Sealed, link, seal};
use praxis_model::command::{Body, CommandType, Intent, RecoverOwnership};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use praxis_model::{decide, evolve};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::capability::{CLASS_RECOVERY, Capability};
use crate::commit::{self, Moved, Outcome};
use crate::core::Core;
use crate::crash::Point;
use crate::directory::RunKept;
use crate::error::{actor_lost, of_store};
use crate::gather::{self, Gathered};
use crate::limits::DECIDE_AGAIN;
use crate::message::{Claimed, Request, Response, RunMessage, What};
use crate::schedule::Schedule;

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
                let answer = answer.map(|done| Claimed {
                    response: done.response,
                    token: done.token,
                });
                // Whoever stopped listening asks again under the same request id.
                let _ = reply.send(answer);
                drop(permit);
            }
            RunMessage::Snapshot { reply } => drop(reply.send(owner.current().await)),
            RunMessage::Recover {
                expected_epoch,
                reason,
            } => owner.recover(expected_epoch, reason).await,
            RunMessage::Park => owner.park().await,
            RunMessage::Report {
                capability,
                attempt_id,
                report,
                reply,
            } => {
                let recorded = owner.report(&capability, &attempt_id, &report).await;
                let _ = reply.send(recorded);
            }
            RunMessage::Planned { step, answer } => owner.planned(step, *answer).await,
            RunMessage::LookedUp { attempt_id, found } => {
                owner.looked_up(&attempt_id, *found).await
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
            facts,
            bytes,
            token,
        } = gathered;
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
        let conditions = commit::conditions(
            &self.subject,
            Some(state.epoch),
            &command,
            &decision,
            &facts.actor_id,
        );
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

    /// The answer to a request that was committed before (T-24: a claim's token only while the claim is live).
    async fn replay(&mut self, request: &Request, sealed: &Sealed) -> Result<Done, Error> {
        if sealed.event.request_digest != request.digest {
            return Err(request
                .request_id
                .as_ref()
                .map_or_else(actor_lost, crate::core::other_material));
        }
        let token = match &sealed.event.command {
            Body::ClaimDelivery(body) => {
                let state = self.current().await?;
                self.live_token(&state, &body.delivery_id, request)?
            }
            _ => None,
        };
        let (revision, result) = (sealed.event.revision.get(), sealed.event.result.clone());
        Ok(Done {
            response: Response {
                event: None,
                revision,
                result,
            },
            token,
            bytes: gather::Copies::new(),
        })
    }

    /// The token of a live claim that the same request made; none once the claim ended.
    pub(crate) fn live_token(
        &self,
        state: &RunState,
        delivery_id: &aiws::id::DeliveryId,
        request: &Request,
    ) -> Result<Option<ClaimToken>, Error> {
        let Some(delivery) = state.deliveries.get(delivery_id) else {
            return Ok(None);
        };
        let Some(claim) = delivery
            .record
            .claim
            .as_ref()
            .filter(|claim| claim.end.is_none())
        else {
            return Ok(None);
        };
        let live = delivery.record.state == DeliveryState::Claimed
            && claim.owner_epoch.get() == state.epoch
            && self.core.now_ms().max(state.last_ms) < claim.expires_at_ms.get();
        let principal = request.capability.actor_id();
        let (generation, epoch) = (claim.generation.get(), claim.owner_epoch.get());
        let token = self.core.token(
            delivery_id,
            generation,
            epoch,
            principal,
            request.request_id.as_ref(),
        )?;
        Ok(Some(token).filter(|token| live && token.fingerprint().ct_eq(&claim.token_hash)))
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

    /// Whether the owner may act: not after a recovery that it needed was refused, except to be recovered.
    fn may_act(&self, request: &Request) -> Result<(), Error> {
        let recovery = match &request.what {
            What::Strict(command) => command.body.kind() == CommandType::RecoverOwnership,
            What::Intent {
                intent: Intent::Command { body },
                ..
            } => body.kind() == CommandType::RecoverOwnership,
            What::Intent { .. } => false,
        };
        match &self.blocked {
            Some(error) if !recovery => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Whether the owner waits for somebody to recover the run.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// The state, where it is in memory.
    pub(crate) fn in_memory(&self) -> Option<Arc<RunState>> {
        self.state.clone()
    }

    /// Whether another owner took over.
    fn is_deposed(&self) -> bool {
        self.state.is_none()
            && self
                .blocked
                .as_ref()
                .is_some_and(|error| error.code() == Code::StaleOwner)
    }

    /// Takes the run over from a dead owner (T-15): SYSTEM with the host's recovery authority.
    async fn recover(&mut self, expected_epoch: u64, reason: String) {
        let body = Body::RecoverOwnership(RecoverOwnership {
            expected_epoch: aiws::decimal::Dec::from_u64(expected_epoch),
            reason,
            decision_ref: None,
        });
        match self.own(CLASS_RECOVERY, Intent::Command { body }).await {
            Ok(_) => tracing::info!(run = ?self.subject.run_id, "recovered"),
            Err(error) => self.not_recovered(expected_epoch, error).await,
        }
    }

    /// Somebody else recovered the run first, which is as good; or nobody may, and then nothing runs on.
    async fn not_recovered(&mut self, expected_epoch: u64, error: Error) {
        if let Ok(state) = self.current().await
            && state.epoch > expected_epoch
        {
            self.blocked = None;
            return;
        }
        tracing::warn!(code = error.code().name(), message = %error.message, "the run was not recovered");
        self.blocked = Some(error);
    }

    /// Lets go of the run, so that the next open need not recover it (T-16). An owner that could not take the run
    /// over has nothing to let go of.
    fn release(&self) {
        if self.epoch.is_some() && self.blocked.is_none() {
            // A full queue costs one needless recovery at the next open.
            let _ = self.core.journal.release_owner(&self.stream);
        }
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

/// Folds a run's stream over the event that admitted it.
fn fold(core: &Core, subject: &Subject) -> Result<RunState, Error> {
    let (stream, store) = (subject.stream(), |error: praxis_journal::StoreError| {
        of_store(&error)
    });
    let events = core.journal.stream(&stream).map_err(store)?;
    let opening = match events.first() {
        Some(first) => Some(first.event.prev_hash),
        None => core.opening(&stream),
    };
    let mission = Subject::mission(subject.mission_id.clone()).stream();
    let sequence = match opening {
        Some(hash) => core.journal.find_event(&mission, &hash).map_err(store)?,
        None => None,
    };
    let Some(sequence) = sequence else {
        return Err(crate::engine::no_such_run(subject));
    };
    let admission = core.read(sequence)?;
    let mut state = RunState::admitted(&admission.event, &admission.hash).map_err(unfoldable)?;
    for sealed in &events {
        state = evolve::run(state, &sealed.event, &sealed.hash).map_err(unfoldable)?;
    }
    Ok(state)
}

/// An event that the model cannot fold: nothing was changed, and nothing can be decided on.
fn unfoldable(illegal: praxis_model::evolve::IllegalEvent) -> Error {
    Error::new(
        Code::InternalStore,
        format!("{illegal}; run verify and report what it says"),
    )
}

fn deposed(own: u64, found: u64) -> Error {
    Error::new(
        Code::StaleOwner,
        format!("expected to own the run under epoch {own}, found epoch {found}; whoever owns it now continues it"),
    )
    .in_stage(Stage::Ownership)
}

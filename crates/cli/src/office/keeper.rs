//! The runs that go on in this engine: what nobody has to be asked for is done, and how each stands is told.
//! Invariant: it decides nothing: a rule records a passing check, an accepted result gets its branch, and a run that
//! stands still says why. Part of the office.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aiws::error::{Code, Error, Stage};
use aiws::id::{ConsumerId, RunId};
use aiws::record::{AttemptStatus, EffectClass, HoldReason, HoldState};
use praxis_model::command::CommandType;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::blocking;
use crate::coding::contract::Job;
use crate::coding::publish::{Accepted, CONSUMER, branch, publish};
use crate::notes;
use crate::render::page::Standing;
use crate::session::{Session, now_ms};
use crate::store::Reader;

/// How long a run may stand still with nothing in flight before that is reported.
const STILL: Duration = Duration::from_secs(10);
/// How often a run that does not move is looked at.
const TICK: Duration = Duration::from_millis(500);

/// How a kept run stands.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The standing.
    pub standing: Standing,
    /// What runs now, if anything does.
    pub in_flight: Option<&'static str>,
    /// Whether nothing more comes by itself.
    pub resting: bool,
    /// Whether a person paused it, and nothing else holds it.
    pub paused: bool,
    /// What went wrong beside the run itself, and keeps it where it is.
    pub trouble: Option<Error>,
}

/// A run that goes on here.
pub struct Kept {
    /// The run.
    pub subject: Subject,
    /// Its job.
    pub job: Arc<Job>,
    seen: watch::Sender<Seen>,
    followers: AtomicUsize,
}

impl Kept {
    /// How it stands, now and at every change.
    #[must_use]
    pub fn seen(&self) -> watch::Receiver<Seen> {
        self.seen.subscribe()
    }
}

/// Somebody at another terminal who follows a run, for as long as this value lives.
pub(super) struct Follower(Arc<Kept>);

impl Follower {
    pub(super) fn of(kept: &Arc<Kept>) -> Self {
        kept.followers.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(kept))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.followers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The runs that are kept.
pub(super) struct Keeper {
    session: Arc<Session>,
    kept: Mutex<BTreeMap<RunId, Arc<Kept>>>,
    trouble: watch::Sender<Option<Error>>,
    /// Looks for trouble as long as there is a keeper.
    looking: AbortHandle,
    /// One run at a time brings results to branches, so that none is acknowledged over another's head.
    publishing: Arc<tokio::sync::Mutex<()>>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

impl Keeper {
    pub(super) fn new(session: Arc<Session>) -> Self {
        let trouble = watch::Sender::new(None);
        let looking = look_after(Arc::clone(&session), trouble.clone());
        Self {
            session,
            kept: Mutex::default(),
            trouble,
            looking: tokio::spawn(looking).abort_handle(),
            publishing: Arc::default(),
        }
    }

    /// Waits until something keeps the whole engine from going on.
    pub(super) async fn trouble(&self) -> Error {
        wait_for_trouble(&self.trouble).await
    }

    pub(super) fn troubles(&self) -> watch::Receiver<Option<Error>> {
        self.trouble.subscribe()
    }

    pub(super) fn find(&self, run: &RunId) -> Option<Arc<Kept>> {
        self.all().get(run).cloned()
    }

    /// The runs that go on here.
    pub(super) fn runs(&self) -> std::collections::BTreeSet<RunId> {
        self.all().keys().cloned().collect()
    }

    /// The runs that have not ended and that somebody at another terminal follows.
    pub(super) fn followed(&self) -> Vec<String> {
        let all = self.all();
        let followed = all.values().filter(|kept| {
            kept.followers.load(Ordering::SeqCst) > 0 && !kept.seen.borrow().standing.has_ended()
        });
        followed.map(|kept| kept.job.run_id.to_string()).collect()
    }

    /// Keeps a run from now on; one that is kept already stays as it is.
    pub(super) async fn keep(&self, subject: &Subject) -> Result<Arc<Kept>, Error> {
        let state = self.session.state(subject).await?;
        let job = self.session.coding.job(&state)?;
        if let Some(kept) = self.find(&job.run_id) {
            return Ok(kept);
        }
        let states = self
            .session
            .engine
            .watch(&subject.mission_id, &job.run_id)
            .await?;
        let kept = Arc::new(Kept {
            subject: subject.clone(),
            job: Arc::clone(&job),
            seen: watch::Sender::new(Seen {
                standing: Standing::Going,
                in_flight: None,
                resting: false,
                paused: false,
                trouble: None,
            }),
            followers: AtomicUsize::new(0),
        });
        self.all().insert(job.run_id.clone(), Arc::clone(&kept));
        let looking = Looking {
            session: Arc::clone(&self.session),
            kept: Arc::clone(&kept),
            publishing: Arc::clone(&self.publishing),
            moved: Instant::now(),
            published: None,
        };
        tokio::spawn(looking.on(states));
        self.session.engine.look_again(&subject.mission_id);
        Ok(kept)
    }

    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<RunId, Arc<Kept>>> {
        // What a panic left behind is whole: entries are put in at once.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn wait_for_trouble(trouble: &watch::Sender<Option<Error>>) -> Error {
    let mut seen = trouble.subscribe();
    let found = seen.wait_for(Option::is_some).await;
    let found = found.ok().and_then(|error| error.clone());
    found.unwrap_or_else(|| Error::new(Code::ActorLost, "the engine is gone"))
}

/// Tells of what keeps the whole engine from going on: the store went read-only, or no tree can be built.
async fn look_after(session: Arc<Session>, trouble: watch::Sender<Option<Error>>) {
    let found = loop {
        if let Err(error) = session.require_writable() {
            break error;
        }
        tokio::select! {
            error = session.coding.trouble() => break error,
            () = tokio::time::sleep(TICK) => {}
        }
    };
    trouble.send_replace(Some(found));
}

/// Looks at one run for as long as it is kept.
struct Looking {
    session: Arc<Session>,
    kept: Arc<Kept>,
    publishing: Arc<tokio::sync::Mutex<()>>,
    /// When the run last moved.
    moved: Instant,
    /// What came of the branch, once it was tried.
    published: Option<Option<Error>>,
}

impl Looking {
    async fn on(mut self, mut states: watch::Receiver<Arc<RunState>>) {
        loop {
            let state = Arc::clone(&states.borrow_and_update());
            let standing = self.standing(&state).await;
            let trouble = self.step(standing, &state).await.err();
            let trouble = trouble.or_else(|| self.standing_still(standing, &state));
            let resting = standing != Standing::Going || trouble.is_some();
            self.kept.seen.send_replace(Seen {
                standing,
                in_flight: in_flight(&state),
                resting,
                paused: standing == Standing::Held && is_paused(&state),
                trouble,
            });
            if matches!(standing, Standing::Accepted | Standing::Ended(_)) {
                return;
            }
            tokio::select! {
                changed = states.changed() => match changed {
                    Ok(()) => self.moved = Instant::now(),
                    // The engine is closed.
                    Err(_) => return,
                },
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }

    /// Where the run stands, as its page says it.
    async fn standing(&self, state: &Arc<RunState>) -> Standing {
        let (state, job) = (Arc::clone(state), Arc::clone(&self.kept.job));
        let store = self.session.path().to_owned();
        let found = blocking(move || Ok(crate::store::standing(&store, &state, &job, now_ms())));
        found.await.unwrap_or(Standing::Going)
    }

    /// Does what the standing asks for and nobody has to be asked for.
    async fn step(&mut self, standing: Standing, state: &Arc<RunState>) -> Result<(), Error> {
        match standing {
            Standing::Going => self.session.record_verification(state).await,
            Standing::Accepted => {
                if self.published.is_none() {
                    self.published = Some(self.publish().await.err());
                }
                match &self.published {
                    Some(Some(error)) => Err(error.clone()),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    async fn publish(&self) -> Result<(), Error> {
        let _alone = self.publishing.lock().await;
        // What another run's branch met with is said when that run is resumed.
        for (subject, result) in publish_pending(&self.session).await? {
            if subject == self.kept.subject {
                result?;
            }
        }
        Ok(())
    }

    /// Why the run cannot move: the store failed since it last did, or nothing happens and nothing is in flight.
    fn standing_still(&self, standing: Standing, state: &RunState) -> Option<Error> {
        if standing != Standing::Going {
            return None;
        }
        let since = notes::last_refusal()
            .filter(|(at, _)| *at > self.moved)
            .map(|(_, error)| error);
        if let Some(error) = since
            .as_ref()
            .filter(|error| error.code().stage() == Stage::Store)
        {
            return Some(error.clone());
        }
        let quiet = in_flight(state).is_none() && !is_attached(state);
        let run = &self.kept.job.run_id;
        let unsaid = || {
            Error::new(
                Code::InternalStore,
                format!("run {run} does not move and nothing says why; look at praxis log {run}"),
            )
        };
        (quiet && self.moved.elapsed() > STILL).then(|| since.unwrap_or_else(unsaid))
    }
}

/// Whether every open hold is a person's.
fn is_paused(state: &RunState) -> bool {
    let mut open = state
        .holds
        .values()
        .filter(|hold| hold.state == HoldState::Open);
    open.all(|hold| hold.reason == HoldReason::Operator)
}

/// What a run has in flight.
fn in_flight(state: &RunState) -> Option<&'static str> {
    let mut attempts = state.attempts.values();
    let attempt = attempts.find(|attempt| attempt.status == AttemptStatus::Dispatched)?;
    let operation = state.operations.get(&attempt.operation_id);
    let is_check = operation.is_some_and(|operation| operation.effect == EffectClass::Read);
    Some(if is_check { "a check" } else { "an agent" })
}

/// Whether an attempt of an earlier owner is followed to its end: as long as that takes, nothing else moves.
fn is_attached(state: &RunState) -> bool {
    let mut attempts = state.attempts.values();
    attempts.any(|attempt| attempt.status == AttemptStatus::Unknown)
}

/// What became of the branch of each run that completed and was not published before: where it is, if the run is one
/// that has a branch.
pub(super) type Published = Vec<(Subject, Result<Option<String>, Error>)>;

/// Brings every accepted result that the outbox still has for the publisher to its branch, then acknowledges up to
/// the first one that failed: that one comes again, also after a restart (OUT-1).
pub(super) async fn publish_pending(session: &Arc<Session>) -> Result<Published, Error> {
    let failed = |error: praxis_journal::StoreError| Error::new(error.code(), error.to_string());
    let (journal, consumer) = (session.host.journal(), ConsumerId::new(CONSUMER)?);
    let (from, end) = (journal.cursor(&consumer) + 1, journal.view().sequence());
    let mut completed: Vec<(u64, Subject)> = Vec::new();
    journal
        .scan(from, |sequence, sealed| {
            if sealed.event.kind == CommandType::CompleteRun {
                completed.push((sequence, sealed.event.subject.clone()));
            }
            sequence < end
        })
        .map_err(failed)?;
    let (mut published, mut done) = (Published::new(), end);
    for (sequence, subject) in completed {
        let result = publish_run(session, &subject).await;
        if result.is_err() {
            done = done.min(sequence - 1);
        }
        published.push((subject, result));
    }
    if done >= from {
        journal.acknowledge(&consumer, done).map_err(failed)?;
    }
    Ok(published)
}

/// Brings one accepted result to its branch; a run of another kind has none.
async fn publish_run(session: &Arc<Session>, subject: &Subject) -> Result<Option<String>, Error> {
    let state = session.state(subject).await?;
    if Job::named_in(&state.contract).is_none() {
        return Ok(None);
    }
    let job = session.coding.job(&state)?;
    let journal = session.host.journal().clone();
    let (subject, artifacts) = (subject.clone(), Arc::clone(&session.artifacts));
    let workspace = session.coding.workspace(&job);
    blocking(move || {
        let events = journal
            .stream(&subject.stream())
            .map_err(|error| Error::new(error.code(), error.to_string()))?;
        let accepted = Accepted::of(&state, &events)?;
        let patch = praxis_artifacts::read_verified(artifacts.as_ref(), &accepted.patch, 0);
        let patch = patch.map_err(|error| Error::new(error.code(), error.to_string()))?;
        publish(&workspace, &job, &accepted, &patch)?;
        let repository = crate::render::escape::line(&job.repository);
        Ok(Some(format!("{} in {repository}", branch(&job))))
    })
    .await
}

impl Keeper {
    /// Publishes what is left, for the runs that are resumed.
    pub(super) async fn publish_left(&self) -> Result<Published, Error> {
        let _alone = self.publishing.lock().await;
        publish_pending(&self.session).await
    }

    /// Whether the store can still be written.
    pub(super) fn read(&self) -> Reader {
        Reader::of_engine(
            self.session.path().to_owned(),
            self.session.host.journal().clone(),
            Arc::clone(&self.session.artifacts),
        )
        .driving(self.runs())
    }
}

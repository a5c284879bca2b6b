//! Driving runs until each has ended or waits for something that this process cannot give.
//! Invariant: it decides nothing: people decide, the engine schedules, and what is shown was durable before.
//! Called by the verbs `code` and `resume`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aiws::error::{Code, Error, Stage};
use aiws::id::{ActorId, ConsumerId};
use aiws::record::{AttemptStatus, EffectClass};
use praxis_engine::Shutdown;
use praxis_model::account::AccountRow;
use praxis_model::command::CommandType;
use praxis_model::mission::cost_account;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use tokio::sync::{Notify, watch};

use crate::coding::contract::Job;
use crate::coding::publish::{Accepted, CONSUMER, branch, publish};
use crate::decider::{Decided, Decider};
use crate::exit::Exit;
use crate::notes;
use crate::render::live::Live;
use crate::render::page::{Page, Standing};
use crate::render::rows::History;
use crate::session::{Session, now_ms};
use crate::store::Reader;

/// How long a run may stand still with nothing in flight before that is reported.
const STILL: Duration = Duration::from_secs(10);
/// How often a terminal is redrawn while nothing changes, and the store is looked at.
const TICK: Duration = Duration::from_millis(500);

/// How people are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// In whose name plans and results are approved in advance, if at all.
    pub in_advance: Option<ActorId>,
    /// Whether to leave instead of waiting for a person.
    pub no_wait: bool,
    /// Whether only JSON is wanted on the standard output.
    pub json: bool,
}

/// A run that is driven.
struct Driven {
    subject: Subject,
    job: Arc<Job>,
    states: watch::Receiver<Arc<RunState>>,
    /// Why it is left alone now.
    left: Option<Standing>,
    moved: Instant,
}

/// What became of the runs.
pub struct Outcome {
    /// Their pages, in the order given.
    pub pages: Vec<Page>,
    /// How the program ends.
    pub exit: Exit,
    /// What went wrong beside the runs themselves.
    pub error: Option<Error>,
}

/// Drives runs and shuts the engine down. What fails on the way is part of the outcome: the runs have begun and can be
/// resumed.
pub async fn drive(session: &Session, runs: &[Subject], asking: Asking) -> Outcome {
    match drive_all(session, runs, asking).await {
        Ok(outcome) => outcome,
        Err(error) => Outcome {
            pages: Vec::new(),
            exit: Exit::after_start(error.code()),
            error: Some(error),
        },
    }
}

async fn drive_all(session: &Session, runs: &[Subject], asking: Asking) -> Result<Outcome, Error> {
    let changed = Arc::new(Notify::new());
    let mut driven = Vec::new();
    for subject in runs {
        driven.push(follow(session, subject, &changed).await?);
    }
    let mut live = Live::new(asking.json);
    let ended = watch_over(session, &mut driven, &mut live, &asking, &changed).await;
    live.clear();
    session.coding.stop();
    let how = match &ended {
        Ok(Left::Signal) => drain_or_stop(session, &driven).await,
        _ => session.close(Shutdown::Drain).await,
    };
    let pages = final_pages(session, &driven);
    let mut exit = pages
        .iter()
        .fold(Exit::Done, |exit, page| exit.worse(page.standing.exit()));
    let mut error = how.err();
    match ended {
        Ok(Left::Still(found)) => error = error.or(Some(found)),
        Ok(_) => {}
        Err(found) => error = Some(found),
    }
    if let Some(error) = &error {
        exit = exit.worse(Exit::after_start(error.code()));
    }
    Ok(Outcome { pages, exit, error })
}

/// Why the runs are left.
enum Left {
    /// Every run has ended or waits for what this process cannot give.
    All,
    /// Somebody wants to stop.
    Signal,
    /// A run stands still; this is the last that was refused, or a word that nothing is known.
    Still(Error),
}

async fn follow(
    session: &Session,
    subject: &Subject,
    changed: &Arc<Notify>,
) -> Result<Driven, Error> {
    let state = session.state(subject).await?;
    let job = session.coding.job(&state)?;
    let run = job.run_id.clone();
    let states = session.engine.watch(&subject.mission_id, &run).await?;
    let (mut watched, changed) = (states.clone(), Arc::clone(changed));
    tokio::spawn(async move {
        // Ends with the engine.
        while watched.changed().await.is_ok() {
            changed.notify_one();
        }
    });
    Ok(Driven {
        subject: subject.clone(),
        job,
        states,
        left: None,
        moved: Instant::now(),
    })
}

async fn watch_over(
    session: &Session,
    driven: &mut [Driven],
    live: &mut Live,
    asking: &Asking,
    changed: &Notify,
) -> Result<Left, Error> {
    let mut signals = Signals::new()?;
    let decider = Decider::new(session, asking);
    loop {
        session.require_writable()?;
        for run in driven.iter_mut() {
            if run.states.has_changed().unwrap_or(false) {
                run.states.borrow_and_update();
                run.moved = Instant::now();
                run.left = None;
            }
        }
        let pages: Vec<Page> = driven.iter().map(|run| page(session, run, false)).collect();
        live.show(&pages, now_ms());
        for (run, page) in driven.iter_mut().zip(&pages) {
            if run.left.is_some() {
                continue;
            }
            tokio::select! {
                stepped = step(session, run, page, live, &decider) => stepped?,
                () = signals.next() => return Ok(Left::Signal),
            }
        }
        if driven.iter().all(|run| {
            run.left
                .is_some_and(|standing| is_final(standing, &decider))
        }) {
            return Ok(Left::All);
        }
        if let Some(still) = standing_still(driven) {
            return Ok(Left::Still(still));
        }
        tokio::select! {
            () = changed.notified() => {}
            () = tokio::time::sleep(TICK) => {}
            () = signals.next() => return Ok(Left::Signal),
            error = session.coding.trouble() => return Ok(Left::Still(error)),
        }
    }
}

/// Whether nothing that this process waits for can change the standing.
fn is_final(standing: Standing, decider: &Decider<'_>) -> bool {
    match standing {
        Standing::NeedsApproval | Standing::NeedsAcceptance => decider.leaves_waiting(),
        _ => true,
    }
}

/// Does what the run's standing asks for.
async fn step(
    session: &Session,
    run: &mut Driven,
    page: &Page,
    live: &mut Live,
    decider: &Decider<'_>,
) -> Result<(), Error> {
    match page.standing {
        Standing::Going => {
            let state = Arc::clone(&run.states.borrow());
            session.record_verification(&state).await?;
        }
        Standing::Accepted => {
            let published = publish_pending(session).await?;
            run.left = Some(page.standing);
            // What another run's branch met with is said when that run is resumed.
            if let Some((_, result)) = published
                .into_iter()
                .find(|(subject, _)| *subject == run.subject)
            {
                result?;
            }
        }
        Standing::Ended(_) | Standing::Uncertain | Standing::Held => run.left = Some(page.standing),
        Standing::NeedsApproval | Standing::NeedsAcceptance => {
            let state = Arc::clone(&run.states.borrow());
            if decider.decide(&state, &run.job, live).await? == Decided::Nothing {
                run.left = Some(page.standing);
            } else {
                run.moved = Instant::now();
            }
        }
    }
    Ok(())
}

/// Why a run cannot move: the store failed since it last did, or nothing happens and nothing is in flight.
fn standing_still(driven: &[Driven]) -> Option<Error> {
    let refused = notes::last_refusal();
    driven
        .iter()
        .filter(|run| run.left.is_none())
        .find_map(|run| {
            let since = refused
                .as_ref()
                .filter(|(at, _)| *at > run.moved)
                .map(|(_, error)| error.clone());
            if let Some(error) = since
                .as_ref()
                .filter(|error| error.code().stage() == Stage::Store)
            {
                return Some(error.clone());
            }
            let state = run.states.borrow();
            let still = in_flight(&state).is_none() && run.moved.elapsed() > STILL;
            let run = &run.job.run_id;
            let unsaid = || {
                Error::new(
                    Code::InternalStore,
                    format!(
                        "run {run} does not move and nothing says why; look at praxis log {run}"
                    ),
                )
            };
            still.then(|| since.unwrap_or_else(unsaid))
        })
}

/// What became of the branch of each run that completed and was not published before: where it is, if the run is one
/// that has a branch.
pub type Published = Vec<(Subject, Result<Option<String>, Error>)>;

/// Brings every accepted result that the outbox still has for the publisher to its branch, then acknowledges up to
/// the first one that failed: that one comes again, also after a restart (OUT-1).
///
/// # Errors
///
/// A store code when the outbox cannot be read.
pub async fn publish_pending(session: &Session) -> Result<Published, Error> {
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
async fn publish_run(session: &Session, subject: &Subject) -> Result<Option<String>, Error> {
    let state = session.state(subject).await?;
    if Job::named_in(&state.contract).is_none() {
        return Ok(None);
    }
    let job = session.coding.job(&state)?;
    let journal = session.host.journal().clone();
    let (subject, artifacts) = (subject.clone(), Arc::clone(&session.artifacts));
    let workspace = session.coding.workspace(&job);
    let done = tokio::task::spawn_blocking(move || {
        let events = journal
            .stream(&subject.stream())
            .map_err(|error| Error::new(error.code(), error.to_string()))?;
        let accepted = Accepted::of(&state, &events)?;
        let patch = praxis_artifacts::read_verified(artifacts.as_ref(), &accepted.patch, 0);
        let patch = patch.map_err(|error| Error::new(error.code(), error.to_string()))?;
        publish(&workspace, &job, &accepted, &patch)?;
        let repository = crate::render::escape::line(&job.repository);
        Ok(Some(format!("{} in {repository}", branch(&job))))
    });
    done.await.unwrap_or_else(|_| {
        Err(Error::new(
            Code::ActorLost,
            "publishing stopped before it was done; praxis resume tries again",
        ))
    })
}

/// The pages after the engine has shut down: what `show` shows, as the store has it. Where it cannot be read now, what
/// was seen last.
fn final_pages(session: &Session, driven: &[Driven]) -> Vec<Page> {
    let reader = Reader::open(session.path()).ok();
    let read = |run: &Driven| {
        let reader = reader.as_ref()?;
        Some(reader.page(&reader.load(&run.subject).ok()?, now_ms()))
    };
    driven
        .iter()
        .map(|run| read(run).unwrap_or_else(|| page(session, run, true)))
        .collect()
}

/// A page from what is published now. `closed` says that no owner is left.
fn page(session: &Session, run: &Driven, closed: bool) -> Page {
    let mut state = RunState::clone(&run.states.borrow());
    if closed {
        state = crate::store::orphaned(&state);
    }
    let journal = session.host.journal();
    let account: Option<AccountRow> = journal.view().account(&cost_account(&run.subject)).cloned();
    // What cannot be read now only makes the page say less.
    let events = journal.stream(&run.subject.stream()).unwrap_or_default();
    Page::of(
        &state,
        &run.job,
        &History::of(&events),
        account.as_ref(),
        false,
        now_ms(),
    )
}

/// Lets what is in flight finish; a second signal stops it.
async fn drain_or_stop(session: &Session, driven: &[Driven]) -> Result<(), Error> {
    let waited_for = driven
        .iter()
        .find_map(|run| in_flight(&run.states.borrow()));
    crate::render::say(&match waited_for {
        Some(what) => format!(
            "stopping: {what} that runs now may finish; Ctrl-C again stops it at once, and praxis resume goes on"
        ),
        None => "stopping: nothing runs now; praxis resume goes on".to_owned(),
    });
    let mut signals = Signals::new()?;
    tokio::select! {
        drained = session.close(Shutdown::Drain) => drained,
        () = signals.again() => session.close(Shutdown::Now).await,
    }
}

/// What a run has in flight.
fn in_flight(state: &RunState) -> Option<&'static str> {
    let mut attempts = state.attempts.values();
    let attempt = attempts.find(|attempt| attempt.status == AttemptStatus::Dispatched)?;
    let operation = state.operations.get(&attempt.operation_id);
    let is_check = operation.is_some_and(|operation| operation.effect == EffectClass::Read);
    Some(if is_check { "a check" } else { "an agent" })
}

/// The signals by which people and systems stop a program.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// None where whoever started this program has it ignored, as `nohup` does.
    hang_up: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    fn new() -> Result<Self, Error> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error: std::io::Error| {
            Error::new(Code::StoreIo, format!("signals cannot be watched: {error}"))
        };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            hang_up: match ignores_hang_up() {
                true => None,
                false => Some(signal(SignalKind::hangup()).map_err(failed)?),
            },
        })
    }

    /// Any of them.
    async fn next(&mut self) {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => drop(hang_up.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hang_up => {}
        }
    }

    /// One that somebody sends to say it again. A terminal that goes away may well say so twice by itself.
    async fn again(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Whether this process was started with hang-ups ignored: signal 1 is the lowest bit of the mask.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

/// The first of the variables that a job lets through and that is not set here: the same work in another environment
/// is other work.
#[must_use]
pub fn unset(job: &Job) -> Option<&str> {
    let mut names = job.environment.iter().map(String::as_str);
    names.find(|name| std::env::var_os(name).is_none())
}

//! The store directory: where it is, how it is made, and how runs are read from it while no engine has it.
//! Invariant: reading never writes an event; a store is created by `code` alone.
//! Called by the verbs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiws::digest::{Digest, sha256};
use aiws::error::{Code, Error};
use aiws::id::{ConsumerId, MissionId};
use aiws::record::Attempt;
use praxis_artifacts::{ArtifactProvider, FileArtifacts};
use praxis_journal::{Journal, Options, StoreError};
use praxis_journal_format::Sealed;
use praxis_model::account::AccountRow;
use praxis_model::command::{Body, CommandType};
use praxis_model::mission::cost_account;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use crate::coding::attempt::{AttemptFiles, why_uncertain};
use crate::coding::contract::Job;
use crate::coding::graph;
use crate::coding::outcome::PLAN_FILE;
use crate::coding::pending::{candidate, proposal};
use crate::coding::publish::{CONSUMER, is_published};
use crate::coding::workspace::{Workspace, io, private_dir};
use crate::files::read_left;
use crate::limits::PLAN_BYTES;
use crate::render::escape;
use crate::render::page::{Page, Standing};
use crate::render::rows::History;

mod runs;

use runs::{admits, name, none_yet};
pub use runs::{is_live, pick, runs_of, unstarted_missions};

/// The directory that `--store` names, or the default one.
///
/// # Errors
///
/// `USAGE` when nothing is named and there is no home directory either.
pub fn location(named: Option<&Path>) -> Result<PathBuf, Error> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => state_home()?.join("praxis"),
    };
    std::path::absolute(&path)
        .map_err(|error| Error::new(Code::Usage, format!("--store {}: {error}", path.display())))
}

fn state_home() -> Result<PathBuf, Error> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .ok_or_else(|| {
            Error::new(
                Code::Usage,
                "expected a home directory for the store, found none; name one with --store DIR",
            )
        })
}

/// Makes the store unless there is one.
///
/// # Errors
///
/// A store code; nothing is left behind that the next try would stumble over.
pub fn create_if_missing(path: &Path) -> Result<(), Error> {
    if path.join("praxis-store.json").exists() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        private_dir(parent)?;
    }
    let journal =
        Journal::create(path, &Options::default()).map_err(|error| of_store(path, &error))?;
    journal.close().map_err(|error| of_store(path, &error))
}

/// The artifacts of a store.
///
/// # Errors
///
/// A store code when the directory cannot be used.
pub fn artifacts(path: &Path) -> Result<Arc<dyn ArtifactProvider>, Error> {
    let opened = FileArtifacts::open(&path.join("artifacts"))
        .map_err(|error| Error::new(error.code(), error.to_string()))?;
    Ok(Arc::new(opened))
}

/// A store failure with the path and what to type.
#[must_use]
pub fn of_store(path: &Path, error: &StoreError) -> Error {
    Error::new(error.code(), format!("{error}")).with("store", path.display().to_string())
}

/// A store that no engine has open, for reading.
pub struct Reader {
    /// Its directory.
    pub path: PathBuf,
    /// Its journal, open for reading alone.
    pub journal: Journal,
    artifacts: Arc<dyn ArtifactProvider>,
}

/// A run as it was read.
pub struct Run {
    /// Its state.
    pub state: RunState,
    /// Its events, oldest first.
    pub events: Vec<Sealed>,
    /// Its job.
    pub job: Job,
    /// Its mission's account.
    pub account: Option<AccountRow>,
}

impl Reader {
    /// Opens a store for reading.
    ///
    /// # Errors
    ///
    /// A store code: there is none, it is locked, newer, damaged or open to others.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let journal = open_for_reading(path)?;
        let artifacts = artifacts(path)?;
        Ok(Self {
            path: path.to_owned(),
            journal,
            artifacts,
        })
    }

    /// The runs of the store, oldest first.
    ///
    /// # Errors
    ///
    /// A store code when the log cannot be read.
    pub fn runs(&self) -> Result<Vec<Subject>, Error> {
        runs_of(&self.journal)
    }

    /// The run that a person means: by an unambiguous beginning of its name, or the latest one.
    ///
    /// # Errors
    ///
    /// `RUN_NOT_FOUND` or `RUN_AMBIGUOUS`.
    pub fn find(&self, named: Option<&str>) -> Result<Subject, Error> {
        let runs = self.runs()?;
        let found = match named {
            Some(named) => pick(&runs, named),
            None => runs.last().cloned().ok_or_else(none_yet),
        };
        // A second run for the same task is not what somebody wants whose first one only has to go on.
        found.map_err(|error| {
            let begun = self.begun();
            let meant = |subject: &&Subject| {
                named.is_none_or(|named| !named.is_empty() && name(subject).starts_with(named))
            };
            let Some(run) = begun.iter().rev().find(meant).map(name) else {
                return error;
            };
            let message = format!(
                "run {run} was begun and not admitted, a kill came between; go on with it: {} resume {run}",
                crate::render::program()
            );
            Error::new(Code::RunNotFound, message)
        })
    }

    /// Coding runs that were begun and not admitted because a kill came between, as `resume` goes on with them.
    #[must_use]
    pub fn begun(&self) -> Vec<Subject> {
        let missions = unstarted_missions(&self.journal).into_iter();
        // One whose job cannot be read has no name that could be said.
        missions
            .filter_map(|mission| {
                let run = self.job_of(&mission).ok()?.run_id;
                Some(Subject::run(mission, run))
            })
            .collect()
    }

    /// A run's state and events, without the material that it names.
    ///
    /// # Errors
    ///
    /// A store code when its events cannot be read or do not fold.
    pub fn state(&self, subject: &Subject) -> Result<(RunState, Vec<Sealed>), Error> {
        fold(&self.journal, subject)
    }

    /// A run's job.
    ///
    /// # Errors
    ///
    /// `ARTIFACT_UNAVAILABLE` or `ARTIFACT_MISMATCH`; `NOT_FOUND` for a run of another kind.
    pub fn job(&self, state: &RunState) -> Result<Job, Error> {
        Job::load(&state.contract, self.artifacts.as_ref())
    }

    /// A run with everything that is read about it.
    ///
    /// # Errors
    ///
    /// A store code when its events cannot be read or do not fold; `NOT_FOUND` for a run of another kind.
    pub fn load(&self, subject: &Subject) -> Result<Run, Error> {
        let (state, events) = self.state(subject)?;
        let job = self.job(&state)?;
        let account = self.journal.view().account(&cost_account(subject)).cloned();
        Ok(Run {
            state,
            events,
            job,
            account,
        })
    }

    /// The job of a mission whose run was not admitted yet.
    ///
    /// # Errors
    ///
    /// As [`Reader::load`].
    pub fn job_of(&self, mission: &MissionId) -> Result<Job, Error> {
        let events = self
            .journal
            .stream(&Subject::mission(mission.clone()).stream());
        let events = events.map_err(|error| Error::new(error.code(), error.to_string()))?;
        let opened = events
            .iter()
            .find_map(|sealed| match &sealed.event.command {
                Body::OpenMission(body) => Some(&body.contract),
                _ => None,
            });
        let contract = opened.ok_or_else(|| {
            Error::new(
                Code::StoreCorrupt,
                "expected the mission's contract, found none",
            )
        })?;
        Job::load(contract, self.artifacts.as_ref())
    }

    /// The bytes of an artifact.
    ///
    /// # Errors
    ///
    /// `ARTIFACT_UNAVAILABLE` or `ARTIFACT_MISMATCH`.
    pub fn artifact(&self, artifact: &aiws::record::Artifact) -> Result<Vec<u8>, Error> {
        praxis_artifacts::read_verified(self.artifacts.as_ref(), artifact, 0)
            .map_err(|error| Error::new(error.code(), error.to_string()))
    }
}

impl Reader {
    /// A run's page. Nobody runs it now, so a dispatched attempt is one that nobody knows the outcome of.
    #[must_use]
    pub fn page(&self, run: &Run, now_ms: u64) -> Page {
        let mut page = Page::of(
            &orphaned(&run.state),
            &run.job,
            &History::of(&run.events),
            run.account.as_ref(),
            self.has_branch(run),
            now_ms,
        );
        for uncertain in &mut page.uncertain {
            let attempt = run.state.attempts.get(uncertain.attempt.as_str());
            uncertain.why = attempt.and_then(|attempt| self.why(attempt));
        }
        page.to_read = self.to_read(run, page.standing, now_ms);
        page
    }

    /// The file that has what waits for a person: the plan as the agent left it where that is what was recorded, or
    /// else the stored bytes.
    fn to_read(
        &self,
        run: &Run,
        standing: Standing,
        now_ms: u64,
    ) -> Option<(&'static str, String)> {
        let (what, digest) = match standing {
            Standing::NeedsApproval => {
                let proposal = proposal(&run.state, &run.job, now_ms).ok().flatten()?;
                ("plan", proposal.plan.digest)
            }
            Standing::NeedsAcceptance => {
                let candidate = candidate(&run.state).ok().flatten()?;
                ("patch", candidate.patch.digest)
            }
            _ => return None,
        };
        let stored = self.path.join("artifacts").join(digest.to_string());
        let left = (what == "plan").then(|| self.left_plan(run, &digest));
        let path = left.flatten().unwrap_or(stored);
        path.is_file()
            .then(|| (what, escape::line(&path.display().to_string())))
    }

    /// The plan in the folder of the attempt that wrote it, if it is the very bytes.
    fn left_plan(&self, run: &Run, digest: &Digest) -> Option<PathBuf> {
        let node = graph::node_id(graph::PLAN).ok()?;
        let mut operations = run.state.operations.values();
        let made = operations.find(|operation| operation.node_id.as_ref() == Some(&node))?;
        let workspace = Workspace::at(&self.path, run.job.run_id.as_str(), &run.job.base_commit);
        let files = AttemptFiles::of(&workspace, &node, made.attempts.len() as u64);
        let path = files.output().join(PLAN_FILE);
        let bytes = read_left(workspace.root(), &path, PLAN_BYTES, Code::StoreIo).ok()?;
        (sha256(&bytes) == *digest).then_some(path)
    }

    /// Why nobody knows what an attempt did, in a line, where that was recorded.
    #[must_use]
    pub fn why(&self, attempt: &Attempt) -> Option<String> {
        why_uncertain(self.artifacts.as_ref(), attempt).map(|why| escape::line(&why))
    }

    /// Whether the accepted result was published: the publisher's cursor passed the run's end or, where another run's
    /// branch or a lost index holds the cursor back, the repository has the very commit.
    fn has_branch(&self, run: &Run) -> bool {
        let completed = run
            .events
            .iter()
            .rev()
            .find(|sealed| sealed.event.kind == CommandType::CompleteRun);
        let Some(completed) = completed else {
            return false;
        };
        let place = self
            .journal
            .find_event(&completed.event.stream, &completed.hash);
        let passed = ConsumerId::new(CONSUMER)
            .ok()
            .zip(place.ok().flatten())
            .is_some_and(|(consumer, place)| self.journal.cursor(&consumer) >= place);
        let job = &run.job;
        passed
            || is_published(
                &Workspace::at(&self.path, job.run_id.as_str(), &job.base_commit),
                job,
            )
    }
}

/// The state as the next owner will find it: what was in flight is in doubt.
#[must_use]
pub fn orphaned(state: &RunState) -> RunState {
    let mut state = state.clone();
    let dispatched =
        |attempt: &aiws::record::Attempt| attempt.status == aiws::record::AttemptStatus::Dispatched;
    let in_flight: Vec<_> = state
        .attempts
        .values()
        .filter(|attempt| dispatched(attempt))
        .cloned()
        .collect();
    for mut attempt in in_flight {
        attempt.status = aiws::record::AttemptStatus::Unknown;
        state
            .attempts
            .insert_mut(attempt.attempt_id.clone(), attempt);
    }
    state
}

/// Opens the journal for reading alone, and only if it is whole: what is read from a damaged one is cut, and would be
/// shown as if it were all.
///
/// # Errors
///
/// A store code.
pub fn open_for_reading(path: &Path) -> Result<Journal, Error> {
    let journal = open_for_verifying(path)?;
    match journal.view().damage() {
        Some(damage) => Err(of_store(path, damage)),
        None => Ok(journal),
    }
}

/// Opens the journal for reading alone, also where it is damaged: only verification may go on with that.
///
/// # Errors
///
/// A store code.
pub fn open_for_verifying(path: &Path) -> Result<Journal, Error> {
    let options = Options {
        read_only: true,
        ..Options::default()
    };
    Journal::open(path, &options).map_err(|error| of_store(path, &error))
}

/// Folds a run from its events.
fn fold(journal: &Journal, subject: &Subject) -> Result<(RunState, Vec<Sealed>), Error> {
    let failed = |error: StoreError| Error::new(error.code(), error.to_string());
    let mission = journal
        .stream(&Subject::mission(subject.mission_id.clone()).stream())
        .map_err(failed)?;
    let admitting = mission.iter().find(|sealed| admits(sealed, subject));
    let Some(admitting) = admitting else {
        return Err(Error::new(
            Code::StoreCorrupt,
            "expected the event that admitted the run, found none; run praxis verify",
        ));
    };
    let illegal =
        |what: String| Error::new(Code::StoreCorrupt, format!("{what}; run praxis verify"));
    let mut state = RunState::admitted(&admitting.event, &admitting.hash)
        .map_err(|error| illegal(error.to_string()))?;
    let events = journal.stream(&subject.stream()).map_err(failed)?;
    for sealed in &events {
        state = praxis_model::evolve::run(state, &sealed.event, &sealed.hash)
            .map_err(|error| illegal(error.to_string()))?;
    }
    Ok((state, events))
}

/// Writes a file for the owner's eyes; it must not be there yet unless `replace` says so.
///
/// # Errors
///
/// A store code with the system's message.
pub fn write_private(path: &Path, bytes: &[u8], replace: bool) -> Result<(), Error> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).mode(0o600);
    if replace {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options
        .open(path)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(|error| io(path, &error))
}

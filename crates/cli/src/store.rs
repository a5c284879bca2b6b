//! The store directory: where it is, how it is made, and how runs are read from it while no engine has it.
//! Invariant: reading never writes an event; a store is created by `code` alone.
//! Called by the verbs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiws::error::{Code, Error};
use aiws::id::{MissionId, RunId};
use praxis_artifacts::{ArtifactProvider, FileArtifacts};
use praxis_journal::{Journal, Options, StoreError};
use praxis_journal_format::Sealed;
use praxis_model::account::AccountRow;
use praxis_model::command::Body;
use praxis_model::mission::cost_account;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use crate::coding::contract::Job;
use crate::coding::workspace::{io, private_dir};
use crate::render::page::Standing;

mod page;
mod people;
mod runs;
mod shims;

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

/// An open store, for reading: with the engine of this process, or while no engine has it.
pub struct Reader {
    /// Its directory.
    pub path: PathBuf,
    /// Its journal, open for reading alone.
    pub journal: Journal,
    artifacts: Arc<dyn ArtifactProvider>,
    /// Whether the engine of this process has the store.
    owned: bool,
    /// Whether it is open for writing.
    writes: bool,
    /// The runs that go on in the engine of this process.
    driven: BTreeSet<RunId>,
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
            owned: false,
            writes: false,
            driven: BTreeSet::new(),
        })
    }

    /// A store that was opened for reading, with its artifacts as they are.
    #[must_use]
    pub fn new(path: PathBuf, journal: Journal, artifacts: Arc<dyn ArtifactProvider>) -> Self {
        Self {
            path,
            journal,
            artifacts,
            owned: false,
            writes: false,
            driven: BTreeSet::new(),
        }
    }

    /// Opens a store that no engine has, for moving the cursor of a consumer and for nothing else.
    ///
    /// # Errors
    ///
    /// A store code.
    pub fn open_for_acknowledging(path: &Path) -> Result<Self, Error> {
        let journal = Journal::open(path, &Options::default());
        let journal = journal.map_err(|error| of_store(path, &error))?;
        if let Some(error) = &journal.view().read_only {
            return Err(of_store(path, error));
        }
        let artifacts = artifacts(path)?;
        Ok(Self {
            path: path.to_owned(),
            journal,
            artifacts,
            owned: false,
            writes: true,
            driven: BTreeSet::new(),
        })
    }

    /// The store that this process's engine has open.
    #[must_use]
    pub fn of_engine(
        path: PathBuf,
        journal: Journal,
        artifacts: Arc<dyn ArtifactProvider>,
    ) -> Self {
        Self {
            path,
            journal,
            artifacts,
            owned: true,
            writes: true,
            driven: BTreeSet::new(),
        }
    }

    /// The same store with the runs that go on in this process's engine.
    #[must_use]
    pub fn driving(mut self, runs: BTreeSet<RunId>) -> Self {
        self.driven = runs;
        self
    }

    /// Whether a run goes on in this process's engine.
    #[must_use]
    pub fn drives(&self, run: &RunId) -> bool {
        self.driven.contains(run)
    }

    /// Lets go of a store that was opened for reading.
    ///
    /// # Errors
    ///
    /// A store code.
    pub fn close(&self) -> Result<(), Error> {
        self.journal
            .close()
            .map_err(|error| of_store(&self.path, &error))
    }

    /// Whether cursors of consumers can be moved.
    #[must_use]
    pub fn can_acknowledge(&self) -> bool {
        self.writes
    }

    /// Whether the engine of this process has the store.
    #[must_use]
    pub fn is_owned(&self) -> bool {
        self.owned
    }

    /// A run's state as it is to be seen: with what shims say, and what is in doubt where nobody owns the run.
    #[must_use]
    pub fn left(&self, state: &RunState) -> RunState {
        shims::seen(&self.path, state, self.owned)
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

    /// Whether a run was ever admitted, of whatever kind its mission is.
    #[must_use]
    pub fn is_admitted(&self, subject: &Subject) -> bool {
        runs::is_admitted(&self.journal, subject)
    }

    /// A run's state and events, without the material that it names.
    ///
    /// # Errors
    ///
    /// A store code when its events cannot be read or do not fold.
    pub fn state(&self, subject: &Subject) -> Result<(RunState, Vec<Sealed>), Error> {
        fold(&self.journal, subject)
    }

    /// A run's state as it was before one of its events.
    ///
    /// # Errors
    ///
    /// As [`Reader::state`].
    pub fn state_before(&self, subject: &Subject, revision: u64) -> Result<RunState, Error> {
        fold_until(&self.journal, subject, revision).map(|(state, _)| state)
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

/// Where a run stands that this process's engine has, with what its shims say.
#[must_use]
pub fn standing(store: &Path, state: &RunState, job: &Job, now_ms: u64) -> Standing {
    Standing::of(&shims::seen(store, state, true), job, now_ms)
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
    fold_until(journal, subject, u64::MAX)
}

/// Folds a run from its events before a revision.
fn fold_until(
    journal: &Journal,
    subject: &Subject,
    revision: u64,
) -> Result<(RunState, Vec<Sealed>), Error> {
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
    let mut events = journal.stream(&subject.stream()).map_err(failed)?;
    events.retain(|sealed| sealed.event.revision.get() < revision);
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

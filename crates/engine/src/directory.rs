//! The directory: which actor owns which mission and run, and how its mailbox is bounded.
//!
//! Invariant: only the supervisor writes it; a permit outlives the actor that it was given for, so that a crash
//! does not widen a mailbox. Read by every client handle and worker.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use aiws::error::Error;
use aiws::id::MissionId;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use praxis_sync::fence::Fence;
use ractor::ActorRef;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::error::busy;
use crate::limits::MAILBOX_PERMITS;
use crate::message::{MissionMessage, RunMessage};

/// A run's actor and what is kept over its crashes.
#[derive(Clone)]
pub(crate) struct RunEntry {
    /// The actor that owns the run now.
    pub(crate) actor: ActorRef<RunMessage>,
    /// What is kept.
    pub(crate) kept: RunKept,
}

/// What is kept of a run while its actors come and go.
#[derive(Clone)]
pub(crate) struct RunKept {
    permits: Arc<Semaphore>,
    /// The epoch that is current in this process.
    pub(crate) fence: Arc<Fence>,
    /// Where new states are published; set by the first fold.
    pub(crate) watch: Arc<OnceLock<watch::Sender<Arc<RunState>>>>,
}

/// A mission's actor.
#[derive(Clone)]
pub(crate) struct MissionEntry {
    /// The actor that owns the mission now.
    pub(crate) actor: ActorRef<MissionMessage>,
    /// What is kept.
    pub(crate) kept: MissionKept,
}

/// What is kept of a mission while its actors come and go.
#[derive(Clone)]
pub(crate) struct MissionKept(Arc<Semaphore>);

/// The actors of one engine.
#[derive(Default)]
pub(crate) struct Directory {
    runs: RwLock<BTreeMap<Subject, RunEntry>>,
    missions: RwLock<BTreeMap<MissionId, MissionEntry>>,
}

impl RunKept {
    /// For a run whose durable epoch is `epoch`.
    pub(crate) fn new(epoch: u64) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAILBOX_PERMITS)),
            fence: Arc::new(Fence::new(epoch)),
            watch: Arc::new(OnceLock::new()),
        }
    }

    /// Room for one request, or BUSY (T-55).
    pub(crate) fn permit(&self) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.permits)
            .try_acquire_owned()
            .map_err(|_| busy())
    }

    /// Publishes a state to whoever watches the run.
    pub(crate) fn publish(&self, state: &Arc<RunState>) {
        let sender = self
            .watch
            .get_or_init(|| watch::Sender::new(Arc::clone(state)));
        sender.send_replace(Arc::clone(state));
    }
}

impl MissionKept {
    /// For any mission.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAILBOX_PERMITS)))
    }

    /// Room for one request, or BUSY (T-55).
    pub(crate) fn permit(&self) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.0).try_acquire_owned().map_err(|_| busy())
    }
}

impl Directory {
    /// The run's entry.
    pub(crate) fn run(&self, subject: &Subject) -> Option<RunEntry> {
        self.runs
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(subject)
            .cloned()
    }

    /// The mission's entry.
    pub(crate) fn mission(&self, mission: &MissionId) -> Option<MissionEntry> {
        self.missions
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(mission)
            .cloned()
    }

    /// All runs with an actor, in the order of their subjects.
    pub(crate) fn runs(&self) -> Vec<(Subject, RunEntry)> {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        runs.iter()
            .map(|(subject, entry)| (subject.clone(), entry.clone()))
            .collect()
    }

    /// Enters a run's actor. The supervisor's alone.
    pub(crate) fn set_run(&self, subject: Subject, entry: RunEntry) {
        self.runs
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(subject, entry);
    }

    /// Enters a mission's actor. The supervisor's alone.
    pub(crate) fn set_mission(&self, mission: MissionId, entry: MissionEntry) {
        self.missions
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(mission, entry);
    }

    /// Removes a run's actor. The supervisor's alone.
    pub(crate) fn remove_run(&self, subject: &Subject) {
        self.runs
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(subject);
    }

    /// Removes a mission's actor. The supervisor's alone.
    pub(crate) fn remove_mission(&self, mission: &MissionId) {
        self.missions
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(mission);
    }

    /// Tells every live run of a mission that a register or gate around it moved (T-08).
    pub(crate) fn moved(&self, mission: &MissionId) {
        for (subject, entry) in self.runs() {
            if subject.mission_id == *mission {
                // A run that is just ending needs no notice.
                let _ = entry.actor.cast(RunMessage::Tick { moved: true });
            }
        }
    }
}

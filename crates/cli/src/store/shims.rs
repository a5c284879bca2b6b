//! What the shims of a run's attempts say, beside what the log says.
//! Invariant: an attempt whose shim lives, or left a record that holds, is under way; nobody has to be asked about it.
//! Called by the reader of the store, and by the office where it keeps runs.

use std::path::Path;

use aiws::decimal::U64;
use aiws::record::{Attempt, AttemptStatus};
use praxis_engine::shim::{self, Probe};
use praxis_model::run::RunState;

use crate::coding::attempt::AttemptFiles;
use crate::coding::contract::Job;
use crate::coding::workspace::Workspace;
use crate::human::ProcessId;

/// The attempts whose outcome is not recorded, each with its files and what its shim says.
fn open_attempts<'a>(
    store: &Path,
    state: &'a RunState,
) -> impl Iterator<Item = (&'a Attempt, AttemptFiles, Probe)> {
    // Only coding runs have shims: what a worker does elsewhere is no work of this engine.
    let coding = Job::named_in(&state.contract).is_some();
    let run = state.subject.run_id.as_ref();
    // The base commit has no say in where files are.
    let workspace = Workspace::at(store, run.map_or("", |run| run.as_str()), "");
    let open = |attempt: &&Attempt| {
        matches!(
            attempt.status,
            AttemptStatus::Dispatched | AttemptStatus::Unknown
        )
    };
    state
        .attempts
        .values()
        .filter(move |attempt| coding && open(attempt))
        .filter_map(move |attempt| {
            let files = AttemptFiles::of_attempt(&workspace, state, attempt)?;
            let probe = files.probe();
            Some((attempt, files, probe))
        })
}

/// Whether its shim shows what becomes of an attempt.
fn is_shown(probe: &Probe) -> bool {
    match probe {
        // A record that does not hold counts as none.
        Probe::Running(_) | Probe::Ended(_) => true,
        Probe::Lost(_) | Probe::NotStarted => false,
    }
}

/// The state as it is seen with what the shims say: an attempt that a shim shows is under way, whoever owns the run,
/// and where nobody does any other one in flight is in doubt.
pub(super) fn seen(store: &Path, state: &RunState, owned: bool) -> RunState {
    let mut shown = state.clone();
    for (attempt, _, probe) in open_attempts(store, state) {
        let mut attempt = attempt.clone();
        if is_shown(&probe) {
            attempt.status = AttemptStatus::Dispatched;
            attempt.epoch = U64(state.epoch);
        } else if !owned {
            attempt.status = AttemptStatus::Unknown;
        } else {
            continue;
        }
        shown
            .attempts
            .insert_mut(attempt.attempt_id.clone(), attempt);
    }
    shown
}

/// The shims that live.
pub(super) fn living(store: &Path, state: &RunState) -> Vec<ProcessId> {
    let started = open_attempts(store, state).filter_map(|(_, _, probe)| match probe {
        Probe::Running(started) => started,
        _ => None,
    });
    let process = |started: shim::Started| {
        Some(ProcessId {
            pid: u32::try_from(started.shim_pid).ok()?,
            start: started.shim_start.0,
        })
    };
    started.filter_map(process).collect()
}

/// Whether the processes of an attempt may be anywhere: it was dispatched, and has neither a shim that can be named nor
/// a record. A lock alone says nothing: whoever killed the shim can hold it, too.
pub(super) fn is_lost(store: &Path, state: &RunState, owned: bool) -> bool {
    open_attempts(store, state).any(|(attempt, _, probe)| {
        let unnamed = matches!(probe, Probe::NotStarted | Probe::Running(None));
        // One that this engine dispatched a moment ago may not have its files yet.
        let starting = owned
            && attempt.status == AttemptStatus::Dispatched
            && attempt.epoch.0 == state.epoch
            && unnamed;
        !starting && (unnamed || !is_shown(&probe))
    })
}

/// Asks every shim of the run to stop, and whether one of them will say what became of its attempt.
pub(super) fn stop(store: &Path, state: &RunState, owned: bool) -> bool {
    let mut stopping = false;
    for (attempt, files, probe) in open_attempts(store, state) {
        match probe {
            Probe::Running(_) => {
                // One that cannot be asked yet, or ends by itself meanwhile, is looked at again with the next change.
                let _ = shim::stop(files.folder());
                stopping = true;
            }
            Probe::Ended(_) => stopping = true,
            Probe::NotStarted => {
                stopping |= owned
                    && attempt.status == AttemptStatus::Dispatched
                    && attempt.epoch.0 == state.epoch;
            }
            _ => {}
        }
    }
    stopping
}

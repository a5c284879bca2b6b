//! The shim: a process between the engine and a command, so that what the command did is known when the engine dies.
//!
//! Invariant: the lock is held from before the shim is started until it is gone; lock free and exit record whole means
//! that this is how the command ended; lock free and no such record means that nobody knows. Nothing here starts a
//! command twice. Called by adapters of hosts; the body of the shim itself by a verb of theirs.
//!
//! | file of the folder | what it is |
//! |---|---|
//! | `shim.lock` | locked while the shim lives; `shim.lost` once an engine saw that it died without a record |
//! | `shim.json` | [`Spec`]: what is to be run |
//! | `start.json` | [`Started`]: which processes these are |
//! | `transcript.txt` | the output, bounded and masked |
//! | `exit.json` | [`ExitRecord`]: how it ended, with the digests of what it left |

pub mod descendants;
pub mod mask;
mod record;
mod run;
mod start;

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use tokio::sync::oneshot;

pub use mask::{Mask, looks_secret};
pub use record::{ExitRecord, Output, Spec, Started, TRANSCRIPT};
pub use run::{Ending, Finish, main};
pub use start::{Ran, Shim};

use record::{LOCK, LOST, open_below};

/// The first argument that makes a host's program a shim; the folder follows.
pub const VERB: &str = "__shim";

/// What a folder says about its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Its shim lives; the record is there as soon as the command is about to start.
    Running(Option<Started>),
    /// It ended like this.
    Ended(Box<ExitRecord>),
    /// Nobody knows: the shim is gone and left no record that can be believed.
    Lost(Option<Started>),
    /// There never was a shim here, or its files are gone.
    NotStarted,
}

/// What a folder says now. Never waits; what cannot be read counts as lost.
pub fn probe(folder: &Path) -> Probe {
    look(folder).unwrap_or_else(|_| Probe::Lost(Started::read(folder)))
}

/// As [`probe`], with the reason where an exit record cannot be believed.
///
/// # Errors
///
/// Why nobody knows what the command did although there is something to read.
pub fn look(folder: &Path) -> Result<Probe, String> {
    let Some(lock) = lock_of(folder)? else {
        return Ok(without_lock(folder));
    };
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Probe::Running(Started::read(folder))),
        Err(error) => return Err(format!("its lock cannot be taken: {error}")),
    }
    Ok(match ExitRecord::read(folder)? {
        Some(record) => Probe::Ended(Box::new(record)),
        None => Probe::Lost(Started::read(folder)),
    })
}

fn lock_of(folder: &Path) -> Result<Option<File>, String> {
    match open_below(folder, Path::new(LOCK)) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("its lock cannot be read: {error}")),
    }
}

fn without_lock(folder: &Path) -> Probe {
    match std::fs::symlink_metadata(folder.join(LOST)) {
        Ok(_) => Probe::Lost(Started::read(folder)),
        Err(_) => Probe::NotStarted,
    }
}

/// Waits until no shim lives on a folder, then says what it left. Dropping the future leaves the shim alone.
pub async fn wait(folder: &Path) -> Result<Probe, String> {
    let Some(lock) = lock_of(folder)? else {
        return Ok(without_lock(folder));
    };
    let (say, free) = oneshot::channel();
    let wait = move || {
        let locked = loop {
            match flock(&lock, FlockOperation::LockShared) {
                Err(rustix::io::Errno::INTR) => {}
                locked => break locked,
            }
        };
        drop(lock);
        // Nobody asks any more when the future was dropped.
        let _ = say.send(locked);
    };
    let thread = std::thread::Builder::new().name("attached".to_owned());
    thread
        .spawn(wait)
        .map_err(|error| format!("there is no thread to wait on: {error}"))?;
    match free.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(format!("its lock cannot be taken: {error}")),
        Err(_) => return Err("the wait for its lock stopped".to_owned()),
    }
    let folder = folder.to_owned();
    // An output may be large, and reading it is no work for a thread that drives others.
    tokio::task::spawn_blocking(move || look(&folder))
        .await
        .unwrap_or_else(|_| Err("reading its record stopped".to_owned()))
}

/// Kills what is left of the command of a folder whose shim is gone, as far as it is found: the command with what
/// descends from it, and what carries the entry `marker` in its environment. `just_lived` says that the shim was seen
/// alive a moment ago, so that its session is still its own.
pub fn end_left(folder: &Path, marker: &str, just_lived: bool) {
    if let Some(started) = Started::read(folder) {
        descendants::end_left(&started, Some(marker), just_lived);
    }
}

/// Asks the shim of a folder to stop its command; the exit record then says that it was stopped. False where no shim
/// lives there.
///
/// # Errors
///
/// The system's, where the shim lives and cannot be asked.
pub fn stop(folder: &Path) -> io::Result<bool> {
    match probe(folder) {
        Probe::Running(Some(started)) => {
            descendants::signal(started.shim_pid, started.shim_start.0, Signal::TERM)
        }
        Probe::Running(None) => Err(io::Error::other("it is about to start; ask again")),
        _ => Ok(false),
    }
}

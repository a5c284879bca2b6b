//! Starting a shim, and what its end means to the engine that saw it.
//!
//! Invariant: the lock is taken before the shim is started and handed to it as its standard input; an error means that
//! nothing ran; dropping the future leaves shim and command alone. Called by adapters.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use aiws::decimal::U64;
use aiws::id::{AttemptId, OperationId};
use aiws::json::Value;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tokio::sync::oneshot;

use super::record::{COMPLAINTS, ExitRecord, LOCK, LOST, SPEC, Spec, Started, write};
use super::run::EXIT_NOTHING_RAN;
use super::{VERB, descendants};
use crate::process::Process;

/// A command to be run under a shim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shim {
    /// The program that is a shim when its arguments are [`VERB`] and the folder.
    pub program: PathBuf,
    /// The folder of the attempt; it is there, and no shim was there before.
    pub folder: PathBuf,
    /// The operation.
    pub operation_id: OperationId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The command; its transcript is the folder's, and no tails are kept.
    pub process: Process,
    /// What the host's own part of the shim needs to know.
    pub host: Value,
}

/// What became of a command under a shim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// It ended, and this is how.
    Ended(Box<ExitRecord>),
    /// The shim says that it never started the command.
    NotStarted(String),
    /// Nobody knows what it did; what was left of it was killed as far as it was found.
    Lost(String),
}

impl Shim {
    /// Runs the command to its end.
    ///
    /// # Errors
    ///
    /// The system's, when the shim could not be started; nothing ran then.
    pub async fn run(&self) -> io::Result<Ran> {
        let child = self.start()?;
        let (folder, marker) = (self.folder.clone(), self.marker());
        let (say, ended) = oneshot::channel();
        let wait = move || {
            let ran = seen_out(child, &folder, marker.as_deref(), || say.is_closed());
            // Nobody asks any more when the future was dropped.
            let _ = say.send(ran);
        };
        let thread = std::thread::Builder::new().name("shim".to_owned());
        if let Err(error) = thread.spawn(wait) {
            let why = format!("there was no thread to wait for the shim: {error}");
            return Ok(Ran::Lost(why));
        }
        let unseen = || Ran::Lost("nobody saw how the shim ended".to_owned());
        Ok(ended.await.unwrap_or_else(|_| unseen()))
    }

    fn start(&self) -> io::Result<Child> {
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.folder.join(LOCK))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        write(&self.folder, SPEC, &self.spec()?)?;
        let complaints = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(self.folder.join(COMPLAINTS))?;
        self.command(lock, complaints).spawn()
    }

    fn command(&self, lock: File, complaints: File) -> Command {
        let mut command = Command::new(&self.program);
        command.arg0("praxis").arg(VERB).arg(&self.folder);
        command.env_clear().envs(self.process.environment());
        // A group of its own: what a terminal sends to the engine's is not meant for the command.
        command.process_group(0).current_dir("/");
        command.stdin(lock).stdout(Stdio::null()).stderr(complaints);
        command
    }

    fn spec(&self) -> io::Result<Spec> {
        let directory = self.process.directory.to_str();
        let directory = directory.ok_or_else(|| io::Error::other("the path is not UTF-8"))?;
        let environment = self.process.environment();
        Ok(Spec {
            format: "praxis-shim".to_owned(),
            version: U64(0),
            operation_id: self.operation_id.clone(),
            attempt_id: self.attempt_id.clone(),
            line: self.process.line.clone(),
            directory: directory.to_owned(),
            environment: environment.into_keys().collect(),
            wall_ms: U64(self.process.wall_ms),
            transcript_bytes: U64(self.process.transcript_bytes),
            mask_names: self.process.mask_names.clone(),
            host: self.host.clone(),
        })
    }

    /// An entry of the environment that this attempt alone has.
    fn marker(&self) -> Option<String> {
        let attempt = self.attempt_id.as_str();
        let mut set = self.process.set.iter();
        let (name, value) = set.find(|(_, value)| value.as_str() == attempt)?;
        Some(format!("{name}={value}"))
    }
}

/// Waits for a shim and says what its end means. A shim that was killed cannot end its command any more.
fn seen_out(
    mut child: Child,
    folder: &Path,
    marker: Option<&str>,
    is_left: impl Fn() -> bool,
) -> Ran {
    // Until it is waited for, its number belongs to nobody else.
    let ended = waitid(
        WaitId::Pid(Pid::from_child(&child)),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    );
    let killed = ended.is_ok_and(|status| status.is_some_and(|status| !status.exited()));
    // Whoever stopped waiting left the command to itself.
    if killed
        && !is_left()
        && let Some(started) = Started::read(folder)
    {
        descendants::end_left(&started, marker, true);
    }
    let Ok(status) = child.wait() else {
        return Ran::Lost("the system did not say how the shim ended".to_owned());
    };
    let ran = match status.code() {
        Some(0) => recorded(folder),
        Some(EXIT_NOTHING_RAN) => Ran::NotStarted(complaint(folder)),
        _ => Ran::Lost(lost(status)),
    };
    if matches!(ran, Ran::Lost(_)) && !is_left() {
        // What was seen to have left no record has none, whatever is found there later.
        let _ = std::fs::rename(folder.join(LOCK), folder.join(LOST));
    }
    ran
}

fn recorded(folder: &Path) -> Ran {
    match ExitRecord::read(folder) {
        Ok(Some(record)) => match &record.not_started {
            Some(why) => Ran::NotStarted(why.clone()),
            None => Ran::Ended(Box::new(record)),
        },
        Ok(None) => Ran::Lost("its shim left no record of how it ended".to_owned()),
        Err(why) => Ran::Lost(format!("the record of how it ended does not hold: {why}")),
    }
}

fn complaint(folder: &Path) -> String {
    let said = std::fs::read_to_string(folder.join(COMPLAINTS)).unwrap_or_default();
    let last = said.lines().last().unwrap_or("the shim gave no reason");
    last.to_owned()
}

fn lost(status: ExitStatus) -> String {
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("failed with exit {code}"),
        (None, None) => "ended somehow".to_owned(),
    };
    format!(
        "its shim {how} before it could record how the command ended, and what was found of the command was stopped"
    )
}

//! The body of a shim: runs one command, ends everything below it, records how it ended.
//!
//! Invariant: `start.json` is durable before the command is started, `exit.json` after everything that it names; whoever
//! kills the shim leaves no exit record. Called by the host's hidden verb, in a process of its own.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use aiws::decimal::U64;
use aiws::digest::Digest;
use rustix::process::{Pid, getpgid, getpid, getppid, set_child_subreaper, setpgid, setsid};

use super::Mask;
use super::descendants::{boot, seen};
use super::record::{EXIT, ExitRecord, LOCK, Output, START, Spec, Started, TRANSCRIPT, write};
use crate::ports::{Clock, SystemClock};
use crate::process::{Exit, Finished, Process, Watch};

/// The exit of a shim that never started its command and could not even record that.
pub(super) const EXIT_NOTHING_RAN: i32 = 64;
/// The exit of a shim that started its command and could not record how it ended.
const EXIT_UNRECORDED: i32 = 70;

/// How a command ended, for the host's own part.
pub struct Ending {
    /// What was run.
    pub spec: Spec,
    /// How it ended.
    pub finished: Finished,
    /// The values that nothing may hold that is kept.
    pub mask: Mask,
}

/// What the host's own part adds to the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finish {
    /// Files below the folder whose digests are recorded, by name.
    pub outputs: Vec<(String, PathBuf)>,
    /// Why the work does not count.
    pub failure: Option<String>,
}

/// Runs the command of a folder and returns the exit of the shim. The standard input has to be the folder's lock.
pub fn main(folder: &Path, finish: impl FnOnce(&Ending) -> Finish) -> i32 {
    let prepared = match Prepared::new(folder) {
        Ok(prepared) => prepared,
        Err(error) => return complain(&error, EXIT_NOTHING_RAN),
    };
    match prepared.run(folder, finish) {
        Ok(()) => 0,
        Err((error, exit)) => complain(&error, exit),
    }
}

fn complain(error: &io::Error, exit: i32) -> i32 {
    // Whoever started the shim has only the exit where this cannot be written.
    let _ = writeln!(io::stderr(), "{error}");
    exit
}

/// A shim that may start its command.
struct Prepared {
    /// Held until the process ends.
    _lock: File,
    spec: Spec,
    digest: Digest,
    process: Process,
    mask: Mask,
    started: Started,
    runtime: tokio::runtime::Runtime,
}

impl Prepared {
    fn new(folder: &Path) -> io::Result<Self> {
        let lock = take_lock(folder)?;
        leave_terminal()?;
        set_child_subreaper(Some(getpid()))?;
        let (spec, digest) = Spec::read(folder).map_err(io::Error::other)?;
        let process = process_of(folder, &spec);
        let mask = process.mask();
        let me = getpid().as_raw_nonzero().get();
        let own = seen(me).ok_or_else(|| io::Error::other("/proc does not show the shim"))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            _lock: lock,
            spec,
            digest,
            process,
            mask,
            started: Started {
                format: "praxis-start".to_owned(),
                version: U64(0),
                boot: boot().unwrap_or_default(),
                shim_pid: me,
                shim_start: U64(own.start),
                command_pid: None,
                command_start: None,
                at_ms: U64(SystemClock.now_ms()),
            },
            runtime,
        })
    }

    fn run(
        self,
        folder: &Path,
        finish: impl FnOnce(&Ending) -> Finish,
    ) -> Result<(), (io::Error, i32)> {
        let nothing = |error| (error, EXIT_NOTHING_RAN);
        let unrecorded = |error| (error, EXIT_UNRECORDED);
        write(folder, START, &self.started).map_err(nothing)?;
        let ran = self.runtime.block_on(self.command(folder));
        let (finished, all_ended) = match ran {
            Ok(ran) => ran,
            Err(error) => {
                let mut record = self.record(None, true);
                record.not_started = Some(error.to_string());
                return write(folder, EXIT, &record).map_err(nothing);
            }
        };
        let mut record = self.record(Some(&finished), all_ended);
        let ending = Ending {
            spec: self.spec,
            finished,
            mask: self.mask,
        };
        let finish = finish(&ending);
        record.failure = finish.failure;
        let transcript = (TRANSCRIPT.to_owned(), folder.join(TRANSCRIPT));
        // What stands in its place when it was not kept is no transcript.
        if let Ok((output, bytes)) = Output::of(folder, transcript.0, &transcript.1)
            && ending.mask.found_in(&bytes).is_none()
        {
            record.outputs.push(output);
        }
        for (name, file) in finish.outputs {
            let (output, _) = Output::of(folder, name, &file).map_err(unrecorded)?;
            record.outputs.push(output);
        }
        write(folder, EXIT, &record).map_err(unrecorded)
    }

    /// Runs the command; an error says that it was not started.
    async fn command(&self, folder: &Path) -> io::Result<(Finished, bool)> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut stop = signal(SignalKind::terminate())?;
        let running = self.process.start().await?;
        let pid = running.pid();
        let mut started = self.started.clone();
        started.command_pid = Some(pid);
        started.command_start = seen(pid).map(|seen| U64(seen.start));
        // The command runs: a record of its number that cannot be kept only makes it harder to find.
        let _ = write(folder, START, &started);
        let watch = Watch {
            stop: async {
                stop.recv().await;
            },
            subreaper: true,
        };
        Ok(running.watch(watch).await)
    }

    fn record(&self, finished: Option<&Finished>, all_ended: bool) -> ExitRecord {
        let exit = finished.map(|finished| finished.exit);
        ExitRecord {
            format: "praxis-exit".to_owned(),
            version: U64(0),
            operation_id: self.spec.operation_id.clone(),
            attempt_id: self.spec.attempt_id.clone(),
            spec: self.digest,
            exit: match exit {
                Some(Exit::Code(code)) => Some(code),
                _ => None,
            },
            signal: match exit {
                Some(Exit::Signal(signal)) => Some(signal),
                _ => None,
            },
            timed_out: finished.is_some_and(|finished| finished.timed_out),
            stopped: finished.is_some_and(|finished| finished.stopped),
            not_started: None,
            duration_ms: U64(finished.map_or(0, |finished| finished.duration_ms)),
            transcript_truncated: finished.is_some_and(|finished| finished.transcript_truncated),
            all_ended,
            outputs: Vec::new(),
            failure: None,
        }
    }
}

/// The command of a spec. Its environment is the shim's own, by name.
fn process_of(folder: &Path, spec: &Spec) -> Process {
    let mut process = Process::new(&spec.line, &spec.directory);
    process.pass = spec.environment.clone();
    process.mask_names = spec.mask_names.clone();
    process.wall_ms = spec.wall_ms.0;
    process.transcript = Some(folder.join(TRANSCRIPT));
    process.transcript_bytes = spec.transcript_bytes.0;
    process.tail_bytes = 0;
    process
}

/// The lock, out of the standard input and into a descriptor that no command inherits.
fn take_lock(folder: &Path) -> io::Result<File> {
    let lock = File::from(rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?);
    let (given, wanted) = (
        lock.metadata()?,
        std::fs::symlink_metadata(folder.join(LOCK))?,
    );
    if (given.dev(), given.ino()) != (wanted.dev(), wanted.ino()) {
        let message = "a shim is started by an engine, with its lock as standard input";
        return Err(io::Error::other(message));
    }
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(lock)
}

/// A session without a terminal. Who leads a group cannot begin one, so back into the engine's group first.
fn leave_terminal() -> io::Result<()> {
    if let Some(parent) = getppid().filter(|parent| *parent != Pid::INIT) {
        // Where the parent is gone or in another session, the next call says what is wrong.
        let _ = getpgid(Some(parent)).and_then(|group| setpgid(None, Some(group)));
    }
    setsid().map(drop).map_err(io::Error::from)
}

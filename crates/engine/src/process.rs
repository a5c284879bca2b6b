//! A command line as an effect: `sh -c` in a process group of its own, bounded in time and output.
//!
//! Invariant: when `run` returns or is dropped, the group was killed; an error means that nothing ran; the command sees
//! only the environment that was named, has no standard input, and cannot make the engine hold more of its output than
//! the bounds. Called by adapters of hosts and, in a process of its own, by the shim.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};

use rustix::process::{Pid, WaitOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::{Mutex, oneshot};

use crate::limits::{
    PROCESS_PIPE_MS, PROCESS_TAIL_BYTES, PROCESS_TRANSCRIPT_BYTES, PROCESS_WALL_MS,
};
use crate::shim::{Mask, descendants};

/// Exit code of a command that did nothing and may be tried again (`EX_TEMPFAIL`).
pub const EXIT_NOT_APPLIED: i32 = 75;

/// A command to be run.
#[derive(Clone, PartialEq, Eq)]
pub struct Process {
    /// The line that `sh -c` gets.
    pub line: String,
    /// Where it runs.
    pub directory: PathBuf,
    /// Variables that are passed on from the engine's own environment, by name; one that is not set is left out.
    pub pass: Vec<String>,
    /// Variables that are set; they win over those passed on.
    pub set: BTreeMap<String, String>,
    /// Wall-clock bound in milliseconds.
    pub wall_ms: u64,
    /// Where the output of both streams is written as it comes, up to the bound; none to keep only its end.
    pub transcript: Option<PathBuf>,
    /// Bytes of the transcript.
    pub transcript_bytes: u64,
    /// Bytes kept of the end of each stream.
    pub tail_bytes: usize,
    /// Variables whose values are masked in transcript and tails.
    pub mask_names: Vec<String>,
}

aiws::veiled! {
    Process { line directory pass wall_ms transcript transcript_bytes tail_bytes mask_names } set;
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was started, and the system did not say how it ended; what was left of it was killed.
    Unseen,
}

/// What became of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// Whether it was killed at its wall-clock bound.
    pub timed_out: bool,
    /// Whether it was killed because somebody had it stopped.
    pub stopped: bool,
    /// The end of its standard output.
    pub stdout: Tail,
    /// The end of its standard error.
    pub stderr: Tail,
    /// Whether the transcript is shorter than the output.
    pub transcript_truncated: bool,
    /// How long it took, in milliseconds of wall-clock time.
    pub duration_ms: u64,
}

/// The end of a stream.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tail {
    /// The last bytes.
    pub bytes: Vec<u8>,
    /// How many bytes the stream had.
    pub total_bytes: u64,
}

aiws::veiled! { Tail { total_bytes } bytes; }

/// What an exit says about the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Exit 0: it was done.
    Applied,
    /// Exit 75: nothing was done.
    NotApplied,
    /// Any other end, a signal and the time bound included: whatever was done stays done, and it failed.
    AppliedAndFailed,
    /// It ran and nobody saw its end: nobody can say what was done.
    Uncertain,
}

impl Process {
    /// A line to be run in a directory with the default bounds and no environment but `PATH`.
    pub fn new(line: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Self {
            line: line.into(),
            directory: directory.into(),
            pass: vec!["PATH".to_owned()],
            set: BTreeMap::new(),
            wall_ms: PROCESS_WALL_MS,
            transcript: None,
            transcript_bytes: PROCESS_TRANSCRIPT_BYTES,
            tail_bytes: PROCESS_TAIL_BYTES,
            mask_names: Vec::new(),
        }
    }

    /// Runs it to its end or its bound. Dropping the future kills the group. Once it was started, whatever fails here
    /// is told in [`Finished`]: an output that cannot be kept truncates the transcript, an end that cannot be seen is
    /// [`Exit::Unseen`].
    ///
    /// # Errors
    ///
    /// The system's, when the process could not be started, or its transcript not be created; nothing ran then.
    pub async fn run(&self) -> io::Result<Finished> {
        let watch = Watch {
            stop: std::future::pending(),
            subreaper: false,
        };
        Ok(self.start().await?.watch(watch).await.0)
    }

    /// Starts it.
    ///
    /// # Errors
    ///
    /// As [`Process::run`].
    pub(crate) async fn start(&self) -> io::Result<Running<'_>> {
        let transcript = Arc::new(Mutex::new(Transcript::create(self).await?));
        let begun = Instant::now();
        let child = self.command().spawn()?;
        Ok(Running {
            process: self,
            group: Group::of(&child),
            child,
            transcript,
            begun,
        })
    }

    /// What the command finds in its environment.
    pub(crate) fn environment(&self) -> BTreeMap<String, OsString> {
        let passed = self
            .pass
            .iter()
            .filter_map(|name| Some((name.clone(), std::env::var_os(name)?)));
        let set = self
            .set
            .iter()
            .map(|(name, value)| (name.clone(), value.into()));
        passed.chain(set).collect()
    }

    /// The values that are masked.
    pub(crate) fn mask(&self) -> Mask {
        let named = |name: &String| self.mask_names.contains(name);
        let environment = self.environment().into_iter();
        Mask::new(
            environment
                .filter(|(name, _)| named(name))
                .map(|(name, value)| (name, value.into_vec())),
        )
    }

    fn command(&self) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg(&self.line)
            .current_dir(&self.directory)
            .env_clear()
            .envs(self.environment());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.process_group(0);
        command
    }
}

/// A command that was started. Dropping it kills its group.
pub(crate) struct Running<'a> {
    process: &'a Process,
    group: Group,
    child: Child,
    transcript: Arc<Mutex<Transcript>>,
    begun: Instant,
}

/// How a command is watched.
pub(crate) struct Watch<F> {
    /// When this is done the command is stopped.
    pub(crate) stop: F,
    /// Whether this process takes over what the command leaves behind, and ends it.
    pub(crate) subreaper: bool,
}

impl Running<'_> {
    /// The command's process number.
    pub(crate) fn pid(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_nonzero().get()
    }

    /// From here on the process ran, so there is no way out with an error. Also says whether nothing is left of it,
    /// as far as this process can know.
    pub(crate) async fn watch(self, watch: Watch<impl Future<Output = ()>>) -> (Finished, bool) {
        let (group, mut child, transcript) = (self.group, self.child, self.transcript);
        let out = child
            .stdout
            .take()
            .and_then(|pipe| ChildStdout::from_std(pipe).ok());
        let err = child
            .stderr
            .take()
            .and_then(|pipe| ChildStderr::from_std(pipe).ok());
        let unread = out.is_none() || err.is_none();
        let mask = Arc::new(self.process.mask());
        let keep = |mask| (self.process.tail_bytes, mask, Arc::clone(&transcript));
        let out = read(out, keep(Arc::clone(&mask)));
        let err = read(err, keep(mask));
        let pipes = tokio::spawn(async move { tokio::join!(out, err) });
        let _stop_reading = AbortOnDrop(pipes.abort_handle());
        let wall = Duration::from_millis(self.process.wall_ms);
        let (exit, cut) = wait(child, &group, wall, watch.stop, watch.subreaper).await;
        // What the command left behind in its group ends with it, and for a subreaper what left the group, too.
        drop(group);
        let mut all_ended = true;
        if watch.subreaper {
            let ended = tokio::task::spawn_blocking(descendants::end_below_me).await;
            all_ended = ended.unwrap_or(false);
        }
        let patience = Duration::from_millis(PROCESS_PIPE_MS);
        let (stdout, stderr) = match tokio::time::timeout(patience, pipes).await {
            Ok(Ok(tails)) => tails,
            // A descendant left the group and keeps a pipe open: its output is not the command's.
            Ok(Err(_)) | Err(_) => Default::default(),
        };
        let mut transcript = transcript.lock().await;
        transcript.truncated |= unread;
        transcript.finish().await;
        let finished = Finished {
            exit: exit.unwrap_or(Exit::Unseen),
            timed_out: cut == Some(Cut::TimedOut),
            stopped: cut == Some(Cut::Stopped),
            stdout,
            stderr,
            transcript_truncated: transcript.truncated,
            duration_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        (finished, all_ended)
    }
}

impl Finished {
    /// What the end says about the effect.
    pub fn meaning(&self) -> Meaning {
        match self.exit {
            Exit::Code(0) if !self.was_cut() => Meaning::Applied,
            Exit::Code(EXIT_NOT_APPLIED) if !self.was_cut() => Meaning::NotApplied,
            Exit::Code(_) | Exit::Signal(_) => Meaning::AppliedAndFailed,
            Exit::Unseen => Meaning::Uncertain,
        }
    }

    /// Whether it was killed before it ended by itself.
    pub fn was_cut(&self) -> bool {
        self.timed_out || self.stopped
    }
}

impl Tail {
    /// The end as text, with a mark where the beginning was left out; what is no UTF-8 is replaced.
    pub fn text(&self) -> String {
        let kept = String::from_utf8_lossy(&self.bytes);
        match self.total_bytes.saturating_sub(self.bytes.len() as u64) {
            0 => kept.into_owned(),
            left_out => format!("[{left_out} bytes before this were left out]\n{kept}"),
        }
    }
}

/// A process group that ends with this value.
struct Group(Option<rustix::process::Pid>);

impl Group {
    /// The group of a child that leads one.
    fn of(child: &Child) -> Self {
        let id = i32::try_from(child.id()).ok();
        Self(id.and_then(rustix::process::Pid::from_raw))
    }

    fn kill(&self) {
        if let Some(leader) = self.0 {
            // A group without members is what is wanted.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Readers that end with this value.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why a command was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    TimedOut,
    Stopped,
}

/// How the child ended, none where that cannot be seen, and why it was killed if it was.
async fn wait(
    child: Child,
    group: &Group,
    wall: Duration,
    stop: impl Future<Output = ()>,
    subreaper: bool,
) -> (Option<Exit>, Option<Cut>) {
    let Some(mut ended) = ended(child, subreaper) else {
        group.kill();
        return (None, None);
    };
    let cut = tokio::select! {
        exit = &mut ended => return (exit.ok(), None),
        () = tokio::time::sleep(wall) => Cut::TimedOut,
        () = stop => Cut::Stopped,
    };
    group.kill();
    (ended.await.ok(), Some(cut))
}

/// Waits for the child on a thread of its own, which ends with the child; none where there is no thread to be had. An
/// end that the system does not tell closes the channel.
fn ended(mut child: Child, subreaper: bool) -> Option<oneshot::Receiver<Exit>> {
    let (say, ended) = oneshot::channel();
    let wait = move || {
        let exit = match subreaper {
            true => reap_until(Pid::from_child(&child)),
            false => child.wait().ok().map(exit_of),
        };
        if let Some(exit) = exit {
            // Nobody asks any more when the future was dropped.
            let _ = say.send(exit);
        }
    };
    let thread = std::thread::Builder::new().name("process".to_owned());
    thread.spawn(wait).ok().map(|_| ended)
}

/// Waits for a child, and meanwhile for every process that lost its parent to this one.
fn reap_until(child: Pid) -> Option<Exit> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Some(Exit::Code(code)),
                    (None, Some(signal)) => Some(Exit::Signal(signal)),
                    (None, None) => continue,
                };
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        // The system reports one or the other; neither would be a failure too.
        (None, None) => Exit::Code(-1),
    }
}

/// Reads a stream to its end, masked, keeping the last bytes and passing all of them to the transcript.
async fn read(
    stream: Option<impl AsyncRead + Unpin>,
    (tail_bytes, mask, transcript): (usize, Arc<Mask>, Arc<Mutex<Transcript>>),
) -> Tail {
    let Some(mut stream) = stream else {
        return Tail::default();
    };
    let (mut masked, mut tail, mut total_bytes) = (mask.stream(), VecDeque::new(), 0);
    let mut buffer = vec![0; 8192];
    loop {
        // A read error ends the stream as its closing does: the process's end says what became of it.
        let read = stream.read(&mut buffer).await;
        let more = buffer.get(..read.unwrap_or(0)).unwrap_or_default();
        let clean = match more.is_empty() {
            true => masked.rest(),
            false => masked.feed(more),
        };
        total_bytes += clean.len() as u64;
        tail.extend(&clean);
        tail.drain(..tail.len().saturating_sub(tail_bytes));
        transcript.lock().await.write(&clean).await;
        if more.is_empty() {
            break;
        }
    }
    Tail {
        bytes: tail.into(),
        total_bytes,
    }
}

/// The file that output goes to as it comes.
struct Transcript {
    file: Option<tokio::fs::File>,
    left_bytes: u64,
    truncated: bool,
}

impl Transcript {
    async fn create(process: &Process) -> io::Result<Self> {
        let file = match &process.transcript {
            Some(path) => {
                let mut options = tokio::fs::OpenOptions::new();
                options.write(true).create(true).truncate(true).mode(0o600);
                Some(options.open(path).await?)
            }
            None => None,
        };
        Ok(Self {
            file,
            left_bytes: process.transcript_bytes,
            truncated: false,
        })
    }

    /// Writes what still fits. A full disk truncates the transcript; it does not stop the process.
    async fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let fits =
            usize::try_from(self.left_bytes).map_or(bytes.len(), |left| left.min(bytes.len()));
        let written = !self.truncated && file.write_all(&bytes[..fits]).await.is_ok();
        self.left_bytes -= fits as u64;
        self.truncated |= !written || fits < bytes.len();
    }

    /// Says at the end what is missing. What cannot be written is missing, too.
    async fn finish(&mut self) {
        let Some(file) = &mut self.file else { return };
        // A write reports its failure with the next call.
        self.truncated |= file.flush().await.is_err();
        if self.truncated {
            let note = b"\n[output beyond this was left out]\n";
            if file.write_all(note).await.is_ok() {
                // Without room for the note the flag alone says it.
                drop(file.flush().await);
            }
        }
    }
}

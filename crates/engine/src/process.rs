//! A command line as an effect: `sh -c` in a process group of its own, bounded in time and output.
//!
//! Invariant: when `run` returns or is dropped, the group was killed; an error means that nothing ran; the command sees
//! only the environment that was named, has no standard input, and cannot make the engine hold more of its output than
//! the bounds. Called by adapters of hosts and by the CLI.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use std::os::unix::process::{CommandExt, ExitStatusExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::{Mutex, oneshot};

use crate::limits::{
    PROCESS_PIPE_MS, PROCESS_TAIL_BYTES, PROCESS_TRANSCRIPT_BYTES, PROCESS_WALL_MS,
};

/// Exit code of a command that did nothing and may be tried again (`EX_TEMPFAIL`).
pub const EXIT_NOT_APPLIED: i32 = 75;

/// A command to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The last bytes.
    pub bytes: Vec<u8>,
    /// How many bytes the stream had.
    pub total_bytes: u64,
}

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
        let transcript = Arc::new(Mutex::new(Transcript::create(self).await?));
        let begun = Instant::now();
        let child = self.command().spawn()?;
        Ok(self.watch(child, transcript, begun).await)
    }

    /// From here on the process ran, so there is no way out with an error.
    async fn watch(
        &self,
        mut child: Child,
        transcript: Arc<Mutex<Transcript>>,
        begun: Instant,
    ) -> Finished {
        let group = Group::of(&child);
        let out = child
            .stdout
            .take()
            .and_then(|pipe| ChildStdout::from_std(pipe).ok());
        let err = child
            .stderr
            .take()
            .and_then(|pipe| ChildStderr::from_std(pipe).ok());
        let unread = out.is_none() || err.is_none();
        let out = read(out, self.tail_bytes, Arc::clone(&transcript));
        let err = read(err, self.tail_bytes, Arc::clone(&transcript));
        let pipes = tokio::spawn(async move { tokio::join!(out, err) });
        let _stop_reading = AbortOnDrop(pipes.abort_handle());
        let (status, timed_out) = wait(child, &group, self.wall_ms).await;
        // What the command left behind in its group ends with it.
        drop(group);
        let patience = Duration::from_millis(PROCESS_PIPE_MS);
        let (stdout, stderr) = match tokio::time::timeout(patience, pipes).await {
            Ok(Ok(tails)) => tails,
            // A descendant left the group and keeps a pipe open: its output is not the command's.
            Ok(Err(_)) | Err(_) => Default::default(),
        };
        let mut transcript = transcript.lock().await;
        transcript.truncated |= unread;
        transcript.finish().await;
        Finished {
            exit: status.map_or(Exit::Unseen, exit_of),
            timed_out,
            stdout,
            stderr,
            transcript_truncated: transcript.truncated,
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg(&self.line)
            .current_dir(&self.directory)
            .env_clear();
        for name in &self.pass {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(&self.set);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.process_group(0);
        command
    }
}

impl Finished {
    /// What the end says about the effect.
    pub fn meaning(&self) -> Meaning {
        match self.exit {
            Exit::Code(0) if !self.timed_out => Meaning::Applied,
            Exit::Code(EXIT_NOT_APPLIED) if !self.timed_out => Meaning::NotApplied,
            Exit::Code(_) | Exit::Signal(_) => Meaning::AppliedAndFailed,
            Exit::Unseen => Meaning::Uncertain,
        }
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

/// How the child ended, none where that cannot be seen, and whether it was killed at its bound.
async fn wait(child: Child, group: &Group, wall_ms: u64) -> (Option<ExitStatus>, bool) {
    let Some(mut ended) = ended(child) else {
        group.kill();
        return (None, false);
    };
    match tokio::time::timeout(Duration::from_millis(wall_ms), &mut ended).await {
        Ok(status) => (status.ok(), false),
        Err(_) => {
            group.kill();
            (ended.await.ok(), true)
        }
    }
}

/// Waits for the child on a thread of its own, which ends with the child; none where there is no thread to be had. An
/// end that the system does not tell closes the channel.
fn ended(mut child: Child) -> Option<oneshot::Receiver<ExitStatus>> {
    let (say, ended) = oneshot::channel();
    let wait = move || {
        if let Ok(status) = child.wait() {
            // Nobody asks any more when the future was dropped.
            let _ = say.send(status);
        }
    };
    let thread = std::thread::Builder::new().name("process".to_owned());
    thread.spawn(wait).ok().map(|_| ended)
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        // The system reports one or the other; neither would be a failure too.
        (None, None) => Exit::Code(-1),
    }
}

/// Reads a stream to its end, keeping the last bytes and passing all of them to the transcript.
async fn read(
    stream: Option<impl AsyncRead + Unpin>,
    tail_bytes: usize,
    transcript: Arc<Mutex<Transcript>>,
) -> Tail {
    let Some(mut stream) = stream else {
        return Tail::default();
    };
    let mut tail = VecDeque::new();
    let mut total_bytes = 0;
    let mut buffer = vec![0; 8192];
    // A read error ends the stream as its closing does: the process's end says what became of it.
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        total_bytes += count as u64;
        tail.extend(&buffer[..count]);
        tail.drain(..tail.len().saturating_sub(tail_bytes));
        transcript.lock().await.write(&buffer[..count]).await;
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
            Some(path) => Some(tokio::fs::File::create(path).await?),
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

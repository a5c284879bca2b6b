//! One git command at a time, with nothing of the outside in it.
//! Invariant: no hook, no system or user configuration, no prompt, no pager, no background maintenance; the environment is cleared.
//! Called by `workspace` and `publish`; nobody else runs git.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use aiws::error::{Code, Error};

use crate::limits::{GIT_MESSAGE_BYTES, GIT_OUTPUT_BYTES, GIT_SECONDS};

/// Configuration that every call gets, whatever the repository's own says.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.quotePath=false",
    "core.logAllRefUpdates=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "transfer.fsckObjects=false",
    "fetch.fsckObjects=false",
    "protocol.version=2",
    "protocol.file.allow=always",
    "advice.detachedHead=false",
];

/// Environment that every call gets; everything else is cleared.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_DEFAULT_REF_FORMAT", "files"),
    ("GIT_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
    ("HOME", "/nonexistent"),
    ("GIT_AUTHOR_NAME", "Praxis"),
    ("GIT_AUTHOR_EMAIL", "praxis@localhost"),
    ("GIT_COMMITTER_NAME", "Praxis"),
    ("GIT_COMMITTER_EMAIL", "praxis@localhost"),
];

/// A git call in the making.
pub struct Git {
    command: Command,
    /// The call as a person would type it, for messages.
    shown: Vec<OsString>,
    input: Vec<u8>,
    dir: PathBuf,
    settings: Vec<(OsString, OsString)>,
    wall: Duration,
}

aiws::veiled! { Git { command shown dir settings wall } input; }

/// What a git call that ended with exit 0 wrote to its output.
pub type Output = Vec<u8>;

impl Git {
    /// A call inside a directory: a repository, or where one is to be made.
    #[must_use]
    pub fn inside(dir: &Path) -> Self {
        let mut git = Self::bare_call(dir);
        git.command.current_dir(dir);
        git
    }

    /// A call on a git directory of the engine with a work tree that is none of its own. The work tree's own
    /// `.git`, and with it the configuration and the hooks that an agent may have written there, are not read.
    #[must_use]
    pub fn over(git_dir: &Path, work_tree: &Path, index: &Path) -> Self {
        let mut git = Self::inside(work_tree);
        git.command.env("GIT_INDEX_FILE", index);
        git.command.arg("-c").arg("core.bare=false");
        git.command
            .arg("--git-dir")
            .arg(git_dir)
            .arg("--work-tree")
            .arg(work_tree);
        git
    }

    fn bare_call(dir: &Path) -> Self {
        let mut command = Command::new("git");
        command.env_clear();
        command.envs(ENVIRONMENT.iter().copied());
        command.env(
            "PATH",
            std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin")),
        );
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        Self {
            command,
            shown: Vec::new(),
            input: Vec::new(),
            dir: dir.to_owned(),
            settings: Vec::new(),
            wall: Duration::from_secs(GIT_SECONDS),
        }
    }

    /// Arguments, as they are.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, args: I) -> Self {
        for arg in args {
            self.command.arg(arg.as_ref());
            self.shown.push(arg.as_ref().to_owned());
        }
        self
    }

    /// One variable more.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// One setting more, which wins over the repository's own; a key may hold anything that a path may.
    #[must_use]
    pub fn setting(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// The repository's own filters switched off: their commands are the repository's, and a look must not run them.
    ///
    /// # Errors
    ///
    /// As [`Git::run`], when the configuration cannot be listed.
    pub fn without_filters(mut self) -> Result<Self, Error> {
        use std::os::unix::ffi::OsStrExt;
        // Exit 1 says that there are none.
        let (_, keys) = Self::inside(&self.dir)
            .args(["config", "--includes", "-z", "--name-only"])
            .args(["--get-regexp", r"^filter\."])
            .probe()?;
        for key in keys.split(|byte| *byte == 0) {
            let value = match key.rsplit(|byte| *byte == b'.').next() {
                Some(b"clean" | b"smudge" | b"process") => "",
                Some(b"required") => "false",
                _ => continue,
            };
            self = self.setting(OsStr::from_bytes(key), value);
        }
        Ok(self)
    }

    /// What the call reads on its standard input; nothing unless this is called.
    #[must_use]
    pub fn input(mut self, bytes: &[u8]) -> Self {
        self.input = bytes.to_vec();
        self
    }

    /// Runs it and returns its output.
    ///
    /// # Errors
    ///
    /// `REPO_UNUSABLE` with git's own message when git is missing, fails, or writes more than the bound.
    pub fn run(self) -> Result<Output, Error> {
        let shown = self.shown();
        match self.finish()? {
            Finished {
                success: true,
                output,
                ..
            } => Ok(output),
            Finished { message, .. } => Err(Error::new(
                Code::RepoUnusable,
                format!("`{shown}` failed: {}", one_line(&message)),
            )),
        }
    }

    /// Runs it and says whether it ended with exit 0, with its output.
    ///
    /// # Errors
    ///
    /// `REPO_UNUSABLE` when git cannot be started or writes more than the bound.
    pub fn probe(self) -> Result<(bool, Output), Error> {
        let finished = self.finish()?;
        Ok((finished.success, finished.output))
    }

    /// Runs it and returns the first line of its output as text.
    ///
    /// # Errors
    ///
    /// As [`Git::run`]; also when the line is not UTF-8.
    pub fn line(self) -> Result<String, Error> {
        let shown = self.shown();
        let output = self.run()?;
        let text = String::from_utf8(output).map_err(|_| {
            Error::new(
                Code::RepoUnusable,
                format!("`{shown}` wrote a path that is not UTF-8"),
            )
        })?;
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    fn shown(&self) -> String {
        let words: Vec<String> = self
            .shown
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        format!("git {}", words.join(" "))
    }

    fn unstarted(&self, error: &std::io::Error) -> Error {
        let message = match self.dir.is_dir() {
            true => format!("git could not be started: {error}; install git"),
            false => format!("expected the directory {}, found none", self.dir.display()),
        };
        Error::new(Code::RepoUnusable, message)
    }

    fn finish(mut self) -> Result<Finished, Error> {
        let shown = self.shown();
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.command
            .env("GIT_CONFIG_COUNT", self.settings.len().to_string());
        for (index, (key, value)) in self.settings.iter().enumerate() {
            self.command.env(format!("GIT_CONFIG_KEY_{index}"), key);
            self.command.env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        let mut child = self
            .command
            .spawn()
            .map_err(|error| self.unstarted(&error))?;
        let watch = Watch::over(&child, self.wall);
        let io = Pipes::take(&mut child).exchange(&self.input);
        let status = child.wait().map_err(|error| failed(&shown, &error))?;
        if watch.is_some_and(Watch::ran_out) {
            let message = format!("it did not end within {} seconds", self.wall.as_secs());
            return Err(failed(&shown, &std::io::Error::other(message)));
        }
        let (output, message) = io.map_err(|error| failed(&shown, &error))?;
        Ok(Finished {
            success: status.success(),
            output,
            message,
        })
    }
}

/// A call that is killed at its bound: in a tree that others wrote, git may wait for a pipe for ever.
struct Watch {
    done: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<bool>,
}

impl Watch {
    /// None where the system has no thread or no handle of the process to give; the call is not bounded then.
    fn over(child: &Child, wall: Duration) -> Option<Self> {
        use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let (done, ended) = mpsc::channel();
        let watch = move || {
            let late = ended.recv_timeout(wall) == Err(mpsc::RecvTimeoutError::Timeout);
            late && pidfd_send_signal(&handle, Signal::KILL).is_ok()
        };
        let thread = std::thread::Builder::new().spawn(watch).ok()?;
        Some(Self { done, thread })
    }

    /// Whether the call was killed; called once it ended.
    fn ran_out(self) -> bool {
        drop(self.done);
        self.thread.join().unwrap_or(false)
    }
}

struct Finished {
    success: bool,
    output: Output,
    message: Vec<u8>,
}

/// The three pipes of a child. They are served at once, so that neither side waits for the other.
struct Pipes {
    stdin: Option<std::process::ChildStdin>,
    stdout: Option<std::process::ChildStdout>,
    stderr: Option<std::process::ChildStderr>,
}

impl Pipes {
    fn take(child: &mut Child) -> Self {
        Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        }
    }

    fn exchange(self, input: &[u8]) -> std::io::Result<(Output, Vec<u8>)> {
        let Self {
            stdin,
            stdout,
            stderr,
        } = self;
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                if let Some(mut pipe) = stdin {
                    // A child that does not read its input to the end is judged by its exit status.
                    drop(pipe.write_all(input));
                }
            });
            let messages = scope.spawn(move || read_bounded(stderr, GIT_MESSAGE_BYTES));
            let output = read_bounded(stdout, GIT_OUTPUT_BYTES);
            let message = messages.join().unwrap_or_else(|_| Ok(Kept::default()));
            drop(writer.join());
            let output = output?;
            if output.cut {
                return Err(std::io::Error::other(format!(
                    "more than {GIT_OUTPUT_BYTES} bytes of output"
                )));
            }
            Ok((output.bytes, message?.bytes))
        })
    }
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    cut: bool,
}

/// Keeps the first `bound` bytes and reads the rest away, so that the child can end.
fn read_bounded(pipe: Option<impl Read>, bound: u64) -> std::io::Result<Kept> {
    let mut kept = Kept::default();
    if let Some(mut pipe) = pipe {
        pipe.by_ref().take(bound).read_to_end(&mut kept.bytes)?;
        kept.cut = std::io::copy(&mut pipe, &mut std::io::sink())? > 0;
    }
    Ok(kept)
}

fn failed(shown: &str, error: &std::io::Error) -> Error {
    Error::new(Code::RepoUnusable, format!("`{shown}` failed: {error}"))
}

/// Git's message without line ends, prefixes and control characters.
fn one_line(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let joined = lines.join("; ");
    let plain = joined
        .strip_prefix("fatal: ")
        .or_else(|| joined.strip_prefix("error: "))
        .unwrap_or(&joined);
    crate::render::escape::line(plain)
}

/// A path as git is to take it: absolute, so that it is never read as an option or a URL.
///
/// # Errors
///
/// `REPO_UNUSABLE` when the path cannot be resolved.
pub fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|error| {
        Error::new(
            Code::RepoUnusable,
            format!("the path {} cannot be used: {error}", path.display()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_waits_for_ever_is_ended_at_its_bound() {
        use rustix::fs::{CWD, Mode, mkfifoat};
        let dir = tempfile::TempDir::new().unwrap();
        mkfifoat(CWD, dir.path().join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        let mut git = Git::inside(dir.path()).args(["hash-object", "pipe"]);
        git.wall = Duration::from_millis(50);
        let error = git.run().unwrap_err();
        assert!(error.message.contains("did not end within"), "{error}");
    }

    #[test]
    fn a_directory_that_is_gone_is_not_taken_for_a_missing_git() {
        let gone = Git::inside(Path::new("/nowhere/at/all")).args(["version"]);
        let error = gone.run().unwrap_err();
        assert!(error.message.contains("/nowhere/at/all"), "{error}");
    }
}

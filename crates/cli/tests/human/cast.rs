//! The processes of these tests: this binary again, in a role, and the host that they connect to.
//! Invariant: a role is words that are done one after the other; who goes on is told by a stream or by a parent's end.
//! Used by the tests of this folder.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use aiws::error::{Code, Error};
use aiws::json::Value;
use praxis_cli::human::{Caller, MARK, ProcessId, Proof, SHIM, Way, Work, prove};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, WaitOptions};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

/// What a process of these tests does: words that are done one after the other, by itself or by a child of its own.
pub const ROLE: &str = "HUMAN_TEST_ROLE";
const SOCKET: &str = "HUMAN_TEST_SOCKET";
/// The process that started this one.
const PARENT: &str = "HUMAN_TEST_PARENT";
/// The engine and the shims that a process proves itself against, as `PID:START` with blanks between.
pub const ENGINE: &str = "HUMAN_TEST_ENGINE";
pub const SHIMS: &str = "HUMAN_TEST_SHIMS";

pub fn play(words: &[&str]) {
    let Some((first, rest)) = words.split_first() else {
        return;
    };
    match *first {
        // A parent that waits for its child.
        "parent" => {
            start(rest, |_| ()).wait().unwrap();
        }
        // A parent in front whose child is a group of its own.
        "background" => {
            start(rest, |command| _ = command.process_group(0))
                .wait()
                .unwrap();
        }
        // A parent that takes the mark out of its child's environment.
        "unmark" => {
            start(rest, |command| _ = command.env_remove(MARK))
                .wait()
                .unwrap();
        }
        // A child subreaper that waits for whatever becomes its child.
        "reaper" => {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
            drop(start(rest, |_| ()));
            while rustix::process::wait(WaitOptions::empty()).is_ok() {}
        }
        // A parent that leaves its child alone.
        "leave" => drop(start(rest, |_| ())),
        // Goes on once the parent is gone.
        "orphaned" => {
            let parent: i32 = std::env::var(PARENT).unwrap().parse().unwrap();
            while rustix::process::getppid() == Pid::from_raw(parent) {
                std::thread::yield_now();
            }
            play(rest);
        }
        "session" => {
            rustix::process::setsid().unwrap();
            play(rest);
        }
        // Takes the terminal at its standard input as its own.
        "terminal" => {
            rustix::process::setsid().unwrap();
            rustix::process::ioctl_tiocsctty(std::io::stdin()).unwrap();
            play(rest);
        }
        // Connects and waits for the end of the connection.
        "connect" => drop(connect().read_to_end(&mut Vec::new()).unwrap()),
        // Says that it is there, and connects once it is told to.
        "ready" => {
            let mut stream = connect();
            stream.write_all(b"r").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            play(rest);
        }
        // Connects and ends.
        "touch" => drop(connect()),
        // Proves itself, as a command that opens the store does.
        "self" => {
            let mut stream = connect();
            stream.write_all(self_proof().as_bytes()).unwrap();
        }
        // Accepts one connection in here and answers it with what it makes of the peer.
        "serve" => {
            let path = std::env::var(SOCKET).unwrap() + ".inner";
            let listener = UnixListener::bind(path).unwrap();
            connect().write_all(b"r").unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            let found = Caller::of_peer(&stream)
                .and_then(|caller| prove(&caller, Way::Verb, &Work::default(), 1));
            stream.write_all(said(found).as_bytes()).unwrap();
        }
        other => panic!("no such role: {other}"),
    }
}

fn start(words: &[&str], change: impl Fn(&mut Command)) -> Child {
    let mut command = this_binary(&[]);
    command.env(ROLE, words.join(" "));
    change(&mut command);
    command.spawn().unwrap()
}

fn this_binary(first: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(first)
        .args(["--exact", "entry", "--nocapture"]);
    command.env(PARENT, std::process::id().to_string());
    command.stdout(Stdio::null());
    command
}

fn connect() -> UnixStream {
    UnixStream::connect(std::env::var(SOCKET).unwrap()).unwrap()
}

fn self_proof() -> String {
    let ids = |name| {
        let ids = std::env::var(name).unwrap_or_default();
        let id = |text: &str| {
            let (pid, start) = text.split_once(':').unwrap();
            ProcessId {
                pid: pid.parse().unwrap(),
                start: start.parse().unwrap(),
            }
        };
        ids.split_ascii_whitespace().map(id).collect::<Vec<_>>()
    };
    let me = || Caller::this_process().map(|caller| caller.id());
    let engine = match std::env::var(ENGINE).as_deref() {
        Ok("me") => me().ok(),
        _ => None,
    };
    let work = Work {
        engine,
        shims: ids(SHIMS),
        ..Work::default()
    };
    said(Caller::this_process().and_then(|caller| prove(&caller, Way::Verb, &work, 1)))
}

fn said(found: Result<Proof, Error>) -> String {
    match found {
        Ok(_) => "PROVEN".to_owned(),
        Err(error) => reason(&error),
    }
}

pub fn reason(error: &Error) -> String {
    assert_eq!(error.code(), Code::HumanRequired, "{error}");
    assert!(error.message.contains("expected") && error.message.contains("found"));
    let reason = error.details.get("reason").and_then(Value::as_str);
    reason.unwrap_or_else(|| panic!("{error}")).to_owned()
}

/// The host's side of a test.
pub struct Host {
    pub dir: TempDir,
    listener: UnixListener,
    pub children: Vec<Child>,
    /// Callers stay until the test is over.
    kept: Vec<UnixStream>,
}

impl Host {
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
        Self {
            dir,
            listener,
            children: Vec::new(),
            kept: Vec::new(),
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    pub fn role(&self, words: &str) -> Command {
        self.wrapped(&[], &[], words)
    }

    /// A process of this binary, started by another program and with other arguments before its own.
    pub fn wrapped(&self, program: &[&str], first: &[&str], words: &str) -> Command {
        let inner = this_binary(first);
        let mut command = match program.split_first() {
            None => inner,
            Some((program, args)) => {
                let mut outer = Command::new(program);
                outer.args(args).arg(inner.get_program());
                outer.args(inner.get_args()).stdout(Stdio::null());
                outer.env(PARENT, std::process::id().to_string());
                outer
            }
        };
        command.env(ROLE, words).env(SOCKET, self.socket());
        command.stdin(Stdio::null());
        command
    }

    /// A process that looks like a shim, for it is started like one.
    pub fn shim(&self, words: &str) -> Command {
        self.wrapped(&[], &[SHIM], &format!("reaper {words}"))
    }

    /// Starts a process and gives its identity.
    pub fn start(&mut self, mut command: Command) -> ProcessId {
        let child = command.spawn().unwrap();
        let id = id_of(child.id());
        self.children.push(child);
        id
    }

    pub fn accept(&self) -> UnixStream {
        self.listener.accept().unwrap().0
    }

    /// Starts a caller and says what is made of it.
    pub fn judge(&mut self, words: &str, way: Way, work: &Work) -> Result<Proof, Error> {
        let command = self.role(words);
        self.start(command);
        let stream = self.accept();
        let found = Caller::of_peer(&stream).and_then(|caller| prove(&caller, way, work, 7));
        self.kept.push(stream);
        found
    }

    /// What a process says of itself.
    pub fn answer(&mut self, command: Command) -> String {
        self.start(command);
        let mut said = String::new();
        self.accept().read_to_string(&mut said).unwrap();
        said
    }

    /// Another process of this store's work: it stays until the stream that is given back goes.
    pub fn bystander(&mut self, command: Command) -> (ProcessId, UnixStream) {
        let id = self.start(command);
        (id, self.accept())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Read independently of the code under test.
pub fn id_of(pid: u32) -> ProcessId {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit_once(')').unwrap().1;
    let start = rest.split_ascii_whitespace().nth(19).unwrap();
    ProcessId {
        pid,
        start: start.parse().unwrap(),
    }
}

/// A pseudo-terminal: the side that a person sits at, and the side that a process gets.
pub fn terminal() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let side = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
    (master, side)
}

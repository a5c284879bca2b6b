//! The shim: what it records, what it finds and ends, when its record is believed, and what is left when it dies.
//! Invariant: real processes at known points: a command waits for a pipe or a file, nobody waits for time to pass.
//! Tests of `praxis_engine::shim`, over the example `shim`.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use aiws::json::Value;
use praxis_engine::process::{Exit, Process};
use praxis_engine::shim::{self, ExitRecord, Probe, Ran, Shim, Started, descendants};
use rustix::fs::{CWD, FlockOperation, Mode, flock, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{id, settled};

/// Beside this test's own binary stands the directory of the examples.
fn example() -> PathBuf {
    let own = std::env::current_exe().expect("a path");
    let profile = own.parent().and_then(Path::parent).expect("a profile");
    profile.join("examples/shim")
}

static ATTEMPTS: AtomicUsize = AtomicUsize::new(0);

/// A folder for one attempt, with a pipe that its command may wait for.
struct Attempt {
    dir: TempDir,
    shim: Shim,
}

fn attempt(line: &str) -> Attempt {
    let dir = TempDir::new().expect("a directory");
    let pipe = dir.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    // What is left of an attempt is found by its name, so no two have the same.
    let number = ATTEMPTS.fetch_add(1, Ordering::SeqCst);
    let name = format!("at-{}-{number}", std::process::id());
    let mut process = Process::new(line, dir.path());
    process.set.insert("ATTEMPT".to_owned(), name.clone());
    let shim = Shim {
        program: example(),
        folder: dir.path().to_owned(),
        operation_id: id("op-1"),
        attempt_id: id(&name),
        process,
        host: Value::Null,
    };
    Attempt { dir, shim }
}

impl Attempt {
    fn folder(&self) -> &Path {
        self.dir.path()
    }

    async fn run(&self) -> Ran {
        settled(self.shim.run()).await.expect("a shim was started")
    }

    async fn ended(&self) -> ExitRecord {
        match self.run().await {
            Ran::Ended(record) => *record,
            other => panic!("expected an end, found {other:?}"),
        }
    }

    /// Starts it; the future is dropped by whoever drops the handle's task.
    fn begin(&self) -> tokio::task::JoinHandle<Ran> {
        let shim = self.shim.clone();
        tokio::spawn(async move { shim.run().await.expect("a shim was started") })
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder().join(name)).expect("a file")
    }

    /// Waits until the command has made this file, and returns the process number in it.
    async fn number(&self, name: &str) -> i32 {
        let path = self.folder().join(name);
        let whole = || fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n'));
        settled(async {
            while !whole() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        self.read(name).trim().parse().expect("a number")
    }

    /// Lets the command go on that reads the pipe.
    fn release(&self) {
        let pipe = OpenOptions::new()
            .write(true)
            .open(self.folder().join("pipe"));
        pipe.and_then(|mut pipe| pipe.write_all(b"go\n"))
            .expect("somebody reads the pipe");
    }

    /// The record of a running shim that has started its command; a quick command may be ahead of it.
    async fn started(&self) -> Started {
        settled(async {
            loop {
                match shim::probe(self.folder()) {
                    Probe::Running(Some(started)) if started.command().is_some() => return started,
                    Probe::Running(_) => tokio::task::yield_now().await,
                    other => panic!("expected a running shim, found {other:?}"),
                }
            }
        })
        .await
    }
}

/// A command that waits for the pipe, with a child in its group and one in a session of its own that lost its parents.
const WAITS: &str = "\
sleep 1000 & echo $! > child
(setsid sh -c 'echo $$ > leaver; exec sleep 1000' &)
while [ ! -s leaver ]; do :; done
echo $$ > ready; read word < pipe; echo $word";

fn is_gone(pid: i32) -> bool {
    descendants::seen(pid).is_none_or(|seen| seen.ended)
}

async fn gone(pid: i32) {
    settled(async {
        while !is_gone(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL).expect("it is there");
}

#[tokio::test]
async fn a_record_says_how_a_command_ended() {
    let cases = [
        ("exit 0", Exit::Code(0)),
        ("exit 75", Exit::Code(75)),
        ("exit 1", Exit::Code(1)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("exec /nowhere/at/all", Exit::Code(127)),
    ];
    for (line, exit) in cases {
        let attempt = attempt(line);
        let record = attempt.ended().await;
        assert_eq!(record.ended(), Some(exit), "{line}");
        assert!(!record.timed_out && !record.stopped && record.all_ended);
        assert_eq!(record.attempt_id, attempt.shim.attempt_id);
        let probed = shim::probe(attempt.folder());
        assert_eq!(probed, Probe::Ended(Box::new(record)), "{line}");
    }
}

#[tokio::test]
async fn the_bound_ends_everything() {
    let mut attempt = attempt(WAITS);
    attempt.shim.process.wall_ms = 1_000;
    let record = attempt.ended().await;
    assert!(record.timed_out && record.all_ended);
    assert_eq!(record.ended(), Some(Exit::Signal(9)));
    for name in ["child", "leaver", "ready"] {
        if attempt.folder().join(name).exists() {
            assert!(is_gone(attempt.number(name).await), "{name}");
        }
    }
}

/// What left the group, and the session, and lost its parents is found through the subreaper and ended before the
/// record is written.
#[tokio::test]
async fn whatever_a_command_leaves_behind_is_ended() {
    let lines = [
        "sleep 1000 >/dev/null 2>&1 & echo $! > left",
        "setsid sh -c 'echo $$ > left; exec sleep 1000' & while [ ! -s left ]; do :; done",
        "(setsid sh -c '(setsid sh -c \"echo \\$\\$ > left; exec sleep 1000\" &)' &); while [ ! -s left ]; do :; done",
    ];
    for line in lines {
        let attempt = attempt(line);
        let record = attempt.ended().await;
        assert_eq!(record.ended(), Some(Exit::Code(0)), "{line}");
        assert!(record.all_ended, "{line}");
        assert!(is_gone(attempt.number("left").await), "{line}");
    }
}

#[tokio::test]
async fn the_transcript_is_bounded_private_and_recorded() {
    let mut attempt = attempt("i=0; while [ $i -lt 999 ]; do echo 0123456789; i=$((i+1)); done");
    attempt.shim.process.transcript_bytes = 100;
    let record = attempt.ended().await;
    assert!(record.transcript_truncated);
    let bytes = record.output(attempt.folder(), shim::TRANSCRIPT);
    let text = String::from_utf8(bytes.expect("it holds").expect("it is there")).expect("text");
    assert_eq!(text, attempt.read("transcript.txt"));
    assert!(text.ends_with("[output beyond this was left out]\n") && text.len() < 200);
    for name in ["transcript.txt", "exit.json", "start.json", "shim.json"] {
        let meta = fs::metadata(attempt.folder().join(name)).expect("a file");
        assert_eq!(meta.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

/// The value of a secret variable stands in no file of the folder, and a result that holds it is no output.
#[tokio::test]
async fn a_secret_is_in_no_file() {
    const VALUE: &str = "s3cr3t-s3cr3t-value";
    let mut attempt =
        attempt("printf 's3cr3t-'; printf '%s and %s\\n' \"$API_KEY\" \"$OTHER\" >&2");
    let set = &mut attempt.shim.process.set;
    set.insert("API_KEY".to_owned(), VALUE.to_owned());
    set.insert("OTHER".to_owned(), "abc".to_owned());
    attempt.shim.process.mask_names = vec!["API_KEY".to_owned(), "OTHER".to_owned()];
    attempt.ended().await;
    let said = attempt.read("transcript.txt");
    assert!(said.contains("[masked API_KEY] and abc\n"), "{said}");
    for entry in fs::read_dir(attempt.folder()).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let bytes = fs::read(&path).expect("a file");
            let holds = bytes
                .windows(VALUE.len())
                .any(|part| part == VALUE.as_bytes());
            assert!(!holds, "{}", path.display());
        }
    }
    attempt.shim.process.line = "echo \"$API_KEY\" > made".to_owned();
    fs::remove_file(attempt.folder().join("shim.lock")).expect("a lock");
    let record = attempt.ended().await;
    assert!(record.outputs.iter().all(|output| output.name != "made"));
    assert_eq!(
        record.failure.as_deref(),
        Some("the result contains a secret")
    );
}

/// A record whose files are not what it says is not believed.
#[tokio::test]
async fn a_record_that_does_not_hold_is_not_believed() {
    let write = |path: PathBuf, text: &str| fs::write(path, text).expect("it is written");
    let tampers: [(&str, &str); 5] = [
        ("transcript.txt", "something else"),
        ("made", "another result"),
        ("shim.json", "{}"),
        ("exit.json", "{}"),
        ("exit.json", ""),
    ];
    for (name, text) in tampers {
        let attempt = attempt("echo said; echo result > made");
        attempt.ended().await;
        write(attempt.folder().join(name), text);
        let why = shim::look(attempt.folder()).expect_err("it does not hold");
        assert!(why.contains(name), "{name}: {why}");
        let probed = shim::probe(attempt.folder());
        assert!(matches!(probed, Probe::Lost(Some(_))), "{name}: {probed:?}");
    }
    let attempt = attempt("echo result > made");
    attempt.ended().await;
    let made = attempt.folder().join("made");
    fs::remove_file(&made).expect("a file");
    std::os::unix::fs::symlink("/etc/hostname", &made).expect("a link");
    assert!(shim::look(attempt.folder()).is_err());
    fs::remove_file(attempt.folder().join("exit.json")).expect("a record");
    let probed = shim::look(attempt.folder()).expect("there is nothing to doubt");
    assert!(matches!(probed, Probe::Lost(Some(_))), "{probed:?}");
}

#[tokio::test]
async fn a_command_is_stopped_and_the_record_says_so() {
    let attempt = attempt(WAITS);
    let running = attempt.begin();
    let ready = attempt.number("ready").await;
    assert!(shim::stop(attempt.folder()).expect("it lives"));
    let Ran::Ended(record) = settled(running).await.expect("it ran") else {
        panic!("no end");
    };
    assert!(record.stopped && !record.timed_out && record.all_ended);
    for pid in [
        ready,
        attempt.number("child").await,
        attempt.number("leaver").await,
    ] {
        assert!(is_gone(pid));
    }
    assert!(!shim::stop(attempt.folder()).expect("nobody lives there"));
}

/// Whoever waits for a shim may go; the command goes on, and whoever comes later waits for its end.
#[tokio::test]
async fn a_command_outlives_who_waits_and_another_attaches() {
    let attempt = attempt(WAITS);
    let running = attempt.begin();
    let ready = attempt.number("ready").await;
    running.abort();
    assert!(running.await.expect_err("aborted").is_cancelled());
    let started = attempt.started().await;
    assert_eq!(started.command().map(|(pid, _)| pid), Some(ready));
    assert!(started.command_lives());
    let folder = attempt.folder().to_owned();
    let attached = tokio::spawn(async move { shim::wait(&folder).await });
    attempt.release();
    let probed = settled(attached)
        .await
        .expect("it waits")
        .expect("it holds");
    let Probe::Ended(record) = probed else {
        panic!("expected an end, found {probed:?}");
    };
    assert_eq!(record.ended(), Some(Exit::Code(0)));
    assert!(attempt.read("transcript.txt").ends_with("go\n"));
    assert!(is_gone(attempt.number("leaver").await));
}

/// A shim that is killed leaves no record: whoever saw it die ends what is left of the command, also what left its
/// session, and nobody knows what it did.
#[tokio::test]
async fn a_killed_shim_leaves_nothing_behind_and_nothing_known() {
    let attempt = attempt(WAITS);
    let running = attempt.begin();
    let ready = attempt.number("ready").await;
    kill(attempt.started().await.shim_pid);
    let ran = settled(running).await.expect("it ran");
    let Ran::Lost(why) = ran else {
        panic!("expected nothing known, found {ran:?}");
    };
    assert!(why.contains("its shim was killed by signal 9"), "{why}");
    for pid in [
        ready,
        attempt.number("child").await,
        attempt.number("leaver").await,
    ] {
        gone(pid).await;
    }
    // Nor does a record that is put there afterwards.
    let other = self::attempt("true");
    other.ended().await;
    for name in ["shim.json", "exit.json", "transcript.txt"] {
        let from = other.folder().join(name);
        fs::copy(from, attempt.folder().join(name)).expect("it is copied");
    }
    let probed = shim::probe(attempt.folder());
    assert!(matches!(probed, Probe::Lost(Some(_))), "{probed:?}");
}

/// What a later engine ends of a command whose shim it never saw: the command by number and start, and what carries
/// the attempt's name. Nothing is ended by its number alone.
#[tokio::test]
async fn a_later_engine_ends_only_what_is_surely_left() {
    let attempt = attempt(WAITS);
    let running = attempt.begin();
    let ready = attempt.number("ready").await;
    running.abort();
    assert!(running.await.expect_err("aborted").is_cancelled());
    let mut started = attempt.started().await;
    kill(started.shim_pid);
    settled(async {
        while matches!(shim::probe(attempt.folder()), Probe::Running(_)) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let start = attempt.folder().join("start.json");
    let real = fs::read(&start).expect("a record");
    started.command_start = started.command_start.map(|start| (start.0 + 1).into());
    let other = aiws::canonical::bytes_of(&started).expect("bytes");
    fs::write(&start, other).expect("it is written");
    shim::end_left(attempt.folder(), "ATTEMPT=another", false);
    assert!(!is_gone(ready), "ended by its number alone");
    fs::write(&start, real).expect("it is written");
    let marker = format!("ATTEMPT={}", attempt.shim.attempt_id);
    shim::end_left(attempt.folder(), &marker, false);
    for pid in [
        ready,
        attempt.number("child").await,
        attempt.number("leaver").await,
    ] {
        gone(pid).await;
    }
}

/// The lock says what is known, whatever else stands there: an engine that dies between lock and start leaves a free
/// lock and no record.
#[test]
fn the_lock_says_what_is_known() {
    let dir = TempDir::new().expect("a directory");
    let probe = || shim::probe(dir.path());
    assert_eq!(shim::probe(&dir.path().join("none")), Probe::NotStarted);
    assert_eq!(probe(), Probe::NotStarted);
    let lock = File::create(dir.path().join("shim.lock")).expect("a lock");
    assert_eq!(probe(), Probe::Lost(None));
    flock(&lock, FlockOperation::LockExclusive).expect("it is free");
    assert_eq!(probe(), Probe::Running(None));
    drop(lock);
    assert_eq!(probe(), Probe::Lost(None));
    fs::remove_file(dir.path().join("shim.lock")).expect("a lock");
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("shim.lock")).expect("a link");
    assert_eq!(probe(), Probe::Lost(None));
}

/// The command has neither the lock nor a terminal, and no input.
#[tokio::test]
async fn the_command_inherits_nothing() {
    let attempt = attempt("ls -l /proc/$$/fd; cut -d' ' -f 6,7 /proc/$$/stat; env");
    attempt.ended().await;
    let said = attempt.read("transcript.txt");
    assert!(!said.contains("shim.lock"), "{said}");
    assert!(said.contains("0 -> /dev/null"), "{said}");
    let start: Value =
        aiws::strict::parse(attempt.read("start.json").as_bytes()).expect("a record");
    let shim = start.get("shimPid").map(ToString::to_string);
    // The session is the shim's own, and its terminal is none.
    let session = format!("{} 0\n", shim.expect("a number"));
    assert!(said.contains(&session), "{said}");
    let names: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    let named = |name: &&str| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name);
    let mut names: Vec<&str> = names.into_iter().filter(named).collect();
    names.sort_unstable();
    assert_eq!(names, ["ATTEMPT", "PATH"]);
}

/// Without its lock a shim starts nothing, and what cannot be started is said to be so.
#[tokio::test]
async fn a_shim_that_cannot_start_its_command_says_so() {
    let attempt = attempt("echo ran > ran");
    let by_hand = Command::new(example())
        .arg(shim::VERB)
        .arg(attempt.folder())
        .stdin(Stdio::null())
        .output()
        .expect("the example was built");
    assert_eq!(by_hand.status.code(), Some(64));
    assert!(!attempt.folder().join("ran").exists());
    let mut attempt = attempt;
    attempt.shim.process.directory = PathBuf::from("/nowhere/at/all");
    let ran = attempt.run().await;
    assert!(matches!(ran, Ran::NotStarted(_)), "{ran:?}");
    let Probe::Ended(record) = shim::probe(attempt.folder()) else {
        panic!("no record");
    };
    assert_eq!(record.ended(), None);
    let again = attempt.shim.run().await;
    assert!(again.is_err(), "a folder serves one attempt");
}

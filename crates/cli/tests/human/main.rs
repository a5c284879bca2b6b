//! Human authority against real processes: siblings, children, daemons, orphans, other namespaces.
//! Invariant: every process of a test is a real one that this binary started; they wait for each other, never for time.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cast;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use aiws::error::Error;
use aiws::json::Value;
use praxis_cli::human::{Caller, MARK, ProcessId, Proof, SHIM, Way, Work, prove};
use rustix::process::{Pid, WaitId, WaitIdOptions};

use cast::{ENGINE, Host, ROLE, SHIMS, id_of, play, reason, terminal};

/// Not a test of anything: the other processes come in by this door.
#[test]
fn entry() {
    if let Ok(role) = std::env::var(ROLE) {
        let words: Vec<&str> = role.split(' ').collect();
        play(&words);
        std::process::exit(0);
    }
}

fn work_of(engine: Option<ProcessId>, shims: &[ProcessId]) -> Work {
    Work {
        store: PathBuf::from("/a/store"),
        engine,
        shims: shims.to_vec(),
        lost: false,
    }
}

fn refusal(found: Result<Proof, Error>) -> String {
    reason(&found.expect_err("refused"))
}

/// Proves ERR-HUMAN_REQUIRED: a process beside the work is taken for a person's, and what was proven is told.
#[test]
fn a_sibling_of_engine_and_shim_is_accepted() {
    let mut host = Host::new();
    let (engine, shim) = (host.role("parent connect"), host.shim("connect"));
    let (engine, _engine) = host.bystander(engine);
    let (shim, _shim) = host.bystander(shim);
    let work = work_of(Some(engine), &[shim]);
    let proof = host.judge("parent connect", Way::Verb, &work).unwrap();
    let value = proof.to_value();
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap();
    assert_eq!(text("/format"), "praxis-human");
    assert_eq!((text("/way"), text("/pinnedBy")), ("VERB", "PEERPIDFD"));
    let exe = std::env::current_exe().unwrap().canonicalize().unwrap();
    assert_eq!(text("/executable/path"), exe.to_str().unwrap());
    let ancestors = value.get("ancestors").and_then(Value::as_array).unwrap();
    let pids: Vec<i64> = ancestors
        .iter()
        .map(|one| one.get("pid").and_then(Value::as_int).unwrap())
        .collect();
    let caller = value.get("pid").and_then(Value::as_int).unwrap();
    assert!(!pids.contains(&caller));
    assert_eq!(pids[1], i64::from(std::process::id()));
    let number = |pointer| value.pointer(pointer).and_then(Value::as_int).unwrap();
    assert_eq!(number("/atMs"), 7);
    assert_eq!(
        number("/uid"),
        i64::from(rustix::process::geteuid().as_raw())
    );
    assert_eq!(number("/startTime") as u64, id_of(caller as u32).start);
    assert_eq!(number("/checked/engine"), i64::from(engine.pid));
    assert_eq!(number("/checked/shims/0"), i64::from(shim.pid));
    assert_eq!(
        value.pointer("/checked/callerIsEngine"),
        Some(&Value::Bool(false))
    );
}

/// Proves HC-ENV.6: what the engine started is not a person, however far below; the engine at its own terminal may be.
#[test]
fn a_child_of_the_engine_is_refused_and_the_engine_itself_is_not() {
    let mut host = Host::new();
    for words in ["connect", "parent parent connect"] {
        let me = work_of(Some(id_of(std::process::id())), &[]);
        assert_eq!(
            refusal(host.judge(words, Way::Typed, &me)),
            "DESCENDS_FROM_ENGINE"
        );
    }
    let command = host.role("parent connect");
    let engine = host.start(command);
    let stream = host.accept();
    let caller = Caller::of_peer(&stream).unwrap();
    let found = prove(&caller, Way::Verb, &work_of(Some(engine), &[]), 1);
    assert_eq!(refusal(found), "DESCENDS_FROM_ENGINE");

    let this = Caller::this_process().unwrap();
    assert!(this.is_this_process() && !caller.is_this_process());
    let value = prove(&this, Way::Typed, &work_of(Some(this.id()), &[]), 1)
        .unwrap()
        .to_value();
    assert_eq!(
        value.pointer("/checked/callerIsEngine"),
        Some(&Value::Bool(true))
    );
    assert_eq!(value.get("pinnedBy").and_then(Value::as_str), Some("SELF"));
}

/// Proves HS-03.11: what runs below a shim is an agent, whatever it says; and so is the shim.
#[test]
fn a_child_of_a_shim_is_refused() {
    let mut host = Host::new();
    for words in ["connect", "parent session connect"] {
        let command = host.shim(words);
        let shim = host.start(command);
        let stream = host.accept();
        let caller = Caller::of_peer(&stream).unwrap();
        for way in [Way::Typed, Way::Verb, Way::InAdvance] {
            let found = prove(&caller, way, &work_of(None, &[shim]), 1);
            assert_eq!(refusal(found), "DESCENDS_FROM_SHIM", "{words}");
        }
    }
    // A shim that no list names, for it belongs to another store.
    let command = host.wrapped(&[], &[SHIM], "parent connect");
    host.start(command);
    let stream = host.accept();
    let caller = Caller::of_peer(&stream).unwrap();
    let found = prove(&caller, Way::Verb, &Work::default(), 1);
    assert_eq!(refusal(found), "DESCENDS_FROM_SHIM");
}

/// Proves HS-03.11: where a shim holds its lock and cannot be found, nobody can be told from what it started.
#[test]
fn a_shim_that_is_not_to_be_seen_refuses_everybody() {
    let mut host = Host::new();
    let command = host.shim("connect");
    let (shim, _shim) = host.bystander(command);
    let command = host.role("connect");
    let (innocent, stream) = host.bystander(command);
    let caller = Caller::of_peer(&stream).unwrap();
    let judge = |shims: &[ProcessId]| prove(&caller, Way::Typed, &work_of(None, shims), 1);
    assert!(judge(&[shim]).is_ok());
    // The same number with another start time is another process.
    let start = shim.start + 1;
    assert_eq!(
        refusal(judge(&[ProcessId { start, ..shim }])),
        "SHIM_UNSEEN"
    );
    // A file can name a process that is no shim.
    let command = host.role("connect");
    let (other, _other) = host.bystander(command);
    assert_eq!(refusal(judge(&[shim, other])), "SHIM_UNSEEN");
    assert_eq!(refusal(judge(&[innocent])), "DESCENDS_FROM_SHIM");
}

/// Proves HS-03.11: a daemon that left its session and its parents is still below the subreaper.
#[test]
fn a_double_forked_daemon_is_refused() {
    let mut host = Host::new();
    let command = host.shim("leave session leave orphaned connect");
    let shim = host.start(command);
    let stream = host.accept();
    let caller = Caller::of_peer(&stream).unwrap();
    let found = prove(&caller, Way::Verb, &work_of(None, &[shim]), 1);
    let error = found.unwrap_err();
    assert_eq!(reason(&error), "DESCENDS_FROM_SHIM");
    let ancestor = error.details.get("ancestor").and_then(Value::as_int);
    assert_eq!(ancestor, Some(i64::from(shim.pid)));
}

/// An orphan whose shim was killed, at a terminal that is its own or without one.
fn orphan(host: &mut Host, words: &str, input: Stdio) -> (ProcessId, UnixStream) {
    let mut command = host.shim(&format!("ready orphaned {words}"));
    command.stdin(input);
    let shim = host.start(command);
    let mut ready = host.accept();
    ready.read_exact(&mut [0]).unwrap();
    let child = host.children.last_mut().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    ready.write_all(b"g").unwrap();
    (shim, host.accept())
}

/// Proves HS-03.11: once a shim is gone without a record, what it started may be anywhere, and only what is typed in
/// front of a terminal counts.
#[test]
fn an_orphan_of_a_killed_shim_needs_a_terminal() {
    let mut host = Host::new();
    let (shim, stream) = orphan(&mut host, "connect", Stdio::null());
    let caller = Caller::of_peer(&stream).unwrap();
    // As long as its lock is taken for held, nobody can be told from it.
    let found = prove(&caller, Way::Typed, &work_of(None, &[shim]), 1);
    assert_eq!(refusal(found), "SHIM_UNSEEN");
    let lost = Work {
        lost: true,
        ..Work::default()
    };
    for way in [Way::Typed, Way::Verb, Way::InAdvance] {
        assert_eq!(refusal(prove(&caller, way, &lost, 1)), "ATTEMPT_LOST");
    }

    // The limit that docs/SECURITY.md names: it makes itself a terminal. What it was stands in the record.
    let (_person, side) = terminal();
    let (_, stream) = orphan(&mut host, "terminal connect", side.into());
    let caller = Caller::of_peer(&stream).unwrap();
    for way in [Way::Verb, Way::InAdvance] {
        assert_eq!(refusal(prove(&caller, way, &lost, 1)), "ATTEMPT_LOST");
    }
    let value = prove(&caller, Way::Typed, &lost, 1).unwrap().to_value();
    let name = value
        .pointer("/terminal/name")
        .and_then(Value::as_str)
        .unwrap();
    assert!(name.starts_with("/dev/pts/"), "{value}");
    assert_eq!(
        value.pointer("/checked/attemptLost"),
        Some(&Value::Bool(true))
    );

    // In the background of a terminal nobody types.
    let (_person, side) = terminal();
    let (_, stream) = orphan(&mut host, "terminal background connect", side.into());
    let caller = Caller::of_peer(&stream).unwrap();
    assert_eq!(
        refusal(prove(&caller, Way::Typed, &lost, 1)),
        "ATTEMPT_LOST"
    );
}

/// Proves HS-03.11: a person in front of a terminal decides, also while an attempt is lost.
#[test]
fn a_person_at_a_terminal_decides_while_an_attempt_is_lost() {
    let mut host = Host::new();
    let (_person, side) = terminal();
    let mut command = host.role("terminal connect");
    command.stdin(side);
    host.start(command);
    let stream = host.accept();
    let caller = Caller::of_peer(&stream).unwrap();
    let lost = Work {
        lost: true,
        ..Work::default()
    };
    let value = prove(&caller, Way::Typed, &lost, 1).unwrap().to_value();
    assert_eq!(
        value.pointer("/terminal/foreground"),
        Some(&Value::Bool(true))
    );
    assert_eq!(refusal(prove(&caller, Way::Verb, &lost, 1)), "ATTEMPT_LOST");
}

/// Proves HS-03.11: a peer that is gone, whether before it was looked at or after, decides nothing.
#[test]
fn a_peer_that_ended_is_refused() {
    let mut host = Host::new();
    let command = host.role("touch");
    host.start(command);
    host.children.last_mut().unwrap().wait().unwrap();
    let stream = host.accept();
    assert_eq!(reason(&Caller::of_peer(&stream).err().unwrap()), "GONE");

    for reaped in [false, true] {
        let command = host.role("connect");
        host.start(command);
        let stream = host.accept();
        let caller = Caller::of_peer(&stream).unwrap();
        drop(stream);
        let child = host.children.last_mut().unwrap();
        let number = Pid::from_child(child);
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::process::waitid(WaitId::Pid(number), look).unwrap();
        if reaped {
            child.wait().unwrap();
        }
        let found = prove(&caller, Way::Verb, &Work::default(), 1);
        assert_eq!(refusal(found), "GONE", "reaped: {reaped}");
    }
}

/// Proves HS-03.11: the mark of an attempt refuses, on the caller or on any parent, with no shim in sight.
#[test]
fn the_mark_of_an_attempt_is_refused() {
    let mut host = Host::new();
    for words in ["connect", "parent connect", "unmark connect"] {
        let mut command = host.role(words);
        command.env(MARK, "attempt:1");
        host.start(command);
        let stream = host.accept();
        let caller = Caller::of_peer(&stream).unwrap();
        let found = prove(&caller, Way::Typed, &Work::default(), 1);
        assert_eq!(refusal(found), "BEARS_ATTEMPT", "{words}");
    }
    // A variable whose name only begins like it is none.
    let mut command = host.role("connect");
    command.env(format!("{MARK}_OLD"), "attempt:1");
    host.start(command);
    let stream = host.accept();
    let caller = Caller::of_peer(&stream).unwrap();
    assert!(prove(&caller, Way::Verb, &Work::default(), 1).is_ok());
}

/// Proves HC-ENV.6: a command that opens the store itself is held to the same, and an engine below a shim is an agent.
#[test]
fn a_process_proves_itself_by_the_same_rules() {
    let mut host = Host::new();
    let command = host.role("self");
    assert_eq!(host.answer(command), "PROVEN");
    let mut command = host.role("self");
    command.env(ENGINE, "me");
    assert_eq!(host.answer(command), "PROVEN");
    let mut command = host.wrapped(&[], &[SHIM], "parent self");
    command.env(ENGINE, "me");
    assert_eq!(host.answer(command), "DESCENDS_FROM_SHIM");
    let mut command = host.role("leave orphaned self");
    command.env(MARK, "attempt:1");
    assert_eq!(host.answer(command), "BEARS_ATTEMPT");
}

/// Whether this machine lets its users make process namespaces; where it does not, it says why, and says it rightly.
fn namespaces() -> bool {
    let made = Command::new("unshare")
        .args(["--user", "--pid", "--fork", "true"])
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(
        made.status.success()
            || [
                "not permitted",
                "denied",
                "No space left",
                "Invalid argument"
            ]
            .iter()
            .any(|reason| why.contains(reason)),
        "{why}"
    );
    made.status.success()
}

/// Proves HS-03.11: a process namespace hides nobody: seen from outside its processes have parents, seen from inside
/// the shims are missing, and a peer from outside has no number. Where the machine makes none, that is asserted, and
/// the test of `pin` has the number 0.
#[test]
fn another_process_namespace_is_refused() {
    if !namespaces() {
        return;
    }
    let inside = ["unshare", "--user", "--pid", "--fork"];
    let own_proc = [
        "unshare",
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
    ];
    let mut host = Host::new();

    // A namespaced peer, seen from outside.
    let mut command = host.shim("parent connect");
    let (shim, _shim) = (host.start(command), host.accept());
    command = host.wrapped(&inside, &[], "connect");
    host.start(command);
    let stream = host.accept();
    let caller = Caller::of_peer(&stream).unwrap();
    assert!(prove(&caller, Way::Verb, &work_of(None, &[shim]), 1).is_ok());
    command = host.wrapped(&inside, &[SHIM], "connect");
    host.start(command);
    let stream = host.accept();
    let caller = Caller::of_peer(&stream).unwrap();
    assert_eq!(
        refusal(prove(&caller, Way::Verb, &Work::default(), 1)),
        "DESCENDS_FROM_SHIM"
    );

    // A process that proves itself in there: with the /proc of outside it is nobody, with its own it misses the shim.
    command = host.wrapped(&inside, &[], "self");
    assert!(["OTHER_NAMESPACE", "GONE"].contains(&host.answer(command).as_str()));
    command = host.wrapped(&own_proc, &[], "self");
    command.env(SHIMS, format!("{}:{}", shim.pid, shim.start));
    assert_eq!(host.answer(command), "SHIM_UNSEEN");

    // A host in there, and a peer from outside.
    command = host.wrapped(&own_proc, &[], "serve");
    host.start(command);
    host.accept().read_exact(&mut [0]).unwrap();
    let mut stream = UnixStream::connect(host.dir.path().join("socket.inner")).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert_eq!(said, "OTHER_NAMESPACE");
}

/// A caller in python, which can do what this test cannot do safely.
fn python(host: &mut Host, script: &str) -> Result<Proof, Error> {
    let connect = "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)\n";
    let mut command = Command::new("python3");
    command.args([
        "-c",
        &format!("import ctypes, os, socket, sys\n{script}\n{connect}"),
    ]);
    command.arg(host.socket());
    host.start(command);
    let stream = host.accept();
    Caller::of_peer(&stream).and_then(|caller| prove(&caller, Way::Verb, &Work::default(), 1))
}

/// Proves HS-03.11: a process that another one traces, or that has no end of parents, is not taken for a person's.
#[test]
fn a_traced_caller_and_an_endless_line_are_refused() {
    let mut host = Host::new();
    assert!(python(&mut host, "").is_ok());
    let traced = "ctypes.CDLL(None).ptrace(0, 0, 0, 0)";
    assert_eq!(refusal(python(&mut host, traced)), "TRACED");
    let script = "n=$1; shift; test $n -gt 0 || exec \"$@\"; sh \"$0\" $((n - 1)) \"$@\"; exit";
    let path = host.dir.path().join("deep.sh");
    std::fs::write(&path, script).unwrap();
    let deep = ["sh", path.to_str().unwrap(), "260"];
    let command = host.wrapped(&deep, &[], "connect");
    host.start(command);
    let stream = host.accept();
    let caller = Caller::of_peer(&stream).unwrap();
    let found = prove(&caller, Way::Verb, &Work::default(), 1);
    assert_eq!(refusal(found), "TOO_DEEP");
}

//! `praxis verify --deep`: on a sound store, on a forged one, on a damaged one.
//! Invariant: the forged store is sound for a plain `verify`; only deciding again finds it.
//! Part of the tests of `tools`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use aiws::json::Value;
use praxis_journal::{Append, Conditions, FileDisk, Journal, Ledger, Options};
use praxis_journal_format::{Sealed, seal};
use praxis_model::command::CommandType;
use praxis_model::event::Event;
use praxis_model::stream::Subject;
use praxis_model::table::{Launch, launches};

use crate::support::{Called, called, finished, parse, text};

fn verify(store: &Path, args: &[&str]) -> Called {
    let mut command = Command::new(env!("CARGO_BIN_EXE_praxis"));
    command
        .arg("--store")
        .arg(store)
        .arg("verify")
        .args(args)
        .stdin(Stdio::null());
    called(&mut command)
}

pub fn events(store: &Path) -> Vec<Sealed> {
    let options = Options {
        read_only: true,
        ..Options::default()
    };
    let journal = Journal::open(store, &options).unwrap();
    let mut events = Vec::new();
    let keep = |_, sealed| {
        events.push(sealed);
        true
    };
    journal.scan(1, keep).unwrap();
    journal.close().unwrap();
    events
}

/// A store of these events, each under the conditions that the writer asks for.
pub fn store_of(path: PathBuf, id: &str, events: &[Sealed]) -> PathBuf {
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    let disk = Arc::new(FileDisk::new(&path));
    let mut ledger = Ledger::create(disk, id.parse().unwrap(), &Options::default()).unwrap();
    for parts in events.chunk_by(|_, next| next.event.part.k.get() > 1) {
        let event = &parts[0].event;
        let mission = Subject::mission(event.subject.mission_id.clone());
        let launching = parts
            .iter()
            .any(|part| launches(part.event.kind) != Launch::Nothing);
        let epoch = event.owner_epoch.map(|epoch| epoch.get());
        let conditions = Conditions {
            head: true,
            fence: epoch.map(|epoch| (event.stream.clone(), epoch)),
            gates: launching.then(|| vec![event.subject.clone(), mission]),
            ..Conditions::default()
        };
        let append = Append {
            sealed: parts.to_vec(),
            conditions,
        };
        let answers = ledger.commit(&[append], event.at_ms.get());
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }
    ledger.close().unwrap();
    path
}

/// Proves T-11: every event of a whole coding run is decided again and reaches its recorded outcome.
#[test]
fn t_11_a_sound_store_is_decided_again() {
    let world = finished();
    let plain = world.verb(&["verify"]);
    assert_eq!(plain.exit, Some(0), "{}{}", plain.out, plain.err);
    assert!(!plain.out.contains("decided again"), "{}", plain.out);
    assert!(world.json(&["verify"]).get("deep").unwrap().is_null());
    let deep = world.verb(&["verify", "--deep"]);
    assert_eq!(deep.exit, Some(0), "{}{}", deep.out, deep.err);
    let value = world.json(&["verify", "--deep"]);
    let count = text(&value, "/events");
    let line = format!("decided again: {count} events reached their recorded outcome, 0 did not\n");
    assert!(deep.out.starts_with(&line), "{}", deep.out);
    let counted = aiws::object! {
        "reached": count, "differing": "0", "undecided": aiws::object! {}, "otherVersions": aiws::object! {},
        "unreadable": "0",
    };
    assert_eq!(value.get("deep"), Some(&counted));
    assert_eq!(value.pointer("/sound"), Some(&Value::Bool(true)));
}

/// Proves T-11: an event that was forged with its hash and chain is named by sequence, stream, revision, command and
/// member, and the exit is that of a store that does not verify.
#[test]
fn t_11_a_forged_store_is_named() {
    let world = finished();
    let events = events(&world.store);
    let is_settle = |sealed: &Sealed| sealed.event.kind == CommandType::Settle;
    let at = events.iter().position(is_settle).unwrap();
    let mut event: Event = events[at].event.clone();
    event.outcome.accounts.clear();
    // What was appended with it is left out.
    (event.part.k.0, event.part.of.0) = (1, 1);
    let last = seal(event).unwrap();
    let (stream, revision) = (last.event.stream.clone(), last.event.revision);
    let forged: Vec<Sealed> = events[..at].iter().cloned().chain([last]).collect();
    let store = store_of(world.dir.path().join("forged"), "forged", &forged);

    let plain = verify(&store, &[]);
    assert_eq!(plain.exit, Some(0), "{}{}", plain.out, plain.err);
    let deep = verify(&store, &["--deep"]);
    assert_eq!(deep.exit, Some(6), "{}{}", deep.out, deep.err);
    let sequence = at + 1;
    let named = format!(
        "STORE_CORRUPT event {sequence}: settle at revision {revision} of stream {stream}, /outcome/accounts/0: decided {{"
    );
    assert!(deep.out.starts_with(&named), "{}", deep.out);
    let counts = format!("decided again: {at} events reached their recorded outcome, 1 did not\n");
    assert!(deep.out.contains(&counts), "{}", deep.out);
    assert!(deep.out.contains("NOT verified"), "{}", deep.out);

    let json = verify(&store, &["--deep", "--json"]);
    assert_eq!(json.exit, Some(6));
    let value = parse(&json.out);
    let finding = value.pointer("/findings/0").unwrap();
    let said = |name: &str| {
        finding
            .get(name)
            .and_then(Value::as_str)
            .unwrap()
            .to_owned()
    };
    assert_eq!(said("command"), "settle");
    assert_eq!(said("member"), "/outcome/accounts/0");
    assert_eq!(said("sequence"), sequence.to_string());
    assert_eq!(said("revision"), revision.to_string());
    assert_eq!(said("stream"), stream.as_str());
    assert_eq!(text(&value, "/deep/differing"), "1");
    assert_eq!(value.pointer("/sound"), Some(&Value::Bool(false)));
}

/// Proves T-11: what cannot be decided again is counted by command and never as decided.
#[test]
fn t_11_a_damaged_store_counts_what_it_cannot_decide() {
    let world = finished();
    let events = events(&world.store);
    let is_settle = |sealed: &Sealed| sealed.event.kind == CommandType::Settle;
    let at = events.iter().position(is_settle).unwrap();
    let log = world.store.join("log-000001.redb");
    let mut bytes = fs::read(&log).unwrap();
    let old = &events[at].bytes;
    let place = bytes
        .windows(old.len())
        .position(|part| part == old)
        .unwrap();
    let digit = old
        .windows(8)
        .position(|part| part == b"\"atMs\":\"")
        .unwrap()
        + 8;
    bytes[place + digit] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let deep = verify(&world.store, &["--deep"]);
    assert_eq!(deep.exit, Some(6), "{}{}", deep.out, deep.err);
    assert!(
        deep.out.contains("not decided, not readable: 1\n"),
        "{}",
        deep.out
    );
    // Of the damaged run nothing more; the mission's own events do not ask for a gate.
    let stream = &events[at].event.stream;
    let is_lost = |sealed: &&Sealed| sealed.event.stream == *stream;
    let behind = events[at + 1..].iter().filter(is_lost).count();
    let line = format!("not decidable again: {behind} events, ");
    assert!(deep.out.contains(&line), "{}", deep.out);
    let value = parse(&verify(&world.store, &["--deep", "--json"]).out);
    let reached = events.len() - 1 - behind;
    assert_eq!(text(&value, "/deep/reached"), reached.to_string());
    assert_eq!(text(&value, "/deep/differing"), "0");
}

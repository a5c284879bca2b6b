//! The golden vectors and the invalid ones, read by this crate and by `verify.py`.
//!
//! Invariant: golden files never change within a version; every invalid one is refused by both, for the named reason.
//! With `PRAXIS_WRITE_VECTORS=1` the files are written anew (only together with a new version byte, or while that is 0 with a new draft, T-85).

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use aiws::digest::sha256;
use aiws::json::Value;
use praxis_journal_format::error::FormatError;
use praxis_journal_format::export;
use praxis_journal_format::{FORMAT_DRAFT, FORMAT_VERSION, Frame, Sealed};

#[allow(dead_code)]
mod telling;

use telling::proven::{checkpoint, log, proven, signer};
use telling::spoiled::{exported, invalid};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The frames of the golden journal: each stream's previous sequence, and a marker on the first events of runs.
fn framed(events: &[Sealed]) -> Vec<Vec<u8>> {
    let mut last = BTreeMap::new();
    let mut frames = Vec::new();
    for (sequence, sealed) in (1..).zip(events) {
        let previous = last
            .insert(sealed.event.stream.clone(), sequence)
            .unwrap_or(0);
        let boot = if previous == 0 && sealed.event.subject.run_id.is_some() {
            3
        } else {
            0
        };
        let mut frame = Vec::new();
        Frame::of(sealed, previous, boot)
            .encode(&mut frame)
            .unwrap();
        frames.push(frame);
    }
    frames
}

/// Runs `verify.py --json` and gives its exit code and its report.
fn verify_py(path: &Path) -> (i32, Value) {
    let script = folder().join("verify.py");
    let output = Command::new("python3")
        .arg(script)
        .arg("--json")
        .arg(path)
        .output()
        .expect("python3 runs");
    let report =
        aiws::strict::parse(output.stdout.trim_ascii()).expect("verify.py prints one JSON object");
    (output.status.code().unwrap(), report)
}

fn write_anew(files: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files {
        let path = folder().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let lines: String = frozen(files)
        .map(|(name, bytes)| format!("{}  {name}\n", sha256(bytes)))
        .collect();
    let lines = format!("version {FORMAT_VERSION}\ndraft {FORMAT_DRAFT}\n{lines}");
    fs::write(folder().join("FROZEN"), lines).unwrap();
}

/// The files that stay as they are while the version of the format stays: the golden ones.
fn frozen(files: &BTreeMap<String, Vec<u8>>) -> impl Iterator<Item = (&String, &Vec<u8>)> + '_ {
    files.iter().filter(|(name, _)| name.starts_with("golden/"))
}

/// Every file of the vectors, as this build makes it.
fn files() -> BTreeMap<String, Vec<u8>> {
    let events = telling::golden();
    let golden = exported(&events);
    let mut files = BTreeMap::new();
    let mut expected = aiws::json::Object::new();
    for (name, bytes, fault, _) in invalid(&golden) {
        files.insert(format!("invalid/{name}.jsonl"), bytes);
        expected.insert(format!("{name}.jsonl"), fault.into());
    }
    let mut expected = aiws::canonical::to_bytes(&Value::Object(expected));
    expected.push(b'\n');
    files.insert("invalid/EXPECTED.json".to_owned(), expected);
    files.insert("golden/journal.jsonl".to_owned(), golden);
    let note = checkpoint(&log()).signed(&signer()).unwrap();
    files.insert("golden/checkpoint.note".to_owned(), note.into_bytes());
    files.insert(
        "golden/mission.jsonl".to_owned(),
        proven(&log(), "mission-1"),
    );
    files.insert("golden/empty.jsonl".to_owned(), exported(&[]));
    for (sequence, frame) in (1..).zip(framed(&events)) {
        files.insert(format!("golden/frame-{sequence}.bin"), frame);
    }
    files
}

/// Proves STO-1: what this build writes is, byte for byte, what the frozen files hold.
#[test]
fn sto_1_the_vectors_are_what_this_build_writes() {
    let files = files();
    if std::env::var_os("PRAXIS_WRITE_VECTORS").is_some() {
        write_anew(&files);
    }
    let text = fs::read_to_string(folder().join("FROZEN")).unwrap();
    let head = format!("version {FORMAT_VERSION}\ndraft {FORMAT_DRAFT}\n");
    let listed = text
        .strip_prefix(&head)
        .expect("FROZEN begins with version and draft");
    let expected: Vec<String> = frozen(&files)
        .map(|(name, bytes)| format!("{}  {name}", sha256(bytes)))
        .collect();
    assert_eq!(
        listed.lines().collect::<Vec<_>>(),
        expected,
        "golden files change together with the version, or not at all"
    );
    for (name, bytes) in &files {
        let found = fs::read(folder().join(name)).unwrap();
        assert!(found == *bytes, "{name} is not what this build writes");
    }
}

/// Proves STO-1: the golden journal is read back whole, frame by frame and as an export.
#[test]
fn sto_1_the_golden_journal_is_read_back() {
    let events = telling::golden();
    let bytes = fs::read(folder().join("golden/journal.jsonl")).unwrap();
    let export::Export {
        header,
        events: read,
        trailer,
    } = export::read(&bytes).unwrap();
    assert_eq!(header.store_id.as_str(), "store-1");
    assert_eq!(
        read.into_iter()
            .map(|(_, sealed)| sealed)
            .collect::<Vec<_>>(),
        events
    );
    assert_eq!((trailer.count.0, trailer.heads.len()), (6, 3));
    for (sequence, sealed) in (1..).zip(&events) {
        let bytes = fs::read(folder().join(format!("golden/frame-{sequence}.bin"))).unwrap();
        let frame = Frame::decode(&bytes).unwrap();
        assert_eq!(Sealed::from_frame(&frame).unwrap(), *sealed);
    }
}

/// Proves STO-4: the verifier in another language, written from FORMAT.md, accepts the golden exports.
#[test]
fn sto_4_verify_py_accepts_the_golden_exports() {
    for (name, count) in [("journal", 6), ("empty", 0)] {
        let (exit, report) = verify_py(&folder().join(format!("golden/{name}.jsonl")));
        assert_eq!(exit, 0, "{report}");
        assert_eq!(report.get("events"), Some(&Value::Int(count)), "{report}");
    }
}

/// Proves STO-4: a dropped tail, swapped events, a flipped byte, a wrong count and the rest of the invalid exports are
/// refused by this crate and by the verifier, each for its own reason and with its place.
#[test]
fn sto_4_both_readers_refuse_every_invalid_export_for_its_reason() {
    let golden = exported(&telling::golden());
    for (name, bytes, fault, word) in invalid(&golden) {
        let refused = export::read(&bytes).expect_err(name);
        assert!(refused.to_string().contains(word), "{name}: {refused}");
        let (exit, report) = verify_py(&folder().join(format!("invalid/{name}.jsonl")));
        assert_eq!(
            (exit, report.get("fault")),
            (1, Some(&Value::from(fault))),
            "{name}: {report}"
        );
        assert!(report.get("line").is_some(), "{name}: {report}");
    }
}

/// Proves STO-4: no bit of a frame can be changed, and no byte cut or added, without being refused; the two hints that
/// are not under the event's hash are no exception.
#[test]
fn sto_4_every_byte_of_a_frame_is_accounted_for() {
    for frame in framed(&telling::golden()) {
        assert!(Frame::decode(&frame).is_ok());
        for at in 0..frame.len() {
            let mut changed = frame.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(Frame::decode(&changed).is_err(), "byte {at}");
        }
        for len in 0..frame.len() {
            assert!(Frame::decode(&frame[..len]).is_err(), "cut to {len}");
        }
        assert!(Frame::decode(&[&frame[..], b"\0"].concat()).is_err());
        let newer = [&[1], &frame[1..]].concat();
        assert_eq!(
            Frame::decode(&newer),
            Err(FormatError::UnknownCodec { found: 1, known: 0 })
        );
    }
}

/// An event of the golden journal whose result nests so deep that the event has `depth` levels.
fn deep(depth: usize) -> praxis_model::event::Event {
    let mut event = telling::golden().remove(0).event;
    event.result = (1..depth).fold(Value::Int(1), |value, _| Value::Array(vec![value]));
    event
}

/// Proves STO-4: the deepest event that can be stored is one that both readers take from an export; a deeper one is
/// never sealed, and the refusal is the command's fault, not the store's.
#[test]
fn sto_4_what_is_sealed_is_read_from_an_export() {
    let sealed = praxis_journal_format::seal(deep(64)).unwrap();
    let bytes = exported(std::slice::from_ref(&sealed));
    assert_eq!(export::read(&bytes).unwrap().events, [(1, sealed)]);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &bytes).unwrap();
    let (exit, report) = verify_py(file.path());
    assert_eq!(exit, 0, "{report}");
    let refused = praxis_journal_format::seal(deep(65)).unwrap_err();
    assert_eq!(
        refused.code(),
        aiws::error::Code::SchemaInvalid,
        "{refused}"
    );
    // One level deeper than any event, in a line that is otherwise right.
    let text = String::from_utf8(bytes).unwrap();
    let (from, to) = ("[".repeat(63), "[".repeat(64));
    let deeper = text
        .replace(&from, &to)
        .replace(&"]".repeat(63), &"]".repeat(64));
    fs::write(file.path(), &deeper).unwrap();
    assert!(export::read(deeper.as_bytes()).is_err());
    let (exit, report) = verify_py(file.path());
    assert_eq!(
        (exit, report.get("fault")),
        (1, Some(&Value::from("JSON"))),
        "{report}"
    );
}

/// A hold with so many blockers; a record that is read has at most 4,096.
fn held(blockers: usize) -> aiws::record::Hold {
    let hold = aiws::object! {
        "holdId": "hold-1", "state": "OPEN", "reason": "OPERATOR", "owner": "operator",
        "scope": aiws::object! {
            "kind": "RUN", "ref": aiws::object! { "id": "run-1", "revision": "1" }, "resolverRevision": "1",
        },
        "members": vec![aiws::object! { "missionId": "mission-1", "runId": "run-1", "nodeIds": "ALL" }],
        "blockers": Vec::<Value>::new(), "allowedDecisions": vec!["RECHECK"], "stopDisposition": Vec::<Value>::new(),
        "openedBy": "operator", "openedAtMs": "1", "openedRevision": "1", "resolution": Value::Null,
    };
    let mut hold: aiws::record::Hold = aiws::canonical::from_value(&hold).unwrap();
    let blocker = |n: usize| aiws::record::Blocker {
        kind: aiws::record::HoldReason::Operator,
        subject_id: format!("blocker-{n}").parse().unwrap(),
        evidence: Vec::new(),
    };
    hold.blockers = (0..blockers).map(blocker).collect();
    hold
}

/// Proves STO-4: an event that would not be read back is refused by whoever seals it, whatever it is that readers
/// refuse: here a list above its bound, a part beyond its sequence, another command's type, a stream that is no digest.
#[test]
fn sto_4_what_is_not_read_back_is_not_sealed() {
    use praxis_model::event::Event;
    type Change = fn(&mut Event);
    let changes: [(&str, Change); 4] = [
        ("list", |event| {
            event.outcome.transitions =
                vec![praxis_model::transition::Transition::HoldOpened { hold: held(4_097) }];
        }),
        ("part", |event| event.part.k.0 = 2),
        ("type", |event| {
            event.kind = praxis_model::command::CommandType::CompleteRun;
        }),
        ("opens", |event| {
            event.outcome.opens = vec!["elsewhere".parse().unwrap()];
        }),
    ];
    for (name, change) in changes {
        let mut event = telling::golden().remove(0).event;
        event.outcome.transitions =
            vec![praxis_model::transition::Transition::HoldOpened { hold: held(4_096) }];
        assert!(praxis_journal_format::seal(event.clone()).is_ok());
        change(&mut event);
        let refused = praxis_journal_format::seal(event).expect_err(name);
        assert!(
            matches!(refused, FormatError::NotReadBack { .. }),
            "{name}: {refused}"
        );
        assert_eq!(refused.code(), aiws::error::Code::SchemaInvalid, "{name}");
    }
}

/// Proves STO-4: the verifier's time grows with the size of an object, not with its square: a repeated key among
/// many is found by looking each key up once.
#[test]
fn sto_4_verify_py_names_a_repeated_key_among_many() {
    let golden = exported(&telling::golden());
    let text = String::from_utf8(golden).unwrap();
    let many: String = (0..100_000).map(|n| format!("\"{n:06}\":0,")).collect();
    let told = text.replace(
        "\"told\":\"1\"",
        &format!("{many}\"099999\":0,\"told\":\"1\""),
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &told).unwrap();
    let (exit, report) = verify_py(file.path());
    let fault = report.get("fault");
    assert_eq!(
        (exit, fault),
        (1, Some(&Value::from("DUPLICATE_KEY"))),
        "{report}"
    );
    let what = report.get("what").and_then(Value::as_str).unwrap();
    assert!(what.contains("099999"), "{what}");
}

/// Proves STO-4: an event is read only in the one form that sealing writes.
#[test]
fn sto_4_an_event_has_one_form() {
    for sealed in telling::golden() {
        assert_eq!(Sealed::from_bytes(&sealed.bytes).unwrap(), sealed);
        let text = String::from_utf8(sealed.bytes).unwrap();
        let spaced = text.replace("\"decisionClass\":", "\"decisionClass\": ");
        let found = Sealed::from_bytes(spaced.as_bytes()).unwrap_err();
        assert!(matches!(found, FormatError::NotCanonical { .. }), "{found}");
        let doubled = text.replacen('{', "{\"atMs\":\"1\",", 1);
        assert!(matches!(
            Sealed::from_bytes(doubled.as_bytes()),
            Err(FormatError::Event(_))
        ));
    }
}

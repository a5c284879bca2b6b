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
use praxis_journal_format::export::{self, Writer};
use praxis_journal_format::{FORMAT_DRAFT, FORMAT_VERSION, Frame, Sealed};

mod telling;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn exported(events: &[Sealed]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::begin("store-1".parse().unwrap(), &mut out).unwrap();
    for (sequence, sealed) in (1..).zip(events) {
        writer.event(sequence, sealed, &mut out).unwrap();
    }
    writer.finish(&mut out).unwrap();
    out
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

/// One invalid export: name, bytes, the fault that `verify.py` names, and a word of this crate's own sentence.
fn invalid(golden: &[u8]) -> Vec<(&'static str, Vec<u8>, &'static str, &'static str)> {
    let text = String::from_utf8(golden.to_vec()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (last, events) = (lines.len() - 1, 1..lines.len() - 1);
    let with = |at: usize, line: String| {
        let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        changed[at] = line;
        changed.concat().into_bytes()
    };
    let swapped = {
        let mut changed = lines.clone();
        changed.swap(2, 3);
        changed.concat().into_bytes()
    };
    // The sequences put right again, so that only the chain can tell.
    let swapped_and_numbered = {
        let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        changed.swap(2, 3);
        changed[2] = changed[2].replace("\"sequence\":\"3\"", "\"sequence\":\"2\"");
        changed[3] = changed[3].replace("\"sequence\":\"2\"", "\"sequence\":\"3\"");
        changed.concat().into_bytes()
    };
    let without = |at: usize| {
        [lines[..at].concat(), lines[at + 1..].concat()]
            .concat()
            .into_bytes()
    };
    let without_last_event = without(events.end - 1);
    let count = |from: &str, to: &str| with(last, lines[last].replace(from, to));
    vec![
        (
            "dropped-trailer",
            lines[..last].concat().into_bytes(),
            "NO_TRAILER",
            "trailer",
        ),
        (
            "dropped-tail",
            lines[..last - 1].concat().into_bytes(),
            "NO_TRAILER",
            "trailer",
        ),
        (
            "cut-in-a-line",
            golden[..golden.len() - 7].to_vec(),
            "TRUNCATED",
            "line feed",
        ),
        ("dropped-last-event", without_last_event, "COUNT", "count"),
        ("dropped-middle-event", without(3), "SEQUENCE", "sequence"),
        ("swapped-events", swapped, "SEQUENCE", "sequence"),
        (
            "swapped-events-renumbered",
            swapped_and_numbered,
            "REVISION",
            "revision",
        ),
        (
            "flipped-byte",
            with(3, lines[3].replace("\"told\":\"3\"", "\"told\":\"2\"")),
            "HASH",
            "hash",
        ),
        ("flipped-hash", with(3, flip_hash(lines[3])), "HASH", "hash"),
        (
            "wrong-count",
            count("\"count\":\"6\"", "\"count\":\"5\""),
            "COUNT",
            "count",
        ),
        (
            "wrong-head",
            count("\"revision\":\"3\"", "\"revision\":\"2\""),
            "HEADS",
            "heads",
        ),
        (
            "wrong-digest",
            with(last, flip_digest(lines[last])),
            "DIGEST",
            "digest",
        ),
        (
            "other-header",
            with(0, lines[0].replace("store-1", "store-2")),
            "DIGEST",
            "digest",
        ),
        (
            "newer-version",
            with(0, lines[0].replace("\"version\":0", "\"version\":1")),
            "VERSION",
            "version",
        ),
        (
            "foreign-format",
            with(0, lines[0].replace("praxis-export", "other-export")),
            "FORMAT",
            "format",
        ),
        (
            "duplicate-key",
            with(
                1,
                lines[1].replace("{\"event\"", "{\"hash\":\"\",\"event\""),
            ),
            "DUPLICATE_KEY",
            "twice",
        ),
        (
            "whitespace",
            with(2, lines[2].replace("\"hash\":", "\"hash\": ")),
            "NOT_CANONICAL",
            "canonical",
        ),
        (
            "escaped-letter",
            with(2, lines[2].replace("AT_TERMINAL", "\\u0041T_TERMINAL")),
            "NOT_CANONICAL",
            "canonical",
        ),
        (
            "fraction",
            with(5, lines[5].replace("\"a\":-3", "\"a\":-3.0")),
            "JSON",
            "integer",
        ),
        (
            "unsafe-integer",
            with(5, lines[5].replace("\"a\":-3", "\"a\":-9007199254740992")),
            "JSON",
            "integer",
        ),
        (
            "lone-surrogate",
            with(5, lines[5].replace("\"a\":-3", "\"\\ud800\":-3")),
            "JSON",
            "surrogate",
        ),
        (
            "unknown-member",
            with(
                2,
                lines[2].replace("{\"event\":{", "{\"event\":{\"aaa\":1,"),
            ),
            "SHAPE",
            "aaa",
        ),
        (
            "after-trailer",
            [golden, lines[1].as_bytes()].concat(),
            "AFTER_TRAILER",
            "after",
        ),
        ("not-opened", not_opened(), "NOT_OPENED", "opens"),
    ]
    .into_iter()
    .chain(misshapen().map(|(name, from, to, fault, word)| {
        let changed = lines[2].replacen(from, to, 1);
        assert!(changed != lines[2], "{name} changes nothing");
        (name, with(2, changed), fault, word)
    }))
    .collect()
}

/// One member of an event with a value that section 2 does not allow: name, what is replaced in the third line, by
/// what, and the two readers' words.
fn misshapen() -> impl Iterator<
    Item = (
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        &'static str,
    ),
> {
    let part = r#""part":{"k":"1","of":"2"}"#;
    [
        (
            "part-zero",
            part,
            r#""part":{"k":"0","of":"2"}"#,
            "SHAPE",
            "part",
        ),
        (
            "part-beyond",
            part,
            r#""part":{"k":"3","of":"2"}"#,
            "SHAPE",
            "part",
        ),
        (
            "other-type",
            r#""type":"revokeApproval"},"h"#,
            r#""type":"completeRun"},"h"#,
            "SHAPE",
            "command",
        ),
        (
            "newer-codec",
            r#"/1","version":"0"}"#,
            r#"/1","version":"99"}"#,
            "CODEC",
            "codec",
        ),
        (
            "other-profile",
            "aiws-handoff/1",
            "aiws-handoff/2",
            "SHAPE",
            "codec",
        ),
        (
            "time-as-text",
            "1700000000002",
            "yesterday",
            "SHAPE",
            "atMs",
        ),
        (
            "time-beyond",
            "1700000000002",
            "18446744073709551616",
            "SHAPE",
            "atMs",
        ),
        (
            "epoch-padded",
            r#""ownerEpoch":"1""#,
            r#""ownerEpoch":"01""#,
            "SHAPE",
            "ownerEpoch",
        ),
        ("unknown-actor-kind", "HUMAN", "ROBOT", "SHAPE", "actorKind"),
        (
            "empty-mission",
            r#""missionId":"mission-1","runId""#,
            r#""missionId":"","runId""#,
            "SHAPE",
            "missionId",
        ),
        (
            "policy-missing",
            r#""policy":{"id":"policy","revision":"3"}"#,
            r#""policy":null"#,
            "SHAPE",
            "policy",
        ),
        (
            "decision-as-number",
            r#""decisionRef":null"#,
            r#""decisionRef":3"#,
            "SHAPE",
            "decisionRef",
        ),
        (
            "outcome-with-more",
            r#""outcome":{"accounts""#,
            r#""outcome":{"aaa":1,"accounts""#,
            "SHAPE",
            "aaa",
        ),
        (
            "facts-with-less",
            r#","restartAllowed":false"#,
            "",
            "SHAPE",
            "restartAllowed",
        ),
    ]
    .into_iter()
}

/// Flips a digit of the hash that stands beside an event, not one inside it.
fn flip_hash(line: &str) -> String {
    let at = line.rfind("\"hash\":\"").unwrap() + 8;
    let digit = if &line[at..=at] == "0" { "1" } else { "0" };
    [&line[..at], digit, &line[at + 1..]].concat()
}

fn flip_digest(line: &str) -> String {
    let at = line.find("\"digest\":\"").unwrap() + 10;
    let digit = if &line[at..=at] == "0" { "1" } else { "0" };
    [&line[..at], digit, &line[at + 1..]].concat()
}

/// An export whose only event is of a run that nothing admitted; every hash in it is right.
fn not_opened() -> Vec<u8> {
    let events = telling::golden();
    let run = events.last().unwrap();
    let mut event = run.event.clone();
    event.prev_hash = aiws::digest::Digest::ZERO;
    let sealed = praxis_journal_format::seal(event).unwrap();
    let header = String::from_utf8(exported(&[])).unwrap();
    let header = header.split_inclusive('\n').next().unwrap().to_owned();
    let event = String::from_utf8(sealed.bytes).unwrap();
    let line = format!(
        "{{\"event\":{event},\"hash\":\"{}\",\"sequence\":\"1\"}}\n",
        sealed.hash
    );
    let head = format!(
        "{{\"hash\":\"{}\",\"revision\":\"1\",\"stream\":\"{}\"}}",
        sealed.hash, sealed.event.stream
    );
    let before = header + &line;
    let digest = sha256(before.as_bytes());
    let trailer =
        format!("{{\"trailer\":{{\"count\":\"1\",\"digest\":\"{digest}\",\"heads\":[{head}]}}}}\n");
    (before + &trailer).into_bytes()
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

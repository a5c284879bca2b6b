//! The export of one mission with its proofs, and checkpoints over whole exports: read by this crate and by `verify.py`.
//!
//! Invariant: golden files never change within a version; whatever is tampered with, both readers refuse it, for the named
//! reason. With `PRAXIS_WRITE_VECTORS=1` the test of the vectors writes the files anew. Run by `cargo test`.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use aiws::digest::sha256;
use aiws::json::Value;
use praxis_journal_format::checkpoint::Checkpoint;
use praxis_journal_format::note::Signer;
use praxis_journal_format::proofs::{Writer, read};
use praxis_journal_format::tree::Tree;
use praxis_journal_format::{FormatError, Sealed};

#[allow(dead_code)]
mod telling;

use telling::proven::{KEY, checkpoint, log, mission_of, proven, signer, tree};
use telling::spoiled::exported;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Runs `verify.py --json` on bytes and gives its exit code and its report.
fn verify_py(bytes: &[u8], options: &[(&str, &[u8])], key: &str) -> (i32, Value) {
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("export");
    fs::write(&file, bytes).unwrap();
    let mut command = Command::new("python3");
    command.arg(folder().join("verify.py")).arg("--json");
    for (name, content) in options {
        let path = dir.path().join("note");
        fs::write(&path, content).unwrap();
        command.arg(name).arg(path);
    }
    if !key.is_empty() {
        command.args(["--verifier-key", key]);
    }
    let output = command.arg(&file).output().expect("python3 runs");
    let report = aiws::strict::parse(output.stdout.trim_ascii()).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    (output.status.code().unwrap(), report)
}

/// Refused by both readers: by `verify.py` with this fault, by this crate with this word.
fn refused(name: &str, bytes: &[u8], fault: &str, word: &str) {
    let verifier = signer().verifier();
    let error = read(bytes, &verifier).expect_err(name).to_string();
    assert!(error.contains(word), "{name}: {error}");
    let (exit, report) = verify_py(bytes, &[], &verifier.text());
    let found = report.get("fault").and_then(Value::as_str);
    assert_eq!((exit, found), (1, Some(fault)), "{name}: {report}");
}

/// Proves STO-4, T-01: the events of one mission are proven without any other mission's, by both readers, and what they read
/// is what was written.
#[test]
fn sto_4_one_missions_events_are_proven_without_the_others() {
    let log = log();
    let bytes = proven(&log, "mission-1");
    let verifier = signer().verifier();
    let read = read(&bytes, &verifier).unwrap();
    let own: Vec<(u64, Sealed)> = (1..)
        .zip(log.iter().cloned())
        .filter(|(_, sealed)| mission_of(sealed) == "mission-1")
        .collect();
    assert!(own.len() < log.len() && own.len() > 3);
    assert_eq!(read.events, own);
    assert_eq!(read.head, checkpoint(&log).head);
    assert_eq!(read.trailer.count.0, own.len() as u64);
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(!text.contains("mission-2"), "another mission is shown");
    let (exit, report) = verify_py(&bytes, &[], &verifier.text());
    assert_eq!(exit, 0, "{report}");
    let count = i64::try_from(own.len()).unwrap();
    assert_eq!(report.get("events"), Some(&Value::Int(count)), "{report}");
    // A mission without events proves nothing and is no fault.
    assert!(super_read(&proven(&log, "mission-3")).is_ok());
}

fn super_read(bytes: &[u8]) -> Result<(), FormatError> {
    read(bytes, &signer().verifier()).map(drop)
}

/// Proves STO-1: the golden export with proofs and the golden checkpoint are what this build writes, and are accepted.
#[test]
fn sto_1_the_golden_proofs_are_what_this_build_writes() {
    let log = log();
    let golden = |name: &str| fs::read(folder().join("golden").join(name)).unwrap();
    assert!(golden("mission.jsonl") == proven(&log, "mission-1"));
    let note = checkpoint(&log).signed(&signer()).unwrap();
    assert!(golden("checkpoint.note") == note.into_bytes());
    assert_eq!(signer().verifier().text(), KEY);
    let (exit, report) = verify_py(&golden("mission.jsonl"), &[], KEY);
    assert_eq!(exit, 0, "{report}");
}

/// Proves STO-4: who asks for a signature gets one checked or a refusal: a plain export in place of a signed one passes for
/// nothing, and neither does a pipe for a checkpoint.
#[test]
fn sto_4_a_key_without_a_signature_proves_nothing() {
    let plain = exported(&log());
    let fault = |report: &Value| {
        report
            .get("fault")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    for key in [KEY, "garbage"] {
        let (exit, report) = verify_py(&plain, &[], key);
        assert_eq!(
            (exit, fault(&report).as_deref()),
            (1, Some("CHECKPOINT")),
            "{report}"
        );
    }
    assert_eq!(verify_py(&plain, &[], "").0, 0);
    let dir = tempfile::TempDir::new().unwrap();
    let (alone, export) = (dir.path().join("verify.py"), dir.path().join("export"));
    fs::copy(folder().join("verify.py"), &alone).unwrap();
    fs::write(&export, proven(&log(), "mission-1")).unwrap();
    let called = |options: &[&str]| {
        let mut command = Command::new("python3");
        command.arg(&alone).args(options).arg(&export);
        let output = command.output().expect("python3 runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (exit, said) = called(&["--verifier-key", KEY]);
    assert!(exit == Some(1) && said.contains("checkpoint.py"), "{said}");
    let folder = dir.path().to_str().unwrap();
    let (exit, said) = called(&["--checkpoint", folder, "--verifier-key", KEY]);
    assert!(exit == Some(1) && said.contains("UNREADABLE"), "{said}");
}

/// Proves STO-4: a proof, a place, an event, a checkpoint or a signature that was tampered with is refused by both readers,
/// each for its own reason.
#[test]
fn sto_4_tampered_proofs_are_refused_by_both_readers() {
    let log = log();
    let bytes = proven(&log, "mission-1");
    let text = String::from_utf8(bytes).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let with = |at: usize, from: &str, to: &str| {
        let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        assert!(changed[at].contains(from), "{from}");
        changed[at] = changed[at].replacen(from, to, 1);
        changed.concat().into_bytes()
    };
    let proof = |at: usize| {
        let line = lines[at];
        let (_, rest) = line.split_once("\"proof\":[").unwrap();
        rest.split_once(']').unwrap().0.to_owned()
    };
    let first = proof(1).split(',').next().unwrap().to_owned();
    let flipped = if first.contains('a') {
        first.replacen('a', "b", 1)
    } else {
        first.replacen('0', "1", 1)
    };
    let unproven = "not proven";
    refused("hash", &with(1, &first, &flipped), "PROOF", unproven);
    let shorter = with(1, &format!("{first},"), "");
    refused("shorter", &shorter, "PROOF", unproven);
    let longer = with(1, &first, &format!("{first},{first}"));
    refused("longer", &longer, "PROOF", unproven);
    let none = with(1, &proof(1), "");
    refused("none", &none, "PROOF", unproven);
    let swapped = with(1, &proof(1), &proof(2));
    refused("another's", &swapped, "PROOF", unproven);
    let last = lines.len() - 2;
    let sequence = log.len();
    let place = format!("\"sequence\":\"{sequence}\"");
    let moved = with(last, &place, &format!("\"sequence\":\"{}\"", sequence + 1));
    refused("place", &moved, "PROOF", unproven);
    let number = with(last, &place, "\"sequence\":\"0\"");
    refused("zero", &number, "SEQUENCE", "expected sequence");
    let shape = with(1, &first, "\"00\"");
    refused("shape", &shape, "SHAPE", "line 2");
    // An event in the middle of the mission that was left out breaks its chain, the line that names it stays unproven.
    let mut fewer = lines.clone();
    fewer.remove(2);
    let fewer = fewer.concat().into_bytes();
    let error = read(&fewer, &signer().verifier()).unwrap_err();
    assert!(matches!(error, FormatError::Chain(_)), "{error}");
    assert_eq!(verify_py(&fewer, &[], KEY).0, 1);
    // The same with another mission's name in the header.
    let other = with(
        0,
        "\"missionId\":\"mission-1\"",
        "\"missionId\":\"mission-2\"",
    );
    refused("mission", &other, "MISSION", "of the mission in the header");
    let store = with(0, "\"storeId\":\"store-1\"", "\"storeId\":\"store-2\"");
    refused("store", &store, "ORIGIN", "expected a checkpoint of");
    let size = format!("\\n{}\\n", log.len());
    let resized = with(0, &size, &format!("\\n{}\\n", log.len() + 1));
    refused("size", &resized, "SIGNATURE", "does not hold");
    let unsigned = with(0, "\\n\\n", "\\n");
    refused("unsigned", &unsigned, "CHECKPOINT", "no empty line");
    let version = with(0, "\"version\":0", "\"version\":1");
    refused("version", &version, "VERSION", "expected version");
    let trailer = with(lines.len() - 1, "\"count\":\"", "\"count\":\"1");
    refused("count", &trailer, "COUNT", "expected a count");
    let cut = lines[..lines.len() - 1].concat().into_bytes();
    refused("cut", &cut, "NO_TRAILER", "expected a trailer");
    let more = format!("{text}{}", lines[1]).into_bytes();
    refused("more", &more, "AFTER_TRAILER", "after the trailer");
    // An honest proof under another key's signature.
    let other = Signer::new("other", &[2; 32]).unwrap().verifier();
    let error = read(text.as_bytes(), &other).unwrap_err();
    assert_eq!(error.code(), aiws::error::Code::CheckpointUntrusted);
    for (key, fault) in [
        (other.text(), "SIGNATURE"),
        (String::new(), "KEY"),
        ("a+b".to_owned(), "KEY"),
    ] {
        let (exit, report) = verify_py(text.as_bytes(), &[], &key);
        let found = report.get("fault").and_then(Value::as_str);
        assert_eq!((exit, found), (1, Some(fault)), "{report}");
    }
}

/// Proves STO-4: the writer proves nothing that is not so: no checkpoint of another log, size or root, no other mission's
/// event, no other place.
#[test]
fn sto_4_the_writer_proves_only_what_is_in_the_tree() {
    let log = log();
    let (tree, head) = (tree(&log), checkpoint(&log));
    let begin = |checkpoint: &Checkpoint, tree: &Tree| {
        let note = checkpoint.signed(&signer()).unwrap();
        let (store, mission) = ("store-1".parse().unwrap(), "mission-1".parse().unwrap());
        Writer::begin(store, mission, &note, tree, &mut Vec::new()).map(drop)
    };
    assert!(begin(&head, &tree).is_ok());
    let mut ahead = head.clone();
    ahead.head.size += 1;
    assert!(matches!(
        begin(&ahead, &tree),
        Err(FormatError::Proof { .. })
    ));
    let mut forked = head.clone();
    forked.head.root = sha256(b"other");
    assert!(matches!(
        begin(&forked, &tree),
        Err(FormatError::Proof { .. })
    ));
    let foreign = Checkpoint::of(&"store-2".parse().unwrap(), head.head);
    assert!(matches!(begin(&foreign, &tree), Err(FormatError::Note(_))));
    let note = head.signed(&signer()).unwrap();
    let mut out = Vec::new();
    let (store, mission) = ("store-1".parse().unwrap(), "mission-1".parse().unwrap());
    let mut writer = Writer::begin(store, mission, &note, &tree, &mut out).unwrap();
    let written = out.len();
    assert!(writer.event(2, &log[0], &mut out).is_err());
    assert_eq!(out.len(), written, "a refused event was written");
}

/// Proves STO-4: `verify.py` tells of a whole export whether it extends a checkpoint, ends before it, or has other events.
#[test]
fn sto_4_verify_py_compares_an_export_with_a_checkpoint() {
    let log = log();
    let bytes = exported(&log);
    let told = |note: &str, key: &str| {
        let (exit, report) = verify_py(&bytes, &[("--checkpoint", note.as_bytes())], key);
        let fault = report.get("fault").and_then(Value::as_str);
        assert_eq!(exit == 0, fault.is_none(), "{report}");
        fault.unwrap_or("EXTENDS").to_owned()
    };
    for size in 0..=log.len() {
        let note = checkpoint(&log[..size]).signed(&signer()).unwrap();
        assert_eq!(told(&note, KEY), "EXTENDS", "{size}");
    }
    let mut ahead = checkpoint(&log);
    ahead.head.size += 1;
    assert_eq!(told(&ahead.signed(&signer()).unwrap(), KEY), "AHEAD");
    let mut forked = checkpoint(&log[..3]);
    forked.head.root = sha256(b"other");
    let forked = forked.signed(&signer()).unwrap();
    assert_eq!(told(&forked, KEY), "FORKED");
    assert_eq!(told(&forked.replace("\n3\n", "\n4\n"), KEY), "SIGNATURE");
    assert_eq!(told("nothing", KEY), "CHECKPOINT");
    assert_eq!(told(&forked, ""), "KEY");
}

/// Proves STO-4: the Ed25519 of `checkpoint.py` is that of RFC 8032: its vectors hold, and no changed bit of them does.
#[test]
fn sto_4_checkpoint_py_holds_the_vectors_of_rfc_8032() {
    let script = r#"
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import checkpoint
VECTORS = [
    ("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"),
    ("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"),
    ("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"),
]
for public, message, signature in VECTORS:
    public, message, signature = (bytes.fromhex(text) for text in (public, message, signature))
    assert checkpoint.ed25519(public, message, signature)
    assert not checkpoint.ed25519(public, message + b"x", signature)
    for bit in range(0, 512, 7):
        changed = bytearray(signature)
        changed[bit // 8] ^= 1 << bit % 8
        assert not checkpoint.ed25519(public, message, bytes(changed)), bit
    s = int.from_bytes(signature[32:], "little") + checkpoint.L
    assert not checkpoint.ed25519(public, message, signature[:32] + s.to_bytes(32, "little")), "S above the order"
small = (1).to_bytes(32, "little")
assert not checkpoint.ed25519(small, b"any", small + bytes(32)), "a point of small order"
"#;
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(folder())
        .output()
        .expect("python3 runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

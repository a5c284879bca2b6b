//! Damage: one flipped byte, a lost tail, two swapped events, in the store's own files and in an export.
//! Invariant: each is found, with a code and the place; the undamaged copy beside it is sound.
//! The store's files are changed as bytes, while nobody has them open.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use aiws::error::Code;
use praxis_engine::Shutdown;
use praxis_journal::{Journal, Options};
use praxis_journal_format::Frame;
use praxis_journal_format::{Sealed, export};
use tempfile::TempDir;

use crate::bodies::{self, lin};
use crate::host::{no_fork_holds_files, run};
use crate::oracle::{export_of, files};
use crate::world::{W1, World};

/// A closed store with a whole task and three verifications of equal length, its events, and its export.
struct Victim {
    world: World,
    events: Vec<(u64, Sealed)>,
    export: Vec<u8>,
    /// The log as it was one event before the end.
    shorter: Vec<(PathBuf, Vec<u8>)>,
}

async fn victim() -> Victim {
    let mut w = World::new(false, None).await;
    w.start(&lin(), &bodies::config()).await;
    w.work("a").await;
    for name in ["v-1", "v-2"] {
        let body = bodies::assess(&*w.state().await, "verify", name, "PASS");
        w.send(W1, body).await;
    }
    w.close(Shutdown::Drain).await;
    let shorter = segments(&w.store());
    w.open().await;
    let body = bodies::assess(&*w.state().await, "verify", "v-3", "PASS");
    w.send(W1, body).await;
    let export = export_of(&w);
    w.close(Shutdown::Drain).await;
    let events = export::read(&export).unwrap().events;
    Victim {
        world: w,
        events,
        export,
        shorter,
    }
}

/// The log's files with their bytes.
fn segments(store: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let is_log = |name: &str| {
        Path::new(name)
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("log-"))
    };
    files(store)
        .into_iter()
        .filter(|(name, _)| is_log(name))
        .map(|(name, bytes)| (PathBuf::from(name), bytes))
        .collect()
}

/// Puts `new` over every place where `old` stands in the log's files; they are of one length.
pub fn replace(store: &Path, old: &[u8], new: &[u8]) -> usize {
    assert_eq!(old.len(), new.len());
    let mut count = 0;
    for (path, mut bytes) in segments(store) {
        let mut at = 0;
        while let Some(found) = bytes[at..]
            .windows(old.len())
            .position(|window| window == old)
        {
            bytes[at + found..at + found + old.len()].copy_from_slice(new);
            at += found + old.len();
            count += 1;
        }
        fs::write(&path, &bytes).unwrap();
    }
    count
}

/// What opening and verifying a store say: codes with places, or nothing.
fn complaints(store: &Path) -> Vec<(Code, Option<u64>, String)> {
    no_fork_holds_files();
    let journal = match Journal::open(store, &Options::default()) {
        Ok(journal) => journal,
        Err(error) => return vec![(error.code(), None, error.to_string())],
    };
    let found = match journal.verify(&mut |_, _| {}) {
        Ok(report) => report
            .findings
            .into_iter()
            .map(|found| (found.code, found.sequence, found.what))
            .collect(),
        Err(error) => vec![(error.code(), None, error.to_string())],
    };
    let mut found: Vec<(Code, Option<u64>, String)> = found;
    if let Some(why) = &journal.view().read_only {
        found.push((why.code(), None, why.to_string()));
    }
    // A damaged index may not be written; the finding is what counts here.
    let _ = journal.close();
    found
}

fn names(found: &[(Code, Option<u64>, String)], sequence: u64) -> bool {
    let text = format!("sequence {sequence}");
    found
        .iter()
        .any(|(_, at, what)| *at == Some(sequence) || what.contains(&text))
}

/// Proves STO-1, STO-4: a byte of an event, flipped where it lies in the segment, is found at its sequence.
#[tokio::test]
async fn a_flipped_byte_in_the_store() {
    let v = victim().await;
    let store = v.world.store();
    assert_eq!(complaints(&store), []);
    for (sequence, sealed) in &v.events {
        let before = segments(&store);
        let mut bent = sealed.bytes.to_vec();
        let middle = bent.len() / 2;
        bent[middle] ^= 1;
        assert!(replace(&store, &sealed.bytes, &bent) > 0);
        let found = complaints(&store);
        assert!(
            names(&found, *sequence),
            "the byte of event {sequence}: {found:?}"
        );
        for (path, bytes) in before {
            fs::write(path, bytes).unwrap();
        }
    }
    assert_eq!(complaints(&store), []);
}

/// Proves STO-1: a log that is one event shorter than its index knows is named as a lost tail.
#[tokio::test]
async fn a_dropped_tail_of_the_store() {
    let v = victim().await;
    let store = v.world.store();
    for (path, bytes) in &v.shorter {
        fs::write(path, bytes).unwrap();
    }
    let found = complaints(&store);
    assert!(
        found.iter().any(|(code, ..)| *code == Code::TailLost),
        "{found:?}"
    );
}

/// Proves STO-1, STO-4: two events that changed places, whole with their hashes, are found at the first of the two.
#[tokio::test]
async fn two_swapped_events_in_the_store() {
    let v = victim().await;
    let store = v.world.store();
    let frame = |name: &str| {
        let text = format!("\"{name}\"");
        let (sequence, sealed) = v
            .events
            .iter()
            .find(|(_, sealed)| String::from_utf8_lossy(&sealed.bytes).contains(&text))
            .unwrap();
        let before = v
            .events
            .iter()
            .filter(|(at, earlier)| at < sequence && earlier.event.stream == sealed.event.stream);
        let previous = before.map(|(at, _)| *at).max().unwrap();
        // The whole row, so that its own check holds where it is put.
        let mut bytes = Vec::new();
        Frame::of(sealed, previous, 0).encode(&mut bytes).unwrap();
        (*sequence, bytes)
    };
    let ((first, one), (_, two)) = (frame("v-1"), frame("v-2"));
    assert_eq!(one.len(), two.len());
    let aside = vec![0xAA; one.len()];
    assert!(replace(&store, &one, &aside) > 0);
    assert!(replace(&store, &two, &one) > 0);
    assert!(replace(&store, &aside, &two) > 0);
    let found = complaints(&store);
    assert!(names(&found, first), "{found:?}");
}

/// Proves T-82, STO-1: an event that says it is a part of an append of which the rest is missing is found, though its
/// hash, its frame and its link are right: at the end of the log, and before other events.
#[tokio::test]
async fn half_a_sequence_in_the_store() {
    let v = victim().await;
    let store = v.world.store();
    let is = |sealed: &Sealed, name: &str| {
        String::from_utf8_lossy(&sealed.bytes).contains(&format!("\"{name}\""))
    };
    for (name, part, code) in [
        ("v-3", (1, 2), Code::TailLost),
        ("v-3", (2, 2), Code::ChainBroken),
    ] {
        let kept = segments(&store);
        let (sequence, sealed) = v
            .events
            .iter()
            .find(|(_, sealed)| is(sealed, name))
            .unwrap();
        let mut event = sealed.event.clone();
        (event.part.k.0, event.part.of.0) = part;
        let earlier = v
            .events
            .iter()
            .filter(|(at, earlier)| at < sequence && earlier.event.stream == sealed.event.stream);
        let previous = earlier.map(|(at, _)| *at).max().unwrap();
        let forged = praxis_journal_format::seal(event).unwrap();
        let mut count = 0;
        // The owner's marker is not known here: one of the two is right.
        for boot in 0..=2 {
            let rows = [sealed, &forged].map(|sealed| {
                let mut row = Vec::new();
                Frame::of(sealed, previous, boot).encode(&mut row).unwrap();
                row
            });
            count += replace(&store, &rows[0], &rows[1]);
        }
        assert!(count > 0);
        let found = complaints(&store);
        let told =
            |(own, _, what): &(Code, Option<u64>, String)| *own == code && what.contains("part");
        assert!(found.iter().any(told), "{part:?}: {found:?}");
        for (path, bytes) in kept {
            fs::write(path, bytes).unwrap();
        }
    }
    assert_eq!(complaints(&store), []);
}

/// What the reader of exports in Rust says, and the one in Python.
fn readers(export: &[u8]) -> (Option<String>, Option<String>) {
    let in_rust = export::read(export).err().map(|error| error.to_string());
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("export.jsonl");
    fs::write(&path, export).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../journal-format/verify.py");
    let ran = run(Command::new("python3").arg(script).arg(&path));
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    (in_rust, (!ran.status.success()).then_some(said))
}

/// Proves STO-4: the same three in an export, found by the reader here and by the one in Python alike.
#[tokio::test]
async fn damage_in_an_export() {
    let v = victim().await;
    assert_eq!(readers(&v.export), (None, None));
    let lines: Vec<&[u8]> = v
        .export
        .strip_suffix(b"\n")
        .unwrap()
        .split(|byte| *byte == b'\n')
        .collect();
    let joined = |lines: &[&[u8]]| [lines.join(&b'\n'), b"\n".to_vec()].concat();
    let count = lines.len();

    let at = lines
        .iter()
        .position(|line| String::from_utf8_lossy(line).contains("\"v-2\""))
        .unwrap();
    let bent = String::from_utf8(lines[at].to_vec())
        .unwrap()
        .replace("\"v-2\"", "\"v-7\"");
    let mut flipped = lines.clone();
    flipped[at] = bent.as_bytes();
    let mut dropped = lines.clone();
    dropped.remove(count - 2);
    let mut swapped = lines.clone();
    swapped.swap(at, at + 1);
    let sequence = at.to_string();
    let cases = [
        ("flipped", joined(&flipped), Some(&sequence)),
        ("dropped before the trailer", joined(&dropped), None),
        ("cut with the trailer", joined(&lines[..count - 2]), None),
        ("swapped", joined(&swapped), Some(&sequence)),
    ];
    for (case, export, place) in cases {
        let (rust, python) = readers(&export);
        let (rust, python) = (rust.expect(case), python.expect(case));
        if let Some(place) = place {
            assert!(rust.contains(place), "{case}: {rust}");
            assert!(python.contains(place), "{case}: {python}");
        }
    }
}

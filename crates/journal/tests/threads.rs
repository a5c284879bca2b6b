//! The journal's threads when something under or beside them fails: the clock panics, the directory cannot be written.
//!
//! Invariant: every append that was taken is answered once, and no thread takes the store with it. Run on real files.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use aiws::error::Code;
use aiws::id::ConsumerId;
use praxis_journal::{AppendError, Appended, Clock, Journal, Options, StoreError};
use tempfile::TempDir;

#[path = "../../../simulations/src/script.rs"]
#[allow(dead_code)]
mod script;

use script::Script;

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

/// A host's clock that panics when it is told to, once.
#[derive(Debug, Default)]
struct Panicking(AtomicBool);

impl Clock for Panicking {
    fn now_ms(&self) -> u64 {
        assert!(!self.0.swap(false, Ordering::SeqCst), "the clock panics");
        1
    }
}

/// Proves T-54: a panic on the writer's thread outside the storage engine is treated as a storage error: the append in
/// hand is answered as in doubt and can be looked for, the journal goes on, and nothing that was stored is lost.
#[test]
fn t_54_a_panic_of_the_writer_outside_the_storage_engine() {
    let folder = folder();
    let clock = Arc::new(Panicking::default());
    let options = Options {
        clock: clock.clone(),
        ..Options::default()
    };
    let journal = Journal::create(folder.path(), &options).unwrap();
    let mut script = Script::new("mission").unwrap();
    journal
        .append_blocking(script.start_run("run").unwrap())
        .unwrap();
    for round in 0..3u64 {
        let note = script.note("run").unwrap();
        let (stream, hash) = (note.sealed[0].event.stream.clone(), note.sealed[0].hash);
        clock.0.store(true, Ordering::SeqCst);
        match journal.append_blocking(note.clone()) {
            Err(AppendError::Store(StoreError::InDoubt { hash: said, .. })) => {
                assert_eq!(said, hash);
            }
            other => panic!("{other:?}"),
        }
        // The answer comes after the recovery, so the look sees what the recovery saw.
        assert_eq!(journal.find_event(&stream, &hash).unwrap(), None);
        assert_eq!(
            journal.append_blocking(note),
            Ok(Appended::Committed {
                sequence: round + 2,
                hash
            })
        );
    }
    // Of several that wait, those that the panic did not meet are served; every one is answered once.
    let (sender, answers) = mpsc::channel();
    clock.0.store(true, Ordering::SeqCst);
    for _ in 0..32 {
        let sender = sender.clone();
        let reply = Box::new(move |answer| sender.send(answer).unwrap());
        let again = script.clone().note("run").unwrap();
        journal.submit(again, reply).unwrap();
    }
    drop(sender);
    let (mut doubtful, mut stored) = (0, 0);
    for answer in answers {
        match answer {
            Ok(_) => stored += 1,
            Err(AppendError::Store(StoreError::InDoubt { .. })) => doubtful += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(doubtful + stored, 32);
    assert!(doubtful > 0);
    assert!(journal.view().read_only.is_none());
    assert!(journal.verify(&mut |_, _| ()).unwrap().is_sound());
    let sequence = journal.view().sequence();
    journal.close().unwrap();
    let journal = Journal::open(folder.path(), &Options::default()).unwrap();
    assert_eq!(journal.view().sequence(), sequence);
}

/// Proves STO-1, STO-2: over many small segments verification, export, streams, scans, the outbox and a reopening read
/// as over one.
#[test]
fn sto_1_reads_go_across_segments() {
    let (small, whole) = (folder(), folder());
    let options = |segment_bytes| Options {
        segment_bytes,
        store_id: Some("store".parse().unwrap()),
        ..Options::default()
    };
    let mut exports = Vec::new();
    for (folder, options) in [(&small, options(1)), (&whole, options(u64::MAX))] {
        let journal = Journal::create(folder.path(), &options).unwrap();
        let mut script = Script::new("mission").unwrap();
        for run in ["one", "two"] {
            journal
                .append_blocking(script.start_run(run).unwrap())
                .unwrap();
        }
        for turn in 0..10 {
            let run = ["one", "two"][turn % 2];
            let append = match turn {
                4 => script.spend(run, 7),
                _ => script.note(run),
            };
            journal.append_blocking(append.unwrap()).unwrap();
        }
        for reopened in [false, true] {
            let journal = match reopened {
                false => journal.clone(),
                true => {
                    journal.close().unwrap();
                    Journal::open(folder.path(), &options).unwrap()
                }
            };
            assert!(journal.verify(&mut |_, _| ()).unwrap().is_sound());
            let stream = script.run("one").unwrap().stream();
            let events = journal.stream(&stream).unwrap();
            assert_eq!(events.len(), 6);
            assert!(
                events
                    .windows(2)
                    .all(|pair| pair[1].event.prev_hash == pair[0].hash)
            );
            assert_eq!(
                journal.find_event(&stream, &events[0].hash).unwrap(),
                Some(3)
            );
            let mut scanned = Vec::new();
            let each = |sequence, _| {
                scanned.push(sequence);
                true
            };
            journal.scan(5, each).unwrap();
            assert_eq!(scanned, (5..=13).collect::<Vec<_>>());
            let consumer: ConsumerId = "receiver".parse().unwrap();
            assert_eq!(journal.pending(&consumer, 100).unwrap().len(), 13);
            let mut bytes = Vec::new();
            journal.export(&mut bytes).unwrap();
            exports.push(bytes);
        }
    }
    let segments = |folder: &TempDir| {
        let names = fs::read_dir(folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("log-")).count()
    };
    assert_eq!((segments(&small), segments(&whole)), (13, 1));
    assert!(exports.iter().all(|export| *export == exports[0]));
}

/// What the test below does inside the directory that cannot be written; run by itself it does nothing.
#[test]
fn inside_a_read_only_directory() {
    let Some(path) = std::env::var_os("PRAXIS_TEST_READ_ONLY_STORE") else {
        return;
    };
    let path = Path::new(&path);
    assert!(
        fs::write(path.join("probe"), "").is_err(),
        "the directory can be written"
    );
    let read_only = Options {
        read_only: true,
        ..Options::default()
    };
    let journal = Journal::open(path, &read_only).unwrap();
    assert_eq!(journal.view().sequence(), 2);
    assert!(journal.verify(&mut |_, _| ()).unwrap().is_sound());
    let mut script = Script::new("mission").unwrap();
    let started = script.start_run("run").unwrap();
    let stream = script.run("run").unwrap().stream();
    assert_eq!(journal.stream(&stream).unwrap().len(), 1);
    let mut export = Vec::new();
    journal.export(&mut export).unwrap();
    assert_eq!(
        journal.append_blocking(started).unwrap_err().code(),
        Code::StoreReadOnly
    );
    journal.close().unwrap();
    let refused = Journal::open(path, &Options::default()).unwrap_err();
    assert_eq!(refused.code(), Code::StoreReadOnly, "{refused}");
    println!("the store was read in a read-only directory");
}

/// Proves STO-2: a store in a directory that cannot be written opens for reading and is read in all ways; appends, and
/// opening it for appends, are refused with STORE_READ_ONLY. Root may write anywhere, so for root the directory is
/// mounted read-only in a mount namespace of the test's own; without the right to do so the test says that it did not
/// run, and fails where CI is set.
#[test]
fn sto_2_a_store_in_a_read_only_directory() {
    let folder = folder();
    let path = folder.path().join("store");
    let journal = Journal::create(&path, &Options::default()).unwrap();
    let mut script = Script::new("mission").unwrap();
    for append in [script.start_run("run"), script.note("run")] {
        journal.append_blocking(append.unwrap()).unwrap();
    }
    journal.close().unwrap();
    let root = rustix::process::geteuid().is_root();
    let test = std::env::current_exe().unwrap();
    let mut command = match root {
        true => {
            let mut command = Command::new("unshare");
            let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" || exit 99; exec \"$@\"";
            command
                .args(["--mount", "sh", "-c", mount])
                .arg(&path)
                .arg(test);
            command
        }
        false => {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o500)).unwrap();
            Command::new(test)
        }
    };
    let ran = command
        .args(["--exact", "inside_a_read_only_directory", "--nocapture"])
        .env("PRAXIS_TEST_READ_ONLY_STORE", &path)
        .output();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    let mounted = ran.as_ref().is_ok_and(|ran| ran.status.code() != Some(99));
    if root && !mounted {
        println!("DID NOT RUN: root, and no right to mount a directory read-only: {ran:?}");
        assert!(std::env::var_os("CI").is_none(), "CI has to run this test");
        return;
    }
    let ran = ran.unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && text.contains("the store was read in a read-only directory"),
        "{text}\n{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

//! A copy of a store, taken from an open journal.
//!
//! Invariant: what the copy opens to is what the original had at the moment of the copy. Run in temporary directories.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use aiws::error::Code;
use aiws::id::ConsumerId;
use praxis_journal::{Copied, Journal, Options};
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

fn told(journal: &Journal, script: &mut Script, run: &str) {
    for append in [
        script.start_run(run),
        script.note(run),
        script.spend(run, 3),
    ] {
        journal.append_blocking(append.unwrap()).unwrap();
    }
}

fn export(journal: &Journal) -> Vec<u8> {
    let mut bytes = Vec::new();
    journal.export(&mut bytes).unwrap();
    bytes
}

fn open(path: &Path) -> Journal {
    Journal::open(path, &Options::default()).unwrap()
}

/// Proves STO-7: a copy from an open store that goes on being written is the store as it was at one moment: the same
/// id, the same bytes of every event, the same cursors; it verifies, and it can be gone on with.
#[test]
fn sto_7_a_copy_of_an_open_store_is_a_consistent_store() {
    let folder = folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    // A segment per event, so that the copy crosses their borders.
    let options = Options {
        segment_bytes: 1,
        ..Options::default()
    };
    let journal = Journal::create(&from, &options).unwrap();
    let mut script = Script::new("mission").unwrap();
    told(&journal, &mut script, "one");
    let consumer: ConsumerId = "receiver".parse().unwrap();
    journal.acknowledge(&consumer, 2).unwrap();
    let (before, view) = (export(&journal), journal.view());
    let copied = journal.copy_to(&to).unwrap();
    let wanted = Copied {
        events: view.sequence(),
        last: view.cursor.hash,
    };
    assert_eq!(copied, wanted);
    told(&journal, &mut script, "two");

    let copy = open(&to);
    assert_eq!(copy.store_id(), journal.store_id());
    assert_eq!(export(&copy), before);
    assert_eq!(copy.cursor(&consumer), 2);
    assert!(copy.verify(&mut |_, _| ()).unwrap().is_sound());
    let again = copy.view();
    assert!(view.heads().eq(again.heads()) && view.registers().eq(again.registers()));
    assert!(view.owners().eq(again.owners()) && view.due().eq(again.due()));
    // The same appends lead the copy to where the original is now.
    let mut script = Script::new("mission").unwrap();
    for run in ["one", "two"] {
        for append in [
            script.start_run(run),
            script.note(run),
            script.spend(run, 3),
        ] {
            let append = append.unwrap();
            if run == "two" {
                copy.append_blocking(append).unwrap();
            }
        }
    }
    assert_eq!(copy.view().sequence(), journal.view().sequence());
    copy.close().unwrap();
    for entry in fs::read_dir(&to).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?}", entry.file_name());
    }
}

/// Many events in few segments, and an empty store.
#[test]
fn copies_of_any_length_are_whole() {
    let folder = folder();
    let options = Options {
        queue_appends: 2_048,
        ..Options::default()
    };
    let journal = Journal::create(&folder.path().join("from"), &options).unwrap();
    assert_eq!(
        journal
            .copy_to(&folder.path().join("empty"))
            .unwrap()
            .events,
        0
    );
    assert_eq!(open(&folder.path().join("empty")).view().sequence(), 0);
    let mut script = Script::new("mission").unwrap();
    told(&journal, &mut script, "one");
    // More than a reader takes at once.
    for _ in 0..1_100 {
        let note = script.note("one").unwrap();
        journal.submit(note, Box::new(|_| ())).unwrap();
    }
    journal
        .append_blocking(script.note("one").unwrap())
        .unwrap();
    journal.copy_to(&folder.path().join("to")).unwrap();
    assert_eq!(export(&open(&folder.path().join("to"))), export(&journal));
}

/// What is there already is not written over, and damage is not copied.
#[test]
fn a_copy_is_refused_over_anything_and_from_damage() {
    let folder = folder();
    let from = folder.path().join("from");
    let journal = Journal::create(&from, &Options::default()).unwrap();
    told(&journal, &mut Script::new("mission").unwrap(), "one");
    let other = folder.path().join("other");
    Journal::create(&other, &Options::default())
        .unwrap()
        .close()
        .unwrap();
    assert_eq!(journal.copy_to(&other).unwrap_err().code(), Code::NotAStore);
    let foreign = folder.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::set_permissions(&foreign, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(foreign.join("letter"), "mine").unwrap();
    assert_eq!(
        journal.copy_to(&foreign).unwrap_err().code(),
        Code::NotAStore
    );
    assert_eq!(fs::read(foreign.join("letter")).unwrap(), b"mine");
    journal.close().unwrap();

    let log = from.join("log-000001.redb");
    let bytes = fs::read(&log).unwrap();
    let needle = b"\"mission\"";
    let at = bytes
        .windows(needle.len())
        .rposition(|window| window == needle);
    let file = fs::File::options().write(true).open(&log).unwrap();
    file.write_all_at(b"x", at.unwrap() as u64 + 1).unwrap();
    drop(file);
    let read_only = Options {
        read_only: true,
        ..Options::default()
    };
    let Ok(journal) = Journal::open(&from, &read_only) else {
        return;
    };
    let copy = folder.path().join("copy");
    let refused = journal.copy_to(&copy).unwrap_err().code();
    assert!(
        matches!(
            refused,
            Code::StoreCorrupt | Code::ChainBroken | Code::TailLost
        ),
        "{refused}"
    );
    assert!(!copy.join("praxis-store.json").exists());
}

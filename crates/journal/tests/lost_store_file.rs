//! A store whose `praxis-store.json` is gone: its events are still a store's, and no creation takes their place.
//!
//! Invariant: a directory that holds events is refused and stays as it is; what a killed creation left is made again. Run
//! on files of the system's temporary directory.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use aiws::error::Code;
use praxis_journal::{Journal, Options};
use tempfile::TempDir;

#[path = "../../../simulations/src/script.rs"]
#[allow(dead_code)]
mod script;

use script::Script;

const STORE: &str = "praxis-store.json";

fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| entry.file_name().into_string().unwrap());
    let own = named.filter(|name| name != "engine.lock");
    own.map(|name| (name.clone(), fs::read(path.join(name)).unwrap()))
        .collect()
}

/// Proves STO-2, STO-5: neither a log with events nor an index is what a killed creation leaves, so a lost
/// `praxis-store.json` never costs the events.
#[test]
fn sto_2_a_lost_store_file_does_not_cost_the_events() {
    for index_lost in [false, true] {
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let journal = Journal::create(folder.path(), &Options::default()).unwrap();
        let mut script = Script::new("mission").unwrap();
        for append in [script.start_run("one"), script.note("one")] {
            journal.append_blocking(append.unwrap()).unwrap();
        }
        journal.close().unwrap();
        let kept = fs::read(folder.path().join(STORE)).unwrap();
        fs::remove_file(folder.path().join(STORE)).unwrap();
        if index_lost {
            fs::remove_file(folder.path().join("index.redb")).unwrap();
        }
        let before = files(folder.path());
        for made in [
            Journal::open(folder.path(), &Options::default()),
            Journal::create(folder.path(), &Options::default()),
        ] {
            let refused = made.expect_err("refused");
            assert_eq!(refused.code(), Code::NotAStore);
            assert!(
                refused.to_string().contains("put that file back"),
                "{refused}"
            );
            assert_eq!(files(folder.path()), before);
        }
        fs::write(folder.path().join(STORE), kept).unwrap();
        let journal = Journal::open(folder.path(), &Options::default()).unwrap();
        assert_eq!(journal.view().sequence(), 2);
        journal.close().unwrap();
    }
}

/// Proves STO-7: a copy that was cut off behind its first segment is made again, and is the store.
#[test]
fn sto_7_a_copy_that_was_cut_off_is_made_again() {
    let folder = TempDir::new().unwrap();
    let options = Options {
        segment_bytes: 1,
        ..Options::default()
    };
    let journal = Journal::create(&folder.path().join("from"), &options).unwrap();
    let mut script = Script::new("mission").unwrap();
    for append in [script.start_run("one"), script.note("one")] {
        journal.append_blocking(append.unwrap()).unwrap();
    }
    let copy = folder.path().join("copy");
    let made = Journal::create(&copy, &options).unwrap();
    let mut script = Script::new("mission").unwrap();
    for append in [script.start_run("one"), script.note("one")] {
        made.append_blocking(append.unwrap()).unwrap();
    }
    made.close().unwrap();
    for name in [STORE, "index.redb"] {
        fs::remove_file(copy.join(name)).unwrap();
    }
    assert!(copy.join("log-000002.redb").exists());
    assert_eq!(journal.copy_to(&copy).unwrap().events, 2);
    let copied = Journal::open(&copy, &Options::default()).unwrap();
    assert_eq!(copied.view().cursor, journal.view().cursor);
}

//! The journal with its threads on real files: opening, locking, reading, outbox, export, verification.
//!
//! Invariant: what one opening acknowledged, the next one has. Run in temporary directories.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;

use aiws::error::Code;
use aiws::id::ConsumerId;
use praxis_journal::{Append, Appended, Busy, Journal, Options, StoreError};
use redb::ReadableTable as _;
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

fn told(journal: &Journal, script: &mut Script) {
    let appends: Vec<Append> = vec![
        script.start_run("one").unwrap(),
        script.note("one").unwrap(),
        script.spend("one", 3).unwrap(),
        script.complete("one", 1).unwrap(),
    ];
    for append in appends {
        assert!(matches!(
            journal.append_blocking(append),
            Ok(Appended::Committed { .. })
        ));
    }
}

fn code(path: &Path, options: &Options) -> Code {
    Journal::open(path, options)
        .expect_err("the store is refused")
        .code()
}

/// Proves STO-5: closing and opening again gives the same projections, and nothing is written by opening alone.
#[test]
fn sto_5_reopening_gives_the_same_projections() {
    let folder = folder();
    let journal = Journal::create(folder.path(), &Options::default()).unwrap();
    let mut script = Script::new("mission").unwrap();
    told(&journal, &mut script);
    let before = journal.view();
    journal.close().unwrap();
    for read_only in [false, true] {
        let options = Options {
            read_only,
            ..Options::default()
        };
        let journal = Journal::open(folder.path(), &options).unwrap();
        let after = journal.view();
        assert_eq!(
            (before.cursor, before.last_ms),
            (after.cursor, after.last_ms)
        );
        assert!(before.heads().eq(after.heads()) && before.registers().eq(after.registers()));
        assert!(before.due().eq(after.due()) && before.owners().eq(after.owners()));
        assert!(journal.verify(&mut |_, _| ()).unwrap().is_sound());
        assert_eq!(after.read_only.is_some(), read_only);
        journal.close().unwrap();
    }
}

/// Proves T-16: a run's first append of a boot carries the owner's marker, letting go clears it, and after an unclean
/// end exactly the marked runs are seen.
#[test]
fn t_16_the_owners_marker_tells_which_runs_to_recover() {
    let folder = folder();
    let journal = Journal::create(folder.path(), &Options::default()).unwrap();
    let mut script = Script::new("mission").unwrap();
    for run in ["kept", "released"] {
        journal
            .append_blocking(script.start_run(run).unwrap())
            .unwrap();
        assert_eq!(
            journal
                .view()
                .owner(&script.run(run).unwrap().stream())
                .unwrap()
                .boot,
            0
        );
        journal.append_blocking(script.note(run).unwrap()).unwrap();
    }
    journal
        .release_owner(&script.run("released").unwrap().stream())
        .unwrap();
    journal.close().unwrap();
    let journal = Journal::open(folder.path(), &Options::default()).unwrap();
    let view = journal.view();
    let marked: Vec<_> = view
        .owners()
        .filter(|(_, row)| row.boot != 0 && row.boot != view.boot)
        .collect();
    assert_eq!(marked.len(), 1);
    assert_eq!(*marked[0].0, script.run("kept").unwrap().stream());
    journal
        .append_blocking(script.note("kept").unwrap())
        .unwrap();
    let view = journal.view();
    assert!(
        view.owners()
            .all(|(_, row)| row.boot == 0 || row.boot == view.boot)
    );
}

/// Proves STO-1: a stream is read back oldest first, an event is found by its hash, a sequence is read.
#[test]
fn sto_1_streams_are_read_back() {
    let folder = folder();
    let journal = Journal::create(folder.path(), &Options::default()).unwrap();
    let mut script = Script::new("mission").unwrap();
    told(&journal, &mut script);
    let run = script.run("one").unwrap().stream();
    let events = journal.stream(&run).unwrap();
    assert_eq!(
        events
            .iter()
            .map(|sealed| sealed.event.revision.0)
            .collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    assert_eq!(journal.find_event(&run, &events[1].hash).unwrap(), Some(3));
    assert_eq!(
        journal
            .find_event(&run, &aiws::digest::sha256(b""))
            .unwrap(),
        None
    );
    assert_eq!(journal.read(3).unwrap().unwrap(), events[1]);
    assert_eq!(journal.read(6).unwrap(), None);
    let mut seen = 0;
    journal
        .scan(1, |sequence, _| {
            seen += 1;
            assert_eq!(sequence, seen);
            true
        })
        .unwrap();
    assert_eq!(seen, 5);
}

/// Proves OUT-1, OUT-2, OUT-3: pending events come until they are acknowledged, under the same ids, over a restart;
/// the cursor never moves back.
#[test]
fn out_1_out_2_out_3_the_outbox() {
    let folder = folder();
    let journal = Journal::create(folder.path(), &Options::default()).unwrap();
    told(&journal, &mut Script::new("mission").unwrap());
    let consumer: ConsumerId = "receiver".parse().unwrap();
    let first = journal.pending(&consumer, 3).unwrap();
    assert_eq!(
        first
            .iter()
            .map(|(sequence, _)| *sequence)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
    journal.acknowledge(&consumer, 2).unwrap();
    journal.acknowledge(&consumer, 1).unwrap();
    assert_eq!(
        journal.acknowledge(&consumer, 6).unwrap_err().code(),
        Code::InternalStore
    );
    drop(journal);
    let journal = Journal::open(folder.path(), &Options::default()).unwrap();
    assert_eq!(journal.cursor(&consumer), 2);
    let again = journal.pending(&consumer, 100).unwrap();
    assert_eq!(again[0].1.hash, first[2].1.hash);
    assert_eq!(again.len(), 3);
}

/// Proves STO-1: the export of a store is accepted by its reader and ends where the store ends.
#[test]
fn sto_1_an_export_is_whole() {
    let folder = folder();
    let journal = Journal::create(folder.path(), &Options::default()).unwrap();
    told(&journal, &mut Script::new("mission").unwrap());
    let mut bytes = Vec::new();
    let trailer = journal.export(&mut bytes).unwrap();
    let praxis_journal_format::export::Export {
        header,
        events,
        trailer: read,
    } = praxis_journal_format::export::read(&bytes).unwrap();
    assert_eq!((&header.store_id, &read), (journal.store_id(), &trailer));
    assert_eq!(events.last().unwrap().1.hash, journal.view().cursor.hash);
}

/// Proves STO-2: whoever has the reply finds the append in the view; replies come once per append, in order.
#[test]
fn sto_2_the_view_is_published_before_the_reply() {
    let folder = folder();
    let journal = Journal::create(folder.path(), &Options::default()).unwrap();
    let mut script = Script::new("mission").unwrap();
    journal
        .append_blocking(script.start_run("run").unwrap())
        .unwrap();
    let (sender, replies) = mpsc::channel();
    for _ in 0..200 {
        let (view, sender) = (journal.clone(), sender.clone());
        let reply = Box::new(move |answer| sender.send((answer, view.view().sequence())).unwrap());
        journal.submit(script.note("run").unwrap(), reply).unwrap();
    }
    for expected in 2..202 {
        match replies.recv().unwrap() {
            (Ok(Appended::Committed { sequence, .. }), seen) => {
                assert_eq!(sequence, expected);
                assert!(seen >= sequence);
            }
            other => panic!("{other:?}"),
        }
    }
    journal.close().unwrap();
    let late = journal.submit(script.note("run").unwrap(), Box::new(|_| ()));
    assert_eq!(late, Err(Busy::Closed));
}

/// Proves STO-2: a second opener is refused and told who holds the store.
#[test]
fn sto_2_a_second_opener_is_told_the_holder() {
    let folder = folder();
    let journal = Journal::create(folder.path(), &Options::default()).unwrap();
    for read_only in [false, true] {
        match Journal::open(
            folder.path(),
            &Options {
                read_only,
                ..Options::default()
            },
        ) {
            Err(StoreError::Locked { holder }) => {
                assert!(holder.contains(&std::process::id().to_string()), "{holder}");
            }
            other => panic!("{other:?}"),
        }
    }
    drop(journal);
    Journal::open(folder.path(), &Options::default()).unwrap();
}

/// Proves STO-2: what is no store, a newer store, a store open to others is refused with its code and left as it is.
#[test]
fn sto_2_what_cannot_be_opened_is_refused_with_its_code() {
    let options = Options::default();
    let folder = folder();
    assert_eq!(
        code(&folder.path().join("nothing"), &options),
        Code::StoreNotFound
    );
    assert_eq!(code(folder.path(), &options), Code::NotAStore);
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
    let file = folder.path().join("file");
    fs::write(&file, "text").unwrap();
    assert_eq!(code(&file, &options), Code::NotAStore);
    assert_eq!(
        Journal::create(folder.path(), &options).unwrap_err().code(),
        Code::NotAStore
    );
    let path = folder.path().join("store");
    Journal::create(&path, &options).unwrap().close().unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(
        Journal::create(&path, &options).unwrap_err().code(),
        Code::NotAStore
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    match Journal::open(&path, &options) {
        Err(StoreError::Permissions { mend, .. }) => {
            assert!(mend.starts_with("chmod 700"), "{mend}")
        }
        other => panic!("{other:?}"),
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    let name = path.join("praxis-store.json");
    let text = fs::read_to_string(&name).unwrap();
    fs::write(&name, text.replace("\"version\":0", "\"version\":1")).unwrap();
    assert_eq!(code(&path, &options), Code::StoreTooNew);
    fs::write(&name, "{}").unwrap();
    assert_eq!(code(&path, &options), Code::NotAStore);
    fs::write(&name, text).unwrap();
    fs::remove_file(path.join("log-000001.redb")).unwrap();
    assert_eq!(code(&path, &options), Code::StoreCorrupt);
}

/// Proves STO-2: the log rolls over into segments, and a missing one in the middle is refused by name.
#[test]
fn sto_2_segments_follow_each_other() {
    let folder = folder();
    let options = Options {
        segment_bytes: 1,
        ..Options::default()
    };
    let journal = Journal::create(folder.path(), &options).unwrap();
    told(&journal, &mut Script::new("mission").unwrap());
    journal.close().unwrap();
    let journal = Journal::open(folder.path(), &options).unwrap();
    assert!(journal.verify(&mut |_, _| ()).unwrap().is_sound());
    assert_eq!(journal.view().sequence(), 5);
    journal.close().unwrap();
    fs::remove_file(folder.path().join("log-000003.redb")).unwrap();
    match Journal::open(folder.path(), &options) {
        Err(StoreError::Corrupt { place, .. }) => assert_eq!(place, "log-000003.redb"),
        other => panic!("{other:?}"),
    }
}

/// Puts another owner marker into the frame of a sequence; `forged` computes the frame's check anew.
fn write_marker(path: &Path, sequence: u64, boot: u64, forged: bool) {
    let database = redb::Database::create(path).unwrap();
    let write = database.begin_write().unwrap();
    {
        let definition = redb::TableDefinition::<u64, &[u8]>::new("log");
        let mut table = write.open_table(definition).unwrap();
        let mut bytes = table.get(sequence).unwrap().unwrap().value().to_vec();
        match forged {
            true => {
                let mut frame = praxis_journal_format::Frame::decode(&bytes).unwrap();
                frame.boot = boot;
                let mut forged = Vec::new();
                frame.encode(&mut forged).unwrap();
                bytes = forged;
            }
            false => bytes[9..17].copy_from_slice(&boot.to_le_bytes()),
        }
        table.insert(sequence, bytes.as_slice()).unwrap();
    }
    write.commit().unwrap();
}

/// Proves T-16: an owner marker that was changed is found when the log is folded and by `verify`, so that it does not
/// decide whether a run is recovered; the last boot number there is refuses the store instead of a panic.
#[test]
fn t_16_a_changed_owner_marker_is_found() {
    for (boot, forged) in [(0, false), (2, false), (u64::MAX, false), (u64::MAX, true)] {
        for index_lost in [false, true] {
            let folder = folder();
            let journal = Journal::create(folder.path(), &Options::default()).unwrap();
            told(&journal, &mut Script::new("mission").unwrap());
            journal.close().unwrap();
            write_marker(&folder.path().join("log-000001.redb"), 2, boot, forged);
            if index_lost {
                fs::remove_file(folder.path().join("index.redb")).unwrap();
            }
            let found = match Journal::open(folder.path(), &Options::default()) {
                Err(error) => Some(error.code()),
                Ok(journal) => {
                    let sound = journal.verify(&mut |_, _| ()).unwrap().is_sound();
                    let damage = journal.view().read_only.as_ref().map(StoreError::code);
                    damage.or((!sound).then_some(Code::StoreCorrupt))
                }
            };
            // With a forged check the index still has the right number, and only that is used.
            let unseen = forged && !index_lost;
            assert_eq!(
                found,
                (!unseen).then_some(Code::StoreCorrupt),
                "{boot} {forged} {index_lost}"
            );
        }
    }
}
/// Writes one row of a table of a store's file, as damage would.
fn write_row(path: &Path, table: &str, key: &[u8], value: &[u8]) {
    let database = redb::Database::create(path).unwrap();
    let write = database.begin_write().unwrap();
    let definition = redb::TableDefinition::<&[u8], &[u8]>::new(table);
    write
        .open_table(definition)
        .unwrap()
        .insert(key, value)
        .unwrap();
    write.commit().unwrap();
}

/// The rows of a table of the index, first one only.
fn first_row(path: &Path, table: &str) -> (Vec<u8>, Vec<u8>) {
    let database = redb::Database::create(path).unwrap();
    let write = database.begin_write().unwrap();
    let definition = redb::TableDefinition::<&[u8], &[u8]>::new(table);
    let table = write.open_table(definition).unwrap();
    let (key, value) = table.first().unwrap().unwrap();
    (key.value().to_vec(), value.value().to_vec())
}

/// Proves STO-5: an index whose time, boot or outbox cursor no log can explain is not believed: the log is folded, the
/// store takes appends at its own time, and a consumer gets events again instead of none.
#[test]
fn sto_5_an_index_beyond_the_log_is_made_anew() {
    let consumer: ConsumerId = "c".parse().unwrap();
    for damaged in ["boot", "last_ms", "cursors"] {
        let folder = folder();
        let journal = Journal::create(folder.path(), &Options::default()).unwrap();
        let mut script = Script::new("mission").unwrap();
        told(&journal, &mut script);
        journal.acknowledge(&consumer, 2).unwrap();
        let before = journal.view().last_ms;
        journal.close().unwrap();
        let index = folder.path().join("index.redb");
        match damaged {
            "cursors" => {
                let (key, value) = first_row(&index, "cursors");
                write_row(&index, "cursors", &key, &vec![0xff; value.len()]);
            }
            name => write_row(&index, "meta", name.as_bytes(), &[0xff; 8]),
        }
        let journal = Journal::open(folder.path(), &Options::default()).unwrap();
        let view = journal.view();
        assert_eq!(
            (&view.read_only, view.last_ms),
            (&None, before),
            "{damaged}"
        );
        let pending = journal.pending(&consumer, 100).unwrap();
        assert_eq!(pending.len() as u64, view.sequence(), "{damaged}");
        journal
            .append_blocking(script.start_run("two").unwrap())
            .unwrap();
        assert!(
            journal.verify(&mut |_, _| ()).unwrap().is_sound(),
            "{damaged}"
        );
        journal.close().unwrap();
    }
}

/// Proves STO-4: a row of the index that cannot be read is a finding of the verification, which goes on; a store that
/// was closed says that, and not that its events are gone.
#[test]
fn sto_4_verify_goes_on_over_an_unreadable_row() {
    let folder = folder();
    let journal = Journal::create(folder.path(), &Options::default()).unwrap();
    told(&journal, &mut Script::new("mission").unwrap());
    journal.close().unwrap();
    let closed = journal.verify(&mut |_, _| ());
    assert_eq!(closed.unwrap_err(), StoreError::Closed);
    let index = folder.path().join("index.redb");
    for table in ["requests", "identities"] {
        let (key, _) = first_row(&index, table);
        write_row(&index, table, &key, b"?");
    }
    let journal = Journal::open(folder.path(), &Options::default()).unwrap();
    let report = journal.verify(&mut |_, _| ()).unwrap();
    assert_eq!(report.events, journal.view().sequence());
    assert!(report.findings.len() >= 2, "{:?}", report.findings);
    journal.close().unwrap();
}

/// Proves STO-4: a row of the index that no event accounts for is a finding, in the tables that are kept for life too.
#[test]
fn sto_4_verify_finds_a_row_too_many() {
    for table in ["requests", "identities"] {
        let folder = folder();
        let journal = Journal::create(folder.path(), &Options::default()).unwrap();
        told(&journal, &mut Script::new("mission").unwrap());
        journal.close().unwrap();
        let index = folder.path().join("index.redb");
        let (mut key, value) = first_row(&index, table);
        // Another request's or run's name, of which the log knows nothing.
        *key.last_mut().unwrap() = b'~';
        write_row(&index, table, &key, &value);
        let journal = Journal::open(folder.path(), &Options::default()).unwrap();
        let report = journal.verify(&mut |_, _| ()).unwrap();
        let found: Vec<_> = report.findings.iter().map(|it| it.what.as_str()).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains(&format!("index table {table}")),
            "{found:?}"
        );
        journal.close().unwrap();
    }
}

//! The core of a store by itself, without its threads: what it gives back, cursors, and writes of the index.
//!
//! Invariant: what was committed is read, found and pending in this opening and in the next. Found by mutation testing;
//! run in temporary directories.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;

use aiws::id::ConsumerId;
use praxis_journal::{Append, Appended, Disk, FileDisk, Ledger, Options, RequestKey, StoreError};
use praxis_journal_format::Sealed;
use praxis_model::event::{Gate, GateChange, Outcome};
use tempfile::TempDir;

#[path = "../../../simulations/src/script.rs"]
#[allow(dead_code)]
mod script;

use script::Script;

/// A segment for each commit and two appends in a commit, so that their borders are crossed.
fn options() -> Options {
    Options {
        segment_bytes: 1,
        batch_max: 2,
        ..Options::default()
    }
}

fn disk(path: &Path) -> Arc<dyn Disk> {
    Arc::new(FileDisk::new(path))
}

fn created(path: &Path) -> Ledger {
    Ledger::create(disk(path), "store".parse().unwrap(), &options()).unwrap()
}

/// Five appends of six events; the last closes a gate, so that every table has a row.
fn story() -> Vec<Append> {
    let mut script = Script::new("mission").unwrap();
    let mut appends = vec![script.start_run("one").unwrap()];
    appends.push(script.note("one").unwrap());
    appends.push(script.spend("one", 3).unwrap());
    appends.push(script.start_run("two").unwrap());
    let run = script.run("two").unwrap();
    let body = script.clone().note("two").unwrap().sealed.remove(0);
    let change = GateChange {
        scope: run.clone(),
        gate: Gate::Cancel,
        closed: true,
    };
    let outcome = Outcome {
        gates: vec![change],
        ..Outcome::default()
    };
    let parts = vec![(body.event.command, outcome)];
    appends.push(script.append(&run, parts).unwrap());
    appends
}

fn events(story: &[Append]) -> Vec<Sealed> {
    let events = story.iter().flat_map(|append| &append.sealed);
    events.cloned().collect()
}

fn numbered(events: &[Sealed], after: usize) -> Vec<(u64, Sealed)> {
    (1..).zip(events.iter().cloned()).skip(after).collect()
}

fn told(ledger: &mut Ledger, story: &[Append]) {
    let answers = ledger.commit(story, 2_000);
    let mut next = 1;
    for (append, answer) in story.iter().zip(&answers) {
        let hash = append.sealed.last().unwrap().hash;
        let sequence = next;
        assert_eq!(*answer, Ok(Appended::Committed { sequence, hash }));
        next += append.sealed.len() as u64;
    }
    assert_eq!(answers.len(), story.len());
}

fn assert_gives_back(ledger: &Ledger, story: &[Append]) {
    let events = events(story);
    for (sequence, sealed) in (1..).zip(&events) {
        assert_eq!(ledger.read(sequence).unwrap().as_ref(), Some(sealed));
    }
    for nowhere in [0, events.len() as u64 + 1] {
        assert_eq!(ledger.read(nowhere).unwrap(), None, "{nowhere}");
    }
    let mut next = 1;
    for append in story {
        let first = &append.sealed[0].event;
        let row = ledger.lookup_request(&RequestKey::of(first).unwrap());
        let row = row.unwrap().unwrap();
        assert_eq!((row.sequence, row.digest), (next, first.request_digest));
        next += append.sealed.len() as u64;
    }
    assert_eq!(ledger.view().sequence(), events.len() as u64);
    let report = ledger.verify(&mut |_, _| ()).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

/// Events, requests and projections are given back before the index has them, after it has, and after reopening.
#[test]
fn what_was_committed_is_given_back() {
    let folder = TempDir::new().unwrap();
    let mut ledger = created(folder.path());
    let story = story();
    told(&mut ledger, &story);
    assert_gives_back(&ledger, &story);
    ledger.flush_index().unwrap();
    assert_gives_back(&ledger, &story);
    ledger.close().unwrap();
    for read_only in [false, true] {
        let options = Options {
            read_only,
            ..options()
        };
        let ledger = Ledger::open(disk(folder.path()), &options).unwrap();
        assert_eq!(ledger.store_id().as_str(), "store");
        assert_eq!(ledger.read_only().is_some(), read_only);
        assert_gives_back(&ledger, &story);
    }
}

/// The same request again is answered with its first event, in the same batch, later and in the next opening.
#[test]
fn a_request_that_comes_again_is_answered_with_its_event() {
    let folder = TempDir::new().unwrap();
    let mut ledger = created(folder.path());
    let story = story();
    told(&mut ledger, &story);
    let replayed = |ledger: &mut Ledger| {
        let answers = ledger.commit(&story[2..=3], 2_000);
        let expected = [3, 5].map(|sequence| Ok(Appended::Replayed { sequence }));
        assert_eq!(answers, expected);
        assert_eq!(ledger.view().sequence(), 6);
    };
    replayed(&mut ledger);
    ledger.flush_index().unwrap();
    replayed(&mut ledger);
    ledger.close().unwrap();
    replayed(&mut Ledger::open(disk(folder.path()), &options()).unwrap());
}

/// A cursor moves forward only, to what the log has, and is kept; what is pending begins behind it and is bounded.
#[test]
fn a_cursor_stands_where_it_was_put() {
    let folder = TempDir::new().unwrap();
    let mut ledger = created(folder.path());
    let story = story();
    told(&mut ledger, &story);
    let events = events(&story);
    let consumer: ConsumerId = "receiver".parse().unwrap();
    assert_eq!(ledger.pending(&consumer, 9).unwrap(), numbered(&events, 0));
    assert!(ledger.pending(&consumer, 0).unwrap().is_empty());
    assert_eq!(ledger.pending(&consumer, 1).unwrap().len(), 1);
    let beyond = ledger.acknowledge(&consumer, 7).unwrap_err();
    assert!(matches!(beyond, StoreError::Internal { .. }), "{beyond}");
    for (asked, stands) in [(4, 4), (2, 4), (5, 5)] {
        ledger.acknowledge(&consumer, asked).unwrap();
        assert_eq!(ledger.view().acknowledged(&consumer), stands);
        let pending = ledger.pending(&consumer, 9).unwrap();
        assert_eq!(pending, numbered(&events, stands as usize));
    }
    drop(ledger);
    let mut ledger = Ledger::open(disk(folder.path()), &options()).unwrap();
    assert_eq!(ledger.view().acknowledged(&consumer), 5);
    ledger.acknowledge(&consumer, 6).unwrap();
    assert!(ledger.pending(&consumer, 9).unwrap().is_empty());
    drop(ledger);
    let options = Options {
        read_only: true,
        ..options()
    };
    let mut ledger = Ledger::open(disk(folder.path()), &options).unwrap();
    let refused = ledger.acknowledge(&consumer, 6).unwrap_err();
    assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused}");
    let refused = ledger.commit(&story[..1], 2_000).remove(0);
    assert!(refused.is_err());
}

/// The index is written when there is something to write, one write at a time; a write that failed loses nothing.
#[test]
fn the_index_is_written_once_at_a_time() {
    let folder = TempDir::new().unwrap();
    let mut ledger = created(folder.path());
    ledger.flush_index().unwrap();
    assert!(ledger.begin_flush().is_none());
    let story = story();
    let answers = ledger.commit(&story[..2], 2_000);
    assert!(answers.iter().all(Result::is_ok));
    let job = ledger.begin_flush().unwrap();
    assert!(ledger.begin_flush().is_none());
    // Commits go on beside the write; they are still to be written when it has ended.
    let answers = ledger.commit(&story[2..], 2_000);
    assert!(answers.iter().all(Result::is_ok));
    assert_gives_back(&ledger, &story);
    let written = job.write();
    ledger.end_flush(job, written).unwrap();
    assert_gives_back(&ledger, &story);
    let job = ledger.begin_flush().unwrap();
    let what = "the device is gone".to_owned();
    ledger.end_flush(job, Err(StoreError::Io { what })).unwrap();
    assert_gives_back(&ledger, &story);
    assert!(ledger.read_only().is_none());
    drop(ledger);
    assert_gives_back(
        &Ledger::open(disk(folder.path()), &options()).unwrap(),
        &story,
    );
}

/// A run that was let go of has no marker in the next opening, one that was kept has.
#[test]
fn a_released_run_is_not_recovered() {
    let folder = TempDir::new().unwrap();
    let mut ledger = created(folder.path());
    told(&mut ledger, &story());
    let script = Script::new("mission").unwrap();
    let stream = |run: &str| script.run(run).unwrap().stream();
    let boot = |ledger: &Ledger, run: &str| ledger.view().owner(&stream(run)).unwrap().boot;
    assert!(boot(&ledger, "one") != 0 && boot(&ledger, "two") != 0);
    ledger.release_owner(&stream("one"));
    ledger.flush_index().unwrap();
    drop(ledger);
    let ledger = Ledger::open(disk(folder.path()), &options()).unwrap();
    assert_eq!(boot(&ledger, "one"), 0);
    assert_ne!(boot(&ledger, "two"), 0);
}

/// Proves T-29, HS-04.6, T-81: what a lease was judged by has stepped back since: the append is refused as a stale owner's and
/// nothing of it is there. Beside what was judged anew, and what judged no lease, it disturbs nobody.
#[test]
fn t_29_a_clock_that_stepped_back_refuses_what_it_judged() {
    let folder = TempDir::new().unwrap();
    let mut ledger = created(folder.path());
    let mut story = story();
    story[0].conditions.clock_steps = Some(0);
    let first = ledger.commit(&story[..1], 2_000).remove(0);
    assert!(first.is_ok(), "{first:?}");
    ledger.clock_stepped(1);
    story[1].conditions.clock_steps = Some(0);
    let before = ledger.view().sequence();
    let refused = ledger.commit(&story[1..2], 2_000).remove(0).unwrap_err();
    assert_eq!(refused.code(), aiws::error::Code::StaleOwner, "{refused}");
    assert_eq!(ledger.view().sequence(), before);
    story[1].conditions.clock_steps = Some(1);
    let answers = ledger.commit(&story[1..], 2_000);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert!(ledger.verify(&mut |_, _| ()).unwrap().is_sound());
}

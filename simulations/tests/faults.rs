//! Operations that fail, a disk that is full, an index that is lost, torn, stale, foreign or ahead.
//!
//! Invariant: an append that was answered as stored is there, one that was answered as not stored never appears, and
//! a lost tail is never gone over in silence. Run by `cargo test -p praxis-simulations`.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use aiws::error::Code;
use praxis_journal::{Append, Ledger, Options};
use praxis_simulations::crash::{
    HOT_LOG, INDEX, Told, drive, go_on, hashes, judge, sound, store_id,
};
use praxis_simulations::disk::{CrashDisk, Failure, Survival};
use praxis_simulations::script::Script;

/// Appends of one commit each; some commits take two appends.
fn batches(filling: usize) -> Vec<Vec<Append>> {
    let mut script = Script::new("mission").unwrap();
    script.filling = filling;
    vec![
        vec![script.start_run("one").unwrap()],
        vec![script.note("one").unwrap(), script.spend("one", 7).unwrap()],
        vec![script.start_run("two").unwrap()],
        vec![script.note("two").unwrap(), script.note("one").unwrap()],
    ]
}

/// A whole store with the index written up to its end.
fn whole(batches: &[Vec<Append>]) -> (CrashDisk, Told) {
    let disk = CrashDisk::new();
    let (told, ledger) = drive(&disk, &Options::default(), batches, |_, ledger| {
        ledger.flush_index().unwrap()
    });
    ledger.unwrap().close().unwrap();
    (disk.settled(), told)
}

/// Proves STO-2: whichever operation of the disk fails, in whichever way, every append that was answered as stored
/// survives the next loss of power and every one that was answered as not stored is absent (field case F-43).
#[test]
fn sto_2_every_operation_fails_once() {
    let (options, batches) = (Options::default(), batches(400));
    let disk = CrashDisk::new();
    drop(drive(&disk, &options, &batches, |_, ledger| {
        ledger.flush_index().unwrap()
    }));
    let (operations, mut cases, mut denied) = (disk.operations(), 0, 0);
    let created = {
        let disk = CrashDisk::new();
        drop(drive(&disk, &options, &[], |_, _| ()));
        disk.operations()
    };
    for failure in [Failure::Device, Failure::Reverting, Failure::Panic] {
        // A panic while nobody was promised anything yet is the caller's.
        let first = if failure == Failure::Panic {
            created
        } else {
            0
        };
        for operation in first..operations {
            let what = format!("{failure:?} at operation {operation}");
            let disk = CrashDisk::new();
            disk.fail_at(operation, failure);
            let (told, ledger) = drive(&disk, &options, &batches, |_, ledger| {
                drop(ledger.flush_index())
            });
            denied += u64::from(told.denied);
            for (mask, others) in [(0, false), (u64::MAX, true), (0x5555, false)] {
                let found = disk.after_power_loss(
                    HOT_LOG,
                    &Survival {
                        mask,
                        others,
                        ..Survival::default()
                    },
                );
                drop(
                    judge(&found, &options, &told)
                        .unwrap_or_else(|violation| panic!("{what}: {violation}")),
                );
                cases += 1;
            }
            // Without a loss of power the same process goes on, unless it said that it cannot.
            if let Some(ledger) = ledger.filter(|ledger| ledger.read_only().is_none()) {
                drop(
                    go_on(ledger, &told, &batches)
                        .unwrap_or_else(|violation| panic!("{what}: {violation}")),
                );
            }
        }
    }
    assert!(denied > 0, "no append was ever answered as not stored");
    println!(
        "{operations} operations failed in 3 ways: {cases} crash states, {denied} appends denied"
    );
}

/// Proves STO-2: with a full disk appends are refused with STORE_FULL, the store opens, nothing is lost, and it takes
/// appends again once there is room (field case F-42).
#[test]
fn sto_2_a_full_disk() {
    let (options, batches) = (Options::default(), batches(60_000));
    let (mut full, mut stored) = (0, 0);
    let empty = {
        let disk = CrashDisk::new();
        Ledger::create(Arc::new(disk.clone()), store_id().unwrap(), &options)
            .unwrap()
            .close()
            .unwrap();
        disk.size_bytes()
    };
    let (need, _) = whole(&batches);
    for room in (0..need.size_bytes() - empty).step_by(24 << 10) {
        let disk = CrashDisk::new();
        let id = store_id().unwrap();
        let mut ledger = Ledger::create(Arc::new(disk.clone()), id, &options).unwrap();
        disk.capacity(Some(empty + room));
        let mut told = Told {
            created: true,
            ..Told::default()
        };
        for batch in &batches {
            let answers = ledger.commit(batch, 0);
            if let Some(error) = answers.iter().find_map(|answer| answer.as_ref().err()) {
                assert!(
                    [Code::StoreFull, Code::StoreReadOnly].contains(&error.code()),
                    "room {room}: {error}"
                );
                (told.in_flight, told.denied) = (hashes(batch), true);
                full += 1;
                break;
            }
            told.acknowledged.extend(hashes(batch));
            told.batches += 1;
            stored += 1;
        }
        drop(ledger);
        // It opens, or says that it is full; either way nothing changes.
        if let Err(error) = Ledger::open(Arc::new(disk.clone()), &options) {
            assert_eq!(error.code(), Code::StoreFull, "room {room}: {error}");
        }
        disk.capacity(None);
        let ledger = judge(&disk, &options, &told)
            .unwrap_or_else(|violation| panic!("room {room}: {violation}"));
        drop(
            go_on(ledger, &told, &batches)
                .unwrap_or_else(|violation| panic!("room {room}: {violation}")),
        );
    }
    assert!(full > 0 && stored > 0, "{full} full, {stored} stored");
}

/// Proves STO-1: a lost, torn, emptied or foreign index is made anew from the log and equals a rebuild.
#[test]
fn sto_1_a_lost_torn_or_foreign_index_is_made_anew() {
    let (options, batches) = (Options::default(), batches(400));
    let (disk, told) = whole(&batches);
    let bytes = disk.bytes(INDEX).unwrap();
    let half = bytes[..bytes.len() / 2].to_vec();
    let foreign = {
        let disk = CrashDisk::new();
        let id = "another".parse().unwrap();
        let mut ledger = Ledger::create(Arc::new(disk.clone()), id, &options).unwrap();
        ledger.commit(&batches[0], 0);
        ledger.close().unwrap();
        disk.bytes(INDEX).unwrap()
    };
    let mut cases = vec![
        ("empty", Vec::new()),
        ("half", half),
        ("zeros", vec![0; bytes.len()]),
        ("foreign", foreign),
    ];
    let header = bytes.len().min(4096);
    cases.extend((0..header).step_by(61).map(|at| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        ("flipped", bytes)
    }));
    for (number, (what, bytes)) in cases.into_iter().enumerate() {
        let disk = disk.settled();
        disk.put(INDEX, bytes);
        let ledger = judge(&disk, &options, &told)
            .unwrap_or_else(|violation| panic!("{what} {number}: {violation}"));
        drop(
            go_on(ledger, &told, &batches)
                .unwrap_or_else(|violation| panic!("{what} {number}: {violation}")),
        );
    }
    let lost = disk.settled();
    lost.take(INDEX);
    drop(go_on(judge(&lost, &options, &told).unwrap(), &told, &batches).unwrap());
}

/// Proves STO-1: an index of any earlier moment is caught up with the log, also when it lies about nothing but time.
#[test]
fn sto_1_a_stale_index_is_caught_up() {
    let (options, batches) = (Options::default(), batches(400));
    let mut images = Vec::new();
    let disk = CrashDisk::new();
    let (told, ledger) = drive(&disk, &options, &batches, |_, ledger| {
        ledger.flush_index().unwrap();
        images.push(disk.bytes(INDEX).unwrap());
    });
    ledger.unwrap().close().unwrap();
    for image in images {
        let disk = disk.settled();
        disk.put(INDEX, image);
        let ledger = judge(&disk, &options, &told).unwrap();
        drop(go_on(ledger, &told, &batches).unwrap());
    }
}

/// Proves STO-4: an index that has seen more than the log holds, or another event there, shows a lost tail: the store
/// opens for reading, says so, refuses appends, and leaves log and index as they are.
#[test]
fn sto_4_an_index_ahead_of_the_log_is_a_lost_tail() {
    let (options, batches) = (Options::default(), batches(400));
    let mut logs = Vec::new();
    let disk = CrashDisk::new();
    let (_, ledger) = drive(&disk, &options, &batches, |_, ledger| {
        ledger.flush_index().unwrap();
        logs.push(disk.bytes(HOT_LOG).unwrap());
    });
    ledger.unwrap().close().unwrap();
    let other = {
        let mut script = Script::new("another").unwrap();
        let batches: Vec<_> = (0..8)
            .map(|run| vec![script.start_run(&format!("run-{run}")).unwrap()])
            .collect();
        whole(&batches).0.bytes(HOT_LOG).unwrap()
    };
    logs.pop();
    for (number, log) in logs.into_iter().chain([other]).enumerate() {
        let disk = disk.settled();
        disk.put(HOT_LOG, log);
        let mut ledger = Ledger::open(Arc::new(disk.clone()), &options).unwrap();
        assert_eq!(
            ledger.read_only().unwrap().code(),
            Code::TailLost,
            "log {number}"
        );
        let answers = ledger.commit(&batches[3], 0);
        assert!(
            answers
                .iter()
                .all(|answer| answer.as_ref().unwrap_err().code() == Code::StoreReadOnly)
        );
        let report = ledger.verify(&mut |_, _| ()).unwrap();
        assert_eq!(report.findings[0].code, Code::TailLost);
        ledger.close().unwrap();
        let again = Ledger::open(Arc::new(disk), &options).unwrap();
        assert_eq!(
            again.read_only().unwrap().code(),
            Code::TailLost,
            "log {number}, opened again"
        );
    }
}

/// Proves STO-4: a byte of an event that is flipped in the log is found by verification and named by its place.
#[test]
fn sto_4_a_flipped_byte_in_the_log_is_named() {
    let (options, batches) = (Options::default(), batches(400));
    let (disk, _) = whole(&batches);
    let bytes = disk.bytes(HOT_LOG).unwrap();
    let needle = b"\"requestId\":\"request-3\"";
    let places: Vec<usize> = (0..bytes.len() - needle.len())
        .filter(|at| bytes[*at..].starts_with(needle))
        .collect();
    let disk = disk.settled();
    let mut damaged = bytes;
    // Every copy that the storage engine holds of the page, old ones included.
    places
        .iter()
        .for_each(|at| damaged[*at + needle.len() - 2] = b'4');
    disk.put(HOT_LOG, damaged);
    let ledger = Ledger::open(Arc::new(disk), &options).unwrap();
    assert!(sound(&ledger).is_err());
    let report = ledger.verify(&mut |_, _| ()).unwrap();
    // The page is told of before the event that is on it.
    assert_eq!(report.findings[0].code, Code::StoreCorrupt);
    let finding = report.findings.iter().find(|it| it.sequence.is_some());
    let finding = finding.expect("the event is named");
    assert_eq!(
        (finding.code, finding.sequence, finding.revision),
        (Code::StoreCorrupt, Some(3), Some(2))
    );
    assert!(finding.what.contains("hash"), "{}", finding.what);
    assert_eq!(ledger.read(3).unwrap_err().code(), Code::StoreCorrupt);
}

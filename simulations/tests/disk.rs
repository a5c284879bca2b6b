//! The simulated disk does what its faults say, and nothing else.
//!
//! Invariant: a promise of the store that holds on this disk means something only if the disk really loses and lies.
//! Run by `cargo test -p praxis-simulations`.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::ErrorKind;
use std::sync::Arc;

use praxis_artifacts::fs::Fs;
use praxis_journal::Disk;
use praxis_simulations::clock::SimClock;
use praxis_simulations::disk::{CrashArtifacts, CrashDisk, Loss, LossKind, Strike};

const FILE: &str = "file";

fn loss(kind: LossKind, seed: u64) -> Loss {
    Loss {
        kind,
        seed,
        names: usize::MAX,
    }
}

fn artifacts(disk: &CrashDisk) -> CrashArtifacts {
    disk.artifacts(Arc::new(SimClock::new(1)))
}

/// A disk with one durable file of 2,048 ones, over which four sectors of twos and a growth of 512 threes are unsynced.
fn unsynced() -> CrashDisk {
    let disk = CrashDisk::new();
    let file = disk.create(FILE).unwrap();
    file.write(0, &[1; 2048]).unwrap();
    file.sync_data().unwrap();
    disk.sync_directory().unwrap();
    file.write(0, &[2; 1024]).unwrap();
    file.write(1024, &[2; 1024]).unwrap();
    file.set_len(2560).unwrap();
    file.write(2048, &[3; 512]).unwrap();
    disk
}

fn left(kind: LossKind, seed: u64) -> Vec<u8> {
    unsynced()
        .after_loss(&loss(kind, seed))
        .bytes(FILE)
        .unwrap()
}

#[test]
fn a_loss_leaves_what_its_kind_says() {
    let all = [vec![2; 2048], vec![3; 512]].concat();
    assert_eq!(left(LossKind::DropAll, 0), vec![1; 2048]);
    assert_eq!(left(LossKind::KeepAll, 0), all);
    assert_eq!(left(LossKind::LengthLost, 0), vec![2; 2048]);
    let early = [vec![1; 2048], vec![0; 512]].concat();
    assert_eq!(left(LossKind::LengthEarly, 0), early);
    for seed in 0..64 {
        let torn = left(LossKind::ByteTear, seed);
        let behind = torn.iter().take(2048).skip_while(|byte| **byte == 2);
        assert!(behind.into_iter().all(|byte| *byte == 1), "seed {seed}");
        for sector in left(LossKind::Sectors, seed).chunks(512) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "seed {seed}");
        }
    }
}

#[test]
fn every_kind_of_loss_is_deterministic_and_most_differ_by_seed() {
    for kind in LossKind::ALL {
        let mut images = std::collections::BTreeSet::new();
        for seed in 0..32 {
            let disk = unsynced();
            let found = disk.after_loss(&loss(kind, seed)).identity();
            assert_eq!(found, disk.after_loss(&loss(kind, seed)).identity());
            images.insert(found);
        }
        let drawn = !matches!(
            kind,
            LossKind::DropAll | LossKind::KeepAll | LossKind::LengthLost | LossKind::LengthEarly
        );
        assert_eq!(images.len() > 1, drawn, "{kind:?}");
    }
}

#[test]
fn unsynced_names_survive_oldest_first() {
    let disk = CrashDisk::new();
    disk.create("a").unwrap();
    disk.create("b").unwrap();
    disk.remove("a").unwrap();
    let names = |names| {
        disk.after_loss(&Loss {
            names,
            ..loss(LossKind::KeepAll, 0)
        })
        .names()
    };
    let none: [&str; 0] = [];
    assert_eq!(names(0), none);
    assert_eq!(names(1), ["a"]);
    assert_eq!(names(2), ["a", "b"]);
    assert_eq!(names(3), ["b"]);
}

#[test]
fn the_artifacts_are_a_directory_of_their_own() {
    let disk = CrashDisk::new();
    let fs = artifacts(&disk);
    disk.create(FILE).unwrap();
    let mut put = fs.create("temporary-0").unwrap();
    fs.write(&mut put, b"bytes").unwrap();
    fs.sync(&put).unwrap();
    assert_eq!(disk.list().unwrap(), [FILE]);
    assert_eq!(fs.list().unwrap(), ["temporary-0"]);
    let lost = Loss {
        names: 0,
        ..loss(LossKind::KeepAll, 0)
    };
    disk.sync_directory().unwrap();
    assert_eq!(disk.after_loss(&lost).names(), [FILE]);
    fs.sync_directory().unwrap();
    let found = disk.after_loss(&lost);
    assert_eq!(
        found.artifact_files(),
        [("temporary-0".to_owned(), b"bytes".to_vec())]
    );
    assert!(!fs.sweep("temporary-0").unwrap(), "a put has it open");
    drop(put);
    assert!(fs.sweep("temporary-0").unwrap());
    assert_eq!(fs.temporary_name(), artifacts(&disk).temporary_name());
}

#[test]
fn an_armed_strike_hits_the_next_operation_of_its_kind_once() {
    for strike in Strike::ALL {
        if strike == Strike::EnginePanic {
            continue;
        }
        let disk = unsynced();
        let file = disk.open(FILE, true).unwrap();
        disk.arm(2, strike);
        let mut results = Vec::new();
        for _ in 0..2 {
            let name = || disk.create("other").map(drop);
            results.extend([
                file.write(0, &[9]),
                file.sync_data(),
                disk.sync_directory(),
                name(),
                file.set_len(4096),
                file.read(0, &mut [0]),
            ]);
        }
        let failed = results.iter().filter(|result| result.is_err()).count();
        let lies = [
            Strike::LyingSync,
            Strike::MisdirectedWrite,
            Strike::StaleRead,
        ];
        assert_eq!(failed, usize::from(!lies.contains(&strike)), "{strike:?}");
        assert!(disk.struck().contains(&strike.fault()), "{strike:?}");
        assert!(disk.take_struck() && !disk.take_struck(), "{strike:?}");
        assert!(disk.settled().struck().contains(&strike.fault()));
    }
}

#[test]
#[should_panic(expected = "the simulated storage engine panics")]
fn an_armed_panic_is_one() {
    let disk = unsynced();
    disk.arm(0, Strike::EnginePanic);
    drop(disk.open(FILE, true).unwrap().write(0, &[9]));
}

#[test]
fn lies_are_lies() {
    let disk = unsynced();
    let file = disk.open(FILE, true).unwrap();
    disk.arm(0, Strike::LyingSync);
    file.sync_data().unwrap();
    let lost = disk.after_loss(&loss(LossKind::DropAll, 0));
    assert_eq!(lost.bytes(FILE).unwrap(), vec![1; 2048]);
    disk.heal();
    file.sync_data().unwrap();
    let mut byte = [0];
    disk.arm(0, Strike::StaleRead);
    file.read(0, &mut byte).unwrap();
    assert_eq!(byte, [1]);
    file.read(0, &mut byte).unwrap();
    assert_eq!(byte, [2]);
    disk.arm(0, Strike::MisdirectedWrite);
    file.write(0, &[7]).unwrap();
    let bytes = disk.bytes(FILE).unwrap();
    assert_eq!((bytes[0], bytes[512]), (2, 7));
    let settled = disk.settled();
    settled.flip(FILE, 5);
    let flipped = settled.bytes(FILE).unwrap();
    let bits = bytes.iter().zip(&flipped).map(|(was, is)| was ^ is);
    assert_eq!(bits.map(u8::count_ones).sum::<u32>(), 1);
    let images: Vec<_> = (0..16)
        .map(|seed| {
            let disk = disk.settled();
            disk.rollback(FILE, seed);
            disk.bytes(FILE).unwrap()
        })
        .collect();
    assert!(images.contains(&vec![1; 2048]) && images.contains(&Vec::new()));
}

#[test]
fn the_power_goes_when_it_is_due_and_stays_away() {
    let disk = unsynced();
    disk.crash_after(1);
    let file = disk.open(FILE, true).unwrap();
    file.write(0, &[9]).unwrap();
    assert!(disk.has_power());
    assert!(file.write(0, &[9]).is_err() && file.read(0, &mut [0]).is_err());
    assert!(!disk.has_power() && artifacts(&disk).list().is_err());
    assert!(disk.after_loss(&loss(LossKind::DropAll, 0)).has_power());
    let unknown = CrashDisk::new().open(FILE, false).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
}

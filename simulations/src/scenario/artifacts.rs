//! Scenarios of the artifact directory: puts, collections and sweeps on a disk that loses power, fails or lies.
//!
//! Invariant: what a put answered for is there and whole after every loss of power; a digest never names other bytes,
//! and no temporary file outlives the next open. Called by the table.

use std::collections::BTreeSet;
use std::fmt::{Arguments, Debug};
use std::sync::Arc;

use aiws::digest::{Digest, sha256};
use aiws::id::ActorId;
use praxis_artifacts::{ArtifactError, ArtifactProvider, FileArtifacts};

use super::Count;
use crate::clock::SimClock;
use crate::crash::Violation;
use crate::disk::{CrashDisk, Loss, LossKind, Strike};

/// When the scenarios play, and how long what they put is kept.
const NOW_MS: u64 = 1_000_000;
const RETAIN_UNTIL_MS: u64 = 9_000_000;

/// An act that a failed operation refused is done once more, and the store opened anew where it says that it must.
const TRIES: usize = 3;

/// What is drawn from at each loss.
const SEEDS: u64 = 4;

/// One step of a story.
#[derive(Clone, Copy)]
enum Act {
    Put(usize),
    /// It is taken for an orphan that is past its time.
    Collect(usize),
}

use Act::{Collect, Put};

/// What is put: less than a page, several pages, several pieces of a read.
fn bytes(which: usize) -> Vec<u8> {
    let len = [700, 9_000, 70_000][which % 3];
    (0..len).map(|at| (at * 7 + which * 31) as u8).collect()
}

/// What the world was promised.
#[derive(Clone, Debug, Default)]
struct Promised {
    /// What a put answered for.
    kept: BTreeSet<usize>,
    /// How many acts were answered.
    done: usize,
}

fn broken(why: impl Debug) -> Violation {
    Violation(format!("{why:?}"))
}

fn store(disk: &CrashDisk) -> Result<FileArtifacts, ArtifactError> {
    let clock = Arc::new(SimClock::new(NOW_MS));
    FileArtifacts::open_on(Box::new(disk.artifacts(clock)))
}

fn put(store: &FileArtifacts, which: usize) -> Result<(), ArtifactError> {
    let owner = ActorId::new("owner").map_err(ArtifactError::from)?;
    let stored = store.put(&bytes(which), "key", "text/plain", &owner, RETAIN_UNTIL_MS);
    stored.map(drop)
}

fn collect(store: &FileArtifacts, which: usize) -> Result<(), ArtifactError> {
    let digest = sha256(&bytes(which));
    let orphans = store.orphans(&BTreeSet::new())?;
    let found = orphans.iter().find(|orphan| orphan.digest == digest);
    found.map_or(Ok(()), |orphan| {
        store.collect(orphan, 1, NOW_MS + 2).map(drop)
    })
}

/// Carries out the acts, until one fails for the last of `tries`.
fn drive(disk: &CrashDisk, acts: &[Act], tries: usize) -> Promised {
    let mut promised = Promised::default();
    let Ok(mut open) = store(disk) else {
        return promised;
    };
    for act in acts {
        let done = (0..tries).any(|_| {
            let done = match *act {
                Put(which) => put(&open, which),
                Collect(which) => {
                    promised.kept.remove(&which);
                    collect(&open, which)
                }
            };
            if let (Err(ArtifactError::Suspended), Ok(again)) = (&done, store(disk)) {
                open = again;
            }
            done.is_ok()
        });
        if !done {
            break;
        }
        if let Put(which) = *act {
            promised.kept.insert(which);
        }
        promised.done += 1;
    }
    promised
}

/// Opens what is there and compares it with what was promised.
fn judge(disk: &CrashDisk, promised: &Promised) -> Result<(), Violation> {
    let open = store(disk).map_err(broken)?;
    for (name, bytes) in disk.artifact_files() {
        match name.parse::<Digest>() {
            Ok(digest) if digest == sha256(&bytes) => {}
            Ok(_) => return Err(Violation(format!("{name} holds other bytes"))),
            Err(_) => return Err(Violation(format!("{name} outlived the sweep"))),
        }
    }
    for which in 0..3 {
        let bytes = bytes(which);
        match open.read_digest(&sha256(&bytes), bytes.len() as u64) {
            Ok(found) if found == bytes => {}
            Err(ArtifactError::Missing { .. }) if !promised.kept.contains(&which) => {}
            other => {
                let what = other.map(|found| found.len());
                return Err(Violation(format!("artifact {which}: {what:?}")));
            }
        }
    }
    Ok(())
}

fn state(
    count: &mut Count,
    disk: &CrashDisk,
    promised: &Promised,
    what: Arguments<'_>,
) -> Result<bool, Violation> {
    let kept = promised.kept.iter().map(|which| 1 << which).sum();
    if !count.is_new(disk, kept) {
        return Ok(false);
    }
    // The judge sweeps, and what is found is judged again.
    judge(&disk.settled(), promised)
        .map_err(|Violation(why)| Violation(format!("{what}: {why}")))?;
    Ok(true)
}

/// Every way in which the power can go now: each kind, some seeds, every prefix of the names.
fn losses(disk: &CrashDisk) -> impl Iterator<Item = Loss> {
    let names = disk.pending_names();
    (0..=names).flat_map(|names| {
        LossKind::ALL
            .into_iter()
            .flat_map(move |kind| (0..SEEDS).map(move |seed| Loss { kind, seed, names }))
    })
}

fn operations(acts: &[Act]) -> u64 {
    let disk = CrashDisk::new();
    drive(&disk, acts, 1);
    disk.operations()
}

/// The power goes at every operation of the acts, and then at every operation of the sweep at the next open.
fn crashes(count: &mut Count, acts: &[Act]) -> Result<(), Violation> {
    for operation in 0..=operations(acts) {
        let disk = CrashDisk::new();
        disk.crash_at(operation);
        let promised = drive(&disk, acts, 1);
        for loss in losses(&disk) {
            let found = disk.after_loss(&loss);
            let what = format_args!("operation {operation}, {loss:?}");
            if state(count, &found, &promised, what)? {
                again(count, &found, &promised, what)?;
            }
        }
    }
    Ok(())
}

/// The power goes at every operation of an open and of a put of everything that was promised.
fn again(
    count: &mut Count,
    first: &CrashDisk,
    promised: &Promised,
    what: Arguments<'_>,
) -> Result<(), Violation> {
    let acts: Vec<Act> = promised.kept.iter().take(1).map(|it| Put(*it)).collect();
    let undisturbed = first.settled();
    drive(&undisturbed, &acts, 1);
    for second in 0..=undisturbed.operations() {
        let disk = first.settled();
        disk.crash_at(second);
        drive(&disk, &acts, 1);
        for names in 0..=disk.pending_names() {
            for kind in [LossKind::DropAll, LossKind::KeepAll] {
                let loss = Loss {
                    kind,
                    seed: 1,
                    names,
                };
                let found = disk.after_loss(&loss);
                let what = format_args!("{what}, then operation {second}, {loss:?}");
                state(count, &found, promised, what)?;
            }
        }
    }
    Ok(())
}

/// Three artifacts are put.
pub(super) fn put_three(count: &mut Count) -> Result<(), Violation> {
    crashes(count, &[Put(0), Put(1), Put(2)])
}

/// The same bytes are put twice, and once more after the crash: by then somebody else's half put may stand there.
pub(super) fn put_twice(count: &mut Count) -> Result<(), Violation> {
    let acts = [Put(1), Put(1)];
    crashes(count, &acts)?;
    for operation in 0..=operations(&acts[..1]) {
        let disk = CrashDisk::new();
        disk.crash_at(operation);
        drive(&disk, &acts[..1], 1);
        for loss in losses(&disk) {
            let disk = disk.after_loss(&loss);
            let promised = drive(&disk, &acts[..1], 1);
            if promised.done != 1 {
                return Err(Violation(format!(
                    "operation {operation}, {loss:?}: the put after the crash failed"
                )));
            }
            for loss in losses(&disk) {
                let found = disk.after_loss(&loss);
                let what = format_args!("put again after {operation}, {loss:?}");
                state(count, &found, &promised, what)?;
            }
        }
    }
    Ok(())
}

/// An artifact is collected beside another, and put again.
pub(super) fn put_and_collect(count: &mut Count) -> Result<(), Violation> {
    crashes(count, &[Put(0), Put(1), Collect(1), Put(1), Collect(0)])
}

/// Several dead puts leave temporary files; the sweep is cut at every operation.
pub(super) fn sweep(count: &mut Count) -> Result<(), Violation> {
    let mut disk = CrashDisk::new();
    let promised = drive(&disk, &[Put(0)], 1);
    let clock = || Arc::new(SimClock::new(NOW_MS));
    for number in 0..4 {
        let fs = disk.artifacts(clock());
        let name = format!("temporary-dead-{number}");
        let made = praxis_artifacts::fs::Fs::create(&fs, &name);
        let mut file = made.map_err(broken)?;
        let wrote = praxis_artifacts::fs::Fs::write(&fs, &mut file, &bytes(number));
        wrote.map_err(broken)?;
    }
    disk = disk.settled();
    let what = format_args!("four temporary files");
    state(count, &disk, &promised, what)?;
    again(count, &disk, &promised, what)
}

/// Each operation fails once, in each way that fits it; the store goes on or is opened anew; then the power goes
/// at every operation.
pub(super) fn errors(count: &mut Count) -> Result<(), Violation> {
    const STRIKES: [Strike; 6] = [
        Strike::SyncErrorKept,
        Strike::SyncErrorReverted,
        Strike::DirectorySyncError,
        Strike::NameError,
        Strike::FullOnWrite,
        Strike::WriteError,
    ];
    let acts = [Put(0), Put(1), Put(1), Collect(0), Put(0)];
    for strike in STRIKES {
        for nth in 0.. {
            let disk = CrashDisk::new();
            disk.arm_nth(nth, strike);
            drive(&disk, &acts, TRIES);
            if !disk.take_struck() {
                break;
            }
            for operation in 0..=disk.operations() {
                let disk = CrashDisk::new();
                disk.arm_nth(nth, strike);
                disk.crash_at(operation);
                let promised = drive(&disk, &acts, TRIES);
                for loss in losses(&disk) {
                    let found = disk.after_loss(&loss);
                    let what = format_args!(
                        "{strike:?} at its operation {nth}, crash at {operation}, {loss:?}"
                    );
                    state(count, &found, &promised, what)?;
                }
            }
        }
    }
    Ok(())
}

/// Bits flip, files become older, syncs lie, writes and reads go astray: a read gives the very bytes or an error.
pub(super) fn damage(count: &mut Count) -> Result<(), Violation> {
    let whole = CrashDisk::new();
    drive(&whole, &[Put(0), Put(1), Put(2)], 1);
    for name in whole.names() {
        for seed in 0..64 {
            let disk = whole.settled();
            disk.flip(&name, seed);
            reads(count, &disk, format_args!("{name}: bit of seed {seed}"))?;
            if seed < 8 {
                let disk = whole.settled();
                disk.rollback(&name, seed);
                reads(count, &disk, format_args!("{name}: image of seed {seed}"))?;
            }
        }
    }
    for strike in [Strike::LyingSync, Strike::MisdirectedWrite] {
        for nth in 0..8 {
            let disk = CrashDisk::new();
            disk.arm_nth(nth, strike);
            drive(&disk, &[Put(0), Put(1), Put(2)], 2);
            for loss in losses(&disk) {
                let what = format_args!("{strike:?} {nth}, {loss:?}");
                reads(count, &disk.after_loss(&loss), what)?;
            }
        }
    }
    for strike in [Strike::ReadError, Strike::ShortRead, Strike::StaleRead] {
        for nth in 0..16 {
            let disk = whole.settled();
            disk.arm_nth(nth, strike);
            reads(count, &disk, format_args!("{strike:?} {nth}"))?;
        }
    }
    Ok(())
}

/// Every artifact is read, and put again where it is missing.
fn reads(count: &mut Count, disk: &CrashDisk, what: Arguments<'_>) -> Result<(), Violation> {
    count.damaged(disk);
    let Ok(open) = store(disk) else {
        return Ok(());
    };
    for which in 0..3 {
        let bytes = bytes(which);
        let digest = sha256(&bytes);
        let read = || open.read_digest(&digest, bytes.len() as u64);
        if read().is_ok_and(|found| found != bytes) {
            return Err(Violation(format!(
                "{what}: artifact {which} is other bytes"
            )));
        }
        if put(&open, which).is_ok() && read().is_ok_and(|found| found != bytes) {
            return Err(Violation(format!(
                "{what}: {which} was put and is other bytes"
            )));
        }
    }
    Ok(())
}

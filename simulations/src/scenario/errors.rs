//! Scenarios in which one operation fails or the disk is full, and then the power goes.
//!
//! Invariant: as of all scenarios; a denied append never appears. Each failing operation is tried; of the unsynced
//! writes the edges survive. Called by the table.

use super::recovery::again;
use super::{Count, Story, edges, log_writes, pending};
use crate::crash::{HOT_LOG, Told, Violation, drive};
use crate::disk::{CrashDisk, Failure, Kind, Survival};

/// How much larger the disk is in each try.
const STEP_BYTES: u64 = 4096;

/// The most sizes that are tried.
const SIZES: u64 = 48;

/// The disk is full at any size between the made store and the whole story, in steps of a page.
pub(super) fn full(count: &mut Count) -> Result<(), Violation> {
    let story = Story::rolling(4)?;
    let size = |batches: usize| {
        let disk = CrashDisk::new();
        drop(drive(
            &disk,
            &story.options,
            &story.batches[..batches],
            |_, _| (),
        ));
        disk.size_bytes()
    };
    let (least, most) = (size(0), size(story.batches.len()));
    let step = (most.saturating_sub(least) / SIZES).max(STEP_BYTES);
    let mut capacity = least;
    while capacity <= most {
        let disk = CrashDisk::new();
        disk.capacity(Some(capacity));
        let (told, ledger) = drive(&disk, &story.options, &story.batches, story.between());
        drop(ledger);
        let what = format!("full at {capacity} bytes");
        left(count, &story, &disk, &told, &what)?;
        capacity += step;
    }
    Ok(())
}

/// Each write of two appends and their index writes fails once.
pub(super) fn write(count: &mut Count) -> Result<(), Violation> {
    let mut story = Story::six(true)?;
    story.batches.truncate(2);
    each(count, &story, Kind::Write)
}

/// Each change of a length after the creation fails once.
pub(super) fn length(count: &mut Count) -> Result<(), Violation> {
    each(count, &Story::rolling(4)?, Kind::Length)
}

/// Each creation, rename or removal after the creation of the store fails once.
pub(super) fn name(count: &mut Count) -> Result<(), Violation> {
    each(count, &Story::rolling(4)?, Kind::Name)
}

/// Each sync of the directory after the creation of the store fails once.
pub(super) fn directory_sync(count: &mut Count) -> Result<(), Violation> {
    each(count, &Story::rolling(4)?, Kind::SyncNames)
}

fn failing(story: &Story, kind: Kind) -> Vec<usize> {
    let kinds = story.kinds();
    let after = story.created()..kinds.len();
    after.filter(|at| kinds[*at] == kind).collect()
}

fn failed(story: &Story, at: usize, how: Failure) -> (CrashDisk, Told) {
    let disk = CrashDisk::new();
    disk.fail_at(at as u64, how);
    let (told, ledger) = drive(&disk, &story.options, &story.batches, story.between());
    drop(ledger);
    (disk, told)
}

fn each(count: &mut Count, story: &Story, kind: Kind) -> Result<(), Violation> {
    for at in failing(story, kind) {
        let (disk, told) = failed(story, at, Failure::Device);
        left(
            count,
            story,
            &disk,
            &told,
            &format!("operation {at} failed"),
        )?;
    }
    Ok(())
}

/// What a loss of power leaves then: every prefix of the names, the edges of the log's writes.
fn left(
    count: &mut Count,
    story: &Story,
    disk: &CrashDisk,
    told: &Told,
    what: &str,
) -> Result<(), Violation> {
    for names in 0..=disk.pending_names() {
        for mask in edges(pending(disk, count)) {
            for others in [false, true] {
                let survival = Survival {
                    others,
                    names,
                    ..log_writes(mask)
                };
                let found = disk.after_power_loss(HOT_LOG, &survival);
                let what = format_args!("{what}, {names} names, {mask:b}, others {others}");
                count.state(&found, story, told, what)?;
            }
        }
    }
    Ok(())
}

/// Each sync of one append fails in both ways and the owner stops; then a crash in the recovery.
pub(super) fn sync_then_recovery(count: &mut Count) -> Result<(), Violation> {
    let mut story = Story::six(false)?;
    story.batches.truncate(1);
    for at in failing(&story, Kind::Sync) {
        for how in [Failure::Device, Failure::Reverting] {
            let (disk, told) = failed(&story, at, how);
            for (mask, others) in [(0, false), (u64::MAX, true)] {
                let survival = Survival {
                    others,
                    names: if others { disk.pending_names() } else { 0 },
                    ..log_writes(mask)
                };
                let first = disk.after_power_loss(HOT_LOG, &survival);
                let what = format_args!("sync {at} failed ({how:?}), writes {mask:b}");
                again(count, &story, &told, &first, what)?;
            }
        }
    }
    Ok(())
}

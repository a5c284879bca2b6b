//! Scenarios in which the power goes once more while the store recovers, or makes its index anew.
//!
//! Invariant: as of all scenarios. The first crash is at every sync or operation with a few survivals, the second at
//! every operation of the recovery with a few more: the points are all there, the subsets are chosen. Called by the table.

use std::fmt::Arguments;
use std::sync::Arc;

use praxis_journal::{Ledger, Options, StoreError};

use super::{Count, Story, all, edges, log_writes, pending, syncs};
use crate::crash::{HOT_LOG, INDEX, Told, Violation, drive, store_id};
use crate::disk::{CrashDisk, Survival};

/// What the second crash leaves of the hot log, and of the other files.
const SECOND: [(u64, bool); 4] = [
    (0, false),
    (u64::MAX, true),
    (0x5555, true),
    (0xaaaa, false),
];

/// What a crash of a recovery leaves: nothing unsynced, or all of it.
pub(super) fn second(disk: &CrashDisk, kept: bool) -> Survival {
    Survival {
        others: kept,
        names: if kept { disk.pending_names() } else { 0 },
        ..log_writes(if kept { u64::MAX } else { 0 })
    }
}

/// Opens what is there, or makes the store if none was promised.
pub(super) fn recover(disk: &CrashDisk, story: &Story, told: &Told) -> Result<(), Violation> {
    let opened = match Ledger::open(Arc::new(disk.clone()), &story.options) {
        Err(StoreError::NotAStore { .. }) if !told.created => {
            Ledger::create(Arc::new(disk.clone()), store_id()?, &story.options)
        }
        opened => opened,
    };
    Ok(opened.map(drop)?)
}

/// The power goes at every operation of the recovery from `first`; each state is judged.
pub(super) fn again(
    count: &mut Count,
    story: &Story,
    told: &Told,
    first: &CrashDisk,
    what: Arguments<'_>,
) -> Result<(), Violation> {
    let undisturbed = first.settled();
    recover(&undisturbed, story, told)
        .map_err(|Violation(why)| Violation(format!("{what}: {why}")))?;
    for second in 0..undisturbed.operations() {
        let disk = first.settled();
        disk.crash_at(second);
        // It fails, or the power went only while it was closed.
        drop(recover(&disk, story, told));
        for (mask, others) in SECOND {
            let survival = Survival {
                others,
                names: if others { disk.pending_names() } else { 0 },
                ..log_writes(mask)
            };
            let found = disk.after_power_loss(HOT_LOG, &survival);
            let what = format_args!("{what}, recovery operation {second}, writes {mask:b}");
            count.state(&found, story, told, what)?;
        }
    }
    Ok(())
}

/// Batches of several appends: at every sync the edges of the log's unsynced writes.
pub(super) fn batch_edges(count: &mut Count) -> Result<(), Violation> {
    let story = Story::batched()?;
    for operation in syncs(&story.kinds()) {
        let (disk, told) = story.crashed(operation);
        if !told.created {
            continue;
        }
        let pending = pending(&disk, count);
        for mask in edges(pending) {
            let found = disk.after_power_loss(HOT_LOG, &log_writes(mask));
            let what = format_args!("operation {operation}, writes {mask:b}");
            count.state(&found, &story, &told, what)?;
        }
    }
    Ok(())
}

/// Batches of several appends: a crash at every sync with some subsets, then one in the recovery.
pub(super) fn batch(count: &mut Count) -> Result<(), Violation> {
    let story = Story::batched()?;
    at_syncs(count, &story, HOT_LOG)
}

/// The index is written after an append: a crash at every sync with some subsets of the index's writes,
/// then one in the recovery.
pub(super) fn index(count: &mut Count) -> Result<(), Violation> {
    let mut story = Story::six(true)?;
    story.batches.truncate(1);
    at_syncs(count, &story, INDEX)
}

fn at_syncs(count: &mut Count, story: &Story, watched: &str) -> Result<(), Violation> {
    for operation in syncs(&story.kinds()) {
        let (disk, told) = story.crashed(operation);
        let pending = disk.pending(watched);
        count.most_pending = count.most_pending.max(pending);
        if !told.created || pending == 0 {
            continue;
        }
        for mask in [0, all(pending), 0x5555_5555 & all(pending)] {
            let first = disk.after_power_loss(watched, &log_writes(mask));
            let what = format_args!("operation {operation}, writes {mask:b}");
            again(count, story, &told, &first, what)?;
        }
    }
    Ok(())
}

/// One write of the log is torn in its middle, those before it survive, then a crash in the recovery.
pub(super) fn tears(count: &mut Count) -> Result<(), Violation> {
    let mut story = Story::six(false)?;
    story.batches.truncate(1);
    for operation in syncs(&story.kinds()) {
        let (disk, told) = story.crashed(operation);
        if !told.created {
            continue;
        }
        for torn in 0..pending(&disk, count) {
            let cut = disk.pending_len(HOT_LOG, torn) / 2;
            let survival = Survival {
                torn: Some((torn, cut)),
                ..log_writes(all(torn))
            };
            let first = disk.after_power_loss(HOT_LOG, &survival);
            let what = format_args!("operation {operation}, write {torn} torn at {cut}");
            again(count, &story, &told, &first, what)?;
        }
    }
    Ok(())
}

/// The index is lost: a crash at every operation of making it anew, with the edges of its unsynced writes.
pub(super) fn rebuild(count: &mut Count) -> Result<(), Violation> {
    let mut story = Story::six(true)?;
    story.batches.truncate(3);
    let disk = CrashDisk::new();
    let (told, ledger) = drive(&disk, &story.options, &story.batches, story.between());
    drop(ledger);
    let lost = disk.settled();
    lost.take(INDEX);
    let anew = |disk: &CrashDisk, options: &Options| -> Result<(), StoreError> {
        let mut ledger = Ledger::open(Arc::new(disk.clone()), options)?;
        ledger.flush_index()
    };
    let undisturbed = lost.settled();
    anew(&undisturbed, &story.options)?;
    for operation in 0..undisturbed.operations() {
        let disk = lost.settled();
        disk.crash_at(operation);
        // Refused once the power is gone.
        drop(anew(&disk, &story.options));
        let pending = disk.pending(INDEX);
        count.most_pending = count.most_pending.max(pending);
        for names in 0..=disk.pending_names() {
            for mask in edges(pending) {
                let survival = Survival {
                    mask,
                    names,
                    others: mask != 0,
                    ..Survival::default()
                };
                let found = disk.after_power_loss(INDEX, &survival);
                let what = format_args!("operation {operation}, {names} names, index {mask:b}");
                count.state(&found, &story, &told, what)?;
            }
        }
    }
    Ok(())
}

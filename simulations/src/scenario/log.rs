//! Scenarios of the log: subsets, tears, a crash inside recovery, roll-overs.
//!
//! Invariant: as of all scenarios; the index stays unwritten, so that the log stands alone. Called by the table.

use praxis_journal::Options;

use super::{Count, Story, all, log_writes, pending, recovery, subsets, syncs};
use crate::crash::{HOT_LOG, Violation};
use crate::disk::Survival;

/// At every sync of six appends: every subset of the log's unsynced writes, and the clean end.
pub(super) fn every_subset(count: &mut Count) -> Result<(), Violation> {
    let story = Story::six(false)?;
    let kinds = story.kinds();
    for operation in syncs(&kinds).chain([kinds.len()]) {
        let (disk, told) = story.crashed(operation);
        if !told.created {
            continue;
        }
        for mask in subsets(pending(&disk, count))? {
            let found = disk.after_power_loss(HOT_LOG, &log_writes(mask));
            count.state(
                &found,
                &story,
                &told,
                format_args!("operation {operation}, writes {mask:b}"),
            )?;
        }
    }
    Ok(())
}

/// At every sync of six appends: each unsynced write of the log torn at some bytes, the others lost, kept or a prefix.
pub(super) fn byte_tears(count: &mut Count) -> Result<(), Violation> {
    let story = Story::six(false)?;
    for operation in syncs(&story.kinds()) {
        let (disk, told) = story.crashed(operation);
        if !told.created {
            continue;
        }
        let pending = pending(&disk, count);
        for torn in 0..pending {
            for (cut, mask) in tears(disk.pending_len(HOT_LOG, torn), torn, pending) {
                let survival = Survival {
                    torn: Some((torn, cut)),
                    ..log_writes(mask)
                };
                let found = disk.after_power_loss(HOT_LOG, &survival);
                count.state(
                    &found,
                    &story,
                    &told,
                    format_args!(
                        "operation {operation}, write {torn} torn at {cut}, others {mask:b}"
                    ),
                )?;
            }
        }
    }
    Ok(())
}

/// Where a write of `len` bytes is cut, and what of the others survives.
fn tears(len: usize, torn: usize, pending: usize) -> impl Iterator<Item = (usize, u64)> {
    let cuts = [1, 7, 64, 511, 512, len / 2, len.saturating_sub(1)];
    let others = [0, all(torn), all(pending) & !(1 << torn)];
    cuts.into_iter()
        .filter(move |cut| (1..len).contains(cut))
        .flat_map(move |cut| others.map(|mask| (cut, mask)))
}

/// A crash at every sync, some subsets, then a second crash at every operation of the recovery.
pub(super) fn crash_in_recovery(count: &mut Count) -> Result<(), Violation> {
    let story = Story::six(false)?;
    for operation in syncs(&story.kinds()) {
        let (disk, told) = story.crashed(operation);
        let pending = pending(&disk, count);
        if !told.created || pending == 0 {
            continue;
        }
        for mask in [0, all(pending), 0x5555 & all(pending)] {
            let first = disk.after_power_loss(HOT_LOG, &log_writes(mask));
            let what = format_args!("operation {operation}, writes {mask:b}");
            recovery::again(count, &story, &told, &first, what)?;
        }
    }
    Ok(())
}

/// A crash at every operation of appends that each begin a new segment.
pub(super) fn roll_over(count: &mut Count) -> Result<(), Violation> {
    // Every commit finds the segment over its bound, so every append but the first begins a new one.
    let mut story = Story::six(false)?;
    story.options = Options {
        segment_bytes: 1,
        ..Options::default()
    };
    story.batches.truncate(4);
    for operation in 0..=story.kinds().len() {
        let (disk, told) = story.crashed(operation);
        for names in 0..=disk.pending_names() {
            for others in [false, true] {
                let survival = Survival {
                    others,
                    names,
                    ..Survival::default()
                };
                let found = disk.after_power_loss("none", &survival);
                count.state(
                    &found,
                    &story,
                    &told,
                    format_args!("operation {operation}, {names} names, others {others}"),
                )?;
            }
        }
    }
    Ok(())
}

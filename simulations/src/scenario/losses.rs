//! Scenarios with a loss of all files at once, of every kind, also three times in the recovery, and in the creation.
//!
//! Invariant: as of all scenarios. The operations are all tried where it is said so, the subsets are drawn from seeds.
//! Called by the table.

use super::recovery::{again, recover};
use super::{Count, Story, syncs};
use crate::crash::{Told, Violation};
use crate::disk::{CrashDisk, Loss, LossKind};

/// Seeds per kind of loss at each sync.
const SEEDS: u64 = 2;

/// Recoveries that lose the power again, one in the other.
const DEPTH: usize = 3;

/// Appends, index writes and segments that begin: at every operation each kind of loss.
pub(super) fn every_kind(count: &mut Count) -> Result<(), Violation> {
    let mut rolling = Story::rolling(3)?;
    rolling.flush = true;
    for story in [Story::six(true)?, rolling] {
        let kinds = story.kinds();
        for operation in syncs(&kinds) {
            let (disk, told) = story.crashed(operation);
            for kind in LossKind::ALL {
                for seed in 0..SEEDS {
                    let names = (seed as usize + operation) % (disk.pending_names() + 1);
                    let loss = Loss { kind, seed, names };
                    let found = disk.after_loss(&loss);
                    let what = format_args!("operation {operation}, {loss:?}");
                    count.state(&found, &story, &told, what)?;
                }
            }
        }
    }
    Ok(())
}

/// The creation is cut at every other operation, every prefix of the names, data lost or kept; then its recovery.
pub(super) fn creation(count: &mut Count) -> Result<(), Violation> {
    let mut story = Story::six(false)?;
    story.batches.truncate(1);
    for operation in (0..story.created()).step_by(2) {
        let (disk, told) = story.crashed(operation);
        for names in 0..=disk.pending_names() {
            for kind in [LossKind::DropAll, LossKind::KeepAll] {
                let loss = Loss {
                    kind,
                    seed: 0,
                    names,
                };
                let first = disk.after_loss(&loss);
                if !count.is_new(&first, usize::MAX) {
                    continue;
                }
                let what = format_args!("creation cut at {operation}, {loss:?}");
                again(count, &story, &told, &first, what)?;
            }
        }
    }
    Ok(())
}

/// The power goes at every sync, and in the recovery, and in the recovery from that, and once more.
pub(super) fn thrice(count: &mut Count) -> Result<(), Violation> {
    let mut story = Story::six(true)?;
    story.batches.truncate(1);
    for operation in syncs(&story.kinds()) {
        let (disk, told) = story.crashed(operation);
        if !told.created {
            continue;
        }
        for kind in [LossKind::DropSubset, LossKind::Sectors, LossKind::KeepAll] {
            let loss = Loss {
                kind,
                seed: operation as u64,
                names: disk.pending_names(),
            };
            deeper(count, &story, &told, &disk.after_loss(&loss), DEPTH)?;
        }
    }
    Ok(())
}

/// Each fifth operation of a recovery loses the power; a different kind of loss each time.
fn deeper(
    count: &mut Count,
    story: &Story,
    told: &Told,
    first: &CrashDisk,
    depth: usize,
) -> Result<(), Violation> {
    let Some(depth) = depth.checked_sub(1) else {
        return Ok(());
    };
    let undisturbed = first.settled();
    recover(&undisturbed, story, told)?;
    for second in (depth as u64..undisturbed.operations()).step_by(5) {
        let disk = first.settled();
        disk.crash_at(second);
        // It fails, or the power went only while it was closed.
        drop(recover(&disk, story, told));
        let at = (second as usize + depth) % LossKind::ALL.len();
        let loss = Loss {
            kind: LossKind::ALL[at],
            seed: second,
            names: disk.pending_names(),
        };
        let found = disk.after_loss(&loss);
        // Judging goes on with what it is given.
        let next = found.settled();
        let seen = count.judged();
        let what = format_args!("{depth} recoveries from the end, operation {second}, {loss:?}");
        count.state(&found, story, told, what)?;
        if count.judged() > seen {
            deeper(count, story, told, &next, depth)?;
        }
    }
    Ok(())
}

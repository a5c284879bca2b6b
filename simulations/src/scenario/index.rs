//! Scenarios with an index that is written after each append, and with the creation of the store.
//!
//! Invariant: as of all scenarios; the index may cost replay time and nothing else. Called by the table.

use super::{Count, Story, all, edges, syncs};
use crate::crash::{HOT_LOG, INDEX, Violation};
use crate::disk::Survival;

/// Subsets of the index's writes that are drawn per sync, beside the edges.
const DRAWN: usize = 24;

/// A crash at every operation from the creation on, with every prefix of the name changes, log and index kept or lost.
pub(super) fn every_operation(count: &mut Count) -> Result<(), Violation> {
    let story = Story::six(true)?;
    for operation in 0..=story.kinds().len() {
        let (disk, told) = story.crashed(operation);
        for names in 0..=disk.pending_names() {
            for (mask, others) in [(0, false), (u64::MAX, true), (u64::MAX, false), (0, true)] {
                let survival = Survival {
                    mask,
                    torn: None,
                    others,
                    names,
                };
                let found = disk.after_power_loss(HOT_LOG, &survival);
                count.state(
                    &found,
                    &story,
                    &told,
                    format_args!(
                        "operation {operation}, {names} names, log {mask:b}, others {others}"
                    ),
                )?;
            }
        }
    }
    Ok(())
}

/// At every sync: subsets of the index's unsynced writes, the edges and some that are drawn.
pub(super) fn subsets(count: &mut Count) -> Result<(), Violation> {
    let story = Story::six(true)?;
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    for operation in syncs(&story.kinds()) {
        let (disk, told) = story.crashed(operation);
        let pending = disk.pending(INDEX);
        count.most_pending = count.most_pending.max(pending);
        if !told.created || pending == 0 {
            continue;
        }
        let drawn = (0..DRAWN).map(|_| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seed >> 20 & all(pending)
        });
        for mask in edges(pending).into_iter().chain(drawn).collect::<Vec<_>>() {
            let survival = Survival {
                mask,
                ..Survival::default()
            };
            let found = disk.after_power_loss(INDEX, &survival);
            count.state(
                &found,
                &story,
                &told,
                format_args!("operation {operation}, index writes {mask:b}"),
            )?;
        }
    }
    Ok(())
}

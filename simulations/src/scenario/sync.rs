//! Scenarios in which a sync fails, the store goes on, acknowledges more, and only then the power goes.
//!
//! Invariant: as of all scenarios; what was acknowledged after the failed sync counts like everything else. The system
//! keeps the unsynced pages and calls them clean, or throws them away. Called by the table.

use super::{Count, Story, edges, log_writes, pending, subsets, syncs};
use crate::crash::{HOT_LOG, Told, Violation, drive_on};
use crate::disk::{CrashDisk, Failure, Kind, Survival};

/// A batch that the failed sync denied is handed in once more.
const TRIES: usize = 2;

const FAILURES: [Failure; 2] = [Failure::Device, Failure::Reverting];

/// One failed sync and then, if at all, the end of the power.
struct Failed {
    at: usize,
    how: Failure,
}

impl Failed {
    fn run(&self, story: &Story, crash: Option<usize>) -> (CrashDisk, Told) {
        let disk = CrashDisk::new();
        disk.fail_at(self.at as u64, self.how);
        if let Some(operation) = crash {
            disk.crash_at(operation as u64);
        }
        let (told, ledger) = drive_on(
            &disk,
            &story.options,
            &story.batches,
            TRIES,
            story.between(),
        );
        drop(ledger);
        (disk, told)
    }

    /// The operations of the disturbed story. Everything must be acknowledged in the end: the store goes on.
    fn kinds(&self, story: &Story) -> Result<Vec<Kind>, Violation> {
        let (disk, told) = self.run(story, None);
        match told.batches == story.batches.len() {
            true => Ok(disk.kinds()),
            false => Err(Violation(format!(
                "{self}: the store did not go on, {} batches were acknowledged",
                told.batches
            ))),
        }
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "sync {} failed ({:?})", self.at, self.how)
    }
}

/// The syncs of the undisturbed story after its creation, each failing in both ways.
fn failures(story: &Story) -> Vec<Failed> {
    let created = story.first(0);
    let (created, kinds) = (created.kinds().len(), story.kinds());
    let syncs = (created..kinds.len()).filter(|at| kinds[*at] == Kind::Sync);
    syncs
        .flat_map(|at| FAILURES.map(|how| Failed { at, how }))
        .collect()
}

/// Every sync of six appends fails in both ways; then the power goes at every later operation, the cure's own among
/// them, with all prefixes of the name changes and the log's writes lost or kept, at syncs with more of their subsets.
pub(super) fn goes_on(count: &mut Count) -> Result<(), Violation> {
    let story = &Story::six(false)?;
    for failed in failures(story) {
        let kinds = failed.kinds(story)?;
        for operation in failed.at + 1..=kinds.len() {
            let (disk, told) = failed.run(story, Some(operation));
            let sync = matches!(kinds.get(operation), Some(Kind::Sync));
            let few = [0, u64::MAX].into();
            let masks = if sync {
                edges(pending(&disk, count))
            } else {
                few
            };
            for (names, mask) in (0..=disk.pending_names())
                .flat_map(|names| masks.iter().map(move |mask| (names, *mask)))
            {
                let survival = Survival {
                    names,
                    others: mask == u64::MAX,
                    ..log_writes(mask)
                };
                let found = disk.after_power_loss(HOT_LOG, &survival);
                count.state(
                    &found,
                    story,
                    &told,
                    format_args!(
                        "{failed}, power lost at operation {operation}, {names} names, writes {mask:b}"
                    ),
                )?;
            }
        }
    }
    Ok(())
}

/// A sync of the third append fails in both ways; then at every sync of the append after it and at the end: every
/// subset of the log's unsynced writes.
pub(super) fn every_subset(count: &mut Count) -> Result<(), Violation> {
    let story = Story::six(false)?;
    let failures = failures(&story);
    let middle = failures.len() / FAILURES.len() / 2 * FAILURES.len();
    for failed in &failures[middle..middle + FAILURES.len()] {
        let kinds = failed.kinds(&story)?;
        let later: Vec<usize> = syncs(&kinds).filter(|at| *at > failed.at).collect();
        let near = later.iter().take(SYNCS_AFTER).chain(later.last());
        for operation in near.copied().chain([kinds.len()]) {
            let (disk, told) = failed.run(&story, Some(operation));
            for mask in subsets(pending(&disk, count))? {
                let survival = Survival {
                    names: disk.pending_names(),
                    ..log_writes(mask)
                };
                let found = disk.after_power_loss(HOT_LOG, &survival);
                count.state(
                    &found,
                    &story,
                    &told,
                    format_args!("{failed}, power lost at operation {operation}, writes {mask:b}"),
                )?;
            }
        }
    }
    Ok(())
}

/// Syncs after the failed one that lose the power in turn: those of the cure, and of the commit that is tried again.
const SYNCS_AFTER: usize = 8;

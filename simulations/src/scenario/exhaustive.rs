//! Everything that one commit can leave: all subsets of its unsynced writes, each write torn, and a crash at every
//! operation of the recovery from that.
//!
//! Invariant: nothing is drawn and nothing left out but this: a torn write is cut in its middle, and of what a cut
//! recovery left unsynced all is lost or all is kept. Called by the table.

use super::recovery::{self, recover};
use super::{Count, EXHAUSTIVE, Scenario, Story, syncs};
use crate::crash::{HOT_LOG, Told, Violation};
use crate::disk::{CrashDisk, Failure, Survival};
use crate::fault::Fault;
use crate::script::Script;

const FAULTS: &[Fault] = &[
    Fault::DropAll,
    Fault::KeepAll,
    Fault::DropSubset,
    Fault::KeepOne,
    Fault::DropOne,
    Fault::Prefix,
    Fault::ByteTear,
    Fault::NamesLost,
    Fault::CrashInRecovery,
];

macro_rules! scenarios {
    ($($name:literal $what:literal $story:expr;)*) => {
        /// The exhaustive scenarios: too many states for a build without optimization.
        pub const ALL: &[Scenario] = &[$(Scenario {
            name: $name,
            what: concat!($what, " All subsets, each write torn beside all subsets of the others, every operation of the recovery."),
            faults: FAULTS,
            work: |count| last_commit(count, &($story)?),
        },)*];
    };
}

scenarios! {
    "all-of-first-append" "The first append of a store." told(1, 400);
    "all-of-second-append" "The second append." told(2, 400);
    "all-in-a-new-segment" "An append into a segment that a roll-over began." rolled(2);
    "all-in-a-third-segment" "An append into the third segment." rolled(3);
    "all-after-a-failed-sync" "An append behind one whose first sync failed, pages kept." failed(Failure::Device, 0);
    "all-of-second-run" "An append that opens another run." told(4, 400);
    "all-of-last-append" "The last of six appends, which ends a run." told(6, 400);
    "all-of-spending" "An append that posts to an account." told(3, 400);
    "all-of-small-events" "A small event behind small events." told(5, 0);
    "all-of-page-sized-events" "An event larger than a page." told(2, 5_000);
    "all-of-large-events" "An event of several pages." told(2, 20_000);
    "all-of-a-pair" "Two appends in one commit." together(2);
    "all-of-a-triple" "Three appends in one commit." together(3);
    "all-of-a-long-log" "An append behind thirty others." long(30);
    "all-of-a-longer-log" "An append behind eighty others." long(80);
    "all-behind-an-index" "An append behind a written index." flushed(2);
    "all-behind-two-indexes" "An append behind an index that was written twice." flushed(3);
    "all-after-a-reverted-sync" "An append behind one whose first sync failed, pages thrown away." failed(Failure::Reverting, 0);
    "all-after-a-second-failed-sync" "An append behind one whose second sync failed, pages kept." failed(Failure::Device, 1);
    "all-after-a-second-reverted-sync" "An append behind one whose second sync failed, pages thrown away." failed(Failure::Reverting, 1);
}

/// The first so many of six appends, with so many bytes of filling.
fn told(appends: usize, filling: usize) -> Result<Story, Violation> {
    let mut story = Story::six_filled(false, filling)?;
    story.batches.truncate(appends);
    Ok(story)
}

/// One append, then so many in one commit.
fn together(appends: usize) -> Result<Story, Violation> {
    let mut story = Story::six(false)?;
    let mut batches = std::mem::take(&mut story.batches).into_iter();
    let first = batches.by_ref().take(1).collect::<Vec<_>>();
    let last = batches.take(appends).flatten().collect();
    story.batches = first.into_iter().chain([last]).collect();
    Ok(story)
}

/// So many notes behind the start of a run.
fn long(appends: usize) -> Result<Story, Violation> {
    let mut story = Story::six(false)?;
    let mut script = Script::new("mission")?;
    script.filling = 200;
    story.batches = vec![vec![script.start_run("one")?]];
    for _ in 0..appends {
        story.batches.push(vec![script.note("one")?]);
    }
    Ok(story)
}

/// So many appends, each behind a written index.
fn flushed(appends: usize) -> Result<Story, Violation> {
    let mut story = Story::six(true)?;
    story.batches.truncate(appends);
    story.last_flush = false;
    Ok(story)
}

/// So many segments.
fn rolled(segments: usize) -> Result<Story, Violation> {
    let mut story = Story::rolling(segments)?;
    story.last_flush = false;
    Ok(story)
}

/// The second of three appends finds a sync failing, is tried again, and the third follows.
fn failed(failure: Failure, sync: usize) -> Result<Story, Violation> {
    let mut story = Story::six(false)?;
    let first = story.first(1).length();
    let second = story.first(2).kinds();
    let at = syncs(&second).filter(|at| *at >= first).nth(sync);
    let at = at.ok_or_else(|| Violation("expected a sync in a commit".to_owned()))?;
    story.batches.truncate(3);
    story.fails = Some((at as u64, failure));
    Ok(story)
}

/// At every sync of the last commit: everything that it can leave.
fn last_commit(count: &mut Count, story: &Story) -> Result<(), Violation> {
    let before = story.first(story.batches.len() - 1).length();
    let end = story.length();
    let kinds = story.kinds();
    for operation in syncs(&kinds)
        .filter(|at| (before..end).contains(at))
        .chain([end])
    {
        let (disk, told) = story.crashed(operation);
        let hot = hot(&disk);
        let pending = disk.pending(&hot);
        count.most_pending = count.most_pending.max(pending);
        if pending > EXHAUSTIVE {
            let what = format!("{pending} pending writes are too many to try all subsets");
            return Err(Violation(what));
        }
        for names in 0..=disk.pending_names() {
            for mask in 0..=super::all(pending) {
                let whole = Survival {
                    mask,
                    names,
                    ..Survival::default()
                };
                state(count, story, &told, &disk, &hot, whole)?;
                for torn in (0..pending).filter(|at| mask >> at & 1 == 0) {
                    let cut = disk.pending_len(&hot, torn) / 2;
                    if cut > 0 {
                        let torn = Survival {
                            torn: Some((torn, cut)),
                            ..whole
                        };
                        state(count, story, &told, &disk, &hot, torn)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The segment that is written to.
fn hot(disk: &CrashDisk) -> String {
    let names = disk.names().into_iter();
    let segments = names.filter(|name| name.starts_with("log-") && name.ends_with(".redb"));
    segments.max().unwrap_or_else(|| HOT_LOG.to_owned())
}

/// One outcome, judged; if it is new, then every operation of its recovery.
fn state(
    count: &mut Count,
    story: &Story,
    told: &Told,
    disk: &CrashDisk,
    hot: &str,
    survival: Survival,
) -> Result<(), Violation> {
    let first = disk.after_power_loss(hot, &survival);
    let what = format_args!("{survival:?}");
    if !count.fresh(&first, story, told, what)? {
        return Ok(());
    }
    let undisturbed = first.settled();
    recover(&undisturbed, story, told)?;
    for second in 0..undisturbed.operations() {
        let again = first.settled();
        again.crash_at(second);
        // It fails, or the power went only while it was closed.
        drop(recover(&again, story, told));
        for kept in [false, true] {
            let survival = recovery::second(&again, kept);
            let found = again.after_power_loss(hot, &survival);
            count.state(
                &found,
                story,
                told,
                format_args!("{what}, recovery operation {second}, kept {kept}"),
            )?;
        }
    }
    Ok(())
}

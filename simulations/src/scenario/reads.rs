//! Scenarios in which a read fails while the store opens, and in which the disk lies to a store at work.
//!
//! Invariant: a failed read costs an open at most, never an event, and an open store reads on; after a lie the store says so, or its log is the
//! checkpoint's as far as it goes. Called by the table.

use std::sync::Arc;

use praxis_journal::Ledger;

use super::damage::{Found, found};
use super::{Count, Story};
use crate::crash::{Told, Violation, drive};
use crate::disk::{CrashDisk, Failure, Kind, Loss, LossKind, Strike};

/// The most operations of a kind that a strike hits in turn.
const MOST: u64 = 400;

/// What a loss of power leaves after a read that failed.
const LEFT: [LossKind; 2] = [LossKind::DropAll, LossKind::KeepAll];

/// Each read of an open, of a verification and of an index write fails.
pub(super) fn error(count: &mut Count) -> Result<(), Violation> {
    failing(count, Strike::ReadError)
}

/// Each such read ends early.
pub(super) fn short(count: &mut Count) -> Result<(), Violation> {
    failing(count, Strike::ShortRead)
}

fn failing(count: &mut Count, strike: Strike) -> Result<(), Violation> {
    for flush in [false, true] {
        let mut story = Story::six(flush)?;
        story.batches.truncate(3);
        let whole = CrashDisk::new();
        let (told, ledger) = drive(&whole, &story.options, &story.batches, story.between());
        // The power goes with the store open, so that opening has to repair.
        drop(ledger);
        let whole = whole.after_loss(&all());
        for nth in 0..MOST {
            let disk = whole.settled();
            disk.arm_nth(nth, strike);
            let struck = opened(&disk, &story, &told)
                .map_err(|Violation(why)| Violation(format!("{strike:?} {nth}: {why}")))?;
            if !struck {
                break;
            }
            for kind in LEFT {
                let loss = Loss { kind, ..all() };
                let found = disk.after_loss(&loss);
                let what = format_args!("{strike:?} {nth}, {loss:?}");
                count.state(&found, &story, &told, what)?;
            }
        }
    }
    Ok(())
}

/// Opens, verifies and writes the index, whatever fails; a store that opened for writing has everything, and reads it
/// without being opened again. The answer is whether the read that was to fail was reached.
fn opened(disk: &CrashDisk, story: &Story, told: &Told) -> Result<bool, Violation> {
    let Ok(mut ledger) = Ledger::open(Arc::new(disk.clone()), &story.options) else {
        return Ok(disk.take_struck());
    };
    let (found, kept) = (ledger.view().sequence(), told.acknowledged.len() as u64);
    if ledger.read_only().is_some() {
        return Ok(disk.take_struck());
    }
    if found != kept {
        return Err(Violation(format!(
            "opened with {found} of {kept} events after a read that failed"
        )));
    }
    reads_on(disk, &mut ledger, kept)
}

/// Each write fails, so that the log or the index is opened again and nothing of it is in memory; then each read of what
/// the open store does next fails.
pub(super) fn after_failure(count: &mut Count) -> Result<(), Violation> {
    // Large events: each on pages of its own.
    let story = Story::six_filled(true, 9_000)?;
    let mut met = 0;
    for at in failing_writes(&story) {
        for strike in [Strike::ReadError, Strike::ShortRead] {
            for nth in 0..MOST {
                let disk = CrashDisk::new();
                disk.fail_at(at as u64, Failure::Device);
                let (told, ledger) = drive(&disk, &story.options, &story.batches, story.between());
                let Some(mut ledger) = ledger.filter(|ledger| ledger.read_only().is_none()) else {
                    let what = format!("the store does not go on after write {at} failed");
                    return Err(Violation(what));
                };
                disk.arm_nth(nth, strike);
                let what = format!("write {at}, {strike:?} {nth}");
                let struck = reads_on(&disk, &mut ledger, told.acknowledged.len() as u64)
                    .map_err(|Violation(why)| Violation(format!("{what}: {why}")))?;
                if !struck {
                    break;
                }
                met += 1;
                drop(ledger);
                let found = disk.after_loss(&all());
                count.state(&found, &story, &told, format_args!("{what}"))?;
            }
        }
    }
    match met {
        0 => Err(Violation("no read was met".to_owned())),
        _ => Ok(()),
    }
}

fn failing_writes(story: &Story) -> impl Iterator<Item = usize> {
    let kinds = story.kinds();
    (story.created()..kinds.len()).filter(move |at| kinds[*at] == Kind::Write)
}

/// Verifies and writes the index, which may meet the strike and say so; then everything reads again, without the store
/// being opened anew. The answer is whether the strike was met.
fn reads_on(disk: &CrashDisk, ledger: &mut Ledger, kept: u64) -> Result<bool, Violation> {
    drop(ledger.verify(&mut |_, _| ()));
    drop(ledger.flush_index());
    let struck = disk.take_struck();
    for sequence in 1..=kept {
        if !matches!(ledger.read(sequence), Ok(Some(_))) {
            let what = format!("event {sequence} is not read after a read that failed");
            return Err(Violation(what));
        }
    }
    if struck {
        drop(ledger.flush_index());
        let report = ledger.verify(&mut |_, _| ());
        let report = report.map_err(|error| Violation(format!("verification: {error}")))?;
        if let Some(finding) = report.findings.first() {
            let (code, what) = (finding.code, &finding.what);
            let what = format!("verification after a read that failed: {code:?} {what}");
            return Err(Violation(what));
        }
    }
    Ok(struck)
}

fn all() -> Loss {
    Loss {
        kind: LossKind::KeepAll,
        seed: 0,
        names: usize::MAX,
    }
}

/// From each sync on, syncs lie.
pub(super) fn lying_sync(count: &mut Count) -> Result<(), Violation> {
    lies(count, Strike::LyingSync)
}

/// Each write lands in the next sector.
pub(super) fn misdirected(count: &mut Count) -> Result<(), Violation> {
    lies(count, Strike::MisdirectedWrite)
}

/// Each read of a store at work, and of an open, gives what stood there before the last sync.
pub(super) fn stale(count: &mut Count) -> Result<(), Violation> {
    lies(count, Strike::StaleRead)?;
    let story = Story::six(true)?;
    let whole = CrashDisk::new();
    let (told, ledger) = drive(&whole, &story.options, &story.batches, story.between());
    drop(ledger);
    let whole = whole.settled();
    for nth in 0..MOST {
        let disk = whole.settled();
        disk.arm_nth(nth, Strike::StaleRead);
        count.damaged(&disk);
        told_or_kept(&disk, &story, &told, Strike::StaleRead)
            .map_err(|Violation(why)| Violation(format!("stale read {nth} of an open: {why}")))?;
        if !disk.take_struck() {
            return Ok(());
        }
        // It was the read that was stale, and not what is there.
        count.state(&disk, &story, &told, format_args!("after stale read {nth}"))?;
    }
    Ok(())
}

fn lies(count: &mut Count, strike: Strike) -> Result<(), Violation> {
    let mut story = Story::six(true)?;
    story.batches.truncate(4);
    for nth in 0..MOST {
        let disk = CrashDisk::new();
        disk.arm_nth(nth, strike);
        let (told, ledger) = drive(&disk, &story.options, &story.batches, story.between());
        drop(ledger);
        if !disk.take_struck() {
            return Ok(());
        }
        for kind in LEFT {
            let loss = Loss { kind, ..all() };
            let after = disk.after_loss(&loss);
            count.damaged(&after);
            told_or_kept(&after, &story, &told, strike).map_err(|Violation(why)| {
                Violation(format!("{strike:?} {nth}, {loss:?}: {why}"))
            })?;
        }
    }
    Ok(())
}

/// What looks sound is the checkpoint's log; a lying sync may have taken its end, which the checkpoint shows.
fn told_or_kept(
    disk: &CrashDisk,
    story: &Story,
    told: &Told,
    strike: Strike,
) -> Result<(), Violation> {
    let Found::Sound(log) = found(disk, story) else {
        return Ok(());
    };
    let kept = log.len().min(told.acknowledged.len());
    let shorter = kept < told.acknowledged.len() && strike != Strike::LyingSync;
    let rest = &log[kept..];
    let alien = !rest.is_empty() && rest != told.in_flight;
    match log[..kept] != told.acknowledged[..kept] || shorter || alien {
        true => Err(Violation(format!(
            "{} of {} events look sound and are not what was acknowledged",
            log.len(),
            told.acknowledged.len()
        ))),
        false => Ok(()),
    }
}

/// The engine panics in each operation of two appends and their index writes; then the power goes.
pub(super) fn panics(count: &mut Count) -> Result<(), Violation> {
    let mut story = Story::six(true)?;
    story.batches.truncate(2);
    for at in story.created()..story.kinds().len() {
        let disk = CrashDisk::new();
        disk.fail_at(at as u64, Failure::Panic);
        let (told, ledger) = drive(&disk, &story.options, &story.batches, story.between());
        drop(ledger);
        for names in 0..=disk.pending_names() {
            for kind in LossKind::ALL {
                let loss = Loss {
                    kind,
                    seed: at as u64,
                    names,
                };
                let found = disk.after_loss(&loss);
                let what = format_args!("panic in operation {at}, {loss:?}");
                count.state(&found, &story, &told, what)?;
            }
        }
    }
    Ok(())
}

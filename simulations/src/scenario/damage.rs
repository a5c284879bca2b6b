//! Scenarios with damage at rest, where detection is what is required.
//!
//! Invariant: a damaged store says so (it does not open, opens for reading only, or verification finds it), or its log
//! equals the checkpoint that was kept outside. Called by the table.

use std::sync::Arc;

use aiws::digest::Digest;
use praxis_journal::Ledger;

use super::{Count, Story};
use crate::crash::{HOT_LOG, INDEX, Violation, drive, sound};
use crate::disk::CrashDisk;

/// Places at which a bit is flipped, spread over the file.
const PLACES: usize = 257;

/// What was found of a damaged store.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It said so when it was opened.
    Told,
    /// It opened for writing, and only a verification said so.
    Verified,
    /// It looks sound, and this is its log.
    Sound(Vec<Digest>),
}

pub(super) fn found(disk: &CrashDisk, story: &Story) -> Found {
    let Ok(ledger) = Ledger::open(Arc::new(disk.clone()), &story.options) else {
        return Found::Told;
    };
    if ledger.read_only().is_some() {
        return Found::Told;
    }
    if sound(&ledger).is_err() {
        return Found::Verified;
    }
    let read = |sequence| ledger.read(sequence).ok().flatten().map(|it| it.hash);
    let log: Option<Vec<Digest>> = (1..=ledger.view().sequence()).map(read).collect();
    log.map_or(Found::Verified, Found::Sound)
}

/// The whole store, its checkpoint, and log and index as they were after each batch.
type Whole = (CrashDisk, Vec<Digest>, Vec<(Vec<u8>, Vec<u8>)>);

fn whole(story: &Story) -> Whole {
    let disk = CrashDisk::new();
    let mut images = Vec::new();
    let (told, ledger) = drive(&disk, &story.options, &story.batches, |_, ledger| {
        // An image is taken of what it wrote; a failure leaves an older one.
        drop(ledger.flush_index());
        images.extend(disk.bytes(HOT_LOG).zip(disk.bytes(INDEX)));
    });
    drop(ledger);
    (disk.settled(), told.acknowledged, images)
}

fn flips(count: &mut Count, name: &str) -> Result<(), Violation> {
    let story = Story::six(true)?;
    let (disk, checkpoint, _) = whole(&story);
    let bytes = disk.bytes(name).unwrap_or_default();
    for place in 0..PLACES {
        let (at, bit) = (place * bytes.len() / PLACES + place % 61, place % 8);
        let mut damaged = bytes.clone();
        let Some(byte) = damaged.get_mut(at) else {
            continue;
        };
        *byte ^= 1 << bit;
        let disk = disk.settled();
        disk.put(name, damaged);
        count.damaged(&disk);
        match found(&disk, &story) {
            Found::Sound(log) if log != checkpoint => {
                return Err(Violation(format!(
                    "{name}: bit {bit} of byte {at} changed the log, and nothing says so"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A bit of the log flips, at places spread over the file.
pub(super) fn flip_log(count: &mut Count) -> Result<(), Violation> {
    flips(count, HOT_LOG)
}

/// A bit of the index flips, at places spread over the file.
pub(super) fn flip_index(count: &mut Count) -> Result<(), Violation> {
    flips(count, INDEX)
}

/// Log and index become what they were after any batch, each by itself: an older log under a newer index is told, an
/// older index costs nothing, and both together are seen against the checkpoint alone.
pub(super) fn rollback(count: &mut Count) -> Result<(), Violation> {
    let story = Story::six(true)?;
    let (disk, checkpoint, images) = whole(&story);
    for (log_at, (log, _)) in images.iter().enumerate() {
        for (index_at, (_, index)) in images.iter().enumerate() {
            let disk = disk.settled();
            disk.put(HOT_LOG, log.clone());
            disk.put(INDEX, index.clone());
            count.damaged(&disk);
            let found = found(&disk, &story);
            let kept: usize = story.batches[..=log_at]
                .iter()
                .flatten()
                .map(|it| it.sealed.len())
                .sum();
            let expected = match log_at < index_at {
                true => Found::Told,
                false => Found::Sound(checkpoint[..kept].to_vec()),
            };
            if found != expected {
                return Err(Violation(format!(
                    "log of batch {log_at}, index of batch {index_at}: expected {expected:?}, found {found:?}"
                )));
            }
        }
    }
    Ok(())
}

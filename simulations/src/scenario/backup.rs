//! The scenario of a backup: a copy of the store is made on another disk, and the power goes.
//!
//! Invariant: what opens as a store holds every event of the original; what was cut off is none, and the next copy takes
//! its place; the original is as it was. Called by the table.

use std::sync::Arc;

use aiws::digest::Digest;
use praxis_journal::{Ledger, StoreError};

use super::{Count, Story};
use crate::crash::{Violation, sound};
use crate::disk::{CrashDisk, Loss, LossKind};

/// At every operation of a copy: each kind of loss with every prefix of the names; then the copy is made once more.
pub(super) fn copy(count: &mut Count) -> Result<(), Violation> {
    let story = Story::six(true)?;
    let (_, ledger) = story.tell(&CrashDisk::new());
    let ledger = ledger.ok_or_else(|| Violation("the story cannot be told".to_owned()))?;
    let hashes = hashes(&ledger)?;
    let whole = CrashDisk::new();
    ledger.copy_onto(Arc::new(whole.clone()), &story.options)?;
    for operation in 0..=whole.operations() {
        let disk = CrashDisk::new();
        disk.crash_at(operation);
        let copied = ledger.copy_onto(Arc::new(disk.clone()), &story.options);
        for names in 0..=disk.pending_names() {
            for kind in LossKind::ALL {
                let loss = Loss {
                    kind,
                    seed: operation,
                    names,
                };
                let found = disk.after_loss(&loss);
                let at = |why: String| Violation(format!("operation {operation}, {loss:?}: {why}"));
                if !count.is_new(&found, usize::from(copied.is_ok())) {
                    continue;
                }
                match opened(&found, &story, &hashes) {
                    Ok(()) => {}
                    Err(Found::NoStore) if copied.is_err() => {
                        let again = found.settled();
                        ledger
                            .copy_onto(Arc::new(again.clone()), &story.options)
                            .map_err(|error| at(format!("a second copy: {error}")))?;
                        opened(&again, &story, &hashes)
                            .map_err(|found| at(format!("{found:?}")))?;
                    }
                    Err(found) => return Err(at(format!("{found:?}"))),
                }
            }
        }
    }
    sound(&ledger)
}

#[derive(Debug)]
#[expect(dead_code, reason = "a violation shows it")]
enum Found {
    NoStore,
    Broken(String),
}

impl From<Violation> for Found {
    fn from(Violation(why): Violation) -> Self {
        Self::Broken(why)
    }
}

fn opened(disk: &CrashDisk, story: &Story, wanted: &[Digest]) -> Result<(), Found> {
    let ledger = match Ledger::open(Arc::new(disk.settled()), &story.options) {
        Ok(ledger) => ledger,
        Err(StoreError::NotAStore { .. }) => return Err(Found::NoStore),
        Err(error) => return Err(Found::Broken(error.to_string())),
    };
    sound(&ledger)?;
    let found = hashes(&ledger)?;
    match found == wanted {
        true => Ok(()),
        false => Err(Found::Broken(format!(
            "{} of {} events",
            found.len(),
            wanted.len()
        ))),
    }
}

fn hashes(ledger: &Ledger) -> Result<Vec<Digest>, Violation> {
    let mut all = Vec::new();
    for sequence in 1..=ledger.view().sequence() {
        let sealed = ledger.read(sequence)?;
        all.extend(sealed.map(|sealed| sealed.hash));
    }
    Ok(all)
}

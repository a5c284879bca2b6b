//! The Merkle tree of the log itself, read event by event: heads that were recomputed, and proofs.
//!
//! Invariant: every hash is that of the bytes that are stored, and the sequence has no gap; nothing is taken from the index.
//! Called by opening, by the journal's checked head, and by the export of one mission.

use aiws::digest::Digest;
use aiws::id::MissionId;
use praxis_journal_format::Frame;
use praxis_journal_format::tree::{CompactRange, Tree, TreeHead};

use super::sealed;
use crate::error::StoreError;
use crate::log::Log;
use crate::view::View;

impl View {
    /// The head of the log: how many events, and the root of the tree over them. It comes from the index and from what was
    /// folded since; `Journal::checked_head` is what the log itself gives.
    pub fn tree_head(&self) -> TreeHead {
        self.tree.head()
    }
}

/// Calls `each` with the hash of every event up to a sequence, in order.
pub(crate) fn each_hash(
    log: &Log,
    end: u64,
    mut each: impl FnMut(&Digest),
) -> Result<(), StoreError> {
    each_frame(log, end, |sequence, bytes| {
        let frame = Frame::decode(bytes).map_err(|cause| StoreError::event(sequence, cause))?;
        each(&frame.hash);
        Ok(())
    })
}

/// The head that the log gives up to the view's cursor, which has to be the view's own.
pub(crate) fn checked_head(log: &Log, view: &View) -> Result<TreeHead, StoreError> {
    let mut range = CompactRange::default();
    each_hash(log, view.sequence(), |hash| range.push(hash.as_bytes()))?;
    match range == view.tree {
        true => Ok(range.head()),
        false => Err(StoreError::Internal {
            what: format!(
                "the tree in memory has root {}, that of the log has {}",
                view.tree.root(),
                range.root()
            ),
        }),
    }
}

/// The whole tree up to a sequence, and where the events of a mission are.
pub(crate) fn of_mission(
    log: &Log,
    end: u64,
    mission: &MissionId,
) -> Result<(Tree, Vec<u64>), StoreError> {
    let (mut tree, mut sequences) = (Tree::default(), Vec::new());
    each_frame(log, end, |sequence, bytes| {
        let (sealed, _) = sealed(sequence, bytes)?;
        tree.push(sealed.hash.as_bytes());
        if sealed.event.subject.mission_id == *mission {
            sequences.push(sequence);
        }
        Ok(())
    })?;
    Ok((tree, sequences))
}

fn each_frame(
    log: &Log,
    end: u64,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut next = 1;
    while next <= end {
        let start = next;
        for (sequence, bytes) in log.chunk(start)? {
            if sequence != next || next > end {
                break;
            }
            each(sequence, &bytes)?;
            next += 1;
        }
        if next == start {
            return Err(StoreError::Corrupt {
                place: format!("sequence {next}"),
                what: "the event is missing".to_owned(),
            });
        }
    }
    Ok(())
}

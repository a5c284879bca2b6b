//! Exports of what is committed: everything, or one mission with proofs; and the head of the log as the log gives it.
//!
//! Invariant: an export ends in its trailer only if every event in it was read, checked and written. A part of the journal.

use std::io::Write;

use aiws::error::Code;
use aiws::id::MissionId;
use praxis_journal_format::FormatError;
use praxis_journal_format::export::{Trailer, Writer as ExportWriter};
use praxis_journal_format::proofs::Writer as ProofWriter;
use praxis_journal_format::tree::TreeHead;

use super::Journal;
use crate::error::StoreError;
use crate::ledger::tree;

impl Journal {
    /// Writes an export of what is committed now (`FORMAT.md` of the journal format).
    ///
    /// # Errors
    /// [`StoreError::Io`] from `out`, [`StoreError::Corrupt`], [`StoreError::ChainBroken`] or [`StoreError::TailLost`]
    /// for a damaged log, also where the view already ends before the damage: no trailer is written then.
    pub fn export(&self, out: &mut dyn Write) -> Result<Trailer, StoreError> {
        if let Some(damage) = self.view().damage() {
            return Err(damage.clone());
        }
        let mut line = Vec::new();
        let format = |cause: FormatError| StoreError::event(0, cause);
        let mut export =
            ExportWriter::begin(self.shared.store.clone(), &mut line).map_err(format)?;
        let mut failed = put(out, &line).err();
        self.scan(1, |sequence, sealed| {
            line.clear();
            let written = export
                .event(sequence, &sealed, &mut line)
                .map_err(|cause| StoreError::event(sequence, cause));
            let failure = written.and_then(|()| put(out, &line)).err();
            failed = failed.take().or(failure);
            failed.is_none()
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        line.clear();
        let trailer = export.finish(&mut line).map_err(format)?;
        put(out, &line)?;
        out.flush()
            .map_err(|cause| StoreError::io("write the export", &cause))?;
        Ok(trailer)
    }

    /// The head of the log, computed from every stored event just now, and the same as the one in memory: what a checkpoint
    /// may vouch for.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] or what the disk answered; [`StoreError::Internal`] where the two differ.
    pub fn checked_head(&self) -> Result<TreeHead, StoreError> {
        let view = self.view();
        if let Some(damage) = view.damage() {
            return Err(damage.clone());
        }
        tree::checked_head(&self.shared.log, &view)
    }

    /// Writes the events of one mission that a signed checkpoint vouches for, each with its proof (`FORMAT.md` of the journal
    /// format). Takes 64 bytes of memory for each event of the whole log.
    ///
    /// # Errors
    /// As [`Journal::export`]; [`StoreError::Checkpoint`] for a checkpoint that is not of this log as it stands.
    pub fn export_mission(
        &self,
        mission: &MissionId,
        note: &str,
        out: &mut dyn Write,
    ) -> Result<Trailer, StoreError> {
        let view = self.view();
        if let Some(damage) = view.damage() {
            return Err(damage.clone());
        }
        let (tree, sequences) = tree::of_mission(&self.shared.log, view.sequence(), mission)?;
        let store = self.shared.store.clone();
        let mut line = Vec::new();
        let mut export = ProofWriter::begin(store, mission.clone(), note, &tree, &mut line)
            .map_err(|cause| match cause {
                FormatError::Proof { sequence } if sequence > tree.size() => {
                    StoreError::Checkpoint {
                        code: Code::CheckpointAhead,
                        what: format!(
                            "it vouches for {sequence} events, the log has {}",
                            tree.size()
                        ),
                    }
                }
                cause => StoreError::Checkpoint {
                    code: cause.code(),
                    what: cause.to_string(),
                },
            })?;
        put(out, &line)?;
        let size = export.head().size;
        for sequence in sequences.into_iter().take_while(|at| *at <= size) {
            let sealed = self.read(sequence)?.ok_or_else(|| StoreError::Corrupt {
                place: format!("sequence {sequence}"),
                what: "the event is missing".to_owned(),
            })?;
            line.clear();
            export
                .event(sequence, &sealed, &mut line)
                .map_err(|cause| StoreError::event(sequence, cause))?;
            put(out, &line)?;
        }
        line.clear();
        let trailer = export
            .finish(&mut line)
            .map_err(|cause| StoreError::event(size, cause))?;
        put(out, &line)?;
        out.flush()
            .map_err(|cause| StoreError::io("write the export", &cause))?;
        Ok(trailer)
    }
}

fn put(out: &mut dyn Write, bytes: &[u8]) -> Result<(), StoreError> {
    out.write_all(bytes)
        .map_err(|cause| StoreError::io("write the export", &cause))
}

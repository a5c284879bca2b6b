//! Verification of a ledger that is held: its own log, its index, and the view that it would answer from.
//!
//! Invariant: nothing is changed, and what is found is a report and no error. Called by the simulator and by tests; the
//! journal's verification takes the same way.

use praxis_journal_format::tree::TreeHead;

use super::Ledger;
use crate::VerifyReport;
use crate::error::StoreError;
use crate::verify::Depth;

impl Ledger {
    /// Checks everything from nothing; see [`crate::verify`].
    ///
    /// # Errors
    /// Only if the log cannot be read at all; damage is reported in the report.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport, StoreError> {
        self.verify_against(&[], Depth::Projections, progress)
    }

    /// As [`Ledger::verify`], and every event is decided again from its recorded facts.
    ///
    /// # Errors
    /// As there.
    pub fn verify_deep(
        &self,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<VerifyReport, StoreError> {
        self.verify_against(&[], Depth::Decisions, progress)
    }

    /// As [`Ledger::verify`], to a depth, and compared with heads that were kept outside.
    ///
    /// # Errors
    /// As there.
    pub fn verify_against(
        &self,
        heads: &[TreeHead],
        depth: Depth,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<VerifyReport, StoreError> {
        crate::verify::run(&self.log, &self.index, &self.view, depth, heads, progress)
    }
}

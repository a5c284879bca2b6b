//! What callers propose inside commands: holds and summaries, of which the coordinator derives the rest.
//! Invariant: closed; nothing here says who opened it, what it covers or at which revision (HF-05.5, REL-8).
//! Part of the commands, read with them.

use aiws::id::{HoldId, Id, SummaryId};
use aiws::record::{Blocker, HandoffRef, HoldDecision, HoldReason, SummaryAuthor};
use serde::{Deserialize, Serialize};

/// What a caller proposes for a hold; members, opener and revision are derived (HF-05.5, REL-8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HoldProposal {
    /// The new hold.
    pub hold_id: HoldId,
    /// Its scope.
    pub scope: aiws::record::HoldScope,
    /// Why.
    pub reason: HoldReason,
    /// Who owns it.
    pub owner: Id,
    /// What blocks; each once.
    #[serde(deserialize_with = "aiws::record::fields::unique")]
    pub blockers: Vec<Blocker>,
    /// Which decisions may end it; not empty.
    #[serde(deserialize_with = "aiws::record::fields::some_unique")]
    pub allowed_decisions: Vec<HoldDecision>,
    /// What becomes of work in flight; derived where absent, and never `null`.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "aiws::record::fields::unique"
    )]
    pub stop_disposition: Vec<aiws::record::StopDisposition>,
}

/// A summary as it is sent (SUM-1).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SummaryProposal {
    /// The new summary.
    pub summary_id: SummaryId,
    /// The exact manifest that it is about.
    pub handoff: HandoffRef,
    /// Who wrote it.
    pub author: SummaryAuthor,
    /// The words.
    #[serde(deserialize_with = "aiws::record::fields::some_text")]
    pub text: String,
}

aiws::veiled! { SummaryProposal { summary_id handoff author } text; }

/// What a caller may say of a hold that a command opens of itself; the rest is derived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HoldName {
    /// The new hold.
    pub hold_id: HoldId,
    /// Who owns it.
    pub owner: Id,
}

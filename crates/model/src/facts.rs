//! Facts: everything that state and command do not determine.
//!
//! Invariant: facts come from the host alone, never from a request (HC-ENV.6, CRD-2), and what of them
//! mattered is recorded in the event. Gathered by the engine's actors, read by decide.

use std::collections::{BTreeMap, BTreeSet};

use aiws::decimal::U64;
use aiws::digest::Digest;
use aiws::id::{ActorId, EvidenceId, Id};
use aiws::record::{ActorKind, AdmissionProposal, Ref};
use serde::{Deserialize, Serialize};

use crate::account::AccountRow;
use crate::event::Gate;
use crate::register::RegisterRead;

/// What the host's authorizer and the actor found for one command (CRD-8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whether current policy allows the command.
    pub allowed: bool,
    /// The authenticated actor.
    pub actor_id: ActorId,
    /// Its kind; only the host says HUMAN.
    pub actor_kind: ActorKind,
    /// The policy revision that was evaluated.
    pub policy: Ref,
    /// The class of the decision.
    pub decision_class: String,
    /// The decision's reference; required where a human must decide.
    pub decision_ref: Option<Id>,
    /// When the authorizer answered, UTC milliseconds (CRD-3, T-30).
    pub authorized_at_ms: u64,
    /// Trusted time now, UTC milliseconds, never below the stream's last event.
    pub now_ms: u64,
    /// Material that was read and verified for this command, by digest.
    pub materials: BTreeMap<Digest, VerifiedMaterial>,
    /// Material that could not be verified, by digest.
    pub material_errors: BTreeMap<Digest, MaterialError>,
    /// Effect admissions that the host prepared, by reference (HD-03.12).
    pub admissions: BTreeMap<Id, AdmissionProposal>,
    /// Registers as read.
    pub registers: Vec<RegisterRead>,
    /// The mission's cost account as read; what a manifest quotes.
    pub account: Option<AccountRow>,
    /// Closed gates of the mission and its ancestors, as published. The run's own are in its state.
    pub outer_gates: Vec<Gate>,
    /// Evidence ids that the host confirms to exist and to be true (CRD-1).
    pub clear_evidence: BTreeSet<EvidenceId>,
    /// Whether the host's rule allows an automatic restart.
    pub restart_allowed: bool,
    /// Fingerprint of the token that a claim would hand out (T-24).
    pub claim_fingerprint: Option<Digest>,
    /// Whether the host grants authority to take over ownership (T-15).
    pub recovery_authority: bool,
    /// Whether trusted time stepped back, by more than the host tolerates, since the run had no live claim (T-29).
    pub clock_stepped: bool,
}

/// Material that was read back and verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifiedMaterial {
    /// Its size in bytes.
    pub size_bytes: U64,
}

/// Why material could not be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MaterialError {
    /// Missing, unreadable or past its retention.
    Unavailable,
    /// Its digest or size differs.
    Mismatch,
}

/// The part of the facts that an event keeps (wire form 1.7, `facts`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedFacts {
    /// When the authorizer answered.
    pub authorized_at_ms: U64,
    /// Verified material.
    pub materials: BTreeMap<Digest, VerifiedMaterial>,
    /// Material errors.
    pub material_errors: BTreeMap<Digest, MaterialError>,
    /// Effect admissions.
    pub admissions: BTreeMap<Id, AdmissionProposal>,
    /// Register reads with revisions.
    pub registers: Vec<RegisterRead>,
    /// The account as read.
    pub account: Option<AccountRow>,
    /// Confirmed evidence.
    pub clear_evidence: BTreeSet<EvidenceId>,
    /// Whether restart was allowed.
    pub restart_allowed: bool,
    /// Fingerprint of the token handed out.
    pub claim_fingerprint: Option<Digest>,
    /// Whether the host granted recovery authority.
    pub recovery_authority: bool,
}

impl Facts {
    /// What the event keeps of these facts.
    pub fn recorded(&self) -> RecordedFacts {
        RecordedFacts {
            authorized_at_ms: U64(self.authorized_at_ms),
            materials: self.materials.clone(),
            material_errors: self.material_errors.clone(),
            admissions: self.admissions.clone(),
            registers: self.registers.clone(),
            account: self.account.clone(),
            clear_evidence: self.clear_evidence.clone(),
            restart_allowed: self.restart_allowed,
            claim_fingerprint: self.claim_fingerprint,
            recovery_authority: self.recovery_authority,
        }
    }
}

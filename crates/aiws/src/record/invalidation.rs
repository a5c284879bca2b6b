//! Invalidations: a hand-off no longer counts, with who said so, why, and what hung on it.
//! Invariant: reason and evidence are always there (HC-IV.1), and what was affected is listed once each.
//! Called by the model; everything but hand-off, reason and evidence is derived there.

use serde::{Deserialize, Serialize};

use super::{HandoffRef, Record, fields};
use crate::decimal::U64;
use crate::id::{
    ActivationId, ActorId, AssessmentId, DeliveryId, EvidenceId, HoldId, InvalidationId,
};

/// The record of one invalidated hand-off (HD-05.1).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Invalidation {
    /// Its id.
    pub invalidation_id: InvalidationId,
    /// The exact manifest that no longer counts.
    pub handoff: HandoffRef,
    /// Why.
    #[serde(deserialize_with = "fields::some_text")]
    pub reason: String,
    /// What shows it; at least one.
    #[serde(deserialize_with = "fields::some_unique")]
    pub evidence: Vec<EvidenceId>,
    /// Who said so.
    pub actor_id: ActorId,
    /// The deliveries of the manifest that became invalid.
    #[serde(deserialize_with = "fields::unique")]
    pub affected_deliveries: Vec<DeliveryId>,
    /// The activations whose consumptions became invalid.
    #[serde(deserialize_with = "fields::unique")]
    pub affected_consumptions: Vec<ActivationId>,
    /// The assessments that no longer count.
    #[serde(deserialize_with = "fields::unique")]
    pub affected_assessments: Vec<AssessmentId>,
    /// The hold that gates what is downstream; none where the run has ended.
    #[serde(deserialize_with = "fields::nullable")]
    pub hold_id: Option<HoldId>,
    /// When, UTC milliseconds.
    pub at_ms: U64,
    /// At which revision of its stream.
    pub revision: U64,
}

crate::veiled! {
    Invalidation {
        invalidation_id handoff evidence actor_id affected_deliveries affected_consumptions affected_assessments hold_id
        at_ms revision
    } reason;
}

impl Record for Invalidation {}

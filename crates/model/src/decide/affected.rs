//! What hangs on a hand-off: its deliveries, the consumptions of these, and the assessments that rest on it (HD-05.1).
//!
//! Invariant: found in the ledger, never taken from a caller; an assessment of which nobody can tell what it is about
//! rests on everything that was there before it. Called by invalidateHandoff.

use std::collections::BTreeSet;

use aiws::id::{ActivationId, AssessmentId, HandoffId};
use aiws::record::{Assessment, ConsumptionState, Delivery, DeliveryState, Manifest};

use praxis_plant::{self as plant, Plant};

use crate::run::{Committed, RunState};

/// The manifest's deliveries that can still become invalid; an excluded one stays so (HD-01.T7).
pub(super) fn deliveries<'a>(
    state: &'a RunState,
    id: &'a HandoffId,
) -> impl Iterator<Item = &'a Delivery> {
    let all = state.deliveries.values().map(|delivery| &delivery.record);
    all.filter(move |record| {
        record.handoff.handoff_id == *id
            && matches!(
                record.state,
                DeliveryState::Pending | DeliveryState::Claimed | DeliveryState::Acknowledged
            )
    })
}

/// The activations that consumed a delivery of the manifest.
pub(super) fn consumptions(state: &RunState, id: &HandoffId) -> Vec<ActivationId> {
    if plant::is(Plant::InvalidationForgets) {
        return Vec::new();
    }
    let consumes = state.consumptions.values().filter(|bound| {
        let mut inputs = bound.inputs.iter();
        bound.state == ConsumptionState::Valid
            && inputs.any(|input| input.handoff.handoff_id == *id)
    });
    consumes.map(|bound| bound.activation_id.clone()).collect()
}

/// The assessments that still count and rest on the manifest: those that it cites itself, and those that were said
/// after it of something that was made of it, or of nothing that the ledger knows.
pub(super) fn assessments(state: &RunState, committed: &Committed) -> Vec<AssessmentId> {
    let reached = reached(state, &committed.manifest.handoff_id);
    let cited = |assessment: &Assessment| {
        let criteria = &committed.manifest.outcome.criteria;
        let mut evidence = criteria.iter().flat_map(|criterion| &criterion.evidence);
        evidence.any(|id| id.as_str() == assessment.assessment_id.as_str())
    };
    let rests = |assessment: &Assessment| {
        let about = named(state, assessment.subject.as_str());
        let shown = assessment.evidence.iter();
        let mut all = shown
            .flat_map(|id| named(state, id.as_str()))
            .chain(about.clone());
        about.is_empty() || all.any(|id| reached.contains(id))
    };
    let later = |assessment: &Assessment| {
        let said = state.assessed.get(&assessment.assessment_id);
        said.is_some_and(|said| *said > committed.revision)
    };
    state
        .verifications
        .iter()
        .chain(&state.acceptances)
        .filter(|assessment| assessment.invalidated.is_none())
        .filter(|assessment| cited(assessment) || (later(assessment) && rests(assessment)))
        .map(|assessment| assessment.assessment_id.clone())
        .collect()
}

/// The manifest and every manifest that was made of it.
fn reached<'a>(state: &'a RunState, id: &'a HandoffId) -> BTreeSet<&'a HandoffId> {
    let mut all: Vec<&Committed> = state.manifests.values().collect();
    // What was consumed was committed before, so one walk in that order finds everything.
    all.sort_by_key(|committed| committed.revision);
    let mut reached = BTreeSet::from([id]);
    for committed in all {
        let mut inputs = committed.manifest.inputs.iter();
        if inputs.any(|input| reached.contains(&input.handoff.handoff_id)) {
            reached.insert(&committed.manifest.handoff_id);
        }
    }
    reached
}

/// The hand-offs that a name leads to: of the hand-off itself, its checkpoint or activation, work, material, delivery.
fn named<'a>(state: &'a RunState, name: &str) -> BTreeSet<&'a HandoffId> {
    let all = state
        .manifests
        .values()
        .map(|committed| &*committed.manifest);
    let mut found: BTreeSet<&HandoffId> = all
        .filter(|manifest| is_named(manifest, name))
        .map(|manifest| &manifest.handoff_id)
        .collect();
    let delivered = state.deliveries.get(name);
    found.extend(delivered.map(|delivery| &delivery.record.handoff.handoff_id));
    found
}

fn is_named(manifest: &Manifest, name: &str) -> bool {
    let producer = &manifest.producer;
    let mut work = producer.operations.iter();
    let mut artifacts = manifest.artifacts.iter();
    manifest.handoff_id.as_str() == name
        || producer.checkpoint_id.as_str() == name
        || producer.activation_id.as_str() == name
        || work.any(|work| {
            let mut attempts = work.attempt_ids.iter();
            work.operation_id.as_str() == name || attempts.any(|id| id.as_str() == name)
        })
        || artifacts.any(|artifact| artifact.digest.to_string() == name)
}

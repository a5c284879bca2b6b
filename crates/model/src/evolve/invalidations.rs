//! Invalidations in a run's state: what no longer counts, and the record that lists it.
//!
//! Invariant: the record comes last and is whole: no delivery of the manifest is left open, and everything that it lists
//! has moved before it (HD-05.1). Receipts and effects are not touched (HD-05.2). Called by `apply`.

use std::collections::BTreeSet;

use aiws::id::{ActivationId, AssessmentId};
use aiws::record::{
    Consumption, ConsumptionState, DeliveryState as State, HoldState, Invalidated, Invalidation,
};

use super::{IllegalEvent, free, known, same};
use crate::command::{Body, InvalidateHandoff};
use crate::event::Event;
use crate::moves::{self, is_legal};
use crate::run::RunState;

pub(super) fn consumption_moved(
    state: &mut RunState,
    id: &ActivationId,
    from: ConsumptionState,
    to: ConsumptionState,
) -> Result<(), IllegalEvent> {
    let bound = known(
        "the consumption of activation",
        id,
        state.consumptions.get(id),
    )?;
    same("where the consumption moves from", bound.state, from)?;
    let legal = is_legal(moves::CONSUMPTION, from, to);
    same("whether the consumption may move so", true, legal)?;
    let moved = Consumption {
        state: to,
        ..bound.clone()
    };
    state.consumptions.insert_mut(id.clone(), moved);
    Ok(())
}

pub(super) fn assessment_invalidated(
    state: &mut RunState,
    event: &Event,
    id: &AssessmentId,
) -> Result<(), IllegalEvent> {
    let command = command(event)?;
    let mut all = state.verifications.iter_mut().chain(&mut state.acceptances);
    let own = all.find(|assessment| assessment.assessment_id == *id);
    let own = known("the assessment", id, own)?;
    same(
        "whether the assessment counts",
        None,
        own.invalidated.as_ref(),
    )?;
    own.invalidated = Some(Invalidated {
        reason: command.reason.clone(),
        evidence: command.evidence.clone(),
    });
    Ok(())
}

pub(super) fn handoff_invalidated(
    state: &mut RunState,
    event: &Event,
    record: &Invalidation,
) -> Result<(), IllegalEvent> {
    says(event, record)?;
    let id = &record.handoff.handoff_id;
    let committed = known("the hand-off", id, state.manifests.get(id))?;
    same(
        "the hand-off's digest",
        committed.digest,
        record.handoff.digest,
    )?;
    free(
        "the invalidation of hand-off",
        id,
        state.invalidations.contains_key(id),
    )?;
    deliveries(state, record)?;
    for activation in &record.affected_consumptions {
        let bound = state.consumptions.get(activation);
        let bound = known("the consumption of activation", activation, bound)?;
        same(
            "the state of a listed consumption",
            ConsumptionState::Invalidated,
            bound.state,
        )?;
    }
    let gone: BTreeSet<&AssessmentId> = state
        .verifications
        .iter()
        .chain(&state.acceptances)
        .filter(|assessment| assessment.invalidated.is_some())
        .map(|assessment| &assessment.assessment_id)
        .collect();
    for id in &record.affected_assessments {
        let gone = gone.contains(id);
        same("whether a listed assessment is invalidated", true, gone)?;
    }
    hold(state, record)?;
    state.invalidations.insert_mut(id.clone(), record.clone());
    Ok(())
}

/// The record says what the command and the event say.
fn says(event: &Event, record: &Invalidation) -> Result<(), IllegalEvent> {
    let command = command(event)?;
    same(
        "the hand-off, its reason and its evidence",
        (&command.handoff, &command.reason, &command.evidence),
        (&record.handoff, &record.reason, &record.evidence),
    )?;
    same(
        "who invalidates, when and where",
        (&event.actor_id, event.at_ms, event.revision),
        (&record.actor_id, record.at_ms, record.revision),
    )
}

/// Every listed delivery is INVALIDATED, and none of the manifest is left that is neither that nor EXCLUDED.
fn deliveries(state: &RunState, record: &Invalidation) -> Result<(), IllegalEvent> {
    for id in &record.affected_deliveries {
        let delivery = known("the delivery", id, state.deliveries.get(id))?;
        same(
            "the state of a listed delivery",
            State::Invalidated,
            delivery.record.state,
        )?;
    }
    let own = state
        .deliveries
        .values()
        .map(|delivery| &delivery.record)
        .filter(|delivery| delivery.handoff.handoff_id == record.handoff.handoff_id);
    let listed: BTreeSet<_> = record.affected_deliveries.iter().collect();
    for delivery in own {
        let listed = listed.contains(&delivery.delivery_id);
        let expected = if listed {
            State::Invalidated
        } else {
            State::Excluded
        };
        same(
            "the state of a delivery of the invalidated hand-off",
            expected,
            delivery.state,
        )?;
    }
    Ok(())
}

/// A live run is held, an ended one is not.
fn hold(state: &RunState, record: &Invalidation) -> Result<(), IllegalEvent> {
    let ended = state.lifecycle.is_terminal();
    same("whether a hold is named", !ended, record.hold_id.is_some())?;
    let Some(id) = &record.hold_id else {
        return Ok(());
    };
    let hold = known("the hold", id, state.holds.get(id))?;
    same(
        "the state of the invalidation's hold",
        HoldState::Open,
        hold.state,
    )
}

fn command(event: &Event) -> Result<&InvalidateHandoff, IllegalEvent> {
    match &event.command {
        Body::InvalidateHandoff(body) => Ok(body),
        _ => Err(IllegalEvent::content(
            "the command",
            "invalidateHandoff",
            event.kind.name(),
        )),
    }
}

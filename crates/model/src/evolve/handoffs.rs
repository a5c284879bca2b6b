//! Hand-offs in a run's state: manifests, deliveries, claims, consumptions.
//!
//! Invariant: a manifest stands on the event before its own (HF-01.9), and a delivery's generation never falls
//! (HD-02.1). Called by `apply`.

use std::sync::Arc;

use aiws::decimal::U64;
use aiws::id::DeliveryId;
use praxis_plant::{self as plant, Plant};

use aiws::record::{
    Ack, Claim, ClaimEnd, Consumption, Delivery, DeliveryState as State, HandoffRef, Manifest,
};

use super::{IllegalEvent, free, known, same};
use crate::command::Body;
use crate::event::Event;
use crate::guard::Guard;
use crate::moves::{self, is_legal};
use crate::run::{Committed, DeliveryState, RunState};

/// The manifests that an event's command brings: its own, where it has one, and the generated ones.
fn manifests(event: &Event) -> (Option<&Manifest>, &[Manifest]) {
    match &event.command {
        Body::CommitBoundary(body) => (Some(&body.manifest), &body.skipped),
        Body::AdmitConsumer(body) => (None, &body.skipped),
        _ => (None, &[]),
    }
}

/// Every manifest of an event has the stream's position before it as its basis.
pub(super) fn bases(state: &RunState, event: &Event) -> Result<(), IllegalEvent> {
    let (own, skipped) = manifests(event);
    for manifest in own.into_iter().chain(skipped) {
        let revision = manifest.basis.revision.to_u64();
        if revision != Some(state.head.revision.get())
            || manifest.basis.event_hash != state.head.hash
        {
            let expected = format!("{} {}", state.head.revision, state.head.hash);
            let found = format!("{} {}", manifest.basis.revision, manifest.basis.event_hash);
            return Err(IllegalEvent::link(
                "the basis of a manifest",
                expected,
                found,
            ));
        }
    }
    Ok(())
}

pub(super) fn manifest_committed(
    state: &mut RunState,
    event: &Event,
    handoff: &HandoffRef,
    skipped: Option<U64>,
) -> Result<(), IllegalEvent> {
    let (own, generated) = manifests(event);
    let manifest: &Manifest = match skipped {
        None => known("the manifest of the command", event.kind.name(), own)?,
        Some(index) => {
            let at = usize::try_from(index.get())
                .ok()
                .and_then(|at| generated.get(at));
            known("the generated manifest", index, at)?
        }
    };
    same(
        "the manifest's id",
        &manifest.handoff_id,
        &handoff.handoff_id,
    )?;
    let digest = aiws::canonical::digest_of(manifest)
        .map_err(|error| IllegalEvent::content("the manifest", "canonical bytes", error))?;
    same("the manifest's digest", digest, handoff.digest)?;
    free(
        "the hand-off",
        &handoff.handoff_id,
        state.manifests.contains_key(&handoff.handoff_id),
    )?;
    let checkpoint = &manifest.producer.checkpoint_id;
    free(
        "the checkpoint",
        checkpoint,
        state.checkpoints.contains_key(checkpoint),
    )?;
    let committed = Committed {
        manifest: Arc::new(manifest.clone()),
        digest,
        revision: event.revision.get(),
        at_ms: event.at_ms.get(),
    };
    state
        .checkpoints
        .insert_mut(checkpoint.clone(), handoff.handoff_id.clone());
    state
        .manifests
        .insert_mut(handoff.handoff_id.clone(), committed);
    Ok(())
}

pub(super) fn delivery_opened(
    state: &mut RunState,
    delivery: &Delivery,
) -> Result<(), IllegalEvent> {
    free(
        "the delivery",
        &delivery.delivery_id,
        state.deliveries.contains_key(&delivery.delivery_id),
    )?;
    same(
        "the state of a new delivery",
        State::Pending,
        delivery.state,
    )?;
    same(
        "the recipient's delivery",
        &delivery.delivery_id,
        &delivery.recipient.delivery_id,
    )?;
    let committed = known(
        "the hand-off",
        &delivery.handoff.handoff_id,
        state.manifests.get(&delivery.handoff.handoff_id),
    )?;
    same(
        "the delivery's digest",
        committed.digest,
        delivery.handoff.digest,
    )?;
    let opened = DeliveryState {
        record: delivery.clone(),
        ended_claims: Vec::new(),
    };
    state
        .deliveries
        .insert_mut(delivery.delivery_id.clone(), opened);
    Ok(())
}

/// The members of a delivery's move.
pub(super) struct Moved<'a> {
    pub(super) from: State,
    pub(super) to: State,
    pub(super) ended: Option<ClaimEnd>,
    pub(super) claim: &'a Option<Claim>,
    pub(super) acknowledgement: &'a Option<Ack>,
}

pub(super) fn delivery_moved(
    state: &mut RunState,
    event: &Event,
    id: &DeliveryId,
    moved: Moved<'_>,
) -> Result<(), IllegalEvent> {
    let mut delivery = known("the delivery", id, state.deliveries.get(id))?.clone();
    same(
        "where the delivery moves from",
        delivery.record.state,
        moved.from,
    )?;
    legal(id, &moved)?;
    if let Some(end) = moved.ended {
        let old = known("the claim of delivery", id, delivery.record.claim.take())?;
        let old = Claim {
            end: Some(end),
            ..old
        };
        delivery.ended_claims.push((old.clone(), end));
        delivery.record.claim = Some(old);
    }
    if let Some(claim) = moved.claim {
        if !plant::is(Plant::GenerationKept) {
            same(
                "the claim's generation",
                delivery.record.generation.get().checked_add(1),
                Some(claim.generation.get()),
            )?;
        }
        delivery.record.generation = claim.generation;
        delivery.record.claim = Some(claim.clone());
    }
    // A receipt, once given, stays on record whatever becomes of the delivery (HD-05.2).
    if let Some(receipt) = moved.acknowledgement {
        delivery.record.acknowledgement = Some(receipt.clone());
    }
    delivery.record.state = moved.to;
    delivery.record.revision = event.revision;
    state.deliveries.insert_mut(id.clone(), delivery);
    Ok(())
}

/// A move of the table, with what it carries: the end of a claim, a new claim, or a receipt.
fn legal(id: &DeliveryId, moved: &Moved<'_>) -> Result<(), IllegalEvent> {
    let carries = (
        moved.ended.is_some(),
        moved.claim.is_some(),
        moved.acknowledgement.is_some(),
    );
    let to = moved.to;
    let receives = to == State::Acknowledged;
    let ends = moved.from == State::Claimed && !receives;
    let fits = carries == (ends, to == State::Claimed, receives);
    let planted = (moved.from, to) == (State::Acknowledged, State::Pending)
        && plant::is(Plant::ReceiptLostOnTakeover);
    if planted || fits && is_legal(moves::DELIVERY, moved.from, to) {
        return Ok(());
    }
    let found = format!(
        "{} to {} with (end, claim, receipt) {carries:?}",
        moved.from, moved.to
    );
    Err(IllegalEvent::content(
        format!("the move of delivery {id}"),
        "a legal one",
        found,
    ))
}

pub(super) fn consumption_recorded(
    state: &mut RunState,
    consumption: &Consumption,
) -> Result<(), IllegalEvent> {
    let id = &consumption.activation_id;
    if !plant::is(Guard::ActivationUnbound.plant()) {
        free(
            "the consumption of activation",
            id,
            state.consumptions.contains_key(id),
        )?;
    }
    for input in &consumption.inputs {
        let delivery = known(
            "the delivery",
            &input.delivery_id,
            state.deliveries.get(&input.delivery_id),
        )?;
        same(
            "the state of an input",
            State::Acknowledged,
            delivery.record.state,
        )?;
    }
    state
        .consumptions
        .insert_mut(id.clone(), consumption.clone());
    Ok(())
}

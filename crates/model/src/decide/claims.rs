//! Claims: what claim, acknowledgement and release share about a delivery and its claim.
//!
//! Invariant: token, generation, principal and epoch are judged before the lease, so that a stranger does not
//! learn how it stands (T-35). Called by claimDelivery, acknowledgeDelivery, releaseDelivery and admitConsumer.

use aiws::decimal::DecPlus;
use aiws::digest::Digest;
use aiws::id::DeliveryId;
use aiws::record::{Claim, DeliveryState as State, Graph};

use super::boundary::pinned;
use crate::admission::details;
use crate::decision::Rejection;
use crate::facts::Facts;
use crate::graph;
use crate::guard::{Guard, check, need};
use crate::run::{Committed, DeliveryState, RunState};

/// What a holder presents.
pub(super) struct Presented<'a> {
    /// The delivery.
    pub(super) delivery_id: &'a DeliveryId,
    /// Fingerprint of the token.
    pub(super) token: Digest,
    /// The generation; beyond u64 it is never current (T-57).
    pub(super) generation: DecPlus,
}

/// The delivery of this id (8a).
pub(super) fn known<'a>(
    state: &'a RunState,
    id: &DeliveryId,
) -> Result<&'a DeliveryState, Rejection> {
    need(Guard::DeliveryKnown, state.deliveries.get(id), || {
        details(&[("deliveryId", id.into())])
    })
}

/// The live claim that the holder presents (8a to 8c).
pub(super) fn held<'a>(
    state: &'a RunState,
    facts: &Facts,
    presented: &Presented<'_>,
) -> Result<(&'a DeliveryState, &'a Claim), Rejection> {
    let delivery = known(state, presented.delivery_id)?;
    let record = &delivery.record;
    let named = || {
        details(&[
            ("deliveryId", (&record.delivery_id).into()),
            ("state", record.state.name().into()),
        ])
    };
    check(Guard::ReceiptOpen, !record.state.is_final(), named)?;
    let generation = presented.generation.to_u64();
    let claimed_once = generation.is_some_and(|generation| generation <= record.generation.get());
    check(
        Guard::EverClaimed,
        record.state == State::Claimed || claimed_once,
        named,
    )?;
    check(Guard::ClaimNotEnded, record.state == State::Claimed, named)?;
    // A claimed delivery has its claim; the fold holds that, so a missing one is only a switched-off guard above.
    let claim = need(Guard::ClaimNotEnded, record.claim.as_ref(), named)?;
    check(
        Guard::ClaimGeneration,
        generation == Some(claim.generation.get()),
        named,
    )?;
    check(
        Guard::ClaimToken,
        presented.token.ct_eq(&claim.token_hash),
        named,
    )?;
    check(
        Guard::ClaimPrincipal,
        facts.actor_id == claim.claimant,
        named,
    )?;
    check(
        Guard::ClaimEpoch,
        claim.owner_epoch.get() == state.epoch,
        named,
    )?;
    let live = facts.now_ms < claim.expires_at_ms.get();
    check(Guard::ClaimLive, live, || {
        let (expires, now) = (claim.expires_at_ms.to_string(), facts.now_ms.to_string());
        details(&[("expiresAtMs", expires.into()), ("nowMs", now.into())])
    })?;
    Ok((delivery, claim))
}

/// The delivered manifest, of the pinned graph and plan (8d).
pub(super) fn based<'a>(
    state: &'a RunState,
    delivery: &DeliveryState,
) -> Result<(&'a Graph, &'a Committed), Rejection> {
    let named = || details(&[("deliveryId", (&delivery.record.delivery_id).into())]);
    let graph = need(Guard::BasisGraph, state.graph.as_deref(), named)?;
    let committed = need(
        Guard::BasisGraph,
        state.manifests.get(&delivery.record.handoff.handoff_id),
        named,
    )?;
    let producer = &committed.manifest.producer;
    let current = producer.graph == pinned(graph) && producer.plan_revision == graph.plan_revision;
    check(Guard::BasisGraph, current, named)?;
    Ok((graph, committed))
}

/// The consumer's mapping accepts the outcome (8e).
pub(super) fn accepted(
    state: &RunState,
    delivery: &DeliveryState,
    committed: &Committed,
) -> Result<(), Rejection> {
    let (consumer, producer) = (
        &delivery.record.recipient.node_id,
        &committed.manifest.producer.node_id,
    );
    let status = committed.manifest.outcome.status;
    check(
        Guard::OutcomeAccepted,
        graph::accepts(&state.config, consumer, producer, status),
        || {
            details(&[
                ("deliveryId", (&delivery.record.delivery_id).into()),
                ("status", status.into()),
            ])
        },
    )
}

/// The result fits the consumer's mapping schema (8e). A SKIPPED input has no result to fit.
pub(super) fn fits(
    state: &RunState,
    delivery: &DeliveryState,
    committed: &Committed,
) -> Result<(), Rejection> {
    let (consumer, producer) = (
        &delivery.record.recipient.node_id,
        &committed.manifest.producer.node_id,
    );
    let schema = graph::mapping(&state.config, consumer, producer)
        .and_then(|mapping| mapping.schema.as_ref());
    let Some(schema) = schema
        .filter(|_| committed.manifest.outcome.status != aiws::record::OutcomeStatus::Skipped)
    else {
        return Ok(());
    };
    let bad = aiws::schema::Schema::compile(schema)?
        .validate(&committed.manifest.result)
        .err();
    check(Guard::InputFits, bad.is_none(), || {
        let place = bad.and_then(|error| error.pointer);
        details(&[
            ("deliveryId", (&delivery.record.delivery_id).into()),
            ("pointer", place.into()),
        ])
    })
}

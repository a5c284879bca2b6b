//! Scenes of claimDelivery, acknowledgeDelivery and releaseDelivery. Invariant and use as in `scene`.

use std::sync::Arc;

use aiws::decimal::{Ms, U64};
use aiws::digest::Digest;
use aiws::id::DeliveryId;
use aiws::object;
use aiws::record::{ActorKind, Artifact, DeliveryState, OutcomeStatus};
use praxis_model::command::{Body, BoundaryIntent, ClaimDelivery, CommandType};
use praxis_model::facts::MaterialError;

use crate::scene::{Break, Scene, Try, body, breaks, edit, launches, of_run, together};
use crate::world::*;

/// The two artifacts that a hands on: one that can be lost, and one that can be changed.
pub fn artifacts() -> [Artifact; 2] {
    [artifact("patch"), artifact("log")]
}

/// LIN, where a is done with a result that b's mapping asks for, and two artifacts.
pub fn handed_on() -> World {
    let schema = object! { "type": "object", "required": vec!["patch"] };
    let mut world = World::configured(lin(), |config| {
        config.mappings = vec![mapping(
            "b",
            "in",
            "a",
            &[OutcomeStatus::Completed],
            Some(schema),
        )];
    });
    world.apply_task("a").expect("a");
    for artifact in artifacts() {
        world.store(&artifact);
    }
    world
        .commit(BoundaryIntent {
            artifacts: artifacts().to_vec(),
            result: object! { "patch": "diff" },
            ..boundary("a", OutcomeStatus::Completed)
        })
        .expect("a's boundary");
    world
}

/// As `handed_on`, claimed a second time by the usual agent: generation 1 was given back, generation 2 lives.
fn claimed() -> (World, DeliveryId) {
    let mut world = handed_on();
    let delivery = world.pending("b");
    world.claim(AGENT, &delivery).expect("a claim");
    let release = Body::ReleaseDelivery(world.release_of(&delivery));
    world.send(AGENT, release).expect("a release");
    world.claim(AGENT, &delivery).expect("a claim");
    (world, delivery)
}

fn claiming() -> Try {
    let world = handed_on();
    let delivery_id = world.pending("b");
    let body = ClaimDelivery {
        delivery_id: delivery_id.clone(),
        lease_ms: None,
    };
    Try::of(world, AGENT, Body::ClaimDelivery(body)).about(delivery_id)
}

fn receiving() -> Try {
    let (world, delivery) = claimed();
    let body = Body::AcknowledgeDelivery(world.ack_of(&delivery));
    Try::of(world, AGENT, body).about(delivery)
}

fn releasing() -> Try {
    let (world, delivery) = claimed();
    let body = Body::ReleaseDelivery(world.release_of(&delivery));
    Try::of(world, AGENT, body).about(delivery)
}

/// The one delivery that a scene is about, to be damaged.
pub fn record(t: &mut Try, change: impl FnOnce(&mut aiws::record::Delivery)) {
    let key = t.delivery.clone().expect("a delivery");
    edit!(t.run().deliveries, key, delivery => { change(&mut delivery.record); });
}

/// What a node handed on, to be damaged behind its digest.
pub fn manifest(t: &mut Try, node: &str, change: impl FnOnce(&mut aiws::record::Manifest)) {
    let all = t.world.state().manifests.iter();
    let mut mine =
        all.filter(|(_, committed)| committed.manifest.producer.node_id.as_str() == node);
    let key = mine.next().expect("a manifest").0.clone();
    edit!(t.run().manifests, key, committed => { change(Arc::make_mut(&mut committed.manifest)); });
}

/// The mapping of the scene.
fn mapped(t: &mut Try) -> &mut aiws::record::Mapping {
    &mut t.config().mappings[0]
}

/// Another plan than that of a's manifest.
pub fn basis() -> Vec<Break> {
    breaks! { BasisGraph Basis BasisStale ["planRevision"] |t| t.graph().plan_revision = dec(2); }
}

/// What a's two artifacts must be.
pub fn material() -> Vec<Break> {
    breaks! {
        MaterialAvailable Material ArtifactUnavailable ["bytes of patch"] |t| { t.facts.materials.remove(&artifacts()[0].digest); };
        MaterialRetained Material ArtifactUnavailable ["retainUntilMs"] |t| {
            let now_ms = t.facts.now_ms;
            manifest(t, "a", |manifest| manifest.artifacts[1].retain_until_ms = Ms::from_u64(now_ms));
        };
        MaterialMatches Material ArtifactMismatch ["bytes of log"] |t| {
            t.facts.material_errors.insert(artifacts()[1].digest, MaterialError::Mismatch);
        };
    }
}

/// What the consumer accepts.
pub fn outcome() -> Vec<Break> {
    breaks! { OutcomeAccepted Material InputIncompatible ["accepts"] |t| mapped(t).accepts = vec![OutcomeStatus::Skipped]; }
}

/// What the consumer's schema asks for.
pub fn fits() -> Vec<Break> {
    breaks! {
        InputFits Material InputIncompatible ["schema of the mapping"] |t| {
            mapped(t).schema = Some(object! { "type": "object", "required": vec!["more"] });
        };
    }
}

fn claim() -> Vec<Break> {
    let own = breaks! {
        DeliveryKnown Identity DeliveryState ["deliveryId"] |t| body!(t, ClaimDelivery).delivery_id = id("ghost");
        ClaimFree State DeliveryState ["state"] |t| record(t, |record| record.state = DeliveryState::Acknowledged);
        ClaimFingerprint Evidence InternalStore ["token of the host"] |t| t.facts.claim_fingerprint = None;
    };
    together(vec![of_run(), launches(), own, basis(), outcome()])
}

/// 8b and 8c of whoever holds a claim.
fn held() -> Vec<Break> {
    breaks! {
        ReceiptOpen State DeliveryState ["state"] |t| record(t, |record| record.state = DeliveryState::Acknowledged);
        ClockTrusted Ownership StaleOwner ["clock", "state", "lease"] |t| t.facts.clock_stepped = true;
        EverClaimed State DeliveryState ["state"] |t| record(t, |record| {
            (record.state, record.generation, record.claim) = (DeliveryState::Pending, U64(0), None);
        });
        ClaimNotEnded Claim StaleOwner ["state"] |t| record(t, |record| record.state = DeliveryState::Pending);
        ClaimPrincipal Claim StaleOwner ["actorId"] |t| (t.facts.actor_id, t.facts.actor_kind) = (id("agent:w2"), ActorKind::Agent);
        ClaimEpoch Claim StaleOwner ["epoch of the claim"] |t| record(t, |record| {
            record.claim = record.claim.take().map(|claim| aiws::record::Claim { owner_epoch: U64(0), ..claim });
        });
        ClaimLive Claim ClaimExpired ["lease"] |t| {
            let now_ms = t.facts.now_ms;
            record(t, |record| {
                record.claim = record.claim.take().map(|claim| aiws::record::Claim { expires_at_ms: U64(now_ms), ..claim });
            });
        };
    }
}

fn acknowledge() -> Vec<Break> {
    let own = breaks! {
        DeliveryKnown Identity DeliveryState ["deliveryId"] |t| body!(t, AcknowledgeDelivery).delivery_id = id("ghost");
        ClaimGeneration Claim StaleOwner ["generation"] |t| body!(t, AcknowledgeDelivery).generation = generation(1);
        ClaimToken Claim StaleOwner ["claimToken"] |t| body!(t, AcknowledgeDelivery).claim_token = Digest::ZERO;
        HandoffExact Basis BasisStale ["handoff"] |t| body!(t, AcknowledgeDelivery).handoff.digest = Digest::ZERO;
    };
    let rest = vec![basis(), material(), outcome(), fits()];
    together([vec![of_run(), launches(), own, held()], rest].concat())
}

fn release() -> Vec<Break> {
    let own = breaks! {
        DeliveryKnown Identity DeliveryState ["deliveryId"] |t| body!(t, ReleaseDelivery).delivery_id = id("ghost");
        ClaimGeneration Claim StaleOwner ["generation"] |t| body!(t, ReleaseDelivery).generation = generation(1);
        ClaimToken Claim StaleOwner ["claimToken"] |t| body!(t, ReleaseDelivery).claim_token = Digest::ZERO;
    };
    together(vec![of_run(), own, held()])
}

#[rustfmt::skip]
pub fn scenes() -> Vec<Scene> {
    vec![
        Scene { name: "claimDelivery", kind: CommandType::ClaimDelivery, make: claiming, breaks: claim() },
        Scene { name: "acknowledgeDelivery", kind: CommandType::AcknowledgeDelivery, make: receiving, breaks: acknowledge() },
        Scene { name: "releaseDelivery", kind: CommandType::ReleaseDelivery, make: releasing, breaks: release() },
    ]
}

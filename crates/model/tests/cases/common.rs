//! What the cases of boundaries share. Invariant: a tampered boundary is accepted before it is changed.
//! Used by `boundary`, `evidence` and `skips`.

use aiws::error::Code;
use aiws::json::Value;
use aiws::object;
use aiws::record::{HandoffRef, HoldReason, Manifest, OutcomeStatus};
use praxis_model::command::{Body, BoundaryIntent, CommitBoundary, Intent};
use praxis_model::guard::Guard;

use super::{Must, Outcome, accepted, stopped};
use crate::world::*;

/// LIN with a's operation applied, ready for its boundary.
pub fn applied() -> Result<World, String> {
    let mut world = World::with(lin());
    world.apply_task("a").must()?;
    Ok(world)
}

/// The boundary that the coordinator would make of an intent.
pub fn drafted(world: &World, intent: BoundaryIntent) -> Result<CommitBoundary, String> {
    match praxis_model::draft::command(
        world.state(),
        &Intent::Boundary(intent),
        &world.facts(ENGINE),
    ) {
        Ok(Body::CommitBoundary(body)) => Ok(body),
        Ok(_) => Err("another command was drafted".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The drafted boundary is accepted, and refused by this guard once it is changed.
pub fn tampered(
    world: &World,
    intent: BoundaryIntent,
    guard: Guard,
    code: Code,
    change: impl FnOnce(&mut CommitBoundary),
) -> Outcome {
    let mut body = drafted(world, intent)?;
    accepted(world, |world| {
        world.send(ENGINE, Body::CommitBoundary(body.clone()))
    })?;
    change(&mut body);
    stopped(world, guard, code, |world| {
        world.send(ENGINE, Body::CommitBoundary(body))
    })
}

/// A COMPLETED boundary.
pub fn completed(node: &str) -> BoundaryIntent {
    boundary(node, OutcomeStatus::Completed)
}

/// A BLOCKED boundary with the hold `h1`.
pub fn blocked(node: &str) -> BoundaryIntent {
    BoundaryIntent {
        hold: Some(hold("h1", HoldReason::AttemptLimit)),
        ..boundary(node, OutcomeStatus::Blocked)
    }
}

/// A FAILED boundary.
pub fn failed(node: &str) -> BoundaryIntent {
    BoundaryIntent {
        cause: Some(cause()),
        ..boundary(node, OutcomeStatus::Failed)
    }
}

/// DEC with the decision admitted.
pub fn deciding(world: World) -> Result<World, String> {
    let mut world = world;
    world.admit_control("d").must()?;
    Ok(world)
}

/// What a decision finds.
pub fn choose(pass: bool) -> Value {
    object! { "pass": pass }
}

/// The nodes that a boundary skips.
pub fn skipped(body: &CommitBoundary) -> Vec<&str> {
    body.skipped
        .iter()
        .map(|manifest| manifest.producer.node_id.as_str())
        .collect()
}

/// The manifest of the last event.
pub fn last_manifest(world: &World) -> Result<Manifest, String> {
    match world.events.last().map(|(event, _)| &event.command) {
        Some(Body::CommitBoundary(body)) => Ok(body.manifest.clone()),
        _ => Err("the last event is no boundary".to_owned()),
    }
}

/// The hand-off of a node's last boundary.
pub fn last_handoff(world: &World, node: &str) -> Result<HandoffRef, String> {
    let mut all = world.state().manifests.values();
    let found = all
        .find(|committed| committed.manifest.producer.node_id.as_str() == node)
        .ok_or("no manifest")?;
    Ok(HandoffRef {
        handoff_id: found.manifest.handoff_id.clone(),
        digest: found.digest,
    })
}

//! Apply: one transition of a run, dispatched to the part of the state that it moves.
//!
//! Invariant: every transition checks where it starts before anything changes. Called by `evolve::run`.

use std::sync::Arc;

use super::{IllegalEvent, free, handoffs, invalidations, known, same, work};
use crate::command::Body;
use crate::decide::record_summary::record;
use crate::event::Event;
use crate::graph::node;
use crate::guard::Guard;
use crate::iteration::{is_last, iterates};
use crate::moves::{self, is_legal};
use crate::run::{NodeState, NodeStatus, RunState};
use crate::stream::activation;
use crate::transition::Transition as T;

use aiws::id::{NodeId, SummaryId};
use aiws::record::{Cause, Hold, HoldResolution, HoldState, Lifecycle};
use praxis_plant::{self as plant, Plant};

/// Applies one transition.
pub(super) fn transition(
    state: &mut RunState,
    event: &Event,
    transition: &T,
) -> Result<(), IllegalEvent> {
    match transition {
        T::GraphActivated {} => graph_activated(state, event),
        T::NodeMoved {
            node_id,
            from,
            to,
            skipped_by,
        } => node_moved(state, node_id, *from, *to, skipped_by.as_ref()),
        // What it says was compared with the state before anything moved.
        T::LaunchedIn { node_id } => same(
            "the one node that the event launches work in",
            Some(node_id),
            event.outcome.launched_in(),
        ),
        T::IterationEnded { node_id, iteration } => {
            iteration_ended(state, node_id, iteration.get())
        }
        T::OperationAdmitted { operation, attempt } => {
            work::operation_admitted(state, operation, attempt)
        }
        T::AttemptPrepared { attempt } => work::attempt_prepared(state, attempt),
        T::AttemptMoved {
            attempt_id,
            from,
            to,
            actual,
            evidence,
        } => work::attempt_moved(state, attempt_id, *from, *to, *actual, evidence),
        T::ApprovalRecorded { approval } => work::approval_recorded(state, event, approval),
        T::ApprovalBound {
            approval_id,
            operation_id,
        } => work::approval_bound(state, approval_id, operation_id),
        T::ApprovalRevoked { approval_id } => work::approval_revoked(state, event, approval_id),
        T::AssessmentRecorded { assessment } => work::assessment_recorded(state, event, assessment),
        T::AssessmentInvalidated { assessment_id } => {
            invalidations::assessment_invalidated(state, event, assessment_id)
        }
        T::ConsumptionRecorded { consumption } => {
            handoffs::consumption_recorded(state, consumption)
        }
        T::ConsumptionMoved {
            activation_id,
            from,
            to,
        } => invalidations::consumption_moved(state, activation_id, *from, *to),
        T::HandoffInvalidated { invalidation } => {
            invalidations::handoff_invalidated(state, event, invalidation)
        }
        T::ManifestCommitted { handoff, skipped } => {
            handoffs::manifest_committed(state, event, handoff, *skipped)
        }
        T::DeliveryOpened { delivery } => handoffs::delivery_opened(state, delivery),
        T::DeliveryMoved {
            delivery_id,
            from,
            to,
            ended,
            claim,
            acknowledgement,
        } => {
            let moved = handoffs::Moved {
                from: *from,
                to: *to,
                ended: *ended,
                claim,
                acknowledgement,
            };
            handoffs::delivery_moved(state, event, delivery_id, moved)
        }
        T::SummaryRecorded { summary_id } => summary_recorded(state, event, summary_id),
        T::HoldOpened { hold } => hold_opened(state, hold),
        T::HoldClosed {
            hold_id,
            to,
            resolution,
        } => {
            let hold = known("the hold", hold_id, state.holds.get(hold_id))?;
            let closed = hold_closed(hold, *to, resolution)?;
            state.holds.insert_mut(hold_id.clone(), closed);
            Ok(())
        }
        T::EpochRaised { from, to } => epoch_raised(state, from.get(), to.get()),
        T::LifecycleMoved { from, to, cause } => {
            lifecycle_moved(state, event, *from, *to, cause.as_ref())
        }
        T::MissionOpened {} | T::GrantRecorded { .. } | T::RunAdmitted { .. } => Err(
            IllegalEvent::content("the transition", "one of a run", "one of a mission"),
        ),
    }
}

fn graph_activated(state: &mut RunState, event: &Event) -> Result<(), IllegalEvent> {
    let Body::ActivateGraph(body) = &event.command else {
        return Err(IllegalEvent::content(
            "the command",
            "activateGraph",
            event.kind.name(),
        ));
    };
    free("the graph", &body.graph.graph_id, state.graph.is_some())?;
    for node in &body.graph.nodes {
        let own = NodeState {
            status: NodeStatus::Pending,
            activation_id: activation(&state.stream, &node.id, 1),
            iteration: 1,
            skipped_by: None,
        };
        state.nodes.insert_mut(node.id.clone(), own);
    }
    state.graph = Some(Arc::new(body.graph.clone()));
    Ok(())
}

fn node_moved(
    state: &mut RunState,
    id: &NodeId,
    from: NodeStatus,
    to: NodeStatus,
    skipped_by: Option<&NodeId>,
) -> Result<(), IllegalEvent> {
    let own = known("the node", id, state.nodes.get(id))?;
    same("where the node moves from", own.status, from)?;
    let planted = from == NodeStatus::Active
        && to != NodeStatus::Pending
        && plant::is(Guard::ActivationUnbound.plant());
    if !planted && !is_legal(moves::NODE, from, to) {
        return Err(IllegalEvent::content(
            format!("the move of node {id}"),
            "a legal one",
            format!("{from:?} to {to:?}"),
        ));
    }
    let moved = NodeState {
        status: to,
        skipped_by: skipped_by.cloned(),
        ..own.clone()
    };
    state.nodes.insert_mut(id.clone(), moved);
    Ok(())
}

fn iteration_ended(state: &mut RunState, id: &NodeId, iteration: u64) -> Result<(), IllegalEvent> {
    let own = known("the node", id, state.nodes.get(id))?;
    same(
        "the node that ends an iteration",
        NodeStatus::Active,
        own.status,
    )?;
    same("the iteration that ends", own.iteration, iteration)?;
    let node = state.graph.as_deref().and_then(|graph| node(graph, id));
    let goes_on = node.is_some_and(|node| iterates(node) && !is_last(node, own));
    same("whether the node has another iteration", true, goes_on)?;
    let next = known("the iteration after", iteration, iteration.checked_add(1))?;
    let again = NodeState {
        status: NodeStatus::Pending,
        activation_id: activation(&state.stream, id, next),
        iteration: next,
        ..own.clone()
    };
    state.nodes.insert_mut(id.clone(), again);
    Ok(())
}

fn summary_recorded(
    state: &mut RunState,
    event: &Event,
    id: &SummaryId,
) -> Result<(), IllegalEvent> {
    let Body::RecordSummary(body) = &event.command else {
        return Err(IllegalEvent::content(
            "the command",
            "recordSummary",
            event.kind.name(),
        ));
    };
    let said = &body.summary;
    same("the summary's id", &said.summary_id, id)?;
    free("the summary", id, state.summaries.contains_key(id))?;
    let handoff = &said.handoff.handoff_id;
    let committed = known("the hand-off", handoff, state.manifests.get(handoff))?;
    same(
        "the hand-off's digest",
        committed.digest,
        said.handoff.digest,
    )?;
    let summary = record(said, event.at_ms.get(), event.revision.get());
    state.summaries.insert_mut(id.clone(), summary);
    Ok(())
}

fn hold_opened(state: &mut RunState, hold: &Hold) -> Result<(), IllegalEvent> {
    free(
        "the hold",
        &hold.hold_id,
        state.holds.contains_key(&hold.hold_id),
    )?;
    same("the state of a new hold", HoldState::Open, hold.state)?;
    let members = crate::hold::members(state, &hold.scope);
    same("the members of a new hold", &members, &hold.members)?;
    state.holds.insert_mut(hold.hold_id.clone(), hold.clone());
    Ok(())
}

fn hold_closed(
    hold: &Hold,
    to: HoldState,
    resolution: &HoldResolution,
) -> Result<Hold, IllegalEvent> {
    same("where the hold moves from", HoldState::Open, hold.state)?;
    if !is_legal(moves::HOLD, hold.state, to) {
        return Err(IllegalEvent::content(
            "where the hold moves to",
            "a final state",
            to,
        ));
    }
    Ok(Hold {
        state: to,
        resolution: Some(resolution.clone()),
        ..hold.clone()
    })
}

fn epoch_raised(state: &mut RunState, from: u64, to: u64) -> Result<(), IllegalEvent> {
    same("the epoch", state.epoch, from)?;
    if !plant::is(Plant::EpochNotRaised) {
        same("the next epoch", from.checked_add(1), Some(to))?;
    }
    state.epoch = to;
    Ok(())
}

fn lifecycle_moved(
    state: &mut RunState,
    event: &Event,
    from: Lifecycle,
    to: Lifecycle,
    cause: Option<&Cause>,
) -> Result<(), IllegalEvent> {
    same("the lifecycle", state.lifecycle, from)?;
    if !is_legal(moves::LIFECYCLE, from, to) {
        return Err(IllegalEvent::content(
            "the move of the lifecycle",
            "a legal one",
            format!("{from} to {to}"),
        ));
    }
    if to == Lifecycle::Canceling {
        state.canceled_by = Some(event.actor_id.clone());
    }
    state.lifecycle = to;
    state.cause = cause.cloned();
    Ok(())
}

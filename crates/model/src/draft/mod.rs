//! Draft: full, record-bearing commands from intents and state (HC-ENV.5).
//!
//! Invariant: a draft is what decide would accept if the intent may be followed at all; it grants nothing, and
//! decide treats it as it treats a command of the wire. Called by the run's actor when it takes a message.

mod boundary;

use aiws::decimal::Dec;
use aiws::id::{AttemptId, NodeId, OperationId};
use aiws::record::{
    AttemptStatus, Consumption, ConsumptionState, Delivery, DeliveryState as State, Entitlement,
    InputRef, Join, JoinMode, Node, Operation,
};

use crate::admission::details;
use crate::command::{AdmitConsumer, AdmitIntent, Body, Dispatch, Intent, Retry};
use crate::decide::join;
use crate::decision::Rejection;
use crate::facts::Facts;
use crate::graph;
use crate::guard::{Guard, check, need};
use crate::iteration;
use crate::run::{NodeState, RunState};
use crate::stream::derived;

/// The body that follows from an intent, with revision, epoch, basis and new ids filled in.
///
/// # Errors
/// AUTHORIZATION_DENIED before anything is looked at, then the code of an object that is not there, and
/// SCHEMA_INVALID for what the caller built against the shape of the wire. What the object's state permits is left
/// to decide.
pub fn command(state: &RunState, intent: &Intent, facts: &Facts) -> Result<Body, Rejection> {
    // An intent names objects, and whether they exist is not for everybody (T-25).
    check(Guard::PolicyAllows, facts.allowed, || {
        details(&[("actor", (&facts.actor_id).into())])
    })?;
    match intent {
        Intent::Command { body } => shaped(current(state, body.clone())),
        Intent::Boundary(intent) => {
            shaped(Body::CommitBoundary(boundary::draft(state, intent, facts)?))
        }
        Intent::Admit(intent) => admit(state, intent, facts).map(Body::AdmitConsumer),
        Intent::DispatchNode { node_id } => dispatch(state, node_id, facts).map(Body::Dispatch),
        Intent::RetryOperation { operation_id } => {
            retry(state, operation_id, facts).map(Body::Retry)
        }
    }
}

/// A typed caller can build what no request could say; recorded, it would never read back.
fn shaped(body: Body) -> Result<Body, Rejection> {
    crate::wire::written(&body)?;
    Ok(body)
}

/// The body with the epoch of the owner who sends it.
fn current(state: &RunState, mut body: Body) -> Body {
    let epoch = Dec::from_u64(state.epoch);
    match &mut body {
        Body::ActivateGraph(body) => body.owner_epoch = epoch,
        Body::Dispatch(body) => body.owner_epoch = epoch,
        Body::Retry(body) => body.owner_epoch = epoch,
        Body::CompleteRun(body) => body.owner_epoch = epoch,
        _ => {}
    }
    body
}

/// The node of the pinned graph with its state.
fn node<'a>(
    state: &'a RunState,
    id: &NodeId,
    guard: Guard,
) -> Result<(&'a Node, &'a NodeState), Rejection> {
    let named = || details(&[("nodeId", id.into())]);
    let graph = need(Guard::GraphPinned, state.graph.as_deref(), named)?;
    let node = need(guard, graph::node(graph, id), named)?;
    let own = need(guard, state.nodes.get(id), named)?;
    Ok((node, own))
}

/// A new id at the position of the event that will make it.
fn new_id(state: &RunState, kind: &str, index: usize) -> aiws::id::Id {
    derived(&state.stream, state.head.revision.get() + 1, kind, index)
}

/// Admission with every acknowledged input of the current activation; an ANY join takes the one that it received first.
fn admit(
    state: &RunState,
    intent: &AdmitIntent,
    facts: &Facts,
) -> Result<AdmitConsumer, Rejection> {
    let (node, own) = node(state, &intent.node_id, Guard::ConsumerKnown)?;
    let run_id = need(
        Guard::SubjectAgrees,
        state.subject.run_id.clone(),
        Default::default,
    )?;
    let proposal = intent
        .admission_ref
        .as_ref()
        .and_then(|reference| facts.admissions.get(reference));
    let any = graph::takes_any(node);
    let inputs: Vec<InputRef> = match any {
        true => join::first(state, own).map(as_input).into_iter().collect(),
        false => inputs(state, node, own),
    };
    let selected = inputs
        .iter()
        .map(|input| input.delivery_id.clone())
        .collect();
    let works = node.kind.runs_work();
    let consumption = Consumption {
        mission_id: state.subject.mission_id.clone(),
        run_id,
        node_id: node.id.clone(),
        activation_id: own.activation_id.clone(),
        operation_id: proposal.map(|proposal| proposal.operation_id.clone()),
        admission_ref: intent.admission_ref.clone(),
        inputs,
        owner_epoch: Dec::from_u64(state.epoch),
        revision: Dec::from_u64(state.head.revision.get() + 1),
        join: Join {
            mode: if any { JoinMode::Any } else { JoinMode::All },
            selected,
            excluded: Vec::new(),
            unselected_acknowledged: Vec::new(),
        },
        state: ConsumptionState::Valid,
        entitlement: if works {
            Entitlement::Operation
        } else {
            Entitlement::Control
        },
    };
    Ok(AdmitConsumer {
        consumption,
        skipped: Vec::new(),
    })
}

fn as_input(record: &Delivery) -> InputRef {
    InputRef {
        delivery_id: record.delivery_id.clone(),
        handoff: record.handoff.clone(),
    }
}

/// The acknowledged deliveries of an activation, in the order of the node's ports.
fn inputs(state: &RunState, node: &Node, own: &NodeState) -> Vec<InputRef> {
    let mut all = Vec::new();
    let activation = iteration::received_as(state, node, own);
    for input in graph::inputs(&state.config, node) {
        let records = state.deliveries.values().map(|delivery| &delivery.record);
        let at_port = records.filter(|record| {
            record.recipient.activation_id == activation
                && record.recipient.input_port == input.port
        });
        let acknowledged = at_port.filter(|record| record.state == State::Acknowledged);
        all.extend(acknowledged.map(as_input));
    }
    all
}

fn run_id(state: &RunState) -> Result<aiws::id::RunId, Rejection> {
    need(
        Guard::SubjectAgrees,
        state.subject.run_id.clone(),
        Default::default,
    )
}

/// Dispatch of the prepared attempt of a node's open operation.
fn dispatch(state: &RunState, node_id: &NodeId, facts: &Facts) -> Result<Dispatch, Rejection> {
    let (_, own) = node(state, node_id, Guard::ConsumerKnown)?;
    let mine =
        |operation: &&Operation| operation.activation_id.as_ref() == Some(&own.activation_id);
    let attempts = state
        .operations
        .values()
        .filter(mine)
        .filter_map(|operation| operation.attempts.last());
    let mut open = attempts.filter_map(|id| state.attempts.get(id));
    let prepared = open.find(|attempt| attempt.status == AttemptStatus::Prepared);
    let attempt = need(Guard::DraftPrepared, prepared, || {
        details(&[("nodeId", node_id.into())])
    })?;
    Ok(Dispatch {
        run_id: run_id(state)?,
        owner_epoch: Dec::from_u64(state.epoch),
        node_id: node_id.clone(),
        operation_id: attempt.operation_id.clone(),
        attempt_id: attempt.attempt_id.clone(),
        policy: facts.policy.clone(),
    })
}

/// Another attempt of an operation, under the amount that it was admitted with.
fn retry(state: &RunState, id: &OperationId, facts: &Facts) -> Result<Retry, Rejection> {
    let named = || details(&[("operationId", id.into())]);
    let operation = need(Guard::OperationKnown, state.operations.get(id), named)?;
    Ok(Retry {
        run_id: run_id(state)?,
        owner_epoch: Dec::from_u64(state.epoch),
        operation_id: id.clone(),
        attempt_id: AttemptId::from(new_id(state, "attempt", 0)),
        amount: operation.amount,
        policy: facts.policy.clone(),
    })
}

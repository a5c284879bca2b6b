//! admitConsumer: binds the whole input set to one activation and one operation, or to a control entitlement.
//!
//! Invariant: consumption, operation and reservation are one event or none (HD-03.4, HD-03.7), and a bound
//! activation never changes its inputs (HD-03.6). Called by `decide::run`.

use std::collections::BTreeSet;

use aiws::decimal::{Dec, U64};
use aiws::error::Code;
use aiws::id::ActivationId;
use aiws::json::Value;
use aiws::record::{
    AdmissionProposal, Attempt, AttemptStatus, Consumption, ConsumptionState,
    DeliveryState as State, Entitlement, Graph, InputRef, Join, JoinMode, Node, Operation,
    OperationStatus,
};
use aiws::{object, record::Artifact};

use super::join::{self, Choice};
use super::{claims, material};
use crate::account::Posting;
use crate::admission::{self, Wanted, details};
use crate::command::{AdmitConsumer, Body, Command};
use crate::decision::{Decision, Rejection};
use crate::event::{Identity, IdentityKind, Outcome};
use crate::facts::Facts;
use crate::graph;
use crate::guard::{Guard, check, need};
use crate::iteration;
use crate::mission::cost_account;
use crate::run::{Committed, DeliveryState, NodeState, NodeStatus, RunState};
use crate::transition::Transition;

/// Stages 8 and 9 of admitConsumer.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &AdmitConsumer,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let sent = &body.consumption;
    let proposal = sent
        .admission_ref
        .as_ref()
        .and_then(|reference| facts.admissions.get(reference));
    new_identities(state, sent, proposal)?;
    let (graph, node, own) = consumer(state, sent)?;
    for input in &sent.inputs {
        claims::known(state, &input.delivery_id)?;
    }
    ready(state, sent, node, own)?;
    let deliveries = inputs(state, sent, &iteration::received_as(state, node, own))?;
    let artifacts = materials(&deliveries);
    material::verified(artifacts.iter().copied(), facts)?;
    for (delivery, committed) in &deliveries {
        claims::accepted(state, delivery, committed)?;
        claims::fits(state, delivery, committed)?;
        if graph::takes_any(node) {
            join::complete(committed)?;
        }
    }
    if let Some(proposal) = proposal {
        admission::payload(node, &proposal.action)?;
    }
    unbound(state, sent, node)?;
    let (ordered, choice) = match graph::takes_any(node) {
        true => {
            let choice = join::chosen(state, graph, node, own, sent)?;
            (sent.inputs.clone(), choice)
        }
        false => (
            selection(state, sent, node, &deliveries)?,
            Choice::default(),
        ),
    };
    entitled(sent, node)?;
    let skipped = join::manifests(state, graph, facts, &choice)?;
    let chosen = match graph::takes_any(node) {
        true => join::record(node, sent, &choice, &skipped),
        false => all(&ordered),
    };
    let consumption = record(state, sent, node, ordered, chosen);
    let mut outcome = Outcome::default();
    outcome.transitions.push(moved(state, node));
    outcome.transitions.push(Transition::ConsumptionRecorded {
        consumption: consumption.clone(),
    });
    join::leave_out(state, facts, node, &choice, &skipped, &mut outcome)?;
    let mut before_ms: Vec<u64> = material::retained_until(artifacts.iter().copied()).collect();
    let mut same = Vec::new();
    if node.kind.runs_work() {
        let proposal = need(Guard::AdmissionKnown, proposal, || {
            details(&[("nodeId", (&node.id).into())])
        })?;
        let cleared = effect(state, facts, node, sent, proposal, &mut outcome)?;
        same = cleared.same;
        before_ms.extend(cleared.before_ms);
    } else {
        before_ms.extend(admission::deadlines(state, facts, node)?);
    }
    let result = result(
        node,
        &consumption,
        proposal.filter(|_| node.kind.runs_work()),
    );
    let command = Body::AdmitConsumer(AdmitConsumer {
        consumption,
        skipped,
    });
    Ok(Decision {
        command,
        outcome,
        result,
        same,
        before_ms,
    })
}

/// 8a: the consumer in its current activation.
fn consumer<'a>(
    state: &'a RunState,
    sent: &Consumption,
) -> Result<(&'a Graph, &'a Node, &'a NodeState), Rejection> {
    let named = || details(&[("nodeId", (&sent.node_id).into())]);
    let graph = need(Guard::GraphPinned, state.graph.as_deref(), named)?;
    let node = need(
        Guard::ConsumerKnown,
        graph::node(graph, &sent.node_id),
        named,
    )?;
    let own = need(Guard::ConsumerKnown, state.nodes.get(&sent.node_id), named)?;
    check(
        Guard::ConsumerKnown,
        own.activation_id == sent.activation_id,
        named,
    )?;
    Ok((graph, node, own))
}

/// 8b: the consumer was neither skipped nor ended.
fn ready(
    state: &RunState,
    sent: &Consumption,
    node: &Node,
    own: &NodeState,
) -> Result<(), Rejection> {
    let named = || details(&[("nodeId", (&node.id).into())]);
    let bound = state.consumptions.contains_key(&sent.activation_id);
    check(
        Guard::ConsumerPending,
        own.status == NodeStatus::Pending || bound,
        named,
    )
}

/// 8f: work is admitted with an operation, and nothing else is. Asked after the join: what an admission would cost never
/// hides that its inputs are not settled (P-08).
fn entitled(sent: &Consumption, node: &Node) -> Result<(), Rejection> {
    let control = sent.operation_id.is_none() && sent.admission_ref.is_none();
    check(
        Guard::ControlNoEffect,
        node.kind.runs_work() != control,
        || details(&[("nodeId", (&node.id).into())]),
    )
}

/// 8a: neither operation nor attempt was ever named before; the mission-wide rest is the durable boundary's.
fn new_identities(
    state: &RunState,
    sent: &Consumption,
    proposal: Option<&AdmissionProposal>,
) -> Result<(), Rejection> {
    // Another admission of a bound activation is a conflict of its input set, not of its operation's name.
    if state.consumptions.contains_key(&sent.activation_id) {
        return Ok(());
    }
    let used = |operation| state.operations.contains_key(operation);
    let operation = sent.operation_id.as_ref().is_some_and(used);
    let attempt =
        proposal.is_some_and(|proposal| state.attempts.contains_key(&proposal.attempt_id));
    check(Guard::OperationNew, !operation && !attempt, || {
        details(&[(
            "operationId",
            sent.operation_id
                .as_ref()
                .map(|id| id.as_str().to_owned())
                .into(),
        )])
    })
}

/// 8a to 8d of every input: it exists, is acknowledged for this activation (of a LOOP's iterations for the first), and
/// is the delivered hand-off.
fn inputs<'a>(
    state: &'a RunState,
    sent: &Consumption,
    activation: &ActivationId,
) -> Result<Vec<(&'a DeliveryState, &'a Committed)>, Rejection> {
    let mut all = Vec::new();
    for input in &sent.inputs {
        all.push((input, claims::known(state, &input.delivery_id)?));
    }
    for (input, delivery) in &all {
        let record = &delivery.record;
        let mine = record.recipient.node_id == sent.node_id
            && record.recipient.activation_id == *activation;
        check(
            Guard::InputAcknowledged,
            mine && record.state == State::Acknowledged,
            || {
                details(&[
                    ("deliveryId", (&input.delivery_id).into()),
                    ("state", record.state.into()),
                ])
            },
        )?;
    }
    let mut based = Vec::new();
    for (input, delivery) in all {
        let exact = input.handoff == delivery.record.handoff;
        check(Guard::HandoffExact, exact, || {
            details(&[("deliveryId", (&input.delivery_id).into())])
        })?;
        let (_, committed) = claims::based(state, delivery)?;
        based.push((delivery, committed));
    }
    Ok(based)
}

fn materials<'a>(deliveries: &[(&'a DeliveryState, &'a Committed)]) -> Vec<&'a Artifact> {
    deliveries
        .iter()
        .flat_map(|(_, committed)| &committed.manifest.artifacts)
        .collect()
}

/// 8f: the activation is free, and no input stands twice.
fn unbound(state: &RunState, sent: &Consumption, node: &Node) -> Result<(), Rejection> {
    let named = || {
        details(&[
            ("nodeId", (&node.id).into()),
            ("activationId", (&sent.activation_id).into()),
        ])
    };
    check(
        Guard::ActivationUnbound,
        !state.consumptions.contains_key(&sent.activation_id),
        named,
    )?;
    let ids: BTreeSet<_> = sent.inputs.iter().map(|input| &input.delivery_id).collect();
    check(Guard::InputsUnique, ids.len() == sent.inputs.len(), named)
}

/// 8f: every port has its one input; the inputs in the order of the ports.
fn selection(
    state: &RunState,
    sent: &Consumption,
    node: &Node,
    deliveries: &[(&DeliveryState, &Committed)],
) -> Result<Vec<InputRef>, Rejection> {
    let named = || {
        details(&[
            ("nodeId", (&node.id).into()),
            ("activationId", (&sent.activation_id).into()),
        ])
    };
    let mut ordered = Vec::new();
    let ports = graph::inputs(&state.config, node);
    for input in &ports {
        let mut at_port = deliveries.iter().map(|(delivery, _)| &delivery.record);
        let found = at_port.find(|record| record.recipient.input_port == input.port);
        check(Guard::InputsComplete, found.is_some(), || {
            details(&[
                ("nodeId", (&node.id).into()),
                ("inputPort", (&input.port).into()),
            ])
        })?;
        let input = |record: &aiws::record::Delivery| InputRef {
            delivery_id: record.delivery_id.clone(),
            handoff: record.handoff.clone(),
        };
        ordered.extend(found.map(input));
    }
    check(Guard::InputsUnique, sent.inputs.len() <= ports.len(), named)?;
    Ok(ordered)
}

/// The consumption as it is recorded: what the coordinator knows replaces what a caller wrote (HC-ENV.5, REL-11).
fn record(
    state: &RunState,
    sent: &Consumption,
    node: &Node,
    inputs: Vec<InputRef>,
    join: Join,
) -> Consumption {
    let works = node.kind.runs_work();
    Consumption {
        mission_id: state.subject.mission_id.clone(),
        run_id: sent.run_id.clone(),
        node_id: node.id.clone(),
        activation_id: sent.activation_id.clone(),
        operation_id: sent.operation_id.clone().filter(|_| works),
        admission_ref: sent.admission_ref.clone().filter(|_| works),
        inputs,
        owner_epoch: Dec::from_u64(state.epoch),
        revision: Dec::from_u64(state.head.revision.get() + 1),
        join,
        state: ConsumptionState::Valid,
        entitlement: if works {
            Entitlement::Operation
        } else {
            Entitlement::Control
        },
    }
}

/// How a node that waits for all of its inputs chose them.
fn all(inputs: &[InputRef]) -> Join {
    let selected = inputs.iter().map(|input| input.delivery_id.clone());
    Join {
        mode: JoinMode::All,
        selected: selected.collect(),
        excluded: Vec::new(),
        unselected_acknowledged: Vec::new(),
    }
}

fn moved(state: &RunState, node: &Node) -> Transition {
    let from = state
        .nodes
        .get(&node.id)
        .map_or(NodeStatus::Pending, |own| own.status);
    Transition::NodeMoved {
        node_id: node.id.clone(),
        from,
        to: NodeStatus::Active,
        skipped_by: None,
    }
}

/// Stage 9 of work: the prepared admission, checked, with its operation, first attempt and reservation.
fn effect(
    state: &RunState,
    facts: &Facts,
    node: &Node,
    sent: &Consumption,
    proposal: &AdmissionProposal,
    outcome: &mut Outcome,
) -> Result<admission::Cleared, Rejection> {
    let wanted = Wanted {
        node,
        operation_id: &proposal.operation_id,
        action: &proposal.action,
        grant_id: &proposal.grant_id,
        approval_id: proposal.approval_id.as_ref(),
        amount: proposal.amount,
    };
    let material = aiws::canonical::digest_of(&proposal.action)?;
    let agrees = sent.operation_id.as_ref() == Some(&proposal.operation_id)
        && proposal.fingerprint == material;
    check(Guard::AdmissionAgrees, agrees, || {
        details(&[("operationId", (&proposal.operation_id).into())])
    })?;
    let cleared = admission::check(state, facts, &wanted, || {
        admission::budget(facts, proposal.amount)
    })?;
    let run_id = state.subject.run_id.clone();
    let run_id = run_id
        .ok_or_else(|| aiws::error::Error::new(Code::InternalStore, "the state is no run's"))?;
    let operation = operation(run_id, node, &sent.activation_id, proposal);
    let attempt = attempt(state, proposal);
    outcome.identities.push(identity(
        IdentityKind::Operation,
        proposal.operation_id.as_id(),
        &operation,
    )?);
    outcome.identities.push(identity(
        IdentityKind::Attempt,
        proposal.attempt_id.as_id(),
        &attempt,
    )?);
    outcome
        .transitions
        .push(Transition::OperationAdmitted { operation, attempt });
    outcome.transitions.extend(cleared.bind.clone());
    outcome.accounts.push(Posting::Reserve {
        account: cost_account(&state.subject),
        amount: proposal.amount,
    });
    Ok(cleared)
}

fn operation(
    run_id: aiws::id::RunId,
    node: &Node,
    activation: &ActivationId,
    proposal: &AdmissionProposal,
) -> Operation {
    Operation {
        operation_id: proposal.operation_id.clone(),
        run_id,
        node_id: Some(node.id.clone()),
        activation_id: Some(activation.clone()),
        fingerprint: proposal.fingerprint,
        action: proposal.action.clone(),
        effect: proposal.effect,
        grant_id: proposal.grant_id.clone(),
        approval_id: proposal.approval_id.clone(),
        amount: proposal.amount,
        attempts: vec![proposal.attempt_id.clone()],
        status: OperationStatus::Open,
    }
}

fn attempt(state: &RunState, proposal: &AdmissionProposal) -> Attempt {
    Attempt {
        attempt_id: proposal.attempt_id.clone(),
        operation_id: proposal.operation_id.clone(),
        epoch: U64(state.epoch),
        status: AttemptStatus::Prepared,
        reserved: proposal.amount,
        actual: None,
        evidence: Vec::new(),
    }
}

fn identity<T: serde::Serialize>(
    kind: IdentityKind,
    key: aiws::id::Id,
    material: &T,
) -> Result<Identity, Rejection> {
    Ok(Identity {
        kind,
        key,
        digest: aiws::canonical::digest_of(material)?,
    })
}

fn result(node: &Node, consumption: &Consumption, proposal: Option<&AdmissionProposal>) -> Value {
    object! {
        "nodeId": &node.id,
        "activationId": &consumption.activation_id,
        "entitlement": consumption.entitlement,
        "operationId": proposal.map(|proposal| proposal.operation_id.as_str().to_owned()),
        "attemptId": proposal.map(|proposal| proposal.attempt_id.as_str().to_owned()),
        "reserved": proposal.map(|proposal| proposal.amount.to_string()),
    }
}

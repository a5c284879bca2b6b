//! commitBoundary: checkpoint, manifest, deliveries, skips, hold and the run's end in one event (HF-05.1).
//!
//! Invariant: what the ledger knows is compared or filled in, never believed (HC-CB.1), and a boundary clears no
//! exposure (HC-CB.2). Evidence per kind of node stands in `evidence`. Called by `decide::run`.

use std::collections::BTreeSet;

use aiws::decimal::U64;
use aiws::id::{CheckpointId, DeliveryId};
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    ClaimEnd, ClaimEndCause, Delivery, DeliveryState as State, Graph, HandoffRef, Lifecycle,
    Manifest, Node, OutcomeStatus, RequiredCheck,
};

use super::boundary::{self, Consequences, ManifestIds, status_of};
use super::{evidence, material, pipeline, place_hold, terminal};
use crate::admission::details;
use crate::command::{Body, Command, CommitBoundary};
use crate::decision::{Decision, Rejection};
use crate::event::{Identity, IdentityKind, Outcome};
use crate::facts::Facts;
use crate::graph;
use crate::guard::{Guard, check, need};
use crate::iteration;
use crate::run::{NodeState, NodeStatus, RunState};
use crate::transition::Transition;
use crate::wire;

/// Stage 6: the scope of a BLOCKED boundary's hold can be fenced.
pub(super) fn authority(state: &RunState, body: &CommitBoundary) -> Result<(), Rejection> {
    body.hold
        .as_ref()
        .map_or(Ok(()), |hold| place_hold::scope(state, &hold.scope))
}

/// Stage 7: a blocked activation goes on only once nothing gates it any more (T-44). An activation that was
/// admitted before may always tell its result (T-36), and a failure is always told.
pub(super) fn gates(
    state: &RunState,
    body: &CommitBoundary,
    facts: &Facts,
) -> Result<(), Rejection> {
    let producer = &body.manifest.producer.node_id;
    let blocked = state
        .nodes
        .get(producer)
        .is_some_and(|own| own.status == NodeStatus::Blocked);
    let goes_on = matches!(
        body.manifest.outcome.status,
        OutcomeStatus::Completed | OutcomeStatus::Blocked
    );
    let open = pipeline::run_gates(state, Some(producer), facts)
        .err()
        .filter(|_| blocked && goes_on);
    check(Guard::ContinuationCleared, open.is_none(), || {
        open.map(|error| error.details).unwrap_or_default()
    })
}

/// Stage 8 of commitBoundary.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &CommitBoundary,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    names(state, body)?;
    let (graph, node, own) = producer(state, &body.manifest)?;
    undecided(state, body, node, own)?;
    let mut hold = body.hold.iter();
    hold.try_for_each(|hold| place_hold::stops_known(state, hold))?;
    shape(state, body, own)?;
    basis(state, graph, body, own)?;
    let (artifacts, config) = (&body.manifest.artifacts, &state.config);
    material::announced(artifacts, config, facts)?;
    let mut before_ms = evidence::complete(state, node, own, body, facts)?;
    before_ms.extend(material::announced_before(artifacts, config));
    let consequences = boundary::consequences(
        state,
        graph,
        node,
        body.manifest.outcome.status,
        &body.manifest.result,
    );
    recipients(&body.manifest, &consequences)?;
    let command = filled(state, graph, facts, body, &consequences)?;
    let (outcome, result) = outcome(state, facts, node, own, &command, &consequences)?;
    let command = Body::CommitBoundary(command);
    // What the ledger adds counts too: an event that cannot be read back must never be written.
    let written = wire::written(&command).err();
    check(Guard::BoundaryShape, written.is_none(), || {
        let why = written.map(|error| error.to_string());
        details(&[("why", why.into())])
    })?;
    Ok(Decision {
        command,
        outcome,
        result,
        same: Vec::new(),
        before_ms,
    })
}

fn producer<'a>(
    state: &'a RunState,
    manifest: &Manifest,
) -> Result<(&'a Graph, &'a Node, &'a NodeState), Rejection> {
    let named = || details(&[("nodeId", (&manifest.producer.node_id).into())]);
    let graph = need(Guard::ProducerKnown, state.graph.as_deref(), named)?;
    let node = need(
        Guard::ProducerKnown,
        graph::node(graph, &manifest.producer.node_id),
        named,
    )?;
    let own = need(Guard::ProducerKnown, state.nodes.get(&node.id), named)?;
    Ok((graph, node, own))
}

/// 8a: every name that an event's manifests make is new, in the run and among themselves.
pub(super) fn new_names<'a>(
    state: &RunState,
    manifests: impl Iterator<Item = &'a Manifest> + Clone,
) -> Result<(), Rejection> {
    let mut seen: BTreeSet<&CheckpointId> = BTreeSet::new();
    for manifest in manifests.clone() {
        let checkpoint = &manifest.producer.checkpoint_id;
        let new = !state.checkpoints.contains_key(checkpoint) && seen.insert(checkpoint);
        check(Guard::CheckpointNew, new, || {
            details(&[("checkpointId", checkpoint.into())])
        })?;
    }
    let mut seen = BTreeSet::new();
    for manifest in manifests.clone() {
        let new = !state.manifests.contains_key(&manifest.handoff_id)
            && seen.insert(&manifest.handoff_id);
        check(Guard::HandoffNew, new, || {
            details(&[("handoffId", (&manifest.handoff_id).into())])
        })?;
    }
    let mut seen: BTreeSet<&DeliveryId> = BTreeSet::new();
    for recipient in manifests.flat_map(|manifest| &manifest.recipients) {
        let new = !state.deliveries.contains_key(&recipient.delivery_id)
            && seen.insert(&recipient.delivery_id);
        check(Guard::DeliveryNew, new, || {
            details(&[("deliveryId", (&recipient.delivery_id).into())])
        })?;
    }
    Ok(())
}

/// 8a: every name is new. Names come before what is unknown.
fn names(state: &RunState, body: &CommitBoundary) -> Result<(), Rejection> {
    new_names(state, std::iter::once(&body.manifest).chain(&body.skipped))?;
    let mut hold = body.hold.iter();
    hold.try_for_each(|hold| place_hold::is_new(state, &hold.hold_id))
}

/// 8a: the activation has no outcome yet.
fn undecided(
    state: &RunState,
    body: &CommitBoundary,
    node: &Node,
    own: &NodeState,
) -> Result<(), Rejection> {
    let undecided = matches!(
        own.status,
        NodeStatus::Pending | NodeStatus::Active | NodeStatus::Blocked
    );
    check(Guard::ActivationUndecided, undecided, || {
        details(&[("activationId", (&own.activation_id).into())])
    })?;
    let (sent, status) = (
        &body.manifest.producer.activation_id,
        body.manifest.outcome.status,
    );
    let mut manifests = state.manifests.values();
    let again = iteration::iterates(node)
        && manifests.any(|counted| iteration::counts(node, &counted.manifest, sent, status));
    check(Guard::IterationOnce, !again, || {
        details(&[("activationId", sent.into())])
    })
}

/// 8b: the producer was admitted, and status, hold and cause go together.
fn shape(state: &RunState, body: &CommitBoundary, own: &NodeState) -> Result<(), Rejection> {
    let outcome = &body.manifest.outcome;
    let named = || details(&[("status", outcome.status.into())]);
    check(
        Guard::BoundaryActive,
        matches!(own.status, NodeStatus::Active | NodeStatus::Blocked),
        || details(&[("nodeId", (&body.manifest.producer.node_id).into())]),
    )?;
    check(
        Guard::BoundaryGenerated,
        outcome.status != OutcomeStatus::Skipped,
        named,
    )?;
    let blocked = outcome.status == OutcomeStatus::Blocked;
    check(
        Guard::HoldOnlyBlocked,
        blocked || body.hold.is_none(),
        named,
    )?;
    check(
        Guard::BlockedHasHold,
        !blocked || body.hold.is_some(),
        named,
    )?;
    place_hold::covers(state, body.hold.as_ref(), &body.manifest.producer.node_id)?;
    let bad = matches!(
        outcome.status,
        OutcomeStatus::Failed | OutcomeStatus::Canceled
    );
    check(Guard::CauseGiven, bad == outcome.cause.is_some(), named)
}

/// 8d: the manifest, and every generated one, stands on the last event, the pinned graph and the activation.
fn basis(
    state: &RunState,
    graph: &Graph,
    body: &CommitBoundary,
    own: &NodeState,
) -> Result<(), Rejection> {
    let expected = boundary::basis(state);
    let named = |manifest: &Manifest| details(&[("handoffId", (&manifest.handoff_id).into())]);
    for manifest in std::iter::once(&body.manifest).chain(&body.skipped) {
        let producer = &manifest.producer;
        check(Guard::BasisIsHead, manifest.basis == expected, || {
            named(manifest)
        })?;
        let pinned = producer.graph == boundary::pinned(graph)
            && producer.plan_revision == graph.plan_revision;
        check(Guard::BasisGraph, pinned, || named(manifest))?;
    }
    let current = body.manifest.producer.activation_id == own.activation_id;
    check(Guard::BasisActivation, current, || named(&body.manifest))
}

fn recipients(manifest: &Manifest, consequences: &Consequences) -> Result<(), Rejection> {
    let sent = &manifest.recipients;
    let named = || details(&[("handoffId", (&manifest.handoff_id).into())]);
    let places: BTreeSet<_> = sent
        .iter()
        .map(|to| (&to.node_id, &to.activation_id, &to.input_port))
        .collect();
    check(Guard::RecipientsUnique, places.len() == sent.len(), named)?;
    let expected: BTreeSet<_> = consequences
        .places
        .iter()
        .map(|to| (&to.node_id, &to.activation_id, &to.input_port))
        .collect();
    check(Guard::RecipientsExact, places == expected, named)
}

/// The command as it is recorded: controls and resume are the coordinator's, and every skip is the generated one.
fn filled(
    state: &RunState,
    graph: &Graph,
    facts: &Facts,
    body: &CommitBoundary,
    consequences: &Consequences,
) -> Result<CommitBoundary, Rejection> {
    let mut manifest = body.manifest.clone();
    let mut blockers = boundary::blockers(&manifest.outcome.outstanding);
    blockers.extend(body.hold.iter().flat_map(|hold| hold.blockers.clone()));
    manifest.controls = boundary::controls(state, facts, manifest.controls.approvals);
    let (node, status) = (&manifest.producer.node_id, manifest.outcome.status);
    let mut resume = boundary::resume(consequences.eligible(node, status), blockers);
    // The mandatory checks are always there (REL-14); a producer may only ask for more.
    let more = manifest.resume.required_checks.into_iter();
    resume
        .required_checks
        .extend(more.filter(|check| matches!(check, RequiredCheck::Other(_))));
    manifest.resume = resume;
    let mut skipped = Vec::new();
    let mut exact = body.skipped.len() == consequences.skips.len();
    for (sent, skip) in body.skipped.iter().zip(&consequences.skips) {
        let ids = ManifestIds {
            handoff: sent.handoff_id.clone(),
            checkpoint: sent.producer.checkpoint_id.clone(),
            deliveries: sent
                .recipients
                .iter()
                .map(|to| to.delivery_id.clone())
                .collect(),
        };
        let Some(expected) = boundary::skip_manifest(state, graph, facts, skip, &ids) else {
            continue;
        };
        let mut compared = sent.clone();
        compared.controls = expected.controls.clone();
        compared.resume = expected.resume.clone();
        exact = exact && compared == expected;
        skipped.push(expected);
    }
    check(Guard::SkipsExact, exact, || {
        let nodes = consequences
            .skips
            .iter()
            .map(|skip| Value::from(&skip.node_id))
            .collect();
        details(&[("expected", Value::Array(nodes))])
    })?;
    Ok(CommitBoundary {
        manifest,
        hold: body.hold.clone(),
        skipped,
    })
}

fn outcome(
    state: &RunState,
    facts: &Facts,
    node: &Node,
    own: &NodeState,
    command: &CommitBoundary,
    consequences: &Consequences,
) -> Result<(Outcome, Value), Rejection> {
    let mut outcome = Outcome::default();
    let moved = |from, to| Transition::NodeMoved {
        node_id: node.id.clone(),
        from,
        to,
        skipped_by: None,
    };
    if own.status == NodeStatus::Blocked {
        outcome
            .transitions
            .push(moved(NodeStatus::Blocked, NodeStatus::Active));
    }
    let main = committed(state, facts, &command.manifest, None, &mut outcome)?;
    let ended = Transition::IterationEnded {
        node_id: node.id.clone(),
        iteration: U64(own.iteration),
    };
    outcome.transitions.push(match consequences.again {
        true => ended,
        false => moved(
            NodeStatus::Active,
            status_of(command.manifest.outcome.status),
        ),
    });
    for (index, manifest) in command.skipped.iter().enumerate() {
        committed(
            state,
            facts,
            manifest,
            Some(U64(index as u64)),
            &mut outcome,
        )?;
        outcome.transitions.push(Transition::NodeMoved {
            node_id: manifest.producer.node_id.clone(),
            from: NodeStatus::Pending,
            to: status_of(manifest.outcome.status),
            skipped_by: Some(node.id.clone()),
        });
    }
    outcome.transitions.extend(
        consequences
            .excluded
            .iter()
            .filter_map(|id| excluded(state, facts, id)),
    );
    if let Some(hold) = &command.hold {
        place_hold::open(state, place_hold::derive(state, hold, facts)?, &mut outcome)?;
    }
    end(state, facts, command, &mut outcome)?;
    let result = result(facts, command, &main)?;
    Ok((outcome, result))
}

/// The response. Whoever ends the run answers for what is still open (HF-05.6).
fn result(facts: &Facts, command: &CommitBoundary, main: &HandoffRef) -> Result<Value, Rejection> {
    let outcome = &command.manifest.outcome;
    let deliveries = command
        .manifest
        .recipients
        .iter()
        .map(|to| (&to.delivery_id).into());
    let skipped = command
        .skipped
        .iter()
        .map(|skip| (&skip.producer.node_id).into());
    let ends = matches!(
        outcome.status,
        OutcomeStatus::Failed | OutcomeStatus::Canceled
    );
    let owner = Some(facts.actor_id.as_str()).filter(|_| ends && !outcome.outstanding.is_empty());
    Ok(object! {
        "handoff": aiws::canonical::to_value(main)?,
        "checkpointId": &command.manifest.producer.checkpoint_id,
        "status": outcome.status,
        "deliveries": Value::Array(deliveries.collect()),
        "skipped": Value::Array(skipped.collect()),
        "holdId": command.hold.as_ref().map(|hold| hold.hold_id.as_str().to_owned()),
        "reconciliationOwner": owner,
    })
}

/// A manifest becomes part of the ledger, with one pending delivery per recipient (HF-03.11).
pub(super) fn committed(
    state: &RunState,
    facts: &Facts,
    manifest: &Manifest,
    skipped: Option<U64>,
    outcome: &mut Outcome,
) -> Result<HandoffRef, Rejection> {
    let digest = aiws::canonical::digest_of(manifest)?;
    let handoff = HandoffRef {
        handoff_id: manifest.handoff_id.clone(),
        digest,
    };
    outcome.transitions.push(Transition::ManifestCommitted {
        handoff: handoff.clone(),
        skipped,
    });
    outcome.identities.push(Identity {
        kind: IdentityKind::Handoff,
        key: manifest.handoff_id.as_id(),
        digest,
    });
    for recipient in &manifest.recipients {
        let delivery = Delivery {
            delivery_id: recipient.delivery_id.clone(),
            handoff: handoff.clone(),
            recipient: recipient.clone(),
            mission_id: manifest.producer.mission_id.clone(),
            run_id: manifest.producer.run_id.clone(),
            state: State::Pending,
            generation: U64(0),
            claim: None,
            acknowledgement: None,
            revision: U64(state.head.revision.get() + 1),
            created_at_ms: U64(facts.now_ms),
        };
        let digest = aiws::canonical::digest_of(&(&handoff, recipient))?;
        let key = recipient.delivery_id.as_id();
        outcome.identities.push(Identity {
            kind: IdentityKind::Delivery,
            key,
            digest,
        });
        outcome
            .transitions
            .push(Transition::DeliveryOpened { delivery });
    }
    Ok(handoff)
}

/// A delivery that a choice closes; a live claim on it ends (T-40, T-75).
pub(super) fn excluded(state: &RunState, facts: &Facts, id: &DeliveryId) -> Option<Transition> {
    let record = &state.deliveries.get(id)?.record;
    let ended = ClaimEnd {
        cause: ClaimEndCause::Fenced,
        at_ms: U64(facts.now_ms),
    };
    Some(Transition::DeliveryMoved {
        delivery_id: id.clone(),
        from: record.state,
        to: State::Excluded,
        ended: (record.state == State::Claimed).then_some(ended),
        claim: None,
        acknowledgement: None,
    })
}

/// FAILED and CANCELED end the run (HF-05.9), and so does a required input that was skipped (HD-04.5). A run that
/// is being canceled ends by finishCancelRun alone.
fn end(
    state: &RunState,
    facts: &Facts,
    command: &CommitBoundary,
    outcome: &mut Outcome,
) -> Result<(), Rejection> {
    let mut all = std::iter::once(&command.manifest).chain(&command.skipped);
    let ending = all.find(|manifest| {
        matches!(
            manifest.outcome.status,
            OutcomeStatus::Failed | OutcomeStatus::Canceled
        )
    });
    let Some(ending) = ending.filter(|_| state.lifecycle != Lifecycle::Canceling) else {
        return Ok(());
    };
    let to = match ending.outcome.status {
        OutcomeStatus::Canceled => Lifecycle::Canceled,
        _ => Lifecycle::Failed,
    };
    terminal::end(state, facts, to, ending.outcome.cause.clone(), outcome)
}

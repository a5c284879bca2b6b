//! JOIN ANY: which input a join takes, and what becomes of the candidates that it does not take.
//!
//! Invariant: no work is abandoned (FV-NODE-JOIN.2): what was begun keeps the join waiting, and only what nobody else
//! waits for is skipped. Called by admitConsumer; draft and plan ask the same questions.
//!
//! A candidate is a direct predecessor. What leads to nothing but skipped candidates is left out with them: it is
//! skipped where it was never begun, and keeps the join waiting where it was (HD-04.8). A candidate for which others
//! wait too is not skipped; its result only does not go to the join any more.

use std::collections::BTreeSet;

use aiws::id::{DeliveryId, NodeId};
use aiws::record::{
    Consumption, Delivery, DeliveryState as State, Graph, Join, JoinMode, Manifest, Node,
    OutcomeStatus,
};

use super::boundary::{self, Skip};
use super::{claims, commit_boundary};
use crate::admission::details;
use crate::decision::Rejection;
use crate::event::Outcome;
use crate::facts::Facts;
use crate::graph;
use crate::guard::{Guard, check};
use crate::run::{Committed, DeliveryState, NodeState, NodeStatus, RunState};
use crate::transition::Transition;

/// What follows from the choice of one input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Nodes that nobody waits for any more and that were never begun, in the order of the graph (T-41).
    pub(crate) skips: Vec<Skip>,
    /// Open deliveries to the join that are closed (T-40).
    pub(crate) excluded: Vec<DeliveryId>,
    /// Receipts of the join that were not chosen (T-40, HD-04.9).
    pub(crate) unselected: Vec<DeliveryId>,
    /// A node with work that the choice would abandon (HD-04.8).
    pub(crate) unsettled: Option<NodeId>,
    /// A candidate that was never begun; to be left out by policy alone (HD-04.7).
    pub(crate) unfinished: Option<NodeId>,
    /// A candidate that is done and could still be received; to be left out by policy alone.
    pub(crate) unreceived: Option<NodeId>,
}

/// What follows where an ANY join takes this delivery; without one every candidate counts as left out.
pub(crate) fn choice(
    state: &RunState,
    graph: &Graph,
    join: &Node,
    own: &NodeState,
    taken: Option<&DeliveryId>,
) -> Choice {
    let mut choice = Choice::default();
    for (delivery, committed) in arrived(state, own) {
        let record = &delivery.record;
        if taken == Some(&record.delivery_id) {
            continue;
        }
        match record.state {
            State::Acknowledged => choice.unselected.push(record.delivery_id.clone()),
            State::Pending | State::Claimed => {
                choice.excluded.push(record.delivery_id.clone());
                if fits(state, delivery, committed) {
                    choice.unreceived = Some(committed.manifest.producer.node_id.clone());
                }
            }
            State::Excluded | State::Invalidated => {}
        }
    }
    let gone = left_out(state, graph, join, &mut choice);
    if !graph::excludes_losers(&state.config, &join.id) {
        choice.excluded.clear();
        return choice;
    }
    let skip = |node: &Node| {
        let own = state
            .nodes
            .get(&node.id)
            .filter(|_| gone.contains(&node.id))?;
        Some(Skip {
            node_id: node.id.clone(),
            activation_id: own.activation_id.clone(),
            cause: None,
            places: boundary::places(state, graph, &node.id, |next| *next == join.id),
        })
    };
    choice.skips = graph.nodes.iter().filter_map(skip).collect();
    choice
}

/// The nodes that go with the candidates that are not done. Consumers come before producers, so that one walk settles
/// what is waited for.
fn left_out<'a>(
    state: &RunState,
    graph: &'a Graph,
    join: &Node,
    choice: &mut Choice,
) -> BTreeSet<&'a NodeId> {
    let dependents = graph::dependents(graph);
    let mut gone: BTreeSet<&NodeId> = BTreeSet::new();
    for node in graph::in_order(graph).into_iter().rev() {
        let Some(own) = state.nodes.get(&node.id) else {
            continue;
        };
        let next = graph::of(&dependents, &node.id);
        let candidate = join.depends_on.contains(&node.id);
        let waits = |next: &&Node| {
            let status = state.nodes.get(&next.id).map(|own| own.status);
            next.id != join.id && !gone.contains(&next.id) && status == Some(NodeStatus::Pending)
        };
        let feeds_gone = candidate || next.iter().any(|next| gone.contains(&next.id));
        let unwanted = feeds_gone && !next.iter().any(waits);
        if is_begun(own) && (candidate || unwanted) {
            choice.unsettled = Some(node.id.clone());
        } else if own.status == NodeStatus::Pending {
            if candidate {
                choice.unfinished = Some(node.id.clone());
            }
            if unwanted {
                gone.insert(&node.id);
            }
        }
    }
    gone
}

/// Admitted, and not done: also between two of its iterations.
fn is_begun(own: &NodeState) -> bool {
    match own.status {
        NodeStatus::Active | NodeStatus::Blocked => true,
        NodeStatus::Pending => own.iteration > 1,
        _ => false,
    }
}

/// The deliveries of an activation, each with its manifest.
fn arrived<'a>(
    state: &'a RunState,
    own: &'a NodeState,
) -> impl Iterator<Item = (&'a DeliveryState, &'a Committed)> {
    let all = state.deliveries.values();
    let mine = all.filter(|delivery| delivery.record.recipient.activation_id == own.activation_id);
    mine.filter_map(|delivery| {
        let committed = state.manifests.get(&delivery.record.handoff.handoff_id)?;
        Some((delivery, committed))
    })
}

/// Whether a join could take a delivery, once it is received: it is complete, and the join's mapping has it.
fn fits(state: &RunState, delivery: &DeliveryState, committed: &Committed) -> bool {
    committed.manifest.outcome.status == OutcomeStatus::Completed
        && claims::accepted(state, delivery, committed).is_ok()
        && claims::fits(state, delivery, committed).is_ok()
}

/// The delivery that a join takes where nobody says which: the one that was received first.
pub(crate) fn first<'a>(state: &'a RunState, own: &'a NodeState) -> Option<&'a Delivery> {
    let received = arrived(state, own).filter(|(delivery, committed)| {
        delivery.record.state == State::Acknowledged && fits(state, delivery, committed)
    });
    let records = received.map(|(delivery, _)| &delivery.record);
    records.min_by_key(|record| {
        let receipt = record.acknowledgement.as_ref();
        receipt.map_or(u64::MAX, |receipt| receipt.revision.get())
    })
}

/// Whether a join's dependencies are satisfied: one candidate is complete, no other has work under way, and without a
/// policy all others are done.
pub(crate) fn is_ready(state: &RunState, graph: &Graph, join: &Node, own: &NodeState) -> bool {
    let live = |delivery: &DeliveryState| {
        !matches!(delivery.record.state, State::Excluded | State::Invalidated)
    };
    let complete = arrived(state, own)
        .any(|(delivery, committed)| live(delivery) && fits(state, delivery, committed));
    if !complete {
        return false;
    }
    let choice = choice(state, graph, join, own, None);
    let patient = choice.unfinished.is_none() || graph::excludes_losers(&state.config, &join.id);
    choice.unsettled.is_none() && patient
}

/// Whether a join has a receipt that it could take now.
pub(crate) fn is_received(state: &RunState, graph: &Graph, join: &Node, own: &NodeState) -> bool {
    first(state, own).is_some_and(|taken| {
        let choice = choice(state, graph, join, own, Some(&taken.delivery_id));
        excludable(state, join, &choice)
    })
}

/// Whether nobody is left out but by policy.
fn excludable(state: &RunState, join: &Node, choice: &Choice) -> bool {
    let none = choice.unfinished.is_none() && choice.unreceived.is_none();
    none || graph::excludes_losers(&state.config, &join.id)
}

/// 8e: what is taken is complete; a skipped hand-off is accepted by a mapping at most to be known of.
pub(super) fn complete(committed: &Committed) -> Result<(), Rejection> {
    let manifest = &committed.manifest;
    let complete = manifest.outcome.status == OutcomeStatus::Completed;
    check(Guard::AnyCompleted, complete, || {
        details(&[
            ("handoffId", (&manifest.handoff_id).into()),
            ("status", manifest.outcome.status.into()),
        ])
    })
}

/// 8f: one input is taken, and the choice abandons no work and leaves nobody out against the policy.
pub(super) fn chosen(
    state: &RunState,
    graph: &Graph,
    join: &Node,
    own: &NodeState,
    sent: &Consumption,
) -> Result<Choice, Rejection> {
    let of_join = || details(&[("nodeId", (&join.id).into())]);
    let named = |candidate: &Option<NodeId>| {
        let candidate = candidate.as_ref().map(|id| id.as_str().to_owned());
        details(&[
            ("nodeId", (&join.id).into()),
            ("candidate", candidate.into()),
        ])
    };
    check(Guard::InputsComplete, !sent.inputs.is_empty(), of_join)?;
    check(Guard::AnyTakesOne, sent.inputs.len() == 1, of_join)?;
    let taken = sent.inputs.first().map(|input| &input.delivery_id);
    let choice = choice(state, graph, join, own, taken);
    check(Guard::JoinSettled, choice.unsettled.is_none(), || {
        named(&choice.unsettled)
    })?;
    let out = choice.unfinished.clone().or(choice.unreceived.clone());
    check(
        Guard::LosersExcludable,
        excludable(state, join, &choice),
        || named(&out),
    )?;
    Ok(choice)
}

/// The generated manifests of what is left out, under new names (HF-05.7, HF-02.2 to HF-02.4).
pub(super) fn manifests(
    state: &RunState,
    graph: &Graph,
    facts: &Facts,
    choice: &Choice,
) -> Result<Vec<Manifest>, Rejection> {
    let mut deliveries = 0;
    let mut all = Vec::new();
    for (index, skip) in choice.skips.iter().enumerate() {
        let ids = boundary::new_ids(state, index, skip.places.len(), &mut deliveries);
        all.extend(boundary::skip_manifest(state, graph, facts, skip, &ids));
    }
    commit_boundary::new_names(state, all.iter())?;
    Ok(all)
}

/// How the choice stands in the consumption: deliveries of the join alone, those of the generated manifests too.
pub(super) fn record(
    join: &Node,
    sent: &Consumption,
    choice: &Choice,
    skipped: &[Manifest],
) -> Join {
    let selected = sent.inputs.iter().map(|input| input.delivery_id.clone());
    let mut excluded = choice.excluded.clone();
    excluded.extend(generated(join, skipped));
    Join {
        mode: JoinMode::Any,
        selected: selected.collect(),
        excluded,
        unselected_acknowledged: choice.unselected.clone(),
    }
}

/// The deliveries to the join that the generated manifests make.
fn generated<'a>(join: &'a Node, skipped: &'a [Manifest]) -> impl Iterator<Item = DeliveryId> + 'a {
    let recipients = skipped.iter().flat_map(|manifest| &manifest.recipients);
    let mine = recipients.filter(|recipient| recipient.node_id == join.id);
    mine.map(|recipient| recipient.delivery_id.clone())
}

/// What the choice changes beside the join: skipped nodes with their manifests, and closed deliveries.
pub(super) fn leave_out(
    state: &RunState,
    facts: &Facts,
    join: &Node,
    choice: &Choice,
    skipped: &[Manifest],
    outcome: &mut Outcome,
) -> Result<(), Rejection> {
    for (index, manifest) in skipped.iter().enumerate() {
        let index = aiws::decimal::U64(index as u64);
        commit_boundary::committed(state, facts, manifest, Some(index), outcome)?;
        outcome.transitions.push(Transition::NodeMoved {
            node_id: manifest.producer.node_id.clone(),
            from: NodeStatus::Pending,
            to: NodeStatus::Skipped,
            skipped_by: Some(join.id.clone()),
        });
    }
    let mut open = choice.excluded.clone();
    open.extend(boundary::excluded(state, &choice.skips));
    let closed = open
        .iter()
        .filter_map(|id| commit_boundary::excluded(state, facts, id));
    outcome.transitions.extend(closed);
    let new = generated(join, skipped).map(|delivery_id| Transition::DeliveryMoved {
        delivery_id,
        from: State::Pending,
        to: State::Excluded,
        ended: None,
        claim: None,
        acknowledgement: None,
    });
    outcome.transitions.extend(new);
    Ok(())
}

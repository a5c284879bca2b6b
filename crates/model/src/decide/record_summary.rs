//! recordSummary: words about a hand-off, kept beside it (SUM-1).
//!
//! Invariant: the record is all that changes: no manifest, gate, money or authority, and its text is read by nobody here
//! (REL-10, SUM-5); what a model's words cost was settled before (SUM-3). Called by `decide::run`.

use aiws::canonical::{digest_of, from_value, to_value};
use aiws::decimal::U64;
use aiws::id::OperationId;
use aiws::object;
use aiws::record::{ActorKind, AuthorKind, Operation, OperationStatus, Summary};

use praxis_plant::{self as plant, Plant};

use super::pipeline::members;
use crate::command::{Body, Command, RecordSummary, SummaryProposal};
use crate::decision::{Decision, Rejection};
use crate::event::{DueChange, DueKind, Identity, IdentityKind, Outcome};
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::run::{Committed, RunState};
use crate::transition::Transition;

/// Stage 6 of recordSummary: the author is who was authenticated, and of a kind that may say so.
pub(super) fn authority(body: &RecordSummary, facts: &Facts) -> Result<(), Rejection> {
    let author = &body.summary.author;
    let found = || {
        members(object! {
            "author": &author.actor_id,
            "kind": author.kind,
            "actor": &facts.actor_id,
            "actorKind": facts.actor_kind,
        })
    };
    let may = match author.kind {
        // Whether a human is one is the next question.
        AuthorKind::Human => true,
        AuthorKind::Engine => facts.actor_kind == ActorKind::System,
        AuthorKind::Model => matches!(
            facts.actor_kind,
            ActorKind::Human | ActorKind::Agent | ActorKind::System
        ),
    };
    let own = author.actor_id == facts.actor_id;
    check(Guard::SummaryAuthor, own && may, found)?;
    let human = author.kind != AuthorKind::Human || facts.actor_kind == ActorKind::Human;
    check(Guard::SummaryHuman, human, found)
}

/// Stage 8 of recordSummary.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &RecordSummary,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let said = &body.summary;
    let named = || members(object! { "summaryId": &said.summary_id });
    let new = !state.summaries.contains_key(&said.summary_id);
    check(Guard::SummaryNew, new, named)?;
    let named = || members(object! { "handoffId": &said.handoff.handoff_id });
    let committed = state.manifests.get(&said.handoff.handoff_id);
    let committed = need(Guard::SummaryBasis, committed, named)?;
    let operation = said.author.operation_id.as_ref();
    let operation = operation.map(|id| settled(state, id)).transpose()?;
    let exact = committed.digest == said.handoff.digest;
    check(Guard::SummaryBasis, exact, named)?;
    if let Some(operation) = operation {
        written(state, committed, operation)?;
    }
    let record = record(said, facts.now_ms, state.head.revision.get() + 1);
    // An event that cannot be read back must never be written.
    let unread = from_value::<Summary>(&to_value(&record)?).err();
    check(Guard::SummaryShape, unread.is_none(), || {
        let why = unread.map(|error| error.to_string());
        members(object! { "summaryId": &said.summary_id, "why": why })
    })?;
    let identity = Identity {
        kind: IdentityKind::Summary,
        key: said.summary_id.as_id(),
        digest: digest_of(&record)?,
    };
    Ok(Decision {
        command: Body::RecordSummary(body.clone()),
        outcome: Outcome {
            transitions: vec![Transition::SummaryRecorded {
                summary_id: said.summary_id.clone(),
            }],
            identities: vec![identity],
            due: moved(state),
            ..Outcome::default()
        },
        result: object! { "summaryId": &said.summary_id, "handoff": to_value(&said.handoff)? },
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

/// Nothing, but for a planted defect.
fn moved(state: &RunState) -> Vec<DueChange> {
    let change = DueChange {
        stream: state.stream.clone(),
        kind: DueKind::Live,
        at_ms: None,
    };
    let planted = plant::is(Plant::SummaryMovesDue);
    planted.then_some(change).into_iter().collect()
}

/// The record of what was said, at its time and place.
pub(crate) fn record(said: &SummaryProposal, at_ms: u64, revision: u64) -> Summary {
    Summary {
        summary_id: said.summary_id.clone(),
        handoff: said.handoff.clone(),
        author: said.author.clone(),
        text: said.text.clone(),
        created_at_ms: U64(at_ms),
        revision: U64(revision),
    }
}

/// 8a and 8b: the operation in which a model wrote is one of this run, with a known outcome.
fn settled<'a>(state: &'a RunState, id: &OperationId) -> Result<&'a Operation, Rejection> {
    let named = || members(object! { "operationId": id });
    let operation = need(Guard::OperationKnown, state.operations.get(id), named)?;
    let open = operation.status == OperationStatus::Open;
    check(Guard::SummarySettled, !open, || {
        members(object! { "operationId": id, "status": operation.status })
    })?;
    Ok(operation)
}

/// The operation in which a model wrote it was applied, and made the hand-off or worked on it, for no other one had it
/// before it.
fn written(
    state: &RunState,
    committed: &Committed,
    operation: &Operation,
) -> Result<(), Rejection> {
    let id = &operation.operation_id;
    let open = operation.status == OperationStatus::Open;
    let applied = operation.status == OperationStatus::ConfirmedApplied;
    check(Guard::SummaryApplied, open || applied, || {
        members(object! { "operationId": id, "status": operation.status })
    })?;
    let manifest = &committed.manifest;
    let mut made = manifest.producer.operations.iter();
    let activation = operation.activation_id.as_ref();
    let bound = activation.and_then(|activation| state.consumptions.get(activation));
    let mut inputs = bound.iter().flat_map(|bound| &bound.inputs);
    let matches = made.any(|made| made.operation_id == *id)
        || inputs.any(|input| input.handoff.handoff_id == manifest.handoff_id);
    check(Guard::SummaryMatches, matches, || {
        members(object! { "operationId": id })
    })
}

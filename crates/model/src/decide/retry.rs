//! retry: another attempt of the same operation is prepared and reserved (FV-ACC.5, FV-ACC.6).
//!
//! Invariant: only after the attempt before is confirmed not applied, and never beyond the contract's bound; an
//! uncertain effect is never tried again (FV-EFF.3). Called by `decide::run`.

use aiws::canonical::digest_of;
use aiws::decimal::{Dec, U64};
use aiws::limits::MAX_LIST_ITEMS;
use aiws::object;
use aiws::record::{Attempt, AttemptStatus, Operation};

use super::pipeline::members;
use crate::account::Posting;
use crate::admission::{self, Wanted};
use crate::command::{Body, Command, Retry};
use crate::decision::{Decision, Rejection};
use crate::event::{Identity, IdentityKind, Outcome};
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::mission::cost_account;
use crate::run::{NodeStatus, RunState};
use crate::transition::Transition;

/// Stages 8 and 9 of retry.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &Retry,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let named =
        || members(object! { "operationId": &body.operation_id, "attemptId": &body.attempt_id });
    check(
        Guard::RetryAttemptNew,
        !state.attempts.contains_key(&body.attempt_id),
        named,
    )?;
    let operation = need(
        Guard::OperationKnown,
        state.operations.get(&body.operation_id),
        named,
    )?;
    let before = operation
        .attempts
        .last()
        .and_then(|id| state.attempts.get(id));
    let before = need(Guard::AttemptKnown, before, named)?;
    let open = matches!(
        before.status,
        AttemptStatus::Dispatched | AttemptStatus::Unknown
    );
    let found = || members(object! { "attemptId": &before.attempt_id, "status": before.status });
    check(Guard::RetryResolved, !open, found)?;
    check(
        Guard::RetryNotApplied,
        open || before.status == AttemptStatus::ConfirmedNotApplied,
        found,
    )?;
    let node = operation
        .node_id
        .as_ref()
        .and_then(|id| admission::find_node(state, id));
    let node = need(Guard::ConsumerKnown, node, named)?;
    let active = state
        .nodes
        .get(&node.id)
        .is_some_and(|place| place.status == NodeStatus::Active);
    check(Guard::RetryActive, active, || {
        members(object! { "nodeId": &node.id })
    })?;
    let activation = operation.activation_id.as_ref();
    admission::standing(state, need(Guard::DispatchConsumes, activation, named)?)?;
    let wanted = Wanted {
        node,
        operation_id: &body.operation_id,
        action: &operation.action,
        grant_id: &operation.grant_id,
        approval_id: operation.approval_id.as_ref(),
        amount: body.amount,
    };
    let cleared = admission::check(state, facts, &wanted, || {
        admission::budget(facts, body.amount)
    })?;
    attempts_left(state, operation)?;
    Ok(Decision {
        command: Body::Retry(Retry {
            policy: facts.policy.clone(),
            ..body.clone()
        }),
        outcome: outcome(state, body, cleared.bind)?,
        result: object! {
            "operationId": &body.operation_id,
            "attemptId": &body.attempt_id,
            "status": AttemptStatus::Prepared,
            "reserved": body.amount,
        },
        same: cleared.same,
        before_ms: cleared.before_ms,
    })
}

fn attempts_left(state: &RunState, operation: &Operation) -> Result<(), Rejection> {
    let (used, bound) = (
        Dec::from_u64(operation.attempts.len() as u64),
        state.contract.max_attempts.get(),
    );
    // The operation's boundary lists every attempt; one that no list could hold would never be concluded.
    let listed = operation.attempts.len() < MAX_LIST_ITEMS;
    check(Guard::AttemptsLeft, used < bound && listed, || {
        members(
            object! { "operationId": &operation.operation_id, "attempts": used, "maxAttempts": bound },
        )
    })
}

fn outcome(state: &RunState, body: &Retry, bind: Option<Transition>) -> Result<Outcome, Rejection> {
    let attempt = Attempt {
        attempt_id: body.attempt_id.clone(),
        operation_id: body.operation_id.clone(),
        epoch: U64(state.epoch),
        status: AttemptStatus::Prepared,
        reserved: body.amount,
        actual: None,
        evidence: Vec::new(),
    };
    let digest = digest_of(&attempt)?;
    Ok(Outcome {
        transitions: bind
            .into_iter()
            .chain([Transition::AttemptPrepared { attempt }])
            .collect(),
        accounts: vec![Posting::Reserve {
            account: cost_account(&state.subject),
            amount: body.amount,
        }],
        identities: vec![Identity {
            kind: IdentityKind::Attempt,
            key: body.attempt_id.as_id(),
            digest,
        }],
        ..Outcome::default()
    })
}

//! reconcile: an uncertain attempt gets its outcome, from evidence that is there (FV-EFF.4).
//!
//! Invariant: a human decides, or a conclusive look-up, or the contract's rule for lost reads (T-20); nothing is
//! ever assumed about an effect. Called by `decide::run`; the predicates also by settle.

use aiws::object;
use aiws::record::{ActorKind, Attempt, AttemptStatus, EffectClass, SettledOutcome};

use super::pipeline::members;
use super::settle::{Said, confirm, is_confirmed};
use crate::command::{Body, Command, Reconcile};
use crate::decision::{Decision, Rejection};
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::run::RunState;

/// Class of a decision that rests on a conclusive look-up by the engine.
pub const LOOKUP: &str = "LOOKUP";

/// Class of a decision that rests on the contract's rule for lost reads.
pub const LOST_READ_RULE: &str = "LOST_READ_RULE";

/// Stage 1 of reconcile: nobody reconciles into not knowing.
pub(super) fn shape(body: &Reconcile) -> Result<(), Rejection> {
    let confirms = body.outcome != SettledOutcome::Unknown;
    check(Guard::ReconcileConfirms, confirms, || {
        members(object! { "attemptId": &body.attempt_id })
    })
}

/// Stage 6 of reconcile.
pub(super) fn authority(
    state: &RunState,
    body: &Reconcile,
    facts: &Facts,
) -> Result<(), Rejection> {
    let attempt = state.attempts.get(&body.attempt_id);
    let rule = body.outcome == SettledOutcome::ConfirmedNotApplied
        && attempt.is_some_and(|attempt| decided_by_lost_read(state, attempt, facts));
    check(
        Guard::UncertainHuman,
        is_human(facts) || is_lookup(facts) || rule,
        || members(object! { "attemptId": &body.attempt_id, "actor": &facts.actor_id }),
    )
}

/// Stage 8 of reconcile.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &Reconcile,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let named = || members(object! { "attemptId": &body.attempt_id });
    let attempt = need(
        Guard::AttemptKnown,
        state.attempts.get(&body.attempt_id),
        named,
    )?;
    check(Guard::ReconcileState, is_uncertain(state, attempt), || {
        members(object! { "attemptId": &body.attempt_id, "status": attempt.status })
    })?;
    let rule = body.outcome == SettledOutcome::ConfirmedNotApplied
        && decided_by_lost_read(state, attempt, facts);
    check(
        Guard::UncertainEvidence,
        rule || is_confirmed(&body.evidence, facts),
        named,
    )?;
    let said = Said {
        outcome: body.outcome,
        actual: body.actual,
        evidence: &body.evidence,
        rule,
    };
    Ok(Decision {
        command: Body::Reconcile(body.clone()),
        outcome: confirm(state, facts, attempt, &said)?,
        result: object! { "attemptId": &body.attempt_id, "status": AttemptStatus::from(body.outcome), "actual": body.actual },
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

/// Whether nobody knows what an attempt did: UNKNOWN, or DISPATCHED by an owner that is gone (T-19).
pub(crate) fn is_uncertain(state: &RunState, attempt: &Attempt) -> bool {
    match attempt.status {
        AttemptStatus::Unknown => true,
        AttemptStatus::Dispatched => attempt.epoch.get() < state.epoch,
        _ => false,
    }
}

/// Whether someone decides who may say that an uncertain effect did not happen.
pub(super) fn is_warranted(state: &RunState, attempt: &Attempt, facts: &Facts) -> bool {
    is_human(facts) || is_lookup(facts) || decided_by_lost_read(state, attempt, facts)
}

/// Whether the contract's rule settles this attempt: a lost read, decided by the engine in the name of the human
/// who approved the rule (T-20).
pub(super) fn decided_by_lost_read(state: &RunState, attempt: &Attempt, facts: &Facts) -> bool {
    let read = state
        .operations
        .get(&attempt.operation_id)
        .is_some_and(|operation| operation.effect == EffectClass::Read);
    let named = state
        .contract
        .lost_reads
        .as_ref()
        .is_some_and(|rule| facts.decision_ref.as_ref() == Some(&rule.decision_ref));
    let claimed = facts.actor_kind == ActorKind::System && facts.decision_class == LOST_READ_RULE;
    claimed && named && read && is_uncertain(state, attempt)
}

/// An authenticated human, with a reference to the decision (HS-03.7).
pub(super) fn is_human(facts: &Facts) -> bool {
    facts.actor_kind == ActorKind::Human && facts.decision_ref.is_some()
}

fn is_lookup(facts: &Facts) -> bool {
    facts.actor_kind == ActorKind::System && facts.decision_class == LOOKUP
}

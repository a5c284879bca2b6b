//! settle: what became of an attempt (FV-ACC.2).
//!
//! Invariant: an outcome nobody knows keeps its reservation (FV-EFF.2), a confirmed one ends it by what was really
//! spent, past the bound too (HS-02.8); what is uncertain is never declared undone without evidence (T-20).
//! Called by `decide::run`; `confirm` also by reconcile.

use aiws::decimal::Dec;
use aiws::id::EvidenceId;
use aiws::object;
use aiws::record::{ActorKind, Attempt, AttemptStatus, RestartPolicy, SettledOutcome};

use super::pipeline::members;
use super::reconcile::{decided_by_lost_read, is_uncertain, is_warranted};
use crate::account::Posting;
use crate::command::{Body, Command, Settle};
use crate::decision::{Decision, Rejection};
use crate::event::Outcome;
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::mission::cost_account;
use crate::run::RunState;
use crate::transition::Transition;
use praxis_plant::{self as plant, Plant};

/// Stage 1 of settle: what nobody knows has no cost yet.
pub(super) fn shape(body: &Settle) -> Result<(), Rejection> {
    let known = body.outcome != SettledOutcome::Unknown;
    check(
        Guard::UnknownUncharged,
        known || body.actual.is_zero(),
        || members(object! { "attemptId": &body.attempt_id, "actual": body.actual }),
    )
}

/// Stage 6 of settle: who may return a prepared attempt, and who may say that an uncertain one had no effect.
pub(super) fn authority(state: &RunState, body: &Settle, facts: &Facts) -> Result<(), Rejection> {
    let Some(attempt) = state.attempts.get(&body.attempt_id) else {
        return Ok(());
    };
    let named = || members(object! { "attemptId": &body.attempt_id, "actor": &facts.actor_id });
    let automatic = facts.actor_kind == ActorKind::System
        && state.config.restart_policy != RestartPolicy::Human;
    let operator = facts.actor_kind == ActorKind::Human || automatic;
    check(
        Guard::SettleOperator,
        attempt.status != AttemptStatus::Prepared || operator,
        named,
    )?;
    let undone =
        body.outcome == SettledOutcome::ConfirmedNotApplied && is_uncertain(state, attempt);
    check(
        Guard::UncertainHuman,
        !undone || is_warranted(state, attempt, facts),
        named,
    )
}

/// Stage 8 of settle.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &Settle,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let named = || members(object! { "attemptId": &body.attempt_id });
    let attempt = need(
        Guard::AttemptKnown,
        state.attempts.get(&body.attempt_id),
        named,
    )?;
    let outcome = if body.outcome == SettledOutcome::Unknown {
        lost(state, attempt, body)?
    } else {
        settled(state, body, facts, attempt)?
    };
    Ok(Decision {
        command: Body::Settle(body.clone()),
        outcome,
        result: object! { "attemptId": &body.attempt_id, "status": AttemptStatus::from(body.outcome), "actual": body.actual },
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

/// The answer is lost: the attempt is uncertain, and its reservation stays.
fn lost(state: &RunState, attempt: &Attempt, body: &Settle) -> Result<Outcome, Rejection> {
    let named = || members(object! { "attemptId": &body.attempt_id, "status": attempt.status });
    check(
        Guard::UnknownOnce,
        attempt.status == AttemptStatus::Dispatched,
        named,
    )?;
    let moved = Transition::AttemptMoved {
        attempt_id: attempt.attempt_id.clone(),
        from: attempt.status,
        to: AttemptStatus::Unknown,
        actual: None,
        evidence: body.evidence.clone(),
    };
    let released = plant::is(Plant::UnknownReleases).then(|| Posting::Release {
        account: cost_account(&state.subject),
        reserved: attempt.reserved,
    });
    Ok(Outcome {
        transitions: vec![moved],
        accounts: released.into_iter().collect(),
        ..Outcome::default()
    })
}

fn settled(
    state: &RunState,
    body: &Settle,
    facts: &Facts,
    attempt: &Attempt,
) -> Result<Outcome, Rejection> {
    let named = || members(object! { "attemptId": &body.attempt_id, "status": attempt.status });
    let prepared = attempt.status == AttemptStatus::Prepared;
    let in_flight = matches!(
        attempt.status,
        AttemptStatus::Dispatched | AttemptStatus::Unknown
    );
    // Nobody can dispatch it any more: its epoch is over, or the run is (T-19).
    let stranded = prepared && (attempt.epoch.get() < state.epoch || state.lifecycle.is_terminal());
    check(Guard::SettleState, in_flight || stranded, named)?;
    let returned = body.outcome == SettledOutcome::ConfirmedNotApplied;
    check(Guard::SettleOnlyReturns, !prepared || returned, named)?;
    let rule = returned && decided_by_lost_read(state, attempt, facts);
    let uncertain = is_uncertain(state, attempt);
    // The ledger itself shows that a prepared attempt was never tried, and the rule stands for a lost read.
    check(
        Guard::SettleEvidence,
        prepared || rule || uncertain || !body.evidence.is_empty(),
        named,
    )?;
    check(
        Guard::UncertainEvidence,
        !uncertain || rule || is_confirmed(&body.evidence, facts),
        named,
    )?;
    confirm(
        state,
        facts,
        attempt,
        &Said {
            outcome: body.outcome,
            actual: body.actual,
            evidence: &body.evidence,
            rule,
        },
    )
}

/// Evidence is named, and the host confirms all of it (CRD-1).
pub(super) fn is_confirmed(evidence: &[EvidenceId], facts: &Facts) -> bool {
    !evidence.is_empty() && evidence.iter().all(|id| facts.clear_evidence.contains(id))
}

/// A confirmed outcome as it was said.
pub(super) struct Said<'a> {
    /// Applied or not applied.
    pub outcome: SettledOutcome,
    /// What it cost, in units.
    pub actual: Dec,
    /// What shows it.
    pub evidence: &'a [EvidenceId],
    /// Whether the contract's rule for lost reads decides.
    pub rule: bool,
}

/// The outcome of a confirmation: the attempt moves, its reservation ends.
pub(super) fn confirm(
    state: &RunState,
    facts: &Facts,
    attempt: &Attempt,
    said: &Said<'_>,
) -> Result<Outcome, Rejection> {
    let named = || {
        members(
            object! { "attemptId": &attempt.attempt_id, "actual": said.actual, "reserved": attempt.reserved },
        )
    };
    let applied = said.outcome == SettledOutcome::ConfirmedApplied;
    check(
        Guard::LostReadCharged,
        !said.rule || said.actual == attempt.reserved,
        named,
    )?;
    check(
        Guard::NotAppliedUncharged,
        applied || said.rule || said.actual.is_zero(),
        named,
    )?;
    // Past 100 digits nothing is posted, and the attempt stays uncertain (T-05).
    let counts = facts.account.as_ref().is_none_or(|row| {
        let kept = row
            .reserved
            .checked_sub(attempt.reserved)
            .unwrap_or(Dec::ZERO);
        row.spent
            .checked_add(said.actual)
            .and_then(|spent| spent.checked_add(kept))
            .is_some()
    });
    check(Guard::ActualCounts, counts, named)?;
    let (account, reserved) = (cost_account(&state.subject), attempt.reserved);
    let posting = if applied || said.rule {
        Posting::Settle {
            account,
            reserved,
            actual: said.actual,
        }
    } else {
        Posting::Release { account, reserved }
    };
    let moved = Transition::AttemptMoved {
        attempt_id: attempt.attempt_id.clone(),
        from: attempt.status,
        to: AttemptStatus::from(said.outcome),
        actual: Some(said.actual),
        evidence: said.evidence.to_vec(),
    };
    let mut accounts = vec![posting];
    let twice = plant::is(Plant::ReservationEndsTwice) || plant::is(Plant::AmountSaturates);
    if twice {
        let account = cost_account(&state.subject);
        accounts.push(Posting::Release { account, reserved });
    }
    let late = state.lifecycle != aiws::record::Lifecycle::Running;
    if late && plant::is(Plant::LateSettlementDropped) {
        accounts.clear();
    }
    Ok(Outcome {
        transitions: vec![moved],
        accounts,
        ..Outcome::default()
    })
}

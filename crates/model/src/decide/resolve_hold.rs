//! resolveHold: a hold's blockers are looked at again, or it is closed into cancellation (HS-03.1).
//!
//! Invariant: releases this hold and nothing else, on live predicates and never on words (HS-03.2, REL-9); starts
//! no work and refunds nothing (HC-RH.1). Called by `decide::run`; `close` also by finishCancelRun.

use std::collections::BTreeSet;

use aiws::decimal::{Dec, U64};
use aiws::id::{EvidenceId, Id};
use aiws::object;
use aiws::record::{
    ActorKind, Blocker, Hold, HoldDecision, HoldReason, HoldResolution, HoldState, Lifecycle,
    OutcomeStatus, Ref, RestartPolicy,
};

use super::cancel_run;
use super::pipeline::members;
use super::place_hold::{in_flight, needed_amount, uncertain};
use super::reconcile::is_human;
use crate::command::{Body, Command, ResolveHold};
use crate::decision::{Decision, Rejection};
use crate::event::{GateChange, Outcome};
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::hold;
use crate::run::{NodeStatus, RunState};
use crate::transition::Transition;

/// Whether an ended run refuses the command: it does refuse a recheck, and lets a hold be closed.
pub(super) fn ends_with_run(body: &Body) -> bool {
    matches!(body, Body::ResolveHold(body) if body.decision == HoldDecision::Recheck)
}

/// Stage 6 of resolveHold. It looks at closed holds too: who may not decide learns nothing of the state (P-06).
pub(super) fn authority(
    state: &RunState,
    body: &ResolveHold,
    facts: &Facts,
) -> Result<(), Rejection> {
    let found = || {
        members(
            object! { "holdId": &body.hold_id, "actor": &facts.actor_id, "actorKind": facts.actor_kind },
        )
    };
    if praxis_plant::is(praxis_plant::Plant::ReleaseByAnyone) {
        return Ok(());
    }
    let principal = matches!(
        facts.actor_kind,
        ActorKind::Human | ActorKind::System | ActorKind::Rule
    );
    check(Guard::ResolvePrincipal, principal, found)?;
    let hold = state.holds.get(&body.hold_id);
    let human =
        body.decision == HoldDecision::Cancel || hold.is_some_and(|hold| needs_human(state, hold));
    check(Guard::ResolveHuman, !human || is_human(facts), found)?;
    let by_rule = facts.actor_kind == ActorKind::Rule;
    let approved = state.config.rule.as_ref();
    let named = match by_rule {
        true => body.rule.is_some() && body.rule.as_ref() == approved,
        false => body.rule.is_none(),
    };
    check(Guard::ResolveRule, named, found)?;
    check(
        Guard::ResolveRuleCurrent,
        !by_rule || is_evaluated(state, facts),
        found,
    )?;
    let alone = facts.actor_kind == ActorKind::System;
    let ruled = hold.is_some_and(|hold| {
        state.config.restart_policy == RestartPolicy::Rule
            && kinds(hold).contains(&HoldReason::Restart)
    });
    check(Guard::ResolveRuled, !alone || !ruled, found)
}

/// Whether what the host evaluated is the rule policy that the run's configuration approves, at that revision: a rule
/// that changed since decides nothing until a human approves it anew (HS-03.9).
pub(super) fn is_evaluated(state: &RunState, facts: &Facts) -> bool {
    state.config.rule.as_ref() == Some(&facts.policy)
}

/// Uncertainty, anything that would grow resources, and a restart under HUMAN are a human's to decide (HS-03.7).
fn needs_human(state: &RunState, hold: &Hold) -> bool {
    kinds(hold).into_iter().any(|kind| match kind {
        HoldReason::UncertainEffect
        | HoldReason::AttemptLimit
        | HoldReason::CostLimit
        | HoldReason::TimeLimit => true,
        HoldReason::Restart => state.config.restart_policy == RestartPolicy::Human,
        _ => false,
    })
}

/// The reason and the kinds of all blockers.
fn kinds(hold: &Hold) -> BTreeSet<HoldReason> {
    hold.blockers
        .iter()
        .map(|blocker| blocker.kind)
        .chain([hold.reason])
        .collect()
}

/// Stage 8 of resolveHold.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &ResolveHold,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let named = || members(object! { "holdId": &body.hold_id });
    let hold = need(Guard::ResolveKnown, state.holds.get(&body.hold_id), named)?;
    check(Guard::ResolveOpen, hold.state == HoldState::Open, || {
        members(object! { "holdId": &body.hold_id, "state": hold.state })
    })?;
    check(
        Guard::ResolveAllowed,
        hold.allowed_decisions.contains(&body.decision),
        || members(object! { "holdId": &body.hold_id, "decision": body.decision }),
    )?;
    let mut outcome = Outcome::default();
    let closing = Closing {
        decision: body.decision,
        decision_ref: &body.decision_ref,
        evidence: &body.evidence,
        rule: body.rule.as_ref(),
    };
    close(state, hold, &closing, facts, &mut outcome);
    match body.decision {
        HoldDecision::Recheck => {
            clear(state, hold, body, facts)?;
            resume(state, hold, &mut outcome);
        }
        HoldDecision::Cancel => {
            disposed(state, hold)?;
            if state.lifecycle == Lifecycle::Running {
                cancel_run::begin(state, &mut outcome);
            }
        }
    }
    Ok(Decision {
        command: Body::ResolveHold(body.clone()),
        outcome,
        result: object! { "holdId": &body.hold_id, "state": closed_state(body.decision) },
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

/// Every blocker is clear now, whatever was said about it when the hold was opened.
fn clear(
    state: &RunState,
    hold: &Hold,
    body: &ResolveHold,
    facts: &Facts,
) -> Result<(), Rejection> {
    let named = || members(object! { "holdId": &hold.hold_id });
    let shown = facts.actor_kind != ActorKind::Rule || !body.evidence.is_empty();
    check(Guard::ResolveRuleEvidence, shown, named)?;
    let known = body
        .evidence
        .iter()
        .all(|id| facts.clear_evidence.contains(id));
    check(Guard::ResolveEvidence, known, named)?;
    for kind in kinds(hold) {
        match kind {
            // No command of this build raises a bound, so an exhausted one stays exhausted (HS-02.4).
            HoldReason::AttemptLimit => check(Guard::ResolveAttempts, false, named)?,
            HoldReason::CostLimit => check(Guard::ResolveCost, has_room(hold, facts), named)?,
            HoldReason::TimeLimit => {
                let ahead = is_ahead(state, hold, facts.now_ms);
                check(Guard::ResolveTime, ahead, named)?;
            }
            HoldReason::UncertainEffect => check(
                Guard::ResolveEffects,
                uncertain(state, &hold.members).next().is_none(),
                named,
            )?,
            HoldReason::InvalidatedInput => check(Guard::ResolveInputs, false, named)?,
            HoldReason::Restart => restart(state, hold, facts)?,
            HoldReason::Artifact => {
                check(Guard::ResolveBlockers, !body.evidence.is_empty(), named)?
            }
            HoldReason::Operator | HoldReason::Rule => {
                let names_blocker = hold.blockers.iter().any(|blocker| blocker.kind == kind);
                check(
                    Guard::ResolveBlockers,
                    !names_blocker || !body.evidence.is_empty(),
                    named,
                )?;
            }
        }
    }
    Ok(())
}

/// A restart goes on once every effect is known; without a human only where the host's rule allows it.
fn restart(state: &RunState, hold: &Hold, facts: &Facts) -> Result<(), Rejection> {
    let named = || members(object! { "holdId": &hold.hold_id });
    check(
        Guard::ResolveEffects,
        uncertain(state, &hold.members).next().is_none(),
        named,
    )?;
    check(
        Guard::ResolveRestart,
        is_human(facts) || facts.restart_allowed,
        named,
    )
}

/// The budget takes what the hold says is needed, and something in any case.
fn has_room(hold: &Hold, facts: &Facts) -> bool {
    let needed = hold.blockers.iter().filter_map(needed_amount).max();
    // An account that was not read shows no room.
    facts.account.as_ref().is_some_and(|row| {
        let used = row.spent.checked_add(row.reserved);
        let with = used.and_then(|used| used.checked_add(needed.unwrap_or(Dec::ZERO)));
        used.is_some_and(|used| used < row.bound) && with.is_some_and(|with| with <= row.bound)
    })
}

/// The contract's deadline is ahead, and so is that of every node that the hold names.
fn is_ahead(state: &RunState, hold: &Hold, now_ms: u64) -> bool {
    let late = |blocker: &Blocker| {
        let nodes = state.graph.iter().flat_map(|graph| &graph.nodes);
        let mut named = nodes.filter(|node| node.id.as_str() == blocker.subject_id.as_str());
        let own = named.find_map(|node| node.deadline_ms);
        blocker.kind == HoldReason::TimeLimit && own.is_some_and(|own| own.reached(now_ms))
    };
    !state.contract.deadline_ms.reached(now_ms) && !hold.blockers.iter().any(late)
}

/// Every attempt in flight that the hold covers has what becomes of it on record (HS-06.6). Beside a held branch others
/// go on, and what they try is none of this hold's.
fn disposed(state: &RunState, own: &Hold) -> Result<(), Rejection> {
    let listed = |id: &aiws::id::AttemptId| {
        own.stop_disposition
            .iter()
            .any(|said| said.attempt_id == *id)
    };
    let missing = state
        .attempts
        .values()
        .filter(|attempt| hold::contains_attempt(state, &own.members, attempt))
        .find(|attempt| in_flight(attempt) && !listed(&attempt.attempt_id));
    check(Guard::ResolveDisposed, missing.is_none(), || {
        members(object! { "attemptId": missing.map(|attempt| attempt.attempt_id.as_str()) })
    })
}

/// The node whose BLOCKED boundary opened the hold may go on, with the same activation and consumption (T-44).
fn resume(state: &RunState, hold: &Hold, outcome: &mut Outcome) {
    for committed in state.manifests.values() {
        let manifest = &committed.manifest;
        let blocked = manifest.outcome.status == OutcomeStatus::Blocked
            && committed.revision == hold.opened_revision.get();
        let node_id = &manifest.producer.node_id;
        if blocked
            && state
                .nodes
                .get(node_id)
                .is_some_and(|node| node.status == NodeStatus::Blocked)
        {
            outcome.transitions.push(Transition::NodeMoved {
                node_id: node_id.clone(),
                from: NodeStatus::Blocked,
                to: NodeStatus::Active,
                skipped_by: None,
            });
        }
    }
}

/// How a hold is closed.
pub(super) struct Closing<'a> {
    /// RECHECK or CANCEL.
    pub decision: HoldDecision,
    /// The caller's decision reference; the host's counts where it has one (FV-GRT.6).
    pub decision_ref: &'a Id,
    /// What shows that it may end.
    pub evidence: &'a [EvidenceId],
    /// The rule, where a rule decides.
    pub rule: Option<&'a Ref>,
}

/// Adds the end of a hold to an outcome: the record, and the one gate that opens again.
pub(super) fn close(
    state: &RunState,
    hold: &Hold,
    closing: &Closing<'_>,
    facts: &Facts,
    outcome: &mut Outcome,
) {
    let resolution = HoldResolution {
        decision: closing.decision,
        actor_id: facts.actor_id.clone(),
        actor_kind: facts.actor_kind,
        decision_ref: facts
            .decision_ref
            .clone()
            .unwrap_or_else(|| closing.decision_ref.clone()),
        evidence: closing.evidence.to_vec(),
        policy: facts.policy.clone(),
        rule: closing.rule.cloned(),
        at_ms: U64(facts.now_ms),
        revision: U64(state.head.revision.get() + 1),
    };
    let to = closed_state(closing.decision);
    outcome.transitions.push(Transition::HoldClosed {
        hold_id: hold.hold_id.clone(),
        to,
        resolution,
    });
    outcome.gates.push(GateChange {
        scope: state.subject.clone(),
        gate: hold::gate(hold),
        closed: false,
    });
}

fn closed_state(decision: HoldDecision) -> HoldState {
    match decision {
        HoldDecision::Recheck => HoldState::Released,
        HoldDecision::Cancel => HoldState::Canceled,
    }
}

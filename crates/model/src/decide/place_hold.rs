//! placeHold: a gate closes over the run or a branch of it, with an owner, a reason and the decisions that may end it (HS-01.1).
//!
//! Invariant: members, blockers and dispositions come from the ledger, never from the caller (HF-05.5, REL-8); a
//! scope that cannot be fenced is refused, never narrowed (HS-01.13). Called by `decide::run`; `derive` and `open`
//! also by every other command that opens a hold.

use std::collections::BTreeSet;

use aiws::canonical::{digest_of, from_value, to_value};
use aiws::decimal::{Dec, U64};
use aiws::id::{HoldId, Id, NodeId, RunId};
use aiws::object;
use aiws::record::{
    ActorKind, Attempt, AttemptStatus, Blocker, Hold, HoldMember, HoldReason, HoldScope,
    HoldScopeKind, HoldState, Ref, ScopeBinding, StopDisposition,
};

use super::pipeline::members;
use super::reconcile::is_uncertain;
use crate::command::{Body, Command, HoldProposal, PlaceHold};
use crate::decision::{Decision, Rejection};
use crate::event::{GateChange, Identity, IdentityKind, Outcome};
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::hold;
use crate::run::RunState;
use crate::transition::Transition;

/// Revision of the built-in resolver of RUN scopes, where the configuration binds no other.
pub const RUN_RESOLVER_REVISION: u64 = 1;
/// Revision of the built-in resolver of BRANCH scopes, where the configuration binds no other. It takes the reference
/// for a node of the pinned graph at the graph's revision.
pub const BRANCH_RESOLVER_REVISION: u64 = 1;

/// What stands before the amount in the subject of a blocker that says how much budget is needed.
const NEEDED: &str = "units/";

/// The blocker of a COST_LIMIT hold that says how many units the refused work needs: the hold is not released before
/// the budget has room for them (HS-02.5).
///
/// # Errors
/// None for an amount that is a decimal of the wire; the id is checked like any other.
pub fn needed_units(amount: Dec) -> Result<Blocker, Rejection> {
    Ok(Blocker {
        kind: HoldReason::CostLimit,
        subject_id: Id::new(format!("{NEEDED}{amount}"))?,
        evidence: Vec::new(),
    })
}

/// How many units a blocker says are needed.
pub(super) fn needed_amount(blocker: &Blocker) -> Option<Dec> {
    let amount = blocker.subject_id.as_str().strip_prefix(NEEDED)?;
    amount
        .parse()
        .ok()
        .filter(|_| blocker.kind == HoldReason::CostLimit)
}

/// Stage 1 of whatever proposes a hold: its decisions are named, each once.
pub(super) fn shape(proposal: &HoldProposal) -> Result<(), Rejection> {
    let distinct: BTreeSet<_> = proposal.allowed_decisions.iter().collect();
    let decisions = !distinct.is_empty() && distinct.len() == proposal.allowed_decisions.len();
    check(Guard::HoldDecisions, decisions, || {
        members(object! { "holdId": &proposal.hold_id })
    })
}

/// Stage 6 of placeHold: who may place it, and whether its scope can be fenced.
pub(super) fn authority(
    state: &RunState,
    body: &PlaceHold,
    facts: &Facts,
) -> Result<(), Rejection> {
    let placer = matches!(
        facts.actor_kind,
        ActorKind::Human | ActorKind::Rule | ActorKind::System
    );
    check(Guard::HoldPlacer, placer, || {
        members(object! { "actor": &facts.actor_id, "actorKind": facts.actor_kind })
    })?;
    scope(state, &body.hold.scope)
}

/// The scope is this run or a branch of it, under the resolver that the run trusts (HS-01.6, HS-01.12). A branch is
/// named by the node that it begins with; two of them are two holds.
pub(super) fn scope(state: &RunState, scope: &HoldScope) -> Result<(), Rejection> {
    let found = || {
        members(
            object! { "scope": scope.kind, "ref": &scope.scope_ref.id, "resolverRevision": scope.resolver_revision },
        )
    };
    let resolves = !hold::members(state, scope).is_empty();
    check(Guard::ScopeResolves, resolves, found)?;
    let branch = scope.kind == HoldScopeKind::Branch;
    let pinned = state.graph.as_ref().map(|graph| graph.revision);
    let current = !branch || pinned == Some(scope.scope_ref.revision);
    check(Guard::BranchPinned, current, found)?;
    let bound = bindings(state)
        .find(|binding| binding.kind == scope.kind && binding.scope_ref == scope.scope_ref);
    let built_in = match scope.kind {
        HoldScopeKind::Branch => BRANCH_RESOLVER_REVISION,
        HoldScopeKind::Run | HoldScopeKind::WorkOrder => RUN_RESOLVER_REVISION,
    };
    let trusted = bound.map_or(Dec::from_u64(built_in), |binding| binding.resolver_revision);
    check(
        Guard::HoldResolver,
        scope.resolver_revision == trusted,
        found,
    )
}

/// The scope of this run: what a command proposes that opens a hold of itself.
pub(super) fn own_scope(state: &RunState) -> Result<HoldScope, Rejection> {
    let run = state.subject.run_id.as_ref();
    let run = need(Guard::ScopeResolves, run, || {
        members(object! { "missionId": &state.subject.mission_id })
    })?;
    Ok(run_scope(state, run))
}

/// The scope of a run, under the resolver that the run trusts.
pub(crate) fn run_scope(state: &RunState, run: &RunId) -> HoldScope {
    let own = |binding: &&ScopeBinding| {
        binding.kind == HoldScopeKind::Run && binding.scope_ref.id.as_str() == run.as_str()
    };
    let bound = bindings(state).find(own);
    let plain = Ref {
        id: run.as_id(),
        revision: Dec::from_u64(1),
    };
    HoldScope {
        kind: HoldScopeKind::Run,
        scope_ref: bound.map_or(plain, |bound| bound.scope_ref.clone()),
        resolver_revision: bound.map_or(Dec::from_u64(RUN_RESOLVER_REVISION), |bound| {
            bound.resolver_revision
        }),
    }
}

fn bindings(state: &RunState) -> impl Iterator<Item = &ScopeBinding> {
    state.config.scope_bindings.iter()
}

/// 8b of a BLOCKED boundary: its hold covers its node, or nothing would keep the node from going on.
pub(super) fn covers(
    state: &RunState,
    proposal: Option<&HoldProposal>,
    node: &NodeId,
) -> Result<(), Rejection> {
    let Some(hold) = proposal else {
        return Ok(());
    };
    let covered = hold::members(state, &hold.scope);
    let covers = hold::contains(&covered, Some(node));
    check(Guard::BlockedIsHeld, covers, || {
        members(object! { "holdId": &hold.hold_id, "nodeId": node })
    })
}

/// Stage 8 of placeHold.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &PlaceHold,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let hold = derive(state, &body.hold, facts)?;
    let result = object! { "holdId": &hold.hold_id, "state": hold.state };
    let mut outcome = Outcome::default();
    open(state, hold, &mut outcome)?;
    Ok(Decision {
        command: Body::PlaceHold(body.clone()),
        outcome,
        result,
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

/// The hold that follows from a proposal and the ledger.
///
/// # Errors
/// `IDENTITY_CONFLICT` for a used id, `NOT_FOUND` for a disposition of work that is not in flight, `SCHEMA_INVALID` for a
/// record that the ledger makes too long.
pub(super) fn derive(
    state: &RunState,
    proposal: &HoldProposal,
    facts: &Facts,
) -> Result<Hold, Rejection> {
    is_new(state, &proposal.hold_id)?;
    stops_known(state, proposal)?;
    let covered = hold::members(state, &proposal.scope);
    let hold = Hold {
        hold_id: proposal.hold_id.clone(),
        state: HoldState::Open,
        reason: proposal.reason,
        owner: proposal.owner.clone(),
        scope: proposal.scope.clone(),
        stop_disposition: dispositions(state, proposal, &covered),
        blockers: blockers(state, &proposal.blockers, &covered),
        members: covered,
        allowed_decisions: proposal.allowed_decisions.clone(),
        opened_by: facts.actor_id.clone(),
        opened_at_ms: U64(facts.now_ms),
        opened_revision: U64(state.head.revision.get() + 1),
        resolution: None,
    };
    // What the ledger adds counts too: an event that cannot be read back must never be written.
    let unread = from_value::<Hold>(&to_value(&hold)?).err();
    check(Guard::HoldShape, unread.is_none(), || {
        let why = unread.map(|error| error.to_string());
        members(object! { "holdId": &hold.hold_id, "why": why })
    })?;
    Ok(hold)
}

/// No hold of the run ever had the id (HF-02.6).
pub(super) fn is_new(state: &RunState, id: &HoldId) -> Result<(), Rejection> {
    check(Guard::HoldNew, !state.holds.contains_key(id), || {
        members(object! { "holdId": id })
    })
}

/// Adds an open hold to an outcome: the record, its id, and the gate that closes (HS-05.1).
pub(super) fn open(state: &RunState, hold: Hold, outcome: &mut Outcome) -> Result<(), Rejection> {
    let key = hold.hold_id.as_id();
    outcome.identities.push(Identity {
        kind: IdentityKind::Hold,
        key,
        digest: digest_of(&hold)?,
    });
    let gate = hold::gate(&hold);
    outcome.gates.push(GateChange {
        scope: state.subject.clone(),
        gate,
        closed: true,
    });
    outcome.transitions.push(Transition::HoldOpened { hold });
    Ok(())
}

/// What the proposal names beside effects, and the covered effects that the ledger knows to be uncertain.
fn blockers(state: &RunState, proposed: &[Blocker], covered: &[HoldMember]) -> Vec<Blocker> {
    let mut all: Vec<Blocker> = proposed
        .iter()
        .filter(|blocker| blocker.kind != HoldReason::UncertainEffect)
        .cloned()
        .collect();
    all.extend(uncertain(state, covered).map(|attempt| Blocker {
        kind: HoldReason::UncertainEffect,
        subject_id: attempt.attempt_id.as_id(),
        evidence: Vec::new(),
    }));
    all
}

/// The attempts of these members whose effect nobody knows.
pub(super) fn uncertain<'a>(
    state: &'a RunState,
    covered: &'a [HoldMember],
) -> impl Iterator<Item = &'a Attempt> {
    let all = state.attempts.values();
    let unknown = all.filter(|attempt| is_uncertain(state, attempt));
    unknown.filter(|attempt| hold::contains_attempt(state, covered, attempt))
}

/// Whether an attempt is in flight: tried, and not settled.
pub(super) fn in_flight(attempt: &Attempt) -> bool {
    matches!(
        attempt.status,
        AttemptStatus::Dispatched | AttemptStatus::Unknown
    )
}

/// Whether an attempt is in flight and covered.
fn is_stopped(state: &RunState, attempt: &Attempt, covered: &[HoldMember]) -> bool {
    in_flight(attempt) && hold::contains_attempt(state, covered, attempt)
}

/// 8a: every disposition of a proposal is of work in flight that the hold would cover, each once.
pub(super) fn stops_known(state: &RunState, proposal: &HoldProposal) -> Result<(), Rejection> {
    let covered = hold::members(state, &proposal.scope);
    let mut seen = BTreeSet::new();
    for said in &proposal.stop_disposition {
        let known = state.attempts.get(&said.attempt_id).is_some_and(|attempt| {
            is_stopped(state, attempt, &covered) && attempt.operation_id == said.operation_id
        });
        check(
            Guard::HoldStopKnown,
            known && seen.insert(&said.attempt_id),
            || members(object! { "attemptId": &said.attempt_id }),
        )?;
    }
    Ok(())
}

/// One disposition per covered attempt in flight: the proposal's where it has one, else the configured default
/// (HS-05.2).
fn dispositions(
    state: &RunState,
    proposal: &HoldProposal,
    covered: &[HoldMember],
) -> Vec<StopDisposition> {
    let said = |attempt: &Attempt| {
        proposal
            .stop_disposition
            .iter()
            .find(|said| said.attempt_id == attempt.attempt_id)
    };
    let all = state
        .attempts
        .values()
        .filter(|attempt| is_stopped(state, attempt, covered))
        .map(|attempt| StopDisposition {
            operation_id: attempt.operation_id.clone(),
            attempt_id: attempt.attempt_id.clone(),
            action: said(attempt).map_or(state.config.default_stop, |said| said.action),
        });
    all.collect()
}

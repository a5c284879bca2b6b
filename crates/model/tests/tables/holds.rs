//! Scenes of placeHold, resolveHold, invalidateHandoff, recoverOwnership and recordSummary. Invariant and use as in
//! `scene`.

use aiws::decimal::Ms;
use aiws::digest::Digest;
use aiws::id::{HandoffId, HoldId, OperationId};
use aiws::record::{
    ActorKind, AttemptStatus, AuthorKind, Blocker, HandoffRef, Hold, HoldDecision, HoldReason,
    HoldScopeKind, HoldState, NodeSet, OperationStatus, Ref, StopAction, StopDisposition,
    SummaryAuthor,
};
use praxis_model::command::{
    Body, CommandType, HoldName, InvalidateHandoff, PlaceHold, RecordSummary, RecoverOwnership,
    ResolveHold, SummaryProposal,
};

use crate::claims::handed_on;
use crate::scene::{Break, Scene, Try, body, breaks, edit, ends, of_run, together};
use crate::world::*;

/// LIN with a's work in flight.
fn in_flight() -> World {
    let mut world = World::with(lin());
    world.admit("a").expect("an admission");
    world.dispatch("a").expect("a dispatch");
    world
}

pub fn placing() -> Try {
    let hold = hold("h2", HoldReason::Operator);
    Try::of(in_flight(), HUMAN, Body::PlaceHold(PlaceHold { hold }))
}

/// A human decides about the hold `h1` of this reason, with evidence that the host confirms.
pub fn resolving(reason: HoldReason, decision: HoldDecision) -> Try {
    let mut world = World::with(lin());
    world.evidence.insert(id("evidence"));
    let mut t = Try::of(world, HUMAN, resolve(decision));
    t.hold("h1", reason, NodeSet::All);
    t
}

fn resolve(decision: HoldDecision) -> Body {
    Body::ResolveHold(ResolveHold {
        hold_id: id("h1"),
        decision,
        decision_ref: id("decision-1"),
        evidence: vec![id("evidence")],
        rule: None,
    })
}

/// The hand-off of a's boundary.
fn handoff(world: &World) -> HandoffRef {
    let (handoff_id, committed) = world.state().manifests.iter().next().expect("a's manifest");
    HandoffRef {
        handoff_id: handoff_id.clone(),
        digest: committed.digest,
    }
}

pub fn invalidating() -> Try {
    let world = handed_on();
    let delivery = world.pending("b");
    let body = InvalidateHandoff {
        handoff: handoff(&world),
        reason: "the plan is wrong".to_owned(),
        evidence: vec![id("review")],
        hold: Some(HoldName {
            hold_id: id("h2"),
            owner: id(HUMAN),
        }),
    };
    Try::of(world, HUMAN, Body::InvalidateHandoff(body)).about(delivery)
}

pub fn recovering() -> Try {
    let world = handed_on();
    let delivery = world.pending("b");
    let body = RecoverOwnership {
        expected_epoch: dec(1),
        reason: "crash".to_owned(),
        decision_ref: Some(id("decision-1")),
    };
    Try::of(world, HUMAN, Body::RecoverOwnership(body)).about(delivery)
}

fn summary(actor: &str, kind: AuthorKind, operation: Option<&str>) -> Try {
    let world = handed_on();
    let author = SummaryAuthor {
        kind,
        actor_id: id(actor),
        operation_id: operation.map(id),
    };
    let summary = SummaryProposal {
        summary_id: id("s1"),
        handoff: handoff(&world),
        author,
        text: "in short".to_owned(),
    };
    Try::of(world, actor, Body::RecordSummary(RecordSummary { summary }))
}

fn model_writes() -> Try {
    summary(ENGINE, AuthorKind::Model, Some("op-a"))
}

fn human_writes() -> Try {
    summary(HUMAN, AuthorKind::Human, None)
}

fn proposal(t: &mut Try) -> &mut praxis_model::command::HoldProposal {
    &mut body!(t, PlaceHold).hold
}

/// The hold of the scene, to be damaged.
pub fn own(t: &mut Try, change: impl FnOnce(&mut Hold)) {
    edit!(t.run().holds, id::<HoldId>("h1"), own => { change(&mut own); });
}

/// Work of a is in flight under the hold.
pub fn open_work(t: &mut Try, status: AttemptStatus) {
    let other = in_flight();
    for (key, value) in other.state().operations.iter() {
        t.run().operations.insert_mut(key.clone(), value.clone());
    }
    for (key, value) in other.state().attempts.iter() {
        t.run().attempts.insert_mut(
            key.clone(),
            aiws::record::Attempt {
                status,
                ..value.clone()
            },
        );
    }
}

fn place() -> Vec<Break> {
    let own = breaks! {
        HoldDecisions Shape SchemaInvalid ["allowedDecisions"] |t| proposal(t).allowed_decisions.clear();
        HoldPlacer Authority AuthorizationDenied ["actorKind"] |t| t.facts.actor_kind = ActorKind::Agent;
        ScopeResolves Authority ScopeUnsupported ["scope"] |t| proposal(t).scope.kind = HoldScopeKind::WorkOrder;
        BranchPinned Authority ScopeUnsupported ["scope"] |t| {
            proposal(t).scope = branch_scope("a");
            proposal(t).scope.scope_ref.revision = dec(2);
        };
        HoldResolver Authority ScopeUnsupported ["scope"] |t| proposal(t).scope.resolver_revision = dec(2);
        HoldNew Identity IdentityConflict ["holdId"] |t| t.hold("h2", HoldReason::Operator, NodeSet::All);
        HoldStopKnown Identity NotFound ["stopDisposition"] |t| {
            let stop = StopDisposition { operation_id: id("op-a"), attempt_id: id("ghost"), action: StopAction::Drain };
            proposal(t).stop_disposition = vec![stop];
        };
        HoldShape Evidence SchemaInvalid ["blockers"] |t| {
            let blocker = |number: usize| Blocker { kind: HoldReason::Operator, subject_id: id(&format!("s{number}")), evidence: Vec::new() };
            proposal(t).blockers = (0..=aiws::limits::MAX_LIST_ITEMS).map(blocker).collect();
        };
    };
    together(vec![of_run(), ends(), own])
}

/// What every decision about a hold asks. An unknown hold has no state, no reason and no decisions: those slots say
/// `holdId`.
fn every_decision() -> Vec<Break> {
    let own = breaks! {
        ResolvePrincipal Authority AuthorizationDenied ["actorKind"] |t| t.facts.actor_kind = ActorKind::Agent;
        ResolveKnown Identity HoldState ["holdId"] |t| body!(t, ResolveHold).hold_id = id("ghost");
        ResolveOpen State HoldState ["state", "?holdId"] |t| own(t, |own| own.state = HoldState::Released);
    };
    together(vec![of_run(), own])
}

fn rule() -> Vec<Break> {
    breaks! { ResolveRule Authority AuthorizationDenied ["rule"] |t| body!(t, ResolveHold).rule = Some(Ref { id: id("policy"), revision: dec(2) }); }
}

fn recheck(own: Vec<Break>) -> Vec<Break> {
    let every = breaks! {
        ResolveAllowed State HoldState ["allowedDecisions", "?holdId"] |t| self::own(t, |own| own.allowed_decisions = vec![HoldDecision::Cancel]);
        ResolveEvidence Release HoldNotClear ["confirmed evidence"] |t| t.facts.clear_evidence.clear();
    };
    together(vec![every_decision(), ends(), rule(), every, own])
}

/// The reason is one of those that a human alone decides about.
fn needs_human() -> Vec<Break> {
    breaks! { ResolveHuman Authority HumanRequired ["decisionRef", "?holdId", "?rule"] |t| t.facts.decision_ref = None; }
}

fn blockers_clear() -> Vec<Break> {
    breaks! { ResolveBlockers Release HoldNotClear ["evidence", "confirmed evidence"] |t| {
        let blocker = Blocker { kind: HoldReason::Operator, subject_id: id("s"), evidence: Vec::new() };
        own(t, |own| own.blockers.push(blocker));
        body!(t, ResolveHold).evidence.clear();
    }; }
}

fn uncertain() -> Vec<Break> {
    together(vec![
        needs_human(),
        breaks! { ResolveEffects Release HoldNotClear ["an uncertain attempt"] |t| open_work(t, AttemptStatus::Unknown); },
    ])
}

fn restarted() -> Vec<Break> {
    breaks! {
        ResolveEffects Release HoldNotClear ["an uncertain attempt"] |t| open_work(t, AttemptStatus::Unknown);
        ResolveRestart Release HoldNotClear ["restartAllowed"] |t| t.facts.restart_allowed = false;
    }
}

/// A rule decides, and what it decides about is a restart under RULE.
fn by_rule() -> Vec<Break> {
    breaks! {
        ResolveRuleCurrent Authority AuthorizationDenied ["policyRevision"] |t| t.facts.policy.revision = dec(2);
        ResolveRuled Authority AuthorizationDenied ["actorKind", "rule", "?holdId"] |t| {
            t.facts.actor_kind = ActorKind::System;
            body!(t, ResolveHold).rule = None;
        };
        ResolveRuleEvidence Release HoldNotClear ["evidence", "confirmed evidence"] |t| body!(t, ResolveHold).evidence.clear();
    }
}

fn cost() -> Vec<Break> {
    together(vec![
        needs_human(),
        breaks! { ResolveCost Release HoldNotClear ["account"] |t| t.facts.account = None; },
    ])
}

fn time() -> Vec<Break> {
    together(vec![
        needs_human(),
        breaks! { ResolveTime Release HoldNotClear ["deadlineMs"] |t| {
            let now_ms = t.facts.now_ms;
            std::sync::Arc::make_mut(&mut t.run().contract).deadline_ms = Ms::from_u64(now_ms);
        }; },
    ])
}

/// Two that nothing clears: the hold takes the reason on beside its own.
fn never() -> Vec<Break> {
    breaks! {
        ResolveAttempts Release HoldNotClear ["an exhausted limit"] |t| own(t, |own| {
            own.blockers.push(Blocker { kind: HoldReason::AttemptLimit, subject_id: id("s"), evidence: Vec::new() });
        });
        ResolveInputs Release HoldNotClear ["an invalidated input"] |t| own(t, |own| {
            own.blockers.push(Blocker { kind: HoldReason::InvalidatedInput, subject_id: id("s"), evidence: Vec::new() });
        });
    }
}

fn cancel() -> Vec<Break> {
    let own = breaks! {
        ResolveHuman Authority HumanRequired ["decisionRef", "?rule"] |t| t.facts.decision_ref = None;
        ResolveAllowed State HoldState ["allowedDecisions", "?holdId"] |t| self::own(t, |own| own.allowed_decisions = vec![HoldDecision::Recheck]);
        ResolveDisposed Release HoldNotClear ["an attempt in flight"] |t| open_work(t, AttemptStatus::Dispatched);
    };
    together(vec![every_decision(), rule(), own])
}

fn invalidate() -> Vec<Break> {
    let own = breaks! {
        Invalidator Authority AuthorizationDenied ["actorKind"] |t| t.facts.actor_kind = ActorKind::Agent;
        HoldNew Identity IdentityConflict ["holdId"] |t| t.hold("h2", HoldReason::Operator, NodeSet::All);
        InvalidKnown Identity DeliveryState ["handoff"] |t| body!(t, InvalidateHandoff).handoff.digest = Digest::ZERO;
        InvalidOnce State DeliveryState ["invalidations"] |t| {
            let mut other = invalidating();
            other.apply().expect("invalidated");
            let (key, value) = other.world.state().invalidations.iter().next().expect("an invalidation");
            let (key, value): (HandoffId, _) = (key.clone(), value.clone());
            t.run().invalidations.insert_mut(key, value);
        };
        InvalidShape Evidence SchemaInvalid ["evidence"] |t| body!(t, InvalidateHandoff).evidence.clear();
    };
    together(vec![of_run(), own])
}

fn recover() -> Vec<Break> {
    let own = breaks! {
        RecoverEpoch Ownership StaleOwner ["expectedEpoch"] |t| body!(t, RecoverOwnership).expected_epoch = dec(9);
        RecoveryTrusted Authority AuthorizationDenied ["recoveryAuthority"] |t| t.facts.recovery_authority = false;
        RecoverHuman Authority HumanRequired ["actorKind"] |t| t.facts.actor_kind = ActorKind::System;
    };
    together(vec![of_run(), own])
}

fn said(t: &mut Try) -> &mut SummaryProposal {
    &mut body!(t, RecordSummary).summary
}

fn every_summary() -> Vec<Break> {
    let own = breaks! {
        SummaryAuthor Authority AuthorizationDenied ["author"] |t| said(t).author.actor_id = id("human:other");
        SummaryNew Identity IdentityConflict ["summaryId"] |t| {
            let mut other = human_writes();
            other.apply().expect("recorded");
            let (key, value) = other.world.state().summaries.iter().next().expect("a summary");
            let (key, value) = (key.clone(), value.clone());
            t.run().summaries.insert_mut(key, value);
        };
        SummaryShape Evidence SchemaInvalid ["text"] |t| said(t).text.clear();
    };
    together(vec![of_run(), own])
}

fn by_human() -> Vec<Break> {
    let own = breaks! {
        SummaryHuman Authority HumanRequired ["actorKind"] |t| t.facts.actor_kind = ActorKind::System;
        SummaryBasis Basis BasisStale ["handoff"] |t| said(t).handoff.digest = Digest::ZERO;
    };
    together(vec![every_summary(), own])
}

fn by_model() -> Vec<Break> {
    let own = breaks! {
        OperationKnown Identity NotFound ["operationId"] |t| said(t).author.operation_id = Some(id("ghost"));
        SummarySettled State EffectUnresolved ["operation", "?operationId"] |t| standing(t, OperationStatus::Open);
        SummaryApplied Evidence EvidenceInvalid ["operation", "?operationId"] |t| standing(t, OperationStatus::ConfirmedNotApplied);
        SummaryBasis Basis BasisStale ["handoff"] |t| said(t).handoff.digest = Digest::ZERO;
        SummaryMatches Evidence EvidenceInvalid ["operations of the manifest", "?operationId"] |t| {
            crate::claims::manifest(t, "a", |manifest| manifest.producer.operations.clear());
        };
    };
    together(vec![every_summary(), own])
}

fn standing(t: &mut Try, status: OperationStatus) {
    edit!(t.run().operations, id::<OperationId>("op-a"), own => { own.status = status; });
}

#[rustfmt::skip]
pub fn scenes() -> Vec<Scene> {
    use HoldDecision::{Cancel, Recheck};
    let kind = CommandType::ResolveHold;
    vec![
        Scene { name: "placeHold", kind: CommandType::PlaceHold, make: placing, breaks: place() },
        Scene { name: "resolveHold RECHECK of OPERATOR", kind, make: || resolving(HoldReason::Operator, Recheck), breaks: recheck([blockers_clear(), never()].concat()) },
        Scene { name: "resolveHold RECHECK of UNCERTAIN_EFFECT", kind, make: || resolving(HoldReason::UncertainEffect, Recheck), breaks: recheck(uncertain()) },
        Scene { name: "resolveHold RECHECK of COST_LIMIT", kind, make: || resolving(HoldReason::CostLimit, Recheck), breaks: recheck(cost()) },
        Scene { name: "resolveHold RECHECK of TIME_LIMIT", kind, make: || resolving(HoldReason::TimeLimit, Recheck), breaks: recheck(time()) },
        Scene { name: "resolveHold RECHECK of RESTART", kind, make: restarting, breaks: recheck(restarted()) },
        Scene { name: "resolveHold RECHECK of RESTART by a rule", kind, make: ruling, breaks: recheck([restarted(), by_rule()].concat()) },
        Scene { name: "resolveHold CANCEL", kind, make: || resolving(HoldReason::Operator, Cancel), breaks: cancel() },
        Scene { name: "invalidateHandoff", kind: CommandType::InvalidateHandoff, make: invalidating, breaks: invalidate() },
        Scene { name: "recoverOwnership", kind: CommandType::RecoverOwnership, make: recovering, breaks: recover() },
        Scene { name: "recordSummary by a human", kind: CommandType::RecordSummary, make: human_writes, breaks: by_human() },
        Scene { name: "recordSummary by a model", kind: CommandType::RecordSummary, make: model_writes, breaks: by_model() },
    ]
}

/// Under AUTO the engine itself goes on, where the host's rule allows it.
fn restarting() -> Try {
    let mut t = resolving(HoldReason::Restart, HoldDecision::Recheck);
    t.config().restart_policy = aiws::record::RestartPolicy::Auto;
    let facts = t.world.facts(ENGINE);
    Try { facts, ..t }
}

/// Under RULE the rule that the configuration approves goes on, as the host evaluated it.
fn ruling() -> Try {
    let mut t = resolving(HoldReason::Restart, HoldDecision::Recheck);
    let facts = t.world.facts("rule:r1");
    let approved = Some(facts.policy.clone());
    t.config().restart_policy = aiws::record::RestartPolicy::Rule;
    t.config().rule = approved.clone();
    body!(t, ResolveHold).rule = approved;
    Try { facts, ..t }
}

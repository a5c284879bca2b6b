//! Scenes of dispatch, settle, reconcile and retry. Invariant and use as in `scene`.

use aiws::decimal::{Dec, DecPlus, U64};
use aiws::digest::Digest;
use aiws::id::{AttemptId, OperationId};
use aiws::record::{
    AdmissionProposal, Attempt, AttemptStatus, ConsumptionState, EffectClass, LostReads, NodeKind,
    Operation, Ref, SettledOutcome,
};
use praxis_model::command::{Body, CommandType, Intent, Reconcile, Settle};
use praxis_model::run::NodeStatus;

use crate::admit::{authority, bounds, deadlines, edit_node, payload, ready, status};
use crate::claims;
use crate::scene::{Break, Scene, Try, body, breaks, edit, launches, of_run, together};
use crate::world::*;

/// b is admitted.
fn admitted() -> World {
    let mut world = ready();
    let admission_ref = Some(reference("b"));
    let intent = Intent::Admit(praxis_model::command::AdmitIntent {
        node_id: id("b"),
        admission_ref,
    });
    world.intend(ENGINE, &intent).expect("an admission");
    world
}

fn drafted(world: World, intent: &Intent) -> Try {
    let facts = world.facts(ENGINE);
    let body = praxis_model::draft::command(world.state(), intent, &facts).expect("a draft");
    Try::of(world, ENGINE, body)
}

fn dispatching() -> Try {
    drafted(admitted(), &Intent::DispatchNode { node_id: id("b") })
}

fn dispatched() -> World {
    let mut world = admitted();
    world.dispatch("b").expect("a dispatch");
    world
}

fn retrying() -> Try {
    let mut world = dispatched();
    world
        .settle("at-b-1", SettledOutcome::ConfirmedNotApplied, 0)
        .expect("settled");
    drafted(
        world,
        &Intent::RetryOperation {
            operation_id: id("op-b"),
        },
    )
}

fn settle(outcome: SettledOutcome, actual: u64, evidence: &[&str]) -> Body {
    Body::Settle(Settle {
        run_id: run_id(),
        attempt_id: id("at-b-1"),
        outcome,
        actual: dec(actual),
        evidence: evidence.iter().map(|name| id(name)).collect(),
    })
}

fn settling() -> Try {
    Try::of(
        dispatched(),
        ENGINE,
        settle(SettledOutcome::ConfirmedApplied, 3, &["evidence"]),
    )
}

/// Nothing came of it.
fn returning() -> Try {
    Try::of(
        dispatched(),
        ENGINE,
        settle(SettledOutcome::ConfirmedNotApplied, 0, &["evidence"]),
    )
}

/// The answer is lost.
fn losing() -> Try {
    Try::of(
        dispatched(),
        ENGINE,
        settle(SettledOutcome::Unknown, 0, &[]),
    )
}

/// A prepared attempt of an owner that is gone is given back by a human.
fn stranding() -> Try {
    let mut t = Try::of(
        admitted(),
        HUMAN,
        settle(SettledOutcome::ConfirmedNotApplied, 0, &[]),
    );
    attempt(&mut t, |own| own.epoch = U64(0));
    t
}

/// A human says that a lost attempt did nothing.
fn undoing() -> Try {
    let mut world = dispatched();
    world
        .settle("at-b-1", SettledOutcome::Unknown, 0)
        .expect("lost");
    world.evidence.insert(id("evidence"));
    Try::of(
        world,
        HUMAN,
        settle(SettledOutcome::ConfirmedNotApplied, 0, &["evidence"]),
    )
}

/// The contract's rule settles a lost read.
fn ruling() -> Try {
    let mut t = undoing();
    let lost = LostReads {
        rule: Ref {
            id: id("rule"),
            revision: dec(1),
        },
        approved_by: id(HUMAN),
        decision_ref: id("said-so"),
    };
    std::sync::Arc::make_mut(&mut t.run().contract).lost_reads = Some(lost);
    operation(&mut t, |own| own.effect = EffectClass::Read);
    let mut t = Try {
        facts: t.world.facts(ENGINE),
        ..t
    };
    (t.facts.decision_class, t.facts.decision_ref) =
        ("LOST_READ_RULE".to_owned(), Some(id("said-so")));
    body!(t, Settle).actual = dec(3);
    t
}

fn reconciling() -> Try {
    let mut world = dispatched();
    world
        .settle("at-b-1", SettledOutcome::Unknown, 0)
        .expect("lost");
    world.evidence.insert(id("evidence"));
    let body = Reconcile {
        run_id: run_id(),
        attempt_id: id("at-b-1"),
        outcome: SettledOutcome::ConfirmedNotApplied,
        actual: Dec::ZERO,
        evidence: vec![id("evidence")],
    };
    Try::of(world, HUMAN, Body::Reconcile(body))
}

fn attempt(t: &mut Try, change: impl FnOnce(&mut Attempt)) {
    edit!(t.run().attempts, id::<AttemptId>("at-b-1"), own => { change(&mut own); });
}

fn operation(t: &mut Try, change: impl FnOnce(&mut Operation)) {
    edit!(t.run().operations, id::<OperationId>("op-b"), own => { change(&mut own); });
}

/// The approval that the operation needs is not named any more.
fn unapproved(t: &mut Try) {
    operation(t, |own| own.approval_id = None);
    edit_node(t, "a", |node| node.kind = NodeKind::Approval);
}

/// What the activation consumed does not count any more.
fn unconsumed(t: &mut Try) {
    let nodes = &t.world.state().nodes;
    let activation = nodes.get("b").expect("b").activation_id.clone();
    edit!(t.run().consumptions, activation, own => { own.state = ConsumptionState::Invalidated; });
}

fn dispatch() -> Vec<Break> {
    let own = breaks! {
        AttemptKnown Identity NotFound ["attemptId"] |t| body!(t, Dispatch).attempt_id = id("ghost");
        OperationKnown Identity NotFound ["operationId"] |t| body!(t, Dispatch).operation_id = id("ghost");
        ConsumerKnown Identity BasisStale ["nodeId"] |t| body!(t, Dispatch).node_id = id("ghost");
        DispatchEpoch State StaleEpoch ["epoch of the attempt"] |t| attempt(t, |own| own.epoch = U64(0));
        DispatchTask State NodeNotReady ["kind of the node", "?nodeId"] |t| edit_node(t, "b", |node| node.kind = NodeKind::Fork);
        DispatchActive State NodeNotReady ["status of the node", "?nodeId"] |t| status(t, "b", NodeStatus::Blocked);
        DispatchBinding State StateInvalid ["operation of the attempt"] |t| attempt(t, |own| own.operation_id = id("op-a"));
        DispatchPrepared State StateInvalid ["status of the attempt"] |t| attempt(t, |own| own.status = AttemptStatus::Dispatched);
        DispatchConsumes Basis BasisStale ["state of the consumption"] unconsumed;
        ApprovalNeeded Admission ApprovalRequired ["the approval"] unapproved;
        DispatchMaterial Admission ApprovalStale ["what the host is about to run"] |t| {
            let proposal = AdmissionProposal { fingerprint: Digest::ZERO, ..proposal("b") };
            t.facts.admissions.insert(reference("b"), proposal);
        };
        DispatchReserved Admission BudgetExceeded ["account"] |t| {
            t.facts.account = t.facts.account.take().map(|row| praxis_model::account::AccountRow { reserved: dec(0), ..row });
        };
    };
    together(vec![
        of_run(),
        launches(),
        own,
        claims::material(),
        payload(),
        authority(),
        deadlines(),
    ])
}

fn retry() -> Vec<Break> {
    let own = breaks! {
        RetryAttemptNew Identity IdentityConflict ["attemptId"] |t| body!(t, Retry).attempt_id = id("at-a-1");
        OperationKnown Identity NotFound ["operationId"] |t| body!(t, Retry).operation_id = id("ghost");
        RetryResolved State EffectUnresolved ["status of the attempt"] |t| attempt(t, |own| own.status = AttemptStatus::Unknown);
        RetryNotApplied State StateInvalid ["status of the attempt"] |t| attempt(t, |own| own.status = AttemptStatus::ConfirmedApplied);
        RetryActive State NodeNotReady ["status of the node"] |t| status(t, "b", NodeStatus::Blocked);
        DispatchConsumes Basis BasisStale ["state of the consumption"] unconsumed;
        ApprovalNeeded Admission ApprovalRequired ["the approval"] unapproved;
        AttemptsLeft Admission AttemptsExhausted ["maxAttempts"] |t| std::sync::Arc::make_mut(&mut t.run().contract).max_attempts = DecPlus::one();
    };
    together(vec![of_run(), launches(), own, authority(), bounds()])
}

/// A sum that no account can hold.
fn countless(t: &mut Try) {
    t.facts.account = t
        .facts
        .account
        .take()
        .map(|row| praxis_model::account::AccountRow {
            spent: Dec::max(),
            reserved: dec(4),
            ..row
        });
}

/// What every settlement asks.
fn settled() -> Vec<Break> {
    let own = breaks! { AttemptKnown Identity NotFound ["attemptId"] |t| body!(t, Settle).attempt_id = id("ghost"); };
    together(vec![of_run(), own])
}

fn applied() -> Vec<Break> {
    let own = breaks! {
        SettleState State StateInvalid ["status of the attempt"] |t| attempt(t, |own| own.status = AttemptStatus::ConfirmedApplied);
        SettleEvidence Evidence EvidenceInvalid ["evidence"] |t| body!(t, Settle).evidence.clear();
        ActualCounts Evidence SchemaInvalid ["account"] countless;
    };
    together(vec![settled(), own])
}

fn returned() -> Vec<Break> {
    let own = breaks! {
        SettleState State StateInvalid ["status of the attempt"] |t| attempt(t, |own| own.status = AttemptStatus::ConfirmedApplied);
        SettleEvidence Evidence EvidenceInvalid ["evidence"] |t| body!(t, Settle).evidence.clear();
        NotAppliedUncharged Evidence SchemaInvalid ["actual"] |t| body!(t, Settle).actual = dec(1);
    };
    together(vec![settled(), own])
}

fn lost() -> Vec<Break> {
    let own = breaks! {
        UnknownUncharged Shape SchemaInvalid ["actual"] |t| body!(t, Settle).actual = dec(1);
        UnknownOnce State StateInvalid ["status of the attempt"] |t| attempt(t, |own| own.status = AttemptStatus::Unknown);
    };
    together(vec![settled(), own])
}

fn stranded() -> Vec<Break> {
    let own = breaks! {
        SettleOperator Authority HumanRequired ["actorKind", "?attemptId"] |t| t.facts.actor_kind = aiws::record::ActorKind::System;
        SettleState State StateInvalid ["epoch of the attempt"] |t| attempt(t, |own| own.epoch = U64(1));
        SettleOnlyReturns State StateInvalid ["outcome"] |t| body!(t, Settle).outcome = SettledOutcome::ConfirmedApplied;
        NotAppliedUncharged Evidence SchemaInvalid ["actual", "?outcome"] |t| body!(t, Settle).actual = dec(1);
    };
    together(vec![settled(), own])
}

fn undone() -> Vec<Break> {
    let own = breaks! {
        UncertainHuman Authority HumanRequired ["decisionRef", "?attemptId", "?status of the attempt"] |t| t.facts.decision_ref = None;
        SettleState State StateInvalid ["status of the attempt"] |t| attempt(t, |own| own.status = AttemptStatus::ConfirmedApplied);
        UncertainEvidence Evidence EvidenceInvalid ["confirmed evidence"] |t| t.facts.clear_evidence.clear();
        NotAppliedUncharged Evidence SchemaInvalid ["actual"] |t| body!(t, Settle).actual = dec(1);
    };
    together(vec![settled(), own])
}

fn ruled() -> Vec<Break> {
    let own = breaks! { LostReadCharged Evidence SchemaInvalid ["actual"] |t| body!(t, Settle).actual = dec(1); };
    together(vec![settled(), own])
}

fn reconcile() -> Vec<Break> {
    let own = breaks! {
        ReconcileConfirms Shape SchemaInvalid ["outcome"] |t| body!(t, Reconcile).outcome = SettledOutcome::Unknown;
        UncertainHuman Authority HumanRequired ["decisionRef"] |t| t.facts.decision_ref = None;
        AttemptKnown Identity NotFound ["attemptId"] |t| body!(t, Reconcile).attempt_id = id("ghost");
        ReconcileState State StateInvalid ["status of the attempt"] |t| attempt(t, |own| own.status = AttemptStatus::Dispatched);
        UncertainEvidence Evidence EvidenceInvalid ["confirmed evidence"] |t| t.facts.clear_evidence.clear();
        NotAppliedUncharged Evidence SchemaInvalid ["actual"] |t| body!(t, Reconcile).actual = dec(1);
        ActualCounts Evidence SchemaInvalid ["account"] countless;
    };
    together(vec![of_run(), own])
}

#[rustfmt::skip]
pub fn scenes() -> Vec<Scene> {
    let kind = CommandType::Settle;
    vec![
        Scene { name: "dispatch", kind: CommandType::Dispatch, make: dispatching, breaks: dispatch() },
        Scene { name: "settle as applied", kind, make: settling, breaks: applied() },
        Scene { name: "settle as not applied", kind, make: returning, breaks: returned() },
        Scene { name: "settle as unknown", kind, make: losing, breaks: lost() },
        Scene { name: "settle of a prepared attempt", kind, make: stranding, breaks: stranded() },
        Scene { name: "settle of an unknown one", kind, make: undoing, breaks: undone() },
        Scene { name: "settle of a lost read", kind, make: ruling, breaks: ruled() },
        Scene { name: "reconcile", kind: CommandType::Reconcile, make: reconciling, breaks: reconcile() },
        Scene { name: "retry", kind: CommandType::Retry, make: retrying, breaks: retry() },
    ]
}

//! Scenes of commitBoundary, one per kind of node that has rules of its own. Invariant and use as in `scene`.

use aiws::digest::Digest;
use aiws::id::{AttemptId, CheckpointId, HandoffId, OperationId};
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    AttemptStatus, Criterion, CriterionStatus, HandoffRef, HoldReason, HoldScopeKind, Lineage,
    Manifest, NodeKind, NodeSet, Operation, OperationStatus, OutcomeStatus, Outstanding,
    ProducedOperation, Ref, StopAction, StopDisposition, VerificationVerdict,
};
use praxis_model::command::{BoundaryIntent, CommandType, HoldProposal, Intent};
use praxis_model::run::{Committed, NodeStatus};

use crate::admit::{edit_node, status};
use crate::claims::{artifacts, handed_on};
use crate::scene::{Break, Scene, Try, body, breaks, edit, ends, of_run, together};
use crate::world::*;

fn drafted(world: World, intent: BoundaryIntent) -> Try {
    let facts = world.facts(ENGINE);
    let body = praxis_model::draft::command(world.state(), &Intent::Boundary(intent), &facts)
        .expect("a draft");
    Try::of(world, ENGINE, body)
}

/// b has its input from a, is applied, and hands on two artifacts.
fn working() -> World {
    let mut world = handed_on();
    world.apply_task("b").expect("b");
    world
}

fn task_done() -> Try {
    let done = BoundaryIntent {
        artifacts: artifacts().to_vec(),
        ..boundary("b", OutcomeStatus::Completed)
    };
    drafted(working(), done)
}

fn held() -> Try {
    let hold = Some(hold("h1", HoldReason::Operator));
    drafted(
        working(),
        BoundaryIntent {
            hold,
            ..boundary("b", OutcomeStatus::Blocked)
        },
    )
}

/// b was blocked, its hold is closed, and it is done now.
fn going_on() -> Try {
    let mut world = working();
    let hold = Some(hold("h1", HoldReason::Operator));
    world
        .commit(BoundaryIntent {
            hold,
            ..boundary("b", OutcomeStatus::Blocked)
        })
        .expect("blocked");
    let mut t = drafted(world, boundary("b", OutcomeStatus::Completed));
    edit!(t.run().holds, id::<aiws::id::HoldId>("h1"), own => { own.state = aiws::record::HoldState::Released; });
    t
}

/// d chooses x; y, which is skipped, has a delivery of the finished p. The delivery of the tables is that one.
pub fn deciding() -> Try {
    let nodes = vec![
        task("p", &[]),
        decision("d", &[], "x", "y"),
        task("x", &["d"]),
        task("y", &["d", "p"]),
        end(&["x", "y"]),
    ];
    let mut world = World::configured(graph(nodes), |config| {
        config.optional_inputs = vec![optional("end", "y")]
    });
    world.work("p").expect("p");
    world.admit_control("d").expect("d");
    let delivery = world.between("p", "y");
    let chosen = BoundaryIntent {
        result: object! { "pass": true },
        ..boundary("d", OutcomeStatus::Completed)
    };
    drafted(world, chosen).about(delivery)
}

fn iterating(done: bool, status: OutcomeStatus, number: u64) -> Try {
    let mut world = World::with(loop3());
    for before in 1..number {
        world.iterate("l", before, false).expect("an iteration");
    }
    world.apply_iteration("l", number).expect("an iteration");
    let hold = (status == OutcomeStatus::Blocked).then(|| hold("h1", HoldReason::AttemptLimit));
    drafted(
        world,
        BoundaryIntent {
            result: object! { "done": done },
            hold,
            ..boundary("l", status)
        },
    )
}

fn gate(
    kind: NodeKind,
    before: impl FnOnce(&mut World),
    intent: impl FnOnce(BoundaryIntent) -> BoundaryIntent,
) -> Try {
    let mut world = World::with(graph(vec![node("g", kind, &[]), end(&["g"])]));
    world.admit_control("g").expect("the gate");
    before(&mut world);
    drafted(world, intent(boundary("g", OutcomeStatus::Completed)))
}

fn approved() -> Try {
    let before =
        |world: &mut World| drop(world.approve("p1", &action_of("g")).expect("an approval"));
    gate(NodeKind::Approval, before, |intent| BoundaryIntent {
        approvals: vec![id("p1")],
        ..intent
    })
}

fn verified() -> Try {
    let before = |world: &mut World| {
        drop(
            world
                .verify("v1", VerificationVerdict::Pass)
                .expect("a verification"),
        )
    };
    gate(NodeKind::Verification, before, |intent| intent)
}

fn accepted() -> Try {
    let before = |world: &mut World| {
        world
            .verify("v1", VerificationVerdict::Pass)
            .expect("a verification");
        world
            .accept("c1", aiws::record::AcceptanceVerdict::Accepted)
            .expect("an acceptance");
    };
    gate(NodeKind::Acceptance, before, |intent| intent)
}

fn ended() -> Try {
    let mut world = World::with(graph(vec![end(&[])]));
    world.admit_control("end").expect("the end");
    let said = object! { "disposition": "COMPLETED" };
    drafted(
        world,
        BoundaryIntent {
            result: said,
            ..boundary("end", OutcomeStatus::Completed)
        },
    )
}

fn manifest(t: &mut Try) -> &mut Manifest {
    &mut body!(t, CommitBoundary).manifest
}

/// The node of the scene stands like this.
fn stands(t: &mut Try, standing: NodeStatus) {
    let node = manifest(t).producer.node_id.clone();
    status(t, node.as_str(), standing);
}

fn held_by(t: &mut Try) -> &mut HoldProposal {
    body!(t, CommitBoundary).hold.as_mut().expect("a hold")
}

/// Rules of every boundary. A boundary whose node is unknown shows nothing of a node: those slots say `node`.
fn every() -> Vec<Break> {
    let own = breaks! {
        CheckpointNew Identity IdentityConflict ["checkpoint"] |t| {
            let (taken, by): (CheckpointId, HandoffId) = (manifest(t).producer.checkpoint_id.clone(), id("another"));
            t.run().checkpoints.insert_mut(taken, by);
        };
        ActivationUndecided Identity IdentityConflict ["status of the node", "?node"] |t| stands(t, NodeStatus::Completed);
        ProducerKnown Identity BasisStale ["node"] |t| manifest(t).producer.node_id = id("ghost");
        BoundaryActive State NodeNotReady ["status of the node", "?node"] |t| stands(t, NodeStatus::Pending);
        BoundaryGenerated State StateInvalid ["status"] |t| manifest(t).outcome.status = OutcomeStatus::Skipped;
        CauseGiven State EvidenceInvalid ["cause"] |t| manifest(t).outcome.cause = Some(cause());
        BasisIsHead Basis BasisStale ["basis"] |t| manifest(t).basis.event_hash = Digest::ZERO;
        BasisGraph Basis BasisStale ["planRevision"] |t| manifest(t).producer.plan_revision = dec(9);
        BasisActivation Basis BasisStale ["activationId"] |t| manifest(t).producer.activation_id = id("another");
        InputsBound Evidence EvidenceInvalid ["inputs"] |t| {
            let handoff = HandoffRef { handoff_id: id("ghost"), digest: Digest::ZERO };
            manifest(t).inputs.push(aiws::record::InputRef { delivery_id: id("ghost"), handoff });
        };
        ApprovalsKnown Evidence EvidenceInvalid ["approvals"] |t| manifest(t).controls.approvals = vec![Ref { id: id("ghost"), revision: dec(1) }];
        LineageKnown Evidence EvidenceInvalid ["lineage"] |t| {
            let replaces = HandoffRef { handoff_id: id("ghost"), digest: Digest::ZERO };
            manifest(t).lineage = Some(Lineage { replaces, reason: "better".to_owned() });
        };
        BoundaryShape Evidence SchemaInvalid ["criteria"] |t| {
            let said = |number: usize| Criterion { criterion_id: id(&format!("c{number}")), status: CriterionStatus::Met, evidence: Vec::new() };
            manifest(t).outcome.criteria.extend((0..=aiws::limits::MAX_LIST_ITEMS).map(said));
        };
    };
    together(vec![of_run(), ends(), own])
}

/// Rules of a boundary that hands something on.
fn delivered() -> Vec<Break> {
    breaks! {
        RecipientsUnique Evidence EvidenceInvalid ["recipients"] |t| {
            let mut again = manifest(t).recipients[0].clone();
            again.delivery_id = id("more");
            manifest(t).recipients.push(again);
        };
        RecipientsExact Evidence EvidenceInvalid ["recipients"] |t| manifest(t).recipients[0].input_port = id("another");
        ResultFits Evidence EvidenceInvalid ["result"] |t| manifest(t).result = Value::from("text");
    }
}

fn unblocked() -> Vec<Break> {
    breaks! {
        HoldOnlyBlocked State StateInvalid ["hold"] |t| body!(t, CommitBoundary).hold = Some(hold("h2", HoldReason::Operator));
        BlockedHasHold State StateInvalid ["hold", "status", "recipients"] |t| {
            manifest(t).outcome.status = OutcomeStatus::Blocked;
            manifest(t).recipients.clear();
        };
    }
}

fn operation(t: &mut Try, status: OperationStatus) {
    edit!(t.run().operations, id::<OperationId>("op-b"), own => { own.status = status; });
}

fn unsettled(t: &mut Try) {
    edit!(t.run().attempts, id::<AttemptId>("at-b-1"), own => { own.status = AttemptStatus::Unknown; });
}

fn task_rules() -> Vec<Break> {
    let own = breaks! {
        HandoffNew Identity IdentityConflict ["handoffId"] |t| {
            let taken = t.world.state().manifests.keys().next().expect("a's").clone();
            manifest(t).handoff_id = taken;
        };
        DeliveryNew Identity IdentityConflict ["recipients"] |t| {
            let taken = t.world.state().deliveries.keys().next().expect("b's").clone();
            manifest(t).recipients[0].delivery_id = taken;
        };
        MaterialAvailable Material ArtifactUnavailable ["bytes of patch"] |t| { t.facts.materials.remove(&artifacts()[0].digest); };
        MaterialRetained Material ArtifactUnavailable ["retainUntilMs"] |t| {
            let now_ms = t.facts.now_ms;
            manifest(t).artifacts[1].retain_until_ms = aiws::decimal::Ms::from_u64(now_ms);
        };
        MaterialOutlasts Material ArtifactUnavailable ["recoveryWindowMs", "?retainUntilMs"] |t| {
            t.config().recovery_window_ms = "900000".parse().ok();
        };
        MaterialMatches Material ArtifactMismatch ["bytes of log"] |t| {
            t.facts.material_errors.insert(artifacts()[1].digest, praxis_model::facts::MaterialError::Mismatch);
        };
        OperationsExact Evidence EvidenceInvalid ["operations"] |t| manifest(t).producer.operations.clear();
        OutstandingExact Evidence EffectUnresolved ["outstanding"] unsettled;
        CompletedSettled Evidence EffectUnresolved ["outstanding"] |t| {
            unsettled(t);
            let open = Outstanding { operation_id: id("op-b"), attempt_id: id("at-b-1"), status: AttemptStatus::Unknown };
            manifest(t).outcome.outstanding = vec![open];
        };
        TaskConfirmed Evidence EvidenceInvalid ["operation"] |t| operation(t, OperationStatus::ConfirmedNotApplied);
    };
    together(vec![every(), delivered(), unblocked(), own])
}

fn held_rules() -> Vec<Break> {
    let own = breaks! {
        HoldDecisions Shape SchemaInvalid ["allowedDecisions"] |t| held_by(t).allowed_decisions.clear();
        ScopeResolves Authority ScopeUnsupported ["scope"] |t| held_by(t).scope.kind = HoldScopeKind::WorkOrder;
        BranchPinned Authority ScopeUnsupported ["scope"] |t| {
            held_by(t).scope = branch_scope("b");
            held_by(t).scope.scope_ref.revision = dec(2);
        };
        HoldResolver Authority ScopeUnsupported ["resolverRevision", "scope"] |t| held_by(t).scope.resolver_revision = dec(2);
        HoldNew Identity IdentityConflict ["holdId"] |t| {
            t.hold("h1", HoldReason::Operator, NodeSet::All);
            edit!(t.run().holds, id::<aiws::id::HoldId>("h1"), own => { own.state = aiws::record::HoldState::Released; });
        };
        HoldStopKnown Identity NotFound ["stopDisposition"] |t| {
            let stop = StopDisposition { operation_id: id("op-b"), attempt_id: id("ghost"), action: StopAction::Drain };
            held_by(t).stop_disposition = vec![stop];
        };
        BlockedIsHeld State StateInvalid ["scope"] |t| held_by(t).scope = branch_scope("end");
        OutstandingExact Evidence EffectUnresolved ["outstanding"] unsettled;
        HoldShape Evidence SchemaInvalid ["blockers"] |t| {
            let blocker = |number: usize| aiws::record::Blocker { kind: HoldReason::Operator, subject_id: id(&format!("s{number}")), evidence: Vec::new() };
            held_by(t).blockers = (0..=aiws::limits::MAX_LIST_ITEMS).map(blocker).collect();
        };
    };
    together(vec![every(), own])
}

fn continued() -> Vec<Break> {
    let own = breaks! { ContinuationCleared Gates HoldActive ["state of the hold", "?node", "?status", "?status of the node"] |t| {
        edit!(t.run().holds, id::<aiws::id::HoldId>("h1"), own => { own.state = aiws::record::HoldState::Open; });
    }; };
    together(vec![every(), own])
}

/// A control node has no operation, not even where the ledger knew one of its activation.
fn control() -> Vec<Break> {
    breaks! { ControlNoOperations Evidence EvidenceInvalid ["operations"] |t| {
        let (run_id, activation_id) = (run_id(), manifest(t).producer.activation_id.clone());
        let prepared = proposal("x");
        let operation = Operation {
            operation_id: prepared.operation_id.clone(),
            run_id,
            node_id: Some(manifest(t).producer.node_id.clone()),
            activation_id: Some(activation_id),
            fingerprint: prepared.fingerprint,
            action: prepared.action,
            effect: prepared.effect,
            grant_id: prepared.grant_id,
            approval_id: None,
            amount: prepared.amount,
            attempts: Vec::new(),
            status: OperationStatus::ConfirmedApplied,
        };
        t.run().operations.insert_mut(prepared.operation_id.clone(), operation);
        let listed = ProducedOperation { operation_id: prepared.operation_id, attempt_ids: Vec::new() };
        manifest(t).producer.operations = vec![listed];
    }; }
}

fn decision_rules() -> Vec<Break> {
    let own = breaks! {
        DecisionField Evidence EvidenceInvalid ["result", "skipped", "recipients"] |t| {
            manifest(t).result = object! {};
            manifest(t).recipients.clear();
            body!(t, CommitBoundary).skipped.clear();
        };
        SkipsExact Evidence EvidenceInvalid ["skipped"] |t| body!(t, CommitBoundary).skipped.clear();
    };
    together(vec![every(), control(), own])
}

fn unapplied(t: &mut Try, name: &str) {
    edit!(t.run().operations, id::<OperationId>(name), own => { own.status = OperationStatus::ConfirmedNotApplied; });
}

fn loop_rules() -> Vec<Break> {
    let own = breaks! {
        IterationOnce Identity IdentityConflict ["activationId", "?status", "?node"] |t| {
            let first = t.world.state().manifests.values().map(|committed| committed.manifest.producer.activation_id.clone());
            let first = first.min().expect("the first iteration");
            manifest(t).producer.activation_id = first;
        };
        LoopConfirmed Evidence EvidenceInvalid ["operation"] |t| unapplied(t, "op-l.2");
        LoopDone Evidence EvidenceInvalid ["result"] |t| manifest(t).result = object! {};
        LoopBound Evidence EvidenceInvalid ["result", "maxIterations"] |t| {
            manifest(t).recipients.clear();
            manifest(t).result = object! { "done": false };
            edit_node(t, "l", |node| node.kind = looped("l", 2, &[]).kind);
        };
    };
    together(vec![every(), own])
}

fn exhausted_rules() -> Vec<Break> {
    let own = breaks! {
        LoopConfirmed Evidence EvidenceInvalid ["operation"] |t| unapplied(t, "op-l.3");
        IterationOnce Identity IdentityConflict ["earlier iterations", "?activationId", "?status", "?node"] |t| {
            let sent = manifest(t).clone();
            let mut all = t.world.state().manifests.values();
            let counted = Committed { manifest: sent.into(), ..all.next().expect("an iteration").clone() };
            t.run().manifests.insert_mut(id("earlier"), counted);
        };
        LoopExhausted Evidence EvidenceInvalid ["reason of the hold"] |t| held_by(t).reason = HoldReason::Operator;
    };
    together(vec![every(), own])
}

fn gate_rules(own: Vec<Break>) -> Vec<Break> {
    together(vec![every(), delivered(), control(), own])
}

fn approval_rules() -> Vec<Break> {
    gate_rules(
        breaks! { ApprovalCurrent Evidence ApprovalStale ["approvals"] |t| manifest(t).controls.approvals.clear(); },
    )
}

fn verification_rules() -> Vec<Break> {
    gate_rules(
        breaks! { VerificationCurrent Evidence EvidenceInvalid ["verifications"] |t| t.run().verifications.clear(); },
    )
}

fn acceptance_rules() -> Vec<Break> {
    gate_rules(
        breaks! { AcceptanceCurrent Evidence EvidenceInvalid ["acceptances"] |t| t.run().acceptances.clear(); },
    )
}

fn end_rules() -> Vec<Break> {
    let own = breaks! { EndDisposition Evidence EvidenceInvalid ["result"] |t| manifest(t).result = object! {}; };
    together(vec![every(), control(), own])
}

#[rustfmt::skip]
pub fn scenes() -> Vec<Scene> {
    let kind = CommandType::CommitBoundary;
    let second = || iterating(true, OutcomeStatus::Completed, 2);
    let exhausted = || iterating(false, OutcomeStatus::Blocked, 3);
    vec![
        Scene { name: "commitBoundary of a TASK", kind, make: task_done, breaks: task_rules() },
        Scene { name: "commitBoundary BLOCKED", kind, make: held, breaks: held_rules() },
        Scene { name: "commitBoundary after a hold", kind, make: going_on, breaks: continued() },
        Scene { name: "commitBoundary of a DECISION", kind, make: deciding, breaks: decision_rules() },
        Scene { name: "commitBoundary of a LOOP", kind, make: second, breaks: loop_rules() },
        Scene { name: "commitBoundary of an exhausted LOOP", kind, make: exhausted, breaks: exhausted_rules() },
        Scene { name: "commitBoundary of an APPROVAL", kind, make: approved, breaks: approval_rules() },
        Scene { name: "commitBoundary of a VERIFICATION", kind, make: verified, breaks: verification_rules() },
        Scene { name: "commitBoundary of an ACCEPTANCE", kind, make: accepted, breaks: acceptance_rules() },
        Scene { name: "commitBoundary of END", kind, make: ended, breaks: end_rules() },
    ]
}

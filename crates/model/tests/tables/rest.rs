//! Scenes of activateGraph, approvals, assessments and the end of a run. Invariant and use as in `scene`.

use std::sync::Arc;

use aiws::decimal::Ms;
use aiws::object;
use aiws::record::{
    AcceptanceVerdict, ApprovalDecision, Assessment, AttemptStatus, Contract, Graph, Lifecycle,
    Node, NodeKind, OutcomeStatus, VerificationVerdict,
};
use praxis_model::command::{
    Accept, ActivateGraph, Approve, Body, CancelRun, CommandType, CompleteRun, FinishCancelRun,
    RevokeApproval, Verify,
};
use praxis_model::run::NodeStatus;

use crate::admit::status;
use crate::scene::{
    Break, Scene, Try, body, breaks, edit, ends, human, launches, of_run, together,
};
use crate::world::*;

fn activating() -> Try {
    let body = ActivateGraph {
        run_id: run_id(),
        owner_epoch: dec(1),
        graph: lin(),
    };
    Try::of(
        World::started(contract(), config()),
        ENGINE,
        Body::ActivateGraph(body),
    )
}

fn approving() -> Try {
    let body = Approve {
        approval_id: id("p1"),
        run_id: run_id(),
        fingerprint: fingerprint(&action_of("a")),
        decision: ApprovalDecision::Approved,
        expires_at_ms: Ms::from_u64(5_000),
    };
    Try::of(World::with(lin()), HUMAN, Body::Approve(body))
}

fn revoking() -> Try {
    let mut world = World::with(lin());
    world.approve("p1", &action_of("a")).expect("an approval");
    let body = RevokeApproval {
        approval_id: id("p1"),
        run_id: run_id(),
        reason: "no".to_owned(),
    };
    Try::of(world, HUMAN, Body::RevokeApproval(body))
}

fn verified() -> World {
    let mut world = World::with(lin());
    world
        .verify("v1", VerificationVerdict::Pass)
        .expect("a verification");
    world
}

fn verifying() -> Try {
    let body = Verify {
        assessment_id: id("v2"),
        run_id: run_id(),
        subject: id("subject"),
        verdict: VerificationVerdict::Pass,
        evidence: vec![id("evidence")],
    };
    Try::of(verified(), ENGINE, Body::Verify(body))
}

fn accepting() -> Try {
    let body = Accept {
        assessment_id: id("c1"),
        run_id: run_id(),
        subject: id("subject"),
        verdict: AcceptanceVerdict::Accepted,
        evidence: vec![id("evidence")],
    };
    Try::of(verified(), HUMAN, Body::Accept(body))
}

fn completing() -> Try {
    let body = CompleteRun {
        run_id: run_id(),
        owner_epoch: dec(1),
    };
    Try::of(World::lin_done(), ENGINE, Body::CompleteRun(body))
}

fn cancel() -> Body {
    Body::CancelRun(CancelRun {
        run_id: run_id(),
        reason: "enough".to_owned(),
        decision_ref: id("decision-1"),
    })
}

fn canceling() -> Try {
    Try::of(World::with(lin()), HUMAN, cancel())
}

/// A run with a settled attempt, canceled.
pub fn finishing() -> Try {
    let mut world = World::with(lin());
    world.apply_task("a").expect("a");
    world.send(HUMAN, cancel()).expect("a cancellation");
    let body = FinishCancelRun {
        run_id: run_id(),
        reason: "done".to_owned(),
        decision_ref: id("decision-1"),
    };
    Try::of(world, HUMAN, Body::FinishCancelRun(body))
}

fn sent(t: &mut Try) -> &mut Graph {
    &mut body!(t, ActivateGraph).graph
}

fn mapped(t: &mut Try, node: &str, port: &str, from: &str) {
    let accepts = [OutcomeStatus::Completed];
    t.config()
        .mappings
        .push(mapping(node, port, from, &accepts, None));
}

fn activate() -> Vec<Break> {
    let own = breaks! {
        GraphNegotiated Negotiation UnsupportedProtocol ["extensions"] |t| {
            let run = t.run();
            run.contract = Arc::new(Contract { extensions: None, ..(*run.contract).clone() });
        };
        GraphUnset State StateInvalid ["pinned graph"] |t| t.run().graph = Some(Arc::new(lin()));
        GraphBounded Evidence GraphInvalid ["maxRecipients", "graph"] |t| {
            let fan = ["p", "q", "r", "s", "t", "u", "v", "w", "x"].map(|name| task(name, &["a"]));
            *sent(t) = graph([vec![task("a", &[])], fan.to_vec(), vec![end(&["p", "q", "r", "s", "t", "u", "v", "w", "x"])]].concat());
        };
        GraphUnique Evidence GraphInvalid ["graph"] |t| sent(t).nodes.push(task("a", &[]));
        GraphDependencies Evidence GraphInvalid ["graph"] |t| sent(t).nodes[2].depends_on.push(id("b"));
        GraphAcyclic Evidence GraphInvalid ["graph"] |t| sent(t).nodes[0].depends_on.push(id("b"));
        GraphReachesEnd Evidence GraphInvalid ["graph"] |t| sent(t).nodes.push(task("stranded", &["a"]));
        GraphBranches Evidence GraphInvalid ["graph"] |t| sent(t).nodes[0] = decision("a", &[], "b", "end");
        GraphBranchRequired Evidence GraphInvalid ["graph"] |t| {
            *sent(t) = dec_graph();
            t.config().optional_inputs = vec![optional("x", "d")];
        };
        GraphAnyInputs Evidence GraphInvalid ["graph"] |t| sent(t).nodes[0] = join_any("a", &[]);
        GraphJoinPolicy Evidence GraphInvalid ["joinPolicy", "graph"] |t| t.config().join_policy = vec![excluding("a")];
        GraphPorts Evidence GraphInvalid ["mappings"] |t| mapped(t, "end", "in", "a");
        GraphSchemas Evidence GraphInvalid ["schema", "graph"] |t| sent(t).nodes[0].input_schema = Some(object! { "$dynamicRef": "#node" });
        GraphDeadlines Evidence GraphInvalid ["deadlineMs of a node", "graph"] |t| sent(t).nodes[0].deadline_ms = Some(Ms::from_u64(100_001));
    };
    together(vec![of_run(), launches(), own])
}

fn approve() -> Vec<Break> {
    let own = breaks! {
        ApprovalNew Identity IdentityConflict ["approvalId"] |t| {
            let other = revoking().world.state().approvals.get("p1").cloned().expect("p1");
            t.run().approvals.insert_mut(id("p1"), other);
        };
        ApprovalAhead Admission ApprovalStale ["expiresAtMs"] |t| {
            let now_ms = t.facts.now_ms;
            body!(t, Approve).expires_at_ms = Ms::from_u64(now_ms);
        };
    };
    together(vec![of_run(), human(), ends(), own])
}

fn revoke() -> Vec<Break> {
    let own = breaks! {
        ApprovalKnown Identity NotFound ["approvalId"] |t| body!(t, RevokeApproval).approval_id = id("ghost");
        ApprovalStanding State StateInvalid ["revoked"] |t| edit!(t.run().approvals, id::<aiws::id::ApprovalId>("p1"), own => { own.revoked = true; });
    };
    together(vec![of_run(), ends(), own])
}

fn verify() -> Vec<Break> {
    let own = breaks! { AssessmentNew Identity IdentityConflict ["assessmentId"] |t| body!(t, Verify).assessment_id = id("v1"); };
    together(vec![of_run(), ends(), own])
}

fn accept() -> Vec<Break> {
    let own = breaks! {
        AssessmentNew Identity IdentityConflict ["assessmentId", "verifications"] |t| body!(t, Accept).assessment_id = id("v1");
        AcceptVerified State StateInvalid ["verdict of the verification"] |t| {
            let failed = aiws::record::AssessmentVerdict::Fail;
            last(t).verdict = failed;
        };
        AcceptSubject State StateInvalid ["subject", "?verdict of the verification"] |t| body!(t, Accept).subject = id("other");
    };
    together(vec![of_run(), human(), ends(), own])
}

fn last(t: &mut Try) -> &mut Assessment {
    t.run().verifications.last_mut().expect("a verification")
}

fn complete() -> Vec<Break> {
    let own = breaks! {
        GraphPinned Identity BasisStale ["graph"] |t| t.run().graph = None;
        EndDone State NodeNotReady ["status of end", "?graph"] |t| status(t, "end", NodeStatus::Skipped);
        NodesDone State NodeNotReady ["status of a", "?graph"] |t| status(t, "a", NodeStatus::Active);
        GatesNotSkipped Evidence EvidenceInvalid ["a gate of the graph", "?graph"] |t| {
            t.graph().nodes.push(Node { ..node("gate", NodeKind::Verification, &[]) });
            let skipped = t.world.state().nodes.get("a").cloned().expect("a");
            t.run().nodes.insert_mut(id("gate"), praxis_model::run::NodeState { status: NodeStatus::Skipped, ..skipped });
        };
        RunVerified Evidence EvidenceInvalid ["verifications"] |t| {
            let failed = Assessment { assessment_id: id("v2"), verdict: aiws::record::AssessmentVerdict::Fail, ..last(t).clone() };
            t.run().verifications.push(failed);
        };
        RunAccepted Evidence EvidenceInvalid ["acceptances"] |t| t.run().acceptances.clear();
    };
    together(vec![of_run(), launches(), own])
}

fn cancels() -> Vec<Break> {
    let own = breaks! { CancelOnce State StateInvalid ["lifecycle"] |t| t.run().lifecycle = Lifecycle::Canceling; };
    together(vec![of_run(), human(), ends(), own])
}

fn finish() -> Vec<Break> {
    let own = breaks! {
        FinishCanceling State StateInvalid ["lifecycle"] |t| t.run().lifecycle = Lifecycle::Running;
        FinishResolved State EffectUnresolved ["status of the attempt"] |t| {
            edit!(t.run().attempts, id::<aiws::id::AttemptId>("at-a-1"), own => { own.status = AttemptStatus::Unknown; });
        };
    };
    together(vec![of_run(), human(), ends(), own])
}

#[rustfmt::skip]
pub fn scenes() -> Vec<Scene> {
    vec![
        Scene { name: "activateGraph", kind: CommandType::ActivateGraph, make: activating, breaks: activate() },
        Scene { name: "approve", kind: CommandType::Approve, make: approving, breaks: approve() },
        Scene { name: "revokeApproval", kind: CommandType::RevokeApproval, make: revoking, breaks: revoke() },
        Scene { name: "verify", kind: CommandType::Verify, make: verifying, breaks: verify() },
        Scene { name: "accept", kind: CommandType::Accept, make: accepting, breaks: accept() },
        Scene { name: "completeRun", kind: CommandType::CompleteRun, make: completing, breaks: complete() },
        Scene { name: "cancelRun", kind: CommandType::CancelRun, make: canceling, breaks: cancels() },
        Scene { name: "finishCancelRun", kind: CommandType::FinishCancelRun, make: finishing, breaks: finish() },
    ]
}

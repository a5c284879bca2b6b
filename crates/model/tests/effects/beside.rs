//! What stands beside execution: holds that are no state of it, commands that launch nothing, references that stay.
//!
//! Invariant: every state is reached through accepted commands. Each test names what it proves.

use aiws::error::Code;
use aiws::id::{AttemptId, NodeId, OperationId};
use aiws::record::SettledOutcome::ConfirmedApplied;
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::draft;
use praxis_model::moves::{self, Move};
use praxis_model::plan::{Step, plan};
use praxis_model::report;
use praxis_model::run::NodeStatus;
use praxis_model::table::{self, Launch};
use serde::Serialize;

use crate::bench::*;
use crate::holds::code;
use crate::refusals::guarded;
use crate::steps::*;

fn names<S: Serialize + Copy>(table: &[Move<S>]) -> Vec<String> {
    let name = |state: &S| {
        let bytes = aiws::canonical::bytes_of(state).expect("a state has a name");
        String::from_utf8(bytes).expect("a name is a text")
    };
    table.iter().map(|one| name(&one.to)).collect()
}

/// Proves HS-01.2: no run, node, attempt, operation or delivery can be HELD. A hold moves none of them, stands beside
/// them in every view, and leaves nothing behind when it is released.
#[test]
fn a_hold_is_no_state_of_execution() {
    let _on = guarded();
    let states = [
        names(moves::LIFECYCLE),
        names(moves::NODE),
        names(moves::ATTEMPT),
        names(moves::DELIVERY),
    ]
    .concat();
    assert!(states.iter().any(|name| name == "\"RUNNING\""));
    assert!(
        states.iter().all(|name| !name.contains("HELD")),
        "{states:?}"
    );
    let execution = |bench: &Bench| {
        let nodes = report::of(&bench.run).nodes.into_iter();
        let nodes: Vec<(NodeId, NodeStatus)> = nodes.map(|it| (it.node_id, it.status)).collect();
        let attempts: Vec<AttemptStatus> =
            bench.run.attempts.values().map(|it| it.status).collect();
        (bench.run.lifecycle, nodes, attempts)
    };
    let mut bench = Bench::free_dispatched();
    let before = execution(&bench);
    bench.act(place_body(hold("h", HoldReason::Operator)), Who::Human);
    assert_eq!(execution(&bench), before);
    let held = report::of(&bench.run);
    assert!(held.held && held.nodes.iter().all(|node| node.held_by == [id("h")]));
    bench.act(resolve_body("h", HoldDecision::Recheck, &[]), Who::Human);
    assert_eq!(execution(&bench), before);
    let released = report::of(&bench.run);
    assert!(!released.held && released.nodes.iter().all(|node| node.held_by.is_empty()));
}

/// The work that a run has: its operations, and the attempts that are prepared or in flight.
fn work(bench: &Bench) -> (Vec<OperationId>, Vec<AttemptId>) {
    let under_way = |attempt: &&Attempt| {
        matches!(
            attempt.status,
            AttemptStatus::Prepared | AttemptStatus::Dispatched
        )
    };
    let attempts = bench.run.attempts.values().filter(under_way);
    (
        bench.run.operations.keys().cloned().collect(),
        attempts.map(|attempt| attempt.attempt_id.clone()).collect(),
    )
}

/// A command of a bench, by its name.
type NamedStep = (&'static str, fn(&Bench) -> Body);

/// Whether a plan would begin anything outside.
fn begins(step: &Step) -> bool {
    matches!(
        step,
        Step::Receive { .. }
            | Step::Admit { .. }
            | Step::Dispatch { .. }
            | Step::Retry { .. }
            | Step::CompleteRun
    )
}

/// Proves HS-01.5: whatever an open hold lets through makes no operation and no attempt, dispatches none, and leaves
/// the scheduler nothing to begin. Every command that could is one that launches, and the gate stops it.
#[test]
fn what_a_hold_lets_through_starts_nothing() {
    let _on = guarded();
    let makes_work = [
        names_of(moves::ATTEMPT, AttemptStatus::Prepared),
        names_of(moves::ATTEMPT, AttemptStatus::Dispatched),
        names_of(moves::CONSUMPTION, ConsumptionState::Valid),
        names_of(moves::NODE, NodeStatus::Active),
    ];
    for kind in makes_work.concat() {
        let row = table::row(kind);
        // These two wake a node up again that was admitted before; the operation is the one that it had.
        let continues = matches!(kind, CommandType::ResolveHold | CommandType::CommitBoundary);
        assert!(
            row.gated && row.launch == Launch::InRun || continues,
            "{kind:?}"
        );
    }

    // `free` is in flight, `work` has a lost answer, and both are held.
    let mut bench = Bench::work_dispatched();
    bench.admit("free", &free_read());
    bench.act(dispatch_body(&bench, "free", "at-free"), Who::System);
    bench.act(
        settle_body("at-work", SettledOutcome::Unknown, 0, &[]),
        Who::System,
    );
    bench.act(place_body(hold("h", HoldReason::Operator)), Who::Human);
    let before = work(&bench);
    let facts = |bench: &Bench| confirming(bench.facts(Who::Human), &["probe", "review"]);
    let steps: [NamedStep; 8] = [
        ("settle", |_| {
            settle_body("at-free", ConfirmedApplied, 3, &["exit"])
        }),
        ("reconcile", |_| {
            reconcile_body(
                "at-work",
                SettledOutcome::ConfirmedNotApplied,
                0,
                &["probe"],
            )
        }),
        ("verify", |_| verify_body("v", VerificationVerdict::Pass)),
        ("summary", |bench| {
            let facts = bench.facts(Who::Human);
            let summary = summary_of(bench, "gate", AuthorKind::Human, &facts);
            Body::RecordSummary(RecordSummary { summary })
        }),
        ("boundary", |bench| {
            let intent = Intent::Boundary(BoundaryIntent {
                node_id: id("free"),
                artifacts: Vec::new(),
                approvals: Vec::new(),
                ..gate_done()
            });
            let facts = bench.facts(Who::Human);
            draft::command(&bench.run, &intent, &facts).expect("drafts")
        }),
        ("invalidate", |bench| invalidate_body(bench.handoff("gate"))),
        ("recover", |_| recover_body(1)),
        ("cancel", |_| cancel_body()),
    ];
    for (name, step) in steps {
        let body = step(&bench);
        let facts = praxis_model::facts::Facts {
            recovery_authority: true,
            ..facts(&bench)
        };
        bench.act_on(&body, &facts);
        let (operations, under_way) = work(&bench);
        assert_eq!(operations, before.0, "{name}");
        assert!(
            under_way.iter().all(|attempt| before.1.contains(attempt)),
            "{name}: {under_way:?}"
        );
        let steps = plan(&bench.run, &[], bench.now_ms);
        assert!(!steps.iter().any(begins), "{name}: {steps:?}");
    }
}

/// The commands that make a move to this state.
fn names_of<S: PartialEq>(table: &[Move<S>], to: S) -> Vec<CommandType> {
    let to = table.iter().filter(|one| one.to == to);
    to.flat_map(|one| one.by).copied().collect()
}

/// Proves REL-12: an approval that a manifest names by id and revision is that one for good: its id is not given to
/// another, no other revision of it can be named, and what is said later changes neither it nor what the manifest says of
/// policy, approvals and account.
#[test]
fn what_controls_name_is_never_another_thing() {
    let _on = guarded();
    let mut bench = Bench::new();
    bench.pass_gate();
    let controls = |bench: &Bench| {
        let mut all = bench.run.manifests.values();
        all.next().expect("a manifest").manifest.controls.clone()
    };
    let said = |bench: &Bench| {
        let mut all = bench.run.approvals.values();
        let approval = all.next().expect("an approval");
        (approval.fingerprint, approval.expires_at_ms)
    };
    let (before, approval) = (controls(&bench), said(&bench));
    assert_eq!(before.approvals, [reference("yes")]);
    let again = approve_body("yes", ApprovalDecision::Approved, 600_000);
    let human = bench.facts(Who::Human);
    assert_eq!(code(&bench, &again, &human), Some(Code::IdentityConflict));

    bench.receive();
    bench.admit("work", &approved_work());
    let revoke = RevokeApproval {
        approval_id: id("yes"),
        run_id: id("r"),
        reason: "moved on".to_owned(),
    };
    bench.act(Body::RevokeApproval(revoke), Who::Human);
    let human = bench.facts(Who::Human);
    assert_eq!(code(&bench, &again, &human), Some(Code::IdentityConflict));
    assert_eq!((controls(&bench), said(&bench)), (before, approval));
}

/// Proves REL-12, REL-3: a boundary that names a revision of an approval which there is not is refused.
#[test]
fn no_other_revision_of_an_approval_is_named() {
    let _on = guarded();
    let mut bench = Bench::new();
    bench.act(
        approve_body("yes", ApprovalDecision::Approved, 500_000),
        Who::Human,
    );
    let facts = bench.with_material(bench.facts(Who::System));
    let admit = AdmitIntent {
        node_id: id("gate"),
        admission_ref: None,
    };
    bench.intend(&Intent::Admit(admit), &facts);
    let facts = bench.with_material(bench.facts(Who::System));
    let intent = Intent::Boundary(gate_done());
    let drafted = draft::command(&bench.run, &intent, &facts).expect("drafts");
    let Body::CommitBoundary(body) = &drafted else {
        unreachable!("a boundary")
    };
    for (revision, refused) in [(1, None), (2, Some(Code::EvidenceInvalid))] {
        let mut body = body.clone();
        body.manifest.controls.approvals[0].revision = dec(revision);
        let found = code(&bench, &Body::CommitBoundary(body), &facts);
        assert_eq!(found, refused, "revision {revision}");
    }
}

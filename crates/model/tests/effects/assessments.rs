//! Assessments of what was invalidated: which go with it, and what they had opened is closed again.
//!
//! Invariant: every state is reached through accepted commands. Each test names what it proves.

use aiws::error::Code;
use aiws::id::AssessmentId;
use aiws::record::SettledOutcome::ConfirmedApplied;
use aiws::record::*;
use praxis_model::command::*;

use crate::bench::*;
use crate::holds::code;
use crate::invalidation::record;
use crate::refusals::guarded;
use crate::steps::*;

/// The assessments that no longer count.
fn gone(bench: &Bench) -> Vec<AssessmentId> {
    record(bench).affected_assessments.clone()
}

fn about(name: &str, subject: &str, evidence: &str) -> Body {
    Body::Verify(Verify {
        assessment_id: id(name),
        run_id: id("r"),
        subject: id(subject),
        verdict: VerificationVerdict::Pass,
        evidence: vec![id(evidence)],
    })
}

/// Proves FV-ASM.3, HD-05.1: with a hand-off go the assessments that were said after it: of it, of what was made of it,
/// and of what nobody can tell; those of other things stay, and those that were said before.
#[test]
fn assessments_go_with_what_they_rest_on() {
    let _on = guarded();
    let mut bench = Bench::new();
    bench.act(about("before", "result", "log"), Who::System);
    // `free` hands over something that does not rest on the gate.
    bench.admit("free", &free_read());
    bench.act(dispatch_body(&bench, "free", "at-free"), Who::System);
    bench.act(
        settle_body("at-free", ConfirmedApplied, 1, &["exit"]),
        Who::System,
    );
    let plain = BoundaryIntent {
        node_id: id("free"),
        approvals: Vec::new(),
        artifacts: Vec::new(),
        ..gate_done()
    };
    let facts = bench.facts(Who::System);
    bench.intend(&Intent::Boundary(plain.clone()), &facts);
    bench.open_gate();
    bench.admit("work", &approved_work());
    let facts = bench.with_material(bench.facts(Who::System));
    bench.act_on(&dispatch_body(&bench, "work", "at-work"), &facts);
    bench.act(
        settle_body("at-work", ConfirmedApplied, 1, &["exit"]),
        Who::System,
    );
    let facts = bench.facts(Who::System);
    let work = BoundaryIntent {
        node_id: id("work"),
        ..plain
    };
    bench.intend(&Intent::Boundary(work), &facts);
    let (gate, free, made) = (
        bench.handoff("gate").handoff_id.as_str().to_owned(),
        bench.handoff("free").handoff_id.as_str().to_owned(),
        bench.handoff("work").handoff_id.as_str().to_owned(),
    );
    let plan = artifact().digest.to_string();
    for (name, subject, evidence) in [
        ("itself", gate.as_str(), "log"),
        ("material", plan.as_str(), "log"),
        ("made-of-it", made.as_str(), "log"),
        ("its-work", "op-work", "log"),
        ("its-attempt", "at-work", "log"),
        ("untold", "result", "log"),
        ("shown-by-it", free.as_str(), made.as_str()),
        ("another", free.as_str(), "log"),
        ("other-work", "op-free", free.as_str()),
    ] {
        bench.act(about(name, subject, evidence), Who::System);
    }
    let bench = bench.invalidated();
    let expected = [
        "itself",
        "material",
        "made-of-it",
        "its-work",
        "its-attempt",
        "untold",
        "shown-by-it",
    ];
    assert_eq!(gone(&bench), expected.map(id::<AssessmentId>));
    for assessment in &bench.run.verifications {
        let listed = expected.contains(&assessment.assessment_id.as_str());
        let invalidated = assessment.invalidated.as_ref();
        assert_eq!(
            invalidated.is_some(),
            listed,
            "{}",
            assessment.assessment_id
        );
        let reason = invalidated.map(|invalidated| invalidated.reason.as_str());
        assert!(reason.is_none_or(|reason| reason == "the plan is wrong"));
    }
}

/// Proves FV-ASM.3: what an invalidated verification opened is closed, and no earlier one steps into its place: not for
/// an acceptance, and not for what was accepted before.
#[test]
fn an_invalidation_closes_what_an_assessment_opened() {
    let _on = guarded();
    let mut bench = Bench::new();
    bench.act(verify_body("v1", VerificationVerdict::Pass), Who::System);
    bench.act(accept_body("a1", AcceptanceVerdict::Accepted), Who::Human);
    bench.open_gate();
    bench.act(verify_body("v2", VerificationVerdict::Pass), Who::System);
    let accept = accept_body("a2", AcceptanceVerdict::Accepted);
    let human = bench.facts(Who::Human);
    assert_eq!(code(&bench, &accept, &human), None);
    let mut bench = bench.invalidated();
    assert_eq!(gone(&bench), [id("v2")]);
    let human = bench.facts(Who::Human);
    assert_eq!(code(&bench, &accept, &human), Some(Code::StateInvalid));
    // A new look is a new assessment; the hold keeps the run all the same.
    bench.act(verify_body("v3", VerificationVerdict::Pass), Who::System);
    bench.act(accept, Who::Human);
    let complete = Body::CompleteRun(CompleteRun {
        run_id: id("r"),
        owner_epoch: dec(1),
    });
    let system = bench.facts(Who::System);
    assert_eq!(code(&bench, &complete, &system), Some(Code::HoldActive));
}

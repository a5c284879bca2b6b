//! Every id that a command brings into the world stands among the identities of its event.
//!
//! Invariant: by these the store refuses the same id a second time, whichever run it comes from: one that is left out
//! could name two things. Found by mutation testing.

use aiws::canonical::digest_of;
use aiws::id::Id;
use aiws::record::*;
use praxis_model::command::{Body, StartRun};
use praxis_model::decision::Decision;
use praxis_model::event::IdentityKind;
use praxis_model::transition::Transition;

use crate::bench::*;
use crate::refusals::guarded;
use crate::steps::*;

/// What a decision names, as kinds and ids.
fn named(decision: &Decision) -> Vec<(IdentityKind, Id)> {
    let identities = decision.outcome.identities.iter();
    identities.map(|it| (it.kind, it.key.clone())).collect()
}

/// A decision names this one id, with the digest of what it stands for.
fn assert_names(decision: &Decision, kind: IdentityKind, name: &str, digest: Digested) {
    assert_eq!(named(decision), [(kind, id(name))]);
    assert_eq!(decision.outcome.identities[0].digest, digest);
}

type Digested = aiws::digest::Digest;

/// An assessment, an approval, a hold, a grant and a run are each named once, by their kind, id and content.
#[test]
fn what_a_command_creates_is_named() {
    let _on = guarded();
    let mut bench = Bench::new();
    let decision = bench.act(verify_body("v", VerificationVerdict::Pass), Who::System);
    let digest = digest_of(&bench.run.verifications[0]).unwrap();
    assert_names(&decision, IdentityKind::Assessment, "v", digest);
    let decision = bench.act(accept_body("a", AcceptanceVerdict::Accepted), Who::Human);
    let digest = digest_of(&bench.run.acceptances[0]).unwrap();
    assert_names(&decision, IdentityKind::Assessment, "a", digest);
    let body = approve_body("yes", ApprovalDecision::Approved, 500_000);
    let decision = bench.act(body, Who::Human);
    assert_eq!(named(&decision), [(IdentityKind::Approval, id("yes"))]);
    let decision = bench.act(place_body(hold("h", HoldReason::Operator)), Who::System);
    let [Transition::HoldOpened { hold }, ..] = decision.outcome.transitions.as_slice() else {
        panic!("a hold is opened")
    };
    let digest = digest_of(hold).unwrap();
    assert_names(&decision, IdentityKind::Hold, "h", digest);

    let (mission, _) = opened(contract(), config());
    let body = Body::StartRun(StartRun { run_id: id("r") });
    let decision = decide_mission(Some(&mission), &body, 1_000).unwrap();
    assert_eq!(named(&decision), [(IdentityKind::Run, id("r"))]);
    assert!(
        bench
            .identities
            .contains(&(IdentityKind::Grant, id("root")))
    );
}

/// An effect is named as an operation and as an attempt; a retry is one more attempt of the same operation.
#[test]
fn an_effect_is_named_as_operation_and_attempt() {
    let _on = guarded();
    let mut bench = Bench::free_returned();
    for named in [
        (IdentityKind::Operation, id("op-free")),
        (IdentityKind::Attempt, id("at-free")),
    ] {
        assert!(bench.identities.contains(&named), "{named:?}");
    }
    let decision = bench.act(retry_body(&bench, "free", "at-2", 10), Who::System);
    let digest = digest_of(bench.attempt("at-2")).unwrap();
    assert_names(&decision, IdentityKind::Attempt, "at-2", digest);
}

/// A boundary is named as a hand-off, and each of its deliveries by its own id.
#[test]
fn a_boundary_is_named_as_handoff_and_deliveries() {
    let _on = guarded();
    let bench = Bench::work_ready();
    for delivery in bench.run.deliveries.values() {
        let (record, handoff) = (&delivery.record, &delivery.record.handoff);
        let handoff = (IdentityKind::Handoff, handoff.handoff_id.as_id());
        let delivery = (IdentityKind::Delivery, record.delivery_id.as_id());
        assert!(bench.identities.contains(&handoff) && bench.identities.contains(&delivery));
    }
    assert!(!bench.run.deliveries.is_empty());
}

//! Recovery of ownership, and who is told what first.
//!
//! Invariant: every state is reached through accepted commands. Each test names what it proves.

use aiws::digest::sha256;
use aiws::error::Code;
use aiws::record::SettledOutcome::ConfirmedApplied;
use aiws::record::*;
use praxis_model::command::*;

use crate::bench::*;
use crate::holds::{code, hold_of};
use crate::refusals::guarded;
use crate::steps::*;

/// Proves HS-06.2, HS-06.7, T-21: under HUMAN a recovery opens one RESTART hold and keeps it; once it is closed, the
/// next recovery opens another. Under AUTO there is none.
#[test]
fn a_recovery_holds_what_a_human_must_restart() {
    let _on = guarded();
    let mut bench = Bench::cautious();
    let first = bench.act(recover_body(1), Who::System).result;
    let again = bench.act(recover_body(2), Who::System).result;
    assert_eq!(first.get("holdId"), again.get("holdId"));
    assert_eq!((bench.run.holds.size(), bench.run.epoch), (1, 3));
    let hold_id = first
        .get("holdId")
        .and_then(|id| id.as_str())
        .expect("a hold")
        .to_owned();
    assert_eq!(hold_of(&bench, &hold_id).reason, HoldReason::Restart);
    bench.act(
        resolve_body(&hold_id, HoldDecision::Recheck, &[]),
        Who::Human,
    );
    assert!(bench.gates.is_empty());
    let next = bench.act(recover_body(3), Who::System).result;
    assert_ne!(first.get("holdId"), next.get("holdId"));
    assert_eq!(bench.run.holds.size(), 2);
    let mut bench = Bench::new();
    let result = bench.act(recover_body(1), Who::System).result;
    assert_eq!(
        (result.get("holdId"), bench.run.holds.size()),
        (Some(&aiws::json::Value::Null), 0)
    );
}

/// Proves HS-06.1, FV-REC.1, FV-REC.4, HD-02.8, HC-RO.1: a recovery raises the epoch, fences live claims, lists what
/// is unresolved and leaves effects, money and consumptions as they are.
#[test]
fn a_recovery_fences_and_lists() {
    let _on = guarded();
    let mut bench = Bench::free_dispatched();
    bench.act(
        approve_body("yes", ApprovalDecision::Approved, 500_000),
        Who::Human,
    );
    let facts = bench.facts(Who::System);
    bench.intend(
        &Intent::Admit(AdmitIntent {
            node_id: id("gate"),
            admission_ref: None,
        }),
        &facts,
    );
    let boundary = gate_done();
    let facts = bench.with_material(bench.facts(Who::System));
    bench.intend(&Intent::Boundary(boundary), &facts);
    let delivery_id = bench
        .run
        .deliveries
        .keys()
        .next()
        .expect("a delivery")
        .clone();
    let claim = Body::ClaimDelivery(ClaimDelivery {
        delivery_id: delivery_id.clone(),
        lease_ms: None,
    });
    bench.act(claim.clone(), Who::System);
    let before = (
        bench.money(),
        bench.run.attempts.clone(),
        bench.run.consumptions.clone(),
        bench.run.nodes.clone(),
    );
    let decision = bench.act(recover_body(1), Who::System);
    let after = (
        bench.money(),
        bench.run.attempts.clone(),
        bench.run.consumptions.clone(),
        bench.run.nodes.clone(),
    );
    assert_eq!(before, after);
    let owner = decision.outcome.owner.expect("an owner");
    assert_eq!(
        (owner.stream, owner.epoch.get()),
        (bench.run.stream.clone(), 2)
    );
    let unresolved = decision
        .result
        .get("unresolved")
        .and_then(|list| list.as_array())
        .expect("a list")
        .to_vec();
    let names: Vec<_> = unresolved
        .iter()
        .filter_map(|one| one.get("attemptId")?.as_str())
        .collect();
    assert_eq!(names, ["at-free"]);
    let delivery = bench.run.deliveries.get(&delivery_id).expect("a delivery");
    assert_eq!(
        (delivery.record.state, delivery.record.generation.get()),
        (DeliveryState::Pending, 1)
    );
    assert_eq!(delivery.ended_claims[0].1.cause, ClaimEndCause::Fenced);
    // The fenced holder learns that it lost the claim; a new claim is of the next generation.
    let ack = AcknowledgeDelivery {
        delivery_id: delivery_id.clone(),
        handoff: delivery.record.handoff.clone(),
        claim_token: sha256(b"token"),
        generation: aiws::decimal::DecPlus::one(),
    };
    let facts = bench.with_material(bench.facts(Who::System));
    assert_eq!(
        code(&bench, &Body::AcknowledgeDelivery(ack), &facts),
        Some(Code::StaleOwner)
    );
    bench.act(claim, Who::System);
    assert_eq!(
        bench
            .run
            .deliveries
            .get(&delivery_id)
            .map(|one| one.record.generation.get()),
        Some(2)
    );
    // A claim whose lease ran out before the next recovery ended by that.
    bench.now_ms += 10_000;
    bench.act(recover_body(2), Who::System);
    let delivery = bench.run.deliveries.get(&delivery_id).expect("a delivery");
    assert_eq!(delivery.ended_claims[1].1.cause, ClaimEndCause::Expired);
}

/// Proves F-14, HC-RO.1: of two recoverers who saw the same epoch, one wins; the other is told so at every step.
#[test]
fn the_second_recoverer_is_fenced() {
    let _on = guarded();
    let mut bench = Bench::new();
    let loser = bench.command(&recover_body(1));
    bench.act(recover_body(1), Who::System);
    let facts = bench.facts(Who::System);
    let decide = |command: &Command| {
        praxis_model::decide::run(&bench.run, command, &facts).map_err(|error| error.code())
    };
    assert_eq!(decide(&loser).err(), Some(Code::RevisionConflict));
    let refreshed = Command {
        expected_revision: Some(bench.run.head.revision.into()),
        ..loser.clone()
    };
    assert_eq!(decide(&refreshed).err(), Some(Code::StaleOwner));
    let current = Command {
        owner_epoch: Some(dec(2)),
        ..refreshed
    };
    assert_eq!(decide(&current).err(), Some(Code::StaleOwner));
    assert_eq!(bench.run.epoch, 2);
}

/// Proves F-01, FV-EFF.3, HS-06.3: killed between effect and commit, the attempt is uncertain: it is not dispatched
/// again, not retried, and waits for what shows its outcome.
#[test]
fn a_lost_effect_is_never_tried_again_by_itself() {
    let _on = guarded();
    let bench = Bench::free_orphaned();
    let system = bench.facts(Who::System);
    assert_eq!(
        code(&bench, &dispatch_body(&bench, "free", "at-free"), &system),
        Some(Code::StaleEpoch)
    );
    assert_eq!(
        code(&bench, &retry_body(&bench, "free", "at-2", 10), &system),
        Some(Code::EffectUnresolved)
    );
    let second = AdmissionProposal {
        operation_id: id("op-2"),
        attempt_id: id("at-2"),
        ..free_read()
    };
    let mut facts = bench.facts(Who::System);
    let again = admit_body(&bench, "free", &second, &mut facts);
    assert_eq!(code(&bench, &again, &facts), Some(Code::InputSetConflict));
    assert_eq!(bench.money(), (0, 10), "its reservation stays");
    assert_eq!(
        praxis_model::report::of(&bench.run).uncertain,
        [id("at-free")]
    );
}

/// Proves P-04, P-05, ERR-PREC.1: revision over epoch over policy over the human, each shown by removing the one
/// before it.
#[test]
fn the_first_violation_names_the_error() {
    let _on = guarded();
    let bench = Bench::free_unknown();
    let body = reconcile_body("at-free", ConfirmedApplied, 3, &["probe"]);
    let mut command = Command {
        expected_revision: Some(dec(1)),
        owner_epoch: Some(dec(9)),
        ..bench.command(&body)
    };
    let mut facts = confirming(bench.facts(Who::Agent), &["probe"]);
    facts.allowed = false;
    let decide = |command: &Command, facts: &praxis_model::facts::Facts| {
        praxis_model::decide::run(&bench.run, command, facts)
            .err()
            .map(|error| error.code())
    };
    assert_eq!(decide(&command, &facts), Some(Code::RevisionConflict));
    command.expected_revision = Some(bench.run.head.revision.into());
    assert_eq!(decide(&command, &facts), Some(Code::StaleOwner));
    command.owner_epoch = Some(dec(1));
    assert_eq!(decide(&command, &facts), Some(Code::AuthorizationDenied));
    facts.allowed = true;
    assert_eq!(decide(&command, &facts), Some(Code::HumanRequired));
    facts = confirming(bench.facts(Who::Human), &["probe"]);
    assert_eq!(decide(&command, &facts), None);
}

/// Proves P-06, ERR-HUMAN_REQUIRED: who may not decide learns nothing of the hold's state, and a denied claim in a
/// held run is denied, not held.
#[test]
fn authority_comes_before_state_and_gates() {
    let _on = guarded();
    let mut bench = Bench::new().held(HoldReason::UncertainEffect);
    let recheck = resolve_body("h", HoldDecision::Recheck, &[]);
    assert_eq!(
        code(&bench, &recheck, &bench.facts(Who::Rule)),
        Some(Code::HumanRequired)
    );
    let claim = Body::ClaimDelivery(ClaimDelivery {
        delivery_id: id("any"),
        lease_ms: None,
    });
    let mut denied = bench.facts(Who::Agent);
    denied.allowed = false;
    assert_eq!(
        code(&bench, &claim, &denied),
        Some(Code::AuthorizationDenied)
    );
    denied.allowed = true;
    assert_eq!(code(&bench, &claim, &denied), Some(Code::HoldActive));
    bench.act(recheck.clone(), Who::Human);
    assert_eq!(
        code(&bench, &recheck, &bench.facts(Who::Rule)),
        Some(Code::HumanRequired)
    );
    assert_eq!(
        code(&bench, &recheck, &bench.facts(Who::Human)),
        Some(Code::HoldState)
    );
}

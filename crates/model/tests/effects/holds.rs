//! Holds, recovery and the order of checks: what they gate, what they leave alone, and who is told what first.
//!
//! Invariant: every state is reached through accepted commands. Each test names what it proves.

use aiws::digest::sha256;
use aiws::error::Code;
use aiws::id::HoldId;
use aiws::record::SettledOutcome::{ConfirmedApplied, ConfirmedNotApplied};
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::event::Gate;
use praxis_model::run::NodeStatus;

use crate::bench::*;
use crate::refusals::guarded;
use crate::steps::*;

fn code(bench: &Bench, body: &Body, facts: &praxis_model::facts::Facts) -> Option<Code> {
    bench.decide(body, facts).err().map(|error| error.code())
}

fn hold_of<'a>(bench: &'a Bench, name: &str) -> &'a Hold {
    bench.run.holds.get(&id::<HoldId>(name)).expect("a hold")
}

/// Proves HS-01.3, HS-01.4, HS-05.1, HS-05.3: an open hold stops dispatch, retry, admission, claim and receipt, and
/// lets settlement, reconciliation, recovery and cancellation through.
#[test]
fn an_open_hold_stops_work_and_nothing_else() {
    let _on = guarded();
    let mut bench = Bench::free_dispatched();
    let claim = Body::ClaimDelivery(ClaimDelivery {
        delivery_id: id("any"),
        lease_ms: None,
    });
    let admit = admit_body(&bench, "free", &free_read(), &mut bench.facts(Who::System));
    bench.act(place_body(hold("h", HoldReason::Operator)), Who::Human);
    assert_eq!(
        bench.attempt("at-free").status,
        AttemptStatus::Dispatched,
        "in flight stays in flight"
    );
    for body in [
        dispatch_body(&bench, "free", "at-free"),
        retry_body(&bench, "free", "at-2", 10),
        claim,
        admit,
    ] {
        let found = code(&bench, &body, &bench.facts(Who::System));
        assert_eq!(found, Some(Code::HoldActive), "{}", body.kind().name());
    }
    let facts = confirming(bench.facts(Who::Human), &["probe"]);
    for body in [
        settle_body("at-free", ConfirmedApplied, 3, &["exit"]),
        recover_body(1),
        cancel_body(),
        place_body(hold("h2", HoldReason::Operator)),
        verify_body("v", VerificationVerdict::Pass),
    ] {
        let facts = praxis_model::facts::Facts {
            recovery_authority: true,
            ..facts.clone()
        };
        assert_eq!(code(&bench, &body, &facts), None, "{}", body.kind().name());
    }
    bench.act(
        settle_body("at-free", ConfirmedApplied, 3, &["exit"]),
        Who::System,
    );
    assert_eq!(bench.money(), (3, 0));
}

/// Proves HS-01.6, HS-01.7, HS-05.2, REL-8: a hold's members, blockers and dispositions come from the ledger.
#[test]
fn a_hold_is_derived_from_the_ledger() {
    let _on = guarded();
    let mut bench = Bench::work_admitted();
    bench.admit("free", &free_read());
    let facts = bench.with_material(bench.facts(Who::System));
    bench.act_on(&dispatch_body(&bench, "work", "at-work"), &facts);
    bench.act(dispatch_body(&bench, "free", "at-free"), Who::System);
    bench.act(
        settle_body("at-free", SettledOutcome::Unknown, 0, &[]),
        Who::System,
    );
    let stop = StopDisposition {
        operation_id: id("op-work"),
        attempt_id: id("at-work"),
        action: StopAction::Cancel,
    };
    let made_up = Blocker {
        kind: HoldReason::UncertainEffect,
        subject_id: id("made-up"),
        evidence: Vec::new(),
    };
    let proposal = HoldProposal {
        stop_disposition: vec![stop],
        blockers: vec![made_up],
        ..hold("h", HoldReason::Operator)
    };
    bench.act(place_body(proposal), Who::Human);
    let hold = hold_of(&bench, "h");
    let member = HoldMember {
        mission_id: id("m"),
        run_id: id("r"),
        node_ids: NodeSet::All,
    };
    assert_eq!(hold.members, [member]);
    let blockers: Vec<&str> = hold
        .blockers
        .iter()
        .map(|blocker| blocker.subject_id.as_str())
        .collect();
    assert_eq!(
        blockers,
        ["at-free"],
        "the uncertain attempt, and not what the caller made up"
    );
    let actions: Vec<(&str, StopAction)> = hold
        .stop_disposition
        .iter()
        .map(|stop| (stop.attempt_id.as_str(), stop.action))
        .collect();
    assert_eq!(
        actions,
        [
            ("at-free", StopAction::Drain),
            ("at-work", StopAction::Cancel)
        ]
    );
    assert_eq!(
        (hold.opened_by.as_str(), hold.opened_revision.get()),
        ("ann", bench.run.head.revision.get())
    );
}

/// Proves HS-03.2, HS-03.3, HS-04.1, HS-05.8: a recheck releases this hold alone, moves no money, starts nothing.
#[test]
fn a_recheck_releases_one_hold() {
    let _on = guarded();
    let mut bench = Bench::free_admitted().held(HoldReason::Operator);
    bench.act(place_body(hold("h2", HoldReason::Rule)), Who::Rule);
    let before = (
        bench.money(),
        bench.run.operations.clone(),
        bench.run.attempts.clone(),
    );
    bench.act(resolve_body("h", HoldDecision::Recheck, &[]), Who::Human);
    assert_eq!(
        (
            bench.money(),
            bench.run.operations.clone(),
            bench.run.attempts.clone()
        ),
        before
    );
    assert_eq!(
        (hold_of(&bench, "h").state, hold_of(&bench, "h2").state),
        (HoldState::Released, HoldState::Open)
    );
    let gates: Vec<&Gate> = bench.gates.iter().map(|(_, gate)| gate).collect();
    assert_eq!(gates, [&Gate::Hold { hold_id: id("h2") }]);
    let body = dispatch_body(&bench, "free", "at-free");
    assert_eq!(
        code(&bench, &body, &bench.facts(Who::System)),
        Some(Code::HoldActive)
    );
    bench.act(resolve_body("h2", HoldDecision::Recheck, &[]), Who::System);
    assert_eq!(code(&bench, &body, &bench.facts(Who::System)), None);
}

/// Proves HS-03.4, HS-06.6: canceling a hold enters cancellation; effects and finished work stay as they are.
#[test]
fn canceling_a_hold_enters_cancellation() {
    let _on = guarded();
    let mut bench = Bench::free_dispatched();
    bench.act(
        settle_body("at-free", ConfirmedApplied, 3, &["exit"]),
        Who::System,
    );
    bench.act(place_body(hold("h", HoldReason::AttemptLimit)), Who::System);
    bench.act(resolve_body("h", HoldDecision::Cancel, &[]), Who::Human);
    assert_eq!(
        (bench.run.lifecycle, hold_of(&bench, "h").state),
        (Lifecycle::Canceling, HoldState::Canceled)
    );
    assert_eq!(
        bench.attempt("at-free").status,
        AttemptStatus::ConfirmedApplied
    );
    let gates: Vec<&Gate> = bench.gates.iter().map(|(_, gate)| gate).collect();
    assert_eq!(gates, [&Gate::Cancel]);
    bench.act(finish_body(), Who::Human);
    assert_eq!(
        (bench.run.lifecycle, bench.money()),
        (Lifecycle::Canceled, (3, 0))
    );
}

/// Proves HS-03.7, HS-03.8, HS-06.3: an uncertainty hold goes once the effect is known, and a human says so.
#[test]
fn an_uncertainty_hold_goes_with_the_uncertainty() {
    let _on = guarded();
    let mut bench = Bench::free_unknown().held(HoldReason::UncertainEffect);
    let recheck = resolve_body("h", HoldDecision::Recheck, &[]);
    assert_eq!(
        code(&bench, &recheck, &bench.facts(Who::System)),
        Some(Code::HumanRequired)
    );
    assert_eq!(
        code(&bench, &recheck, &bench.facts(Who::Human)),
        Some(Code::HoldNotClear)
    );
    let facts = confirming(bench.facts(Who::Human), &["probe"]);
    bench.act_on(
        &reconcile_body("at-free", ConfirmedNotApplied, 0, &["probe"]),
        &facts,
    );
    bench.act(recheck, Who::Human);
    let end = hold_of(&bench, "h")
        .resolution
        .clone()
        .expect("a resolution");
    assert_eq!(
        (end.actor_kind, end.decision_ref.as_str(), end.rule),
        (ActorKind::Human, "decision", None)
    );
}

/// Proves HS-02.7, HS-04.2: a cost or time hold goes when the bound has room, never because someone says so.
#[test]
fn a_limit_hold_goes_only_with_room() {
    let _on = guarded();
    for reason in [
        HoldReason::CostLimit,
        HoldReason::TimeLimit,
        HoldReason::AttemptLimit,
    ] {
        let mut bench = Bench::new().held(reason);
        let bound = bench.account.bound;
        let facts = confirming(bench.facts(Who::Human), &["seen"]);
        let verdict = bench.try_act(&resolve_body("h", HoldDecision::Recheck, &["seen"]), &facts);
        assert_eq!(
            verdict.is_ok(),
            reason != HoldReason::AttemptLimit,
            "{reason}"
        );
        assert_eq!(bench.account.bound, bound);
    }
}

/// Proves HF-04.9, HS-03.9: a material hold goes with confirmed evidence; a restart hold under AUTO with the host's
/// permission.
#[test]
fn a_hold_goes_with_what_it_waits_for() {
    let _on = guarded();
    let mut bench = Bench::new().held(HoldReason::Artifact);
    let facts = confirming(bench.facts(Who::System), &["restored"]);
    bench.act_on(
        &resolve_body("h", HoldDecision::Recheck, &["restored"]),
        &facts,
    );
    let mut bench = Bench::new().held(HoldReason::Restart);
    let facts = praxis_model::facts::Facts {
        restart_allowed: true,
        ..bench.facts(Who::System)
    };
    bench.act_on(&resolve_body("h", HoldDecision::Recheck, &[]), &facts);
    assert!(bench.gates.is_empty());
}

/// Proves F-03, HS-01.1, E-19, ERR-HOLD_STATE: an unknown hold is refused and the open one stays; a closed one takes
/// no decision, and an open one only those that it allows.
#[test]
fn a_hold_takes_only_its_own_decisions() {
    let _on = guarded();
    let mut bench = Bench::new().held(HoldReason::Operator);
    let cancel_only = HoldProposal {
        allowed_decisions: vec![HoldDecision::Cancel],
        ..hold("c", HoldReason::Operator)
    };
    bench.act(place_body(cancel_only), Who::Human);
    let human = bench.facts(Who::Human);
    assert_eq!(
        code(
            &bench,
            &resolve_body("zz", HoldDecision::Recheck, &[]),
            &human
        ),
        Some(Code::HoldState)
    );
    assert_eq!(hold_of(&bench, "h").state, HoldState::Open);
    bench.act(resolve_body("h", HoldDecision::Recheck, &[]), Who::Human);
    let human = bench.facts(Who::Human);
    assert_eq!(
        code(
            &bench,
            &resolve_body("h", HoldDecision::Cancel, &[]),
            &human
        ),
        Some(Code::HoldState)
    );
    assert_eq!(
        code(
            &bench,
            &resolve_body("c", HoldDecision::Recheck, &[]),
            &human
        ),
        Some(Code::HoldState)
    );
    let reused = place_body(hold("h", HoldReason::Operator));
    assert_eq!(code(&bench, &reused, &human), Some(Code::IdentityConflict));
}

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
    assert_eq!(decide(&current).err(), Some(Code::StaleEpoch));
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

/// Proves T-44: releasing the hold of a BLOCKED boundary lets the same activation go on with the same consumption.
#[test]
fn a_blocked_activation_goes_on_once_its_hold_is_released() {
    let _on = guarded();
    let mut bench = Bench::free_returned();
    let blocked = BoundaryIntent {
        node_id: id("free"),
        status: OutcomeStatus::Blocked,
        approvals: Vec::new(),
        artifacts: Vec::new(),
        hold: Some(hold("h", HoldReason::Operator)),
        ..gate_done()
    };
    let facts = bench.facts(Who::System);
    bench.intend(&Intent::Boundary(blocked), &facts);
    let node = |bench: &Bench| {
        bench
            .run
            .nodes
            .get(&id::<aiws::id::NodeId>("free"))
            .expect("a node")
            .clone()
    };
    let before = node(&bench);
    assert_eq!(before.status, NodeStatus::Blocked);
    bench.act(resolve_body("h", HoldDecision::Recheck, &[]), Who::Human);
    let after = node(&bench);
    assert_eq!(
        (after.status, &after.activation_id),
        (NodeStatus::Active, &before.activation_id)
    );
    bench.act(retry_body(&bench, "free", "at-2", 10), Who::System);
    assert_eq!(bench.attempt("at-2").status, AttemptStatus::Prepared);
}

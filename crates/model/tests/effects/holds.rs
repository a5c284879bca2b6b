//! Holds: what they gate, what they leave alone, and what ends them.
//!
//! Invariant: every state is reached through accepted commands. Each test names what it proves.

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

/// The code of the refusal, if it is refused.
pub fn code(bench: &Bench, body: &Body, facts: &praxis_model::facts::Facts) -> Option<Code> {
    bench.decide(body, facts).err().map(|error| error.code())
}

/// The hold of this name.
pub fn hold_of<'a>(bench: &'a Bench, name: &str) -> &'a Hold {
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

/// Proves HS-05.2, HS-06.6, HS-01.8, REL-8: a branch's hold speaks of the branch's own work: its blockers, its dispositions
/// and its cancellation leave out what goes on beside it.
#[test]
fn a_branchs_hold_speaks_of_its_own_work() {
    let _on = guarded();
    let mut bench = Bench::work_admitted();
    bench.admit("free", &free_read());
    bench.act(place_body(branch("h", "work")), Who::Rule);
    let body = dispatch_body(&bench, "work", "at-work");
    let facts = bench.with_material(bench.facts(Who::System));
    assert_eq!(code(&bench, &body, &facts), Some(Code::HoldActive));
    bench.act(dispatch_body(&bench, "free", "at-free"), Who::System);
    let lost = settle_body("at-free", SettledOutcome::Unknown, 0, &[]);
    bench.act(lost, Who::System);
    bench.act(place_body(branch("h2", "work")), Who::Human);
    bench.act(place_body(branch("h3", "free")), Who::Human);
    let told = |name: &str| {
        let hold = hold_of(&bench, name);
        let blockers = hold.blockers.iter().map(|one| one.subject_id.to_string());
        let stops = hold.stop_disposition.iter();
        let stops = stops.map(|one| one.attempt_id.to_string());
        blockers.chain(stops).collect::<Vec<_>>()
    };
    assert!(told("h").is_empty() && told("h2").is_empty());
    assert_eq!(told("h3"), ["at-free", "at-free"]);
    // An effect beside the branch keeps nobody from rechecking it; the branch's own one does, and takes a human.
    bench.act(resolve_body("h", HoldDecision::Recheck, &[]), Who::System);
    let own = resolve_body("h3", HoldDecision::Recheck, &[]);
    let (human, system) = (bench.facts(Who::Human), bench.facts(Who::System));
    assert_eq!(code(&bench, &own, &system), Some(Code::HumanRequired));
    assert_eq!(code(&bench, &own, &human), Some(Code::HoldNotClear));
    // What was tried beside the branch after its hold began is none of its dispositions.
    bench.act(resolve_body("h2", HoldDecision::Cancel, &[]), Who::Human);
    assert_eq!(bench.run.lifecycle, Lifecycle::Canceling);
    let left: Vec<HoldId> = bench
        .gates
        .iter()
        .filter_map(|(_, gate)| match gate {
            Gate::Branch { hold_id, .. } => Some(hold_id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(left, [id("h3")], "each gate opens with its own hold");
}

/// Proves HC-PH.1, HC-RH.1, HS-03.7, HS-03.9, HS-04.1: an operator, a rule and the runtime hold a branch, and an agent does
/// not; a rule releases none, the runtime only what no human has to; nothing of it moves money or bounds.
#[test]
fn a_branch_is_held_and_released_with_authority() {
    let _on = guarded();
    let mut bench = Bench::free_admitted();
    let money = (bench.money(), bench.account.bound);
    for who in [Who::Human, Who::Rule, Who::System] {
        bench.act(place_body(branch("h", "free")), who);
        let recheck = resolve_body("h", HoldDecision::Recheck, &[]);
        for denied in [Who::Rule, Who::Agent] {
            let facts = bench.facts(denied);
            let found = code(&bench, &recheck, &facts);
            assert_eq!(found, Some(Code::AuthorizationDenied));
        }
        let cancel = resolve_body("h", HoldDecision::Cancel, &[]);
        let found = code(&bench, &cancel, &bench.facts(Who::System));
        assert_eq!(found, Some(Code::HumanRequired));
        let mut released = bench.clone();
        released.act(recheck, Who::System);
        assert_eq!((released.money(), released.account.bound), money);
        assert!(released.gates.is_empty());
        bench = Bench::free_admitted();
    }
    let agent = bench.facts(Who::Agent);
    let body = place_body(branch("h", "free"));
    assert_eq!(code(&bench, &body, &agent), Some(Code::AuthorizationDenied));
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

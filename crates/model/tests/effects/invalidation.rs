//! Invalidation: what becomes invalid with a hand-off, what stays, and what stops.
//!
//! Invariant: every state is reached through accepted commands. Each test names what it proves.

use aiws::error::Code;
use aiws::id::ActivationId;
use aiws::record::SettledOutcome::{ConfirmedApplied, ConfirmedNotApplied};
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::decision::Decision;
use praxis_model::event::{Gate, IdentityKind};
use praxis_model::plan::{Aggregate, Step, aggregate, plan};
use praxis_model::transition::Transition;

use crate::bench::*;
use crate::holds::code;
use crate::refusals::guarded;
use crate::steps::*;

/// The record of the one invalidation.
pub fn record(bench: &Bench) -> &Invalidation {
    let mut all = bench.run.invalidations.values();
    all.next().expect("an invalidation")
}

/// The delivery of `gate` to `work`.
fn delivery(bench: &Bench) -> &Delivery {
    let mut all = bench.run.deliveries.values();
    &all.next().expect("a delivery").record
}

fn claim(bench: &mut Bench) {
    let delivery_id = delivery(bench).delivery_id.clone();
    let body = ClaimDelivery {
        delivery_id,
        lease_ms: None,
    };
    bench.act(Body::ClaimDelivery(body), Who::System);
}

fn pending() -> Bench {
    let mut bench = Bench::new();
    bench.pass_gate();
    bench
}

fn claimed() -> Bench {
    let mut bench = pending();
    claim(&mut bench);
    bench
}

fn late() -> Bench {
    let mut bench = claimed();
    bench.now_ms += 10_000;
    bench
}

fn released() -> Bench {
    let mut bench = claimed();
    bench.act(recover_body(1), Who::System);
    bench
}

/// `work` is dispatched, with a stop policy.
fn dispatched(default_stop: StopAction) -> Bench {
    let config = HandoffConfig {
        default_stop,
        ..config()
    };
    let mut bench = Bench::with(contract(), config, graph());
    bench.open_gate();
    bench.admit("work", &approved_work());
    let facts = bench.with_material(bench.facts(Who::System));
    bench.act_on(&dispatch_body(&bench, "work", "at-work"), &facts);
    bench
}

/// Proves HD-01.T5, HD-05.1, HD-05.2: from PENDING, CLAIMED and ACKNOWLEDGED alike the delivery becomes INVALIDATED in one
/// event with its hold; a live claim ends as fenced, a lapsed one as expired, and a receipt stays with its claim.
#[test]
fn every_open_delivery_becomes_invalid() {
    let _on = guarded();
    let fenced = Some(ClaimEndCause::Fenced);
    for (bench, ended, receipt) in [
        (pending(), None, false),
        (claimed(), fenced, false),
        (late(), Some(ClaimEndCause::Expired), false),
        (released(), fenced, false),
        (Bench::work_ready(), None, true),
    ] {
        let before = (delivery(&bench).clone(), bench.run.head.revision.get());
        let bench = bench.invalidated();
        let after = delivery(&bench).clone();
        assert_eq!(after.state, DeliveryState::Invalidated);
        assert_eq!(after.acknowledgement, before.0.acknowledgement);
        assert_eq!(after.acknowledgement.is_some(), receipt);
        let end = after.claim.as_ref().and_then(|claim| claim.end);
        assert_eq!(end.map(|end| end.cause), ended);
        assert_eq!(after.generation, before.0.generation);
        Checked::new(&after).expect("the delivery has the shape of its record");
        let record = record(&bench);
        assert_eq!(record.affected_deliveries, [after.delivery_id]);
        assert_eq!(record.revision.get(), before.1 + 1, "one event");
        let hold_id = record.hold_id.clone().expect("a hold");
        let hold = bench.run.holds.get(&hold_id).expect("a hold");
        assert_eq!(
            (hold.state, hold.reason, hold.opened_revision),
            (
                HoldState::Open,
                HoldReason::InvalidatedInput,
                record.revision
            )
        );
        let gate = (bench.run.subject.clone(), Gate::Hold { hold_id });
        assert!(bench.gates.contains(&gate), "the gate closed with it");
    }
}

/// Proves HD-05.1, HC-IV.1: the record says which hand-off, why, on what evidence, who, when and what hung on it.
#[test]
fn the_record_says_everything() {
    let _on = guarded();
    let bench = Bench::work_admitted().invalidated();
    let record = record(&bench);
    assert_eq!(record.handoff, bench.handoff("gate"));
    assert_eq!(record.reason, "the plan is wrong");
    assert_eq!(record.evidence, [id("review")]);
    assert_eq!(
        (record.actor_id.as_str(), record.at_ms.get()),
        ("ann", bench.now_ms)
    );
    let work = bench.run.nodes.get("work").expect("a node");
    let one = std::slice::from_ref(&work.activation_id);
    assert_eq!(record.affected_consumptions, one);
    let bound = bench.run.consumptions.get(&work.activation_id);
    assert_eq!(
        bound.map(|bound| bound.state),
        Some(ConsumptionState::Invalidated)
    );
    // The gate itself consumed nothing of it.
    let gate = bench.run.nodes.get("gate").expect("a node");
    let bound = bench.run.consumptions.get(&gate.activation_id);
    assert_eq!(
        bound.map(|bound| bound.state),
        Some(ConsumptionState::Valid)
    );
    let hold = bench.run.holds.values().next().expect("a hold");
    let blocker = Blocker {
        kind: HoldReason::InvalidatedInput,
        subject_id: bench.handoff("gate").handoff_id.as_id(),
        evidence: vec![id("review")],
    };
    assert_eq!(hold.blockers, [blocker]);
    assert_eq!(
        (hold.owner.as_str(), hold.opened_by.as_str()),
        ("ann", "ann")
    );
}

/// Proves HD-05.1: the event is whole or it is none: with any one of its transitions left out it does not fold.
#[test]
fn no_part_of_an_invalidation_can_be_left_out() {
    let _on = guarded();
    let mut bench = Bench::work_admitted();
    bench.act(verify_body("v", VerificationVerdict::Pass), Who::System);
    let body = invalidate_body(bench.handoff("gate"));
    let decision = bench
        .decide(&body, &bench.facts(Who::Human))
        .expect("decides");
    let kinds: Vec<&str> = decision.outcome.transitions.iter().map(kind).collect();
    assert_eq!(
        kinds,
        ["delivery", "consumption", "assessment", "hold", "record"]
    );
    // The record itself cannot tell that it is missing; whoever decides again can.
    for (at, part) in kinds.iter().enumerate().take(kinds.len() - 1) {
        let mut torn: Decision = decision.clone();
        torn.outcome.transitions.remove(at);
        let folded = bench.fold(&torn, &bench.facts(Who::Human));
        assert!(folded.is_err(), "folds without its {part}");
    }
    let whole = bench.fold(&decision, &bench.facts(Who::Human));
    assert!(whole.is_ok(), "{:?}", whole.err());
}

fn kind(transition: &Transition) -> &'static str {
    match transition {
        Transition::DeliveryMoved { .. } => "delivery",
        Transition::ConsumptionMoved { .. } => "consumption",
        Transition::AssessmentInvalidated { .. } => "assessment",
        Transition::HoldOpened { .. } => "hold",
        Transition::HandoffInvalidated { .. } => "record",
        _ => "something else",
    }
}

/// Proves HD-05.3, HD-05.2, HS-05.2, R-01: after a dispatch the invalidation keeps the attempt in flight, with the
/// configured stop on record; its effect is reconciled or settled late, and what it cost is booked.
#[test]
fn what_was_dispatched_before_is_kept_and_settled() {
    let _on = guarded();
    for stop in [StopAction::Drain, StopAction::Cancel, StopAction::Reconcile] {
        let mut bench = dispatched(stop);
        let money = bench.money();
        bench = bench.invalidated();
        assert_eq!(
            bench.attempt("at-work").status,
            AttemptStatus::Dispatched,
            "invalidation rolls nothing back"
        );
        assert_eq!(bench.money(), money);
        let hold = bench.run.holds.values().next().expect("a hold");
        let stops: Vec<_> = hold
            .stop_disposition
            .iter()
            .map(|said| (said.attempt_id.as_str(), said.action))
            .collect();
        assert_eq!(stops, [("at-work", stop)]);
        assert_eq!(
            aggregate(&bench.run, &[], bench.now_ms),
            Aggregate::Running,
            "what is in flight still runs"
        );
        bench.act(
            settle_body("at-work", ConfirmedApplied, 4, &["exit"]),
            Who::System,
        );
        assert_eq!(bench.money(), (4, 0));
        assert_eq!(
            bench.attempt("at-work").status,
            AttemptStatus::ConfirmedApplied
        );
    }
}

/// Proves HD-05.5, R-01: after an invalidation the dispatch is refused and so is every other way on, whatever the plan
/// said before; the scheduler is not even told of one.
#[test]
fn what_comes_after_is_not_dispatched() {
    let _on = guarded();
    let before = Bench::work_admitted();
    let facts = before.with_material(before.facts(Who::System));
    let dispatch = dispatch_body(&before, "work", "at-work");
    let old = before.command(&dispatch);
    assert_eq!(code(&before, &dispatch, &facts), None);
    let bench = before.invalidated();
    let stale = praxis_model::decide::run(&bench.run, &old, &facts);
    assert_eq!(
        stale.err().map(|error| error.code()),
        Some(Code::RevisionConflict)
    );
    assert_eq!(code(&bench, &dispatch, &facts), Some(Code::HoldActive));
    let money = bench.money();
    assert_eq!(money, (0, 10), "the reservation stays until it is returned");
    let steps = plan(&bench.run, &[], bench.now_ms);
    assert_eq!(steps, [], "{steps:?}");
    let steps = plan(&bench.clone().unheld().run, &[], bench.now_ms);
    let tries =
        |step: &Step| matches!(step, Step::Dispatch { node_id, .. } if node_id.as_str() == "work");
    assert!(!steps.iter().any(tries), "{steps:?}");
    assert_eq!(aggregate(&bench.run, &[], bench.now_ms), Aggregate::Waiting);
}

/// Proves HD-05.4: an invalidation moves no money, writes no register, takes no ownership and gives no authority; what is
/// uncertain still needs a human or a look-up.
#[test]
fn an_invalidation_gives_nothing() {
    let _on = guarded();
    let mut bench = dispatched(StopAction::Reconcile);
    bench.act(
        settle_body("at-work", SettledOutcome::Unknown, 0, &[]),
        Who::System,
    );
    let before = bench.clone();
    let decision = bench.act(invalidate_body(bench.handoff("gate")), Who::System);
    let outcome = decision.outcome;
    assert!(outcome.accounts.is_empty() && outcome.registers.is_empty());
    assert!(outcome.owner.is_none() && outcome.opens.is_empty() && outcome.due.is_empty());
    let named: Vec<_> = outcome.identities.iter().map(|it| it.kind).collect();
    assert_eq!(named, [IdentityKind::Hold]);
    assert!(outcome.gates.iter().all(|gate| gate.closed));
    assert!(decision.same.is_empty() && decision.before_ms.is_empty());
    assert_eq!(
        (
            &bench.run.operations,
            &bench.run.attempts,
            &bench.run.approvals
        ),
        (
            &before.run.operations,
            &before.run.attempts,
            &before.run.approvals
        )
    );
    assert_eq!(
        (&bench.run.nodes, bench.run.lifecycle),
        (&before.run.nodes, Lifecycle::Running)
    );
    let body = reconcile_body("at-work", ConfirmedNotApplied, 0, &["review"]);
    let system = confirming(bench.facts(Who::System), &["review"]);
    assert_eq!(code(&bench, &body, &system), Some(Code::HumanRequired));
    let human = confirming(bench.facts(Who::Human), &["review"]);
    bench.act_on(&body, &human);
}

/// Proves HD-05.8: the hold of an invalidated input is not cleared by a recheck, by whomever and with whatever
/// evidence, not when its bytes are back; it ends with the run's cancellation.
#[test]
fn an_invalidated_input_is_never_forced_clear() {
    let _on = guarded();
    let mut bench = Bench::work_admitted().invalidated();
    let name = record(&bench).hold_id.clone().expect("a hold");
    for who in [Who::Human, Who::System] {
        let facts = confirming(
            bench.with_material(bench.facts(who)),
            &["review", "restored"],
        );
        let facts = praxis_model::facts::Facts {
            restart_allowed: true,
            ..facts
        };
        let recheck = resolve_body(
            name.as_str(),
            HoldDecision::Recheck,
            &["review", "restored"],
        );
        assert_eq!(code(&bench, &recheck, &facts), Some(Code::HoldNotClear));
    }
    bench.act(
        resolve_body(name.as_str(), HoldDecision::Cancel, &[]),
        Who::Human,
    );
    assert_eq!(bench.run.lifecycle, Lifecycle::Canceling);
    let facts = bench.with_material(bench.facts(Who::System));
    let dispatch = dispatch_body(&bench, "work", "at-work");
    assert_eq!(code(&bench, &dispatch, &facts), Some(Code::HoldActive));
    bench.act(finish_body(), Who::Human);
    assert_eq!(
        (bench.run.lifecycle, bench.money()),
        (Lifecycle::Canceled, (0, 0))
    );
    assert_eq!(delivery(&bench).state, DeliveryState::Invalidated);
}

/// Proves HD-05.7: no command and no decision overrides an invalidation: the vocabulary has none, and the form
/// of the command takes no such member.
#[test]
fn nothing_overrides_an_invalidation() {
    let _on = guarded();
    let words = ["override", "force", "revalidate", "restore", "compat"];
    for kind in CommandType::ALL {
        let name = kind.name().to_lowercase();
        assert!(words.iter().all(|word| !name.contains(word)), "{name}");
    }
    assert_eq!(
        HoldDecision::ALL,
        [HoldDecision::Recheck, HoldDecision::Cancel]
    );
    let body = aiws::canonical::to_value(&invalidate_body(Bench::work_ready().handoff("gate")));
    let aiws::json::Value::Object(mut members) = body.expect("a value") else {
        panic!("an object")
    };
    members.remove("type");
    let kind = CommandType::InvalidateHandoff;
    Body::from_members(kind, &members.clone().into()).expect("the plain form");
    for member in ["override", "force", "deliveries", "actorId", "scope"] {
        let mut more = members.clone();
        more.insert(member.to_owned(), true.into());
        let refused = Body::from_members(kind, &more.into()).expect_err(member);
        assert_eq!(refused.code(), Code::SchemaInvalid);
    }
}

/// Proves HS-01.4, HS-06.5, HD-05.1: under a hold and under a pending cancellation a hand-off is invalidated and the run
/// held once more; an ended run gets the record and nothing that could be resumed.
#[test]
fn an_invalidation_is_never_gated() {
    let _on = guarded();
    let held = Bench::work_admitted()
        .held(HoldReason::Operator)
        .invalidated();
    let open = held.run.holds.values();
    assert_eq!(open.filter(|hold| hold.state == HoldState::Open).count(), 2);
    let mut canceling = Bench::work_admitted().canceling().invalidated();
    assert_eq!(canceling.run.lifecycle, Lifecycle::Canceling);
    canceling.act(finish_body(), Who::Human);
    assert!(
        canceling
            .gates
            .iter()
            .all(|(_, gate)| *gate == Gate::Cancel),
        "the cancellation closes the hold too"
    );
    let before = Bench::work_admitted().rejected();
    let mut ended = before.clone();
    let Body::InvalidateHandoff(body) = invalidate_body(before.handoff("gate")) else {
        panic!("an invalidation")
    };
    let hold = Some(HoldName {
        hold_id: id("wanted"),
        owner: id("ann"),
    });
    let decision = ended.act(
        Body::InvalidateHandoff(InvalidateHandoff { hold, ..body }),
        Who::Human,
    );
    assert!(decision.outcome.gates.is_empty() && decision.outcome.identities.is_empty());
    assert_eq!(
        (ended.run.lifecycle, &ended.run.holds, &ended.gates),
        (Lifecycle::Rejected, &before.run.holds, &before.gates)
    );
    assert_eq!(
        (record(&ended).hold_id.clone(), ended.money()),
        (None, before.money())
    );
    assert_eq!(delivery(&ended).state, DeliveryState::Invalidated);
    let work = ended.run.nodes.get("work").expect("a node");
    let bound: &Consumption = ended
        .run
        .consumptions
        .get::<ActivationId>(&work.activation_id)
        .expect("bound");
    assert_eq!(bound.state, ConsumptionState::Invalidated);
}

/// Proves HS-01.6, HC-ENV.5: the caller may name the hold and its owner; scope, resolver and members are derived, under
/// the binding that the configuration has for the run.
#[test]
fn the_hold_is_derived() {
    let _on = guarded();
    let binding = ScopeBinding {
        scope_ref: Ref {
            id: id("r"),
            revision: dec(3),
        },
        kind: HoldScopeKind::Run,
        resolver_revision: dec(7),
    };
    let bound = HandoffConfig {
        scope_bindings: vec![binding],
        ..config()
    };
    for (config, revision, resolver) in [(config(), 1, 1), (bound, 3, 7)] {
        let mut bench = Bench::with(contract(), config, graph());
        bench.open_gate();
        let Body::InvalidateHandoff(body) = invalidate_body(bench.handoff("gate")) else {
            panic!("an invalidation")
        };
        let hold = Some(HoldName {
            hold_id: id("mine"),
            owner: id("bob"),
        });
        let body = Body::InvalidateHandoff(InvalidateHandoff { hold, ..body });
        let decision = bench.act(body, Who::System);
        let hold = crate::holds::hold_of(&bench, "mine");
        assert_eq!(
            (hold.owner.as_str(), hold.opened_by.as_str()),
            ("bob", "engine")
        );
        assert_eq!(hold.scope.kind, HoldScopeKind::Run);
        assert_eq!(hold.scope.scope_ref.revision, dec(revision));
        assert_eq!(hold.scope.resolver_revision, dec(resolver));
        assert_eq!(hold.members[0].node_ids, NodeSet::All);
        let holds: Vec<_> = decision
            .outcome
            .identities
            .iter()
            .map(|it| &it.key)
            .collect();
        assert_eq!(holds, [&id("mine")]);
    }
}

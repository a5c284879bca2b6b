//! What is in order is accepted, and means what it should: effects, money, approvals, assessments.
//!
//! Invariant: every state is reached through accepted commands. Each test names what it proves.

use aiws::record::SettledOutcome::{ConfirmedApplied, ConfirmedNotApplied, Unknown};
use aiws::record::*;
use praxis_model::account::Posting;
use praxis_model::command::*;
use praxis_model::event::IdentityKind;
use praxis_model::register::RegisterKind;
use praxis_model::transition::Transition;

use crate::bench::*;
use crate::refusals::guarded;
use crate::steps::*;

/// Proves FV-RUN.1, FV-CON.1: a run starts with epoch 1 from what its admission register says, and its mission's
/// contract is the one that was opened.
#[test]
fn a_run_starts_from_its_admission() {
    let _on = guarded();
    let bench = Bench::new();
    assert_eq!(
        (bench.run.epoch, bench.run.lifecycle),
        (1, Lifecycle::Running)
    );
    assert_eq!(*bench.run.contract, contract());
    assert_eq!(bench.run.contract, bench.mission.contract);
    assert_eq!(*bench.run.config, config());
    let kinds: Vec<RegisterKind> = bench.registers.keys().map(|key| key.kind).collect();
    assert_eq!(
        kinds,
        [
            RegisterKind::Contract,
            RegisterKind::Grant,
            RegisterKind::RunAdmission
        ]
    );
    assert_eq!(bench.account.bound, dec(100));
    assert_eq!(bench.live.len(), 1);
}

/// Proves FV-GRT.1: a grant that narrows its parent in every dimension, or in none, is put in force.
#[test]
fn a_narrower_grant_comes_into_force() {
    let _on = guarded();
    let (mission, _) = opened(contract(), config());
    let narrower = Grant {
        subject: id("helper"),
        actions: vec!["edit".to_owned()],
        scopes: vec!["repo".to_owned()],
        max_amount: dec(0),
        not_after_ms: aiws::decimal::Ms::from_u64(1),
        ..child("g2")
    };
    for grant in [narrower, child("g2")] {
        let body = Body::GrantCommand(GrantCommand {
            grant: grant.clone(),
        });
        let decision = decide_mission(Some(&mission), &body, 1_000).expect("accepted");
        let write = &decision.outcome.registers[0];
        assert_eq!(
            write.value,
            aiws::canonical::to_value(&grant).expect("a value")
        );
        assert_eq!(decision.outcome.identities[0].kind, IdentityKind::Grant);
    }
}

/// Proves FV-GRT.4, FV-GRT.6, HD-03.8, T-81: dispatch records the authorizer's policy instead of the caller's, pins
/// the grant as read, and names every time that the durable boundary must still find ahead.
#[test]
fn a_dispatch_pins_what_can_still_change() {
    let _on = guarded();
    let mut bench = Bench::work_admitted();
    let facts = bench.with_material(bench.facts(Who::System));
    let decision = bench.act_on(&dispatch_body(&bench, "work", "at-work"), &facts);
    let Body::Dispatch(recorded) = &decision.command else {
        panic!("a dispatch")
    };
    assert_eq!(recorded.policy, reference("host-policy"));
    assert_eq!(decision.same.len(), 1);
    assert_eq!(
        (
            decision.same[0].register.kind,
            decision.same[0].revision.get()
        ),
        (RegisterKind::Grant, 1)
    );
    let mut before = decision.before_ms;
    before.sort_unstable();
    // Approval, plan's retention, node, grant, contract.
    assert_eq!(before, [500_000, 700_000, 800_000, 900_000, 1_000_000]);
    assert_eq!(bench.attempt("at-work").status, AttemptStatus::Dispatched);
    assert_eq!(
        bench.money(),
        (0, 10),
        "dispatch reserves nothing of its own"
    );
}

/// Proves T-80, FV-APR.1: the first admission binds the approval to its operation, and a retry of that operation
/// may use it while it is current.
#[test]
fn an_approval_belongs_to_one_operation_and_its_retries() {
    let _on = guarded();
    let mut bench = Bench::work_admitted();
    let approval = bench
        .run
        .approvals
        .get(&id::<aiws::id::ApprovalId>("yes"))
        .expect("an approval")
        .clone();
    assert_eq!(approval.operation_id, Some(id("op-work")));
    assert_eq!(
        (approval.approver.as_str(), approval.policy),
        ("ann", reference("host-policy"))
    );
    let facts = bench.with_material(bench.facts(Who::System));
    bench.act_on(&dispatch_body(&bench, "work", "at-work"), &facts);
    bench.act(
        settle_body("at-work", ConfirmedNotApplied, 0, &["exit"]),
        Who::System,
    );
    let body = retry_body(&bench, "work", "at-2", 10);
    let retried = bench.act(body, Who::System);
    assert!(
        retried.before_ms.contains(&500_000),
        "the approval's expiry binds the retry too"
    );
    assert_eq!(bench.attempt("at-2").status, AttemptStatus::Prepared);
}

/// Proves FV-ACC.2, FV-ACC.3, FV-ACC.4, FV-EFF.2, HS-02.8: what each outcome does to spent and reserved.
#[test]
fn every_outcome_posts_what_it_should() {
    let _on = guarded();
    // outcome, actual, evidence, (spent, reserved) afterwards, out of (0, 10).
    let table = [
        (ConfirmedApplied, 4, &["exit"][..], (4, 0)),
        (ConfirmedApplied, 0, &["exit"][..], (0, 0)),
        (ConfirmedApplied, 250, &["exit"][..], (250, 0)),
        (ConfirmedNotApplied, 0, &["exit"][..], (0, 0)),
        (Unknown, 0, &[][..], (0, 10)),
    ];
    for (outcome, actual, evidence, money) in table {
        let mut bench = Bench::free_dispatched();
        assert_eq!(bench.money(), (0, 10));
        bench.act(
            settle_body("at-free", outcome, actual, evidence),
            Who::System,
        );
        assert_eq!(bench.money(), money, "{outcome} {actual}");
        assert_eq!(
            bench.attempt("at-free").status,
            AttemptStatus::from(outcome)
        );
    }
}

/// Proves T-20: a lost read settled by the contract's rule costs its whole reservation and is retried in bounds.
#[test]
fn a_lost_read_is_spent_and_retried() {
    let _on = guarded();
    for body in [
        reconcile_body("at-free", ConfirmedNotApplied, 10, &[]),
        settle_body("at-free", ConfirmedNotApplied, 10, &[]),
    ] {
        let mut bench = Bench::free_orphaned();
        let facts = of_class(bench.facts(Who::System), "LOST_READ_RULE", "ann-said-so");
        let decision = bench.act_on(&body, &facts);
        assert!(matches!(
            decision.outcome.accounts[..],
            [Posting::Settle { .. }]
        ));
        assert_eq!(bench.money(), (10, 0), "spent, not refunded");
        bench.act(retry_body(&bench, "free", "at-2", 10), Who::System);
        assert_eq!(bench.money(), (10, 10));
        assert_eq!(bench.attempt("at-2").epoch.get(), 2);
    }
}

/// Proves FV-EFF.4, T-19, T-20: a human with evidence and a conclusive look-up both reconcile what is uncertain,
/// whether it was reported lost or its owner is gone.
#[test]
fn evidence_reconciles_what_is_uncertain() {
    let _on = guarded();
    let look_up = |bench: &Bench| of_class(bench.facts(Who::System), "LOOKUP", "probe-1");
    let human = |bench: &Bench| bench.facts(Who::Human);
    let deciders: [&dyn Fn(&Bench) -> praxis_model::facts::Facts; 2] = [&look_up, &human];
    for start in [Bench::free_unknown, Bench::free_orphaned] {
        for decider in deciders {
            for (outcome, actual, money) in [
                (ConfirmedApplied, 7, (7, 0)),
                (ConfirmedNotApplied, 0, (0, 0)),
            ] {
                let mut bench = start();
                let facts = confirming(decider(&bench), &["probe"]);
                bench.act_on(
                    &reconcile_body("at-free", outcome, actual, &["probe"]),
                    &facts,
                );
                assert_eq!(
                    (bench.money(), bench.attempt("at-free").status),
                    (money, AttemptStatus::from(outcome))
                );
                assert_eq!(bench.attempt("at-free").evidence, [id("probe")]);
            }
        }
    }
}

/// Proves HS-05.3, T-18: what an earlier owner's worker reports late, with evidence, is settled by the owner of now.
#[test]
fn a_late_report_is_settled_under_the_new_epoch() {
    let _on = guarded();
    let mut bench = Bench::free_orphaned();
    let facts = confirming(bench.facts(Who::System), &["exit-record"]);
    bench.act_on(
        &settle_body("at-free", ConfirmedApplied, 6, &["exit-record"]),
        &facts,
    );
    assert_eq!(bench.money(), (6, 0));
}

/// Proves FV-REC.2, FV-REC.3, T-19: a prepared attempt of an earlier owner is returned by a human, or by the engine
/// under AUTO and RULE, and then an explicit retry may follow.
#[test]
fn a_prepared_attempt_of_an_old_owner_is_returned() {
    let _on = guarded();
    for (restart_policy, who) in [
        (RestartPolicy::Auto, Who::System),
        (RestartPolicy::Human, Who::Human),
        (RestartPolicy::Rule, Who::System),
    ] {
        let config = HandoffConfig {
            restart_policy,
            rule: Some(crate::rules::rule()),
            ..config()
        };
        let mut bench = Bench::with(contract(), config, graph());
        bench.admit("free", &free_read());
        bench.act(recover_body(1), Who::System);
        bench.act(settle_body("at-free", ConfirmedNotApplied, 0, &[]), who);
        assert_eq!(bench.money(), (0, 0));
        if restart_policy == RestartPolicy::Auto {
            bench.act(retry_body(&bench, "free", "at-2", 10), Who::System);
            assert_eq!(bench.money(), (0, 10));
        }
    }
}

/// Proves F-09, FV-ACC.1: what was spent and reserved before a recovery still counts after it.
#[test]
fn a_restart_forgets_no_money() {
    let _on = guarded();
    let mut bench = Bench::new();
    bench.admit(
        "free",
        &AdmissionProposal {
            amount: dec(60),
            ..free_read()
        },
    );
    bench.act(dispatch_body(&bench, "free", "at-free"), Who::System);
    bench.act(
        settle_body("at-free", ConfirmedApplied, 90, &["exit"]),
        Who::System,
    );
    bench.act(recover_body(1), Who::System);
    assert_eq!(bench.money(), (90, 0));
    bench.open_gate();
    let mut facts = bench.with_material(bench.facts(Who::System));
    for (amount, fits) in [(11, false), (10, true)] {
        let body = admit_body(
            &bench,
            "work",
            &AdmissionProposal {
                amount: dec(amount),
                ..approved_work()
            },
            &mut facts,
        );
        let verdict = bench
            .decide(&body, &facts)
            .map(|_| ())
            .map_err(|error| error.code());
        let expected = if fits {
            Ok(())
        } else {
            Err(aiws::error::Code::BudgetExceeded)
        };
        assert_eq!(verdict, expected, "{amount} of the 10 that are left");
    }
}

/// Proves F-11, NUM-2, NUM-3: no bound can be read as none: zero attempts, signs and overflow are refused.
#[test]
fn a_bound_is_never_unlimited() {
    let _on = guarded();
    let sealed = aiws::canonical::to_value(&contract()).expect("a value");
    let nines = "9".repeat(101);
    for (member, text) in [
        ("maxAttempts", "0"),
        ("maxAttempts", "-1"),
        ("budget", "-1"),
        ("budget", "+1"),
        ("budget", nines.as_str()),
        ("deadlineMs", "-1"),
    ] {
        let mut members = sealed.as_object().expect("an object").clone();
        members.insert(member.to_owned(), text.into());
        let refused =
            aiws::canonical::from_value::<Contract>(&members.into()).expect_err("refused");
        assert_eq!(
            refused.code(),
            aiws::error::Code::SchemaInvalid,
            "{member} {text}"
        );
    }
    // A budget of zero is a bound like any other: nothing fits.
    let mut bench = Bench::with(
        Contract {
            budget: dec(0),
            ..contract()
        },
        config(),
        graph(),
    );
    let mut facts = bench.facts(Who::System);
    let body = admit_body(&bench, "free", &free_read(), &mut facts);
    let refused = bench.try_act(&body, &facts).expect_err("refused");
    assert_eq!(refused.code(), aiws::error::Code::BudgetExceeded);
    assert_eq!(bench.money(), (0, 0));
}

/// Proves FV-ASM.1, FV-ASM.2, FV-APR.5: assessments of each kind are numbered on their own, the last one counts, and
/// none stands in for another.
#[test]
fn assessments_are_numbered_and_the_last_counts() {
    let _on = guarded();
    let mut bench = Bench::new();
    let verdicts = [
        VerificationVerdict::Pass,
        VerificationVerdict::Fail,
        VerificationVerdict::Pass,
    ];
    for (index, verdict) in verdicts.into_iter().enumerate() {
        bench.act(verify_body(&format!("v{index}"), verdict), Who::System);
    }
    bench.act(accept_body("a", AcceptanceVerdict::Accepted), Who::Human);
    let revisions: Vec<u64> = bench
        .run
        .verifications
        .iter()
        .map(|one| one.revision.get())
        .collect();
    assert_eq!(revisions, [1, 2, 3]);
    assert_eq!(bench.run.acceptances[0].revision.get(), 1);
    assert_eq!(bench.run.acceptances[0].assessor.as_str(), "ann");
    assert_eq!(
        bench.run.lifecycle,
        Lifecycle::Running,
        "accepting ends nothing by itself"
    );
    assert_eq!(bench.money(), (0, 0));
}

/// Proves FV-EFF.1: dispatching moves the attempt and nothing else; it is the event that lets an adapter be called.
#[test]
fn a_dispatch_moves_one_attempt() {
    let _on = guarded();
    let bench = Bench::free_admitted();
    let decision = bench
        .decide(
            &dispatch_body(&bench, "free", "at-free"),
            &bench.facts(Who::System),
        )
        .expect("accepted");
    let outcome = decision.outcome;
    let moved = [Transition::AttemptMoved {
        attempt_id: id("at-free"),
        from: AttemptStatus::Prepared,
        to: AttemptStatus::Dispatched,
        actual: None,
        evidence: Vec::new(),
    }];
    assert_eq!(outcome.transitions, moved);
    assert!(
        outcome.accounts.is_empty() && outcome.registers.is_empty() && outcome.gates.is_empty()
    );
}

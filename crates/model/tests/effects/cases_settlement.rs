//! One refusal per guard: settle, reconcile, verify, accept, cancelRun, finishCancelRun.
//!
//! Invariant: each case breaks one rule and would be accepted without it. Read by the tests of refusals.

use aiws::decimal::Dec;
use aiws::record::SettledOutcome::{ConfirmedApplied, ConfirmedNotApplied, Unknown};
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::decision::{Decision, Rejection};
use praxis_model::facts::Facts;
use praxis_model::guard::Guard;

use crate::bench::*;
use crate::steps::*;
use crate::table::Case;

type Verdict = Result<Decision, Rejection>;

fn settle(
    bench: Bench,
    who: Who,
    outcome: SettledOutcome,
    actual: u64,
    evidence: &[&str],
) -> Verdict {
    bench.decide(
        &settle_body("at-free", outcome, actual, evidence),
        &bench.facts(who),
    )
}

fn reconcile(
    bench: &Bench,
    facts: Facts,
    outcome: SettledOutcome,
    actual: u64,
    evidence: &[&str],
) -> Verdict {
    bench.decide(
        &reconcile_body("at-free", outcome, actual, evidence),
        &facts,
    )
}

fn by(bench: &Bench, who: Who) -> Facts {
    confirming(bench.facts(who), &["probe"])
}

/// The contract's rule for lost reads decides, in the name of the human who approved it.
fn by_rule(bench: &Bench) -> Facts {
    of_class(bench.facts(Who::System), "LOST_READ_RULE", "ann-said-so")
}

/// A run where the lost work is an edit, not a read.
fn lost_edit() -> Bench {
    let mut bench = Bench::new();
    bench.admit("free", &proposal("free", edit("a"), 10));
    bench.act(dispatch_body(&bench, "free", "at-free"), Who::System);
    bench.act(settle_body("at-free", Unknown, 0, &[]), Who::System);
    bench
}

fn prepared_of_old_epoch(config: HandoffConfig) -> Bench {
    let mut bench = Bench::with(contract(), config, graph());
    bench.admit("free", &free_read());
    bench.act(recover_body(1), Who::System);
    bench
}

pub const SETTLE: &[Case] = &[
    Case(Guard::SettleOperator, || {
        settle(
            prepared_of_old_epoch(config()),
            Who::Agent,
            ConfirmedNotApplied,
            0,
            &[],
        )
    }),
    Case(Guard::SettleOperator, || {
        let config = HandoffConfig {
            restart_policy: RestartPolicy::Human,
            ..config()
        };
        settle(
            prepared_of_old_epoch(config),
            Who::System,
            ConfirmedNotApplied,
            0,
            &[],
        )
    }),
    // A current prepared attempt may still be dispatched; so may nobody say yet that it never was.
    Case(Guard::SettleState, || {
        settle(
            Bench::free_admitted(),
            Who::Human,
            ConfirmedNotApplied,
            0,
            &[],
        )
    }),
    Case(Guard::SettleState, || {
        settle(
            Bench::free_returned(),
            Who::Human,
            ConfirmedApplied,
            1,
            &["exit"],
        )
    }),
    Case(Guard::SettleOnlyReturns, || {
        settle(
            prepared_of_old_epoch(config()),
            Who::Human,
            ConfirmedApplied,
            1,
            &["exit"],
        )
    }),
    Case(Guard::UnknownOnce, || {
        settle(Bench::free_admitted(), Who::Human, Unknown, 0, &[])
    }),
    Case(Guard::UnknownOnce, || {
        settle(Bench::free_unknown(), Who::System, Unknown, 0, &[])
    }),
    Case(Guard::UnknownUncharged, || {
        settle(Bench::free_dispatched(), Who::System, Unknown, 1, &[])
    }),
    Case(Guard::SettleEvidence, || {
        settle(
            Bench::free_dispatched(),
            Who::System,
            ConfirmedApplied,
            1,
            &[],
        )
    }),
    Case(Guard::ActualCounts, || {
        let mut bench = Bench::free_dispatched();
        bench.account.spent = Dec::from_u64(1);
        let body = Settle {
            run_id: id("r"),
            attempt_id: id("at-free"),
            outcome: ConfirmedApplied,
            actual: Dec::max(),
            evidence: vec![id("exit")],
        };
        bench.decide(&Body::Settle(body), &bench.facts(Who::System))
    }),
    // A lost answer is never declared undone without evidence: not by the engine, not by an agent.
    Case(Guard::UncertainHuman, || {
        let bench = Bench::free_unknown();
        bench.decide(
            &settle_body("at-free", ConfirmedNotApplied, 0, &["probe"]),
            &by(&bench, Who::System),
        )
    }),
    Case(Guard::UncertainHuman, || {
        let bench = Bench::free_orphaned();
        bench.decide(
            &settle_body("at-free", ConfirmedNotApplied, 0, &["probe"]),
            &by(&bench, Who::Agent),
        )
    }),
    Case(Guard::UncertainEvidence, || {
        settle(
            Bench::free_unknown(),
            Who::System,
            ConfirmedApplied,
            3,
            &["hearsay"],
        )
    }),
    Case(Guard::UncertainEvidence, || {
        settle(
            Bench::free_orphaned(),
            Who::System,
            ConfirmedApplied,
            3,
            &[],
        )
    }),
    Case(Guard::LostReadCharged, || {
        let bench = Bench::free_unknown();
        bench.decide(
            &settle_body("at-free", ConfirmedNotApplied, 0, &[]),
            &by_rule(&bench),
        )
    }),
];

/// What was not applied, and is said to have cost something.
pub const NOT_APPLIED: &[Case] = &[
    Case(Guard::NotAppliedUncharged, || {
        settle(
            Bench::free_dispatched(),
            Who::System,
            ConfirmedNotApplied,
            1,
            &["exit"],
        )
    }),
    Case(Guard::NotAppliedUncharged, || {
        let bench = Bench::free_unknown();
        reconcile(
            &bench,
            by(&bench, Who::Human),
            ConfirmedNotApplied,
            1,
            &["probe"],
        )
    }),
];

pub const RECONCILE: &[Case] = &[
    Case(Guard::UncertainHuman, || {
        let bench = Bench::free_unknown();
        reconcile(
            &bench,
            by(&bench, Who::System),
            ConfirmedApplied,
            3,
            &["probe"],
        )
    }),
    Case(Guard::UncertainHuman, || {
        let bench = Bench::free_unknown();
        reconcile(
            &bench,
            by(&bench, Who::Agent),
            ConfirmedNotApplied,
            0,
            &["probe"],
        )
    }),
    // Only the engine looks up, whatever an agent calls its decision.
    Case(Guard::UncertainHuman, || {
        let bench = Bench::free_unknown();
        let facts = of_class(by(&bench, Who::Agent), "LOOKUP", "d");
        reconcile(&bench, facts, ConfirmedNotApplied, 0, &["probe"])
    }),
    // The rule is about reads, and about what was not applied.
    Case(Guard::UncertainHuman, || {
        let bench = lost_edit();
        reconcile(&bench, by_rule(&bench), ConfirmedNotApplied, 10, &[])
    }),
    Case(Guard::UncertainHuman, || {
        let bench = Bench::free_unknown();
        reconcile(&bench, by_rule(&bench), ConfirmedApplied, 10, &[])
    }),
    Case(Guard::UncertainHuman, || {
        let bench = Bench::free_unknown();
        let facts = of_class(
            bench.facts(Who::System),
            "LOST_READ_RULE",
            "somebody-said-so",
        );
        reconcile(&bench, facts, ConfirmedNotApplied, 10, &[])
    }),
    Case(Guard::ReconcileConfirms, || {
        let bench = Bench::free_unknown();
        reconcile(&bench, by(&bench, Who::Human), Unknown, 0, &["probe"])
    }),
    Case(Guard::ReconcileState, || {
        let bench = Bench::free_dispatched();
        reconcile(
            &bench,
            by(&bench, Who::Human),
            ConfirmedApplied,
            3,
            &["probe"],
        )
    }),
    Case(Guard::UncertainEvidence, || {
        let bench = Bench::free_unknown();
        reconcile(&bench, by(&bench, Who::Human), ConfirmedApplied, 3, &[])
    }),
    Case(Guard::UncertainEvidence, || {
        let bench = Bench::free_orphaned();
        reconcile(
            &bench,
            by(&bench, Who::Human),
            ConfirmedApplied,
            3,
            &["probe", "hearsay"],
        )
    }),
    Case(Guard::LostReadCharged, || {
        let bench = Bench::free_unknown();
        reconcile(&bench, by_rule(&bench), ConfirmedNotApplied, 9, &[])
    }),
];

fn on(bench: Bench, body: &Body, who: Who) -> Verdict {
    bench.decide(body, &bench.facts(who))
}

fn verified(verdicts: &[VerificationVerdict]) -> Bench {
    let mut bench = Bench::new();
    for (index, verdict) in verdicts.iter().enumerate() {
        bench.act(verify_body(&format!("v{index}"), *verdict), Who::System);
    }
    bench
}

pub const ASSESSMENTS: &[Case] = &[
    Case(Guard::AcceptVerified, || {
        on(
            verified(&[]),
            &accept_body("a", AcceptanceVerdict::Accepted),
            Who::Human,
        )
    }),
    // An approval is no verification.
    Case(Guard::AcceptVerified, || {
        on(
            Bench::work_ready(),
            &accept_body("a", AcceptanceVerdict::Accepted),
            Who::Human,
        )
    }),
    Case(Guard::AcceptVerified, || {
        let bench = verified(&[VerificationVerdict::Pass, VerificationVerdict::Fail]);
        on(
            bench,
            &accept_body("a", AcceptanceVerdict::Accepted),
            Who::Human,
        )
    }),
    // What passed is not what is accepted.
    Case(Guard::AcceptSubject, || {
        let Body::Accept(body) = accept_body("a", AcceptanceVerdict::Accepted) else {
            unreachable!("an acceptance")
        };
        let subject = id("something-else");
        on(
            verified(&[VerificationVerdict::Pass]),
            &Body::Accept(Accept { subject, ..body }),
            Who::Human,
        )
    }),
    Case(Guard::HumanDecides, || {
        on(
            verified(&[VerificationVerdict::Pass]),
            &accept_body("a", AcceptanceVerdict::Accepted),
            Who::Agent,
        )
    }),
];

pub const CANCEL: &[Case] = &[
    Case(Guard::HumanDecides, || {
        on(Bench::new(), &cancel_body(), Who::System)
    }),
    Case(Guard::HumanDecides, || {
        on(Bench::new().canceling(), &finish_body(), Who::Agent)
    }),
    Case(Guard::CancelOnce, || {
        on(Bench::new().canceling(), &cancel_body(), Who::Human)
    }),
    Case(Guard::FinishCanceling, || {
        on(Bench::new(), &finish_body(), Who::Human)
    }),
    Case(Guard::FinishResolved, || {
        on(
            Bench::free_dispatched().canceling(),
            &finish_body(),
            Who::Human,
        )
    }),
    Case(Guard::FinishResolved, || {
        on(
            Bench::free_unknown().canceling(),
            &finish_body(),
            Who::Human,
        )
    }),
    Case(Guard::NotCanceling, || {
        on(
            Bench::free_admitted().canceling(),
            &dispatch_body(&Bench::free_admitted(), "free", "at-free"),
            Who::System,
        )
    }),
    Case(Guard::NotTerminal, || {
        on(
            Bench::free_admitted().rejected(),
            &dispatch_body(&Bench::free_admitted(), "free", "at-free"),
            Who::System,
        )
    }),
    Case(Guard::NotTerminal, || {
        on(
            Bench::new().rejected(),
            &approve_body("yes", ApprovalDecision::Approved, 500_000),
            Who::Human,
        )
    }),
    Case(Guard::NotTerminal, || {
        on(Bench::new().rejected(), &cancel_body(), Who::Human)
    }),
    Case(Guard::NotTerminal, || {
        on(
            Bench::new().rejected(),
            &place_body(hold("h", HoldReason::Operator)),
            Who::Human,
        )
    }),
];

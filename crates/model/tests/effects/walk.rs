//! Every history of one operation up to a length: whatever is accepted, the books are right afterwards.
//!
//! Invariant: exhaustive, in a fixed order; a step that is refused changes nothing and ends no walk.

use aiws::decimal::Dec;
use aiws::record::SettledOutcome::{ConfirmedApplied, ConfirmedNotApplied, Unknown};
use aiws::record::*;
use praxis_model::command::Body;
use praxis_model::facts::Facts;

use crate::bench::*;
use crate::refusals::guarded;
use crate::steps::*;

/// How many steps a history has at most.
const LENGTH: usize = 8;

type Step = fn(&Bench, &str) -> (Body, Facts);

/// What anybody may try on the operation's last attempt.
const STEPS: &[(&str, Step)] = &[
    ("dispatch", |bench, last| {
        (dispatch_body(bench, "free", last), bench.facts(Who::System))
    }),
    ("lose", |bench, last| {
        (settle_body(last, Unknown, 0, &[]), bench.facts(Who::System))
    }),
    ("apply", |bench, last| {
        (
            settle_body(last, ConfirmedApplied, 7, &["exit"]),
            bench.facts(Who::System),
        )
    }),
    ("return", |bench, last| {
        (
            settle_body(last, ConfirmedNotApplied, 0, &["exit"]),
            bench.facts(Who::System),
        )
    }),
    ("rule", |bench, last| {
        let facts = of_class(bench.facts(Who::System), "LOST_READ_RULE", "ann-said-so");
        (reconcile_body(last, ConfirmedNotApplied, 10, &[]), facts)
    }),
    ("look up", |bench, last| {
        let facts = of_class(
            confirming(bench.facts(Who::System), &["probe"]),
            "LOOKUP",
            "probe",
        );
        (
            reconcile_body(last, ConfirmedApplied, 95, &["probe"]),
            facts,
        )
    }),
    ("retry", |bench, _| {
        let attempt = format!("at-{}", bench.run.attempts.size() + 1);
        (
            retry_body(bench, "free", &attempt, 10),
            bench.facts(Who::System),
        )
    }),
    ("invalidate", |bench, _| {
        let body = invalidate_body(bench.handoff("gate"));
        (body, bench.facts(Who::Human))
    }),
    ("recover", |bench, _| {
        (recover_body(bench.run.epoch), bench.facts(Who::System))
    }),
];

/// What must hold of the books after every accepted step.
fn check(before: &Bench, after: &Bench, path: &[&str]) {
    let sum = |amounts: &mut dyn Iterator<Item = Dec>| {
        amounts.fold(Dec::ZERO, |sum, amount| {
            sum.checked_add(amount).expect("adds")
        })
    };
    let attempts = || after.run.attempts.values();
    let spent = sum(&mut attempts().filter_map(|attempt| attempt.actual));
    let reserved = sum(&mut attempts()
        .filter(|attempt| !attempt.status.is_confirmed())
        .map(|attempt| attempt.reserved));
    assert_eq!(
        (after.account.spent, after.account.reserved),
        (spent, reserved),
        "{path:?}"
    );
    if after.account.reserved > before.account.reserved {
        let used = after
            .account
            .spent
            .checked_add(after.account.reserved)
            .expect("adds");
        assert!(
            used <= after.account.bound,
            "{path:?} reserves past the budget"
        );
    }
    assert_eq!(after.account.bound, dec(100), "{path:?}");
    assert!(
        after.account.spent >= before.account.spent,
        "{path:?} gives spent money back"
    );
    assert!(
        after.run.epoch >= before.run.epoch
            && after.run.attempts.size() >= before.run.attempts.size()
    );
    assert!(
        after.run.attempts.size() <= 3 && after.run.operations.size() == 1,
        "{path:?}"
    );
    let tried = |bench: &Bench| {
        let all = bench.run.attempts.values();
        let tried = all.filter(|attempt| attempt.status == AttemptStatus::Dispatched);
        tried.count()
    };
    if before.run.invalidations.size() > 0 {
        assert!(
            tried(after) <= tried(before)
                && after.run.attempts.size() == before.run.attempts.size(),
            "{path:?} goes on with work after an invalidation"
        );
    }
    let in_flight = attempts()
        .filter(|attempt| !attempt.status.is_confirmed())
        .count();
    assert!(in_flight <= 1, "{path:?} has two attempts at once");
    for (id, old) in &before.run.attempts {
        let new = after.run.attempts.get(id).expect("attempts stay");
        assert!(
            !old.status.is_confirmed() || old == new,
            "{path:?} changes a confirmed outcome"
        );
    }
}

fn walk(bench: &Bench, path: &mut Vec<&'static str>, accepted: &mut usize) {
    if path.len() == LENGTH {
        return;
    }
    let operation = bench.run.operations.values().next().expect("an operation");
    let last = operation
        .attempts
        .last()
        .expect("an attempt")
        .as_str()
        .to_owned();
    for (name, step) in STEPS {
        let (body, facts) = step(bench, &last);
        let mut after = bench.clone();
        path.push(name);
        if after.try_act(&body, &facts).is_ok() {
            *accepted += 1;
            check(bench, &after, path);
            walk(&after, path, accepted);
        }
        path.pop();
    }
}

/// Proves F-31, FV-ACC.1, FV-ACC.6, FV-ACC.7, HS-04.2, HD-05.5, R-01: over every history of dispatch, loss, settlement,
/// look-up, retry, recovery and invalidation, spent and reserved are the sums of the attempts, nothing is reset, no
/// outcome changes, and nothing is tried once a hand-off is invalid.
#[test]
fn the_books_are_right_after_every_history() {
    let _on = guarded();
    let contract = Contract {
        max_attempts: aiws::decimal::DecPlus::new(dec(3)).expect("positive"),
        ..contract()
    };
    let mut bench = Bench::with(contract, config(), graph());
    bench.pass_gate();
    bench.admit(
        "free",
        &AdmissionProposal {
            effect: EffectClass::Read,
            ..free_read()
        },
    );
    let mut accepted = 0;
    walk(&bench, &mut Vec::new(), &mut accepted);
    assert!(accepted > 500, "only {accepted} steps were accepted");
}

//! One refusal per guard: recordSummary.
//!
//! Invariant: each case breaks one rule and would be accepted without it. Read by the tests of refusals.

use aiws::record::*;
use praxis_model::command::*;
use praxis_model::decision::{Decision, Rejection};
use praxis_model::facts::Facts;
use praxis_model::guard::Guard;

use crate::bench::*;
use crate::steps::*;
use crate::table::Case;

type Verdict = Result<Decision, Rejection>;

/// A human's words about what `gate` handed over, changed in one place.
fn human(change: impl FnOnce(&mut SummaryProposal, &mut Facts)) -> Verdict {
    changed(&Bench::work_ready(), Who::Human, AuthorKind::Human, change)
}

fn changed(
    bench: &Bench,
    who: Who,
    kind: AuthorKind,
    change: impl FnOnce(&mut SummaryProposal, &mut Facts),
) -> Verdict {
    let mut facts = bench.facts(who);
    let mut summary = summary_of(bench, "gate", kind, &facts);
    change(&mut summary, &mut facts);
    bench.decide(&Body::RecordSummary(RecordSummary { summary }), &facts)
}

/// A model's words, written in this operation of the bench.
fn model(bench: &Bench, operation: &str) -> Verdict {
    changed(bench, Who::System, AuthorKind::Model, |summary, _| {
        summary.author.operation_id = Some(id(operation));
    })
}

pub const SUMMARY: &[Case] = &[
    // T-48: it is for policy to refuse, and for nothing else.
    Case(Guard::PolicyAllows, || {
        human(|_, facts| facts.allowed = false)
    }),
    Case(Guard::SummaryAuthor, || {
        human(|summary, _| summary.author.actor_id = id("bob"))
    }),
    Case(Guard::SummaryAuthor, || {
        changed(
            &Bench::work_ready(),
            Who::Human,
            AuthorKind::Engine,
            |_, _| {},
        )
    }),
    Case(Guard::SummaryAuthor, || {
        let bench = Bench::work_applied();
        changed(&bench, Who::Rule, AuthorKind::Model, |summary, _| {
            summary.author.operation_id = Some(id("op-work"));
        })
    }),
    // An agent that says it is a person is no person (HS-03.11).
    Case(Guard::SummaryHuman, || {
        changed(
            &Bench::work_ready(),
            Who::Agent,
            AuthorKind::Human,
            |_, _| {},
        )
    }),
    Case(Guard::SummaryHuman, || {
        changed(
            &Bench::work_ready(),
            Who::System,
            AuthorKind::Human,
            |_, _| {},
        )
    }),
    Case(Guard::SummaryBasis, || {
        human(|summary, _| summary.handoff.handoff_id = id("ghost"))
    }),
    Case(Guard::SummaryBasis, || {
        human(|summary, _| summary.handoff.digest = aiws::digest::sha256(b"another"))
    }),
    // Prepared, in flight and lost alike: nobody knows yet what it costs.
    Case(Guard::SummarySettled, || {
        model(&Bench::work_admitted(), "op-work")
    }),
    Case(Guard::SummarySettled, || {
        model(&Bench::work_dispatched(), "op-work")
    }),
    Case(Guard::SummarySettled, || {
        let mut bench = Bench::work_dispatched();
        let unknown = SettledOutcome::Unknown;
        bench.act(settle_body("at-work", unknown, 0, &[]), Who::System);
        model(&bench, "op-work")
    }),
    Case(Guard::SummaryApplied, || {
        let mut bench = Bench::work_dispatched();
        let returned = SettledOutcome::ConfirmedNotApplied;
        bench.act(settle_body("at-work", returned, 0, &["exit"]), Who::System);
        model(&bench, "op-work")
    }),
    // An operation that never had the hand-off before it did not write about it.
    Case(Guard::SummaryMatches, || {
        let mut bench = Bench::work_applied();
        bench.admit("free", &free_read());
        bench.act(dispatch_body(&bench, "free", "at-free"), Who::System);
        let applied = SettledOutcome::ConfirmedApplied;
        bench.act(settle_body("at-free", applied, 1, &["exit"]), Who::System);
        model(&bench, "op-free")
    }),
    Case(Guard::SummaryShape, || {
        human(|summary, _| summary.text.clear())
    }),
    Case(Guard::SummaryShape, || {
        human(|summary, _| {
            summary.text = "x".repeat(aiws::limits::MAX_TEXT_SCALARS + 1);
        })
    }),
    Case(Guard::SummaryShape, || {
        changed(
            &Bench::work_ready(),
            Who::System,
            AuthorKind::Model,
            |_, _| {},
        )
    }),
    Case(Guard::SummaryShape, || {
        let bench = Bench::work_applied();
        changed(&bench, Who::Human, AuthorKind::Human, |summary, _| {
            summary.author.operation_id = Some(id("op-work"));
        })
    }),
];

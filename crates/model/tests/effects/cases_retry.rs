//! One refusal per guard: retry.
//!
//! Invariant: each case breaks one rule and would be accepted without it. Read by the tests of refusals.

use aiws::record::*;
use praxis_model::decision::{Decision, Rejection};
use praxis_model::guard::Guard;

use crate::bench::*;
use crate::steps::*;
use crate::table::Case;

type Verdict = Result<Decision, Rejection>;

fn retry(bench: &Bench, attempt: &str, amount: u64) -> Verdict {
    bench.decide(
        &retry_body(bench, "free", attempt, amount),
        &bench.facts(Who::System),
    )
}

pub const RETRY: &[Case] = &[
    Case(Guard::RetryAttemptNew, || {
        retry(&Bench::free_returned(), "at-free", 10)
    }),
    Case(Guard::RetryResolved, || {
        retry(&Bench::free_unknown(), "at-2", 10)
    }),
    Case(Guard::RetryResolved, || {
        retry(&Bench::free_dispatched(), "at-2", 10)
    }),
    Case(Guard::RetryNotApplied, || {
        retry(&Bench::free_admitted(), "at-2", 10)
    }),
    Case(Guard::RetryNotApplied, || {
        let mut bench = Bench::free_dispatched();
        bench.act(
            settle_body("at-free", SettledOutcome::ConfirmedApplied, 4, &["exit"]),
            Who::System,
        );
        retry(&bench, "at-2", 10)
    }),
    Case(Guard::RetryActive, || {
        let mut bench = Bench::free_returned();
        let node = bench
            .run
            .nodes
            .get(&id::<aiws::id::NodeId>("free"))
            .expect("a node")
            .clone();
        let ended = praxis_model::run::NodeState {
            status: praxis_model::run::NodeStatus::Failed,
            ..node
        };
        bench.run.nodes.insert_mut(id("free"), ended);
        retry(&bench, "at-2", 10)
    }),
    Case(Guard::GrantCoversAmount, || {
        retry(&Bench::free_returned(), "at-2", 61)
    }),
    Case(Guard::BudgetFits, || {
        let mut bench = Bench::free_returned();
        bench.account.bound = dec(9);
        retry(&bench, "at-2", 10)
    }),
    Case(Guard::AttemptsLeft, || {
        let mut bench = Bench::free_returned();
        bench.act(retry_body(&bench, "free", "at-2", 10), Who::System);
        bench.act(dispatch_body(&bench, "free", "at-2"), Who::System);
        bench.act(
            settle_body("at-2", SettledOutcome::ConfirmedNotApplied, 0, &["exit"]),
            Who::System,
        );
        retry(&bench, "at-3", 10)
    }),
    // No list of a record would hold the next attempt; its boundary could never be written.
    Case(Guard::AttemptsLeft, || {
        let mut bench = Bench::free_returned();
        let contract = Contract {
            max_attempts: aiws::decimal::DecPlus::new(dec(1_000_000)).expect("positive"),
            ..(*bench.run.contract).clone()
        };
        bench.run.contract = contract.into();
        let free = id::<aiws::id::OperationId>("op-free");
        let operation = bench.run.operations.get(&free).expect("an operation");
        let mut operation = operation.clone();
        let last = operation.attempts[0].clone();
        operation.attempts = vec![last; aiws::limits::MAX_LIST_ITEMS];
        bench.run.operations.insert_mut(free, operation);
        retry(&bench, "at-2", 10)
    }),
];

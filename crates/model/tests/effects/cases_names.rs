//! One refusal per guard: ids that were used before, and ids that name nothing of the run.
//!
//! Invariant: each case breaks one rule and would be accepted without it, or would have nothing to decide about. Read
//! by the tests of refusals.

use aiws::record::SettledOutcome::ConfirmedApplied;
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::decision::{Decision, Rejection};
use praxis_model::guard::Guard;

use crate::bench::*;
use crate::steps::*;
use crate::table::Case;

type Verdict = Result<Decision, Rejection>;

fn on(bench: &Bench, body: &Body, who: Who) -> Verdict {
    bench.decide(body, &bench.facts(who))
}

/// A grant like the root, and narrower: another grant by the same name.
fn another_root() -> Grant {
    Grant {
        max_amount: dec(1),
        ..grant("root")
    }
}

fn verified() -> Bench {
    let mut bench = Bench::new();
    bench.act(verify_body("v", VerificationVerdict::Pass), Who::System);
    bench
}

/// A human's words about what `gate` handed over.
fn said(bench: &Bench, text: &str) -> Body {
    let facts = bench.facts(Who::Human);
    let summary = SummaryProposal {
        text: text.to_owned(),
        ..summary_of(bench, "gate", AuthorKind::Human, &facts)
    };
    Body::RecordSummary(RecordSummary { summary })
}

/// The same id for something else.
pub const REUSED: &[Case] = &[
    Case(Guard::RootGrantsUnique, || {
        let root_grants = vec![grant("root"), another_root()];
        let contract = Contract {
            authority: Authority { root_grants },
            ..contract()
        };
        let config = config();
        let body = Body::OpenMission(OpenMission { contract, config });
        decide_mission(None, &body, 1_000)
    }),
    Case(Guard::GrantNew, || {
        let (mission, _) = opened(contract(), config());
        let grant = Grant {
            parent_grant_id: Some(id("root")),
            ..another_root()
        };
        let body = Body::GrantCommand(GrantCommand { grant });
        decide_mission(Some(&mission), &body, 1_000)
    }),
    Case(Guard::ApprovalNew, || {
        let mut bench = Bench::new();
        let until = |expires_at_ms| approve_body("yes", ApprovalDecision::Approved, expires_at_ms);
        bench.act(until(500_000), Who::Human);
        on(&bench, &until(600_000), Who::Human)
    }),
    Case(Guard::AssessmentNew, || {
        let again = verify_body("v", VerificationVerdict::Fail);
        on(&verified(), &again, Who::System)
    }),
    // A verification and an acceptance share no id either.
    Case(Guard::AssessmentNew, || {
        let other = accept_body("v", AcceptanceVerdict::Accepted);
        on(&verified(), &other, Who::Human)
    }),
    Case(Guard::SummaryNew, || {
        let mut bench = Bench::work_ready();
        bench.act(said(&bench, "one thing"), Who::Human);
        on(&bench, &said(&bench, "another"), Who::Human)
    }),
];

/// A run that is there, started again: its first epoch would come back.
pub const STARTED_AGAIN: &[Case] = &[Case(Guard::RunNew, || {
    let mut bench = Bench::new();
    bench.act(recover_body(1), Who::System);
    let body = Body::StartRun(StartRun { run_id: id("r") });
    decide_mission(Some(&bench.mission), &body, 1_000)
})];

/// Ids of nothing that the run has.
pub const DANGLING: &[Case] = &[
    Case(Guard::AttemptKnown, || {
        let bench = Bench::free_admitted();
        let body = dispatch_body(&bench, "free", "at-nothing");
        on(&bench, &body, Who::System)
    }),
    Case(Guard::OperationKnown, || {
        let bench = Bench::free_admitted();
        let Body::Dispatch(body) = dispatch_body(&bench, "free", "at-free") else {
            unreachable!("a dispatch")
        };
        let operation_id = id("nothing");
        let body = Body::Dispatch(Dispatch {
            operation_id,
            ..body
        });
        on(&bench, &body, Who::System)
    }),
    Case(Guard::AttemptKnown, || {
        let body = settle_body("at-free", ConfirmedApplied, 1, &["exit"]);
        on(&Bench::new(), &body, Who::System)
    }),
    Case(Guard::AttemptKnown, || {
        let bench = Bench::new();
        let facts = confirming(bench.facts(Who::Human), &["probe"]);
        let body = reconcile_body("at-free", ConfirmedApplied, 3, &["probe"]);
        bench.decide(&body, &facts)
    }),
    Case(Guard::OperationKnown, || {
        let bench = Bench::free_returned();
        let body = retry_body(&bench, "nothing", "at-2", 10);
        on(&bench, &body, Who::System)
    }),
    Case(Guard::OperationKnown, || {
        let bench = Bench::work_ready();
        let facts = bench.facts(Who::System);
        let mut summary = summary_of(&bench, "gate", AuthorKind::Model, &facts);
        summary.author.operation_id = Some(id("op-work"));
        let body = Body::RecordSummary(RecordSummary { summary });
        bench.decide(&body, &facts)
    }),
];

//! One refusal per guard: openMission, startRun, grant, approve, revokeApproval.
//!
//! Invariant: each case breaks one rule and would be accepted without it. Read by the tests of refusals.

use aiws::decimal::{Dec, Ms};
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::decision::{Decision, Rejection};
use praxis_model::guard::Guard;

use crate::bench::*;
use crate::steps::*;
use crate::table::Case;

type Verdict = Result<Decision, Rejection>;

fn open(contract: Contract) -> Verdict {
    decide_mission(
        None,
        &Body::OpenMission(OpenMission {
            contract,
            config: config(),
        }),
        1_000,
    )
}

fn start(contract: Contract, run: &str, now_ms: u64) -> Verdict {
    let (mission, _) = opened(contract, config());
    decide_mission(
        Some(&mission),
        &Body::StartRun(StartRun { run_id: id(run) }),
        now_ms,
    )
}

fn derive(grant: Grant) -> Verdict {
    let (mission, _) = opened(contract(), config());
    decide_mission(
        Some(&mission),
        &Body::GrantCommand(GrantCommand { grant }),
        1_000,
    )
}

fn on(bench: Bench, body: &Body, who: Who) -> Verdict {
    bench.decide(body, &bench.facts(who))
}

fn revoke(name: &str) -> Body {
    Body::RevokeApproval(RevokeApproval {
        approval_id: id(name),
        run_id: id("r"),
        reason: "moved on".to_owned(),
    })
}

pub const MISSION: &[Case] = &[
    Case(Guard::MissionNew, || {
        let (mission, _) = opened(contract(), config());
        let body = OpenMission {
            contract: contract(),
            config: config(),
        };
        decide_mission(Some(&mission), &Body::OpenMission(body), 1_000)
    }),
    Case(Guard::ContractMission, || {
        open(Contract {
            mission_id: id("another"),
            ..contract()
        })
    }),
    Case(Guard::ContractFeatures, || {
        open(Contract {
            features: vec!["telepathy".to_owned()],
            ..contract()
        })
    }),
    Case(Guard::ContractExtensions, || {
        open(Contract {
            extensions: Some(vec!["aiws-handoff/2".to_owned()]),
            ..contract()
        })
    }),
    Case(Guard::ContractShape, || {
        let root_grants = vec![Grant {
            parent_grant_id: Some(id("nobody")),
            ..grant("root")
        }];
        open(Contract {
            authority: Authority { root_grants },
            ..contract()
        })
    }),
    Case(Guard::ProtocolNegotiated, || {
        start(
            Contract {
                extensions: None,
                ..contract()
            },
            "r",
            1_000,
        )
    }),
    Case(Guard::MissionDeadline, || start(contract(), "r", 1_000_000)),
];

pub const GRANTS: &[Case] = &[
    // A set that is not sorted would be recorded and never read back.
    Case(Guard::GrantShape, || {
        derive(Grant {
            actions: vec!["edit".to_owned(), "edit".to_owned()],
            ..child("g2")
        })
    }),
    Case(Guard::GrantParentNamed, || derive(grant("g2"))),
    Case(Guard::GrantParentKnown, || {
        derive(Grant {
            parent_grant_id: Some(id("nobody")),
            ..child("g2")
        })
    }),
    Case(Guard::GrantNarrowsActions, || {
        derive(Grant {
            actions: vec!["edit".to_owned(), "push".to_owned()],
            ..child("g2")
        })
    }),
    // A wildcard and a prefix are scopes like any other, and cover only themselves.
    Case(Guard::GrantNarrowsScopes, || {
        derive(Grant {
            scopes: vec!["*".to_owned()],
            ..child("g2")
        })
    }),
    Case(Guard::GrantNarrowsScopes, || {
        derive(Grant {
            scopes: vec!["repo/src".to_owned()],
            ..child("g2")
        })
    }),
    Case(Guard::GrantNarrowsAmount, || {
        derive(Grant {
            max_amount: dec(61),
            ..child("g2")
        })
    }),
    Case(Guard::GrantNarrowsAmount, || {
        derive(Grant {
            max_amount: Dec::max(),
            ..child("g2")
        })
    }),
    Case(Guard::GrantNarrowsExpiry, || {
        derive(Grant {
            not_after_ms: Ms::from_u64(900_001),
            ..child("g2")
        })
    }),
];

pub const APPROVALS: &[Case] = &[
    Case(Guard::ApprovalAhead, || {
        on(
            Bench::new(),
            &approve_body("yes", ApprovalDecision::Approved, 1_000),
            Who::Human,
        )
    }),
    Case(Guard::HumanDecides, || {
        on(
            Bench::new(),
            &approve_body("yes", ApprovalDecision::Approved, 500_000),
            Who::Agent,
        )
    }),
    Case(Guard::ApprovalKnown, || {
        on(Bench::new(), &revoke("nothing"), Who::Human)
    }),
    Case(Guard::ApprovalStanding, || {
        let mut bench = Bench::work_ready();
        bench.act(revoke("yes"), Who::Human);
        on(bench, &revoke("yes"), Who::Human)
    }),
];

//! One refusal per guard of stage 9, at admission, at dispatch and at retry.
//!
//! Invariant: each case breaks one rule and would be accepted without it. Read by the tests of refusals.

use aiws::decimal::Ms;
use aiws::json::Value;
use aiws::object;
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::decision::{Decision, Rejection};
use praxis_model::facts::{Facts, MaterialError};
use praxis_model::guard::Guard;

use crate::bench::*;
use crate::steps::*;
use crate::table::Case;

type Verdict = Result<Decision, Rejection>;

fn admit(
    bench: Bench,
    node: &str,
    proposal: AdmissionProposal,
    change: impl FnOnce(&mut Facts),
) -> Verdict {
    let mut facts = bench.with_material(bench.facts(Who::System));
    let body = admit_body(&bench, node, &proposal, &mut facts);
    change(&mut facts);
    bench.decide(&body, &facts)
}

fn admit_free(proposal: AdmissionProposal) -> Verdict {
    admit(Bench::new(), "free", proposal, |_| {})
}

fn admit_work(bench: Bench, proposal: AdmissionProposal) -> Verdict {
    admit(bench, "work", proposal, |_| {})
}

fn look(action: &str, scope: &str) -> AdmissionProposal {
    let action = object! { "action": action, "scope": scope, "payload": object! {} };
    AdmissionProposal {
        fingerprint: fingerprint(&action),
        action,
        ..free_read()
    }
}

/// The admitted edit is about to be dispatched, with something changed in between (HD-03.8).
fn dispatch_work(
    mut bench: Bench,
    before: impl FnOnce(&mut Bench),
    change: impl FnOnce(&mut Facts),
) -> Verdict {
    before(&mut bench);
    let mut facts = bench.with_material(bench.facts(Who::System));
    change(&mut facts);
    bench.decide(&dispatch_body(&bench, "work", "at-work"), &facts)
}

fn dispatch(bench: &Bench, node: &str, attempt: &str) -> Verdict {
    bench.decide(
        &dispatch_body(bench, node, attempt),
        &bench.facts(Who::System),
    )
}

fn same(_: &mut Bench) {}

fn at(now_ms: u64) -> impl FnOnce(&mut Bench) {
    move |bench| bench.now_ms = now_ms
}

fn without_grants(facts: &mut Facts) {
    facts.registers.clear();
}

/// The grant's row has another content by now.
fn regrant(facts: &mut Facts, change: impl Fn(&mut Grant)) {
    for read in &mut facts.registers {
        if let Ok(mut grant) = aiws::canonical::from_value::<Grant>(&read.value) {
            change(&mut grant);
            read.value = aiws::canonical::to_value(&grant).unwrap_or(Value::Null);
        }
    }
}

pub const ADMISSION: &[Case] = &[
    Case(Guard::PayloadFits, || {
        let action = object! { "action": "edit", "scope": "repo", "payload": object! {} };
        admit_work(
            Bench::work_ready(),
            AdmissionProposal {
                approval_id: Some(id("yes")),
                ..proposal("work", action, 10)
            },
        )
    }),
    Case(Guard::GrantInForce, || {
        admit_free(AdmissionProposal {
            grant_id: id("nothing"),
            ..free_read()
        })
    }),
    Case(Guard::GrantSubject, || {
        let change = |facts: &mut Facts| {
            facts.actor_kind = ActorKind::Agent;
            facts.actor_id = id("somebody");
        };
        admit(Bench::new(), "free", free_read(), change)
    }),
    Case(Guard::GrantCoversAction, || {
        admit_free(look("push", "repo"))
    }),
    Case(Guard::GrantCoversScope, || admit_free(look("look", "*"))),
    Case(Guard::GrantCoversScope, || {
        admit_free(look("look", "repo/src"))
    }),
    Case(Guard::GrantCoversAmount, || {
        admit_free(AdmissionProposal {
            amount: dec(61),
            ..free_read()
        })
    }),
    Case(Guard::GrantCurrent, || {
        let mut bench = Bench::new();
        bench.now_ms = 900_000;
        admit_free_on(bench, free_read())
    }),
    Case(Guard::ApprovalNeeded, || {
        admit_work(
            Bench::work_ready(),
            AdmissionProposal {
                approval_id: None,
                ..approved_work()
            },
        )
    }),
    Case(Guard::ApprovalOfRun, || {
        admit_work(
            Bench::work_ready(),
            AdmissionProposal {
                approval_id: Some(id("of-another-run")),
                ..approved_work()
            },
        )
    }),
    Case(Guard::ApprovalMaterial, || {
        let other = AdmissionProposal {
            approval_id: Some(id("yes")),
            ..proposal("work", edit("b"), 10)
        };
        admit_work(Bench::work_ready(), other)
    }),
    Case(Guard::ApprovalUnexpired, || {
        let mut bench = Bench::work_ready();
        bench.now_ms = 500_000;
        admit_work(bench, approved_work())
    }),
    // The approval is used by `work` already; another operation cannot have it, whatever its node.
    Case(Guard::ApprovalOneOperation, || {
        let second = AdmissionProposal {
            approval_id: Some(id("yes")),
            ..proposal("free", edit("a"), 10)
        };
        admit(Bench::work_admitted(), "free", second, |_| {})
    }),
    Case(Guard::BudgetFits, || {
        let mut bench = Bench::work_ready();
        bench.admit(
            "free",
            &AdmissionProposal {
                amount: dec(60),
                ..free_read()
            },
        );
        admit_work(
            bench,
            AdmissionProposal {
                amount: dec(41),
                ..approved_work()
            },
        )
    }),
    Case(Guard::ContractDeadline, || {
        let mut bench = endless_grant(None);
        bench.now_ms = 1_000_000;
        admit_free_on(bench, free_read())
    }),
    Case(Guard::NodeDeadline, || {
        let mut bench = endless_grant(Some(Ms::from_u64(2_000)));
        bench.now_ms = 2_000;
        admit_free_on(bench, free_read())
    }),
];

fn admit_free_on(bench: Bench, proposal: AdmissionProposal) -> Verdict {
    admit(bench, "free", proposal, |_| {})
}

/// A run whose grant outlives the contract, with a deadline of `free`.
fn endless_grant(deadline_ms: Option<Ms>) -> Bench {
    let root_grants = vec![Grant {
        not_after_ms: Ms(aiws::decimal::Dec::max()),
        ..grant("root")
    }];
    let mut graph = graph();
    graph
        .nodes
        .iter_mut()
        .filter(|node| node.id.as_str() == "free")
        .for_each(|node| node.deadline_ms = deadline_ms);
    Bench::with(
        Contract {
            authority: Authority { root_grants },
            ..contract()
        },
        config(),
        graph,
    )
}

/// The action of `work` is approved once more, and for longer.
fn approve_twice(bench: &mut Bench) {
    bench.act(
        approve_body("second", ApprovalDecision::Approved, 900_000),
        Who::Human,
    );
}

pub const DISPATCH: &[Case] = &[
    Case(Guard::DispatchEpoch, || {
        let mut bench = Bench::free_admitted();
        bench.act(recover_body(1), Who::System);
        dispatch(&bench, "free", "at-free")
    }),
    Case(Guard::DispatchTask, || {
        let bench = Bench::free_admitted();
        let Body::Dispatch(body) = dispatch_body(&bench, "free", "at-free") else {
            unreachable!("a dispatch")
        };
        bench.decide(
            &Body::Dispatch(Dispatch {
                node_id: id("gate"),
                ..body
            }),
            &bench.facts(Who::System),
        )
    }),
    Case(Guard::DispatchActive, || {
        let bench = Bench::free_admitted();
        let Body::Dispatch(body) = dispatch_body(&bench, "free", "at-free") else {
            unreachable!("a dispatch")
        };
        bench.decide(
            &Body::Dispatch(Dispatch {
                node_id: id("work"),
                ..body
            }),
            &bench.facts(Who::System),
        )
    }),
    Case(Guard::DispatchBinding, || {
        let mut bench = Bench::work_admitted();
        bench.admit("free", &free_read());
        let facts = bench.with_material(bench.facts(Who::System));
        bench.decide(&dispatch_body(&bench, "work", "at-free"), &facts)
    }),
    // An attempt is one try, whatever became of it; the next try is another attempt.
    Case(Guard::DispatchPrepared, || {
        dispatch(&Bench::free_dispatched(), "free", "at-free")
    }),
    Case(Guard::DispatchPrepared, || {
        dispatch(&Bench::free_unknown(), "free", "at-free")
    }),
    Case(Guard::DispatchPrepared, || {
        dispatch(&Bench::free_returned(), "free", "at-free")
    }),
    Case(Guard::DispatchConsumes, || {
        let mut bench = Bench::free_admitted();
        bench.run.consumptions = Default::default();
        dispatch(&bench, "free", "at-free")
    }),
    Case(Guard::MaterialAvailable, || {
        dispatch_work(Bench::work_admitted(), same, |facts| {
            facts.materials.clear()
        })
    }),
    Case(Guard::MaterialMatches, || {
        dispatch_work(Bench::work_admitted(), same, |facts| {
            facts
                .material_errors
                .insert(artifact().digest, MaterialError::Mismatch);
        })
    }),
    Case(Guard::MaterialRetained, || {
        let bench = patient();
        dispatch_work(bench, at(700_000), |_| {})
    }),
    Case(Guard::GrantInForce, || {
        dispatch_work(Bench::work_admitted(), same, without_grants)
    }),
    Case(Guard::GrantCoversAction, || {
        let narrower =
            |facts: &mut Facts| regrant(facts, |grant| grant.actions = vec!["look".to_owned()]);
        dispatch_work(Bench::work_admitted(), same, narrower)
    }),
    Case(Guard::GrantCoversScope, || {
        let narrower =
            |facts: &mut Facts| regrant(facts, |grant| grant.scopes = vec!["docs".to_owned()]);
        dispatch_work(Bench::work_admitted(), same, narrower)
    }),
    Case(Guard::GrantCoversAmount, || {
        dispatch_work(Bench::work_admitted(), same, |facts| {
            regrant(facts, |grant| grant.max_amount = dec(9))
        })
    }),
    Case(Guard::GrantCurrent, || {
        let ended =
            |facts: &mut Facts| regrant(facts, |grant| grant.not_after_ms = Ms::from_u64(1_000));
        dispatch_work(Bench::work_admitted(), same, ended)
    }),
    Case(Guard::ApprovalInForce, || {
        let revoke = |bench: &mut Bench| {
            let reason = "moved on".to_owned();
            bench.act(
                Body::RevokeApproval(RevokeApproval {
                    approval_id: id("yes"),
                    run_id: id("r"),
                    reason,
                }),
                Who::Human,
            );
        };
        dispatch_work(Bench::work_admitted(), revoke, |_| {})
    }),
    Case(Guard::ApprovalUnexpired, || {
        dispatch_work(Bench::work_admitted(), at(500_000), |_| {})
    }),
    // A human approved the same action twice, for two operations; the second approval is not the first one's spare.
    Case(Guard::ApprovalInForce, || {
        let revoke = |bench: &mut Bench| {
            approve_twice(bench);
            bench.act(
                Body::RevokeApproval(RevokeApproval {
                    approval_id: id("yes"),
                    run_id: id("r"),
                    reason: "moved on".to_owned(),
                }),
                Who::Human,
            );
        };
        dispatch_work(Bench::work_admitted(), revoke, |_| {})
    }),
    Case(Guard::ApprovalUnexpired, || {
        let expire = |bench: &mut Bench| {
            approve_twice(bench);
            bench.now_ms = 500_000;
        };
        dispatch_work(Bench::work_admitted(), expire, |_| {})
    }),
    // No command can change what an operation or an approval says; these break the state itself.
    Case(Guard::ApprovalGiven, || {
        let deny = |bench: &mut Bench| {
            let approval = bench
                .run
                .approvals
                .get(&id::<aiws::id::ApprovalId>("yes"))
                .expect("an approval");
            let denied = Approval {
                decision: ApprovalDecision::Denied,
                ..approval.clone()
            };
            bench.run.approvals.insert_mut(id("yes"), denied);
        };
        dispatch_work(Bench::work_admitted(), deny, |_| {})
    }),
    Case(Guard::ApprovalMaterial, || {
        let swap = |bench: &mut Bench| {
            let operation = bench
                .run
                .operations
                .get(&id::<aiws::id::OperationId>("op-work"))
                .expect("an operation");
            let swapped = Operation {
                action: edit("b"),
                ..operation.clone()
            };
            bench.run.operations.insert_mut(id("op-work"), swapped);
        };
        dispatch_work(Bench::work_admitted(), swap, |_| {})
    }),
    // The host is about to run another edit than the one that was admitted.
    Case(Guard::DispatchMaterial, || {
        dispatch_work(Bench::work_admitted(), same, |facts| {
            let other = AdmissionProposal {
                approval_id: Some(id("yes")),
                ..proposal("work", edit("b"), 10)
            };
            facts.admissions.insert(id("about-to-run"), other);
        })
    }),
    Case(Guard::DispatchReserved, || {
        dispatch_work(Bench::work_admitted(), same, |facts| {
            facts
                .account
                .iter_mut()
                .for_each(|row| row.reserved = dec(9));
        })
    }),
    Case(Guard::NodeDeadline, || {
        dispatch_work(patient_plan(), at(800_000), |_| {})
    }),
];

/// `work` is admitted under an approval that outlives everything else.
fn patient() -> Bench {
    let mut bench = Bench::new();
    bench.act(
        approve_body("late", ApprovalDecision::Approved, 950_000),
        Who::Human,
    );
    bench.open_gate();
    bench.admit(
        "work",
        &AdmissionProposal {
            approval_id: Some(id("late")),
            ..approved_work()
        },
    );
    bench
}

/// As `patient`, with a plan that is kept long enough.
fn patient_plan() -> Bench {
    let mut bench = patient();
    let kept = |manifest: &Manifest| {
        let mut manifest = manifest.clone();
        manifest
            .artifacts
            .iter_mut()
            .for_each(|artifact| artifact.retain_until_ms = Ms::from_u64(950_000));
        std::sync::Arc::new(manifest)
    };
    let manifests: Vec<_> = bench
        .run
        .manifests
        .iter()
        .map(|(id, committed)| (id.clone(), committed.clone()))
        .collect();
    for (id, mut committed) in manifests {
        committed.manifest = kept(&committed.manifest);
        bench.run.manifests.insert_mut(id, committed);
    }
    bench
}

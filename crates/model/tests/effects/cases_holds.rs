//! One refusal per guard: placeHold, resolveHold, recoverOwnership.
//!
//! Invariant: each case breaks one rule and would be accepted without it. Read by the tests of refusals.

use aiws::record::*;
use praxis_model::command::*;
use praxis_model::decision::{Decision, Rejection};
use praxis_model::facts::Facts;
use praxis_model::guard::Guard;

use crate::bench::*;
use crate::rules::{changed, evaluated, rule, ruled_body, under};
use crate::steps::*;
use crate::table::Case;

type Verdict = Result<Decision, Rejection>;

fn place(bench: Bench, who: Who, hold: HoldProposal) -> Verdict {
    bench.decide(&place_body(hold), &bench.facts(who))
}

fn scoped(change: impl FnOnce(&mut HoldScope)) -> Verdict {
    let mut proposal = hold("h", HoldReason::Operator);
    change(&mut proposal.scope);
    place(Bench::new(), Who::Human, proposal)
}

fn stopping(operation: &str, attempt: &str) -> HoldProposal {
    let stop = StopDisposition {
        operation_id: id(operation),
        attempt_id: id(attempt),
        action: StopAction::Cancel,
    };
    HoldProposal {
        stop_disposition: vec![stop],
        ..hold("h", HoldReason::Operator)
    }
}

pub const PLACE: &[Case] = &[
    Case(Guard::ScopeResolves, || {
        scoped(|scope| scope.kind = HoldScopeKind::WorkOrder)
    }),
    Case(Guard::ScopeResolves, || {
        scoped(|scope| scope.kind = HoldScopeKind::Branch)
    }),
    Case(Guard::ScopeResolves, || {
        scoped(|scope| scope.scope_ref = reference("another-run"))
    }),
    Case(Guard::ScopeResolves, || {
        scoped(|scope| {
            (scope.kind, scope.scope_ref) = (HoldScopeKind::WorkOrder, reference("work"));
        })
    }),
    // A run is no node, and a node no run.
    Case(Guard::ScopeResolves, || {
        scoped(|scope| scope.scope_ref = reference("work"))
    }),
    Case(Guard::ScopeResolves, || {
        // Before a graph is pinned nobody knows what depends on what.
        let mut bench = Bench::new();
        bench.run.graph = None;
        place(bench, Who::Human, branch("h", "work"))
    }),
    Case(Guard::BranchPinned, || {
        let mut proposal = branch("h", "work");
        proposal.scope.scope_ref.revision = dec(2);
        place(Bench::new(), Who::Human, proposal)
    }),
    Case(Guard::HoldResolver, || {
        let mut proposal = branch("h", "work");
        proposal.scope.resolver_revision = dec(2);
        place(Bench::new(), Who::Human, proposal)
    }),
    Case(Guard::HoldResolver, || {
        let binding = ScopeBinding {
            scope_ref: reference("work"),
            kind: HoldScopeKind::Branch,
            resolver_revision: dec(7),
        };
        let bound = HandoffConfig {
            scope_bindings: vec![binding],
            ..config()
        };
        let bench = Bench::with(contract(), bound, graph());
        place(bench, Who::Human, branch("h", "work"))
    }),
    Case(Guard::HoldPlacer, || {
        place(Bench::new(), Who::Agent, branch("h", "work"))
    }),
    Case(Guard::HoldResolver, || {
        scoped(|scope| scope.resolver_revision = dec(2))
    }),
    Case(Guard::HoldResolver, || {
        let binding = ScopeBinding {
            scope_ref: reference("r"),
            kind: HoldScopeKind::Run,
            resolver_revision: dec(7),
        };
        let bench = Bench::with(
            contract(),
            HandoffConfig {
                scope_bindings: vec![binding],
                ..config()
            },
            graph(),
        );
        place(bench, Who::Human, hold("h", HoldReason::Operator))
    }),
    Case(Guard::HoldPlacer, || {
        place(Bench::new(), Who::Agent, hold("h", HoldReason::Operator))
    }),
    Case(Guard::HoldNew, || {
        place(
            Bench::new().held(HoldReason::Operator),
            Who::Human,
            hold("h", HoldReason::Operator),
        )
    }),
    Case(Guard::HoldDecisions, || {
        place(
            Bench::new(),
            Who::Human,
            HoldProposal {
                allowed_decisions: vec![],
                ..hold("h", HoldReason::Operator)
            },
        )
    }),
    Case(Guard::HoldDecisions, || {
        let allowed_decisions = vec![HoldDecision::Cancel, HoldDecision::Cancel];
        place(
            Bench::new(),
            Who::Human,
            HoldProposal {
                allowed_decisions,
                ..hold("h", HoldReason::Operator)
            },
        )
    }),
    // The proposal fits a list; with the effect that the ledger knows to be uncertain it does not.
    Case(Guard::HoldShape, || {
        let blocker = |number: usize| Blocker {
            kind: HoldReason::Operator,
            subject_id: id(&format!("s{number}")),
            evidence: Vec::new(),
        };
        let blockers = (0..aiws::limits::MAX_LIST_ITEMS).map(blocker).collect();
        place(
            Bench::free_unknown(),
            Who::Human,
            HoldProposal {
                blockers,
                ..hold("h", HoldReason::Operator)
            },
        )
    }),
    Case(Guard::HoldStopKnown, || {
        place(
            Bench::free_admitted(),
            Who::Human,
            stopping("op-free", "at-free"),
        )
    }),
    Case(Guard::HoldStopKnown, || {
        place(
            Bench::free_dispatched(),
            Who::Human,
            stopping("op-work", "at-free"),
        )
    }),
    // In flight, and beside the branch.
    Case(Guard::HoldStopKnown, || {
        let scope = branch("h", "work").scope;
        let proposal = stopping("op-free", "at-free");
        place(
            Bench::free_dispatched(),
            Who::Human,
            HoldProposal { scope, ..proposal },
        )
    }),
];

fn recheck(bench: &Bench, facts: Facts, evidence: &[&str]) -> Verdict {
    bench.decide(&resolve_body("h", HoldDecision::Recheck, evidence), &facts)
}

fn cancel(bench: &Bench, who: Who) -> Verdict {
    bench.decide(
        &resolve_body("h", HoldDecision::Cancel, &[]),
        &bench.facts(who),
    )
}

fn ruled(bench: &Bench, rule: Option<Ref>, who: Who) -> Verdict {
    bench.decide(
        &ruled_body(rule, &["looked"]),
        &confirming(bench.facts(who), &["looked"]),
    )
}

/// A rule rechecks a RESTART hold under RULE; in order but for what a case changes.
fn by_rule(change: impl FnOnce(&mut Facts), named: Option<Ref>, evidence: &[&str]) -> Verdict {
    let bench = under(RestartPolicy::Rule).held(HoldReason::Restart);
    let mut facts = evaluated(&bench, Who::Rule);
    change(&mut facts);
    bench.decide(&ruled_body(named, evidence), &facts)
}

fn cancel_only(reason: HoldReason) -> Bench {
    let mut bench = Bench::new();
    let allowed_decisions = vec![HoldDecision::Cancel];
    bench.act(
        place_body(HoldProposal {
            allowed_decisions,
            ..hold("h", reason)
        }),
        Who::Human,
    );
    bench
}

fn blocked(reason: HoldReason) -> Bench {
    let mut bench = Bench::new();
    let blockers = vec![Blocker {
        kind: reason,
        subject_id: id("something"),
        evidence: Vec::new(),
    }];
    bench.act(
        place_body(HoldProposal {
            blockers,
            ..hold("h", reason)
        }),
        Who::Human,
    );
    bench
}

/// A hold for this one reason.
fn blocked_by(blocker: Blocker) -> Bench {
    let mut bench = Bench::new();
    let proposal = hold("h", blocker.kind);
    let blockers = vec![blocker];
    bench.act(
        place_body(HoldProposal {
            blockers,
            ..proposal
        }),
        Who::Human,
    );
    bench
}

fn by_human(bench: &Bench) -> Facts {
    confirming(bench.facts(Who::Human), &["seen"])
}

fn restartable(bench: &Bench) -> Facts {
    Facts {
        restart_allowed: true,
        ..bench.facts(Who::System)
    }
}

pub const RESOLVE: &[Case] = &[
    Case(Guard::ResolveHuman, || {
        cancel(&Bench::new().held(HoldReason::Operator), Who::System)
    }),
    Case(Guard::ResolveHuman, || {
        let bench = Bench::new().held(HoldReason::UncertainEffect);
        recheck(&bench, bench.facts(Who::Rule), &[])
    }),
    Case(Guard::ResolveHuman, || {
        let bench = Bench::new().held(HoldReason::CostLimit);
        recheck(&bench, bench.facts(Who::System), &[])
    }),
    Case(Guard::ResolveHuman, || {
        let bench = Bench::new().held(HoldReason::TimeLimit);
        recheck(&bench, bench.facts(Who::System), &[])
    }),
    Case(Guard::ResolveHuman, || {
        let bench = Bench::cautious().held(HoldReason::Restart);
        recheck(&bench, restartable(&bench), &[])
    }),
    Case(Guard::ResolveHuman, || {
        let mut facts = by_human(&Bench::new());
        facts.decision_ref = None;
        recheck(&Bench::new().held(HoldReason::UncertainEffect), facts, &[])
    }),
    Case(Guard::ResolveRule, || {
        ruled(&Bench::new().held(HoldReason::Operator), None, Who::Rule)
    }),
    Case(Guard::ResolveRule, || {
        ruled(
            &Bench::new().held(HoldReason::Operator),
            Some(reference("rule")),
            Who::System,
        )
    }),
    // Another revision than the approved one, and none at all.
    Case(Guard::ResolveRule, || {
        by_rule(|_| {}, Some(changed()), &["looked"])
    }),
    Case(Guard::ResolveRule, || by_rule(|_| {}, None, &["looked"])),
    // The host has another revision of the rule by now, or evaluated something else.
    Case(Guard::ResolveRuleCurrent, || {
        by_rule(|facts| facts.policy = changed(), Some(rule()), &["looked"])
    }),
    Case(Guard::ResolveRuleCurrent, || {
        let other = |facts: &mut Facts| facts.policy = reference("host-policy");
        by_rule(other, Some(rule()), &["looked"])
    }),
    Case(Guard::ResolveRuled, || {
        let bench = under(RestartPolicy::Rule).held(HoldReason::Restart);
        recheck(&bench, evaluated(&bench, Who::System), &["looked"])
    }),
    Case(Guard::ResolveRuleEvidence, || {
        by_rule(|_| {}, Some(rule()), &[])
    }),
    Case(Guard::ResolveEvidence, || {
        by_rule(|_| {}, Some(rule()), &["hearsay"])
    }),
    Case(Guard::ResolveRestart, || {
        let forbids = |facts: &mut Facts| facts.restart_allowed = false;
        by_rule(forbids, Some(rule()), &["looked"])
    }),
    Case(Guard::ResolvePrincipal, || {
        let bench = Bench::new().held(HoldReason::Operator);
        recheck(&bench, bench.facts(Who::Agent), &[])
    }),
    // Who may not decide at all is told so before anything is said about humans (P-06).
    Case(Guard::ResolvePrincipal, || {
        let bench = Bench::new().held(HoldReason::UncertainEffect);
        recheck(&bench, bench.facts(Who::Agent), &[])
    }),
    Case(Guard::NotTerminal, || {
        let bench = Bench::new().held(HoldReason::Operator).rejected();
        recheck(&bench, by_human(&bench), &[])
    }),
    Case(Guard::ResolveKnown, || {
        let bench = Bench::new();
        recheck(&bench, by_human(&bench), &[])
    }),
    Case(Guard::ResolveOpen, || {
        let mut bench = Bench::new().held(HoldReason::Operator);
        bench.act(resolve_body("h", HoldDecision::Recheck, &[]), Who::Human);
        cancel(&bench, Who::Human)
    }),
    Case(Guard::ResolveAllowed, || {
        let bench = cancel_only(HoldReason::Operator);
        recheck(&bench, by_human(&bench), &[])
    }),
    Case(Guard::ResolveEvidence, || {
        let bench = Bench::new().held(HoldReason::Operator);
        recheck(&bench, by_human(&bench), &["hearsay"])
    }),
    Case(Guard::ResolveAttempts, || {
        let bench = Bench::new().held(HoldReason::AttemptLimit);
        recheck(&bench, by_human(&bench), &["seen"])
    }),
    Case(Guard::ResolveCost, || {
        let mut bench = Bench::new().held(HoldReason::CostLimit);
        bench.account.spent = dec(100);
        recheck(&bench, by_human(&bench), &["seen"])
    }),
    // There is room for something, and not for what the refused work needs.
    Case(Guard::ResolveCost, || {
        let needed = praxis_model::decide::needed_units(dec(3)).expect("a blocker");
        let mut bench = blocked_by(needed);
        bench.account.spent = dec(98);
        recheck(&bench, by_human(&bench), &["seen"])
    }),
    // The contract has time left, and the node that the hold names has none.
    Case(Guard::ResolveTime, || {
        let mut bench = blocked_by(Blocker {
            kind: HoldReason::TimeLimit,
            subject_id: id("work"),
            evidence: Vec::new(),
        });
        bench.now_ms = 800_000;
        recheck(&bench, by_human(&bench), &["seen"])
    }),
    Case(Guard::ResolveTime, || {
        let mut bench = Bench::new().held(HoldReason::TimeLimit);
        bench.now_ms = 1_000_000;
        recheck(&bench, by_human(&bench), &["seen"])
    }),
    Case(Guard::ResolveEffects, || {
        let bench = Bench::free_unknown().held(HoldReason::UncertainEffect);
        recheck(&bench, by_human(&bench), &["seen"])
    }),
    // A restart is allowed, and still nobody knows what the effect before it did.
    Case(Guard::ResolveEffects, || {
        let mut bench = Bench::free_dispatched().held(HoldReason::Restart);
        bench.act(recover_body(1), Who::System);
        recheck(&bench, restartable(&bench), &[])
    }),
    Case(Guard::ResolveInputs, || {
        let bench = Bench::new().held(HoldReason::InvalidatedInput);
        recheck(&bench, by_human(&bench), &["seen"])
    }),
    Case(Guard::ResolveBlockers, || {
        let bench = Bench::new().held(HoldReason::Artifact);
        recheck(&bench, by_human(&bench), &[])
    }),
    Case(Guard::ResolveBlockers, || {
        let bench = blocked(HoldReason::Operator);
        recheck(&bench, by_human(&bench), &[])
    }),
    Case(Guard::ResolveRestart, || {
        let bench = Bench::new().held(HoldReason::Restart);
        recheck(&bench, bench.facts(Who::System), &[])
    }),
    // No command leaves an attempt in flight without its disposition; this breaks the hold itself.
    Case(Guard::ResolveDisposed, || {
        let mut bench = Bench::free_dispatched().held(HoldReason::Operator);
        let hold = bench
            .run
            .holds
            .get(&id::<aiws::id::HoldId>("h"))
            .expect("a hold");
        let undisposed = Hold {
            stop_disposition: Vec::new(),
            ..hold.clone()
        };
        bench.run.holds.insert_mut(id("h"), undisposed);
        cancel(&bench, Who::Human)
    }),
];

fn recover(bench: &Bench, epoch: u64, facts: Facts) -> Verdict {
    bench.decide(&recover_body(epoch), &facts)
}

pub const RECOVER: &[Case] = &[
    Case(Guard::RecoverEpoch, || {
        let bench = Bench::new();
        recover(&bench, 2, bench.facts(Who::System))
    }),
    Case(Guard::RecoverEpoch, || {
        let mut bench = Bench::new();
        bench.run.epoch = u64::MAX;
        recover(&bench, u64::MAX, bench.facts(Who::System))
    }),
    Case(Guard::RecoverHuman, || {
        let bench = Bench::new();
        let body = RecoverOwnership {
            expected_epoch: dec(1),
            reason: "ann said so".to_owned(),
            decision_ref: Some(id("decision")),
        };
        bench.decide(&Body::RecoverOwnership(body), &bench.facts(Who::System))
    }),
    Case(Guard::RecoveryTrusted, || {
        let bench = Bench::new();
        recover(
            &bench,
            1,
            Facts {
                recovery_authority: false,
                ..bench.facts(Who::System)
            },
        )
    }),
];

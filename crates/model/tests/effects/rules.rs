//! What rules decide: a hold under the approved rule policy, and whether a run goes on after its owner was lost.
//!
//! Invariant: every state is reached through accepted commands. Each test names what it proves; the cases of refusals
//! take their benches and facts from here.

use aiws::error::Code;
use aiws::json::Value;
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::facts::Facts;

use crate::bench::*;
use crate::holds::{code, hold_of};
use crate::refusals::guarded;
use crate::steps::*;

/// The rule policy that the configurations here approve.
pub fn rule() -> Ref {
    reference("look-again")
}

/// The same rule after somebody changed it.
pub fn changed() -> Ref {
    Ref {
        revision: dec(2),
        ..rule()
    }
}

/// A run under a restart policy, with the rule approved.
pub fn under(restart_policy: RestartPolicy) -> Bench {
    let config = HandoffConfig {
        restart_policy,
        rule: Some(rule()),
        ..config()
    };
    Bench::with(contract(), config, graph())
}

/// The host evaluated the approved rule for this actor: it allows a restart, and `looked` is what it saw.
pub fn evaluated(bench: &Bench, who: Who) -> Facts {
    let facts = Facts {
        policy: rule(),
        restart_allowed: true,
        ..bench.facts(who)
    };
    confirming(facts, &["looked"])
}

/// A recheck of `h` in the name of a rule.
pub fn ruled_body(rule: Option<Ref>, evidence: &[&str]) -> Body {
    renamed("h", rule, evidence)
}

fn renamed(hold: &str, rule: Option<Ref>, evidence: &[&str]) -> Body {
    let Body::ResolveHold(body) = resolve_body(hold, HoldDecision::Recheck, evidence) else {
        unreachable!("a resolution")
    };
    Body::ResolveHold(ResolveHold { rule, ..body })
}

/// The hold that a recovery names, where it names one.
fn held(result: &Value) -> Option<String> {
    let named = result.get("holdId").and_then(Value::as_str);
    named.map(str::to_owned)
}

/// Proves HS-06.2, HS-03.10, T-15, T-19: the restart policy governs what follows a recovery. AUTO goes on, HUMAN is held
/// whatever a rule says, RULE is held unless the rule allows it; who is held is let go by nobody but who may decide.
#[test]
fn three_policies_govern_what_follows_a_recovery() {
    use Code::{AuthorizationDenied as Denied, HumanRequired as Human};
    type Told = Option<Code>;
    let _on = guarded();
    // The policy; whether a run is held where the rule forbids and where it allows; what the engine, the rule and a human
    // are told who recheck a RESTART hold; whether the engine returns what the old owner had prepared.
    #[rustfmt::skip]
    let table: [(RestartPolicy, [bool; 2], [Told; 3], Told); 3] = [
        (RestartPolicy::Auto,  [false, false], [None,         None,        None], None),
        (RestartPolicy::Human, [true,  true],  [Some(Human),  Some(Human), None], Some(Human)),
        (RestartPolicy::Rule,  [true,  false], [Some(Denied), None,        None], None),
    ];
    for (policy, holds, told, returned) in table {
        for (allows, holds) in [false, true].into_iter().zip(holds) {
            let mut bench = under(policy);
            bench.admit("free", &free_read());
            let facts = Facts {
                restart_allowed: allows,
                ..evaluated(&bench, Who::System)
            };
            let hold_id = held(&bench.act_on(&recover_body(1), &facts).result);
            assert_eq!(hold_id.is_some(), holds, "{policy} {allows}");
            let back = settle_body("at-free", SettledOutcome::ConfirmedNotApplied, 0, &[]);
            let found = code(&bench, &back, &bench.facts(Who::System));
            assert_eq!(found, returned, "{policy}");
            bench.act(back, Who::Human);
            // What launches work is refused exactly where the run is held.
            let retry = retry_body(&bench, "free", "at-2", 10);
            let found = code(&bench, &retry, &bench.facts(Who::System));
            assert_eq!(found, holds.then_some(Code::HoldActive), "{policy}");
        }
        // The hold over a run whose owners keep failing, which any policy has.
        let bench = under(policy).held(HoldReason::Restart);
        let asked = [
            (ruled_body(None, &[]), Who::System),
            (ruled_body(Some(rule()), &["looked"]), Who::Rule),
            (ruled_body(None, &[]), Who::Human),
        ];
        for ((body, who), told) in asked.into_iter().zip(told) {
            let found = code(&bench, &body, &evaluated(&bench, who));
            assert_eq!(found, told, "{policy}");
        }
    }
}

/// Proves HS-06.2, HS-06.1, HS-03.9: under RULE nothing but the approved rule at its revision, with what it saw, lets a
/// recovered run go on; and it lets go of no hold that is open already.
#[test]
fn a_rule_that_does_not_allow_holds_the_run() {
    let _on = guarded();
    let bench = under(RestartPolicy::Rule);
    let good = evaluated(&bench, Who::System);
    let forbids = Facts {
        restart_allowed: false,
        ..good.clone()
    };
    let stale = Facts {
        policy: changed(),
        ..good.clone()
    };
    let other = Facts {
        policy: reference("host-policy"),
        ..good.clone()
    };
    let blind = Facts {
        clear_evidence: Default::default(),
        ..good.clone()
    };
    for facts in [forbids, stale, other, blind] {
        let mut bench = bench.clone();
        let first = held(&bench.act_on(&recover_body(1), &facts).result).expect("a hold");
        assert_eq!(hold_of(&bench, &first).reason, HoldReason::Restart);
        // Kept, and not opened anew.
        let again = held(&bench.act_on(&recover_body(2), &facts).result);
        assert_eq!(again.as_deref(), Some(first.as_str()));
        // A rule that allows the next recovery opens none, and the open one stays.
        let facts = evaluated(&bench, Who::System);
        bench.act_on(&recover_body(3), &facts);
        assert_eq!(hold_of(&bench, &first).state, HoldState::Open);
        assert_eq!((bench.run.holds.size(), bench.gates.len()), (1, 1));
        // The rule itself lets go of it.
        let facts = evaluated(&bench, Who::Rule);
        let body = renamed(&first, Some(rule()), &["looked"]);
        bench.act_on(&body, &facts);
        assert!(bench.gates.is_empty());
    }
}

/// Proves HS-03.9, HS-03.7, HS-04.1: a rule releases under the approved rule policy at its revision, with evidence that
/// the host confirms, and the hold's end says which rule it was. It ends no doubt, no limit and no run, and moves no money.
#[test]
fn a_rule_resolves_what_no_human_has_to() {
    let _on = guarded();
    for policy in [
        RestartPolicy::Auto,
        RestartPolicy::Human,
        RestartPolicy::Rule,
    ] {
        let mut bench = under(policy).held(HoldReason::Operator);
        let money = (bench.money(), bench.account.bound);
        let facts = evaluated(&bench, Who::Rule);
        bench.act_on(&ruled_body(Some(rule()), &["looked"]), &facts);
        let hold = hold_of(&bench, "h");
        let end = hold.resolution.as_ref().expect("a resolution");
        assert_eq!(hold.state, HoldState::Released);
        assert_eq!(
            (end.actor_kind, end.rule.as_ref(), &end.policy),
            (ActorKind::Rule, Some(&rule()), &rule())
        );
        assert_eq!(end.evidence, [id("looked")]);
        assert_eq!((bench.money(), bench.account.bound), money);
        for reason in [
            HoldReason::UncertainEffect,
            HoldReason::AttemptLimit,
            HoldReason::CostLimit,
            HoldReason::TimeLimit,
        ] {
            let bench = under(policy).held(reason);
            let facts = evaluated(&bench, Who::Rule);
            let body = ruled_body(Some(rule()), &["looked"]);
            assert_eq!(code(&bench, &body, &facts), Some(Code::HumanRequired));
        }
        let bench = under(policy).held(HoldReason::Operator);
        let cancel = resolve_body("h", HoldDecision::Cancel, &["looked"]);
        let facts = evaluated(&bench, Who::Rule);
        assert_eq!(code(&bench, &cancel, &facts), Some(Code::HumanRequired));
    }
}

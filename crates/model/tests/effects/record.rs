//! The record of facts: what the host hands over with a command, and what of it an event keeps.
//!
//! Invariant: the record is closed, in memory and on the disk; the host's word stands in it and nowhere else.

use std::collections::BTreeSet;

use aiws::canonical::{from_value, to_value};
use aiws::json::Value;
use aiws::object;
use aiws::record::HoldReason;
use praxis_model::event::Event;
use praxis_model::facts::{Facts, RecordedFacts};
use praxis_model::redecide;

use crate::bench::*;
use crate::refusals::guarded;
use crate::steps::*;

/// The members of the host's record that an event keeps among its facts.
const KEPT: [&str; 6] = [
    "admissions",
    "authorizedAtMs",
    "clearEvidence",
    "materialErrors",
    "materials",
    "restartAllowed",
];
/// What this engine keeps beside them: what was read of the ledger, the token's fingerprint, and who may take over.
const BESIDE: [&str; 4] = [
    "account",
    "claimFingerprint",
    "recoveryAuthority",
    "registers",
];
/// Those that stand in the event itself: who acted, and under which policy.
const IN_EVENT: [&str; 3] = ["actorId", "actorKind", "policy"];

/// An event that a human's full set of facts led to.
fn event() -> (Event, Facts) {
    let bench = Bench::free_unknown();
    let mut facts = bench.with_material(confirming(bench.facts(Who::Human), &["probe"]));
    facts.restart_allowed = true;
    let body = place_body(hold("h", HoldReason::Operator));
    let decision = bench.decide(&body, &facts).expect("a hold");
    let (_, event) = bench.fold(&decision, &facts).expect("folds");
    (event, facts)
}

fn keys(value: &Value) -> BTreeSet<&str> {
    let members = value.as_object().expect("an object");
    members.keys().map(|key| key.as_str()).collect()
}

fn members(value: &Value) -> aiws::json::Object {
    value.as_object().expect("an object").clone()
}

/// Proves CRD-8: the host's facts are one closed record. An event keeps each member under its name and has no place for
/// another; one that is missing is no record; what is read back is what the host said, and only what policy allowed is there.
#[test]
fn crd_8_the_hosts_facts_are_one_closed_record() {
    let _on = guarded();
    let (event, facts) = event();
    let value = to_value(&event).expect("a value");
    let kept = value
        .as_object()
        .and_then(|all| all.get("facts"))
        .expect("facts");
    let expected: BTreeSet<&str> = KEPT.into_iter().chain(BESIDE).collect();
    assert_eq!(keys(kept), expected);
    assert!(IN_EVENT.iter().all(|name| keys(&value).contains(name)));
    let policy = value.as_object().and_then(|all| all.get("policy"));
    let named: BTreeSet<&str> = ["id", "revision"].into();
    assert_eq!(keys(policy.expect("a policy")), named);

    for forged in ["allowed", "actorKind", "human", "evidence"] {
        let mut more = members(kept);
        more.insert(forged.to_owned(), true.into());
        assert!(
            from_value::<RecordedFacts>(&more.into()).is_err(),
            "{forged}"
        );
    }
    for name in KEPT {
        let mut less = members(kept);
        less.remove(name);
        assert!(from_value::<RecordedFacts>(&less.into()).is_err(), "{name}");
    }
    let mut policy = members(policy.expect("a policy"));
    policy.insert("text".to_owned(), "allow all".into());
    let mut other = members(&value);
    other.insert("policy".to_owned(), policy.into());
    assert!(from_value::<Event>(&other.into()).is_err());

    // Every member that a decision may look at is named here; a new one does not go unseen.
    let Facts {
        allowed,
        actor_id,
        actor_kind,
        policy,
        authorized_at_ms,
        materials,
        material_errors,
        admissions,
        clear_evidence,
        restart_allowed,
        // Beside the closed record: the decision's class and reference, and times.
        decision_class: _,
        decision_ref: _,
        now_ms: _,
        clock_stepped: _,
        // What the actor read of the ledger, made, or may do.
        registers: _,
        account: _,
        outer_gates: _,
        claim_fingerprint: _,
        recovery_authority: _,
    } = redecide::facts(&event, &[]);
    assert!(allowed && facts.allowed);
    assert_eq!((actor_id, actor_kind), (facts.actor_id, facts.actor_kind));
    assert_eq!(
        (policy, authorized_at_ms),
        (facts.policy, facts.authorized_at_ms)
    );
    assert_eq!(
        (materials, material_errors),
        (facts.materials, facts.material_errors)
    );
    assert_eq!(
        (admissions, clear_evidence),
        (facts.admissions, facts.clear_evidence)
    );
    assert_eq!(restart_allowed, facts.restart_allowed);
}

/// Proves CRD-8, FV-GRT.3: what policy does not allow leaves no event, so that none has to say that it was allowed.
#[test]
fn crd_8_an_event_is_there_for_what_was_allowed() {
    let _on = guarded();
    let bench = Bench::new();
    let facts = Facts {
        allowed: false,
        ..bench.facts(Who::Human)
    };
    let body = place_body(hold("h", HoldReason::Operator));
    let found = crate::holds::code(&bench, &body, &facts);
    assert_eq!(found, Some(aiws::error::Code::AuthorizationDenied));
    let record = object! { "allowed": false };
    assert!(from_value::<RecordedFacts>(&record).is_err());
}

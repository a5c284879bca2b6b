//! Every scenario and field case has a test here that bears its name, or one elsewhere, or a reason why there is none yet.
//! Invariant: the IDs are those of `docs/spec/scenarios.md`, so that a new row fails here until it has its line.
//! What a test claims is read as for `docs/CONFORMANCE.md`.

use std::collections::BTreeSet;

use praxis_tests::claims::Claim;
use praxis_tests::conformance::claims_of_checkout;
use praxis_tests::spec::Spec;

/// Where the tests of this program stand.
const HERE: &str = "tests/tests/scenarios/";

/// Cases whose subject is reached through another door than the engine's, with their test.
const ELSEWHERE: &[(&str, &str)] = &[(
    "F-24",
    "crates/cli/tests/outbox.rs::f_24_what_was_not_acknowledged_comes_again",
)];

/// Not built yet, each with its reason.
const LEFT: &[(&str, &str)] = &[
    ("C-12", "there are no triggers, and so no ticks"),
    ("X-01", "there are no triggers"),
    ("X-03", "there are no waits and no external responses"),
    (
        "X-07",
        "there is no tree of limits above the mission's budget",
    ),
    ("X-09", "there is neither migration nor import"),
    (
        "L-03",
        "the corrections of a coding run are shown by the tests of the command line, stage by stage, not as one case",
    ),
    ("L-06", "there are neither sub-workflows nor triggers"),
    ("L-08", "there are no bindings to other protocols"),
    ("L-09", "there is neither import nor pruning"),
    ("F-17", "there are no schedules"),
    (
        "F-20",
        "there are no external responses, no snapshots and no compaction",
    ),
    ("F-21", "there is neither migration nor a fork of a store"),
    ("F-23", "there are no waits"),
    ("F-25", "there is no compaction"),
    ("F-36", "there are no waits and no external responses"),
    ("F-38", "there are no timers that fire"),
];

/// `C-01` as it stands in a function's name.
fn in_a_name(id: &str) -> String {
    format!("{}_", id.to_lowercase().replace('-', "_"))
}

/// Whether the claim is of a test of this program whose name has the ID.
fn bears(claim: &Claim, id: &str) -> bool {
    let named = in_a_name(id);
    let here = claim.id == id && claim.test.starts_with(HERE);
    let name = claim.test.rsplit("::").next().unwrap_or_default();
    here && (name.starts_with(&named) || name.contains(&format!("_{named}")))
}

#[test]
fn every_scenario_has_a_test_or_a_reason() {
    let spec = Spec::read();
    let claims = claims_of_checkout(&spec);
    assert_eq!(claims.problems, Vec::<String>::new());
    let mut problems = Vec::new();
    let known: BTreeSet<&str> = spec.scenarios.iter().map(|row| row.id.as_str()).collect();
    for id in &known {
        let here = claims.valid.iter().any(|claim| bears(claim, id));
        let elsewhere = ELSEWHERE.iter().find(|(listed, _)| listed == id);
        let left = LEFT.iter().any(|(listed, _)| listed == id);
        if let Some((_, test)) = elsewhere {
            let mut valid = claims.valid.iter();
            if !valid.any(|claim| claim.id == *id && claim.test == *test) {
                problems.push(format!("{id}: {test} does not claim it"));
            }
        }
        match (here, elsewhere.is_some(), left) {
            (true, false, false) | (false, true, false) | (false, false, true) => {}
            (false, false, false) => problems.push(format!("{id}: no test and no reason")),
            _ => problems.push(format!(
                "{id}: more than one of a test here, one elsewhere, and a reason"
            )),
        }
    }
    let listed = ELSEWHERE.iter().chain(LEFT).map(|(id, _)| *id);
    problems.extend(
        listed
            .filter(|id| !known.contains(id))
            .map(|id| format!("{id}: no such scenario")),
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_name_bears_the_whole_id() {
    let claim = |name: &str| Claim {
        id: "F-01".to_owned(),
        test: format!("{HERE}x.rs::{name}"),
    };
    assert!(bears(&claim("f_01_one"), "F-01"));
    assert!(bears(&claim("c_02_f_01_one"), "F-01"));
    for name in ["f_011_one", "half_01_one", "one", "f_01"] {
        assert!(!bears(&claim(name), "F-01"), "{name}");
    }
    assert!(!bears(&claim("f_01_one"), "F-02"));
}

//! Cases from the field that somebody at the command line can meet.
//! Invariant: whatever is refused changes nothing, and says with a code what was expected.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use aiws::json::Value;
use support::{AGENT, World, called, text};

fn held() -> World {
    let world = World::new(AGENT);
    let held = called(&mut world.code(&["--approve-as", "tester", "--max-corrections", "0"]));
    assert_eq!(held.exit, Some(3), "{}", held.err);
    world
}

fn open_holds(world: &World) -> Vec<String> {
    let holds = world.json(&["holds"]);
    let holds = holds.get("holds").and_then(Value::as_array).unwrap();
    holds
        .iter()
        .map(|hold| text(hold, "/holdId").to_owned())
        .collect()
}

/// Proves F-03: a hold that is not there is refused with a code, and the one that is there stays open.
#[test]
fn an_unknown_hold_is_refused_and_the_open_one_stays() {
    let world = held();
    let before = open_holds(&world);
    assert_eq!(before.len(), 1);
    let events = world.verb(&["log"]).out;
    for named in ["0000000000", "", "r-"] {
        let refused = world.verb(&["recheck", named]);
        assert!(
            refused.err.contains("NOT_FOUND"),
            "{named:?}: {}",
            refused.err
        );
        assert_ne!(refused.exit, Some(0), "{named:?}");
    }
    assert_eq!(open_holds(&world), before);
    assert_eq!(world.verb(&["log"]).out, events);
}

/// Proves F-11: bounds of zero, below zero and beyond every number are refused, and none means without bound.
#[test]
fn bounds_that_are_none_are_refused() {
    let world = World::new(AGENT);
    let cases: &[(&str, &[&str])] = &[
        (
            "--budget",
            &["0", "-1", "99999999999999999999999", "unlimited", "1e9"],
        ),
        (
            "--timeout",
            &["0", "-1", "86401", "99999999999999999999999"],
        ),
        (
            "--max-corrections",
            &["-1", "21", "99999999999999999999999"],
        ),
    ];
    for (option, values) in cases {
        for value in *values {
            let refused = called(&mut world.code(&[&format!("{option}={value}")]));
            assert_eq!(refused.exit, Some(2), "{option}={value}: {}", refused.err);
            assert!(!world.store.exists(), "{option}={value} made a store");
        }
    }
}

/// Proves F-12: what was approved is one exact action; a yes to another one is refused, and nothing runs.
#[test]
fn a_yes_to_another_action_is_refused() {
    let (one, other) = (World::new(AGENT), World::new(AGENT));
    for world in [&one, &other] {
        let waits = called(&mut world.code(&["--no-wait"]));
        assert_eq!(waits.exit, Some(3), "{}", waits.err);
    }
    let digest = |world: &World| text(&world.json(&["show"]), "/digest").to_owned();
    assert_ne!(
        digest(&one),
        digest(&other),
        "another repository is another action"
    );
    let refused = one.verb(&["approve", "r-", "--digest", &digest(&other)]);
    assert_eq!(refused.exit, Some(3), "{}", refused.err);
    assert!(refused.err.contains("APPROVAL_STALE"), "{}", refused.err);
    let resumed = one.verb(&["resume", "--no-wait"]);
    assert_eq!(resumed.exit, Some(3), "{}", resumed.err);
    assert_eq!(one.stages(), ["plan"]);
}

/// Proves F-16: the empty name is no run, for no verb.
#[test]
fn the_empty_name_is_no_run() {
    let world = held();
    for verb in [
        "show", "log", "diff", "report", "attach", "unknown", "resume", "pause", "continue",
        "cancel", "approve",
    ] {
        let mut args = vec![verb, ""];
        if verb == "approve" {
            args.extend(["--digest", "00"]);
        }
        let refused = world.verb(&args);
        assert!(
            refused.err.contains("RUN_NOT_FOUND"),
            "{verb}: {}",
            refused.err
        );
    }
    let denied = world.verb(&["deny", "", "--reason", "x"]);
    assert!(denied.err.contains("RUN_NOT_FOUND"), "{}", denied.err);
}

/// Proves F-09, F-31: what was spent is spent after a kill in the middle and in every view, and is the sum of what the
/// agents said.
#[test]
fn spend_survives_a_kill_and_is_the_same_in_every_view() {
    let agent = format!("{AGENT}\necho 2 > \"$PRAXIS_USAGE_FILE\"\n");
    let world = World::new(&agent);
    let mut code = world.code(&["--approve-as", "tester", "--budget", "6"]);
    let killed = called(code.env("PRAXIS_CRASH_AT", "12:after-commit"));
    assert_eq!(killed.signal, Some(9), "{}", killed.err);
    let resumed = world.verb(&["resume", "--approve-as", "tester"]);
    assert_eq!(resumed.exit, Some(0), "{}", resumed.err);
    let page = world.json(&["show"]);
    let list = world.json(&["list"]);
    let listed = list.get("runs").and_then(Value::as_array).unwrap();
    let spent = (2 * world.ends().len()).to_string();
    assert_eq!(text(&page, "/spend/spent"), spent);
    assert_eq!(text(&listed[0], "/spend/spent"), spent);
    assert_eq!(text(&page, "/spend/reserved"), "0");
}

/// A reader that had enough ends the output, and is no failure of the store.
#[test]
fn a_reader_that_had_enough_is_no_failure() {
    let world = support::finished();
    for verb in ["export", "log", "attach"] {
        let mut command = world.praxis();
        command
            .arg(verb)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let done = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{verb}: {err}");
    }
}

/// A run that could go on and that no engine has says so, and what to type.
#[test]
fn a_run_that_nobody_drives_says_so() {
    let world = World::new(AGENT);
    let mut code = world.code(&["--approve-as", "tester"]);
    let killed = called(code.env("PRAXIS_CRASH_AT", "20:after-commit"));
    assert_eq!(killed.signal, Some(9), "{}", killed.err);
    let page = world.json(&["show"]);
    assert_eq!(page.get("driven").and_then(Value::as_bool), Some(false));
    assert!(world.verb(&["show"]).out.contains("no engine has it"));
    let inbox = world.verb(&["inbox"]).out;
    assert!(inbox.contains(" resume r-"), "{inbox}");
}

/// Begun again with more corrections, a run has the budget that goes with them; begun again as it was, the old one.
#[test]
fn a_run_that_is_begun_again_has_a_budget_for_its_corrections() {
    let world = held();
    let first = text(&world.json(&["show"]), "/run").to_owned();
    for (more, budget) in [(&["--max-corrections", "2"][..], "4"), (&[], "2")] {
        let args = [&["code", "--from", first.as_str(), "--no-wait"], more].concat();
        let again = world.verb(&args);
        assert_eq!(again.exit, Some(3), "{}", again.err);
        assert_eq!(text(&world.json(&["show"]), "/job/budget"), budget);
    }
}

//! Holding a branch of a run from the command line: what it covers is said before, and what stands beside goes on.
//! Invariant: the agent's own record says what was started. Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use aiws::json::Value;
use support::terminal::Terminal;
use support::{AGENT, World, called, text};

fn nodes(value: &Value) -> Vec<&str> {
    let nodes = value.get("nodes").and_then(Value::as_array).unwrap();
    nodes.iter().filter_map(Value::as_str).collect()
}

/// A run whose plan waits for approval.
fn planned() -> (World, String) {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(&["--no-wait"]));
    assert_eq!(ran.exit, Some(3), "{}", ran.err);
    let run = text(&world.json(&["show"]), "/run").to_owned();
    (world, run)
}

/// Proves HS-01.8: a branch is its node and all that depends on it. It is said without a hold, held by a person, listed,
/// and what does not depend on it goes on; nothing of it starts before the hold is lifted.
#[test]
fn a_branch_is_held_and_the_rest_goes_on() {
    let (world, run) = planned();
    let pause = ["pause", &run, "--branch", "implement"];
    let said = world.json(&[&pause[..], &["--dry-run"]].concat());
    let covered = nodes(&said);
    assert_eq!(covered.first(), Some(&"implement"));
    assert!(covered.contains(&"end"), "{said}");
    assert!(
        !covered.contains(&"plan") && !covered.contains(&"approve"),
        "{said}"
    );
    let holds = |world: &World| {
        world
            .json(&["holds"])
            .get("holds")
            .and_then(Value::as_array)
            .unwrap()
            .to_vec()
    };
    assert!(holds(&world).is_empty(), "a look placed a hold");

    let held = world.json(&pause);
    assert_eq!(nodes(&held), covered);
    let open = holds(&world);
    assert_eq!((open.len(), nodes(&open[0])), (1, covered));
    let page = world.verb(&["show"]).out;
    assert!(page.contains("covers"), "{page}");
    let again = world.verb(&pause);
    assert!(again.err.contains("STATE_INVALID"), "{}", again.err);

    let digest = text(&world.json(&["show"]), "/digest").to_owned();
    let approved = world.verb(&["approve", &run, "--digest", &digest]);
    assert_eq!(approved.exit, Some(0), "{}", approved.err);
    let stopped = world.verb(&["resume", "--no-wait"]);
    assert_ne!(stopped.exit, Some(0), "{}", stopped.out);
    assert_eq!(world.stages(), ["plan"]);
    let lifted = world.verb(&["recheck", text(&open[0], "/holdId")]);
    assert_eq!(lifted.exit, Some(0), "{}", lifted.err);
    let ended = world.verb(&["resume", "--approve-as", "tester"]);
    assert_eq!(ended.exit, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(world.stages(), ["plan", "implement", "correct"]);
}

/// At a terminal the nodes are shown before the question, and a no holds nothing; what is no node is refused.
#[test]
fn a_person_sees_the_nodes_before_the_hold() {
    let (world, run) = planned();
    let mut pause = world.praxis();
    pause.args(["pause", &run, "--branch", "verify"]);
    let mut terminal = Terminal::person(&pause);
    terminal.expect("Start nothing new in verify, accept, end? [y/n");
    terminal.type_line("n");
    let (exit, shown) = terminal.end();
    assert_eq!(exit, Some(3), "{shown}");
    let no = world.verb(&["pause", &run, "--branch", "nowhere"]);
    assert!(
        no.err.contains("SCOPE_UNSUPPORTED") && no.err.contains("implement"),
        "{}",
        no.err
    );
    let odd = world.verb(&["pause", &run, "--dry-run"]);
    assert_eq!(odd.exit, Some(2), "{}", odd.err);
    let listed = world.json(&["holds"]);
    assert_eq!(
        listed.get("holds").and_then(Value::as_array).unwrap().len(),
        0
    );
}

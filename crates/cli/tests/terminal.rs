//! `praxis code` at a terminal: what a person is shown, and what the answers do.
//! Invariant: the terminal is a real pseudo-terminal; nothing is approved that was not typed.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use support::terminal::Terminal;
use support::{World, text};

/// An agent whose plan tries to write over what the terminal shows.
const AGENT: &str = r#"
case "$PRAXIS_STAGE" in
plan) printf '# Plan\nwrite good \033[2Jinto\342\200\256 a.txt\n' > "$PRAXIS_OUTPUT_DIR/plan.md" ;;
*) echo good > a.txt ;;
esac
printf 'end %s %s %s\n' "$PRAXIS_STAGE" "$PRAXIS_OPERATION_ID" "$PRAXIS_ATTEMPT_ID" >> RECORD
"#;

/// Proves COD-2, FV-APR.1: a person sees the plan and the exact action with its fingerprint, and approves before
/// anything is implemented; accepting the result is a decision of its own.
#[test]
fn a_person_approves_the_plan_and_accepts_the_result() {
    let world = World::new(AGENT);
    let mut terminal = Terminal::start(world.code(&[]));
    terminal.expect("Approve the plan");
    assert_eq!(world.stages(), ["plan"]);
    for shown in [
        "| # Plan",
        "fingerprint: ",
        "baseCommit: ",
        "timeoutSeconds: ",
        "planDigest: ",
    ] {
        assert!(
            terminal.shown.contains(shown),
            "{shown:?} is not shown: {}",
            terminal.shown
        );
    }
    assert!(
        terminal.shown.contains("\\u{1b}[2J") && terminal.shown.contains("\\u{202e}"),
        "{}",
        terminal.shown
    );
    assert!(
        !terminal.shown.contains("\u{1b}[2J") && !terminal.shown.contains('\u{202e}'),
        "the plan drew by itself"
    );
    terminal.type_line("maybe");
    terminal.expect("Please type y or n");
    terminal.type_line("y");
    terminal.expect("Accept the result");
    assert!(terminal.shown.contains("| +good"), "{}", terminal.shown);
    terminal.type_line("y");
    let (exit, shown) = terminal.end();
    assert_eq!(exit, Some(0), "{shown}");
    assert!(shown.contains("at a terminal"), "{shown}");
    assert_eq!(world.stages(), ["plan", "implement"]);
}

/// The page of a rejected run says who said no to what, and that nothing waits any more.
fn denied(world: &World, what: &str) {
    let page = world.json(&["show"]);
    assert_eq!(text(&page, "/standing"), "REJECTED");
    let cause = text(&page, "/cause");
    assert!(
        cause.starts_with("denied by ") && cause.ends_with(what),
        "{cause}"
    );
    let words: Vec<&str> = page
        .get("nodes")
        .and_then(aiws::json::Value::as_array)
        .unwrap()
        .iter()
        .map(|node| text(node, "/word"))
        .collect();
    assert!(
        words.contains(&"denied") && !words.contains(&"waits"),
        "{words:?}"
    );
}

#[test]
fn a_no_to_the_plan_rejects_the_run() {
    let world = World::new(AGENT);
    let mut terminal = Terminal::start(world.code(&[]));
    terminal.expect("Approve the plan");
    terminal.type_line("n");
    terminal.expect("Why, in a line");
    terminal.type_line("the caller is wrong");
    let (exit, shown) = terminal.end();
    assert_eq!(exit, Some(4), "{shown}");
    denied(&world, "the plan (APPROVAL_DENIED): the caller is wrong");
    assert_eq!(world.stages(), ["plan"]);
}

#[test]
fn a_no_to_the_result_rejects_the_run_and_makes_no_branch() {
    let world = World::new(AGENT);
    let mut terminal = Terminal::start(world.code(&[]));
    terminal.expect("Approve the plan");
    terminal.type_line("yes");
    terminal.expect("Accept the result");
    terminal.type_line("no");
    terminal.expect("Why, in a line");
    terminal.type_line("");
    let (exit, shown) = terminal.end();
    assert_eq!(exit, Some(4), "{shown}");
    denied(&world, "the result (ACCEPTANCE_REJECTED)");
    assert_eq!(world.git(&["for-each-ref", "refs/heads/praxis"]), "");
}

/// Whoever started it with hang-ups ignored, as `nohup` does, wants it to go on.
#[test]
fn an_ignored_hang_up_stays_ignored() {
    let world = World::new(AGENT);
    let code = world.code(&[]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
        .arg(code.get_program())
        .args(code.get_args());
    let mut terminal = Terminal::start(command);
    terminal.expect("Approve the plan");
    let process = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(process, Signal::HUP).unwrap();
    terminal.type_line("y");
    terminal.expect("Accept the result");
    terminal.type_line("y");
    let (exit, shown) = terminal.end();
    assert_eq!(exit, Some(0), "{shown}");
}

/// The first Ctrl-C, SIGTERM or SIGHUP lets what runs finish and leaves a run that goes on later.
#[test]
fn an_interrupt_at_a_question_leaves_the_run_to_be_resumed() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let world = World::new(AGENT);
        let mut terminal = Terminal::start(world.code(&[]));
        terminal.expect("Approve the plan");
        let process = rustix::process::Pid::from_child(&terminal.child);
        rustix::process::kill_process(process, signal).unwrap();
        let (exit, shown) = terminal.end();
        assert_eq!(exit, Some(3), "{signal:?}: {shown}");
        assert!(
            shown.contains("stopping: nothing runs now") && !shown.contains("may finish"),
            "{signal:?}: {shown}"
        );
        let resumed = world.verb(&["resume", "--approve-as", "tester"]);
        assert_eq!(resumed.exit, Some(0), "{signal:?}: {}", resumed.err);
        assert_eq!(world.stages(), ["plan", "implement"]);
    }
}

/// The end of the input decides nothing: the run is left as it waits, and is asked about again.
#[test]
fn the_end_of_the_input_decides_later() {
    let world = World::new(AGENT);
    let mut terminal = Terminal::start(world.code(&[]));
    terminal.expect("[y/n, Ctrl-D decides later]");
    terminal.screen.write_all(&[4]).unwrap();
    let (exit, shown) = terminal.end();
    assert_eq!(exit, Some(3), "{shown}");
    assert!(shown.contains("Nothing is decided"), "{shown}");
    assert_eq!(text(&world.json(&["show"]), "/standing"), "NEEDS_APPROVAL");
    let mut resume = world.praxis();
    resume.arg("resume");
    let mut terminal = Terminal::start(resume);
    terminal.expect("Approve the plan");
    terminal.type_line("n");
    terminal.expect("Why, in a line");
    terminal.type_line("");
    assert_eq!(terminal.end().0, Some(4));
}

/// Whoever waits without a terminal is told so, once, and what to do.
#[test]
fn waiting_without_a_terminal_says_so() {
    let world = World::new(AGENT);
    let mut command = world.code(&[]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = lines
        .find(|line| line.as_ref().unwrap().contains("there is no terminal"))
        .unwrap()
        .unwrap();
    assert!(
        said.contains(" approve r-") && said.contains(" deny r-") && said.contains("Ctrl-C leaves"),
        "{said}"
    );
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, Signal::INT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{rest:?}");
    assert!(
        rest.iter().all(|line| !line.contains("no terminal")),
        "{rest:?}"
    );
}

/// A result that waits is named by the file that has its patch.
#[test]
fn a_result_that_waits_says_where_its_patch_is() {
    let world = World::new(AGENT);
    let mut terminal = Terminal::start(world.code(&[]));
    terminal.expect("Approve the plan");
    terminal.type_line("y");
    terminal.expect("Accept the result");
    terminal.screen.write_all(&[4]).unwrap();
    let (exit, shown) = terminal.end();
    assert_eq!(exit, Some(3), "{shown}");
    let page = world.json(&["show"]);
    assert_eq!(text(&page, "/toRead/what"), "patch");
    let path = text(&page, "/toRead/path");
    assert!(
        std::fs::read_to_string(path).unwrap().contains("+good"),
        "{path}"
    );
    assert!(shown.contains(path), "{shown}");
}

/// A question is taken back once somebody else answered it, and what follows is asked here.
#[test]
fn a_question_that_is_answered_elsewhere_is_taken_back() {
    let world = World::new(AGENT);
    let mut terminal = Terminal::start(world.code(&[]));
    terminal.expect("[y/n");
    let digest = text(&world.json(&["show"]), "/digest").to_owned();
    let approved = world.verb(&["approve", "r-", "--digest", &digest]);
    assert_eq!(approved.exit, Some(0), "{}", approved.err);
    terminal.expect("It was decided elsewhere.");
    terminal.expect("Accept the result");
    terminal.type_line("y");
    let (exit, shown) = terminal.end();
    assert_eq!(exit, Some(0), "{shown}");
    assert_eq!(world.stages(), ["plan", "implement"]);
}

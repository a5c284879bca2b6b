//! Being told: notices of a store reach whoever wants them, at least once and in order, across every kind of kill.
//! Invariant: acknowledged is only what was written, or what a command took with exit 0.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use aiws::json::Value;
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use support::shims::{kill_command, kill_shim, the_running, until};
use support::{AGENT, Called, World, called, finished, text};

/// The notices of lines.
fn told(out: &str) -> Vec<(u64, String)> {
    let lines = out.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let notice = support::parse(line);
            assert_eq!(text(&notice, "/kind"), "notice", "{line}");
            assert!(!text(&notice, "/text").is_empty());
            let next = notice.get("next").and_then(Value::as_array).unwrap();
            assert!(
                next.iter()
                    .all(|next| next.as_str().unwrap().contains("praxis"))
            );
            let sequence = text(&notice, "/sequence").parse().unwrap();
            (sequence, text(&notice, "/notice").to_owned())
        })
        .collect()
}

fn kinds(out: &str) -> Vec<String> {
    told(out).into_iter().map(|(_, kind)| kind).collect()
}

fn outbox(world: &World, consumer: &str, more: &[&str]) -> Called {
    world.verb(&[&["outbox", "--consumer", consumer], more].concat())
}

/// A run that waits for the approval of its plan, left there by whoever started it.
fn waiting() -> World {
    let world = World::new(AGENT);
    let left = called(&mut world.code(&["--no-wait"]));
    assert_eq!(left.exit, Some(3), "{}", left.err);
    world
}

/// Waits until a file has something in it: whoever writes it is under way.
fn until_written(path: &Path) -> String {
    loop {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => std::thread::yield_now(),
        }
    }
}

/// Proves OUT-1: a consumer gets what people want to know, in order and with the same sequences each time, until
/// it has acknowledged; another consumer has a place of its own.
#[test]
fn every_consumer_is_told_of_everything_in_order() {
    let world = finished();
    let first = outbox(&world, "one", &[]);
    assert_eq!(first.exit, Some(0), "{}", first.err);
    assert_eq!(
        kinds(&first.out),
        ["APPROVAL_NEEDED", "ACCEPTANCE_NEEDED", "ENDED"]
    );
    let sequences: Vec<u64> = told(&first.out).into_iter().map(|(at, _)| at).collect();
    assert!(sequences.is_sorted());
    assert_eq!(outbox(&world, "one", &[]).out, "", "it was acknowledged");
    assert_eq!(outbox(&world, "two", &[]).out, first.out);
}

/// A hold, a paused run, a denied plan: each is told as what it is.
#[test]
fn holds_and_ends_are_told() {
    let world = waiting();
    let run = text(&world.json(&["show"]), "/run").to_owned();
    assert_eq!(kinds(&outbox(&world, "c", &[]).out), ["APPROVAL_NEEDED"]);
    assert_eq!(world.verb(&["pause", &run]).exit, Some(0));
    let held = outbox(&world, "c", &[]);
    assert_eq!(kinds(&held.out), ["HOLD"]);
    assert!(held.out.contains("continue"), "{}", held.out);
    assert_eq!(world.verb(&["continue", &run]).exit, Some(0));
    assert_eq!(kinds(&outbox(&world, "c", &[]).out), ["APPROVAL_NEEDED"]);
    let denied = world.verb(&["deny", &run, "--reason", "no", "--as", "tester"]);
    assert_eq!(denied.exit, Some(0), "{}", denied.err);
    let ended = outbox(&world, "c", &[]);
    assert_eq!(kinds(&ended.out), ["ENDED"]);
    assert!(ended.out.contains("rejected"), "{}", ended.out);
}

/// Proves F-24, OUT-3: a consumer that is killed between its output and its acknowledgement gets the same again.
#[test]
fn f_24_what_was_not_acknowledged_comes_again() {
    let world = finished();
    let (took, gate) = (world.dir.path().join("took"), world.dir.path().join("gate"));
    // Each call keeps what it got and then waits where it can be killed.
    let command = format!(
        "cat >> {}; while [ -e {} ] && [ ! -e {} ]; do sleep 0.05; done",
        took.display(),
        took.display(),
        gate.display()
    );
    let mut consumer = world.praxis();
    consumer.args(["outbox", "--consumer", "c", "--exec", &command]);
    let mut child = Running(consumer.stdout(Stdio::null()).spawn().unwrap());
    let first = until_written(&took);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    fs::write(&gate, "").unwrap();
    fs::remove_file(&took).unwrap();
    let again = outbox(&world, "c", &["--exec", &command]);
    assert_eq!(again.exit, Some(0), "{}", again.err);
    let all = fs::read_to_string(&took).unwrap();
    assert!(
        all.starts_with(&first),
        "the one that was cut off came again first: {all}"
    );
    assert_eq!(
        kinds(&all),
        ["APPROVAL_NEEDED", "ACCEPTANCE_NEEDED", "ENDED"]
    );
    assert_eq!(outbox(&world, "c", &[]).out, "");
}

/// A command that fails keeps its notice; it is called again, and nothing is told out of order.
#[test]
fn a_command_that_fails_is_called_again() {
    let world = finished();
    let took = world.dir.path().join("took");
    let fails = outbox(&world, "c", &["--exec", "exit 7"]);
    assert_ne!(fails.exit, Some(0));
    assert!(
        fails.err.contains("EXPORT_FAILED") && fails.err.contains('7'),
        "{}",
        fails.err
    );
    // Fails once, then takes it.
    let mark = world.dir.path().join("mark");
    let command = format!(
        "if [ ! -e {mark} ]; then touch {mark}; exit 1; fi; cat >> {took}",
        mark = mark.display(),
        took = took.display()
    );
    let mut follower = world.praxis();
    follower.args(["outbox", "--consumer", "c", "--follow", "--exec", &command]);
    let mut child = Running(follower.stderr(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(child.0.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("it is called again"), "{line}");
    while kinds(&until_written(&took)).len() < 3 {
        std::thread::yield_now();
    }
    interrupt(&mut child);
    let all = fs::read_to_string(&took).unwrap();
    assert_eq!(
        kinds(&all),
        ["APPROVAL_NEEDED", "ACCEPTANCE_NEEDED", "ENDED"]
    );
}

/// A process that is gone when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn interrupt(child: &mut Running) -> Option<i32> {
    kill_process(Pid::from_child(&child.0), Signal::INT).unwrap();
    child.0.wait().unwrap().code()
}

/// A server of a store, and the line that says so.
fn serve(world: &World, more: &[&str]) -> Running {
    let mut command = world.praxis();
    command.arg("serve").args(more).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.starts_with("serving "), "{line}");
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    Running(child)
}

/// A follower goes on over engines that come, are killed and come again: nothing is lost, nothing is out of order, and
/// one that never acknowledges holds up no other.
#[test]
fn a_follower_outlives_engines() {
    let world = waiting();
    let run = text(&world.json(&["show"]), "/run").to_owned();
    let mut engine = serve(&world, &[]);
    let mut stuck = world.praxis();
    stuck.args([
        "outbox",
        "--consumer",
        "stuck",
        "--follow",
        "--exec",
        "false",
    ]);
    let mut stuck = Running(stuck.stderr(Stdio::null()).spawn().unwrap());
    let mut follower = world.praxis();
    follower.args(["outbox", "--consumer", "c", "--follow"]);
    let mut child = Running(follower.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut next = || kinds(&lines.next().unwrap().unwrap()).remove(0);
    assert_eq!(next(), "APPROVAL_NEEDED");
    assert_eq!(world.verb(&["pause", &run]).exit, Some(0));
    assert_eq!(next(), "HOLD");
    engine.0.kill().unwrap();
    engine.0.wait().unwrap();
    // No engine at all: the verb opens the store itself, and the follower looks into it.
    assert_eq!(world.verb(&["continue", &run]).exit, Some(0));
    assert_eq!(next(), "APPROVAL_NEEDED");
    let mut engine = serve(&world, &[]);
    let denied = world.verb(&["deny", &run, "--reason", "no", "--as", "tester"]);
    assert_eq!(denied.exit, Some(0), "{}", denied.err);
    assert_eq!(next(), "ENDED");
    assert_eq!(interrupt(&mut child), Some(0));
    assert_eq!(interrupt(&mut stuck), Some(0));
    assert_eq!(interrupt(&mut engine), Some(0));
    assert_eq!(
        outbox(&world, "c", &[]).out,
        "",
        "all of it is acknowledged"
    );
    let kept = kinds(&outbox(&world, "stuck", &[]).out);
    assert_eq!(
        kept,
        ["APPROVAL_NEEDED", "HOLD", "APPROVAL_NEEDED", "ENDED"]
    );
}

fn keeper(world: &World) -> (PathBuf, String) {
    let took = world.dir.path().join("notified");
    let command = format!("cat >> {}", took.display());
    (took, command)
}

/// `--notify` tells what waits and what ended, the end before the program is gone, and not again afterwards.
#[test]
fn notify_tells_as_the_run_goes() {
    let world = World::new(AGENT);
    let (took, command) = keeper(&world);
    let ran = called(&mut world.code(&["--no-wait", "--notify", &command]));
    assert_eq!(ran.exit, Some(3), "{}", ran.err);
    assert_eq!(
        kinds(&fs::read_to_string(&took).unwrap()),
        ["APPROVAL_NEEDED"]
    );
    let resumed = world.verb(&["resume", "--approve-as", "tester", "--notify", &command]);
    assert_eq!(resumed.exit, Some(0), "{}", resumed.err);
    let all = kinds(&fs::read_to_string(&took).unwrap());
    assert_eq!(all, ["APPROVAL_NEEDED", "ACCEPTANCE_NEEDED", "ENDED"]);
}

/// A command of `--notify` that fails or hangs is said once and holds up no run; the next engine tells it.
#[test]
fn a_notify_that_fails_holds_up_nothing() {
    let world = World::new(AGENT);
    let failing = called(&mut world.code(&["--approve-as", "tester", "--notify", "exit 9"]));
    assert_eq!(failing.exit, Some(0), "{}", failing.err);
    assert_eq!(
        failing.err.matches("--notify:").count(),
        1,
        "{}",
        failing.err
    );
    let page = world.json(&["show"]);
    assert_eq!(text(&page, "/standing"), "ACCEPTED");
}

/// A command of `--notify` that hangs is killed, with what it started, when the program ends.
#[test]
fn a_notify_that_hangs_is_killed() {
    let world = World::new(AGENT);
    let pids = world.dir.path().join("pids");
    let command = format!("sleep 1000 & echo $! >> {}; wait", pids.display());
    let ran = called(&mut world.code(&["--no-wait", "--notify", &command]));
    assert_eq!(ran.exit, Some(3), "{}", ran.err);
    for pid in fs::read_to_string(&pids).unwrap().lines() {
        until("it is gone", || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        });
    }
}

/// Who is told for the first time in a store is not told of what was over before.
#[test]
fn a_first_notify_begins_with_what_still_waits() {
    let world = finished();
    let second = called(&mut world.code(&["--no-wait"]));
    assert_eq!(second.exit, Some(3), "{}", second.err);
    let (took, command) = keeper(&world);
    let mut engine = serve(&world, &["--resume", "--notify", &command]);
    assert_eq!(kinds(&until_written(&took)), ["APPROVAL_NEEDED"]);
    let runs = world.json(&["list"]);
    let mut waits = runs.get("runs").and_then(Value::as_array).unwrap().iter();
    let run = waits
        .find(|run| text(run, "/standing") == "NEEDS_APPROVAL")
        .unwrap();
    let run = text(run, "/run").to_owned();
    let denied = world.verb(&["deny", &run, "--reason", "no", "--as", "tester"]);
    assert_eq!(denied.exit, Some(0), "{}", denied.err);
    while kinds(&until_written(&took)).len() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(interrupt(&mut engine), Some(0));
    assert_eq!(
        kinds(&fs::read_to_string(&took).unwrap()),
        ["APPROVAL_NEEDED", "ENDED"]
    );
}

/// `serve --resume` lets live runs go on: a run whose agent was never started gets its plan.
#[test]
fn serve_resumes_live_runs() {
    let world = waiting();
    let run = text(&world.json(&["show"]), "/run").to_owned();
    let mut engine = serve(&world, &["--resume"]);
    let page = world.json(&["show", &run]);
    assert_eq!(text(&page, "/standing"), "NEEDS_APPROVAL");
    assert_eq!(world.verb(&["pause", &run]).exit, Some(0));
    let on = world.verb(&["continue", &run]);
    assert!(
        on.out.contains("goes on"),
        "it is kept by the engine: {}",
        on.out
    );
    assert_eq!(interrupt(&mut engine), Some(0));
}

/// A world whose agent waits at a pipe while it implements, with the engine that started it killed.
fn abandoned() -> World {
    let wait = "if [ $PRAXIS_STAGE = implement ] && [ -p RECORD.pipe ]; then echo here > RECORD.at; read word < RECORD.pipe; fi";
    let world = World::new(&format!("{wait}\n{AGENT}"));
    let pipe = world.record.with_extension("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let mut code = world.code(&["--approve-as", "tester"]);
    let code = code.stdout(Stdio::null()).stderr(Stdio::null());
    let mut engine = Running(code.spawn().unwrap());
    until("the agent waits", || {
        fs::read_to_string(world.record.with_extension("at")).ok()
    });
    engine.0.kill().unwrap();
    engine.0.wait().unwrap();
    world
}

/// Nobody is told of an unknown outcome while a shim answers for the attempt; who asked already, and acknowledged what
/// came meanwhile, is told as soon as the shim is lost.
#[test]
fn an_outcome_is_unknown_only_once_no_shim_answers() {
    let world = abandoned();
    let (_, started) = the_running(&world.store);
    let mut engine = serve(&world, &["--resume"]);
    assert_eq!(kinds(&outbox(&world, "c", &[]).out), ["APPROVAL_NEEDED"]);
    let mut follower = world.praxis();
    follower.args(["outbox", "--consumer", "c", "--follow"]);
    let mut child = Running(follower.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let run = text(&world.json(&["list"]), "/runs/0/run").to_owned();
    assert_eq!(world.verb(&["pause", &run]).exit, Some(0));
    let held = lines.next().unwrap().unwrap();
    assert_eq!(kinds(&held), ["HOLD"], "what comes later is told meanwhile");
    kill_shim(&started);
    kill_command(&started);
    let unknown = lines.next().unwrap().unwrap();
    assert_eq!(kinds(&unknown), ["UNKNOWN"]);
    assert!(
        told(&unknown)[0].0 < told(&held)[0].0,
        "under its own sequence"
    );
    assert_eq!(interrupt(&mut child), Some(0));
    assert_eq!(
        outbox(&world, "c", &[]).out,
        "",
        "all of it is acknowledged"
    );
    assert_eq!(interrupt(&mut engine), Some(0));
    let all = kinds(&outbox(&world, "other", &[]).out);
    assert_eq!(all, ["APPROVAL_NEEDED", "UNKNOWN", "HOLD"]);
    world.settle("shim and engine are gone");
    let settled = kinds(&outbox(&world, "third", &[]).out);
    assert_eq!(settled, ["APPROVAL_NEEDED", "HOLD"], "it is known by now");
}

#[test]
fn names_that_are_the_engines_own_are_refused() {
    let world = finished();
    for name in ["publisher", "notify", "", "a\u{202e}b"] {
        let refused = outbox(&world, name, &[]);
        assert_eq!(refused.exit, Some(2), "{name:?}: {}", refused.err);
    }
}

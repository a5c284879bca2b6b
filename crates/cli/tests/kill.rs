//! SIGKILL of the engine at every event of the flow, before commit, after commit and before reply, then `resume`.
//! Invariant: whatever the point, the run ends as if nothing had happened, and no agent is started twice by itself.
//! The person in this test decides from the agent's own record alone.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![cfg(debug_assertions)]

mod support;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use aiws::json::Value;
use support::terminal::Terminal;
use support::{AGENT, World, called, dispositions, text};

/// How many worlds run side by side: the work is mostly waiting for processes.
const THREADS: usize = 4;
/// A run needs at most this many resumes: one per agent run that a kill left in doubt, one to end.
const RESUMES: usize = 4;

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
struct End {
    dispositions: Vec<(String, String)>,
    plan: String,
    patch: String,
    tree: String,
    stages: Vec<String>,
}

fn end(world: &World) -> (End, String) {
    let page = world.json(&["show"]);
    assert_eq!(text(&page, "/standing"), "ACCEPTED", "{page}");
    assert_eq!(text(&page, "/spend/reserved"), "0", "{page}");
    let branch = text(&page, "/branch").to_owned();
    let end = End {
        dispositions: dispositions(&page),
        plan: text(&page, "/accepted/plan").to_owned(),
        patch: text(&page, "/accepted/patch").to_owned(),
        tree: world.git(&["rev-parse", &format!("{branch}^{{tree}}")]),
        stages: world.stages(),
    };
    (end, text(&page, "/spend/spent").to_owned())
}

const OPTIONS: &[&str] = &["--max-corrections", "1", "--approve-as", "tester"];

/// Proves COD-6, FV-EFF.3: the coordinator ends and restarts at each event of each stage, and no material effect
/// happens twice, no duty is lost.
#[test]
fn a_kill_at_any_event_changes_nothing_but_time() {
    let undisturbed = World::new(AGENT);
    let log = undisturbed.dir.path().join("points");
    let ran = called(undisturbed.code(OPTIONS).env("PRAXIS_CRASH_LOG", &log));
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
    let (wanted, spent) = end(&undisturbed);
    assert_eq!(wanted.stages, ["plan", "implement", "correct"]);
    let points: Vec<String> = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    assert!(points.len() >= 3 * 25, "only {} points", points.len());

    let next = AtomicUsize::new(0);
    let report: Mutex<BTreeMap<usize, String>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::SeqCst);
                    let Some(line) = points.get(index) else { break };
                    let how = killed_at(line, &wanted, &spent);
                    report
                        .lock()
                        .unwrap()
                        .insert(index, format!("{line}: {how}"));
                }
            });
        }
    });
    let report = report.into_inner().unwrap();
    for line in report.values() {
        println!("{line}");
    }
    assert_eq!(report.len(), points.len(), "a point was left out");
    let asked = report
        .values()
        .filter(|line| line.contains("a person"))
        .count();
    println!("{} points, {asked} of them needed a person", points.len());
    assert!(asked > 0, "no kill left an agent run in doubt");
    // Between the durable DISPATCHED and the start of the shim nobody can say anything; everywhere else the shim does.
    for line in report.values().filter(|line| line.contains("a person")) {
        assert!(line.ends_with("dispatch"), "{line}");
    }
}

/// A check that was lost runs again, more often than an agent that does nothing would be started: here the check itself
/// kills its shim, four times.
#[test]
fn a_check_that_is_lost_again_and_again_does_not_end_the_run() {
    let world = World::new(AGENT);
    let check = format!(
        "printf x >> {0}; test $(wc -c < {0}) -gt 4 || kill -9 $PPID; true",
        world.record.with_file_name("checked").display()
    );
    let mut code = world.praxis();
    code.args(["code", "--task", "t", "--approve-as", "tester", "--repo"])
        .arg(&world.repo)
        .args(["--check", &check, "--agent"])
        .arg(format!("sh {}", world.agent.display()));
    let ended = called(&mut code);
    assert_eq!(ended.exit, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(world.stages(), ["plan", "implement"]);
    let checked = std::fs::read_to_string(world.record.with_file_name("checked"));
    assert_eq!(checked.unwrap(), "xxxxx");
}

/// What a person calls done is captured before that is recorded: without its tree nothing is, and afterwards the tree
/// may go.
#[test]
fn a_tree_is_captured_when_its_work_is_called_done() {
    let world = World::new(&AGENT.replace("echo bad", "echo good"));
    let agent = format!(
        "sh {}; test \"$PRAXIS_STAGE\" != implement || kill -9 $PPID",
        world.agent.display()
    );
    let mut code = world.praxis();
    code.args(["code", "--task", "t", "--approve-as", "tester", "--repo"])
        .arg(&world.repo)
        .args(["--check", support::CHECK, "--agent", &agent]);
    assert_eq!(called(&mut code).exit, Some(5));
    let unknown = world.json(&["unknown"]);
    let id = text(&unknown, "/attempts/0/attemptId");
    let clone = std::path::PathBuf::from(text(&unknown, "/attempts/0/tree"));
    let evidence = world.file("finding", "it ended");
    let evidence = evidence.to_str().unwrap();
    let settle = || {
        let mut verb = world.praxis();
        verb.args(["reconcile", id, "--applied", "--evidence", evidence]);
        let mut terminal = Terminal::person(&verb);
        terminal.expect("[y/n");
        terminal.type_line("y");
        terminal.end()
    };
    let aside = clone.with_extension("aside");
    std::fs::rename(&clone, &aside).unwrap();
    let (exit, said) = settle();
    assert_eq!(exit, Some(2), "{said}");
    assert!(
        said.contains("REPO_UNUSABLE") && said.contains("--not-applied"),
        "{said}"
    );
    assert_eq!(text(&world.json(&["show"]), "/standing"), "UNCERTAIN");
    std::fs::rename(&aside, &clone).unwrap();
    let (exit, said) = settle();
    assert_eq!(exit, Some(0), "{said}");
    assert!(said.contains("with patch sha256 "), "{said}");
    std::fs::remove_dir_all(&clone).unwrap();
    let ended = world.verb(&["resume", "--approve-as", "tester"]);
    assert_eq!(ended.exit, Some(0), "{}{}", ended.out, ended.err);
    let branch = text(&world.json(&["show"]), "/branch").to_owned();
    assert_eq!(world.git(&["show", &format!("{branch}:a.txt")]), "good");
}

/// Kills at one point, resumes to the end, compares; returns what it took.
fn killed_at(line: &str, wanted: &End, spent: &str) -> String {
    let point = line.split(' ').next().unwrap();
    let world = World::new(AGENT);
    let log = world.dir.path().join("points");
    let killed = called(
        world
            .code(OPTIONS)
            .env("PRAXIS_CRASH_AT", point)
            .env("PRAXIS_CRASH_LOG", &log),
    );
    assert_eq!(
        killed.signal,
        Some(9),
        "{line}: {}{}",
        killed.out,
        killed.err
    );
    assert!(
        killed.err.contains(&format!("crash point {point}")),
        "{line}: {}",
        killed.err
    );
    let mut decided = 0;
    let mut resumes = 0;
    let nothing_yet = world.verb(&["show"]).exit == Some(2);
    if nothing_yet
        && world
            .json(&["log"])
            .get("events")
            .and_then(Value::as_array)
            .is_none_or(<[Value]>::is_empty)
    {
        // Nothing was committed, so there is nothing to resume: the person types the command again.
        let again = called(&mut world.code(OPTIONS));
        assert_eq!(again.exit, Some(0), "{line}: {}", again.err);
    } else {
        loop {
            resumes += 1;
            assert!(
                resumes <= RESUMES,
                "{line}: still not at an end after {RESUMES} resumes"
            );
            let resumed = world.verb(&["resume", "--approve-as", "tester"]);
            match resumed.exit {
                Some(0) => break,
                Some(5) => decided += world.settle(line),
                other => panic!(
                    "{line}: resume ended with {other:?}: {}{}",
                    resumed.out, resumed.err
                ),
            }
        }
    }
    let (found, found_spent) = end(&world);
    assert_eq!(&found, wanted, "{line}");
    assert_started_once(&world, line);
    if decided == 0 {
        assert_eq!(
            found_spent, spent,
            "{line}: the account differs although nobody decided anything"
        );
    }
    match decided {
        0 => format!("{resumes} resume"),
        _ => {
            // The order of two nodes that wait is not the same in every store, so the dead process says what it did last.
            let log = std::fs::read_to_string(&log).unwrap();
            let committed = log.lines().rfind(|line| line.contains(":after-commit "));
            let last = committed.unwrap_or("nothing");
            format!("{resumes} resumes, a person decided {decided} after {last}")
        }
    }
}

/// No operation's agent started twice: here a person says "not applied" only of an agent that never started.
fn assert_started_once(world: &World, line: &str) {
    let mut starts: BTreeMap<String, usize> = BTreeMap::new();
    for [_, operation, _] in world.starts() {
        *starts.entry(operation).or_default() += 1;
    }
    assert!(
        starts.values().all(|count| *count == 1),
        "{line}: {starts:?}"
    );
}

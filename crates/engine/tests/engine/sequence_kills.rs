//! Kills around the append of a sequence: a real process that drives a run, killed at each point of each of its appends.
//! Invariant: the log has all steps of a sequence or none, no dispatch stands without its admission, and what happened
//! outside happened once. The killed process is this program, running the same test.

use std::path::{Path, PathBuf};
use std::process::Command;

use aiws::record::{EffectClass, RestartPolicy};
use praxis_engine::Shutdown;
use praxis_journal::{FileDisk, Ledger, Options};
use praxis_journal_format::Sealed;
use praxis_model::command::CommandType;
use praxis_model::run::NodeStatus;
use praxis_model::stream::Subject;

use crate::support::{Behaviour, World, id, mission};

const RUN: &str = "driven";
/// Says to the process that is to be killed where its store is.
const CHILD: &str = "PRAXIS_SEQUENCE_ROOT";

/// What is to happen in the run that is killed.
#[derive(Clone, Copy)]
struct Story {
    /// The test, which the process that is killed runs again.
    name: &'static str,
    /// What the outside does.
    behaviour: Behaviour,
    /// Its calls, whatever is killed.
    calls: &'static [&'static str],
    /// How many appends have more than one step.
    sequences: usize,
}

/// A world on a directory that another process made, or is going to find.
fn world_at(root: &Path, story: Story) -> World {
    let world = World::new(EffectClass::Idempotent);
    *world.outside.behaviour.lock().expect("behaviour") = story.behaviour;
    let record = root.join("calls");
    if let Ok(text) = std::fs::read_to_string(&record) {
        let mut calls = world.outside.calls.lock().expect("calls");
        calls.extend(
            text.lines()
                .filter_map(|line| Some(id(line.split_once(' ')?.1))),
        );
    }
    *world.outside.record.lock().expect("record") = Some(record);
    world
}

/// Drives the run to its last node.
async fn drive(world: &World, root: &Path) {
    let open = world.open_at(root).await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    finished(&open).await;
    world.close(open, Shutdown::Drain).await;
}

async fn finished(open: &crate::support::Open) {
    open.until(RUN, |state| {
        let end = state.nodes.get("end");
        end.is_some_and(|end| end.status == NodeStatus::Completed)
    })
    .await;
}

/// Runs this test again in a process of its own, under a crash switch or with a log of its points.
fn child(root: &Path, story: Story, variable: &str, value: &str) -> std::process::ExitStatus {
    let program = std::env::current_exe().expect("a program");
    let ended = Command::new(program)
        .args(["--exact", story.name, "--nocapture"])
        .env(CHILD, root)
        .env(variable, value)
        .output();
    ended.expect("it ran").status
}

/// The run's events as the dead process left them, and whether the store is sound.
fn left(root: &Path) -> Vec<Sealed> {
    let disk = std::sync::Arc::new(FileDisk::new(root.join("store")));
    let options = Options {
        read_only: true,
        ..Options::default()
    };
    let ledger = Ledger::open(disk, &options).expect("opens");
    let report = ledger.verify_deep(&mut |_, _| {}).expect("read");
    assert!(report.is_sound(), "{:?}", report.findings);
    let end = ledger.view().sequence();
    let stream = Subject::run(mission(), id(RUN)).stream();
    let events = (1..=end).filter_map(|sequence| ledger.read(sequence).expect("read"));
    let events = events
        .filter(|sealed| sealed.event.stream == stream)
        .collect();
    ledger.close().expect("closed");
    events
}

fn names(events: &[Sealed]) -> String {
    let names: Vec<&str> = events
        .iter()
        .map(|sealed| sealed.event.kind.name())
        .collect();
    names.join("+")
}

/// Proves T-82, FV-EFF.1, FV-EFF.3, HF-05.1: killed before, behind and after each append, the log has the whole append
/// or nothing of it; the next process ends the run, and each node's effect happened once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_killed_at_every_append_all_of_a_sequence_or_none() {
    killed_everywhere(Story {
        name: "sequence_kills::t_82_killed_at_every_append_all_of_a_sequence_or_none",
        behaviour: Behaviour::Apply,
        calls: &["a", "b"],
        sequences: 5,
    })
    .await;
}

/// Proves T-82, FV-ACC.5, FV-EFF.1, FV-EFF.3: a first try that did nothing is tried again in one append with its dispatch,
/// which is there whole or not at all wherever the process was killed; nothing is called once more than that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_killed_at_every_append_of_a_run_that_tries_again() {
    killed_everywhere(Story {
        name: "sequence_kills::t_82_killed_at_every_append_of_a_run_that_tries_again",
        behaviour: Behaviour::DeclineFirst,
        calls: &["a", "a", "b"],
        sequences: 6,
    })
    .await;
}

async fn killed_everywhere(story: Story) {
    if let Some(root) = std::env::var_os(CHILD).map(PathBuf::from) {
        let world = world_at(&root, story);
        return drive(&world, &root).await;
    }
    let undisturbed = tempfile::TempDir::new().expect("a directory");
    let log = undisturbed.path().join("points");
    let ended = child(
        undisturbed.path(),
        story,
        "PRAXIS_CRASH_LOG",
        &log.display().to_string(),
    );
    assert!(ended.success(), "{ended:?}");
    let log = std::fs::read_to_string(log).expect("points");
    let sequences: Vec<&str> = log.lines().filter(|line| line.contains('+')).collect();
    assert_eq!(sequences.len(), story.sequences * 3, "{log}");
    for line in sequences {
        killed_at(line, story).await;
    }
}

async fn killed_at(line: &str, story: Story) {
    let (at, steps) = line.split_once(' ').expect("a point and its steps");
    let (number, point) = at.split_once(':').expect("a number and a point");
    let dir = tempfile::TempDir::new().expect("a directory");
    let root = dir.path();
    let ended = child(root, story, "PRAXIS_CRASH_AT", at);
    let signal = std::os::unix::process::ExitStatusExt::signal(&ended);
    assert_eq!(signal, Some(9), "{line}");

    let events = left(root);
    let last = events.last().expect("an event");
    let whole = last.event.part.k == last.event.part.of;
    assert!(whole, "{line}: {}", names(&events));
    // The mission's two events are not of the run; every append before this one is whole.
    let appends = events
        .iter()
        .filter(|sealed| sealed.event.part.k.get() == 1)
        .count() as u64
        + 2;
    let number: u64 = number.parse().expect("a number");
    let kept = point != "before-commit";
    assert_eq!(appends, if kept { number } else { number - 1 }, "{line}");
    if kept {
        let parts = last.event.part.of.get() as usize;
        assert_eq!(names(&events[events.len() - parts..]), steps, "{line}");
    }
    let count = |kind| {
        events
            .iter()
            .filter(|sealed| sealed.event.kind == kind)
            .count()
    };
    let control = usize::from(steps.ends_with("admitConsumer") && kept);
    assert_eq!(
        count(CommandType::AdmitConsumer) + count(CommandType::Retry) - control,
        count(CommandType::Dispatch),
        "{line}"
    );

    let world = world_at(root, story);
    let open = world.open_at(root).await;
    finished(&open).await;
    world.close(open, Shutdown::Drain).await;
    let calls = std::fs::read_to_string(root.join("calls")).expect("calls");
    let nodes: Vec<&str> = calls
        .lines()
        .filter_map(|line| Some(line.split_once(' ')?.0))
        .collect();
    assert_eq!(nodes, story.calls, "{line}: {calls}");
    left(root);
}

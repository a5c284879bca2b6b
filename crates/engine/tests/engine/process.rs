//! The process adapter: ends, bounds, environment, group.
//! Invariant: the commands are real; what must not be there is looked for, not waited for.
//! Tests of `praxis_engine::process`.

use std::path::Path;

use praxis_engine::process::{Exit, Finished, Meaning, Process};
use tempfile::TempDir;

use crate::support::settled;

async fn run(process: &Process) -> Finished {
    settled(process.run()).await.expect("it ran")
}

fn in_dir(line: &str) -> (TempDir, Process) {
    let dir = TempDir::new().expect("a directory");
    let process = Process::new(line, dir.path());
    (dir, process)
}

#[tokio::test]
async fn an_exit_says_what_became_of_the_effect() {
    let cases = [
        ("exit 0", Exit::Code(0), Meaning::Applied),
        ("exit 75", Exit::Code(75), Meaning::NotApplied),
        ("exit 1", Exit::Code(1), Meaning::AppliedAndFailed),
        ("kill -TERM $$", Exit::Signal(15), Meaning::AppliedAndFailed),
    ];
    for (line, exit, meaning) in cases {
        let (_dir, process) = in_dir(line);
        let finished = run(&process).await;
        assert_eq!(
            (finished.exit, finished.meaning()),
            (exit, meaning),
            "{line}"
        );
        assert!(!finished.timed_out);
    }
}

#[tokio::test]
async fn the_environment_is_what_was_named_and_the_input_is_empty() {
    let (dir, mut process) = in_dir("cat; env | cut -d= -f1 | sort | tr '\\n' ' '; pwd");
    process
        .set
        .insert("PRAXIS_STAGE".to_owned(), "plan".to_owned());
    process.pass.push("NO_SUCH_VARIABLE".to_owned());
    let finished = run(&process).await;
    let text = finished.stdout.text();
    let (names, place) = text.trim().rsplit_once(' ').expect("names and a place");
    let shell_own = ["PWD", "OLDPWD", "SHLVL", "_"];
    let names: Vec<&str> = names
        .split(' ')
        .filter(|name| !shell_own.contains(name))
        .collect();
    assert_eq!(names, ["PATH", "PRAXIS_STAGE"]);
    assert_eq!(Path::new(place), dir.path().canonicalize().expect("a path"));
}

#[tokio::test]
async fn output_is_bounded_and_says_so() {
    let (dir, mut process) =
        in_dir("i=0; while [ $i -lt 2000 ]; do echo 0123456789; i=$((i+1)); done; echo end");
    process.tail_bytes = 64;
    process.transcript = Some(dir.path().join("transcript"));
    process.transcript_bytes = 100;
    let finished = run(&process).await;
    assert_eq!(finished.stdout.bytes.len(), 64);
    assert_eq!(finished.stdout.total_bytes, 2000 * 11 + 4);
    assert!(
        finished
            .stdout
            .text()
            .starts_with("[21940 bytes before this were left out]\n")
    );
    assert!(finished.stdout.text().ends_with("0123456789\nend\n"));
    assert!(finished.transcript_truncated);
    let transcript = std::fs::read_to_string(dir.path().join("transcript")).expect("a transcript");
    assert!(transcript.starts_with("0123456789\n"));
    assert!(transcript.ends_with("[output beyond this was left out]\n"));
    assert!(transcript.len() < 200);
}

/// The bound ends the whole group, and what it started in the background does not outlive it.
#[tokio::test]
async fn the_bound_ends_the_group() {
    let (dir, mut process) = in_dir("sleep 1000 & echo $! > child; echo $$ > leader; wait");
    process.wall_ms = 200;
    let finished = run(&process).await;
    assert!(finished.timed_out);
    assert_eq!(
        (finished.exit, finished.meaning()),
        (Exit::Signal(9), Meaning::AppliedAndFailed)
    );
    for name in ["leader", "child"] {
        gone(&dir, name).await;
    }
}

/// What a command leaves behind in its group ends with it.
#[tokio::test]
async fn a_background_child_ends_with_its_command() {
    let (dir, process) = in_dir("sleep 1000 >/dev/null 2>&1 & echo $! > child; exit 0");
    assert_eq!(run(&process).await.meaning(), Meaning::Applied);
    gone(&dir, "child").await;
}

/// Dropping the future kills the group: nothing runs on when an engine stops at once.
#[tokio::test]
async fn dropping_the_future_ends_the_group() {
    let (dir, process) = in_dir("echo $$ > leader.new; mv leader.new leader; sleep 1000 & wait");
    let running = tokio::spawn(async move { process.run().await });
    let leader = dir.path().join("leader");
    settled(async {
        while !leader.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    running.abort();
    assert!(running.await.expect_err("aborted").is_cancelled());
    gone(&dir, "leader").await;
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_the_systems_error() {
    let process = Process::new("true", "/nowhere/at/all");
    assert_eq!(
        process.run().await.expect_err("refused").kind(),
        std::io::ErrorKind::NotFound
    );
}

/// Whatever fails after a process began, it ran, and how it ended is what counts: its transcript may be lost alone.
#[tokio::test]
async fn a_transcript_that_cannot_be_kept_is_no_process_that_did_not_run() {
    let (dir, mut process) = in_dir("echo said; echo done > ran; exit 3");
    // Every write to it fails for want of room.
    process.transcript = Some(std::path::PathBuf::from("/dev/full"));
    let finished = run(&process).await;
    assert_eq!(
        (finished.exit, finished.transcript_truncated),
        (Exit::Code(3), true)
    );
    assert_eq!(finished.stdout.text(), "said\n");
    assert!(dir.path().join("ran").exists());
}

#[test]
fn an_end_that_nobody_saw_is_uncertain() {
    let finished = Finished {
        exit: Exit::Unseen,
        timed_out: false,
        stopped: false,
        stdout: Default::default(),
        stderr: Default::default(),
        transcript_truncated: false,
        duration_ms: 0,
    };
    assert_eq!(finished.meaning(), Meaning::Uncertain);
}

/// Waits until the process whose id stands in the file is gone, or nobody's child any more but a zombie.
async fn gone(dir: &TempDir, name: &str) {
    let text = std::fs::read_to_string(dir.path().join(name)).expect("an id");
    let stat = format!("/proc/{}/stat", text.trim());
    let is_gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    settled(async {
        while !is_gone() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

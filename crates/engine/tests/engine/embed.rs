//! The example of embedding, run as its readers run it, and killed at crash points.
//! Invariant: a real process, on a directory of its own.
//! Tests of `examples/embed.rs` and of the crash points.

use std::path::{Path, PathBuf};

use praxis_engine::process::{Exit, Finished, Process};

const ALL_WELL: &str = "hello from greet\n2 hand-offs committed\n";

/// Beside this test's own binary stands the directory of the examples.
fn example() -> PathBuf {
    let own = std::env::current_exe().expect("a path");
    own.parent()
        .and_then(Path::parent)
        .expect("a profile")
        .join("examples/embed")
}

/// Runs the example within a bound, under this crash switch.
async fn run(store: &Path, crash_at: Option<&str>, log: Option<&Path>) -> Finished {
    let line = format!("exec '{}' '{}'", example().display(), store.display());
    let mut process = Process::new(line, store.parent().expect("a parent"));
    process.wall_ms = 120_000;
    if let Some(crash_at) = crash_at {
        process
            .set
            .insert("PRAXIS_CRASH_AT".to_owned(), crash_at.to_owned());
    }
    if let Some(log) = log {
        process
            .set
            .insert("PRAXIS_CRASH_LOG".to_owned(), log.display().to_string());
    }
    process.run().await.expect("the example was built")
}

/// The example builds, runs to its end, and is as short as promised.
#[tokio::test]
async fn the_example_runs() {
    let source = include_str!("../../examples/embed.rs");
    assert!(source.lines().count() < 60, "under 60 lines");
    let dir = tempfile::TempDir::new().expect("a directory");
    let log = dir.path().join("points");
    let output = run(&dir.path().join("store"), None, Some(&log)).await;
    assert_eq!(output.exit, Exit::Code(0), "{}", output.stderr.text());
    assert_eq!(output.stdout.text(), ALL_WELL);
    let log = std::fs::read_to_string(log).expect("a log of points");
    assert!(log.starts_with(
        "1:before-commit openMission\n1:after-commit openMission\n1:before-reply openMission\n"
    ));
}

/// Killed at every crash point before the effect is authorized, the example is run again and ends as it would have:
/// its requests are replays or first tries, and the effect happens once.
#[tokio::test]
async fn a_killed_process_goes_on_from_its_requests() {
    // The fourth append admits and dispatches.
    for number in 1..=4 {
        let points = ["before-commit", "after-commit", "before-reply"];
        let points = if number < 4 {
            &points[..]
        } else {
            &points[..1]
        };
        for point in points {
            let dir = tempfile::TempDir::new().expect("a directory");
            let store = dir.path().join("store");
            let at = format!("{number}:{point}");
            let killed = run(&store, Some(&at), None).await;
            assert_eq!(
                killed.exit,
                Exit::Signal(9),
                "{at}: {}",
                killed.stderr.text()
            );
            assert!(
                killed
                    .stderr
                    .text()
                    .contains(&format!("crash point {at} at ")),
                "{at}"
            );
            assert_eq!(killed.stdout.text(), "", "{at}");
            let again = run(&store, None, None).await;
            assert_eq!(again.exit, Exit::Code(0), "{at}: {}", again.stderr.text());
            assert_eq!(again.stdout.text(), ALL_WELL, "{at}");
        }
    }
}

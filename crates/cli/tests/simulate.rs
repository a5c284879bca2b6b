//! `praxis simulate` as a user runs it: what it finds, what it says, how it exits.
//! Invariant: it needs no store, and writes nothing but packets where it was told to. Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::{Command, Output};

fn simulate(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_praxis"));
    command.current_dir(folder).arg("simulate").args(args);
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Some seeds find nothing, twice the same, and leave nothing behind.
#[test]
fn seeds_find_nothing_and_are_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--seeds", "4", "--base", "7", "--steps", "40"];
    let (exit, out, err) = simulate(folder.path(), &args);
    assert_eq!(exit, Some(0), "{out}{err}");
    assert!(out.contains("4 seeds from 7"), "{out}");
    assert!(out.ends_with("nothing was found\n"), "{out}");
    let trace = |out: &str| {
        let (_, trace) = out.split_once("the trace of all is ").unwrap();
        trace.lines().next().unwrap().to_owned()
    };
    let (_, again, _) = simulate(folder.path(), &args);
    assert_eq!(trace(&out), trace(&again));
    let (_, other, _) = simulate(
        folder.path(),
        &["--seeds", "4", "--base", "8", "--steps", "40"],
    );
    assert_ne!(trace(&out), trace(&other));
    let left: Vec<_> = folder.path().read_dir().unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A packet of a mended fault is replayed: it tells its story, and that this build passes.
#[test]
fn a_packet_tells_its_story() {
    let packet = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../simulations/regressions/renamed-and-not-durable.json");
    let folder = tempfile::tempdir().unwrap();
    let packet = packet.to_str().unwrap();
    let (exit, out, err) = simulate(folder.path(), &["--replay", packet]);
    assert_eq!(exit, Some(0), "{out}{err}");
    assert!(out.contains("step 0"), "{out}");
    assert!(
        out.contains("nothing is broken: this build passes"),
        "{out}"
    );
}

/// Only builds that can plant a defect do; there it is caught by its own promise, and a wrong name is told the right ones.
#[test]
fn a_planted_defect_is_caught_by_its_promise() {
    let folder = tempfile::tempdir().unwrap();
    let planted = ["--plant", "hash-without-epoch", "--seeds", "20"];
    let (exit, out, err) = simulate(folder.path(), &planted);
    if cfg!(debug_assertions) {
        assert_eq!(exit, Some(0), "{out}{err}");
        assert!(
            out.contains("caught by  3 (An event's hash covers everything but itself) on seeds"),
            "{out}"
        );
        let (exit, _, err) = simulate(folder.path(), &["--plant", "roses"]);
        assert_ne!(exit, Some(0));
        assert!(err.contains("fence-unchecked"), "{err}");
    } else {
        assert_ne!(exit, Some(0), "{out}");
        assert!(err.contains("debug assertions"), "{err}");
    }
}

/// What makes no sense is refused with what was expected, and runs nothing.
#[test]
fn nonsense_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (args, word) in [
        (&["--faults", "roses"][..], "--faults list"),
        (&["--base", "zebra"], "hexadecimal"),
        (&["--replay", "nothing-there.json"], "expected a packet"),
        (&["--steps", "0"], "1..=2000"),
        (&["--floors"], "--report"),
        (&["--report", "--exhaustive", "21"], "up to 20"),
    ] {
        let (exit, out, err) = simulate(folder.path(), args);
        assert_ne!(exit, Some(0), "{args:?}");
        assert!(out.is_empty(), "{args:?}: {out}");
        assert!(err.contains(word), "{args:?}: {err}");
    }
}

/// The kinds of fault are listed, each with a sentence.
#[test]
fn faults_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (exit, out, _) = simulate(folder.path(), &["--faults", "list"]);
    assert_eq!(exit, Some(0));
    assert!(
        out.lines().filter(|line| line.starts_with("  ")).count() >= 45,
        "{out}"
    );
}

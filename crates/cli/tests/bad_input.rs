//! Bad input of every verb: a code, an exit, the next step named, and nothing changed.
//! Invariant: whatever is refused leaves repository and store byte for byte as they were.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use support::{AGENT, Called, World, called, files, finished, repository, scratch, text};

/// Refused with this code and exit, said with the words, in text and in JSON.
fn refused(called: &Called, json: &Called, code: &str, exit: i32, words: &str) {
    assert_eq!(
        called.exit,
        Some(exit),
        "{code}: {}{}",
        called.out,
        called.err
    );
    assert!(called.err.contains(code), "{code}: {}", called.err);
    assert!(
        called.err.contains(words),
        "{code}: expected {words:?} in {}",
        called.err
    );
    let value = support::parse(&json.out);
    assert_eq!(text(&value, "/error/code"), code);
    assert!(!text(&value, "/remedy").is_empty());
    assert_eq!(json.exit, Some(exit));
}

fn everything(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    // Who held the lock last is no part of a store's content.
    files(dir, &|path| path.ends_with("engine.lock"))
}

#[test]
fn code_refuses_bad_repositories_before_it_makes_a_store() {
    let world = World::new(AGENT);
    let at = |name: &str| world.dir.path().join(name);
    fs::create_dir(at("plain")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    support::git(&at("empty"), &["init", "--quiet"]);
    fs::create_dir(at("bare")).unwrap();
    support::git(&at("bare"), &["init", "--quiet", "--bare"]);
    repository(&at("dirty"));
    fs::write(at("dirty").join("a.txt"), "changed").unwrap();
    let cases = [
        ("missing", "REPO_NOT_FOUND", "missing"),
        ("plain", "REPO_NOT_FOUND", "plain"),
        ("empty", "REPO_UNUSABLE", "commit something"),
        ("bare", "REPO_UNUSABLE", "work tree"),
        ("dirty", "REPO_DIRTY", "stash --include-untracked"),
    ];
    for (name, code, words) in cases {
        let call = |json: &[&str]| {
            let mut command = world.praxis();
            command
                .arg("code")
                .arg("--repo")
                .arg(at(name))
                .args(["--task", "t", "--agent", "true", "--check", "true"]);
            called(command.args(json))
        };
        let before = if at(name).exists() {
            files(&at(name), &|_| false)
        } else {
            Vec::new()
        };
        refused(&call(&[]), &call(&["--json"]), code, 2, words);
        let after = if at(name).exists() {
            files(&at(name), &|_| false)
        } else {
            Vec::new()
        };
        assert_eq!(after, before, "{name}");
        assert!(!world.store.exists(), "{name}: a store was made");
    }
}

#[test]
fn code_refuses_bad_options() {
    let world = World::new(AGENT);
    let cases: &[(&[&str], &str)] = &[
        (&["--env", "A=B"], "--env"),
        (&["--env", "PRAXIS_STAGE"], "--env"),
        (
            &["--env", "SURELY_NOT_SET_HERE"],
            "export SURELY_NOT_SET_HERE",
        ),
        (&["--approve-as", ""], "--approve-as"),
        (&["--approve-as", "system:engine"], "--approve-as"),
        (&["--approve-as", "rule:check-passed"], "--approve-as"),
        (&["--max-corrections", "21"], "--max-corrections"),
        (&["--timeout", "0"], "--timeout"),
        (&["--budget", "-1"], "--budget"),
        (&["--budget", "0"], "--budget"),
        (&["--budget", "many"], "--budget"),
    ];
    for (options, words) in cases {
        let ran = called(&mut world.code(options));
        assert_eq!(ran.exit, Some(2), "{options:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{options:?}: {}", ran.err);
        assert!(!world.store.exists(), "{options:?}: a store was made");
    }
    let mut inside = Command::new(env!("CARGO_BIN_EXE_praxis"));
    inside
        .arg("--store")
        .arg(world.repo.join("store"))
        .arg("code")
        .arg("--repo")
        .arg(&world.repo);
    let ran = called(inside.args(["--task", "t", "--agent", "true", "--check", "true"]));
    assert_eq!(ran.exit, Some(2), "{}", ran.err);
    assert!(
        ran.err.contains("--store") && !world.repo.join("store").exists(),
        "{}",
        ran.err
    );
}

/// Every verb that opens a store, as it is typed.
const VERBS: &[&[&str]] = &[
    &["resume"],
    &["resume", "r-x", "--approve-as", "t"],
    &["show"],
    &["log"],
    &["unknown"],
    &["reconcile", "abc", "--applied", "--evidence", "/dev/null"],
    &["verify"],
    &["export", "-"],
];

fn every_verb(store: &Path, code: &str, exit: i32, words: &str) {
    for verb in VERBS {
        // The evidence of reconcile is looked at first; give it a regular file.
        let file = store.with_extension("evidence");
        fs::write(&file, "seen").unwrap();
        let verb: Vec<String> = verb
            .iter()
            .map(|arg| arg.replace("/dev/null", file.to_str().unwrap()))
            .collect();
        let call = |json: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_praxis"));
            called(command.arg("--store").arg(store).args(&verb).args(json))
        };
        refused(&call(&[]), &call(&["--json"]), code, exit, words);
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn every_verb_refuses_a_missing_store() {
    let dir = scratch();
    every_verb(&dir.path().join("nowhere"), "STORE_NOT_FOUND", 2, "nowhere");
    assert!(!dir.path().join("nowhere").exists());
}

#[test]
fn every_verb_refuses_what_is_no_store() {
    let dir = scratch();
    let path = dir.path().join("folder");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(path.join("precious"), "data").unwrap();
    every_verb(&path, "NOT_A_STORE", 2, "store");
    assert_eq!(
        files(&path, &|_| false).len(),
        1,
        "something was made in it"
    );
    let world = World::new(AGENT);
    let mut code = Command::new(env!("CARGO_BIN_EXE_praxis"));
    code.arg("--store")
        .arg(&path)
        .arg("code")
        .arg("--repo")
        .arg(&world.repo);
    let ran = called(code.args(["--task", "t", "--agent", "true", "--check", "true"]));
    assert_eq!(ran.exit, Some(2), "{}", ran.err);
    assert!(ran.err.contains("NOT_A_STORE"), "{}", ran.err);
    assert_eq!(
        files(&path, &|path| path.ends_with("engine.lock")).len(),
        1,
        "something was made in it"
    );
}

#[test]
fn every_verb_refuses_a_newer_store() {
    let world = finished();
    let file = world.store.join("praxis-store.json");
    let newer = fs::read_to_string(&file)
        .unwrap()
        .replace("\"version\":0", "\"version\":9");
    fs::write(&file, newer).unwrap();
    let before = everything(&world.store);
    every_verb(&world.store, "STORE_TOO_NEW", 2, "9");
    assert_eq!(everything(&world.store), before);
}

#[test]
fn every_verb_refuses_a_store_that_others_can_enter() {
    let world = finished();
    fs::set_permissions(&world.store, fs::Permissions::from_mode(0o755)).unwrap();
    every_verb(&world.store, "STORE_PERMISSIONS", 2, "chmod 700");
}

#[test]
fn every_verb_refuses_a_store_that_another_process_has() {
    let world = finished();
    let lock = fs::File::options()
        .read(true)
        .write(true)
        .open(world.store.join("engine.lock"))
        .unwrap();
    lock.lock().unwrap();
    // Whoever has it says so in it; a holder that has ended is waited for.
    let holder = format!("process {}, since 0 ms of host time\n", std::process::id());
    fs::write(world.store.join("engine.lock"), holder).unwrap();
    let before = everything(&world.store);
    every_verb(&world.store, "STORE_LOCKED", 2, "process");
    assert_eq!(everything(&world.store), before);
}

#[test]
fn verbs_that_name_something_refuse_what_is_not_there() {
    let world = finished();
    let before = everything(&world.store);
    let evidence = world.file("evidence", "seen");
    let evidence = evidence.to_str().unwrap();
    let folder = world.dir.path().to_str().unwrap();
    let existing = world.file("existing", "kept");
    let cases: &[(&[&str], &str, i32, &str)] = &[
        (
            &["show", "r-nothing"],
            "RUN_NOT_FOUND",
            2,
            "the latest ones are",
        ),
        (&["log", "r-nothing"], "RUN_NOT_FOUND", 2, "r-nothing"),
        (&["unknown", "r-nothing"], "RUN_NOT_FOUND", 2, "r-nothing"),
        (&["resume", "r-nothing"], "RUN_NOT_FOUND", 2, "r-nothing"),
        (
            &["reconcile", "abc", "--applied", "--evidence", evidence],
            "ATTEMPT_NOT_FOUND",
            2,
            "praxis: ATTEMPT",
        ),
        (
            &["reconcile", "abc", "--applied", "--evidence", "/nowhere"],
            "EVIDENCE_UNREADABLE",
            2,
            "/nowhere",
        ),
        (
            &["reconcile", "abc", "--applied", "--evidence", folder],
            "EVIDENCE_UNREADABLE",
            2,
            "regular file",
        ),
        (
            &["export", existing.to_str().unwrap()],
            "USAGE",
            2,
            "name a new file",
        ),
        (&["export", "/nowhere/export"], "USAGE", 2, "/nowhere"),
        (
            &["explain", "STORE_LOCKD"],
            "CODE_UNKNOWN",
            2,
            "did you mean",
        ),
    ];
    for (verb, code, exit, words) in cases {
        let json = [*verb, &["--json"]].concat();
        refused(&world.verb(verb), &world.verb(&json), code, *exit, words);
    }
    assert_eq!(fs::read_to_string(existing).unwrap(), "kept");
    assert_eq!(everything(&world.store), before);
}

#[test]
fn a_wrong_command_line_is_usage() {
    let world = World::new(AGENT);
    let cases: &[&[&str]] = &[
        &[],
        &["nonsense"],
        &["code"],
        &["reconcile", "abc", "--evidence", "x"],
        &[
            "reconcile",
            "abc",
            "--applied",
            "--not-applied",
            "--evidence",
            "x",
        ],
        &["show", "a", "b"],
    ];
    for args in cases {
        let ran = world.verb(args);
        assert_eq!(ran.exit, Some(2), "{args:?}: {}", ran.err);
    }
    assert_eq!(world.verb(&["--help"]).exit, Some(0));
    assert_eq!(world.verb(&["code", "--help"]).exit, Some(0));
}

/// Damage is found and named.
#[test]
fn a_damaged_store_fails_its_verification() {
    let world = finished();
    let log = world.store.join("log-000001.redb");
    let mut bytes = fs::read(&log).unwrap();
    let needle = b"approve-as-is-not-here";
    assert!(!bytes.windows(needle.len()).any(|window| window == needle));
    // One letter of the acceptance's actor, wherever the log has it.
    let actor = b"\"actorId\":\"tester\"";
    let at = bytes
        .windows(actor.len())
        .rposition(|window| window == actor)
        .unwrap();
    bytes[at + 11] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let verified = world.verb(&["verify"]);
    assert_eq!(verified.exit, Some(6), "{}{}", verified.out, verified.err);
    assert!(
        verified.out.contains("event") || verified.err.contains("sequence"),
        "{}{}",
        verified.out,
        verified.err
    );
}

/// A run whose variable is not set here stays as it is, also one that a dead owner left; others go on.
#[test]
fn resume_without_a_variable_of_the_run_writes_nothing() {
    let world = World::new(AGENT);
    let mut first = world.code(&["--approve-as", "tester", "--env", "WANTED_HERE"]);
    let killed = called(
        first
            .env("WANTED_HERE", "x")
            .env("PRAXIS_CRASH_AT", "6:before-reply"),
    );
    assert_eq!(killed.signal, Some(9), "{}", killed.err);
    let run = text(&world.json(&["show"]), "/run").to_owned();
    let before = everything(&world.store);
    for args in [vec!["resume"], vec!["resume", run.as_str()]] {
        let words = format!(
            "WANTED_HERE=... praxis --store {} resume",
            world.store.display()
        );
        let json = [args.as_slice(), &["--json"]].concat();
        refused(&world.verb(&args), &world.verb(&json), "USAGE", 2, &words);
        assert_eq!(everything(&world.store), before, "{args:?}");
    }
    // Another run that is live, too, is gone on with, and this one is not started.
    let waits = called(&mut world.code(&["--no-wait"]));
    assert_eq!(waits.exit, Some(3), "{}", waits.err);
    let resumed = world.verb(&["resume", "--approve-as", "tester"]);
    assert_eq!(resumed.exit, Some(3), "{}", resumed.err);
    assert!(
        resumed.err.contains("WANTED_HERE=...") && resumed.out.contains("accepted"),
        "{}{}",
        resumed.out,
        resumed.err
    );
    assert_ne!(text(&world.json(&["show", &run]), "/standing"), "ACCEPTED");
    let mut again = world.praxis();
    again.args(["resume", &run, "--approve-as", "tester"]);
    let done = called(again.env("WANTED_HERE", "x"));
    assert_eq!(done.exit, Some(0), "{}", done.err);
}

/// Holds and causes are words of a page; `explain` knows them as it knows codes.
#[test]
fn explain_knows_what_pages_print() {
    let world = World::new(AGENT);
    let words = [
        ("OPERATOR", "3"),
        ("CANCELED", "4"),
        ("ATTEMPT_LIMIT", "3"),
        ("COST_LIMIT", "3"),
        ("TIME_LIMIT", "3"),
        ("ARTIFACT", "3"),
        ("RESTART", "3"),
        ("RULE", "3"),
        ("INVALIDATED_INPUT", "3"),
        ("PLAN_FAILED", "4"),
        ("APPROVAL_DENIED", "4"),
        ("ACCEPTANCE_REJECTED", "4"),
    ];
    for (word, exit) in words {
        let explained = world.verb(&["explain", word]);
        assert_eq!(explained.exit, Some(0), "{word}: {}", explained.err);
        let line = format!("exit code   {exit}\n");
        assert!(explained.out.contains(&line), "{}", explained.out);
        assert_eq!(text(&world.json(&["explain", word]), "/word"), word);
        assert!(world.verb(&["explain"]).out.contains(word), "{word}");
    }
    assert_eq!(world.verb(&["explain", "ATTEMPT_LIMITS"]).exit, Some(2));
}

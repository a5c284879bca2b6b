//! Damaged stores and hostile files in them: nothing is shown as whole that is not, nothing outside is touched.
//! Invariant: victims are scratch files of the test; a verb that would hang fails by the harness's own end.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use support::{AGENT, Called, World, finished};

fn flip(log: &Path, needle: &[u8], last: bool) {
    let mut bytes = fs::read(log).unwrap();
    let mut places = bytes.windows(needle.len());
    let found = |window: &[u8]| window == needle;
    let at = if last {
        places.rposition(found)
    } else {
        places.position(found)
    };
    bytes[at.unwrap() + needle.len() - 2] ^= 1;
    fs::write(log, &bytes).unwrap();
}

fn said(called: &Called, code: &str, exit: i32) {
    assert_eq!(called.exit, Some(exit), "{}{}", called.out, called.err);
    assert!(called.err.contains(code), "{code}: {}", called.err);
    assert!(called.out.is_empty(), "{}", called.out);
}

/// Damage that the index does not cover is refused by every verb that reads, also by an export, with the
/// store's own code; only `verify` goes on.
#[test]
fn a_log_cut_by_damage_is_never_shown_as_whole() {
    let world = finished();
    // Without an index, everything is folded from the log, up to the damage.
    fs::remove_file(world.store.join("index.redb")).unwrap();
    flip(
        &world.store.join("log-000001.redb"),
        br#""actorId":"tester""#,
        true,
    );
    let file = world.dir.path().join("audit.jsonl");
    let evidence = world.file("evidence", "seen");
    let verbs: &[&[&str]] = &[
        &["show"],
        &["log"],
        &["unknown"],
        &["resume"],
        &["export", "-"],
        &["export", file.to_str().unwrap()],
        &[
            "reconcile",
            "a",
            "--applied",
            "--evidence",
            evidence.to_str().unwrap(),
        ],
    ];
    for verb in verbs {
        said(&world.verb(verb), "STORE_CORRUPT", 6);
    }
    said(&support::called(&mut world.code(&[])), "STORE_CORRUPT", 6);
    assert!(!file.exists(), "a damaged log was exported");
    let verified = world.verb(&["verify"]);
    assert_eq!(verified.exit, Some(6), "{}{}", verified.out, verified.err);
    assert!(verified.out.contains("NOT verified"), "{}", verified.out);
}

/// The files of a store are opened as plain files alone: a link's target stays as it is, a pipe hangs nobody.
#[test]
fn links_and_pipes_in_a_store_are_refused_and_touch_nothing() {
    let world = finished();
    let victim = world.file("victim", "precious");
    for name in ["engine.lock", "praxis-store.json", "index.redb"] {
        let path = world.store.join(name);
        let kept = fs::read(&path).unwrap();
        for kind in ["link", "pipe", "second name"] {
            if kind == "second name" && name != "engine.lock" {
                continue;
            }
            fs::remove_file(&path).unwrap();
            match kind {
                "link" => symlink(&victim, &path).unwrap(),
                "pipe" => mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
                _ => fs::hard_link(&victim, &path).unwrap(),
            }
            for verb in [&["show"][..], &["resume"], &["verify"]] {
                let ran = world.verb(verb);
                assert_eq!(ran.signal, None, "{name} {kind} {verb:?}");
                if name == "engine.lock" {
                    assert_eq!(ran.exit, Some(2), "{kind} {verb:?}: {}", ran.err);
                    assert!(ran.err.contains("STORE_PERMISSIONS"), "{}", ran.err);
                    assert!(ran.err.contains("rm "), "{}", ran.err);
                }
                assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
            }
            let _ = fs::remove_file(&path);
            fs::write(&path, &kept).unwrap();
        }
    }
    assert_eq!(world.verb(&["verify"]).exit, Some(0));
}

/// A holder that was killed may leave its lock to a child for a moment: that one is waited for.
#[test]
fn the_lock_of_a_holder_that_has_ended_is_waited_for() {
    let world = finished();
    let path = world.store.join("engine.lock");
    let lock = fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    lock.lock().unwrap();
    // A process number that no Linux gives.
    fs::write(&path, "process 4194305, since 0 ms of host time\n").unwrap();
    let mut verify = world
        .praxis()
        .arg("verify")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // It has the file open: now it is about to try, or tries.
    let open = format!("/proc/{}/fd", verify.id());
    let at_it = || {
        let fds = fs::read_dir(&open).into_iter().flatten().flatten();
        fds.filter_map(|fd| fs::read_link(fd.path()).ok())
            .any(|target| target == path.canonicalize().unwrap())
    };
    while !at_it() && verify.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    drop(lock);
    assert_eq!(verify.wait().unwrap().code(), Some(0));
}

/// A creation that was killed says what it left, and `code` mends it.
#[test]
fn a_store_that_was_begun_says_so() {
    let world = World::new(AGENT);
    fs::create_dir(&world.store).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&world.store, mode).unwrap();
    fs::write(world.store.join("log-000001.redb.unfinished"), "half").unwrap();
    let shown = world.verb(&["show"]);
    said(&shown, "NOT_A_STORE", 2);
    assert!(shown.err.contains("praxis code"), "{}", shown.err);
    let ran = support::called(&mut world.code(&["--approve-as", "tester"]));
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
}

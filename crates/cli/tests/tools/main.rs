//! The verbs about the store and the program itself, as a person types them.
//! Invariant: a look changes nothing, a backup is a store or is not there, a clean-up takes nothing that is needed.
//! `cargo test -p praxis-cli --test tools` runs it.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod backup;
mod checkpoint;
mod clean;
mod deep;
mod doctor;
mod program;
mod project;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use aiws::json::Value;
use support::{World, called, finished, text};

/// Bytes under their digest in the artifacts, put there so many days ago.
fn store_bytes(world: &World, bytes: &[u8], days: u64) -> PathBuf {
    let digest = aiws::digest::sha256(bytes);
    let path = world.store.join("artifacts").join(digest.to_string());
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    age(&path, days);
    path
}

fn age(path: &Path, days: u64) {
    let time = SystemTime::now() - Duration::from_secs(days * 86_400);
    File::open(path).unwrap().set_modified(time).unwrap();
}

/// The names of runs in a member of what `clean --json` says.
fn named(value: &Value, member: &str) -> BTreeSet<String> {
    let all = value.get(member).and_then(Value::as_array).unwrap();
    all.iter()
        .map(|tree| text(tree, "/run").to_owned())
        .collect()
}

/// While an engine has the store, it is the one that looks, copies and cleans; what it goes on with stays.
#[test]
fn a_live_engine_looks_copies_and_cleans_for_others() {
    let world = finished();
    let mut waiting = world.code(&[]);
    waiting.stdout(Stdio::null()).stderr(Stdio::null());
    let mut engine = waiting.spawn().unwrap();
    let asks = |world: &World| {
        let inbox = world.json(&["inbox"]);
        // Until it serves, there is nobody to ask.
        let items = inbox.get("items").and_then(Value::as_array);
        items.is_some_and(|items| !items.is_empty())
    };
    while !asks(&world) {
        assert!(engine.try_wait().unwrap().is_none(), "it ended by itself");
    }
    let looked = world.verb(&["doctor"]);
    assert_eq!(looked.exit, Some(0), "{}{}", looked.out, looked.err);
    let held = format!("process {} has the store and answers this", engine.id());
    assert!(looked.out.contains(&held), "{}", looked.out);
    assert!(
        looked.out.contains("an engine answers on it"),
        "{}",
        looked.out
    );
    let to = world.dir.path().join("backup");
    let made = world.verb(&["backup", to.to_str().unwrap()]);
    assert_eq!(made.exit, Some(0), "{}{}", made.out, made.err);
    let cleaned = world.json(&["clean"]);
    assert_eq!(
        (
            named(&cleaned, "trees").len(),
            named(&cleaned, "kept").len()
        ),
        (1, 1)
    );
    let pid = rustix::process::Pid::from_child(&engine);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    engine.wait().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_praxis"));
    command
        .arg("--store")
        .arg(&to)
        .arg("verify")
        .stdin(Stdio::null());
    assert_eq!(called(&mut command).exit, Some(0));
    let resumed = world.verb(&["resume", "--approve-as", "tester"]);
    assert_eq!(resumed.exit, Some(0), "{}{}", resumed.out, resumed.err);
}

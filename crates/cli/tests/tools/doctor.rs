//! `praxis doctor` on sound and spoiled stores.
//! Invariant: a look changes nothing.
//! Part of the tests of `tools`.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use aiws::json::Value;

use crate::support::{AGENT, World, files, finished, text};

/// The findings of a doctor's look, by name.
fn findings(value: &Value) -> Vec<(String, String)> {
    let findings = value.get("findings").and_then(Value::as_array).unwrap();
    let pair = |finding: &Value| {
        (
            text(finding, "/name").to_owned(),
            text(finding, "/level").to_owned(),
        )
    };
    findings.iter().map(pair).collect()
}

fn level(value: &Value, name: &str) -> String {
    let all = findings(value);
    let found = all.iter().find(|(known, _)| known == name);
    found
        .unwrap_or_else(|| panic!("no finding {name} in {all:?}"))
        .1
        .clone()
}

#[test]
fn doctor_finds_a_sound_store_well_and_changes_nothing() {
    let world = finished();
    let before = files(&world.store, &|_| false);
    let looked = world.verb(&["doctor"]);
    assert_eq!(looked.exit, Some(0), "{}{}", looked.out, looked.err);
    assert!(looked.out.contains("all is well"), "{}", looked.out);
    assert_eq!(files(&world.store, &|_| false), before);
    let value = world.json(&["doctor"]);
    assert_eq!(text(&value, "/level"), "ok");
    for name in [
        "git",
        "shell",
        "pidfd",
        "modes",
        "artifacts",
        "room",
        "lock",
        "socket",
        "store",
        "attempts",
        "trees",
    ] {
        assert_eq!(level(&value, name), "ok", "{name}");
    }
}

#[test]
fn doctor_names_what_is_wrong_and_what_to_do() {
    // No store is no illness.
    let world = World::new(AGENT);
    let looked = world.verb(&["doctor"]);
    assert_eq!(looked.exit, Some(0), "{}", looked.out);
    assert!(!world.store.exists());

    let world = finished();
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    // A file that others may read is a warning.
    let log = world.store.join("log-000001.redb");
    mode(&log, 0o644);
    let value = world.json(&["doctor"]);
    assert_eq!(
        (level(&value, "modes"), text(&value, "/level")),
        ("warn".to_owned(), "warn")
    );
    mode(&log, 0o600);
    // A directory that others may enter is refused by every verb.
    mode(&world.store, 0o755);
    let looked = world.verb(&["doctor"]);
    assert_eq!(looked.exit, Some(1), "{}", looked.out);
    assert!(looked.out.contains("chmod 700"), "{}", looked.out);
    mode(&world.store, 0o700);
    // What is no socket at its place was put there by somebody.
    let socket = world.store.join("engine.sock");
    let _ = fs::remove_file(&socket);
    fs::write(&socket, "").unwrap();
    mode(&socket, 0o600);
    assert_eq!(level(&world.json(&["doctor"]), "socket"), "bad");
    fs::remove_file(&socket).unwrap();
    // One that nobody listens on any more is the rest of a killed engine.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    mode(&socket, 0o600);
    let looked = world.verb(&["doctor"]);
    assert!(
        looked.out.contains("left by an engine that was killed"),
        "{}",
        looked.out
    );
    fs::remove_file(&socket).unwrap();
    // Damage.
    fs::write(&log, "no database").unwrap();
    let looked = world.verb(&["doctor"]);
    assert_eq!(looked.exit, Some(1), "{}", looked.out);
    assert!(looked.out.contains("praxis verify"), "{}", looked.out);
}

/// The store is held by hand, as an engine holds it.
#[test]
fn doctor_says_who_has_the_store() {
    let world = finished();
    let lock = world.store.join("engine.lock");
    let held = File::options().write(true).open(&lock).unwrap();
    held.lock().unwrap();
    fs::write(
        &lock,
        format!(
            "process {}, since 2026-11-30 17:59:59Z\n",
            std::process::id()
        ),
    )
    .unwrap();
    let looked = world.verb(&["doctor"]);
    assert_eq!(looked.exit, Some(0), "{}", looked.out);
    assert!(
        looked
            .out
            .contains(&format!("process {}", std::process::id())),
        "{}",
        looked.out
    );
    assert!(looked.out.contains("it is alive"), "{}", looked.out);
}

//! `praxis backup`: what it makes, what it refuses, and what is left of a killed one.
//! Invariant: a backup is a store or is not there.
//! Part of the tests of `tools`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::store_bytes;
use crate::support::{called, files, finished};

/// Proves STO-7: a backup opens as a store: it verifies, shows the run, and exports the very bytes.
#[test]
fn sto_7_a_backup_is_a_store() {
    let world = finished();
    let to = world.dir.path().join("backup");
    let made = world.verb(&["backup", to.to_str().unwrap()]);
    assert_eq!(made.exit, Some(0), "{}{}", made.out, made.err);
    assert!(made.out.contains("not known to it"), "{}", made.out);
    let of = |store: &Path, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_praxis"));
        command
            .arg("--store")
            .arg(store)
            .args(args)
            .stdin(Stdio::null());
        called(&mut command)
    };
    let verified = of(&to, &["verify"]);
    assert_eq!(verified.exit, Some(0), "{}{}", verified.out, verified.err);
    let export = of(&world.store, &["export"]).out;
    assert!(!export.is_empty());
    assert_eq!(of(&to, &["export"]).out, export);
    let (one, two) = (
        of(&world.store, &["show", "--json"]),
        of(&to, &["show", "--json"]),
    );
    assert_eq!(two.exit, Some(0), "{}", two.err);
    assert_eq!(one.out, two.out);
    let stored = |store: &Path| {
        let mut files: Vec<PathBuf> = fs::read_dir(store.join("artifacts"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
            .iter()
            .map(|path| {
                (
                    path.file_name().unwrap().to_owned(),
                    fs::read(path).unwrap(),
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(stored(&to), stored(&world.store));
    for (path, _) in files(&to, &|_| false) {
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o077,
            0,
            "{}",
            path.display()
        );
    }
    // An empty directory is taken, too.
    let empty = world.dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(
        world.verb(&["backup", empty.to_str().unwrap()]).exit,
        Some(0)
    );
    assert_eq!(of(&empty, &["verify"]).exit, Some(0));
}

#[test]
fn a_backup_is_refused_where_it_would_harm_or_lie() {
    let world = finished();
    let dir = world.dir.path();
    fs::create_dir(dir.join("full")).unwrap();
    fs::write(dir.join("full/letter"), "mine").unwrap();
    fs::write(dir.join("file"), "mine").unwrap();
    let inside = world.store.join("backup");
    let cases = [
        (dir.join("full"), 2, "USAGE"),
        (dir.join("file"), 2, "USAGE"),
        (dir.join("none/deep"), 2, "USAGE"),
        (world.store.clone(), 2, "USAGE"),
        (inside.clone(), 2, "USAGE"),
    ];
    for (to, exit, code) in cases {
        let refused = world.verb(&["backup", to.to_str().unwrap()]);
        assert_eq!(
            refused.exit,
            Some(exit),
            "{}: {}",
            to.display(),
            refused.err
        );
        assert!(refused.err.contains(code), "{}", refused.err);
    }
    assert_eq!(fs::read(dir.join("full/letter")).unwrap(), b"mine");
    assert!(!inside.exists());
    // Stored bytes that are not what they were are not handed on.
    let artifact = fs::read_dir(world.store.join("artifacts"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let bytes = fs::read(&artifact).unwrap();
    fs::write(&artifact, "changed").unwrap();
    let to = dir.join("backup");
    let refused = world.verb(&["backup", to.to_str().unwrap()]);
    assert_eq!(refused.exit, Some(1), "{}", refused.err);
    assert!(refused.err.contains("ARTIFACT_MISMATCH"), "{}", refused.err);
    fs::write(&artifact, bytes).unwrap();
    // A damaged log neither.
    fs::write(world.store.join("log-000001.redb"), "no database").unwrap();
    let refused = world.verb(&["backup", to.to_str().unwrap()]);
    assert_ne!(refused.exit, Some(0));
    let left: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .contains("backup")
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A backup that is killed in its middle, once it is seen to copy stored files, leaves nothing under the name.
#[test]
fn a_killed_backup_is_not_there() {
    let world = finished();
    for number in 0..1_500 {
        store_bytes(&world, format!("filler {number}").as_bytes(), 0);
    }
    let to = world.dir.path().join("backup");
    let mut command = world.praxis();
    command
        .arg("backup")
        .arg(&to)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let copying = || {
        let entries = fs::read_dir(world.dir.path())
            .unwrap()
            .filter_map(Result::ok);
        let hidden = entries
            .map(|entry| entry.path())
            .find(|path| path.to_string_lossy().ends_with(".unfinished"));
        hidden.is_some_and(|path| {
            fs::read_dir(path.join("artifacts")).is_ok_and(|mut files| files.next().is_some())
        })
    };
    while !copying() {
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before it was seen"
        );
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!to.exists());
    // The next one is not in its way.
    let made = world.verb(&["backup", to.to_str().unwrap()]);
    assert_eq!(made.exit, Some(0), "{}", made.err);
}

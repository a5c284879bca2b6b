//! `praxis clean` on stores with runs of every kind, and with traps in them.
//! Invariant: a clean-up takes nothing that is needed.
//! Part of the tests of `tools`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use aiws::json::Value;

use crate::support::{self, AGENT, Called, World, called, files, finished, text};
use crate::{age, named, store_bytes};

fn run_of(ran: &Called) -> String {
    let value = support::parse(&ran.out);
    text(&value, "/runs/0/run").to_owned()
}

/// Trees of runs that ended go; those that wait, are held or are in doubt stay, and so does everything that any event
/// or record names, however old it is.
#[test]
fn clean_takes_what_ended_and_nothing_that_is_needed() {
    let world = World::new(AGENT);
    let accepted = run_of(&called(&mut world.code(&[
        "--approve-as",
        "tester",
        "--json",
    ])));
    let held = run_of(&called(&mut world.code(&[
        "--approve-as",
        "tester",
        "--max-corrections",
        "0",
        "--json",
    ])));
    let waiting = run_of(&called(&mut world.code(&["--no-wait", "--json"])));
    let tree = |run: &str| world.store.join("work").join(run);
    // An agent that kills what started it leaves its own outcome in doubt.
    let mut command = world.praxis();
    command.arg("code").arg("--repo").arg(&world.repo);
    command.args(["--task", "t", "--check", "true", "--approve-as", "tester"]);
    command.args(["--agent", "kill -KILL $PPID"]);
    called(&mut command);
    let work = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let all: BTreeSet<String> = fs::read_dir(world.store.join("work"))
        .unwrap()
        .map(|entry| work(entry.unwrap()))
        .collect();
    let known = BTreeSet::from([accepted.clone(), held.clone(), waiting.clone()]);
    let doubtful: BTreeSet<String> = all.difference(&known).cloned().collect();
    assert_eq!(doubtful.len(), 1);

    // Traps: links out of the store, in a tree that goes and in the place of one.
    let victim = world.dir.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("letter"), "mine").unwrap();
    symlink(&victim, tree(&accepted).join("clone/way-out")).unwrap();
    symlink(victim.join("letter"), tree(&accepted).join("clone/letter")).unwrap();
    symlink(&victim, tree("r-aaaaaaaa")).unwrap();
    // A folder that its owner cannot write, as package caches have them.
    let locked = tree(&accepted).join("clone/cache");
    fs::create_dir(&locked).unwrap();
    fs::write(locked.join("x"), "x").unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();

    // Everything that is stored now is named; what comes is not, but for one that a record beside a tree names.
    let needed: Vec<PathBuf> = fs::read_dir(world.store.join("artifacts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    needed.iter().for_each(|path| age(path, 400));
    let (old, young) = (
        store_bytes(&world, b"old", 8),
        store_bytes(&world, b"young", 6),
    );
    let left = store_bytes(&world, b"left by a shim", 400);
    let record = tree(&waiting).join("attempts/plan-1/exit.json");
    fs::write(
        &record,
        format!(
            "{{\"sha256\":\"{}\"}}",
            left.file_name().unwrap().to_str().unwrap()
        ),
    )
    .unwrap();

    let before = files(&world.store, &|path| {
        path.ends_with("engine.lock") || path.is_symlink()
    });
    let dry = world.json(&["clean", "--dry-run"]);
    assert_eq!(
        files(&world.store, &|path| path.ends_with("engine.lock")
            || path.is_symlink()),
        before
    );
    let cleaned = world.json(&["clean"]);
    for said in [&dry, &cleaned] {
        assert_eq!(named(said, "trees"), BTreeSet::from([accepted.clone()]));
        let mut kept = BTreeSet::from([held.clone(), waiting.clone(), "r-aaaaaaaa".to_owned()]);
        kept.extend(doubtful.clone());
        assert_eq!(named(said, "kept"), kept);
        let artifacts = said.get("artifacts").and_then(Value::as_array).unwrap();
        assert_eq!(artifacts.len(), 1, "{said}");
    }
    assert!(!tree(&accepted).exists() && !old.exists());
    assert!(young.exists() && left.exists());
    for path in &needed {
        assert!(path.exists(), "{} is named by an event", path.display());
    }
    for run in [&held, &waiting, doubtful.first().unwrap()] {
        assert!(tree(run).join("clone").exists(), "{run}");
    }
    assert_eq!(fs::read(victim.join("letter")).unwrap(), b"mine");
    assert!(tree("r-aaaaaaaa").is_symlink());

    let verified = world.verb(&["verify"]);
    assert_eq!(verified.exit, Some(0), "{}", verified.out);
    let shown = world.json(&["show", &accepted]);
    assert_eq!(text(&shown, "/standing"), "ACCEPTED");
    let shown = world.json(&["show", &waiting]);
    assert_eq!(text(&shown, "/standing"), "NEEDS_APPROVAL");
}

/// A lock that is held says that something works there, whatever the events say.
#[test]
fn clean_leaves_a_tree_in_which_something_is_alive() {
    let world = finished();
    let run = fs::read_dir(world.store.join("work"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let cleaned = world.verb(&["clean", "--older-than", "1"]);
    assert!(
        cleaned.out.contains("too short a time ago"),
        "{}",
        cleaned.out
    );
    let lock = run.join("attempts/implement-1/shim.lock");
    fs::write(&lock, "").unwrap();
    let held = File::open(&lock).unwrap();
    held.lock().unwrap();
    let cleaned = world.verb(&["clean"]);
    assert!(cleaned.out.contains("is alive"), "{}", cleaned.out);
    assert!(run.exists());
    drop(held);
    assert_eq!(world.verb(&["clean"]).exit, Some(0));
    assert!(!run.exists());
    // While an engine has the store, its own lock keeps a clean-up out.
    let lock = File::options()
        .write(true)
        .open(world.store.join("engine.lock"))
        .unwrap();
    lock.lock().unwrap();
    assert_eq!(world.verb(&["clean"]).exit, Some(2));
}

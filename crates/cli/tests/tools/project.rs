//! `praxis.toml` of a repository, from the commit to the run.
//! Invariant: only what the commit has counts, and a file that is wrong starts nothing.
//! Part of the tests of `tools`.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::{AGENT, CHECK, Called, World, called};

/// `praxis code` with what only a person can say.
fn code(world: &World, more: &[&str]) -> Called {
    called(&mut command(world, more))
}

fn command(world: &World, more: &[&str]) -> Command {
    let mut command = world.praxis();
    command.arg("code").arg("--repo").arg(&world.repo);
    command.args(["--task", "make it good", "--approve-as", "tester"]);
    command.args(more);
    command
}

fn commit(world: &World) {
    world.git(&["add", "--all", "--force"]);
    world.git(&["commit", "--quiet", "--message", "praxis.toml"]);
}

#[test]
fn a_repository_says_how_it_is_worked_on() {
    let world = World::new(AGENT);
    let agent = format!("sh {}", world.agent.display());
    let text = format!(
        "agent = \"{agent}\"\ncheck = \"{CHECK}\"\nmax_corrections = 0\nenv = [\"LET_THROUGH\"]\n"
    );
    fs::write(world.repo.join("praxis.toml"), &text).unwrap();
    let dirty = code(&world, &[]);
    assert!(dirty.err.contains("REPO_DIRTY"), "{}", dirty.err);
    commit(&world);
    let unset = called(command(&world, &[]).env_remove("LET_THROUGH"));
    assert_eq!(unset.exit, Some(2), "{}", unset.err);
    assert!(!world.store.exists());
    // The agent is right at its first correction, of which the file allows none; what is typed wins.
    let held = called(command(&world, &[]).env("LET_THROUGH", "x"));
    assert_eq!(held.exit, Some(3), "{}{}", held.out, held.err);
    assert!(
        held.err.contains("max_corrections = 0") && held.err.contains("praxis.toml"),
        "{}",
        held.err
    );
    let ran = called(command(&world, &["--max-corrections", "1"]).env("LET_THROUGH", "x"));
    assert_eq!(ran.exit, Some(0), "{}{}", ran.out, ran.err);
    assert!(!ran.err.contains("max_corrections"), "{}", ran.err);
}

/// Who is to be told stands in the file, too; the command is run where `praxis` was started, not in a clone.
#[test]
fn a_repository_says_who_is_told() {
    let world = World::new(AGENT);
    let told = world.dir.path().join("told");
    let text = format!(
        "agent = \"sh {}\"\ncheck = \"{CHECK}\"\nnotify = \"cat >> {}\"\n",
        world.agent.display(),
        told.display()
    );
    fs::write(world.repo.join("praxis.toml"), text).unwrap();
    commit(&world);
    let ran = code(&world, &[]);
    assert_eq!(ran.exit, Some(0), "{}{}", ran.out, ran.err);
    let told = fs::read_to_string(&told).unwrap();
    assert!(
        told.contains("ACCEPTED") || told.contains("accepted"),
        "{told}"
    );
}

/// An agent that writes a file of this name into its clone decides nothing: not in its run, and not in the next one.
#[test]
fn a_file_in_a_clone_has_no_say() {
    let world = World::new(&AGENT.replace("case ", "echo 'check = \"true\"' > praxis.toml\ncase "));
    let ran = called(&mut world.code(&["--approve-as", "tester"]));
    assert_eq!(ran.exit, Some(0), "{}{}", ran.out, ran.err);
    assert_eq!(
        world.stages(),
        ["plan", "implement", "correct"],
        "the check was the typed one"
    );
    let refused = code(&world, &[]);
    assert_eq!(refused.exit, Some(2), "{}", refused.err);
    assert!(refused.err.contains("praxis.toml"), "{}", refused.err);
}

#[test]
fn a_file_that_is_wrong_starts_nothing() {
    let world = World::new(AGENT);
    let refuses = |part: &str| {
        let refused = code(&world, &[]);
        assert_eq!(refused.exit, Some(2), "{part}: {}", refused.err);
        assert!(
            refused.err.contains("USAGE") && refused.err.contains(part),
            "{part}: {}",
            refused.err
        );
        assert!(!world.store.exists());
    };
    refuses("expected --agent CMD");
    let path = world.repo.join("praxis.toml");
    fs::write(&path, "agent = \"true\"\nagnet = \"x\"\n").unwrap();
    commit(&world);
    refuses("line 2, column 1");
    fs::write(&path, format!("# {}\n", "x".repeat(65_536))).unwrap();
    commit(&world);
    refuses("more than 65536 bytes");
    fs::remove_file(&path).unwrap();
    symlink("a.txt", &path).unwrap();
    commit(&world);
    refuses("symbolic link");
    fs::remove_file(&path).unwrap();
    fs::write(world.repo.join(".gitignore"), "praxis.toml\n").unwrap();
    commit(&world);
    fs::write(&path, "agent = \"true\"\ncheck = \"true\"\n").unwrap();
    refuses("ignored by git");
}

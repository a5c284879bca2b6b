//! docs/OPERATING.md, command by command: every section in a world of its own, as it says, with the exits that it says.
//! Invariant: a section without a scene here, and a scene without a section, is a failure.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use support::terminal::Terminal;
use support::{AGENT, World, called, text};

/// A command of a section.
#[derive(Debug)]
struct Line {
    /// Whether it is typed at a terminal.
    typed: bool,
    words: Vec<String>,
    exit: i32,
}

/// The sections of the document that have commands.
fn sections() -> Vec<(String, Vec<Line>)> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/OPERATING.md");
    let mut sections: Vec<(String, Vec<Line>)> = Vec::new();
    for line in fs::read_to_string(document).unwrap().lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            sections.push((heading.to_owned(), Vec::new()));
        }
        let typed = line.strip_prefix("    @ ");
        let Some(command) = typed.or_else(|| line.strip_prefix("    $ ")) else {
            continue;
        };
        let (command, exit) = match command.split_once("(exit ") {
            Some((command, exit)) => (command, exit.trim_end_matches(')').parse().unwrap()),
            None => (command, 0),
        };
        sections.last_mut().unwrap().1.push(Line {
            typed: typed.is_some(),
            words: split(command),
            exit,
        });
    }
    sections
}

/// Words as a shell splits them, with double quotes alone.
fn split(command: &str) -> Vec<String> {
    let (mut words, mut quoted) = (Vec::new(), false);
    let mut word = String::new();
    for char in command.chars() {
        match char {
            '"' => quoted = !quoted,
            ' ' if !quoted => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()))
            }
            char => word.push(char),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// What stands before the first command of a section.
fn scene(heading: &str) -> Option<World> {
    let waits = |more: &[&str]| {
        let world = World::new(AGENT);
        let left = called(&mut world.code(&[&["--no-wait"], more].concat()));
        assert_eq!(left.exit, Some(3), "{}", left.err);
        world
    };
    Some(match heading {
        "Look around"
        | "Follow what runs, from another terminal"
        | "Show it to somebody else"
        | "Keep the head of the log elsewhere"
        | "Keep a copy"
        | "Make room"
        | "Something is damaged"
        | "The disk is full" => support::finished(),
        "A plan waits"
        | "A plan is not what you want"
        | "Stop for a while"
        | "A run is not needed any more"
        | "Be told" => waits(&[]),
        "A result waits" => with_a_result(),
        "The accepted branch cannot be made" => {
            let world = with_a_result();
            let run = text(&world.json(&["show"]), "/run").to_owned();
            world.git(&["branch", &format!("praxis/{run}")]);
            world.git(&[
                "commit",
                "--allow-empty",
                "--quiet",
                "--message",
                "elsewhere",
            ]);
            let accepted = world.verb(&["approve", &run, "--digest", &digest(&world)]);
            assert_eq!(accepted.exit, Some(0), "{}", accepted.err);
            world
        }
        "A hold stands" => {
            let world = World::new(AGENT);
            let held =
                called(&mut world.code(&["--approve-as", "alice", "--max-corrections", "0"]));
            assert_eq!(held.exit, Some(3), "{}", held.err);
            world
        }
        "The engine died" => {
            let world = World::new(AGENT);
            let mut code = world.code(&["--approve-as", "alice"]);
            let killed = called(code.env("PRAXIS_CRASH_AT", "9:after-commit"));
            assert_eq!(killed.signal, Some(9), "{}", killed.err);
            world
        }
        "Nobody knows what an agent did" => unknown(),
        _ => return None,
    })
}

fn with_a_result() -> World {
    let world = World::new(AGENT);
    let code = called(&mut world.code(&["--no-wait"]));
    assert_eq!(code.exit, Some(3), "{}", code.err);
    let approved = world.verb(&["approve", "r-", "--digest", &digest(&world)]);
    assert_eq!(approved.exit, Some(0), "{}", approved.err);
    let resumed = world.verb(&["resume", "--no-wait"]);
    assert_eq!(resumed.exit, Some(3), "{}", resumed.err);
    world
}

/// An agent whose engine and whose shim were killed.
fn unknown() -> World {
    let world = World::new(AGENT);
    let pipe = world.dir.path().join("pipe");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .unwrap();
    let agent = fs::read_to_string(&world.agent).unwrap();
    // It says that it is there, then waits for what never comes.
    let waiting = format!("set -eu\necho here > {0}\ncat {0}\n", pipe.display());
    fs::write(&world.agent, waiting).unwrap();
    let mut engine = world.code(&["--approve-as", "alice"]);
    let mut engine = engine
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(fs::File::open(&pipe).unwrap())
        .read_line(&mut said)
        .unwrap();
    engine.kill().unwrap();
    engine.wait().unwrap();
    let run = text(&world.json(&["show"]), "/run").to_owned();
    let start = world
        .store
        .join(format!("work/{run}/attempts/plan-1/start.json"));
    let start = aiws::strict::parse(&fs::read(start).unwrap()).unwrap();
    for name in ["shimPid", "commandPid"] {
        let pid = start.get(name).and_then(aiws::json::Value::as_int).unwrap();
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }
    // The lock is free once the shim is gone.
    let lock = world
        .store
        .join(format!("work/{run}/attempts/plan-1/shim.lock"));
    rustix::fs::flock(
        fs::File::open(lock).unwrap(),
        rustix::fs::FlockOperation::LockShared,
    )
    .unwrap();
    fs::write(&world.agent, agent).unwrap();
    world.file("finding.txt", "the agent's own log shows no start\n");
    world
}

fn digest(world: &World) -> String {
    let inbox = world.json(&["inbox"]);
    let items = inbox.get("items").and_then(aiws::json::Value::as_array);
    let item = items.unwrap().first().unwrap();
    text(item, "/digest").to_owned()
}

/// The names in a world that a document cannot know.
fn names(world: &World) -> BTreeMap<&'static str, String> {
    let mut names = BTreeMap::new();
    let page = world.json(&["show"]);
    names.insert("RUN", text(&page, "/run").to_owned());
    let first = |verb: &str, list: &str, id: &str| {
        let all = world.json(&[verb]);
        let found = all.get(list)?.as_array()?.first()?.get(id)?;
        Some(found.as_str()?.to_owned())
    };
    if let Ok(key) = fs::read_to_string(world.dir.path().join("checkpoint.key")) {
        let signer = praxis_journal_format::note::Signer::parse(&key).unwrap();
        names.insert("KEY", signer.verifier().text());
    }
    names.extend(first("holds", "holds", "holdId").map(|hold| ("HOLD", hold)));
    names.extend(first("unknown", "attempts", "attemptId").map(|attempt| ("ATTEMPT", attempt)));
    names.extend(first("inbox", "items", "digest").map(|digest| ("DIGEST", digest)));
    names
}

fn run(world: &World, heading: &str, line: &Line) {
    let known = names(world);
    let named = |word: &String| known.get(word.as_str()).unwrap_or(word).clone();
    let words: Vec<String> = line.words.iter().map(named).collect();
    let place = format!("{heading}: {}", line.words.join(" "));
    let program = match words[0].as_str() {
        "praxis" => env!("CARGO_BIN_EXE_praxis"),
        other => other,
    };
    let mut command = Command::new(program);
    command
        .args(&words[1..])
        .current_dir(world.dir.path())
        .env("PRAXIS_STORE", &world.store)
        .stdin(Stdio::null());
    if line.typed {
        let mut terminal = Terminal::person(&command);
        terminal.expect("[y/n");
        terminal.type_line("y");
        let (exit, shown) = terminal.end();
        assert_eq!(exit, Some(line.exit), "{place}: {shown}");
        return;
    }
    if words[1..] == ["serve"] {
        return served(&mut command, &place);
    }
    let done = called(&mut command);
    assert_eq!(
        done.exit,
        Some(line.exit),
        "{place}: {}{}",
        done.out,
        done.err
    );
}

/// It serves until it is stopped.
fn served(command: &mut Command, place: &str) {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let says = lines.find(|line| line.as_ref().unwrap().contains("serving "));
    assert!(says.is_some(), "{place}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{place}: {rest:?}");
}

#[test]
fn every_command_of_the_operators_page_does_what_the_page_says() {
    let sections = sections();
    let mut seen = BTreeSet::new();
    for (heading, lines) in &sections {
        assert!(seen.insert(heading), "{heading} stands there twice");
        let Some(world) = scene(heading) else {
            panic!("{heading} has no scene in this test");
        };
        assert!(!lines.is_empty(), "{heading} has no command");
        for script in ["verify.py", "checkpoint.py"] {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../journal-format");
            fs::copy(from.join(script), world.dir.path().join(script)).unwrap();
        }
        for line in lines {
            run(&world, heading, line);
        }
    }
}

//! One engine, many terminals: a second `praxis` joins the engine that has the store, and takes over where it goes away.
//! Invariant: whoever has the engine, no agent is started twice, and every terminal sees its own run to the end.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use support::{World, repository, text};

/// An agent that says in each stage that it is there, and goes on once it is told to.
const AGENT: &str = r#"
printf 'start %s %s %s\n' "$PRAXIS_STAGE" "$PRAXIS_OPERATION_ID" "$PRAXIS_ATTEMPT_ID" >> RECORD
case "$PRAXIS_STAGE" in
plan) printf '# Plan\n' > "$PRAXIS_OUTPUT_DIR/plan.md" ;;
*)
    if [ -e "$MEET/there" ]; then
        echo "here ${WORD-}" > "$MEET/there"
        cat "$MEET/go" > /dev/null
    fi
    echo good > a.txt ;;
esac
printf 'end %s %s %s\n' "$PRAXIS_STAGE" "$PRAXIS_OPERATION_ID" "$PRAXIS_ATTEMPT_ID" >> RECORD
"#;

/// Two pipes through which a test and an agent meet.
struct Pipes(PathBuf);

impl Pipes {
    fn new(world: &World, name: &str) -> Self {
        let folder = world.dir.path().join(name);
        fs::create_dir(&folder).unwrap();
        for pipe in ["there", "go"] {
            mkfifoat(CWD, folder.join(pipe), Mode::RUSR | Mode::WUSR).unwrap();
        }
        Self(folder)
    }

    /// Waits until the agent is there, and returns what it says.
    fn there(&self) -> String {
        let mut said = String::new();
        BufReader::new(File::open(self.0.join("there")).unwrap())
            .read_line(&mut said)
            .unwrap();
        said.trim().to_owned()
    }

    /// Lets the agent go on.
    fn go(&self) {
        File::options()
            .write(true)
            .open(self.0.join("go"))
            .unwrap()
            .write_all(b"go\n")
            .unwrap();
    }
}

/// A `praxis` that runs, with what it says.
struct Running {
    child: Child,
    says: Lines<BufReader<ChildStderr>>,
    said: Vec<String>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stderr.take().unwrap()).lines();
        Self {
            child,
            says,
            said: Vec::new(),
        }
    }

    fn expect(&mut self, words: &str) -> String {
        loop {
            let Some(line) = self.says.next() else {
                panic!("it ended before it said {words:?}: {:?}", self.said);
            };
            let line = line.unwrap();
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(mut self) -> (Option<i32>, String) {
        self.said.extend(self.says.by_ref().map(Result::unwrap));
        (self.child.wait().unwrap().code(), self.said.join("\n"))
    }
}

/// A world with a second repository, and a run of each.
struct Two {
    world: World,
    first: Pipes,
    second: Pipes,
}

impl Two {
    fn new() -> Self {
        let world = World::new(AGENT);
        repository(&world.dir.path().join("other"));
        let (first, second) = (Pipes::new(&world, "first"), Pipes::new(&world, "second"));
        Self {
            world,
            first,
            second,
        }
    }

    fn code(&self, repo: &str, pipes: &Pipes, word: &str) -> Running {
        let mut command = self.world.praxis();
        let repo = match repo {
            "first" => self.world.repo.clone(),
            _ => self.world.dir.path().join("other"),
        };
        command
            .args(["code", "--task", "make it good", "--check", support::CHECK])
            .args(["--env", "MEET", "--env", "WORD"])
            .args(["--approve-as", "tester", "--repo"])
            .arg(repo)
            .arg("--agent")
            .arg(format!("sh {}", self.world.agent.display()))
            .env("MEET", &pipes.0)
            .env("WORD", word);
        Running::start(&mut command)
    }

    /// Every agent run has one start and one end in the agents' own record, and every run is accepted.
    fn all_once(&self) {
        let list = self.world.json(&["list"]);
        let runs = list.get("runs").and_then(aiws::json::Value::as_array);
        for run in runs.unwrap() {
            assert_eq!(text(run, "/standing"), "ACCEPTED");
        }
        assert_eq!(runs.unwrap().len(), 2);
        let mut starts = self.world.starts();
        assert_eq!(starts.len(), 4, "{starts:?}");
        starts.sort();
        starts.dedup();
        assert_eq!(starts.len(), 4, "an operation was started twice");
        assert_eq!(self.world.ends().len(), 4);
    }
}

/// Two runs in one engine; each agent has the environment of the terminal that its run came from.
#[test]
fn a_second_code_joins_the_engine_that_has_the_store() {
    let two = Two::new();
    let first = two.code("first", &two.first, "one");
    assert_eq!(two.first.there(), "here one");
    let mut second = two.code("other", &two.second, "two");
    second.expect("joined the engine of process");
    assert_eq!(two.second.there(), "here two");
    two.second.go();
    let (exit, said) = second.end();
    assert_eq!(exit, Some(0), "{said}");
    two.first.go();
    let (exit, said) = first.end();
    assert_eq!(exit, Some(0), "{said}");
    two.all_once();
}

/// Proves F-14: a terminal whose engine was killed goes on with the run itself; the agent is not started again.
#[test]
fn a_terminal_takes_over_from_an_engine_that_was_killed() {
    let two = Two::new();
    let first = two.code("first", &two.first, "one");
    two.first.there();
    let mut second = two.code("other", &two.second, "two");
    second.expect("joined the engine of process");
    two.second.there();
    first.signal(Signal::KILL);
    second.expect("this terminal goes on with its own runs");
    two.second.go();
    let (exit, said) = second.end();
    assert_eq!(exit, Some(0), "{said}");
    assert_eq!(first.end().0, None);
    two.first.go();
    let mut resume = two.world.praxis();
    resume
        .args(["resume", "--approve-as", "tester"])
        .env("MEET", &two.first.0)
        .env("WORD", "one");
    let resumed = support::called(&mut resume);
    assert_eq!(resumed.exit, Some(0), "{}", resumed.err);
    two.all_once();
}

/// The terminal with the engine stays for the others, and hands over when somebody stops it.
#[test]
fn the_engine_stays_for_others_until_it_is_stopped() {
    let two = Two::new();
    let mut first = two.code("first", &two.first, "one");
    two.first.there();
    let mut second = two.code("other", &two.second, "two");
    second.expect("joined the engine of process");
    two.second.there();
    two.first.go();
    first.expect("for other terminals that follow r-");
    first.signal(Signal::INT);
    let (exit, said) = first.end();
    assert_eq!(exit, Some(0), "{said}");
    second.expect("this terminal goes on with its own runs");
    two.second.go();
    let (exit, said) = second.end();
    assert_eq!(exit, Some(0), "{said}");
    two.all_once();
}

/// Proves F-33, F-34: one of two runs is canceled while its agent runs: the agent is stopped, every view says the same,
/// and the other run goes on.
#[test]
fn a_canceled_run_ends_alone_and_looks_the_same_everywhere() {
    let two = Two::new();
    let first = two.code("first", &two.first, "one");
    two.first.there();
    let run = text(&two.world.json(&["show"]), "/run").to_owned();
    let mut second = two.code("other", &two.second, "two");
    second.expect("joined the engine of process");
    two.second.there();
    let canceled = two.world.verb(&["cancel", &run, "--reason", "not needed"]);
    assert_eq!(canceled.exit, Some(0), "{}{}", canceled.out, canceled.err);
    let in_list = |world: &World| {
        let list = world.json(&["list"]);
        let runs = list.get("runs").and_then(aiws::json::Value::as_array);
        let mine = runs.unwrap().iter().find(|one| text(one, "/run") == run);
        text(mine.unwrap(), "/standing").to_owned()
    };
    assert_eq!(in_list(&two.world), "CANCELED");
    two.second.go();
    let (exit, said) = second.end();
    assert_eq!(exit, Some(0), "{said}");
    let (exit, said) = first.end();
    assert_eq!(exit, Some(4), "{said}");
    assert_eq!(in_list(&two.world), "CANCELED");
    assert_eq!(
        text(&two.world.json(&["show", &run]), "/standing"),
        "CANCELED"
    );
    assert_eq!(
        text(&two.world.json(&["report", &run]), "/standing"),
        "CANCELED"
    );
    let resumed = two.world.verb(&["resume", &run]);
    assert_eq!(resumed.exit, Some(4), "{}", resumed.err);
    let again = two.world.verb(&["cancel", &run]);
    assert!(again.err.contains("TERMINAL_EXECUTION"), "{}", again.err);
    assert_eq!(two.world.verb(&["verify"]).exit, Some(0));
}

/// What is suggested names the store as whoever asks does, not as the terminal with the engine does.
#[test]
fn suggestions_are_for_the_terminal_that_asks() {
    let world = World::new(support::AGENT);
    let mut serve = world.praxis();
    serve.arg("serve");
    let mut serve = Running::start(&mut serve);
    serve.expect("serving ");
    let waits = support::called(&mut world.code(&["--no-wait"]));
    assert_eq!(waits.exit, Some(3), "{}", waits.err);
    let mut inbox = Command::new(env!("CARGO_BIN_EXE_praxis"));
    inbox.arg("inbox").env("PRAXIS_STORE", &world.store);
    let there = support::called(&mut inbox).out;
    assert!(there.contains("  praxis approve r-"), "{there}");
    let here = world.verb(&["inbox"]).out;
    let named = format!("  praxis --store {} approve r-", world.store.display());
    assert!(here.contains(&named), "{here}");
    serve.signal(Signal::INT);
    assert_eq!(serve.end().0, Some(0));
}

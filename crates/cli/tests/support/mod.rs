//! A world for a test of the command line: a repository, a store, an agent with a record of its own, and the binary.
//! Invariant: worlds share nothing; the agent's record is written by the agent alone.
//! Used by the tests of this folder.

#![allow(dead_code)]

pub mod shims;
pub mod terminal;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use aiws::json::Value;
use tempfile::TempDir;

use self::terminal::Terminal;

/// An agent that plans, implements wrongly, and corrects rightly. Its record has a line per start and end.
pub const AGENT: &str = r#"
printf 'start %s %s %s\n' "$PRAXIS_STAGE" "$PRAXIS_OPERATION_ID" "$PRAXIS_ATTEMPT_ID" >> RECORD
case "$PRAXIS_STAGE" in
plan) printf '# Plan\n\nWrite good into a.txt.\n' > "$PRAXIS_OUTPUT_DIR/plan.md" ;;
implement) test -f "$PRAXIS_PLAN_FILE"; echo bad > a.txt ;;
correct) grep -q 'ended with exit' "$PRAXIS_FEEDBACK_FILE"; echo good > a.txt ;;
esac
printf 'end %s %s %s\n' "$PRAXIS_STAGE" "$PRAXIS_OPERATION_ID" "$PRAXIS_ATTEMPT_ID" >> RECORD
"#;

/// A check that passes once a.txt is good.
pub const CHECK: &str = "grep -q good a.txt";

/// A world.
pub struct World {
    /// Removed at the end.
    pub dir: TempDir,
    /// The user's repository.
    pub repo: PathBuf,
    /// The store directory.
    pub store: PathBuf,
    /// What the agent wrote down.
    pub record: PathBuf,
    /// The agent's script.
    pub agent: PathBuf,
}

/// What a call of the binary gave.
pub struct Called {
    /// The exit code; none after a signal.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl World {
    /// A world with this agent script; `RECORD` in it is replaced by the record's path.
    pub fn new(agent: &str) -> Self {
        let dir = scratch();
        let root = dir.path().canonicalize().unwrap();
        let world = Self {
            repo: root.join("repo"),
            store: root.join("store"),
            record: root.join("record"),
            agent: root.join("agent.sh"),
            dir,
        };
        let script = agent.replace("RECORD", world.record.to_str().unwrap());
        fs::write(&world.agent, format!("set -eu\n{script}")).unwrap();
        repository(&world.repo);
        world
    }

    /// The binary with this store.
    pub fn praxis(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_praxis"));
        command.arg("--store").arg(&self.store);
        command
            .env_remove("PRAXIS_STORE")
            .env_remove("PRAXIS_LOG")
            .stdin(Stdio::null());
        command
    }

    /// `praxis code` on this world.
    pub fn code(&self, more: &[&str]) -> Command {
        let mut command = self.praxis();
        command.arg("code").arg("--repo").arg(&self.repo).args([
            "--task",
            "make it good",
            "--check",
            CHECK,
        ]);
        command
            .arg("--agent")
            .arg(format!("sh {}", self.agent.display()));
        command.args(more);
        command
    }

    /// Runs a verb.
    pub fn verb(&self, args: &[&str]) -> Called {
        let mut command = self.praxis();
        command.args(args);
        called(&mut command)
    }

    /// Runs a verb for its JSON, whatever its exit.
    pub fn json(&self, args: &[&str]) -> Value {
        let called = self.verb(&[args, &["--json"]].concat());
        parse(&called.out)
    }

    /// The agent's own record: one entry per start.
    pub fn starts(&self) -> Vec<[String; 3]> {
        self.lines("start")
    }

    /// The agent's own record: one entry per end.
    pub fn ends(&self) -> Vec<[String; 3]> {
        self.lines("end")
    }

    fn lines(&self, word: &str) -> Vec<[String; 3]> {
        let record = fs::read_to_string(&self.record).unwrap_or_default();
        let lines = record.lines().filter_map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            (words.next()? == word).then_some(())?;
            Some([words.next()?, words.next()?, words.next()?])
        });
        lines.collect()
    }

    /// The stages that the agent ended, in order.
    pub fn stages(&self) -> Vec<String> {
        self.ends().into_iter().map(|[stage, ..]| stage).collect()
    }

    /// The person of these tests: looks at the agent's own record, says what it shows of every uncertain attempt,
    /// and returns how many there were.
    pub fn settle(&self, place: &str) -> usize {
        let unknown = self.json(&["unknown"]);
        let attempts = unknown.get("attempts").and_then(Value::as_array).unwrap();
        assert!(
            !attempts.is_empty(),
            "{place}: exit 5 and nothing is unknown"
        );
        for attempt in attempts {
            let id = text(attempt, "/attemptId");
            let did_it = self.ends().iter().any(|[_, _, ended]| ended == id);
            let finding = if did_it { "--applied" } else { "--not-applied" };
            let evidence = self.file(
                "finding",
                &format!("the agent's record says {finding} of {id}\n"),
            );
            let mut reconcile = self.praxis();
            reconcile.args(["reconcile", id, finding, "--as", "tester", "--evidence"]);
            // What became of its agent nobody can see, so only a person at a terminal counts.
            let mut terminal = Terminal::person(reconcile.arg(&evidence));
            terminal.expect("[y/n");
            terminal.type_line("y");
            let (exit, shown) = terminal.end();
            assert_eq!(exit, Some(0), "{place}: {shown}");
        }
        attempts.len()
    }

    /// A git command in the user's repository.
    pub fn git(&self, args: &[&str]) -> String {
        git(&self.repo, args)
    }

    /// A file of this world with this content.
    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

/// Runs a command to its end.
pub fn called(command: &mut Command) -> Called {
    use std::os::unix::process::ExitStatusExt;
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    Called {
        exit: status.code(),
        signal: status.signal(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// JSON as the binary writes it.
pub fn parse(text: &str) -> Value {
    let value = aiws::strict::parse(text.trim().as_bytes())
        .unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(value.get("version"), Some(&Value::Int(0)), "{text}");
    assert!(
        value.get("kind").and_then(Value::as_str).is_some(),
        "{text}"
    );
    value
}

/// A text member.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text at {pointer} of {value}"))
}

/// The node states of a page by node.
pub fn dispositions(page: &Value) -> Vec<(String, String)> {
    let nodes = page.get("nodes").and_then(Value::as_array).unwrap();
    nodes
        .iter()
        .map(|node| {
            (
                text(node, "/id").to_owned(),
                text(node, "/status").to_owned(),
            )
        })
        .collect()
}

/// A git command somewhere.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(dir)
        .args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@localhost",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with one commit.
pub fn repository(at: &Path) {
    fs::create_dir_all(at).unwrap();
    git(at, &["init", "--quiet", "--initial-branch=main"]);
    fs::write(at.join("a.txt"), "hello\n").unwrap();
    git(at, &["add", "--all"]);
    git(at, &["commit", "--quiet", "--message", "base"]);
}

/// Every file below a directory with its bytes, but for those that `skip` names.
pub fn files(dir: &Path, skip: &dyn Fn(&Path) -> bool) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut open) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if skip(&path) {
                continue;
            }
            if path.is_dir() {
                open.push(path)
            } else if path.is_file() {
                // A socket has no bytes.
                found.push((path.clone(), fs::read(&path).unwrap()))
            }
        }
    }
    found.sort();
    found
}

/// A folder of its own, in memory where the machine has one: these tests kill processes, not the power.
pub fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    TempDir::new_in(memory).or_else(|_| TempDir::new()).unwrap()
}

/// A finished run, to refuse things on.
pub fn finished() -> World {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(&["--approve-as", "tester"]));
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
    world
}

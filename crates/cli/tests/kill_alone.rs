//! Engine, shim, both, or the agent killed while an agent or a check is at a known point, at each stage.
//! Invariant: the agent waits at a pipe; whoever is killed, nothing starts twice that a person did not call not applied.
//! What the agent itself wrote down counts its starts. Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use aiws::json::Value;
use praxis_engine::shim::{self, Probe, Started};
use rustix::fs::{CWD, Mode, mkfifoat};
use support::shims::{is_gone, kill_command, kill_shim, the_running, until};
use support::{AGENT, Called, World, called, text};

/// Waits at the pipe in the stage HOLD.
const WAITS: &str = r#"
wait_here() {
    if [ "$1" = HOLD ] && [ -p RECORD.pipe ]; then echo here > RECORD.at; read word < RECORD.pipe; fi
}
"#;

/// Agents and the check in the order in which they run; the first check fails, and is the one that waits.
const STAGES: [&str; 4] = ["plan", "implement", "check", "correct"];

/// A run whose agent or check waits at the pipe.
struct Scene {
    world: World,
    stage: &'static str,
    engine: Child,
    folder: PathBuf,
    started: Started,
}

impl Scene {
    fn new(stage: &'static str) -> Self {
        let agent = AGENT.replacen(
            "case \"$PRAXIS_STAGE\" in",
            "wait_here \"$PRAXIS_STAGE\"\ncase \"$PRAXIS_STAGE\" in",
            1,
        );
        // A check that was killed did not end with an exit.
        let agent = agent.replace("ended with exit", "ended");
        let world = World::new(&format!("{WAITS}{agent}").replace("HOLD", stage));
        let pipe = world.record.with_extension("pipe");
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        let engine = world_code(&world, stage).spawn().unwrap();
        until("the stage is reached", || {
            fs::read_to_string(world.record.with_extension("at")).ok()
        });
        let (folder, started) = the_running(&world.store);
        Self {
            world,
            stage,
            engine,
            folder,
            started,
        }
    }

    fn is_check(&self) -> bool {
        self.stage == "check"
    }

    fn pipe(&self) -> PathBuf {
        self.world.record.with_extension("pipe")
    }

    /// Lets the stage go on; no later one waits.
    fn release(&self) {
        let pipe = OpenOptions::new().write(true).open(self.pipe());
        fs::remove_file(self.pipe()).unwrap();
        pipe.and_then(|mut pipe| pipe.write_all(b"go\n")).unwrap();
    }

    /// Whoever waits is left waiting for ever; no later one waits.
    fn forget(&self) {
        fs::remove_file(self.pipe()).unwrap();
    }

    fn kill_engine(&mut self) {
        self.engine.kill().unwrap();
        self.engine.wait().unwrap();
    }

    /// How the engine ended by itself.
    fn end(&mut self) -> Option<i32> {
        self.engine.wait().unwrap().code()
    }

    fn resume(&self) -> Called {
        self.world.verb(&["resume", "--approve-as", "tester"])
    }

    fn unknown(&self) -> Vec<Value> {
        let unknown = self.world.json(&["unknown"]);
        let attempts = unknown.get("attempts").and_then(Value::as_array);
        attempts.unwrap().to_vec()
    }

    fn standing(&self) -> String {
        text(&self.world.json(&["show"]), "/standing").to_owned()
    }

    /// How often the stage began, as agent and check wrote it down.
    fn starts(&self) -> usize {
        match self.is_check() {
            true => {
                let checks = fs::read_to_string(self.world.record.with_extension("checks"));
                checks.unwrap().lines().count()
            }
            false => {
                let starts = self.world.starts();
                let mine = starts.iter().filter(|[stage, ..]| stage == self.stage);
                mine.count()
            }
        }
    }

    /// The run is accepted, and every stage ended once.
    fn is_whole(&self, place: &str) {
        assert_eq!(self.standing(), "ACCEPTED", "{place}");
        assert_eq!(
            self.world.stages(),
            ["plan", "implement", "correct"],
            "{place}"
        );
        let page = self.world.json(&["show"]);
        assert_eq!(text(&page, "/spend/reserved"), "0", "{place}");
        let verified = self.world.verb(&["verify"]);
        assert_eq!(verified.exit, Some(0), "{place}: {}", verified.err);
    }
}

fn world_code(world: &World, stage: &str) -> Command {
    let at = |what: &str| world.record.with_extension(what).display().to_string();
    let check = format!(
        "echo check >> {}; if [ {stage} = check ] && [ -p {pipe} ]; then echo here > {}; read word < {pipe}; fi; grep -q good a.txt",
        at("checks"),
        at("at"),
        pipe = at("pipe"),
    );
    let mut code = world.praxis();
    code.args(["code", "--task", "t", "--max-corrections", "1"]);
    code.args(["--approve-as", "tester", "--check", &check, "--repo"]);
    code.arg(&world.repo).arg("--agent");
    code.arg(format!("sh {}", world.agent.display()));
    let said = || File::create(world.record.with_extension("said")).unwrap();
    code.stdout(Stdio::null()).stderr(said());
    code
}

/// Whether an engine waits for a shim that it did not start: it has a thread for that.
fn is_attached(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let mut names = threads
        .flatten()
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.any(|name| name.trim() == "attached")
}

/// Proves COD-6, FV-EFF.3: the engine alone is killed: nobody is asked, and nothing starts twice, whether a later engine
/// attaches to what still runs or finds the record of how it ended.
#[test]
fn the_engine_alone() {
    for stage in STAGES {
        for attached in [true, false] {
            let place = format!("{stage} {attached}");
            let mut scene = Scene::new(stage);
            scene.kill_engine();
            let probed = shim::probe(&scene.folder);
            assert!(matches!(probed, Probe::Running(_)), "{place}: {probed:?}");
            assert_eq!(scene.standing(), "GOING", "{place}");
            assert!(scene.unknown().is_empty(), "{place}");
            let resumed = match attached {
                true => {
                    let mut resume = scene.world.praxis();
                    resume.args(["resume", "--approve-as", "tester"]);
                    resume.stdout(Stdio::piped()).stderr(Stdio::piped());
                    let resume = resume.spawn().unwrap();
                    let pid = resume.id();
                    until("it is attached", || is_attached(pid).then_some(()));
                    scene.release();
                    let ended = resume.wait_with_output().unwrap();
                    let err = String::from_utf8_lossy(&ended.stderr).into_owned();
                    (ended.status.code(), err)
                }
                false => {
                    scene.release();
                    until("its shim recorded how it ended", || {
                        matches!(shim::probe(&scene.folder), Probe::Ended(_)).then_some(())
                    });
                    assert_eq!(scene.standing(), "GOING", "{place}");
                    assert!(scene.unknown().is_empty(), "{place}");
                    let resumed = scene.resume();
                    (resumed.exit, resumed.err)
                }
            };
            assert_eq!(resumed.0, Some(0), "{place}: {}", resumed.1);
            let once = 1 + usize::from(scene.is_check());
            assert_eq!(scene.starts(), once, "{place}");
            scene.is_whole(&place);
        }
    }
}

/// The shim alone is killed: the engine ends what is left of the command, and nobody knows what it did. A check runs
/// again by itself; of an agent a person says it.
#[test]
fn the_shim_alone() {
    for stage in STAGES {
        let mut scene = Scene::new(stage);
        scene.forget();
        kill_shim(&scene.started);
        let exit = scene.end();
        assert!(is_gone(&scene.started), "{stage}");
        if scene.is_check() {
            assert_eq!(exit, Some(0), "{stage}");
            assert_eq!(scene.starts(), 3, "the first check again, then the second");
        } else {
            assert_eq!(exit, Some(5), "{stage}");
            assert_eq!(scene.standing(), "UNCERTAIN", "{stage}");
            let unknown = scene.unknown();
            let why = text(&unknown[0], "/why");
            assert!(why.contains("its shim was killed by signal 9"), "{why}");
            assert_eq!(scene.world.settle(stage), 1);
            let resumed = scene.resume();
            assert_eq!(resumed.exit, Some(0), "{stage}: {}", resumed.err);
            assert_eq!(
                scene.starts(),
                2,
                "{stage}: once more, as it was not applied"
            );
        }
        scene.is_whole(stage);
    }
}

/// Engine and shim are killed: the command goes on and nobody sees it. A later engine ends a check and runs it again; of
/// an agent it says what is known, and a person decides.
#[test]
fn engine_and_shim() {
    for stage in STAGES {
        let mut scene = Scene::new(stage);
        scene.forget();
        scene.kill_engine();
        kill_shim(&scene.started);
        until("the lock is free", || {
            (!matches!(shim::probe(&scene.folder), Probe::Running(_))).then_some(())
        });
        assert!(!is_gone(&scene.started), "{stage}");
        if scene.is_check() {
            assert!(scene.unknown().is_empty(), "{stage}");
        } else {
            assert_eq!(scene.standing(), "UNCERTAIN", "{stage}");
            let unknown = scene.unknown();
            assert_eq!(unknown.len(), 1, "{stage}");
            let (pid, _) = scene.started.command().unwrap();
            let found = unknown[0].pointer("/process/pid").map(ToString::to_string);
            assert_eq!(found, Some(pid.to_string()), "{}", unknown[0]);
            let lives = unknown[0].pointer("/process/lives");
            assert_eq!(lives, Some(&Value::Bool(true)), "{}", unknown[0]);
            assert_eq!(scene.resume().exit, Some(5), "{stage}");
            assert!(!is_gone(&scene.started), "{stage}: only a person ends it");
            kill_command(&scene.started);
            until("it is gone", || is_gone(&scene.started).then_some(()));
            assert_eq!(scene.world.settle(stage), 1);
        }
        let resumed = scene.resume();
        assert_eq!(resumed.exit, Some(0), "{stage}: {}", resumed.err);
        assert!(is_gone(&scene.started), "{stage}");
        let starts = if scene.is_check() { 3 } else { 2 };
        assert_eq!(scene.starts(), starts, "{stage}");
        scene.is_whole(stage);
    }
}

/// The agent is killed: its shim saw it, so it ended by a signal, and the run goes on as after any failure.
#[test]
fn the_agent_alone() {
    let ends = [
        ("plan", 4, "FAILED"),
        ("implement", 0, "ACCEPTED"),
        ("check", 0, "ACCEPTED"),
        ("correct", 3, "HELD"),
    ];
    for (stage, exit, standing) in ends {
        let mut scene = Scene::new(stage);
        scene.forget();
        kill_command(&scene.started);
        let said = scene.world.record.with_extension("said");
        assert_eq!(
            (scene.end(), scene.standing().as_str()),
            (Some(exit), standing),
            "{stage}: {}",
            fs::read_to_string(said).unwrap()
        );
        assert!(scene.unknown().is_empty(), "{stage}");
        let shown = scene.world.verb(&["show"]).out;
        assert!(
            shown.contains("was ended by signal 9") || standing == "FAILED",
            "{stage}: {shown}"
        );
        let once = 1 + usize::from(scene.is_check());
        assert_eq!(scene.starts(), once, "{stage}");
    }
}

/// A value that looks secret is in no file of the store, and a result that holds it does not count.
#[test]
fn a_secret_is_kept_nowhere() {
    const VALUE: &str = "s3cr3t-value-of-a-key";
    let agent = r#"
echo "my key is $MY_KEY"
case "$PRAXIS_STAGE" in
plan) echo plan > "$PRAXIS_OUTPUT_DIR/plan.md" ;;
implement) echo "$MY_KEY good" > a.txt ;;
correct) grep -q 'the value of MY_KEY' "$PRAXIS_FEEDBACK_FILE"; echo good > a.txt ;;
esac
"#;
    let world = World::new(agent);
    let mut code = world.praxis();
    code.args(["code", "--task", "t", "--approve-as", "tester", "--repo"]);
    code.arg(&world.repo).args(["--env", "MY_KEY", "--agent"]);
    code.arg(format!("sh {}", world.agent.display()));
    code.args(["--check", "echo \"$MY_KEY\"; grep -q good a.txt"]);
    let ran = called(code.env("MY_KEY", VALUE));
    assert_eq!(ran.exit, Some(0), "{}{}", ran.out, ran.err);
    // A tree is the agent's own and is removed with its run; what is kept has nothing of it.
    let tree = |path: &std::path::Path| path.ends_with("clone");
    let mut masked = 0;
    for (path, bytes) in support::files(&world.store, &tree) {
        let holds = |text: &str| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        let of_git = path
            .components()
            .any(|part| part.as_os_str() == "engine.git");
        assert!(!holds(VALUE) || of_git, "{}", path.display());
        masked += usize::from(holds("[masked MY_KEY]"));
    }
    assert!(masked >= 5, "{masked}");
}

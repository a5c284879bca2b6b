//! Mishaps around a run: outputs that fail, a repository that goes away, kills between two steps, material that is lost.
//! Invariant: each case is one that once ended with a false word, a false exit or no way on.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use aiws::json::Value;
use support::terminal::Terminal;
use support::{AGENT, Called, World, called, files, finished, text};

const YES: &[&str] = &["--approve-as", "tester"];

fn full() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

fn ended(called: &Called, exit: i32, words: &str) {
    assert_eq!(called.exit, Some(exit), "{}{}", called.out, called.err);
    assert!(
        called.err.contains(words),
        "expected {words:?} in {}",
        called.err
    );
}

/// Nobody has to read the standard error: one that is full or closed changes neither the work nor its exit.
#[test]
fn a_broken_standard_error_stops_nothing() {
    let world = World::new(AGENT);
    let mut code = world.code(YES);
    let child = code.stderr(full()).stdout(Stdio::null()).spawn();
    assert_eq!(child.unwrap().wait().unwrap().code(), Some(0));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut again = world.code(YES);
    let child = again.stderr(writer).stdout(Stdio::null()).spawn();
    assert_eq!(child.unwrap().wait().unwrap().code(), Some(0));
    let mut wrong = world.praxis();
    let child = wrong.args(["show", "r-none"]).stderr(full()).spawn();
    assert_eq!(child.unwrap().wait().unwrap().code(), Some(2));
}

/// An export removes and writes over nothing that it did not make, whatever its own name is.
#[test]
fn an_export_touches_no_file_of_somebody_else() {
    let world = finished();
    let dir = world.dir.path().join("audit");
    fs::create_dir(&dir).unwrap();
    let kept = dir.join("audit.unfinished");
    fs::write(&kept, "precious").unwrap();
    for name in ["audit.jsonl", "other.unfinished"] {
        let path = dir.join(name);
        let ran = world.verb(&["export", path.to_str().unwrap()]);
        assert_eq!(ran.exit, Some(0), "{name}: {}", ran.err);
        assert!(fs::read_to_string(&path).unwrap().contains("trailer"));
    }
    assert_eq!(fs::read_to_string(&kept).unwrap(), "precious");
    assert_eq!(files(&dir, &|_| false).len(), 3, "something was left");
    let mut export = world.praxis();
    export.args(["export", "-"]);
    let child = export.stdout(full()).stderr(Stdio::null()).spawn();
    assert_eq!(child.unwrap().wait().unwrap().code(), Some(1));
}

/// What is accepted and could not be published says so, names what is in the way, and never ends as wrong usage.
#[test]
fn a_branch_that_is_not_there_is_not_named() {
    let repo = "\"$(dirname RECORD)/repo\"";
    let cases = [
        (
            format!("git -C {repo} branch praxis"),
            "branch -m praxis NAME",
            "branch -m praxis elsewhere",
        ),
        (
            format!("mv {repo} \"$(dirname RECORD)/gone\""),
            "REPO_NOT_FOUND",
            "",
        ),
    ];
    for (mishap, words, mend) in cases {
        let world = World::new(&format!(
            "{AGENT}\ncase \"$PRAXIS_STAGE\" in correct) {mishap} ;; esac"
        ));
        ended(&called(&mut world.code(YES)), 3, words);
        let page = world.json(&["show"]);
        assert_eq!(text(&page, "/standing"), "ACCEPTED");
        assert_eq!(page.pointer("/branch"), Some(&Value::Null), "{page}");
        let shown = world.verb(&["show"]).out;
        assert!(
            shown.contains("not published yet") && !shown.contains(" merge "),
            "{shown}"
        );
        let run = text(&page, "/run").to_owned();
        assert!(shown.contains(&format!("resume {run}")), "{shown}");
        ended(&world.verb(&["resume"]), 3, words);
        if mend.is_empty() {
            fs::rename(world.dir.path().join("gone"), &world.repo).unwrap();
        } else {
            world.git(&mend.split(' ').collect::<Vec<_>>());
        }
        let resumed = world.verb(&["resume"]);
        assert_eq!(resumed.exit, Some(0), "{}", resumed.err);
        let branch = format!("praxis/{run}");
        assert!(
            resumed.out.contains(&format!("published {branch} in ")),
            "{}",
            resumed.out
        );
        assert_eq!(text(&world.json(&["show"]), "/branch"), branch);
        world.git(&["rev-parse", "--verify", &format!("refs/heads/{branch}")]);
    }
}

#[test]
fn an_existing_branch_of_that_name_is_never_moved() {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(&["--no-wait"]));
    assert_eq!(ran.exit, Some(3));
    let run = text(&world.json(&["show"]), "/run").to_owned();
    let branch = format!("praxis/{run}");
    world.git(&["branch", &branch, "HEAD"]);
    let before = world.git(&["rev-parse", &branch]);
    let resumed = world.verb(&["resume", "--approve-as", "tester"]);
    assert_eq!(resumed.exit, Some(3), "{}", resumed.err);
    assert!(
        resumed.err.contains("BRANCH_CONFLICT") && resumed.err.contains("branch -m"),
        "{}",
        resumed.err
    );
    assert_eq!(world.git(&["rev-parse", &branch]), before);
    world.git(&["branch", "-m", &branch, "mine"]);
    let again = world.verb(&["resume"]);
    assert_eq!(again.exit, Some(0), "{}", again.err);
    assert_eq!(world.git(&["show", &format!("{branch}:a.txt")]), "good");
    assert_eq!(world.git(&["rev-parse", "mine"]), before);
}

/// A run goes on without the engine's own repository, and its result arrives whatever the user's git is told to do.
#[test]
fn the_engines_repository_is_made_again_and_the_users_settings_stop_nothing() {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(&["--no-wait"]));
    assert_eq!(ran.exit, Some(3), "{}", ran.err);
    let run = text(&world.json(&["show"]), "/run").to_owned();
    fs::remove_dir_all(world.store.join("work").join(&run).join("engine.git")).unwrap();
    for (key, value) in [
        ("url.https://nowhere.invalid/.insteadOf", "/"),
        ("protocol.file.allow", "never"),
    ] {
        world.git(&["config", key, value]);
    }
    let resumed = world.verb(&["resume", "--approve-as", "tester"]);
    assert_eq!(resumed.exit, Some(0), "{}{}", resumed.out, resumed.err);
    assert_eq!(world.git(&["show", &format!("praxis/{run}:a.txt")]), "good");
}

#[test]
fn a_repository_without_room_for_the_branch_is_refused_at_once() {
    let world = World::new(AGENT);
    world.git(&["branch", "praxis"]);
    ended(&called(&mut world.code(YES)), 2, "branch -m praxis NAME");
    assert!(!world.store.exists(), "a store was made");
}

/// The latest run is the one that was admitted last, not the one whose mission moved last.
#[test]
fn the_latest_run_is_the_one_that_began_last() {
    let world = World::new(AGENT);
    assert_eq!(called(&mut world.code(&["--no-wait"])).exit, Some(3));
    let first = text(&world.json(&["show"]), "/run").to_owned();
    assert_eq!(called(&mut world.code(YES)).exit, Some(0));
    let second = text(&world.json(&["show"]), "/run").to_owned();
    assert_ne!(first, second);
    let resumed = world.verb(&["resume", &first, "--approve-as", "tester"]);
    assert_eq!(resumed.exit, Some(0), "{}", resumed.err);
    assert_eq!(text(&world.json(&["show"]), "/run"), second);
}

/// A run that a kill left between its mission and its admission is pointed to; nobody is told to start a second one.
#[test]
fn a_run_that_was_begun_is_pointed_to() {
    let world = World::new(AGENT);
    let killed = called(world.code(YES).env("PRAXIS_CRASH_AT", "1:before-reply"));
    assert_eq!(killed.signal, Some(9), "{}", killed.err);
    let shown = world.verb(&["show"]);
    ended(&shown, 2, "was begun");
    assert!(!shown.err.contains("start one"), "{}", shown.err);
    let run = shown
        .err
        .split_whitespace()
        .find(|word| word.starts_with("r-"))
        .unwrap();
    assert!(
        shown.err.contains(&format!("resume {run}")),
        "{}",
        shown.err
    );
    ended(&world.verb(&["show", run]), 2, "was begun");
    let resumed = world.verb(&["resume", "--approve-as", "tester"]);
    assert_eq!(resumed.exit, Some(0), "{}", resumed.err);
    assert_eq!(text(&world.json(&["show"]), "/run"), run);
}

/// An agent that kills its shim while it implements, so that nobody knows what it did.
const KILLER: &str = r#"
case "$PRAXIS_STAGE" in
plan) echo plan > "$PRAXIS_OUTPUT_DIR/plan.md" ;;
implement) echo good > a.txt
  if [ -e RECORD.kill ]; then
    rm RECORD.kill
    kill -9 "$(sed 's/.*"shimPid":\([0-9]*\).*/\1/' "$PRAXIS_OUTPUT_DIR/../start.json")"
  fi ;;
esac
"#;

/// Material that one run lost keeps nobody from settling another run's attempt, nor the run's own.
#[test]
fn a_lost_job_does_not_keep_attempts_from_being_settled() {
    let world = World::new(KILLER);
    assert_eq!(called(&mut world.code(YES)).exit, Some(0));
    let jobs = |world: &World| -> Vec<std::path::PathBuf> {
        let job = |bytes: &[u8]| bytes.windows(14).any(|part| part == br#""maxCorrection"#);
        files(&world.store.join("artifacts"), &|_| false)
            .into_iter()
            .filter(|(_, bytes)| job(bytes))
            .map(|(path, _)| path)
            .collect()
    };
    let first = jobs(&world);
    assert!(!first.is_empty(), "no job was found");
    let named = |what: &str| world.record.with_extension(what);
    fs::write(named("kill"), "").unwrap();
    assert_eq!(called(&mut world.code(YES)).exit, Some(5));
    first.iter().for_each(|path| fs::remove_file(path).unwrap());
    let unknown = world.json(&["unknown"]);
    let attempt = text(&unknown, "/attempts/0/attemptId").to_owned();
    assert_eq!(world.verb(&["unknown"]).exit, Some(0));
    let evidence = world.file("finding", "it wrote a.txt");
    let evidence = evidence.to_str().unwrap();
    let empty = world.file("empty", " \n");
    let reconcile =
        |file: &str| world.verb(&["reconcile", &attempt, "--applied", "--evidence", file]);
    ended(
        &reconcile(empty.to_str().unwrap()),
        2,
        "EVIDENCE_UNREADABLE",
    );
    let mut verb = world.praxis();
    verb.args(["reconcile", &attempt, "--applied", "--evidence", evidence]);
    let mut terminal = Terminal::person(&verb);
    terminal.expect("[y/n");
    terminal.type_line("y");
    let (exit, said) = terminal.end();
    assert_eq!(exit, Some(0), "{said}");
    let words = "is settled already: applied, by ";
    ended(&reconcile(evidence), 2, words);
    let resumed = world.verb(&["resume", "--approve-as", "tester"]);
    assert_eq!(resumed.exit, Some(0), "{}", resumed.err);
    ended(&reconcile(evidence), 2, words);
}

/// The page at the end of `code` says what `show` says: who decided, and that nothing was shown.
#[test]
fn the_final_page_is_the_one_that_show_shows() {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(YES));
    assert!(
        ran.out
            .contains("approved in advance as tester, plan not shown"),
        "{}",
        ran.out
    );
    assert_eq!(ran.out, world.verb(&["show"]).out);
    let log = world.verb(&["log"]).out;
    let claims: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("claimDelivery") || line.contains("acknowledgeDelivery"))
        .collect();
    assert!(!claims.is_empty(), "{log}");
    for claim in claims {
        assert!(
            claim.contains(" delivery ") && claim.contains(" for "),
            "{claim}"
        );
    }
}

/// Material that is lost holds the run; a person's recheck lifts the hold once the very bytes are back, and no sooner, and
/// says which are missing (HF-04.9).
#[test]
fn a_hold_for_lost_material_is_lifted_by_its_bytes() {
    let world = World::new(AGENT);
    let run = waiting(&world);
    let branch = ["pause", &run, "--branch", "check-0"];
    assert_eq!(world.verb(&branch).exit, Some(0));
    let resumed = world.verb(&["resume", &run, "--approve-as", "tester", "--no-wait"]);
    assert!(resumed.exit.is_some(), "{}", resumed.err);
    let patch = |bytes: &[u8]| bytes.starts_with(b"diff --git");
    let stored = files(&world.store.join("artifacts"), &|_| false);
    let lost: Vec<_> = stored
        .into_iter()
        .filter(|(_, bytes)| patch(bytes))
        .collect();
    assert!(!lost.is_empty(), "no patch was stored: {}", resumed.err);
    lost.iter()
        .for_each(|(path, _)| fs::remove_file(path).unwrap());
    assert_eq!(world.verb(&["continue", &run]).exit, Some(0));
    world.verb(&["resume", &run, "--no-wait"]);
    let holds = world.json(&["holds"]);
    assert_eq!(text(&holds, "/holds/0/reason"), "ARTIFACT", "{holds}");
    let hold = text(&holds, "/holds/0/holdId").to_owned();
    let early = world.verb(&["recheck", &hold]);
    ended(&early, 1, "HOLD_NOT_CLEAR");
    let name = lost[0].0.file_name().unwrap().to_str().unwrap();
    assert!(early.err.contains(name), "{}", early.err);
    for (path, bytes) in &lost {
        fs::write(path, bytes).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o400)).unwrap();
    }
    let lifted = world.verb(&["recheck", &hold]);
    assert_eq!(lifted.exit, Some(0), "{}", lifted.err);
    let resumed = world.verb(&["resume", &run, "--approve-as", "tester"]);
    assert_eq!(resumed.exit, Some(0), "{}", resumed.err);
}

/// A run that waits for the approval of its plan, with no engine.
fn waiting(world: &World) -> String {
    let begun = called(&mut world.code(&["--no-wait"]));
    assert!(begun.exit.is_some(), "{}", begun.err);
    text(&world.json(&["show"]), "/run").to_owned()
}

//! The flow of `praxis code`: what happens, what is left behind, and every way that it may end.
//! Invariant: each test has a world of its own; exits, records and repositories are looked at, not messages alone.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use aiws::json::Value;
use support::{AGENT, CHECK, World, called, dispositions, files, text};

const APPROVED: &[&str] = &["--approve-as", "tester"];

/// Proves COD-1, COD-2, COD-3, COD-5: plan, approval, implementation, a check that fails, correction, a check that
/// passes, verification and acceptance, in that order.
#[test]
fn a_task_goes_through_the_whole_flow() {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(APPROVED));
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
    assert_eq!(world.stages(), ["plan", "implement", "correct"]);
    let page = world.json(&["show"]);
    assert_eq!(text(&page, "/standing"), "ACCEPTED");
    assert_eq!(
        (text(&page, "/spend/spent"), text(&page, "/spend/reserved")),
        ("3", "0")
    );
    let done: Vec<String> = dispositions(&page)
        .into_iter()
        .filter(|(_, status)| status == "COMPLETED")
        .map(|(node, _)| node)
        .collect();
    let expected = [
        "plan",
        "approve",
        "implement",
        "check-0",
        "decide-0",
        "correct-1",
        "check-1",
        "decide-1",
        "passed-1",
        "result",
        "verify",
        "accept",
        "end",
    ];
    assert_eq!(done, expected);
    let log = world.json(&["log"]);
    let order: Vec<&str> = log
        .get("events")
        .and_then(Value::as_array)
        .unwrap()
        .iter()
        .filter(|event| {
            ["approve", "verify", "accept", "completeRun"].contains(&text(event, "/type"))
        })
        .map(|event| text(event, "/type"))
        .collect();
    assert_eq!(order, ["approve", "verify", "accept", "completeRun"]);
}

#[test]
fn an_approval_in_advance_is_shown_as_such() {
    let world = World::new(AGENT);
    called(&mut world.code(APPROVED));
    let page = world.verb(&["show"]).out;
    assert!(
        page.contains("approved in advance as tester, plan not shown"),
        "{page}"
    );
    let log = world.json(&["log"]);
    let approve = log
        .get("events")
        .and_then(Value::as_array)
        .unwrap()
        .iter()
        .find(|event| text(event, "/type") == "approve");
    let approve = approve.unwrap();
    assert_eq!(
        (text(approve, "/decisionClass"), text(approve, "/actorKind")),
        ("IN_ADVANCE", "HUMAN")
    );
    assert_eq!(text(approve, "/actorId"), "tester");
}

/// The user's repository gets its branch and nothing else, whatever its hooks and its configuration say.
#[test]
fn only_the_result_branch_changes_in_the_repository() {
    let world = World::new(AGENT);
    let hooks = world.repo.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let proof = world.dir.path().join("hook-ran");
    for hook in [
        "post-checkout",
        "reference-transaction",
        "post-commit",
        "pre-receive",
        "update",
        "post-index-change",
    ] {
        let path = hooks.join(hook);
        fs::write(&path, format!("#!/bin/sh\ntouch {}\n", proof.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let refs = world.git(&["for-each-ref"]);
    let head = world.git(&["symbolic-ref", "HEAD"]);
    let skip = |path: &std::path::Path| {
        let name = path.strip_prefix(&world.repo).unwrap_or(path);
        name.starts_with(".git/objects")
            || name.starts_with(".git/refs/heads/praxis")
            || name.starts_with(".git/logs")
    };
    let before = files(&world.repo, &skip);
    let ran = called(&mut world.code(APPROVED));
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
    assert_eq!(files(&world.repo, &skip), before);
    assert!(!proof.exists(), "a hook of the repository ran");
    assert_eq!(world.git(&["symbolic-ref", "HEAD"]), head);
    let page = world.json(&["show"]);
    let branch = format!("refs/heads/{}", text(&page, "/branch"));
    let new: Vec<String> = world
        .git(&["for-each-ref", "--format=%(refname)"])
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(new.len(), refs.lines().count() + 1);
    assert!(new.contains(&branch));
    assert_eq!(world.git(&["show", &format!("{branch}:a.txt")]), "good");
    assert_eq!(
        world.git(&["rev-parse", &format!("{branch}^")]),
        world.git(&["rev-parse", "HEAD"])
    );
    let message = world.git(&["log", "-1", "--format=%B%an", &branch]);
    assert!(
        message.contains("make it good") && message.contains("Praxis-Accepted-By: tester"),
        "{message}"
    );
}

#[test]
fn without_anybody_to_approve_it_exits_3_and_goes_on_later() {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(&["--no-wait"]));
    assert_eq!(ran.exit, Some(3), "{}", ran.err);
    assert_eq!(world.stages(), ["plan"]);
    assert!(
        ran.out
            .contains(&format!("praxis --store {} resume", world.store.display())),
        "{}",
        ran.out
    );
    let page = world.json(&["show"]);
    assert_eq!(text(&page, "/standing"), "NEEDS_APPROVAL");
    let plan = text(&page, "/toRead/path");
    assert!(plan.ends_with("/attempts/plan-1/output/plan.md"), "{plan}");
    assert!(fs::read_to_string(plan).unwrap().starts_with("# Plan"));
    assert!(ran.out.contains(plan), "{}", ran.out);
    // What the agent's folder has is named only while it is what was recorded.
    fs::write(plan, "another plan").unwrap();
    let page = world.json(&["show"]);
    let stored = text(&page, "/toRead/path");
    assert!(stored.contains("/artifacts/"), "{stored}");
    assert!(fs::read_to_string(stored).unwrap().starts_with("# Plan"));
    let resumed = world.verb(&["resume", "--no-wait"]);
    assert_eq!(resumed.exit, Some(3), "{}", resumed.err);
    let resumed = world.verb(&["resume", "--approve-as", "later"]);
    assert_eq!(resumed.exit, Some(0), "{}", resumed.err);
    assert_eq!(world.stages(), ["plan", "implement", "correct"]);
    assert_eq!(
        text(&world.json(&["show"]), "/epoch"),
        "1",
        "a clean end needs no recovery"
    );
}

/// Exit 75 says that nothing was done: the same operation is tried again, and the account is not charged for it.
#[test]
fn exit_75_is_tried_again_within_the_attempts() {
    let agent = r#"
        if [ "$PRAXIS_STAGE" = implement ] && [ ! -e RECORD-once ]; then touch RECORD-once; exit 75; fi
        printf 'start %s %s %s\n' "$PRAXIS_STAGE" "$PRAXIS_OPERATION_ID" "$PRAXIS_ATTEMPT_ID" >> RECORD
        printf 'x\n' > "$PRAXIS_OUTPUT_DIR/plan.md"; echo good > a.txt"#;
    let world = World::new(agent);
    let ran = called(&mut world.code(APPROVED));
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
    let page = world.json(&["show"]);
    assert_eq!(text(&page, "/spend/spent"), "2");
    let nodes = page.get("nodes").and_then(Value::as_array).unwrap();
    let implement = nodes
        .iter()
        .find(|node| text(node, "/id") == "implement")
        .unwrap();
    assert_eq!(text(implement, "/attempts"), "2");
}

#[test]
fn an_agent_that_never_does_anything_is_held_after_its_attempts() {
    let world = World::new("echo \"start $PRAXIS_STAGE o a\" >> RECORD; exit 75");
    let ran = called(&mut world.code(APPROVED));
    assert_eq!(ran.exit, Some(3), "{}{}", ran.out, ran.err);
    held(&world, "ATTEMPT_LIMIT");
    assert_eq!(world.starts().len(), 3, "two tries more, and no other");
    let page = world.verb(&["show"]).out;
    assert!(
        page.contains("3 times it said that it did nothing"),
        "{page}"
    );
    assert_eq!(text(&world.json(&["show"]), "/spend/spent"), "0");
}

#[test]
fn a_plan_that_fails_ends_the_run() {
    for (agent, word) in [
        ("exit 3", "exit 3"),
        ("true", "there is none"),
        (": > \"$PRAXIS_OUTPUT_DIR/plan.md\"", "empty"),
    ] {
        let world = World::new(agent);
        let ran = called(&mut world.code(APPROVED));
        assert_eq!(ran.exit, Some(4), "{agent}: {}{}", ran.out, ran.err);
        let page = world.json(&["show"]);
        assert_eq!(text(&page, "/standing"), "FAILED");
        assert!(text(&page, "/cause").contains(word), "{page}");
        assert_eq!(world.git(&["for-each-ref", "refs/heads/praxis"]), "");
    }
}

/// Proves COD-4: past the last correction the run is held, with its history, and never accepted.
#[test]
fn a_last_failing_check_is_held() {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(&["--approve-as", "tester", "--max-corrections", "0"]));
    assert_eq!(ran.exit, Some(3), "{}", ran.err);
    held(&world, "ATTEMPT_LIMIT");
    assert!(
        ran.out.contains("ATTEMPT_LIMIT")
            && ran
                .out
                .contains("nothing in this run: cancel it and start another one"),
        "{}",
        ran.out
    );
    let page = world.verb(&["show"]).out;
    assert!(page.contains("last output of check-0"), "{page}");
    assert_eq!(world.git(&["for-each-ref", "refs/heads/praxis"]), "");
}

fn held(world: &World, reason: &str) {
    let page = world.json(&["show"]);
    assert_eq!(text(&page, "/standing"), "HELD", "{page}");
    assert_eq!(text(&page, "/holds/0/reason"), reason);
    let cancel = format!(" cancel {}", text(&page, "/run"));
    let next = page.get("next").and_then(Value::as_array).unwrap();
    assert!(
        next.iter()
            .any(|next| next.as_str().is_some_and(|next| next.ends_with(&cancel))),
        "{page}"
    );
    let shown = world.verb(&["show"]).out;
    assert!(shown.contains(&cancel), "{shown}");
    assert_eq!(world.verb(&["resume"]).exit, Some(3));
}

/// Proves FV-ACC.1: the budget bounds what agents may be started for.
#[test]
fn a_budget_that_is_used_up_is_held() {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(&["--approve-as", "tester", "--budget", "2"]));
    assert_eq!(ran.exit, Some(3), "{}", ran.err);
    held(&world, "COST_LIMIT");
    assert_eq!(world.stages(), ["plan", "implement"]);
}

#[test]
fn usage_is_what_the_agent_writes() {
    let world = World::new(&format!("{AGENT}\necho 7 > \"$PRAXIS_USAGE_FILE\""));
    let ran = called(&mut world.code(&["--approve-as", "tester", "--budget", "30"]));
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
    assert_eq!(text(&world.json(&["show"]), "/spend/spent"), "21");
}

/// An agent that does not end is stopped with everything that it started; its work counts as a failed check.
#[test]
fn an_agent_that_runs_too_long_is_stopped_with_its_group() {
    let agent = r#"
        case "$PRAXIS_STAGE" in
        plan) printf 'x\n' > "$PRAXIS_OUTPUT_DIR/plan.md" ;;
        *) echo good > a.txt; sh -c 'echo $$ > RECORD-child; exec sleep 600' & wait ;;
        esac"#;
    let world = World::new(agent);
    let ran = called(&mut world.code(&[
        "--approve-as",
        "tester",
        "--max-corrections",
        "0",
        "--timeout",
        "1",
    ]));
    assert_eq!(ran.exit, Some(3), "{}", ran.err);
    held(&world, "ATTEMPT_LIMIT");
    let page = world.verb(&["show"]).out;
    assert!(page.contains("ran into the time bound"), "{page}");
    let child = fs::read_to_string(world.record.with_file_name("record-child")).unwrap();
    assert!(
        !std::path::Path::new("/proc")
            .join(child.trim())
            .join("cwd")
            .exists(),
        "the agent's child still runs"
    );
}

/// A failed agent run counts as a failed check even where the check itself would pass.
#[test]
fn an_implementation_that_fails_does_not_pass_its_check() {
    let agent = r#"
        case "$PRAXIS_STAGE" in
        plan) printf 'x\n' > "$PRAXIS_OUTPUT_DIR/plan.md" ;;
        implement) echo good > a.txt; exit 9 ;;
        correct) grep -q 'exit 9' "$PRAXIS_FEEDBACK_FILE" && echo good > a.txt ;;
        esac"#;
    let world = World::new(agent);
    let ran = called(&mut world.code(APPROVED));
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
    let page = world.json(&["show"]);
    let word = |id: &str| {
        let nodes = page.get("nodes").and_then(Value::as_array).unwrap();
        text(
            nodes.iter().find(|node| text(node, "/id") == id).unwrap(),
            "/word",
        )
        .to_owned()
    };
    assert_eq!(
        (word("implement"), word("check-0"), word("check-1")),
        ("failed".into(), "failed".into(), "passed".into())
    );
}

/// What the agent sees: the variables of the workflow, those always let through, and those named; nothing else.
#[test]
fn the_agent_sees_only_the_environment_that_was_named() {
    let agent = r#"env | cut -d= -f1 | sort > RECORD-env-"$PRAXIS_STAGE"
        find "$PRAXIS_INPUTS_DIR" -type f | sed "s#$PRAXIS_INPUTS_DIR/##" | sort > RECORD-inputs-"$PRAXIS_STAGE"
        test "$(cat "$PRAXIS_TASK_FILE")" = "make it good"
        case "$PRAXIS_STAGE" in
        plan) printf 'x\n' > "$PRAXIS_OUTPUT_DIR/plan.md" ;;
        implement) echo bad > a.txt ;;
        correct) grep -q bad a.txt; echo good > a.txt ;;
        esac"#;
    let world = World::new(agent);
    let mut command = world.code(&["--approve-as", "tester", "--env", "LET_THROUGH"]);
    command
        .env("LET_THROUGH", "yes")
        .env("KEPT_BACK", "no")
        .env("LANG", "C")
        .env("HOME", "/")
        .env("TERM", "xterm");
    let ran = called(&mut command);
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
    let read = |name: &str| {
        fs::read_to_string(world.record.with_file_name(format!("record-{name}"))).unwrap()
    };
    let shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    let seen = |stage: &str| -> Vec<String> {
        read(&format!("env-{stage}"))
            .lines()
            .filter(|name| !shell.contains(name))
            .map(str::to_owned)
            .collect()
    };
    let common = |more: &[&str]| -> Vec<String> {
        let base = [
            "HOME",
            "LANG",
            "LET_THROUGH",
            "PATH",
            "PRAXIS_ATTEMPT_ID",
            "PRAXIS_INPUTS_DIR",
            "PRAXIS_OPERATION_ID",
            "PRAXIS_OUTPUT_DIR",
            "PRAXIS_STAGE",
            "PRAXIS_TASK_FILE",
            "PRAXIS_USAGE_FILE",
        ];
        let mut all: Vec<String> = base
            .iter()
            .chain(more)
            .map(|name| (*name).to_owned())
            .collect();
        all.sort();
        all
    };
    assert_eq!(seen("plan"), common(&[]));
    assert_eq!(seen("implement"), common(&["PRAXIS_PLAN_FILE"]));
    assert_eq!(
        seen("correct"),
        common(&["PRAXIS_FEEDBACK_FILE", "PRAXIS_PLAN_FILE"])
    );
    assert_eq!(read("inputs-plan"), "");
    assert_eq!(read("inputs-implement"), "approve/plan.md\n");
    assert_eq!(
        read("inputs-correct"),
        "decide-0/change.patch\ndecide-0/check.txt\ndecide-0/plan.md\n"
    );
}

/// The store and its export agree, and the independent verifier says so too.
#[test]
fn store_and_export_verify() {
    let world = World::new(AGENT);
    called(&mut world.code(APPROVED));
    let verified = world.json(&["verify"]);
    assert_eq!(
        verified.get("sound").and_then(Value::as_bool),
        Some(true),
        "{verified}"
    );
    let file = world.dir.path().join("export.jsonl");
    let exported = world.json(&["export", file.to_str().unwrap()]);
    assert_eq!(text(&exported, "/events"), text(&verified, "/events"));
    let read = praxis_journal_format::export::read(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(read.events.len().to_string(), text(&verified, "/events"));
    assert_eq!(read.trailer.count.0.to_string(), text(&verified, "/events"));
    let piped = world.verb(&["export", "-"]);
    assert_eq!(piped.out.as_bytes(), fs::read(&file).unwrap());
}

#[test]
fn json_is_one_object_with_a_version_and_a_kind() {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(&["--approve-as", "tester", "--json"]));
    let kinds = [
        (support::parse(&ran.out), "runs"),
        (world.json(&["show"]), "run"),
        (world.json(&["log"]), "log"),
        (world.json(&["unknown"]), "unknown"),
        (world.json(&["verify"]), "verification"),
        (world.json(&["resume"]), "runs"),
        (world.json(&["explain", "REPO_DIRTY"]), "code"),
        (world.json(&["show", "nothing"]), "error"),
        (world.json(&["nonsense"]), "error"),
    ];
    for (value, kind) in kinds {
        assert_eq!(text(&value, "/kind"), kind);
    }
    assert_eq!(ran.err, "", "nothing but JSON was asked for");
}

/// The check runs in a fresh checkout of exactly what was captured: what the agent left beside it is not there.
#[test]
fn the_check_sees_exactly_the_captured_tree() {
    let agent = r#"
        case "$PRAXIS_STAGE" in
        plan) printf 'x\n' > "$PRAXIS_OUTPUT_DIR/plan.md"; echo left > a.txt ;;
        implement) grep -q hello a.txt; printf 'ignored\n' > .gitignore; echo x > ignored; echo good > a.txt ;;
        esac"#;
    let world = World::new(agent);
    let mut command = world.praxis();
    command
        .arg("code")
        .arg("--repo")
        .arg(&world.repo)
        .args(["--task", "t", "--approve-as", "t"]);
    command
        .arg("--agent")
        .arg(format!("sh {}", world.agent.display()));
    command.arg("--check").arg(format!(
        "{CHECK} && test ! -e ignored && git diff --quiet -- .gitignore; test -d .git"
    ));
    let ran = called(&mut command);
    assert_eq!(ran.exit, Some(0), "{}{}", ran.out, ran.err);
    assert!(
        !world.store.join("work").read_dir().unwrap().any(|run| run
            .unwrap()
            .path()
            .join("check-0")
            .exists())
    );
}

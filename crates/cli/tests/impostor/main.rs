//! An agent that decides for a person: as child, as daemon, with engine or shim or both killed, over the socket.
//! Invariant: engine, shims, agents and terminals are real; what is not prevented is tested as docs/SECURITY.md states it.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod scene;
#[path = "../support/mod.rs"]
mod support;

use aiws::json::Value;

use scene::{LEAVE, STAY, Scene, at_terminal, decision};
use support::{called, text};

const ALL: &[&str] = &[
    "told", "clean", "resume", "approve", "accept", "continue", "advance", "code", "socket",
];

/// Proves HS-03.11, COD-2, ERR-HUMAN_REQUIRED: an agent that decides as what it is, a child of its shim.
#[test]
fn a_child_decides_nothing() {
    let mut scene = Scene::new();
    scene.serve();
    let more = "try deny $p deny \"$PLAN_RUN\" --reason no\ntry pause $p pause \"$PLAN_RUN\"\ntry cancel $p cancel \"$PLAN_RUN\"\n";
    scene.impostor(&format!("tries\n{more}"), "");
    assert_eq!(scene.run().exit, Some(3));
    scene.refused(ALL, "DESCENDS_FROM_SHIM");
    scene.refused(&["deny", "pause", "cancel"], "DESCENDS_FROM_SHIM");
    let (said, _) = scene.outcome("reconcile");
    assert!(!said.contains("exit 0"), "{said}");
    scene.untouched();
    let own = scene.person_approves();
    assert_eq!(own.exit, Some(0), "{}{}", own.out, own.err);
}

/// Proves HS-03.11: a daemon that left parents, session and environment behind is still below the subreaper.
#[test]
fn a_daemon_decides_nothing() {
    let mut scene = Scene::new();
    scene.serve();
    let agent = "( DAEMON )\ncat \"$FIFO\"\n";
    scene.impostor(agent, "tries\necho done > \"$FIFO\"\n");
    assert_eq!(scene.run().exit, Some(3));
    scene.refused(ALL, "DESCENDS_FROM_SHIM");
    scene.untouched();
}

/// Proves HS-03.11: a check runs what the agent wrote, and decides as little as the agent.
#[test]
fn a_check_decides_nothing() {
    let mut scene = Scene::new();
    scene.serve();
    scene.impostor("", "tries\n");
    let script = scene.world.dir.path().join("daemon.sh");
    let agent = scene.world.dir.path().join("evil.sh");
    let mut code = scene.world.praxis();
    code.arg("code").arg("--repo").arg(&scene.world.repo);
    code.args(["--task", "t", "--json", "--approve-as", "boss"]);
    code.arg("--agent").arg(format!("sh {}", agent.display()));
    code.arg("--check").arg(format!("sh {}", script.display()));
    let ran = called(&mut code);
    assert_eq!(ran.exit, Some(0), "{}{}", ran.out, ran.err);
    scene.refused(ALL, "DESCENDS_FROM_SHIM");
    scene.untouched();
}

/// Proves HS-03.11, COD-2: with the engine dead each command opens the store itself, and finds itself below the shim.
#[test]
fn killing_the_engine_gives_no_authority() {
    let scene = Scene::new();
    let agent = "e=$(engine)\nkill -9 $e\ndead $e\ntries\ntry serve $PRAXIS --store $STORE --json serve\necho done > \"$FIFO\"\n";
    scene.impostor(agent, "");
    let code = scene.begin();
    scene.daemon_is_done();
    assert_eq!(code.wait(), None);
    scene.refused(
        &[
            "approve", "accept", "continue", "advance", "code", "resume", "serve",
        ],
        "DESCENDS_FROM_SHIM",
    );
    // Nobody is there to be spoken to.
    let (said, _) = scene.outcome("socket");
    assert!(said.contains("Error") && said.contains("exit 1"), "{said}");
    scene.untouched();
    let own = scene.person_approves();
    assert_eq!(own.exit, Some(0), "{}{}", own.out, own.err);
}

/// Proves HS-03.11: with its shim dead an agent may be anywhere; without a terminal nobody is taken for a person then.
#[test]
fn killing_the_shim_gives_no_authority() {
    let mut scene = Scene::new();
    scene.serve();
    let agent = format!("{LEAVE}kill -9 $(shim)\n");
    let daemon = "echo go >\"$GO\"\ndead $s\ntries\necho done >\"$FIFO\"\n";
    scene.impostor(&agent, &format!("{STAY}{daemon}"));
    let code = scene.begin();
    scene.daemon_is_done();
    assert_eq!(code.wait(), Some(5));
    scene.refused(
        &[
            "approve",
            "accept",
            "continue",
            "advance",
            "reconcile",
            "socket",
        ],
        "ATTEMPT_LOST",
    );
    scene.untouched();
    lost(&scene);
}

/// Proves HS-03.11: with both dead it is the same.
#[test]
fn killing_both_gives_no_authority() {
    let scene = Scene::new();
    let agent = format!("engine >\"$RESULTS/engine\"\n{LEAVE}");
    let daemon = "e=$(cat \"$RESULTS/engine\")\nkill -9 $e $s\necho go >\"$GO\"\ndead $e\ndead $s\ntries\necho done > \"$FIFO\"\n";
    scene.impostor(&agent, &format!("{STAY}{daemon}"));
    let code = scene.begin();
    scene.daemon_is_done();
    assert_eq!(code.wait(), None);
    scene.refused(
        &["approve", "accept", "continue", "advance", "reconcile"],
        "ATTEMPT_LOST",
    );
    scene.untouched();
    lost(&scene);
}

/// While an attempt is lost, a person needs a terminal, too, and with one decides.
fn lost(scene: &Scene) {
    let refused = scene.person_approves();
    assert_eq!(refused.exit, Some(3), "{}", refused.out);
    assert!(refused.out.contains("ATTEMPT_LOST"), "{}", refused.out);
    let mut command = scene.world.praxis();
    command.args(["approve", &scene.plan.0]);
    let (exit, shown) = at_terminal(&command, "y\n");
    assert_eq!(exit, Some(0), "{shown}");
    assert_ne!(scene.standing(&scene.plan.0), "NEEDS_APPROVAL", "{shown}");
}

/// The limit that docs/SECURITY.md states: who kills its shim and makes itself a terminal is taken for a person, and
/// the record says what it was.
#[test]
fn a_terminal_that_an_orphan_makes_is_recorded() {
    let mut scene = Scene::new();
    scene.serve();
    let agent = format!("{LEAVE}kill -9 $(shim)\n");
    let spawn = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))";
    let approve = "\"$PRAXIS\" --store \"$STORE\" approve \"$PLAN_RUN\" --as mallory";
    let yes = scene.world.file("yes", "y\n");
    let daemon = format!(
        "{STAY}echo go >\"$GO\"\ndead $s\npython3 -c '{spawn}' {approve} <{} >\"$RESULTS/typed\" 2>&1\necho done >\"$FIFO\"\n",
        yes.display()
    );
    scene.impostor(&agent, &daemon);
    let code = scene.begin();
    scene.daemon_is_done();
    assert_eq!(code.wait(), Some(5));
    let (said, _) = scene.outcome("typed");
    assert_ne!(scene.standing(&scene.plan.0), "NEEDS_APPROVAL", "{said}");
    let record = decision(&scene, "mallory");
    assert_eq!(text(&record, "/proof/way"), "TYPED");
    assert_eq!(
        record.pointer("/proof/checked/attemptLost"),
        Some(&Value::Bool(true))
    );
    assert!(text(&record, "/proof/terminal/name").starts_with("/dev/pts/"));
    let ancestors = record.pointer("/proof/ancestors").unwrap().to_string();
    assert!(ancestors.contains("python"), "{ancestors}");
}

/// Proves HS-03.11: an orphan that takes its dead shim's lock is not taken for somebody whose shim lives.
#[test]
fn a_lock_that_an_orphan_takes_gives_no_authority() {
    let scene = Scene::new();
    let agent = format!(
        "engine >\"$RESULTS/engine\"\ntr '\\0' '\\n' </proc/$(shim)/cmdline | sed -n 3p >\"$RESULTS/folder\"\n{LEAVE}"
    );
    let daemon = "e=$(cat \"$RESULTS/engine\")\nf=$(cat \"$RESULTS/folder\")\nkill -9 $e $s\necho go >\"$GO\"\ndead $e\ndead $s\n\
        exec 8<\"$f/shim.lock\"\nflock --exclusive 8\n\
        try locked $PRAXIS --store $STORE --json approve \"$PLAN_RUN\" --digest \"$PLAN_DIGEST\"\n\
        rm \"$f/start.json\"\ntries\necho done >\"$FIFO\"\n";
    scene.impostor(&agent, &format!("{STAY}{daemon}"));
    let code = scene.begin();
    scene.daemon_is_done();
    assert_eq!(code.wait(), None);
    scene.refused(&["locked"], "SHIM_UNSEEN");
    scene.refused(
        &["approve", "accept", "continue", "advance"],
        "ATTEMPT_LOST",
    );
    scene.untouched();
}

/// What a shim would have written, by whoever killed it.
const FORGE: &str = r#"
import hashlib, json, os, sys
folder = sys.argv[1]
path = lambda name: os.path.join(folder, name)
spec = open(path("shim.json"), "rb").read()
os.makedirs(path("result"), exist_ok=True)
open(path("result/plan.md"), "w").write("a plan\n")
open(path("result/cost"), "w").write('{"actual":"1","note":null}')
digest = lambda data: hashlib.sha256(data).hexdigest()
def output(name, file):
    data = open(path(file), "rb").read()
    return {"file": file, "name": name, "sha256": digest(data), "sizeBytes": str(len(data))}
said = json.loads(spec)
record = {"allEnded": True, "attemptId": said["attemptId"], "durationMs": "1", "exit": 0, "failure": None,
          "format": "praxis-exit", "notStarted": None, "operationId": said["operationId"],
          "outputs": [output("transcript.txt", "transcript.txt"), output("cost", "result/cost"),
                      output("plan.md", "result/plan.md")],
          "signal": None, "spec": digest(spec), "stopped": False, "timedOut": False,
          "transcriptTruncated": False, "version": "0"}
open(path("exit.json"), "w").write(json.dumps(record, separators=(",", ":"), sort_keys=True))
"#;

/// The limit that docs/SECURITY.md states: who kills its shim and writes the record of its end is no longer told from a
/// person's process. What decided stands in the record.
#[test]
fn a_forged_exit_record_is_believed_and_the_decision_recorded() {
    let scene = Scene::new();
    let forge = scene.world.file("forge.py", FORGE);
    let agent = format!(
        "engine >\"$RESULTS/engine\"\ntr '\\0' '\\n' </proc/$(shim)/cmdline | sed -n 3p >\"$RESULTS/folder\"\n{LEAVE}"
    );
    let daemon = format!(
        "e=$(cat \"$RESULTS/engine\")\nkill -9 $e $s\necho go >\"$GO\"\ndead $e\ndead $s\n\
         try before $PRAXIS --store $STORE --json approve \"$PLAN_RUN\" --digest \"$PLAN_DIGEST\"\n\
         python3 {} \"$(cat \"$RESULTS/folder\")\"\n\
         try forged $PRAXIS --store $STORE --json approve \"$PLAN_RUN\" --digest \"$PLAN_DIGEST\" --as mallory\n\
         echo done >\"$FIFO\"\n",
        forge.display()
    );
    scene.impostor(&agent, &format!("{STAY}{daemon}"));
    let code = scene.begin();
    scene.daemon_is_done();
    assert_eq!(code.wait(), None);
    scene.refused(&["before"], "ATTEMPT_LOST");
    let (said, _) = scene.outcome("forged");
    assert!(said.contains("exit 0"), "{said}");
    let record = decision(&scene, "mallory");
    assert_eq!(text(&record, "/proof/way"), "VERB");
    assert_eq!(record.pointer("/proof/terminal"), Some(&Value::Null));
    let ancestors = record.pointer("/proof/ancestors").unwrap();
    let me = format!("\"pid\":{}", std::process::id());
    assert!(!ancestors.to_string().contains(&me), "{ancestors}");
}

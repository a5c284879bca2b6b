//! Canaries in the command line: words in plans, patches, output, variables and tokens, and a search for them in whatever
//! the binary says to somebody who did not ask for just that.
//! Invariant: each place that is searched has been shown to be able to hold a word, or has a control in it.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![cfg(debug_assertions)]

#[path = "socket/client.rs"]
#[allow(dead_code)]
mod client;
mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use aiws::json::Value;
use aiws::object;
use client::Client;
use support::{World, called, files, scratch, text};

/// The value of a variable that is secret by its name.
const SECRET: &str = "canary-credential-7d1f0a";
/// In the plan.
const PLAN: &str = "canary-plan-text-53be";
/// In the patch.
const PATCH: &str = "canary-patch-text-a90c";
/// In the output of the agent.
const OUTPUT: &str = "canary-agent-output-11d7";
/// In the output of the check.
const CHECKED: &str = "canary-check-output-f4e2";
/// In a person's reason.
const NOTE: &str = "canary-reason-6ac8";

const AGENT: &str = r#"
echo "canary-agent-output-11d7 $BOT_TOKEN"
echo "canary-agent-output-11d7 $BOT_TOKEN" >&2
case "$PRAXIS_STAGE" in
plan) printf '# Plan\n\ncanary-plan-text-53be\n' > "$PRAXIS_OUTPUT_DIR/plan.md" ;;
*) echo "good canary-patch-text-a90c" > a.txt ;;
esac
"#;

fn found(bytes: &[u8], word: &str) -> bool {
    let hex: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
    let spelled = [word.as_bytes(), hex.as_bytes()];
    let mut all = spelled.iter();
    all.any(|wanted| bytes.windows(wanted.len()).any(|window| window == *wanted))
}

fn searched(place: &str, said: &str, words: &[&str]) {
    for word in words {
        let line = said.lines().find(|line| found(line.as_bytes(), word));
        assert!(line.is_none(), "{word} is in {place}: {line:?}");
    }
}

fn code(world: &World) -> Command {
    // Command lines are recorded in clear, so the word is only in what it writes.
    let (head, tail) = CHECKED.split_at(12);
    let check = format!("printf '%s%s\\n' {head} {tail}; grep -q good a.txt");
    let mut code = world.praxis();
    code.args([
        "code",
        "--task",
        "t",
        "--check",
        &check,
        "--env",
        "BOT_TOKEN",
        "--repo",
    ])
    .arg(&world.repo)
    .arg("--agent")
    .arg(format!("sh {}", world.agent.display()))
    .env("BOT_TOKEN", SECRET)
    .env("PRAXIS_LOG", "trace");
    code
}

/// Everything that a program is told without having asked for a plan or a patch by name.
const LOOKS: &[&[&str]] = &[
    &["list"],
    &["inbox"],
    &["holds"],
    &["show"],
    &["log"],
    &["unknown"],
    &["report"],
    &["verify"],
    &["verify", "--deep"],
    &["outbox", "--consumer", "outside"],
    &["doctor"],
];

/// Looks at everything, as a program and as a person, with the log at TRACE.
fn looked(world: &World, when: &str) {
    for verb in LOOKS {
        for json in [&["--json"][..], &[]] {
            let mut command = world.praxis();
            command.args(*verb).args(json).env("PRAXIS_LOG", "trace");
            let said = called(&mut command);
            let place = format!("{verb:?} {json:?} {when}");
            let mut words = vec![SECRET, OUTPUT, CHECKED];
            // The page of a run shows what waits for a decision: there it is asked for.
            if verb != &["show"] {
                words.extend([PLAN, PATCH]);
            }
            searched(&place, &said.out, &words);
            searched(&place, &said.err, &[SECRET, PLAN, PATCH, OUTPUT, CHECKED]);
        }
    }
}

/// Proves HS-07.7, OUT-4: a run with a kill, a recovery, refusals and an end: what agent, check and plan say, and a
/// variable's secret value, are in no log at TRACE, in no answer of a verb that was not asked for them, and in no
/// notice; the secret is in no file of the store either.
#[test]
fn a_coding_run_tells_nobody_what_it_holds() {
    let world = World::new(AGENT);
    let points = world.dir.path().join("points");
    let undisturbed = World::new(AGENT);
    let ran = called(
        code(&undisturbed)
            .args(["--approve-as", "tester"])
            .env("PRAXIS_CRASH_LOG", &points),
    );
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
    let all = [SECRET, PLAN, PATCH, OUTPUT, CHECKED];
    // The log is there, with fields, and speaks of this run.
    assert!(ran.err.contains("praxis_"), "no log: {}", ran.err);
    searched("the log of a run", &ran.err, &all);
    let points = fs::read_to_string(&points).unwrap();
    let approve = points
        .lines()
        .find(|line| line.ends_with("before-commit approve"));
    let point = approve.expect("an approval").split(' ').next().unwrap();

    let killed = called(
        code(&world)
            .args(["--approve-as", "tester"])
            .env("PRAXIS_CRASH_AT", point),
    );
    assert_eq!(killed.signal, Some(9), "{}", killed.err);
    searched("the log of a run that is killed", &killed.err, &all);
    looked(&world, "after the kill");

    let resume = |more: &[&str]| {
        let mut resume = world.praxis();
        resume
            .arg("resume")
            .args(more)
            .env("BOT_TOKEN", SECRET)
            .env("PRAXIS_LOG", "trace");
        called(&mut resume)
    };
    let page = world.json(&["show"]);
    let run = text(&page, "/run").to_owned();
    // Neither an agent nor somebody who names other material decides, and the refusal repeats nothing.
    let digest = "0".repeat(64);
    let other = ["approve", &run, "--digest", &digest];
    let posing = ["deny", &run, "--reason", NOTE];
    for (args, mark) in [(other, false), (posing, true)] {
        let mut verb = world.praxis();
        verb.args(args);
        verb.env("PRAXIS_LOG", "trace").env("BOT_TOKEN", SECRET);
        if mark {
            verb.env("PRAXIS_ATTEMPT_ID", "agent");
        }
        let refused = called(&mut verb);
        assert_ne!(refused.exit, Some(0), "{}", refused.out);
        let said = format!("{}{}", refused.out, refused.err);
        searched("a refusal", &said, &[SECRET, PLAN, OUTPUT, NOTE]);
    }
    let ended = resume(&["--approve-as", "tester"]);
    assert_eq!(ended.exit, Some(0), "{}", ended.err);
    searched(
        "the log of the rest",
        &ended.err,
        &[SECRET, OUTPUT, CHECKED],
    );
    looked(&world, "at the end");
    asked_for(&world);
}

/// Whoever asks for plan, patch or transcript gets it; the secret is masked there, and in no file of the store.
fn asked_for(world: &World) {
    assert!(world.verb(&["diff"]).out.contains(PATCH));
    let export = world.dir.path().join("export");
    let written = world.verb(&["export", export.to_str().unwrap()]);
    assert_eq!(written.exit, Some(0), "{}", written.err);
    let mut everything = files(&world.store, &|_| false);
    let (mut plan, mut output) = (false, false);
    for (_, bytes) in &everything {
        plan |= found(bytes, PLAN);
        output |= found(bytes, OUTPUT);
    }
    assert!(plan && output, "the words were never said");
    everything.push((export.clone(), fs::read(&export).unwrap()));
    for (path, bytes) in everything {
        assert!(
            !found(&bytes, SECRET),
            "the secret is in {}",
            path.display()
        );
    }
}

/// A `praxis serve` whose whole log is kept.
struct Logged {
    child: std::process::Child,
}

impl Logged {
    fn new(store: &Path, log: &Path) -> Self {
        let child = client::praxis(store)
            .arg("serve")
            .env("PRAXIS_LOG", "trace")
            .stdout(Stdio::null())
            .stderr(fs::File::create(log).unwrap())
            .spawn()
            .unwrap();
        let (socket, begun) = (store.join("engine.sock"), Instant::now());
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing serves");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child }
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn work(client: &mut Client, request: &str, ask: Value) -> Result<Value, client::Refused> {
    client.ask(object! {
        "verb": "work", "worker": "agent:adder", "missionId": "m", "runId": "run", "requestId": request, "ask": ask,
    })
}

/// A worker that does the first node and claims what comes of it; the claim's answer.
fn claimed(client: &mut Client) -> (String, Value) {
    let effect = object! {
        "action": object! { "action": "add", "scope": "numbers", "payload": object! { "numbers": vec![Value::Int(1)] } },
        "class": "EXTERNAL", "grantId": "adding", "amount": "1",
    };
    let admit = object! { "kind": "admit", "nodeId": "first", "effect": effect };
    let admitted = work(client, "admit", admit).unwrap();
    let attempt = text(&admitted, "/result/attemptId").to_owned();
    let dispatch = object! { "kind": "dispatch", "nodeId": "first" };
    work(client, "dispatch", dispatch).unwrap();
    let report = object! {
        "kind": "report", "attemptId": attempt, "outcome": "APPLIED", "actual": "1", "evidence": OUTPUT,
    };
    work(client, "report", report).unwrap();
    let context = object! {
        "intent": PLAN, "decisions": vec![PLAN], "assumptions": Vec::<Value>::new(), "limitations": Vec::<Value>::new(),
    };
    let boundary = object! { "kind": "boundary", "nodeId": "first", "context": context };
    work(client, "boundary", boundary).unwrap();
    let next = object! { "verb": "next-delivery", "worker": "agent:adder", "missionId": "m", "runId": "run" };
    let offer = client.ask(next).unwrap();
    let delivery = text(&offer, "/delivery/deliveryId").to_owned();
    let claim = object! { "kind": "claim", "deliveryId": delivery.as_str() };
    let answer = work(client, "claim", claim).unwrap();
    (delivery, answer)
}

/// Proves API-4, HD-02.10: the answer to a claim has the raw token and no other answer has, whether it looks or refuses;
/// a killed engine leaves it in no file, and the log at TRACE has neither it nor what workers say.
#[test]
fn a_token_is_in_one_answer_and_nowhere_else() {
    let dir = scratch();
    let store = dir.path().canonicalize().unwrap().join("store");
    let log = dir.path().join("log");
    let served = Logged::new(&store, &log);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/mission.py");
    let opened = Command::new("python3")
        .arg(script)
        .arg(&store)
        .args(["m", "run"])
        .env_remove("PRAXIS_ATTEMPT_ID")
        .output()
        .unwrap();
    assert!(opened.status.success(), "python3 is needed");
    let mut client = Client::at(&store.join("engine.sock"));
    let (delivery, answer) = claimed(&mut client);
    let token = text(&answer, "/claimToken").to_owned();
    assert_eq!(token.len(), 43);
    let words = [token.as_str()];

    let wrong = |kind: &str, token: &str, generation: &str| {
        object! { "kind": kind, "deliveryId": delivery.as_str(), "claimToken": token, "generation": generation }
    };
    let odd = format!("{token}A");
    for (request, ask) in [
        ("r1", wrong("release", &token, "7")),
        ("r2", wrong("release", &odd, "1")),
        ("r3", wrong(&token, &token, "1")),
        ("r4", wrong("release", &token, &token)),
        (
            "r5",
            object! { "kind": "claim", "deliveryId": delivery.as_str(), "claimToken": token.as_str() },
        ),
    ] {
        let (code, message) = work(&mut client, request, ask).unwrap_err();
        searched(
            &format!("the refusal {code} of {request}"),
            &message,
            &words,
        );
    }
    let looks = [
        "list", "inbox", "holds", "log", "unknown", "live", "verify", "doctor",
    ];
    for verb in looks {
        if let Ok(value) = client.ask(object! { "verb": verb }) {
            searched(verb, &value.to_string(), &[&token, OUTPUT, PLAN]);
        }
    }
    let run = client
        .ask(object! { "verb": "run", "missionId": "m", "runId": "run" })
        .unwrap();
    searched("the run", &run.to_string(), &[&token, OUTPUT]);
    drop(client);
    drop(served);

    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains("serving "), "{said}");
    searched("the log", &said, &[&token, OUTPUT, PLAN]);
    let export = dir.path().join("export");
    let mut verb = client::praxis(&store);
    verb.arg("export").arg(&export).env("PRAXIS_LOG", "trace");
    let written = called(&mut verb);
    assert_eq!(written.exit, Some(0), "{}", written.err);
    assert!(
        found(&fs::read(&export).unwrap(), PLAN),
        "it was never said"
    );
    let mut everything = files(&store, &|_| false);
    everything.push((export.clone(), fs::read(&export).unwrap()));
    for (path, bytes) in everything {
        assert!(!found(&bytes, &token), "the token is in {}", path.display());
    }
}

//! Workers on the socket: what they are given, what they are refused, and that nothing is done twice.
//! Invariant: a worker acts in its own name; only a person's proof opens missions and decides.
//! Through a real `praxis serve`, with the documented scripts in Python where they say enough.

use aiws::json::Value;
use aiws::object;

use crate::client::{Client, Refused, Served};
use crate::support::{finished, text};

fn work(client: &mut Client, worker: &str, request: &str, ask: Value) -> Result<Value, Refused> {
    client.ask(object! {
        "verb": "work", "worker": worker, "missionId": "m", "runId": "run", "requestId": request, "ask": ask,
    })
}

fn next(worker: &str, mission: &str) -> Value {
    object! { "verb": "next-delivery", "worker": worker, "missionId": mission, "runId": "run" }
}

fn effect() -> Value {
    object! {
        "action": object! { "action": "add", "scope": "numbers", "payload": object! { "numbers": vec![Value::Int(1)] } },
        "class": "EXTERNAL", "grantId": "adding", "amount": "1",
    }
}

fn admit(request: &str) -> (String, Value) {
    let ask = object! { "kind": "admit", "nodeId": "first", "effect": effect() };
    (request.to_owned(), ask)
}

/// The first node's result is on its way to the second; the offer of its delivery.
fn delivered(served: &Served) -> (Client, Value) {
    served.mission("m");
    let mut client = served.client();
    let me = "agent:adder";
    let (request, ask) = admit("admit");
    let admitted = work(&mut client, me, &request, ask).unwrap();
    let attempt = text(&admitted, "/result/attemptId").to_owned();
    work(
        &mut client,
        me,
        "dispatch",
        object! { "kind": "dispatch", "nodeId": "first" },
    )
    .unwrap();
    let report = object! { "kind": "report", "attemptId": attempt, "outcome": "APPLIED", "actual": "1", "evidence": "done" };
    work(&mut client, me, "report", report).unwrap();
    work(
        &mut client,
        me,
        "boundary",
        object! { "kind": "boundary", "nodeId": "first" },
    )
    .unwrap();
    let offer = client.ask(next(me, "m")).unwrap();
    (client, offer)
}

fn claim(offer: &Value) -> Value {
    object! { "kind": "claim", "deliveryId": text(offer, "/delivery/deliveryId") }
}

/// The documented scripts open a mission, take deliveries, do the work, report and hand on; the log names
/// who did what.
#[test]
fn the_documented_worker_does_a_mission() {
    let served = Served::new();
    served.mission("m");
    let done = served.script("worker.py", "m").output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{err}");
    let mut client = served.client();
    let run = client
        .ask(object! { "verb": "run", "missionId": "m", "runId": "run" })
        .unwrap();
    let nodes = run
        .pointer("/report/nodes")
        .and_then(Value::as_array)
        .unwrap();
    assert!(
        nodes
            .iter()
            .all(|node| text(node, "/status") == "COMPLETED"),
        "{run}"
    );
    let manifests = run.get("manifests").and_then(Value::as_array).unwrap();
    let sums: Vec<String> = manifests
        .iter()
        .filter_map(|manifest| manifest.pointer("/result/numbers").map(Value::to_string))
        .collect();
    assert_eq!(sums, ["[6]", "[6]"]);
    decided(&mut client, &run);
    let over = client.ask(next("agent:adder", "m")).unwrap_err();
    assert_eq!(over.0, "TERMINAL_EXECUTION");
}

/// A person's script verifies, accepts and completes what workers did.
fn decided(client: &mut Client, run: &Value) {
    let evidence = text(run, "/attempts/0/evidence/0").to_owned();
    let assessed = |id: &str, kind: &str, verdict: &str| {
        object! {
            "type": kind, "assessmentId": id, "runId": "run", "subject": "sum", "verdict": verdict,
            "evidence": vec![evidence.as_str()],
        }
    };
    let bodies = [
        ("verify", assessed("v", "verify", "PASS")),
        ("accept", assessed("a", "accept", "ACCEPTED")),
        (
            "complete",
            object! { "type": "completeRun", "runId": "run", "ownerEpoch": "0" },
        ),
    ];
    for (request, body) in bodies {
        let intent = object! { "intent": "command", "body": body };
        let command =
            object! { "requestId": request, "missionId": "m", "runId": "run", "intent": intent };
        let apply = object! { "verb": "apply", "command": command };
        let applied = client.ask(apply).unwrap();
        assert!(applied.get("event") != Some(&Value::Null), "{applied}");
    }
    let run = client
        .ask(object! { "verb": "run", "missionId": "m", "runId": "run" })
        .unwrap();
    assert_eq!(text(&run, "/report/lifecycle"), "COMPLETED");
}

/// What a worker did while its engine died is reported to the next one; where it cannot say, a person settles it, and the
/// run goes on.
#[test]
fn an_attempt_outlives_its_engine() {
    let mut served = Served::new();
    served.mission("m");
    let mut client = served.client();
    let me = "agent:adder";
    let admitted = work(&mut client, me, "a", admit("a").1).unwrap();
    let dispatch = || object! { "kind": "dispatch", "nodeId": "first" };
    work(&mut client, me, "d", dispatch()).unwrap();
    let store = object! { "kind": "store", "name": "finding", "mediaType": "text/plain", "text": "it was done" };
    let stored = work(&mut client, me, "s", store).unwrap();
    served.kill();
    served.serve();
    let mut client = served.client();
    let attempt = text(&admitted, "/result/attemptId").to_owned();
    let again = work(&mut client, me, "d", dispatch()).unwrap();
    assert_eq!(again.get("permitted"), Some(&Value::Bool(false)));
    let report = |outcome: &str| object! { "kind": "report", "attemptId": attempt.as_str(), "outcome": outcome, "evidence": "lost" };
    // That nothing happened is no longer the worker's to say, and it is told so (T-20).
    let refused = work(&mut client, me, "n", report("NOT_APPLIED")).unwrap_err();
    assert_eq!(refused.0, "HUMAN_REQUIRED", "{}", refused.1);
    work(&mut client, me, "r", report("UNCERTAIN")).unwrap();
    let run = client
        .ask(object! { "verb": "run", "missionId": "m", "runId": "run" })
        .unwrap();
    assert_eq!(text(&run, "/report/uncertain/0"), attempt);
    let retry = object! { "kind": "retry", "operationId": text(&admitted, "/result/operationId") };
    let again = work(&mut client, me, "t", retry).unwrap_err();
    assert_eq!(again.0, "EFFECT_UNRESOLVED", "{}", again.1);
    let evidence = format!("sha256:{}", text(&stored, "/artifact/digest"));
    let body = object! {
        "type": "reconcile", "runId": "run", "attemptId": attempt.as_str(), "outcome": "CONFIRMED_APPLIED", "actual": "1",
        "evidence": vec![evidence],
    };
    let intent = object! { "intent": "command", "body": body };
    let command = object! { "requestId": "r", "missionId": "m", "runId": "run", "intent": intent };
    client
        .ask(object! { "verb": "apply", "command": command })
        .unwrap();
    work(
        &mut client,
        me,
        "b",
        object! { "kind": "boundary", "nodeId": "first" },
    )
    .unwrap();
    let offer = client.ask(next(me, "m")).unwrap();
    assert_eq!(text(&offer, "/node/id"), "second");
}

/// A person's request comes with the proof: who bears the mark of an agent opens nothing.
#[test]
fn an_agent_opens_no_mission() {
    let served = Served::new();
    let mut script = served.script("mission.py", "m");
    let said = script.env("PRAXIS_ATTEMPT_ID", "x").output().unwrap();
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(
        !said.status.success() && err.contains("HUMAN_REQUIRED"),
        "{err}"
    );
    let run = object! { "verb": "run", "missionId": "m", "runId": "run" };
    assert_eq!(served.client().ask(run).unwrap_err().0, "RUN_NOT_FOUND");
}

/// A coding run has an engine and verbs of its own: no worker does its nodes, and no script decides on it around them.
#[test]
fn a_coding_run_takes_no_workers() {
    let world = finished();
    let page = world.json(&["log"]);
    let events = page.get("events").and_then(Value::as_array).unwrap();
    let mission = text(&events[0], "/missionId").to_owned();
    let run = text(&world.json(&["show"]), "/run").to_owned();
    let support = crate::support::World { ..world };
    let served = Served::on(support.dir, support.store);
    let mut client = served.client();
    let next = object! { "verb": "next-delivery", "worker": "agent:x", "missionId": mission.as_str(), "runId": run.as_str() };
    assert_eq!(client.ask(next).unwrap_err().0, "AUTHORIZATION_DENIED");
    let ask = object! { "kind": "dispatch", "nodeId": "implement" };
    let work = object! { "verb": "work", "worker": "agent:x", "missionId": mission.as_str(), "runId": run.as_str(), "requestId": "q", "ask": ask };
    assert_eq!(client.ask(work).unwrap_err().0, "AUTHORIZATION_DENIED");
    let body =
        object! { "type": "cancelRun", "runId": run.as_str(), "reason": "x", "decisionRef": "x" };
    let command = object! { "requestId": "q", "missionId": mission.as_str(), "runId": run.as_str(), "intent": object! { "intent": "command", "body": body } };
    let apply = object! { "verb": "apply", "command": command };
    assert_eq!(client.ask(apply).unwrap_err().0, "AUTHORIZATION_DENIED");
    let run = object! { "verb": "run", "missionId": mission.as_str(), "runId": run.as_str() };
    assert_eq!(client.ask(run).unwrap_err().0, "AUTHORIZATION_DENIED");
}

/// No ask of a worker approves, verifies or accepts, and no name makes it somebody else.
#[test]
fn a_worker_never_decides() {
    let served = Served::new();
    served.mission("m");
    let mut client = served.client();
    for kind in [
        "approve",
        "verify",
        "accept",
        "completeRun",
        "cancelRun",
        "reconcile",
    ] {
        let ask = object! { "kind": kind, "nodeId": "first" };
        let refused = work(&mut client, "agent:adder", "q", ask).unwrap_err();
        assert_eq!(refused.0, "USAGE", "{kind}");
    }
    for name in [
        "alice",
        "system:engine",
        "rule:check-passed",
        "agent:",
        "agent:a\u{202e}b",
    ] {
        let refused = work(&mut client, name, "q", admit("q").1).unwrap_err();
        assert_eq!(refused.0, "USAGE", "{name:?}");
    }
    let other = work(&mut client, "agent:other", "q", admit("q").1).unwrap_err();
    assert_eq!(other.0, "GRANT_EXCEEDED", "the grant names another worker");
    let mut odd = admit("q").1;
    if let Value::Object(members) = &mut odd {
        members.insert("as".to_owned(), "alice".into());
    }
    assert_eq!(
        work(&mut client, "agent:adder", "q", odd).unwrap_err().0,
        "USAGE"
    );
}

/// Proves API-5: a request that is sent again gets the first answer and permits nothing; with other content it is refused.
#[test]
fn a_replay_permits_nothing() {
    let served = Served::new();
    served.mission("m");
    let mut client = served.client();
    let me = "agent:adder";
    let first = work(&mut client, me, "admit", admit("admit").1).unwrap();
    let again = work(&mut client, me, "admit", admit("admit").1).unwrap();
    assert_eq!(first.get("result"), again.get("result"));
    assert!(first.get("event") != Some(&Value::Null) && again.get("event") == Some(&Value::Null));
    let dispatch = || object! { "kind": "dispatch", "nodeId": "first" };
    let first = work(&mut client, me, "go", dispatch()).unwrap();
    // From another connection, as after a lost answer.
    let again = work(&mut served.client(), me, "go", dispatch()).unwrap();
    assert_eq!(first.get("permitted"), Some(&Value::Bool(true)));
    assert_eq!(again.get("permitted"), Some(&Value::Bool(false)));
    let other = object! { "kind": "dispatch", "nodeId": "second" };
    assert_eq!(
        work(&mut client, me, "go", other).unwrap_err().0,
        "IDENTITY_CONFLICT"
    );
}

#[test]
fn a_wrong_token_is_refused_and_the_right_one_still_counts() {
    let served = Served::new();
    let (mut client, offer) = delivered(&served);
    let me = "agent:adder";
    let claimed = work(&mut client, me, "claim", claim(&offer)).unwrap();
    let acknowledge = |token: &str| {
        object! {
            "kind": "acknowledge", "deliveryId": text(&offer, "/delivery/deliveryId"),
            "handoff": offer.pointer("/delivery/handoff").unwrap().clone(),
            "claimToken": token, "generation": text(&claimed, "/result/generation"),
        }
    };
    let wrong = "A".repeat(43);
    let refused = work(&mut client, me, "ack-1", acknowledge(&wrong)).unwrap_err();
    assert_eq!(refused.0, "STALE_OWNER");
    assert!(!refused.1.contains(&wrong), "{}", refused.1);
    let malformed = work(&mut client, me, "ack-2", acknowledge("secret")).unwrap_err();
    assert!(
        malformed.0 == "SCHEMA_INVALID" && !malformed.1.contains("secret"),
        "{malformed:?}"
    );
    let token = text(&claimed, "/claimToken");
    let right = work(&mut client, me, "ack-3", acknowledge(token)).unwrap();
    assert_eq!(
        (text(&right, "/nodeId"), right.get("ready")),
        ("second", Some(&Value::Bool(true)))
    );
}

/// Two workers see the same delivery; one gets it and the token, the other a refusal and nothing else.
#[test]
fn of_two_workers_one_gets_the_delivery() {
    let served = Served::new();
    let (_, offer) = delivered(&served);
    let race = |name: &'static str| {
        let (mut client, ask) = (served.client(), claim(&offer));
        std::thread::spawn(move || work(&mut client, name, "claim", ask))
    };
    let (one, two) = (race("agent:adder"), race("agent:other"));
    let mut outcomes = [one.join().unwrap(), two.join().unwrap()];
    outcomes.sort_by_key(Result::is_err);
    let [won, lost] = outcomes;
    assert_eq!(text(&won.unwrap(), "/claimToken").len(), 43);
    assert_eq!(lost.unwrap_err().0, "DELIVERY_STATE");
}

/// Whoever leaves while it waits is forgotten: as many again find room, and the last one gets the work.
#[test]
fn who_leaves_while_waiting_is_forgotten() {
    let served = Served::new();
    let (mut holder, offer) = delivered(&served);
    work(&mut holder, "agent:adder", "claim", claim(&offer)).unwrap();
    for _ in 0..3 {
        let waiting: Vec<Client> = (0..60)
            .map(|_| {
                let mut client = served.client();
                client.ask_only(next("agent:other", "m"));
                client
            })
            .collect();
        drop(waiting);
    }
    let mut client = served.client();
    client.ask_only(next("agent:other", "m"));
    let release = object! {
        "kind": "release", "deliveryId": text(&offer, "/delivery/deliveryId"),
        "claimToken": text(&work(&mut holder, "agent:adder", "claim", claim(&offer)).unwrap(), "/claimToken"),
        "generation": "1",
    };
    work(&mut holder, "agent:adder", "release", release).unwrap();
    let line = client.line().unwrap();
    assert_eq!(
        text(&line, "/answer/value/delivery/deliveryId"),
        text(&offer, "/delivery/deliveryId")
    );
}

/// Bytes go in as an artifact and come out for whoever works on the run; nothing that no manifest names comes out.
#[test]
fn artifacts_go_with_the_hand_off() {
    let served = Served::new();
    served.mission("m");
    let mut client = served.client();
    let me = "agent:adder";
    let store =
        object! { "kind": "store", "name": "note.txt", "mediaType": "text/plain", "text": "hello" };
    let stored = work(&mut client, me, "s", store).unwrap();
    let digest = text(&stored, "/artifact/digest").to_owned();
    let fetch = || object! { "kind": "fetch", "digest": digest.as_str() };
    assert_eq!(
        work(&mut client, me, "f", fetch()).unwrap_err().0,
        "NOT_FOUND"
    );
    let admitted = work(&mut client, me, "a", admit("a").1).unwrap();
    work(
        &mut client,
        me,
        "d",
        object! { "kind": "dispatch", "nodeId": "first" },
    )
    .unwrap();
    let report = object! {
        "kind": "report", "attemptId": text(&admitted, "/result/attemptId"), "outcome": "APPLIED", "actual": "1", "evidence": Value::Null,
    };
    work(&mut client, me, "r", report).unwrap();
    let boundary = object! { "kind": "boundary", "nodeId": "first", "artifacts": vec![stored.get("artifact").unwrap().clone()] };
    work(&mut client, me, "b", boundary).unwrap();
    let fetched = work(&mut client, "agent:other", "f", fetch()).unwrap();
    assert_eq!(
        (text(&fetched, "/text"), text(&fetched, "/hex")),
        ("hello", "68656c6c6f")
    );
}

//! The order of the stages through the public API, who is attributed, and a store that is only looked at.
//! Invariant: a refusal changes nothing: head, accounts and log stay as they were.
//! Tests of hop 1 and of facts gathering.

use aiws::error::{Code, Error, Stage};
use aiws::record::{ActorKind, EffectClass, RestartPolicy, VerificationVerdict};
use praxis_engine::{Capability, Engine, Options, Ports, Response, SeededEntropy, Shutdown};
use praxis_model::command::{Body, CommandType, Intent, Verify};

use crate::support::{World, dec, draft_of, id, intent, mission};

const RUN: &str = "run";

fn verify(name: &str) -> Body {
    Body::Verify(Verify {
        assessment_id: id(name),
        run_id: id(RUN),
        subject: id("result"),
        verdict: VerificationVerdict::Pass,
        evidence: vec![id("seen")],
    })
}

fn wire(request: &str, revision: u64, epoch: u64, body: &str) -> Vec<u8> {
    format!(
        r#"{{"requestId":"{request}","expectedRevision":"{revision}","ownerEpoch":"{epoch}","command":{{
            "protocol":"aiws-handoff/1","requestId":"{request}","expectedRevision":"{revision}","missionId":"mission",
            "runId":"run","ownerEpoch":"{epoch}","body":{body}}}}}"#
    )
    .into_bytes()
}

const HOLD: &str = r#"{"type":"placeHold","hold":{"holdId":"h","scope":{"kind":"RUN","ref":{"id":"run","revision":"1"},
    "resolverRevision":"1"},"reason":"OPERATOR","owner":"human:op","blockers":[],"allowedDecisions":["RECHECK"]}}"#;

fn refusal(answer: Result<Response, Error>) -> (Code, Stage) {
    let error = answer.expect_err("refused");
    (error.code(), error.stage)
}

/// Proves ERR-PREC.1, HF-02.8, HC-ENV.2: nested violations removed one at a time give, in this order, shape,
/// authentication, replay conflict, revision, ownership, authority; and none of them changes anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn err_prec_1_the_first_stage_that_refuses_names_the_error() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    let human = open.human();
    open.engine
        .apply(&human, &wire("used", 1, 1, HOLD))
        .await
        .expect("accepted");
    let head = open.state(RUN).await.head;
    let anonymous = Capability::anonymous().expect("anonymous");
    world
        .policy
        .denied
        .lock()
        .expect("policy")
        .insert(CommandType::PlaceHold);
    let other = HOLD.replace("\"h\"", "\"h2\"");

    let malformed = open
        .engine
        .apply(
            &anonymous,
            b"{\"requestId\":\"used\",\"requestId\":\"used\"}",
        )
        .await;
    assert_eq!(refusal(malformed), (Code::SchemaInvalid, Stage::Shape));
    let protocol = String::from_utf8(wire("used", 0, 9, &other))
        .expect("text")
        .replace("handoff/1", "handoff/2");
    assert_eq!(
        refusal(open.engine.apply(&anonymous, protocol.as_bytes()).await),
        (Code::UnsupportedProtocol, Stage::Shape)
    );
    let unproven = open
        .engine
        .apply(&anonymous, &wire("used", 0, 9, &other))
        .await;
    assert_eq!(
        refusal(unproven),
        (Code::AuthorizationDenied, Stage::Authentication)
    );
    let conflict = open.engine.apply(&human, &wire("used", 0, 9, &other)).await;
    assert_eq!(refusal(conflict), (Code::IdentityConflict, Stage::Replay));
    let stale = open.engine.apply(&human, &wire("new", 0, 9, &other)).await;
    assert_eq!(refusal(stale), (Code::RevisionConflict, Stage::Revision));
    let epoch = open
        .engine
        .apply(&human, &wire("new", head.revision.get(), 9, &other))
        .await;
    assert_eq!(refusal(epoch), (Code::StaleOwner, Stage::Ownership));
    let denied = open
        .engine
        .apply(&human, &wire("new", head.revision.get(), 1, &other))
        .await;
    assert_eq!(
        refusal(denied),
        (Code::AuthorizationDenied, Stage::Authority)
    );
    assert_eq!(open.state(RUN).await.head, head, "refusals change nothing");
    world.close(open, Shutdown::Drain).await;
}

/// Proves HF-02.10, API-5: scenario P-03. An exact replay gets its first result whatever changed since: revision,
/// epoch, policy, gates; it has no event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hf_02_10_an_exact_replay_comes_before_everything_else() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Human, false).await;
    let human = open.human();
    let bytes = wire("q", 1, 1, HOLD);
    let first = open.engine.apply(&human, &bytes).await.expect("accepted");
    open.recover(RUN, "q-recover", 1).await.expect("recovered");
    world
        .policy
        .denied
        .lock()
        .expect("policy")
        .extend(CommandType::ALL);
    let head = open.state(RUN).await.head;
    let replay = open.engine.apply(&human, &bytes).await.expect("replayed");
    assert!(replay.event.is_none());
    assert_eq!(
        (replay.revision, &replay.result),
        (first.revision, &first.result)
    );
    assert_eq!(open.state(RUN).await.head, head);
    world.close(open, Shutdown::Drain).await;
    // After a restart too: the rows are in the store.
    let open = world.open().await;
    let replay = open
        .engine
        .apply(&open.human(), &bytes)
        .await
        .expect("replayed");
    assert_eq!(
        (replay.event.is_none(), replay.result),
        (true, first.result)
    );
    world.close(open, Shutdown::Drain).await;
}

/// Proves FV-GRT.3, FV-EFF.6: authority is asked again at dispatch; a denial between admission and dispatch stops it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fv_grt_3_authority_is_asked_again_at_dispatch() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    let worker = open
        .engine
        .worker(open.agent("agent:w1"), mission(), id(RUN));
    worker
        .admit(&id("q-1"), &id("a"), Some(draft_of("a")))
        .await
        .expect("admitted");
    world
        .policy
        .denied
        .lock()
        .expect("policy")
        .insert(CommandType::Dispatch);
    assert_eq!(
        refusal(worker.dispatch(&id("q-2"), &id("a")).await).0,
        Code::AuthorizationDenied
    );
    world.policy.denied.lock().expect("policy").clear();
    let dispatched = worker
        .dispatch(&id("q-3"), &id("a"))
        .await
        .expect("dispatched");
    assert!(dispatched.event.is_some());
    let again = worker
        .dispatch(&id("q-3"), &id("a"))
        .await
        .expect("replayed");
    assert!(
        again.event.is_none(),
        "a duplicate permits no effect (FV-EFF.6)"
    );
    drop(worker);
    world.close(open, Shutdown::Drain).await;
}

/// Proves FV-GRT.6: who acted, under which policy, in which class of decision, comes from the host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fv_grt_6_attribution_comes_from_the_host() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    let done = open.command(RUN, "q", verify("v")).await.expect("accepted");
    let event = &done.event.expect("an event").event;
    assert_eq!(event.actor_id, id("human:op"));
    assert_eq!(event.actor_kind, ActorKind::Human);
    assert_eq!(event.policy.id, id("policy"));
    assert_eq!(event.decision_class, "AT_TERMINAL");
    assert_eq!(event.decision_ref, Some(id("decision")));
    world.close(open, Shutdown::Drain).await;
}

/// A run that was never admitted has no owner; the answer comes after authentication and replay, and says nothing
/// about other missions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_run_is_refused_at_ownership() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.mission(RestartPolicy::Auto, false).await;
    let request = intent("nobody", "q", Intent::Command { body: verify("v") });
    assert_eq!(
        refusal(open.engine.submit(&open.human(), &request).await),
        (Code::StaleOwner, Stage::Ownership)
    );
    let anonymous = Capability::anonymous().expect("anonymous");
    let unproven = open.engine.submit(&anonymous, &request).await;
    assert_eq!(
        refusal(unproven),
        (Code::AuthorizationDenied, Stage::Authentication)
    );
    assert_eq!(open.engine.runs(), Vec::new());
    world.close(open, Shutdown::Drain).await;
}

/// A store that is opened to look at is not recovered and not written, byte for byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_looked_at_is_not_written() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    let worker = open
        .engine
        .worker(open.agent("agent:w1"), mission(), id(RUN));
    worker
        .admit(&id("q-1"), &id("a"), Some(draft_of("a")))
        .await
        .expect("admitted");
    drop(worker);
    // Left at once, so that there would be something to recover.
    world.close(open, Shutdown::Now).await;
    let before = files(world.dir.path());
    let options = Options {
        read_only: true,
        ..Options::default()
    };
    let ports = Ports {
        clock: world.clock.clone(),
        entropy: std::sync::Arc::new(SeededEntropy::new(1)),
        authorizer: world.policy.clone(),
        artifacts: std::sync::Arc::new(
            praxis_artifacts::FileArtifacts::open(&world.dir.path().join("artifacts"))
                .expect("artifacts"),
        ),
    };
    let opened = Engine::open(&world.dir.path().join("store"), options, ports).await;
    let (engine, host) = opened.expect("opens");
    let state = engine
        .run_state(&mission(), &id(RUN))
        .await
        .expect("a state");
    assert_eq!((state.epoch, state.operations.size()), (1, 1));
    let me = host.capability(
        id("human:op"),
        ActorKind::Human,
        "AT_TERMINAL",
        Default::default(),
    );
    let refused = engine
        .submit(
            &me,
            &intent(RUN, "q", Intent::Command { body: verify("v") }),
        )
        .await;
    assert_eq!(refusal(refused).0, Code::StoreReadOnly);
    engine.shutdown(Shutdown::Drain).await.expect("closed");
    drop((engine, host));
    assert_eq!(files(world.dir.path()), before);
    assert_eq!(
        state
            .attempts
            .values()
            .next()
            .map(|attempt| attempt.reserved),
        Some(dec(3))
    );
}

/// Every file's name and bytes, the lock's holder text aside.
fn files(path: &std::path::Path) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(path).expect("readable") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !path.ends_with("engine.lock") {
            found.insert(path.clone(), std::fs::read(&path).expect("readable"));
        }
    }
    found
}

//! Two owners of one run in one process: the one that was deposed cannot act, whatever it has in memory.
//! Invariant: both are real owners on one real journal; no actor serializes them.
//! Tests of the run's owner beside it, because nothing outside the crate can make a second one.

use std::sync::Arc;

use aiws::canonical::from_value;
use aiws::error::Code;
use aiws::object;
use aiws::record::{ActorKind, Contract, HandoffConfig, Ref};
use praxis_artifacts::FileArtifacts;
use praxis_model::command::{ActivateGraph, Body, Intent, RecoverOwnership};
use praxis_model::stream::Subject;

use super::{RunOwner, own_request};
use crate::capability::{CLASS_RECOVERY, CLASS_SCHEDULER, Capability};
use crate::directory::RunKept;
use crate::{Ask, Authorization, Engine, ManualClock, Options, Ports, SeededEntropy, Shutdown};

fn contract() -> Contract {
    from_value(&object! {
        "edition": "0.4", "features": Vec::<&str>::new(), "extensions": vec!["aiws-handoff/1"],
        "missionId": "m", "contractId": "c", "revision": "1", "budget": "1", "deadlineMs": "9000",
        "maxAttempts": "1", "authority": object! { "rootGrants": Vec::<&str>::new() },
    })
    .expect("a contract")
}

fn config() -> HandoffConfig {
    let none = Vec::<&str>::new;
    from_value(&object! {
        "optionalInputs": none(), "mappings": none(), "requiredSkip": none(), "scopeBindings": none(),
        "restartPolicy": "AUTO", "leaseMs": "100", "defaultStop": "DRAIN", "maxRecipients": "1",
    })
    .expect("a configuration")
}

fn activation() -> Intent {
    let graph = object! {
        "graphId": "g", "revision": "1", "planRevision": "1",
        "nodes": vec![object! { "id": "end", "kind": "END", "dependsOn": Vec::<&str>::new(), "config": object! {} }],
    };
    let body = ActivateGraph {
        run_id: "r".parse().expect("id"),
        owner_epoch: "1".parse().expect("epoch"),
        graph: from_value(&graph).expect("a graph"),
    };
    Intent::Command {
        body: Body::ActivateGraph(body),
    }
}

async fn open(dir: &std::path::Path) -> Engine {
    let policy: Ref = from_value(&object! { "id": "p", "revision": "1" }).expect("a policy");
    let authorizer = move |ask: &Ask<'_>| Authorization {
        recovery_authority: true,
        ..Authorization::allowed(ask.capability, policy.clone())
    };
    let ports = Ports {
        clock: Arc::new(ManualClock::new(1000)),
        entropy: Arc::new(SeededEntropy::new(1)),
        authorizer: Arc::new(authorizer),
        artifacts: Arc::new(FileArtifacts::open(&dir.join("artifacts")).expect("artifacts")),
    };
    let options = Options {
        create: true,
        ..Options::default()
    };
    let (engine, host) = Engine::open(&dir.join("store"), options, ports)
        .await
        .expect("opens");
    let me = host.capability(
        "me".parse().expect("id"),
        ActorKind::Human,
        "TEST",
        Default::default(),
    );
    let request = |name: &str| name.parse().expect("a request id");
    engine
        .open_mission(&me, &request("o"), contract(), config())
        .await
        .expect("opened");
    let mission = "m".parse().expect("id");
    engine
        .start_run(&me, &mission, &request("s"), "r".parse().expect("id"))
        .await
        .expect("started");
    engine
}

/// Proves FV-REC.4: an owner that lives on after another took its run over is stopped at the durable boundary, finds
/// the other's epoch, and never acts again; the new owner is not disturbed (T-17, T-69).
#[tokio::test]
async fn a_deposed_owner_that_lives_on_is_stopped() {
    let dir = tempfile::TempDir::new().expect("a directory");
    let engine = open(dir.path()).await;
    let subject = Subject::run("m".parse().expect("id"), "r".parse().expect("id"));
    let owner = || RunOwner::new(Arc::clone(engine.core()), subject.clone(), RunKept::new(1));
    let (mut old, mut new) = (owner(), owner());
    assert_eq!(old.current().await.expect("a state").epoch, 1);

    let body = Body::RecoverOwnership(RecoverOwnership {
        expected_epoch: "1".parse().expect("epoch"),
        reason: "taken over".to_owned(),
        decision_ref: None,
    });
    new.own(CLASS_RECOVERY, Intent::Command { body })
        .await
        .expect("recovered");
    let request = || own_request(Capability::system(CLASS_SCHEDULER)?, activation());
    let refused = old
        .take(&request().expect("a request"))
        .await
        .err()
        .expect("refused");
    assert_eq!(refused.code(), Code::StaleOwner);
    assert!(old.is_deposed(), "it stops");
    let again = old
        .take(&request().expect("a request"))
        .await
        .err()
        .expect("refused");
    assert_eq!(again.code(), Code::StaleOwner);

    let done = new
        .own(CLASS_SCHEDULER, activation())
        .await
        .expect("the new owner goes on");
    let event = done.response.event.expect("an event");
    assert_eq!(event.event.owner_epoch.map(|epoch| epoch.get()), Some(2));
    engine.shutdown(Shutdown::Drain).await.expect("closed");
}

/// Names of missions that were never opened cost nothing: whatever is asked of them, no owner is started.
#[tokio::test]
async fn a_mission_that_was_never_opened_gets_no_owner() {
    let dir = tempfile::TempDir::new().expect("a directory");
    let engine = open(dir.path()).await;
    let human = Capability::system(CLASS_SCHEDULER).expect("a capability");
    let unknown: aiws::id::MissionId = "unknown".parse().expect("id");
    let (request, run) = ("q".parse().expect("id"), "r".parse().expect("id"));
    let started = engine.start_run(&human, &unknown, &request, run).await;
    assert!(started.is_err());
    let looked = engine.mission_state(&unknown).await;
    assert_eq!(looked.expect_err("none").code(), Code::NotFound);
    assert!(engine.core().directory.mission(&unknown).is_none());
    engine.shutdown(Shutdown::Drain).await.expect("closed");
}

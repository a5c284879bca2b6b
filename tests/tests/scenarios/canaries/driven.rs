//! A run that a program drives, with an adapter that has a credential and says it wherever it can.
//! Invariant: the credential is in the adapter's own configuration, taken from the environment, and in what it reports.
//! Run by the search alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aiws::canonical::{from_value, to_bytes};
use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::record::{ActorKind, AttemptStatus, EffectClass, Ref};
use aiws::{object, strict};
use praxis_artifacts::FileArtifacts;
use praxis_engine::*;
use praxis_model::command::Body;

use super::notes::Notes;
use super::{HOST, OUTPUT, PAYLOAD, teller};
use crate::wire::id;

/// The example of the engine, which is one task and its end.
const MISSION: &[u8] = include_bytes!("../../../../crates/engine/examples/embed.json");

struct Talker {
    credential: String,
    calls: AtomicU64,
}

impl Adapter for Talker {
    fn class(&self) -> EffectClass {
        EffectClass::Idempotent
    }

    fn call(&self, _: EffectCall) -> BoxFuture<'_, EffectReport> {
        let evidence = object! { "printed": format!("{OUTPUT} {}", self.credential) };
        let why = format!("{OUTPUT} {}", self.credential);
        let first = self.calls.fetch_add(1, Ordering::SeqCst) == 0;
        let outcome = match first {
            true => EffectOutcome::NotApplied,
            false => EffectOutcome::Uncertain { why },
        };
        Box::pin(async move { EffectReport { outcome, evidence } })
    }

    fn lookup<'a>(&'a self, _: &'a EffectCall) -> BoxFuture<'a, Lookup> {
        let why = format!("{OUTPUT} {}", self.credential);
        Box::pin(async move { Lookup::Inconclusive { why } })
    }
}

struct Told(Arc<Notes>);

impl Program for Told {
    fn effect(&self, ctx: &NodeContext) -> Result<EffectPlan, Error> {
        self.0.debug(&ctx.evidence);
        let action =
            object! { "action": "greet", "scope": "world", "payload": object! { "say": PAYLOAD } };
        let plan = EffectPlan::new("talker", action, "1", "root");
        self.0.debug(&plan);
        plan
    }

    fn conclude(&self, ctx: &NodeContext) -> Result<Conclusion, Error> {
        self.0.debug(&ctx.evidence);
        Ok(Conclusion::Wait {
            what: format!("{OUTPUT} is there"),
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_a_program() {
    let Some(root) = teller() else { return };
    let notes = Arc::new(Notes::begin(&root));
    let path = root.join("driven");
    std::fs::create_dir(&path).unwrap();
    let file = strict::parse(MISSION).unwrap();
    let part = |name: &str| file.get(name).cloned().unwrap_or_default();
    let talker: Arc<dyn Adapter> = Arc::new(Talker {
        credential: std::env::var("PRAXIS_CANARY_CREDENTIAL").unwrap(),
        calls: AtomicU64::new(0),
    });
    let rules: Ref = from_value(&object! { "id": "house-rules", "revision": "1" }).unwrap();
    let authorizer = move |ask: &Ask<'_>| {
        if matches!(ask.command, Body::CancelRun(_)) {
            panic!("the host fails with {HOST}");
        }
        Authorization {
            recovery_authority: ask.capability.actor_kind() == ActorKind::System,
            ..Authorization::as_proposed(ask, rules.clone())
        }
    };
    let options = Options {
        create: true,
        adapters: BTreeMap::from([("talker".to_owned(), talker)]),
        program: Some(Arc::new(Told(Arc::clone(&notes)))),
        ..Options::default()
    };
    let ports = Ports {
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        authorizer: Arc::new(authorizer),
        artifacts: Arc::new(FileArtifacts::open(&path.join("artifacts")).unwrap()),
    };
    let (engine, host) = Engine::open(&path.join("store"), options, ports)
        .await
        .unwrap();
    let me = host.capability(
        "me".parse().unwrap(),
        ActorKind::Human,
        "EXAMPLE",
        Value::from(OUTPUT),
    );
    notes.debug(&me);
    let (contract, config) = (part("contract"), part("config"));
    let open = id("open");
    let opened = engine
        .open_mission(
            &me,
            &open,
            from_value(&contract).unwrap(),
            from_value(&config).unwrap(),
        )
        .await
        .unwrap();
    notes.debug(&opened);
    for request in part("requests").as_array().unwrap() {
        notes.debug(&engine.apply(&me, &to_bytes(request)).await.unwrap());
    }
    let (mission, run) = (id("greetings"), id("first"));
    let mut states = engine.watch(&mission, &run).await.unwrap();
    let unknown = |state: &Arc<praxis_model::run::RunState>| {
        state
            .attempts
            .values()
            .any(|attempt| attempt.status == AttemptStatus::Unknown)
    };
    let state = states.wait_for(unknown).await.unwrap().clone();
    notes.debug(&*state);
    let cancel = object! {
        "requestId": "cancel", "missionId": "greetings", "runId": "first",
        "intent": object! { "intent": "command", "body": object! {
            "type": "cancelRun", "runId": "first", "reason": "enough", "decisionRef": "d",
        } },
    };
    let request = praxis_model::wire::intent(&to_bytes(&cancel)).unwrap();
    notes.debug(&request);
    let ask = IntentRequest {
        request_id: request.request_id,
        mission_id: request.mission_id,
        run_id: request.run_id,
        intent: request.intent,
    };
    let lost = engine
        .submit(&me, &ask)
        .await
        .expect_err("a host that panics");
    assert_eq!(lost.code(), Code::ActorLost);
    notes.error(&lost);
    notes.states(&engine).await;
    notes.journal(host.journal());
    engine.shutdown(Shutdown::Drain).await.unwrap();
}

//! The world of a scenario: a store on disk, an engine on it, a clock that a case moves, and a client that may lose
//! every reply. Invariant: what the client knows comes from answers and from reads that any host has.
//! Every case gets one, twice.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use aiws::error::{Code, Error};
use aiws::id::{EvidenceId, MissionId, RunId};
use aiws::json::Value;
use praxis_engine::crash::{Passing, Point};
use praxis_engine::{
    Adapter, Capability, Engine, EngineError, Host, ManualClock, Options, Ports, Program,
    SeededEntropy, Shutdown,
};
use praxis_journal::Disk;
use praxis_model::command::CommandType;
use praxis_model::run::RunState;
use praxis_model::table::{self, StreamKind};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::bodies;
use crate::host::{Outside, Policy, Shelf, kind_of, no_fork_holds_files};
use crate::oracle::Mark;
use crate::traces;
use crate::wire::{Answer, Sent, id, record};

/// The one mission of every world.
pub const MISSION: &str = "mission";
/// The worker that owns the root grant.
pub const W1: &str = "agent:w1";
/// The other worker.
pub const W2: &str = "agent:w2";
/// The operator.
pub const HUMAN: &str = "human:op";
/// A rule.
pub const RULE: &str = "rule:r1";
/// A supervisor outside the engine.
pub const SUPERVISOR: &str = "system:sup";
/// The engine itself.
pub const ENGINE: &str = "system:engine";

/// What is asked of every crash point of the engine.
pub type Probe = praxis_engine::crash::Probe;

/// A world.
pub struct World {
    /// Trusted time.
    pub clock: Arc<ManualClock>,
    /// The policy.
    pub policy: Arc<Policy>,
    /// The artifacts.
    pub shelf: Arc<Shelf>,
    /// The adapter that nobody may call.
    pub outside: Arc<Outside>,
    /// Whether every reply is dropped once.
    pub lost: bool,
    /// The run that bodies are about.
    pub run: String,
    /// Raw tokens that were handed out.
    pub tokens: Vec<String>,
    /// The store's files, where a case spoils them.
    pub disk: Option<Arc<dyn Disk>>,
    /// Who drives the runs and has their effects, where the engine is to do its own work.
    pub driver: Option<(Arc<dyn Program>, Arc<dyn Adapter>)>,
    /// Whether the engine holds runs whose material is gone.
    pub holds_lost: bool,
    /// Where this world's traces begin.
    pub traced: usize,
    live: Option<(Engine, Host)>,
    probe: Option<Probe>,
    requests: u64,
    entropy: u64,
    root: PathBuf,
    _kept: Option<TempDir>,
}

/// Runs a case under the usual configuration, once as it is and once with every reply dropped.
pub async fn both(graph: Json, case: impl AsyncFn(&mut World)) {
    configured(graph, bodies::config(), case).await;
}

/// As [`both`], under another configuration.
pub async fn configured(graph: Json, config: Json, case: impl AsyncFn(&mut World)) {
    for lost in [false, true] {
        let mut world = World::new(lost, None).await;
        world.start(&graph, &config).await;
        case(&mut world).await;
        world.finish().await;
    }
}

impl World {
    /// An empty store with an open engine.
    pub async fn new(lost: bool, probe: Option<Probe>) -> World {
        let kept = TempDir::new().unwrap();
        let root = kept.path().to_owned();
        World {
            _kept: Some(kept),
            ..World::at(&root, lost, probe).await
        }
    }

    /// The store in `root`, created where there is none, with an open engine.
    pub async fn at(root: &Path, lost: bool, probe: Option<Probe>) -> World {
        let mut world = World::closed(root, lost, probe);
        world.open().await;
        world
    }

    /// The store in `root`, with no engine yet.
    pub fn closed(root: &Path, lost: bool, probe: Option<Probe>) -> World {
        let clock = Arc::new(ManualClock::new(1000));
        let policy = Arc::new(Policy::default());
        let shelf = Arc::new(Shelf::open(&root.join("artifacts"), Arc::clone(&clock)));
        policy
            .rules()
            .recovery
            .extend([ENGINE, SUPERVISOR, HUMAN].map(str::to_owned));
        policy
            .rules()
            .evidence
            .insert(EvidenceId::new("evidence").unwrap());
        // Whoever finds a store does not know which request ids were used, only that its own are others.
        let found = root.join("store").exists();
        World {
            clock,
            policy,
            shelf,
            outside: Arc::default(),
            lost,
            run: "run".to_owned(),
            tokens: Vec::new(),
            disk: None,
            driver: None,
            holds_lost: false,
            traced: traces::begin(),
            live: None,
            probe,
            requests: if found { 1000 } else { 0 },
            entropy: 0,
            root: root.to_owned(),
            _kept: None,
        }
    }

    /// Does something once, when the n-th event of this type passes this point. Before the engine is opened.
    pub fn at_point(
        &mut self,
        point: Point,
        kind: CommandType,
        number: u64,
        act: impl FnOnce() + Send + 'static,
    ) {
        let waiting = Mutex::new((0, Some(act)));
        self.probe = Some(Arc::new(move |passing: &Passing| {
            if (passing.point, passing.kind) != (point, kind) {
                return;
            }
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.0 += 1;
            if waiting.0 == number
                && let Some(act) = waiting.1.take()
            {
                act();
            }
        }));
    }

    /// Opens the engine; every time with a new process key.
    pub async fn open(&mut self) {
        self.try_open().await.expect("an open store");
    }

    /// As [`World::open`], for a store that may refuse.
    pub async fn try_open(&mut self) -> Result<(), EngineError> {
        self.entropy += 1;
        let ports = Ports {
            clock: self.clock.clone(),
            entropy: Arc::new(SeededEntropy::new(self.entropy)),
            authorizer: self.policy.clone(),
            artifacts: self.shelf.clone(),
        };
        let mut options = Options {
            create: true,
            probe: self.probe.clone(),
            disk: self.disk.clone(),
            hold_lost_material: self.holds_lost,
            ..Options::default()
        };
        let mut outside: Arc<dyn Adapter> = self.outside.clone();
        if let Some((program, adapter)) = &self.driver {
            options.program = Some(Arc::clone(program));
            outside = Arc::clone(adapter);
        }
        options.adapters.insert("outside".to_owned(), outside);
        no_fork_holds_files();
        self.live = Some(Engine::open(&self.store(), options, ports).await?);
        Ok(())
    }

    /// Closes the engine: cleanly, or as if the process had ended.
    pub async fn close(&mut self, how: Shutdown) {
        self.try_close(how).await.expect("a closed engine");
    }

    /// As [`World::close`], for an engine whose files may fail it.
    pub async fn try_close(&mut self, how: Shutdown) -> Result<(), EngineError> {
        let (engine, _) = self.live.take().expect("an open engine");
        engine.shutdown(how).await
    }

    /// The process ends without letting go of its runs, and another one opens the store.
    pub async fn restart(&mut self) {
        self.close(Shutdown::Now).await;
        self.open().await;
    }

    /// The directory of the store.
    pub fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    /// The directory of the artifacts.
    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.live.as_ref().expect("an open engine").0
    }

    /// The host's side.
    pub fn host(&self) -> &Host {
        &self.live.as_ref().expect("an open engine").1
    }

    /// A principal's capability.
    pub fn capability(&self, actor: &str) -> Capability {
        self.host()
            .capability(id(actor), kind_of(actor), "POLICY", Value::Null)
    }

    /// The state of the run that bodies are about.
    pub async fn state(&self) -> Arc<RunState> {
        self.engine()
            .run_state(&id(MISSION), &id(&self.run))
            .await
            .expect("a run")
    }

    /// Waits until the run has this epoch, whoever owns it then.
    pub async fn wait_for_epoch(&self, epoch: u64) -> Arc<RunState> {
        let (mission, run): (MissionId, RunId) = (id(MISSION), id(&self.run));
        let mut states = loop {
            match self.engine().watch(&mission, &run).await {
                Ok(states) => break states,
                // Between two owners; the same question may be asked again.
                Err(error) => assert_eq!(error.code(), Code::ActorLost, "{error}"),
            }
            tokio::task::yield_now().await;
        };
        let state = states
            .wait_for(|state| state.epoch == epoch)
            .await
            .expect("an open engine");
        Arc::clone(&state)
    }

    /// Opens the mission, admits the run and pins the graph.
    pub async fn start(&mut self, graph: &Json, config: &Json) {
        self.open_mission(config).await;
        self.start_run(graph).await;
    }

    /// Opens the mission.
    pub async fn open_mission(&mut self, config: &Json) {
        let (request, human) = (id(&self.next_id()), self.capability(HUMAN));
        let ask = || {
            let (contract, config) = (record(&bodies::contract()), record(config));
            self.engine()
                .open_mission(&human, &request, contract, config)
        };
        let first = ask().await.expect("an opened mission");
        if self.lost {
            let again = ask().await.expect("the first answer");
            assert!(again.event.is_none());
            assert_eq!(
                (again.revision, again.result),
                (first.revision, first.result)
            );
        }
    }

    /// Admits the run that bodies are about and pins its graph.
    pub async fn start_run(&mut self, graph: &Json) {
        let body = json!({"type": "startRun", "runId": self.run});
        self.send(HUMAN, body).await;
        let body = bodies::activate(&*self.state().await, graph.clone());
        self.send(W1, body).await;
    }

    /// A request of this body with what is current now.
    pub async fn request(&mut self, body: Json) -> Sent {
        let id = self.next_id();
        let kind = CommandType::parse(body["type"].as_str().unwrap()).expect("a known command");
        if table::row(kind).stream == StreamKind::Mission {
            let mission = self
                .engine()
                .mission_state(&self::id(MISSION))
                .await
                .expect("a mission");
            let revision = mission.head.revision.to_string();
            return Sent {
                id,
                revision,
                epoch: None,
                run: self.run.clone(),
                body,
            };
        }
        let state = self.state().await;
        let (revision, epoch) = (
            state.head.revision.to_string(),
            Some(state.epoch.to_string()),
        );
        Sent {
            id,
            revision,
            epoch,
            run: self.run.clone(),
            body,
        }
    }

    fn next_id(&mut self) -> String {
        self.requests += 1;
        format!("q-{}", self.requests)
    }

    /// Sends a body at the current revision; it must be accepted.
    pub async fn send(&mut self, actor: &str, body: Json) -> Answer {
        let sent = self.request(body).await;
        self.deliver(actor, &sent).await
    }

    /// Sends a request; it must be accepted.
    pub async fn deliver(&mut self, actor: &str, sent: &Sent) -> Answer {
        let answer = self.try_deliver(actor, sent).await;
        answer.unwrap_or_else(|error| {
            panic!(
                "{} of {actor}: {error} {:?}",
                sent.kind().name(),
                error.details
            )
        })
    }

    /// Sends a request; in a world that loses replies, drops the answer, sends the same bytes again, and demands
    /// the first answer without an event.
    pub async fn try_deliver(&mut self, actor: &str, sent: &Sent) -> Result<Answer, Error> {
        let bytes = sent.bytes();
        let first = self.once(actor, &bytes).await;
        assert!(first.as_ref().map_or(true, |answer| answer.event.is_some()));
        if !self.lost {
            return first;
        }
        let again = self.once(actor, &bytes).await;
        match (&first, &again) {
            (Ok(first), Ok(again)) => {
                assert!(
                    again.event.is_none(),
                    "a replay acts again: {}",
                    sent.kind().name()
                );
                assert_eq!(
                    (first.revision, &first.result),
                    (again.revision, &again.result)
                );
                assert_eq!(first.token, again.token);
            }
            (Err(first), Err(again)) => assert_eq!(first.code(), again.code()),
            _ => panic!("{first:?} and then {again:?}"),
        }
        again
    }

    /// Sends bytes exactly once: claims by the call that gives tokens, everything else by the one that does not.
    pub async fn once(&mut self, actor: &str, bytes: &[u8]) -> Result<Answer, Error> {
        let (engine, capability) = (self.engine(), self.capability(actor));
        if !String::from_utf8_lossy(bytes).contains("claimDelivery") {
            let response = engine.apply(&capability, bytes).await?;
            return Ok(Answer::of(response, None));
        }
        let claimed = engine.claim(&capability, bytes).await?;
        let token = claimed.token.map(|token| token.expose());
        self.tokens.extend(token.clone());
        Ok(Answer::of(claimed.response, token))
    }

    /// Sends a body at the current revision; it must be refused with this code and change nothing.
    pub async fn refuse(&mut self, actor: &str, body: Json, code: Code) -> Error {
        let sent = self.request(body).await;
        self.refuse_sent(actor, &sent, code).await
    }

    /// Sends a request that must be refused with this code and change nothing.
    pub async fn refuse_sent(&mut self, actor: &str, sent: &Sent, code: Code) -> Error {
        self.refuse_bytes(actor, &sent.bytes(), code).await
    }

    /// Sends bytes that must be refused with this code and change nothing, however often they are sent.
    pub async fn refuse_bytes(&mut self, actor: &str, bytes: &[u8], code: Code) -> Error {
        let before = Mark::of(self).await;
        let mut refused = None;
        for _ in 0..if self.lost { 2 } else { 1 } {
            let text = String::from_utf8_lossy(bytes);
            let error = self.once(actor, bytes).await.expect_err(&text);
            assert_eq!(error.code(), code, "{error} {:?}\n{text}", error.details);
            assert_eq!(
                Mark::of(self).await,
                before,
                "a refusal changed something: {text}"
            );
            refused = Some(error);
        }
        refused.unwrap()
    }
}

//! A world for engine tests: a real store in a temporary directory, a clock that tests move, an authorizer and an
//! adapter that tests can change, and a program that drives the runs that it is told to.
//! Invariant: nothing here waits by time; a hanging test ends by the bound of `settled`.
//! Used by every test of this binary.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aiws::decimal::{Dec, DecPlus};
use aiws::error::Error;
use aiws::id::{ActorId, AttemptId, EvidenceId, Id, MissionId, NodeId, RequestId, RunId};
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    ActorKind, AdmissionProposal, Contract, EffectClass, ExecutionKind, Graph, HandoffConfig, Node,
    NodeKind, Ref, RestartPolicy, StopAction, TaskConfig,
};
use praxis_artifacts::FileArtifacts;
use praxis_engine::crash::Passing;
use praxis_engine::{
    Adapter, Ask, Authorization, Authorizer, BoxFuture, Capability, Conclusion, Draft, EffectCall,
    EffectOutcome, EffectPlan, EffectReport, Engine, EngineError, Host, IntentRequest, Lookup,
    ManualClock, NodeContext, Options, Ports, Program, SeededEntropy, Shutdown,
};
use praxis_journal::Journal;
use praxis_model::command::{
    ActivateGraph, Body, BoundaryIntent, CommandType, Intent, RecoverOwnership,
};
use praxis_model::run::RunState;
use tempfile::TempDir;
use tokio::sync::Semaphore;

/// An id of any kind from its text.
pub fn id<T: From<Id>>(text: &str) -> T {
    T::from(Id::new(text).expect("an id"))
}

/// A decimal.
pub fn dec(number: u64) -> Dec {
    Dec::from_u64(number)
}

/// The one mission.
pub fn mission() -> MissionId {
    id("mission")
}

/// The engine's authorizer in tests: everybody may do everything but what a test denies; humans have a decision
/// reference and confirm the evidence that they send; proposals of effects are confirmed.
#[derive(Default)]
pub struct Policy {
    /// Command types that are denied.
    pub denied: Mutex<BTreeSet<CommandType>>,
}

impl Authorizer for Policy {
    fn authorize(&self, ask: &Ask<'_>) -> Authorization {
        let policy = Ref {
            id: id("policy"),
            revision: dec(1),
        };
        if self
            .denied
            .lock()
            .expect("policy")
            .contains(&ask.command.kind())
        {
            return Authorization::refused(ask.capability, policy);
        }
        let kind = ask.capability.actor_kind();
        let mut answer = Authorization::allowed(ask.capability, policy);
        if kind == ActorKind::Human {
            answer.decision_ref = Some(id("decision"));
            answer.clear_evidence = evidence_in(ask.command);
        }
        answer.recovery_authority = matches!(kind, ActorKind::Human | ActorKind::System);
        answer.restart_allowed = true;
        if let Some(draft) = ask.draft_admission {
            answer
                .admissions
                .insert(draft.admission_ref.clone(), draft.proposal.clone());
        }
        answer
    }
}

fn evidence_in(command: &Body) -> BTreeSet<EvidenceId> {
    let evidence = match command {
        Body::Settle(body) => &body.evidence,
        Body::Reconcile(body) => &body.evidence,
        Body::Verify(body) => &body.evidence,
        Body::Accept(body) => &body.evidence,
        Body::ResolveHold(body) => &body.evidence,
        _ => return BTreeSet::new(),
    };
    evidence.iter().cloned().collect()
}

/// What the adapter does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Applies at a cost of 3.
    Apply,
    /// Does nothing and says so.
    Decline,
    /// Applies and panics before it answers.
    Panic,
}

/// The outside world, with its own record of what was asked of it.
pub struct Outside {
    /// What a lost answer may mean.
    pub class: EffectClass,
    /// What to do.
    pub behaviour: Mutex<Behaviour>,
    /// Attempts in the order of their calls.
    pub calls: Mutex<Vec<AttemptId>>,
    /// Nodes in the order of their calls.
    pub nodes: Mutex<Vec<NodeId>>,
    /// Look-ups made.
    pub lookups: AtomicUsize,
    /// One permit per call that may return; none held back while it has plenty.
    pub gate: Semaphore,
    /// One permit per call that arrived.
    pub arrived: Semaphore,
    /// The journal, to look at when a call comes in.
    pub journal: Mutex<Option<Journal>>,
    /// Whether any call came in before its DISPATCHED was in the log.
    pub early: AtomicBool,
}

impl Outside {
    /// A world that applies whatever is asked.
    pub fn new(class: EffectClass) -> Self {
        Self {
            class,
            behaviour: Mutex::new(Behaviour::Apply),
            calls: Mutex::default(),
            nodes: Mutex::default(),
            lookups: AtomicUsize::new(0),
            gate: Semaphore::new(1000),
            arrived: Semaphore::new(0),
            journal: Mutex::default(),
            early: AtomicBool::new(false),
        }
    }

    /// How often it was called.
    pub fn count(&self) -> usize {
        self.calls.lock().expect("calls").len()
    }

    fn is_dispatched(&self, call: &EffectCall) -> bool {
        let journal = self.journal.lock().expect("journal").clone();
        // A call that outlives its engine finds nothing to look at; such tests do not ask.
        let Some(journal) = journal else { return false };
        let stream =
            praxis_model::stream::Subject::run(call.mission_id.clone(), call.run_id.clone())
                .stream();
        let events = journal.stream(&stream).expect("a readable stream");
        events.iter().any(|sealed| match &sealed.event.command {
            Body::Dispatch(body) => body.attempt_id == call.attempt_id,
            _ => false,
        })
    }
}

impl Adapter for Outside {
    fn class(&self) -> EffectClass {
        self.class
    }

    fn call(&self, call: EffectCall) -> BoxFuture<'_, EffectReport> {
        if !self.is_dispatched(&call) {
            self.early.store(true, Ordering::SeqCst);
        }
        self.calls
            .lock()
            .expect("calls")
            .push(call.attempt_id.clone());
        self.nodes.lock().expect("nodes").push(call.node_id.clone());
        let behaviour = *self.behaviour.lock().expect("behaviour");
        self.arrived.add_permits(1);
        Box::pin(async move {
            let permit = self.gate.acquire().await.expect("open");
            permit.forget();
            let outcome = match behaviour {
                Behaviour::Apply => EffectOutcome::Applied { actual: dec(3) },
                Behaviour::Decline => EffectOutcome::NotApplied,
                Behaviour::Panic => panic!("the adapter throws"),
            };
            EffectReport {
                outcome,
                evidence: object! { "node": &call.node_id },
            }
        })
    }

    fn lookup<'a>(&'a self, call: &'a EffectCall) -> BoxFuture<'a, Lookup> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let applied = self.calls.lock().expect("calls").contains(&call.attempt_id);
        let outcome = if applied {
            EffectOutcome::Applied { actual: dec(3) }
        } else {
            EffectOutcome::NotApplied
        };
        Box::pin(async move {
            Lookup::Conclusive(EffectReport {
                outcome,
                evidence: object! { "lookedUp": true },
            })
        })
    }
}

/// Drives runs whose id begins with `driven`: every TASK through the outside, every control node at once.
pub struct Driver;

impl Program for Driver {
    fn drives(&self, run: &RunState) -> bool {
        run.subject
            .run_id
            .as_ref()
            .is_some_and(|run| run.as_str().starts_with("driven"))
    }

    fn effect(&self, ctx: &NodeContext) -> Result<EffectPlan, Error> {
        Ok(EffectPlan {
            adapter: "outside".to_owned(),
            action: action_of(&ctx.node.id),
            amount: dec(3),
            grant_id: id("root"),
            approval_id: None,
        })
    }

    fn conclude(&self, ctx: &NodeContext) -> Result<Conclusion, Error> {
        Ok(Conclusion::completed(&ctx.node))
    }
}

/// The boundary of a node that went well.
pub fn boundary_of(node: &Node) -> BoundaryIntent {
    match Conclusion::completed(node) {
        Conclusion::Boundary(boundary) => boundary,
        other => panic!("a boundary, not {other:?}"),
    }
}

/// The action of a node's operation.
pub fn action_of(node: &NodeId) -> Value {
    object! { "action": "do", "scope": "here", "payload": object! { "what": node } }
}

/// The effect admission of a node, amount 3, under a reference of the node's name.
pub fn draft_of(node: &str) -> Draft {
    let action = action_of(&id(node));
    Draft {
        admission_ref: id(&format!("admission-{node}")),
        proposal: AdmissionProposal {
            operation_id: id(&format!("op-{node}")),
            attempt_id: id(&format!("at-{node}-1")),
            fingerprint: aiws::canonical::digest_of(&action).expect("canonical"),
            action,
            effect: EffectClass::External,
            grant_id: id("root"),
            approval_id: None,
            amount: dec(3),
        },
    }
}

/// Budget 10, three attempts, one root grant; with or without a rule for lost reads.
pub fn contract(lost_reads: bool) -> Contract {
    let mut value = object! {
        "edition": "0.4",
        "features": Vec::<Value>::new(),
        "missionId": "mission",
        "contractId": "contract",
        "revision": "1",
        "budget": "10",
        "deadlineMs": "100000",
        "maxAttempts": "3",
        "authority": object! { "rootGrants": vec![object! {
            "grantId": "root",
            "parentGrantId": Value::Null,
            "subject": "agent:w1",
            "actions": vec!["do"],
            "scopes": vec!["here"],
            "maxAmount": "5",
            "notAfterMs": "90000",
        }] },
        "extensions": vec!["aiws-handoff/1"],
    };
    if lost_reads && let Value::Object(members) = &mut value {
        let rule = object! {
            "rule": object! { "id": "lost-reads", "revision": "1" },
            "approvedBy": "human:op",
            "decisionRef": "decision-lost-reads",
        };
        members.insert("lostReads".to_owned(), rule);
    }
    aiws::canonical::from_value(&value).expect("a contract")
}

/// Leases of 100 ms under this restart policy.
pub fn config(restart_policy: RestartPolicy) -> HandoffConfig {
    HandoffConfig {
        optional_inputs: Vec::new(),
        mappings: Vec::new(),
        required_skip: Vec::new(),
        restart_policy,
        lease_ms: DecPlus::new(dec(100)).expect("positive"),
        default_stop: StopAction::Drain,
        max_recipients: DecPlus::new(dec(8)).expect("positive"),
        scope_bindings: Vec::new(),
    }
}

/// LIN: a -> b -> end.
pub fn lin() -> Graph {
    let node = |name: &str, kind, depends_on: &[&str]| Node {
        id: id(name),
        kind,
        depends_on: depends_on.iter().map(|name| id(name)).collect(),
        input_schema: None,
        output_schema: None,
        deadline_ms: None,
    };
    let task = || {
        NodeKind::Task(TaskConfig {
            execution_kind: ExecutionKind::Agent,
        })
    };
    let nodes = vec![
        node("a", task(), &[]),
        node("b", task(), &["a"]),
        node("end", NodeKind::End, &["b"]),
    ];
    Graph {
        graph_id: id("graph"),
        revision: dec(1),
        plan_revision: dec(1),
        nodes,
    }
}

/// A store with everything that an engine on it needs; outlives the engines.
pub struct World {
    /// The store's directory and everything in it.
    pub dir: TempDir,
    /// The port's clock, from 1000.
    pub clock: Arc<ManualClock>,
    /// The authorizer.
    pub policy: Arc<Policy>,
    /// The outside.
    pub outside: Arc<Outside>,
    /// Called at every crash point.
    pub probe: Slot,
    /// What claim tokens derive from.
    pub seed: u64,
    /// The store's files; none for the real ones.
    pub disk: Option<Arc<dyn praxis_journal::Disk>>,
}

/// An open engine with its host side.
pub struct Open {
    /// The engine.
    pub engine: Engine,
    /// The host side.
    pub host: Host,
}

impl World {
    /// An empty store and an outside of this class.
    pub fn new(class: EffectClass) -> Self {
        Self {
            dir: TempDir::new().expect("a directory"),
            clock: Arc::new(ManualClock::new(1000)),
            policy: Arc::default(),
            outside: Arc::new(Outside::new(class)),
            probe: Arc::default(),
            seed: 7,
            disk: None,
        }
    }

    /// Opens the engine on a store whose process is said to be dead; its threads may still be letting go of the lock.
    pub async fn open_after_a_kill(&self) -> Open {
        for _ in 0..1_000_000 {
            match self.try_open().await {
                Err(error) if error.code().name() == "STORE_LOCKED" => {
                    tokio::task::yield_now().await
                }
                opened => return opened.expect("opens"),
            }
        }
        panic!("the lock was never let go of");
    }

    /// Opens the engine, creating the store the first time.
    pub async fn open(&self) -> Open {
        self.try_open().await.expect("opens")
    }

    async fn try_open(&self) -> Result<Open, EngineError> {
        let artifacts = FileArtifacts::open(&self.dir.path().join("artifacts")).expect("artifacts");
        let adapter: Arc<dyn Adapter> = self.outside.clone();
        let probe = Arc::clone(&self.probe);
        let options = Options {
            create: true,
            adapters: BTreeMap::from([("outside".to_owned(), adapter)]),
            program: Some(Arc::new(Driver)),
            disk: self.disk.clone(),
            probe: Some(Arc::new(move |passing: &Passing| {
                let taken = probe
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .take();
                if let Some(mut probe) = taken {
                    probe(passing);
                }
            })),
            ..Options::default()
        };
        let ports = Ports {
            clock: self.clock.clone(),
            entropy: Arc::new(SeededEntropy::new(self.seed)),
            authorizer: self.policy.clone(),
            artifacts: Arc::new(artifacts),
        };
        let (engine, host) = Engine::open(&self.dir.path().join("store"), options, ports).await?;
        *self.outside.journal.lock().expect("journal") = Some(host.journal().clone());
        Ok(Open { engine, host })
    }

    /// Calls `probe` once, at the next crash point passed that it wants; a panic in it fails the actor there.
    pub fn at_point(
        &self,
        wanted: impl Fn(&Passing) -> bool + Send + 'static,
        then: impl FnOnce() + Send + 'static,
    ) {
        arm(&self.probe, Box::new(wanted), Box::new(then));
    }
}

impl World {
    /// Shuts the engine down and lets go of the store.
    pub async fn close(&self, open: Open, how: Shutdown) {
        settled(open.engine.shutdown(how)).await.expect("closed");
        *self.outside.journal.lock().expect("journal") = None;
    }
}

/// Where a test puts what is called at the next crash point.
pub type Slot = Arc<Mutex<Option<Box<dyn FnMut(&Passing) + Send>>>>;

type Wanted = Box<dyn Fn(&Passing) -> bool + Send>;
type Then = Box<dyn FnOnce() + Send>;

/// The probe is taken out at every point and put back unless it was the one.
fn arm(slot: &Slot, wanted: Wanted, then: Then) {
    let (again, mut then) = (Arc::clone(slot), Some(then));
    let mut wanted = Some(wanted);
    let probe = Box::new(move |passing: &Passing| {
        let Some(wants) = wanted.take() else { return };
        let Some(act) = then.take() else { return };
        if wants(passing) {
            act();
        } else {
            arm(&again, wants, act);
        }
    });
    *slot
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(probe);
}

impl Open {
    /// A human operator.
    pub fn human(&self) -> Capability {
        self.host
            .capability(id("human:op"), ActorKind::Human, "AT_TERMINAL", Value::Null)
    }

    /// A worker agent.
    pub fn agent(&self, name: &str) -> Capability {
        self.host.capability(
            ActorId::new(name).expect("id"),
            ActorKind::Agent,
            "WORKER",
            Value::Null,
        )
    }

    /// Opens the mission, admits a run and activates LIN in it.
    pub async fn lin(&self, run: &str, restart: RestartPolicy, lost_reads: bool) {
        self.mission(restart, lost_reads).await;
        self.run(run).await;
    }

    /// Opens the mission.
    pub async fn mission(&self, restart: RestartPolicy, lost_reads: bool) {
        let (human, request) = (self.human(), id("q-open"));
        let opened =
            self.engine
                .open_mission(&human, &request, contract(lost_reads), config(restart));
        opened.await.expect("opened");
    }

    /// Admits a run and activates LIN in it.
    pub async fn run(&self, run: &str) {
        let request: RequestId = id(&format!("q-start-{run}"));
        self.engine
            .start_run(&self.human(), &mission(), &request, id(run))
            .await
            .expect("started");
        let body = ActivateGraph {
            run_id: id(run),
            owner_epoch: dec(1),
            graph: lin(),
        };
        self.command(run, &format!("q-graph-{run}"), Body::ActivateGraph(body))
            .await
            .expect("activated");
    }

    /// Submits a command of the operator.
    pub async fn command(
        &self,
        run: &str,
        request: &str,
        body: Body,
    ) -> Result<praxis_engine::Response, Error> {
        self.engine
            .submit(
                &self.human(),
                &intent(run, request, Intent::Command { body }),
            )
            .await
    }

    /// The operator takes the run over from this epoch.
    pub async fn recover(
        &self,
        run: &str,
        request: &str,
        epoch: u64,
    ) -> Result<praxis_engine::Response, Error> {
        let body = RecoverOwnership {
            expected_epoch: dec(epoch),
            reason: "the operator says so".to_owned(),
            decision_ref: Some(id("decision")),
        };
        self.command(run, request, Body::RecoverOwnership(body))
            .await
    }

    /// The run's state.
    pub async fn state(&self, run: &str) -> Arc<RunState> {
        again(|| self.engine.run_state_of(run))
            .await
            .expect("a state")
    }

    /// Waits until the run's state is as wanted.
    pub async fn until(
        &self,
        run: &str,
        wanted: impl FnMut(&Arc<RunState>) -> bool,
    ) -> Arc<RunState> {
        let mut states = again(|| self.engine.watch_of(run)).await.expect("a watch");
        settled(states.wait_for(wanted))
            .await
            .expect("watched")
            .clone()
    }
}

/// Calls by run id alone, for brevity.
pub trait ByRun {
    /// The run's state.
    fn run_state_of<'a>(&'a self, run: &'a str) -> BoxFuture<'a, Result<Arc<RunState>, Error>>;
    /// The run's states.
    fn watch_of<'a>(
        &'a self,
        run: &'a str,
    ) -> BoxFuture<'a, Result<tokio::sync::watch::Receiver<Arc<RunState>>, Error>>;
}

impl ByRun for Engine {
    fn run_state_of<'a>(&'a self, run: &'a str) -> BoxFuture<'a, Result<Arc<RunState>, Error>> {
        Box::pin(async move {
            self.run_state(&mission(), &RunId::from(Id::new(run)?))
                .await
        })
    }

    fn watch_of<'a>(
        &'a self,
        run: &'a str,
    ) -> BoxFuture<'a, Result<tokio::sync::watch::Receiver<Arc<RunState>>, Error>> {
        Box::pin(async move { self.watch(&mission(), &RunId::from(Id::new(run)?)).await })
    }
}

/// An intent for a run of the mission.
pub fn intent(run: &str, request: &str, intent: Intent) -> IntentRequest {
    IntentRequest {
        mission_id: mission(),
        run_id: id(run),
        request_id: id(request),
        intent,
    }
}

/// Sends again what was lost with an actor, as callers do; bounded, so that a run that never comes back is seen.
pub async fn again<'a, T>(
    mut send: impl FnMut() -> BoxFuture<'a, Result<T, Error>>,
) -> Result<T, Error> {
    let mut tries = 0;
    loop {
        match send().await {
            Err(error) if error.code().name() == "ACTOR_LOST" && tries < 10_000 => tries += 1,
            answer => return answer,
        }
        tokio::task::yield_now().await;
    }
}

/// The future's value; a test that would hang fails instead.
pub async fn settled<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), future)
        .await
        .expect("the test came to rest")
}

/// Polls a future once, so that what it does before it first waits is done.
pub async fn poll_once<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send + '_>>) -> Option<T> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

/// The canonical digest of a state: what STO-5 compares.
pub fn digest(state: &RunState) -> aiws::digest::Digest {
    aiws::canonical::digest_of(state).expect("a state has canonical bytes")
}

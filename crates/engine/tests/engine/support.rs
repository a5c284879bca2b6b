//! A world for engine tests: a real store in a temporary directory, a clock that tests move, an authorizer and an
//! adapter that tests can change, and a program that drives the runs that it is told to.
//! Invariant: nothing here waits by time; a hanging test ends by the bound of `settled`.
//! Used by every test of this binary.

mod outside;
mod records;

pub use outside::{Behaviour, Driver, Outside, Policy};
pub use records::{action_of, boundary_of, config, contract, dec, draft_of, id, lin, mission};

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aiws::error::Error;
use aiws::id::{ActorId, Id, RequestId, RunId};
use aiws::json::Value;
use aiws::record::{ActorKind, EffectClass, RestartPolicy};
use praxis_artifacts::FileArtifacts;
use praxis_engine::crash::Passing;
use praxis_engine::{
    Adapter, BoxFuture, Capability, Engine, EngineError, Host, IntentRequest, ManualClock, Options,
    Ports, SeededEntropy, Shutdown,
};
use praxis_model::command::{ActivateGraph, Body, Intent, RecoverOwnership};
use praxis_model::run::RunState;
use tempfile::TempDir;

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
    /// Who drives runs.
    pub driver: Arc<Driver>,
    /// Called at every crash point.
    pub probe: Slot,
    /// What claim tokens derive from.
    pub seed: u64,
    /// The store's files; none for the real ones.
    pub disk: Option<Arc<dyn praxis_journal::Disk>>,
    /// Whether the engine holds a run whose material is lost.
    pub holds_lost: bool,
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
            driver: Arc::default(),
            probe: Arc::default(),
            seed: 7,
            disk: None,
            holds_lost: false,
        }
    }

    /// Opens the engine on a store whose process is said to be dead; its threads may still be letting go of the lock.
    pub async fn open_after_a_kill(&self) -> Open {
        self.open().await
    }

    /// Opens the engine, creating the store the first time. A process that another test starts has a copy of every
    /// lock of this one for a moment, until it becomes another program.
    pub async fn open(&self) -> Open {
        self.open_at(self.dir.path()).await
    }

    /// As [`open`](World::open), on another directory.
    pub async fn open_at(&self, root: &Path) -> Open {
        for _ in 0..1_000_000 {
            match self.try_open(root).await {
                Err(error) if error.code().name() == "STORE_LOCKED" => {
                    tokio::task::yield_now().await
                }
                opened => return opened.expect("opens"),
            }
        }
        panic!("the lock was never let go of");
    }

    async fn try_open(&self, root: &Path) -> Result<Open, EngineError> {
        let artifacts = FileArtifacts::open(&root.join("artifacts")).expect("artifacts");
        let adapter: Arc<dyn Adapter> = self.outside.clone();
        let probe = Arc::clone(&self.probe);
        let options = Options {
            create: true,
            adapters: BTreeMap::from([("outside".to_owned(), adapter)]),
            program: Some(self.driver.clone()),
            disk: self.disk.clone(),
            hold_lost_material: self.holds_lost,
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
        let (engine, host) = Engine::open(&root.join("store"), options, ports).await?;
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

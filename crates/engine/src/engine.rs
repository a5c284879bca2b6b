//! The engine: opened on a store, asked by its host, shut down.
//!
//! Invariant: a handle reaches actors, never a reducer or the store's writer (FV-REC.5); what an earlier process
//! left without letting go is recovered before the first request is taken. Used by hosts, the CLI and the SDK.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use aiws::digest::Digest;
use aiws::error::{Code, Error, Stage};
use aiws::id::{MissionId, RequestId, RunId};
use aiws::object;
use aiws::record::{Contract, Grant, HandoffConfig, Lifecycle};
use praxis_model::command::{Body, GrantCommand, Intent, OpenMission, StartRun};
use praxis_model::event::Gate;
use praxis_model::mission::MissionState;
use praxis_model::register::{RegisterKey, RegisterKind};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use praxis_model::table::{self, StreamKind};
use praxis_model::wire;
use ractor::Actor;
use tokio::sync::{oneshot, watch};

use crate::adapter::Adapter;
use crate::ask;
use crate::capability::{Capability, Host};
use crate::core::Core;
use crate::directory::Directory;
use crate::error::{EngineError, actor_lost};
use crate::message::{Claimed, Request, Response, RunMessage, What};
use crate::ports::{Draft, Ports, StoreClock};
use crate::program::Program;
use crate::supervisor::{Supervisor, SupervisorMessage, ask_run, ensure_run};
use crate::work::Work;
use crate::worker::Worker;

/// How an engine is opened.
#[derive(Clone, Default)]
pub struct Options {
    /// Create the store if there is none.
    pub create: bool,
    /// Look only: nothing is recovered, nothing is written, every command is refused.
    pub read_only: bool,
    /// Effect adapters by the name that a program gives.
    pub adapters: BTreeMap<String, Arc<dyn Adapter>>,
    /// Who drives runs; none where workers and people do.
    pub program: Option<Arc<dyn Program>>,
    /// Bytes of a log segment; none for the journal's own choice.
    pub segment_bytes: Option<u64>,
    /// Asked at every crash point; not in release builds.
    #[cfg(debug_assertions)]
    pub probe: Option<crate::crash::Probe>,
}

/// How an engine is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// No new steps; what runs may finish and is settled; owners let go of their runs.
    Drain,
    /// At once: what runs is stopped, its attempts stay DISPATCHED, and the next open recovers the runs.
    Now,
}

/// A run as a listing has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRef {
    /// The mission.
    pub mission_id: MissionId,
    /// The run.
    pub run_id: RunId,
    /// The lifecycle as published.
    pub lifecycle: Lifecycle,
    /// Whether it is not terminal.
    pub live: bool,
}

/// An intent with its address and its request id; the owner fills in revision, epoch and basis (T-02).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentRequest {
    /// The mission.
    pub mission_id: MissionId,
    /// The run.
    pub run_id: RunId,
    /// The caller's name for the request; the same name with the same intent is a replay.
    pub request_id: RequestId,
    /// What is asked.
    pub intent: Intent,
}

/// A handle to an open engine. Clones share it; when the last is dropped without a shutdown, everything stops as
/// if the process had ended.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    core: Arc<Core>,
}

impl Engine {
    /// Opens the store at `path`, recovers what an earlier process left without letting go, and starts whatever
    /// the program drives.
    ///
    /// # Errors
    ///
    /// A store code where the store refuses, such as STORE_LOCKED or STORE_NOT_FOUND; the operating system's where
    /// there is no entropy.
    pub async fn open(
        path: &Path,
        options: Options,
        ports: Ports,
    ) -> Result<(Engine, Host), EngineError> {
        let mut token_key = [0u8; 32];
        ports
            .entropy
            .fill(&mut token_key)
            .map_err(|_| EngineError::Entropy)?;
        let clock = Arc::new(StoreClock::new(ports.clock));
        let journal = crate::store::open(path, &options, Arc::clone(&clock)).await?;
        clock.raise(journal.view().last_ms);
        let core = Arc::new(Core {
            journal: journal.clone(),
            clock,
            authorizer: ports.authorizer,
            artifacts: ports.artifacts,
            adapters: options.adapters,
            program: options.program,
            token_key,
            directory: Directory::default(),
            supervisor: OnceLock::new(),
            work: Work::new(),
            draining: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            #[cfg(debug_assertions)]
            probe: options.probe,
        });
        let spawned = Actor::spawn(None, Supervisor, Arc::clone(&core)).await;
        let (supervisor, _) = spawned.map_err(|error| EngineError::Actor(error.to_string()))?;
        // Only set here, once.
        let _ = core.supervisor.set(supervisor);
        let engine = Engine {
            inner: Arc::new(Inner { core }),
        };
        engine.start_up(options.read_only).await?;
        Ok((engine, Host::new(journal)))
    }

    /// Takes a strict request: an envelope or a finite command in its outer form (T-02).
    ///
    /// # Errors
    ///
    /// The code of the first stage that refuses (ERR-PREC.1); BUSY and ACTOR_LOST may be sent again as they are.
    pub async fn apply(&self, capability: &Capability, bytes: &[u8]) -> Result<Response, Error> {
        self.strict(capability, bytes)
            .await
            .map(|claimed| claimed.response)
    }

    /// As [`apply`](Engine::apply), for a claim: the one call that hands out the raw token (API-4).
    ///
    /// # Errors
    ///
    /// As for [`apply`](Engine::apply).
    pub async fn claim(&self, capability: &Capability, bytes: &[u8]) -> Result<Claimed, Error> {
        self.strict(capability, bytes).await
    }

    /// Takes an intent.
    ///
    /// # Errors
    ///
    /// As for [`apply`](Engine::apply); what moves under an intent is decided again, a bounded number of times.
    pub async fn submit(
        &self,
        capability: &Capability,
        request: &IntentRequest,
    ) -> Result<Response, Error> {
        self.intent(capability, request, None)
            .await
            .map(|claimed| claimed.response)
    }

    /// As [`submit`](Engine::submit), for an intent that claims.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Engine::submit).
    pub async fn submit_claim(
        &self,
        capability: &Capability,
        request: &IntentRequest,
    ) -> Result<Claimed, Error> {
        self.intent(capability, request, None).await
    }

    /// As [`submit`](Engine::submit), for an admission with the effect that goes with it, as proposed.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Engine::submit).
    pub async fn submit_admission(
        &self,
        capability: &Capability,
        request: &IntentRequest,
        draft: Draft,
    ) -> Result<Response, Error> {
        self.intent(capability, request, Some(draft))
            .await
            .map(|claimed| claimed.response)
    }

    /// Opens the contract's mission.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Engine::submit); IDENTITY_CONFLICT or STATE_INVALID where the mission is open already.
    pub async fn open_mission(
        &self,
        capability: &Capability,
        request_id: &RequestId,
        contract: Contract,
        config: HandoffConfig,
    ) -> Result<Response, Error> {
        let mission_id = contract.mission_id.clone();
        self.mission(
            capability,
            &mission_id,
            request_id,
            Body::OpenMission(OpenMission { contract, config }),
        )
        .await
    }

    /// Admits a run.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Engine::submit).
    pub async fn start_run(
        &self,
        capability: &Capability,
        mission_id: &MissionId,
        request_id: &RequestId,
        run_id: RunId,
    ) -> Result<Response, Error> {
        self.mission(
            capability,
            mission_id,
            request_id,
            Body::StartRun(StartRun { run_id }),
        )
        .await
    }

    /// Puts a grant in force.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Engine::submit).
    pub async fn grant(
        &self,
        capability: &Capability,
        mission_id: &MissionId,
        request_id: &RequestId,
        grant: Grant,
    ) -> Result<Response, Error> {
        self.mission(
            capability,
            mission_id,
            request_id,
            Body::GrantCommand(GrantCommand { grant }),
        )
        .await
    }

    /// A run's current state.
    ///
    /// # Errors
    ///
    /// STALE_OWNER where there is no such run; a store code where it cannot be read.
    pub async fn run_state(
        &self,
        mission_id: &MissionId,
        run_id: &RunId,
    ) -> Result<Arc<RunState>, Error> {
        let subject = Subject::run(mission_id.clone(), run_id.clone());
        let entry = ensure_run(&self.inner.core, &subject).await?;
        ask_run(&entry, |reply| RunMessage::Snapshot { reply }).await
    }

    /// A mission's current state.
    ///
    /// # Errors
    ///
    /// NOT_FOUND where it was never opened; a store code where it cannot be read.
    pub async fn mission_state(&self, mission_id: &MissionId) -> Result<Arc<MissionState>, Error> {
        ask::mission_state(&self.inner.core, mission_id).await
    }

    /// Every state of a run from now on, the current one first.
    ///
    /// # Errors
    ///
    /// As for [`run_state`](Engine::run_state).
    pub async fn watch(
        &self,
        mission_id: &MissionId,
        run_id: &RunId,
    ) -> Result<watch::Receiver<Arc<RunState>>, Error> {
        self.run_state(mission_id, run_id).await?;
        let entry = ensure_run(
            &self.inner.core,
            &Subject::run(mission_id.clone(), run_id.clone()),
        )
        .await?;
        entry
            .kept
            .watch
            .get()
            .map(watch::Sender::subscribe)
            .ok_or_else(actor_lost)
    }

    /// All runs of the store, in the order of mission and run.
    pub fn runs(&self) -> Vec<RunRef> {
        let view = self.inner.core.journal.view();
        let admitted = view
            .registers()
            .filter(|(key, _)| key.kind == RegisterKind::RunAdmission);
        let listed = admitted.map(|(key, _)| {
            let subject = Subject::run(key.mission_id.clone(), RunId::from(key.key.clone()));
            let outcome = RegisterKey {
                kind: RegisterKind::RunOutcome,
                ..key.clone()
            };
            let ended = view
                .register(&outcome)
                .and_then(|row| lifecycle_in(&row.value));
            let canceling = view.gates(&subject).contains(&Gate::Cancel);
            let open = if canceling {
                Lifecycle::Canceling
            } else {
                Lifecycle::Running
            };
            RunRef {
                mission_id: key.mission_id.clone(),
                run_id: RunId::from(key.key.clone()),
                lifecycle: ended.unwrap_or(open),
                live: ended.is_none(),
            }
        });
        listed.collect()
    }

    /// A worker's handle to one run: typed calls of one principal, and nothing else.
    pub fn worker(&self, capability: Capability, mission_id: MissionId, run_id: RunId) -> Worker {
        Worker::new(self.clone(), capability, mission_id, run_id)
    }

    /// Shuts the engine down and closes the store. Every handle is useless afterwards.
    ///
    /// # Errors
    ///
    /// A store code where the journal could not be closed cleanly; the next open recovers then.
    pub async fn shutdown(&self, how: Shutdown) -> Result<(), EngineError> {
        let core = &self.inner.core;
        core.draining.store(true, Ordering::SeqCst);
        if how == Shutdown::Drain {
            core.work.idle().await;
        }
        core.closing.store(true, Ordering::SeqCst);
        if how == Shutdown::Now {
            core.work.abort();
        } else {
            for (_, entry) in core.directory.runs() {
                // An owner that is gone has nothing to let go of.
                let _ = entry.actor.cast(RunMessage::Release);
            }
        }
        if let Some(supervisor) = core.supervisor.get() {
            let (reply, stopped) = oneshot::channel();
            if supervisor
                .cast(SupervisorMessage::StopAll { reply })
                .is_ok()
            {
                // The supervisor answers or is gone with its children; either way they are stopped.
                let _ = stopped.await;
            }
            // Gone already is as good as stopped.
            let _ = supervisor.stop_and_wait(None, None).await;
        }
        crate::store::close(&core.journal).await
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    /// Recovers the runs that an earlier process left, and starts those that the program may drive.
    async fn start_up(&self, read_only: bool) -> Result<(), EngineError> {
        let core = &self.inner.core;
        if read_only || core.journal.view().read_only.is_some() {
            return Ok(());
        }
        for run in self.runs() {
            let subject = Subject::run(run.mission_id, run.run_id);
            let left = core.owner(&subject.stream()).is_some_and(|(_, left)| left);
            if left || (run.live && core.program.is_some()) {
                let entry = ensure_run(core, &subject).await?;
                // Behind the recovery in the owner's mailbox: once answered, the run has its new epoch.
                if let Err(error) = ask_run(&entry, |reply| RunMessage::Snapshot { reply }).await {
                    tracing::error!(run = ?subject.run_id, code = error.code().name(), "a run cannot be read");
                }
            }
        }
        Ok(())
    }

    async fn strict(&self, capability: &Capability, bytes: &[u8]) -> Result<Claimed, Error> {
        let parsed = wire::parse(bytes)?;
        let (mission_id, run_id) = (
            parsed.command.mission_id.clone(),
            parsed.command.run_id.clone(),
        );
        let kind = parsed.command.body.kind();
        let request = Request {
            capability: capability.clone(),
            request_id: Some(parsed.request_id),
            digest: parsed.digest,
            what: What::Strict(parsed.command),
            stored_evidence: Default::default(),
        };
        match (table::row(kind).stream, run_id) {
            (StreamKind::Run, Some(run_id)) => {
                self.ask(Subject::run(mission_id, run_id), request).await
            }
            _ => {
                let response = ask::mission_command(&self.inner.core, &mission_id, request).await?;
                Ok(Claimed {
                    response,
                    token: None,
                })
            }
        }
    }

    async fn intent(
        &self,
        capability: &Capability,
        request: &IntentRequest,
        draft: Option<Draft>,
    ) -> Result<Claimed, Error> {
        let subject = Subject::run(request.mission_id.clone(), request.run_id.clone());
        let request = Request {
            capability: capability.clone(),
            request_id: Some(request.request_id.clone()),
            digest: intent_digest(request, draft.as_ref())?,
            what: What::Intent {
                intent: request.intent.clone(),
                draft,
            },
            stored_evidence: Default::default(),
        };
        self.ask(subject, request).await
    }

    /// Sends a request to the run's owner, within the mailbox's bound.
    async fn ask(&self, subject: Subject, request: Request) -> Result<Claimed, Error> {
        let core = &self.inner.core;
        // Stages 2 and 3 come before the question whether there is such a run at all.
        request.capability.authenticated()?;
        let entry = match ensure_run(core, &subject).await {
            Ok(entry) => entry,
            Err(error) => {
                let mission = &subject.mission_id;
                core.replayed(
                    mission,
                    &request.capability,
                    request.request_id.as_ref(),
                    &request.digest,
                )?;
                return Err(error);
            }
        };
        let permit = entry.kept.permit()?;
        ask_run(&entry, |reply| RunMessage::Take {
            request: Box::new(request),
            permit,
            reply,
        })
        .await
    }

    async fn mission(
        &self,
        capability: &Capability,
        mission_id: &MissionId,
        request_id: &RequestId,
        body: Body,
    ) -> Result<Response, Error> {
        let digest = aiws::canonical::digest_of(&object! {
            "requestId": request_id,
            "missionId": mission_id,
            "command": aiws::canonical::to_value(&body)?,
        })?;
        let request = Request {
            capability: capability.clone(),
            request_id: Some(request_id.clone()),
            digest,
            what: What::Intent {
                intent: Intent::Command { body },
                draft: None,
            },
            stored_evidence: Default::default(),
        };
        ask::mission_command(&self.inner.core, mission_id, request).await
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.core.draining.store(true, Ordering::SeqCst);
        self.core.closing.store(true, Ordering::SeqCst);
        self.core.work.abort();
        if let Some(supervisor) = self.core.supervisor.get() {
            // Its children go with it; nobody lets go of a run, so the next open recovers them.
            supervisor.kill();
        }
    }
}

/// The digest of an intent's material: what the owner fills in is not part of it (T-23).
fn intent_digest(request: &IntentRequest, draft: Option<&Draft>) -> Result<Digest, Error> {
    let draft = match draft {
        Some(draft) => Some(object! {
            "admissionRef": &draft.admission_ref,
            "proposal": aiws::canonical::to_value(&draft.proposal)?,
        }),
        None => None,
    };
    aiws::canonical::digest_of(&object! {
        "requestId": &request.request_id,
        "missionId": &request.mission_id,
        "runId": &request.run_id,
        "intent": aiws::canonical::to_value(&request.intent)?,
        "draft": draft,
    })
}

fn lifecycle_in(outcome: &aiws::json::Value) -> Option<Lifecycle> {
    Lifecycle::parse(outcome.get("lifecycle")?.as_str()?)
}

/// Stage 5: there is no such run.
pub(crate) fn no_such_run(subject: &Subject) -> Error {
    let run = subject.run_id.as_ref().map_or("", RunId::as_str);
    Error::new(
        Code::StaleOwner,
        format!("expected an admitted run, found none named {run:?} in this mission"),
    )
    .in_stage(Stage::Ownership)
    .with("missionId", &subject.mission_id)
}

//! Opening and closing an engine.
//!
//! Invariant: what an earlier process left without letting go is recovered before the first request is taken, and a
//! clean close lets go of every run (T-16). Called by hosts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use praxis_model::stream::Subject;
use ractor::Actor;
use tokio::sync::oneshot;

use super::{Engine, Inner};
use crate::adapter::Adapter;
use crate::capability::Host;
use crate::clock::StoreClock;
use crate::core::Core;
use crate::directory::Directory;
use crate::error::EngineError;
use crate::limits::CLOCK_TOLERANCE_MS;
use crate::message::RunMessage;
use crate::ports::Ports;
use crate::program::Program;
use crate::supervisor::{Supervisor, SupervisorMessage, ask_run, ensure_run};
use crate::work::Work;

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
    /// Whether the engine itself holds a run in which a receipt, an admission or a dispatch was refused because material is
    /// gone or altered, as a second command after the refusal (T-45). It always does where it drives the run.
    pub hold_lost_material: bool,
    /// How far the host's clock may step back before it is a condition of the store, in milliseconds; none for the
    /// engine's own choice (T-29).
    pub clock_tolerance_ms: Option<u64>,
    /// The store's files; none for those of its directory. Simulations put a faulty disk here.
    pub disk: Option<Arc<dyn praxis_journal::Disk>>,
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
        let tolerance_ms = options.clock_tolerance_ms.unwrap_or(CLOCK_TOLERANCE_MS);
        let clock = Arc::new(StoreClock::new(ports.clock, tolerance_ms));
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
            hold_lost_material: options.hold_lost_material,
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

    /// Starts no new step and waits until nothing is in flight. The engine still answers; [`shutdown`](Self::shutdown)
    /// comes after it.
    pub async fn drain(&self) {
        let core = &self.inner.core;
        core.draining.store(true, Ordering::SeqCst);
        core.work.idle().await;
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
                if let Err(error) = ask_run(&entry, |reply| RunMessage::Snapshot {
                    permit: None,
                    reply,
                })
                .await
                {
                    tracing::error!(run = ?subject.run_id, code = error.code().name(), "a run cannot be read");
                }
            }
        }
        Ok(())
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

//! What every actor of one engine shares: the journal, the ports, the directory, and how they are read.
//!
//! Invariant: the only file that looks into the journal's published view; what it returns was durable when it
//! was published. Made by `Engine::open`, held by the actors, the client handles and the workers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use aiws::decimal::U64;
use aiws::digest::{Digest, hmac_sha256};
use aiws::error::{Code, Error, Stage};
use aiws::id::{ActorId, DeliveryId, MissionId, RequestId, StreamId};
use aiws::json::Value;
use aiws::token::ClaimToken;
use praxis_artifacts::ArtifactProvider;
use praxis_journal::{Journal, RequestKey};
use praxis_journal_format::Sealed;
use praxis_model::account::AccountRow;
use praxis_model::event::Gate;
use praxis_model::mission::cost_account;
use praxis_model::register::{RegisterKey, RegisterRead};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use ractor::ActorRef;

use crate::adapter::Adapter;
use crate::capability::Capability;
use crate::clock::StoreClock;
use crate::directory::Directory;
use crate::error::of_store;
use crate::ports::{Authorizer, Clock};
use crate::program::Program;
use crate::supervisor::SupervisorMessage;
use crate::work::Work;

/// What the actors of one engine share.
pub(crate) struct Core {
    pub(crate) journal: Journal,
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) artifacts: Arc<dyn ArtifactProvider>,
    pub(crate) adapters: BTreeMap<String, Arc<dyn Adapter>>,
    pub(crate) program: Option<Arc<dyn Program>>,
    /// Of this process alone, never stored: what claim tokens derive from (T-24).
    pub(crate) token_key: [u8; 32],
    /// Whether a refusal for material is followed by a hold (T-45).
    pub(crate) hold_lost_material: bool,
    /// Missions and runs that have an actor.
    pub(crate) directory: Directory,
    /// Set once, when the engine opens.
    pub(crate) supervisor: OnceLock<ActorRef<SupervisorMessage>>,
    /// Effect workers in flight.
    pub(crate) work: Work,
    /// No step starts any more; what runs may finish.
    pub(crate) draining: AtomicBool,
    /// Nothing is taken any more.
    pub(crate) closing: AtomicBool,
    /// Asked at every crash point.
    #[cfg(debug_assertions)]
    pub(crate) probe: Option<crate::crash::Probe>,
}

impl Core {
    /// Trusted time, UTC milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Whether the engine starts no new steps.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Whether the engine takes nothing any more.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// The run's epoch as the log has it, and whether an owner of an earlier boot left without letting go (T-16);
    /// none for a run that was never admitted.
    pub(crate) fn owner(&self, stream: &StreamId) -> Option<(u64, bool)> {
        let view = self.journal.view();
        view.owner(stream)
            .map(|owner| (owner.epoch, owner.boot != 0 && owner.boot != view.boot))
    }

    /// The mission's cost account as published.
    pub(crate) fn account(&self, mission: &MissionId) -> Option<AccountRow> {
        let key = cost_account(&Subject::mission(mission.clone()));
        self.journal.view().account(&key).cloned()
    }

    /// A register as published; revision 0 if it was never written.
    pub(crate) fn register(&self, register: RegisterKey) -> RegisterRead {
        let view = self.journal.view();
        let (revision, value) = view
            .register(&register)
            .map_or((0, Value::Null), |row| (row.revision, row.value.clone()));
        RegisterRead {
            register,
            revision: U64(revision),
            value,
        }
    }

    /// The hash that a run's stream opened with, while it has no event of its own.
    pub(crate) fn opening(&self, stream: &StreamId) -> Option<Digest> {
        self.journal.view().head(stream).map(|row| row.head.hash)
    }

    /// Whether the mission was ever opened, as published.
    pub(crate) fn is_open(&self, mission: &MissionId) -> bool {
        let stream = Subject::mission(mission.clone()).stream();
        self.journal.view().head(&stream).is_some()
    }

    /// Closed gates of the mission: what stands around its runs.
    pub(crate) fn outer_gates(&self, mission: &MissionId) -> Vec<Gate> {
        self.journal
            .view()
            .gates(&Subject::mission(mission.clone()))
            .to_vec()
    }

    /// Stage 3: the events that the request became before, if it is a replay (HF-02.7): one, or the parts of a sequence.
    ///
    /// # Errors
    ///
    /// IDENTITY_CONFLICT when the same request came with other material (HF-02.8); a store code when the look failed.
    pub(crate) fn replayed(
        &self,
        mission: &MissionId,
        capability: &Capability,
        request_id: Option<&RequestId>,
        digest: &Digest,
    ) -> Result<Option<Vec<Arc<Sealed>>>, Error> {
        let Some(request_id) = request_id else {
            return Ok(None);
        };
        let key = request_key(mission, capability.actor_id(), request_id);
        let Some(row) = self
            .journal
            .lookup_request(&key)
            .map_err(|error| of_store(&error))?
        else {
            return Ok(None);
        };
        if row.digest != *digest {
            return Err(other_material(request_id));
        }
        self.parts(row.sequence).map(Some)
    }

    /// All parts of the append whose first event is at a place of the log.
    pub(crate) fn parts(&self, sequence: u64) -> Result<Vec<Arc<Sealed>>, Error> {
        let first = self.read(sequence)?;
        let more = 1..first.event.part.of.get();
        let mut parts = vec![first];
        for at in more {
            parts.push(self.read(sequence + at)?);
        }
        Ok(parts)
    }

    /// The event at a place of the log.
    pub(crate) fn read(&self, sequence: u64) -> Result<Arc<Sealed>, Error> {
        let sealed = self
            .journal
            .read(sequence)
            .map_err(|error| of_store(&error))?;
        sealed.map(Arc::new).ok_or_else(|| {
            Error::new(
                Code::TailLost,
                format!(
                    "expected an event at sequence {sequence}, found the log's end; run verify"
                ),
            )
        })
    }

    /// The token of one claim (T-24). The same question has the same answer in this process, and nobody else can
    /// answer it.
    pub(crate) fn token(
        &self,
        delivery: &DeliveryId,
        generation: u64,
        epoch: u64,
        principal: &ActorId,
        request_id: Option<&RequestId>,
    ) -> Result<ClaimToken, Error> {
        let request = request_id.map(RequestId::as_str);
        let parts = (
            delivery,
            generation.to_string(),
            epoch.to_string(),
            principal,
            request,
        );
        let data = aiws::canonical::bytes_of(&parts)?;
        Ok(ClaimToken::from_bytes(hmac_sha256(&self.token_key, &data)))
    }

    /// Whether the engine's program drives the run.
    pub(crate) fn drives(&self, state: &RunState) -> Option<Arc<dyn Program>> {
        self.program
            .as_ref()
            .filter(|program| program.drives(state))
            .cloned()
    }
}

/// The key of a request (T-22).
pub(crate) fn request_key(
    mission: &MissionId,
    actor: &ActorId,
    request_id: &RequestId,
) -> RequestKey {
    RequestKey {
        mission_id: mission.clone(),
        actor_id: actor.clone(),
        request_id: request_id.clone(),
    }
}

/// The refusal of a request id that was used for something else.
pub(crate) fn other_material(request_id: &RequestId) -> Error {
    Error::new(
        Code::IdentityConflict,
        "expected the exact first request under this request id, found other material; use a new request id",
    )
    .in_stage(Stage::Replay)
    .with("requestId", request_id)
}

//! What an engine shows: states, watches, the list of runs.
//!
//! Invariant: everything shown was durable when it was published. Called by hosts.

use std::sync::Arc;

use aiws::error::Error;
use aiws::id::{MissionId, RunId};
use aiws::record::Lifecycle;
use praxis_model::event::Gate;
use praxis_model::mission::MissionState;
use praxis_model::register::{RegisterKey, RegisterKind};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use tokio::sync::watch;

use super::Engine;
use crate::ask;
use crate::clock::ClockState;
use crate::error::actor_lost;
use crate::message::RunMessage;
use crate::supervisor::{ask_run, ensure_run};

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

impl Engine {
    /// A run's current state.
    ///
    /// # Errors
    ///
    /// STALE_OWNER where there is no such run; BUSY where its mailbox is full; a store code where it cannot be read.
    pub async fn run_state(
        &self,
        mission_id: &MissionId,
        run_id: &RunId,
    ) -> Result<Arc<RunState>, Error> {
        let subject = Subject::run(mission_id.clone(), run_id.clone());
        let entry = ensure_run(&self.inner.core, &subject).await?;
        let permit = Some(entry.kept.permit()?);
        ask_run(&entry, |reply| RunMessage::Snapshot { permit, reply }).await
    }

    /// A mission's current state.
    ///
    /// # Errors
    ///
    /// NOT_FOUND where it was never opened; BUSY where its mailbox is full; a store code where it cannot be read.
    pub async fn mission_state(&self, mission_id: &MissionId) -> Result<Arc<MissionState>, Error> {
        ask::mission_state(&self.inner.core, mission_id, ask::Origin::Outside).await
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

    /// Has the owners of a mission's runs look again at what they could do: after the program changed which runs it
    /// drives.
    pub fn look_again(&self, mission_id: &MissionId) {
        self.inner.core.directory.moved(mission_id);
    }

    /// How the store's time stands, and whether the host's clock stepped back under it.
    pub fn clock(&self) -> ClockState {
        self.inner.core.clock.state()
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
}

fn lifecycle_in(outcome: &aiws::json::Value) -> Option<Lifecycle> {
    Lifecycle::parse(outcome.get("lifecycle")?.as_str()?)
}

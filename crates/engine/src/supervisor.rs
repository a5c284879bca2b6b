//! The supervisor: which actors there are, and what follows when one fails.
//!
//! Invariant: a run's new owner recovers it (SYSTEM, a higher epoch) before it takes anything else (T-15), and a run
//! that fails too often gets one RESTART hold instead of further owners (T-21). Started by `Engine::open`.

use std::collections::BTreeMap;
use std::sync::Arc;

use aiws::error::Error;
use aiws::id::MissionId;
use praxis_model::stream::Subject;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::oneshot;

use crate::core::Core;
use crate::directory::{MissionEntry, MissionKept, RunEntry, RunKept};
use crate::engine::no_such_run;
use crate::error::{actor_lost, closing};
use crate::limits::{RESTART_WINDOW_MS, RESTARTS};
use crate::message::{MissionMessage, Reply, RunMessage};
use crate::mission_actor::{MissionActor, MissionOwner};
use crate::run_actor::{RunActor, RunOwner};

/// What the supervisor is sent.
pub(crate) enum SupervisorMessage {
    /// Start a run's owner unless there is one.
    EnsureRun {
        subject: Subject,
        reply: Reply<RunEntry>,
    },
    /// Start a mission's owner unless there is one.
    EnsureMission {
        mission_id: MissionId,
        reply: Reply<MissionEntry>,
    },
    /// Stop every child, one after the other in order, after what it has in hand; then answer.
    StopAll { reply: oneshot::Sender<()> },
}

/// The actor's behaviour; its state is [`Children`].
pub(crate) struct Supervisor;

/// The children, in an order of our own: the framework's has none.
pub(crate) struct Children {
    core: Arc<Core>,
    runs: BTreeMap<Subject, RunChild>,
    missions: BTreeMap<MissionId, MissionChild>,
}

struct RunChild {
    /// The living owner; none after it failed too often.
    cell: Option<ActorCell>,
    kept: RunKept,
    /// When its owners failed, within the window, UTC milliseconds.
    failed_ms: Vec<u64>,
    /// Whether the last owner failed and nobody recovered the run since.
    unclean: bool,
    /// Whether the last owner was started only to keep the RESTART hold.
    parked: bool,
}

struct MissionChild {
    cell: ActorCell,
    kept: MissionKept,
}

impl Actor for Supervisor {
    type Msg = SupervisorMessage;
    type State = Children;
    type Arguments = Arc<Core>;

    async fn pre_start(
        &self,
        _: ActorRef<SupervisorMessage>,
        core: Arc<Core>,
    ) -> Result<Children, ActorProcessingErr> {
        Ok(Children {
            core,
            runs: BTreeMap::new(),
            missions: BTreeMap::new(),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<SupervisorMessage>,
        message: SupervisorMessage,
        children: &mut Children,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SupervisorMessage::EnsureRun { subject, reply } => {
                let entry = children.ensure_run(&myself, &subject).await;
                drop(reply.send(entry));
            }
            SupervisorMessage::EnsureMission { mission_id, reply } => {
                let entry = children.ensure_mission(&myself, mission_id).await;
                drop(reply.send(entry));
            }
            SupervisorMessage::StopAll { reply } => {
                children.stop_all().await;
                let _ = reply.send(());
            }
        }
        Ok(())
    }

    /// Never the default, which would stop the supervisor with its first child.
    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<SupervisorMessage>,
        event: SupervisionEvent,
        children: &mut Children,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, _) => {
                // The panic may be the host's own and say anything; its message went to the panic hook.
                tracing::error!("an actor failed");
                children.failed(&myself, &cell).await;
            }
            SupervisionEvent::ActorTerminated(cell, ..) => children.ended(&cell),
            _ => {}
        }
        Ok(())
    }
}

impl Children {
    async fn ensure_run(
        &mut self,
        myself: &ActorRef<SupervisorMessage>,
        subject: &Subject,
    ) -> Result<RunEntry, Error> {
        if self.core.is_closing() {
            return Err(closing());
        }
        if self
            .runs
            .get(subject)
            .is_some_and(|child| child.cell.is_some())
            && let Some(entry) = self.core.directory.run(subject)
        {
            return Ok(entry);
        }
        let Some((epoch, unreleased)) = self.core.owner(&subject.stream()) else {
            return Err(no_such_run(subject));
        };
        let known = self.runs.contains_key(subject);
        let child = self
            .runs
            .entry(subject.clone())
            .or_insert_with(|| RunChild {
                cell: None,
                kept: RunKept::new(epoch),
                failed_ms: Vec::new(),
                unclean: false,
                parked: false,
            });
        // An owner of an earlier boot that left its marker is as dead as one that failed here (T-16).
        let unclean = child.unclean || (!known && unreleased);
        let reason = if known {
            "the run's owner failed"
        } else {
            "the engine ended without letting the run go"
        };
        self.start_run(myself, subject, unclean.then_some((epoch, reason)), false)
            .await
    }

    /// Starts an owner; with `recover`, its first message is to take the run over from the owner of that epoch.
    async fn start_run(
        &mut self,
        myself: &ActorRef<SupervisorMessage>,
        subject: &Subject,
        recover: Option<(u64, &str)>,
        park: bool,
    ) -> Result<RunEntry, Error> {
        let Some(child) = self.runs.get_mut(subject) else {
            return Err(actor_lost());
        };
        let owner = RunOwner::new(Arc::clone(&self.core), subject.clone(), child.kept.clone());
        let spawned = Actor::spawn_linked(None, RunActor, owner, myself.get_cell()).await;
        let (actor, _) = spawned.map_err(|_| actor_lost())?;
        let read_only = self.core.journal.view().read_only.is_some();
        if let Some((expected_epoch, reason)) = recover.filter(|_| !read_only) {
            // First in its mailbox: nothing is taken before the run is recovered.
            let _ = actor.cast(RunMessage::Recover {
                expected_epoch,
                reason: reason.to_owned(),
            });
        }
        let _ = actor.cast(if park {
            RunMessage::Park
        } else {
            RunMessage::Tick { moved: true }
        });
        child.cell = Some(actor.get_cell());
        child.unclean = false;
        child.parked = park;
        let entry = RunEntry {
            actor,
            kept: child.kept.clone(),
        };
        self.core.directory.set_run(subject.clone(), entry.clone());
        Ok(entry)
    }

    async fn ensure_mission(
        &mut self,
        myself: &ActorRef<SupervisorMessage>,
        mission: MissionId,
    ) -> Result<MissionEntry, Error> {
        if self.core.is_closing() {
            return Err(closing());
        }
        if let Some(entry) = self.core.directory.mission(&mission) {
            return Ok(entry);
        }
        self.start_mission(myself, mission, MissionKept::new())
            .await
    }

    async fn start_mission(
        &mut self,
        myself: &ActorRef<SupervisorMessage>,
        mission: MissionId,
        kept: MissionKept,
    ) -> Result<MissionEntry, Error> {
        let owner = MissionOwner::new(Arc::clone(&self.core), mission.clone());
        let spawned = Actor::spawn_linked(None, MissionActor, owner, myself.get_cell()).await;
        let (actor, _) = spawned.map_err(|_| actor_lost())?;
        self.missions.insert(
            mission.clone(),
            MissionChild {
                cell: actor.get_cell(),
                kept: kept.clone(),
            },
        );
        let entry = MissionEntry { actor, kept };
        self.core.directory.set_mission(mission, entry.clone());
        Ok(entry)
    }

    /// A child failed: its state and its queue are gone; what it had in the journal's queue is decided there (T-17).
    async fn failed(&mut self, myself: &ActorRef<SupervisorMessage>, cell: &ActorCell) {
        if let Some(subject) = self.run_of(cell) {
            self.run_failed(myself, &subject).await;
        }
        if let Some(mission) = self.mission_of(cell)
            && let Some(child) = self.missions.remove(&mission)
        {
            self.core.directory.remove_mission(&mission);
            if self
                .start_mission(myself, mission.clone(), child.kept)
                .await
                .is_err()
            {
                tracing::error!("a mission's owner could not be started again");
            }
            // What it committed last may not have been told to the runs that wait for it.
            self.core.directory.moved(&mission);
        }
    }

    async fn run_failed(&mut self, myself: &ActorRef<SupervisorMessage>, subject: &Subject) {
        let now_ms = self.core.now_ms();
        self.core.directory.remove_run(subject);
        let Some(child) = self.runs.get_mut(subject) else {
            return;
        };
        child.cell = None;
        child.unclean = true;
        child
            .failed_ms
            .retain(|at_ms| now_ms.saturating_sub(*at_ms) < RESTART_WINDOW_MS);
        child.failed_ms.push(now_ms);
        let (park, was_parked) = (child.failed_ms.len() > RESTARTS, child.parked);
        let epoch = child.kept.fence.current();
        if self.core.is_closing() || (park && was_parked) {
            // Not even the hold could be kept; whoever asks for the run next starts an owner that recovers it.
            return;
        }
        if let Err(error) = self
            .start_run(
                myself,
                subject,
                Some((epoch, "the run's owner failed")),
                park,
            )
            .await
        {
            tracing::error!(
                code = error.code().name(),
                "a run's owner could not be started again"
            );
        }
    }

    /// A child ended by itself, such as a deposed owner: the next that asks for the run gets a new one.
    fn ended(&mut self, cell: &ActorCell) {
        if let Some(subject) = self.run_of(cell) {
            self.runs.remove(&subject);
            self.core.directory.remove_run(&subject);
        }
        if let Some(mission) = self.mission_of(cell) {
            self.missions.remove(&mission);
            self.core.directory.remove_mission(&mission);
        }
    }

    /// Stops the children in order: runs, then missions. Each finishes what it has in its mailbox.
    async fn stop_all(&mut self) {
        for child in std::mem::take(&mut self.runs).into_values() {
            if let Some(cell) = child.cell {
                // A child that is gone already needs no stop.
                let _ = cell.drain_and_wait(None).await;
            }
        }
        for child in std::mem::take(&mut self.missions).into_values() {
            let _ = child.cell.drain_and_wait(None).await;
        }
    }

    fn run_of(&self, cell: &ActorCell) -> Option<Subject> {
        let is = |child: &RunChild| {
            child
                .cell
                .as_ref()
                .is_some_and(|own| own.get_id() == cell.get_id())
        };
        self.runs
            .iter()
            .find(|(_, child)| is(child))
            .map(|(subject, _)| subject.clone())
    }

    fn mission_of(&self, cell: &ActorCell) -> Option<MissionId> {
        let is = |child: &MissionChild| child.cell.get_id() == cell.get_id();
        self.missions
            .iter()
            .find(|(_, child)| is(child))
            .map(|(mission, _)| mission.clone())
    }
}

/// The run's entry; its owner is started if there is none.
pub(crate) async fn ensure_run(core: &Core, subject: &Subject) -> Result<RunEntry, Error> {
    if let Some(entry) = core.directory.run(subject) {
        return Ok(entry);
    }
    ask(core, |reply| SupervisorMessage::EnsureRun {
        subject: subject.clone(),
        reply,
    })
    .await
}

/// The mission's entry; its owner is started if there is none.
pub(crate) async fn ensure_mission(
    core: &Core,
    mission: &MissionId,
) -> Result<MissionEntry, Error> {
    if let Some(entry) = core.directory.mission(mission) {
        return Ok(entry);
    }
    ask(core, |reply| SupervisorMessage::EnsureMission {
        mission_id: mission.clone(),
        reply,
    })
    .await
}

async fn ask<T>(
    core: &Core,
    message: impl FnOnce(Reply<T>) -> SupervisorMessage,
) -> Result<T, Error> {
    let supervisor = core.supervisor.get().ok_or_else(closing)?;
    let (reply, answered) = oneshot::channel();
    supervisor.cast(message(reply)).map_err(|_| closing())?;
    answered.await.map_err(|_| closing())?
}

/// Sends to a mission's owner and waits for the answer.
pub(crate) async fn ask_mission<T>(
    entry: &MissionEntry,
    message: impl FnOnce(Reply<T>) -> MissionMessage,
) -> Result<T, Error> {
    let (reply, answered) = oneshot::channel();
    entry.actor.cast(message(reply)).map_err(|_| actor_lost())?;
    answered.await.map_err(|_| actor_lost())?
}

/// Sends to a run's owner and waits for the answer.
pub(crate) async fn ask_run<T>(
    entry: &RunEntry,
    message: impl FnOnce(Reply<T>) -> RunMessage,
) -> Result<T, Error> {
    let (reply, answered) = oneshot::channel();
    entry.actor.cast(message(reply)).map_err(|_| actor_lost())?;
    answered.await.map_err(|_| actor_lost())?
}

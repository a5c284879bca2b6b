//! The mission's fold, and the admission that a run's fold starts from.
//!
//! Invariant: contract and configuration never change after the first event (FV-CON.2), and a run starts from
//! what its own admission event carries, not from what the mission became later. Called by actors and replay.

use std::sync::Arc;

use aiws::decimal::U64;
use aiws::digest::Digest;
use aiws::id::{RunId, StreamId};
use aiws::record::{Contract, Grant, HandoffConfig, Lifecycle};
use rpds::RedBlackTreeMapSync as Map;
use serde::Deserialize;

use super::{IllegalEvent, follows, free, known, same};
use crate::command::Body;
use crate::event::{Event, Head};
use crate::mission::MissionState;
use crate::register::RegisterKind;
use crate::run::RunState;
use crate::stream::Subject;
use crate::transition::Transition;

/// The mission's state after an event; `hash` is the event's own. The first event has no state before it.
///
/// # Errors
/// `IllegalEvent` where the event does not follow, or does not start where the state is.
pub fn mission(
    state: Option<MissionState>,
    event: &Event,
    hash: &Digest,
) -> Result<MissionState, IllegalEvent> {
    let mut state = match state {
        Some(state) => state,
        None => opened(event)?,
    };
    follows(&state.subject, &state.head, state.last_ms, event)?;
    same("the owner epoch", None, event.owner_epoch)?;
    for transition in &event.outcome.transitions {
        apply(&mut state, event, transition)?;
    }
    state.head = Head {
        revision: event.revision,
        hash: *hash,
    };
    state.last_ms = event.at_ms.get();
    Ok(state)
}

/// The state that the first event of a mission meets: its contract, and nothing committed.
fn opened(event: &Event) -> Result<MissionState, IllegalEvent> {
    let Body::OpenMission(body) = &event.command else {
        return Err(IllegalEvent::content(
            "a mission's first event",
            "openMission",
            event.kind.name(),
        ));
    };
    same(
        "the first transition",
        Some(&Transition::MissionOpened {}),
        event.outcome.transitions.first(),
    )?;
    let mut grants: Map<_, Grant> = Map::default();
    for grant in &body.contract.authority.root_grants {
        grants.insert_mut(grant.grant_id.clone(), grant.clone());
    }
    Ok(MissionState {
        subject: event.subject.clone(),
        stream: event.subject.stream(),
        head: Head {
            revision: U64(0),
            hash: Digest::ZERO,
        },
        last_ms: 0,
        contract: Arc::new(body.contract.clone()),
        config: Arc::new(body.config.clone()),
        grants,
        runs: Map::default(),
    })
}

fn apply(
    state: &mut MissionState,
    event: &Event,
    transition: &Transition,
) -> Result<(), IllegalEvent> {
    match (transition, &event.command) {
        (Transition::MissionOpened {}, Body::OpenMission(_)) => {
            same("the mission's revision", 0, state.head.revision.get())
        }
        (Transition::GrantRecorded { grant_id }, Body::GrantCommand(body)) => {
            same("the grant", grant_id, &body.grant.grant_id)?;
            free("the grant", grant_id, state.grants.contains_key(grant_id))?;
            state
                .grants
                .insert_mut(grant_id.clone(), body.grant.clone());
            Ok(())
        }
        (Transition::RunAdmitted { run_id, epoch }, Body::StartRun(body)) => {
            same("the run", run_id, &body.run_id)?;
            free("the run", run_id, state.runs.contains_key(run_id))?;
            state.runs.insert_mut(run_id.clone(), epoch.get());
            Ok(())
        }
        _ => Err(IllegalEvent::content(
            "the transition",
            "one of a mission, with its command",
            event.kind.name(),
        )),
    }
}

/// The value of a RunAdmission register.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Admission {
    run_id: RunId,
    epoch: U64,
    profile: String,
    contract: Contract,
    config: HandoffConfig,
}

impl RunState {
    /// A run as its admission leaves it, before its first event. `event` is the mission's startRun, `hash` its
    /// hash: the run's first event links to it.
    ///
    /// # Errors
    /// `IllegalEvent` where the event admits no run, or its register does not say all that a run starts from.
    pub fn admitted(event: &Event, hash: &Digest) -> Result<RunState, IllegalEvent> {
        let mut writes = event.outcome.registers.iter();
        let write = writes.find(|write| write.register.kind == RegisterKind::RunAdmission);
        let write = known("the run admission of event", event.revision, write)?;
        let admission: Admission = aiws::canonical::from_value(&write.value).map_err(|error| {
            IllegalEvent::content("the run admission", "a closed record", error)
        })?;
        same(
            "the profile",
            crate::mission::PROTOCOL,
            admission.profile.as_str(),
        )?;
        let subject = Subject::run(event.subject.mission_id.clone(), admission.run_id);
        let stream: StreamId = subject.stream();
        same(
            "the opened stream",
            true,
            event.outcome.opens.contains(&stream),
        )?;
        Ok(RunState {
            subject,
            stream,
            head: Head {
                revision: U64(0),
                hash: *hash,
            },
            last_ms: event.at_ms.get(),
            epoch: admission.epoch.get(),
            lifecycle: Lifecycle::Running,
            cause: None,
            contract: Arc::new(admission.contract),
            config: Arc::new(admission.config),
            graph: None,
            nodes: Map::default(),
            operations: Map::default(),
            attempts: Map::default(),
            approvals: Map::default(),
            approval_lives: Map::default(),
            assessed: Map::default(),
            invalidations: Map::default(),
            summaries: Map::default(),
            verifications: Vec::new(),
            acceptances: Vec::new(),
            accepted_on: None,
            manifests: Map::default(),
            checkpoints: Map::default(),
            deliveries: Map::default(),
            consumptions: Map::default(),
            holds: Map::default(),
            canceled_by: None,
        })
    }
}

//! A mission's state after an event: its opening, its grants, its runs.
//!
//! Invariant: contract and configuration come from the opening event and never change (FV-CON.1, FV-CON.2); ids
//! are taken once. Called by the mission's actor and by every replay.

use std::sync::Arc;

use aiws::decimal::U64;
use aiws::digest::Digest;
use aiws::id::{GrantId, RunId};
use aiws::record::Grant;
use rpds::RedBlackTreeMapSync as Map;

use super::{IllegalEvent, follows, free, same};
use crate::command::{Body, OpenMission};
use crate::event::{Event, Head};
use crate::mission::MissionState;
use crate::transition::Transition;

/// The mission's state after an event; `hash` is the event's own, `state` is none before the first.
///
/// # Errors
/// `IllegalEvent` where the event does not follow: another stream, a gap, a wrong previous hash, or a change that
/// the mission's state does not permit.
pub fn mission(
    state: Option<MissionState>,
    event: &Event,
    hash: &Digest,
) -> Result<MissionState, IllegalEvent> {
    let mut state = match state {
        Some(state) => {
            follows(&state.subject, &state.head, state.last_ms, event)?;
            let opens = event
                .outcome
                .transitions
                .contains(&Transition::MissionOpened {});
            free("the mission", &state.subject.mission_id, opens)?;
            state
        }
        None => opened(event)?,
    };
    same("the owner epoch of a mission", None, event.owner_epoch)?;
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

/// The state that the opening event begins with.
fn opened(event: &Event) -> Result<MissionState, IllegalEvent> {
    let Body::OpenMission(OpenMission { contract, config }) = &event.command else {
        return Err(IllegalEvent::content(
            "the first event of a mission",
            "openMission",
            event.kind.name(),
        ));
    };
    let head = Head {
        revision: U64(0),
        hash: Digest::ZERO,
    };
    follows(&event.subject, &head, 0, event)?;
    same("the run of a mission's event", &None, &event.subject.run_id)?;
    same(
        "the contract's mission",
        &event.subject.mission_id,
        &contract.mission_id,
    )?;
    same(
        "the changes of an opening",
        &[Transition::MissionOpened {}][..],
        &event.outcome.transitions[..],
    )?;
    let mut grants = Map::new_sync();
    for grant in &contract.authority.root_grants {
        free(
            "the grant",
            &grant.grant_id,
            grants.contains_key(&grant.grant_id),
        )?;
        grants.insert_mut(grant.grant_id.clone(), grant.clone());
    }
    Ok(MissionState {
        subject: event.subject.clone(),
        stream: event.subject.stream(),
        head,
        last_ms: 0,
        contract: Arc::new(contract.clone()),
        config: Arc::new(config.clone()),
        grants,
        runs: Map::new_sync(),
    })
}

fn apply(
    state: &mut MissionState,
    event: &Event,
    transition: &Transition,
) -> Result<(), IllegalEvent> {
    match transition {
        Transition::MissionOpened {} => Ok(()),
        Transition::GrantRecorded { grant_id } => granted(state, event, grant_id),
        Transition::RunAdmitted { run_id, epoch } => admitted(state, event, run_id, epoch.get()),
        other => Err(IllegalEvent::content(
            "a change of a mission",
            "one of its own",
            format!("{other:?}"),
        )),
    }
}

fn granted(state: &mut MissionState, event: &Event, id: &GrantId) -> Result<(), IllegalEvent> {
    let Body::GrantCommand(body) = &event.command else {
        return Err(IllegalEvent::content(
            "the command",
            "grant",
            event.kind.name(),
        ));
    };
    same("the grant", &body.grant.grant_id, id)?;
    free("the grant", id, state.grants.contains_key(id))?;
    let parent = body
        .grant
        .parent_grant_id
        .as_ref()
        .and_then(|parent| state.grants.get(parent));
    let Some(parent) = parent else {
        return Err(IllegalEvent::content(
            format!("the parent of grant {id}"),
            "one that exists",
            "none",
        ));
    };
    if !narrows(&body.grant, parent) {
        return Err(IllegalEvent::content(
            format!("the grant {id}"),
            "one inside its parent",
            "a wider one",
        ));
    }
    state.grants.insert_mut(id.clone(), body.grant.clone());
    Ok(())
}

/// The child lies inside its parent in every dimension (FV-GRT.1).
fn narrows(child: &Grant, parent: &Grant) -> bool {
    child
        .actions
        .iter()
        .all(|action| parent.actions.contains(action))
        && child
            .scopes
            .iter()
            .all(|scope| parent.scopes.contains(scope))
        && child.max_amount <= parent.max_amount
        && child.not_after_ms <= parent.not_after_ms
}

fn admitted(
    state: &mut MissionState,
    event: &Event,
    id: &RunId,
    epoch: u64,
) -> Result<(), IllegalEvent> {
    let Body::StartRun(body) = &event.command else {
        return Err(IllegalEvent::content(
            "the command",
            "startRun",
            event.kind.name(),
        ));
    };
    same("the run", &body.run_id, id)?;
    same("the first epoch of a run", 1, epoch)?;
    free("the run", id, state.runs.contains_key(id))?;
    state.runs.insert_mut(id.clone(), epoch);
    Ok(())
}

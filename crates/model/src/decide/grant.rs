//! grant: a derived grant comes into force (FV-GRT.1).
//!
//! Invariant: a derived grant narrows its parent in every dimension; sets are literal, so a wildcard covers only
//! itself (FV-GRT.2). Called by `decide::mission`.

use aiws::object;
use aiws::record::Checked;

use super::open_mission::record;
use super::pipeline::members;
use crate::command::{Body, Command, GrantCommand};
use crate::decision::{Decision, Rejection};
use crate::event::Outcome;
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::mission::MissionState;
use crate::transition::Transition;

/// Stage 1 of grant: the record has the shape of the wire.
pub(super) fn shape(body: &GrantCommand) -> Result<(), Rejection> {
    let shape = Checked::new(&body.grant);
    let place = shape.as_ref().err().and_then(|error| error.pointer.clone());
    check(Guard::GrantShape, shape.is_ok(), || {
        members(object! { "pointer": place })
    })
}

/// Stages 8 and 9 of grant.
pub(super) fn decide(
    state: &MissionState,
    _command: &Command,
    body: &GrantCommand,
    _facts: &Facts,
) -> Result<Decision, Rejection> {
    let grant = &body.grant;
    let named = || members(object! { "grantId": &grant.grant_id });
    check(
        Guard::GrantNew,
        !state.grants.contains_key(&grant.grant_id),
        named,
    )?;
    let parent_id = need(
        Guard::GrantParentNamed,
        grant.parent_grant_id.as_ref(),
        named,
    )?;
    let parent = need(Guard::GrantParentKnown, state.grants.get(parent_id), || {
        members(object! { "grantId": &grant.grant_id, "parentGrantId": parent_id })
    })?;
    let wider = grant
        .actions
        .iter()
        .find(|action| !parent.actions.contains(action));
    check(Guard::GrantNarrowsActions, wider.is_none(), || {
        members(object! { "action": wider.cloned() })
    })?;
    let wider = grant
        .scopes
        .iter()
        .find(|scope| !parent.scopes.contains(scope));
    check(Guard::GrantNarrowsScopes, wider.is_none(), || {
        members(object! { "scope": wider.cloned() })
    })?;
    check(
        Guard::GrantNarrowsAmount,
        grant.max_amount <= parent.max_amount,
        || members(object! { "maxAmount": grant.max_amount, "parentMaxAmount": parent.max_amount }),
    )?;
    check(
        Guard::GrantNarrowsExpiry,
        grant.not_after_ms <= parent.not_after_ms,
        || {
            members(
                object! { "notAfterMs": grant.not_after_ms, "parentNotAfterMs": parent.not_after_ms },
            )
        },
    )?;
    let recorded = Transition::GrantRecorded {
        grant_id: grant.grant_id.clone(),
    };
    let mut outcome = Outcome {
        transitions: vec![recorded],
        ..Outcome::default()
    };
    record(&state.subject, grant, &mut outcome)?;
    Ok(Decision {
        command: Body::GrantCommand(body.clone()),
        outcome,
        result: object! { "grantId": &grant.grant_id },
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

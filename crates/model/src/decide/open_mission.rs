//! openMission: a mission exists under an immutable contract and hand-off configuration (FV-CON.1).
//!
//! Invariant: what the contract asks for is known, or nothing is opened; nothing is downgraded (HM-01.3).
//! Called by `decide::mission`; the only command of a mission that has no state yet.

use std::collections::BTreeSet;

use aiws::canonical::{digest_of, to_value};
use aiws::object;
use aiws::record::{Checked, Contract, FEATURES, Grant};

use super::pipeline::members;
use crate::account::Posting;
use crate::command::{Body, Command, OpenMission};
use crate::decision::{Decision, Rejection};
use crate::event::{Identity, IdentityKind, Outcome};
use crate::facts::Facts;
use crate::guard::{Guard, check};
use crate::mission::{MissionState, PROTOCOL, cost_account};
use crate::register::{RegisterKey, RegisterKind, RegisterWrite};
use crate::stream::Subject;
use crate::transition::Transition;

/// Stage 1 of openMission: what is asked for is known, and has the shape of the wire.
pub(super) fn shape(body: &OpenMission) -> Result<(), Rejection> {
    supported(&body.contract)?;
    let shape = Checked::new(&body.contract)
        .map(|_| ())
        .and_then(|()| Checked::new(&body.config).map(|_| ()));
    let place = shape.as_ref().err().and_then(|error| error.pointer.clone());
    check(Guard::ContractShape, shape.is_ok(), || {
        members(object! { "pointer": place })
    })
}

/// Stage 5 of openMission: the contract is of the mission that is opened.
pub(super) fn ownership(command: &Command, body: &OpenMission) -> Result<(), Rejection> {
    let contract = &body.contract;
    check(
        Guard::ContractMission,
        contract.mission_id == command.mission_id,
        || {
            members(
                object! { "missionId": &command.mission_id, "contractMissionId": &contract.mission_id },
            )
        },
    )
}

/// Stage 8 of openMission; it admits no work, so there is no stage 9.
pub(super) fn decide(
    state: Option<&MissionState>,
    command: &Command,
    body: &OpenMission,
    _facts: &Facts,
) -> Result<Decision, Rejection> {
    let contract = &body.contract;
    check(Guard::MissionNew, state.is_none(), || {
        members(object! { "missionId": &command.mission_id })
    })?;
    let ids: BTreeSet<_> = contract
        .authority
        .root_grants
        .iter()
        .map(|grant| &grant.grant_id)
        .collect();
    check(
        Guard::RootGrantsUnique,
        ids.len() == contract.authority.root_grants.len(),
        || members(object! { "missionId": &command.mission_id }),
    )?;
    let grants: Vec<_> = contract
        .authority
        .root_grants
        .iter()
        .map(|grant| grant.grant_id.as_str())
        .collect();
    Ok(Decision {
        command: Body::OpenMission(body.clone()),
        outcome: outcome(command, body)?,
        result: object! { "missionId": &command.mission_id, "contractId": &contract.contract_id, "grants": grants },
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

/// Features and extensions are known; an unknown one is refused, never ignored.
fn supported(contract: &Contract) -> Result<(), Rejection> {
    let stranger = contract
        .features
        .iter()
        .find(|feature| !FEATURES.contains(&feature.as_str()));
    check(Guard::ContractFeatures, stranger.is_none(), || {
        members(object! { "feature": stranger.cloned() })
    })?;
    let stranger = contract
        .extensions
        .iter()
        .flatten()
        .find(|extension| extension.as_str() != PROTOCOL);
    check(Guard::ContractExtensions, stranger.is_none(), || {
        members(object! { "extension": stranger.cloned() })
    })
}

fn outcome(command: &Command, body: &OpenMission) -> Result<Outcome, Rejection> {
    let subject = Subject::mission(command.mission_id.clone());
    let key = RegisterKey {
        mission_id: command.mission_id.clone(),
        kind: RegisterKind::Contract,
        key: command.mission_id.as_id(),
    };
    let value =
        object! { "contract": to_value(&body.contract)?, "config": to_value(&body.config)? };
    let mut outcome = Outcome {
        transitions: vec![Transition::MissionOpened {}],
        registers: vec![RegisterWrite {
            register: key,
            value,
        }],
        accounts: vec![Posting::Open {
            account: cost_account(&subject),
            bound: body.contract.budget,
        }],
        ..Outcome::default()
    };
    for grant in &body.contract.authority.root_grants {
        record(&subject, grant, &mut outcome)?;
    }
    Ok(outcome)
}

/// Puts a grant into the register and takes its id.
pub(super) fn record(
    subject: &Subject,
    grant: &Grant,
    outcome: &mut Outcome,
) -> Result<(), Rejection> {
    let key = grant.grant_id.as_id();
    let register = RegisterKey {
        mission_id: subject.mission_id.clone(),
        kind: RegisterKind::Grant,
        key: key.clone(),
    };
    outcome.registers.push(RegisterWrite {
        register,
        value: to_value(grant)?,
    });
    outcome.identities.push(Identity {
        kind: IdentityKind::Grant,
        key,
        digest: digest_of(grant)?,
    });
    Ok(())
}

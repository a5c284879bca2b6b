//! startRun: a run of the mission exists, with its first ownership epoch (FV-RUN.1).
//!
//! Invariant: a run starts only under a contract that negotiated the hand-off protocol (HM-01.1).
//! Called by `decide::mission`; the run's own stream begins with this event's hash.

use aiws::canonical::{digest_of, to_value};
use aiws::decimal::U64;
use aiws::object;

use super::pipeline::members;
use crate::command::{Body, Command, StartRun};
use crate::decision::{Decision, Rejection};
use crate::event::{DueChange, DueKind, Identity, IdentityKind, Outcome, Owner};
use crate::facts::Facts;
use crate::guard::{Guard, check};
use crate::mission::{MissionState, PROTOCOL};
use crate::register::{RegisterKey, RegisterKind, RegisterWrite};
use crate::stream::Subject;
use crate::transition::Transition;

/// The epoch that every run begins with.
const FIRST_EPOCH: U64 = U64(1);

/// Stages 8 and 9 of startRun.
pub(super) fn decide(
    state: &MissionState,
    _command: &Command,
    body: &StartRun,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let contract = &state.contract;
    let negotiated = contract
        .extensions
        .iter()
        .flatten()
        .any(|extension| extension == PROTOCOL);
    check(Guard::ProtocolNegotiated, negotiated, || {
        members(object! { "protocol": PROTOCOL })
    })?;
    check(
        Guard::RunNew,
        !state.runs.contains_key(&body.run_id),
        || members(object! { "runId": &body.run_id }),
    )?;
    check(
        Guard::MissionDeadline,
        !contract.deadline_ms.reached(facts.now_ms),
        || members(object! { "deadlineMs": contract.deadline_ms }),
    )?;
    Ok(Decision {
        command: Body::StartRun(body.clone()),
        outcome: outcome(state, body, facts)?,
        result: object! { "runId": &body.run_id, "epoch": FIRST_EPOCH },
        same: Vec::new(),
        before_ms: contract.deadline_ms.to_u64().into_iter().collect(),
    })
}

fn outcome(state: &MissionState, body: &StartRun, facts: &Facts) -> Result<Outcome, Rejection> {
    let mission_id = state.subject.mission_id.clone();
    let stream = Subject::run(mission_id.clone(), body.run_id.clone()).stream();
    let value = object! {
        "runId": &body.run_id,
        "epoch": FIRST_EPOCH,
        "profile": PROTOCOL,
        "contract": to_value(&*state.contract)?,
        "config": to_value(&*state.config)?,
    };
    let register = RegisterKey {
        mission_id,
        kind: RegisterKind::RunAdmission,
        key: body.run_id.as_id(),
    };
    let digest = digest_of(body)?;
    Ok(Outcome {
        transitions: vec![Transition::RunAdmitted {
            run_id: body.run_id.clone(),
            epoch: FIRST_EPOCH,
        }],
        registers: vec![RegisterWrite { register, value }],
        identities: vec![Identity {
            kind: IdentityKind::Run,
            key: body.run_id.as_id(),
            digest,
        }],
        opens: vec![stream.clone()],
        owner: Some(Owner {
            stream: stream.clone(),
            epoch: FIRST_EPOCH,
        }),
        due: vec![DueChange {
            stream,
            kind: DueKind::Live,
            at_ms: Some(U64(facts.now_ms)),
        }],
        ..Outcome::default()
    })
}

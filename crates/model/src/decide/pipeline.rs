//! The nine stages that every command passes, in one place (ERR-PREC.1; wire form section 12).
//!
//! Invariant: the first stage that refuses names the error, and each stage is driven by the command table.
//! Called by `decide::run` and `decide::mission` before the command's own file.
//!
//!  1 shape           `wire::parse`: strict JSON, protocol, closed shape; here what a body built in code shows alone
//!  2 authentication  the host: the principal is proven before anything is disclosed (HF-02.9)
//!  3 replay          the host, and the `request` condition at the durable boundary
//!  4 revision        here
//!  5 ownership       here
//!  6 authority       here, and `authority` of commands with rules of their own
//!  7 gates           here, and `gates` of commands with rules of their own
//!  8 object          the command's `decide`: identity, state, claim, basis, material, selection, release
//!  9 admission       the command's `decide`, last

use aiws::decimal::Dec;
use aiws::error::{Code, Error, Stage};
use aiws::id::{NodeId, RunId};
use aiws::json::Object;
use aiws::object;
use aiws::record::{ActorKind, Hold, Lifecycle};

use super::{
    commit_boundary, grant, invalidate_handoff, open_mission, place_hold, reconcile,
    record_summary, recover_ownership, resolve_hold, settle,
};
use crate::command::{Body, Command};
use crate::decision::Rejection;
use crate::event::{Gate, Head};
use crate::facts::Facts;
use crate::guard::{Guard, check};
use crate::hold;
use crate::limits::MAX_AUTHORIZATION_AGE_MS;
use crate::mission::MissionState;
use crate::run::RunState;
use crate::stream::Subject;
use crate::table::{self, Row, StreamKind, Who};

/// Stages 1 and 4 to 7 of a run's command.
pub(super) fn run(state: &RunState, command: &Command, facts: &Facts) -> Result<(), Rejection> {
    let row = table::row(command.body.kind());
    shape(&command.body)?;
    revision(&state.head, command)?;
    ownership(state, command, facts, row)?;
    authority(command, facts, row)?;
    own_authority(state, &command.body, facts)?;
    gates(state, &command.body, facts, row)
}

/// Stages 1 and 4 to 7 of a mission's command. A mission has no owner epoch: its one actor is its owner.
pub(super) fn mission(
    state: Option<&MissionState>,
    command: &Command,
    facts: &Facts,
) -> Result<(), Rejection> {
    let row = table::row(command.body.kind());
    shape(&command.body)?;
    if let Some(state) = state {
        revision(&state.head, command)?;
        let agrees = command.mission_id == state.subject.mission_id && command.run_id.is_none();
        check(
            Guard::SubjectAgrees,
            agrees && row.stream == StreamKind::Mission,
            || found_subject(&state.subject, command),
        )?;
    }
    if let Body::OpenMission(body) = &command.body {
        open_mission::ownership(command, body)?;
    }
    authority(command, facts, row)?;
    if row.gated {
        outer_gates(facts)
    } else {
        Ok(())
    }
}

/// Stage 1 of a body that was built in code: what the wire refuses for what the body says alone (FV-CMD.4).
fn shape(body: &Body) -> Result<(), Rejection> {
    match body {
        Body::OpenMission(body) => open_mission::shape(body),
        Body::GrantCommand(body) => grant::shape(body),
        Body::Settle(body) => settle::shape(body),
        Body::Reconcile(body) => reconcile::shape(body),
        Body::PlaceHold(body) => place_hold::shape(&body.hold),
        Body::CommitBoundary(body) => body.hold.as_ref().map_or(Ok(()), place_hold::shape),
        _ => Ok(()),
    }
}

/// The refusal of a command that belongs to another kind of stream.
pub(super) fn foreign_stream() -> Rejection {
    Error::new(
        Code::StaleOwner,
        "expected a command of this stream, found one of another; send it to its own stream",
    )
    .in_stage(Stage::Ownership)
}

fn revision(head: &Head, command: &Command) -> Result<(), Rejection> {
    // Without an expectation the actor's own position counts (STO-3); beyond u64 nothing ever matches (T-57).
    let fits = command
        .expected_revision
        .is_none_or(|expected| expected.to_u64() == Some(head.revision.get()));
    check(Guard::ExpectedRevision, fits, || {
        let expected = command
            .expected_revision
            .map(|expected| expected.to_string());
        members(object! { "expected": expected, "head": head.revision.to_string() })
    })
}

fn ownership(
    state: &RunState,
    command: &Command,
    facts: &Facts,
    row: &Row,
) -> Result<(), Rejection> {
    let agrees = command.mission_id == state.subject.mission_id
        && command.run_id == state.subject.run_id
        && body_run(&command.body).is_none_or(|run| Some(run) == state.subject.run_id.as_ref())
        && records_agree(&state.subject, &command.body)
        && row.stream == StreamKind::Run;
    check(Guard::SubjectAgrees, agrees, || {
        found_subject(&state.subject, command)
    })?;
    let current = |epoch: Dec| epoch.to_u64() == Some(state.epoch);
    // An epoch that is stated must be right even where none is needed: the sender speaks for an older owner.
    let held = match command.owner_epoch {
        Some(epoch) => current(epoch),
        None => !row.owned,
    };
    let held = held && body_epoch(&command.body).is_none_or(current);
    check(Guard::EpochCurrent, held, || {
        let sent = command
            .owner_epoch
            .or_else(|| body_epoch(&command.body))
            .map(|epoch| epoch.to_string());
        members(object! { "sent": sent, "current": state.epoch.to_string() })
    })?;
    match &command.body {
        Body::RecoverOwnership(body) => recover_ownership::ownership(state, body),
        body if super::leased(body) => clock(state, facts),
        _ => Ok(()),
    }
}

/// Nobody can say how long a lease still lasts by a clock that stepped back under it: the run is taken over first,
/// which ends the lease (HS-04.6, T-29).
fn clock(state: &RunState, facts: &Facts) -> Result<(), Rejection> {
    let under = state
        .live_claim(facts.now_ms)
        .filter(|_| facts.clock_stepped);
    check(Guard::ClockTrusted, under.is_none(), || {
        let claimed = under.map(|delivery| delivery.delivery_id.as_str().to_owned());
        members(object! { "deliveryId": claimed })
    })
}

fn authority(command: &Command, facts: &Facts, row: &Row) -> Result<(), Rejection> {
    check(Guard::PolicyAllows, facts.allowed, || {
        members(object! { "actor": &facts.actor_id, "command": command.body.kind().name() })
    })?;
    let fresh = facts.authorized_at_ms <= facts.now_ms
        && facts.now_ms - facts.authorized_at_ms <= MAX_AUTHORIZATION_AGE_MS;
    check(Guard::AuthorizedInTime, fresh, || {
        let (at, now) = (facts.authorized_at_ms.to_string(), facts.now_ms.to_string());
        members(object! { "authorizedAtMs": at, "nowMs": now })
    })?;
    match row.who {
        Who::Any => Ok(()),
        Who::Human => human(facts),
        Who::Recovery => check(
            Guard::RecoveryTrusted,
            facts.recovery_authority,
            Object::new,
        ),
    }
}

/// A human decides, as the host proved it, with a reference to the decision (HS-03.7, HS-03.11).
pub(super) fn human(facts: &Facts) -> Result<(), Rejection> {
    let proven = facts.actor_kind == ActorKind::Human && facts.decision_ref.is_some();
    check(Guard::HumanDecides, proven, || {
        members(object! { "actor": &facts.actor_id })
    })
}

/// Authority rules that depend on the object decided about.
fn own_authority(state: &RunState, body: &Body, facts: &Facts) -> Result<(), Rejection> {
    match body {
        Body::CommitBoundary(body) => commit_boundary::authority(state, body),
        Body::PlaceHold(body) => place_hold::authority(state, body, facts),
        Body::ResolveHold(body) => resolve_hold::authority(state, body, facts),
        Body::RecordSummary(body) => record_summary::authority(body, facts),
        Body::InvalidateHandoff(_) => invalidate_handoff::authority(facts),
        Body::RecoverOwnership(body) => recover_ownership::authority(state, body, facts),
        Body::Settle(body) => settle::authority(state, body, facts),
        Body::Reconcile(body) => reconcile::authority(state, body, facts),
        _ => Ok(()),
    }
}

/// The gate matrix (wire form section 11): terminal, then cancellation, then holds.
fn gates(state: &RunState, body: &Body, facts: &Facts, row: &Row) -> Result<(), Rejection> {
    if row.ends_with_run || resolve_hold::ends_with_run(body) {
        let terminal = state.lifecycle.is_terminal();
        check(Guard::NotTerminal, !terminal, || {
            members(object! { "lifecycle": state.lifecycle })
        })?;
    }
    if row.gated {
        return run_gates(state, hold::reach(state, body).as_ref(), facts);
    }
    if let Body::CommitBoundary(body) = body {
        return commit_boundary::gates(state, body, facts);
    }
    Ok(())
}

/// The gates of what launches work in this node; without one, of what launches work in the run as a whole.
pub(super) fn run_gates(
    state: &RunState,
    node: Option<&NodeId>,
    facts: &Facts,
) -> Result<(), Rejection> {
    let canceling = state.lifecycle == Lifecycle::Canceling;
    check(Guard::NotCanceling, !canceling, || {
        members(object! { "gate": "CANCEL" })
    })?;
    let held = |found: Option<&Hold>| {
        let hold = found.map(|hold| hold.hold_id.as_str().to_owned());
        let node = node.map(|node| node.as_str().to_owned());
        members(object! { "gate": "HOLD", "holdId": hold, "nodeId": node })
    };
    let whole = hold::open(state).find(|hold| hold::is_whole(hold));
    check(Guard::NoOpenHold, whole.is_none(), || held(whole))?;
    let mut branches = hold::open(state).filter(|hold| !hold::is_whole(hold));
    let covers = |hold: &&Hold| node.is_none() || hold::contains(&hold.members, node);
    let branch = branches.find(covers);
    check(Guard::NodeNotHeld, branch.is_none(), || held(branch))?;
    outer_gates(facts)
}

fn outer_gates(facts: &Facts) -> Result<(), Rejection> {
    let found = || match facts.outer_gates.iter().max() {
        Some(Gate::Hold { hold_id } | Gate::Branch { hold_id, .. }) => {
            members(object! { "gate": "HOLD", "holdId": hold_id })
        }
        _ => members(object! { "gate": "CANCEL" }),
    };
    check(Guard::NoOuterGate, facts.outer_gates.is_empty(), found)
}

fn found_subject(subject: &Subject, command: &Command) -> Object {
    let text = |run: &Option<RunId>| run.as_ref().map(|run| run.as_str().to_owned());
    members(object! {
        "missionId": &subject.mission_id,
        "runId": text(&subject.run_id),
        "sentMissionId": &command.mission_id,
        "sentRunId": text(&command.run_id),
    })
}

/// The run that a body names itself.
pub(crate) fn body_run(body: &Body) -> Option<&RunId> {
    match body {
        Body::ActivateGraph(body) => Some(&body.run_id),
        Body::Approve(body) => Some(&body.run_id),
        Body::RevokeApproval(body) => Some(&body.run_id),
        Body::Dispatch(body) => Some(&body.run_id),
        Body::Settle(body) => Some(&body.run_id),
        Body::Reconcile(body) => Some(&body.run_id),
        Body::Retry(body) => Some(&body.run_id),
        Body::Verify(body) => Some(&body.run_id),
        Body::Accept(body) => Some(&body.run_id),
        Body::CompleteRun(body) => Some(&body.run_id),
        Body::CancelRun(body) => Some(&body.run_id),
        Body::FinishCancelRun(body) => Some(&body.run_id),
        _ => None,
    }
}

/// The epoch that a body names itself.
pub(crate) fn body_epoch(body: &Body) -> Option<Dec> {
    match body {
        Body::ActivateGraph(body) => Some(body.owner_epoch),
        Body::Dispatch(body) => Some(body.owner_epoch),
        Body::Retry(body) => Some(body.owner_epoch),
        Body::CompleteRun(body) => Some(body.owner_epoch),
        _ => None,
    }
}

/// Records inside the body speak of the envelope's mission and run (REL-1, HF-03.13).
fn records_agree(subject: &Subject, body: &Body) -> bool {
    match body {
        Body::CommitBoundary(body) => {
            let mut all = std::iter::once(&body.manifest).chain(&body.skipped);
            all.all(|manifest| {
                manifest.producer.mission_id == subject.mission_id
                    && Some(&manifest.producer.run_id) == subject.run_id.as_ref()
            })
        }
        Body::AdmitConsumer(body) => {
            let consumption = &body.consumption;
            consumption.mission_id == subject.mission_id
                && Some(&consumption.run_id) == subject.run_id.as_ref()
        }
        _ => true,
    }
}

/// The members of an object value, for the details of a refusal.
pub(super) fn members(value: aiws::json::Value) -> Object {
    match value {
        aiws::json::Value::Object(members) => members,
        _ => Object::new(),
    }
}

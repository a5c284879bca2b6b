//! Hop 2 of 5: what an accepted command means, or why it is refused. One file per command.
//! Previous: engine/run_actor (1), next: journal-format/seal (3).
//!
//! Invariant: looks at nothing but its arguments, refuses through guards alone, and passes the nine stages in
//! their order (see `pipeline`). Called by the engine's actors, by the simulator and by deep verification.
//!
//! A command's file has `decide(state, command, body, facts)` for stages 8 and 9. Where a command has rules of
//! its own for stage 6 or 7, its file also has `authority(..)` or `gates(..)`, called from the pipeline.

mod accept;
mod acknowledge_delivery;
mod activate_graph;
mod admit_consumer;
mod affected;
mod approve;
pub(crate) mod boundary;
mod cancel_run;
mod claim_delivery;
mod claims;
mod commit_boundary;
pub(crate) mod complete_run;
mod dispatch;
pub(crate) mod evidence;
mod finish_cancel_run;
mod grant;
mod invalidate_handoff;
pub(crate) mod join;
mod material;
mod open_mission;
pub(crate) mod pipeline;
pub(crate) mod place_hold;
pub(crate) mod reconcile;
pub(crate) mod record_summary;
mod recover_ownership;
mod release_delivery;
mod resolve_hold;
mod retry;
mod revoke_approval;
mod settle;
mod start_run;
pub(crate) mod terminal;
mod verify;

use crate::command::{Body, Command};
use crate::decision::{Decision, Rejection};
use crate::facts::Facts;
use crate::hold;
use crate::mission::MissionState;
use crate::run::RunState;
use crate::transition::Transition;

pub use place_hold::{BRANCH_RESOLVER_REVISION, RUN_RESOLVER_REVISION, needed_units};
pub use reconcile::{LOOKUP, LOST_READ_RULE};

/// Decides a run's command.
///
/// # Errors
/// The code of the first stage that refuses; nothing has changed then (ERR-PREC.1, ERR-PREC.3). A command of
/// the mission's stream is refused with STALE_OWNER: it is not this stream's to decide.
pub fn run(state: &RunState, command: &Command, facts: &Facts) -> Result<Decision, Rejection> {
    pipeline::run(state, command, facts)?;
    let mut decision = decided(state, command, facts)?;
    let told = hold::told(state, &decision.command);
    let launched = told.map(|node_id| Transition::LaunchedIn { node_id });
    decision.outcome.transitions.splice(0..0, launched);
    Ok(decision)
}

/// Whether the command is judged by the time that is left of a lease, so that the clock must be trusted (T-29).
pub fn leased(body: &Body) -> bool {
    matches!(
        body,
        Body::ClaimDelivery(_) | Body::AcknowledgeDelivery(_) | Body::ReleaseDelivery(_)
    )
}

/// Stages 8 and 9: each command's own.
fn decided(state: &RunState, command: &Command, facts: &Facts) -> Result<Decision, Rejection> {
    match &command.body {
        Body::ActivateGraph(body) => activate_graph::decide(state, command, body, facts),
        Body::Approve(body) => approve::decide(state, command, body, facts),
        Body::RevokeApproval(body) => revoke_approval::decide(state, command, body, facts),
        Body::Dispatch(body) => dispatch::decide(state, command, body, facts),
        Body::Settle(body) => settle::decide(state, command, body, facts),
        Body::Reconcile(body) => reconcile::decide(state, command, body, facts),
        Body::Retry(body) => retry::decide(state, command, body, facts),
        Body::Verify(body) => verify::decide(state, command, body, facts),
        Body::Accept(body) => accept::decide(state, command, body, facts),
        Body::CompleteRun(body) => complete_run::decide(state, command, body, facts),
        Body::CancelRun(body) => cancel_run::decide(state, command, body, facts),
        Body::FinishCancelRun(body) => finish_cancel_run::decide(state, command, body, facts),
        Body::CommitBoundary(body) => commit_boundary::decide(state, command, body, facts),
        Body::ClaimDelivery(body) => claim_delivery::decide(state, command, body, facts),
        Body::AcknowledgeDelivery(body) => {
            acknowledge_delivery::decide(state, command, body, facts)
        }
        Body::ReleaseDelivery(body) => release_delivery::decide(state, command, body, facts),
        Body::AdmitConsumer(body) => admit_consumer::decide(state, command, body, facts),
        Body::PlaceHold(body) => place_hold::decide(state, command, body, facts),
        Body::ResolveHold(body) => resolve_hold::decide(state, command, body, facts),
        Body::InvalidateHandoff(body) => invalidate_handoff::decide(state, command, body, facts),
        Body::RecoverOwnership(body) => recover_ownership::decide(state, command, body, facts),
        Body::RecordSummary(body) => record_summary::decide(state, command, body, facts),
        Body::OpenMission(_) | Body::StartRun(_) | Body::GrantCommand(_) => {
            Err(pipeline::foreign_stream())
        }
    }
}

/// Decides a mission's command; `state` is none only for openMission.
///
/// # Errors
/// As `run`.
pub fn mission(
    state: Option<&MissionState>,
    command: &Command,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    pipeline::mission(state, command, facts)?;
    match (&command.body, state) {
        (Body::OpenMission(body), _) => open_mission::decide(state, command, body, facts),
        (Body::StartRun(body), Some(state)) => start_run::decide(state, command, body, facts),
        (Body::GrantCommand(body), Some(state)) => grant::decide(state, command, body, facts),
        _ => Err(pipeline::foreign_stream()),
    }
}

//! The state machines: every legal move of a delivery, a hold, a run, a node, an attempt and a consumption, in tables.
//!
//! Invariant: evolve refuses a move that stands in no table (HD-01.T11, FV-RUN.4), and decide makes each by the commands
//! beside it alone. Read by evolve, and by the generator of docs/HANDOFF.md, which draws them.

use aiws::record::{AttemptStatus, ConsumptionState, DeliveryState, HoldState, Lifecycle};

use crate::command::CommandType;
use crate::run::NodeStatus;
use crate::transition::Transition;

/// One legal move.
#[derive(Clone, Copy, Debug)]
pub struct Move<S: 'static> {
    /// From; none where it begins to be.
    pub from: Option<S>,
    /// To.
    pub to: S,
    /// The commands that make it; none where no command of this build does.
    pub by: &'static [CommandType],
}

/// Whether a table has a move.
pub fn is_legal<S: PartialEq>(table: &[Move<S>], from: S, to: S) -> bool {
    let from = Some(from);
    table.iter().any(|one| one.from == from && one.to == to)
}

/// Whether a table lets a command make a move.
pub fn is_made_by<S: PartialEq>(
    table: &[Move<S>],
    from: Option<S>,
    to: S,
    kind: CommandType,
) -> bool {
    let mut moves = table.iter();
    moves.any(|one| one.from == from && one.to == to && one.by.contains(&kind))
}

/// Whether the tables let a command make a change; a change that moves none of these may be made by any.
pub fn are_of(kind: CommandType, change: &Transition) -> bool {
    let is = |from, to| is_made_by(NODE, from, to, kind);
    match change {
        Transition::NodeMoved { from, to, .. } => is(Some(*from), *to),
        Transition::IterationEnded { .. } => {
            is_made_by(ITERATION, Some(N::Active), N::Pending, kind)
        }
        Transition::GraphActivated {} => is(None, N::Pending),
        Transition::DeliveryOpened { .. } => is_made_by(DELIVERY, None, D::Pending, kind),
        Transition::DeliveryMoved { from, to, .. } => is_made_by(DELIVERY, Some(*from), *to, kind),
        Transition::HoldOpened { .. } => is_made_by(HOLD, None, H::Open, kind),
        Transition::HoldClosed { to, .. } => is_made_by(HOLD, Some(H::Open), *to, kind),
        Transition::LifecycleMoved { from, to, .. } => {
            is_made_by(LIFECYCLE, Some(*from), *to, kind)
        }
        Transition::OperationAdmitted { .. } | Transition::AttemptPrepared { .. } => {
            is_made_by(ATTEMPT, None, A::Prepared, kind)
        }
        Transition::AttemptMoved { from, to, .. } => is_made_by(ATTEMPT, Some(*from), *to, kind),
        Transition::ConsumptionRecorded { .. } => {
            is_made_by(CONSUMPTION, None, ConsumptionState::Valid, kind)
        }
        Transition::ConsumptionMoved { from, to, .. } => {
            is_made_by(CONSUMPTION, Some(*from), *to, kind)
        }
        _ => true,
    }
}

const fn born<S>(to: S, by: &'static [CommandType]) -> Move<S> {
    let from = None;
    Move { from, to, by }
}

const fn from<S>(from: S, to: S, by: &'static [CommandType]) -> Move<S> {
    let from = Some(from);
    Move { from, to, by }
}

use AttemptStatus as A;
use CommandType as C;
use DeliveryState as D;
use HoldState as H;
use Lifecycle as L;
use NodeStatus as N;

/// Deliveries (HD-01).
pub const DELIVERY: &[Move<DeliveryState>] = &[
    born(D::Pending, &[C::CommitBoundary, C::AdmitConsumer]),
    from(D::Pending, D::Claimed, &[C::ClaimDelivery]),
    from(D::Claimed, D::Claimed, &[C::ClaimDelivery]),
    from(D::Claimed, D::Acknowledged, &[C::AcknowledgeDelivery]),
    from(
        D::Claimed,
        D::Pending,
        &[C::ReleaseDelivery, C::RecoverOwnership],
    ),
    from(
        D::Pending,
        D::Excluded,
        &[C::CommitBoundary, C::AdmitConsumer],
    ),
    from(
        D::Claimed,
        D::Excluded,
        &[C::CommitBoundary, C::AdmitConsumer],
    ),
    from(D::Pending, D::Invalidated, &[C::InvalidateHandoff]),
    from(D::Claimed, D::Invalidated, &[C::InvalidateHandoff]),
    from(D::Acknowledged, D::Invalidated, &[C::InvalidateHandoff]),
];

/// Holds (HS-01.1).
pub const HOLD: &[Move<HoldState>] = &[
    born(
        H::Open,
        &[
            C::PlaceHold,
            C::CommitBoundary,
            C::InvalidateHandoff,
            C::RecoverOwnership,
        ],
    ),
    from(H::Open, H::Released, &[C::ResolveHold]),
    from(H::Open, H::Canceled, &[C::ResolveHold, C::FinishCancelRun]),
];

/// Runs (FV-RUN.4).
pub const LIFECYCLE: &[Move<Lifecycle>] = &[
    born(L::Running, &[C::StartRun]),
    from(L::Running, L::Paused, &[]),
    from(L::Paused, L::Running, &[]),
    from(L::Running, L::Canceling, &[C::CancelRun, C::ResolveHold]),
    from(L::Paused, L::Canceling, &[]),
    from(L::Canceling, L::Canceled, &[C::FinishCancelRun]),
    from(L::Running, L::Completed, &[C::CompleteRun]),
    from(L::Running, L::Failed, &[C::CommitBoundary]),
    from(L::Running, L::Canceled, &[C::CommitBoundary]),
    from(L::Running, L::Rejected, &[C::Approve, C::Accept]),
];

/// Nodes (FV-GRAPH.16). The end of an iteration, which makes an ACTIVE node PENDING in its next activation, is a change of
/// its own and stands in [`ITERATION`].
pub const NODE: &[Move<NodeStatus>] = &[
    born(N::Pending, &[C::ActivateGraph]),
    from(N::Pending, N::Active, &[C::AdmitConsumer]),
    from(N::Active, N::Completed, &[C::CommitBoundary]),
    from(N::Active, N::Blocked, &[C::CommitBoundary]),
    from(N::Active, N::Failed, &[C::CommitBoundary]),
    from(N::Active, N::Canceled, &[C::CommitBoundary]),
    from(N::Blocked, N::Active, &[C::ResolveHold, C::CommitBoundary]),
    from(
        N::Pending,
        N::Skipped,
        &[C::CommitBoundary, C::AdmitConsumer],
    ),
    from(N::Pending, N::Failed, &[C::CommitBoundary]),
];

/// The end of a LOOP's iteration (T-27).
pub const ITERATION: &[Move<NodeStatus>] = &[from(N::Active, N::Pending, &[C::CommitBoundary])];

/// Commands that end a run, and with it what was only prepared.
const ENDS: &[CommandType] = &[
    C::Settle,
    C::CommitBoundary,
    C::Approve,
    C::Accept,
    C::FinishCancelRun,
];

/// Attempts (FV-EFF.2).
pub const ATTEMPT: &[Move<AttemptStatus>] = &[
    born(A::Prepared, &[C::AdmitConsumer, C::Retry]),
    from(A::Prepared, A::Dispatched, &[C::Dispatch]),
    from(A::Prepared, A::ConfirmedNotApplied, ENDS),
    from(A::Dispatched, A::Unknown, &[C::Settle]),
    from(
        A::Dispatched,
        A::ConfirmedApplied,
        &[C::Settle, C::Reconcile],
    ),
    from(
        A::Dispatched,
        A::ConfirmedNotApplied,
        &[C::Settle, C::Reconcile],
    ),
    from(A::Unknown, A::ConfirmedApplied, &[C::Settle, C::Reconcile]),
    from(
        A::Unknown,
        A::ConfirmedNotApplied,
        &[C::Settle, C::Reconcile],
    ),
];

/// Consumptions (HD-05.3).
pub const CONSUMPTION: &[Move<ConsumptionState>] = &[
    born(ConsumptionState::Valid, &[C::AdmitConsumer]),
    from(
        ConsumptionState::Valid,
        ConsumptionState::Invalidated,
        &[C::InvalidateHandoff],
    ),
];

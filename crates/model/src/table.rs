//! The command table: what each command is, in one place.
//!
//! Invariant: whatever treats commands differently (who may send them, which stream, what they launch,
//! which gates they obey, which registers they touch) reads this table. Read by decide, by the engine and,
//! for what launches work, by the journal's writer (T-51).

use crate::command::CommandType;
use crate::register::RegisterKind;

/// The stream that a command belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// The mission's.
    Mission,
    /// The run's.
    Run,
}

/// Who may send a command at all, beside the authorizer's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Any authenticated actor that policy allows.
    Any,
    /// Only a human decides.
    Human,
    /// The operator, or the engine itself with recovery authority.
    Recovery,
}

/// What a command launches, and so which conditions its append must carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// Nothing.
    Nothing,
    /// Work in a run: head, fence and gates are required.
    InRun,
    /// A run: head and gates are required.
    Run,
}

/// Wire family of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A finite-v1 command, sent bare.
    Finite,
    /// A hand-off body, sent in an envelope.
    Handoff,
    /// The engine's own.
    Engine,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The command.
    pub kind: CommandType,
    /// Its wire family.
    pub family: Family,
    /// Its stream.
    pub stream: StreamKind,
    /// Who may send it.
    pub who: Who,
    /// What it launches.
    pub launch: Launch,
    /// Whether it obeys the gate stage (ERR-PREC.2).
    pub gated: bool,
    /// Whether a terminal run refuses it with TERMINAL_EXECUTION.
    pub ends_with_run: bool,
    /// Whether it carries the owner's epoch (HC-ENV.3).
    pub owned: bool,
    /// Registers it reads.
    pub reads: &'static [RegisterKind],
    /// Registers it may write.
    pub writes: &'static [RegisterKind],
}

/// The row of a command.
pub fn row(kind: CommandType) -> &'static Row {
    // The table has a row for every type, in the order of the types: a test holds it to that.
    &TABLE[kind as usize]
}

/// What an event of this type launches; the writer refuses a launching event without its conditions.
pub fn launches(kind: CommandType) -> Launch {
    row(kind).launch
}

use CommandType as C;
use Family::{Engine, Finite, Handoff};
use RegisterKind as R;
use StreamKind::{Mission, Run};
use Who::{Any, Human, Recovery};

const NONE: &[RegisterKind] = &[];

#[rustfmt::skip]
/// All rows, in the order of `CommandType::ALL`.
pub const TABLE: &[Row] = &[
    //                                                                                                                   gated  ends   owned
    Row { kind: C::OpenMission,         family: Engine,  stream: Mission, who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: false, owned: false, reads: NONE,          writes: &[R::Contract, R::Grant] },
    Row { kind: C::StartRun,            family: Finite,  stream: Mission, who: Any,      launch: Launch::Run,     gated: true,  ends_with_run: false, owned: false, reads: NONE,          writes: &[R::RunAdmission] },
    Row { kind: C::GrantCommand,        family: Finite,  stream: Mission, who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: false, owned: false, reads: NONE,          writes: &[R::Grant] },
    Row { kind: C::ActivateGraph,       family: Finite,  stream: Run,     who: Any,      launch: Launch::InRun,   gated: true,  ends_with_run: true,  owned: true,  reads: NONE,          writes: NONE },
    Row { kind: C::Approve,             family: Finite,  stream: Run,     who: Human,    launch: Launch::Nothing, gated: false, ends_with_run: true,  owned: false, reads: NONE,          writes: &[R::RunOutcome] },
    Row { kind: C::RevokeApproval,      family: Finite,  stream: Run,     who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: true,  owned: false, reads: NONE,          writes: NONE },
    Row { kind: C::Dispatch,            family: Finite,  stream: Run,     who: Any,      launch: Launch::InRun,   gated: true,  ends_with_run: true,  owned: true,  reads: &[R::Grant],   writes: NONE },
    Row { kind: C::Settle,              family: Finite,  stream: Run,     who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: false, owned: true,  reads: NONE,          writes: NONE },
    Row { kind: C::Reconcile,           family: Finite,  stream: Run,     who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: false, owned: true,  reads: NONE,          writes: NONE },
    Row { kind: C::Retry,               family: Finite,  stream: Run,     who: Any,      launch: Launch::InRun,   gated: true,  ends_with_run: true,  owned: true,  reads: &[R::Grant],   writes: NONE },
    Row { kind: C::Verify,              family: Finite,  stream: Run,     who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: true,  owned: false, reads: NONE,          writes: NONE },
    Row { kind: C::Accept,              family: Finite,  stream: Run,     who: Human,    launch: Launch::Nothing, gated: false, ends_with_run: true,  owned: false, reads: NONE,          writes: &[R::RunOutcome] },
    Row { kind: C::CompleteRun,         family: Finite,  stream: Run,     who: Any,      launch: Launch::InRun,   gated: true,  ends_with_run: true,  owned: true,  reads: NONE,          writes: &[R::RunOutcome] },
    Row { kind: C::CancelRun,           family: Finite,  stream: Run,     who: Human,    launch: Launch::Nothing, gated: false, ends_with_run: true,  owned: false, reads: NONE,          writes: NONE },
    Row { kind: C::FinishCancelRun,     family: Finite,  stream: Run,     who: Human,    launch: Launch::Nothing, gated: false, ends_with_run: true,  owned: false, reads: NONE,          writes: &[R::RunOutcome] },
    Row { kind: C::CommitBoundary,      family: Handoff, stream: Run,     who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: true,  owned: true,  reads: NONE,          writes: &[R::RunOutcome] },
    Row { kind: C::ClaimDelivery,       family: Handoff, stream: Run,     who: Any,      launch: Launch::InRun,   gated: true,  ends_with_run: true,  owned: true,  reads: NONE,          writes: NONE },
    Row { kind: C::AcknowledgeDelivery, family: Handoff, stream: Run,     who: Any,      launch: Launch::InRun,   gated: true,  ends_with_run: true,  owned: true,  reads: NONE,          writes: NONE },
    Row { kind: C::ReleaseDelivery,     family: Handoff, stream: Run,     who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: false, owned: true,  reads: NONE,          writes: NONE },
    Row { kind: C::AdmitConsumer,       family: Handoff, stream: Run,     who: Any,      launch: Launch::InRun,   gated: true,  ends_with_run: true,  owned: true,  reads: &[R::Grant],   writes: NONE },
    Row { kind: C::PlaceHold,           family: Handoff, stream: Run,     who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: true,  owned: true,  reads: NONE,          writes: NONE },
    Row { kind: C::ResolveHold,         family: Handoff, stream: Run,     who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: false, owned: true,  reads: NONE,          writes: NONE },
    Row { kind: C::InvalidateHandoff,   family: Handoff, stream: Run,     who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: false, owned: true,  reads: NONE,          writes: NONE },
    Row { kind: C::RecoverOwnership,    family: Handoff, stream: Run,     who: Recovery, launch: Launch::Nothing, gated: false, ends_with_run: false, owned: true,  reads: NONE,          writes: NONE },
    Row { kind: C::RecordSummary,       family: Handoff, stream: Run,     who: Any,      launch: Launch::Nothing, gated: false, ends_with_run: false, owned: true,  reads: NONE,          writes: NONE },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_one_row_for_every_command_in_order() {
        assert_eq!(TABLE.len(), CommandType::ALL.len());
        for kind in CommandType::ALL {
            assert_eq!(row(*kind).kind, *kind);
        }
    }
}

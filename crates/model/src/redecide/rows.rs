//! Which facts every command is decided on, and where each is known from when its event is read again.
//!
//! Invariant: a fact that a row does not name does not change the decision of an accepted command: the tests erase it
//! and decide once more. Read by `redecide`, by deep verification and by the page that shows it.

use crate::command::CommandType;

/// A fact, or a group of facts that go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// Whether policy allows the command.
    Allowed,
    /// The actor, its kind, and the time of decision and authorization.
    Actor,
    /// The policy that was evaluated.
    Policy,
    /// The class of the decision.
    DecisionClass,
    /// The decision's reference.
    DecisionRef,
    /// Material that was read back, or could not be.
    Materials,
    /// Effect admissions that the host prepared.
    Admissions,
    /// Registers as read.
    Registers,
    /// The account as read.
    Account,
    /// Closed gates of the mission and above it.
    OuterGates,
    /// Evidence that the host confirms.
    ClearEvidence,
    /// Whether the host's rule allows a restart.
    RestartAllowed,
    /// Fingerprint of the token that a claim hands out.
    ClaimFingerprint,
    /// Whether the host grants authority to take over.
    RecoveryAuthority,
}

/// Where a fact is known from when an event is decided again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The event records it.
    Event,
    /// Not recorded, and one value only can be accepted.
    Implied,
    /// Not recorded; the log before the event says it.
    Log,
}

impl Fact {
    /// All facts, in the order of the page.
    pub const ALL: &'static [Self] = &[
        Self::Allowed,
        Self::Actor,
        Self::Policy,
        Self::DecisionClass,
        Self::DecisionRef,
        Self::Materials,
        Self::Admissions,
        Self::Registers,
        Self::Account,
        Self::OuterGates,
        Self::ClearEvidence,
        Self::RestartAllowed,
        Self::ClaimFingerprint,
        Self::RecoveryAuthority,
    ];

    /// Where it is known from.
    pub const fn source(self) -> Source {
        match self {
            Self::Allowed => Source::Implied,
            Self::OuterGates => Source::Log,
            _ => Source::Event,
        }
    }

    /// What it is called on the page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "policy's answer",
            Self::Actor => "actor and times",
            Self::Policy => "policy",
            Self::DecisionClass => "class",
            Self::DecisionRef => "decision reference",
            Self::Materials => "material",
            Self::Admissions => "admissions",
            Self::Registers => "registers",
            Self::Account => "account",
            Self::OuterGates => "mission's gates",
            Self::ClearEvidence => "evidence",
            Self::RestartAllowed => "restart rule",
            Self::ClaimFingerprint => "token's fingerprint",
            Self::RecoveryAuthority => "recovery authority",
        }
    }
}

/// The facts of a command.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The command.
    pub kind: CommandType,
    /// What it looks at beside policy's answer, the actor and the times, which every command looks at.
    pub own: &'static [Fact],
}

impl Row {
    /// All facts that the command looks at.
    pub fn reads(&self) -> impl Iterator<Item = Fact> + '_ {
        [Fact::Allowed, Fact::Actor]
            .into_iter()
            .chain(self.own.iter().copied())
    }
}

/// The row of a command.
pub fn row(kind: CommandType) -> &'static Row {
    // The table has a row for every type, in the order of the types: a test holds it to that.
    &ROWS[kind as usize]
}

use CommandType as C;
use Fact as F;

#[rustfmt::skip]
/// All rows, in the order of `CommandType::ALL`.
pub const ROWS: &[Row] = &[
    Row { kind: C::OpenMission,         own: &[] },
    Row { kind: C::StartRun,            own: &[F::OuterGates] },
    Row { kind: C::GrantCommand,        own: &[] },
    Row { kind: C::ActivateGraph,       own: &[F::OuterGates] },
    Row { kind: C::Approve,             own: &[F::Policy, F::DecisionRef, F::Account] },
    Row { kind: C::RevokeApproval,      own: &[] },
    Row { kind: C::Dispatch,            own: &[F::Policy, F::Materials, F::Registers, F::Account, F::OuterGates] },
    Row { kind: C::Settle,              own: &[F::DecisionClass, F::DecisionRef, F::Account, F::ClearEvidence] },
    Row { kind: C::Reconcile,           own: &[F::DecisionClass, F::DecisionRef, F::Account, F::ClearEvidence] },
    Row { kind: C::Retry,               own: &[F::Policy, F::Registers, F::Account, F::OuterGates] },
    Row { kind: C::Verify,              own: &[] },
    Row { kind: C::Accept,              own: &[F::DecisionRef, F::Account] },
    Row { kind: C::CompleteRun,         own: &[F::Account, F::OuterGates] },
    Row { kind: C::CancelRun,           own: &[F::DecisionRef] },
    Row { kind: C::FinishCancelRun,     own: &[F::Policy, F::DecisionRef, F::Account] },
    Row { kind: C::CommitBoundary,      own: &[F::Policy, F::Materials, F::Account, F::OuterGates] },
    Row { kind: C::ClaimDelivery,       own: &[F::OuterGates, F::ClaimFingerprint] },
    Row { kind: C::AcknowledgeDelivery, own: &[F::Materials, F::OuterGates] },
    Row { kind: C::ReleaseDelivery,     own: &[] },
    Row { kind: C::AdmitConsumer,       own: &[F::Policy, F::Materials, F::Admissions, F::Registers, F::Account, F::OuterGates] },
    Row { kind: C::PlaceHold,           own: &[] },
    Row { kind: C::ResolveHold,         own: &[F::Policy, F::DecisionRef, F::Account, F::ClearEvidence, F::RestartAllowed] },
    Row { kind: C::InvalidateHandoff,   own: &[] },
    Row { kind: C::RecoverOwnership,    own: &[F::Policy, F::DecisionRef, F::ClearEvidence, F::RestartAllowed, F::RecoveryAuthority] },
    Row { kind: C::RecordSummary,       own: &[] },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::RegisterKind;
    use crate::table;

    /// Proves T-11: no command looks at a fact that cannot be known again, and the table of facts agrees with the
    /// table of commands on registers and gates.
    #[test]
    fn t_11_every_command_has_its_row_of_facts() {
        assert_eq!(ROWS.len(), CommandType::ALL.len());
        for kind in CommandType::ALL {
            let (own, command) = (row(*kind), table::row(*kind));
            assert_eq!(own.kind, *kind);
            let has = |fact| own.own.contains(&fact);
            let grants = command.reads.contains(&RegisterKind::Grant);
            assert_eq!(has(Fact::Registers), grants, "{}", kind.name());
            assert!(!command.gated || has(Fact::OuterGates), "{}", kind.name());
            let human = command.who == table::Who::Human;
            assert!(!human || has(Fact::DecisionRef), "{}", kind.name());
        }
        assert!(Fact::ALL.is_sorted());
    }
}

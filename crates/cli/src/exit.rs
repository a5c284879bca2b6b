//! Exit codes: the one table, and how errors and run states map to it.
//! Invariant: 0 is never returned for a run that is not accepted; scripts may branch on these numbers.
//! Called by the verbs and by `main`.

use std::process::ExitCode;

use aiws::error::{Code, Stage};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Accepted, or the verb did what it was asked.
    Done = 0,
    /// An internal error: the store, the system, a defect.
    Internal = 1,
    /// The call was wrong; nothing was changed.
    Usage = 2,
    /// A person has to decide, or a hold stands.
    Waits = 3,
    /// The run failed, was rejected or was canceled.
    Failed = 4,
    /// Nobody knows what an agent run did.
    Uncertain = 5,
    /// The store or an export is not what was written.
    Unverified = 6,
}

impl Exit {
    /// The exit of this number.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        let all = [
            Self::Done,
            Self::Internal,
            Self::Usage,
            Self::Waits,
            Self::Failed,
            Self::Uncertain,
            Self::Unverified,
        ];
        all.into_iter().find(|exit| *exit as i64 == number)
    }

    /// The exit of a refused or failed command.
    #[must_use]
    pub fn of(code: Code) -> Self {
        match code {
            Code::StoreCorrupt
            | Code::TailLost
            | Code::ChainBroken
            | Code::CheckpointAhead
            | Code::CheckpointForked
            | Code::CheckpointUntrusted => Self::Unverified,
            Code::HumanRequired
            | Code::TerminalNeeded
            | Code::BranchConflict
            | Code::HoldActive => Self::Waits,
            Code::ApprovalRequired | Code::ApprovalStale => Self::Waits,
            Code::StoreNotFound
            | Code::NotAStore
            | Code::StoreTooNew
            | Code::StoreLocked
            | Code::StorePermissions => Self::Usage,
            Code::SchemaInvalid => Self::Usage,
            // What was wrong with the call is said before anything is written; this is the disk, the pipe, the system.
            Code::ExportFailed => Self::Internal,
            _ if code.stage() == Stage::Usage => Self::Usage,
            _ => Self::Internal,
        }
    }

    /// The exit of a failure after a run has begun, where 2 would say that nothing was changed: a repository that is
    /// gone or in the way waits for a person, everything else is this program's or the system's.
    #[must_use]
    pub fn after_start(code: Code) -> Self {
        match (Self::of(code), code) {
            (
                Self::Usage,
                Code::RepoNotFound | Code::RepoUnusable | Code::RepoDirty | Code::Usage,
            ) => Self::Waits,
            (Self::Usage, _) => Self::Internal,
            (exit, _) => exit,
        }
    }

    /// The worse of two, by what a person has to look at first.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let weight = |exit: Self| match exit {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Waits => 2,
            Self::Uncertain => 3,
            Self::Usage => 4,
            Self::Unverified => 5,
            Self::Internal => 6,
        };
        if weight(other) > weight(self) {
            other
        } else {
            self
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_map_to_exits() {
        let cases = [
            (Code::RepoDirty, Exit::Usage),
            (Code::StoreLocked, Exit::Usage),
            (Code::StoreFull, Exit::Internal),
            (Code::ExportFailed, Exit::Internal),
            (Code::StoreReadOnly, Exit::Internal),
            (Code::ChainBroken, Exit::Unverified),
            (Code::CheckpointAhead, Exit::Unverified),
            (Code::CheckpointForked, Exit::Unverified),
            (Code::CheckpointUntrusted, Exit::Unverified),
            (Code::CheckpointInvalid, Exit::Usage),
            (Code::KeyInvalid, Exit::Usage),
            (Code::HumanRequired, Exit::Waits),
            (Code::InternalStore, Exit::Internal),
        ];
        for (code, exit) in cases {
            assert_eq!(Exit::of(code), exit, "{code}");
        }
    }

    #[test]
    fn nothing_that_began_ends_as_wrong_usage() {
        for code in Code::all() {
            assert_ne!(Exit::after_start(*code), Exit::Usage, "{code}");
        }
        assert_eq!(Exit::after_start(Code::RepoNotFound), Exit::Waits);
        assert_eq!(Exit::after_start(Code::ChainBroken), Exit::Unverified);
    }

    #[test]
    fn the_worse_exit_of_several_runs_counts() {
        assert_eq!(Exit::Done.worse(Exit::Waits), Exit::Waits);
        assert_eq!(Exit::Uncertain.worse(Exit::Failed), Exit::Uncertain);
    }
}

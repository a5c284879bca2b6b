//! Why a caller was not taken for a person.
//! Invariant: each refusal is `HUMAN_REQUIRED`, names its reason for programs, and says what a person does instead.
//! Raised by every file of this folder.

use aiws::error::{Code, Error};

use crate::render::program;

/// The closed set of reasons; the name is the detail `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It descends from a shim.
    Shim,
    /// It descends from the engine.
    Engine,
    /// It or a parent bears the mark of an attempt.
    Mark,
    /// The process is gone or a zombie.
    Gone,
    /// Something on the way changed while it was looked at.
    Changed,
    /// The system did not let it be read.
    Unreadable,
    /// It lives in another process namespace.
    OtherNamespace,
    /// It runs under another login.
    OtherUser,
    /// Another process traces it and can make it say anything.
    Traced,
    /// The line of parents is longer than the bound.
    TooDeep,
    /// A shim whose lock is held is not to be seen from here.
    ShimUnseen,
    /// An attempt has neither lock nor record, and nobody typed at a terminal.
    Lost,
}

impl Reason {
    pub(super) fn name(self) -> &'static str {
        match self {
            Reason::Shim => "DESCENDS_FROM_SHIM",
            Reason::Engine => "DESCENDS_FROM_ENGINE",
            Reason::Mark => "BEARS_ATTEMPT",
            Reason::Gone => "GONE",
            Reason::Changed => "CHANGED",
            Reason::Unreadable => "UNREADABLE",
            Reason::OtherNamespace => "OTHER_NAMESPACE",
            Reason::OtherUser => "OTHER_USER",
            Reason::Traced => "TRACED",
            Reason::TooDeep => "TOO_DEEP",
            Reason::ShimUnseen => "SHIM_UNSEEN",
            Reason::Lost => "ATTEMPT_LOST",
        }
    }

    fn what_to_do(self) -> String {
        let praxis = program();
        match self {
            Reason::Shim | Reason::Engine | Reason::Mark => {
                "a person decides from a terminal or shell of their own that the work did not start".to_owned()
            }
            Reason::Gone => "call again, and keep the calling process alive until it has its answer".to_owned(),
            Reason::Changed => "call again; nothing was decided".to_owned(),
            Reason::Unreadable => {
                "decide where /proc shows every process (no hidepid), under the login that owns the store".to_owned()
            }
            Reason::OtherNamespace => {
                "decide from the process namespace in which the engine runs, with its own /proc".to_owned()
            }
            Reason::OtherUser => "decide under the login that owns the store, without sudo or su".to_owned(),
            Reason::Traced => "decide from a process that no debugger or tracer is attached to".to_owned(),
            Reason::TooDeep => "decide from an ordinary shell".to_owned(),
            Reason::ShimUnseen => format!(
                "decide from the process namespace in which the work runs, or wait until it has ended ({praxis} unknown)"
            ),
            Reason::Lost => format!(
                "decide at a terminal, where the question is answered by typing, or first say what became of the attempt ({praxis} unknown, {praxis} reconcile)"
            ),
        }
    }
}

/// A refusal: what was found instead of a person, and what to do.
pub(super) fn refused(reason: Reason, found: impl AsRef<str>) -> Error {
    let message = format!(
        "expected the decision of a person, found {}; {}",
        found.as_ref(),
        reason.what_to_do()
    );
    Error::new(Code::HumanRequired, message).with("reason", reason.name())
}

/// A refusal for what the system did not tell; a process that went away meanwhile is said to be gone.
pub(super) fn unread(what: &str, error: &std::io::Error) -> Error {
    let gone = [rustix::io::Errno::SRCH, rustix::io::Errno::NOENT]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    match gone {
        true => refused(Reason::Gone, format!("that {what} is gone")),
        false => refused(Reason::Unreadable, format!("{what} unreadable ({error})")),
    }
}

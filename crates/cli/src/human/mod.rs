//! Human authority: proof that the process behind a decision does not descend from the work.
//! Invariant: whatever cannot be read, pinned or followed to the top refuses; nothing that a caller says of itself counts.
//! Called before every decision that needs a person, by the process that holds the store.
//!
//! The caller is the peer of the store's socket, or this very process. It is pinned by a pidfd and its start time, and
//! its parents are followed to the top. It is refused when it or any of them is a shim, the engine (unless the engine
//! asks at its own terminal), or bears the mark that agents and checks get in their environment. Every shim whose lock
//! is held must be seen alive after the walk: while a shim lives, what it started cannot leave the line below it,
//! because the shim is a child subreaper. Where an attempt has neither lock nor exit record its processes may be
//! anywhere, and only a decision typed at a terminal counts.
//!
//! What this is not: a sandbox, or a defence against an agent that uses the person's login to its full extent. Such an
//! agent can have an unrelated daemon (cron, a tmux server, `ssh localhost`, a container engine) start the command,
//! can trace another process of the same user, can change what the person will run later, can kill its own shim and
//! make itself a terminal, and can write to the store's files with a program of its own. docs/SECURITY.md has the
//! list. What was proven is recorded with the decision, so that such a thing can be seen afterwards.

mod pin;
mod process;
mod proof;
mod refusal;

use std::path::PathBuf;

pub use pin::Caller;
pub use proof::{LOOKS, Proof, is_outdated, prove};

/// The variable that an agent and a check find in their environment.
pub const MARK: &str = "PRAXIS_ATTEMPT_ID";

/// The first argument of a shim.
pub const SHIM: &str = praxis_engine::shim::VERB;

/// Most processes between a caller and the top. A person's shell is some ten below it; a longer line is refused.
pub const MAX_DEPTH: usize = 256;

/// A process that no other can be taken for: numbers are used again, but never with the same start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// Its start time in clock ticks since boot, field 22 of `/proc/PID/stat`.
    pub start: u64,
}

/// How a decision was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Answered at a terminal after the material was shown there.
    Typed,
    /// A verb, such as an approval that names the fingerprint.
    Verb,
    /// Given before there was anything to look at.
    InAdvance,
}

impl Way {
    /// Its name in the evidence.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Typed => "TYPED",
            Way::Verb => "VERB",
            Way::InAdvance => "IN_ADVANCE",
        }
    }
}

/// What a caller must not descend from.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// The store.
    pub store: PathBuf,
    /// The live engine of the store, if there is one.
    pub engine: Option<ProcessId>,
    /// The shims whose lock is held.
    pub shims: Vec<ProcessId>,
    /// Some attempt has neither a lock nor an exit record.
    pub lost: bool,
}

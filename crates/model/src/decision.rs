//! Decisions and rejections: the two answers of decide.
//!
//! Invariant: a rejection changes nothing; a decision names every condition that must still hold at the
//! durable boundary. Made by decide, sealed by the journal format, turned into an append by the engine.

use aiws::error::Error;
use aiws::json::Value;

use crate::command::Body;
use crate::event::Outcome;
use crate::register::RegisterRead;

/// What follows from an accepted command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The command as it is recorded: records completed, tokens replaced by fingerprints.
    pub command: Body,
    /// What changes.
    pub outcome: Outcome,
    /// The response.
    pub result: Value,
    /// Registers whose revision must be unchanged at the boundary.
    pub same: Vec<RegisterRead>,
    /// UTC milliseconds that the writer's clock must not have reached (T-81).
    pub before_ms: Vec<u64>,
}

/// Why a command was refused: a code with its stage, a sentence, and details without secrets.
pub type Rejection = Error;

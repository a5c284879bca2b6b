//! What a person chose when a job was made, and where it comes from.
//! Invariant: nothing here is checked yet; [`Job::new`](super::Job::new) does that.
//! Filled in by the verb `code`.

use aiws::decimal::Dec;
use aiws::id::{ActorId, RunId};
use serde::{Deserialize, Serialize};

/// An earlier run, and what the agent is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct From {
    /// The run.
    pub run_id: RunId,
    /// How it ended and what it had planned.
    pub feedback: String,
}

/// What the person chose; the rest of a [`Job`](super::Job) is derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// The task.
    pub task: String,
    /// The agent's command line.
    pub agent: String,
    /// The check's command line.
    pub check: String,
    /// Names that `--env` lets through.
    pub environment: Vec<String>,
    /// Names among them whose values are masked.
    pub secrets: Vec<String>,
    /// The run that is begun again.
    pub from: Option<From>,
    /// The correction bound.
    pub max_corrections: u32,
    /// The budget in units; the default is one unit for each run of the agent that the graph has, one to spare.
    pub budget: Option<Dec>,
    /// Wall-clock bound in seconds.
    pub timeout_seconds: u64,
}

/// An actor, a time and a short random name: what makes a job this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Who typed the command.
    pub started_by: ActorId,
    /// When, UTC milliseconds.
    pub started_at_ms: u64,
    /// The random part of run and mission ids.
    pub name: String,
}

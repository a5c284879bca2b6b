//! What can be asked of an open store: one closed set, whether this process has the store open or another one.
//! Invariant: a request is plain data with no say of who asks; that is proven beside it.
//! Made by the verbs and by whoever speaks on the socket, answered by `office`.

use std::collections::BTreeMap;
use std::fmt;

use aiws::decimal::U64;
use aiws::error::{Code, Error};
use aiws::id::{MissionId, RunId};
use aiws::json::Value;
use serde::{Deserialize, Serialize};

use crate::coding::contract::Job;

mod work;

pub use work::{Boundary, Effect, Reported, Token, Work, WorkAsk};

/// A request. Names of runs, attempts and holds may be unambiguous beginnings.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "verb",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Request {
    /// The runs, newest first.
    List {},
    /// What waits for a person.
    Inbox {},
    /// The open holds.
    Holds {},
    /// The page of a run; of the latest one where none is named.
    Show {
        /// The run.
        #[serde(default)]
        run: Option<String>,
    },
    /// The events, of one run or of all.
    Log {
        /// The run.
        #[serde(default)]
        run: Option<String>,
    },
    /// Attempts whose outcome nobody knows.
    Unknown {
        /// The run.
        #[serde(default)]
        run: Option<String>,
    },
    /// The patch that would be accepted, or was.
    Diff {
        /// The run.
        #[serde(default)]
        run: Option<String>,
    },
    /// The final report of a run.
    Report {
        /// The run.
        #[serde(default)]
        run: Option<String>,
    },
    /// The live runs, admitted or only begun, with the names of the variables that they let through.
    Live {
        /// The run; all of them where none is named.
        #[serde(default)]
        run: Option<String>,
    },
    /// What a run has that waits for a decision, as a person has to see it.
    Pending {
        /// The run.
        run: String,
    },
    /// Where the transcript of a run's current or last agent run or check is.
    Transcript {
        /// The run.
        #[serde(default)]
        run: Option<String>,
    },
    /// Checks every event, chain and projection.
    Verify {
        /// Whether every event is decided again, too.
        #[serde(default)]
        deep: bool,
        /// Signed checkpoints that the log is compared with.
        #[serde(default)]
        checkpoints: Vec<String>,
        /// The key that each of them has to be signed with.
        #[serde(default)]
        verifier_key: Option<String>,
    },
    /// The head of the log, unsigned: whoever asked has the key.
    Checkpoint {},
    /// Writes all events, or those of one mission with proofs, into a new file.
    Export {
        /// Its absolute path.
        file: String,
        /// The mission, or a run of it.
        #[serde(default)]
        mission: Option<String>,
        /// The signed checkpoint that the proofs lead to.
        #[serde(default)]
        checkpoint: Option<String>,
    },
    /// Looks at the machine and the store, and says what to do about what is wrong.
    Doctor {},
    /// Copies the store into a new directory.
    Backup {
        /// Its absolute path.
        directory: String,
    },
    /// Removes what no run needs any more.
    Clean {
        /// Only says what would be removed.
        #[serde(default)]
        dry_run: bool,
        /// Only what is older than this, in days.
        #[serde(default)]
        older_than_days: Option<u32>,
    },
    /// A person's yes or no to exactly what is named.
    Decide(Decide),
    /// Looks again at what an open hold waits for, and lifts it where that is clear.
    Recheck {
        /// The hold.
        hold: String,
        /// Why, in the person's words.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Ends a run; an agent run under way is stopped.
    Cancel {
        /// The run.
        run: String,
        /// Why.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Lets a run start nothing new.
    Pause {
        /// The run.
        run: String,
        /// Why.
        #[serde(default)]
        reason: Option<String>,
        /// The node whose branch is held, instead of the whole run.
        #[serde(default)]
        branch: Option<String>,
        /// Only says what the branch has.
        #[serde(default)]
        dry_run: bool,
    },
    /// Lets a paused run go on.
    Continue {
        /// The run.
        run: String,
        /// Why.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Settles an uncertain attempt.
    Reconcile {
        /// The attempt.
        attempt: String,
        /// Whether it did its work.
        applied: bool,
        /// How it was given.
        way: Given,
        /// The finding, in hex.
        evidence_hex: String,
        /// In whose name, where it is not the caller's login.
        #[serde(default)]
        name: Option<String>,
    },
    /// Starts a coding run and drives it.
    Start {
        /// The job, as it is stored.
        job: Job,
        /// Values of the variables that agent and check see.
        environment: BTreeMap<String, String>,
    },
    /// Drives a run again that was stopped.
    Resume {
        /// The run; all live ones where none is named.
        #[serde(default)]
        run: Option<String>,
        /// Values of the variables that agent and check see.
        #[serde(default)]
        environment: BTreeMap<String, String>,
    },
    /// Says how runs stand, now and at every change, until each rests.
    Watch {
        /// The runs.
        runs: Vec<String>,
        /// Only what changed, in lines, instead of the whole.
        #[serde(default)]
        lines: bool,
    },
    /// Notices for a consumer, from where it acknowledged last.
    Outbox {
        /// The consumer.
        consumer: String,
        /// Acknowledges everything up to this sequence first.
        #[serde(default)]
        acknowledge: Option<U64>,
        /// Sequences after that which the consumer was told of already.
        #[serde(default)]
        in_hand: Vec<U64>,
        /// Waits for one where there is none.
        #[serde(default)]
        wait: bool,
    },
    /// A request of the protocol, by a person: strict, or an intent.
    Apply {
        /// The request with its command or intent.
        command: Value,
        /// In whose name, where it is not the caller's login.
        #[serde(default)]
        name: Option<String>,
    },
    /// How a run of a mission for workers stands.
    Run {
        /// The mission.
        mission_id: MissionId,
        /// The run.
        run_id: RunId,
    },
    /// Waits for a delivery that a worker can claim, or a node that can be admitted.
    NextDelivery {
        /// The worker's own name, `agent:NAME`.
        worker: String,
        /// The mission.
        mission_id: MissionId,
        /// The run.
        run_id: RunId,
    },
    /// A worker's intent.
    Work(Work),
}

/// Its verb alone: requests carry values of variables, tokens and texts.
impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        named(out, "Request", self.to_value(), "verb")
    }
}

fn named(
    out: &mut fmt::Formatter<'_>,
    kind: &str,
    value: Result<Value, Error>,
    tag: &str,
) -> fmt::Result {
    let value = value.unwrap_or_default();
    let name = value.get(tag).and_then(Value::as_str).unwrap_or("unknown");
    write!(out, "{kind}({name})")
}

/// A decision on what waits in a run.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decide {
    /// The run.
    pub run: String,
    /// What the decision is about: the fingerprint of the action, or the digest of the patch.
    pub digest: String,
    /// The answer.
    pub yes: bool,
    /// How it was given.
    pub way: Given,
    /// In whose name, where it is not the caller's login.
    #[serde(default)]
    pub name: Option<String>,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

aiws::veiled! { Decide { run digest yes way name } reason; }

/// How a decision was given, as the caller says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Given {
    /// Typed at a terminal that had shown what it is about.
    AtTerminal,
    /// By a command that names what it is about.
    ByVerb,
    /// Before there was anything to see.
    InAdvance,
}

impl Request {
    /// A request from its JSON.
    ///
    /// # Errors
    ///
    /// `USAGE` where it is none; the message says what was expected.
    pub fn from_value(value: &Value) -> Result<Self, Error> {
        aiws::canonical::from_value(value).map_err(|error| {
            let message = format!("expected a request of praxis-socket/1: {}", error.message);
            Error::new(Code::Usage, message)
        })
    }

    /// The request as JSON.
    ///
    /// # Errors
    ///
    /// The codec's own; none in practice.
    pub fn to_value(&self) -> Result<Value, Error> {
        aiws::canonical::to_value(self)
    }

    /// Whether it only looks, so that it is answered from the journal alone.
    #[must_use]
    pub fn only_looks(&self) -> bool {
        matches!(
            self,
            Self::List {}
                | Self::Inbox {}
                | Self::Holds {}
                | Self::Show { .. }
                | Self::Log { .. }
                | Self::Unknown { .. }
                | Self::Diff { .. }
                | Self::Report { .. }
                | Self::Live { .. }
                | Self::Run { .. }
                | Self::Pending { .. }
                | Self::Transcript { .. }
                | Self::Verify { .. }
                | Self::Checkpoint {}
                | Self::Export { .. }
                | Self::Doctor {}
                | Self::Backup { .. }
                | Self::Clean { dry_run: true, .. }
                | Self::Pause { dry_run: true, .. }
        )
    }
}

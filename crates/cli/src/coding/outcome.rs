//! What an agent run or a check left behind, as evidence that can be read again after any crash.
//! Invariant: a node is concluded from this record alone, so that a resumed run and an undisturbed one conclude the same.
//! Written by `adapter`, read by `program` and by the pages that show a run.

use aiws::canonical;
use aiws::decimal::U64;
use aiws::digest::Digest;
use aiws::error::Error;
use aiws::json::Value;
use aiws::record::{Artifact, Manifest};
use praxis_engine::process::EXIT_NOT_APPLIED;
use serde::{Deserialize, Serialize};

/// The artifact that is the plan.
pub const PLAN_FILE: &str = "plan.md";
/// The artifact that is the change: a binary git patch from the base commit.
pub const PATCH_FILE: &str = "change.patch";
/// The artifact that is an agent's output.
pub const TRANSCRIPT_FILE: &str = "transcript.txt";
/// The artifact that is a check's output, headed by what came of it; a correction gets it as feedback.
pub const CHECK_FILE: &str = "check.txt";

/// The format name of a stored capture.
const CAPTURE: &str = "praxis-capture";

/// The evidence of one agent run or check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    /// How the process ended.
    pub ended: Ended,
    /// Why its work does not count, in a sentence; none when it does.
    pub failure: Option<String>,
    /// What it left, by file name.
    pub artifacts: Vec<Artifact>,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "how",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Ended {
    /// With an exit code.
    Exit {
        /// The code.
        code: i32,
    },
    /// By a signal.
    Signal {
        /// The signal's number.
        number: i32,
    },
    /// By the wall-clock bound.
    TimedOut,
    /// Because somebody had it stopped.
    Stopped,
    /// It could not be started.
    NotStarted,
    /// Nobody saw; a person found out what it did.
    Reconciled,
}

impl Ended {
    /// A sentence without a full stop.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Exit { code } => format!("ended with exit {code}"),
            Self::Signal { number } => format!("was ended by signal {number}"),
            Self::TimedOut => "ran into the time bound and was stopped".to_owned(),
            Self::Stopped => "was stopped by a person".to_owned(),
            Self::NotStarted => "could not be started".to_owned(),
            Self::Reconciled => "was settled by a person".to_owned(),
        }
    }

    /// Whether it said that it did nothing.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Exit {
                code: EXIT_NOT_APPLIED
            }
        )
    }

    /// Whether it ended with exit 0, or a person says that it did its work.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Exit { code: 0 } | Self::Reconciled)
    }
}

impl Outcome {
    /// The evidence value.
    ///
    /// # Errors
    ///
    /// None in practice; the codec's own.
    pub fn to_value(&self) -> Result<Value, Error> {
        canonical::to_value(self)
    }

    /// The outcome in an evidence value; none for anything else.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        canonical::from_value(value).ok()
    }

    /// The artifact of this name.
    #[must_use]
    pub fn artifact(&self, name: &str) -> Option<&Artifact> {
        named(&self.artifacts, name)
    }

    /// The result value of a node that is concluded from this outcome.
    #[must_use]
    pub fn result(&self) -> Value {
        let mut result =
            aiws::object! { "passed": self.failure.is_none(), "ended": self.ended.sentence() };
        if let (Value::Object(members), Some(failure)) = (&mut result, &self.failure) {
            members.insert("failure".to_owned(), failure.as_str().into());
        }
        result
    }
}

/// The artifact of this name in a list.
#[must_use]
pub fn named<'a>(artifacts: &'a [Artifact], name: &str) -> Option<&'a Artifact> {
    artifacts
        .iter()
        .find(|artifact| artifact.locator.key.as_str() == name)
}

/// What is stored beside a person's finding: what stood in the tree when the person said that the work was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capture {
    /// Always `praxis-capture`.
    pub format: String,
    /// Always 0.
    pub version: U64,
    /// What was there.
    pub outcome: Outcome,
}

impl Capture {
    /// The capture of an outcome.
    #[must_use]
    pub fn of(outcome: Outcome) -> Self {
        Self {
            format: CAPTURE.to_owned(),
            version: U64(0),
            outcome,
        }
    }

    /// The capture in stored bytes; none for anything else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let capture: Self = canonical::from_value(&aiws::strict::parse(bytes).ok()?).ok()?;
        (capture.format == CAPTURE && capture.version == U64(0)).then_some(capture)
    }
}

/// Whether a producer says that its work counts. What says nothing of it counts.
#[must_use]
pub fn counts(manifest: &Manifest) -> bool {
    manifest
        .result
        .get("passed")
        .and_then(Value::as_bool)
        .unwrap_or(true)
}

/// The digest of the artifact of this name.
#[must_use]
pub fn digest_of(artifacts: &[Artifact], name: &str) -> Option<Digest> {
    named(artifacts, name).map(|artifact| artifact.digest)
}

//! Summaries: words about a hand-off, with who wrote them. They explain and decide nothing (SUM-5).
//! Invariant: a summary stands on an exact manifest, and names an operation exactly where a MODEL wrote it (SUM-3).
//! Called by the model; the time and the revision are derived there.

use serde::{Deserialize, Serialize};

use super::{HandoffRef, Record, checked, fields, names};
use crate::decimal::U64;
use crate::error::Error;
use crate::id::{ActorId, OperationId, SummaryId};

names! {
    /// Who wrote a summary.
    AuthorKind {
        /// A person.
        Human = "HUMAN",
        /// A model, in an operation that was paid for under governance.
        Model = "MODEL",
        /// The engine, from the ledger alone.
        Engine = "ENGINE",
    }
}

/// Words about one hand-off; optional, immutable, never a policy (REL-10).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Summary {
    /// Unique in the mission.
    pub summary_id: SummaryId,
    /// The exact manifest that it is about.
    pub handoff: HandoffRef,
    /// Who wrote it.
    pub author: SummaryAuthor,
    /// The words.
    #[serde(deserialize_with = "fields::some_text")]
    pub text: String,
    /// When it was recorded, UTC milliseconds.
    pub created_at_ms: U64,
    /// At which revision of its stream.
    pub revision: U64,
}

crate::veiled! { Summary { summary_id handoff author created_at_ms revision } text; }

/// The author of a summary.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct SummaryAuthor {
    /// What kind of author.
    pub kind: AuthorKind,
    /// The authenticated actor who recorded it.
    pub actor_id: ActorId,
    /// The operation in which a MODEL wrote it; none for the others.
    #[serde(deserialize_with = "fields::nullable")]
    pub operation_id: Option<OperationId>,
}

checked! { SummaryAuthor }

impl Record for Summary {}

impl SummaryAuthor {
    fn check(&self) -> Result<(), Error> {
        let by_model = self.kind == AuthorKind::Model;
        if self.operation_id.is_some() == by_model {
            return Ok(());
        }
        let expected = if by_model { "an operation" } else { "null" };
        Err(Error::schema(
            "/operationId",
            format!("expected {expected} for the author {}", self.kind),
        ))
    }
}

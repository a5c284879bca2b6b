//! What a consumer outside is told of an event: that it happened and to what it belongs, never what it says.
//! Invariant: no command, no fact and no outcome of the event is in it, so no material, text, locator or token (OUT-4).
//! Called by hosts that pass the outbox on; [`Journal::pending`] has whole events and is for the host itself.

use aiws::decimal::U64;
use aiws::digest::Digest;
use aiws::id::{ConsumerId, Id, MissionId, RequestId, RunId};
use praxis_journal_format::Sealed;
use praxis_model::command::CommandType;
use praxis_model::event::IdentityKind;
use serde::Serialize;

use crate::error::StoreError;
use crate::journal::Journal;

/// One event as the outbox tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// Where it stands in the log; what a consumer acknowledges.
    pub sequence: U64,
    /// Its stable id, the event's hash: the same each time it comes.
    pub event_id: Digest,
    /// The mission.
    pub mission_id: MissionId,
    /// The run; none for the mission's own events.
    pub run_id: Option<RunId>,
    /// The request; none for what the engine did itself.
    pub request_id: Option<RequestId>,
    /// What kind of event.
    #[serde(rename = "type")]
    pub kind: CommandType,
    /// Its position in its stream.
    pub revision: U64,
    /// When, UTC milliseconds.
    pub at_ms: U64,
    /// What it named for the first time.
    pub ids: Vec<(IdentityKind, Id)>,
}

impl Notification {
    /// The notification of an event.
    pub fn of(sequence: u64, sealed: &Sealed) -> Self {
        let event = &sealed.event;
        let named = event.outcome.identities.iter();
        Self {
            sequence: U64(sequence),
            event_id: sealed.hash,
            mission_id: event.subject.mission_id.clone(),
            run_id: event.subject.run_id.clone(),
            request_id: event.request_id.clone(),
            kind: event.kind,
            revision: event.revision,
            at_ms: event.at_ms,
            ids: named.map(|one| (one.kind, one.key.clone())).collect(),
        }
    }
}

impl Journal {
    /// As [`Journal::pending`], without what the events say: what may leave the host.
    ///
    /// # Errors
    /// As there.
    pub fn notifications(
        &self,
        consumer: &ConsumerId,
        limit: usize,
    ) -> Result<Vec<Notification>, StoreError> {
        let pending = self.pending(consumer, limit)?;
        let told = pending.iter();
        Ok(told
            .map(|(sequence, sealed)| Notification::of(*sequence, sealed))
            .collect())
    }
}

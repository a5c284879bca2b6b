//! A request on the wire and what comes back, and the small conversions that every case needs.
//! Invariant: a request is plain JSON until it is sent, so that a case can spoil any part of it.
//! The world makes and sends them.

use std::sync::Arc;

use aiws::id::{Id, RequestId};
use aiws::json::Value;
use praxis_engine::Response;
use praxis_journal_format::Sealed;
use praxis_model::command::CommandType;
use praxis_model::table::{self, Family};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::world::MISSION;

/// A request before it is bytes, so that a case can spoil any part of it.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The request id.
    pub id: String,
    /// The expected revision.
    pub revision: String,
    /// The owner's epoch; none for the mission's commands.
    pub epoch: Option<String>,
    /// The run that an envelope names.
    pub run: String,
    /// The body.
    pub body: Json,
}

impl Sent {
    /// The type of the body.
    pub fn kind(&self) -> CommandType {
        CommandType::parse(self.body["type"].as_str().unwrap()).unwrap()
    }

    /// The bytes on the wire: a bare command, or an envelope.
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self.json()).unwrap()
    }

    /// The request as JSON.
    pub fn json(&self) -> Json {
        let outer = |command: &Json| {
            json!({
                "requestId": self.id, "expectedRevision": self.revision, "ownerEpoch": self.epoch,
                "missionId": MISSION, "command": command,
            })
        };
        if table::row(self.kind()).family != Family::Handoff {
            return outer(&self.body);
        }
        outer(&json!({
            "protocol": "aiws-handoff/1", "requestId": self.id, "expectedRevision": self.revision,
            "missionId": MISSION, "runId": self.run, "ownerEpoch": self.epoch, "body": self.body,
        }))
    }
}

/// An answer as the client has it in the end.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The event; none for a replay, and so none in a world that loses replies.
    pub event: Option<Arc<Sealed>>,
    /// The event's revision.
    pub revision: u64,
    /// The result.
    pub result: Value,
    /// The raw token of a claim.
    pub token: Option<String>,
}

impl Answer {
    /// A response, with the token of a claim.
    pub fn of(response: Response, token: Option<String>) -> Answer {
        let Response {
            event,
            revision,
            result,
        } = response;
        Answer {
            event,
            revision,
            result,
            token,
        }
    }
}

/// An id of any kind.
pub fn id<T: From<Id>>(text: &str) -> T {
    T::from(Id::new(text).expect("an id"))
}

/// A request id.
pub fn request_id(text: &str) -> RequestId {
    id(text)
}

/// A record from its JSON, as strictly as from the wire.
pub fn record<T: DeserializeOwned>(json: &Json) -> T {
    let value = aiws::strict::parse(&serde_json::to_vec(json).unwrap()).expect("strict JSON");
    aiws::canonical::from_value(&value).expect("a record")
}

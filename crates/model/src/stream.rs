//! Subjects, the streams that they own, and the ids that derive from a place in a stream.
//!
//! Invariant: one subject has one stream, and derived ids are hashed, so that nobody parses them (T-01, T-27).
//! Called by decide, by the journal format and by the engine.

use aiws::digest::{Digest, tagged};
use aiws::error::Error;
use aiws::id::{ActivationId, Id, MissionId, NodeId, RunId, StreamId};
use serde::{Deserialize, Serialize};

/// Whom an event is about: a mission, or one run of it (wire form `{missionId, runId|null}`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subject {
    /// The mission.
    pub mission_id: MissionId,
    /// The run, or null for the mission itself.
    pub run_id: Option<RunId>,
}

impl Subject {
    /// The mission's own subject.
    pub fn mission(mission_id: MissionId) -> Self {
        Self {
            mission_id,
            run_id: None,
        }
    }

    /// One run's subject.
    pub fn run(mission_id: MissionId, run_id: RunId) -> Self {
        Self {
            mission_id,
            run_id: Some(run_id),
        }
    }

    /// The stream that this subject's events belong to: the one function that says so (T-02).
    pub fn stream(&self) -> StreamId {
        let run = self.run_id.as_ref().map(RunId::as_str);
        StreamId::from_digest(named("aiws-stream", &(self.mission_id.as_str(), run)))
    }
}

/// The activation id of a node's n-th iteration in a run (T-27). Iterations count from 1.
pub fn activation(run: &StreamId, node: &NodeId, iteration: u64) -> ActivationId {
    let digest = named(
        "aiws-activation",
        &(run.as_str(), node.as_str(), iteration.to_string()),
    );
    ActivationId::from_digest(digest)
}

/// A new id from its place: stream, revision of the event that makes it, what it names, and a running index.
pub fn derived(stream: &StreamId, revision: u64, kind: &str, index: usize) -> Id {
    let place = (
        stream.as_str(),
        revision.to_string(),
        kind,
        index.to_string(),
    );
    Id::from_digest(named("aiws-derived", &place))
}

/// A digest under a domain tag of a tuple of texts; texts always have canonical bytes.
fn named<T: Serialize>(tag: &str, parts: &T) -> Digest {
    let bytes: Result<Vec<u8>, Error> = aiws::canonical::bytes_of(parts);
    // Tuples of strings cannot fail to serialize; an empty text would only weaken the name.
    tagged(tag, &bytes.unwrap_or_default())
}

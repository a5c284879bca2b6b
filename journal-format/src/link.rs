//! Hop 3 of 5, first half: a decision becomes the next event of its stream.
//!
//! Invariant: revision is the head's plus one, the previous hash is the head's hash; nothing is invented here.
//! Called by the engine's actors between decide and seal.

use aiws::decimal::U64;
use praxis_model::command::Command;
use praxis_model::decision::Decision;
use praxis_model::event::{CODEC_VERSION, Codec, Event, Head, Part};
use praxis_model::facts::Facts;
use praxis_model::stream::Subject;

/// The profile that this build decides under.
pub const PROFILE: &str = "aiws-handoff/1";

/// The event that follows `head` in the subject's stream. `at_ms` is trusted UTC time in milliseconds, never below
/// the stream's previous event; `owner_epoch` is the run's epoch, none in mission streams.
pub fn link(
    subject: Subject,
    head: Head,
    command: &Command,
    decision: &Decision,
    facts: &Facts,
    at_ms: u64,
    owner_epoch: Option<u64>,
) -> Event {
    Event {
        stream: subject.stream(),
        revision: U64(head.revision.0 + 1),
        prev_hash: head.hash,
        subject,
        kind: decision.command.kind(),
        request_id: command.request_id.clone(),
        request_digest: command.request_digest,
        part: Part {
            k: U64(1),
            of: U64(1),
        },
        actor_id: facts.actor_id.clone(),
        actor_kind: facts.actor_kind,
        policy: facts.policy.clone(),
        decision_class: facts.decision_class.clone(),
        decision_ref: facts.decision_ref.clone(),
        at_ms: U64(at_ms),
        owner_epoch: owner_epoch.map(U64),
        command: decision.command.clone(),
        facts: facts.recorded(),
        outcome: decision.outcome.clone(),
        result: decision.result.clone(),
        codec: Codec {
            profile: PROFILE.to_owned(),
            version: U64(CODEC_VERSION),
        },
    }
}

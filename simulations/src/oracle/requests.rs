//! Requests and identities: what was asked before, which names are taken (invariants 20, 23, 33 to 35).
//!
//! Invariant: a request has one first event, kept as long as the log. Called by the fold and for every answer.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Event, text};
use crate::invariant::{Broken, Invariant};

/// Mission, principal, request.
pub(super) type Key = (String, String, String);

#[derive(Clone, Debug)]
struct Known {
    digest: String,
    sequence: u64,
    /// How often the store had been opened when it was folded.
    opened: u64,
}

/// All requests and identities.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    known: BTreeMap<Key, Known>,
    taken: BTreeSet<(String, String, String)>,
    /// How often the store was opened.
    pub opened: u64,
}

/// The key of an event's request.
pub(super) fn key(event: &Event) -> Option<Key> {
    let request = event.request.clone()?;
    Some((event.mission.clone(), event.actor.clone(), request))
}

impl Requests {
    /// The request of a stored event is new.
    pub fn fold(&mut self, event: &Event, sequence: u64) -> Result<(), Broken> {
        if let Some(key) = key(event).filter(|_| event.part == 1) {
            if let Some(first) = self.known.get(&key) {
                let invariant = self.forgotten(first);
                let what = format!(
                    "request {} of {} was stored at sequence {} and again at {sequence}",
                    key.2, key.1, first.sequence
                );
                return Err(Broken::new(invariant, what));
            }
            let known = Known {
                digest: event.digest.clone(),
                sequence,
                opened: self.opened,
            };
            self.known.insert(key, known);
        }
        for identity in event.outcome("identities")? {
            let name = (
                event.mission.clone(),
                text(identity, "kind")?.to_owned(),
                text(identity, "key")?.to_owned(),
            );
            if self.taken.contains(&name) {
                let invariant = match name.1.as_str() {
                    "RUN" | "OPERATION" | "ATTEMPT" => Invariant::AdmittedOnce,
                    _ => Invariant::BodyCounts,
                };
                let what = format!("{} takes {} {} again", event.named(), name.1, name.2);
                return Err(Broken::new(invariant, what));
            }
            self.taken.insert(name);
        }
        Ok(())
    }

    /// An append was answered as a replay. True where its request was opened before.
    pub fn replayed(&self, key: &Key, digest: &str, sequence: u64) -> Result<bool, Broken> {
        let Some(first) = self.known.get(key) else {
            let what = format!(
                "request {} of {} was never stored, and is answered as a replay of sequence {sequence}",
                key.2, key.1
            );
            return Err(Broken::new(Invariant::SameAnswer, what));
        };
        if first.digest != digest {
            let what = format!(
                "request {} of {} has another body than at sequence {}, and is answered as its replay",
                key.2, key.1, first.sequence
            );
            return Err(Broken::new(Invariant::BodyCounts, what));
        }
        if first.sequence != sequence {
            let what = format!(
                "request {} of {} was stored at sequence {}, and its replay names {sequence}",
                key.2, key.1, first.sequence
            );
            return Err(Broken::new(Invariant::SameAnswer, what));
        }
        Ok(first.opened < self.opened)
    }

    /// An append was refused, and not as a conflict: its request may not be one that is in the log with this body.
    pub fn refused(&self, key: &Key, digest: &str, code: &str) -> Result<(), Broken> {
        let known = self.known.get(key).filter(|first| first.digest == digest);
        let Some(first) = known else { return Ok(()) };
        let what = format!(
            "request {} of {} was stored at sequence {}, came again and is refused with {code}",
            key.2, key.1, first.sequence
        );
        Err(Broken::new(self.forgotten(first), what))
    }

    /// Which promise is broken where a request that was stored is not known any more.
    fn forgotten(&self, first: &Known) -> Invariant {
        match first.opened < self.opened {
            true => Invariant::DedupeSurvives,
            false => Invariant::DedupeForLife,
        }
    }

    /// An append was refused as a conflict of identities. True where its request came with another body.
    pub fn conflict(
        &self,
        events: &[Event],
        key: Option<&Key>,
        digest: &str,
    ) -> Result<bool, Broken> {
        if let Some((key, first)) = key.and_then(|key| Some((key, self.known.get(key)?))) {
            if first.digest != digest {
                return Ok(true);
            }
            let what = format!(
                "request {} of {} came again with the body of sequence {}, and is refused as a conflict",
                key.2, key.1, first.sequence
            );
            return Err(Broken::new(Invariant::BodyCounts, what));
        }
        for event in events {
            for identity in event.outcome("identities")? {
                let name = (
                    event.mission.clone(),
                    text(identity, "kind")?.to_owned(),
                    text(identity, "key")?.to_owned(),
                );
                if self.taken.contains(&name) {
                    return Ok(false);
                }
            }
        }
        let what = match events.first() {
            Some(event) => format!(
                "{} is refused as a conflict, and nothing in the log has its names",
                event.named()
            ),
            None => "an append without events is refused as a conflict".to_owned(),
        };
        Err(Broken::new(Invariant::RejectionLeavesNothing, what))
    }
}

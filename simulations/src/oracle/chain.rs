//! Chain: streams, links, heads (invariants 2, 4, 6).
//!
//! Invariant: a head moves by an event that links to it alone. Called by the fold.

use std::collections::BTreeMap;

use aiws::digest::{Digest, tagged};
use aiws::object;

use super::event::{Event, unknown};
use super::tables::Tables;
use crate::invariant::{Broken, Invariant};

/// Where a stream stands.
#[derive(Clone, Debug)]
struct Head {
    revision: u64,
    hash: String,
}

/// All streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    heads: BTreeMap<String, Head>,
    /// The streams of subjects, by mission and run.
    streams: BTreeMap<(String, Option<String>), String>,
    /// The latest time of any event, UTC milliseconds.
    pub max_ms: u64,
}

/// The stream of a subject.
pub(super) fn stream_of(mission: &str, run: Option<&str>) -> String {
    let list = aiws::json::Value::Array(vec![mission.into(), run.map(str::to_owned).into()]);
    tagged("aiws-stream", &aiws::canonical::to_bytes(&list)).to_string()
}

impl Chain {
    fn stream(&mut self, mission: &str, run: Option<&str>) -> String {
        let key = (mission.to_owned(), run.map(str::to_owned));
        let made = self
            .streams
            .entry(key)
            .or_insert_with(|| stream_of(mission, run));
        made.clone()
    }

    /// The event links to the head of its stream; the head moves to it.
    pub fn fold(
        &mut self,
        event: &Event,
        sequence: u64,
        tables: &mut Tables,
    ) -> Result<(), Broken> {
        let mission = self.stream(&event.mission, None);
        let own = self.stream(&event.mission, event.run.as_deref());
        if event.stream != own && event.stream != mission {
            let what = format!(
                "{} stands in a foreign stream {}",
                event.named(),
                event.stream
            );
            return Err(unknown(what));
        }
        let fresh = || Head {
            revision: 0,
            hash: Digest::ZERO.to_string(),
        };
        let head = match self.heads.get(&event.stream) {
            Some(head) => head.clone(),
            None if event.stream == mission => fresh(),
            None => {
                let what = format!("{}: its stream was never opened", event.named());
                return Err(Broken::new(Invariant::LinksMatch, what));
            }
        };
        if event.revision != head.revision + 1 || event.prev != head.hash {
            let what = format!(
                "{} at sequence {sequence} follows {}, and its stream stands at revision {} with {}",
                event.named(),
                event.prev,
                head.revision,
                head.hash
            );
            return Err(Broken::new(Invariant::LinksMatch, what));
        }
        for opened in event.outcome("opens")? {
            let opened = opened
                .as_str()
                .ok_or_else(|| unknown("an opened stream is no text"))?;
            if opened == event.stream || self.heads.contains_key(opened) {
                let what = format!("{} opens stream {opened} again", event.named());
                return Err(Broken::new(Invariant::LinksMatch, what));
            }
            self.set(opened, 0, &event.hash, 0, tables);
        }
        self.set(&event.stream, event.revision, &event.hash, sequence, tables);
        self.max_ms = self.max_ms.max(event.at_ms);
        Ok(())
    }

    fn set(&mut self, stream: &str, revision: u64, hash: &str, sequence: u64, tables: &mut Tables) {
        let head = Head {
            revision,
            hash: hash.to_owned(),
        };
        self.heads.insert(stream.to_owned(), head);
        let row = object! {
            "hash": hash,
            "revision": revision.to_string(),
            "sequence": sequence.to_string(),
        };
        tables.heads.insert(stream.to_owned(), row.to_string());
    }
}

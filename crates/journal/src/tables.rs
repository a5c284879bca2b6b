//! The one map of every table of the store: name, key, value.
//!
//! Invariant: names are written to disk and never reused; keys of one table have one form, whose byte order is the
//! order of the rows. Read and written by the index alone.

use aiws::canonical;
use aiws::digest::Digest;
use aiws::id::{ConsumerId, Id, StreamId};
use aiws::json::Value;
use praxis_model::account::{AccountKey, AccountRow};
use praxis_model::event::{Gate, Head};
use praxis_model::register::RegisterKey;
use praxis_model::stream::Subject;
use redb::TableDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::append::RequestKey;
use crate::rows::{DueKey, HeadRow, IdentityKey, IdentityRow, OwnerRow, RegisterRow, RequestRow};

/// The tables of `index.redb`. Beside them a segment of the log has one table, `log`: sequence (u64) to frame
/// (`FORMAT.md` of the journal format). Texts in keys stand behind their length in two bytes, integers are big endian.
///
/// Reserved for what comes later, and not to be used otherwise: `snapshots` (stream to cached state at a revision).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// stream -> revision u64, hash 32 bytes, sequence u64 of the last event.
    Heads,
    /// run's stream -> epoch u64, boot marker u64. The marker is a hint of this store and not in the log's order.
    Owners,
    /// mission, principal, request -> digest 32 bytes, sequence u64. Kept for life.
    Requests,
    /// mission, kind, name -> digest 32 bytes, sequence u64, stream. Kept for life.
    Identities,
    /// mission, kind, key -> canonical JSON {revision, value}.
    Registers,
    /// mission, run or nothing -> canonical JSON list of the closed gates.
    Gates,
    /// mission, scope, dimension -> canonical JSON of the row.
    Accounts,
    /// time u64, stream, kind -> nothing.
    Due,
    /// consumer -> acknowledged sequence u64. Not in the log: lost with the index, and then delivered again.
    Cursors,
    /// level u64 -> 32 bytes: the roots of the full subtrees of the Merkle tree up to the cursor; at 64 the root over all,
    /// by which damage is seen. Indexes of older builds have none; it is then made from the log.
    Tree,
    /// name -> bytes: `format`, `store`, `boot`, `last_ms`, `cursor`.
    Meta,
}

impl Table {
    /// All tables.
    pub const ALL: &'static [Self] = &[
        Self::Heads,
        Self::Owners,
        Self::Requests,
        Self::Identities,
        Self::Registers,
        Self::Gates,
        Self::Accounts,
        Self::Due,
        Self::Cursors,
        Self::Tree,
        Self::Meta,
    ];

    /// The name on disk.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heads => "heads",
            Self::Owners => "owners",
            Self::Requests => "requests",
            Self::Identities => "identities",
            Self::Registers => "registers",
            Self::Gates => "gates",
            Self::Accounts => "accounts",
            Self::Due => "due",
            Self::Cursors => "cursors",
            Self::Tree => "tree",
            Self::Meta => "meta",
        }
    }

    pub(crate) fn definition(self) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
        TableDefinition::new(self.name())
    }
}

/// A row's key or value as bytes, and back. `None` from `read` is damage.
pub(crate) trait Bytes: Sized {
    fn write(&self) -> Vec<u8>;
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Bytes for u64 {
    fn write(&self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(u64::from_be_bytes)
    }
}

impl Bytes for Digest {
    fn write(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl Bytes for () {
    fn write(&self) -> Vec<u8> {
        Vec::new()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}

impl Bytes for StreamId {
    fn write(&self) -> Vec<u8> {
        texts(&[self.as_str()])
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let [stream] = split(bytes)?;
        Self::new(stream).ok()
    }
}

impl Bytes for ConsumerId {
    fn write(&self) -> Vec<u8> {
        texts(&[self.as_str()])
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let [consumer] = split(bytes)?;
        Self::new(consumer).ok()
    }
}

impl Bytes for HeadRow {
    fn write(&self) -> Vec<u8> {
        [
            &self.head.revision.0.to_be_bytes()[..],
            self.head.hash.as_bytes(),
            &self.sequence.to_be_bytes(),
        ]
        .concat()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let revision = take_u64(&mut rest)?;
        let hash = take_digest(&mut rest)?;
        let sequence = take_u64(&mut rest)?;
        rest.is_empty().then_some(Self {
            head: Head {
                revision: revision.into(),
                hash,
            },
            sequence,
        })
    }
}

impl Bytes for OwnerRow {
    fn write(&self) -> Vec<u8> {
        [self.epoch.to_be_bytes(), self.boot.to_be_bytes()].concat()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let (epoch, boot) = (take_u64(&mut rest)?, take_u64(&mut rest)?);
        rest.is_empty().then_some(Self { epoch, boot })
    }
}

impl Bytes for RequestKey {
    fn write(&self) -> Vec<u8> {
        texts(&[
            self.mission_id.as_str(),
            self.actor_id.as_str(),
            self.request_id.as_str(),
        ])
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let [mission, actor, request] = split(bytes)?;
        Some(Self {
            mission_id: mission.parse().ok()?,
            actor_id: actor.parse().ok()?,
            request_id: request.parse().ok()?,
        })
    }
}

impl Bytes for RequestRow {
    fn write(&self) -> Vec<u8> {
        [&self.digest.as_bytes()[..], &self.sequence.to_be_bytes()].concat()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let (digest, sequence) = (take_digest(&mut rest)?, take_u64(&mut rest)?);
        rest.is_empty().then_some(Self { digest, sequence })
    }
}

impl Bytes for IdentityKey {
    fn write(&self) -> Vec<u8> {
        texts(&[
            self.mission_id.as_str(),
            &word(&self.kind),
            self.key.as_str(),
        ])
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let [mission, kind, key] = split(bytes)?;
        Some(Self {
            mission_id: mission.parse().ok()?,
            kind: unword(kind)?,
            key: Id::new(key).ok()?,
        })
    }
}

impl Bytes for IdentityRow {
    fn write(&self) -> Vec<u8> {
        [
            &self.digest.as_bytes()[..],
            &self.sequence.to_be_bytes(),
            self.stream.as_str().as_bytes(),
        ]
        .concat()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let (digest, sequence) = (take_digest(&mut rest)?, take_u64(&mut rest)?);
        let stream = StreamId::new(std::str::from_utf8(rest).ok()?).ok()?;
        Some(Self {
            digest,
            sequence,
            stream,
        })
    }
}

impl Bytes for RegisterKey {
    fn write(&self) -> Vec<u8> {
        texts(&[
            self.mission_id.as_str(),
            &word(&self.kind),
            self.key.as_str(),
        ])
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let [mission, kind, key] = split(bytes)?;
        Some(Self {
            mission_id: mission.parse().ok()?,
            kind: unword(kind)?,
            key: Id::new(key).ok()?,
        })
    }
}

impl Bytes for RegisterRow {
    fn write(&self) -> Vec<u8> {
        let revision = self.revision.to_string();
        canonical::to_bytes(&aiws::object! { "revision": revision, "value": self.value.clone() })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = stored(bytes)?;
        let revision = value.get("revision")?.as_str()?.parse().ok()?;
        Some(Self {
            revision,
            value: value.get("value")?.clone(),
        })
    }
}

impl Bytes for Subject {
    fn write(&self) -> Vec<u8> {
        match &self.run_id {
            Some(run) => texts(&[self.mission_id.as_str(), run.as_str()]),
            None => texts(&[self.mission_id.as_str()]),
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        if let Some([mission]) = split(bytes) {
            return Some(Self::mission(mission.parse().ok()?));
        }
        let [mission, run] = split(bytes)?;
        Some(Self::run(mission.parse().ok()?, run.parse().ok()?))
    }
}

impl Bytes for Vec<Gate> {
    fn write(&self) -> Vec<u8> {
        canonical::bytes_of(self).unwrap_or_default()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        canonical::from_value(&stored(bytes)?).ok()
    }
}

impl Bytes for AccountKey {
    fn write(&self) -> Vec<u8> {
        texts(&[
            self.mission_id.as_str(),
            self.scope_id.as_str(),
            &word(&self.dimension),
        ])
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let [mission, scope, dimension] = split(bytes)?;
        let (mission_id, scope_id) = (mission.parse().ok()?, scope.parse().ok()?);
        Some(Self {
            mission_id,
            scope_id,
            dimension: unword(dimension)?,
        })
    }
}

impl Bytes for AccountRow {
    fn write(&self) -> Vec<u8> {
        canonical::bytes_of(self).unwrap_or_default()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        canonical::from_value(&stored(bytes)?).ok()
    }
}

impl Bytes for DueKey {
    fn write(&self) -> Vec<u8> {
        let mut bytes = self.at_ms.to_be_bytes().to_vec();
        bytes.extend(texts(&[self.stream.as_str(), &word(&self.kind)]));
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let at_ms = take_u64(&mut rest)?;
        let [stream, kind] = split(rest)?;
        Some(Self {
            at_ms,
            stream: stream.parse().ok()?,
            kind: unword(kind)?,
        })
    }
}

/// Texts one after the other, each behind its length; ids are at most 1 KiB long, so two bytes hold it.
fn texts(parts: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 2).sum());
    for part in parts {
        let len = u16::try_from(part.len()).unwrap_or(u16::MAX);
        bytes.extend(len.to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    bytes
}

fn split<const N: usize>(bytes: &[u8]) -> Option<[&str; N]> {
    let mut parts = [""; N];
    let mut rest = bytes;
    for part in &mut parts {
        let (len, tail) = rest.split_first_chunk::<2>()?;
        let (text, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        *part = std::str::from_utf8(text).ok()?;
        rest = tail;
    }
    rest.is_empty().then_some(parts)
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, tail) = rest.split_first_chunk::<8>()?;
    *rest = tail;
    Some(u64::from_be_bytes(*bytes))
}

fn take_digest(rest: &mut &[u8]) -> Option<Digest> {
    let (bytes, tail) = rest.split_first_chunk::<32>()?;
    *rest = tail;
    Some(Digest(*bytes))
}

/// The wire name of a unit variant.
fn word<T: Serialize>(variant: &T) -> String {
    match canonical::to_value(variant) {
        Ok(Value::String(word)) => word,
        // Only unit variants are written as words; an empty one would not read back and so be seen as damage.
        _ => String::new(),
    }
}

fn unword<T: DeserializeOwned>(word: &str) -> Option<T> {
    canonical::from_value(&Value::String(word.to_owned())).ok()
}

fn stored(bytes: &[u8]) -> Option<Value> {
    aiws::strict::parse_with_limit(bytes, aiws::limits::MAX_EVENT_BYTES).ok()
}

#[cfg(test)]
mod tests;

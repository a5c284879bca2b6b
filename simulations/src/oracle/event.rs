//! An event as the oracle reads it: members by name, from canonical bytes, without the engine's types.
//!
//! Invariant: what does not read as the wire form says is a broken promise, never a panic. Called by the rooms of the oracle.

use aiws::decimal::Dec;
use aiws::digest::{Digest, tagged};
use aiws::json::Value;
use aiws::limits::MAX_EVENT_BYTES;

use super::Row;
use crate::invariant::{Broken, Invariant};

/// One event with the members that every room needs.
#[derive(Debug)]
pub(super) struct Event {
    pub value: Value,
    pub hash: String,
    pub stream: String,
    pub revision: u64,
    pub prev: String,
    pub mission: String,
    pub run: Option<String>,
    pub kind: String,
    pub request: Option<String>,
    pub digest: String,
    pub part: u64,
    pub actor: String,
    pub actor_kind: String,
    pub class: String,
    pub decision_ref: Option<String>,
    pub at_ms: u64,
    pub epoch: Option<u64>,
}

/// What no reader of the wire form knows.
pub(super) fn unknown(what: impl Into<String>) -> Broken {
    Broken::new(Invariant::NothingUnknown, what)
}

/// The text of hash bytes.
pub(super) fn hex(hash: [u8; 32]) -> String {
    Digest(hash).to_string()
}

/// A member that must be there.
pub(super) fn member<'a>(value: &'a Value, name: &str) -> Result<&'a Value, Broken> {
    value
        .get(name)
        .ok_or_else(|| unknown(format!("an event lacks its member {name}")))
}

/// A text that must be there.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, Broken> {
    let found = member(value, name)?.as_str();
    found.ok_or_else(|| unknown(format!("an event's member {name} is no text")))
}

/// A text, or null.
pub(super) fn maybe<'a>(value: &'a Value, name: &str) -> Result<Option<&'a str>, Broken> {
    match member(value, name)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(unknown(format!("an event's member {name} is no text"))),
    }
}

/// A number that is written as a text.
pub(super) fn number(value: &Value, name: &str) -> Result<u64, Broken> {
    let found = text(value, name)?;
    found
        .parse()
        .map_err(|_| unknown(format!("an event's member {name} is no number: {found}")))
}

/// A decimal of any size.
pub(super) fn decimal(value: &Value, name: &str) -> Result<Dec, Broken> {
    let found = text(value, name)?;
    found
        .parse()
        .map_err(|_| unknown(format!("an event's member {name} is no amount: {found}")))
}

/// A list that must be there.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], Broken> {
    let found = member(value, name)?.as_array();
    found.ok_or_else(|| unknown(format!("an event's member {name} is no list")))
}

/// A list that may be missing.
pub(super) fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).unwrap_or(&[])
}

impl Event {
    /// Reads a row; its hash must be that of its bytes.
    pub fn read(row: &Row) -> Result<Self, Broken> {
        let hash = hex(row.hash);
        let found = tagged("aiws-event", &row.bytes);
        if found.0 != row.hash {
            let what = format!("an event is kept under {hash}, and its bytes hash to {found}");
            return Err(Broken::new(Invariant::HashCovers, what));
        }
        let value = aiws::strict::parse_with_limit(&row.bytes, MAX_EVENT_BYTES)
            .map_err(|error| unknown(format!("event {hash} is not strict JSON: {error}")))?;
        if aiws::canonical::to_bytes(&value) != row.bytes {
            return Err(unknown(format!("event {hash} is not canonical")));
        }
        let subject = member(&value, "subject")?;
        Ok(Self {
            stream: text(&value, "stream")?.to_owned(),
            revision: number(&value, "revision")?,
            prev: text(&value, "prevHash")?.to_owned(),
            mission: text(subject, "missionId")?.to_owned(),
            run: maybe(subject, "runId")?.map(str::to_owned),
            kind: text(&value, "type")?.to_owned(),
            request: maybe(&value, "requestId")?.map(str::to_owned),
            digest: text(&value, "requestDigest")?.to_owned(),
            part: number(member(&value, "part")?, "k")?,
            actor: text(&value, "actorId")?.to_owned(),
            actor_kind: text(&value, "actorKind")?.to_owned(),
            class: text(&value, "decisionClass")?.to_owned(),
            decision_ref: maybe(&value, "decisionRef")?.map(str::to_owned),
            at_ms: number(&value, "atMs")?,
            epoch: match maybe(&value, "ownerEpoch")? {
                None => None,
                Some(_) => Some(number(&value, "ownerEpoch")?),
            },
            hash,
            value,
        })
    }

    /// What it changes.
    pub fn outcome(&self, name: &str) -> Result<&[Value], Broken> {
        list(member(&self.value, "outcome")?, name)
    }

    /// Its command.
    pub fn command(&self) -> Result<&Value, Broken> {
        member(&self.value, "command")
    }

    /// Its facts.
    pub fn facts(&self) -> Result<&Value, Broken> {
        member(&self.value, "facts")
    }

    /// Its transitions with their kinds.
    pub fn transitions(&self) -> Result<Vec<(&str, &Value)>, Broken> {
        let all = self.outcome("transitions")?.iter();
        all.map(|it| Ok((text(it, "kind")?, it))).collect()
    }

    /// Whether a human decided, named.
    pub fn is_human(&self) -> bool {
        self.actor_kind == "HUMAN" && self.decision_ref.is_some()
    }

    /// The event in a few words.
    pub fn named(&self) -> String {
        let whose = self.run.as_deref().unwrap_or(&self.mission);
        format!("{} of {whose} at revision {}", self.kind, self.revision)
    }
}

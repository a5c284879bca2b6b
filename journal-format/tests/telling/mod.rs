//! The events of the golden journal: a mission, two runs, a sequence of two parts, every kind of outcome.
//!
//! Invariant: the same bytes on every machine. Used by the tests of this crate.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod proven;
pub mod spoiled;

use aiws::canonical;
use aiws::decimal::U64;
use aiws::digest::{Digest, sha256};
use aiws::json::Value;
use aiws::object;
use praxis_journal_format::{Sealed, seal};
use praxis_model::event::{Event, Head};
use praxis_model::stream::Subject;

/// A story that is being told, event by event.
pub struct Telling {
    heads: Vec<(String, Head)>,
    pub sealed: Vec<Sealed>,
}

/// The golden journal.
pub fn golden() -> Vec<Sealed> {
    let mut told = Telling {
        heads: Vec::new(),
        sealed: Vec::new(),
    };
    let mission = subject(None);
    let (one, two) = (subject(Some("run-1")), subject(Some("run-2")));
    let account = object! { "missionId": "mission-1", "scopeId": "mission-1", "dimension": "COST" };
    let opened = |run: &Subject| {
        object! {
            "opens": vec![run.stream().as_str()],
            "owner": object! { "stream": run.stream().as_str(), "epoch": "1" },
            "due": vec![object! { "stream": run.stream().as_str(), "kind": "LIVE", "atMs": "1700000000000" }],
        }
    };
    let open = object! { "accounts": vec![object! { "op": "OPEN", "account": account.clone(), "bound": "100" }] };
    told.next(
        &mission,
        object! { "type": "startRun", "runId": "run-1" },
        merge(opened(&one), open),
        (1, 1),
    );
    let reserve = object! { "op": "RESERVE", "account": account.clone(), "amount": "7" };
    let settle = object! { "op": "SETTLE", "account": account, "reserved": "7", "actual": "9" };
    let revoke = |text: &str| {
        object! { "type": "revokeApproval", "approvalId": "approval-1", "runId": "run-1", "reason": text }
    };
    told.next(
        &one,
        revoke("quote \" backslash \\ tab \t nul \u{0} unit \u{1f}"),
        object! { "accounts": vec![reserve] },
        (1, 2),
    );
    told.next(
        &one,
        revoke("\u{e9} \u{20ac} \u{1f600} \u{7f} \u{2028}"),
        object! { "accounts": vec![settle] },
        (2, 2),
    );
    let closed = object! { "scope": object! { "missionId": "mission-1", "runId": "run-1" }, "gate": object! { "kind": "CANCEL" }, "closed": true };
    let cancel = object! { "type": "cancelRun", "runId": "run-1", "reason": "enough", "decisionRef": "decision-1" };
    told.next(&one, cancel, object! { "gates": vec![closed] }, (1, 1));
    let register = object! { "missionId": "mission-1", "kind": "RUN_ADMISSION", "key": "run-2" };
    let write = object! { "registers": vec![object! { "register": register, "value": object! { "\u{fb33}": 1, "\u{1f600}": 2, "a": -3 } }] };
    let taken = object! { "identities": vec![object! { "kind": "RUN", "key": "run-2", "digest": sha256(b"run-2") }] };
    told.next(
        &mission,
        object! { "type": "startRun", "runId": "run-2" },
        merge(merge(opened(&two), write), taken),
        (1, 1),
    );
    told.next(
        &two,
        object! { "type": "completeRun", "runId": "run-2", "ownerEpoch": "1" },
        object! {},
        (1, 1),
    );
    told.sealed
}

/// The subject of a run of the golden mission, or of the mission itself.
pub fn subject(run: Option<&str>) -> Subject {
    let mission = "mission-1".parse().unwrap();
    match run {
        Some(run) => Subject::run(mission, run.parse().unwrap()),
        None => Subject::mission(mission),
    }
}

fn merge(mut into: Value, from: Value) -> Value {
    if let (Value::Object(into), Value::Object(from)) = (&mut into, from) {
        into.extend(from);
    }
    into
}

impl Telling {
    fn next(&mut self, subject: &Subject, command: Value, outcome: Value, part: (u64, u64)) {
        let stream = subject.stream().to_string();
        let told = self.sealed.len() as u64 + 1;
        let start = Head {
            revision: U64(0),
            hash: Digest::ZERO,
        };
        let head = self
            .heads
            .iter()
            .rev()
            .find(|(known, _)| *known == stream)
            .map_or(start, |(_, head)| *head);
        let empty = |name: &str| (name.to_owned(), Value::Array(Vec::new()));
        let mut all: aiws::json::Object = [
            "transitions",
            "registers",
            "accounts",
            "identities",
            "gates",
            "opens",
            "due",
        ]
        .map(empty)
        .into();
        all.insert("owner".to_owned(), Value::Null);
        let value = object! {
            "stream": stream.clone(),
            "revision": (head.revision.0 + 1).to_string(),
            "prevHash": head.hash,
            "subject": canonical::to_value(subject).unwrap(),
            "type": command.get("type").cloned().unwrap(),
            "requestId": format!("request-{}", told + 1 - part.0),
            "requestDigest": sha256(format!("request-{}", told + 1 - part.0).as_bytes()),
            "part": object! { "k": part.0.to_string(), "of": part.1.to_string() },
            "actorId": "operator",
            "actorKind": "HUMAN",
            "policy": object! { "id": "policy", "revision": "3" },
            "decisionClass": "AT_TERMINAL",
            "decisionRef": Value::Null,
            "atMs": (1_700_000_000_000 + told).to_string(),
            "ownerEpoch": subject.run_id.as_ref().map(|_| "1"),
            "command": command,
            "facts": canonical::to_value(&praxis_model::facts::RecordedFacts::default()).unwrap(),
            "outcome": merge(Value::Object(all), outcome),
            "result": object! { "told": told.to_string() },
            "codec": object! { "profile": "aiws-handoff/1", "version": "0" },
        };
        let event: Event = canonical::from_value(&value).unwrap();
        let sealed = seal(event).unwrap();
        for opened in &sealed.event.outcome.opens {
            self.heads.push((
                opened.to_string(),
                Head {
                    revision: U64(0),
                    hash: sealed.hash,
                },
            ));
        }
        self.heads.push((stream, sealed.head()));
        self.sealed.push(sealed);
    }
}

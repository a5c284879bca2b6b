//! What cannot be decided again: events behind a damaged one, events behind a foreign one, and the foreign one itself.
//! Invariant: every event of the log is counted once, and none of these counts as decided.
//! The store's files are changed as bytes, while nobody has them open.

use std::collections::BTreeMap;

use praxis_engine::Shutdown;
use praxis_journal::verify::DeepReport;
use praxis_journal::{Journal, Options, VerifyReport};
use praxis_journal_format::seal::hash_of;
use praxis_journal_format::{Frame, Sealed, export};
use praxis_model::command::CommandType as C;

use crate::bodies::{self, lin};
use crate::host::no_fork_holds_files;
use crate::oracle::export_of;
use crate::tamper::replace;
use crate::world::{HUMAN, W1, World};

/// A closed store of two runs: the second begins after the first has settled.
async fn two_runs() -> (World, Vec<(u64, Sealed)>) {
    let mut w = World::new(false, None).await;
    w.start(&lin(), &bodies::config()).await;
    w.apply("a").await;
    w.run = "second".to_owned();
    w.start_run(&lin()).await;
    let body = bodies::assess(&*w.state().await, "verify", "v-1", "PASS");
    w.send(W1, body).await;
    w.run = "run".to_owned();
    for (kind, actor, name) in [
        ("verify", W1, "v-2"),
        ("verify", W1, "v-3"),
        ("accept", HUMAN, "c-1"),
    ] {
        let verdict = if kind == "verify" { "PASS" } else { "ACCEPTED" };
        let body = bodies::assess(&*w.state().await, kind, name, verdict);
        w.send(actor, body).await;
    }
    let export = export_of(&w);
    w.close(Shutdown::Drain).await;
    (w, export::read(&export).unwrap().events)
}

fn verified(w: &World) -> VerifyReport {
    no_fork_holds_files();
    let journal = Journal::open(&w.store(), &Options::default()).unwrap();
    let report = journal.verify_deep(&mut |_, _| {}).unwrap();
    // A damaged store is not written; the report is what counts here.
    let _ = journal.close();
    report
}

/// The row of an event with other bytes, whole with its checks.
fn row(events: &[(u64, Sealed)], at: usize, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (_, sealed) = &events[at];
    let mut earlier = events[..at].iter().rev();
    let previous = earlier.find(|(_, other)| other.event.stream == sealed.event.stream);
    let frame = |hash, bytes| {
        let mut out = Vec::new();
        let whole = Frame {
            hash,
            bytes,
            ..Frame::of(sealed, previous.map_or(0, |(sequence, _)| *sequence), 0)
        };
        whole.encode(&mut out).unwrap();
        out
    };
    (
        frame(sealed.hash, &sealed.bytes),
        frame(hash_of(bytes), bytes),
    )
}

fn settlement(events: &[(u64, Sealed)]) -> usize {
    let is_settle = |(_, sealed): &(u64, Sealed)| sealed.event.kind == C::Settle;
    events.iter().position(is_settle).unwrap()
}

/// What is behind the settlement: of its own run nothing is known any more; of the rest only what asks for a gate.
fn behind() -> BTreeMap<C, u64> {
    BTreeMap::from([
        (C::StartRun, 1),
        (C::ActivateGraph, 1),
        (C::Verify, 2),
        (C::Accept, 1),
    ])
}

/// Proves T-11: behind an event that cannot be read nothing of its run counts as decided, and elsewhere nothing that
/// asks for gates which the log no longer tells; the rest is decided.
#[tokio::test]
async fn t_11_behind_a_damaged_event() {
    let (w, events) = two_runs().await;
    let at = settlement(&events);
    let bytes = &events[at].1.bytes;
    let mut bent = bytes.clone();
    // A digit of the time: the frame's place in its stream can still be read.
    let digit = bytes
        .windows(7)
        .position(|part| part == b"\"atMs\":")
        .unwrap()
        + 8;
    bent[digit] ^= 1;
    assert!(replace(&w.store(), bytes, &bent) > 0);
    let report = verified(&w);
    let deep = DeepReport {
        reached: at as u64 + 1,
        undecided: behind(),
        unreadable: 1,
        ..DeepReport::default()
    };
    assert_eq!(report.deep, Some(deep));
    assert!(report.findings.iter().all(|found| found.command.is_none()));
}

/// Proves T-11: an event of another codec version is named as that and not decided, nor is what is behind it.
#[tokio::test]
async fn t_11_behind_an_event_of_another_version() {
    let (w, events) = two_runs().await;
    let at = settlement(&events);
    let text = String::from_utf8(events[at].1.bytes.clone()).unwrap();
    let other = text.replace("\"version\":\"0\"", "\"version\":\"7\"");
    assert_ne!(text, other);
    let (old, new) = row(&events, at, other.as_bytes());
    assert!(replace(&w.store(), &old, &new) > 0);
    let report = verified(&w);
    let deep = DeepReport {
        reached: at as u64 + 1,
        undecided: behind(),
        other_versions: BTreeMap::from([(7, 1)]),
        ..DeepReport::default()
    };
    assert_eq!(report.deep, Some(deep));
    assert!(
        report
            .findings
            .iter()
            .any(|found| found.sequence == Some(events[at].0))
    );
}

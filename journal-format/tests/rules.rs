//! The rules over many events, the link that makes the next one, and the bounds, each at its edge.
//!
//! Invariant: what is one step off is refused, with the place that was expected. Found by mutation testing.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};

use aiws::decimal::U64;
use aiws::digest::{Digest, sha256};
use aiws::json::Value;
use aiws::object;
use praxis_journal_format::chain::{Chain, ChainFault, belongs};
use praxis_journal_format::limits::{
    FRAME_HEADER_BYTES, MAX_EVENT_BYTES, MAX_EXPORT_LINE_BYTES, MAX_FRAME_BYTES, MAX_LINE_DEPTH,
};
use praxis_journal_format::seal::hash_of;
use praxis_journal_format::{FORMAT_VERSION, FormatError, Frame, Sealed, link, seal};
use praxis_model::command::{Body, Command};
use praxis_model::decision::Decision;
use praxis_model::event::{Event, Head, Outcome};
use praxis_model::facts::Facts;

#[allow(dead_code)]
mod telling;

use telling::{golden, subject};

/// The chain of the first events of the golden journal.
fn walked(events: &[Sealed]) -> Chain {
    let mut chain = Chain::new();
    for (sequence, sealed) in (1..).zip(events) {
        chain.accept(sequence, sealed).unwrap();
    }
    chain
}

/// The golden journal's event at an index, changed and sealed anew.
fn changed(at: usize, change: impl FnOnce(&mut Event)) -> Sealed {
    let mut event = golden().remove(at).event;
    change(&mut event);
    seal(event).unwrap()
}

/// Why a changed event is refused behind the events before it; the chain stays where it was.
fn refused(at: usize, sequence: u64, change: impl FnOnce(&mut Event)) -> ChainFault {
    let mut chain = walked(&golden()[..at]);
    let before = format!("{chain:?}");
    let error = chain.accept(sequence, &changed(at, change)).unwrap_err();
    assert_eq!(format!("{chain:?}"), before);
    error.fault
}

/// Every rule over many events refuses what is one step off, and says what it expected.
#[test]
fn each_rule_of_a_chain_refuses_its_own_break() {
    let events = golden();
    let (mission, one) = (subject(None).stream(), subject(Some("run-1")).stream());
    let two = subject(Some("run-2"));
    for sequence in [0, 2, 4] {
        let expected = ChainFault::Sequence { expected: 3 };
        assert_eq!(refused(2, sequence, |_| ()), expected, "{sequence}");
    }
    let elsewhere = two.stream();
    let fault = refused(2, 3, |event| event.stream = elsewhere.clone());
    assert_eq!(fault, ChainFault::Stream);
    for revision in [1, 3] {
        let fault = refused(2, 3, |event| event.revision = U64(revision));
        assert_eq!(fault, ChainFault::Revision { expected: 2 });
    }
    let fault = refused(2, 3, |event| event.prev_hash = Digest::ZERO);
    let (expected, found) = (events[1].hash, Digest::ZERO);
    assert_eq!(fault, ChainFault::PrevHash { expected, found });
    let fault = refused(1, 2, |event| {
        event.stream = two.stream();
        event.subject = two.clone();
    });
    assert_eq!(fault, ChainFault::NotOpened);
    // Twice in one event, a stream that is there, the event's own before it is there.
    let twice = |stream| ChainFault::OpenedTwice { stream };
    let opens = vec![two.stream(), two.stream()];
    let fault = refused(4, 5, |event| event.outcome.opens = opens);
    assert_eq!(fault, twice(two.stream()));
    let fault = refused(4, 5, |event| event.outcome.opens = vec![one.clone()]);
    assert_eq!(fault, twice(one.clone()));
    let fault = refused(0, 1, |event| event.outcome.opens = vec![mission.clone()]);
    assert_eq!(fault, twice(mission.clone()));
}

/// Proves T-82: the parts of one append stand together: none is missing, of another request, or late; a log that ends
/// inside an append says which part it lacks. What follows an event that cannot be read may be any part.
#[test]
fn t_82_the_parts_of_an_append_stand_together() {
    let events = golden();
    let second = ChainFault::Part {
        expected: Some((2, 2)),
    };
    let changes: [fn(&mut Event); 4] = [
        |event| event.part.k = U64(1),
        |event| event.part.of = U64(3),
        |event| event.request_id = None,
        |event| event.request_digest = Digest::ZERO,
    ];
    for change in changes {
        assert_eq!(refused(2, 3, change), second);
    }
    let first = ChainFault::Part { expected: None };
    assert_eq!(refused(1, 2, |event| event.part.k = U64(2)), first);
    for (events_taken, faulty) in [(1, false), (2, true), (3, false)] {
        let ended = walked(&events[..events_taken]).ended();
        assert_eq!(ended.is_err(), faulty, "{events_taken}");
    }
    let error = walked(&events[..2]).ended().unwrap_err();
    assert_eq!((error.sequence, error.fault), (3, second));
    let mut chain = walked(&events[..2]);
    chain.skip(3);
    assert!(chain.ended().is_ok());
    chain.accept(4, &changed(2, |_| ())).unwrap();
}

/// An event may open many streams, in any order.
#[test]
fn an_event_opens_many_streams() {
    let opens: Vec<_> = ["b", "a", "c"]
        .map(|run| subject(Some(run)).stream())
        .into();
    let sealed = changed(0, |event| event.outcome.opens = opens.clone());
    let chain = walked(std::slice::from_ref(&sealed));
    for stream in &opens {
        let head = chain.head(stream).unwrap();
        assert_eq!((head.revision.0, head.hash), (0, sealed.hash));
    }
    assert!(chain.head(&subject(Some("d")).stream()).is_none());
    // Only the mission has an event.
    let heads: Vec<_> = chain.heads().collect();
    assert_eq!(heads, [(&subject(None).stream(), &sealed.head())]);
}

/// A run's event may stand in its mission's stream (T-02), and in no stream but these two.
#[test]
fn a_run_may_be_kept_in_the_missions_stream() {
    let (mission, one) = (subject(None), subject(Some("run-1")));
    assert!(belongs(&one, &one.stream()) && belongs(&one, &mission.stream()));
    assert!(belongs(&mission, &mission.stream()) && !belongs(&mission, &one.stream()));
    assert!(!belongs(&one, &subject(Some("run-2")).stream()));
    let first = golden().remove(0);
    let second = changed(1, |event| {
        event.stream = mission.stream();
        event.revision = U64(2);
        event.prev_hash = first.hash;
    });
    let chain = walked(&[first, second.clone()]);
    assert_eq!(chain.head(&mission.stream()), Some(&second.head()));
    assert_eq!(chain.sequence(), 2);
}

/// One unreadable and one wrong event are one finding each: the walk goes on behind them.
#[test]
fn a_walk_goes_on_behind_what_was_reported() {
    let events = golden();
    let mut chain = Chain::new();
    assert_eq!(chain.sequence(), 0);
    chain.accept(1, &events[0]).unwrap();
    let wrong = changed(1, |event| event.prev_hash = Digest::ZERO);
    assert!(chain.accept(2, &wrong).is_err());
    chain.resume(2, &wrong);
    assert_eq!(chain.sequence(), 2);
    assert_eq!(chain.head(&wrong.event.stream), Some(&wrong.head()));
    let next = changed(2, |event| event.prev_hash = wrong.hash);
    chain.accept(3, &next).unwrap();
    chain.skip(4);
    assert_eq!(chain.sequence(), 4);
    chain.accept(5, &events[4]).unwrap();
}

fn facts() -> Facts {
    Facts {
        allowed: true,
        actor_id: "operator".parse().unwrap(),
        actor_kind: aiws::record::ActorKind::Human,
        policy: aiws::canonical::from_value(&object! { "id": "policy", "revision": "3" }).unwrap(),
        decision_class: "AT_TERMINAL".to_owned(),
        decision_ref: Some("decision-1".parse().unwrap()),
        authorized_at_ms: 6,
        now_ms: 7,
        materials: BTreeMap::new(),
        material_errors: BTreeMap::new(),
        admissions: BTreeMap::new(),
        registers: Vec::new(),
        account: None,
        outer_gates: Vec::new(),
        clear_evidence: BTreeSet::new(),
        restart_allowed: true,
        claim_fingerprint: None,
        recovery_authority: false,
        clock_stepped: false,
    }
}

/// A link is the head's next revision behind the head's hash, in the subject's own stream; what it is about comes
/// from the command, the decision and the facts, and it seals into a chain.
#[test]
fn a_link_follows_its_head() {
    let run = subject(Some("run-1"));
    let body = object! { "type": "revokeApproval", "approvalId": "approval-1", "runId": "run-1", "reason": "no" };
    let body: Body = aiws::canonical::from_value(&body).unwrap();
    let command = Command {
        mission_id: run.mission_id.clone(),
        run_id: run.run_id.clone(),
        request_id: Some("request-1".parse().unwrap()),
        request_digest: sha256(b"request-1"),
        expected_revision: None,
        owner_epoch: None,
        body: body.clone(),
    };
    let decision = Decision {
        command: body.clone(),
        outcome: Outcome::default(),
        result: Value::from("done"),
        same: Vec::new(),
        before_ms: Vec::new(),
    };
    let events = golden();
    let head = Head {
        revision: U64(3),
        hash: events[3].hash,
    };
    let facts = facts();
    let event = link(run.clone(), head, &command, &decision, &facts, 7, Some(2));
    assert_eq!((event.revision, event.prev_hash), (U64(4), head.hash));
    assert_eq!(
        (&event.stream, &event.subject),
        (&run.stream(), &run.clone())
    );
    assert_eq!((event.kind, &event.command), (body.kind(), &body));
    assert_eq!((event.at_ms, event.owner_epoch), (U64(7), Some(U64(2))));
    assert_eq!(event.request_digest, command.request_digest);
    assert_eq!(event.facts, facts.recorded());
    let mut chain = walked(&events[..4]);
    chain.accept(5, &seal(event).unwrap()).unwrap();
}

/// An event of the golden journal whose canonical form has so many bytes.
fn of_size(bytes: usize) -> Event {
    let mut event = golden().remove(0).event;
    let filled = |size: usize| Value::from("x".repeat(size));
    event.result = filled(0);
    let empty = aiws::canonical::bytes_of(&event).unwrap().len();
    event.result = filled(bytes - empty);
    event
}

/// The largest event is sealed, framed and read back; one byte more is refused at every door, by its size.
#[test]
fn the_largest_event_fits_everywhere_and_a_larger_one_nowhere() {
    let sealed = seal(of_size(MAX_EVENT_BYTES)).unwrap();
    assert_eq!(sealed.bytes.len(), MAX_EVENT_BYTES);
    let mut bytes = b"before".to_vec();
    Frame::of(&sealed, 0, 0).encode(&mut bytes).unwrap();
    let bytes = bytes.split_off(6);
    assert_eq!(bytes.len(), MAX_FRAME_BYTES);
    assert_eq!(Frame::decode(&bytes).unwrap().bytes, sealed.bytes);
    assert_eq!(Sealed::from_bytes(&sealed.bytes).unwrap(), sealed);

    let (found, limit) = (MAX_EVENT_BYTES + 1, MAX_EVENT_BYTES);
    let larger = of_size(found);
    let too_large = FormatError::TooLarge { found, limit };
    assert_eq!(seal(larger.clone()), Err(too_large.clone()));
    let larger = aiws::canonical::bytes_of(&larger).unwrap();
    assert_eq!(Sealed::from_bytes(&larger), Err(too_large.clone()));
    let frame = Frame {
        codec: FORMAT_VERSION,
        previous: 0,
        boot: 0,
        hash: hash_of(&larger),
        bytes: &larger,
    };
    let mut out = b"before".to_vec();
    assert_eq!(frame.encode(&mut out), Err(too_large));
    assert_eq!(out, b"before");
    for more in [1, 2] {
        let long = vec![FORMAT_VERSION; MAX_FRAME_BYTES + more];
        let refused = Frame::decode(&long).unwrap_err().to_string();
        assert!(refused.contains("expected at most"), "{more}: {refused}");
    }
}

/// The bounds are the ones that the written form says (`FORMAT.md`): a changed one would read other files.
#[test]
fn the_bounds_are_the_written_ones() {
    assert_eq!((FRAME_HEADER_BYTES, MAX_EVENT_BYTES), (65, 4_194_304));
    assert_eq!(MAX_FRAME_BYTES, 4_194_369);
    assert_eq!((MAX_EXPORT_LINE_BYTES, MAX_LINE_DEPTH), (4_194_560, 65));
}

/// A frame whose hash is not the one of its event is refused by whoever reads the event from it.
#[test]
fn a_frame_does_not_lend_its_hash() {
    let events = golden();
    let mut frame = Frame::of(&events[0], 0, 0);
    frame.hash = events[1].hash;
    let (expected, found) = (events[1].hash, events[0].hash);
    let refused = Err(FormatError::Hash { expected, found });
    assert_eq!(Sealed::from_frame(&frame), refused);
    let mut bytes = Vec::new();
    frame.encode(&mut bytes).unwrap();
    assert!(Frame::decode(&bytes).is_err());
    // Who only looks sees what is written.
    assert_eq!(Frame::decode_unhashed(&bytes), Ok(frame));
}

//! Forged logs of sequences: hashes, links and parts are right, and what stands there was never decided.
//! Invariant: plain verification is content with every forgery, so that what is found is found by deciding again.
//! The forged stores are written through the ledger itself, append by append.

use std::sync::Arc;

use aiws::decimal::U64;
use aiws::digest::Digest;
use aiws::record::EffectClass;
use praxis_engine::Shutdown;
use praxis_journal::{Append, Conditions, FileDisk, Ledger, Options, VerifyReport};
use praxis_journal_format::{Sealed, seal};
use praxis_model::account::Posting;
use praxis_model::command::{Body, CommandType};
use praxis_model::event::Event;
use praxis_model::stream::Subject;
use praxis_model::table::{Launch, launches};
use tempfile::TempDir;

use crate::sequences::{RUN, conclude, launch, opened, receive, worker};
use crate::support::{World, dec, id};

type Log = Vec<Vec<Event>>;
type Forge = fn(&mut Vec<Event>);

/// The appends of a store in which a worker did two nodes of LIN by sequences.
async fn history() -> Log {
    let world = World::new(EffectClass::External);
    let open = opened(&world).await;
    let w1 = worker(&open);
    for step in 0..4 {
        let steps = match step {
            0 => launch("a"),
            1 => conclude(0),
            2 => receive(&*open.state(RUN).await, "b"),
            _ => conclude(1),
        };
        let request = id(&format!("q-{step}"));
        w1.sequence(&request, steps).await.expect("accepted");
    }
    let journal = open.host.journal();
    let mut log = Log::new();
    for sequence in 1..=journal.view().sequence() {
        let event = journal
            .read(sequence)
            .expect("read")
            .expect("an event")
            .event;
        match event.part.k.get() {
            1 => log.push(vec![event]),
            _ => log.last_mut().expect("a first part").push(event),
        }
    }
    world.close(open, Shutdown::Drain).await;
    log
}

/// The log written anew, each event linked to the one before it and each part numbered; what both verifications say.
fn written(log: Log) -> (VerifyReport, VerifyReport) {
    let kept = TempDir::new().expect("a directory");
    let disk = Arc::new(FileDisk::new(kept.path()));
    let store = id("forged");
    let mut ledger = Ledger::create(disk, store, &Options::default()).expect("a store");
    for parts in log {
        let (of, mut sealed) = (U64(parts.len() as u64), Vec::<Sealed>::new());
        for (mut event, k) in parts.into_iter().zip(1..) {
            (event.part.k, event.part.of) = (U64(k), of);
            let before = sealed
                .iter()
                .rev()
                .find(|part| part.event.stream == event.stream);
            let head = match before {
                Some(part) => Some(part.head()),
                None => ledger.view().head(&event.stream).map(|row| row.head),
            };
            event.prev_hash = head.map_or(Digest::ZERO, |head| head.hash);
            event.revision = U64(head.map_or(0, |head| head.revision.get()) + 1);
            sealed.push(seal(event).expect("what is forged can be sealed"));
        }
        let first = &sealed[0].event;
        let (mission, run) = (
            Subject::mission(first.subject.mission_id.clone()),
            first.subject.clone(),
        );
        let launching = sealed
            .iter()
            .any(|part| launches(part.event.kind) != Launch::Nothing);
        let conditions = Conditions {
            head: true,
            fence: first
                .owner_epoch
                .map(|epoch| (first.stream.clone(), epoch.get())),
            gates: launching.then(|| vec![run, mission]),
            ..Conditions::default()
        };
        let now_ms = first.at_ms.get();
        let append = Append { sealed, conditions };
        ledger
            .commit(&[append], now_ms)
            .remove(0)
            .expect("the writer takes it");
    }
    ledger.flush_index().expect("flushed");
    let plain = ledger.verify(&mut |_, _| {}).expect("read");
    let deep = ledger.verify_deep(&mut |_, _| {}).expect("read");
    ledger.close().expect("closed");
    (plain, deep)
}

/// The append that has a step of one type for the n-th time, and where in it.
fn place(log: &Log, kind: CommandType, number: usize) -> (usize, usize) {
    let all = log.iter().enumerate().flat_map(|(at, parts)| {
        let steps = parts.iter().enumerate();
        steps
            .filter(|(_, event)| event.kind == kind)
            .map(move |(step, _)| (at, step))
    });
    all.collect::<Vec<_>>()[number]
}

/// Proves T-82, T-11: a log of sequences is reached by deciding again; one in which a dispatch stands without its
/// admission, or a part was changed, left out or moved inside its append, is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_a_forged_sequence_is_found_by_deciding_again() {
    let log = history().await;
    let (plain, deep) = written(log.clone());
    assert!(plain.is_sound() && deep.is_sound(), "{:?}", deep.findings);
    let (receipt, admitted) = place(&log, CommandType::AdmitConsumer, 1);
    let (_, dispatched) = place(&log, CommandType::Dispatch, 1);
    let (ended, settled) = place(&log, CommandType::Settle, 1);
    assert_eq!((admitted, dispatched, settled), (2, 3, 0));
    let forgeries: [(&str, CommandType, Forge, usize); 5] = [
        (
            "no admission",
            CommandType::Dispatch,
            |parts| drop(parts.remove(2)),
            receipt,
        ),
        (
            "no receipt",
            CommandType::AdmitConsumer,
            |parts| drop(parts.drain(..2)),
            receipt,
        ),
        (
            "dispatched first",
            CommandType::Dispatch,
            |parts| parts.swap(2, 3),
            receipt,
        ),
        (
            "a cheaper settlement",
            CommandType::Settle,
            |parts| cheaper(parts),
            ended,
        ),
        (
            "a boundary of its own",
            CommandType::CommitBoundary,
            |parts| drop(parts.remove(0)),
            ended,
        ),
    ];
    for (name, kind, forge, at) in forgeries {
        let mut forged = log.clone();
        forge(&mut forged[at]);
        forged.truncate(at + 1);
        let (plain, deep) = written(forged);
        assert!(plain.is_sound(), "{name}: {:?}", plain.findings);
        let first = deep
            .findings
            .first()
            .unwrap_or_else(|| panic!("{name}: nothing was found"));
        assert_eq!(first.command, Some(kind), "{name}: {first:?}");
    }
}

/// The account is told of less than the command says.
fn cheaper(parts: &mut [Event]) {
    let settle = &mut parts[0];
    assert!(matches!(settle.command, Body::Settle(_)));
    for posting in &mut settle.outcome.accounts {
        if let Posting::Settle { actual, .. } = posting {
            *actual = dec(1);
        }
    }
}

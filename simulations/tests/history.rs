//! Long histories: thousands of commands over drawn graphs, with everything that can go wrong, judged after every step.
//!
//! Invariant: a history is data, and the same seed gives the same one. `PRAXIS_HISTORIES` says how many beside the fixed
//! ones, counted from `PRAXIS_SEED`. Run by `cargo test -p praxis-simulations --test history`.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::thread;

use praxis_simulations::campaign;
use praxis_simulations::fault::Fault;
use praxis_simulations::packet::{Packet, shrink};
use praxis_simulations::plan::{HISTORY, Step, history};
use praxis_simulations::sim::{Options, Outcome, run};

/// Seeds that every run of the tests tries.
const FIXED: [u64; 2] = [1, 2];

/// Commands that a history has at least.
const COMMANDS: u64 = 2_000;

/// Runs that a failure is cut down in, at most.
const SHRINKS: usize = 120;

fn options() -> Options {
    Options {
        beside: 1,
        ..Options::default()
    }
}

fn allowed() -> BTreeSet<Fault> {
    Fault::ALL.iter().copied().collect()
}

fn carried(seed: u64) -> Outcome {
    let plan = history(seed, &allowed(), HISTORY);
    let outcome = campaign::quietly(|| run(&plan, options()));
    if let Some((_, broken)) = &outcome.broken {
        println!("seed {seed} breaks {broken}; it is being cut down");
        let (small, outcome) = campaign::quietly(|| shrink(&plan, broken, options(), SHRINKS));
        let packet = Packet::of(&small, options(), &outcome);
        let path = std::env::temp_dir().join(format!("praxis-history-{seed}.json"));
        std::fs::write(&path, packet.write().unwrap()).unwrap();
        println!("  praxis simulate --replay {}", path.display());
    }
    outcome
}

fn base() -> u64 {
    let text = std::env::var("PRAXIS_SEED").unwrap_or_else(|_| "1".to_owned());
    let digits: String = text.chars().take(15).collect();
    let number = text.parse().or_else(|_| u64::from_str_radix(&digits, 16));
    number.unwrap_or_else(|_| {
        let hash = aiws::digest::sha256(text.as_bytes()).0;
        hash.iter()
            .take(7)
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    })
}

/// Proves STO-4: after each of thousands of commands over drawn graphs, with duplicates, deposed owners, jumps of the clock
/// and crashes, every numbered invariant holds; in the end the log folds and verifies, and every accepted command that
/// comes a second time gets its first answer and stores nothing.
#[test]
fn sto_4_long_histories_keep_every_promise() {
    let more: u64 = std::env::var("PRAXIS_HISTORIES").map_or(0, |text| text.parse().unwrap());
    let mut seeds: Vec<u64> = FIXED.to_vec();
    seeds.extend((0..more).map(|at| base().wrapping_add(at)));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (mut failed, mut short) = (Vec::new(), Vec::new());
    let mut marks = BTreeSet::new();
    for some in seeds.chunks(threads) {
        let outcomes: Vec<(u64, Outcome)> = thread::scope(|scope| {
            let all: Vec<_> = some
                .iter()
                .map(|seed| scope.spawn(move || (*seed, carried(*seed))))
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        for (seed, outcome) in outcomes {
            println!(
                "history {seed}: {} commands, {} events, {} crash states, {} kinds of fault",
                outcome.commands,
                outcome.events,
                outcome.images.len(),
                outcome.struck.len()
            );
            match outcome.broken {
                Some((step, broken)) => failed.push((seed, step, broken)),
                None if outcome.commands < COMMANDS => short.push((seed, outcome.commands)),
                None => {}
            }
            marks.extend(outcome.marks);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(short.is_empty(), "too few commands: {short:?}");
    for mark in [
        "invalidated",
        "iterated",
        "left-out",
        "summarized",
        "replayed",
    ] {
        assert!(
            marks.contains(mark),
            "no history has come to {mark}: {marks:?}"
        );
    }
}

/// A part of a history twice is the same run, and its packet replays it.
#[test]
fn a_history_is_data() {
    let plan = history(3, &allowed(), 60);
    assert!(plan.named && plan.steps.len() == 60);
    let story = campaign::quietly(|| run(&plan, options()));
    let packet = Packet::of(&plan, options(), &story);
    let read = Packet::read(&packet.write().unwrap()).unwrap();
    assert_eq!(read.plan().steps, plan.steps);
    assert_eq!(read.plan().graphs, plan.graphs);
    let again = campaign::quietly(|| read.replay(options()));
    assert_eq!((again.trace, again.events), (story.trace, story.events));
    let whole = history(3, &allowed(), HISTORY);
    assert!(whole.steps.iter().any(|step| matches!(step, Step::Audit)));
    let packet = Packet::of(&whole, options(), &story);
    assert!(
        Packet::read(&packet.write().unwrap()).is_ok(),
        "a whole history is a packet"
    );
}

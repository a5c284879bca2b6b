//! Seeds of the simulator: no seed finds anything, the same seed is the same run, a defect is found, and what was once
//! found stays mended.
//!
//! Invariant: the seeds follow from `PRAXIS_SEED` (a number or the digits of a commit), so every commit is tried with others.
//! Run by `cargo test -p praxis-simulations`.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::path::Path;

use praxis_simulations::campaign::{self, Order, seeds};
use praxis_simulations::fault::Fault;
use praxis_simulations::packet::{Packet, shrink};
use praxis_simulations::plan::draw;
use praxis_simulations::sim::{Options, run};

/// Seeds per commit in this test; the command line runs thousands.
const SEEDS: u64 = 40;

fn base() -> u64 {
    let text = std::env::var("PRAXIS_SEED").unwrap_or_else(|_| "1".to_owned());
    let digits: String = text.chars().take(15).collect();
    let number = text.parse().or_else(|_| u64::from_str_radix(&digits, 16));
    // Any other text is a seed too.
    number.unwrap_or_else(|_| {
        let hash = aiws::digest::sha256(text.as_bytes()).0;
        hash.iter()
            .take(7)
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    })
}

/// Proves STO-2, STO-4: no invariant breaks on the seeds of this commit, and every tenth of them run twice is the same run.
#[test]
fn sto_2_the_seeds_of_this_commit() {
    let order = Order {
        base: base(),
        seeds: SEEDS,
        twice: 10,
        ..Order::default()
    };
    let summary = seeds(&order, &|_| ());
    for packet in &summary.failures {
        let path = std::env::temp_dir().join(format!("praxis-seed-{}.json", packet.seed));
        std::fs::write(&path, packet.write().unwrap()).unwrap();
        println!(
            "seed {} breaks invariant {}: {}\n  praxis simulate --replay {}",
            packet.seed,
            packet.invariant,
            packet.what,
            path.display()
        );
    }
    println!(
        "{} seeds from {}: {} events, {} crash states, {} kinds of fault",
        summary.seeds,
        order.base,
        summary.events,
        summary.images.len(),
        summary.struck.len()
    );
    assert_eq!((summary.seeds, summary.failed), (SEEDS, 0));
    assert_eq!((summary.twice, summary.unlike), (SEEDS / 10, 0));
    assert!(summary.events > SEEDS * 20, "hardly anything happened");
}

/// A promise that is broken by order comes out as a packet, is cut down, and breaks again when the packet is replayed.
#[test]
fn the_canary_sings() {
    campaign::quietly(|| {
        let plan = draw(7, &Fault::ALL.iter().copied().collect(), 30);
        let options = Options {
            canary: true,
            ..Options::default()
        };
        let outcome = run(&plan, options);
        let (_, broken) = outcome.broken.as_ref().unwrap();
        assert!(broken.what.contains("canary"));
        let (small, outcome) = shrink(&plan, broken, options, 100);
        assert!(small.steps.is_empty(), "{:?}", small.steps);
        let packet = Packet::of(&small, options, &outcome);
        let read = Packet::read(&packet.write().unwrap()).unwrap();
        assert_eq!(read, packet);
        let again = read.replay(options);
        assert_eq!(again.trace, outcome.trace);
        assert_eq!(again.broken, outcome.broken);
        let silent = Options {
            oracle: false,
            ..options
        };
        assert_eq!(read.replay(silent).broken, None, "nobody judges");
    });
}

/// The controls of a report pass.
#[test]
fn the_controls_pass() {
    let controls = campaign::controls(&[]);
    assert!(controls.canary && controls.silent, "{controls:?}");
}

/// Text that is no packet, or one of another version, is refused with what was expected.
#[test]
fn what_is_no_packet_is_refused() {
    for (text, word) in [
        ("", "packet"),
        ("{}", "packet"),
        ("[1]", "packet"),
        (
            r#"{"format":"praxis-simulation","version":9,"story":"","foundBy":"","seed":"1","steps":[],"invariant":0,"what":"","trace":""}"#,
            "version",
        ),
    ] {
        let error = Packet::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}

/// Everything that was ever found and mended: each packet has its story, and breaks nothing any more.
#[test]
fn regressions_stay_mended() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "json") {
            names.insert(path);
        }
    }
    assert!(!names.is_empty(), "there is no regression at all");
    for path in names {
        let packet = Packet::read(&std::fs::read(&path).unwrap()).unwrap();
        assert!(!packet.story.is_empty(), "{} has no story", path.display());
        let outcome = campaign::quietly(|| packet.replay(Options::default()));
        assert_eq!(outcome.broken, None, "{}", path.display());
    }
}

//! The simulator proved: a planted defect makes the scenario fail that is there for it, in the words of that promise.
//!
//! Invariant: the plants of the storage alone have a row each, the others are the seeds' to find; the same scenario holds without it. Only where plants exist: not in a release build.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![cfg(debug_assertions)]

use std::collections::BTreeSet;
use std::sync::Arc;

use praxis_journal::{Ledger, Options};
use praxis_plant::{self as plant, Plant};
use praxis_simulations::disk::CrashDisk;
use praxis_simulations::meta;
use praxis_simulations::scenario::{ALL, Scenario};
use praxis_simulations::script::Script;

/// Plant, the scenario that must fail, and a word of the promise that it must find broken.
const TABLE: [(Plant, &str, &str); 5] = [
    (
        Plant::SyncRetried,
        "failed-sync",
        "acknowledged events are lost",
    ),
    (Plant::ReopenInPlace, "failed-sync", "STORE_CORRUPT"),
    (
        Plant::CommitNotDurable,
        "every-subset",
        "acknowledged events are lost",
    ),
    (Plant::CursorAhead, "every-operation", "the index has seen"),
    (Plant::TailUnchecked, "rollback", "expected Told"),
];

/// Proves STO-2: the crash scenarios find a sync that is retried and believed, a file that is trusted after a failed
/// sync, a commit that is not durable, and an index that is written ahead of the log. That they hold without a plant is what the crash tests show.
#[test]
fn sto_2_each_planted_defect_is_found_by_its_scenario() {
    let mut missed = Vec::new();
    for (planted, name, word) in TABLE {
        let scenario = Scenario::named(name).unwrap();
        let found = match plant::with(planted, || scenario.run()) {
            Ok(count) => format!("nothing in {count}"),
            Err(violation) => violation.to_string(),
        };
        println!("{planted:?}: {name} found {found}");
        if !found.contains(word) {
            missed.push((planted, name, found));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// No defect is planted in vain: a scenario or the seeds have a row for it.
#[test]
fn every_plant_has_a_row() {
    let of_scenarios = TABLE.iter().map(|(planted, ..)| *planted);
    let of_seeds = meta::all().into_iter().map(|it| it.plant);
    let rows: BTreeSet<Plant> = of_scenarios.chain(of_seeds).collect();
    let missing: Vec<&Plant> = Plant::ALL.iter().filter(|it| !rows.contains(it)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Proves STO-4: where the log's last event stands at a later place than it should, verification ends and names what is
/// missing, and no reader of the log passes over it. A planted defect found verification without an end.
#[test]
fn sto_4_a_gap_at_the_end_of_the_log_is_named() {
    let disk = Arc::new(CrashDisk::new());
    let id = "simulated".parse().unwrap();
    let mut ledger = Ledger::create(disk, id, &Options::default()).unwrap();
    let mut script = Script::new("mission").unwrap();
    let mut commit = |append| {
        for answer in ledger.commit(&[append], 0) {
            answer.unwrap();
        }
        ledger.view().sequence()
    };
    commit(script.start_run("one").unwrap());
    while commit(script.note("one").unwrap()) < 4 {}
    let end = plant::with(Plant::SequenceSkipped, || {
        commit(script.note("one").unwrap())
    });
    let report = ledger.verify(&mut |_, _| ()).unwrap();
    let wanted = format!("expected events {end} to {end}");
    let named = report.findings.iter().any(|it| it.what.contains(&wanted));
    assert!(named, "{:?}", report.findings);
    let consumer = "consumer".parse().unwrap();
    let refused = ledger.pending(&consumer, 100).unwrap_err();
    assert!(refused.to_string().contains("missing"), "{refused}");
}

/// A plant ends with its work, also when that panics: nothing else is run under it.
#[test]
fn a_plant_ends_with_its_work() {
    let scenario = Scenario::named("roll-over").unwrap();
    let caught = std::panic::catch_unwind(|| {
        plant::with(Plant::CommitNotDurable, || {
            scenario.run().map(drop).unwrap();
        })
    });
    assert!(caught.is_err(), "the plant was not found");
    scenario.run().unwrap();
    assert!(ALL.iter().any(|it| it.name == scenario.name));
}

//! Crashes of the real store on a disk that loses unsynced writes; every number printed is counted here.
//!
//! Invariant: no state that the disk could be in after a crash loses an acknowledged event or keeps half a batch.
//! Run by `cargo test -p praxis-simulations`.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use praxis_journal::{Append, Ledger, Options, StoreError};
use praxis_simulations::crash::{HOT_LOG, INDEX, Told, drive, go_on, judge};
use praxis_simulations::disk::{CrashDisk, Kind, Survival};
use praxis_simulations::script::Script;

/// Up to this many pending writes all subsets are tried; the scenarios here stay below it.
const EXHAUSTIVE: usize = 14;

/// Six appends, one of them in two parts, each a commit of its own.
fn six() -> Vec<Vec<Append>> {
    let mut script = Script::new("mission").unwrap();
    script.filling = 400;
    vec![
        vec![script.start_run("one").unwrap()],
        vec![script.note("one").unwrap()],
        vec![script.spend("one", 7).unwrap()],
        vec![script.start_run("two").unwrap()],
        vec![script.note("two").unwrap()],
        vec![script.complete("one", 1).unwrap()],
    ]
}

/// What a scenario went through.
#[derive(Default)]
struct Count {
    tried: u64,
    images: HashSet<u64>,
}

impl Count {
    /// Judges a disk unless the same image was judged under the same promises; every 16th state also goes on.
    fn state(
        &mut self,
        disk: &CrashDisk,
        options: &Options,
        told: &Told,
        batches: &[Vec<Append>],
        what: &str,
    ) {
        self.tried += 1;
        let mut hasher = DefaultHasher::new();
        disk.hash_into(&mut hasher);
        (told.acknowledged.len(), told.denied).hash(&mut hasher);
        if !self.images.insert(hasher.finish()) {
            return;
        }
        let ledger =
            judge(disk, options, told).unwrap_or_else(|violation| panic!("{what}: {violation}"));
        if self.images.len() % 16 == 1 {
            go_on(ledger, told, batches)
                .unwrap_or_else(|violation| panic!("{what}, going on: {violation}"));
        }
    }

    fn print(&self, what: &str) {
        println!(
            "{what}: {} crash states, {} distinct images judged",
            self.tried,
            self.images.len()
        );
    }
}

/// Runs the scenario undisturbed and gives the kinds of its operations.
fn kinds(options: &Options, batches: &[Vec<Append>], flush: bool) -> Vec<Kind> {
    let disk = CrashDisk::new();
    drop(run(&disk, options, batches, flush));
    disk.kinds()
}

fn run(disk: &CrashDisk, options: &Options, batches: &[Vec<Append>], flush: bool) -> Told {
    let (told, ledger) = drive(disk, options, batches, |_, ledger| {
        if flush {
            // Refused once the power is gone, which is what the scenario is about.
            drop(ledger.flush_index());
        }
    });
    drop(ledger);
    told
}

/// The disk and what was told when the power goes at an operation.
fn crashed(
    options: &Options,
    batches: &[Vec<Append>],
    flush: bool,
    operation: usize,
) -> (CrashDisk, Told) {
    let disk = CrashDisk::new();
    disk.crash_at(operation as u64);
    let told = run(&disk, options, batches, flush);
    (disk, told)
}

/// A recovery and nothing else.
fn open(disk: &CrashDisk, options: &Options) -> Result<(), StoreError> {
    Ledger::open(Arc::new(disk.clone()), options).map(drop)
}

/// The operations at which a sync begins: there the most writes are pending, and every state that an earlier crash of
/// the same interval can leave is one of the subsets.
fn syncs(kinds: &[Kind]) -> impl Iterator<Item = usize> + '_ {
    (0..kinds.len()).filter(|at| matches!(kinds[*at], Kind::Sync | Kind::SyncNames))
}

fn all(pending: usize) -> u64 {
    (1u64 << pending) - 1
}

/// Proves STO-2: after a crash at any point of six appends, with any subset of the log's unsynced writes on the
/// platter, the acknowledged prefix is there and the append in flight is there whole or not at all.
#[test]
fn sto_2_every_subset_of_the_logs_pending_writes() {
    let (options, batches) = (Options::default(), six());
    let kinds = kinds(&options, &batches, false);
    let (mut count, mut most) = (Count::default(), 0);
    for operation in syncs(&kinds).chain([kinds.len()]) {
        let (disk, told) = crashed(&options, &batches, false, operation);
        if !told.created {
            continue;
        }
        let pending = disk.pending(HOT_LOG);
        assert!(
            pending <= EXHAUSTIVE,
            "{pending} pending writes are too many to try all subsets"
        );
        most = most.max(pending);
        for mask in 0..=all(pending) {
            let survival = Survival {
                mask,
                ..Survival::default()
            };
            let found = disk.after_power_loss(HOT_LOG, &survival);
            count.state(
                &found,
                &options,
                &told,
                &batches,
                &format!("operation {operation}, writes {mask:b}"),
            );
        }
    }
    assert!(
        most >= 9,
        "a commit leaves at least 9 pending writes, this one {most}"
    );
    count.print("six appends, all subsets");
}

/// Proves STO-2: a write that is torn at a byte loses nothing either, whatever of the other writes survived.
#[test]
fn sto_2_byte_tears_of_the_logs_pending_writes() {
    let (options, batches) = (Options::default(), six());
    let kinds = kinds(&options, &batches, false);
    let mut count = Count::default();
    for operation in syncs(&kinds) {
        let (disk, told) = crashed(&options, &batches, false, operation);
        let pending = disk.pending(HOT_LOG);
        if !told.created {
            continue;
        }
        for torn in 0..pending {
            let len = disk.pending_len(HOT_LOG, torn);
            let cuts = [1, 7, 64, 511, 512, len / 2, len.saturating_sub(1)];
            for cut in cuts.into_iter().filter(|cut| (1..len).contains(cut)) {
                for mask in [0, all(torn), all(pending) & !(1 << torn)] {
                    let survival = Survival {
                        mask,
                        torn: Some((torn, cut)),
                        ..Survival::default()
                    };
                    let found = disk.after_power_loss(HOT_LOG, &survival);
                    let what = format!(
                        "operation {operation}, write {torn} torn at {cut}, others {mask:b}"
                    );
                    count.state(&found, &options, &told, &batches, &what);
                }
            }
        }
    }
    count.print("six appends, byte tears");
}

/// Proves STO-2: a crash at any operation, the creation of the store included, with any prefix of the name changes.
#[test]
fn sto_2_a_crash_at_every_operation_with_every_prefix_of_name_changes() {
    let (options, batches) = (Options::default(), six());
    let kinds = kinds(&options, &batches, true);
    let mut count = Count::default();
    for operation in 0..=kinds.len() {
        let (disk, told) = crashed(&options, &batches, true, operation);
        for names in 0..=disk.pending_names() {
            for (mask, others) in [(0, false), (u64::MAX, true), (u64::MAX, false), (0, true)] {
                let found = disk.after_power_loss(
                    HOT_LOG,
                    &Survival {
                        mask,
                        torn: None,
                        others,
                        names,
                    },
                );
                let what =
                    format!("operation {operation}, {names} names, log {mask:b}, others {others}");
                count.state(&found, &options, &told, &batches, &what);
            }
        }
    }
    count.print("creation, six appends and index writes, every operation");
}

/// Proves STO-2, STO-8: the index may lose any unsynced write at any point; only replay time is lost.
#[test]
fn sto_2_the_indexs_pending_writes_in_sampled_subsets() {
    let (options, batches) = (Options::default(), six());
    let kinds = kinds(&options, &batches, true);
    let (mut count, mut seed) = (Count::default(), 0x9e37_79b9_7f4a_7c15u64);
    for operation in syncs(&kinds) {
        let (disk, told) = crashed(&options, &batches, true, operation);
        let pending = disk.pending(INDEX);
        if !told.created || pending == 0 {
            continue;
        }
        let edges = (0..pending).flat_map(|at| [1 << at, all(pending) & !(1 << at), all(at)]);
        let drawn = (0..24).map(|_| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seed >> 20 & all(pending)
        });
        for mask in edges.chain(drawn).collect::<Vec<_>>() {
            let found = disk.after_power_loss(
                INDEX,
                &Survival {
                    mask,
                    ..Survival::default()
                },
            );
            count.state(
                &found,
                &options,
                &told,
                &batches,
                &format!("operation {operation}, index writes {mask:b}"),
            );
        }
    }
    count.print("index writes, sampled subsets");
}

/// Proves STO-2: a second crash, at any operation of the recovery from the first, loses nothing either.
#[test]
fn sto_2_one_crash_inside_recovery() {
    let (options, batches) = (Options::default(), six());
    let kinds = kinds(&options, &batches, false);
    let mut count = Count::default();
    for operation in syncs(&kinds) {
        let (disk, told) = crashed(&options, &batches, false, operation);
        let pending = disk.pending(HOT_LOG);
        if !told.created || pending == 0 {
            continue;
        }
        for mask in [
            0,
            all(pending),
            0x5555 & all(pending),
            0xaaaa & all(pending),
        ] {
            let first = disk.after_power_loss(
                HOT_LOG,
                &Survival {
                    mask,
                    ..Survival::default()
                },
            );
            let undisturbed = first.settled();
            open(&undisturbed, &options).unwrap();
            for second in 0..undisturbed.operations() {
                let again = first.settled();
                again.crash_at(second);
                // It fails, or the power went only while it was closed.
                drop(open(&again, &options));
                for (mask, others) in [
                    (0, false),
                    (u64::MAX, true),
                    (0x5555, true),
                    (0xaaaa, false),
                ] {
                    let found = again.after_power_loss(
                        HOT_LOG,
                        &Survival {
                            mask,
                            others,
                            ..Survival::default()
                        },
                    );
                    let what = format!(
                        "operation {operation}, recovery operation {second}, writes {mask:b}"
                    );
                    count.state(&found, &options, &told, &batches, &what);
                }
            }
        }
    }
    count.print("six appends, one crash inside recovery");
}

/// Proves STO-2: a roll-over to a new segment may be cut at any operation.
#[test]
fn sto_2_a_crash_at_every_operation_of_roll_overs() {
    // Every commit finds the segment over its bound, so every append but the first begins a new one.
    let options = Options {
        segment_bytes: 1,
        ..Options::default()
    };
    let batches = six()[..4].to_vec();
    let kinds = kinds(&options, &batches, false);
    let mut count = Count::default();
    for operation in 0..=kinds.len() {
        let (disk, told) = crashed(&options, &batches, false, operation);
        for names in 0..=disk.pending_names() {
            for others in [false, true] {
                let found = disk.after_power_loss(
                    "none",
                    &Survival {
                        others,
                        names,
                        ..Survival::default()
                    },
                );
                let what = format!("operation {operation}, {names} names, others {others}");
                count.state(&found, &options, &told, &batches, &what);
            }
        }
    }
    count.print("four appends in four segments, every operation");
}

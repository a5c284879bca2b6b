//! Crashes of the real store on a disk that loses unsynced writes; every number printed is counted here.
//!
//! Invariant: no state that the disk could be in after a crash loses an acknowledged event or keeps half a batch.
//! Run by `cargo test -p praxis-simulations`.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use praxis_simulations::scenario::{ALL, Count, EXHAUSTIVE_ONES, Scenario};

fn holds(name: &str) -> Count {
    let count = Scenario::named(name).unwrap().run();
    let count = count.unwrap_or_else(|violation| panic!("{name}: {violation}"));
    println!("{name}: {count}");
    assert!(count.judged() > 100, "{name} made hardly any state");
    count
}

/// Proves STO-2: after a crash at any point of six appends, with any subset of the log's unsynced writes on the
/// platter, the acknowledged prefix is there and the append in flight is there whole or not at all.
#[test]
fn sto_2_every_subset_of_the_logs_pending_writes() {
    let count = holds("every-subset");
    assert!(
        count.most_pending >= 9,
        "a commit leaves at least 9 pending writes, this one {}",
        count.most_pending
    );
}

/// Proves STO-2: a write that is torn at a byte loses nothing either, whatever of the other writes survived.
#[test]
fn sto_2_byte_tears_of_the_logs_pending_writes() {
    holds("byte-tears");
}

/// Proves STO-2: a crash at any operation, the creation of the store included, with any prefix of the name changes.
#[test]
fn sto_2_a_crash_at_every_operation_with_every_prefix_of_name_changes() {
    holds("every-operation");
}

/// Proves STO-2, STO-8: the index may lose any unsynced write at any point; only replay time is lost.
#[test]
fn sto_2_the_indexs_pending_writes_in_sampled_subsets() {
    holds("index-subsets");
}

/// Proves STO-2: a second crash, at any operation of the recovery from the first, loses nothing either.
#[test]
fn sto_2_one_crash_inside_recovery() {
    holds("crash-in-recovery");
}

/// Proves STO-2: a roll-over to a new segment may be cut at any operation.
#[test]
fn sto_2_a_crash_at_every_operation_of_roll_overs() {
    holds("roll-over");
}

/// Proves STO-2: after any failed sync, with the pages kept but clean or thrown away, the store goes on, and what it
/// acknowledges from then on survives a loss of power at any later operation (field case F-43).
#[test]
fn sto_2_a_failed_sync_then_more_appends_then_a_loss_of_power() {
    holds("failed-sync");
}

/// Proves STO-2: the same with every subset of the log's unsynced writes, at the syncs that follow a failed one.
#[test]
fn sto_2_a_failed_sync_then_every_subset() {
    holds("failed-sync-every-subset");
}

/// A scenario in which a single operation fails makes few states.
const FEW: u64 = 10;

fn runs(name: &str) {
    let began = std::time::Instant::now();
    let count = Scenario::named(name).unwrap().run();
    let count = count.unwrap_or_else(|violation| panic!("{name}: {violation}"));
    println!("{name}: {count}, {} ms", began.elapsed().as_millis());
    assert!(count.tried >= FEW, "{name} made hardly any state");
}

macro_rules! scenarios {
    ($($(#[$doc:meta])* $test:ident $name:literal;)*) => { $($(#[$doc])* #[test] fn $test() { runs($name); })* };
}

scenarios! {
    /// Proves STO-2: a commit of several appends is there whole or not at all.
    sto_2_batches_at_the_edges "batch-edges";
    /// Proves STO-2: the same with a crash in the recovery.
    sto_2_batches_and_recovery "batch-recovery";
    /// Proves STO-2, STO-8: an index that is cut costs replay time, also when its recovery is cut.
    sto_2_index_and_recovery "index-recovery";
    /// Proves STO-2: a torn write loses nothing when the recovery is cut.
    sto_2_tears_and_recovery "tear-recovery";
    /// Proves STO-2, STO-8: a lost index is made anew, and that may be cut.
    sto_2_index_rebuilt "index-rebuild";
    /// Proves STO-2: a full disk denies and loses nothing.
    sto_2_full_disk_then_a_crash "full-disk";
    /// Proves STO-2: a failed write loses nothing.
    sto_2_write_error_then_a_crash "write-error";
    /// Proves STO-2: a failed change of a length loses nothing.
    sto_2_length_error_then_a_crash "length-error";
    /// Proves STO-2: a failed change of a name loses nothing.
    sto_2_name_error_then_a_crash "name-error";
    /// Proves STO-2: a failed sync of the directory loses nothing.
    sto_2_directory_sync_error_then_a_crash "directory-sync-error";
    /// Proves STO-2: a failed sync, then a crash in the recovery.
    sto_2_failed_sync_and_recovery "failed-sync-recovery";
    /// Proves STO-4: a changed bit of the log is never taken for the log.
    sto_4_a_flip_in_the_log "flip-log";
    /// Proves STO-4: a changed bit of the index never changes the log.
    sto_4_a_flip_in_the_index "flip-index";
    /// Proves STO-2: no kind of loss of all files at once loses anything, lengths and sectors included.
    sto_2_every_kind_of_loss "every-kind-of-loss";
    /// Proves STO-2: a creation that is cut, also in its recovery, can be done again and loses nothing.
    sto_2_creation_and_recovery "creation-recovery";
    /// Proves STO-2: recoveries that are cut three times lose nothing.
    sto_2_recovery_cut_three_times "recovery-thrice";
    /// Proves STO-2: a failed read costs an open and nothing else.
    sto_2_read_error_at_opening "read-error";
    /// Proves STO-2: a read that ends early costs an open and nothing else.
    sto_2_short_read_at_opening "short-read";
    /// Proves STO-2, STO-4: a read that fails in a store at work costs nothing: it is read again from the opened file.
    sto_2_read_error_at_work "read-after-failure";
    /// Proves STO-2: a panic of the storage engine loses nothing.
    sto_2_engine_panic_then_a_crash "engine-panic";
    /// Proves STO-4: what a lying sync took is told, or seen against a checkpoint.
    sto_4_syncs_that_lie "lying-sync";
    /// Proves STO-4: a write that landed elsewhere is told, or did no harm.
    sto_4_writes_that_go_astray "misdirected-write";
    /// Proves STO-4: a stale read is told, or did no harm.
    sto_4_reads_that_are_stale "stale-read";
    /// Proves ART-1: what a put answered for survives every crash, and no digest names a part of it.
    art_1_puts_and_crashes "artifact-put";
    /// Proves ART-1, ART-2: a put of bytes that stand there makes them durable, whoever had put them.
    art_2_the_same_bytes_put_twice "artifact-put-twice";
    /// Proves ART-1, ART-9: a collection takes nothing that was put again.
    art_9_collections_and_crashes "artifact-collect";
    /// Proves ART-1: a sweep that is cut takes no artifact and goes on at the next open.
    art_1_sweeps_that_are_cut "artifact-sweep";
    /// Proves ART-1, ART-3: a put that answers after a failed step is durable.
    art_3_failed_steps_then_a_crash "artifact-errors";
    /// Proves ART-4: a read gives the very bytes or an error, whatever the disk does.
    art_4_damaged_artifacts "artifact-damage";
    /// Proves STO-2: everything that a commit into a segment of its own can leave, and every crash of its recovery.
    sto_2_all_that_a_commit_can_leave "all-in-a-new-segment";
    /// Proves STO-2: a backup that was cut off is no store, one that opens is whole, and the next one takes its place.
    sto_2_a_backup_that_is_cut "backup";
    /// Proves STO-4: an older log under a newer index is told; both older are seen against a checkpoint.
    sto_4_rollbacks "rollback";
}

/// Each scenario has a name of its own, a sentence and faults.
#[test]
fn every_scenario_says_what_it_is() {
    let all: Vec<_> = ALL.iter().chain(EXHAUSTIVE_ONES).collect();
    let names: std::collections::BTreeSet<_> = all.iter().map(|it| it.name).collect();
    assert_eq!(names.len(), all.len());
    assert!(
        all.iter()
            .all(|it| !it.what.is_empty() && !it.faults.is_empty())
    );
}

//! The table of the scenarios: name, what is enumerated, which faults it makes.
//!
//! Invariant: a name stands once; `what` says plainly where something is chosen rather than all of it tried. Read by the
//! tests and by reports.

use super::{Scenario, damage, errors, index, log, recovery, sync};
use crate::fault::Fault;

/// All scenarios.
pub const ALL: [Scenario; 22] = [
    Scenario {
        name: "every-subset",
        what: "Six appends, the power goes at every sync: all subsets of the log's unsynced writes.",
        faults: &[
            Fault::DropAll,
            Fault::KeepAll,
            Fault::DropSubset,
            Fault::KeepOne,
            Fault::DropOne,
            Fault::Prefix,
        ],
        work: log::every_subset,
    },
    Scenario {
        name: "byte-tears",
        what: "Six appends, every sync: each unsynced write of the log torn at some bytes, the others lost, kept or a prefix.",
        faults: &[Fault::ByteTear, Fault::Prefix],
        work: log::byte_tears,
    },
    Scenario {
        name: "crash-in-recovery",
        what: "Six appends, every sync, three subsets; then a crash at every operation of the recovery.",
        faults: &[
            Fault::DropAll,
            Fault::KeepAll,
            Fault::DropSubset,
            Fault::CrashInRecovery,
        ],
        work: log::crash_in_recovery,
    },
    Scenario {
        name: "roll-over",
        what: "Appends that begin a segment each, every operation: every prefix of the names, all data lost or kept.",
        faults: &[Fault::DropAll, Fault::KeepAll, Fault::NamesLost],
        work: log::roll_over,
    },
    Scenario {
        name: "every-operation",
        what: "Creation, six appends and index writes, every operation: every prefix of the names, log and index lost or kept.",
        faults: &[
            Fault::DropAll,
            Fault::KeepAll,
            Fault::NamesLost,
            Fault::CrashInCreation,
            Fault::CrashInFlush,
        ],
        work: index::every_operation,
    },
    Scenario {
        name: "index-subsets",
        what: "Index writes, every sync: the edges of the index's unsynced writes and some drawn subsets.",
        faults: &[
            Fault::DropSubset,
            Fault::KeepOne,
            Fault::DropOne,
            Fault::Prefix,
            Fault::CrashInFlush,
        ],
        work: index::subsets,
    },
    Scenario {
        name: "failed-sync",
        what: "Each sync fails in both ways, the store goes on, the power goes at every later operation: edges at syncs.",
        faults: &[
            Fault::SyncErrorKept,
            Fault::SyncErrorReverted,
            Fault::NamesLost,
        ],
        work: sync::goes_on,
    },
    Scenario {
        name: "failed-sync-every-subset",
        what: "A sync in the middle fails in both ways; at syncs near it and at the end: all subsets of the log's writes.",
        faults: &[
            Fault::SyncErrorKept,
            Fault::SyncErrorReverted,
            Fault::DropSubset,
        ],
        work: sync::every_subset,
    },
    Scenario {
        name: "batch-edges",
        what: "Commits of several appends, every sync: the edges of the log's unsynced writes.",
        faults: &[
            Fault::DropAll,
            Fault::KeepAll,
            Fault::KeepOne,
            Fault::DropOne,
            Fault::Prefix,
        ],
        work: recovery::batch_edges,
    },
    Scenario {
        name: "batch-recovery",
        what: "Commits of several appends, every sync, three subsets; then every operation of the recovery.",
        faults: &[
            Fault::DropAll,
            Fault::KeepAll,
            Fault::DropSubset,
            Fault::CrashInRecovery,
        ],
        work: recovery::batch,
    },
    Scenario {
        name: "index-recovery",
        what: "One append with an index write, every sync, three subsets of the index's; then every operation of the recovery.",
        faults: &[
            Fault::DropSubset,
            Fault::CrashInFlush,
            Fault::CrashInRecovery,
        ],
        work: recovery::index,
    },
    Scenario {
        name: "tear-recovery",
        what: "One append, every sync, each unsynced write torn in its middle; then every operation of the recovery.",
        faults: &[Fault::ByteTear, Fault::Prefix, Fault::CrashInRecovery],
        work: recovery::tears,
    },
    Scenario {
        name: "index-rebuild",
        what: "The index of three appends is lost, every operation of making it anew: every prefix of the names, edges of its writes.",
        faults: &[
            Fault::KeepOne,
            Fault::DropOne,
            Fault::Prefix,
            Fault::NamesLost,
            Fault::CrashInFlush,
            Fault::CrashInRecovery,
        ],
        work: recovery::rebuild,
    },
    Scenario {
        name: "full-disk",
        what: "The disk is full at 48 sizes at most, a page or more apart, then the power goes: every prefix of the names, edges of the log's writes.",
        faults: &[Fault::FullOnWrite, Fault::FullOnGrowth, Fault::NamesLost],
        work: errors::full,
    },
    Scenario {
        name: "write-error",
        what: "Each write of two appends and their index writes fails once, then the power goes: every prefix of the names, edges of the log's writes.",
        faults: &[Fault::WriteError],
        work: errors::write,
    },
    Scenario {
        name: "length-error",
        what: "Each change of a length fails once, then as for a write.",
        faults: &[Fault::WriteError],
        work: errors::length,
    },
    Scenario {
        name: "name-error",
        what: "Each change of a name fails once, then as for a write.",
        faults: &[Fault::NameError, Fault::NamesLost],
        work: errors::name,
    },
    Scenario {
        name: "directory-sync-error",
        what: "Each sync of the directory fails once, then as for a write.",
        faults: &[Fault::DirectorySyncError, Fault::NamesLost],
        work: errors::directory_sync,
    },
    Scenario {
        name: "failed-sync-recovery",
        what: "Each sync of one append fails in both ways, all lost or all kept; then every operation of the recovery.",
        faults: &[
            Fault::SyncErrorKept,
            Fault::SyncErrorReverted,
            Fault::CrashInRecovery,
        ],
        work: errors::sync_then_recovery,
    },
    Scenario {
        name: "flip-log",
        what: "A bit of the log flips at 257 places: it is told, or the log equals the checkpoint.",
        faults: &[Fault::BitFlip],
        work: damage::flip_log,
    },
    Scenario {
        name: "flip-index",
        what: "A bit of the index flips at 257 places: it is told, or the log equals the checkpoint.",
        faults: &[Fault::BitFlip],
        work: damage::flip_index,
    },
    Scenario {
        name: "rollback",
        what: "Log and index are images after any two batches: told, or seen against the checkpoint.",
        faults: &[Fault::Rollback],
        work: damage::rollback,
    },
];

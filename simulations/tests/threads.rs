//! The journal with its threads on a disk that fails below one of them.
//!
//! Invariant: a failed write of the index costs the index, never an append. Run by `cargo test -p praxis-simulations`.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use praxis_journal::{Appended, Journal, Options};
use praxis_simulations::crash::{HOT_LOG, INDEX, Told, judge};
use praxis_simulations::disk::{CrashDisk, Failure, Survival};
use praxis_simulations::script::Script;
use tempfile::TempDir;

/// Proves STO-2, STO-8: when the sync of the index fails on the flusher's thread, with the pages kept but clean or
/// thrown away, the index is made anew from the log, appends go on, and a loss of power loses nothing.
#[test]
fn sto_2_a_sync_of_the_index_fails_on_the_flusher() {
    for failure in [Failure::Device, Failure::Reverting] {
        // The directory holds the lock alone; the files are on the simulated disk.
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let disk = CrashDisk::new();
        let options = Options {
            disk: Some(Arc::new(disk.clone())),
            // Due after every batch, so that the flusher has the index before anybody asks for a flush.
            flush_interval_ms: 0,
            ..Options::default()
        };
        let journal = Journal::create(folder.path(), &options).unwrap();
        let mut script = Script::new("mission").unwrap();
        let mut told = Told {
            created: true,
            ..Told::default()
        };
        let mut appends = vec![script.start_run("one").unwrap()];
        appends.extend((0..5).map(|_| script.note("one").unwrap()));
        for (number, append) in appends.into_iter().enumerate() {
            if number == 3 {
                journal.flush_index().unwrap();
                disk.fail_sync_of(INDEX, failure);
            }
            told.acknowledged.push(append.sealed[0].hash);
            let answer = journal.append_blocking(append).unwrap();
            assert!(matches!(answer, Appended::Committed { .. }), "{answer:?}");
            // Served after the flusher has ended, so that what it met is known.
            journal.flush_index().unwrap();
        }
        assert_eq!(disk.failed_on().as_deref(), Some("praxis-flusher"));
        assert!(journal.view().read_only.is_none());
        assert!(journal.verify(&mut |_, _| ()).unwrap().is_sound());
        for others in [false, true] {
            let survival = Survival {
                others,
                ..Survival::default()
            };
            let found = disk.after_power_loss(HOT_LOG, &survival);
            judge(&found, &Options::default(), &told)
                .unwrap_or_else(|violation| panic!("{failure:?}: {violation}"));
        }
        journal.close().unwrap();
        judge(&disk.settled(), &Options::default(), &told).unwrap();
    }
}

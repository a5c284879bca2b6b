//! Recovery after a panic outside a commit, on real files.
//!
//! Invariant: after it the log is open and the index can be written again, whatever the panic left half done. Found by
//! mutation testing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::disk::{Disk, FileDisk};
use crate::ledger::Options;

fn ledger(folder: &TempDir) -> Ledger {
    let disk: Arc<dyn Disk> = Arc::new(FileDisk::new(folder.path()));
    Ledger::create(disk, "store".parse().unwrap(), &Options::default()).unwrap()
}

/// A write of the index that was begun and never ended keeps no other from being begun.
#[test]
fn a_write_that_never_ended_is_forgotten() {
    let folder = TempDir::new().unwrap();
    let mut ledger = ledger(&folder);
    let consumer = "receiver".parse().unwrap();
    ledger.dirty.cursors.insert(consumer);
    drop(ledger.begin_flush().expect("there is something to write"));
    assert!(ledger.flushing);
    ledger.recover();
    assert!(!ledger.flushing && ledger.read_only().is_none());
    ledger.flush_index().unwrap();
}

/// The log is opened again, so that what was closed in the middle of something takes appends again.
#[test]
fn the_log_is_opened_again() {
    let folder = TempDir::new().unwrap();
    let mut ledger = ledger(&folder);
    let (file, away) = (
        folder.path().join("log-000001.redb"),
        folder.path().join("away"),
    );
    fs::rename(&file, &away).unwrap();
    assert!(ledger.log.reopen(true).is_err());
    assert!(ledger.log.frame(1).is_err());
    fs::rename(&away, &file).unwrap();
    ledger.recover();
    assert!(ledger.read_only().is_none());
    assert_eq!(ledger.log.frame(1), Ok(None));
}

/// Where the log cannot be opened again the store says so and takes no append; and so it does once it has given up.
#[test]
fn what_cannot_be_mended_is_read_only() {
    let folder = TempDir::new().unwrap();
    let mut broken = ledger(&folder);
    fs::remove_file(folder.path().join("log-000001.redb")).unwrap();
    broken.recover();
    assert!(matches!(
        broken.read_only(),
        Some(StoreError::ReadOnly { .. })
    ));
    let folder = TempDir::new().unwrap();
    let mut ledger = ledger(&folder);
    ledger.give_up();
    assert!(matches!(
        ledger.read_only(),
        Some(StoreError::ReadOnly { .. })
    ));
}

//! A changed bit in each page of a store's files: whatever the storage engine makes of it, the process goes on.
//!
//! Invariant: opening, verifying, reading, appending and closing give an answer; a panic within a panic would end this
//! process, and the test with it. Run on files in memory of the system's temporary directory.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use praxis_journal::{Append, FileDisk, Ledger, Options, StoreError};
use tempfile::TempDir;

#[path = "../../../simulations/src/script.rs"]
#[allow(dead_code)]
mod script;

use script::Script;

const PAGE: usize = 4096;
const LOG: &str = "log-000001.redb";

/// A store that was closed as it should, with rows enough that pages were freed and used again, and one more append.
fn store(path: &Path) -> Append {
    let mut script = Script::new("mission").unwrap();
    let disk = Arc::new(FileDisk::new(path));
    let mut ledger = Ledger::create(disk, "store".parse().unwrap(), &Options::default()).unwrap();
    let mut commit = |append: Append| assert!(ledger.commit(&[append], 0)[0].is_ok());
    commit(script.start_run("one").unwrap());
    for _ in 0..60 {
        commit(script.note("one").unwrap());
    }
    ledger.close().unwrap();
    script.note("one").unwrap()
}

/// Proves STO-4: no changed page of the log ends the process or passes for a sound store that then loses something.
#[test]
fn sto_4_a_changed_page_ends_no_process() {
    let folder = TempDir::new().unwrap();
    let whole = folder.path().join("whole");
    fs::create_dir(&whole).unwrap();
    let more = store(&whole);
    let bytes = fs::read(whole.join(LOG)).unwrap();
    let (mut told, mut quiet) = (0, 0);
    let used = |page: &[u8]| page.iter().any(|byte| *byte != 0);
    for (number, _) in bytes.chunks(PAGE).enumerate().filter(|(_, it)| used(it)) {
        let path = folder.path().join(number.to_string());
        fs::create_dir(&path).unwrap();
        for entry in fs::read_dir(&whole).unwrap() {
            let from = entry.unwrap().path();
            fs::copy(&from, path.join(from.file_name().unwrap())).unwrap();
        }
        let mut spoiled = bytes.clone();
        spoiled[number * PAGE + 6] ^= 0x40;
        fs::write(path.join(LOG), &spoiled).unwrap();
        let disk = Arc::new(FileDisk::new(&path));
        match Ledger::open(disk, &Options::default()) {
            Err(error) => {
                assert!(
                    matches!(error, StoreError::Corrupt { .. }),
                    "page {number}: {error}"
                );
                told += 1;
            }
            Ok(mut ledger) if ledger.read_only().is_some() => {
                drop(ledger.verify(&mut |_, _| ()));
                drop(ledger.read(1));
                assert!(ledger.commit(std::slice::from_ref(&more), 0)[0].is_err());
                told += 1;
            }
            Ok(mut ledger) => {
                // The page held nothing that counts.
                let report = ledger.verify(&mut |_, _| ()).unwrap();
                assert!(report.is_sound(), "page {number}: {:?}", report.findings);
                assert_eq!(report.events, 61, "page {number}");
                assert!(ledger.commit(std::slice::from_ref(&more), 0)[0].is_ok());
                quiet += 1;
            }
        }
        fs::remove_dir_all(&path).unwrap();
    }
    println!("{told} pages were told of, {quiet} held nothing");
    assert!(told > 10, "{told} of {}", told + quiet);
}

//! Steps that fail while the process lives: full disks, sync errors, bad reads.
//! Invariant: a put that saw an error reports it, announces nothing and leaves no part behind.
//! `cargo test -p praxis-artifacts` runs it.

use praxis_artifacts::fs::Step;
use praxis_artifacts::limits::CHUNK_BYTES;
use praxis_artifacts::{ArtifactError, ArtifactProvider};
use rustix::io::Errno;

use crate::support::{Faults, NOW_MS, Place, RETAIN_UNTIL_MS, code, owner, put};

/// Proves ART-3: an error at any step of a put fails it with the code of its remedy, and no part is left.
#[test]
fn art_3_every_failed_step_fails_the_put() {
    let cases = [
        (Step::FindDirectory, Errno::IO, "STORE_IO"),
        (Step::Open, Errno::ACCESS, "STORE_PERMISSIONS"),
        (Step::Create, Errno::NOSPC, "STORE_FULL"),
        (Step::Create, Errno::ROFS, "STORE_READ_ONLY"),
        (Step::Create, Errno::EXIST, "STORE_IO"),
        (Step::Write, Errno::NOSPC, "STORE_FULL"),
        (Step::Write, Errno::DQUOT, "STORE_FULL"),
        (Step::Write, Errno::IO, "STORE_IO"),
        (Step::Sync, Errno::IO, "STORE_IO"),
        (Step::Sync, Errno::NOSPC, "STORE_FULL"),
        (Step::Publish, Errno::INVAL, "STORE_IO"),
        (Step::Publish, Errno::IO, "STORE_IO"),
    ];
    for (step, errno, expected) in cases {
        let place = Place::new();
        let faults = Faults::none();
        let store = place.open_faulty(&faults).unwrap();
        let source = place.root.path().join("source");
        std::fs::write(&source, b"bytes").unwrap();
        faults.fail(step, errno);
        assert_eq!(code(put(&store, b"bytes")), expected, "{step} {errno}");
        if step != Step::Open {
            let by_file = store.put_file(&source, "key", "text/plain", &owner(), RETAIN_UNTIL_MS);
            assert_eq!(code(by_file), expected, "{step} {errno}");
        }
        assert!(place.names().is_empty(), "{step} {errno}");
        faults.heal();
        let artifact = put(&store, b"bytes").unwrap();
        assert_eq!(
            store.read(&artifact, NOW_MS).unwrap(),
            b"bytes",
            "{step} {errno}"
        );
    }
}

/// Proves ART-3: once the directory could not be synced, no put is reported until the store was opened again, not
/// even of bytes that are there and with syncs that succeed again.
#[test]
fn art_3_a_failed_directory_sync_suspends_puts() {
    let place = Place::new();
    let faults = Faults::none();
    let store = place.open_faulty(&faults).unwrap();
    let before = put(&store, b"before").unwrap();
    faults.fail(Step::SyncDirectory, Errno::IO);
    assert_eq!(code(put(&store, b"doubtful")), "STORE_IO");
    faults.heal();
    for bytes in [b"doubtful".as_slice(), b"before", b"new"] {
        let refused = put(&store, bytes);
        assert!(matches!(refused, Err(ArtifactError::Suspended)));
        assert_eq!(code(refused), "STORE_IO");
    }
    assert_eq!(
        store.read(&before, NOW_MS).unwrap(),
        b"before",
        "reads go on"
    );

    let store = place.open();
    let doubtful = put(&store, b"doubtful").unwrap();
    assert_eq!(store.read(&doubtful, NOW_MS).unwrap(), b"doubtful");
    place.assert_only_whole_artifacts("reopened");
}

/// Proves ART-3: bytes that are there already are reported only after they were synced too.
#[test]
fn art_3_existing_bytes_are_synced_before_they_are_reported() {
    for step in [Step::Read, Step::Touch, Step::Sync, Step::SyncDirectory] {
        let place = Place::new();
        let faults = Faults::none();
        let store = place.open_faulty(&faults).unwrap();
        put(&store, b"there").unwrap();
        faults.fail(step, Errno::IO);
        assert_eq!(code(put(&store, b"there")), "STORE_IO", "{step}");
        place.assert_only_whole_artifacts("existing");
    }
}

#[test]
fn a_temporary_file_that_cannot_be_removed_is_swept_at_the_next_open() {
    let place = Place::new();
    let faults = Faults::none();
    let store = place.open_faulty(&faults).unwrap();
    let file = place.file_of(b"unlucky");
    faults.before(Step::Publish, {
        let faults = faults.clone();
        move || {
            std::fs::write(file, b"other").unwrap();
            faults.fail(Step::Discard, Errno::IO);
        }
    });
    assert_eq!(code(put(&store, b"unlucky")), "ARTIFACT_MISMATCH");
    assert_eq!(place.names().len(), 2, "the temporary file is left");
    // Its removal fails at open too: the store opens all the same, and the file goes with the next open.
    drop(place.open_faulty(&faults).unwrap());
    assert_eq!(place.names().len(), 2);
    drop(place.open());
    assert_eq!(place.names().len(), 1);
}

/// Proves ART-4: a device that gives wrong, few or no bytes never gets them through.
#[test]
fn art_4_bad_reads_are_never_handed_out() {
    let bytes = b"sixteen bytes ..".as_slice();
    for index in 0..bytes.len() {
        let place = Place::new();
        let faults = Faults::none();
        let store = place.open_faulty(&faults).unwrap();
        let artifact = put(&store, bytes).unwrap();
        faults.flip(index);
        assert_eq!(code(store.read(&artifact, NOW_MS)), "ARTIFACT_MISMATCH");
        assert_eq!(code(put(&store, bytes)), "ARTIFACT_MISMATCH");
    }

    let place = Place::new();
    let faults = Faults::none();
    let store = place.open_faulty(&faults).unwrap();
    let artifact = put(&store, bytes).unwrap();
    for (at_most, whole) in [(1, true), (3, true), (0, false)] {
        faults.read_at_most(at_most);
        match store.read(&artifact, NOW_MS) {
            Ok(read) => assert!(whole && read == bytes),
            Err(error) => assert!(!whole && error.code().name() == "ARTIFACT_MISMATCH"),
        }
    }
    faults.fail(Step::Read, Errno::IO);
    assert_eq!(code(store.read(&artifact, NOW_MS)), "STORE_IO");
}

#[test]
fn a_file_that_grows_while_it_is_read_is_refused() {
    let place = Place::new();
    let faults = Faults::none();
    let store = place.open_faulty(&faults).unwrap();
    let artifact = put(&store, b"short").unwrap();
    let file = place.file_of(b"short");
    faults.before(Step::Read, move || {
        std::fs::write(file, vec![b'x'; 1 << 20]).unwrap()
    });
    let Err(ArtifactError::SizeMismatch { found, .. }) = store.read(&artifact, NOW_MS) else {
        panic!("expected a mismatch of sizes");
    };
    assert!(found <= CHUNK_BYTES as u64, "{found} bytes were read");
}

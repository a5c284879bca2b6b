//! What a put stores and records, and what a read, a look and a listing give back.
//! Invariant: bytes read are the bytes put.
//! `cargo test -p praxis-artifacts` runs it.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use aiws::decimal::Dec;
use aiws::digest::sha256;
use praxis_artifacts::fs::Step;
use praxis_artifacts::limits::{ARTIFACT_BYTES_MAX, CHUNK_BYTES};
use praxis_artifacts::{ArtifactError, ArtifactProvider, FileArtifacts};

use crate::support::{Faults, NOW_MS, Place, RETAIN_UNTIL_MS, code, owner, put};

/// Proves HF-04.2: the record has locator with version, digest and size of the exact bytes, media type, and
/// who retains it until when.
#[test]
fn hf_04_2_a_put_records_what_is_known_of_the_bytes() {
    let store = Place::new();
    let artifact = put(&store.open(), b"result\n").unwrap();
    assert_eq!(artifact.digest, sha256(b"result\n"));
    assert_eq!(artifact.size_bytes.to_u64(), Some(7));
    assert_eq!(artifact.media_type, "text/plain");
    assert_eq!(artifact.locator.key.as_str(), "report.txt");
    assert_eq!(
        artifact.locator.version.as_str(),
        artifact.digest.to_string()
    );
    assert_eq!(artifact.retention_owner.as_str(), "owner");
    assert_eq!(artifact.retain_until_ms.to_u64(), Some(RETAIN_UNTIL_MS));
}

#[test]
fn bytes_of_every_size_come_back() {
    let place = Place::new();
    let store = place.open();
    for size in [
        0,
        1,
        CHUNK_BYTES - 1,
        CHUNK_BYTES,
        CHUNK_BYTES + 1,
        5 * CHUNK_BYTES + 3,
    ] {
        let bytes: Vec<u8> = (0..size).map(|index| (index % 251) as u8).collect();
        let artifact = put(&store, &bytes).unwrap();
        assert_eq!(
            store.read(&artifact, NOW_MS).unwrap(),
            bytes,
            "{size} bytes"
        );
        assert!(store.contains(&artifact.digest).unwrap());
    }
    place.assert_only_whole_artifacts("sizes");
}

/// Proves ART-8: the directory is its owner's alone, and so is every file in it.
#[test]
fn art_8_directory_and_files_are_private() {
    let place = Place::new();
    put(&place.open(), b"private").unwrap();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.path.clone()), 0o700);
    assert_eq!(mode(place.file_of(b"private")), 0o600);
}

#[test]
fn keys_are_data_and_never_paths() {
    let place = Place::new();
    let store = place.open();
    for key in ["../../escape", "/etc/passwd", "\u{202e}txt.exe", "."] {
        let artifact = store
            .put(b"same", key, "text/plain", &owner(), RETAIN_UNTIL_MS)
            .unwrap();
        assert_eq!(artifact.locator.key.as_str(), key);
    }
    assert_eq!(place.names(), [sha256(b"same").to_string()]);
    assert_eq!(std::fs::read_dir(place.root.path()).unwrap().count(), 1);
}

/// Proves HF-04.3: a key that could carry a credential is refused, and nothing is stored.
#[test]
fn hf_04_3_signed_urls_are_no_locators() {
    let place = Place::new();
    let store = place.open();
    for key in [
        "https://user:secret@example.org/report",
        "https://example.org/report?signature=abc",
        "https://example.org/report#token",
        "report?sig=abc",
        "data:text/plain,abc",
        "user@host/report",
        "a/b\\c",
        "nul\0byte",
    ] {
        let refused = store.put(b"bytes", key, "text/plain", &owner(), RETAIN_UNTIL_MS);
        assert_eq!(code(refused), "SCHEMA_INVALID", "{key}");
    }
    assert!(place.names().is_empty());
}

#[test]
fn facts_that_form_no_record_store_nothing() {
    let place = Place::new();
    let store = place.open();
    let long = "k".repeat(257);
    for (key, media_type) in [
        ("", "text/plain"),
        (&long, "text/plain"),
        ("key", ""),
        ("key", "text"),
    ] {
        let refused = store.put(b"bytes", key, media_type, &owner(), RETAIN_UNTIL_MS);
        assert_eq!(code(refused), "SCHEMA_INVALID", "{key:?} {media_type:?}");
    }
    assert!(place.names().is_empty());
}

/// Proves ART-5: past its retention an artifact is not handed out, and its bytes stay.
#[test]
fn art_5_retention_limits_access_and_deletes_nothing() {
    let place = Place::new();
    let store = place.open();
    let artifact = put(&store, b"kept").unwrap();
    assert_eq!(store.read(&artifact, RETAIN_UNTIL_MS - 1).unwrap(), b"kept");
    for now_ms in [RETAIN_UNTIL_MS, RETAIN_UNTIL_MS + 1, u64::MAX] {
        assert_eq!(code(store.read(&artifact, now_ms)), "ARTIFACT_UNAVAILABLE");
    }
    assert_eq!(std::fs::read(place.file_of(b"kept")).unwrap(), b"kept");
    assert!(store.contains(&artifact.digest).unwrap());
}

#[test]
fn a_retention_beyond_u64_is_never_reached() {
    let place = Place::new();
    let store = place.open();
    let mut artifact = put(&store, b"for ever").unwrap();
    artifact.retain_until_ms = "18446744073709551616".parse().unwrap();
    assert_eq!(store.read(&artifact, u64::MAX).unwrap(), b"for ever");
}

/// Proves ART-4: a record whose size is wrong is a mismatch, also where the digest is right.
#[test]
fn art_4_a_wrong_size_is_a_mismatch() {
    let place = Place::new();
    let store = place.open();
    let artifact = put(&store, b"12345").unwrap();
    for size in ["0", "4", "6", "18446744073709551621"] {
        let mut false_record = artifact.clone();
        false_record.size_bytes = size.parse::<Dec>().unwrap();
        let refused = store.read(&false_record, NOW_MS);
        assert!(
            matches!(refused, Err(ArtifactError::SizeMismatch { .. })),
            "{size}"
        );
        assert_eq!(code(refused), "ARTIFACT_MISMATCH");
    }
}

/// Proves ART-4, HF-04.5: every flipped bit and every cut of the stored bytes is a mismatch, absence is unavailable.
#[test]
fn art_4_changed_bytes_are_a_mismatch() {
    let place = Place::new();
    let store = place.open();
    let bytes = b"artifact".as_slice();
    let artifact = put(&store, bytes).unwrap();
    let file = place.file_of(bytes);
    for index in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.to_vec();
            flipped[index] ^= 1 << bit;
            std::fs::write(&file, &flipped).unwrap();
            assert_eq!(code(store.read(&artifact, NOW_MS)), "ARTIFACT_MISMATCH");
        }
        std::fs::write(&file, &bytes[..index]).unwrap();
        assert_eq!(code(store.read(&artifact, NOW_MS)), "ARTIFACT_MISMATCH");
    }
    std::fs::write(&file, b"artifact and more").unwrap();
    assert_eq!(code(store.read(&artifact, NOW_MS)), "ARTIFACT_MISMATCH");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(code(store.read(&artifact, NOW_MS)), "ARTIFACT_UNAVAILABLE");
    assert!(!store.contains(&artifact.digest).unwrap());
}

/// Putting the identical bytes back makes the artifact readable under its old record.
#[test]
fn identical_bytes_restore_an_artifact() {
    let place = Place::new();
    let store = place.open();
    let artifact = put(&store, b"lost").unwrap();
    std::fs::remove_file(place.file_of(b"lost")).unwrap();
    assert_eq!(code(store.read(&artifact, NOW_MS)), "ARTIFACT_UNAVAILABLE");
    put(&store, b"lost").unwrap();
    assert_eq!(store.read(&artifact, NOW_MS).unwrap(), b"lost");
}

/// Proves ART-2, HF-04.10: a put onto other bytes under its digest is refused and changes nothing.
#[test]
fn art_2_existing_content_must_match() {
    let place = Place::new();
    let store = place.open();
    put(&store, b"original").unwrap();
    for corrupt in [b"0riginal".as_slice(), b"", b"original and more"] {
        std::fs::write(place.file_of(b"original"), corrupt).unwrap();
        assert_eq!(code(put(&store, b"original")), "ARTIFACT_MISMATCH");
        assert_eq!(std::fs::read(place.file_of(b"original")).unwrap(), corrupt);
        assert_eq!(place.names().len(), 1, "no temporary file is left");
    }
}

/// Proves HF-04.12: the bytes handed out stay what was checked, whatever becomes of the file.
#[test]
fn hf_04_12_a_read_is_a_copy() {
    let place = Place::new();
    let store = place.open();
    let artifact = put(&store, b"checked").unwrap();
    let copy = store.read(&artifact, NOW_MS).unwrap();
    std::fs::write(place.file_of(b"checked"), b"swapped").unwrap();
    assert_eq!(copy, b"checked");
    assert_eq!(code(store.read(&artifact, NOW_MS)), "ARTIFACT_MISMATCH");
}

#[test]
fn a_file_is_put_like_its_bytes() {
    let place = Place::new();
    let store = place.open();
    let bytes: Vec<u8> = (0..3 * CHUNK_BYTES + 5)
        .map(|index| (index % 7) as u8)
        .collect();
    let source = place.root.path().join("source");
    std::fs::write(&source, &bytes).unwrap();
    let by_file = store
        .put_file(
            &source,
            "report.txt",
            "text/plain",
            &owner(),
            RETAIN_UNTIL_MS,
        )
        .unwrap();
    assert_eq!(by_file, put(&store, &bytes).unwrap());
    assert_eq!(store.read(&by_file, NOW_MS).unwrap(), bytes);
    // A second time it meets its own file and confirms it.
    let again = store.put_file(
        &source,
        "report.txt",
        "text/plain",
        &owner(),
        RETAIN_UNTIL_MS,
    );
    assert_eq!(again.unwrap(), by_file);
    place.assert_only_whole_artifacts("put_file");
}

#[test]
fn a_file_beyond_the_bound_is_refused_unread() {
    let place = Place::new();
    let store = place.open();
    let source = place.root.path().join("source");
    let file = std::fs::File::create(&source).unwrap();
    file.set_len(ARTIFACT_BYTES_MAX + 1).unwrap();
    let refused = store.put_file(&source, "key", "text/plain", &owner(), RETAIN_UNTIL_MS);
    assert!(matches!(refused, Err(ArtifactError::TooLarge { .. })));
    assert_eq!(code(refused), "SCHEMA_INVALID");
    assert!(place.names().is_empty());
}

/// Proves ART-9: the listing has what no record names, in order, and its age decides whether it is past retention.
#[test]
fn art_9_orphans_are_what_no_record_names() {
    let place = Place::new();
    let store = place.open();
    let all: BTreeSet<_> = [b"a", b"b", b"c", b"d"]
        .map(|bytes| put(&store, bytes.as_slice()).unwrap().digest)
        .into();
    std::fs::write(place.path.join("stranger"), b"not ours").unwrap();
    std::fs::write(place.path.join("A".repeat(64)), b"no digest of ours").unwrap();

    assert!(store.orphans(&all).unwrap().is_empty());
    let referenced: BTreeSet<_> = [sha256(b"b"), sha256(b"d")].into();
    let orphans = store.orphans(&referenced).unwrap();
    let found: Vec<_> = orphans.iter().map(|orphan| orphan.digest).collect();
    let expected: Vec<_> = all.difference(&referenced).copied().collect();
    assert_eq!(found, expected);
    assert!(orphans.iter().all(|orphan| orphan.size_bytes == 1));
    let orphan = &orphans[0];
    assert!(!orphan.is_past(5, orphan.last_put_ms + 4));
    assert!(orphan.is_past(5, orphan.last_put_ms + 5));
    assert!(!orphan.is_past(u64::MAX, u64::MAX - 1));
    assert_eq!(place.names().len(), 6, "a listing removes nothing");
}

#[test]
fn putting_again_makes_an_orphan_young() {
    let place = Place::new();
    let store = place.open();
    put(&store, b"twice").unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let file = std::fs::File::open(place.file_of(b"twice")).unwrap();
    file.set_modified(long_ago).unwrap();
    let age = || store.orphans(&BTreeSet::new()).unwrap()[0].last_put_ms;
    assert_eq!(age(), 1_000);
    put(&store, b"twice").unwrap();
    assert!(age() > 1_000);
}

#[test]
fn concurrent_puts_of_the_same_bytes_all_succeed_with_one_file() {
    let place = Place::new();
    for round in 0..20_u8 {
        let bytes = vec![round; 3 * CHUNK_BYTES];
        let shared = place.open();
        let other = place.open();
        let stores: [&FileArtifacts; 4] = [&shared, &shared, &other, &other];
        thread::scope(|scope| {
            for store in stores {
                let bytes = &bytes;
                scope.spawn(move || {
                    let artifact = put(store, bytes).unwrap();
                    assert_eq!(store.read(&artifact, NOW_MS).unwrap(), *bytes);
                });
            }
        });
        let file = std::fs::metadata(place.file_of(&bytes)).unwrap();
        assert_eq!((file.nlink(), file.len()), (1, bytes.len() as u64));
    }
    place.assert_only_whole_artifacts("concurrent puts");
    assert_eq!(place.names().len(), 20);
}

#[test]
fn a_put_that_is_overtaken_confirms_the_file_of_the_other() {
    let place = Place::new();
    let faults = Faults::none();
    let store = place.open_faulty(&faults).unwrap();
    let other = place.open();
    faults.before(Step::Publish, move || {
        put(&other, b"raced").unwrap();
    });
    let artifact = put(&store, b"raced").unwrap();
    assert_eq!(store.read(&artifact, NOW_MS).unwrap(), b"raced");
    place.assert_only_whole_artifacts("overtaken");

    let file = place.file_of(b"forged");
    faults.before(Step::Publish, move || {
        std::fs::write(file, b"other").unwrap()
    });
    assert_eq!(code(put(&store, b"forged")), "ARTIFACT_MISMATCH");
    assert_eq!(place.names().len(), 2, "no temporary file is left");
}

#[test]
fn opening_sweeps_what_dead_puts_left_and_spares_the_living() {
    let place = Place::new();
    let faults = Faults::none();
    let store = place.open_faulty(&faults).unwrap();
    let dead = place.path.join("temporary-1-1");
    std::fs::write(&dead, b"left by a crash").unwrap();
    std::fs::write(place.path.join("stranger"), b"not ours").unwrap();
    let path = Arc::new(place.path.clone());
    faults.before(Step::Sync, move || {
        FileArtifacts::open(&path).unwrap();
        assert!(!path.join("temporary-1-1").exists());
    });
    let artifact = put(&store, b"alive").unwrap();
    assert_eq!(store.read(&artifact, NOW_MS).unwrap(), b"alive");
    assert_eq!(
        place.names(),
        [artifact.digest.to_string(), "stranger".to_owned()]
    );
}

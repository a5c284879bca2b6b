//! What a collection removes, and what it must leave.
//! Invariant: bytes that were put again, or are being put, stay.
//! `cargo test -p praxis-artifacts` runs it.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use praxis_artifacts::{ArtifactProvider, FileArtifacts};

use crate::support::{Place, put};

fn directory(place: &Place) -> PathBuf {
    place.path.clone()
}

/// Ages the stored file to an hour after 1970.
fn age(place: &Place, digest: &str) {
    let path = directory(place).join(digest);
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(3_600))
        .unwrap();
}

/// Proves ART-9: an orphan is removed past the retention that the host gives, and not before; one that was put again
/// since it was listed stays.
#[test]
fn art_9_an_orphan_is_collected_past_its_retention_alone() {
    let place = Place::new();
    let store = place.open();
    let artifact = put(&store, b"left").unwrap();
    age(&place, &artifact.digest.to_string());
    let orphan = store.orphans(&BTreeSet::new()).unwrap().remove(0);
    let hour = 3_600_000;
    assert!(!store.collect(&orphan, hour, 2 * hour - 1).unwrap());
    put(&store, b"left").unwrap();
    assert!(
        !store.collect(&orphan, hour, 2 * hour).unwrap(),
        "put again"
    );
    assert!(store.contains(&artifact.digest).unwrap());
    age(&place, &artifact.digest.to_string());
    assert!(store.collect(&orphan, hour, 2 * hour).unwrap());
    assert!(!store.contains(&artifact.digest).unwrap());
    assert!(
        !store.collect(&orphan, hour, 2 * hour).unwrap(),
        "it is gone"
    );
    put(&store, b"left").unwrap();
    assert!(store.contains(&artifact.digest).unwrap());
}

/// A put that confirms the bytes holds them; here its lock is held by hand.
#[test]
fn bytes_that_are_being_put_stay() {
    let place = Place::new();
    let store = place.open();
    let artifact = put(&store, b"busy").unwrap();
    let orphan = store.orphans(&BTreeSet::new()).unwrap().remove(0);
    let held = File::open(directory(&place).join(artifact.digest.to_string())).unwrap();
    held.lock_shared().unwrap();
    assert!(!store.collect(&orphan, 0, u64::MAX).unwrap());
    drop(held);
    assert!(store.collect(&orphan, 0, u64::MAX).unwrap());
}

/// A look that is to change nothing makes no directory and sweeps nothing.
#[test]
fn a_store_can_be_opened_as_it_is() {
    let place = Place::new();
    assert!(FileArtifacts::open_as_it_is(&directory(&place)).is_err());
    assert!(!directory(&place).exists());
    drop(place.open());
    let left = directory(&place).join("temporary-1-1");
    std::fs::write(&left, "x").unwrap();
    let store = FileArtifacts::open_as_it_is(&directory(&place)).unwrap();
    assert!(store.orphans(&BTreeSet::new()).unwrap().is_empty());
    assert!(left.exists());
    drop(place.open());
    assert!(!left.exists());
}

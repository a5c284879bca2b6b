//! The names of temporary files: a put never writes into a file that it did not make.
//! Invariant: a name that is taken stays what it is, whoever took it and whether or not anybody still holds it.
//! `cargo test -p praxis-artifacts` runs it.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use praxis_artifacts::ArtifactError;
use praxis_artifacts::directory::Directory;
use praxis_artifacts::fs::{Fs, Step};
use praxis_artifacts::limits::TEMPORARY_NAMES_MAX;
use rustix::io::Errno;

use crate::support::{Faults, Place, put};

/// A file that is there is not opened in the place of a new one, even when nobody has its lock; a symlink is not
/// followed to make a file elsewhere.
#[test]
fn a_taken_name_is_never_written_over() {
    let place = Place::new();
    let directory = Directory::open(&place.path).unwrap();
    drop(directory.create("taken").unwrap());
    std::fs::write(place.path.join("taken"), b"another's").unwrap();
    let elsewhere = place.root.path().join("elsewhere");
    symlink(&elsewhere, place.path.join("link")).unwrap();
    for name in ["taken", "link"] {
        let Err(error) = directory.create(name) else {
            panic!("{name} was opened");
        };
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{name}");
    }
    assert_eq!(
        std::fs::read(place.path.join("taken")).unwrap(),
        b"another's"
    );
    assert!(!elsewhere.exists());
}

/// A put tries as many names as its bound says and then reports what the file system said: it neither gives up early
/// nor goes on for ever.
#[test]
fn taken_names_are_tried_up_to_the_bound() {
    let place = Place::new();
    let faults = Faults::none();
    let store = place.open_faulty(&faults).unwrap();
    faults.fail(Step::Create, Errno::EXIST);
    // With room for so many steps: was the first name tried, and did the put come to its own end?
    let tried = |steps: usize| {
        let reached = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&reached);
        faults.before(Step::Create, move || seen.store(true, Ordering::SeqCst));
        faults.stop_after(steps);
        let ended = match put(&store, b"bytes") {
            Err(ArtifactError::Io { source, .. }) => source.kind() == ErrorKind::AlreadyExists,
            other => panic!("{other:?}"),
        };
        (reached.load(Ordering::SeqCst), ended)
    };
    let first = (0..).find(|steps| tried(*steps).0).unwrap();
    let last = (first..).find(|steps| tried(*steps).1).unwrap();
    assert_eq!(last - first + 1, TEMPORARY_NAMES_MAX as usize);
}

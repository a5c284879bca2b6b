//! A crash between any two steps of a put, of an open, and of a put after a crash; then the store is opened again.
//! Invariant: invariants 39, 40 and 42 hold on every disk that such a crash can leave.
//! `cargo test -p praxis-artifacts` runs it.

use std::sync::Arc;

use aiws::digest::sha256;
use praxis_artifacts::{ArtifactError, ArtifactProvider, FileArtifacts};

use crate::support::{Content, Faults, NOW_MS, Names, Place, RETAIN_UNTIL_MS, owner, put};

const CONTENTS: [Content; 3] = [Content::Kept, Content::Lost, Content::Torn];
const NAMES: [Names; 3] = [Names::Kept, Names::Reverted, Names::Gone];

/// At least the steps of a put; and of an open after it with a put that meets what the first one left.
const FIRST_STEPS: usize = 9;
const SECOND_STEPS: usize = 12;

type Work = fn(&Place, &FileArtifacts) -> Result<(), ArtifactError>;

fn put_bytes(_: &Place, store: &FileArtifacts) -> Result<(), ArtifactError> {
    put(store, b"new bytes").map(drop)
}

fn put_file(place: &Place, store: &FileArtifacts) -> Result<(), ArtifactError> {
    let source = place.root.path().join("source");
    std::fs::write(&source, b"new bytes").unwrap();
    store
        .put_file(
            &source,
            "report.txt",
            "text/plain",
            &owner(),
            RETAIN_UNTIL_MS,
        )
        .map(drop)
}

/// Runs `work` with a crash after `steps` steps, takes what the case gives of the unsynced, opens again and checks.
/// Says whether the work came to its end.
fn crash(work: Work, steps: usize, content: Content, names: Names) -> bool {
    let case = format!("crash after {steps} steps, content {content:?}, names {names:?}");
    let place = Place::new();
    let faults = Faults::none();
    let store = place.open_faulty(&faults).unwrap();
    let earlier = put(&store, b"earlier").unwrap();
    faults.stop_after(steps);
    let reported = work(&place, &store).is_ok();
    drop(store);
    faults.lose_power(content, names);

    let store = place.open();
    place.assert_only_whole_artifacts(&case);
    assert_eq!(store.read(&earlier, NOW_MS).unwrap(), b"earlier", "{case}");
    let there = store.contains(&sha256(b"new bytes")).unwrap();
    assert!(there || !reported, "{case}: reported, and lost");

    let again = put(&store, b"new bytes").unwrap();
    assert_eq!(store.read(&again, NOW_MS).unwrap(), b"new bytes", "{case}");
    place.assert_only_whole_artifacts(&case);
    reported
}

/// Proves ART-1: after a crash between any two steps of a put, with any fate of what was not synced, no part
/// stands under a digest, what was reported is there, and the put can be done again.
#[test]
fn art_1_a_crash_leaves_all_or_nothing() {
    for work in [put_bytes as Work, put_file] {
        let mut steps = 0;
        while !crash_with_every_fate(work, steps) {
            steps += 1;
        }
        // The crashes must have fallen into the put: create, write, sync, publish, directory sync at the least.
        assert!(steps >= 5, "{steps}");
    }
}

fn crash_with_every_fate(work: Work, steps: usize) -> bool {
    let mut reported = true;
    for content in CONTENTS {
        for names in NAMES {
            reported &= crash(work, steps, content, names);
        }
    }
    reported
}

/// Proves ART-1: two crashes in a row, the second at any step of the open or the put that follows the first,
/// whose disk kept the published name although it was never synced.
#[test]
fn art_1_a_crash_after_a_crash_leaves_all_or_nothing() {
    for first in 0..=FIRST_STEPS {
        for second in 0..=SECOND_STEPS {
            for names in NAMES {
                let case = format!("crashes after {first} and {second} steps, names {names:?}");
                let place = Place::new();
                let faults = Faults::none();
                let store = place.open_faulty(&faults).unwrap();
                faults.stop_after(first);
                let mut reported = put(&store, b"new bytes").is_ok();
                drop(store);
                // The names stay as they are but are not durable yet: the second crash may still take them.
                faults.stop_after(second);
                reported |= reopen_and_put(&place, &faults);
                faults.lose_power(Content::Torn, names);

                let store = place.open();
                place.assert_only_whole_artifacts(&case);
                let there = store.contains(&sha256(b"new bytes")).unwrap();
                assert!(there || !reported, "{case}: reported, and lost");
            }
        }
    }
}

fn reopen_and_put(place: &Place, faults: &Arc<Faults>) -> bool {
    let Ok(store) = place.open_faulty(faults) else {
        return false;
    };
    put(&store, b"new bytes").is_ok()
}

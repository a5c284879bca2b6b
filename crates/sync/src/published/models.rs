//! Loom models of the published snapshot: monotone readers, consistent pairs, publish before reply, no lost wake-up.
//! Invariant: each model drives the production `Published` through every interleaving within its bound.
//! The loom command of the crate's docs runs it.

use std::sync::Arc as Value;
use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::Published;

// Loom has no clock: a wait ends by a notification or the model deadlocks and fails.
const LONG: Duration = Duration::from_secs(600);

fn published() -> Arc<Published<u64>> {
    Arc::new(Published::new(Value::new(0)))
}

#[test]
fn no_reader_sees_an_older_value_after_a_newer_one() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let published = published();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let published = published.clone();
                thread::spawn(move || {
                    let first = published.load();
                    let second = published.load_versioned();
                    assert!(*second.value >= *first, "{second:?} after {first}");
                    assert_eq!(*second.value, second.version, "a torn pair");
                    assert!(*published.load() >= *second.value);
                })
            })
            .collect();
        for number in 1..=2 {
            assert_eq!(published.store(Value::new(number)), number);
        }
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(*published.load(), 2);
    });
}

#[test]
fn the_version_is_never_ahead_of_the_next_load() {
    loom::model(|| {
        let published = published();
        let reader = {
            let published = published.clone();
            thread::spawn(move || {
                let hint = published.version();
                let loaded = published.load_versioned();
                assert!(loaded.version >= hint, "{hint} announced, {loaded:?} read");
                assert!(published.version() >= loaded.version, "the version fell");
            })
        };
        published.store(Value::new(1));
        published.store(Value::new(2));
        reader.join().unwrap();
    });
}

#[test]
fn what_was_published_before_a_reply_is_seen_after_it() {
    loom::model(|| {
        let published = published();
        let replied = Arc::new(AtomicBool::new(false));
        let writer = {
            let (published, replied) = (published.clone(), replied.clone());
            thread::spawn(move || {
                published.store(Value::new(1));
                replied.store(true, Ordering::Release);
            })
        };
        if replied.load(Ordering::Acquire) {
            assert_eq!(published.version(), 1);
            assert_eq!(*published.load(), 1);
        }
        writer.join().unwrap();
    });
}

#[test]
fn concurrent_stores_get_distinct_versions() {
    loom::model(|| {
        let published = published();
        let writers: Vec<_> = [7, 8]
            .into_iter()
            .map(|number| {
                let published = published.clone();
                thread::spawn(move || (published.store(Value::new(number)), number))
            })
            .collect();
        let mut stores: Vec<_> = writers.into_iter().map(|w| w.join().unwrap()).collect();
        stores.sort_unstable();
        assert_eq!((stores[0].0, stores[1].0), (1, 2));
        assert_eq!(
            *published.load(),
            stores[1].1,
            "the last version's value stays"
        );
    });
}

#[test]
fn a_waiter_is_woken_by_the_store() {
    loom::model(|| {
        let published = published();
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let published = published.clone();
                thread::spawn(move || published.wait_newer(0, LONG).unwrap().version)
            })
            .collect();
        published.store(Value::new(1));
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), 1);
        }
    });
}

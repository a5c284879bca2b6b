//! What the published snapshot answers on one thread, and under contention on real ones.
//! Invariant: value and version of a load belong together.
//! `cargo test -p praxis-sync` runs it.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Published;

const LONG: Duration = Duration::from_secs(600);

#[test]
fn versions_count_the_stores() {
    let published = Published::new(Arc::new("a"));
    assert_eq!((published.version(), *published.load()), (0, "a"));
    assert_eq!(published.store(Arc::new("b")), 1);
    assert_eq!(published.store(Arc::new("c")), 2);
    let latest = published.load_versioned();
    assert_eq!((latest.version, *latest.value), (2, "c"));
    assert_eq!(published.version(), 2);
}

#[test]
fn a_reader_keeps_the_snapshot_it_loaded() {
    let published = Published::new(Arc::new(vec![1]));
    let before = published.load();
    published.store(Arc::new(vec![2]));
    assert_eq!(
        (before.as_slice(), published.load().as_slice()),
        (&[1][..], &[2][..])
    );
}

#[test]
fn a_replaced_snapshot_that_nobody_holds_is_freed() {
    let first = Arc::new(1);
    let watch = Arc::downgrade(&first);
    let published = Published::new(first);
    published.store(Arc::new(2));
    assert!(watch.upgrade().is_none());
}

#[test]
fn wait_newer_returns_at_once_when_it_can() {
    let published = Published::new(Arc::new(10));
    assert!(published.wait_newer(0, Duration::ZERO).is_none());
    assert!(published.wait_newer(0, Duration::from_millis(1)).is_none());
    published.store(Arc::new(11));
    let newer = published.wait_newer(0, Duration::ZERO).unwrap();
    assert_eq!((newer.version, *newer.value), (1, 11));
    assert!(published.wait_newer(1, Duration::ZERO).is_none());
    published.store(Arc::new(12));
    assert_eq!(published.wait_newer(1, Duration::MAX).unwrap().version, 2);
}

#[test]
fn waiters_see_versions_rise_to_the_last() {
    const STORES: u64 = 2_000;
    let published = Published::new(Arc::new(0_u64));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut seen = 0;
                while seen < STORES {
                    let newer = published.wait_newer(seen, LONG).unwrap();
                    assert!(newer.version > seen);
                    // One writer stores the number of each store, so value and version must agree.
                    assert_eq!(*newer.value, newer.version);
                    assert!(published.version() >= newer.version);
                    seen = newer.version;
                }
            });
        }
        for number in 1..=STORES {
            assert_eq!(published.store(Arc::new(number)), number);
        }
    });
}

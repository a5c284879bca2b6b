//! What the commit queue answers on one thread, and under contention on real ones.
//! Invariant: accepted items and drained items are the same list, per submitter in order.
//! `cargo test -p praxis-sync` runs it.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{Refused, Wait, channel};
use crate::limits::QUEUE_CAPACITY_MAX;

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_batch_takes_all_that_waits_in_order_up_to_max() {
    // (waiting, max, taken)
    for (waiting, max, taken) in [(1, 8, 1), (5, 8, 5), (5, 5, 5), (5, 2, 2), (5, 0, 1)] {
        let (submitter, mut drain) = channel(16);
        for item in 0..waiting {
            submitter.submit(item).unwrap();
        }
        let mut out = vec![-1];
        assert_eq!(drain.next_batch(max, &mut out), Wait::Ready);
        let expected: Vec<i32> = (-1..taken).collect();
        assert_eq!(out, expected, "{waiting} waiting, max {max}");
        assert_eq!(drain.waiting(), (waiting - taken) as usize);
    }
}

#[test]
fn a_full_queue_gives_the_item_back_and_keeps_the_others() {
    let (submitter, mut drain) = channel(2);
    submitter.submit("a").unwrap();
    submitter.submit("b").unwrap();
    assert!(matches!(submitter.submit("c"), Err(Refused::Full("c"))));
    let mut out = Vec::new();
    assert_eq!(drain.next_batch(9, &mut out), Wait::Ready);
    assert_eq!(out, ["a", "b"]);
    submitter.submit("c").unwrap();
    assert_eq!(drain.waiting(), 1);
}

#[test]
fn capacity_is_brought_into_its_bounds() {
    let (submitter, _drain) = channel(0);
    submitter.submit(1).unwrap();
    assert_eq!(submitter.submit(2).unwrap_err().into_item(), 2);

    let (submitter, drain) = channel(usize::MAX);
    for item in 0..QUEUE_CAPACITY_MAX {
        submitter.submit(item).unwrap();
    }
    assert!(matches!(submitter.submit(0), Err(Refused::Full(0))));
    assert_eq!(drain.waiting(), QUEUE_CAPACITY_MAX);
}

#[test]
fn close_refuses_new_items_and_drains_the_accepted() {
    type Close = fn(&super::Submitter<u8>, &super::Drain<u8>);
    let ways: [Close; 2] = [|submitter, _| submitter.close(), |_, drain| drain.close()];
    for close in ways {
        let (submitter, mut drain) = channel(4);
        submitter.submit(1).unwrap();
        submitter.submit(2).unwrap();
        close(&submitter, &drain);
        assert!(matches!(
            submitter.clone().submit(3),
            Err(Refused::Closed(3))
        ));
        let mut out = Vec::new();
        assert_eq!(drain.next_batch(1, &mut out), Wait::Ready);
        assert_eq!(drain.next_batch(1, &mut out), Wait::Ready);
        assert_eq!(drain.next_batch(1, &mut out), Wait::Closed);
        assert_eq!(out, [1, 2]);
    }
}

#[test]
fn a_closed_queue_that_is_full_says_closed() {
    let (submitter, drain) = channel(1);
    submitter.submit(1).unwrap();
    drain.close();
    assert!(matches!(submitter.submit(2), Err(Refused::Closed(2))));
}

#[test]
fn the_last_submitter_closes_by_leaving() {
    let (submitter, mut drain) = channel(4);
    let other = submitter.clone();
    drop(submitter);
    other.submit(1).unwrap();
    drop(other);
    let mut out = Vec::new();
    assert_eq!(drain.next_batch(4, &mut out), Wait::Ready);
    assert_eq!(drain.next_batch(4, &mut out), Wait::Closed);
    assert_eq!(out, [1]);
}

#[test]
fn a_dropped_drain_refuses_and_frees_what_waited() {
    let (submitter, drain) = channel(4);
    let item = Arc::new(());
    submitter.submit(Arc::clone(&item)).unwrap();
    drop(drain);
    assert_eq!(Arc::strong_count(&item), 1, "the waiting item is freed");
    assert!(matches!(submitter.submit(item), Err(Refused::Closed(_))));
}

/// An item that submits another one when it is dropped, as a caller's guard might.
struct Resubmits(Option<super::Submitter<Resubmits>>);

impl Drop for Resubmits {
    fn drop(&mut self) {
        if let Some(submitter) = self.0.take() {
            let refused = submitter.submit(Resubmits(None));
            assert!(matches!(refused, Err(Refused::Closed(_))));
        }
    }
}

#[test]
fn an_item_may_submit_while_it_is_dropped() {
    let (submitter, drain) = channel(4);
    let item = Resubmits(Some(submitter.clone()));
    submitter.submit(item).unwrap();
    drop(drain);
}

#[test]
fn a_timed_wait_ends_by_item_time_or_close() {
    let (submitter, mut drain) = channel(4);
    let mut out = Vec::new();
    assert_eq!(
        drain.next_batch_timeout(4, &mut out, Duration::ZERO),
        Wait::TimedOut
    );
    assert_eq!(
        drain.next_batch_timeout(4, &mut out, Duration::from_millis(1)),
        Wait::TimedOut
    );
    submitter.submit(7).unwrap();
    assert_eq!(
        drain.next_batch_timeout(4, &mut out, Duration::ZERO),
        Wait::Ready
    );
    submitter.submit(8).unwrap();
    assert_eq!(
        drain.next_batch_timeout(4, &mut out, Duration::MAX),
        Wait::Ready
    );
    drop(submitter);
    assert_eq!(drain.next_batch_timeout(4, &mut out, LONG), Wait::Closed);
    assert_eq!(out, [7, 8]);
}

#[test]
fn nothing_is_lost_or_reordered_between_threads() {
    const EACH: u64 = 5_000;
    let (submitter, mut drain) = channel(64);
    let mut next = [0_u64; 4];
    thread::scope(|scope| {
        for producer in 0..next.len() {
            let submitter = submitter.clone();
            scope.spawn(move || {
                for number in 0..EACH {
                    let mut item = (producer, number);
                    while let Err(refused) = submitter.submit(item) {
                        assert!(matches!(refused, Refused::Full(_)));
                        item = refused.into_item();
                        thread::yield_now();
                    }
                }
            });
        }
        drop(submitter);
        let mut out = Vec::new();
        let mut timed = false;
        loop {
            timed = !timed;
            let wait = if timed {
                drain.next_batch_timeout(16, &mut out, LONG)
            } else {
                drain.next_batch(16, &mut out)
            };
            if wait == Wait::Closed {
                break;
            }
            assert!((1..=16).contains(&out.len()));
            for (producer, number) in out.drain(..) {
                assert_eq!(number, next[producer], "producer {producer}");
                next[producer] += 1;
            }
        }
    });
    assert_eq!(next, [EACH; 4]);
}

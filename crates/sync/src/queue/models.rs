//! Loom models of the commit queue: nothing lost, order kept, close and drop against submit, no lost wake-up.
//! Invariant: each model drives the production queue through every interleaving within its preemption bound.
//! The loom command of the crate's docs runs it.

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;

use super::{Drain, Refused, Submitter, Wait, channel};

/// Runs `model` with at most `bound` preemptions per execution: enough for every bug of two or three critical
/// sections to meet, and small enough for seconds.
fn check(bound: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.check(model);
}

fn drain_all<T>(drain: &mut Drain<T>, max: usize) -> Vec<T> {
    let mut out = Vec::new();
    while drain.next_batch(max, &mut out) == Wait::Ready {}
    out
}

fn producer(submitter: Submitter<(u8, u8)>, name: u8, items: u8) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for number in 0..items {
            assert!(submitter.submit((name, number)).is_ok());
        }
    })
}

#[test]
fn nothing_is_lost_and_each_producer_keeps_its_order() {
    check(3, || {
        let (submitter, mut drain) = channel(4);
        let one = producer(submitter.clone(), 1, 2);
        let two = producer(submitter, 2, 2);
        let drained = drain_all(&mut drain, 3);
        for name in [1, 2] {
            let numbers: Vec<u8> = drained
                .iter()
                .filter(|i| i.0 == name)
                .map(|i| i.1)
                .collect();
            assert_eq!(numbers, [0, 1], "producer {name} in {drained:?}");
        }
        one.join().unwrap();
        two.join().unwrap();
    });
}

#[test]
fn a_sleeping_drain_is_woken_by_the_first_item() {
    // A submitter stays alive, so no close can cover up for a wake-up that went missing: that would be a deadlock.
    check(3, || {
        let (submitter, mut drain) = channel(4);
        let kept = submitter.clone();
        let one = producer(submitter.clone(), 1, 1);
        let two = producer(submitter, 2, 1);
        let mut out = Vec::new();
        while out.len() < 2 {
            assert_eq!(drain.next_batch(1, &mut out), Wait::Ready);
        }
        one.join().unwrap();
        two.join().unwrap();
        drop(kept);
    });
}

#[test]
fn a_timed_wait_is_woken_by_the_first_item_too() {
    check(3, || {
        let (submitter, mut drain) = channel(4);
        let kept = submitter.clone();
        let one = producer(submitter, 1, 2);
        let mut out = Vec::new();
        while out.len() < 2 {
            let wait = drain.next_batch_timeout(4, &mut out, Duration::from_secs(600));
            assert_eq!(wait, Wait::Ready);
        }
        assert_eq!(out, [(1, 0), (1, 1)]);
        one.join().unwrap();
        drop(kept);
    });
}

#[test]
fn the_last_submitter_to_leave_wakes_the_drain() {
    check(3, || {
        let (submitter, mut drain) = channel::<u8>(1);
        let leavers: Vec<_> = [submitter.clone(), submitter]
            .into_iter()
            .map(|submitter| thread::spawn(move || drop(submitter)))
            .collect();
        assert_eq!(drain.next_batch(1, &mut Vec::new()), Wait::Closed);
        for leaver in leavers {
            leaver.join().unwrap();
        }
    });
}

#[test]
fn close_against_submit_drains_exactly_the_accepted() {
    check(3, || {
        let (submitter, mut drain) = channel(4);
        let submitting = {
            let submitter = submitter.clone();
            thread::spawn(move || {
                let mut accepted = Vec::new();
                for number in 0..2 {
                    match submitter.submit(number) {
                        Ok(()) => accepted.push(number),
                        Err(Refused::Closed(back)) => assert_eq!(back, number),
                        Err(Refused::Full(_)) => panic!("four slots, two items"),
                    }
                }
                accepted
            })
        };
        let closing = thread::spawn(move || {
            submitter.close();
            assert!(matches!(submitter.submit(9), Err(Refused::Closed(9))));
        });
        let drained = drain_all(&mut drain, 4);
        closing.join().unwrap();
        assert_eq!(drained, submitting.join().unwrap());
    });
}

#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    check(3, || {
        let (submitter, mut drain) = channel(1);
        let producers: Vec<_> = [(submitter.clone(), 1), (submitter, 2)]
            .into_iter()
            .map(|(submitter, number)| {
                thread::spawn(move || match submitter.submit(number) {
                    Ok(()) => Some(number),
                    Err(Refused::Full(back)) => {
                        assert_eq!(back, number);
                        None
                    }
                    Err(Refused::Closed(_)) => panic!("nobody closed the queue"),
                })
            })
            .collect();
        let mut drained = drain_all(&mut drain, 4);
        let mut accepted: Vec<u8> = producers
            .into_iter()
            .filter_map(|p| p.join().unwrap())
            .collect();
        drained.sort_unstable();
        accepted.sort_unstable();
        assert_eq!(drained, accepted);
        assert!(!accepted.is_empty(), "the first to come finds room");
    });
}

#[test]
fn a_dropped_drain_frees_or_refuses_every_item() {
    check(3, || {
        let (submitter, drain) = channel(3);
        let kept = submitter.clone();
        // Loom's Arc fails the model when an item is never freed.
        let item = Arc::new(());
        let submitting = {
            let item = item.clone();
            thread::spawn(move || {
                let first = submitter.submit(item.clone());
                let second = submitter.submit(item);
                if first.is_err() {
                    assert!(matches!(second, Err(Refused::Closed(_))), "reopened");
                }
            })
        };
        drop(drain);
        assert!(matches!(kept.submit(item.clone()), Err(Refused::Closed(_))));
        submitting.join().unwrap();
        assert_eq!(Arc::strong_count(&item), 1);
    });
}

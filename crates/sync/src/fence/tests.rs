//! What the fence answers on one thread, and under contention on real ones.
//! Invariant: a refused advance changes nothing.
//! `cargo test -p praxis-sync` runs it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{Fence, Stale};

#[test]
fn advance_strictly_rises() {
    let cases: [(u64, u64, Result<(), Stale>, u64); 6] = [
        (0, 1, Ok(()), 1),
        (3, 9, Ok(()), 9),
        (3, 3, Err(Stale { current: 3, to: 3 }), 3),
        (3, 2, Err(Stale { current: 3, to: 2 }), 3),
        (u64::MAX - 1, u64::MAX, Ok(()), u64::MAX),
        (
            u64::MAX,
            u64::MAX,
            Err(Stale {
                current: u64::MAX,
                to: u64::MAX,
            }),
            u64::MAX,
        ),
    ];
    for (from, to, expected, after) in cases {
        let fence = Fence::new(from);
        assert_eq!(fence.advance(to), expected, "{from} -> {to}");
        assert_eq!(fence.current(), after, "{from} -> {to}");
    }
}

#[test]
fn only_the_current_epoch_holds() {
    let fence = Fence::new(4);
    assert!(fence.holds(4));
    assert!(!fence.holds(3) && !fence.holds(5));
    assert_eq!(fence.advance(5), Ok(()));
    assert!(fence.holds(5));
    assert!(!fence.holds(4));
}

#[test]
fn every_epoch_is_won_once() {
    const EPOCHS: u64 = 500;
    let fence = Fence::new(0);
    let wins = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for to in 1..=EPOCHS {
                    if fence.advance(to).is_ok() {
                        wins.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(fence.current(), EPOCHS);
    // An advancer that runs ahead leaves the others nothing to win below it, so there are never more wins than epochs.
    assert!(wins.into_inner() <= EPOCHS as usize);
}

#[test]
fn a_refusal_says_what_was_found_and_what_to_do() {
    let text = Stale { current: 7, to: 6 }.to_string();
    assert!(text.contains("above 7") && text.contains("got 6"), "{text}");
}

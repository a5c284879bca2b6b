//! Loom models of the fence: a deposed epoch, two advancers, an epoch that only rises.
//! Invariant: each model drives the production `Fence` through every interleaving within its bound.
//! The loom command of the crate's docs runs it.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::Fence;

#[test]
fn no_old_epoch_holds_once_the_advance_returned() {
    loom::model(|| {
        let fence = Arc::new(Fence::new(1));
        let returned = Arc::new(AtomicBool::new(false));
        let takeover = {
            let (fence, returned) = (fence.clone(), returned.clone());
            thread::spawn(move || {
                assert!(fence.advance(2).is_ok());
                assert!(!fence.holds(1), "the advancer itself");
                // Stands for the reply, lock or message by which another thread learns of the takeover.
                returned.store(true, Ordering::Release);
            })
        };
        let deposed = {
            let (fence, returned) = (fence.clone(), returned.clone());
            thread::spawn(move || {
                if returned.load(Ordering::Acquire) {
                    assert!(!fence.holds(1), "told of the takeover, yet still owner");
                    assert!(fence.holds(2));
                }
            })
        };
        deposed.join().unwrap();
        takeover.join().unwrap();
        assert!(!fence.holds(1));
        assert_eq!(fence.current(), 2);
    });
}

#[test]
fn two_advancers_to_one_epoch_one_wins() {
    loom::model(|| {
        let fence = Arc::new(Fence::new(1));
        let advancers: Vec<_> = (0..2)
            .map(|_| {
                let fence = fence.clone();
                thread::spawn(move || fence.advance(2))
            })
            .collect();
        let results: Vec<_> = advancers.into_iter().map(|t| t.join().unwrap()).collect();
        assert_eq!(results.iter().filter(|r| r.is_ok()).count(), 1);
        let loser = results.into_iter().find_map(Result::err).unwrap();
        assert_eq!((loser.current, loser.to), (2, 2));
        assert_eq!(fence.current(), 2);
    });
}

#[test]
fn advancers_to_different_epochs_leave_the_higher() {
    loom::model(|| {
        let fence = Arc::new(Fence::new(1));
        let low = {
            let fence = fence.clone();
            thread::spawn(move || fence.advance(2))
        };
        let high = {
            let fence = fence.clone();
            thread::spawn(move || fence.advance(3))
        };
        let low = low.join().unwrap();
        assert!(
            high.join().unwrap().is_ok(),
            "nothing above 3 was asked for"
        );
        if let Err(stale) = low {
            assert_eq!(stale.current, 3, "2 loses to 3 alone");
        }
        assert_eq!(fence.current(), 3);
    });
}

#[test]
fn no_thread_sees_the_epoch_fall() {
    loom::model(|| {
        let fence = Arc::new(Fence::new(1));
        let advancers: Vec<_> = [2, 3]
            .into_iter()
            .map(|to| {
                let fence = fence.clone();
                thread::spawn(move || fence.advance(to).is_ok())
            })
            .collect();
        let mut seen = 0;
        for _ in 0..3 {
            let now = fence.current();
            assert!(now >= seen, "{now} after {seen}");
            seen = now;
        }
        for advancer in advancers {
            advancer.join().unwrap();
        }
    });
}

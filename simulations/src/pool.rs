//! Independent pieces of work on several threads.
//!
//! Invariant: results come in the order of the pieces, whatever thread did them. Called by campaigns.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Does the pieces 0, 1, 2 ... until `work` gives none, each on the next free thread.
///
/// A thread that cannot be started leaves its pieces to the others; if none can be, the caller's own does them.
pub fn each<T: Send>(threads: usize, work: impl Fn(u64) -> Option<T> + Sync) -> Vec<T> {
    let next = AtomicU64::new(0);
    let done: Mutex<Vec<(u64, T)>> = Mutex::default();
    let hand = || {
        loop {
            let at = next.fetch_add(1, Ordering::SeqCst);
            let Some(result) = work(at) else { return };
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.max(1) {
            let builder = thread::Builder::new().name("simulation".to_owned());
            drop(builder.spawn_scoped(scope, hand));
        }
        hand();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::each;

    #[test]
    fn results_come_in_the_order_of_the_pieces() {
        for threads in [0, 1, 2, 8] {
            let squares = each(threads, |at| (at < 100).then_some(at * at));
            assert_eq!(squares, (0..100).map(|at| at * at).collect::<Vec<u64>>());
        }
    }
}

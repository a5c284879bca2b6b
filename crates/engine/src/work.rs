//! Effect workers in flight: how many, so that a drain can wait for the last one, and for which attempts.
//!
//! Invariant: a guard counts from when it is taken until it is dropped, whatever happens to its task.
//! Taken before a worker is spawned, awaited by `Engine::shutdown`, asked by the scheduler.

use std::collections::BTreeSet;
use std::sync::Arc;

use aiws::id::AttemptId;
use praxis_model::stream::Subject;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// A worker's attempt; none for calls of a program and for look-ups.
type Key = Option<(Subject, AttemptId)>;

/// What is in flight.
#[derive(Clone)]
pub(crate) struct Work(Arc<watch::Sender<Flight>>);

#[derive(Default)]
struct Flight {
    count: usize,
    attempts: BTreeSet<(Subject, AttemptId)>,
    calls: Vec<AbortHandle>,
}

/// One worker in flight.
pub(crate) struct Guard {
    work: Work,
    key: Key,
}

impl Work {
    /// None in flight.
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Flight::default())))
    }

    /// Counts one more until the guard is dropped.
    pub(crate) fn enter(&self, key: Key) -> Guard {
        self.0.send_modify(|flight| {
            flight.count += 1;
            flight.attempts.extend(key.clone());
        });
        Guard {
            work: self.clone(),
            key,
        }
    }

    /// Whether this process still has a worker for the attempt.
    pub(crate) fn has(&self, subject: &Subject, attempt: &AttemptId) -> bool {
        self.0
            .borrow()
            .attempts
            .contains(&(subject.clone(), attempt.clone()))
    }

    /// Keeps a call so that it can be stopped; those that ended are forgotten.
    pub(crate) fn keep(&self, call: AbortHandle) {
        self.0.send_modify(|flight| {
            flight.calls.retain(|call| !call.is_finished());
            flight.calls.push(call);
        });
    }

    /// Stops every call at once. What it did until then nobody can say.
    pub(crate) fn abort(&self) {
        self.0
            .send_modify(|flight| flight.calls.drain(..).for_each(|call| call.abort()));
    }

    /// Waits until none is in flight.
    pub(crate) async fn idle(&self) {
        let mut flight = self.0.subscribe();
        // The sender is ours, so the wait cannot fail.
        let _ = flight.wait_for(|flight| flight.count == 0).await;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.work.0.send_modify(|flight| {
            flight.count -= 1;
            if let Some(key) = &self.key {
                flight.attempts.remove(key);
            }
        });
    }
}

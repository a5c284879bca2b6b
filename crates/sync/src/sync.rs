//! The one door to locks and atomics: `std`'s in a normal build, loom's under `cfg(loom)`.
//! Invariant: no other file of this crate names `std::sync` for anything but the `Arc` of a caller's value.
//! `queue`, `published` and `fence` call it.

use std::time::Duration;

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

/// Locks, ignoring poison: no caller's code runs under a lock of this crate, so a panic elsewhere cannot have left
/// the guarded state half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Waits for a notification; may wake without one, so callers look again at what they wait for.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar
        .wait(guard)
        .unwrap_or_else(|poison| poison.into_inner())
}

/// As [`wait`], for at most `timeout`. Loom has no clock: there this waits for the notification alone, so a model
/// whose wake-up is lost deadlocks and fails instead of passing by timeout.
pub(crate) fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Duration,
) -> MutexGuard<'a, T> {
    condvar
        .wait_timeout(guard, timeout)
        .unwrap_or_else(|poison| poison.into_inner())
        .0
}

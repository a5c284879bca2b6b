//! Marks: states that a night of seeds should reach; one that none reaches is a hole in the simulation.
//!
//! Invariant: a name is never given to another state. Set all over the oracle, read by reports.

/// All of them, sorted.
pub const MARKS: [&str; 30] = [
    "answer-lost",
    "budget-refused",
    "canceled",
    "claimed-again",
    "collected",
    "commit-failed",
    "completed",
    "damage-told",
    "delivered-again",
    "deposed-owner-refused",
    "duplicate-after-reopening",
    "gate-refused",
    "head-refused",
    "hold-over-restart",
    "in-doubt-was-not-stored",
    "in-doubt-was-stored",
    "late-refused",
    "late-settlement",
    "look-up-found",
    "look-up-found-nothing",
    "lost-read-settled",
    "overrun",
    "received",
    "reclaimed-after-expiry",
    "reopened",
    "replayed",
    "replayed-conflict",
    "retried",
    "sequence-stored",
    "unknown-reconciled",
];

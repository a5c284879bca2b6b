//! Tests of the artifact store on real directories.
//! Invariant: every fault is injected at a step of the real file system; nothing imitates one.
//! `cargo test -p praxis-artifacts` runs it.

#![allow(
    clippy::unwrap_used,
    reason = "shared functions of a test are tests too, which clippy does not see"
)]

mod collect;
mod crashes;
mod faults;
mod names;
mod puts;
mod refusals;
mod support;

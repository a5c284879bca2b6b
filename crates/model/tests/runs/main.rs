//! Whole runs: driven by plan alone, folded again from their events, told by the wire, and walked at random.
//!
//! Invariant: every run here passes through the same decide and evolve as in the engine, without a store.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot go on says why and stops"
)]

mod branches;
mod driver;
mod forms;
mod invalidations;
mod kinds;
mod lives;
mod meetings;
mod plan;
mod redecide;
mod replay;
mod requests;
mod walk;
mod wire;
#[path = "../world/mod.rs"]
mod world;

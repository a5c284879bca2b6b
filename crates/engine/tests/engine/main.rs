//! Tests of the engine through its public API, on real stores.
//! Invariant: no mock of the journal, no waiting by time.
//! `cargo test -p praxis-engine` runs them.

#![allow(clippy::expect_used, reason = "a helper of a test fails the test")]

mod deposed;
mod doors;
mod driven;
mod effects;
mod embed;
mod lost_material;
mod owners;
mod process;
mod replies;
mod sequence_forgeries;
mod sequence_kills;
mod sequence_races;
mod sequence_scheduler;
mod sequences;
mod shim;
mod stages;
mod storage;
mod support;
mod turns;

//! Tests of the engine through its public API, on real stores.
//! Invariant: no mock of the journal, no waiting by time.
//! `cargo test -p praxis-engine` runs them.

mod driven;
mod effects;
mod embed;
mod owners;
mod process;
mod stages;
mod storage;
mod support;

//! The tests of the SDK surface, one binary.
//! Invariant: records and states come from the protocol and the model; nothing is imitated here.
//! Called by `cargo test`.

#![allow(clippy::expect_used, reason = "a helper of a test fails the test")]

mod handoff;
mod records;
#[path = "../../../model/tests/world/mod.rs"]
mod world;

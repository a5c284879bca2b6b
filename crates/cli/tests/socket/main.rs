//! The socket of an engine: its protocol, its workers, and whatever can be thrown at it.
//! Invariant: each test has a store of its own; a real `praxis serve` answers.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod doc;
mod robust;
#[path = "../support/mod.rs"]
mod support;
mod worker;

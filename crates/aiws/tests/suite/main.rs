//! The tests of the protocol crate, one binary so that its dependencies are linked once.
//! Invariant: each test names the requirement that it proves; cases are tables wherever they can be.
//! Called by `cargo test`; the corpora also need PRAXIS_CORPORA.

#![allow(clippy::expect_used, reason = "a helper of a test fails the test")]

mod agree;
mod canonical;
mod codes;
mod corpora;
mod examples;
mod mutants;
mod nodes;
mod records;
mod refusals;
mod relations;
mod schema;
mod schemas;
mod spoiled;
mod strict;
mod values;

//! House rules, conformance table and the plumbing that they share; end-to-end tests stand in `tests/`.
//! Invariant: nothing here is used by another crate, and every rule can fail (each has a case that breaks it).
//! `cargo test` calls it; generated documents are written anew when `PRAXIS_BLESS=1` is set.

pub mod claims;
pub mod conformance;
pub mod generated;
pub mod lex;
#[cfg(test)]
mod machines;
pub mod repo;
pub mod spec;
pub mod tidy;

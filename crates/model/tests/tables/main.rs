//! The tables of the wire form held against decide, cell by cell, and the precedence of errors, pair by pair.
//!
//! Invariant: what is expected is written down here by hand from the wire form (`order`, `delivery`, `hold`, `gates`) and
//! never asked of the code under test. Run by `cargo test -p praxis-model --test tables`; `docs/TABLES.md` shows the result.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot go on says why and stops"
)]

#[cfg(debug_assertions)]
mod ablation;
mod admit;
mod boundary;
mod claims;
mod delivery;
mod effects;
mod gates;
mod hold;
mod holds;
mod mission;
mod order;
mod page;
#[cfg(debug_assertions)]
#[path = "../parts/mod.rs"]
mod parts;
mod precedence;
mod raises;
mod rest;
mod scene;
#[path = "../world/mod.rs"]
mod world;

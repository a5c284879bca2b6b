//! Acceptance scenarios through the engine's public API: strict wire bytes in, events and refusals out.
//! Invariant: every case runs twice, once with every reply dropped and its request sent again, and ends with the
//! whole of the store verified. `cargo test -p praxis-tests --test scenarios` runs it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "shared functions of a test are tests too, which clippy does not see"
)]

mod approvals;
mod bodies;
mod branches;
mod choices;
mod crash;
mod deep;
mod field;
mod host;
mod invalidation;
mod kinds;
mod long;
mod oracle;
mod owners;
mod precedence;
mod precedence_all;
mod races;
mod refusals;
mod steps;
mod summaries;
mod tamper;
mod undecided;
mod wire;
mod world;

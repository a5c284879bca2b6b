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
mod canaries;
mod choices;
mod clock;
mod crash;
mod deep;
mod disclosure;
mod driven;
mod faulty;
mod field;
mod handoff_page;
mod host;
mod invalidation;
mod kept;
mod kinds;
mod listed;
mod long;
mod material;
mod oracle;
mod owners;
mod precedence;
mod precedence_all;
mod races;
mod refusals;
mod rules;
mod steps;
mod storage;
mod strict;
mod summaries;
mod tamper;
mod traces;
mod undecided;
mod wire;
mod world;

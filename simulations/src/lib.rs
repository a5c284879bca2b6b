//! The deterministic crash simulator: real storage code on a disk that loses power.
//!
//! Invariant: time, order and faults come from the scenario alone, so the same scenario gives the same states.
//! Called by its own tests and by the command line.

mod cast;
pub mod clock;
pub mod crash;
pub mod disk;
pub mod fault;
pub mod invariant;
pub mod oracle;
pub mod plan;
pub mod rng;
pub mod scenario;
pub mod script;
pub mod sim;
pub mod world;

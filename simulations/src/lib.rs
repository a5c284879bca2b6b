//! The deterministic crash simulator: real storage code on a disk that loses power.
//!
//! Invariant: time, order and faults come from the scenario alone, so the same scenario gives the same states.
//! Called by its own tests and by the command line.

mod cast;
/// Whether this build can plant defects: one with debug assertions.
pub const CAN_PLANT: bool = praxis_plant::CAN_PLANT;

pub mod campaign;
pub mod clock;
pub mod crash;
pub mod disk;
pub mod fault;
pub mod invariant;
pub mod meta;
pub mod oracle;
pub mod packet;
pub mod plan;
mod pool;
pub mod report;
pub mod rng;
pub mod scenario;
pub mod script;
pub mod sim;
mod words;
pub mod world;

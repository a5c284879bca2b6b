//! The deterministic crash simulator.

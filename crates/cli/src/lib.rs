//! The command line of Praxis and the governed coding workflow that it runs.
//! Invariant: it changes a store through the engine alone; whatever it refuses changes nothing and carries a code.
//! Called by the binary `praxis`.

pub mod args;
pub mod authority;
pub mod coding;
pub mod decider;
pub mod exit;
pub mod files;
pub mod human;
pub mod limits;
pub mod notes;
pub mod prompt;
pub mod render;
pub mod runner;
pub mod session;
pub mod store;
pub mod verbs;

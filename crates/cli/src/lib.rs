//! The command line of Praxis and the governed coding workflow that it runs.
//! Invariant: it changes a store through the engine alone; whatever it refuses changes nothing and carries a code.
//! Called by the binary `praxis`.

pub mod answer;
pub mod args;
pub mod authority;
pub mod coding;
pub mod exit;
pub mod files;
pub mod follow;
pub mod human;
pub mod limits;
pub mod material;
pub mod notes;
pub mod notices;
pub mod office;
pub mod project;
pub mod prompt;
pub mod render;
pub mod request;
pub mod runner;
pub mod seat;
pub mod session;
pub mod signals;
pub mod socket;
pub mod store;
pub mod tell;
pub mod verbs;

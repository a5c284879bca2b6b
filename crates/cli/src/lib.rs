//! The command line of Praxis and the governed coding workflow that it runs.
//! Invariant: it reads the store through the engine alone; whatever it refuses changes nothing and carries a code.
//! Called by the binary `praxis`.

pub mod coding;
pub mod limits;
pub mod render;

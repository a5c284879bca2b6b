//! The bounds of the model, each with its reason.
//!
//! Invariant: whatever grows with input has its bound here. Read by decide and by the graph's checks.

/// Nodes of one graph. Every node costs a manifest; a graph past this does not fit an event with its skips.
pub const MAX_NODES: usize = 1024;

/// Edges of one graph. Planning and skipping walk every edge, and a manifest names one recipient per edge: four per
/// node at the most nodes is more than any plan that people read.
pub const MAX_EDGES: usize = 4_096;

/// How old an authorization may be when it is used, in milliseconds: long enough to hash large material,
/// short enough that a forgotten one cannot be used tomorrow (T-30).
pub const MAX_AUTHORIZATION_AGE_MS: u64 = 600_000;

/// How much of a value a difference shows, in characters: a line of a terminal or two; the place says where the rest is.
pub const SHOWN_CHARS: usize = 120;

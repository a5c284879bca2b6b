//! What people and programs see: escaped text, the tree, the report, JSON.
//! Invariant: rendering reads and never changes anything; text from outside passes `escape`.
//! Called by the verbs.

pub mod escape;
pub mod json;
pub mod live;
pub mod page;
pub mod text;

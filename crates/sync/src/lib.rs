//! The hand-made concurrent pieces of Praxis: commit queue, published snapshot, ownership fence.
//! Invariant: every interleaving that loom can reach of these types keeps what their docs promise.
//! The journal writer, the run actors and the client handles call it; it knows no runtime and no event.
//!
//! | module | type | what it promises |
//! |---|---|---|
//! | [`queue`] | [`queue::Submitter`], [`queue::Drain`] | an accepted item reaches the drain once, in the order of its submitter |
//! | [`published`] | [`published::Published`] | a reader never sees an older value after a newer one |
//! | [`fence`] | [`fence::Fence`] | an epoch only rises; once it rose, the old one holds no more |
//!
//! # Model checking
//!
//! The types take their locks and atomics from one private module, which hands out `std`'s or, under
//! `cfg(loom)`, loom's. The models beside each type therefore run the very code that ships:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p praxis-sync --release --target-dir target/loom
//! ```
//!
//! Only this crate may name loom: loom sees nothing inside redb, tokio or ractor, and its flag rebuilds every
//! dependency of what is tested (T-53). Whole-system interleavings belong to the seeded simulation.

pub mod fence;
pub mod limits;
pub mod published;
pub mod queue;
mod sync;

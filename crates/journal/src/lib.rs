//! The durable store: log segments, conditions, index, replay, storage errors, verification, outbox cursors.
//!
//! Invariant: an append is answered as committed only when its events are in the log behind a sync that succeeded,
//! and as refused only by a condition that failed at the log's very head. Called by the engine; names redb alone.
//!
//! | module | what it is |
//! |---|---|
//! | [`journal`] | the threads: a cloneable handle, one writer, one flusher |
//! | [`ledger`] | the single-threaded core that the writer and the simulator drive |
//! | [`append`] | what is handed in: sealed events with their conditions, and what comes back |
//! | [`mod@conditions`] | the eight conditions in stage order |
//! | [`view`] | the projections in memory, published after each commit |
//! | [`tables`] | the one map of every table, key and value |
//! | [`disk`] | the narrow door to files, where the simulator puts its faulty disk |
//! | [`verify`] | every event and every projection, checked from nothing |

pub mod append;
mod backend;
pub mod conditions;
mod database;
pub mod disk;
pub mod error;
mod index;
pub mod journal;
pub mod ledger;
pub mod limits;
mod lock;
mod log;
#[cfg(debug_assertions)]
pub mod plant;
pub mod rows;
mod segment;
mod store;
pub mod tables;
pub mod verify;
pub mod view;

pub use append::{Append, AppendError, AppendResult, Appended, Conditions, Refusal, RequestKey};
pub use disk::{Disk, FileDisk};
pub use error::{Busy, StoreError};
pub use journal::Journal;
pub use ledger::{Clock, Ledger, Options, SystemClock};
/// The storage trait below the log and the index, so that no other crate names redb.
pub use redb::{BackendError, StorageBackend};
pub use rows::RequestRow;
pub use verify::VerifyReport;
pub use view::View;

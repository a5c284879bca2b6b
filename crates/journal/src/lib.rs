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
//! | [`notification`] | what a consumer outside is told of an event |
//! | [`verify`] | every event and every projection, checked from nothing; deeply: every decision, too |
//! | [`mod@limits`] | every bound, with its reason |
//!
//! What is promised, and what is not:
//!
//! - *Durable at the reply*: the log, behind two-phase commits. The index is written about once a second; losing it
//!   costs a replay, during which the store does not answer. A device that confirms a sync and then loses the data is
//!   beyond this: where the loss reaches below the index's cursor it is seen at the next opening (the store is then
//!   read-only), else it is not.
//! - *Storage errors*: the log is opened again and looked at, and after a failed sync its last segment is copied first;
//!   that needs room for one segment. Without room the store stays read-only and says so. The one append whose fate
//!   cannot be told is answered as in doubt.
//! - *A panic of the writer* counts as a storage error; if the flusher's thread dies, the index is made anew.
//! - *One writer*: a lock file holds for processes of one host; it is no protection on a network file system that does
//!   not honour `flock`.
//! - *Damage*: a changed byte of an event is found when it is read or verified, and what a rebuild contradicts is found by
//!   `verify`. A log that was rolled back together with its index, or rewritten by somebody who hashes anew, is found only
//!   against a head that was kept elsewhere: a checkpoint, [`Journal::verify_against`].
//! - *Growth*: nothing is ever removed. Heads, registers, accounts and due times of all runs are held in memory;
//!   requests and identities only until the index has them.
//! - *Planted defects* (praxis-plant) prove the crash simulator; builds without debug assertions have none.

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
pub mod notification;
pub mod overlay;
mod rows;
mod segment;
mod store;
pub mod tables;
pub mod verify;
pub mod view;

pub use append::{Append, AppendError, AppendResult, Appended, Conditions, Refusal, RequestKey};
pub use disk::{Disk, FileDisk};
pub use error::{Busy, StoreError};
pub use journal::{Copied, Journal};
pub use ledger::{Clock, FlushJob, Ledger, Options, SystemClock};
pub use notification::Notification;
/// The storage trait below the log and the index, so that no other crate names redb.
pub use redb::{BackendError, StorageBackend};
pub use rows::RequestRow;
pub use verify::{Depth, VerifyReport};
pub use view::View;

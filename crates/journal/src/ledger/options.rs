//! How a store is opened: clock, files, bounds.
//!
//! Invariant: nothing here is read after the opening but the clock. Made by whoever opens a store, read by the journal
//! and the ledger.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aiws::id::StoreId;

use crate::disk::Disk;
use crate::limits;

/// Where trusted time comes from.
pub trait Clock: Debug + Send + Sync {
    /// UTC milliseconds of the Unix epoch.
    fn now_ms(&self) -> u64;

    /// How often this clock was found to have stepped back, by more than its host tolerates (T-29).
    fn steps(&self) -> u64 {
        0
    }
}

/// The host's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The writer's clock.
    pub clock: Arc<dyn Clock>,
    /// Size at which a segment of the log is sealed, in bytes.
    pub segment_bytes: u64,
    /// The files; none for those of the store's directory.
    pub disk: Option<Arc<dyn Disk>>,
    /// Changes nothing on the disk and refuses every append.
    pub read_only: bool,
    /// Compares every page of the growing segment with its checksum before anything is written or read. It costs one read of
    /// at most a segment; without it a damaged page can end the process.
    pub check_pages: bool,
    /// Most appends in one commit.
    pub batch_max: usize,
    /// Most appends that wait for the writer.
    pub queue_appends: usize,
    /// How long the index may lag behind, in milliseconds.
    pub flush_interval_ms: u64,
    /// The id of a store that is created; none for a random one.
    pub store_id: Option<StoreId>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            segment_bytes: limits::SEGMENT_BYTES,
            disk: None,
            read_only: false,
            check_pages: true,
            batch_max: limits::BATCH_MAX,
            queue_appends: limits::QUEUE_APPENDS,
            flush_interval_ms: limits::FLUSH_INTERVAL_MS,
            store_id: None,
        }
    }
}

//! Opening and closing the journal on threads that may block.
//!
//! Invariant: the journal gets the engine's own clock, so that both have one time. Called by `Engine::open` and
//! `Engine::shutdown`.

use std::path::Path;
use std::sync::Arc;

use aiws::error::Code;
use praxis_journal::Journal;

use crate::clock::StoreClock;
use crate::engine::Options;
use crate::error::EngineError;
use crate::ports::Clock;

impl praxis_journal::Clock for StoreClock {
    fn now_ms(&self) -> u64 {
        Clock::now_ms(self)
    }

    fn steps(&self) -> u64 {
        StoreClock::steps(self)
    }
}

/// Opens the store, or creates it where there is none and the options say so.
pub(crate) async fn open(
    path: &Path,
    options: &Options,
    clock: Arc<StoreClock>,
) -> Result<Journal, EngineError> {
    let mut journal = praxis_journal::Options {
        clock,
        read_only: options.read_only,
        disk: options.disk.clone(),
        ..Default::default()
    };
    if let Some(segment_bytes) = options.segment_bytes {
        journal.segment_bytes = segment_bytes;
    }
    let (path, create) = (path.to_owned(), options.create && !options.read_only);
    let opened = tokio::task::spawn_blocking(move || match Journal::open(&path, &journal) {
        Err(error) if create && error.code() == Code::StoreNotFound => {
            Journal::create(&path, &journal)
        }
        opened => opened,
    });
    let opened = opened
        .await
        .map_err(|error| EngineError::Actor(error.to_string()))?;
    Ok(opened?)
}

/// Writes what is pending and closes the store.
pub(crate) async fn close(journal: &Journal) -> Result<(), EngineError> {
    let journal = journal.clone();
    let closed = tokio::task::spawn_blocking(move || journal.close());
    let closed = closed
        .await
        .map_err(|error| EngineError::Actor(error.to_string()))?;
    Ok(closed?)
}

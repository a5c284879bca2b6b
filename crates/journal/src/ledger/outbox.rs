//! Reading the log in order: what a consumer of the outbox has not acknowledged, and every event from a place on.
//!
//! Invariant: events come in log order without a gap, each checked against its hash. Called by the journal and the ledger.

use aiws::id::ConsumerId;
use praxis_journal_format::Sealed;
use praxis_plant::{self as plant, Plant};

use super::sealed;
use crate::error::StoreError;
use crate::limits::PENDING_EVENTS;
use crate::log::Log;
use crate::view::View;

/// Calls `each` with every event from a sequence up to the view's end; stops early when it answers false.
pub(crate) fn scan(
    log: &Log,
    view: &View,
    from: u64,
    mut each: impl FnMut(u64, Sealed) -> bool,
) -> Result<(), StoreError> {
    let end = view.sequence();
    let mut next = from.max(1);
    while next <= end {
        let chunk = log.chunk(next)?;
        if chunk.is_empty() {
            return Err(missing(next));
        }
        for (sequence, bytes) in chunk {
            if sequence != next {
                return Err(missing(next));
            }
            if sequence > end || !each(sequence, sealed(sequence, &bytes)?.0) {
                return Ok(());
            }
            next = sequence + 1;
        }
    }
    Ok(())
}

fn missing(sequence: u64) -> StoreError {
    StoreError::Corrupt {
        place: format!("sequence {sequence}"),
        what: "the event is missing".to_owned(),
    }
}

/// Up to `limit` events behind the consumer's cursor.
pub(crate) fn pending(
    log: &Log,
    view: &View,
    consumer: &ConsumerId,
    limit: usize,
) -> Result<Vec<(u64, Sealed)>, StoreError> {
    let limit = limit.min(PENDING_EVENTS);
    let mut events = Vec::new();
    if limit > 0 {
        let from = view.acknowledged(consumer).saturating_add(1);
        let from = from + u64::from(plant::is(Plant::OutboxSkips));
        scan(log, view, from, |sequence, sealed| {
            events.push((sequence, sealed));
            events.len() < limit
        })?;
    }
    Ok(events)
}

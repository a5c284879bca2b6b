//! After a storage error or a panic: the log is opened again and looked at before anybody is answered.
//!
//! Invariant: an append is answered as stored only if it was seen in the reopened log, and as not stored only if it was
//! not; where that cannot be told the answer says so and the store takes no more appends. Called by the ledger.

use std::sync::Arc;

use praxis_journal_format::Sealed;
use praxis_plant::{self as plant, Plant};

use super::{Ledger, open, tail_lost};
use crate::append::{Append, AppendResult, Appended};
use crate::error::StoreError;
use crate::log::LogFault;
use crate::rows::LogCursor;
use crate::view::View;

impl Ledger {
    /// How often the writer's clock stepped back by now, for whoever judged a lease by it (T-29).
    pub fn clock_stepped(&mut self, steps: u64) {
        self.clock_steps = steps;
    }

    /// After a failed commit: reopens the log and looks whether the commit is in it. `wanted` is where the log ends
    /// if it is. A commit may return an error and be durable; nothing is answered before this.
    pub(super) fn look(
        &mut self,
        fault: LogFault,
        wanted: LogCursor,
        group: &[Append],
    ) -> Result<(), StoreError> {
        if plant::is(Plant::AnsweredWithoutLooking) {
            drop(self.log.reopen(fault.copy));
            return Err(fault.error);
        }
        tracing::warn!(error = %fault.error, copy = fault.copy, "a commit failed; reopening the log");
        let seen = self.log.reopen(fault.copy).and_then(|()| self.log.last());
        match seen {
            Ok(last) if last == wanted => Ok(()),
            Ok(last) if last == self.view.cursor => Err(fault.error),
            Ok(last) => {
                let expected = self.view.cursor;
                let lost = tail_lost(expected, format!("its end at sequence {}", last.sequence));
                self.stop(lost.clone());
                Err(lost)
            }
            Err(error) => {
                let what = format!("{}; reopening failed: {error}", fault.error);
                self.stop(StoreError::ReadOnly { why: what.clone() });
                let first = group.iter().find_map(|append| append.sealed.first());
                Err(StoreError::InDoubt {
                    hash: first.map_or(wanted.hash, |sealed| sealed.hash),
                    what,
                })
            }
        }
    }

    /// After a panic of the writer: what is in the log is folded, what is not was not stored (T-54). `before` is where the
    /// log ended when the commit began: a panic behind the commit, while the segment is rolled over, finds the view moved.
    pub(super) fn after_panic(&mut self, group: &[Append], before: u64) -> Vec<AppendResult> {
        let doubt = |sealed: Option<&Sealed>, what: String| match sealed {
            Some(sealed) => StoreError::InDoubt {
                hash: sealed.hash,
                what,
            },
            None => StoreError::Io { what },
        };
        let mut view = View::clone(&self.view);
        let caught_up = self
            .log
            .reopen(true)
            .and_then(|()| open::fold(&self.log, &mut view, &mut self.dirty));
        if let Err(error) = caught_up {
            let what = format!("the writer panicked; reopening failed: {error}");
            self.stop(StoreError::ReadOnly { why: what.clone() });
            let answer = |append: &Append| Err(doubt(append.sealed.first(), what.clone()).into());
            return group.iter().map(answer).collect();
        }
        self.view = Arc::new(view);
        let found = |append: &Append| {
            let (first, last) = append.sealed.first().zip(append.sealed.last())?;
            let mut sequences = before + 1..=self.view.sequence();
            let at = sequences.find(|at| {
                self.read(*at)
                    .is_ok_and(|read| read.is_some_and(|it| it.hash == first.hash))
            });
            at.map(|sequence| Appended::Committed {
                sequence,
                hash: last.hash,
            })
        };
        let lost = || StoreError::Io {
            what: "the writer panicked".to_owned(),
        };
        group
            .iter()
            .map(|append| found(append).ok_or_else(|| lost().into()))
            .collect()
    }

    /// After a panic of the writer outside a commit: the log is opened again and folded, as after a storage error; the
    /// store takes appends again, or is read-only and says why.
    pub(crate) fn recover(&mut self) {
        self.after_panic(&[], self.view.sequence());
        self.flush_lost();
    }

    /// A write of the index was begun and its result will never come. What it was to write is lost with it, so the
    /// index is made anew; without one the store is read-only.
    pub(crate) fn flush_lost(&mut self) {
        if std::mem::take(&mut self.flushing) && self.view.read_only.is_none() {
            // An error has made the store read-only, which is what callers are told.
            drop(self.renew_index());
        }
    }

    /// After a panic in [`Ledger::recover`] itself: no append is taken any more.
    pub(crate) fn give_up(&mut self) {
        self.stop(StoreError::ReadOnly {
            why: "the journal's writer panicked and could not recover; open the store again"
                .to_owned(),
        });
    }

    pub(super) fn stop(&mut self, why: StoreError) {
        tracing::error!(error = %why, "the store is read-only from now on");
        Arc::make_mut(&mut self.view).read_only = Some(why);
    }
}

#[cfg(test)]
mod tests;

//! Accounts: what is bound, spent and reserved (invariants 25, 26; the amounts of 27 to 29 and 44).
//!
//! Invariant: nothing goes below zero, and a reservation fits when it is made. Called by the fold.

use std::collections::BTreeMap;

use aiws::decimal::Dec;
use aiws::json::Value;
use aiws::object;

use super::event::{Event, decimal, member, text, unknown};
use super::tables::Tables;
use crate::invariant::{Broken, Invariant};

#[derive(Clone, Debug)]
struct Row {
    bound: Dec,
    spent: Dec,
    reserved: Dec,
    overrun: Dec,
    revision: u64,
}

/// All accounts, by their canonical keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    rows: BTreeMap<String, Row>,
}

/// What an event's postings do to reservations.
#[derive(Debug, Default)]
pub(super) struct Posted {
    /// Reservations that begin.
    pub reserved: Vec<Dec>,
    /// Reservations that end, each with what was spent; none for a release.
    pub ended: Vec<(Dec, Option<Dec>)>,
    /// Whether something was spent past a bound.
    pub overrun: bool,
}

impl Accounts {
    /// Posts what an event posts.
    pub fn fold(&mut self, event: &Event, tables: &mut Tables) -> Result<Posted, Broken> {
        let mut posted = Posted::default();
        for posting in event.outcome("accounts")? {
            let key = member(posting, "account")?.to_string();
            let row = self.post(event, &key, posting, &mut posted)?;
            let shown = object! {
                "bound": row.bound.to_string(),
                "overrun": row.overrun.to_string(),
                "reserved": row.reserved.to_string(),
                "revision": row.revision.to_string(),
                "spent": row.spent.to_string(),
            };
            tables.accounts.insert(key.clone(), shown.to_string());
            self.rows.insert(key, row);
        }
        Ok(posted)
    }

    /// Everything that is reserved anywhere.
    pub fn reserved(&self) -> Dec {
        let all = self.rows.values();
        all.fold(Dec::ZERO, |sum, row| {
            sum.checked_add(row.reserved).unwrap_or(Dec::max())
        })
    }

    /// What is left of the account that has least left.
    pub fn left(&self) -> Dec {
        let left = self.rows.values().filter_map(|row| {
            let used = row.spent.checked_add(row.reserved)?;
            Some(row.bound.checked_sub(used).unwrap_or(Dec::ZERO))
        });
        left.min().unwrap_or(Dec::ZERO)
    }

    fn post(
        &self,
        event: &Event,
        key: &str,
        posting: &Value,
        posted: &mut Posted,
    ) -> Result<Row, Broken> {
        let op = text(posting, "op")?;
        let row = self.rows.get(key);
        if op == "OPEN" {
            if row.is_some() {
                let what = format!("{} opens account {key} again", event.named());
                return Err(Broken::new(Invariant::ReservationFits, what));
            }
            return Ok(Row {
                bound: decimal(posting, "bound")?,
                spent: Dec::ZERO,
                reserved: Dec::ZERO,
                overrun: Dec::ZERO,
                revision: 1,
            });
        }
        let Some(mut row) = row.cloned() else {
            let what = format!(
                "{} posts to account {key}, which is not open",
                event.named()
            );
            return Err(Broken::new(Invariant::ReservationFits, what));
        };
        row.revision += 1;
        let past = |row: &Row| {
            let total = row.spent.checked_add(row.reserved)?;
            Some(total.checked_sub(row.bound).unwrap_or(Dec::ZERO))
        };
        let range = |left: Option<Dec>| {
            left.ok_or_else(|| {
                let what = format!(
                    "{} takes account {key} out of its range: {posting} at spent {} reserved {}",
                    event.named(),
                    row.spent,
                    row.reserved
                );
                Broken::new(Invariant::NoUnderflow, what)
            })
        };
        match op {
            "RESERVE" => {
                let amount = decimal(posting, "amount")?;
                let reserved = range(row.reserved.checked_add(amount))?;
                let total = range(row.spent.checked_add(reserved))?;
                if total > row.bound {
                    let what = format!(
                        "{} reserves {amount} at spent {} and reserved {}, the bound is {}",
                        event.named(),
                        row.spent,
                        row.reserved,
                        row.bound
                    );
                    return Err(Broken::new(Invariant::ReservationFits, what));
                }
                posted.reserved.push(amount);
                row.reserved = reserved;
            }
            "RELEASE" => {
                let ended = decimal(posting, "reserved")?;
                let reserved = range(row.reserved.checked_sub(ended))?;
                posted.ended.push((ended, None));
                row.reserved = reserved;
            }
            "SETTLE" => {
                let (ended, actual) = (decimal(posting, "reserved")?, decimal(posting, "actual")?);
                let before = range(past(&row))?;
                let reserved = range(row.reserved.checked_sub(ended))?;
                let spent = range(row.spent.checked_add(actual))?;
                let overrun = {
                    let next = Row {
                        reserved,
                        spent,
                        ..row.clone()
                    };
                    let more = range(past(&next))?.checked_sub(before);
                    range(row.overrun.checked_add(more.unwrap_or(Dec::ZERO)))?
                };
                posted.ended.push((ended, Some(actual)));
                posted.overrun |= overrun > row.overrun;
                (row.reserved, row.spent, row.overrun) = (reserved, spent, overrun);
            }
            other => return Err(unknown(format!("{} posts {other}", event.named()))),
        }
        Ok(row)
    }
}

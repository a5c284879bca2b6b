//! Tables: the projections as texts, and what a difference breaks (invariants 4, 7, 23, 28, 31).
//!
//! Invariant: they follow from the folded log alone, except the cursors. Called by the fold and for every look.

use std::collections::BTreeMap;

use aiws::json::Value;

use super::Shown;
use crate::invariant::{Broken, Invariant};

/// One projection.
pub(super) type Table = BTreeMap<String, String>;

/// What a replay of the log gives.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    pub heads: Table,
    pub owners: Table,
    pub registers: Table,
    pub gates: Table,
    pub accounts: Table,
    pub due: Table,
}

/// What the batch before a look was answered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Last {
    /// Everything was stored or known, or nothing was handed in.
    #[default]
    Stored,
    /// Something was refused.
    Refused,
    /// The commit failed.
    Failed,
}

impl Tables {
    /// The projections as shown equal those of a replay.
    pub fn compare(&self, shown: &Shown, last: Last) -> Result<(), Broken> {
        let wanted = [
            ("heads", &self.heads, Invariant::HeadsAreLast),
            ("gates", &self.gates, Invariant::HoldStays),
            ("accounts", &self.accounts, Invariant::ProjectionsReplay),
            ("owners", &self.owners, Invariant::ProjectionsReplay),
            ("registers", &self.registers, Invariant::ProjectionsReplay),
            ("due", &self.due, Invariant::ProjectionsReplay),
        ];
        for (name, wanted, invariant) in wanted {
            let Some(found) = shown.tables.get(name).filter(|found| *found != wanted) else {
                continue;
            };
            let (key, wanted, found) = difference(wanted, found);
            let invariant = match last {
                Last::Refused => Invariant::RejectionLeavesNothing,
                Last::Failed => Invariant::ProjectionsReplay,
                Last::Stored => match name {
                    "gates" if !lacks(wanted, found) => Invariant::ProjectionsReplay,
                    "accounts" if only_overrun(wanted, found) => Invariant::OverrunRecorded,
                    _ => invariant,
                },
            };
            let what = format!(
                "{name} of {key}: a replay gives {}, shown is {}",
                wanted.unwrap_or("nothing"),
                found.unwrap_or("nothing")
            );
            return Err(Broken::new(invariant, what));
        }
        Ok(())
    }
}

/// The first key that differs, with both values.
fn difference<'a>(
    wanted: &'a Table,
    found: &'a Table,
) -> (&'a str, Option<&'a str>, Option<&'a str>) {
    let mut keys = wanted.keys().chain(found.keys());
    let key = keys.find(|key| wanted.get(*key) != found.get(*key));
    let of = |table: &'a Table| key.and_then(|key| table.get(key)).map(String::as_str);
    (key.map_or("", String::as_str), of(wanted), of(found))
}

/// Whether a hold's gate that should be closed is not shown as closed.
fn lacks(wanted: Option<&str>, found: Option<&str>) -> bool {
    let gates = |text: Option<&str>| {
        let read = text.and_then(|text| aiws::strict::parse(text.as_bytes()).ok());
        match read {
            Some(Value::Array(all)) => all,
            _ => Vec::new(),
        }
    };
    let found = gates(found);
    gates(wanted).iter().any(|gate| !found.contains(gate))
}

/// Whether two rows of an account differ in what is recorded as overrun alone.
fn only_overrun(wanted: Option<&str>, found: Option<&str>) -> bool {
    let read = |text: Option<&str>| {
        let row = text.and_then(|text| aiws::strict::parse(text.as_bytes()).ok())?;
        let mut row = row.as_object()?.clone();
        row.remove("overrun");
        Some(row)
    };
    let wanted = read(wanted);
    wanted.is_some() && wanted == read(found)
}

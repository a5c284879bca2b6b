//! Registers: rows with a revision, and what of them bounds work: grants and the contract.
//!
//! Invariant: a write raises the revision by one. Called by the fold.

use std::collections::BTreeMap;

use aiws::decimal::Dec;
use aiws::json::Value;
use aiws::object;

use super::event::{Event, decimal, member, text};
use super::tables::Tables;
use crate::invariant::Broken;

/// A grant in force.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub revision: u64,
    pub max_amount: Dec,
    pub not_after_ms: Dec,
}

/// All registers.
#[derive(Clone, Debug, Default)]
pub(super) struct Registers {
    revisions: BTreeMap<String, u64>,
    grants: BTreeMap<(String, String), Grant>,
}

impl Registers {
    /// Writes what an event writes.
    pub fn fold(&mut self, event: &Event, tables: &mut Tables) -> Result<(), Broken> {
        for write in event.outcome("registers")? {
            let (register, value) = (member(write, "register")?, member(write, "value")?);
            let key = register.to_string();
            let revision = self.revisions.entry(key.clone()).or_default();
            *revision += 1;
            if text(register, "kind")? == "GRANT" {
                let name = (event.mission.clone(), text(register, "key")?.to_owned());
                self.grants.insert(name, grant(value, *revision)?);
            }
            let row = object! { "revision": revision.to_string(), "value": value.clone() };
            tables.registers.insert(key, row.to_string());
        }
        Ok(())
    }

    /// A grant of a mission.
    pub fn grant(&self, mission: &str, id: &str) -> Option<&Grant> {
        self.grants.get(&(mission.to_owned(), id.to_owned()))
    }
}

fn grant(value: &Value, revision: u64) -> Result<Grant, Broken> {
    Ok(Grant {
        revision,
        max_amount: decimal(value, "maxAmount")?,
        not_after_ms: decimal(value, "notAfterMs")?,
    })
}

//! State: what the log folds to, room by room.
//!
//! Invariant: an event is checked by every room before the next one is folded. Called by the oracle for stored events.

use std::collections::{BTreeMap, BTreeSet};

use aiws::json::Value;

use super::accounts::Accounts;
use super::artifacts::Artifacts;
use super::chain::Chain;
use super::claims::{Claims, Now};
use super::effects::{Around, Effects};
use super::epochs::Epochs;
use super::event::{Event, maybe, text};
use super::flow::Flow;
use super::holds::Holds;
use super::registers::Registers;
use super::requests::Requests;
use super::tables::Tables;
use super::world::World;
use crate::invariant::Broken;

/// Whose append it is, where that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Whose {
    pub writer: u32,
    pub epoch: Option<u64>,
}

/// What stands beside the log, for the fold to ask.
#[derive(Debug)]
pub(super) struct Rooms<'a> {
    pub world: &'a mut World,
    pub artifacts: &'a mut Artifacts,
    pub marks: &'a mut BTreeSet<&'static str>,
}

/// What the log folds to.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub chain: Chain,
    pub epochs: Epochs,
    pub requests: Requests,
    pub registers: Registers,
    pub accounts: Accounts,
    pub claims: Claims,
    pub effects: Effects,
    pub holds: Holds,
    pub flow: Flow,
    pub tables: Tables,
    due: BTreeMap<(String, String), String>,
}

impl State {
    /// Folds the log's next event.
    pub fn fold(
        &mut self,
        event: &Event,
        sequence: u64,
        whose: Whose,
        mut rooms: Rooms<'_>,
    ) -> Result<(), Broken> {
        let epoch = self.epochs.of(&event.stream).unwrap_or(0);
        let running = self.holds.lifecycle(&event.stream) == "RUNNING";
        self.requests.fold(event, sequence)?;
        self.chain.fold(event, sequence, &mut self.tables)?;
        self.epochs.fold(event, whose, &mut self.tables)?;
        let place = self.flow.place(event)?;
        self.holds
            .fold(event, place.as_deref(), &self.flow, &mut self.tables)?;
        let posted = self.accounts.fold(event, &mut self.tables)?;
        self.registers.fold(event, &mut self.tables)?;
        let now = Now {
            max_ms: self.chain.max_ms,
            epoch,
        };
        self.claims.fold(event, now, &mut rooms)?;
        let around = Around {
            registers: &self.registers,
            epoch,
            running,
        };
        self.effects.fold(event, posted, around, &mut rooms)?;
        self.flow.fold(event, &mut rooms)?;
        self.due(event)
    }

    fn due(&mut self, event: &Event) -> Result<(), Broken> {
        for change in event.outcome("due")? {
            let (stream, kind) = (text(change, "stream")?, text(change, "kind")?);
            let place = (stream.to_owned(), kind.to_owned());
            if let Some(old) = self.due.remove(&place) {
                self.tables.due.remove(&old);
            }
            if let Some(at_ms) = maybe(change, "atMs")? {
                let key = Value::Array(vec![at_ms.into(), stream.into(), kind.into()]).to_string();
                self.tables.due.insert(key.clone(), String::new());
                self.due.insert(place, key);
            }
        }
        Ok(())
    }
}

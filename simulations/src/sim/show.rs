//! What the oracle is shown: projections as plain texts.
//!
//! Invariant: nothing is left out and nothing made up; keys and values are canonical JSON. Part of the simulation.

use std::collections::BTreeMap;

use aiws::error::Error;
use aiws::json::Value;
use aiws::object;
use praxis_journal::View;
use praxis_model::event::Head;
use praxis_model::register::RegisterKey;
use praxis_model::stream::Subject;

use super::Sim;
use super::process::Process;
use crate::cast;
use crate::invariant::{Broken, Invariant};
use crate::oracle::Shown;

type Table = BTreeMap<String, String>;

/// Rows as they were written last: what is the same is not written again.
#[derive(Debug, Default)]
pub(super) struct Texts {
    heads: BTreeMap<String, (Head, u64, String)>,
    registers: BTreeMap<RegisterKey, (u64, Value, String, String)>,
}

impl Sim {
    /// The oracle sees the projections.
    pub(super) fn see(&mut self, process: &Process) -> Result<(), Broken> {
        let view = process.ledger.view();
        let subjects = self.subjects();
        let shown = subjects.and_then(|subjects| shown(&view, &subjects, &mut self.texts));
        let shown = shown.map_err(|error| self.internal(&error))?;
        self.oracle.shown(&shown)
    }

    /// The mission and all runs that there may be.
    fn subjects(&self) -> Result<Vec<Subject>, Error> {
        let runs = (0..self.cast.runs()).map(cast::run);
        std::iter::once(cast::mission()).chain(runs).collect()
    }

    /// The log verifies, and every live owner's memory is what its stream folds to.
    pub(super) fn verify(&mut self, process: &Process) -> Result<(), Broken> {
        let report = process.ledger.verify_deep(&mut |_, _| ());
        if !self.disk.has_power() {
            return Ok(());
        }
        match report {
            Ok(report) => {
                if let Some(finding) = report.findings.first()
                    && !self.was_struck()
                {
                    let what = format!("verification: {finding:?}");
                    return Err(Broken::new(Invariant::ProjectionsReplay, what));
                }
            }
            Err(_) if self.was_struck() => {}
            Err(error) => {
                let what = format!("verification: {error}");
                return Err(Broken::new(Invariant::ProjectionsReplay, what));
            }
        }
        for (run, owners) in &process.owners {
            let (Some(newest), Some(state)) = (owners.last(), self.folded(process, *run)?) else {
                continue;
            };
            let memory = text(&newest.state).map_err(|error| self.internal(&error))?;
            let log = text(&state).map_err(|error| self.internal(&error))?;
            if newest.state.head == state.head && memory != log {
                let what = format!("the memory of run {run} is not what its stream folds to");
                return Err(Broken::new(Invariant::ProjectionsReplay, what));
            }
        }
        Ok(())
    }
}

fn shown(view: &View, subjects: &[Subject], texts: &mut Texts) -> Result<Shown, Error> {
    let mut tables = BTreeMap::new();
    let mut heads = Table::new();
    for (stream, row) in view.heads() {
        let known = texts.heads.get(stream.as_str());
        let known = known.filter(|(head, at, _)| *head == row.head && *at == row.sequence);
        let value = match known {
            Some((_, _, value)) => value.clone(),
            None => {
                let value = object! {
                    "hash": row.head.hash.to_string(),
                    "revision": row.head.revision.to_string(),
                    "sequence": row.sequence.to_string(),
                };
                let value = value.to_string();
                let kept = (row.head, row.sequence, value.clone());
                texts.heads.insert(stream.as_str().to_owned(), kept);
                value
            }
        };
        heads.insert(stream.as_str().to_owned(), value);
    }
    tables.insert("heads", heads);
    let owners = view.owners();
    tables.insert(
        "owners",
        owners
            .map(|(stream, row)| (stream.as_str().to_owned(), row.epoch.to_string()))
            .collect(),
    );
    let mut registers = Table::new();
    for (key, row) in view.registers() {
        let known = texts.registers.get(key);
        let known = known.filter(|old| old.0 == row.revision && old.1 == row.value);
        let (key, value) = match known {
            Some((_, _, key, value)) => (key.clone(), value.clone()),
            None => {
                let value =
                    object! { "revision": row.revision.to_string(), "value": row.value.clone() };
                let (name, value) = (text(key)?, value.to_string());
                let kept = (row.revision, row.value.clone(), name.clone(), value.clone());
                texts.registers.insert(key.clone(), kept);
                (name, value)
            }
        };
        registers.insert(key, value);
    }
    tables.insert("registers", registers);
    let mut gates = Table::new();
    for subject in subjects {
        let closed = view.gates(subject);
        if !closed.is_empty() {
            gates.insert(text(subject)?, text(&closed)?);
        }
    }
    tables.insert("gates", gates);
    let mut accounts = Table::new();
    for subject in subjects {
        let key = praxis_model::mission::cost_account(subject);
        if let Some(row) = view.account(&key) {
            accounts.insert(text(&key)?, text(row)?);
        }
    }
    tables.insert("accounts", accounts);
    let mut due = Table::new();
    for key in view.due() {
        let key = (key.at_ms.to_string(), key.stream.as_str(), key.kind);
        due.insert(text(&key)?, String::new());
    }
    tables.insert("due", due);
    let cursors = view.cursors();
    tables.insert(
        "cursors",
        cursors
            .map(|(consumer, at)| (consumer.as_str().to_owned(), at.to_string()))
            .collect(),
    );
    Ok(Shown { tables })
}

/// Canonical JSON as a text.
pub(super) fn text<T: serde::Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    let bytes = aiws::canonical::bytes_of(value)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

//! Gates of a branch: the durable boundary tells one branch from another, and so does a check of the whole log.
//!
//! Invariant: an event that does not say where it launches work is stopped by every gate. Run against a real store.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use aiws::error::Code;
use aiws::id::NodeId;
use praxis_journal::{Append, AppendError, Appended, FileDisk, Ledger, Options, Refusal};
use praxis_journal_format::seal;
use praxis_model::event::{Gate, GateChange, Outcome};
use praxis_model::transition::Transition;
use praxis_plant::{self as plant, Plant};
use tempfile::TempDir;

#[path = "../../../simulations/src/script.rs"]
mod script;

use script::Script;

struct Store {
    _folder: TempDir,
    ledger: Ledger,
    script: Script,
}

/// A store with one run.
fn store() -> Store {
    let folder = TempDir::new().unwrap();
    let disk = Arc::new(FileDisk::new(folder.path()));
    let mut store = Store {
        ledger: Ledger::create(disk, "store".parse().unwrap(), &Options::default()).unwrap(),
        _folder: folder,
        script: Script::new("mission").unwrap(),
    };
    let first = store.script.start_run("run").unwrap();
    store.commit(first).unwrap();
    store
}

impl Store {
    fn commit(&mut self, append: Append) -> Result<Appended, AppendError> {
        self.ledger.commit(&[append], 0).remove(0)
    }

    /// Moves a gate of the run, by an event that launches nothing.
    fn gate(&mut self, gate: &Gate, closed: bool) {
        let run = self.script.run("run").unwrap();
        let change = GateChange {
            scope: run.clone(),
            gate: gate.clone(),
            closed,
        };
        let outcome = Outcome {
            gates: vec![change],
            ..Outcome::default()
        };
        let mut asked = self.script.clone();
        let body = asked.note("run").unwrap().sealed.remove(0).event.command;
        let append = self.script.append(&run, vec![(body, outcome)]).unwrap();
        self.commit(append).unwrap();
    }

    /// An event that launches work, and says in which node.
    fn launch(&self, node: Option<&str>) -> Append {
        let mut append = self.script.clone().complete("run", 1).unwrap();
        let mut event = append.sealed.remove(0).event;
        let launched = node.map(|node| Transition::LaunchedIn {
            node_id: node.parse().unwrap(),
        });
        event.outcome.transitions.extend(launched);
        append.sealed.push(seal(event).unwrap());
        append
    }

    /// The gate that refuses it.
    fn refused_by(&mut self, node: Option<&str>) -> Gate {
        let append = self.launch(node);
        match self.commit(append) {
            Err(AppendError::Refused { refusal, .. }) => {
                assert_eq!(refusal.code(), Code::HoldActive);
                match *refusal {
                    Refusal::Gate { gate, .. } => gate,
                    other => panic!("{other}"),
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn is_sound(&mut self) -> bool {
        self.ledger.verify(&mut |_, _| ()).unwrap().is_sound()
    }
}

fn branch(hold: &str, nodes: &[&str]) -> Gate {
    let node_ids = nodes.iter().map(|node| node.parse::<NodeId>().unwrap());
    Gate::Branch {
        hold_id: hold.parse().unwrap(),
        node_ids: node_ids.collect(),
    }
}

/// Proves HS-01.8, HS-01.11, HS-01.12, T-13: the gate of a branch refuses what launches work in it, or does not say where;
/// what launches work beside it is taken, and the whole log is sound.
#[test]
fn hs_01_8_a_branchs_gate_stops_its_own_nodes() {
    let mut store = store();
    let (one, two) = (branch("h1", &["x", "j"]), branch("h2", &["z", "j"]));
    store.gate(&one, true);
    store.gate(&two, true);
    for (node, gate) in [
        (None, &one),
        (Some("x"), &one),
        (Some("j"), &one),
        (Some("z"), &two),
    ] {
        assert_eq!(store.refused_by(node), *gate, "{node:?}");
    }
    // What launches nothing is taken all the same.
    let spends = store.script.spend("run", 3).unwrap();
    store.commit(spends).unwrap();
    // Each gate opens with its own hold, and the other stays.
    store.gate(&one, false);
    assert_eq!(store.refused_by(Some("j")), two);
    store.ledger.flush_index().unwrap();
    let beside = store.launch(Some("x"));
    store.commit(beside).unwrap();
    assert!(store.is_sound());
}

/// Proves HS-01.11, HS-01.13: a gate of the whole run stops every node of it, whatever branches are held beside.
#[test]
fn hs_01_11_a_wide_gate_is_no_branchs() {
    let mut store = store();
    let whole = Gate::Hold {
        hold_id: "h0".parse().unwrap(),
    };
    store.gate(&branch("h1", &["x"]), true);
    store.gate(&whole, true);
    assert_eq!(store.refused_by(Some("y")), whole);
    store.gate(&whole, false);
    let beside = store.launch(Some("y"));
    store.commit(beside).unwrap();
}

/// Proves HS-01.8: a log in which work was launched behind a branch's gate is not sound, however it came there.
#[test]
fn hs_01_8_a_check_of_the_log_sees_it() {
    for (node, sound) in [(Some("x"), false), (None, false), (Some("y"), true)] {
        let mut store = store();
        store.gate(&branch("h1", &["x"]), true);
        let append = store.launch(node);
        plant::with(Plant::GateUnchecked, || store.commit(append)).unwrap();
        assert_eq!(store.is_sound(), sound, "{node:?}");
    }
}

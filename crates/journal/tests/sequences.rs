//! The conditions of an append of several events: each part meets them, against the parts before it.
//!
//! Invariant: one part that fails refuses all of them, and nothing is applied. Run against a real store in a directory.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use aiws::decimal::{Dec, U64};
use aiws::error::Code;
use praxis_journal::{Append, AppendError, Appended, FileDisk, Ledger, Options, Refusal};
use praxis_model::account::Posting;
use praxis_model::command::Body;
use praxis_model::event::{Gate, GateChange, Identity, IdentityKind, Outcome, Owner};
use praxis_model::register::RegisterWrite;
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
    store.ledger.commit(&[first], 0).remove(0).unwrap();
    store
}

impl Store {
    /// A command that launches nothing, and one that launches work.
    fn bodies(&self) -> (Body, Body) {
        let mut asked = self.script.clone();
        let note = asked.note("run").unwrap().sealed.remove(0).event.command;
        let launch = asked.complete("run", 1).unwrap().sealed.remove(0);
        (note, launch.event.command)
    }

    /// These parts as one append of the run, with every condition that a launching event needs.
    fn append(&self, parts: Vec<(Body, Outcome)>) -> Append {
        let mut script = self.script.clone();
        let run = script.run("run").unwrap();
        let mut append = script.append(&run, parts).unwrap();
        append.conditions.fence = Some((run.stream(), 1));
        append.conditions.gates = Some(vec![run, script.mission()]);
        append
    }

    /// The refusal of an append, which leaves everything as it was.
    fn refused(&mut self, append: Append) -> Refusal {
        self.refused_at(append).0
    }

    /// The same, with the part that was refused.
    fn refused_at(&mut self, append: Append) -> (Refusal, Option<usize>) {
        let before = self.ledger.view();
        let answer = self.ledger.commit(&[append], 0).remove(0);
        let after = self.ledger.view();
        assert_eq!(before.cursor, after.cursor);
        match answer {
            Err(AppendError::Refused { refusal, part }) => (*refusal, part),
            answer => panic!("{answer:?}"),
        }
    }

    fn taken(&mut self, append: Append) {
        let of = append.sealed.len() as u64;
        let before = self.ledger.view().sequence();
        let answer = self.ledger.commit(&[append], 0).remove(0);
        assert!(
            matches!(answer, Ok(Appended::Committed { .. })),
            "{answer:?}"
        );
        assert_eq!(self.ledger.view().sequence(), before + of);
        let report = self.ledger.verify(&mut |_, _| ()).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }
}

/// Proves T-82, T-13: a gate that a part closes stops what a later part launches; what was launched before it stands.
#[test]
fn t_82_a_gate_holds_for_the_parts_behind_it() {
    let store_of = store();
    let (note, launch) = store_of.bodies();
    let change = GateChange {
        scope: store_of.script.run("run").unwrap(),
        gate: Gate::Cancel,
        closed: true,
    };
    let closes = Outcome {
        gates: vec![change],
        ..Outcome::default()
    };
    let closing = (note, closes);
    let launching = (launch, Outcome::default());
    let mut first = store();
    let append = first.append(vec![closing.clone(), launching.clone()]);
    assert!(matches!(first.refused(append), Refusal::Gate { .. }));
    let append = first.append(vec![launching, closing]);
    first.taken(append);
}

/// Proves T-82, T-17: an epoch that a part begins deposes whoever decided the parts behind it.
#[test]
fn t_82_an_epoch_ends_for_the_parts_behind_it() {
    let mut store = store();
    let (note, launch) = store.bodies();
    let takes_over = Outcome {
        owner: Some(Owner {
            stream: store.script.run("run").unwrap().stream(),
            epoch: U64(2),
        }),
        ..Outcome::default()
    };
    let append = store.append(vec![(note, takes_over), (launch, Outcome::default())]);
    assert!(matches!(
        store.refused(append),
        Refusal::Fence { found: Some(2), .. }
    ));
}

/// Proves T-82, T-04: a register that a part writes has moved for the parts behind it.
#[test]
fn t_82_a_register_moves_for_the_parts_behind_it() {
    let mut store = store();
    let (note, _) = store.bodies();
    let register = store.script.admission("run").unwrap();
    let writes = Outcome {
        registers: vec![RegisterWrite {
            register: register.clone(),
            value: "moved".into(),
        }],
        ..Outcome::default()
    };
    let (writing, quiet) = ((note.clone(), writes), (note, Outcome::default()));
    let mut append = store.append(vec![writing.clone(), quiet.clone()]);
    append.conditions.same = vec![(register.clone(), 1)];
    assert!(matches!(
        store.refused(append),
        Refusal::Same { found: 2, .. }
    ));
    let mut append = store.append(vec![quiet, writing]);
    append.conditions.same = vec![(register, 1)];
    store.taken(append);
}

/// Proves T-82, T-05, T-06: reservations of several parts fit their bound together, and an identity is taken by one part.
#[test]
fn t_82_parts_share_bounds_and_identities() {
    let mut store = store();
    let (note, _) = store.bodies();
    let account = store.script.account().unwrap();
    let reserve = |amount| Outcome {
        accounts: vec![Posting::Reserve {
            account: account.clone(),
            amount: Dec::from_u64(amount),
        }],
        ..Outcome::default()
    };
    let takes = Outcome {
        identities: vec![Identity {
            kind: IdentityKind::Run,
            key: "later".parse().unwrap(),
            digest: aiws::digest::sha256(b""),
        }],
        ..Outcome::default()
    };
    let append = store.append(vec![
        (note.clone(), reserve(60)),
        (note.clone(), reserve(41)),
    ]);
    assert!(matches!(store.refused(append), Refusal::Bounded { .. }));
    // Reserved and settled in one append: the bound is the reservation's all the same.
    let too_much = store.script.clone().spend("run", 101).unwrap();
    assert!(matches!(store.refused(too_much), Refusal::Bounded { .. }));
    let append = store.append(vec![(note.clone(), takes.clone()), (note.clone(), takes)]);
    assert!(matches!(store.refused(append), Refusal::Identity { .. }));
    let append = store.append(vec![(note.clone(), reserve(60)), (note, reserve(40))]);
    store.taken(append);
}

/// Proves T-82, T-51: a launching part needs its conditions wherever it stands, and its own epoch.
#[test]
fn t_82_a_launching_part_needs_its_conditions_wherever_it_stands() {
    let mut store = store();
    let (note, launch) = store.bodies();
    let parts = vec![(note, Outcome::default()), (launch, Outcome::default())];
    let mut append = store.append(parts.clone());
    append.conditions.gates = None;
    assert!(matches!(
        store.refused(append),
        Refusal::Unconditioned {
            missing: "gates",
            ..
        }
    ));
    let mut append = store.append(parts.clone());
    let mut event = append.sealed[1].event.clone();
    event.owner_epoch = Some(U64(2));
    append.sealed[1] = praxis_journal_format::seal(event).unwrap();
    assert!(matches!(store.refused(append), Refusal::Illegal { .. }));
    let append = store.append(parts);
    store.taken(append);
}

/// Proves T-82: a refusal has the number of the part that does not fit, not of the first that is like it; what is asked
/// of the whole append and fails at once has none.
#[test]
fn t_82_a_refusal_names_its_part() {
    let mut store = store();
    let (note, launch) = store.bodies();
    let quiet = || (note.clone(), Outcome::default());
    let reserve = |amount| {
        let posting = Posting::Reserve {
            account: store.script.account().unwrap(),
            amount: Dec::from_u64(amount),
        };
        let outcome = Outcome {
            accounts: vec![posting],
            ..Outcome::default()
        };
        (note.clone(), outcome)
    };
    let take = |key: &str| {
        let identity = Identity {
            kind: IdentityKind::Run,
            key: key.parse().unwrap(),
            digest: aiws::digest::sha256(b""),
        };
        let outcome = Outcome {
            identities: vec![identity],
            ..Outcome::default()
        };
        (note.clone(), outcome)
    };
    let close = || {
        let change = GateChange {
            scope: store.script.run("run").unwrap(),
            gate: Gate::Cancel,
            closed: true,
        };
        let outcome = Outcome {
            gates: vec![change],
            ..Outcome::default()
        };
        (note.clone(), outcome)
    };
    let launched = || (launch.clone(), Outcome::default());
    let room = store.append(vec![reserve(60), quiet(), reserve(30), reserve(11)]);
    let identity = store.append(vec![take("x"), take("y"), quiet(), take("y")]);
    let gate = store.append(vec![launched(), close(), quiet(), launched()]);
    // It launches under another epoch than its fence's.
    let mut illegal = store.append(vec![launched(), quiet(), launched()]);
    let mut event = illegal.sealed[2].event.clone();
    event.owner_epoch = Some(U64(2));
    illegal.sealed[2] = praxis_journal_format::seal(event).unwrap();
    let mut unconditioned = store.append(vec![quiet(), launched()]);
    unconditioned.conditions.gates = None;
    let mut late = store.append(vec![quiet(), launched()]);
    late.conditions.before_ms = vec![0];
    let mut deposed = store.append(vec![quiet(), quiet()]);
    let fence = deposed.conditions.fence.as_mut().unwrap();
    fence.1 = 2;
    let mut moved = store.append(vec![quiet(), quiet()]);
    moved.conditions.same = vec![(store.script.admission("run").unwrap(), 7)];
    let mut torn = store.append(vec![quiet(), quiet()]);
    torn.sealed.pop();
    let code = |append| {
        let (refusal, part) = store.refused_at(append);
        (refusal.code(), part)
    };
    let expected = [
        (Code::BudgetExceeded, Some(4)),
        (Code::IdentityConflict, Some(4)),
        (Code::HoldActive, Some(4)),
        (Code::InternalStore, Some(3)),
        (Code::LaunchUnconditioned, Some(2)),
        (Code::DeadlinePassed, None),
        (Code::StaleOwner, None),
        (Code::RevisionConflict, None),
        (Code::InternalStore, None),
    ];
    let appends = [
        room,
        identity,
        gate,
        illegal,
        unconditioned,
        late,
        deposed,
        moved,
        torn,
    ];
    assert_eq!(appends.map(code), expected);
}

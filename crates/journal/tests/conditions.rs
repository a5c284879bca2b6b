//! The conditions of an append: each alone, their order, their independence inside a batch.
//!
//! Invariant: the first condition that fails in stage order is the answer, and nothing of its append is applied.
//! Run against a real store in a directory.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;

use aiws::decimal::Dec;
use aiws::error::Code;
use aiws::json::Value;
use praxis_journal::{Append, AppendResult, Appended, FileDisk, Ledger, Options, Refusal};
use praxis_journal_format::seal;
use praxis_model::account::Posting;
use praxis_model::command::{Body, StartRun};
use praxis_model::event::{Gate, GateChange, Outcome};
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
    let mut store = Store {
        ledger: create(folder.path()),
        _folder: folder,
        script: Script::new("mission").unwrap(),
    };
    let first = store.script.start_run("run").unwrap();
    assert!(matches!(
        store.commit(first),
        Ok(Appended::Committed { sequence: 1, .. })
    ));
    store
}

fn create(path: &Path) -> Ledger {
    let disk = Arc::new(FileDisk::new(path));
    Ledger::create(disk, "store".parse().unwrap(), &Options::default()).unwrap()
}

impl Store {
    fn commit(&mut self, append: Append) -> AppendResult {
        self.commit_at(append, 0)
    }

    fn commit_at(&mut self, append: Append, now_ms: u64) -> AppendResult {
        self.ledger.commit(&[append], now_ms).remove(0)
    }

    /// A refused append leaves everything as it was.
    fn refused(&mut self, append: Append) -> (Code, Refusal) {
        let before = self.ledger.view();
        let error = self.commit(append).expect_err("the append is refused");
        let after = self.ledger.view();
        assert_eq!(
            (before.cursor, before.last_ms),
            (after.cursor, after.last_ms)
        );
        match error {
            praxis_journal::AppendError::Refused { refusal, .. } => (refusal.code(), *refusal),
            praxis_journal::AppendError::Store(error) => panic!("{error}"),
        }
    }

    /// Closes the run's gate, in the run's own stream.
    fn close_gate(&mut self) {
        let run = self.script.run("run").unwrap();
        let change = GateChange {
            scope: run.clone(),
            gate: Gate::Cancel,
            closed: true,
        };
        let outcome = Outcome {
            gates: vec![change],
            ..Outcome::default()
        };
        let body = self.script.note("run").unwrap().sealed[0]
            .event
            .command
            .clone();
        // The note was only asked for its body: tell the gate's event in its place.
        let mut script = Script::new("mission").unwrap();
        script.start_run("run").unwrap();
        let append = script.append(&run, vec![(body, outcome)]).unwrap();
        self.script = script;
        self.commit(append).unwrap();
    }
}

/// Proves HF-02.7, HF-02.8: the same request gets its first result, whether or not it reached the index;
/// another body under the same id is a conflict.
#[test]
fn hf_02_7_a_request_is_replayed_and_never_taken_twice() {
    let mut store = store();
    let note = store.script.note("run").unwrap();
    store.commit(note.clone()).unwrap();
    for flushed in [false, true] {
        if flushed {
            store.ledger.flush_index().unwrap();
        }
        assert_eq!(
            store.commit(note.clone()),
            Ok(Appended::Replayed { sequence: 2 })
        );
        let mut event = note.sealed[0].event.clone();
        event.request_digest = aiws::digest::sha256(b"another body");
        let other = Append {
            sealed: vec![seal(event).unwrap()],
            conditions: note.conditions.clone(),
        };
        let (code, _) = store.refused(other);
        assert_eq!(code, Code::IdentityConflict);
    }
    let row = store
        .ledger
        .lookup_request(note.conditions.request.as_ref().unwrap())
        .unwrap()
        .unwrap();
    assert_eq!(row.sequence, 2);
}

/// Proves T-82: a sequence of two parts is one append, replayed as one.
#[test]
fn t_82_a_sequence_is_one_append() {
    let mut store = store();
    let spend = store.script.spend("run", 5).unwrap();
    let last = spend.sealed[1].hash;
    assert_eq!(
        store.commit(spend.clone()),
        Ok(Appended::Committed {
            sequence: 2,
            hash: last
        })
    );
    assert_eq!(
        store.commit(spend.clone()),
        Ok(Appended::Replayed { sequence: 2 })
    );
    assert_eq!(store.ledger.view().sequence(), 3);
    let half = Append {
        sealed: vec![spend.sealed[0].clone()],
        conditions: spend.conditions,
    };
    assert!(matches!(store.refused(half).1, Refusal::Illegal { .. }));
}

/// Proves T-01: an event that does not continue its stream is refused with where the stream stands.
#[test]
fn t_01_the_head_must_be_the_events_own() {
    let mut store = store();
    let mut fork = store.script.clone();
    let note = store.script.note("run").unwrap();
    let found = note.sealed[0].head();
    store.commit(note).unwrap();
    fork.note("nobody").unwrap();
    let late = fork.note("run").unwrap();
    let (code, refusal) = store.refused(late);
    assert_eq!(code, Code::RevisionConflict);
    assert!(matches!(refusal, Refusal::Head { found: Some(head), .. } if head == found));
    let nobody = store.script.clone().note("nobody").unwrap();
    assert!(matches!(
        store.refused(nobody).1,
        Refusal::Head { found: None, .. }
    ));
}

/// Proves T-51: a launching event without head, fence or gates is refused, whichever is left out.
#[test]
fn t_51_a_launching_event_needs_its_conditions() {
    let mut store = store();
    let whole = store.script.clone().complete("run", 1).unwrap();
    let mission = store.script.mission();
    type LeaveOut = fn(&mut Append);
    let cases: [(&str, LeaveOut); 4] = [
        ("head", |append| append.conditions.head = false),
        ("fence", |append| append.conditions.fence = None),
        ("gates", |append| append.conditions.gates = None),
        ("gates", |append| {
            drop(append.conditions.gates.as_mut().unwrap().pop())
        }),
    ];
    for (expected, leave_out) in cases {
        let mut append = whole.clone();
        leave_out(&mut append);
        let (code, refusal) = store.refused(append);
        assert_eq!(code, Code::LaunchUnconditioned);
        assert!(
            matches!(refusal, Refusal::Unconditioned { missing, .. } if missing == expected),
            "{expected}"
        );
    }
    let mut run = store.script.clone().start_run("second").unwrap();
    run.conditions.gates = None;
    assert_eq!(store.refused(run.clone()).0, Code::LaunchUnconditioned);
    run.conditions.gates = Some(vec![mission]);
    store.commit(run).unwrap();
}

/// Proves T-17: a deposed owner's append is refused at the durable boundary.
#[test]
fn t_17_the_fence_holds_the_epoch() {
    let mut store = store();
    let append = store.script.clone().complete("run", 1).unwrap();
    for (epoch, code) in [(0, Code::StaleOwner), (2, Code::StaleOwner)] {
        let mut stale = append.clone();
        stale.conditions.fence.as_mut().unwrap().1 = epoch;
        assert_eq!(store.refused(stale).0, code);
    }
    store.commit(append).unwrap();
}

/// Proves T-04: a register that moved since it was read refuses the append.
#[test]
fn t_04_a_register_must_be_unchanged() {
    let mut store = store();
    let register = store.script.admission("run").unwrap();
    let note = store.script.clone().note("run").unwrap();
    for (revision, fits) in [(0, false), (2, false), (1, true)] {
        let mut append = note.clone();
        append.conditions.same = vec![(register.clone(), revision)];
        match fits {
            true => drop(store.commit(append).unwrap()),
            false => {
                let (_, refusal) = store.refused(append);
                assert!(matches!(refusal, Refusal::Same { found: 1, .. }));
            }
        }
    }
    assert_eq!(
        store.ledger.view().register(&register).unwrap().value,
        Value::from("run")
    );
}

/// Proves T-13: a closed gate refuses what launches, and only that.
#[test]
fn t_13_a_closed_gate_refuses_what_launches() {
    let mut store = store();
    store.close_gate();
    let launch = store.script.clone().complete("run", 1).unwrap();
    assert_eq!(store.refused(launch).0, Code::HoldActive);
    let note = store.script.note("run").unwrap();
    store.commit(note).unwrap();
}

/// Proves T-06: an identity of the mission is taken once, also by another run and after the index was written.
#[test]
fn t_06_an_identity_is_taken_once() {
    let mut store = store();
    for _ in 0..2 {
        let again = store.script.clone().start_run("other").unwrap();
        let mut event = again.sealed[0].event.clone();
        event.outcome.identities[0].key = "run".parse().unwrap();
        let append = Append {
            sealed: vec![seal(event).unwrap()],
            conditions: again.conditions,
        };
        let (code, refusal) = store.refused(append);
        assert_eq!(code, Code::IdentityConflict);
        assert!(matches!(refusal, Refusal::Identity { sequence: 1, .. }));
        store.ledger.flush_index().unwrap();
    }
}

/// Proves T-81: a deadline is checked at the writer's own clock, which never falls below the log's.
#[test]
fn t_81_a_deadline_is_checked_at_the_boundary() {
    let mut store = store();
    let mut append = store.script.note("run").unwrap();
    append.conditions.before_ms = vec![u64::MAX, 5_000];
    for now_ms in [5_000, 5_001] {
        let error = store.commit_at(append.clone(), now_ms).unwrap_err();
        assert_eq!(error.code(), Code::DeadlinePassed);
    }
    // The first event is of 1,001 ms: a clock that fell back to 0 does not revive a deadline of 1,001.
    let mut late = append.clone();
    late.conditions.before_ms = vec![1_001];
    assert_eq!(
        store.commit_at(late, 0).unwrap_err().code(),
        Code::DeadlinePassed
    );
    store.commit_at(append, 4_999).unwrap();
}

/// Proves T-05: reservations fit their bound together, settlements always post and record what went past it.
#[test]
fn t_05_reservations_are_bounded_and_settlements_are_not() {
    let mut store = store();
    let account = store.script.account().unwrap();
    let run = store.script.run("run").unwrap();
    let body = store.script.clone().note("run").unwrap().sealed[0]
        .event
        .command
        .clone();
    let tell = |script: &mut Script, posting: Posting| {
        let outcome = Outcome {
            accounts: vec![posting],
            ..Outcome::default()
        };
        script.append(&run, vec![(body.clone(), outcome)]).unwrap()
    };
    let dec = Dec::from_u64;
    let reserve = |amount| Posting::Reserve {
        account: account.clone(),
        amount: dec(amount),
    };
    let first = tell(&mut store.script, reserve(60));
    store.commit(first).unwrap();
    let too_much = tell(&mut store.script.clone(), reserve(41));
    assert_eq!(store.refused(too_much).0, Code::BudgetExceeded);
    let fits = tell(&mut store.script, reserve(40));
    store.commit(fits).unwrap();
    let over = Posting::Settle {
        account: account.clone(),
        reserved: dec(60),
        actual: dec(75),
    };
    let settle = tell(&mut store.script, over);
    store.commit(settle).unwrap();
    let row = store.ledger.view().account(&account).cloned().unwrap();
    assert_eq!(
        (row.spent, row.reserved, row.overrun, row.revision.0),
        (dec(75), dec(40), dec(15), 4)
    );
    let twice = Posting::Release {
        account: account.clone(),
        reserved: dec(41),
    };
    let twice = tell(&mut store.script.clone(), twice);
    assert!(matches!(store.refused(twice).1, Refusal::Illegal { .. }));
}

/// Proves T-09: two appends of a batch see each other, and a refused one does not touch its neighbours.
#[test]
fn t_09_neighbours_in_a_batch() {
    let mut store = store();
    let first = store.script.note("run").unwrap();
    let mut stale = store.script.clone().complete("run", 1).unwrap();
    stale.conditions.fence.as_mut().unwrap().1 = 7;
    let second = store.script.note("run").unwrap();
    let mut fork = Script::new("mission").unwrap();
    fork.start_run("run").unwrap();
    fork.note("nobody").unwrap();
    fork.note("nobody").unwrap();
    let forked = fork.note("run").unwrap();
    let answers = store
        .ledger
        .commit(&[first.clone(), stale, second, forked, first], 0);
    assert!(matches!(
        answers[0],
        Ok(Appended::Committed { sequence: 2, .. })
    ));
    assert_eq!(answers[1].as_ref().unwrap_err().code(), Code::StaleOwner);
    assert!(matches!(
        answers[2],
        Ok(Appended::Committed { sequence: 3, .. })
    ));
    assert!(answers[3].is_err());
    assert_eq!(answers[4], Ok(Appended::Replayed { sequence: 2 }));
    assert_eq!(store.ledger.view().sequence(), 3);
    assert!(store.ledger.verify(&mut |_, _| ()).unwrap().is_sound());
}

/// Proves ERR-PREC.1: of several conditions that fail, the first in stage order answers: mending one after the other
/// shows them all, in order.
#[test]
fn err_prec_1_conditions_answer_in_stage_order() {
    let mut store = store();
    store.close_gate();
    let (run, account) = (
        store.script.run("run").unwrap(),
        store.script.account().unwrap(),
    );
    let register = store.script.admission("run").unwrap();
    let body = Body::StartRun(StartRun {
        run_id: "later".parse().unwrap(),
    });
    let outcome = Outcome {
        identities: vec![praxis_model::event::Identity {
            kind: praxis_model::event::IdentityKind::Run,
            key: "run".parse().unwrap(),
            digest: aiws::digest::sha256(b""),
        }],
        accounts: vec![Posting::Reserve {
            account,
            amount: Dec::from_u64(101),
        }],
        registers: vec![RegisterWrite {
            register: register.clone(),
            value: Value::Null,
        }],
        ..Outcome::default()
    };
    let mission = store.script.mission();
    let mut append = store
        .script
        .append(&mission, vec![(body, outcome)])
        .unwrap();
    append.conditions.gates = Some(vec![mission, run.clone()]);
    append.conditions.fence = Some((run.stream(), 9));
    append.conditions.same = vec![(register, 9)];
    append.conditions.before_ms = vec![1];
    let reseal = |append: &mut Append, change: &dyn Fn(&mut praxis_model::event::Event)| {
        let mut event = append.sealed[0].event.clone();
        change(&mut event);
        append.sealed = vec![seal(event).unwrap()];
    };
    let good = append.sealed[0].event.prev_hash;
    reseal(&mut append, &|event| {
        event.prev_hash = aiws::digest::Digest::ZERO
    });
    let mut seen = vec![store.refused(append.clone()).0];
    reseal(&mut append, &|event| event.prev_hash = good);
    seen.push(store.refused(append.clone()).0);
    append.conditions.fence = Some((run.stream(), 1));
    seen.push(store.refused(append.clone()).0);
    append.conditions.same.clear();
    seen.push(store.refused(append.clone()).0);
    append.conditions.gates.as_mut().unwrap().pop();
    seen.push(store.refused(append.clone()).0);
    reseal(&mut append, &|event| event.outcome.identities.clear());
    seen.push(store.refused(append.clone()).0);
    append.conditions.before_ms.clear();
    seen.push(store.refused(append.clone()).0);
    let expected = [
        Code::RevisionConflict,
        Code::StaleOwner,
        Code::RevisionConflict,
        Code::HoldActive,
        Code::IdentityConflict,
        Code::DeadlinePassed,
        Code::BudgetExceeded,
    ];
    assert_eq!(seen, expected);
    reseal(&mut append, &|event| event.outcome.accounts.clear());
    store.commit(append).unwrap();
}

/// Proves T-51: a launching event that was decided under another epoch than its fence holds is not committed.
#[test]
fn t_51_a_launching_event_is_of_the_epoch_of_its_fence() {
    for epoch in [None, Some(2)] {
        let mut store = store();
        let mut complete = store.script.complete("run", 1).unwrap();
        let mut event = complete.sealed[0].event.clone();
        event.owner_epoch = epoch.map(aiws::decimal::U64);
        complete.sealed[0] = seal(event).unwrap();
        let (_, refusal) = store.refused(complete);
        assert!(matches!(refusal, Refusal::Illegal { .. }), "{refusal:?}");
    }
}

/// Proves T-30: an event from far beyond the writer's clock is refused, so that it cannot move the store's time.
#[test]
fn t_30_an_event_from_the_far_future_is_refused() {
    let day_ms = praxis_journal::limits::AHEAD_MS;
    for (ahead_ms, taken) in [
        (day_ms, true),
        (day_ms + 1, false),
        (u64::MAX - 5_000, false),
    ] {
        let mut store = store();
        let now_ms = 5_000;
        let mut note = store.script.note("run").unwrap();
        let mut event = note.sealed[0].event.clone();
        event.at_ms.0 = now_ms + ahead_ms;
        note.sealed[0] = seal(event).unwrap();
        let before = store.ledger.view().last_ms;
        let answer = store.commit_at(note, now_ms);
        assert_eq!(answer.is_ok(), taken, "{ahead_ms}: {answer:?}");
        if !taken {
            assert_eq!(store.ledger.view().last_ms, before);
        }
    }
}

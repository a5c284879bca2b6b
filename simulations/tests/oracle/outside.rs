//! What is seen from outside: projections, outbox, artifacts, the end: invariants 4, 7, 23, 28, 31, 36 to 42, 49.
//!
//! Invariant: see the histories' own. Part of the oracle's tests.

use std::collections::BTreeMap;

use aiws::object;
use praxis_simulations::oracle::{Answer, Response, Shown};

use super::history::*;
use super::{accepts, breaks};

type Table = BTreeMap<String, String>;

/// The heads as a right store shows them.
fn heads(it: &History) -> Table {
    let place = |hash: &[u8; 32]| it.log.iter().position(|row| row.hash == *hash).unwrap_or(0);
    let row = |(stream, (revision, hash)): (&String, &(u64, [u8; 32]))| {
        let value = object! {
            "hash": hex(*hash), "revision": revision.to_string(), "sequence": (place(hash) + 1).to_string(),
        };
        (stream.clone(), value.to_string())
    };
    it.heads.iter().map(row).collect()
}

fn shown(name: &'static str, table: Table) -> Shown {
    Shown {
        tables: BTreeMap::from([(name, table)]),
    }
}

fn accounts(reserved: u64, spent: u64, overrun: u64, revision: u64) -> Shown {
    let row = object! {
        "bound": "100", "overrun": overrun.to_string(), "reserved": reserved.to_string(), "revision": revision.to_string(),
        "spent": spent.to_string(),
    };
    shown(
        "accounts",
        Table::from([(account().to_string(), row.to_string())]),
    )
}

fn gates(holds: &[&str]) -> Shown {
    let all: Vec<_> = holds
        .iter()
        .map(|id| object! { "kind": "HOLD", "holdId": *id })
        .collect();
    let text = aiws::json::Value::from(all).to_string();
    shown("gates", Table::from([(scope(R1).to_string(), text)]))
}

#[test]
fn heads_are_the_last_events() {
    accepts(|it| {
        let table = heads(it);
        it.oracle.shown(&shown("heads", table))
    });
    breaks(4, |it| {
        let mut table = heads(it);
        table.remove(&stream(R2));
        it.oracle.shown(&shown("heads", table))
    });
}

#[test]
fn projections_are_what_a_replay_gives() {
    accepts(|it| {
        it.store(&admit("o", "a", 10, "EXTERNAL"))?;
        it.oracle.shown(&accounts(10, 0, 0, 2))?;
        let due = |run| {
            (
                format!("[\"1000\",\"{}\",\"LIVE\"]", stream(run)),
                String::new(),
            )
        };
        it.oracle
            .shown(&shown("due", Table::from([due(R1), due(R2)])))?;
        let owner = |run| (stream(run), "1".to_owned());
        it.oracle
            .shown(&shown("owners", Table::from([owner(R1), owner(R2)])))
    });
    breaks(7, |it| {
        it.store(&admit("o", "a", 10, "EXTERNAL"))?;
        it.oracle.shown(&accounts(0, 0, 0, 1))
    });
    breaks(7, |it| it.oracle.shown(&gates(&["k"])));
    // The view moved although the commit failed.
    breaks(7, |it| {
        it.answered(&Draft::new(R1, "verify"), Answer::NotStored)?;
        it.seal(&Draft::new(R1, "verify"));
        let table = heads(it);
        it.oracle.shown(&shown("heads", table))
    });
}

#[test]
fn a_refusal_moves_no_projection() {
    let refused = || Answer::Refused {
        code: "HOLD_ACTIVE".to_owned(),
    };
    accepts(|it| {
        it.answered(&Draft::new(R1, "verify"), refused())?;
        let table = heads(it);
        it.oracle.shown(&shown("heads", table))
    });
    breaks(23, |it| {
        it.answered(&Draft::new(R1, "verify"), refused())?;
        it.seal(&Draft::new(R1, "verify"));
        let table = heads(it);
        it.oracle.shown(&shown("heads", table))
    });
}

#[test]
fn an_overrun_is_recorded() {
    let over = |it: &mut History| {
        it.working("o", "a", "EXTERNAL")?;
        it.applied("o", "a");
        it.oracle.response("a", Response::Applied { cost: 130 });
        it.store(&confirm("settle", "a", "DISPATCHED", Some(130)))
    };
    accepts(|it| {
        over(it)?;
        assert!(it.oracle.seen().contains("overrun"));
        it.oracle.shown(&accounts(0, 130, 30, 3))
    });
    breaks(28, |it| {
        over(it)?;
        it.oracle.shown(&accounts(0, 130, 0, 3))
    });
}

#[test]
fn a_hold_stays() {
    accepts(|it| {
        it.store(&hold("k", "OPERATOR"))?;
        it.reopen()?;
        assert!(it.oracle.seen().contains("hold-over-restart"));
        it.oracle.shown(&gates(&["k"]))
    });
    breaks(31, |it| {
        it.store(&hold("k", "OPERATOR"))?;
        it.reopen()?;
        it.oracle.shown(&shown("gates", Table::new()))
    });
}

fn events(it: &History, from: u64, to: u64) -> Vec<(u64, [u8; 32])> {
    (from..=to)
        .map(|at| (at, it.log[at as usize - 1].hash))
        .collect()
}

fn cursor(at: u64) -> Shown {
    shown("cursors", Table::from([("c".to_owned(), at.to_string())]))
}

#[test]
fn a_consumer_sees_every_event() {
    accepts(|it| {
        let all = events(it, 1, 3);
        it.oracle.delivered("c", &all)?;
        it.oracle.acknowledged("c", 2);
        it.oracle.shown(&cursor(2))?;
        it.reopen()?;
        let rest = events(it, 3, 5);
        it.oracle.delivered("c", &rest)?;
        assert!(it.oracle.seen().contains("delivered-again"));
        Ok(())
    });
    breaks(36, |it| {
        let some = events(it, 2, 3);
        it.oracle.delivered("c", &some)
    });
    breaks(36, |it| {
        let mut some = events(it, 1, 3);
        some.remove(1);
        it.oracle.delivered("c", &some)
    });
    breaks(36, |it| it.oracle.delivered("c", &[(1, [9; 32])]));
}

#[test]
fn what_is_not_acknowledged_comes_again() {
    breaks(37, |it| {
        let (first, next) = (events(it, 1, 2), events(it, 3, 4));
        it.oracle.delivered("c", &first)?;
        it.oracle.delivered("c", &next)
    });
    breaks(37, |it| {
        let first = events(it, 1, 2);
        it.oracle.delivered("c", &first)?;
        it.oracle.shown(&cursor(2))
    });
}

#[test]
fn a_cursor_moves_by_its_consumer() {
    accepts(|it| {
        it.oracle.acknowledged("c", 2);
        it.reopen()?;
        it.oracle.shown(&shown("cursors", Table::new()))?;
        it.oracle.shown(&cursor(2))
    });
    breaks(38, |it| it.oracle.shown(&cursor(5)));
    breaks(38, |it| {
        it.oracle.cursor_kept("c", 2);
        it.reopen()?;
        it.oracle.shown(&shown("cursors", Table::new()))
    });
}

fn file(bytes: &[u8]) -> (String, Vec<u8>) {
    (hex(material()), bytes.to_vec())
}

#[test]
fn bytes_hash_to_their_id() {
    accepts(|it| {
        it.oracle.read(material(), Ok(b"made"))?;
        it.oracle.read(material(), Err("ARTIFACT_UNAVAILABLE"))
    });
    breaks(39, |it| it.oracle.read(material(), Ok(b"mad")));
    accepts(|it| {
        it.delivered()?;
        it.oracle.damaged_material(material());
        it.oracle.read(material(), Err("ARTIFACT_MISMATCH"))
    });
    breaks(40, |it| {
        it.delivered()?;
        it.oracle.read(material(), Err("ARTIFACT_UNAVAILABLE"))
    });
}

#[test]
fn what_is_named_is_durable() {
    accepts(|it| {
        it.delivered()?;
        it.oracle
            .files(&[file(b"made"), ("half.tmp".to_owned(), b"ma".to_vec())])
    });
    breaks(40, |it| {
        it.delivered()?;
        it.oracle.files(&[])
    });
    breaks(40, |it| it.store(&boundary("h1", "d1")));
}

#[test]
fn what_is_named_is_not_collected() {
    accepts(|it| {
        it.oracle.put(material(), true);
        it.oracle.collected(material())?;
        it.oracle.files(&[])?;
        it.delivered()
    });
    breaks(41, |it| {
        it.delivered()?;
        it.oracle.collected(material())
    });
    breaks(41, |it| {
        it.oracle.put(material(), true);
        it.oracle.collected(material())?;
        it.store(&boundary("h1", "d1"))
    });
}

#[test]
fn no_file_is_partial() {
    breaks(42, |it| it.oracle.files(&[file(b"ma")]));
    accepts(|it| {
        it.oracle.damaged_material(material());
        it.oracle.files(&[file(b"ma")])
    });
}

#[test]
fn everything_comes_to_rest() {
    accepts(|it| {
        it.working("o", "a", "EXTERNAL")?;
        it.oracle.response("a", Response::NotApplied);
        it.store(&confirm("settle", "a", "DISPATCHED", None))?;
        it.oracle.rest()
    });
    breaks(49, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.oracle.rest()
    });
    breaks(49, |it| {
        let handed = it.seal(&Draft::new(R1, "verify"));
        it.oracle.hand_in(&[handed]);
        it.oracle.power_lost();
        it.oracle.rest()
    });
}

//! The flow of work through graphs: branches, inputs, joins, loops, what no longer counts: invariants 22, 30, 50 to 55.
//!
//! Invariant: see the histories' own. Part of the oracle's tests.

use aiws::json::Value;
use aiws::object;
use praxis_simulations::invariant::Broken;

use super::history::*;
use super::{accepts, breaks};

fn node(id: &str, kind: &str, after: &[&str], config: Value) -> Value {
    object! { "id": id, "kind": kind, "dependsOn": after.to_vec(), "config": config }
}

fn task(id: &str, after: &[&str]) -> Value {
    node(id, "TASK", after, object! {})
}

fn any(id: &str, after: &[&str]) -> Value {
    node(id, "JOIN", after, object! { "mode": "ANY" })
}

fn begun(nodes: Vec<Value>) -> impl Fn(&mut History) -> Result<(), Broken> {
    move |it| {
        let graph = object! { "nodes": nodes.clone() };
        it.store(&Draft::new(R1, "activateGraph").says("graph", graph))
    }
}

fn step(id: &str, from: &str, to: &str) -> Value {
    object! { "kind": "NODE_MOVED", "nodeId": id, "from": from, "to": to }
}

fn begins(id: &str, activation: &str, inputs: &[&str]) -> Draft {
    let inputs: Vec<Value> = inputs
        .iter()
        .map(|delivery| object! { "deliveryId": *delivery })
        .collect();
    let consumption = object! { "nodeId": id, "activationId": activation, "inputs": inputs };
    Draft::new(R1, "admitConsumer")
        .says("consumption", object! { "nodeId": id })
        .moves(step(id, "PENDING", "ACTIVE"))
        .moves(object! { "kind": "CONSUMPTION_RECORDED", "consumption": consumption })
}

/// A boundary of a node; its deliveries, each with its consumer, are received at once.
fn ends(id: &str, handoff_id: &str, result: Value, to: &[(&str, &str)]) -> Draft {
    let manifest = object! {
        "producer": object! { "nodeId": id }, "outcome": object! { "status": "COMPLETED" }, "result": result,
    };
    let mut draft = Draft::new(R1, "commitBoundary").says("manifest", manifest);
    let committed = object! {
        "kind": "MANIFEST_COMMITTED", "handoff": handoff(handoff_id), "skipped": Value::Null,
    };
    draft = draft.moves(committed);
    for (delivery, consumer) in to {
        let recipient = object! { "nodeId": *consumer, "activationId": format!("of-{consumer}") };
        draft = draft.moves(object! { "kind": "DELIVERY_OPENED", "delivery": object! {
            "deliveryId": *delivery, "handoff": handoff(handoff_id), "recipient": recipient,
            "state": "ACKNOWLEDGED", "generation": "0",
        } });
    }
    draft
}

fn done(id: &str, handoff_id: &str, to: &[(&str, &str)]) -> Draft {
    ends(id, handoff_id, object! {}, to).moves(step(id, "ACTIVE", "COMPLETED"))
}

#[test]
fn a_held_branch_starts_nothing_behind_it() {
    let graph = || begun(vec![task("a", &[]), task("b", &["a"]), task("c", &[])]);
    let held = |it: &mut History| {
        graph()(it)?;
        it.store(&begins("a", "a1", &[]))?;
        it.store(&done("a", "h1", &[("d1", "b")]))?;
        let scope = object! { "kind": "BRANCH", "ref": object! { "id": "a" } };
        let hold = object! {
            "holdId": "h", "reason": "OPERATOR", "blockers": Vec::<Value>::new(), "scope": scope,
        };
        let mut draft =
            Draft::new(R1, "placeHold").moves(object! { "kind": "HOLD_OPENED", "hold": hold });
        // What the gate names is not what counts.
        let gate = object! { "kind": "BRANCH", "holdId": "h", "nodeIds": vec!["a"] };
        draft.gates = vec![object! { "scope": scope_of(), "gate": gate, "closed": true }];
        it.store(&draft)
    };
    let said = |id: &str| object! { "kind": "LAUNCHED_IN", "nodeId": id };
    accepts(|it| {
        held(it)?;
        it.store(&begins("c", "c1", &[]).moves(said("c")))
    });
    breaks(30, |it| {
        held(it)?;
        it.store(&begins("b", "b1", &["d1"]).moves(said("b")))
    });
    breaks(30, |it| {
        held(it)?;
        it.store(&begins("c", "c1", &[]).moves(said("b")))
    });
    // The run as a whole is behind every branch.
    breaks(30, |it| {
        held(it)?;
        it.store(&Draft::new(R1, "completeRun"))
    });
}

fn scope_of() -> Value {
    scope(R1)
}

#[test]
fn a_node_begins_with_all_that_it_waits_for_and_once() {
    let graph = || begun(vec![task("a", &[]), task("b", &["a"])]);
    accepts(|it| {
        graph()(it)?;
        it.store(&begins("a", "a1", &[]))?;
        it.store(&done("a", "h1", &[("d1", "b")]))?;
        it.store(&begins("b", "b1", &["d1"]))
    });
    breaks(51, |it| {
        graph()(it)?;
        it.store(&begins("b", "b1", &[]))
    });
    breaks(22, |it| {
        graph()(it)?;
        it.store(&begins("a", "a1", &[]))?;
        it.store(&begins("a", "a2", &[]))
    });
}

#[test]
fn a_join_of_any_takes_one_and_abandons_nothing() {
    let graph = || begun(vec![task("a", &[]), task("c", &[]), any("j", &["a", "c"])]);
    let both = |it: &mut History| {
        graph()(it)?;
        for (id, handoff, delivery) in [("a", "h1", "d1"), ("c", "h2", "d2")] {
            it.store(&begins(id, &format!("{id}1"), &[]))?;
            it.store(&done(id, handoff, &[(delivery, "j")]))?;
        }
        Ok(())
    };
    accepts(|it| {
        both(it)?;
        it.store(&begins("j", "j1", &["d2"]))
    });
    breaks(51, |it| {
        both(it)?;
        it.store(&begins("j", "j1", &["d1", "d2"]))
    });
    let one = |it: &mut History| {
        graph()(it)?;
        it.store(&begins("a", "a1", &[]))?;
        it.store(&done("a", "h1", &[("d1", "j")]))
    };
    // It has no policy for the one that has not begun, and nobody leaves out the one that has.
    breaks(52, |it| {
        one(it)?;
        it.store(&begins("j", "j1", &["d1"]))
    });
    breaks(52, |it| {
        one(it)?;
        it.store(&begins("c", "c1", &[]))?;
        it.store(&begins("j", "j1", &["d1"]))
    });
    // Without a choice or a policy nobody is skipped.
    breaks(52, |it| {
        one(it)?;
        let mut skip = step("c", "PENDING", "SKIPPED");
        if let Value::Object(members) = &mut skip {
            members.insert("skippedBy".to_owned(), "j".into());
        }
        it.store(&Draft::new(R1, "verify").moves(skip))
    });
}

#[test]
fn a_loop_keeps_its_bound() {
    let graph = || {
        let config = object! { "maxIterations": "2" };
        begun(vec![node("l", "LOOP", &[], config)])
    };
    let again = |at: u64| {
        let said = object! { "done": false };
        let ended =
            object! { "kind": "ITERATION_ENDED", "nodeId": "l", "iteration": at.to_string() };
        ends("l", &format!("h{at}"), said, &[]).moves(ended)
    };
    let last = |done: bool| {
        ends("l", "h9", object! { "done": done }, &[]).moves(step("l", "ACTIVE", "COMPLETED"))
    };
    let second = |it: &mut History| {
        graph()(it)?;
        it.store(&begins("l", "l1", &[]))?;
        it.store(&again(1))?;
        it.store(&begins("l", "l2", &[]))
    };
    accepts(|it| {
        second(it)?;
        it.store(&last(true))
    });
    breaks(50, |it| {
        second(it)?;
        it.store(&again(2))
    });
    breaks(50, |it| {
        second(it)?;
        it.store(&last(false))
    });
    breaks(50, |it| {
        second(it)?;
        it.store(&again(1))
    });
}

#[test]
fn what_no_longer_counts_stops() {
    let graph = || begun(vec![task("a", &[]), task("b", &["a"])]);
    let bound = |it: &mut History| {
        graph()(it)?;
        it.store(&begins("a", "a1", &[]))?;
        it.store(&done("a", "h1", &[("d1", "b")]))?;
        it.store(&begins("b", "b1", &["d1"]))
    };
    let record = || object! { "handoff": handoff("h1"), "holdId": "i" };
    let invalid = |forgets: bool| {
        let delivery = object! {
            "kind": "DELIVERY_MOVED", "deliveryId": "d1", "from": "ACKNOWLEDGED", "to": "INVALIDATED",
        };
        let consumption = object! {
            "kind": "CONSUMPTION_MOVED", "activationId": "b1", "from": "VALID", "to": "INVALIDATED",
        };
        let hold = object! {
            "holdId": "i", "reason": "INVALIDATED_INPUT", "blockers": Vec::<Value>::new(),
        };
        let mut draft = Draft::new(R1, "invalidateHandoff").human().moves(delivery);
        if !forgets {
            draft = draft.moves(consumption);
        }
        draft.gates = vec![gate(R1, "i", true)];
        draft
            .moves(object! { "kind": "HOLD_OPENED", "hold": hold })
            .moves(object! { "kind": "HANDOFF_INVALIDATED", "invalidation": record() })
    };
    accepts(|it| {
        bound(it)?;
        it.store(&invalid(false))
    });
    breaks(53, |it| {
        bound(it)?;
        it.store(&invalid(true))
    });
    breaks(53, |it| {
        bound(it)?;
        it.store(&invalid(false))?;
        it.store(&resolve("i").human())
    });
    // A live run is held.
    breaks(53, |it| {
        graph()(it)?;
        it.store(&begins("a", "a1", &[]))?;
        it.store(&done("a", "h1", &[]))?;
        let record = object! { "handoff": handoff("h1"), "holdId": Value::Null };
        let record = object! { "kind": "HANDOFF_INVALIDATED", "invalidation": record };
        it.store(&Draft::new(R1, "invalidateHandoff").human().moves(record))
    });
}

#[test]
fn a_complete_run_is_whole() {
    let graph = || begun(vec![task("a", &[]), node("e", "END", &["a"], object! {})]);
    let end = || Draft::new(R1, "completeRun").moves(ended("COMPLETED"));
    accepts(|it| {
        graph()(it)?;
        it.store(&begins("a", "a1", &[]))?;
        it.store(&done("a", "h1", &[("d1", "e")]))?;
        it.store(&begins("e", "e1", &["d1"]))?;
        it.store(&done("e", "h2", &[]))?;
        it.store(&end())
    });
    breaks(54, |it| {
        graph()(it)?;
        it.store(&end())
    });
}

#[test]
fn words_change_nothing() {
    let graph = || begun(vec![task("a", &[])]);
    let words = || {
        Draft::new(R1, "recordSummary")
            .human()
            .moves(object! { "kind": "SUMMARY_RECORDED", "summaryId": "s" })
    };
    accepts(|it| {
        graph()(it)?;
        it.store(&words())
    });
    breaks(55, |it| {
        graph()(it)?;
        let mut draft = words();
        draft.due = vec![object! { "stream": stream(R1), "kind": "LIVE", "atMs": Value::Null }];
        it.store(&draft)
    });
    breaks(55, |it| {
        graph()(it)?;
        it.store(&words().moves(step("a", "PENDING", "ACTIVE")))
    });
}

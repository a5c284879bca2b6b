//! The pure questions, over runs that were decided and folded by the model.
//! Invariant: no state is made by hand; what a test looks at, commands have brought about.
//! Called by `cargo test`.

use std::collections::{BTreeMap, BTreeSet};

use aiws::digest::Digest;
use aiws::id::NodeId;
use aiws::object;
use aiws::record::{DeliveryState, HoldReason, HoldState, Lifecycle, SettledOutcome};
use aiws_sdk::handoff::{RunState, activation, report, sha};
use praxis_model::command::{Body, PlaceHold};
use praxis_model::event::Event;
use praxis_model::evolve;

use crate::world::{self, AGENT, HUMAN, World, config, contract, dec, hold, id, lin};

/// The digest is of the content, however it was written down.
#[test]
fn sha_is_the_digest_of_the_canonical_bytes() {
    let value = object! { "b": "\u{e9}", "a": 1 };
    let bytes = "{\"a\":1,\"b\":\"\u{e9}\"}";
    assert_eq!(sha(&value), aiws::digest::sha256(bytes.as_bytes()));
    assert_ne!(sha(&value), sha(&object! { "b": "\u{e9}", "a": 2 }));
}

/// Before a graph is pinned, and for nodes that it does not have, there is no activation.
#[test]
fn a_node_outside_the_graph_has_no_activation() {
    let bare = World::started(contract(), config());
    let (known, unknown): (NodeId, NodeId) = (id("a"), id("nowhere"));
    assert_eq!(activation(bare.state(), &known), None);
    let world = World::with(lin());
    assert!(activation(world.state(), &known).is_some());
    assert_eq!(activation(world.state(), &unknown), None);
}

/// One activation per node, the same through receipt, admission and a settlement without effect, and the one that
/// the run's own deliveries, consumptions and manifests name.
#[test]
fn an_activation_is_the_one_that_the_records_name() {
    let mut world = World::with(lin());
    let nodes = ["a", "b", "end"];
    let all = |world: &World| nodes.map(|node| activation(world.state(), &id(node)));
    let first = all(&world);
    let distinct: BTreeSet<_> = first.iter().flatten().collect();
    assert_eq!(distinct.len(), nodes.len());

    world.work("a").expect("a");
    let delivery = world.pending("b");
    let to_b = &world
        .state()
        .deliveries
        .get(&delivery)
        .expect("it is pending")
        .record;
    assert_eq!(Some(&to_b.recipient.activation_id), first[1].as_ref());
    world.claim(AGENT, &delivery).expect("claim");
    world.ack(AGENT, &delivery).expect("receipt");
    assert_eq!(
        world.deliveries("b", DeliveryState::Acknowledged),
        [delivery]
    );
    world.admit("b").expect("admission");
    world.dispatch("b").expect("dispatch");
    world
        .settle("at-b-1", SettledOutcome::ConfirmedNotApplied, 0)
        .expect("settlement");
    assert_eq!(all(&world), first);

    let state = world.state();
    let of_b = first[1].as_ref().expect("b is in the graph");
    assert_eq!(
        state
            .consumptions
            .get(of_b)
            .expect("b was admitted")
            .node_id,
        id("b")
    );
    let manifest = &state
        .manifests
        .values()
        .next()
        .expect("a passed something on")
        .manifest;
    assert_eq!(Some(&manifest.producer.activation_id), first[0].as_ref());
    assert_eq!(world::run_id(), manifest.producer.run_id);
}

/// A run in which `a` passed something on, and `b` received it and was admitted for 3 under a hold that came then.
fn held() -> World {
    let mut world = World::with(lin());
    world.work("a").expect("a");
    world.receive("b").expect("receipt");
    world.admit("b").expect("admission");
    let hold = hold("stop", HoldReason::Operator);
    world
        .send(HUMAN, Body::PlaceHold(PlaceHold { hold }))
        .expect("a hold");
    world
}

/// Proves REP-1: what was committed gives the report: a replay of the events gives the same one, one event fewer
/// another one.
#[test]
fn a_report_is_a_function_of_what_was_committed() {
    let world = held();
    let committed = report(world.state());
    assert_eq!(committed.revision, world.state().head.revision.get());
    assert_eq!(committed.last_hash, world.state().head.hash);
    assert_eq!(report(&replayed(&world.events)), committed);

    let (last, earlier) = world.events.split_last().expect("events");
    let before = report(&replayed(earlier));
    assert_eq!((before.last_hash, before.held), (last.0.prev_hash, false));
    assert_ne!(before, committed);
}

/// The run's state from its events alone.
fn replayed(events: &[(Event, Digest)]) -> RunState {
    let (mission, run): (Vec<_>, Vec<_>) = events
        .iter()
        .partition(|(event, _)| event.subject.run_id.is_none());
    let (start, hash) = mission.last().expect("startRun");
    let admitted = RunState::admitted(start, hash).expect("an admitted run");
    run.iter().fold(admitted, |state, (event, hash)| {
        evolve::run(state, event, hash).expect("it follows")
    })
}

/// Proves REP-2: deliveries per state, the open hold with the nodes it blocks, manifests, consumptions and spend.
#[test]
fn a_report_counts_deliveries_holds_blocked_nodes_manifests_consumptions_and_spend() {
    let early = report(World::with(lin()).state());
    assert!(early.deliveries.is_empty() && early.holds.is_empty() && !early.held);
    assert_eq!((early.manifests, early.consumptions), (0, 0));
    assert_eq!((early.spent, early.reserved), (dec(0), dec(0)));
    assert_eq!(early.ready, [id("a")]);

    let mut world = World::with(lin());
    world.work("a").expect("a");
    let counts = |state: &str, number: u64| BTreeMap::from([(state.to_owned(), number)]);
    assert_eq!(deliveries(&world), counts("PENDING", 1));
    world.claim(AGENT, &world.pending("b")).expect("claim");
    assert_eq!(deliveries(&world), counts("CLAIMED", 1));

    let held = report(held().state());
    assert_eq!(held.deliveries.get("ACKNOWLEDGED"), Some(&1));
    assert_eq!(held.deliveries.values().sum::<u64>(), 1);
    assert!(held.held && held.lifecycle == Lifecycle::Running);
    let holds: Vec<_> = held
        .holds
        .iter()
        .map(|hold| (&hold.hold_id, hold.state))
        .collect();
    assert_eq!(holds, [(&id("stop"), HoldState::Open)]);
    assert_eq!(held.blocked_nodes, [id("b"), id("end")]);
    assert_eq!(
        (held.manifests, held.consumptions, held.attempts),
        (1, 2, 2)
    );
    assert_eq!((held.spent, held.reserved), (dec(3), dec(3)));
}

fn deliveries(world: &World) -> BTreeMap<String, u64> {
    let counts = report(world.state()).deliveries.into_iter();
    counts
        .map(|(state, number)| (state.to_owned(), number))
        .collect()
}

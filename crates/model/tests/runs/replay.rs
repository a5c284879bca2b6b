//! Replay: the events alone make the state, and an event that was changed is noticed.

use aiws::decimal::U64;
use aiws::digest::Digest;
use aiws::error::Code;
use aiws::record::NodeKind;
use praxis_model::command::Body;
use praxis_model::event::Event;
use praxis_model::evolve::{self, IllegalEvent};
use praxis_model::run::{NodeStatus, RunState};
use praxis_model::transition::Transition;

use crate::driver::{coding_world, drive};
use crate::kinds::drive_one;
use crate::world::*;

fn whole() -> World {
    let mut world = coding_world();
    drive(&mut world, false);
    world
}

fn refold(events: &[(Event, Digest)]) -> Result<RunState, IllegalEvent> {
    let (admission, hash) = &events[1];
    let mut state = RunState::admitted(admission, hash)?;
    for (event, hash) in &events[2..] {
        state = evolve::run(state, event, hash)?;
    }
    Ok(state)
}

/// The first event of this kind in the run, changed; what the fold says about it.
fn changed(
    world: &World,
    wanted: impl Fn(&Event) -> bool,
    change: impl FnOnce(&mut Event),
) -> IllegalEvent {
    let mut events = world.events.clone();
    let at = events
        .iter()
        .position(|(event, _)| wanted(event))
        .expect("such an event");
    change(&mut events[at].0);
    refold(&events).expect_err("the change is noticed")
}

fn is(event: &Event, name: &str) -> bool {
    event.kind.name() == name
}

/// Proves HS-07.2, HD-02.11: the fold of the recorded events is the state, field by field, with nothing asked of
/// anybody and no token.
#[test]
fn the_events_make_the_state() {
    let world = whole();
    assert_eq!(refold(&world.events).as_ref(), Ok(world.state()));
    let mut mission = None;
    for (event, hash) in &world.events[..2] {
        mission = Some(evolve::mission(mission, event, hash).expect("a legal event"));
    }
    assert_eq!(mission, world.mission);
}

/// Proves HS-07.1: revisions are gap-free and every event names the hash before it.
#[test]
fn the_chain_has_no_gap() {
    let world = whole();
    for (at, pair) in world.events[1..].windows(2).enumerate() {
        assert_eq!(pair[1].0.revision, U64(at as u64 + 1));
        assert_eq!(pair[1].0.prev_hash, pair[0].1);
    }
}

/// Proves HF-01.9, AUD-2: dropped, swapped and relinked events are noticed as a broken chain.
#[test]
fn a_broken_chain_is_noticed() {
    let world = whole();
    for at in 2..world.events.len() - 1 {
        let mut dropped = world.events.clone();
        dropped.remove(at);
        assert_eq!(
            refold(&dropped).map(drop).map_err(|error| error.code()),
            Err(Code::ChainBroken),
            "{at} dropped"
        );
        let mut swapped = world.events.clone();
        swapped.swap(at, at + 1);
        assert_eq!(
            refold(&swapped).map(drop).map_err(|error| error.code()),
            Err(Code::ChainBroken),
            "{at} swapped"
        );
    }
    let error = changed(
        &world,
        |event| is(event, "dispatch"),
        |event| event.prev_hash = Digest::ZERO,
    );
    assert_eq!(
        (error.what.as_str(), error.code()),
        ("the previous hash", Code::ChainBroken)
    );
}

/// Proves HF-01.9, HF-01.8: a manifest that stands on another position, or is not the one whose digest was committed,
/// is noticed.
#[test]
fn a_boundary_stands_on_its_predecessor() {
    let world = whole();
    let boundary = |event: &Event| is(event, "commitBoundary");
    let error = changed(&world, boundary, |event| {
        if let Body::CommitBoundary(body) = &mut event.command {
            body.manifest.basis.revision = dec(1);
        }
    });
    assert_eq!(
        (error.what.as_str(), error.code()),
        ("the basis of a manifest", Code::ChainBroken)
    );
    let error = changed(&world, boundary, |event| {
        if let Body::CommitBoundary(body) = &mut event.command {
            body.manifest.result = aiws::object! { "forged": true };
        }
    });
    assert_eq!(
        (error.what.as_str(), error.code()),
        ("the manifest's digest", Code::StoreCorrupt)
    );
}

/// Proves HF-01.9, HF-01.8: what a join's admission generates stands on its predecessor, too, and is what was committed.
#[test]
fn a_choice_stands_on_its_predecessor() {
    let mut world = any_world();
    drive_one(&mut world);
    let choice = |event: &Event| match &event.command {
        Body::AdmitConsumer(body) => !body.skipped.is_empty(),
        _ => false,
    };
    let tell = |change: &dyn Fn(&mut Vec<aiws::record::Manifest>)| {
        let error = changed(&world, choice, |event| {
            if let Body::AdmitConsumer(body) = &mut event.command {
                change(&mut body.skipped);
            }
        });
        (error.what.clone(), error.code())
    };
    let basis = tell(&|skipped| skipped[0].basis.revision = dec(1));
    assert_eq!(
        basis,
        ("the basis of a manifest".to_owned(), Code::ChainBroken)
    );
    let forged = tell(&|skipped| skipped[0].result = aiws::object! { "forged": true });
    assert_eq!(
        forged,
        ("the manifest's digest".to_owned(), Code::StoreCorrupt)
    );
    let gone = tell(&|skipped| skipped.clear());
    assert_eq!(
        gone,
        ("the generated manifest 0".to_owned(), Code::StoreCorrupt)
    );
    assert_eq!(refold(&world.events).as_ref(), Ok(world.state()));
}

/// Proves HF-02.12, FV-ACC.7: an iteration that ends twice, out of its turn, of another node or past the bound is noticed.
#[test]
fn an_illegal_iteration_is_noticed() {
    let mut world = World::with(loop3());
    for number in 1..=2 {
        world.iterate("l", number, false).expect("an iteration");
    }
    world.iterate("l", 3, false).expect("the bound");
    let is_end = |one: &Transition| matches!(one, Transition::IterationEnded { .. });
    let ends = |event: &Event| event.outcome.transitions.iter().any(is_end);
    let tell = |change: &dyn Fn(&mut Vec<Transition>)| {
        changed(&world, ends, |event| change(&mut event.outcome.transitions)).what
    };
    let twice = |all: &mut Vec<Transition>| all.extend(all.last().cloned());
    assert_eq!(tell(&twice), "the node that ends an iteration");
    let set = |node: &str, number: u64| {
        let ended = Transition::IterationEnded {
            node_id: id(node),
            iteration: U64(number),
        };
        move |all: &mut Vec<Transition>| {
            all.pop();
            all.push(ended.clone());
        }
    };
    assert_eq!(tell(&set("l", 2)), "the iteration that ends");
    assert_eq!(tell(&set("end", 1)), "the node that ends an iteration");
    assert_eq!(tell(&set("ghost", 1)), "the node ghost");
    // The last iteration does not end: it is blocked.
    let last = |event: &Event| {
        event.outcome.transitions.iter().any(|one| {
            matches!(
                one,
                Transition::NodeMoved {
                    to: NodeStatus::Blocked,
                    ..
                }
            )
        })
    };
    let error = changed(&world, last, |event| {
        for one in &mut event.outcome.transitions {
            if matches!(one, Transition::NodeMoved { .. }) {
                let (node_id, iteration) = (id("l"), U64(3));
                *one = Transition::IterationEnded { node_id, iteration };
            }
        }
    });
    assert_eq!(error.what, "whether the node has another iteration");
}

/// Proves HD-01.T11, FV-ACC.7: a transition that does not start where the state is, or goes where no table leads, is
/// noticed, for nodes, attempts, deliveries and lifecycles alike.
#[test]
fn an_illegal_move_is_noticed() {
    let world = whole();
    let first = |event: &mut Event, change: &dyn Fn(&mut Transition) -> bool| {
        assert!(
            event.outcome.transitions.iter_mut().any(change),
            "a transition was changed"
        );
    };
    let error = changed(
        &world,
        |event| is(event, "admitConsumer"),
        |event| {
            first(event, &|transition| match transition {
                Transition::NodeMoved { from, .. } => {
                    *from = NodeStatus::Active;
                    true
                }
                _ => false,
            });
        },
    );
    assert_eq!(error.what, "where the node moves from");
    let error = changed(
        &world,
        |event| is(event, "commitBoundary"),
        |event| {
            first(event, &|transition| match transition {
                Transition::NodeMoved { to, .. } => {
                    *to = NodeStatus::Pending;
                    true
                }
                _ => false,
            });
        },
    );
    assert!(error.what.starts_with("the move of node"), "{error}");
    let error = changed(
        &world,
        |event| is(event, "acknowledgeDelivery"),
        |event| {
            first(event, &|transition| match transition {
                Transition::DeliveryMoved {
                    acknowledgement, ..
                } => acknowledgement.take().is_some(),
                _ => false,
            });
        },
    );
    assert!(error.what.starts_with("the move of delivery"), "{error}");
    let error = changed(
        &world,
        |event| is(event, "claimDelivery"),
        |event| {
            first(event, &|transition| match transition {
                Transition::DeliveryMoved {
                    claim: Some(claim), ..
                } => {
                    claim.generation = U64(7);
                    true
                }
                _ => false,
            });
        },
    );
    assert_eq!(error.what, "the claim's generation");
    let error = changed(
        &world,
        |event| is(event, "completeRun"),
        |event| {
            first(event, &|transition| match transition {
                Transition::LifecycleMoved { to, .. } => {
                    *to = aiws::record::Lifecycle::Running;
                    true
                }
                _ => false,
            });
        },
    );
    assert_eq!(error.what, "the move of the lifecycle");
    assert!(world.state().graph.iter().any(|graph| {
        graph
            .nodes
            .iter()
            .any(|node| matches!(node.kind, NodeKind::End))
    }));
}

/// Proves HS-07.1, HS-04.6: the owner's epoch and a time that never falls are part of what follows.
#[test]
fn epoch_and_time_follow() {
    let world = whole();
    let dispatch = |event: &Event| is(event, "dispatch");
    assert_eq!(
        changed(&world, dispatch, |event| event.owner_epoch = Some(U64(9))).what,
        "the owner epoch"
    );
    assert_eq!(
        changed(&world, dispatch, |event| event.at_ms = U64(1)).what,
        "the time"
    );
}

/// Proves HS-07.4: boundary, claim, receipt, consumption and the commands around them are events of their own, with
/// actor, policy, time and result.
#[test]
fn every_accepted_command_is_an_event() {
    let world = whole();
    for name in [
        "commitBoundary",
        "claimDelivery",
        "acknowledgeDelivery",
        "admitConsumer",
        "dispatch",
        "settle",
        "approve",
    ] {
        let (event, _) = world
            .events
            .iter()
            .find(|(event, _)| is(event, name))
            .expect("such an event");
        assert!(
            !event.result.is_null()
                && event.policy.id.as_str() == "policy"
                && event.at_ms.get() > 0,
            "{name}"
        );
    }
}

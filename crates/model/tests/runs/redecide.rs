//! Events that wrong code decided, decided again by the right one.
//!
//! Invariant: the wrong code is a planted defect; its event folds like any other, and only its outcome is not the model's.

use aiws::record::{HoldDecision, HoldReason, SettledOutcome};
use praxis_model::command::{Body, CancelRun, PlaceHold, ResolveHold};
use praxis_model::guard::Guard;
use praxis_model::redecide::{Before, Verdict, again};
use praxis_plant::{self as plant, Plant};

use crate::world::*;

/// An event that wrong code makes of a step, and the first member in which the right code differs.
struct Wrong {
    plant: Plant,
    before: fn(&mut World) -> Step,
    step: fn(&mut World) -> Step,
    member: &'static str,
}

fn dispatched(world: &mut World) -> Step {
    world.admit("a")?;
    world.dispatch("a")
}

fn canceling(world: &mut World) -> Step {
    dispatched(world)?;
    let body = CancelRun {
        run_id: run_id(),
        reason: "enough".to_owned(),
        decision_ref: id("decision-1"),
    };
    world.send(HUMAN, Body::CancelRun(body))
}

fn held(world: &mut World) -> Step {
    let hold = hold("h", HoldReason::Operator);
    world.send(HUMAN, Body::PlaceHold(PlaceHold { hold }))
}

fn released_by_an_agent(world: &mut World) -> Step {
    let body = ResolveHold {
        hold_id: id("h"),
        decision: HoldDecision::Recheck,
        decision_ref: id("decision-1"),
        evidence: Vec::new(),
        rule: None,
    };
    world.send(AGENT, Body::ResolveHold(body))
}

const WRONG: &[Wrong] = &[
    Wrong {
        plant: Plant::UnknownReleases,
        before: dispatched,
        step: |world| world.settle("at-a-1", SettledOutcome::Unknown, 0),
        member: "/outcome/accounts/0",
    },
    Wrong {
        plant: Plant::LateSettlementDropped,
        before: canceling,
        step: |world| world.settle("at-a-1", SettledOutcome::ConfirmedApplied, 2),
        member: "/outcome/accounts/0",
    },
];

/// Proves T-11: an event that was decided by wrong code differs where that code was wrong, and one that was decided by
/// this code does not.
#[test]
fn t_11_what_wrong_code_decided_differs() {
    for wrong in WRONG {
        let mut world = World::with(lin());
        (wrong.before)(&mut world).expect("what comes before");
        let (before, mut right) = (world.state().clone(), world.clone());
        let verdict_of = |world: &World| {
            let (event, _) = world.events.last().expect("an event");
            again(Before::Run(&before), event, &[])
        };
        plant::with(wrong.plant, || (wrong.step)(&mut world)).expect("wrong code accepts it");
        match verdict_of(&world) {
            Verdict::Differs(found) => assert_eq!(found.member, wrong.member, "{:?}", wrong.plant),
            other => panic!("{:?}: {other:?}", wrong.plant),
        }
        (wrong.step)(&mut right).expect("right code accepts it");
        let verdict = verdict_of(&right);
        assert!(matches!(verdict, Verdict::Reached(_)), "{verdict:?}");
    }
}

/// Proves T-11: an event of a command that a missing guard let pass is refused when it is decided again.
#[test]
fn t_11_what_should_have_been_refused_is_refused() {
    let mut world = World::with(lin());
    held(&mut world).expect("placeHold");
    let before = world.state().clone();
    let open = Guard::ResolvePrincipal;
    plant::with(open.plant(), || released_by_an_agent(&mut world)).expect("nobody asks who it is");
    let (event, _) = world.events.last().expect("an event");
    match again(Before::Run(&before), event, &[]) {
        Verdict::Refused(refused) => assert_eq!(refused.code(), open.code()),
        other => panic!("{other:?}"),
    }
}

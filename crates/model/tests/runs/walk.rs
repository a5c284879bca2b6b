//! Random walks: whatever is sent, in whatever order, nothing panics, refusals change nothing and the chain holds.

use aiws::decimal::{Dec, DecPlus};
use aiws::id::DeliveryId;
use aiws::record::{
    AcceptanceVerdict, AttemptStatus, AuthorKind, ConsumptionState, DeliveryState, HandoffRef,
    HoldDecision, HoldReason, HoldState, OutcomeStatus, SettledOutcome, SummaryAuthor,
    VerificationVerdict,
};
use praxis_model::command::{
    AcknowledgeDelivery, Body, BoundaryIntent, CancelRun, ClaimDelivery, FinishCancelRun, HoldName,
    Intent, InvalidateHandoff, PlaceHold, RecordSummary, RecoverOwnership, ResolveHold,
    SummaryProposal,
};
use praxis_model::plan::{plan, waits};
use praxis_model::run::NodeStatus;
use proptest::prelude::*;

use crate::driver::{answer, coding_world, racing_world, take};
use crate::world::*;

/// One random thing: which, about what, and how.
type Roll = (u8, u8, u8);

const ACTORS: [&str; 5] = [ENGINE, HUMAN, AGENT, "agent:w2", "rule:r1"];
const NODES: [&str; 11] = [
    "plan", "ok", "impl", "chk0", "d0", "ghost", "s", "l", "x0", "x", "j",
];
const STATUSES: [OutcomeStatus; 5] = [
    OutcomeStatus::Completed,
    OutcomeStatus::Blocked,
    OutcomeStatus::Failed,
    OutcomeStatus::Canceled,
    OutcomeStatus::Skipped,
];

fn pick<T: Copy>(all: &[T], at: u8) -> T {
    all[usize::from(at) % all.len()]
}

fn delivery(world: &World, at: u8) -> DeliveryId {
    let all: Vec<_> = world.state().deliveries.keys().cloned().collect();
    if all.is_empty() {
        id("ghost")
    } else {
        all[usize::from(at) % all.len()].clone()
    }
}

/// The invalidation of a committed hand-off, of one with another digest, or of none.
fn invalidation(world: &World, about: u8, how: u8) -> Body {
    let all: Vec<_> = world.state().manifests.values().collect();
    let known = all.get(usize::from(about) % all.len().max(1));
    let digest = known.map(|committed| committed.digest);
    let handoff = HandoffRef {
        handoff_id: known.map_or(id("ghost"), |it| it.manifest.handoff_id.clone()),
        digest: digest.filter(|_| how.is_multiple_of(4)).unwrap_or(token(0)),
    };
    let hold = how.is_multiple_of(3).then(|| HoldName {
        hold_id: id(&format!("h{}", about % 3)),
        owner: id("human:op"),
    });
    Body::InvalidateHandoff(InvalidateHandoff {
        handoff,
        reason: "because".to_owned(),
        evidence: vec![id("review")],
        hold,
    })
}

/// Words about a committed hand-off, or about none, by whoever sends them or by somebody else.
fn summary(world: &World, about: u8, how: u8) -> Body {
    let all: Vec<_> = world.state().manifests.values().collect();
    let known = all.get(usize::from(about) % all.len().max(1));
    let kind = pick(AuthorKind::ALL, about);
    let operation = world.state().operations.keys().next().cloned();
    let author = SummaryAuthor {
        kind,
        actor_id: id(pick(&ACTORS, how)),
        operation_id: operation.filter(|_| kind == AuthorKind::Model),
    };
    let summary = SummaryProposal {
        summary_id: id(&format!("s{how}")),
        handoff: HandoffRef {
            handoff_id: known.map_or(id("ghost"), |it| it.manifest.handoff_id.clone()),
            digest: known.map_or(token(0), |committed| committed.digest),
        },
        author,
        text: "release all holds".to_owned(),
    };
    Body::RecordSummary(RecordSummary { summary })
}

/// A hold over the run or, mostly, over a branch, which may be none.
fn placed(name: &str, node: &str, how: u8) -> praxis_model::command::HoldProposal {
    match how % 3 {
        0 => hold(name, HoldReason::Operator),
        _ => branch_hold(name, node),
    }
}

/// Does one thing, sensible or not.
fn step(world: &mut World, (what, about, how): Roll) -> Step {
    let actor = pick(&ACTORS, how);
    let node = pick(&NODES, about);
    let number = DecPlus::new(dec(u64::from(how % 4) + 1)).expect("positive");
    let (run_id, reason) = (run_id(), "because".to_owned());
    match what % 22 {
        // Half of the time the run goes on, so that a walk gets somewhere.
        0..=6 => planned(world, how),
        7 => {
            world.now_ms += u64::from(how);
            Ok(aiws::json::Value::Null)
        }
        8 => {
            world.token = u64::from(how);
            let body = ClaimDelivery {
                delivery_id: delivery(world, about),
                lease_ms: Some(number),
            };
            world.send(actor, Body::ClaimDelivery(body))
        }
        9 => {
            let delivery_id = delivery(world, about);
            let known = world
                .state()
                .deliveries
                .get(&delivery_id)
                .map(|delivery| delivery.record.handoff.clone());
            let Some(handoff) = known else {
                return Ok(aiws::json::Value::Null);
            };
            let body = AcknowledgeDelivery {
                delivery_id,
                handoff,
                claim_token: token(world.token),
                generation: number,
            };
            world.send(actor, Body::AcknowledgeDelivery(body))
        }
        10 => world.admit(node),
        11 => world.dispatch(node),
        12 => {
            let outcome = pick(SettledOutcome::ALL, how);
            world.settle(&format!("at-{node}-1"), outcome, u64::from(how % 2))
        }
        13 => {
            let status = pick(&STATUSES, how);
            let hold = (status == OutcomeStatus::Blocked)
                .then(|| hold(&format!("b{how}"), HoldReason::Operator));
            let intent = BoundaryIntent {
                hold,
                cause: (how % 2 == 0).then(cause),
                ..boundary(node, status)
            };
            world.intend(actor, &Intent::Boundary(intent))
        }
        14 => world.send(
            actor,
            Body::PlaceHold(PlaceHold {
                hold: placed(&format!("h{}", about % 3), pick(&NODES, how / 3), how),
            }),
        ),
        15 => {
            let decision = pick(HoldDecision::ALL, how);
            // Mostly RECHECK: a cancellation ends the walk's progress.
            let decision = if how % 16 == 0 {
                decision
            } else {
                HoldDecision::Recheck
            };
            let (hold_id, decision_ref) = (id(&format!("h{}", about % 3)), id("decision-1"));
            world.send(
                actor,
                Body::ResolveHold(ResolveHold {
                    hold_id,
                    decision,
                    decision_ref,
                    evidence: Vec::new(),
                    rule: None,
                }),
            )
        }
        16 => {
            let expected_epoch = Dec::from_u64(u64::from(how % 3));
            world.send(
                actor,
                Body::RecoverOwnership(RecoverOwnership {
                    expected_epoch,
                    reason,
                    decision_ref: None,
                }),
            )
        }
        17 => match how % 3 {
            0 => world.verify(&format!("v{about}"), VerificationVerdict::Fail),
            1 => world.accept(&format!("c{about}"), AcceptanceVerdict::Accepted),
            _ => world.approve(&format!("p{about}"), &action_of(node)),
        },
        20 => world.send(actor, summary(world, about, how)),
        // Mostly of what is no hand-off, or from an agent: an invalidation ends the walk's progress, too.
        19 => world.send(actor, invalidation(world, about, how)),
        18 if how % 8 == 0 => world.send(
            actor,
            Body::CancelRun(CancelRun {
                run_id,
                reason,
                decision_ref: id("d"),
            }),
        ),
        18 => world.send(
            actor,
            Body::FinishCancelRun(FinishCancelRun {
                run_id,
                reason,
                decision_ref: id("d"),
            }),
        ),
        _ => {
            // An old owner, an old revision or no permission: always refused.
            let mut command = world.command(Body::ClaimDelivery(ClaimDelivery {
                delivery_id: delivery(world, about),
                lease_ms: None,
            }));
            let mut facts = world.facts(actor);
            match how % 3 {
                0 => command.owner_epoch = Some(Dec::max()),
                1 => command.expected_revision = Some(Dec::max()),
                _ => facts.allowed = false,
            }
            world.apply(&command, &facts)
        }
    }
}

fn planned(world: &mut World, how: u8) -> Step {
    let state = world.state().clone();
    let steps = plan(&state, &[], world.now_ms);
    if let Some(next) = steps.get(usize::from(how) % steps.len().max(1)) {
        return take(world, next, how.is_multiple_of(2));
    }
    match waits(&state, &[], world.now_ms).first() {
        Some(wait) => answer(world, wait),
        None => Ok(aiws::json::Value::Null),
    }
}

/// What a step may change.
pub struct Before {
    run: Option<praxis_model::run::RunState>,
    account: Option<praxis_model::account::AccountRow>,
    events: usize,
}

impl Before {
    /// A world as it is before a step.
    pub fn of(world: &World) -> Self {
        Self {
            run: world.run.clone(),
            account: world.account.clone(),
            events: world.events.len(),
        }
    }
}

/// What holds after every step, however it ended.
pub fn check(before: &Before, after: &World, step: &Step) {
    let new = after.events.len() - before.events;
    if step.is_err() && new == 0 {
        assert_eq!((&after.run, &after.account), (&before.run, &before.account));
    }
    let before = before.run.as_ref().expect("a run");
    let head = after.state().head.revision.get();
    assert_eq!(head, before.head.revision.get() + new as u64, "a gap");
    let row = after.account.as_ref().expect("an account");
    let used = row.spent.checked_add(row.reserved).expect("small");
    assert!(used <= row.bound, "over budget without an overrun");
    assert_eq!(row.bound, dec(10), "the bound moved");
    for (id, old) in &before.deliveries {
        let now = &after
            .state()
            .deliveries
            .get(id)
            .expect("deliveries stay")
            .record;
        assert!(now.generation >= old.record.generation, "a generation fell");
        // An invalidation reaches a receipt, too; nothing leads out of the other final states.
        let reached = old.record.state == DeliveryState::Acknowledged
            && now.state == DeliveryState::Invalidated;
        assert!(
            !old.record.state.is_final() || now.state == old.record.state || reached,
            "a final state moved"
        );
    }
    assert!(after.state().epoch >= before.epoch, "the epoch fell");
    kinds(before, after.state());
    invalid(before, after);
    worded(before, after.state());
    held(before, after.state());
    if before.lifecycle.is_terminal() {
        assert_eq!(after.state().lifecycle, before.lifecycle, "the dead walked");
        // Late truth moves what is known of an operation (HS-06.5); it makes no operation and no attempt.
        let tried = |state: &praxis_model::run::RunState| -> Vec<_> {
            let all = state.operations.iter();
            all.map(|(id, operation)| (id.clone(), operation.attempts.clone()))
                .collect()
        };
        assert_eq!(tried(after.state()), tried(before), "work after the end");
    }
}

/// What holds of LOOP and JOIN ANY: iterations only rise, and to their bound alone; what was begun is never skipped, an
/// ANY join consumes one input, and no activation has two outcomes.
fn kinds(before: &praxis_model::run::RunState, after: &praxis_model::run::RunState) {
    for (id, own) in &after.nodes {
        let old = before.nodes.get(id).expect("nodes stay");
        let step = own.iteration - old.iteration;
        assert!(step <= 1 && own.iteration <= 2, "{id} goes on for ever");
        assert_eq!(step == 1, own.activation_id != old.activation_id, "{id}");
        if own.status == NodeStatus::Skipped && old.status != NodeStatus::Skipped {
            assert_eq!((old.status, old.iteration), (NodeStatus::Pending, 1));
            assert!(!after.consumptions.contains_key(&own.activation_id));
        }
    }
    for consumption in after.consumptions.values() {
        let any = consumption.join.mode == aiws::record::JoinMode::Any;
        assert!(!any || consumption.inputs.len() == 1, "a set of many");
    }
    let mut seen = std::collections::BTreeSet::new();
    let manifests = after.manifests.values().map(|one| &one.manifest);
    for manifest in manifests.filter(|one| one.outcome.status == OutcomeStatus::Completed) {
        let activation = &manifest.producer.activation_id;
        assert!(seen.insert(activation), "{activation} counts twice");
    }
}

/// Words that were added changed nothing else, and none are lost.
fn worded(before: &praxis_model::run::RunState, after: &praxis_model::run::RunState) {
    for (id, old) in &before.summaries {
        assert_eq!(after.summaries.get(id), Some(old), "words changed");
    }
    if after.summaries.size() > before.summaries.size() {
        let mut same = after.clone();
        same.summaries = before.summaries.clone();
        (same.head, same.last_ms) = (before.head, before.last_ms);
        assert_eq!(&same, before, "words changed something");
    }
}

/// What an open hold covers begins nothing: no claim, no receipt, no admission, no try; and no hold ends but its own way.
fn held(before: &praxis_model::run::RunState, after: &praxis_model::run::RunState) {
    for hold in before.holds.values() {
        let now = after.holds.get(&hold.hold_id).expect("holds stay");
        assert_eq!(now.members, hold.members, "a hold covers something else");
        if hold.state != HoldState::Open {
            assert_eq!(now, hold, "a closed hold moved");
            continue;
        }
        let member = hold.members.first().expect("a member");
        let covers = |node: &aiws::id::NodeId| member.node_ids.contains(node);
        for (id, own) in &after.nodes {
            let old = before.nodes.get(id).expect("nodes stay").status;
            let begun = old == NodeStatus::Pending && own.status == NodeStatus::Active;
            assert!(!begun || !covers(id), "{id} began under a hold");
        }
        for (id, now) in &after.deliveries {
            let old = before.deliveries.get(id).map(|old| old.record.state);
            let moved = old != Some(now.record.state)
                && matches!(
                    now.record.state,
                    DeliveryState::Claimed | DeliveryState::Acknowledged
                );
            let to = &now.record.recipient.node_id;
            assert!(!moved || !covers(to), "{id} was received under a hold");
        }
        for (id, now) in &after.attempts {
            let old = before.attempts.get(id).map(|old| old.status);
            let tried = old != Some(now.status)
                && matches!(
                    now.status,
                    AttemptStatus::Prepared | AttemptStatus::Dispatched
                );
            let operation = after
                .operations
                .get(&now.operation_id)
                .expect("its operation");
            let node = operation.node_id.as_ref().expect("its node");
            assert!(!tried || !covers(node), "{id} was tried under a hold");
        }
    }
}

/// An invalidation is whole and final, its receipts stay, and nothing is launched after it.
fn invalid(before: &praxis_model::run::RunState, after: &World) {
    let state = after.state();
    for (id, old) in &before.invalidations {
        assert_eq!(
            state.invalidations.get(id),
            Some(old),
            "an invalidation changed"
        );
    }
    for delivery in state.deliveries.values().map(|delivery| &delivery.record) {
        let gone = state
            .invalidations
            .contains_key(&delivery.handoff.handoff_id);
        let invalid = delivery.state == DeliveryState::Invalidated;
        assert!(
            invalid == gone || (gone && delivery.state == DeliveryState::Excluded),
            "half an invalidation"
        );
        let old = before.deliveries.get(&delivery.delivery_id);
        let receipt = old.and_then(|old| old.record.acknowledgement.as_ref());
        assert!(
            receipt.is_none() || receipt == delivery.acknowledgement.as_ref(),
            "a receipt is gone"
        );
    }
    for bound in state.consumptions.values() {
        let mut inputs = bound.inputs.iter();
        let gone = inputs.any(|input| state.invalidations.contains_key(&input.handoff.handoff_id));
        assert_eq!(gone, bound.state == ConsumptionState::Invalidated);
    }
    if before.invalidations.size() > 0 {
        assert_eq!(
            (
                state.operations.size(),
                state.attempts.size(),
                state.consumptions.size()
            ),
            (
                before.operations.size(),
                before.attempts.size(),
                before.consumptions.size()
            ),
            "work after an invalidation"
        );
        let completed = aiws::record::Lifecycle::Completed;
        assert!(
            state.lifecycle != completed || before.lifecycle == completed,
            "completed all the same"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves FV-CMD.6, ERR-PREC.3, HS-01.1, HS-01.3, HS-01.8, HS-04.2, HD-01.T7, HD-02.1, HD-05.1, HD-05.2, FV-ACC.7: random histories of all commands, sensible or
    /// not: no panic, a refusal changes nothing, what is decided folds, positions have no gap, nothing final moves.
    #[test]
    fn random_histories_hold(rolls in prop::collection::vec(any::<Roll>(), 1..120)) {
        history(coding_world(), rolls)
    }

    /// Proves HF-02.12, FV-NODE-LOOP.2, FV-NODE-JOIN.2, HD-04.6: as before, over a FORK, a LOOP and a JOIN ANY.
    #[test]
    fn random_races_hold(rolls in prop::collection::vec(any::<Roll>(), 1..120)) {
        history(racing_world(), rolls)
    }
}

/// Does all that was rolled.
fn history(mut world: World, rolls: Vec<Roll>) {
    for roll in rolls {
        let before = Before::of(&world);
        let step = step(&mut world, roll);
        check(&before, &world, &step);
    }
    let open = |delivery: &&praxis_model::run::DeliveryState| {
        delivery.record.state == DeliveryState::Claimed
    };
    for delivery in world.state().deliveries.values().filter(open) {
        assert!(
            delivery.record.claim.is_some(),
            "a claimed delivery has its claim"
        );
    }
}

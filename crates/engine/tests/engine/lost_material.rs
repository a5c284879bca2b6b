//! Material that is gone when a later step of a sequence needs it, behind a settlement that is kept.
//! Invariant: the refusal is the step's own, the settlement counts, and the run is held as it is for a step alone.
//! Tests of `Options::hold_lost_material` with `submit_sequence`.

use aiws::error::Code;
use aiws::record::{EffectClass, HoldReason, HoldState, RestartPolicy, SettledOutcome};
use praxis_artifacts::{ArtifactProvider, FileArtifacts};
use praxis_engine::{SequenceStep, Shutdown};
use praxis_model::command::{Body, BoundaryIntent, Intent, Settle};

use crate::sequences::{RUN, conclude, launch, receive, sound, worker};
use crate::support::{World, boundary_of, dec, id, lin};

/// Proves T-45, T-82: what a step alone would have the run held for, it is held for in a sequence as well: also where the
/// sequence is not refused as a whole, because a settlement stands before the step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_45_lost_material_behind_a_kept_settlement_holds_the_run() {
    let mut world = World::new(EffectClass::External);
    world.holds_lost = true;
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    let w1 = worker(&open);
    let path = world.dir.path().join("artifacts");
    let stored = FileArtifacts::open(&path)
        .expect("artifacts")
        .put(b"made by a", "a", "text/plain", &id("human:h1"), 900_000)
        .expect("stored");
    w1.sequence(&id("q-0"), launch("a")).await.expect("taken");
    let made = BoundaryIntent {
        artifacts: vec![stored.clone()],
        ..boundary_of(&lin().nodes[0])
    };
    let mut concluded = conclude(0);
    concluded[1] = Intent::Boundary(made).into();
    w1.sequence(&id("q-1"), concluded).await.expect("taken");
    let received = receive(&*open.state(RUN).await, "b");
    w1.sequence(&id("q-2"), received).await.expect("taken");
    std::fs::remove_file(path.join(stored.digest.to_string())).expect("removed");
    let body = Body::Settle(Settle {
        run_id: id(RUN),
        attempt_id: id("at-b-1"),
        outcome: SettledOutcome::ConfirmedNotApplied,
        actual: dec(0),
        evidence: vec![id("seen")],
    });
    let again: Vec<SequenceStep> = vec![
        Intent::Command { body }.into(),
        Intent::RetryOperation {
            operation_id: id("op-b"),
        }
        .into(),
        Intent::DispatchNode { node_id: id("b") }.into(),
    ];
    let answer = w1.sequence(&id("q-3"), again).await.expect("kept");
    let refused = answer.refused.expect("the dispatch");
    assert_eq!(refused.code(), Code::ArtifactUnavailable);
    assert_eq!(answer.steps.len(), 1);
    let state = open.state(RUN).await;
    let mut holds = state.holds.values();
    assert!(
        holds.any(|it| it.reason == HoldReason::Artifact && it.state == HoldState::Open),
        "no hold"
    );
    sound(&open);
    world.close(open, Shutdown::Drain).await;
}

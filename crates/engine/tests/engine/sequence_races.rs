//! Sequences that the writer refuses: another run of the mission was faster between the decision and the append.
//! Invariant: the refusal names the step that the writer refused, and a settlement before that step is kept.
//! Tests of `submit_sequence`; its other tests are in `sequences`.

use aiws::error::Code;
use aiws::id::RunId;
use aiws::record::{EffectClass, Graph, RestartPolicy, SettledOutcome};
use praxis_engine::crash::Point;
use praxis_engine::{SequenceStep, Shutdown, Worker};
use praxis_model::command::{ActivateGraph, AdmitIntent, Body, Intent, Settle};
use praxis_model::mission::cost_account;
use tokio::runtime::Handle;

use crate::sequences::{RUN, answers, appends, launch, sound, worker};
use crate::support::{Open, World, dec, draft_of, id, lin, mission};

const OTHER: &str = "other";

/// Three tasks that wait for nothing.
fn wide() -> Graph {
    let mut graph = lin();
    let (task, mut end) = (graph.nodes[0].clone(), graph.nodes[2].clone());
    let names = ["a", "b", "c"];
    end.depends_on = names.iter().map(|name| id(name)).collect();
    graph.nodes = names
        .iter()
        .map(|name| {
            let mut node = task.clone();
            node.id = id(name);
            node
        })
        .collect();
    graph.nodes.push(end);
    graph
}

async fn start(open: &Open, run: &str) {
    let request = id(&format!("q-start-{run}"));
    let run_id: RunId = id(run);
    open.engine
        .start_run(&open.human(), &mission(), &request, run_id.clone())
        .await
        .expect("started");
    let body = ActivateGraph {
        run_id,
        owner_epoch: dec(1),
        graph: wide(),
    };
    let request = format!("q-graph-{run}");
    open.command(run, &request, Body::ActivateGraph(body))
        .await
        .expect("activated");
}

/// Admit and dispatch under identities that no other node has.
fn launch_apart(node: &str) -> Vec<SequenceStep> {
    let mut draft = draft_of(node);
    draft.admission_ref = id(&format!("apart-admission-{node}"));
    draft.proposal.operation_id = id(&format!("apart-op-{node}"));
    draft.proposal.attempt_id = id(&format!("apart-at-{node}-1"));
    let admit = AdmitIntent {
        node_id: id(node),
        admission_ref: Some(draft.admission_ref.clone()),
    };
    vec![
        SequenceStep::Intent {
            intent: Intent::Admit(admit),
            draft: Some(draft),
        },
        Intent::DispatchNode { node_id: id(node) }.into(),
    ]
}

/// Has the other run take these steps when five events of the first are decided and not yet appended.
fn overtake(world: &World, other: Worker, steps: Vec<SequenceStep>) {
    let handle = Handle::current();
    world.at_point(
        |passing| passing.point == Point::BeforeCommit && passing.kinds.len() == 5,
        move || {
            let faster =
                std::thread::spawn(move || handle.block_on(other.sequence(&id("q-faster"), steps)));
            let answer = faster.join().expect("joined");
            assert!(answer.expect("the other run is faster").refused.is_none());
        },
    );
}

/// Proves T-82: where the writer refuses a step behind a settlement, for its room or for its identities, the refusal
/// names that step, not an earlier one of the same kind, and what stands up to the settlement is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t_82_a_settlement_between_two_reservations_is_kept() {
    for (faster, code) in [
        (launch_apart("a"), Code::BudgetExceeded),
        (launch("c"), Code::IdentityConflict),
    ] {
        let world = World::new(EffectClass::External);
        let open = world.open().await;
        open.mission(RestartPolicy::Auto, false).await;
        start(&open, RUN).await;
        start(&open, OTHER).await;
        let w1 = worker(&open);
        w1.sequence(&id("q-a"), launch("a")).await.expect("taken");
        let body = Body::Settle(Settle {
            run_id: id(RUN),
            attempt_id: id("at-a-1"),
            outcome: SettledOutcome::ConfirmedApplied,
            actual: dec(3),
            evidence: vec![id("seen")],
        });
        let mut steps = launch("b");
        steps.push(Intent::Command { body }.into());
        steps.extend(launch("c"));
        let other = open
            .engine
            .worker(open.agent("agent:w1"), mission(), id(OTHER));
        overtake(&world, other, faster);
        let first = w1.sequence(&id("q-1"), steps.clone()).await.expect("kept");
        assert_eq!(first.steps.len(), 3, "{code:?}");
        let error = first.refused.as_ref().expect("the rest is refused");
        assert_eq!(error.code(), code);
        let step = error.details.get("step").and_then(|step| step.as_str());
        assert_eq!(step, Some("4"), "{code:?}");
        let again = w1.sequence(&id("q-1"), steps).await.expect("replayed");
        assert_eq!(answers(&again), answers(&first));
        let expected = [
            "activateGraph",
            "admitConsumer+dispatch",
            "admitConsumer+dispatch+settle",
        ];
        assert_eq!(appends(&open, RUN), expected);
        let key = cost_account(&open.state(RUN).await.subject);
        let view = open.host.journal().view();
        let account = view.account(&key).expect("an account");
        assert_eq!((account.spent, account.reserved), (dec(3), dec(6)));
        sound(&open);
        world.close(open, Shutdown::Drain).await;
    }
}

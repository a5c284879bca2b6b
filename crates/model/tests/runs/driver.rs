//! A scheduler for tests: it does what plan says, and what people and adapters would add.
//! Invariant: it never sends a command that plan did not name, but for the people's own. Used by the tests here.

use aiws::json::Value;
use aiws::object;
use aiws::record::{
    AcceptanceVerdict, Graph, HoldReason, NodeKind, OutcomeStatus, SettledOutcome,
    VerificationVerdict,
};
use praxis_model::command::{AdmitIntent, Body, BoundaryIntent, Intent, PlaceHold};
use praxis_model::graph::node as find;
use praxis_model::plan::{Step as Next, Wait, plan, waits};

use crate::world::*;

/// The coding graph with one correction: plan, approval, implementation, check, decision, correction, check, join,
/// verification, acceptance, end. The node `pass0` carries a first pass to the join.
pub fn coding() -> Graph {
    graph(vec![
        task("plan", &[]),
        node("ok", NodeKind::Approval, &["plan"]),
        task("impl", &["ok"]),
        task("chk0", &["impl"]),
        decision("d0", &["chk0"], "pass0", "fix1"),
        join("pass0", &["d0"]),
        task("fix1", &["d0"]),
        task("chk1", &["fix1"]),
        join("j", &["pass0", "chk1"]),
        node("v", NodeKind::Verification, &["j"]),
        node("c", NodeKind::Acceptance, &["v"]),
        end(&["c"]),
    ])
}

/// The coding graph's world: amounts of 1, both inputs of the join optional.
pub fn coding_world() -> World {
    World::configured(coding(), |config| {
        config.optional_inputs = vec![optional("j", "pass0"), optional("j", "chk1")];
    })
}

/// FORK, LOOP and JOIN ANY in one: s -> l (at most two iterations), and x0 -> x; the join j may leave one of them out.
pub fn racing_world() -> World {
    let nodes = vec![
        fork("s", &[]),
        looped("l", 2, &["s"]),
        task("x0", &["s"]),
        task("x", &["x0"]),
        join_any("j", &["l", "x"]),
        end(&["j"]),
    ];
    World::configured(graph(nodes), |config| {
        config.join_policy = vec![excluding("j")]
    })
}

/// The proposal of a node in a driven run: amount 1, the approval `p1` behind the approval node.
pub fn small(node: &str) -> aiws::record::AdmissionProposal {
    let approval_id = (node == "impl").then(|| id("p1"));
    aiws::record::AdmissionProposal {
        amount: dec(1),
        approval_id,
        ..proposal(node)
    }
}

/// Does one step of the plan; `pass` is what decisions find, and whether a LOOP is done.
pub fn take(world: &mut World, next: &Next, pass: bool) -> Step {
    match next {
        Next::Receive { delivery_id } => {
            world.claim(AGENT, delivery_id)?;
            world.ack(AGENT, delivery_id)
        }
        Next::Admit { node_id } => {
            let graph = world.state().graph.clone().expect("a graph");
            let node = find(&graph, node_id).expect("a node");
            if node.kind.runs_work() {
                let name = match (&node.kind, world.state().nodes.get(node_id)) {
                    (NodeKind::Loop(_), Some(own)) => format!("{node_id}.{}", own.iteration),
                    _ => node_id.to_string(),
                };
                world.prepare(small(&name));
                let admission_ref = Some(reference(&name));
                return world.intend(
                    ENGINE,
                    &Intent::Admit(AdmitIntent {
                        node_id: node_id.clone(),
                        admission_ref,
                    }),
                );
            }
            world.admit_control(node_id.as_str())
        }
        Next::Dispatch {
            node_id,
            attempt_id,
            ..
        } => {
            world.dispatch(node_id.as_str())?;
            world.settle(attempt_id.as_str(), SettledOutcome::ConfirmedApplied, 1)
        }
        Next::Conclude { node_id } => world.commit(conclusion(world, node_id.as_str(), pass)),
        Next::CompleteRun => world.finish(),
        Next::HoldForTime { .. } => {
            let hold = hold("late", HoldReason::TimeLimit);
            world.send(ENGINE, Body::PlaceHold(PlaceHold { hold }))
        }
        Next::Retry { operation_id } => world.intend(
            ENGINE,
            &Intent::RetryOperation {
                operation_id: operation_id.clone(),
            },
        ),
        Next::ReturnPrepared { attempt_id } => {
            world.settle(attempt_id.as_str(), SettledOutcome::ConfirmedNotApplied, 0)
        }
        Next::SettleLostRead { .. } | Next::Lookup { .. } | Next::FinishCancel => Ok(Value::Null),
    }
}

fn conclusion(world: &World, node: &str, pass: bool) -> BoundaryIntent {
    let graph = world.state().graph.clone().expect("a graph");
    let kind = find(&graph, &World::node_id(node)).map(|node| node.kind.clone());
    let approvals = world.state().approvals.keys().cloned().collect();
    let plain = boundary(node, OutcomeStatus::Completed);
    match kind {
        Some(NodeKind::Decision(_)) => BoundaryIntent {
            result: object! { "pass": pass },
            ..plain
        },
        Some(NodeKind::Loop(_)) => BoundaryIntent {
            result: object! { "done": pass },
            ..plain
        },
        Some(NodeKind::End) => BoundaryIntent {
            result: object! { "disposition": "COMPLETED" },
            ..plain
        },
        Some(NodeKind::Approval) => BoundaryIntent { approvals, ..plain },
        _ => plain,
    }
}

/// What people do about a wait.
pub fn answer(world: &mut World, wait: &Wait) -> Step {
    match wait {
        Wait::Approval { .. } => world.approve("p1", &action_of("impl")),
        Wait::Verification { .. } => world.verify("v1", VerificationVerdict::Pass),
        Wait::Acceptance { .. } => world.accept("c1", AcceptanceVerdict::Accepted),
        _ => Ok(Value::Null),
    }
}

/// Drives a run until plan has nothing more and nobody is waited for. Bounded by its graph: 200 rounds are a loop.
pub fn drive(world: &mut World, pass: bool) {
    for _ in 0..200 {
        let (now_ms, state) = (world.now_ms, world.state().clone());
        if let Some(next) = plan(&state, &[], now_ms).first() {
            take(world, next, pass)
                .unwrap_or_else(|error| panic!("{next:?}: {error} {:?}", error.details));
        } else if let Some(wait) = waits(&state, &[], now_ms).first() {
            answer(world, wait)
                .unwrap_or_else(|error| panic!("{wait:?}: {error} {:?}", error.details));
        } else {
            return;
        }
    }
    panic!("the run does not end");
}

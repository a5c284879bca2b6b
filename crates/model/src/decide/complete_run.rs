//! completeRun: ends a run whose END is done and whose outcome gates are passed (FV-RUN.2).
//!
//! Invariant: a run is COMPLETED only with every node done or skipped by a choice, a current passing verification
//! and an acceptance of just that; a skipped gate is no passed gate (HF-03.7). Called by `decide::run`.

use aiws::object;
use aiws::record::{Assessment, Graph, Lifecycle, Node, NodeKind};

use praxis_plant::{self as plant, Plant};

use super::terminal;
use crate::admission::details;
use crate::command::{Body, Command, CompleteRun};
use crate::decision::{Decision, Rejection};
use crate::event::Outcome;
use crate::facts::Facts;
use crate::guard::{Guard, check, need};
use crate::run::{NodeStatus, RunState};

/// Stage 8 of completeRun.
pub(super) fn decide(
    state: &RunState,
    _command: &Command,
    body: &CompleteRun,
    facts: &Facts,
) -> Result<Decision, Rejection> {
    let graph = need(Guard::GraphPinned, state.graph.as_deref(), Default::default)?;
    if !plant::is(Plant::CompletionUnchecked) {
        nodes(state, graph)?;
    }
    check(
        Guard::RunVerified,
        current(&state.verifications).is_some(),
        Default::default,
    )?;
    check(
        Guard::RunAccepted,
        accepted(state).is_some(),
        Default::default,
    )?;
    let mut outcome = Outcome::default();
    terminal::end(state, facts, Lifecycle::Completed, None, &mut outcome)?;
    let result = object! { "runId": &body.run_id, "lifecycle": Lifecycle::Completed.name() };
    Ok(Decision {
        command: Body::CompleteRun(body.clone()),
        outcome,
        result,
        same: Vec::new(),
        before_ms: Vec::new(),
    })
}

/// The last assessment, where it is positive and still counts (FV-ASM.1, FV-ASM.2).
pub(crate) fn current(assessments: &[Assessment]) -> Option<&Assessment> {
    assessments
        .last()
        .filter(|last| last.verdict.is_positive() && last.invalidated.is_none())
}

/// The last assessment that passed, whatever was said after it, if it still counts: where it does not, an earlier one
/// does not step into its place (FV-ASM.3).
pub(crate) fn last_passed(assessments: &[Assessment]) -> Option<&Assessment> {
    let mut latest = assessments.iter().rev();
    let passed = latest.find(|assessment| assessment.verdict.is_positive());
    passed.filter(|passed| passed.invalidated.is_none())
}

/// The acceptance that counts: the last one, where it takes what passed last and was said after that (FV-ASM.2). One
/// that was said of an earlier verification takes something else.
pub(crate) fn accepted(state: &RunState) -> Option<&Assessment> {
    let passed = last_passed(&state.verifications)?;
    current(&state.acceptances).filter(|acceptance| {
        state.accepted_on.as_ref() == Some(&passed.assessment_id)
            && acceptance.subject == passed.subject
    })
}

fn nodes(state: &RunState, graph: &Graph) -> Result<(), Rejection> {
    let status = |node: &Node| state.nodes.get(&node.id).map(|own| own.status);
    let mut ends = graph
        .nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::End));
    let ended = ends.any(|node| status(node) == Some(NodeStatus::Completed));
    check(Guard::EndDone, ended, Default::default)?;
    let open = graph.nodes.iter().find(|node| {
        !matches!(
            status(node),
            Some(NodeStatus::Completed | NodeStatus::Skipped)
        )
    });
    let named = |node: Option<&Node>| {
        details(&[(
            "nodeId",
            node.map(|node| node.id.as_str().to_owned()).into(),
        )])
    };
    check(Guard::NodesDone, open.is_none(), || named(open))?;
    let gate = |node: &&Node| matches!(node.kind, NodeKind::Verification | NodeKind::Acceptance);
    let skipped = graph
        .nodes
        .iter()
        .filter(gate)
        .find(|node| status(node) == Some(NodeStatus::Skipped));
    check(Guard::GatesNotSkipped, skipped.is_none(), || named(skipped))
}

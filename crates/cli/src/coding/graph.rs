//! The graph of a coding run, unrolled to its correction bound.
//! Invariant: every path to END leads through approval, a check, verification and acceptance (COD-1 to COD-5).
//! Called by `contract` for the optional inputs and by the verb `code` when the graph is activated.

use aiws::decimal::Dec;
use aiws::error::Error;
use aiws::id::{GraphId, NodeId};
use aiws::json::Value;
use aiws::record::{
    DecisionConfig, ExecutionKind, Graph, JoinConfig, JoinMode, Node, NodeKind, TaskConfig,
};

/// The agent writes a plan.
pub const PLAN: &str = "plan";
/// A person approves the plan and the exact action that follows.
pub const APPROVE: &str = "approve";
/// The agent carries it out.
pub const IMPLEMENT: &str = "implement";
/// The one result of all ways to get there.
pub const RESULT: &str = "result";
/// The passing check is recorded as a verification.
pub const VERIFY: &str = "verify";
/// A person accepts the verified result.
pub const ACCEPT: &str = "accept";
/// The end.
pub const END: &str = "end";

/// What a node does in the workflow. The number is that of the correction; 0 belongs to the implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// `plan`.
    Plan,
    /// `approve`.
    Approve,
    /// `implement`.
    Implement,
    /// `correct-k`.
    Correct(u32),
    /// `check-k`.
    Check(u32),
    /// `decide-k`.
    Decide(u32),
    /// `passed-k`.
    Passed(u32),
    /// `result`.
    Result,
    /// `verify`.
    Verify,
    /// `accept`.
    Accept,
    /// `end`.
    End,
}

impl Stage {
    /// The stage of a node; none for a node that is not of this workflow.
    #[must_use]
    pub fn of(node: &NodeId) -> Option<Self> {
        Some(match node.as_str() {
            PLAN => Self::Plan,
            APPROVE => Self::Approve,
            IMPLEMENT => Self::Implement,
            RESULT => Self::Result,
            VERIFY => Self::Verify,
            ACCEPT => Self::Accept,
            END => Self::End,
            other => {
                let (kind, number) = other.split_once('-')?;
                let number = number.parse().ok()?;
                match kind {
                    "correct" => Self::Correct(number),
                    "check" => Self::Check(number),
                    "decide" => Self::Decide(number),
                    "passed" => Self::Passed(number),
                    _ => return None,
                }
            }
        })
    }

    /// What a person reads for it.
    #[must_use]
    pub fn title(self) -> String {
        match self {
            Self::Plan => "the agent plans".to_owned(),
            Self::Approve => "a person approves the plan".to_owned(),
            Self::Implement => "the agent implements it".to_owned(),
            Self::Correct(number) => format!("the agent corrects it, no. {number}"),
            Self::Check(0) => "the check runs".to_owned(),
            Self::Check(_) => "the check runs again".to_owned(),
            Self::Decide(_) => "passed, or correct".to_owned(),
            Self::Passed(_) => "it passed here".to_owned(),
            Self::Result => "the result".to_owned(),
            Self::Verify => "the check is recorded".to_owned(),
            Self::Accept => "a person accepts the result".to_owned(),
            Self::End => "done".to_owned(),
        }
    }

    /// The value of `PRAXIS_STAGE`; none where no agent runs.
    #[must_use]
    pub fn agent(self) -> Option<&'static str> {
        match self {
            Self::Plan => Some("plan"),
            Self::Implement => Some("implement"),
            Self::Correct(_) => Some("correct"),
            _ => None,
        }
    }

    /// Whether the node only carries a choice on and is of no interest to most readers.
    #[must_use]
    pub fn is_plumbing(self) -> bool {
        matches!(self, Self::Decide(_) | Self::Passed(_) | Self::Result)
    }
}

/// A node's id.
///
/// # Errors
///
/// None in practice; an id that is refused.
pub fn node_id(name: &str) -> Result<NodeId, Error> {
    NodeId::new(name)
}

/// The producers whose results may be skipped at the join, for `n` corrections.
#[must_use]
pub fn optional_results(n: u32) -> Vec<String> {
    if n == 0 { Vec::new() } else { results(n) }
}

/// The producers that lead to the join: one per way to pass, and the last check.
fn results(n: u32) -> Vec<String> {
    let mut producers: Vec<String> = (0..n).map(|number| format!("passed-{number}")).collect();
    producers.push(format!("check-{n}"));
    producers
}

/// The graph for `n` corrections.
///
/// # Errors
///
/// None in practice; an id that is refused.
pub fn graph(n: u32) -> Result<Graph, Error> {
    let mut nodes = vec![
        node(PLAN, task(ExecutionKind::Agent), &[])?,
        node(APPROVE, NodeKind::Approval, &[PLAN])?,
        node(IMPLEMENT, task(ExecutionKind::Agent), &[APPROVE])?,
    ];
    let mut producer = IMPLEMENT.to_owned();
    for number in 0..=n {
        let check = format!("check-{number}");
        nodes.push(node(&check, task(ExecutionKind::Tool), &[&producer])?);
        if number == n {
            break;
        }
        let (decide, passed, correct) = (
            format!("decide-{number}"),
            format!("passed-{number}"),
            format!("correct-{}", number + 1),
        );
        nodes.push(node(&decide, decision(&passed, &correct)?, &[&check])?);
        nodes.push(node(&passed, join(), &[&decide])?);
        nodes.push(node(&correct, task(ExecutionKind::Agent), &[&decide])?);
        producer = correct;
    }
    let results = results(n);
    nodes.push(node(
        RESULT,
        join(),
        &results.iter().map(String::as_str).collect::<Vec<_>>(),
    )?);
    nodes.push(node(VERIFY, NodeKind::Verification, &[RESULT])?);
    nodes.push(node(ACCEPT, NodeKind::Acceptance, &[VERIFY])?);
    nodes.push(node(END, NodeKind::End, &[ACCEPT])?);
    let one = Dec::from_u64(1);
    Ok(Graph {
        graph_id: GraphId::new(format!("coding-{n}"))?,
        revision: one,
        plan_revision: one,
        nodes,
    })
}

fn node(name: &str, kind: NodeKind, depends_on: &[&str]) -> Result<Node, Error> {
    let depends_on = depends_on
        .iter()
        .map(|name| node_id(name))
        .collect::<Result<_, _>>()?;
    Ok(Node {
        id: node_id(name)?,
        kind,
        depends_on,
        input_schema: None,
        output_schema: None,
        deadline_ms: None,
    })
}

fn task(execution_kind: ExecutionKind) -> NodeKind {
    NodeKind::Task(TaskConfig { execution_kind })
}

fn join() -> NodeKind {
    NodeKind::Join(JoinConfig {
        mode: JoinMode::All,
    })
}

fn decision(passed: &str, correct: &str) -> Result<NodeKind, Error> {
    Ok(NodeKind::Decision(DecisionConfig {
        field: "passed".to_owned(),
        equals: Value::Bool(true),
        then: node_id(passed)?,
        otherwise: node_id(correct)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aiws::record::Checked;

    fn shape(n: u32) -> Vec<String> {
        let graph = graph(n).unwrap();
        Checked::new(&graph).unwrap();
        let line = |node: &Node| {
            let from: Vec<&str> = node.depends_on.iter().map(NodeId::as_str).collect();
            format!("{} {} <- {}", node.kind.name(), node.id, from.join(" "))
        };
        graph.nodes.iter().map(line).collect()
    }

    /// Proves COD-4: corrections are unrolled to their bound and nothing follows the last check but the result.
    #[test]
    fn the_graph_is_unrolled_to_its_bound() {
        assert_eq!(
            shape(1),
            [
                "TASK plan <- ",
                "APPROVAL approve <- plan",
                "TASK implement <- approve",
                "TASK check-0 <- implement",
                "DECISION decide-0 <- check-0",
                "JOIN passed-0 <- decide-0",
                "TASK correct-1 <- decide-0",
                "TASK check-1 <- correct-1",
                "JOIN result <- passed-0 check-1",
                "VERIFICATION verify <- result",
                "ACCEPTANCE accept <- verify",
                "END end <- accept",
            ]
        );
        assert_eq!(
            shape(0)[3..5],
            ["TASK check-0 <- implement", "JOIN result <- check-0"]
        );
        assert_eq!(optional_results(0), Vec::<String>::new());
        assert_eq!(optional_results(2), ["passed-0", "passed-1", "check-2"]);
    }

    #[test]
    fn every_node_has_a_stage() {
        for node in graph(3).unwrap().nodes {
            assert!(Stage::of(&node.id).is_some(), "{}", node.id);
        }
        assert_eq!(
            Stage::of(&node_id("correct-2").unwrap()),
            Some(Stage::Correct(2))
        );
        assert_eq!(Stage::of(&node_id("other").unwrap()), None);
    }
}

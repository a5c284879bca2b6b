//! The graphs of a cast: fixed ones, or those that a plan has drawn, with what their nodes do.
//!
//! Invariant: everything follows from the plan's graphs and the run's number; a node's name says which graph and which
//! place it stands at. Made for a simulation, asked by its owners and people.

use std::collections::BTreeSet;

use super::*;
use crate::plan::Plan;
use crate::plan::graphs::{Kind, Knot, Shape};

/// The graphs of a plan's runs.
#[derive(Clone, Debug)]
pub struct Cast {
    graphs: Vec<Shape>,
    runs: u8,
    budget: u64,
}

/// The work behind approvals of drawn graphs, which is the same everywhere.
const GATED: &str = "gated";

impl Cast {
    /// The cast of a plan.
    pub fn of(plan: &Plan) -> Self {
        let runs = plan.runs.max(1);
        // Drawn graphs have more work, and a long history is to meet its bound late.
        let budget = match (plan.graphs.is_empty(), plan.named) {
            (true, _) => budget(plan.seed),
            (false, false) => budget(plan.seed) * 2,
            (false, true) => budget(plan.seed) * 4 * u64::from(runs),
        };
        Self {
            graphs: plan.graphs.clone(),
            runs,
            budget,
        }
    }

    /// How many runs there may be.
    pub fn runs(&self) -> u8 {
        self.runs
    }

    /// What the mission may spend.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// The drawn graph of a run, with its number.
    fn shape(&self, run: u8) -> Option<(usize, &Shape)> {
        let at = usize::from(run) % self.graphs.len().max(1);
        self.graphs.get(at).map(|shape| (at, shape))
    }

    /// The place that a node of a drawn graph stands at.
    fn knot(&self, node: &str) -> Option<(usize, &Knot)> {
        let (shape, place) = node.strip_prefix('g')?.split_once('n')?;
        let digits = |text: &str| text.trim_end_matches(['t', 'e', 'g']).parse::<usize>().ok();
        let (shape, at) = (digits(shape)?, digits(place)?);
        self.graphs.get(shape)?.knots.get(at).map(|knot| (at, knot))
    }

    /// The graph of a run.
    pub fn graph(&self, run: u8) -> Result<Graph, Error> {
        match self.shape(run) {
            None => fixed(run),
            Some((number, shape)) => drawn(number, shape),
        }
    }

    /// The hand-off configuration: the policies and the optional inputs of all graphs.
    pub fn config(&self) -> Result<HandoffConfig, Error> {
        let mut config = config()?;
        for (number, shape) in self.graphs.iter().enumerate() {
            let graph = drawn(number, shape)?;
            for node in &graph.nodes {
                let knot = self.knot(node.id.as_str()).map(|(_, knot)| knot.kind);
                if let (Some(Kind::Any { excludes }), NodeKind::Join(_)) = (knot, &node.kind) {
                    config
                        .join_policy
                        .extend(excludes.map(|excludes| JoinPolicy {
                            node_id: node.id.clone(),
                            exclude_losers: excludes,
                        }));
                }
                let meets = node.id.as_str() == meeting(number);
                if meets || knot == Some(Kind::Join { lenient: true }) {
                    let optional = node.depends_on.iter().map(|producer| OptionalInput {
                        node_id: node.id.clone(),
                        input_port: producer.as_id(),
                    });
                    config.optional_inputs.extend(optional);
                }
            }
        }
        Ok(config)
    }

    /// How a node's effect behaves when its answer is lost.
    pub fn effect(&self, node: &str) -> EffectClass {
        let drawn = self.knot(node).map(|(at, knot)| match knot.kind {
            Kind::Task { effect } => usize::from(effect),
            _ => at,
        });
        match drawn {
            None => effect(node),
            Some(number) => [
                EffectClass::External,
                EffectClass::Idempotent,
                EffectClass::Read,
            ][number % 3],
        }
    }

    /// Whether a node's work may need an approval.
    pub fn is_gated(&self, node: &str) -> bool {
        node == GATED_FIRST || node.ends_with('g') && self.knot(node).is_some()
    }

    /// What a node does; everything behind an approval does the same.
    pub fn action(&self, node: &str) -> Value {
        match self.knot(node) {
            Some(_) if self.is_gated(node) => action(GATED),
            _ => action(node),
        }
    }

    /// The fingerprint of what a node does.
    pub fn fingerprint(&self, node: &str) -> Digest {
        sha256(&aiws::canonical::to_bytes(&self.action(node)))
    }

    /// The fingerprint of what people are asked to approve.
    pub fn approved(&self) -> Digest {
        match self.graphs.is_empty() {
            true => fingerprint(GATED_FIRST),
            false => fingerprint(GATED),
        }
    }

    /// Whether an iteration of a loop is its last.
    pub fn is_done(&self, node: &str, iteration: u64) -> bool {
        match self.knot(node).map(|(_, knot)| knot.kind) {
            Some(Kind::Loop { done, .. }) => iteration >= u64::from(done),
            _ => true,
        }
    }

    /// Which side a decision of a run takes.
    pub fn side(&self, run: u8, node: &str) -> bool {
        let turn = usize::from(run) / self.graphs.len().max(1) % 2 == 1;
        match self.knot(node).map(|(_, knot)| knot.kind) {
            Some(Kind::Choice { side }) => side != turn,
            _ => true,
        }
    }
}

/// The graph of a run without drawn ones: two tasks that meet, behind an approval in every second run; verification,
/// acceptance, end.
fn fixed(number: u8) -> Result<Graph, Error> {
    let gated = number % 2 == 1;
    let mut nodes = Vec::new();
    if gated {
        nodes.push(node("gate", NodeKind::Approval, &[])?);
    }
    nodes.push(node("first", task(), if gated { &["gate"] } else { &[] })?);
    nodes.push(node("second", task(), &[])?);
    nodes.push(node("third", task(), &["first"])?);
    nodes.push(node("check", NodeKind::Verification, &["third", "second"])?);
    nodes.push(node("take", NodeKind::Acceptance, &["check"])?);
    nodes.push(node("end", NodeKind::End, &["take"])?);
    graph(nodes)
}

/// A drawn graph: what nobody waits for meets, and then the end is as always.
fn drawn(number: usize, shape: &Shape) -> Result<Graph, Error> {
    let mut nodes = Vec::new();
    let mut outlets: Vec<Vec<String>> = Vec::new();
    let mut open: BTreeSet<String> = BTreeSet::new();
    for (at, knot) in shape.knots.iter().enumerate() {
        let name = format!("g{number}n{at}");
        let mut after: Vec<String> = Vec::new();
        for wanted in knot.after.iter().map(|wanted| usize::from(*wanted)) {
            let Some(ends) = outlets.get(wanted % at.max(1)) else {
                break;
            };
            after.extend(ends.get(wanted / at.max(1) % ends.len().max(1)).cloned());
        }
        if after.is_empty() && matches!(knot.kind, Kind::Any { .. }) {
            after.extend(outlets.last().and_then(|ends| ends.first()).cloned());
        }
        after.sort();
        after.dedup();
        for waited in &after {
            open.remove(waited);
        }
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        let ends = place(&name, knot.kind, &after, &mut nodes)?;
        open.extend(ends.iter().cloned());
        outlets.push(ends);
    }
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let (meet, check, take, end) = (
        meeting(number),
        format!("g{number}check"),
        format!("g{number}take"),
        format!("g{number}end"),
    );
    nodes.push(node(&meet, join(JoinMode::All), &open)?);
    nodes.push(node(&check, NodeKind::Verification, &[&meet])?);
    nodes.push(node(&take, NodeKind::Acceptance, &[&check])?);
    nodes.push(node(&end, NodeKind::End, &[&take])?);
    graph(nodes)
}

/// The nodes of a place; gives those that others may wait for.
fn place(
    name: &str,
    kind: Kind,
    after: &[&str],
    nodes: &mut Vec<Node>,
) -> Result<Vec<String>, Error> {
    let kind = match kind {
        Kind::Choice { .. } => {
            let sides = [format!("{name}t"), format!("{name}e")];
            let decision = DecisionConfig {
                field: "side".to_owned(),
                equals: Value::Bool(true),
                then: id(&sides[0])?,
                otherwise: id(&sides[1])?,
            };
            nodes.push(node(name, NodeKind::Decision(decision), after)?);
            for side in &sides {
                nodes.push(node(side, task(), &[name])?);
            }
            return Ok(sides.into());
        }
        Kind::Gate => {
            let behind = format!("{name}g");
            nodes.push(node(name, NodeKind::Approval, after)?);
            nodes.push(node(&behind, task(), &[name])?);
            return Ok(vec![behind]);
        }
        Kind::Task { .. } => task(),
        // The first place of all has nothing to choose from.
        Kind::Any { .. } if after.is_empty() => task(),
        Kind::Any { .. } => join(JoinMode::Any),
        Kind::Join { .. } => join(JoinMode::All),
        Kind::Fork => NodeKind::Fork,
        Kind::Loop { most, .. } => NodeKind::Loop(LoopConfig {
            max_iterations: DecPlus::new(Dec::from_u64(u64::from(most.max(1))))?,
        }),
    };
    nodes.push(node(name, kind, after)?);
    Ok(vec![name.to_owned()])
}

/// The node at which a drawn graph meets.
fn meeting(number: usize) -> String {
    format!("g{number}meet")
}

fn task() -> NodeKind {
    NodeKind::Task(TaskConfig {
        execution_kind: ExecutionKind::Agent,
    })
}

fn join(mode: JoinMode) -> NodeKind {
    NodeKind::Join(JoinConfig { mode })
}

fn graph(nodes: Vec<Node>) -> Result<Graph, Error> {
    Ok(Graph {
        graph_id: id("graph")?,
        revision: Dec::from_u64(1),
        plan_revision: Dec::from_u64(1),
        nodes,
    })
}

fn node(name: &str, kind: NodeKind, after: &[&str]) -> Result<Node, Error> {
    let depends_on = after.iter().map(|name| id(name)).collect::<Result<_, _>>();
    Ok(Node {
        id: id(name)?,
        kind,
        depends_on: depends_on?,
        input_schema: None,
        output_schema: None,
        deadline_ms: None,
    })
}

#[cfg(test)]
mod tests {
    // In a test a failed step is a failed test.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::plan::RUNS;
    use crate::rng::Rng;

    /// Every drawn graph passes the model's own checks at its activation, and so does every part of one.
    #[test]
    fn drawn_graphs_are_graphs() {
        let mut kinds = BTreeSet::new();
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let mut graphs = crate::plan::graphs_of(&mut rng, 3);
            // What a shrinker could leave.
            if seed % 3 == 0 {
                graphs[0].knots.remove(0);
            }
            let plan = Plan {
                seed,
                faults: Default::default(),
                graphs,
                runs: RUNS,
                named: false,
                steps: Vec::new(),
            };
            let cast = Cast::of(&plan);
            for run in 0..RUNS {
                let graph = cast.graph(run).unwrap();
                let contract = contract(cast.budget()).unwrap();
                let checked =
                    praxis_model::graph::validate(&graph, &contract, &cast.config().unwrap());
                assert_eq!(checked, Ok(()), "seed {seed} run {run}: {graph:?}");
                kinds.extend(graph.nodes.iter().map(|node| node.kind.name()));
            }
        }
        assert_eq!(kinds.len(), NodeKind::NAMES.len(), "{kinds:?}");
    }
}

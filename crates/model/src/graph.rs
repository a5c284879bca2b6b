//! The pinned graph read together with the configuration: ports, successors, branches, and the activation checks.
//!
//! Invariant: there is one idea of what arrives where. Every dependency is one input port of its consumer; the
//! port is the mapping's, or else it has the producer's name. Called by decide, draft, plan and report.
//!
//! A DECISION's branch takes the decision as a required input, so an unchosen branch is always skipped as a node
//! and its successors see a SKIPPED manifest (HD-04.4, T-75). A branch that leads straight to a JOIN with optional
//! inputs therefore needs a node in between; a JOIN with that one input will do.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aiws::id::{Id, NodeId};
use aiws::json::Value;
use aiws::record::{
    Contract, DecisionConfig, Graph, HandoffConfig, JoinMode, Mapping, Node, NodeKind,
    OutcomeStatus, SkipAction,
};
use aiws::schema::Schema;

use crate::admission::details;
use crate::decision::Rejection;
use crate::guard::{Guard, check};
use crate::limits::{MAX_EDGES, MAX_NODES};

/// One input of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input<'a> {
    /// The port.
    pub port: Id,
    /// The producing node.
    pub producer: &'a NodeId,
    /// Whether it may be skipped (HD-04.3).
    pub optional: bool,
}

/// The node of this id.
pub fn node<'a>(graph: &'a Graph, id: &NodeId) -> Option<&'a Node> {
    graph.nodes.iter().find(|node| node.id == *id)
}

/// The direct dependents of a node, in the order of the graph.
pub fn successors<'a>(graph: &'a Graph, id: &NodeId) -> Vec<&'a Node> {
    graph
        .nodes
        .iter()
        .filter(|node| node.depends_on.contains(id))
        .collect()
}

/// The inputs of a node, in the order of its dependencies.
pub fn inputs<'a>(config: &HandoffConfig, node: &'a Node) -> Vec<Input<'a>> {
    // What the configuration says of this node is looked up once, not once per input.
    let mine = config.mappings.iter();
    let mut ports = BTreeMap::new();
    for mapping in mine.filter(|mapping| mapping.node_id == node.id) {
        ports
            .entry(&mapping.from_node_id)
            .or_insert(&mapping.input_port);
    }
    let optional = config.optional_inputs.iter();
    let optional: BTreeSet<&Id> = optional
        .filter(|input| input.node_id == node.id)
        .map(|input| &input.input_port)
        .collect();
    let input = |producer: &'a NodeId| {
        let port = ports
            .get(producer)
            .map_or_else(|| producer.as_id(), |port| (*port).clone());
        let optional = optional.contains(&port);
        Input {
            port,
            producer,
            optional,
        }
    };
    node.depends_on.iter().map(input).collect()
}

/// The port at which a producer's hand-off arrives at a consumer.
pub fn port(config: &HandoffConfig, consumer: &NodeId, producer: &NodeId) -> Id {
    mapping(config, consumer, producer)
        .map_or_else(|| producer.as_id(), |mapping| mapping.input_port.clone())
}

/// The mapping between two nodes, where the configuration has one.
pub fn mapping<'a>(
    config: &'a HandoffConfig,
    consumer: &NodeId,
    producer: &NodeId,
) -> Option<&'a Mapping> {
    config
        .mappings
        .iter()
        .find(|mapping| mapping.node_id == *consumer && mapping.from_node_id == *producer)
}

/// Whether an input may be skipped.
pub fn is_optional(config: &HandoffConfig, consumer: &NodeId, port: &Id) -> bool {
    config
        .optional_inputs
        .iter()
        .any(|input| input.node_id == *consumer && input.input_port == *port)
}

/// Whether a consumer accepts an outcome of a producer: what its mapping lists, COMPLETED where there is none,
/// and SKIPPED at an optional input (HD-04.3, HF-04.7).
pub fn accepts(
    config: &HandoffConfig,
    consumer: &NodeId,
    producer: &NodeId,
    status: OutcomeStatus,
) -> bool {
    if status == OutcomeStatus::Skipped
        && is_optional(config, consumer, &port(config, consumer, producer))
    {
        return true;
    }
    match mapping(config, consumer, producer) {
        Some(mapping) => mapping.accepts.contains(&status),
        None => status == OutcomeStatus::Completed,
    }
}

/// What a skipped required input means for a node (HD-04.5); it is skipped too where nothing is said (T-42).
pub fn skip_action(config: &HandoffConfig, node: &NodeId) -> SkipAction {
    let rule = config
        .required_skip
        .iter()
        .find(|rule| rule.node_id == *node);
    rule.map_or(SkipAction::Propagate, |rule| rule.action)
}

/// Whether a node waits for one input rather than for all of them.
pub fn takes_any(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Join(config) if config.mode == JoinMode::Any)
}

/// Whether an ANY join may leave out candidates that are not done (HD-04.7); it may not where nothing is said.
pub fn excludes_losers(config: &HandoffConfig, join: &NodeId) -> bool {
    let mut policies = config.join_policy.iter();
    policies.any(|policy| policy.node_id == *join && policy.exclude_losers)
}

/// The branch that a DECISION takes for a result; none where the result lacks the field (FV-NODE-DECISION.1).
pub fn chosen<'a>(config: &'a DecisionConfig, result: &Value) -> Option<&'a NodeId> {
    let field = result.get(&config.field)?;
    Some(if *field == config.equals {
        &config.then
    } else {
        &config.otherwise
    })
}

/// The nodes in an order in which every producer comes before its consumers. A node on a cycle is left out; an
/// activated graph has none (FV-GRAPH.3).
pub(crate) fn in_order(graph: &Graph) -> Vec<&Node> {
    let dependents = dependents(graph);
    let mut open: BTreeMap<&NodeId, usize> = BTreeMap::new();
    let mut free: VecDeque<&Node> = VecDeque::new();
    for node in &graph.nodes {
        open.insert(&node.id, node.depends_on.len());
        if node.depends_on.is_empty() {
            free.push_back(node);
        }
    }
    let mut order = Vec::new();
    while let Some(done) = free.pop_front() {
        order.push(done);
        for next in of(&dependents, &done.id) {
            if let Some(count) = open.get_mut(&next.id) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    free.push_back(next);
                }
            }
        }
    }
    order
}

/// All checks of a graph before it is pinned.
///
/// # Errors
/// GRAPH_INVALID with the node in the details (FV-GRAPH.2 to FV-GRAPH.5, FV-GRAPH.9).
pub fn validate(
    graph: &Graph,
    contract: &Contract,
    config: &HandoffConfig,
) -> Result<(), Rejection> {
    let dependents = dependents(graph);
    bounded(graph, config, &dependents)?;
    unique(graph)?;
    dependencies(graph)?;
    acyclic(graph)?;
    reaches_end(graph, &dependents)?;
    branches(graph, config, &dependents)?;
    joins(graph, config)?;
    ports(graph, config)?;
    schemas(graph, config)?;
    for node in &graph.nodes {
        let late = node
            .deadline_ms
            .is_some_and(|own| own > contract.deadline_ms);
        check(Guard::GraphDeadlines, !late, || at(&node.id))?;
    }
    Ok(())
}

/// The direct dependents of every node that has some.
pub(crate) type Dependents<'a> = BTreeMap<&'a NodeId, Vec<&'a Node>>;

fn at(node: &NodeId) -> aiws::json::Object {
    details(&[("nodeId", node.into())])
}

/// Who waits for whom, at one walk over the edges.
pub(crate) fn dependents(graph: &Graph) -> Dependents<'_> {
    let mut all = Dependents::new();
    for node in &graph.nodes {
        for producer in &node.depends_on {
            all.entry(producer).or_default().push(node);
        }
    }
    all
}

/// The direct dependents of a node.
pub(crate) fn of<'a, 'b>(dependents: &'b Dependents<'a>, node: &NodeId) -> &'b [&'a Node] {
    dependents.get(node).map_or(&[], Vec::as_slice)
}

fn bounded(
    graph: &Graph,
    config: &HandoffConfig,
    dependents: &Dependents<'_>,
) -> Result<(), Rejection> {
    let edges: usize = graph.nodes.iter().map(|node| node.depends_on.len()).sum();
    let most = config.max_recipients.to_u64().unwrap_or(u64::MAX);
    let wide = graph
        .nodes
        .iter()
        .find(|node| of(dependents, &node.id).len() as u64 > most);
    check(
        Guard::GraphBounded,
        graph.nodes.len() <= MAX_NODES && edges <= MAX_EDGES && wide.is_none(),
        || {
            wide.map_or_else(
                || {
                    details(&[
                        ("maxNodes", MAX_NODES.to_string().into()),
                        ("maxEdges", MAX_EDGES.to_string().into()),
                    ])
                },
                |node| at(&node.id),
            )
        },
    )
}

fn unique(graph: &Graph) -> Result<(), Rejection> {
    let mut seen = BTreeSet::new();
    let twice = graph.nodes.iter().find(|node| !seen.insert(&node.id));
    check(Guard::GraphUnique, twice.is_none(), || {
        twice.map(|node| at(&node.id)).unwrap_or_default()
    })
}

fn dependencies(graph: &Graph) -> Result<(), Rejection> {
    let known: BTreeSet<&NodeId> = graph.nodes.iter().map(|node| &node.id).collect();
    for node in &graph.nodes {
        let mut seen = BTreeSet::new();
        let bad = node
            .depends_on
            .iter()
            .find(|producer| !known.contains(producer) || !seen.insert(*producer));
        check(Guard::GraphDependencies, bad.is_none(), || {
            details(&[
                ("nodeId", (&node.id).into()),
                ("dependsOn", bad.map(|bad| bad.as_str().to_owned()).into()),
            ])
        })?;
    }
    Ok(())
}

/// What no order of producers before consumers contains stands on a cycle, or behind one.
fn acyclic(graph: &Graph) -> Result<(), Rejection> {
    let ordered: BTreeSet<&NodeId> = in_order(graph).iter().map(|node| &node.id).collect();
    let left = graph.nodes.iter().find(|node| !ordered.contains(&node.id));
    check(Guard::GraphAcyclic, left.is_none(), || {
        left.map(|node| at(&node.id)).unwrap_or_default()
    })
}

fn reaches_end(graph: &Graph, dependents: &Dependents<'_>) -> Result<(), Rejection> {
    let ends = |node: &&Node| matches!(node.kind, NodeKind::End);
    let mut todo: Vec<&NodeId> = graph
        .nodes
        .iter()
        .filter(ends)
        .map(|node| &node.id)
        .collect();
    let mut seen: BTreeSet<&NodeId> = BTreeSet::new();
    while let Some(id) = todo.pop() {
        if seen.insert(id) {
            todo.extend(node(graph, id).iter().flat_map(|node| &node.depends_on));
        }
    }
    for each in &graph.nodes {
        let followed = ends(&each) && !of(dependents, &each.id).is_empty();
        check(
            Guard::GraphReachesEnd,
            seen.contains(&each.id) && !followed,
            || at(&each.id),
        )?;
    }
    Ok(())
}

fn branches(
    graph: &Graph,
    config: &HandoffConfig,
    dependents: &Dependents<'_>,
) -> Result<(), Rejection> {
    for node in &graph.nodes {
        let NodeKind::Decision(decision) = &node.kind else {
            continue;
        };
        let next: BTreeSet<&NodeId> = of(dependents, &node.id)
            .iter()
            .map(|node| &node.id)
            .collect();
        let named = BTreeSet::from([&decision.then, &decision.otherwise]);
        check(
            Guard::GraphBranches,
            named.len() == 2 && next == named,
            || at(&node.id),
        )?;
        let optional = named
            .into_iter()
            .find(|branch| is_optional(config, branch, &port(config, branch, &node.id)));
        check(Guard::GraphBranchRequired, optional.is_none(), || {
            at(optional.unwrap_or(&node.id))
        })?;
    }
    Ok(())
}

/// Policies of other graphs' joins are none of this graph's business, as in `ports`.
fn joins(graph: &Graph, config: &HandoffConfig) -> Result<(), Rejection> {
    for node in &graph.nodes {
        let any = takes_any(node);
        let optional = inputs(config, node).iter().any(|input| input.optional);
        let takes = !any || (!optional && !node.depends_on.is_empty());
        check(Guard::GraphAnyInputs, takes, || at(&node.id))?;
        let mut policies = config.join_policy.iter();
        let named = policies.any(|policy| policy.node_id == node.id);
        check(Guard::GraphJoinPolicy, any || !named, || at(&node.id))?;
    }
    Ok(())
}

/// Mappings and optional inputs of other graphs' nodes are none of this graph's business: the configuration is
/// the mission's, and its runs may have different graphs.
fn ports(graph: &Graph, config: &HandoffConfig) -> Result<(), Rejection> {
    for node in &graph.nodes {
        let mine = || {
            config
                .mappings
                .iter()
                .filter(|mapping| mapping.node_id == node.id)
        };
        let direct = mine().all(|mapping| node.depends_on.contains(&mapping.from_node_id));
        let producers: BTreeSet<&NodeId> = mine().map(|mapping| &mapping.from_node_id).collect();
        let inputs = inputs(config, node);
        let ports: BTreeSet<&Id> = inputs.iter().map(|input| &input.port).collect();
        let optional = config
            .optional_inputs
            .iter()
            .filter(|input| input.node_id == node.id);
        let known = optional
            .clone()
            .all(|input| ports.contains(&input.input_port));
        let fits =
            direct && known && producers.len() == mine().count() && ports.len() == inputs.len();
        check(Guard::GraphPorts, fits, || at(&node.id))?;
    }
    Ok(())
}

fn schemas(graph: &Graph, config: &HandoffConfig) -> Result<(), Rejection> {
    for node in &graph.nodes {
        let mapped = config
            .mappings
            .iter()
            .filter(|mapping| mapping.node_id == node.id);
        let all = node
            .input_schema
            .iter()
            .chain(&node.output_schema)
            .chain(mapped.filter_map(|mapping| mapping.schema.as_ref()));
        for schema in all {
            let bad = Schema::compile(schema).err();
            check(Guard::GraphSchemas, bad.is_none(), || {
                let why = bad.map(|error| error.to_string());
                details(&[("nodeId", (&node.id).into()), ("why", why.into())])
            })?;
        }
    }
    Ok(())
}

//! The flow of work through graphs: nodes, inputs, iterations, joins, what no longer counts (invariants 50 to 55; the
//! places and branches of 30; 22).
//!
//! Invariant: what a graph means is read from the graph and the mission's configuration, by rules of its own. A stream
//! without a graph has no flow. Called by the fold, after the rooms that know deliveries and effects.

use std::collections::{BTreeMap, BTreeSet};

use aiws::json::Value;

use super::event::{Event, items, list, member, number, text, unknown};
use super::state::Rooms;
use crate::invariant::{Broken, Invariant};

mod inputs;
mod invalid;
mod left;

/// A node of a pinned graph.
#[derive(Clone, Debug)]
struct Node {
    kind: String,
    after: Vec<String>,
    /// Whether it takes one of its inputs.
    any: bool,
    /// The bound of a loop.
    most: u64,
    status: String,
    /// Activations that were admitted.
    admitted: u64,
    /// Iterations that ended before it was done.
    ended: u64,
}

/// A committed hand-off.
#[derive(Clone, Debug)]
struct Handoff {
    node: String,
    status: String,
    /// What was said of `done`.
    done: Option<bool>,
    invalid: bool,
}

/// A delivery.
#[derive(Clone, Debug)]
struct Delivery {
    handoff: String,
    to: String,
    activation: String,
    state: String,
}

/// What an activation was bound to.
#[derive(Clone, Debug)]
struct Bound {
    handoffs: Vec<String>,
    valid: bool,
}

/// One run.
#[derive(Clone, Debug, Default)]
struct Run {
    nodes: BTreeMap<String, Node>,
    handoffs: BTreeMap<String, Handoff>,
    deliveries: BTreeMap<String, Delivery>,
    bound: BTreeMap<String, Bound>,
    /// The node and the activation of each operation.
    operations: BTreeMap<String, (String, String)>,
    /// Holds for a hand-off that no longer counts.
    invalid_holds: BTreeSet<String>,
    /// Whether it has ended.
    over: bool,
}

/// What a mission's configuration says of joins and inputs.
#[derive(Clone, Debug, Default)]
struct Rules {
    /// Joins that may leave others out.
    excludes: BTreeSet<String>,
    /// Consumers and the inputs of theirs that may be skipped.
    optional: BTreeSet<(String, String)>,
}

/// The flow of all runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    runs: BTreeMap<String, Run>,
    rules: BTreeMap<String, Rules>,
}

impl Flow {
    /// The node that an event's command concerns, where it concerns one.
    pub fn place(&self, event: &Event) -> Result<Option<String>, Broken> {
        let Some(run) = self.runs.get(&event.stream) else {
            return Ok(None);
        };
        let command = event.command()?;
        let recipient = |id: &str| run.deliveries.get(id).map(|it| it.to.clone());
        Ok(match event.kind.as_str() {
            "dispatch" => Some(text(command, "nodeId")?.to_owned()),
            "admitConsumer" => Some(text(member(command, "consumption")?, "nodeId")?.to_owned()),
            "retry" => {
                let operation = run.operations.get(text(command, "operationId")?);
                operation.map(|(node, _)| node.clone())
            }
            "claimDelivery" | "acknowledgeDelivery" => recipient(text(command, "deliveryId")?),
            _ => None,
        })
    }

    /// A node with all that depends on it.
    pub fn branch(&self, stream: &str, root: &str) -> Option<BTreeSet<String>> {
        let run = self.runs.get(stream)?;
        let mut all = BTreeSet::from([root.to_owned()]);
        loop {
            let more: Vec<String> = run
                .nodes
                .iter()
                .filter(|(id, node)| {
                    !all.contains(*id) && node.after.iter().any(|it| all.contains(it))
                })
                .map(|(id, _)| id.clone())
                .collect();
            if more.is_empty() {
                return Some(all);
            }
            all.extend(more);
        }
    }

    /// Folds what an event does to the flow of its run.
    pub fn fold(&mut self, event: &Event, rooms: &mut Rooms<'_>) -> Result<(), Broken> {
        match event.kind.as_str() {
            "openMission" => return self.open(event),
            "activateGraph" => return self.pin(event),
            _ => {}
        }
        let Some(mut run) = self.runs.remove(&event.stream) else {
            return Ok(());
        };
        let none = Rules::default();
        let rules = self.rules.get(&event.mission).unwrap_or(&none);
        let folded = run.fold(event, rules, rooms);
        self.runs.insert(event.stream.clone(), run);
        folded
    }

    fn open(&mut self, event: &Event) -> Result<(), Broken> {
        let config = member(event.command()?, "config")?;
        let mut rules = Rules::default();
        for policy in items(config, "joinPolicy") {
            if policy.get("excludeLosers") == Some(&Value::Bool(true)) {
                rules.excludes.insert(text(policy, "nodeId")?.to_owned());
            }
        }
        for input in items(config, "optionalInputs") {
            let (node, port) = (text(input, "nodeId")?, text(input, "inputPort")?);
            rules.optional.insert((node.to_owned(), port.to_owned()));
        }
        self.rules.insert(event.mission.clone(), rules);
        Ok(())
    }

    fn pin(&mut self, event: &Event) -> Result<(), Broken> {
        let Some(graph) = event.command()?.get("graph") else {
            return Ok(());
        };
        let mut run = Run::default();
        for node in list(graph, "nodes")? {
            let id = text(node, "id")?;
            let kind = text(node, "kind")?.to_owned();
            let config = node.get("config").unwrap_or(&Value::Null);
            let after = items(node, "dependsOn").iter().filter_map(Value::as_str);
            let pinned = Node {
                after: after.map(str::to_owned).collect(),
                any: config.get("mode").and_then(Value::as_str) == Some("ANY"),
                most: match kind.as_str() {
                    "LOOP" => number(config, "maxIterations")?,
                    _ => 1,
                },
                kind,
                status: "PENDING".to_owned(),
                admitted: 0,
                ended: 0,
            };
            run.nodes.insert(id.to_owned(), pinned);
        }
        if self.runs.insert(event.stream.clone(), run).is_some() {
            let what = format!("{} pins a graph again", event.named());
            return Err(Broken::new(Invariant::AdmittedOnce, what));
        }
        Ok(())
    }
}

impl Run {
    fn fold(&mut self, event: &Event, rules: &Rules, rooms: &mut Rooms<'_>) -> Result<(), Broken> {
        if event.kind == "recordSummary" {
            rooms.marks.insert("summarized");
            return words(event);
        }
        self.tries(event)?;
        let before = self.statuses();
        for (kind, it) in event.transitions()? {
            match kind {
                "MANIFEST_COMMITTED" => self.commit(event, it)?,
                "DELIVERY_OPENED" => self.open(member(it, "delivery")?)?,
                "DELIVERY_MOVED" => {
                    if let Some(delivery) = self.deliveries.get_mut(text(it, "deliveryId")?) {
                        delivery.state = text(it, "to")?.to_owned();
                    }
                }
                "NODE_MOVED" => self.moved(event, it)?,
                "ITERATION_ENDED" => self.iterated(event, it, rooms)?,
                "OPERATION_ADMITTED" => {
                    let operation = member(it, "operation")?;
                    let of = |name| operation.get(name).and_then(Value::as_str).unwrap_or("");
                    let place = (of("nodeId").to_owned(), of("activationId").to_owned());
                    self.operations
                        .insert(text(operation, "operationId")?.to_owned(), place);
                }
                "CONSUMPTION_RECORDED" => {
                    self.admitted(event, member(it, "consumption")?, rules, rooms)?;
                }
                "CONSUMPTION_MOVED" => {
                    if let Some(bound) = self.bound.get_mut(text(it, "activationId")?) {
                        bound.valid = text(it, "to")? == "VALID";
                    }
                }
                "HANDOFF_INVALIDATED" => {
                    self.invalidated(event, member(it, "invalidation")?, rooms)?;
                }
                "HOLD_CLOSED" => self.let_go(event, it)?,
                "LIFECYCLE_MOVED" => {
                    let to = text(it, "to")?;
                    if to == "COMPLETED" {
                        self.complete(event)?;
                    }
                    self.over |= ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].contains(&to);
                }
                _ => {}
            }
        }
        self.left_out(event, &before, rules, rooms)
    }

    fn statuses(&self) -> BTreeMap<String, (String, bool)> {
        let all = self.nodes.iter();
        all.map(|(id, node)| (id.clone(), (node.status.clone(), node.is_begun())))
            .collect()
    }

    fn node(&mut self, event: &Event, id: &str) -> Result<&mut Node, Broken> {
        let node = self.nodes.get_mut(id);
        node.ok_or_else(|| unknown(format!("{} moves node {id}, of no graph", event.named())))
    }

    fn commit(&mut self, event: &Event, it: &Value) -> Result<(), Broken> {
        let command = event.command()?;
        let manifest = match member(it, "skipped")? {
            Value::Null => member(command, "manifest")?,
            _ => {
                let at = usize::try_from(number(it, "skipped")?).unwrap_or(usize::MAX);
                let skipped = items(command, "skipped").get(at);
                skipped.ok_or_else(|| unknown("an event commits a manifest that is not there"))?
            }
        };
        let done = match manifest.get("result").and_then(|it| it.get("done")) {
            Some(Value::Bool(done)) => Some(*done),
            _ => None,
        };
        let handoff = Handoff {
            node: text(member(manifest, "producer")?, "nodeId")?.to_owned(),
            status: text(member(manifest, "outcome")?, "status")?.to_owned(),
            done,
            invalid: false,
        };
        let id = text(member(it, "handoff")?, "handoffId")?;
        self.handoffs.insert(id.to_owned(), handoff);
        Ok(())
    }

    fn open(&mut self, delivery: &Value) -> Result<(), Broken> {
        let to = member(delivery, "recipient")?;
        let opened = Delivery {
            handoff: text(member(delivery, "handoff")?, "handoffId")?.to_owned(),
            to: text(to, "nodeId")?.to_owned(),
            activation: text(to, "activationId")?.to_owned(),
            state: text(delivery, "state")?.to_owned(),
        };
        self.deliveries
            .insert(text(delivery, "deliveryId")?.to_owned(), opened);
        Ok(())
    }

    fn moved(&mut self, event: &Event, it: &Value) -> Result<(), Broken> {
        let (id, to) = (text(it, "nodeId")?, text(it, "to")?);
        let node = self.node(event, id)?;
        let over = node.kind == "LOOP" && to == "COMPLETED";
        node.status = to.to_owned();
        let said = self.handoffs.values().rev().filter(|it| it.node == id);
        let said: Vec<Option<bool>> = said.map(|it| it.done).collect();
        if over && !said.contains(&Some(true)) {
            let what = format!(
                "{} ends loop {id}, and nothing says that it is done",
                event.named()
            );
            return Err(Broken::new(Invariant::LoopBound, what));
        }
        Ok(())
    }

    /// An iteration ends where its boundary says that the loop is not done, and only while there is another.
    fn iterated(&mut self, event: &Event, it: &Value, rooms: &mut Rooms<'_>) -> Result<(), Broken> {
        let id = text(it, "nodeId")?;
        let ended = number(it, "iteration")?;
        let named = event.named();
        let node = self.node(event, id)?;
        let broken = |what: String| {
            let what = format!("{named}: iteration {ended} of {id} {what}");
            Err(Broken::new(Invariant::LoopBound, what))
        };
        if node.kind != "LOOP" || node.status != "ACTIVE" || ended != node.admitted {
            return broken(format!(
                "ends, the node is {} in iteration {}",
                node.status, node.admitted
            ));
        }
        if ended >= node.most {
            return broken(format!(
                "is followed by another, its bound is {}",
                node.most
            ));
        }
        node.status = "PENDING".to_owned();
        node.ended += 1;
        rooms.marks.insert("iterated");
        Ok(())
    }

    /// A run that is complete is whole.
    fn complete(&self, event: &Event) -> Result<(), Broken> {
        let open = self
            .nodes
            .iter()
            .find(|(_, node)| !["COMPLETED", "SKIPPED"].contains(&node.status.as_str()));
        let mut ends = self.nodes.values().filter(|node| node.kind == "END");
        let what = match open {
            Some((id, node)) => format!("{id} is {}", node.status),
            None if !ends.any(|node| node.status == "COMPLETED") => "no end is done".to_owned(),
            None => return Ok(()),
        };
        let what = format!("{} completes the run, and {what}", event.named());
        Err(Broken::new(Invariant::CompleteIsWhole, what))
    }
}

impl Node {
    /// Admitted, and not done: also between two iterations.
    fn is_begun(&self) -> bool {
        match self.status.as_str() {
            "ACTIVE" | "BLOCKED" => true,
            "PENDING" => self.ended > 0,
            _ => false,
        }
    }
}

/// A summary is all that its event brings.
fn words(event: &Event) -> Result<(), Broken> {
    let broken = |what: String| {
        let what = format!("{} {what}", event.named());
        Err(Broken::new(Invariant::WordsChangeNothing, what))
    };
    for name in ["registers", "accounts", "gates", "opens", "due"] {
        if !event.outcome(name)?.is_empty() {
            return broken(format!("changes {name}"));
        }
    }
    let owner = member(member(&event.value, "outcome")?, "owner")?;
    let transitions = event.transitions()?;
    let kinds: Vec<&str> = transitions.iter().map(|(kind, _)| *kind).collect();
    if kinds != ["SUMMARY_RECORDED"] || !owner.is_null() {
        return broken(format!("moves {}", kinds.join(", ")));
    }
    Ok(())
}

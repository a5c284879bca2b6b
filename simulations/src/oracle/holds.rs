//! Holds, gates, lifecycles (invariants 30 to 32).
//!
//! Invariant: nothing is launched behind a closed gate or an end, and a hold ends by who may end it. Called by the fold.

use std::collections::{BTreeMap, BTreeSet};

use aiws::json::Value;
use aiws::object;

use super::event::{Event, items, list, member, text, unknown};
use super::flow::Flow;
use super::tables::Tables;
use crate::invariant::{Broken, Invariant};

/// What starts something.
const LAUNCHING: [&str; 8] = [
    "startRun",
    "activateGraph",
    "dispatch",
    "retry",
    "completeRun",
    "claimDelivery",
    "acknowledgeDelivery",
    "admitConsumer",
];

/// Only a human ends a hold for one of these.
const HUMAN: [&str; 4] = [
    "UNCERTAIN_EFFECT",
    "ATTEMPT_LIMIT",
    "COST_LIMIT",
    "TIME_LIMIT",
];

/// A gate: what it is (0 a hold's, 1 a branch's, 2 that of a cancellation), its hold, its nodes.
type Gate = (u8, String, Vec<String>);

#[derive(Clone, Debug)]
struct Hold {
    open: bool,
    human: bool,
    /// The nodes that it covers, by the graph itself; none for the whole run.
    covers: Option<BTreeSet<String>>,
}

/// All holds, gates and lifecycles.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds {
    holds: BTreeMap<(String, String), Hold>,
    /// By scope.
    gates: BTreeMap<String, BTreeSet<Gate>>,
    lifecycles: BTreeMap<String, String>,
    /// Missions whose restarts are a human's to decide.
    human_restart: BTreeSet<String>,
}

fn scope(mission: &str, run: Option<&str>) -> String {
    object! { "missionId": mission, "runId": run.map(str::to_owned) }.to_string()
}

impl Holds {
    /// Whether any hold is open.
    pub fn any_open(&self) -> bool {
        self.holds.values().any(|hold| hold.open)
    }

    /// Where a run stands, by its stream.
    pub fn lifecycle(&self, stream: &str) -> &str {
        self.lifecycles
            .get(stream)
            .map_or("RUNNING", String::as_str)
    }

    /// Whether a run has ended.
    pub fn is_over(&self, stream: &str) -> bool {
        let over = ["COMPLETED", "FAILED", "CANCELED", "REJECTED"];
        over.contains(&self.lifecycle(stream))
    }

    /// Folds what an event does to holds, gates and the run's lifecycle.
    /// `place` is the node that it concerns, where it concerns one.
    pub fn fold(
        &mut self,
        event: &Event,
        place: Option<&str>,
        flow: &Flow,
        tables: &mut Tables,
    ) -> Result<(), Broken> {
        self.launches(event, place)?;
        if event.kind == "openMission" {
            let config = member(event.command()?, "config")?;
            if text(config, "restartPolicy").unwrap_or("AUTO") == "HUMAN" {
                self.human_restart.insert(event.mission.clone());
            }
        }
        let mut wanted = Vec::new();
        for (kind, it) in event.transitions()? {
            match kind {
                "HOLD_OPENED" => {
                    wanted.push((self.open(event, member(it, "hold")?, flow)?, true));
                }
                "HOLD_CLOSED" => wanted.push((self.close(event, it)?, false)),
                "LIFECYCLE_MOVED" => {
                    let to = text(it, "to")?.to_owned();
                    if self.is_over(&event.stream) {
                        let what = format!("{} moves an ended run to {to}", event.named());
                        return Err(Broken::new(Invariant::HeldStartsNothing, what));
                    }
                    self.lifecycles.insert(event.stream.clone(), to);
                }
                _ => {}
            }
        }
        let changed = self.gates(event, tables)?;
        for want in wanted {
            if !changed.contains(&want) {
                let (hold, closed) = want;
                let moves = if closed { "opens" } else { "ends" };
                let what = format!("{} {moves} hold {hold}, and its gate stays", event.named());
                return Err(Broken::new(Invariant::HoldStays, what));
            }
        }
        Ok(())
    }

    fn launches(&self, event: &Event, place: Option<&str>) -> Result<(), Broken> {
        if !LAUNCHING.contains(&event.kind.as_str()) {
            return Ok(());
        }
        if event.run.is_some() && self.is_over(&event.stream) {
            let what = format!("{} starts something in a run that is over", event.named());
            return Err(Broken::new(Invariant::HeldStartsNothing, what));
        }
        let run = event.run.as_deref();
        for scope in [scope(&event.mission, run), scope(&event.mission, None)] {
            let mut gates = self.gates.get(&scope).into_iter().flatten();
            if let Some(gate) = gates.find(|gate| self.stops(event, gate, place)) {
                let what = format!(
                    "{} starts something in {} while the gate {} of {scope} is closed",
                    event.named(),
                    place.unwrap_or("the run"),
                    shown(gate)
                );
                return Err(Broken::new(Invariant::HeldStartsNothing, what));
            }
        }
        let said = event.transitions()?.into_iter();
        for (_, it) in said.filter(|(kind, _)| *kind == "LAUNCHED_IN") {
            let said = text(it, "nodeId")?;
            if place != Some(said) {
                let what = format!(
                    "{} says that it starts something in {said}, and does so in {}",
                    event.named(),
                    place.unwrap_or("the run")
                );
                return Err(Broken::new(Invariant::HeldStartsNothing, what));
            }
        }
        Ok(())
    }

    /// Whether a closed gate is in the way of this place. What a branch's covers follows from the graph, not from what
    /// the gate names.
    fn stops(&self, event: &Event, gate: &Gate, place: Option<&str>) -> bool {
        let hold = (event.mission.clone(), gate.1.clone());
        let covers = self.holds.get(&hold).and_then(|hold| hold.covers.as_ref());
        match (gate.0, place) {
            (1, Some(place)) => match covers {
                Some(covers) => covers.contains(place),
                None => gate.2.iter().any(|node| node == place),
            },
            _ => true,
        }
    }

    fn open(&mut self, event: &Event, hold: &Value, flow: &Flow) -> Result<String, Broken> {
        let id = text(hold, "holdId")?;
        let mut kinds = vec![text(hold, "reason")?];
        for blocker in items(hold, "blockers") {
            kinds.push(text(blocker, "kind")?);
        }
        let restart = self.human_restart.contains(&event.mission);
        let human = |kind: &&str| HUMAN.contains(kind) || (restart && *kind == "RESTART");
        let opened = Hold {
            open: true,
            human: kinds.iter().any(human),
            covers: covers(event, hold, flow)?,
        };
        let place = (event.mission.clone(), id.to_owned());
        if self.holds.insert(place, opened).is_some() {
            let what = format!("{} opens hold {id} again", event.named());
            return Err(Broken::new(Invariant::HoldStays, what));
        }
        Ok(id.to_owned())
    }

    fn close(&mut self, event: &Event, it: &Value) -> Result<String, Broken> {
        let (id, to) = (text(it, "holdId")?, text(it, "to")?);
        let broken = |what: &str| {
            let what = format!(
                "{} by {} ({}) ends hold {id} as {to}: {what}",
                event.named(),
                event.actor,
                event.actor_kind
            );
            Err(Broken::new(Invariant::ReleaseNamed, what))
        };
        let place = (event.mission.clone(), id.to_owned());
        let Some(hold) = self.holds.get_mut(&place).filter(|hold| hold.open) else {
            return broken("it is not open");
        };
        if (hold.human || to == "CANCELED") && !event.is_human() {
            return broken("only a human decides that, by name");
        }
        if !["HUMAN", "SYSTEM"].contains(&event.actor_kind.as_str()) {
            return broken("nobody of that kind decides it");
        }
        hold.open = false;
        Ok(id.to_owned())
    }

    /// Moves the gates; gives the holds whose gates were named, and whether they closed.
    fn gates(&mut self, event: &Event, tables: &mut Tables) -> Result<Vec<(String, bool)>, Broken> {
        let mut changed = Vec::new();
        for change in event.outcome("gates")? {
            let scope = member(change, "scope")?.to_string();
            let gate = member(change, "gate")?;
            let gate = match text(gate, "kind")? {
                "HOLD" => (0, text(gate, "holdId")?.to_owned(), Vec::new()),
                "BRANCH" => {
                    let nodes = list(gate, "nodeIds")?.iter().filter_map(Value::as_str);
                    let nodes = nodes.map(str::to_owned).collect();
                    (1, text(gate, "holdId")?.to_owned(), nodes)
                }
                "CANCEL" => (2, String::new(), Vec::new()),
                other => return Err(unknown(format!("{} moves a gate {other}", event.named()))),
            };
            let closed = member(change, "closed")?.as_bool();
            let closed = closed.ok_or_else(|| unknown("a gate is neither closed nor open"))?;
            if gate.0 != 2 {
                changed.push((gate.1.clone(), closed));
            }
            let gates = self.gates.entry(scope.clone()).or_default();
            if closed {
                gates.insert(gate);
            } else {
                gates.remove(&gate);
            }
            if gates.is_empty() {
                self.gates.remove(&scope);
                tables.gates.remove(&scope);
            } else {
                let all: Vec<String> = gates.iter().map(shown).collect();
                tables.gates.insert(scope, format!("[{}]", all.join(",")));
            }
        }
        Ok(changed)
    }
}

/// A gate's canonical text.
fn shown(gate: &Gate) -> String {
    match gate {
        (0, id, _) => object! { "holdId": id.as_str(), "kind": "HOLD" }.to_string(),
        (1, id, nodes) => {
            object! { "holdId": id.as_str(), "kind": "BRANCH", "nodeIds": nodes.clone() }
                .to_string()
        }
        _ => object! { "kind": "CANCEL" }.to_string(),
    }
}

/// The nodes that a new hold covers: those of its branch, by the graph that the run has pinned.
fn covers(event: &Event, hold: &Value, flow: &Flow) -> Result<Option<BTreeSet<String>>, Broken> {
    let Some(scope) = hold.get("scope") else {
        return Ok(None);
    };
    if text(scope, "kind")? != "BRANCH" {
        return Ok(None);
    }
    let root = text(member(scope, "ref")?, "id")?;
    Ok(flow.branch(&event.stream, root))
}

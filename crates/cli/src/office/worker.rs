//! The worker API of the socket: missions that a person's script opens, and the workers that do their nodes.
//! Invariant: a worker acts in its own name and never decides; a person's command goes with the proof of the person;
//! neither reaches a coding run, which has verbs of its own. Part of the office.

use std::sync::Arc;

use aiws::digest::sha256;
use aiws::error::{Code, Error};
use aiws::id::{ActorId, MissionId, NodeId, RequestId, RunId};
use aiws::json::{Object, Value};
use aiws::object;
use aiws::record::{ActorKind, Contract, DeliveryState};
use praxis_engine::{Capability, IntentRequest, Response};
use praxis_model::command::{Body, Intent};
use praxis_model::plan::{Step, plan};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use praxis_model::wire;

use super::person::Said;
use super::{Items, Office, Peer};
use crate::answer::{Answer, View};
use crate::authority::WORKER;
use crate::coding::contract::Job;
use crate::render::json;
use crate::request::{Given, Work};
use crate::session::now_ms;
use crate::store::Reader;

mod desk;

use desk::Desk;

impl Office {
    /// Takes a request of the protocol in a person's name.
    pub(super) async fn apply(
        &self,
        command: &Value,
        name: Option<&str>,
        view: View,
        peer: &Peer,
    ) -> Result<Answer, Error> {
        let bytes = aiws::canonical::to_bytes(command);
        let intent = command.get("intent").is_some();
        let (mission, kind) = match intent {
            true => {
                let parsed = wire::intent(&bytes)?;
                (parsed.mission_id, intent_name(&parsed.intent))
            }
            false => {
                let parsed = wire::parse(&bytes)?.command;
                if let Body::OpenMission(body) = &parsed.body {
                    for_workers(&body.contract)?;
                }
                (parsed.mission_id, parsed.body.kind().name())
            }
        };
        self.not_coding(&mission).await?;
        let said = Said {
            verb: "apply",
            about: object! { "missionId": &mission, "command": kind, "digest": sha256(&bytes).to_string() },
            reason: None,
            grants: true,
        };
        let person = self.person(peer, Given::ByVerb, name, said).await?;
        let engine = &self.session.engine;
        let response = match intent {
            true => {
                let parsed = wire::intent(&bytes)?;
                let request = IntentRequest {
                    mission_id: parsed.mission_id,
                    run_id: parsed.run_id,
                    request_id: parsed.request_id,
                    intent: parsed.intent,
                };
                engine.submit(&person, &request).await?
            }
            false => engine.apply(&person, &bytes).await?,
        };
        Ok(program("applied", answered(&response), view))
    }

    /// Waits for what a worker can do: a delivery that can be claimed, or a node whose inputs are all there.
    pub(super) async fn next_delivery(
        &self,
        worker: &str,
        subject: &Subject,
        view: View,
        items: &Items,
    ) -> Result<Answer, Error> {
        let run = run_of(subject)?;
        let capability = self.worker_capability(worker)?;
        self.for_workers_alone(subject).await?;
        let engine = &self.session.engine;
        let worker = engine.worker(capability, subject.mission_id.clone(), run.clone());
        let mut states = engine.watch(&subject.mission_id, &run).await?;
        loop {
            let state = Arc::clone(&states.borrow_and_update());
            if state.lifecycle.is_terminal() {
                return Err(ended(&state));
            }
            if let Some(node) = admissible(&state) {
                return Ok(program("delivery", node_offer(&state, &node)?, view));
            }
            tokio::select! {
                delivery = worker.next_delivery() => {
                    let state = self.session.state(subject).await?;
                    return Ok(program("delivery", delivery_offer(&state, &delivery?)?, view));
                }
                changed = states.changed() => changed.map_err(|_| engine_gone())?,
                () = items.closed() => return Err(super::gone()),
            }
        }
    }

    /// Does what a worker asks.
    pub(super) async fn work(&self, work: Work, view: View) -> Result<Answer, Error> {
        let subject = Subject::run(work.mission_id.clone(), work.run_id.clone());
        let capability = self.worker_capability(&work.worker)?;
        let request = RequestId::new(work.request_id.as_str())?;
        self.for_workers_alone(&subject).await?;
        let desk = Desk {
            office: self,
            worker: self.session.engine.worker(
                capability.clone(),
                work.mission_id.clone(),
                work.run_id.clone(),
            ),
            capability,
            subject,
            request,
        };
        let (kind, value) = desk.answer(work.ask).await?;
        Ok(program(kind, value, view))
    }

    /// A worker's capability: its own name, and nothing that anybody proved.
    fn worker_capability(&self, name: &str) -> Result<Capability, Error> {
        Ok(self
            .session
            .host
            .capability(worker_name(name)?, ActorKind::Agent, WORKER, Value::Null))
    }

    /// Refuses a coding run: its nodes are the engine's own.
    async fn for_workers_alone(&self, subject: &Subject) -> Result<(), Error> {
        for_workers(&self.session.state(subject).await?.contract)
    }

    /// Refuses the mission of a coding run; one that is not open yet is none.
    async fn not_coding(&self, mission: &MissionId) -> Result<(), Error> {
        match self.session.engine.mission_state(mission).await {
            Ok(state) => for_workers(&state.contract),
            Err(error) if error.code() == Code::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// How a run of a mission for workers stands, from its events.
pub(super) fn run(reader: &Reader, subject: &Subject, view: View) -> Result<Answer, Error> {
    let known = reader.is_admitted(subject);
    if !known {
        let message = format!(
            "expected a run of mission {}, found none of that name",
            subject.mission_id
        );
        return Err(Error::new(Code::RunNotFound, message));
    }
    let (state, _) = reader.state(subject)?;
    for_workers(&state.contract)?;
    let report = aiws::canonical::to_value(&praxis_model::report::of(&state))?;
    let records =
        |values: Vec<Result<Value, Error>>| values.into_iter().collect::<Result<Vec<_>, _>>();
    let value = object! {
        "report": report,
        "operations": records(state.operations.values().map(aiws::canonical::to_value).collect())?,
        "attempts": records(state.attempts.values().map(aiws::canonical::to_value).collect())?,
        "approvals": records(state.approvals.values().map(aiws::canonical::to_value).collect())?,
        "deliveries": records(state.deliveries.values().map(|delivery| aiws::canonical::to_value(&delivery.record)).collect())?,
        "holds": records(state.holds.values().map(aiws::canonical::to_value).collect())?,
        "manifests": records(state.manifests.values().map(|committed| aiws::canonical::to_value(&*committed.manifest)).collect())?,
    };
    Ok(program("run", value, view))
}

/// The name of a worker. It is of its own kind, so that no worker and no person take each other's request ids.
fn worker_name(name: &str) -> Result<ActorId, Error> {
    let plain = name.chars().count() <= 128
        && name
            .strip_prefix("agent:")
            .is_some_and(|rest| !rest.trim().is_empty())
        && crate::render::escape::line(name) == name;
    if plain {
        return ActorId::new(name);
    }
    let message = "expected a worker's name of the form agent:NAME, at most 128 plain characters";
    Err(Error::new(Code::Usage, message))
}

/// Refuses the contract of a coding run.
fn for_workers(contract: &Contract) -> Result<(), Error> {
    if Job::named_in(contract).is_none() {
        return Ok(());
    }
    let message = format!(
        "expected a mission for workers, found the coding run of mission {}; its nodes are the engine's own, and people decide on it with praxis approve, deny, reconcile and the like",
        contract.mission_id
    );
    Err(Error::new(Code::AuthorizationDenied, message))
}

fn ended(state: &RunState) -> Error {
    let message = format!(
        "expected a run that has not ended, found it {}; there is no more work in it",
        state.lifecycle.name()
    );
    Error::new(Code::TerminalExecution, message)
}

fn engine_gone() -> Error {
    let message = "expected an open engine, found that it closes; ask the next one";
    Error::new(Code::ActorLost, message)
}

fn run_of(subject: &Subject) -> Result<RunId, Error> {
    let run = subject.run_id.clone();
    run.ok_or_else(|| Error::new(Code::RunNotFound, "expected a run, found a mission"))
}

fn intent_name(intent: &Intent) -> &'static str {
    match intent {
        Intent::Command { body } => body.kind().name(),
        Intent::Boundary(_) => "boundary",
        Intent::Admit(_) => "admit",
        Intent::DispatchNode { .. } => "dispatchNode",
        Intent::RetryOperation { .. } => "retryOperation",
    }
}

/// The first node that could be admitted now: every input is acknowledged, or it has none.
fn admissible(state: &RunState) -> Option<NodeId> {
    let steps = plan(state, &[], now_ms().max(state.last_ms));
    steps.into_iter().find_map(|step| match step {
        Step::Admit { node_id } => Some(node_id),
        _ => None,
    })
}

fn is_admissible(state: &RunState, node: &NodeId) -> bool {
    let steps = plan(state, &[], now_ms().max(state.last_ms));
    steps.contains(&Step::Admit {
        node_id: node.clone(),
    })
}

fn delivery_offer(state: &RunState, delivery: &aiws::record::Delivery) -> Result<Value, Error> {
    let node = &delivery.recipient.node_id;
    let manifest = state.manifests.get(&delivery.handoff.handoff_id);
    let manifest = manifest.map(|committed| aiws::canonical::to_value(&*committed.manifest));
    Ok(object! {
        "delivery": aiws::canonical::to_value(delivery)?,
        "node": node_value(state, node)?,
        "manifests": manifest.into_iter().collect::<Result<Vec<Value>, _>>()?,
    })
}

fn node_offer(state: &RunState, node: &NodeId) -> Result<Value, Error> {
    let to_it = state
        .deliveries
        .values()
        .map(|delivery| &delivery.record)
        .filter(|delivery| {
            delivery.recipient.node_id == *node && delivery.state == DeliveryState::Acknowledged
        });
    let manifests = to_it.filter_map(|delivery| state.manifests.get(&delivery.handoff.handoff_id));
    let manifests = manifests.map(|committed| aiws::canonical::to_value(&*committed.manifest));
    Ok(object! {
        "delivery": Value::Null,
        "node": node_value(state, node)?,
        "manifests": manifests.collect::<Result<Vec<Value>, _>>()?,
    })
}

fn find_node<'a>(state: &'a RunState, id: &NodeId) -> Option<&'a aiws::record::Node> {
    state
        .graph
        .as_ref()?
        .nodes
        .iter()
        .find(|node| node.id == *id)
}

fn node_value(state: &RunState, id: &NodeId) -> Result<Value, Error> {
    let node = find_node(state, id).map(aiws::canonical::to_value);
    Ok(node.transpose()?.unwrap_or(Value::Null))
}

/// What an accepted command answers; `event` is none for a replay.
fn answered(response: &Response) -> Value {
    let event = response
        .event
        .as_ref()
        .map(|sealed| sealed.hash.to_string());
    let head = object! { "revision": response.revision.to_string(), "event": event };
    let result = response.result.clone();
    with(head, object! { "result": result })
}

fn with(value: Value, more: Value) -> Value {
    let members = |value: Value| match value {
        Value::Object(members) => members,
        _ => Object::new(),
    };
    let mut all = members(value);
    all.extend(members(more));
    Value::Object(all)
}

/// An answer that is for programs alone.
fn program(kind: &str, members: Value, view: View) -> Answer {
    let value = json::object(kind, members);
    Answer::done(value, view, |_| String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_names_of_their_own() {
        assert_eq!(worker_name("agent:w1").unwrap().as_str(), "agent:w1");
        for odd in [
            "alice",
            "agent:",
            "agent: ",
            "system:engine",
            "rule:x",
            "agent:a\nb",
        ] {
            assert_eq!(worker_name(odd).unwrap_err().code(), Code::Usage, "{odd:?}");
        }
        assert!(worker_name(&format!("agent:{}", "x".repeat(200))).is_err());
        assert!(
            crate::session::named("--as", "agent:w1").is_err(),
            "no person is a worker"
        );
    }
}

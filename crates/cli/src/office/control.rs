//! What a person does with a run as a whole: pause, continue, recheck, cancel.
//! Invariant: each is a command of the engine; an agent is stopped only once its run is being canceled. Part of the office.

use std::sync::Arc;

use aiws::error::{Code, Error};
use aiws::id::{EvidenceId, HoldId, RunId};
use aiws::object;
use aiws::record::{AttemptStatus, Hold, HoldDecision, HoldReason, HoldState, Lifecycle};
use praxis_engine::Capability;
use praxis_model::command::{
    Body, CancelRun, FinishCancelRun, HoldProposal, Intent, PlaceHold, ResolveHold,
};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use super::person::{Said, decision_ref};
use super::{Office, Peer, blocking, branch};
use crate::answer::{Answer, View};
use crate::coding::pending::next_id;
use crate::exit::Exit;
use crate::material;
use crate::render::escape::line;
use crate::render::page::short;
use crate::render::{json, program};
use crate::request::Given;
use crate::session::now_ms;

impl Office {
    /// Places an OPERATOR hold over the run or a branch of it: what runs goes on, nothing new starts there.
    pub(super) async fn pause(
        &self,
        named: &str,
        branch: Option<&str>,
        reason: Option<String>,
        view: View,
        peer: &Peer,
    ) -> Result<Answer, Error> {
        let (subject, state) = self.meant(named).await?;
        let run = self.live(&subject, &state)?;
        let scope = branch::scope(&state, &run, branch)?;
        let what = match branch {
            None => format!("run {run}"),
            Some(node) => format!("branch {node} of run {run}"),
        };
        if operator_holds(&state).any(|hold| branch::is_of(hold, &scope)) {
            let message = format!(
                "expected {what} not to be paused, found that it is; {} continue {run} lets it go on",
                program()
            );
            return Err(Error::new(Code::StateInvalid, message));
        }
        let person = self
            .controls("pause", &run, reason.as_deref(), peer)
            .await?;
        let nodes = branch::covered(&state, &scope);
        let nodes: Vec<String> = nodes.iter().map(|node| line(node.as_str())).collect();
        let hold_id = HoldId::from(next_id(&state, "hold"));
        let hold = HoldProposal {
            hold_id: hold_id.clone(),
            scope,
            reason: HoldReason::Operator,
            owner: person.actor_id().as_id(),
            blockers: Vec::new(),
            allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
            stop_disposition: Vec::new(),
        };
        let body = Body::PlaceHold(PlaceHold { hold });
        self.send(&subject, &person, &format!("pause:{hold_id}"), body)
            .await?;
        let state = self.session.state(&subject).await?;
        let busy = in_flight(&state).count();
        let value = json::object(
            "paused",
            object! {
                "run": run.as_str(), "holdId": hold_id.as_str(), "inFlight": busy.to_string(), "branch": branch,
                "nodes": nodes.clone(),
            },
        );
        Ok(Answer::done(value, view, |_| {
            let rest = match busy {
                0 => "nothing runs".to_owned(),
                _ => "what runs now ends by itself and is recorded".to_owned(),
            };
            let covers = match branch {
                None => "nothing new starts".to_owned(),
                Some(_) => format!("nothing new starts in {}", nodes.join(", ")),
            };
            format!(
                "{what} is paused: {covers}, {rest}\nnext\n  {} continue {run}\n",
                program()
            )
        }))
    }

    /// Lifts the OPERATOR holds of the run.
    pub(super) async fn go_on(
        &self,
        named: &str,
        reason: Option<String>,
        view: View,
        peer: &Peer,
    ) -> Result<Answer, Error> {
        let (subject, state) = self.meant(named).await?;
        let run = self.live(&subject, &state)?;
        let holds: Vec<Hold> = operator_holds(&state).cloned().collect();
        if holds.is_empty() {
            let message = format!(
                "expected run {run} to be paused, found that it is not; {} show {run} says what it waits for",
                program()
            );
            return Err(Error::new(Code::StateInvalid, message));
        }
        let person = self
            .controls("continue", &run, reason.as_deref(), peer)
            .await?;
        for hold in &holds {
            self.lift(&subject, &person, hold).await?;
        }
        let value = json::object("continued", object! { "run": run.as_str() });
        let going = self.keeper.find(&run).is_some();
        Ok(Answer::done(value, view, |_| match going {
            true => format!("run {run} goes on\n"),
            false => format!("run {run} may go on\nnext\n  {} resume {run}\n", program()),
        }))
    }

    /// Looks again at what a hold waits for.
    pub(super) async fn recheck(
        &self,
        named: &str,
        reason: Option<String>,
        view: View,
        peer: &Peer,
    ) -> Result<Answer, Error> {
        let reader = self.reader();
        let name = named.to_owned();
        let (subject, hold) = blocking(move || reader.find_hold(&name)).await?;
        let state = self.session.state(&subject).await?;
        let run = self.live(&subject, &state)?;
        if !hold.allowed_decisions.contains(&HoldDecision::Recheck) {
            let message = format!(
                "expected a hold that a recheck may lift, found {}, which only the end of the run ends; {praxis} cancel {run}, or begin again: {praxis} code --from {run} --help",
                hold.reason.name(),
                praxis = program()
            );
            return Err(Error::new(Code::HoldState, message));
        }
        let about = match material::is_awaited(&hold) {
            false => object! { "run": run.as_str() },
            true => {
                let artifacts = Arc::clone(&self.session.artifacts);
                let read = move || material::whole(&state, &*artifacts, now_ms());
                object! { "run": run.as_str(), "readBack": blocking(read).await? }
            }
        };
        let said = Said {
            verb: "recheck",
            about,
            reason: reason.as_deref(),
            grants: true,
        };
        let person = self.person(peer, Given::ByVerb, None, said).await?;
        self.lift(&subject, &person, &hold).await?;
        let id = hold.hold_id.to_string();
        let value = json::object(
            "released",
            object! { "run": run.as_str(), "holdId": id.as_str(), "reason": hold.reason },
        );
        let going = self.keeper.find(&run).is_some();
        Ok(Answer::done(value, view, |_| {
            let next = match going {
                true => format!("{} attach {run}", program()),
                false => format!("{} resume {run}", program()),
            };
            format!(
                "hold {} ({}) of run {run} is lifted\nnext\n  {next}\n",
                short(&id),
                hold.reason.name()
            )
        }))
    }

    /// Asks that the run ends, stops its agent, and ends it once nothing is in flight.
    pub(super) async fn cancel(
        &self,
        named: &str,
        reason: Option<String>,
        view: View,
        peer: &Peer,
    ) -> Result<Answer, Error> {
        let (subject, state) = self.meant(named).await?;
        let run = self.live(&subject, &state)?;
        let person = self
            .controls("cancel", &run, reason.as_deref(), peer)
            .await?;
        let reason = reason.unwrap_or_else(|| "canceled by a person".to_owned());
        if state.lifecycle != Lifecycle::Canceling {
            let body = Body::CancelRun(CancelRun {
                run_id: run.clone(),
                reason: reason.clone(),
                decision_ref: decision_ref(&person)?,
            });
            self.send(&subject, &person, &format!("cancel:{run}"), body)
                .await?;
        }
        let state = self.stop_work(&subject).await?;
        let open: Vec<String> = in_flight(&state).map(|id| id.to_owned()).collect();
        if open.is_empty() {
            let body = Body::FinishCancelRun(FinishCancelRun {
                run_id: run.clone(),
                reason,
                decision_ref: decision_ref(&person)?,
            });
            self.send(&subject, &person, &format!("finish-cancel:{run}"), body)
                .await?;
        }
        let word = if open.is_empty() {
            "canceled"
        } else {
            "canceling"
        };
        let value = json::object(
            "canceled",
            object! { "run": run.as_str(), "standing": word, "open": open.clone() },
        );
        let exit = if open.is_empty() {
            Exit::Done
        } else {
            Exit::Uncertain
        };
        let answer = Answer::done(value, view, |_| match open.first() {
            None => format!("run {run} is canceled\n"),
            Some(attempt) => format!(
                "run {run} is being canceled: nothing new starts, and it ends once the outcome of attempt {} is known\nnext\n  {} unknown {run}\n  {} cancel {run}    (again, afterwards)\n",
                short(attempt),
                program(),
                program()
            ),
        });
        Ok(answer.with_exit(exit))
    }

    /// Stops what runs under a shim and waits until that is settled; what nobody knows stays as it is.
    async fn stop_work(&self, subject: &Subject) -> Result<Arc<RunState>, Error> {
        let run = run_of(subject)?;
        let mut states = self.session.engine.watch(&subject.mission_id, &run).await?;
        loop {
            let state = Arc::clone(&states.borrow_and_update());
            let (reader, looked) = (self.reader(), Arc::clone(&state));
            let stopping = blocking(move || Ok(reader.stop_shims(&looked))).await?;
            if !stopping {
                return Ok(state);
            }
            if states.changed().await.is_err() {
                return Err(Error::new(
                    Code::ActorLost,
                    "the engine closed before the agent's end was recorded; cancel again",
                ));
            }
        }
    }

    async fn lift(&self, subject: &Subject, person: &Capability, hold: &Hold) -> Result<(), Error> {
        let body = Body::ResolveHold(ResolveHold {
            hold_id: hold.hold_id.clone(),
            decision: HoldDecision::Recheck,
            decision_ref: decision_ref(person)?,
            evidence: evidence_of(person, hold)?,
            rule: None,
        });
        // Named by the decision: a recheck that was refused may be asked again.
        let request = format!("recheck:{}:{}", hold.hold_id, decision_ref(person)?);
        let request = aiws::digest::sha256(request.as_bytes()).to_string();
        self.send(subject, person, &request, body).await
    }

    async fn send(
        &self,
        subject: &Subject,
        person: &Capability,
        request: &str,
        body: Body,
    ) -> Result<(), Error> {
        let run = run_of(subject)?;
        let intent = Intent::Command { body };
        self.session
            .submit(person, &subject.mission_id, &run, request, intent)
            .await
            .map(drop)
    }

    async fn controls(
        &self,
        verb: &str,
        run: &RunId,
        reason: Option<&str>,
        peer: &Peer,
    ) -> Result<Capability, Error> {
        let said = Said {
            verb,
            about: object! { "run": run.as_str() },
            reason,
            grants: verb == "continue",
        };
        self.person(peer, Given::ByVerb, None, said).await
    }

    /// The run's id, if it has not ended.
    fn live(&self, subject: &Subject, state: &RunState) -> Result<RunId, Error> {
        let run = run_of(subject)?;
        if state.lifecycle.is_terminal() {
            let message = format!(
                "expected a run that has not ended, found run {run} {}",
                state.lifecycle.name()
            );
            return Err(Error::new(Code::TerminalExecution, message));
        }
        Ok(run)
    }
}

pub(super) fn run_of(subject: &Subject) -> Result<RunId, Error> {
    let run = subject.run_id.clone();
    run.ok_or_else(|| Error::new(Code::RunNotFound, "expected a run, found a mission"))
}

/// What the ledger cannot see, the stored record of the person's decision shows: what was read back, who says so.
fn evidence_of(person: &Capability, hold: &Hold) -> Result<Vec<EvidenceId>, Error> {
    let by_rule = hold.blockers.iter().any(|it| it.kind == HoldReason::Rule);
    match by_rule {
        true => Ok(Vec::new()),
        false => Ok(vec![EvidenceId::from(decision_ref(person)?)]),
    }
}

fn operator_holds(state: &RunState) -> impl Iterator<Item = &Hold> {
    state
        .holds
        .values()
        .filter(|hold| hold.state == HoldState::Open && hold.reason == HoldReason::Operator)
}

fn in_flight(state: &RunState) -> impl Iterator<Item = &str> {
    let open = |status| matches!(status, AttemptStatus::Dispatched | AttemptStatus::Unknown);
    state
        .attempts
        .values()
        .filter(move |attempt| open(attempt.status))
        .map(|attempt| attempt.attempt_id.as_str())
}

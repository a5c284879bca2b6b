//! What must be refused: claims of others, work that is held, outcomes without evidence.
//!
//! Invariant: whoever tries knows everything and means no good; if one of these is stored, an invariant is broken. Part of
//! the simulation.

use aiws::digest::sha256;
use aiws::error::Error;
use aiws::id::{AttemptId, DeliveryId};
use aiws::object;
use aiws::record::*;
use praxis_journal::Append;
use praxis_model::command::*;
use praxis_model::decide;
use praxis_model::plan;
use praxis_model::run::RunState;
use praxis_model::transition::Transition;
use praxis_plant::{self as plant, Plant};

use super::Sim;
use super::asks::{acknowledgement, admit, complete, reconcile, settle};
use super::early::{join_early, loop_on};
use super::hops::{self, Ask, ENGINE, Who};
use super::people::{at, newest, uncertain};
use super::process::{By, Prepared, Process, Then};
use crate::cast::{self, Cast};
use crate::invariant::Broken;
use crate::plan::{Act, Attempted, Kill};
use crate::world::Fate;

impl Sim {
    /// Somebody tries what must be refused; what is decided nevertheless is handed in.
    pub(super) fn attempted(
        &mut self,
        process: &mut Process,
        run: u8,
        what: Attempted,
        pick: u8,
    ) -> Result<Option<Prepared>, Broken> {
        self.trace
            .note(format_args!("somebody tries: {what:?} run {run}"));
        if matches!(what, Attempted::WrongToken | Attempted::OtherRun) {
            self.struck.insert(crate::fault::Fault::ForeignToken);
        }
        let Some((number, state)) = newest(process, run) else {
            return Ok(None);
        };
        if what == Attempted::BlindToHolds {
            return Ok(self.blind(process, run, number, &state));
        }
        if what == Attempted::OtherRun {
            return Ok(self.other_run(process, run, number, &state));
        }
        match self.wanted(process, &state, what, pick) {
            Ok(Some(ask)) => self.decide(process, run, number, &ask, Then::Nothing),
            Ok(None) => Ok(None),
            Err(error) => {
                self.refused(&error);
                Ok(None)
            }
        }
    }

    fn wanted(
        &mut self,
        process: &mut Process,
        state: &RunState,
        what: Attempted,
        pick: u8,
    ) -> Result<Option<Ask>, Error> {
        match what {
            Attempted::ClaimTwice => {
                let Some((id, _)) = at(&claimed(state), pick) else {
                    return Ok(None);
                };
                let mut ask = Ask::of(
                    ENGINE,
                    Body::ClaimDelivery(ClaimDelivery {
                        delivery_id: id.clone(),
                        lease_ms: None,
                    }),
                );
                ask.claim = Some(sha256(
                    format!("another {id} {}", state.head.revision).as_bytes(),
                ));
                Ok(Some(ask))
            }
            Attempted::WrongToken => {
                let Some((id, generation)) = at(&claimed(state), pick) else {
                    return Ok(None);
                };
                let body = acknowledgement(state, &id, sha256(b"made up"), generation)?;
                Ok(body.map(|body| Ask::of(ENGINE, body)))
            }
            Attempted::ExpiredClaim => expired(process, state, pick),
            Attempted::AdmitAgain => admit_again(&self.cast, state, pick),
            Attempted::RetryUnknown | Attempted::RetryBeyond => retry(state, what, pick),
            Attempted::NoEvidence => no_evidence(state, pick),
            Attempted::AgentReconciles => self.agent_reconciles(process, state, pick),
            Attempted::AgentReleases => self.agent_releases(process, state, pick),
            Attempted::SettleTwice => self.settle_twice(process, state, pick),
            Attempted::JoinEarly => join_early(state, pick),
            Attempted::CompleteEarly => complete(state).map(|wanted| wanted.map(|(ask, _)| ask)),
            Attempted::LoopOn => loop_on(state, pick),
            Attempted::BlindToHolds | Attempted::OtherRun => Ok(None),
        }
    }

    fn agent_reconciles(
        &mut self,
        process: &Process,
        state: &RunState,
        pick: u8,
    ) -> Result<Option<Ask>, Error> {
        let Some(id) = at(&uncertain(state), pick) else {
            return Ok(None);
        };
        let evidence = self.evidence(process, &object! { "agent": "it did nothing" })?;
        let ids = [evidence.clone()];
        let body = reconcile(state, &id, SettledOutcome::ConfirmedNotApplied, 0, &ids)?;
        Ok(Some(Ask::of(Who::Agent, body).with_evidence(&evidence)))
    }

    fn agent_releases(
        &mut self,
        process: &Process,
        state: &RunState,
        pick: u8,
    ) -> Result<Option<Ask>, Error> {
        let open = state
            .holds
            .values()
            .filter(|hold| hold.state == HoldState::Open);
        let open: Vec<_> = open.map(|hold| hold.hold_id.clone()).collect();
        let Some(hold_id) = at(&open, pick) else {
            return Ok(None);
        };
        let evidence = self.evidence(process, &object! { "agent": "let me go on" })?;
        let body = Body::ResolveHold(ResolveHold {
            hold_id,
            decision: HoldDecision::Recheck,
            decision_ref: cast::id("agent-decided")?,
            evidence: vec![evidence.clone()],
            rule: None,
        });
        Ok(Some(Ask::of(Who::Agent, body).with_evidence(&evidence)))
    }

    fn settle_twice(
        &mut self,
        process: &Process,
        state: &RunState,
        pick: u8,
    ) -> Result<Option<Ask>, Error> {
        let ended = state.attempts.values().filter(|attempt| {
            matches!(
                attempt.status,
                AttemptStatus::ConfirmedApplied | AttemptStatus::ConfirmedNotApplied
            )
        });
        let ended: Vec<AttemptId> = ended.map(|attempt| attempt.attempt_id.clone()).collect();
        let Some(id) = at(&ended, pick) else {
            return Ok(None);
        };
        let evidence = self.evidence(process, &object! { "once": "more" })?;
        let ids = [evidence.clone()];
        let body = settle(state, &id, SettledOutcome::ConfirmedApplied, 1, &ids)?;
        Ok(Some(Ask::of(ENGINE, body).with_evidence(&evidence)))
    }

    /// An owner whose own look at holds and cancellation is broken: the durable boundary has to refuse it.
    fn blind(
        &mut self,
        process: &Process,
        run: u8,
        number: u32,
        state: &RunState,
    ) -> Option<Prepared> {
        let open = |hold: &Hold| hold.state == HoldState::Open;
        let held = state.holds.values().any(open) || state.lifecycle == Lifecycle::Canceling;
        if !held {
            return None;
        }
        let mut blind = state.clone();
        blind.holds = Default::default();
        blind.lifecycle = Lifecycle::Running;
        let view = process.ledger.view();
        let around = self.around(process, &view);
        let steps = plan::plan(&blind, &[], around.now_ms.max(blind.last_ms));
        let act = Act {
            run,
            owner: 0,
            pick: 0,
            fate: Fate::Applied,
            cost: 1,
            kill: Kill::No,
            paired: false,
        };
        let asks = steps.iter().filter_map(|step| match step {
            plan::Step::Admit { node_id } => {
                admit(&self.cast, &blind, &act, node_id).ok().flatten()
            }
            plan::Step::Dispatch { node_id, .. } => {
                let node_id = node_id.clone();
                Some((
                    Ask::intent(ENGINE, Intent::DispatchNode { node_id }),
                    Then::Nothing,
                ))
            }
            _ => None,
        });
        let decided = asks
            .map(|(ask, _)| hops::run(&around, &blind, &ask))
            .find_map(Result::ok)?;
        Some(Prepared {
            by: By::Owner {
                run,
                number,
                epoch: state.epoch,
                next: Box::new(decided.next),
            },
            append: decided.append,
            then: Then::Nothing,
        })
    }

    /// A receipt that names another run's delivery, made up event and all.
    fn other_run(
        &mut self,
        process: &mut Process,
        run: u8,
        number: u32,
        state: &RunState,
    ) -> Option<Prepared> {
        let mut others = (0..self.cast.runs()).filter(|it| *it != run);
        let other = others.find(|it| process.owners.contains_key(it))?;
        let (_, foreign) = newest(process, other)?;
        let id = foreign.deliveries.keys().next()?.clone();
        let own = claimed(state).first().cloned()?;
        let token = process.numbered(run, number)?.tokens.get(&own.0).copied()?;
        // Decided for the own delivery; a defect could put the other's name in.
        let body = acknowledgement(state, &own.0, token.0, token.1).ok()??;
        let view = process.ledger.view();
        let around = self.around(process, &view);
        let decided = hops::run(&around, state, &Ask::of(ENGINE, body)).ok()?;
        if plant::is(Plant::ForeignReceipt) {
            let by = By::Owner {
                run,
                number,
                epoch: state.epoch,
                next: Box::new(decided.next),
            };
            return Some(Prepared {
                by,
                append: renamed(decided.append, &id)?,
                then: Then::Nothing,
            });
        }
        let ask = Ask::of(
            ENGINE,
            acknowledgement(&foreign, &id, token.0, token.1).ok()??,
        );
        // The model refuses it; only a defect lets it pass.
        let forged = hops::run(&around, state, &ask).ok()?;
        Some(Prepared {
            by: By::Owner {
                run,
                number,
                epoch: state.epoch,
                next: Box::new(forged.next),
            },
            append: forged.append,
            then: Then::Nothing,
        })
    }
}

/// The append of a receipt with another delivery's name in its events.
fn renamed(mut append: Append, id: &DeliveryId) -> Option<Append> {
    let mut event = append.sealed.first()?.event.clone();
    if let Body::AcknowledgeDelivery(body) = &mut event.command {
        body.delivery_id = id.clone();
    }
    for transition in &mut event.outcome.transitions {
        if let Transition::DeliveryMoved { delivery_id, .. } = transition {
            *delivery_id = id.clone();
        }
    }
    append.sealed = vec![hops::sealed(event).ok()?];
    Some(append)
}

fn claimed(state: &RunState) -> Vec<(DeliveryId, u64)> {
    let all = state.deliveries.values().map(|delivery| &delivery.record);
    all.filter(|record| record.state == DeliveryState::Claimed)
        .map(|record| (record.delivery_id.clone(), record.generation.get()))
        .collect()
}

/// Any claim that some owner of the process holds, whether it has expired or not.
fn expired(process: &mut Process, state: &RunState, pick: u8) -> Result<Option<Ask>, Error> {
    let tokens: Vec<_> = process
        .owners
        .values()
        .flatten()
        .flat_map(|owner| owner.tokens.iter().map(|(id, token)| (id.clone(), *token)))
        .filter(|(id, (_, generation))| claimed(state).contains(&(id.clone(), *generation)))
        .collect();
    let Some((id, (token, generation))) = at(&tokens, pick) else {
        return Ok(None);
    };
    let body = acknowledgement(state, &id, token, generation)?;
    Ok(body.map(|body| Ask::of(ENGINE, body)))
}

fn admit_again(cast: &Cast, state: &RunState, pick: u8) -> Result<Option<Ask>, Error> {
    let admitted = state
        .nodes
        .iter()
        .filter(|(_, own)| state.consumptions.contains_key(&own.activation_id));
    let admitted: Vec<_> = admitted.map(|(id, _)| id.clone()).collect();
    let Some(node_id) = at(&admitted, pick) else {
        return Ok(None);
    };
    let act = Act {
        run: 0,
        owner: 0,
        pick: 0,
        fate: Fate::Applied,
        cost: 2,
        kill: Kill::No,
        paired: false,
    };
    Ok(admit(cast, state, &act, &node_id)?.map(|(ask, _)| ask))
}

fn retry(state: &RunState, what: Attempted, pick: u8) -> Result<Option<Ask>, Error> {
    let wanted = state.operations.values().filter(|operation| {
        let last = operation
            .attempts
            .last()
            .and_then(|id| state.attempts.get(id));
        last.is_some_and(|last| match what {
            Attempted::RetryUnknown => last.status == AttemptStatus::Unknown,
            _ => last.status == AttemptStatus::ConfirmedNotApplied,
        })
    });
    let wanted: Vec<_> = wanted
        .map(|operation| operation.operation_id.clone())
        .collect();
    let operation_id = at(&wanted, pick);
    Ok(operation_id
        .map(|operation_id| Ask::intent(ENGINE, Intent::RetryOperation { operation_id })))
}

fn no_evidence(state: &RunState, pick: u8) -> Result<Option<Ask>, Error> {
    let Some(id) = at(&uncertain(state), pick) else {
        return Ok(None);
    };
    let made_up = cast::id("evidence-that-nobody-has")?;
    let body = reconcile(
        state,
        &id,
        SettledOutcome::ConfirmedNotApplied,
        0,
        &[made_up],
    )?;
    Ok(Some(Ask::of(Who::Engine(decide::LOOKUP), body)))
}

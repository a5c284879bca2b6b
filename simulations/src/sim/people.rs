//! What people do: start, grant, approve, verify, accept, hold, look again, cancel, find out.
//!
//! Invariant: a person's word goes through the run's newest owner and under every guard, with a request id of its own.
//! Part of the simulation.

use aiws::decimal::{Dec, Ms};
use aiws::error::Error;
use aiws::id::AttemptId;
use aiws::object;
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::run::RunState;

use super::Sim;
use super::asks::{run_id, settle};
use super::early::{branch_hold, give_up, summarize};
use super::hops::{self, Ask, ENGINE, Who};
use super::process::{By, Prepared, Process, Then};
use crate::cast;
use crate::invariant::Broken;
use crate::plan::Person;
use crate::world::{Response, Status};

impl Sim {
    /// What a person wants, decided; none where there is nothing of the kind to do, or it is refused.
    pub(super) fn person(
        &mut self,
        process: &mut Process,
        run: u8,
        does: Person,
        pick: u8,
    ) -> Result<Option<Prepared>, Broken> {
        self.trace
            .note(format_args!("a person: {does:?} run {run}"));
        match does {
            Person::Start => return self.start(process, run),
            Person::Grant => return self.grant(process),
            _ => {}
        }
        let Some((number, state)) = newest(process, run) else {
            return Ok(None);
        };
        let request = Some(self.request_id());
        let asked = self.asked(process, &state, does, pick);
        match asked {
            Ok(Some(ask)) => {
                let ask = ask.with_request(request);
                self.decide(process, run, number, &ask, Then::Nothing)
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.refused(&error);
                Ok(None)
            }
        }
    }

    fn start(&mut self, process: &Process, run: u8) -> Result<Option<Prepared>, Broken> {
        let body = cast::id(&cast::run_name(run)).map(|run_id| Body::StartRun(StartRun { run_id }));
        self.of_mission(process, body, Then::Own(run))
    }

    fn grant(&mut self, process: &Process) -> Result<Option<Prepared>, Broken> {
        let number = self.number();
        let body = cast::grant(&format!("grant-{number}"), Some("root"), 20)
            .map(|grant| Body::GrantCommand(GrantCommand { grant }));
        self.of_mission(process, body, Then::Nothing)
    }

    /// A command of the mission, decided.
    pub(super) fn of_mission(
        &mut self,
        process: &Process,
        body: Result<Body, Error>,
        then: Then,
    ) -> Result<Option<Prepared>, Broken> {
        let request = self.request_id();
        self.commands += 1;
        let view = process.ledger.view();
        let around = self.around(process, &view);
        let decided = body.and_then(|body| {
            let ask = Ask::of(Who::Person, body).with_request(Some(request));
            hops::mission(&around, process.mission.as_ref(), &ask)
        });
        match decided {
            Ok(decided) => Ok(Some(Prepared {
                by: By::Mission(Box::new(decided.next)),
                append: decided.append,
                then,
            })),
            Err(error) => {
                self.refused(&error);
                Ok(None)
            }
        }
    }

    fn asked(
        &mut self,
        process: &Process,
        state: &RunState,
        does: Person,
        pick: u8,
    ) -> Result<Option<Ask>, Error> {
        let run_id = run_id(state)?;
        let number = self.number();
        let body = match does {
            Person::Approve => Body::Approve(Approve {
                approval_id: cast::id(&format!("approval-{number}"))?,
                run_id,
                fingerprint: self.cast.approved(),
                decision: ApprovalDecision::Approved,
                expires_at_ms: Ms::from_u64(u64::MAX),
            }),
            Person::Revoke => {
                let all: Vec<_> = state.approvals.keys().cloned().collect();
                let Some(approval_id) = at(&all, pick) else {
                    return Ok(None);
                };
                Body::RevokeApproval(RevokeApproval {
                    approval_id,
                    run_id,
                    reason: "changed my mind".to_owned(),
                })
            }
            Person::Verify => {
                let evidence = self.evidence(process, &object! { "verified": run_id.as_str() })?;
                let body = Body::Verify(Verify {
                    assessment_id: cast::id(&format!("verification-{number}"))?,
                    run_id,
                    subject: cast::id("result")?,
                    verdict: VerificationVerdict::Pass,
                    evidence: vec![evidence.clone()],
                });
                return Ok(Some(Ask::of(ENGINE, body).with_evidence(&evidence)));
            }
            Person::Accept => Body::Accept(Accept {
                assessment_id: cast::id(&format!("acceptance-{number}"))?,
                run_id,
                subject: cast::id("result")?,
                verdict: AcceptanceVerdict::Accepted,
                evidence: Vec::new(),
            }),
            Person::Hold => Body::PlaceHold(PlaceHold {
                hold: hold(state, number)?,
            }),
            Person::Recheck => return self.recheck(process, state, pick),
            Person::Cancel => Body::CancelRun(CancelRun {
                run_id,
                reason: "enough".to_owned(),
                decision_ref: cast::id("ann-decided")?,
            }),
            Person::FinishCancel => Body::FinishCancelRun(FinishCancelRun {
                run_id,
                reason: "done".to_owned(),
                decision_ref: cast::id("ann-decided")?,
            }),
            Person::Reconcile => return self.find_out(process, state, pick),
            Person::Return => return give_back(state, pick),
            Person::HoldBranch => {
                let Some(hold) = branch_hold(state, number, pick)? else {
                    return Ok(None);
                };
                Body::PlaceHold(PlaceHold { hold })
            }
            Person::GiveUp => {
                return Ok(give_up(state, pick)?.map(|body| Ask::of(Who::Person, body)));
            }
            Person::Invalidate => return self.invalidate(process, state, pick),
            Person::Summarize => return summarize(state, number, pick),
            Person::Start | Person::Grant => return Ok(None),
        };
        Ok(Some(Ask::of(Who::Person, body)))
    }

    fn recheck(
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
        let evidence = self.evidence(process, &object! { "clear": hold_id.as_str() })?;
        let body = Body::ResolveHold(ResolveHold {
            hold_id,
            decision: HoldDecision::Recheck,
            decision_ref: cast::id("ann-decided")?,
            evidence: vec![evidence.clone()],
            rule: None,
        });
        Ok(Some(Ask::of(Who::Person, body).with_evidence(&evidence)))
    }

    /// A person has the provider close the call, looks, and says what happened.
    fn find_out(
        &mut self,
        process: &Process,
        state: &RunState,
        pick: u8,
    ) -> Result<Option<Ask>, Error> {
        let uncertain: Vec<AttemptId> = uncertain(state)
            .into_iter()
            .filter(|id| !process.expects(id))
            .collect();
        let Some(attempt_id) = at(&uncertain, pick) else {
            return Ok(None);
        };
        let said = match self.world.close(attempt_id.as_str()) {
            Status::Applied { cost } => Response::Applied { cost },
            Status::Absent => Response::NotApplied,
        };
        let wanted = self.reported(process, state, &attempt_id, said, Who::Person)?;
        Ok(wanted.map(|(ask, _)| ask))
    }
}

/// A prepared attempt that nobody will dispatch is given back by a person.
fn give_back(state: &RunState, pick: u8) -> Result<Option<Ask>, Error> {
    let prepared = state
        .attempts
        .values()
        .filter(|attempt| attempt.status == AttemptStatus::Prepared);
    let prepared: Vec<_> = prepared.map(|it| it.attempt_id.clone()).collect();
    let Some(id) = at(&prepared, pick) else {
        return Ok(None);
    };
    let body = settle(state, &id, SettledOutcome::ConfirmedNotApplied, 0, &[])?;
    Ok(Some(Ask::of(Who::Person, body)))
}

/// The newest owner's number and state.
pub(super) fn newest(process: &mut Process, run: u8) -> Option<(u32, RunState)> {
    process
        .owner(run, 0)
        .map(|owner| (owner.number, owner.state.clone()))
}

/// Attempts of which nobody knows the outcome.
pub(super) fn uncertain(state: &RunState) -> Vec<AttemptId> {
    let all = state
        .attempts
        .values()
        .filter(|attempt| match attempt.status {
            AttemptStatus::Unknown => true,
            AttemptStatus::Dispatched => attempt.epoch.get() < state.epoch,
            _ => false,
        });
    all.map(|attempt| attempt.attempt_id.clone()).collect()
}

/// One of some, by a number taken modulo their count.
pub(super) fn at<T: Clone>(some: &[T], pick: u8) -> Option<T> {
    some.get(usize::from(pick) % some.len().max(1)).cloned()
}

pub(super) fn hold(state: &RunState, number: u32) -> Result<HoldProposal, Error> {
    let run_id = run_id(state)?;
    Ok(HoldProposal {
        hold_id: cast::id(&format!("hold-{number}"))?,
        scope: HoldScope {
            kind: HoldScopeKind::Run,
            scope_ref: cast::reference(run_id.as_str())?,
            resolver_revision: Dec::from_u64(1),
        },
        reason: HoldReason::Operator,
        owner: cast::id("ann")?,
        blockers: Vec::new(),
        allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
        stop_disposition: Vec::new(),
    })
}

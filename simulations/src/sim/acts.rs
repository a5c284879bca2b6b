//! What an owner does: one of the things that it could do now, decided and ready to be handed in.
//!
//! Invariant: an owner goes by its own state, which may be out of date; the provider is called behind a durable dispatch
//! alone. Part of the simulation.

use aiws::digest::sha256;
use aiws::error::Error;
use aiws::id::{AttemptId, DeliveryId, EvidenceId, NodeId};
use aiws::json::Value;
use aiws::object;
use aiws::record::*;
use praxis_artifacts::ArtifactProvider;
use praxis_model::command::*;
use praxis_model::decide;
use praxis_model::plan::{self, Step as Planned};
use praxis_model::run::RunState;

use praxis_plant::{self as plant, Plant};

use super::Sim;
use super::asks::*;
use super::hops::{self, Around, Ask, ENGINE, Who};
use super::process::{By, Owner, Prepared, Process, Then};
use crate::cast;
use crate::invariant::Broken;
use crate::oracle::Lookup;
use crate::plan::Act;
use crate::words;
use crate::world::{Response, Status};

/// Artifacts are kept as long as anybody could want them.
pub(super) const RETAIN_MS: u64 = u64::MAX;

/// One of the things that an owner could do.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    Activate,
    Acknowledge(DeliveryId),
    Planned(Planned),
}

impl Choice {
    /// The node whose boundary it is.
    pub fn concludes(&self) -> Option<&NodeId> {
        match self {
            Self::Planned(Planned::Conclude { node_id }) => Some(node_id),
            _ => None,
        }
    }

    /// Whether it is a claim.
    pub fn claims(&self) -> bool {
        matches!(self, Self::Planned(Planned::Receive { .. }))
    }
}

/// What an owner asks for, and what follows.
pub(super) type Wanted = Result<Option<(Ask, Then)>, Error>;

impl Sim {
    /// What facts are gathered from; the clock never falls below the log's time.
    pub(super) fn around<'a>(
        &self,
        process: &'a Process,
        view: &'a praxis_journal::View,
    ) -> Around<'a> {
        let clock = praxis_journal::Clock::now_ms(&*self.clock);
        let now_ms = match plant::is(Plant::WallClock) {
            true => clock,
            false => clock.max(view.last_ms),
        };
        Around {
            view,
            artifacts: &process.artifacts,
            now_ms,
            trusting: plant::is(Plant::MaterialTrusted),
        }
    }

    /// What an owner could do now, in a fixed order.
    pub(super) fn choices(&self, process: &Process, owner: &Owner) -> Vec<Choice> {
        let state = &owner.state;
        if state.lifecycle.is_terminal() {
            return Vec::new();
        }
        if state.graph.is_none() {
            return vec![Choice::Activate];
        }
        let view = process.ledger.view();
        let around = self.around(process, &view);
        let gates = view.gates(&praxis_model::stream::Subject::mission(
            state.subject.mission_id.clone(),
        ));
        let claimed = owner.tokens.iter().filter(|(id, (_, generation))| {
            state.deliveries.get(*id).is_some_and(|delivery| {
                delivery.record.state == DeliveryState::Claimed
                    && delivery.record.generation.get() == *generation
            })
        });
        let mut all: Vec<Choice> = claimed
            .map(|(id, _)| Choice::Acknowledge(id.clone()))
            .collect();
        let now_ms = around.now_ms.max(state.last_ms);
        let steps = plan::plan(state, gates, now_ms).into_iter();
        all.extend(
            steps
                .filter(|step| self.possible(process, owner, step))
                .map(Choice::Planned),
        );
        all
    }

    /// What is not up to a person, not in flight, and not known to lead nowhere.
    fn possible(&self, process: &Process, owner: &Owner, step: &Planned) -> bool {
        match step {
            Planned::HoldForTime { .. } | Planned::FinishCancel => false,
            Planned::Lookup { attempt_id } => {
                !process.expects(attempt_id) && !owner.looked.contains(attempt_id)
            }
            Planned::SettleLostRead { attempt_id } => !process.expects(attempt_id),
            _ => true,
        }
    }

    /// Decides what an owner picks; none where it has nothing to do, or is refused by its own state.
    pub(super) fn prepare(
        &mut self,
        process: &mut Process,
        act: &Act,
    ) -> Result<Option<Prepared>, Broken> {
        let Some(owner) = process.owner(act.run, act.owner).map(|owner| owner.number) else {
            return Ok(None);
        };
        let choice = {
            let Some(owner) = process.numbered(act.run, owner) else {
                return Ok(None);
            };
            let owner = &*owner;
            // Borrowed again, for reading alone.
            let number = owner.number;
            let owners = process.owners.get(&act.run);
            let owner = owners.and_then(|owners| owners.iter().find(|it| it.number == number));
            let all = owner
                .map(|owner| self.choices(process, owner))
                .unwrap_or_default();
            let at = usize::from(act.pick) % all.len().max(1);
            all.get(at).cloned()
        };
        let Some(choice) = choice else {
            return Ok(None);
        };
        self.trace.note(format_args!(
            "run {}, owner {owner}: {}",
            act.run,
            words::plain(&choice)
        ));
        match self.prepare_choice(process, act, owner, &choice)? {
            Some(first) if act.paired => self.paired(process, act, owner, first).map(Some),
            alone => Ok(alone),
        }
    }

    pub(super) fn prepare_choice(
        &mut self,
        process: &mut Process,
        act: &Act,
        number: u32,
        choice: &Choice,
    ) -> Result<Option<Prepared>, Broken> {
        let wanted = match choice {
            Choice::Activate => activate(&self.cast, act.run),
            Choice::Acknowledge(delivery) => acknowledge(process, act.run, number, delivery),
            Choice::Planned(step) => self.planned(process, act, number, step)?,
        };
        match wanted {
            Ok(Some((ask, then))) => self.decide(process, act.run, number, &ask, then),
            Ok(None) => Ok(None),
            Err(error) => {
                self.refused(&error);
                Ok(None)
            }
        }
    }

    /// Hops 1 to 3 for an owner; a refusal is its own answer and changes nothing.
    pub(super) fn decide(
        &mut self,
        process: &mut Process,
        run: u8,
        number: u32,
        ask: &Ask,
        then: Then,
    ) -> Result<Option<Prepared>, Broken> {
        let view = process.ledger.view();
        let owners = process.owners.get(&run);
        let Some(owner) = owners.and_then(|all| all.iter().find(|it| it.number == number)) else {
            return Ok(None);
        };
        let around = self.around(process, &view);
        let named = self.named && ask.request.is_none();
        self.commands += 1;
        let ask = match named {
            true => {
                self.numbers += 1;
                let request = format!("request-{}", self.numbers);
                &ask.clone().with_request(Some(request))
            }
            false => ask,
        };
        match hops::run(&around, &owner.state, ask) {
            Ok(decided) => Ok(Some(Prepared {
                by: By::Owner {
                    run,
                    number,
                    epoch: owner.epoch,
                    next: Box::new(decided.next),
                },
                append: decided.append,
                then,
            })),
            Err(error) => {
                self.refused(&error);
                Ok(None)
            }
        }
    }

    fn planned(
        &mut self,
        process: &mut Process,
        act: &Act,
        number: u32,
        step: &Planned,
    ) -> Result<Wanted, Broken> {
        let Some(state) = process
            .numbered(act.run, number)
            .map(|owner| owner.state.clone())
        else {
            return Ok(Ok(None));
        };
        Ok(match step {
            Planned::Receive { delivery_id } => claim(&state, number, delivery_id),
            Planned::Admit { node_id } => admit(&self.cast, &state, act, node_id),
            Planned::Dispatch {
                node_id,
                operation_id,
                attempt_id,
            } => Ok(Some(dispatch(
                &self.cast,
                &state,
                act,
                node_id,
                operation_id,
                attempt_id,
            ))),
            Planned::ReturnPrepared { attempt_id } => settle(
                &state,
                attempt_id,
                SettledOutcome::ConfirmedNotApplied,
                0,
                &[],
            )
            .map(|body| Some((Ask::of(ENGINE, body), Then::Nothing))),
            Planned::Retry { operation_id } => Ok(Some((
                Ask::intent(
                    ENGINE,
                    Intent::RetryOperation {
                        operation_id: operation_id.clone(),
                    },
                ),
                Then::Nothing,
            ))),
            Planned::Conclude { node_id } => self.conclude(process, act.run, &state, node_id),
            Planned::Lookup { attempt_id } => {
                self.look_up(process, act.run, number, &state, attempt_id)
            }
            Planned::SettleLostRead { attempt_id } => {
                self.lost_read(process, act.run, number, &state, attempt_id)
            }
            Planned::CompleteRun => complete(&state),
            Planned::HoldForTime { .. } | Planned::FinishCancel => Ok(None),
        })
    }

    /// The boundary of a node that is done, or has no try left.
    fn conclude(
        &mut self,
        process: &Process,
        run: u8,
        state: &RunState,
        node_id: &NodeId,
    ) -> Wanted {
        let graph = state.graph.iter().flat_map(|graph| &graph.nodes);
        let Some(node) = graph.into_iter().find(|node| node.id == *node_id) else {
            return Ok(None);
        };
        let mut boundary = BoundaryIntent {
            node_id: node_id.clone(),
            status: OutcomeStatus::Completed,
            result: object! {},
            artifacts: Vec::new(),
            criteria: Vec::new(),
            approvals: Vec::new(),
            context: Context::default(),
            cause: None,
            hold: None,
        };
        match node.kind {
            NodeKind::Task(_) | NodeKind::Loop(_) if is_applied(state, node_id) => {
                let bytes = cast::material(run, node_id.as_str());
                boundary.artifacts = vec![self.put(process, node_id.as_str(), &bytes)?];
                if matches!(node.kind, NodeKind::Loop(_)) {
                    let own = state.nodes.get(node_id);
                    let iteration = own.map_or(1, |own| own.iteration);
                    let done = self.cast.is_done(node_id.as_str(), iteration);
                    boundary.result = object! { "done": done };
                }
            }
            NodeKind::Task(_) | NodeKind::Loop(_) => {
                boundary.status = OutcomeStatus::Failed;
                boundary.cause = Some(Cause {
                    code: "EXHAUSTED".to_owned(),
                    detail: "no try is left".to_owned(),
                });
            }
            NodeKind::Approval => {
                boundary.approvals = approval(&self.cast, state, false).into_iter().collect();
            }
            NodeKind::Decision(_) => {
                let side = self.cast.side(run, node_id.as_str());
                boundary.result = object! { "side": side };
            }
            NodeKind::End => boundary.result = object! { "disposition": "COMPLETED" },
            _ => {}
        }
        Ok(Some((
            Ask::intent(ENGINE, Intent::Boundary(boundary)),
            Then::Nothing,
        )))
    }

    /// Puts bytes; the oracle is told what came of it.
    pub(super) fn put(
        &mut self,
        process: &Process,
        key: &str,
        bytes: &[u8],
    ) -> Result<Artifact, Error> {
        let digest = sha256(bytes);
        let owner = cast::id("engine")?;
        let stored = process
            .artifacts
            .put(bytes, key, "text/plain", &owner, RETAIN_MS);
        self.oracle.put(digest.0, stored.is_ok());
        stored.map_err(|error| Error::new(error.code(), error.to_string()))
    }

    /// Stores what shows an outcome, before anything says so.
    pub(super) fn evidence(
        &mut self,
        process: &Process,
        what: &Value,
    ) -> Result<EvidenceId, Error> {
        let bytes = aiws::canonical::to_bytes(what);
        let artifact = self.put(process, "evidence", &bytes)?;
        EvidenceId::new(format!("evidence-{}", artifact.digest))
    }

    /// The read-only look-up: what it finds reconciles, and nothing found is no answer.
    fn look_up(
        &mut self,
        process: &mut Process,
        run: u8,
        number: u32,
        state: &RunState,
        attempt_id: &AttemptId,
    ) -> Wanted {
        let found = self.world.look_up(attempt_id.as_str());
        self.trace.note(format_args!(
            "  looked up {}: {}",
            words::plain(attempt_id),
            words::plain(&found)
        ));
        let said = match found {
            Status::Applied { cost } => Response::Applied { cost },
            Status::Absent if plant::is(Plant::LookupTrustsAbsence) => Response::NotApplied,
            Status::Absent => {
                self.oracle.looked_up(attempt_id.as_str(), Lookup::Nothing);
                if let Some(owner) = process.numbered(run, number) {
                    owner.looked.push(attempt_id.clone());
                }
                return Ok(None);
            }
        };
        self.oracle
            .looked_up(attempt_id.as_str(), Lookup::Conclusive(said.into()));
        self.reported(
            process,
            state,
            attempt_id,
            said,
            Who::Engine(decide::LOOKUP),
        )
    }

    /// A lost read: looked up first, and then settled by the contract's rule.
    fn lost_read(
        &mut self,
        process: &mut Process,
        run: u8,
        number: u32,
        state: &RunState,
        attempt_id: &AttemptId,
    ) -> Wanted {
        let looked = process
            .numbered(run, number)
            .is_some_and(|owner| owner.looked.contains(attempt_id));
        if !looked {
            return self.look_up(process, run, number, state, attempt_id);
        }
        let reserved = state
            .attempts
            .get(attempt_id)
            .map(|attempt| attempt.reserved);
        let body = Body::Reconcile(Reconcile {
            run_id: run_id(state)?,
            attempt_id: attempt_id.clone(),
            outcome: SettledOutcome::ConfirmedNotApplied,
            actual: reserved.unwrap_or_default(),
            evidence: Vec::new(),
        });
        Ok(Some((
            Ask::of(Who::Engine(decide::LOST_READ_RULE), body),
            Then::Nothing,
        )))
    }

    /// What an answer makes of an attempt: settled by who dispatched it, reconciled by who took over.
    pub(super) fn reported(
        &mut self,
        process: &Process,
        state: &RunState,
        attempt_id: &AttemptId,
        said: Response,
        who: Who,
    ) -> Wanted {
        let Some(attempt) = state.attempts.get(attempt_id) else {
            return Ok(None);
        };
        let uncertain = match attempt.status {
            AttemptStatus::Unknown => true,
            AttemptStatus::Dispatched => attempt.epoch.get() < state.epoch,
            _ => return Ok(None),
        };
        let (outcome, actual) = match said {
            Response::Applied { cost } => (SettledOutcome::ConfirmedApplied, cost),
            Response::NotApplied => (SettledOutcome::ConfirmedNotApplied, 0),
            // What is uncertain already does not become more so.
            Response::Lost if uncertain => return Ok(None),
            Response::Lost if plant::is(Plant::TimeoutIsFailure) => {
                (SettledOutcome::ConfirmedNotApplied, 0)
            }
            Response::Lost => {
                let body = settle(state, attempt_id, SettledOutcome::Unknown, 0, &[])?;
                return Ok(Some((Ask::of(who, body), Then::Nothing)));
            }
        };
        let record = object! { "attempt": attempt_id.as_str(), "said": format!("{said:?}") };
        let evidence = self.evidence(process, &record)?;
        let ids = [evidence.clone()];
        let (body, who) = match uncertain {
            true => (
                reconcile(state, attempt_id, outcome, actual, &ids)?,
                match who {
                    Who::Engine(_) => Who::Engine(decide::LOOKUP),
                    other => other,
                },
            ),
            false => (settle(state, attempt_id, outcome, actual, &ids)?, who),
        };
        Ok(Some((
            Ask::of(who, body).with_evidence(&evidence),
            Then::Nothing,
        )))
    }
}

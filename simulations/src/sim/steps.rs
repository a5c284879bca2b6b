//! One step of the plan.
//!
//! Invariant: a step that finds nothing of its kind does nothing. Part of the simulation.

use super::*;
use crate::disk::Strike;
use crate::oracle::Response as Told;
use crate::plan::{Act, Flush};
use crate::words;
use crate::world::Response;
use praxis_plant::{self as plant, Plant};

impl Sim {
    pub(super) fn step(&mut self, process: &mut Process, step: &Step) -> Result<Flow, Broken> {
        match step {
            Step::Act(act) => self.act(process, act),
            Step::Claim { run } => self.claim(process, *run),
            Step::Progress { run, rounds } => self.progress(process, *run, *rounds),
            Step::Together { acts } => self.together(process, acts),
            Step::HoldBack(act) => {
                let prepared = self.prepare(process, act)?;
                process.held.extend(prepared);
                Ok(Flow::Goes)
            }
            Step::HandIn { pick } => {
                let at = usize::from(*pick) % process.held.len().max(1);
                match process.held.remove(at) {
                    Some(prepared) => {
                        self.struck.insert(Fault::MessageLate);
                        self.commit(process, vec![prepared])
                    }
                    None => Ok(Flow::Goes),
                }
            }
            Step::Person { run, does, pick } => {
                let prepared = self.person(process, *run, *does, *pick)?;
                self.commit(process, prepared.into_iter().collect())
            }
            Step::Try { run, what, pick } => {
                let prepared = self.attempted(process, *run, *what, *pick)?;
                self.commit(process, prepared.into_iter().collect())
            }
            Step::Again { pick, other_body } => self.again(process, *pick, *other_body),
            Step::Hear { pick, owner, twice } => self.hear(process, *pick, *owner, *twice),
            Step::Lose { pick } => {
                let at = usize::from(*pick) % process.heard.len().max(1);
                if let Some(heard) = process.heard.get_mut(at) {
                    self.struck.insert(Fault::MessageLost);
                    heard.response = Response::Lost;
                }
                Ok(Flow::Goes)
            }
            Step::WorldLate => {
                if self.world.late() {
                    self.struck.insert(Fault::SettlesLate);
                }
                self.show_world();
                Ok(Flow::Goes)
            }
            Step::Takeover { run, beside } => self.take_over(process, *run, *beside),
            Step::Kill => {
                self.struck.insert(Fault::KillInTakeover);
                Ok(Flow::Dies)
            }
            Step::Restart => {
                // Closed as it should be: the index is written first.
                drop(process.ledger.flush_index());
                Ok(Flow::Dies)
            }
            Step::Power { outage, again } => {
                self.arm(*outage, again.clone());
                Ok(Flow::Goes)
            }
            Step::Strike { after, fault } => {
                if let Some(strike) = Fault::named(fault).and_then(Strike::of) {
                    self.disk.arm(u64::from(*after), strike);
                }
                Ok(Flow::Goes)
            }
            Step::Index { does } => self.index(process, *does),
            Step::Clock { by } => {
                let fault = if *by < 0 {
                    Fault::ClockBack
                } else {
                    Fault::ClockForward
                };
                self.struck.insert(fault);
                self.clock.jump(*by);
                Ok(Flow::Goes)
            }
            Step::Freeze { on } => {
                self.struck.insert(Fault::ClockFrozen);
                self.clock.freeze(*on);
                Ok(Flow::Goes)
            }
            Step::Outbox {
                consumer,
                take,
                acknowledges,
            } => self.outbox(process, *consumer, *take, *acknowledges),
            Step::Artifact { does, pick } => self.keep(process, *does, *pick),
            Step::Verify => {
                self.verify(process)?;
                Ok(Flow::Goes)
            }
            Step::Audit => self.audit(process),
            Step::Damage { .. } => Ok(Flow::Ends),
        }
    }

    /// The newest owner claims, if there is something to claim.
    fn claim(&mut self, process: &mut Process, run: u8) -> Result<Flow, Broken> {
        match self.picked(process, run, acts::Choice::claims) {
            Some(act) => self.act(process, &act),
            None => Ok(Flow::Goes),
        }
    }

    /// The act by which the newest owner makes a choice of some kind, if it has one.
    pub(super) fn picked(
        &self,
        process: &Process,
        run: u8,
        kind: impl Fn(&acts::Choice) -> bool,
    ) -> Option<Act> {
        let owner = process.owners.get(&run)?.last()?;
        let at = self.choices(process, owner).iter().position(kind)?;
        Some(Act {
            run,
            owner: 0,
            pick: u8::try_from(at).ok()?,
            fate: crate::world::Fate::Applied,
            cost: 1,
            kill: Kill::No,
            paired: false,
        })
    }

    fn act(&mut self, process: &mut Process, act: &Act) -> Result<Flow, Broken> {
        let Some(prepared) = self.prepare(process, act)? else {
            return Ok(Flow::Goes);
        };
        self.count_deposed(process, act, &prepared);
        if act.kill == Kill::BeforeCommit {
            self.struck.insert(Fault::KillBeforeCommit);
            return Ok(Flow::Dies);
        }
        let called = matches!(prepared.then, Then::Call { .. });
        let flow = self.commit(process, vec![prepared])?;
        match act.kill {
            Kill::AfterCommit => {
                self.struck.insert(Fault::KillAfterCommit);
                Ok(Flow::Dies)
            }
            Kill::InCall if called && flow == Flow::Dies => {
                self.struck.insert(Fault::KillInCall);
                Ok(flow)
            }
            _ => Ok(flow),
        }
    }

    fn count_deposed(&mut self, process: &Process, act: &Act, prepared: &Prepared) {
        let deposed = act.owner > 0
            && process
                .owners
                .get(&act.run)
                .is_some_and(|all| all.len() > 1);
        if !deposed {
            return;
        }
        let kind = prepared
            .append
            .sealed
            .first()
            .map(|sealed| sealed.event.kind);
        let fault = match kind {
            Some(praxis_model::command::CommandType::AcknowledgeDelivery) => {
                Fault::DeposedAcknowledges
            }
            Some(praxis_model::command::CommandType::Dispatch) => Fault::DeposedCalls,
            _ => Fault::DeposedWrites,
        };
        self.struck.insert(fault);
    }

    fn together(&mut self, process: &mut Process, acts: &[Act]) -> Result<Flow, Broken> {
        let mut batch = Vec::new();
        for act in acts {
            batch.extend(self.prepare(process, act)?);
        }
        self.commit(process, batch)
    }

    /// An earlier request again: the very same, or another body under its id.
    fn again(&mut self, process: &mut Process, pick: u8, other_body: bool) -> Result<Flow, Broken> {
        let at = usize::from(pick) % self.requests.len().max(1);
        let Some(mut append) = self.requests.get(at).cloned() else {
            return Ok(Flow::Goes);
        };
        self.struck.insert(if other_body {
            Fault::OtherBody
        } else {
            Fault::MessageTwice
        });
        if other_body {
            let Some(first) = append.sealed.first() else {
                return Ok(Flow::Goes);
            };
            let mut event = first.event.clone();
            event.request_digest = aiws::digest::sha256(b"another body");
            append.sealed = vec![hops::sealed(event).map_err(|error| self.internal(&error))?];
        }
        let prepared = Prepared {
            by: By::Nobody,
            append,
            then: Then::Nothing,
        };
        self.commands += 1;
        let requests = self.requests.len();
        let flow = self.commit(process, vec![prepared])?;
        self.requests.truncate(requests);
        Ok(flow)
    }

    /// An answer arrives at an owner, which settles or reconciles by it.
    fn hear(
        &mut self,
        process: &mut Process,
        pick: u8,
        age: u8,
        twice: bool,
    ) -> Result<Flow, Broken> {
        let at = usize::from(pick) % process.heard.len().max(1);
        let Some(heard) = process.heard.get(at).cloned() else {
            return Ok(Flow::Goes);
        };
        let Some(owner) = process.owner(heard.run, age) else {
            return Ok(Flow::Goes);
        };
        let (number, state) = (owner.number, owner.state.clone());
        if age > 0 {
            self.struck.insert(Fault::DeposedSettles);
        }
        self.trace.note(format_args!(
            "owner {number} hears {}",
            words::plain(&heard)
        ));
        self.oracle
            .response(heard.attempt.as_str(), heard.response.into());
        let wanted = self.reported(
            process,
            &state,
            &heard.attempt,
            heard.response,
            hops::ENGINE,
        );
        let (ask, then): (Ask, Then) = match wanted {
            Ok(Some(wanted)) => wanted,
            Ok(None) => {
                // Nothing follows from it for this owner; a deposed one leaves it to the newest.
                if age == 0 {
                    process.heard.remove(at);
                }
                return Ok(Flow::Goes);
            }
            Err(error) => {
                self.refused(&error);
                return Ok(Flow::Goes);
            }
        };
        let Some(prepared) = self.decide(process, heard.run, number, &ask, then)? else {
            if age == 0 {
                self.unsettled(process, at, &heard);
            }
            return Ok(Flow::Goes);
        };
        let before = self.acknowledged.len();
        let flow = self.commit(process, vec![prepared])?;
        if self.acknowledged.len() > before && !twice {
            process.heard.remove(at);
        }
        Ok(flow)
    }

    /// An answer that the model refuses as it is: what cannot be settled as said is UNKNOWN, never lost.
    fn unsettled(&mut self, process: &mut Process, at: usize, heard: &process::Heard) {
        match process.heard.get_mut(at) {
            Some(slot) if heard.response != Response::Lost => slot.response = Response::Lost,
            _ => drop(process.heard.remove(at)),
        }
    }

    /// The flusher's work, in parts between which anything may happen.
    pub(super) fn index(&mut self, process: &mut Process, does: Flush) -> Result<Flow, Broken> {
        match does {
            Flush::Begin if process.flush.is_none() => {
                process.flush = process.ledger.begin_flush().map(|job| (job, None));
            }
            Flush::Write => {
                if let Some((job, result)) = &mut process.flush
                    && result.is_none()
                {
                    *result = Some(job.write());
                    self.struck.insert(Fault::CrashInFlush);
                }
            }
            Flush::End => self.end_flush(process),
            Flush::Whole => {
                self.end_flush(process);
                drop(process.ledger.flush_index());
            }
            Flush::Begin => {}
        }
        let closed = process.ledger.read_only().is_some();
        if closed && self.disk.has_power() {
            return Ok(Flow::Dies);
        }
        if self.disk.has_power() {
            self.see(process)?;
        }
        Ok(Flow::Goes)
    }

    pub(super) fn end_flush(&mut self, process: &mut Process) {
        if let Some((job, result)) = process.flush.take() {
            let result = result.unwrap_or_else(|| job.write());
            drop(process.ledger.end_flush(job, result));
        }
    }

    /// A consumer reads what it has not acknowledged, stores it, and may say so.
    fn outbox(
        &mut self,
        process: &mut Process,
        consumer: u8,
        take: u8,
        acknowledges: bool,
    ) -> Result<Flow, Broken> {
        let name = format!("consumer-{consumer}");
        let id: ConsumerId = cast::id(&name).map_err(|error| self.internal(&error))?;
        let Ok(pending) = process.ledger.pending(&id, usize::from(take)) else {
            return Ok(Flow::Goes);
        };
        // The defect: what was read before is not read again, acknowledged or not.
        let read = self.consumed.get(&consumer).copied().unwrap_or(0);
        let forgets = plant::is(Plant::OutboxAdvancesOnRead);
        let pending = pending
            .into_iter()
            .filter(|(sequence, _)| !forgets || *sequence > read)
            .collect::<Vec<_>>();
        let events: Vec<(u64, [u8; 32])> = pending
            .iter()
            .map(|(sequence, sealed)| (*sequence, sealed.hash.0))
            .collect();
        self.oracle.delivered(&name, &events)?;
        let last = events.last().map(|(sequence, _)| *sequence);
        self.consumed.extend(last.map(|last| (consumer, last)));
        if let Some(sequence) = last.filter(|_| acknowledges) {
            let flow = self.no_flush_in_hand(process);
            self.oracle.acknowledged(&name, sequence);
            if process.ledger.acknowledge(&id, sequence).is_ok() && self.disk.has_power() {
                self.oracle.cursor_kept(&name, sequence);
            }
            if process.ledger.read_only().is_some() && self.disk.has_power() {
                return Ok(Flow::Dies);
            }
            if self.disk.has_power() {
                self.see(process)?;
            }
            return Ok(flow);
        }
        Ok(Flow::Goes)
    }

    /// The index takes one write at a time.
    fn no_flush_in_hand(&mut self, process: &mut Process) -> Flow {
        self.end_flush(process);
        Flow::Goes
    }
}

impl From<Response> for Told {
    fn from(response: Response) -> Self {
        match response {
            Response::Applied { cost } => Self::Applied { cost },
            Response::NotApplied => Self::NotApplied,
            Response::Lost => Self::Lost,
        }
    }
}

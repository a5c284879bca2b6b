//! The healed end: no fault any more, and everything that was begun comes to its end.
//!
//! Invariant: only what the product itself plans and what people are asked for is done; if that does not lead to the end,
//! the product has lost its way. Part of the simulation.

use aiws::decimal::Dec;
use aiws::error::Code;
use aiws::id::HoldId;
use aiws::json::Value;
use aiws::record::{HoldReason, Lifecycle, NodeKind};
use praxis_model::plan::{Wait, waits};
use praxis_model::run::{NodeStatus, RunState};

use super::people::newest;
use super::process::Process;
use super::{Flow, Sim};
use crate::invariant::{Broken, Invariant};
use crate::plan::{Act, Kill, Person, Step};
use crate::world::Fate;

/// Rounds in which everything must come to rest; a run has some forty steps.
const ROUNDS: usize = 400;

impl Sim {
    /// Heals everything and goes on to the end.
    pub(super) fn heal(&mut self, mut process: Process) -> Result<Process, Broken> {
        self.trace.note(format_args!("all is healed"));
        self.healing = true;
        // Asked before it is forgotten.
        self.was_struck();
        self.disk.heal();
        self.mend();
        self.armed = None;
        self.clock.freeze(false);
        self.world.late();
        self.show_world();
        if self.struck_since {
            // An artifact store whose directory could not be synced takes nothing until it is opened again.
            let risen = self.restarted(process)?;
            process = self.live(risen, Flow::Goes)?;
        }
        for round in 0..ROUNDS {
            // Twice the time of a claim goes by in all.
            self.clock.tick(50);
            let mut busy = false;
            for run in 0..self.cast.runs() {
                let (flow, alive) = self.forward(&mut process, run, round)?;
                healthy(flow, "its runs went on")?;
                busy |= alive;
            }
            if !busy {
                return self.at_rest(process);
            }
        }
        Err(Broken::new(
            Invariant::ComesToRest,
            format!("after {ROUNDS} rounds without a fault something still goes on"),
        ))
    }

    /// A run goes on for so many rounds, as far as it comes.
    pub(super) fn progress(
        &mut self,
        process: &mut Process,
        run: u8,
        rounds: u8,
    ) -> Result<Flow, Broken> {
        if process.owner(run, 0).is_none() {
            let does = Person::Start;
            return self.step(process, &Step::Person { run, does, pick: 0 });
        }
        for round in 0..rounds {
            let (flow, alive) = self.forward(process, run, usize::from(round))?;
            if flow != Flow::Goes || !self.disk.has_power() {
                return Ok(Flow::Dies);
            }
            if !alive {
                break;
            }
        }
        Ok(Flow::Goes)
    }

    /// One round for a run: answers are heard, its owner does something, people do what it waits for. Whether the
    /// process lives, and whether the run does.
    fn forward(
        &mut self,
        process: &mut Process,
        run: u8,
        round: usize,
    ) -> Result<(Flow, bool), Broken> {
        let mut flow = Flow::Goes;
        for _ in 0..process.heard.len() {
            let Some(at) = process.heard.iter().position(|heard| heard.run == run) else {
                break;
            };
            let pick = u8::try_from(at).unwrap_or(0);
            let hear = Step::Hear {
                pick,
                owner: 0,
                twice: false,
            };
            flow = flow.then(self.step(process, &hear)?);
            if flow != Flow::Goes {
                return Ok((flow, true));
            }
        }
        let Some((number, state)) = newest(process, run) else {
            return Ok((flow, false));
        };
        if state.lifecycle.is_terminal() {
            // What is uncertain is found out all the same: its reservation waits for it.
            if super::power::at_rest(&state) {
                return Ok((flow, false));
            }
            let does = [Person::Reconcile, Person::Return];
            return Ok((self.people_do(process, run, &does)?, true));
        }
        let choices = {
            let owners = process.owners.get(&run);
            let owner = owners.and_then(|all| all.iter().find(|it| it.number == number));
            owner
                .map(|owner| self.choices(process, owner))
                .unwrap_or_default()
        };
        let idle = choices.is_empty();
        if !idle {
            // Not always the first, or one that is refused for ever would keep the others from their turn.
            let pick = u8::try_from(round % choices.len()).unwrap_or(0);
            let act = Act {
                run,
                owner: 0,
                pick,
                fate: Fate::Applied,
                cost: 1,
                kill: Kill::No,
                paired: false,
            };
            self.last_refusal = None;
            flow = self.step(process, &Step::Act(act))?;
            let refused = self.last_refusal.take();
            if let Some(refused) = refused.filter(|it| it.code() == Code::BudgetExceeded) {
                // The budget is spent, which no recovery gives back: a person gives the run up.
                let asked = refused.details.get("amount").and_then(Value::as_str);
                let asked: Dec = asked.unwrap_or_default().parse().unwrap_or_default();
                self.oracle.over_budget(asked)?;
                flow = flow.then(self.people_do(process, run, &[Person::Cancel])?);
            }
        }
        if flow == Flow::Goes {
            flow = self.answer_waits(process, run, idle)?;
        }
        Ok((flow, true))
    }

    /// People do what the run waits for. A run that does nothing and waits for nobody has lost its way.
    fn answer_waits(&mut self, process: &mut Process, run: u8, idle: bool) -> Result<Flow, Broken> {
        let Some((_, state)) = newest(process, run) else {
            return Ok(Flow::Goes);
        };
        if state.lifecycle.is_terminal() {
            return Ok(Flow::Goes);
        }
        let now_ms = praxis_journal::Clock::now_ms(&*self.clock).max(state.last_ms);
        let waits = waits(&state, &[], now_ms);
        let does = waits.iter().filter_map(|wait| {
            Some(match wait {
                Wait::Approval { .. } => Person::Approve,
                Wait::Acceptance { .. } => Person::Accept,
                Wait::Verification { .. } => Person::Verify,
                Wait::Uncertain { .. } => Person::Reconcile,
                Wait::Hold { hold_id } if never_clears(&state, hold_id) => Person::Cancel,
                Wait::Hold { .. } => Person::Recheck,
                Wait::Running { .. } | Wait::Claim { .. } | Wait::Gate(_) | Wait::Recovery => {
                    return None;
                }
            })
        });
        let ends = (state.lifecycle == Lifecycle::Canceling).then_some(Person::FinishCancel);
        let does: Vec<Person> = does.chain(ends).collect();
        let lost = idle && waits.is_empty() && ends.is_none() && state.graph.is_some();
        if lost && left_out(&state) {
            // Choices led past its end: nobody but a person ends such a run.
            return self.people_do(process, run, &[Person::Cancel]);
        }
        match lost && self.healing {
            false => self.people_do(process, run, &does),
            true => Err(Broken::new(
                Invariant::ComesToRest,
                format!("run {run} has nothing to do and waits for nobody"),
            )),
        }
    }

    fn people_do(
        &mut self,
        process: &mut Process,
        run: u8,
        does: &[Person],
    ) -> Result<Flow, Broken> {
        for does in does.iter().copied() {
            let flow = self.step(process, &Step::Person { run, does, pick: 0 })?;
            if flow != Flow::Goes || !self.disk.has_power() {
                return Ok(Flow::Dies);
            }
        }
        Ok(Flow::Goes)
    }

    fn at_rest(&mut self, mut process: Process) -> Result<Process, Broken> {
        self.verify(&process)?;
        if self.named {
            let flow = self.audit(&mut process)?;
            healthy(flow, "everything was looked at")?;
        }
        for consumer in 0..2 {
            self.drained(&mut process, consumer)?;
        }
        let Some(process) = self.restarted(process)? else {
            return Err(Broken::new(
                Invariant::Opens,
                "the store did not open in the healed end",
            ));
        };
        self.verify(&process)?;
        self.oracle.rest()?;
        Ok(process)
    }
}

impl Sim {
    /// A consumer reads on until it has everything.
    fn drained(&mut self, process: &mut Process, consumer: u8) -> Result<(), Broken> {
        let name = format!("consumer-{consumer}");
        let id = crate::cast::id(&name).map_err(|error| self.internal(&error))?;
        let end = process.ledger.view().sequence();
        let cursor = |process: &Process| process.ledger.view().acknowledged(&id);
        let mut before = None;
        while cursor(process) < end {
            let at = cursor(process);
            if before == Some(at) {
                let what = format!("{name} stands at {at} of {end}, and gets nothing more");
                return Err(Broken::new(Invariant::OutboxAgain, what));
            }
            before = Some(at);
            let read = Step::Outbox {
                consumer,
                take: u8::MAX,
                acknowledges: true,
            };
            let flow = self.step(process, &read)?;
            healthy(flow, "a consumer read on")?;
        }
        Ok(())
    }
}

/// Whether a hold is for what no recheck ever finds clear.
fn never_clears(state: &RunState, id: &HoldId) -> bool {
    let never = |reason: HoldReason| {
        matches!(
            reason,
            HoldReason::AttemptLimit | HoldReason::InvalidatedInput
        )
    };
    state.holds.get(id).is_some_and(|hold| {
        never(hold.reason) || hold.blockers.iter().any(|blocker| never(blocker.kind))
    })
}

/// Whether choices have left an END out, or a gate before one.
fn left_out(state: &RunState) -> bool {
    let nodes = state.graph.iter().flat_map(|graph| &graph.nodes);
    let ends = nodes.filter(|node| {
        matches!(
            node.kind,
            NodeKind::End | NodeKind::Verification | NodeKind::Acceptance
        )
    });
    let skipped = |id| {
        let own = state.nodes.get(id);
        own.is_some_and(|own| own.status == NodeStatus::Skipped)
    };
    ends.map(|node| &node.id).any(skipped)
}

/// Nothing ends a process any more once all is healed.
fn healthy(flow: Flow, when: &str) -> Result<(), Broken> {
    match flow {
        Flow::Goes => Ok(()),
        _ => Err(Broken::new(
            Invariant::ComesToRest,
            format!("the process died without a fault while {when}"),
        )),
    }
}

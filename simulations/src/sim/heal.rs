//! The healed end: no fault any more, and everything that was begun comes to its end.
//!
//! Invariant: only what the product itself plans and what people are asked for is done; if that does not lead to the end,
//! the product has lost its way. Part of the simulation.

use aiws::error::Code;
use aiws::record::Lifecycle;
use praxis_model::plan::{Wait, waits};

use super::people::newest;
use super::process::Process;
use super::{Flow, Sim};
use crate::invariant::{Broken, Invariant};
use crate::plan::{Act, Kill, Person, RUNS, Step};
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
            for run in 0..RUNS {
                busy |= self.heal_run(&mut process, run, round)?;
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

    /// One round for a run; true while it is alive.
    fn heal_run(&mut self, process: &mut Process, run: u8, round: usize) -> Result<bool, Broken> {
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
            self.healthy(process, &hear)?;
        }
        let Some((number, state)) = newest(process, run) else {
            return Ok(false);
        };
        if state.lifecycle.is_terminal() {
            // What is uncertain is found out all the same: its reservation waits for it.
            if super::power::at_rest(&state) {
                return Ok(false);
            }
            self.person_does(process, run, Person::Reconcile)?;
            self.person_does(process, run, Person::Return)?;
            return Ok(true);
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
            };
            self.last_refusal = None;
            self.healthy(process, &Step::Act(act))?;
            if self.last_refusal.as_deref() == Some(Code::BudgetExceeded.name()) {
                // The budget is spent, which no recovery gives back: a person gives the run up.
                self.person_does(process, run, Person::Cancel)?;
            }
        }
        self.answer_waits(process, run, idle)?;
        Ok(true)
    }

    /// People do what the run waits for. A run that does nothing and waits for nobody has lost its way.
    fn answer_waits(&mut self, process: &mut Process, run: u8, idle: bool) -> Result<(), Broken> {
        let Some((_, state)) = newest(process, run) else {
            return Ok(());
        };
        if state.lifecycle.is_terminal() {
            return Ok(());
        }
        let now_ms = praxis_journal::Clock::now_ms(&*self.clock).max(state.last_ms);
        let waits = waits(&state, &[], now_ms);
        for wait in &waits {
            let does = match wait {
                Wait::Approval { .. } => Person::Approve,
                Wait::Acceptance { .. } => Person::Accept,
                Wait::Verification { .. } => Person::Verify,
                Wait::Uncertain { .. } => Person::Reconcile,
                Wait::Hold { .. } => Person::Recheck,
                Wait::Running { .. } | Wait::Claim { .. } | Wait::Gate(_) | Wait::Recovery => {
                    continue;
                }
            };
            self.person_does(process, run, does)?;
        }
        if state.lifecycle == Lifecycle::Canceling {
            return self.person_does(process, run, Person::FinishCancel);
        }
        match idle && waits.is_empty() && state.graph.is_some() {
            false => Ok(()),
            true => Err(Broken::new(
                Invariant::ComesToRest,
                format!("run {run} has nothing to do and waits for nobody"),
            )),
        }
    }

    fn person_does(&mut self, process: &mut Process, run: u8, does: Person) -> Result<(), Broken> {
        let step = Step::Person { run, does, pick: 0 };
        self.healthy(process, &step)
    }

    /// A step after which the process still lives: nothing kills it any more.
    fn healthy(&mut self, process: &mut Process, step: &Step) -> Result<(), Broken> {
        match self.step(process, step)? {
            Flow::Goes => Ok(()),
            _ => Err(Broken::new(
                Invariant::ComesToRest,
                format!("the process died without a fault in {step:?}"),
            )),
        }
    }

    fn at_rest(&mut self, process: Process) -> Result<Process, Broken> {
        self.verify(&process)?;
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

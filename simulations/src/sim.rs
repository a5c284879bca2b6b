//! A simulation: a plan carried out on the real store, the real model and a disk, a world and a clock that are not.
//!
//! Invariant: the same plan gives the same trace, byte for byte; every fault stands in the plan, and after every step the
//! oracle has seen everything. Called by the command line, by tests and by the shrinker.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use aiws::digest::{Digest, Hasher};
use aiws::error::Error;
use aiws::id::ConsumerId;
use praxis_journal::{Append, Options as StoreOptions};
use praxis_journal_format::Sealed;
use praxis_model::command::{Body, OpenMission};

use crate::cast::{self, Cast};
use crate::clock::SimClock;
use crate::disk::CrashDisk;
use crate::fault::Fault;
use crate::invariant::{Broken, Invariant};
use crate::oracle::Oracle;
use crate::plan::{Kill, Outage, Plan, Step};
use crate::words;
use crate::world::World;

mod acts;
mod asks;
mod audit;
mod commit;
mod damage;
mod early;
mod heal;
mod hops;
mod keep;
mod pairs;
mod people;
mod power;
mod process;
mod show;
mod steps;
mod tries;

use hops::Ask;
use process::{By, Prepared, Process, Then};

/// How a simulation is carried out.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Other outcomes of each loss of power that are opened and compared, beside the one that is gone on with.
    pub beside: u8,
    /// Without the oracle, for the control: nothing may be found then.
    pub oracle: bool,
    /// Keeps the trace as text, for the story.
    pub tell: bool,
    /// Breaks a promise by order in the end: proves that what is found is reported.
    pub canary: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            beside: 4,
            oracle: true,
            tell: false,
            canary: false,
        }
    }
}

/// What a simulation came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The promise that was broken, with the number of the step.
    pub broken: Option<(usize, Broken)>,
    /// The digest of everything that happened.
    pub trace: Digest,
    /// What happened, line by line, if it was to be told.
    pub story: Vec<String>,
    /// The states of the disk after a loss of power, as identities.
    pub images: HashSet<u128>,
    /// Kinds of fault that really happened.
    pub struck: BTreeSet<Fault>,
    /// Interesting states that were reached.
    pub marks: BTreeSet<&'static str>,
    /// Refusals by their codes.
    pub refusals: BTreeMap<String, u64>,
    /// Events in the log in the end.
    pub events: u64,
    /// Commands that were decided or sent.
    pub commands: u64,
}

/// Whether the process goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Goes,
    Dies,
    /// Nothing more is promised.
    Ends,
}

impl Flow {
    fn then(self, next: Self) -> Self {
        if self == Self::Goes { next } else { self }
    }
}

/// What happens, digested, and told if it is to be.
struct Trace {
    hasher: Hasher,
    story: Option<Vec<String>>,
}

impl Trace {
    fn note(&mut self, what: fmt::Arguments<'_>) {
        let line = what.to_string();
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
        if let Some(story) = &mut self.story {
            story.push(line);
        }
    }
}

/// Everything that outlives a process.
struct Sim {
    options: Options,
    store: StoreOptions,
    disk: CrashDisk,
    clock: Arc<SimClock>,
    world: World,
    /// How much of the world's record the oracle has seen.
    world_shown: usize,
    oracle: Oracle,
    trace: Trace,
    /// Whether the store's creation was ever answered.
    created: bool,
    /// Whether the mission's opening was.
    numbers: u32,
    /// Requests that were handed in, to come again.
    requests: Vec<Append>,
    acknowledged: Vec<Digest>,
    /// Frames of the log as they were stored, with the events that they hold.
    frames: Vec<(Vec<u8>, Sealed)>,
    in_flight: Vec<Vec<Digest>>,
    /// The loss of power that was drawn and has not come yet.
    armed: Option<(Outage, Vec<Outage>)>,
    /// What the consumers of the outbox have stored.
    consumed: BTreeMap<u8, u64>,
    healing: bool,
    /// Graphs, runs, and what the mission may spend.
    cast: Arc<Cast>,
    /// Whether every command has a request of its own.
    named: bool,
    /// Commands that somebody decided or sent.
    commands: u64,
    texts: show::Texts,
    /// Artifacts with a bit changed at rest: name and what was drawn from.
    rotten: Vec<(Digest, u32)>,
    /// Whether an operation of the disk has failed since the store was opened.
    struck_since: bool,
    last_refusal: Option<Error>,
    images: HashSet<u128>,
    struck: BTreeSet<Fault>,
    refusals: BTreeMap<String, u64>,
}

/// A panic that came out of the product: nothing of it may.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Broken {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    let what = format!("a panic came out: {}", text.unwrap_or("without a word"));
    Broken::new(Invariant::Opens, what)
}

/// Lives of a process until one has taken charge; each fault of a plan ends at most one.
const LIVES: usize = 200;

/// Carries a plan out.
pub fn run(plan: &Plan, options: Options) -> Outcome {
    let mut sim = Sim::new(plan, options);
    let mut at = 0;
    let carried = catch_unwind(AssertUnwindSafe(|| sim.carry_out(plan, &mut at)));
    let ended = carried.unwrap_or_else(|panic| Err(panicked(&*panic)));
    let events = sim.acknowledged.len() as u64;
    sim.struck.extend(sim.disk.struck());
    Outcome {
        // Without the oracle nobody judges, and so nothing is found.
        broken: ended
            .err()
            .filter(|_| options.oracle)
            .map(|broken| (at, broken)),
        trace: sim.trace.hasher.finish(),
        story: sim.trace.story.unwrap_or_default(),
        images: sim.images,
        struck: sim.struck,
        marks: sim.oracle.seen().clone(),
        refusals: sim.refusals,
        events,
        commands: sim.commands,
    }
}

impl Sim {
    fn new(plan: &Plan, options: Options) -> Self {
        let clock = Arc::new(SimClock::new(cast::START_MS));
        let store = StoreOptions {
            clock: clock.clone(),
            // Every third seed begins a new segment with each commit.
            segment_bytes: match (plan.named, plan.seed.is_multiple_of(3)) {
                // A long history begins one now and then.
                (true, _) => 1 << 20,
                (false, true) => 1,
                (false, false) => 128 << 20,
            },
            ..StoreOptions::default()
        };
        let oracle = match options.oracle {
            true => Oracle::new(),
            false => Oracle::switched_off(),
        };
        Self {
            options,
            store,
            disk: CrashDisk::new(),
            clock,
            world: World::default(),
            world_shown: 0,
            oracle,
            trace: Trace {
                hasher: Hasher::new(),
                story: options.tell.then(Vec::new),
            },
            created: false,
            numbers: 0,
            requests: Vec::new(),
            acknowledged: Vec::new(),
            frames: Vec::new(),
            in_flight: Vec::new(),
            armed: None,
            consumed: BTreeMap::new(),
            healing: false,
            cast: Arc::new(Cast::of(plan)),
            named: plan.named,
            commands: 0,
            texts: Default::default(),
            rotten: Vec::new(),
            struck_since: false,
            last_refusal: None,
            images: HashSet::new(),
            struck: BTreeSet::new(),
            refusals: BTreeMap::new(),
        }
    }

    fn carry_out(&mut self, plan: &Plan, at: &mut usize) -> Result<(), Broken> {
        let mut steps = plan.steps.iter().enumerate().peekable();
        // A loss of power in the first place falls into the creation of the store.
        while let Some((_, Step::Power { outage, again })) =
            steps.next_if(|(_, step)| matches!(step, Step::Power { .. }))
        {
            self.struck.insert(Fault::CrashInCreation);
            self.arm(*outage, again.clone());
        }
        let begun = self.come_up()?;
        let mut process = self.live(begun, Flow::Goes)?;
        for (number, step) in steps {
            *at = number;
            self.trace
                .note(format_args!("step {number}: {}", words::plain(step)));
            self.clock.tick(7);
            let flow = self.step(&mut process, step)?;
            if flow == Flow::Ends {
                return self.damage(process, step);
            }
            process = self.live(Some(process), flow)?;
        }
        *at = plan.steps.len();
        if self.armed.is_some() && self.disk.has_power() {
            self.disk.crash_after(0);
            let lost = self.power_lost(Some(process))?;
            process = self.live(lost, Flow::Goes)?;
        }
        self.heal(process)?;
        match self.options.canary {
            false => Ok(()),
            true => Err(Broken::new(Invariant::ComesToRest, "the canary sings")),
        }
    }

    /// Goes on until a process lives, has opened the mission and owns its runs.
    fn live(&mut self, process: Option<Process>, flow: Flow) -> Result<Process, Broken> {
        let (mut process, mut flow) = (process, flow);
        for _ in 0..LIVES {
            process = match process {
                Some(living) if flow == Flow::Goes && self.disk.has_power() => {
                    match living.mission.is_some() && living.owners_known() {
                        true => return Ok(living),
                        false => {
                            let mut living = living;
                            flow = self.begin(&mut living)?;
                            living.begun = flow == Flow::Goes && self.in_charge(&living)?;
                            Some(living)
                        }
                    }
                }
                other if !self.disk.has_power() => {
                    flow = Flow::Goes;
                    self.power_lost(other)?
                }
                Some(dead) => {
                    flow = Flow::Goes;
                    self.killed(dead)?
                }
                None => self.come_up()?,
            };
        }
        Err(Broken::new(
            Invariant::ComesToRest,
            format!("after {LIVES} tries no process has taken charge of the runs"),
        ))
    }

    /// The first things that a new process does.
    fn begin(&mut self, process: &mut Process) -> Result<Flow, Broken> {
        if process.mission.is_none() {
            let body = cast::contract(self.cast.budget()).and_then(|contract| {
                let config = self.cast.config()?;
                Ok(Body::OpenMission(OpenMission { contract, config }))
            });
            let Some(prepared) = self.of_mission(process, body, Then::Nothing)? else {
                return Ok(Flow::Goes);
            };
            let flow = self.commit(process, vec![prepared])?;
            if flow != Flow::Goes || !self.disk.has_power() {
                return Ok(Flow::Dies);
            }
        }
        self.take_charge(process)
    }

    /// Whether every live run has an owner in charge.
    fn in_charge(&self, process: &Process) -> Result<bool, Broken> {
        for run in 0..self.cast.runs() {
            let live = self
                .folded(process, run)?
                .is_some_and(|state| !power::at_rest(&state));
            let owned = process.owners.get(&run).is_some_and(|all| !all.is_empty());
            if live && !owned {
                return Ok(false);
            }
        }
        Ok(process.mission.is_some())
    }

    fn arm(&mut self, outage: Outage, again: Vec<Outage>) {
        if self.armed.is_none() {
            self.disk.crash_after(u64::from(outage.after));
            self.armed = Some((outage, again));
        }
    }

    /// Whether an operation of the disk has failed since this was last asked.
    fn was_struck(&mut self) -> bool {
        let struck = self.disk.take_struck();
        self.struck_since |= struck;
        struck
    }

    /// A number that is never given again.
    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    fn request_id(&mut self) -> String {
        format!("request-{}", self.number())
    }

    /// A command was refused before it was handed in.
    fn refused(&mut self, error: &Error) {
        let code = error.code().name().to_owned();
        self.trace
            .note(format_args!("  refused before the commit, {code}"));
        self.last_refusal = Some(error.clone());
        *self.refusals.entry(code).or_default() += 1;
    }

    /// The simulation itself could not make something up.
    fn internal(&self, error: &Error) -> Broken {
        Broken::new(
            Invariant::NothingUnknown,
            format!("{}: {error}", error.code()),
        )
    }
}

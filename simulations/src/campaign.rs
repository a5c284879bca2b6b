//! A campaign: many seeds on all cores, the scenarios, the planted defects and the controls, summed up.
//!
//! Invariant: what is reported was counted here; seeds are independent, so their number of threads changes no result but
//! the time. Called by the command line and by tests.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use aiws::digest::Digest;

use crate::fault::Fault;
use crate::meta::{self, Caught, Planted};
use crate::packet::{Packet, shrink};
use crate::plan::{Step, draw};
use crate::pool::each;
use crate::scenario;
use crate::sim::{Options, run};

/// What a campaign is to do.
#[derive(Clone, Debug)]
pub struct Order {
    /// The first seed; others follow.
    pub base: u64,
    /// How many seeds, at most.
    pub seeds: u64,
    /// How long, at most; seeds that have begun are finished.
    pub time: Option<Duration>,
    /// Kinds of fault that may occur; each seed has a random half of them.
    pub faults: BTreeSet<Fault>,
    /// Steps of a plan.
    pub steps: usize,
    /// Other outcomes of each loss of power that are opened and compared beside the one that is gone on with.
    pub beside: u8,
    /// One in so many seeds is run twice, and both traces must be the same; 0 for none.
    pub twice: u64,
    /// Threads.
    pub threads: usize,
}

impl Default for Order {
    fn default() -> Self {
        Self {
            base: 1,
            seeds: 200,
            time: None,
            faults: Fault::ALL.iter().copied().collect(),
            steps: STEPS,
            beside: Options::default().beside,
            twice: 20,
            threads: thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Steps of a plan, unless told otherwise: enough for a run to get to its end.
pub const STEPS: usize = 120;

/// Runs that a failure is cut down in, at most.
const SHRINKS: usize = 60;

/// Failures of which packets are made; beyond it they are counted alone.
const PACKETS: usize = 10;

/// What a campaign came to.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Seeds that were run.
    pub seeds: u64,
    /// Seeds that were run twice, and how many of them gave another trace.
    pub twice: u64,
    /// See `twice`.
    pub unlike: u64,
    /// Events that were stored.
    pub events: u64,
    /// Distinct states of the disk after a loss of power.
    pub images: HashSet<u128>,
    /// Kinds of fault that really struck.
    pub struck: BTreeSet<Fault>,
    /// Interesting states that were reached.
    pub marks: BTreeSet<&'static str>,
    /// Refusals by code.
    pub refusals: BTreeMap<String, u64>,
    /// Failures, cut down, the first ones.
    pub failures: Vec<Packet>,
    /// All failures.
    pub failed: u64,
    /// Digest over the traces of all seeds in order.
    pub traces: BTreeMap<u64, Digest>,
    /// How long it took.
    pub took: Duration,
}

impl Summary {
    /// One digest for the traces of all seeds, in the order of the seeds.
    pub fn trace(&self) -> Digest {
        let mut hasher = aiws::digest::Hasher::new();
        for (seed, trace) in &self.traces {
            hasher.update(seed.to_string().as_bytes());
            hasher.update(&trace.0);
        }
        hasher.finish()
    }
}

/// Carries seeds out on all threads; `progress` is called now and then with what there is so far.
pub fn seeds(order: &Order, progress: &(dyn Fn(&Summary) + Sync)) -> Summary {
    let begun = Instant::now();
    let summary = Mutex::new(Summary::default());
    each(order.threads, |number| {
        let late = order.time.is_some_and(|time| begun.elapsed() >= time);
        let more = number < order.seeds && !late;
        more.then(|| quietly(|| one(order, number, &summary, begun, progress)))
    });
    let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.took = begun.elapsed();
    summary
}

fn one(
    order: &Order,
    number: u64,
    summary: &Mutex<Summary>,
    begun: Instant,
    progress: &(dyn Fn(&Summary) + Sync),
) {
    let seed = order.base.wrapping_add(number);
    let plan = draw(seed, &order.faults, order.steps);
    let options = Options {
        beside: order.beside,
        ..Options::default()
    };
    let outcome = run(&plan, options);
    let twice = order.twice > 0 && number.is_multiple_of(order.twice);
    let unlike = twice && run(&plan, options).trace != outcome.trace;
    let packet = outcome.broken.as_ref().map(|(_, broken)| {
        let (plan, outcome) = shrink(&plan, broken, options, SHRINKS);
        Packet::of(&plan, options, &outcome)
    });
    let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
    summary.seeds += 1;
    summary.twice += u64::from(twice);
    summary.unlike += u64::from(unlike);
    summary.events += outcome.events;
    summary.images.extend(outcome.images);
    summary.struck.extend(outcome.struck);
    summary.marks.extend(outcome.marks);
    summary.traces.insert(seed, outcome.trace);
    for (code, count) in outcome.refusals {
        *summary.refusals.entry(code).or_default() += count;
    }
    if let Some(packet) = packet {
        summary.failed += 1;
        if summary.failures.len() < PACKETS {
            summary.failures.push(packet);
        }
    }
    summary.took = begun.elapsed();
    progress(&summary);
}

/// A scenario and what it came to.
#[derive(Clone, Debug)]
pub struct Enumerated {
    /// Its name.
    pub name: &'static str,
    /// What it enumerates.
    pub what: &'static str,
    /// Whether everything that a commit can leave was tried, and not a choice.
    pub exhaustive: bool,
    /// Distinct images that were judged.
    pub images: Vec<u128>,
    /// The promise that was broken.
    pub broken: Option<String>,
    /// How long it took.
    pub took: Duration,
}

/// All scenarios that choose, and so many of the exhaustive ones, on all threads.
pub fn scenarios(exhaustive: usize, threads: usize) -> Vec<Enumerated> {
    let exhaustive = &scenario::EXHAUSTIVE_ONES[..exhaustive.min(scenario::EXHAUSTIVE_ONES.len())];
    each(threads, |at| {
        let at = usize::try_from(at).ok()?;
        // The long ones first, so that no thread is left alone with one in the end.
        let scenario = exhaustive.iter().chain(&scenario::ALL).nth(at)?;
        let begun = Instant::now();
        let result = quietly(|| scenario.run());
        let images = result.as_ref().map(|count| count.identities().collect());
        Some(Enumerated {
            name: scenario.name,
            what: scenario.what,
            exhaustive: at < exhaustive.len(),
            images: images.unwrap_or_default(),
            broken: result.err().map(|violation| violation.to_string()),
            took: begun.elapsed(),
        })
    })
}

/// Planted defects, on all threads; each is looked for on so many seeds at most.
pub fn plants(
    planted: &[Planted],
    base: u64,
    seeds: u64,
    threads: usize,
    done: &(dyn Fn(&Caught) + Sync),
) -> Vec<Caught> {
    each(threads, |at| {
        let planted = planted.get(usize::try_from(at).ok()?)?;
        let caught = quietly(|| meta::catch(planted, base, seeds, STEPS));
        done(&caught);
        Some(caught)
    })
}

/// What the controls came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controls {
    /// A promise that is broken by order is reported, as a packet that breaks it again.
    pub canary: bool,
    /// With the oracle off nothing is found on the seeds on which a defect was caught.
    pub silent: bool,
}

/// Runs the controls; `caught` says on which seeds which defects were found.
pub fn controls(caught: &[Caught]) -> Controls {
    quietly(|| {
        let mut plan = draw(1, &Fault::ALL.iter().copied().collect(), STEPS);
        // After damage at rest a run ends, and the canary with it.
        plan.steps
            .retain(|step| !matches!(step, Step::Damage { .. }));
        let sings = Options {
            canary: true,
            ..Options::default()
        };
        let outcome = run(&plan, sings);
        let packet = Packet::of(&plan, sings, &outcome);
        let again = packet.replay(sings);
        let canary = packet.what.contains("canary")
            && again.trace == outcome.trace
            && again.broken == outcome.broken;
        Controls {
            canary,
            silent: caught.iter().all(meta::is_silent),
        }
    })
}

thread_local! {
    static QUIET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Panics of the storage engine are simulated by the thousand and caught: on this thread they print nothing.
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let done = work();
    QUIET.set(false);
    done
}

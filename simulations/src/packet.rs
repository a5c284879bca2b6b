//! A failure as a packet: everything that it takes to see it again.
//!
//! Invariant: a packet alone replays the failure: it holds the steps themselves, not only the seed that they were drawn
//! from. Written by the command line, cut by the shrinker, kept as regressions.

use std::collections::BTreeSet;

use aiws::decimal::U64;
use aiws::error::Error;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::invariant::Broken;
use crate::plan::graphs::{GRAPHS, KNOTS, MOST_RUNS, Shape};
use crate::plan::{LIES, Plan, RUNS, STRIKES, Step};
use crate::sim::{Options, Outcome, run};

/// The version of the packet's form.
pub const VERSION: u8 = 0;

const FORMAT: &str = "praxis-simulation";

/// A simulation that can be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Packet {
    /// `praxis-simulation`.
    pub format: String,
    /// The version of the form.
    pub version: u8,
    /// What it is about, for people; empty for what was just found.
    pub story: String,
    /// The version of Praxis that found it.
    pub found_by: String,
    /// The seed; it also decides how large the log's segments are.
    pub seed: U64,
    /// Outcomes of each loss of power that are opened beside the one that is gone on with: they belong to the trace.
    #[serde(default = "usual")]
    pub beside: u8,
    /// The graphs of its runs; none for the fixed ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<Shape>,
    /// How many runs there may be.
    #[serde(default = "few", skip_serializing_if = "is_few")]
    pub runs: u8,
    /// Whether every command has a request of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
    /// The steps.
    pub steps: Vec<Step>,
    /// Number of the invariant that was broken; 0 for none.
    pub invariant: u8,
    /// How it was broken.
    pub what: String,
    /// Digest of everything that happened.
    pub trace: String,
}

/// What packets have that do not say it.
fn usual() -> u8 {
    Options::default().beside
}

fn few() -> u8 {
    RUNS
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_few(runs: &u8) -> bool {
    *runs == RUNS
}

/// Most steps that a packet may have; the time that they take grows faster than their number.
pub const STEPS: usize = 2_000;

/// Why a text is no packet.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// It is not JSON of the packet's shape.
    #[error("expected a packet of praxis simulate, found something else: {0}")]
    Shape(#[from] Error),
    /// It is a packet of another version.
    #[error(
        "expected a packet of version {VERSION}, found {format} version {version}; use the build that wrote it"
    )]
    Version {
        /// Its format.
        format: String,
        /// Its version.
        version: u8,
    },
}

impl Packet {
    /// The packet of a plan and what it came to.
    pub fn of(plan: &Plan, options: Options, outcome: &Outcome) -> Self {
        let broken = outcome.broken.as_ref().map(|(_, broken)| broken);
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            story: String::new(),
            found_by: env!("CARGO_PKG_VERSION").to_owned(),
            seed: U64(plan.seed),
            beside: options.beside,
            graphs: plan.graphs.clone(),
            runs: plan.runs,
            named: plan.named,
            steps: plan.steps.clone(),
            invariant: broken.map_or(0, |broken| broken.invariant.number()),
            what: broken.map_or_else(String::new, |broken| broken.what.clone()),
            trace: outcome.trace.to_string(),
        }
    }

    /// Reads a packet.
    ///
    /// # Errors
    /// [`PacketError`], where the text is none, or one of another version.
    pub fn read(bytes: &[u8]) -> Result<Self, PacketError> {
        let value = aiws::strict::parse_with_limit(bytes, PACKET_BYTES)?;
        let packet: Self = aiws::canonical::from_value(&value)?;
        if packet.format != FORMAT || packet.version != VERSION {
            return Err(PacketError::Version {
                format: packet.format,
                version: packet.version,
            });
        }
        packet.check()?;
        Ok(packet)
    }

    /// What the shape does not say: how many steps, which faults where, and a lie of the disk only in the end.
    fn check(&self) -> Result<(), Error> {
        if self.steps.len() > STEPS {
            let what = format!("expected at most {STEPS} steps, found {}", self.steps.len());
            return Err(Error::schema("/steps", what));
        }
        let wide = self.graphs.iter().any(|graph| graph.knots.len() > KNOTS);
        if wide || self.graphs.len() > GRAPHS || !(1..=MOST_RUNS).contains(&self.runs) {
            let what = format!(
                "expected at most {GRAPHS} graphs of at most {KNOTS} places, and 1 to {MOST_RUNS} runs"
            );
            return Err(Error::schema("/graphs", what));
        }
        for (at, step) in self.steps.iter().enumerate() {
            let (fault, among, last): (_, &[Fault], _) = match step {
                Step::Strike { fault, .. } => (fault, &STRIKES, true),
                Step::Damage { fault, .. } => (fault, &LIES, at + 1 == self.steps.len()),
                _ => continue,
            };
            if !Fault::named(fault).is_some_and(|fault| among.contains(&fault)) {
                let names: Vec<&str> = among.iter().map(|fault| fault.name()).collect();
                let what = format!("expected one of {}, found {fault:?}", names.join(", "));
                return Err(Error::schema(format!("/steps/{at}/fault"), what));
            }
            if !last {
                let what = "expected damage as the last step alone: nothing is promised after it";
                return Err(Error::schema(format!("/steps/{at}"), what));
            }
        }
        Ok(())
    }

    /// Writes it as canonical JSON with a line feed.
    ///
    /// # Errors
    /// Where a text in it has no canonical form.
    pub fn write(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = aiws::canonical::bytes_of(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The plan that it holds.
    pub fn plan(&self) -> Plan {
        Plan {
            seed: self.seed.get(),
            faults: BTreeSet::from_iter(Fault::ALL.iter().copied()),
            graphs: self.graphs.clone(),
            runs: self.runs,
            named: self.named,
            steps: self.steps.clone(),
        }
    }

    /// Carries it out once more.
    pub fn replay(&self, options: Options) -> Outcome {
        let options = Options {
            beside: self.beside,
            ..options
        };
        run(&self.plan(), options)
    }
}

/// Largest packet that is read, in bytes: some thousands of steps.
pub const PACKET_BYTES: usize = 1 << 20;

/// Cuts a failing plan down to what it takes: steps are left out, in halves and then one by one, as long as the same
/// invariant is broken; at most so many runs.
pub fn shrink(plan: &Plan, broken: &Broken, options: Options, runs: usize) -> (Plan, Outcome) {
    let mut best = plan.clone();
    let mut outcome = run(&best, options);
    let mut left = runs;
    let mut size = best.steps.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut smaller = false;
        while at < best.steps.len() && left > 0 {
            let mut steps = best.steps.clone();
            steps.drain(at..(at + size).min(steps.len()));
            let plan = Plan {
                steps,
                ..best.clone()
            };
            left -= 1;
            let found = run(&plan, options);
            let same = found
                .broken
                .as_ref()
                .is_some_and(|(_, found)| found.invariant == broken.invariant);
            if same {
                (best, outcome, smaller) = (plan, found, true);
            } else {
                at += size;
            }
        }
        if left == 0 || size == 1 && !smaller {
            return (best, outcome);
        }
        size = size.div_ceil(2).max(1);
    }
}

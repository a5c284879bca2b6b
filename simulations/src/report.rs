//! The report: figures of a campaign against their floors and goals.
//!
//! Invariant: every figure was counted in this process; one that was not measured is said to be so, and never passes a
//! floor. Made by the command line.

use std::collections::HashSet;
use std::time::Duration;

use crate::campaign::{Controls, Enumerated, Summary};
use crate::fault::Fault;
use crate::invariant::Invariant;
use crate::meta::{self, Caught};
use crate::oracle::MARKS;

/// Everything that a report is made of.
#[derive(Clone, Debug)]
pub struct Material {
    /// The seeds.
    pub seeds: Summary,
    /// The scenarios.
    pub scenarios: Vec<Enumerated>,
    /// The planted defects; empty in a build that cannot plant.
    pub plants: Vec<Caught>,
    /// The controls; none in a build that cannot plant.
    pub controls: Option<Controls>,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// What is measured.
    pub measure: &'static str,
    /// What was found.
    pub found: u64,
    /// In what.
    pub unit: &'static str,
    /// What it must reach.
    pub floor: u64,
    /// What it should reach.
    pub goal: u64,
    /// Whether it could be measured at all in this build.
    pub measured: bool,
}

impl Figure {
    /// Whether the floor is reached.
    pub fn passes(&self) -> bool {
        self.measured && self.found >= self.floor
    }

    /// Whether the goal is.
    pub fn excels(&self) -> bool {
        self.measured && self.found >= self.goal
    }
}

/// The figures of a report.
pub fn figures(material: &Material) -> Vec<Figure> {
    let Material {
        seeds,
        scenarios,
        plants,
        controls,
    } = material;
    let enumerated = scenarios.iter().flat_map(|it| &it.images);
    let images: HashSet<u128> = seeds.images.iter().chain(enumerated).copied().collect();
    let sound = |it: &&Enumerated| it.exhaustive && it.broken.is_none();
    let exhaustive = scenarios.iter().filter(sound).count();
    let caught = plants.iter().filter(|it| it.enough()).count();
    let slow = plants.iter().filter_map(|it| it.first).max();
    let can_plant = praxis_plant::CAN_PLANT;
    let figure = |measure, found, unit, floor, goal| Figure {
        measure,
        found,
        unit,
        floor,
        goal,
        measured: true,
    };
    let planted = |measure, found, unit, floor, goal| Figure {
        measured: can_plant,
        ..figure(measure, found, unit, floor, goal)
    };
    let same = 100 - percent_up(seeds.unlike, seeds.twice);
    vec![
        figure(
            "distinct crash states",
            images.len() as u64,
            "images",
            100_000,
            600_000,
        ),
        figure("seeds", seeds.seeds, "seeds", 5_000, 20_000),
        figure(
            "exhaustive scenarios that hold",
            exhaustive as u64,
            "scenarios",
            8,
            20,
        ),
        figure(
            "kinds of fault that struck",
            struck(seeds, scenarios),
            "kinds",
            30,
            45,
        ),
        planted(
            "invariants with a defect that breaks them",
            proven(plants),
            "invariants",
            30,
            47,
        ),
        planted(
            "planted defects caught",
            percent(caught as u64, plants.len() as u64),
            "%",
            100,
            100,
        ),
        planted(
            "planted defects first caught within 60 s",
            u64::from(slow.is_none_or(|slow| slow <= Duration::from_secs(60))) * 100,
            "%",
            0,
            100,
        ),
        figure(
            "interesting states that were reached",
            seeds.marks.len() as u64,
            "marks",
            MARKS.len() as u64,
            MARKS.len() as u64,
        ),
        figure("seeds run twice with the same trace", same, "%", 100, 100),
        figure(
            "seeds without a finding",
            100 - percent_up(seeds.failed, seeds.seeds),
            "%",
            100,
            100,
        ),
        planted(
            "controls passed",
            controls.map_or(0, |it| u64::from(it.canary) + u64::from(it.silent)),
            "of 2",
            2,
            2,
        ),
    ]
}

/// Kinds of fault that happened, in seeds or scenarios.
pub fn struck(seeds: &Summary, scenarios: &[Enumerated]) -> u64 {
    let ran = |name: &str| scenarios.iter().any(|it| it.name == name);
    let of_scenarios = crate::scenario::ALL
        .iter()
        .chain(crate::scenario::EXHAUSTIVE_ONES)
        .filter(|scenario| ran(scenario.name))
        .flat_map(|scenario| scenario.faults.iter().copied());
    let all: std::collections::BTreeSet<Fault> =
        seeds.struck.iter().copied().chain(of_scenarios).collect();
    all.len() as u64
}

fn proven(plants: &[Caught]) -> u64 {
    let caught = plants.iter().filter(|it| it.enough());
    let all: std::collections::BTreeSet<Invariant> =
        caught.map(|it| it.planted.invariant).collect();
    all.len() as u64
}

/// Invariants that no planted defect breaks, with the reason where there is one.
pub fn unproven() -> Vec<Invariant> {
    let proven = meta::proven();
    let all = Invariant::ALL.iter().copied();
    all.filter(|it| !proven.contains(it)).collect()
}

fn percent(part: u64, whole: u64) -> u64 {
    (part * 100).checked_div(whole).unwrap_or(0)
}

/// Rounded up, so that one failure among many is never nothing.
fn percent_up(part: u64, whole: u64) -> u64 {
    if whole == 0 {
        100
    } else {
        (part * 100).div_ceil(whole)
    }
}

//! Long histories: thousands of commands over drawn graphs, one run after another, with few ends of the process.
//!
//! Invariant: every command has a request of its own, so that each one can come again; nothing lies, so that everything is
//! promised to the end. Part of plans; carried out by the property test of histories.

use std::collections::BTreeSet;

use super::draw::{Draw, graphs_of};
use super::{Person, Plan, Step, swarm};
use crate::fault::Fault;
use crate::rng::Rng;

/// Steps of a history: enough for two thousand commands.
pub const HISTORY: usize = 1_000;

/// Steps for each run of a history.
const STEPS_A_RUN: usize = 22;

/// Graphs of a history, which its runs take turns with.
const GRAPHS: usize = 8;

/// Runs that go on beside each other.
const BESIDE: u8 = 3;

/// A history of a seed, of so many steps.
pub fn history(seed: u64, allowed: &BTreeSet<Fault>, steps: usize) -> Plan {
    let mut rng = Rng::new(seed);
    let faults = swarm(&mut rng, allowed);
    let graphs = graphs_of(&mut rng, GRAPHS);
    let runs = u8::try_from(steps.div_ceil(STEPS_A_RUN)).unwrap_or(super::graphs::MOST_RUNS);
    let runs = runs.clamp(BESIDE, super::graphs::MOST_RUNS);
    let mut draw = Draw::new(rng, faults);
    let mut all = Vec::new();
    while all.len() < steps {
        let first = all.len() * usize::from(runs) / steps;
        draw.runs = (u8::try_from(first).unwrap_or(0).min(runs - BESIDE), BESIDE);
        draw.passage(&mut all);
    }
    all.truncate(steps);
    Plan {
        seed,
        faults: draw.into_faults(),
        graphs,
        runs,
        named: true,
        steps: all,
    }
}

impl Draw {
    /// What comes next in a history.
    fn passage(&mut self, all: &mut Vec<Step>) {
        match self.rng.below(1_000) {
            0..=299 => all.push(Step::Progress {
                run: self.run(),
                rounds: 2 + self.rng.small(5),
            }),
            300..=559 => {
                let act = self.act();
                all.push(Step::Act(act));
            }
            560..=609 => all.push(self.together()),
            610..=729 => {
                let (run, does, pick) = (self.run(), self.person(), self.rng.small(16));
                // What ends a run comes seldom, or none would come far.
                let ends = matches!(
                    does,
                    Person::Cancel | Person::Invalidate | Person::GiveUp | Person::FinishCancel
                );
                let does = match ends && self.rng.chance(85) {
                    true => Person::Summarize,
                    false => does,
                };
                all.push(Step::Person { run, does, pick });
            }
            730..=789 => all.push(self.attempted()),
            790..=829 => all.push(self.again()),
            830..=889 => all.push(self.hear()),
            890..=904 => all.push(self.takeover()),
            905..=934 => {
                let does = self.flush();
                all.push(Step::Index { does });
            }
            935..=954 => all.push(self.clock()),
            955..=969 => all.push(Step::Outbox {
                consumer: self.rng.small(2),
                take: 1 + self.rng.small(60),
                acknowledges: self.rng.chance(70),
            }),
            970..=979 => {
                let (does, pick) = (self.keeping(), self.rng.small(8));
                all.push(Step::Artifact { does, pick });
            }
            980..=991 => {
                let story = self.story();
                all.extend(story);
            }
            number => {
                all.push(match number {
                    992..=995 => self.power(),
                    996..=997 => self.strike(),
                    _ => self.kill(),
                });
                // Not behind every end of a process, or there would be no time for anything else.
                if self.rng.chance(15) {
                    all.push(Step::Audit);
                }
            }
        }
    }
}

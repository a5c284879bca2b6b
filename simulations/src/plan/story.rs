//! Short stories within a plan: steps that seldom meet by chance and matter when they do.
//!
//! Invariant: a story has no step of a fault that is not allowed, and what it is about it only makes likely. Part of
//! drawing.

use super::draw::Draw;
use super::{Act, Attempted, Flush, Keeping, Kill, Person, Step};
use crate::fault::Fault;
use crate::world::Fate;

/// Longer than a claim lasts, in milliseconds.
const BEYOND_A_LEASE_MS: i64 = 12_000;

/// An effect's cost that no mission can pay twice.
const DEAR: u8 = 60;

impl Draw {
    /// The steps of one story.
    pub(super) fn story(&mut self) -> Vec<Step> {
        let run = self.run();
        match self.rng.below(17) {
            0 => self.deposed(run),
            1 => self.expired(run),
            2 => self.held(run),
            3 => self.claims(run),
            4 => self.retries(run),
            5 => self.repeats(),
            6 => self.collected(),
            7 => self.failed_commit(),
            8 => self.rotten(run),
            9 => self.unknown(run),
            10 => self.branch(run),
            11 => self.invalid(run),
            12 => self.flow(run),
            13 => self.late(run),
            14 => self.gather(run),
            15 => self.dear(),
            _ => vec![Step::Together {
                acts: (0..self.runs.1)
                    .map(|run| self.does(self.runs.0 + run, 0))
                    .collect(),
            }],
        }
    }

    /// What an owner of this age does, with an effect that goes well.
    fn does(&mut self, run: u8, owner: u8) -> Act {
        Act {
            run,
            owner,
            pick: self.rng.small(3),
            fate: Fate::Applied,
            cost: 11,
            kill: Kill::No,
            paired: false,
        }
    }

    fn tries(&mut self, run: u8, what: Attempted) -> Step {
        Step::Try {
            run,
            what,
            pick: self.rng.small(4),
        }
    }

    /// A takeover, and the old owner goes on.
    fn deposed(&mut self, run: u8) -> Vec<Step> {
        if !self.may(Fault::DeposedWrites) {
            return Vec::new();
        }
        let beside = self.rng.chance(30);
        let mut steps = vec![Step::Act(self.does(run, 0)), Step::Takeover { run, beside }];
        steps.extend((0..3).map(|_| Step::Act(self.does(run, 1))));
        if self.may(Fault::DeposedSettles) {
            steps.push(Step::Hear {
                pick: 0,
                owner: 1,
                twice: false,
            });
        }
        steps
    }

    /// A claim expires, others log the time of it, and the clock jumps back.
    fn expired(&mut self, run: u8) -> Vec<Step> {
        if !self.may(Fault::ClockBack) || !self.may(Fault::ClockForward) {
            return Vec::new();
        }
        vec![
            Step::Claim { run },
            Step::Clock {
                by: BEYOND_A_LEASE_MS,
            },
            Step::Person {
                run: 0,
                does: Person::Grant,
                pick: 0,
            },
            Step::Clock {
                by: -BEYOND_A_LEASE_MS,
            },
            self.tries(run, Attempted::ExpiredClaim),
        ]
    }

    /// What is decided within the time of a claim arrives when that is over.
    fn late(&mut self, run: u8) -> Vec<Step> {
        if !self.may(Fault::MessageLate) || !self.may(Fault::ClockForward) {
            return Vec::new();
        }
        let receives = Act {
            pick: 0,
            ..self.does(run, 0)
        };
        vec![
            Step::Progress { run, rounds: 1 },
            Step::Claim { run },
            Step::HoldBack(receives),
            Step::Clock {
                by: BEYOND_A_LEASE_MS,
            },
            Step::HandIn { pick: 0 },
        ]
    }

    /// A hold or a cancellation, and somebody who does not look.
    fn held(&mut self, run: u8) -> Vec<Step> {
        let does = match self.rng.chance(80) {
            true => Person::Hold,
            false => Person::Cancel,
        };
        let mut steps = vec![Step::Person { run, does, pick: 0 }];
        if self.rng.chance(50) {
            steps.push(Step::Kill);
        }
        steps.push(self.tries(run, Attempted::BlindToHolds));
        steps.push(self.tries(run, Attempted::AgentReleases));
        if does == Person::Hold {
            steps.push(Step::Person {
                run,
                does: Person::Recheck,
                pick: 0,
            });
        }
        steps
    }

    /// A claim, and others who want it.
    fn claims(&mut self, run: u8) -> Vec<Step> {
        let mut steps = vec![Step::Claim { run }];
        let foreign = self.may(Fault::ForeignToken);
        for what in [
            Attempted::ClaimTwice,
            Attempted::WrongToken,
            Attempted::OtherRun,
            Attempted::AdmitAgain,
        ] {
            if foreign || !matches!(what, Attempted::WrongToken | Attempted::OtherRun) {
                steps.push(self.tries(run, what));
            }
        }
        steps
    }

    /// An effect that is refused again and again.
    fn retries(&mut self, run: u8) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..4 {
            for _ in 0..2 {
                let refused = Act {
                    fate: Fate::Refused,
                    ..self.does(run, 0)
                };
                steps.push(Step::Act(refused));
            }
            steps.push(Step::Hear {
                pick: 0,
                owner: 0,
                twice: false,
            });
        }
        steps.push(self.tries(run, Attempted::RetryBeyond));
        steps.push(self.tries(run, Attempted::RetryBeyond));
        steps
    }

    /// An effect whose answer is lost, and everybody who thinks that he knows.
    fn unknown(&mut self, run: u8) -> Vec<Step> {
        let fate = match self.may(Fault::ResponseLost) {
            true => Fate::AnswerLost,
            false => Fate::Refused,
        };
        let mut steps = Vec::new();
        for _ in 0..2 {
            let lost = Act {
                fate,
                ..self.does(run, 0)
            };
            steps.push(Step::Act(lost));
        }
        steps.push(Step::Hear {
            pick: 0,
            owner: 0,
            twice: false,
        });
        for what in [
            Attempted::NoEvidence,
            Attempted::AgentReconciles,
            Attempted::RetryUnknown,
        ] {
            steps.push(self.tries(run, what));
        }
        steps
    }

    /// Requests come again behind a flushed index and a new process.
    fn repeats(&mut self) -> Vec<Step> {
        let grant = Step::Person {
            run: 0,
            does: Person::Grant,
            pick: 0,
        };
        let mut steps = vec![grant, Step::Index { does: Flush::Whole }];
        for opens in [false, true] {
            if opens {
                steps.push(Step::Restart);
            }
            for other_body in [false, self.may(Fault::OtherBody)] {
                if other_body || self.may(Fault::MessageTwice) {
                    let pick = self.rng.small(64);
                    steps.push(Step::Again { pick, other_body });
                }
            }
        }
        steps
    }

    /// Bytes that nobody names grow old, and become named while they are collected.
    fn collected(&mut self) -> Vec<Step> {
        let run = self.run();
        let late = Step::Artifact {
            does: Keeping::CollectLate,
            pick: run,
        };
        (0..3)
            .flat_map(|_| [late.clone(), Step::Progress { run, rounds: 2 }])
            .collect()
    }

    /// A sync fails in the middle of a commit, and the process dies with what it knows.
    fn failed_commit(&mut self) -> Vec<Step> {
        let Some(fault) = self.one_of(&[Fault::SyncErrorKept, Fault::SyncErrorReverted]) else {
            return Vec::new();
        };
        let grant = Step::Person {
            run: 0,
            does: Person::Grant,
            pick: 0,
        };
        let strikes = (0..3).map(|_| Step::Strike {
            after: u16::from(self.rng.small(24)),
            fault: fault.name().to_owned(),
        });
        strikes
            .flat_map(|strike| [strike, grant.clone(), Step::Kill])
            .collect()
    }

    /// A bit changes in what was made, and whoever comes next has to notice.
    fn rotten(&mut self, run: u8) -> Vec<Step> {
        if !self.may(Fault::BitFlip) {
            return Vec::new();
        }
        let pick = self.rng.small(16);
        let keeps = |does| Step::Artifact { does, pick };
        let mut steps = vec![keeps(Keeping::Rot), keeps(Keeping::Read)];
        let first = self.runs.0;
        for run in [run, first, first + 1, first + 2] {
            steps.push(Step::Claim { run });
            let receives = Act {
                pick: 0,
                ..self.does(run, 0)
            };
            steps.push(Step::Act(receives));
        }
        if self.rng.chance(50) {
            steps.push(keeps(Keeping::Mend));
        }
        steps
    }

    /// A branch is held while its run goes on, and somebody does not look.
    fn branch(&mut self, run: u8) -> Vec<Step> {
        let person = |does, pick| Step::Person { run, does, pick };
        let mut steps = Vec::new();
        for _ in 0..2 {
            steps.push(person(Person::HoldBranch, self.rng.small(8)));
            if self.rng.chance(30) {
                steps.push(Step::Kill);
            }
            steps.push(self.tries(run, Attempted::BlindToHolds));
            steps.push(Step::Progress { run, rounds: 2 });
            steps.push(self.tries(run, Attempted::BlindToHolds));
        }
        steps.push(person(Person::Recheck, 0));
        steps
    }

    /// A hand-off no longer counts, and what was made of it goes on if it can.
    fn invalid(&mut self, run: u8) -> Vec<Step> {
        let pick = self.rng.small(16);
        let mut steps = vec![
            Step::Progress { run, rounds: 3 },
            Step::Person {
                run,
                does: Person::Invalidate,
                pick,
            },
            self.tries(run, Attempted::BlindToHolds),
            Step::Person {
                run,
                does: Person::Recheck,
                pick: 0,
            },
        ];
        steps.extend((0..3).map(|_| Step::Act(self.does(run, 0))));
        steps
    }

    /// Joins and loops that somebody hurries on.
    fn flow(&mut self, run: u8) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..3 {
            steps.push(Step::Progress { run, rounds: 4 });
            for what in [
                Attempted::JoinEarly,
                Attempted::LoopOn,
                Attempted::CompleteEarly,
            ] {
                steps.push(self.tries(run, what));
            }
        }
        steps
    }

    /// A join that takes one is hurried on while the others are at work.
    fn gather(&mut self, run: u8) -> Vec<Step> {
        let mut steps = vec![Step::Progress { run, rounds: 1 }];
        for _ in 0..6 {
            steps.push(Step::Progress { run, rounds: 1 });
            for _ in 0..3 {
                steps.push(Step::Act(self.does(run, 0)));
                steps.push(self.tries(run, Attempted::JoinEarly));
            }
        }
        steps
    }

    /// Runs go on in step, each with work that fits the budget alone and not beside the others'.
    fn dear(&mut self) -> Vec<Step> {
        let runs = self.runs.0..self.runs.0 + self.runs.1;
        let start = |run| Step::Person {
            run,
            does: Person::Start,
            pick: 0,
        };
        let mut steps: Vec<Step> = runs.clone().map(start).collect();
        for _ in 0..12 {
            let dear = |run| Act {
                pick: 0,
                cost: DEAR,
                ..self.does(run, 0)
            };
            let acts = runs.clone().map(dear).collect();
            steps.push(Step::Together { acts });
        }
        steps
    }
}

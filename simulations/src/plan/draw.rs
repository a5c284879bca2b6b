//! Drawing a plan from a seed.
//!
//! Invariant: a plan has no step of a fault that is not allowed. Part of plans.

use std::collections::BTreeSet;

use super::graphs::{self, Shape};
use super::{Act, Attempted, Flush, Keeping, Kill, Outage, Person, Plan, RUNS, Step, swarm};
use crate::fault::Fault;
use crate::rng::Rng;
use crate::world::Fate;

/// Faults of which the storage is to survive everything: what a single operation answers.
pub const STRIKES: [Fault; 10] = [
    Fault::SyncErrorKept,
    Fault::SyncErrorReverted,
    Fault::DirectorySyncError,
    Fault::NameError,
    Fault::FullOnWrite,
    Fault::FullOnGrowth,
    Fault::WriteError,
    Fault::ReadError,
    Fault::ShortRead,
    Fault::EnginePanic,
];

/// Faults that must be detected.
pub const LIES: [Fault; 5] = [
    Fault::LyingSync,
    Fault::BitFlip,
    Fault::MisdirectedWrite,
    Fault::StaleRead,
    Fault::Rollback,
];

/// What a loss of power can leave.
pub const LOSSES: [Fault; 11] = [
    Fault::DropAll,
    Fault::KeepAll,
    Fault::DropSubset,
    Fault::KeepOne,
    Fault::DropOne,
    Fault::Prefix,
    Fault::Sectors,
    Fault::ByteTear,
    Fault::LengthLost,
    Fault::LengthEarly,
    Fault::NamesLost,
];

/// How often a short story begins where a step would be drawn, in per cent.
const STORIES: u64 = 7;

/// How many plans have graphs of their own, in per cent.
const DRAWN: u64 = 60;

/// Where a fault is not allowed: nothing waits to be handed in, as a rule.
pub(super) const NOTHING: Step = Step::HandIn { pick: 0 };

const FATES: [(Fault, Fate); 8] = [
    (Fault::ResponseLost, Fate::AnswerLost),
    (Fault::TimesOut, Fate::TimesOut),
    (Fault::SettlesLate, Fate::Late),
    (Fault::AppliesInPart, Fate::InPart),
    (Fault::CallsBackTwice, Fate::AnsweredTwice),
    (Fault::ForgetsKeys, Fate::KeysForgotten),
    (Fault::WrongStatus, Fate::StatusWrong),
    (Fault::CostsMore, Fate::Dear),
];

const PEOPLE: [Person; 17] = [
    Person::Start,
    Person::Grant,
    Person::Approve,
    Person::Revoke,
    Person::Verify,
    Person::Accept,
    Person::Hold,
    Person::Recheck,
    Person::Cancel,
    Person::FinishCancel,
    Person::Reconcile,
    Person::Return,
    Person::HoldBranch,
    Person::HoldBranch,
    Person::GiveUp,
    Person::Invalidate,
    Person::Summarize,
];

pub(super) struct Draw {
    pub(super) rng: Rng,
    faults: BTreeSet<Fault>,
    /// The first of the runs that steps are drawn for, and how many.
    pub(super) runs: (u8, u8),
}

/// So many graphs.
pub(crate) fn graphs_of(rng: &mut Rng, count: usize) -> Vec<Shape> {
    (0..count).map(|_| graphs::shape(rng)).collect()
}

/// The plan of a seed: so many steps, with a random half of the kinds of fault that are allowed.
pub fn draw(seed: u64, allowed: &BTreeSet<Fault>, steps: usize) -> Plan {
    let mut rng = Rng::new(seed);
    let faults = swarm(&mut rng, allowed);
    // The fixed graphs come far in few steps; what is drawn has everything that the model knows.
    let graphs = match rng.chance(DRAWN) {
        true => graphs_of(&mut rng, usize::from(RUNS)),
        false => Vec::new(),
    };
    let mut draw = Draw::new(rng, faults);
    let mut all = Vec::new();
    while all.len() < steps {
        match draw.rng.chance(STORIES) {
            true => all.extend(draw.story()),
            false => all.push(draw.step()),
        }
    }
    all.truncate(steps);
    // One in a few ends with a lie of the disk: after it nothing is promised but that it is noticed.
    if draw.rng.chance(15)
        && let Some(fault) = draw.one_of(&LIES)
    {
        let seed = draw.seed();
        all.push(Step::Damage {
            fault: fault.name().to_owned(),
            seed,
        });
    }
    Plan {
        seed,
        faults: draw.faults,
        graphs,
        runs: RUNS,
        named: false,
        steps: all,
    }
}

impl Draw {
    pub(super) fn new(rng: Rng, faults: BTreeSet<Fault>) -> Self {
        Self {
            rng,
            faults,
            runs: (0, RUNS),
        }
    }

    pub(super) fn into_faults(self) -> BTreeSet<Fault> {
        self.faults
    }

    /// One of the runs that steps are drawn for.
    pub(super) fn run(&mut self) -> u8 {
        self.runs.0 + self.rng.small(self.runs.1)
    }

    pub(super) fn may(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    pub(super) fn one_of(&mut self, some: &[Fault]) -> Option<Fault> {
        let allowed: Vec<Fault> = some.iter().copied().filter(|it| self.may(*it)).collect();
        self.rng.pick(&allowed).copied()
    }

    fn seed(&mut self) -> u32 {
        u32::try_from(self.rng.below(1 << 32)).unwrap_or(0)
    }

    pub(super) fn step(&mut self) -> Step {
        match self.rng.below(100) {
            0..=9 => Step::Progress {
                run: self.run(),
                rounds: 1 + self.rng.small(5),
            },
            10..=33 => Step::Act(self.act()),
            34..=38 => self.together(),
            39..=41 if self.may(Fault::MessageLate) => Step::HoldBack(self.act()),
            42..=44 => Step::HandIn {
                pick: self.rng.small(4),
            },
            45..=56 => Step::Person {
                run: self.run(),
                does: self.person(),
                pick: self.rng.small(4),
            },
            57..=60 => self.attempted(),
            61..=63 => self.again(),
            64..=74 => self.hear(),
            75..=76 => self.takeover(),
            77..=78 => self.kill(),
            79 => Step::Restart,
            80..=83 => self.power(),
            84..=85 => self.strike(),
            86..=90 => Step::Index { does: self.flush() },
            91..=92 => self.clock(),
            93..=95 => Step::Outbox {
                consumer: self.rng.small(2),
                take: 1 + self.rng.small(12),
                acknowledges: self.rng.chance(60),
            },
            96..=98 => Step::Artifact {
                does: self.keeping(),
                pick: self.rng.small(8),
            },
            _ => Step::Verify,
        }
    }

    pub(super) fn act(&mut self) -> Act {
        let deposed = [
            Fault::DeposedWrites,
            Fault::DeposedAcknowledges,
            Fault::DeposedCalls,
        ];
        let owner = match self.rng.chance(15) && self.one_of(&deposed).is_some() {
            true => 1 + self.rng.small(2),
            false => 0,
        };
        Act {
            run: self.run(),
            owner,
            pick: self.rng.small(6),
            fate: self.fate(),
            cost: self.rng.small(12),
            kill: self.kill_point(),
            paired: self.rng.chance(25),
        }
    }

    fn fate(&mut self) -> Fate {
        match self.rng.below(10) {
            0..=3 => Fate::Applied,
            4 => Fate::Refused,
            _ => {
                let allowed: Vec<Fate> = FATES
                    .iter()
                    .filter(|(fault, _)| self.faults.contains(fault))
                    .map(|(_, fate)| *fate)
                    .collect();
                self.rng.pick(&allowed).copied().unwrap_or(Fate::Applied)
            }
        }
    }

    fn kill_point(&mut self) -> Kill {
        let all = [
            (Fault::KillBeforeCommit, Kill::BeforeCommit),
            (Fault::KillAfterCommit, Kill::AfterCommit),
            (Fault::KillInCall, Kill::InCall),
        ];
        if !self.rng.chance(4) {
            return Kill::No;
        }
        let chosen = self.rng.pick(&all).copied();
        chosen
            .filter(|(fault, _)| self.may(*fault))
            .map_or(Kill::No, |(_, kill)| kill)
    }

    pub(super) fn together(&mut self) -> Step {
        let acts = (0..2 + self.rng.below(2)).map(|_| self.act()).collect();
        Step::Together { acts }
    }

    /// What keeps a run going comes often, what ends it seldom.
    pub(super) fn person(&mut self) -> Person {
        match self.rng.below(20) {
            0..=1 => Person::Approve,
            2..=4 => Person::Start,
            5..=6 => Person::Reconcile,
            7..=8 => Person::Recheck,
            9..=10 => Person::Verify,
            _ => self.rng.pick(&PEOPLE).copied().unwrap_or(Person::Start),
        }
    }

    pub(super) fn attempted(&mut self) -> Step {
        let what = self.rng.pick(&Attempted::ALL).copied();
        let foreign = self.may(Fault::ForeignToken);
        let what = what
            .filter(|what| foreign || !matches!(what, Attempted::WrongToken | Attempted::OtherRun));
        Step::Try {
            run: self.run(),
            what: what.unwrap_or(Attempted::ClaimTwice),
            pick: self.rng.small(4),
        }
    }

    pub(super) fn again(&mut self) -> Step {
        let other_body = self.rng.chance(40) && self.may(Fault::OtherBody);
        match other_body || self.may(Fault::MessageTwice) {
            true => Step::Again {
                pick: self.rng.small(16),
                other_body,
            },
            false => NOTHING,
        }
    }

    pub(super) fn hear(&mut self) -> Step {
        let pick = if self.may(Fault::MessageLate) {
            self.rng.small(4)
        } else {
            0
        };
        if self.may(Fault::MessageLost) && self.rng.chance(15) {
            return Step::Lose { pick };
        }
        if self.may(Fault::SettlesLate) && self.rng.chance(15) {
            return Step::WorldLate;
        }
        Step::Hear {
            pick,
            owner: u8::from(self.may(Fault::DeposedSettles) && self.rng.chance(20)),
            twice: self.may(Fault::MessageTwice) && self.rng.chance(10),
        }
    }

    pub(super) fn takeover(&mut self) -> Step {
        Step::Takeover {
            run: self.run(),
            beside: self.may(Fault::DeposedWrites) && self.rng.chance(50),
        }
    }

    pub(super) fn kill(&mut self) -> Step {
        match self.may(Fault::KillInTakeover) {
            true => Step::Kill,
            false => Step::Restart,
        }
    }

    pub(super) fn power(&mut self) -> Step {
        let depths = [
            Fault::CrashInRecovery,
            Fault::CrashTwiceInRecovery,
            Fault::CrashThriceInRecovery,
        ];
        let mut again = Vec::new();
        for fault in depths {
            if !self.may(fault) || !self.rng.chance(40) {
                break;
            }
            // A recovery takes some dozens of operations.
            again.push(self.outage(40));
        }
        Step::Power {
            outage: self.outage(60),
            again,
        }
    }

    fn outage(&mut self, operations: u64) -> Outage {
        let kind = self.one_of(&LOSSES).unwrap_or(Fault::DropAll);
        let at = LOSSES.iter().position(|it| *it == kind).unwrap_or(0);
        Outage {
            after: u16::try_from(self.rng.below(operations)).unwrap_or(0),
            kind: u8::try_from(at).unwrap_or(0),
            seed: self.seed(),
        }
    }

    pub(super) fn strike(&mut self) -> Step {
        let after = u16::try_from(self.rng.below(60)).unwrap_or(0);
        match self.one_of(&STRIKES) {
            Some(fault) => Step::Strike {
                after,
                fault: fault.name().to_owned(),
            },
            None => NOTHING,
        }
    }

    pub(super) fn flush(&mut self) -> Flush {
        let all = [
            Flush::Begin,
            Flush::Write,
            Flush::End,
            Flush::Whole,
            Flush::Whole,
        ];
        self.rng.pick(&all).copied().unwrap_or(Flush::Whole)
    }

    pub(super) fn clock(&mut self) -> Step {
        let by = i64::try_from(self.rng.below(30_000)).unwrap_or(0);
        match self.rng.below(3) {
            0 if self.may(Fault::ClockBack) => Step::Clock { by: -by },
            1 if self.may(Fault::ClockForward) => Step::Clock { by },
            2 if self.may(Fault::ClockFrozen) => Step::Freeze {
                on: self.rng.chance(50),
            },
            _ => Step::Clock { by: by / 100 },
        }
    }

    pub(super) fn keeping(&mut self) -> Keeping {
        let all = [Keeping::Put, Keeping::Read, Keeping::Collect, Keeping::Mend];
        self.rng.pick(&all).copied().unwrap_or(Keeping::Put)
    }
}

//! A plan: the steps of a simulation as data, drawn from a seed.
//!
//! Invariant: a step names what it means by small numbers that are taken modulo what is there, so any part of a plan is a
//! plan too; nothing is drawn while a plan is carried out. Made here, carried out by the simulation, cut by the shrinker.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::rng::Rng;
use crate::world::Fate;

mod draw;
pub mod graphs;
mod history;
mod story;

#[cfg(test)]
pub(crate) use draw::graphs_of;
pub use draw::{LIES, LOSSES, STRIKES, draw};
use graphs::Shape;
pub use history::{HISTORY, history};

/// Runs of the mission, unless a plan has more.
pub const RUNS: u8 = 3;

/// A loss of power in data: what survives of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outage {
    /// After how many operations of the disk the power goes.
    pub after: u16,
    /// Which kind of survival: the place of a storage fault in the catalogue's first block.
    pub kind: u8,
    /// What is drawn from.
    pub seed: u32,
}

/// When the process dies around a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kill {
    /// Not at all.
    No,
    /// Before the append is handed in.
    BeforeCommit,
    /// After the commit and before anybody heard of it.
    AfterCommit,
    /// After the provider was called and before it answered.
    InCall,
}

/// One owner does one of the things that it could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Act {
    /// The run.
    pub run: u8,
    /// Which owner: 0 is the newest, 1 the one that it deposed.
    pub owner: u8,
    /// Which of its steps.
    pub pick: u8,
    /// What becomes of a call, if one follows.
    pub fate: Fate,
    /// What it costs.
    pub cost: u8,
    /// When the process dies.
    pub kill: Kill,
    /// Whether the step that follows from it goes with it, in one append.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paired: bool,
}

/// What a person does, or the mission's actor for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Person {
    /// Starts a run.
    Start,
    /// Grants a part of what was granted.
    Grant,
    /// Approves what waits.
    Approve,
    /// Withdraws an approval.
    Revoke,
    /// Says that the result is verified.
    Verify,
    /// Accepts the result.
    Accept,
    /// Holds the run.
    Hold,
    /// Looks at a hold again.
    Recheck,
    /// Asks for the end of the run.
    Cancel,
    /// Ends it.
    FinishCancel,
    /// Finds out what an attempt did, and says so.
    Reconcile,
    /// Gives back an attempt that was prepared and will not be made.
    Return,
    /// Holds a branch of the run.
    HoldBranch,
    /// Ends a hold by giving the run up.
    GiveUp,
    /// Says that a hand-off no longer counts.
    Invalidate,
    /// Says something about a hand-off.
    Summarize,
}

/// What somebody tries who may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attempted {
    /// Claims what is claimed.
    ClaimTwice,
    /// Acknowledges with another token.
    WrongToken,
    /// Acknowledges with a claim that has expired.
    ExpiredClaim,
    /// Admits what is admitted.
    AdmitAgain,
    /// Tries again what nobody knows the outcome of.
    RetryUnknown,
    /// Tries again beyond the bound.
    RetryBeyond,
    /// Reconciles without evidence.
    NoEvidence,
    /// Reconciles in the name of an agent.
    AgentReconciles,
    /// Lifts a hold in the name of an agent.
    AgentReleases,
    /// Works on as if nothing held the run.
    BlindToHolds,
    /// Settles what is settled.
    SettleTwice,
    /// Names another run.
    OtherRun,
    /// Goes on with a node as soon as it has one receipt, whatever becomes of the others.
    JoinEarly,
    /// Completes a run that is not done.
    CompleteEarly,
    /// Says that a loop is not done, whatever its bound.
    LoopOn,
}

impl Attempted {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::ClaimTwice,
        Self::WrongToken,
        Self::ExpiredClaim,
        Self::AdmitAgain,
        Self::RetryUnknown,
        Self::RetryBeyond,
        Self::NoEvidence,
        Self::AgentReconciles,
        Self::AgentReleases,
        Self::BlindToHolds,
        Self::SettleTwice,
        Self::OtherRun,
        Self::JoinEarly,
        Self::CompleteEarly,
        Self::LoopOn,
    ];
}

/// A part of the flusher's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flush {
    /// Takes what the index lacks.
    Begin,
    /// Writes it.
    Write,
    /// Takes the result.
    End,
    /// All three.
    Whole,
}

/// What happens to artifacts beside the hand-offs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keeping {
    /// Bytes are put that no event names, or that are there already.
    Put,
    /// Something is read.
    Read,
    /// What no event names is collected.
    Collect,
    /// The same, and between the list and the collection an owner puts and names what was an orphan.
    CollectLate,
    /// A bit changes at rest in what an event names.
    Rot,
    /// Everything that changed at rest is put right again from a backup.
    Mend,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// An owner acts.
    Act(Act),
    /// An owner claims what it can, and no more.
    Claim {
        /// The run.
        run: u8,
    },
    /// A run goes on without a fault of its own: owner, provider and people do what is to be done.
    Progress {
        /// The run.
        run: u8,
        /// For how many rounds.
        rounds: u8,
    },
    /// Several owners hand in what they decided as one commit.
    Together {
        /// What they do.
        acts: Vec<Act>,
    },
    /// An owner decides, and what it decided waits.
    HoldBack(Act),
    /// What waited is handed in.
    HandIn {
        /// Which.
        pick: u8,
    },
    /// A person does something.
    Person {
        /// The run.
        run: u8,
        /// What.
        does: Person,
        /// Which of several.
        pick: u8,
    },
    /// Somebody tries what must be refused.
    Try {
        /// The run.
        run: u8,
        /// What.
        what: Attempted,
        /// Which of several.
        pick: u8,
    },
    /// An earlier request comes again.
    Again {
        /// Which.
        pick: u8,
        /// With another body.
        #[serde(rename = "otherBody")]
        other_body: bool,
    },
    /// A provider's answer arrives.
    Hear {
        /// Which.
        pick: u8,
        /// Which owner hears it: 0 is the newest.
        owner: u8,
        /// And comes once more later.
        twice: bool,
    },
    /// A provider's answer is lost, and the caller's time is up.
    Lose {
        /// Which.
        pick: u8,
    },
    /// What the provider had put off happens.
    WorldLate,
    /// A new owner takes a run over while the old one goes on.
    Takeover {
        /// The run.
        run: u8,
        /// The old one hands something in with the same commit.
        beside: bool,
    },
    /// The process dies; what it wrote and did not sync is still in the cache.
    Kill,
    /// The process ends as it should, and begins again.
    Restart,
    /// The power goes, and perhaps again during the recovery.
    Power {
        /// When and how.
        outage: Outage,
        /// The losses during the recoveries.
        again: Vec<Outage>,
    },
    /// An operation of the disk fails.
    Strike {
        /// After how many operations.
        after: u16,
        /// Which storage fault of the catalogue, by its name.
        fault: String,
    },
    /// The flusher works.
    Index {
        /// What it does.
        does: Flush,
    },
    /// The clock jumps.
    Clock {
        /// By how much, in milliseconds.
        by: i64,
    },
    /// The clock stands still, or goes on.
    Freeze {
        /// Which.
        on: bool,
    },
    /// A consumer of the outbox reads.
    Outbox {
        /// Which consumer.
        consumer: u8,
        /// How many events.
        take: u8,
        /// Whether it says that it has them.
        acknowledges: bool,
    },
    /// Something is done with artifacts.
    Artifact {
        /// What.
        does: Keeping,
        /// Which.
        pick: u8,
    },
    /// The store is verified.
    Verify,
    /// Everything is looked at: the log is folded anew and verified, and every accepted command is sent once more.
    Audit,
    /// Damage at rest; the last step of a plan that has it.
    Damage {
        /// Which storage fault of the catalogue, by its name.
        fault: String,
        /// What is drawn from.
        seed: u32,
    },
}

/// A seed's steps with what they may meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The kinds of fault that may occur.
    pub faults: BTreeSet<Fault>,
    /// The graphs of its runs, which take turns; none for the fixed ones.
    pub graphs: Vec<Shape>,
    /// How many runs there may be.
    pub runs: u8,
    /// Whether every command has a request of its own, also what owners do by themselves.
    pub named: bool,
    /// The steps.
    pub steps: Vec<Step>,
}

/// A random half of the kinds (swarm testing): most bugs need few kinds, and some kinds hide others.
pub fn swarm(rng: &mut Rng, among: &BTreeSet<Fault>) -> BTreeSet<Fault> {
    among.iter().copied().filter(|_| rng.chance(50)).collect()
}

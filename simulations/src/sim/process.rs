//! A process of the simulation: everything that is gone when it dies.
//!
//! Invariant: it is made by opening what the disk has and knows nothing else. Made by the simulation, changed by its steps.

use std::collections::{BTreeMap, VecDeque};

use aiws::digest::Digest;
use aiws::id::{AttemptId, DeliveryId};
use praxis_artifacts::FileArtifacts;
use praxis_journal::{Append, FlushJob, Ledger};
use praxis_journal_format::Sealed;
use praxis_model::mission::MissionState;
use praxis_model::run::RunState;

use crate::world::{Call, Fate, Response};

/// A living process.
pub(super) struct Process {
    pub ledger: Ledger,
    pub artifacts: FileArtifacts,
    /// What it has read of the log.
    pub log: Vec<Sealed>,
    pub mission: Option<MissionState>,
    /// The owners of each run, oldest first.
    pub owners: BTreeMap<u8, Vec<Owner>>,
    /// Decided and not handed in.
    pub held: VecDeque<Prepared>,
    /// Answers of the provider that are on their way.
    pub heard: VecDeque<Heard>,
    /// Whether it has taken charge of the runs.
    pub begun: bool,
    pub flush: Option<(FlushJob, Option<Result<(), praxis_journal::StoreError>>)>,
}

/// One owner of a run.
pub(super) struct Owner {
    /// Never used again.
    pub number: u32,
    pub state: RunState,
    /// The epoch that it acts under.
    pub epoch: u64,
    /// The claims that it holds: fingerprint of the token and generation.
    pub tokens: BTreeMap<DeliveryId, (Digest, u64)>,
    /// Whether its takeover is durable, or it is the first.
    pub charged: bool,
    /// Look-ups that found nothing.
    pub looked: Vec<AttemptId>,
}

/// Decided, sealed, folded, and not handed in yet.
pub(super) struct Prepared {
    pub by: By,
    pub append: Append,
    pub then: Then,
}

/// Whose append it is, with the state that it leads to.
pub(super) enum By {
    /// An owner's, by its number.
    Owner {
        run: u8,
        number: u32,
        epoch: u64,
        next: Box<RunState>,
    },
    /// The mission's.
    Mission(Box<MissionState>),
    /// Somebody's who has no state: a request that comes again.
    Nobody,
}

/// What follows once it is stored.
pub(super) enum Then {
    Nothing,
    /// The provider is called.
    Call {
        call: Call,
        fate: Fate,
        /// The process dies before the answer.
        dies: bool,
    },
    /// A claim's token is handed out.
    Token(DeliveryId, Digest, u64),
    /// A new run needs an owner.
    Own(u8),
    /// A new owner, by its number, is in charge.
    Charge(u32),
}

/// An answer of the provider on its way to an owner.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub run: u8,
    pub attempt: AttemptId,
    pub response: Response,
}

impl Process {
    /// Whether it has done what a process does first.
    pub fn owners_known(&self) -> bool {
        self.begun
    }

    /// An owner by its age: 0 is the newest.
    pub fn owner(&mut self, run: u8, age: u8) -> Option<&mut Owner> {
        let owners = self.owners.get_mut(&run)?;
        let at = owners.len().checked_sub(1 + usize::from(age))?;
        owners.get_mut(at)
    }

    /// An owner by its number.
    pub fn numbered(&mut self, run: u8, number: u32) -> Option<&mut Owner> {
        let owners = self.owners.get_mut(&run)?;
        owners.iter_mut().find(|owner| owner.number == number)
    }

    /// Whether an answer for the attempt is on its way.
    pub fn expects(&self, attempt: &AttemptId) -> bool {
        self.heard.iter().any(|heard| heard.attempt == *attempt)
    }
}

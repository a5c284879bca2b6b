//! The simulator proved: planted defects that it must find by the right invariant, and the controls.
//!
//! Invariant: a plant counts as caught only if the invariant that is there for it is the one that is broken, on several
//! seeds; without the oracle nothing may be found but what the simulation itself must see. Run by tests and by reports.

use std::collections::BTreeSet;
use std::time::Duration;
#[cfg(debug_assertions)]
use std::time::Instant;

use praxis_model::guard::Guard;
use praxis_plant::Plant;

#[cfg(debug_assertions)]
use crate::fault::Fault;
use crate::invariant::Invariant;
#[cfg(debug_assertions)]
use crate::plan::draw;
#[cfg(debug_assertions)]
use crate::sim::Options;

/// A planted defect and the invariants of which one must be the first to break.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// The defect.
    pub plant: Plant,
    /// Its name.
    pub name: &'static str,
    /// The invariant that is there for it.
    pub invariant: Invariant,
}

/// What became of a planted defect.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The defect.
    pub planted: Planted,
    /// The seeds on which its invariant was the one that broke.
    pub seeds: Vec<u64>,
    /// Other invariants that broke instead, with a seed each.
    pub others: Vec<(Invariant, u64, String)>,
    /// Seeds that were tried.
    pub tried: u64,
    /// How long it took until the first was caught.
    pub first: Option<Duration>,
}

impl Caught {
    /// Whether it was caught often enough.
    pub fn enough(&self) -> bool {
        self.seeds.len() >= SEVERAL
    }
}

/// On how many seeds a defect must be caught.
pub const SEVERAL: usize = 2;

macro_rules! table {
    ($($plant:ident $invariant:ident;)*) => {
        &[$(Planted { plant: Plant::$plant, name: Plant::$plant.name(), invariant: Invariant::$invariant },)*]
    };
}

/// The defects of the product and of the engine's part, each with its invariant.
pub const TABLE: &[Planted] = table! {
    SequenceSkipped SequenceGapFree;
    HeadUnchecked LinksMatch;
    HashWithoutEpoch HashCovers;
    HeadsNotFlushed HeadsAreLast;
    SyncSkipped PrefixStays;
    CommitNotDurable PrefixStays;
    AnsweredBeforeCommit PrefixStays;
    AnsweredWithoutLooking NothingUnknown;
    ViewKeptAfterFailure ProjectionsReplay;
    EpochNotRaised EpochRises;
    ActsBeforeTakeover EpochDurable;
    FenceUnchecked EpochCurrent;
    FenceLess EpochCurrent;
    RestartWithoutTakeover OneWriter;
    FenceAtBatchStart EpochAtHead;
    WallClock ExpiredStays;
    ClaimedTwice OneClaim;
    ForeignReceipt NoForeignReceipt;
    GenerationKept GenerationRises;
    ReceiptLostOnTakeover ReceiptStays;
    MaterialTrusted ReceiptVerified;
    ReplayOfAnother SameAnswer;
    RefusalLeavesRow RejectionLeavesNothing;
    BoundUnchecked ReservationFits;
    BudgetRefusedEarly ComesToRest;
    BoundAtBatchStart ReservationFits;
    AmountSaturates NoUnderflow;
    ReservationEndsTwice ReservationEndsOnce;
    OverrunNotRecorded OverrunRecorded;
    LateSettlementDropped LateIsCharged;
    GateUnchecked HeldStartsNothing;
    ReleaseByAnyone ReleaseNamed;
    GatesNotFlushed HoldStays;
    DedupeIgnoresBody BodyCounts;
    DedupeInMemory DedupeSurvives;
    DedupeForgets DedupeForLife;
    OutboxSkips OutboxWhole;
    OutboxAdvancesOnRead OutboxAgain;
    OutboxAcknowledgesAll OutboxConsumer;
    ReadUnverified ReadHashes;
    AnnouncedBeforeSync ReferencedDurable;
    CollectRaces CollectedUnnamed;
    PublishedBeforeSync NoPartialFile;
    TimeoutIsFailure LostIsUnknown;
    UnknownReleases UnknownReserves;
    UnknownRetried NoRetryByItself;
    LookupTrustsAbsence WorldAgrees;
    BranchHoldNarrow HeldStartsNothing;
    LoopPastBound LoopBound;
    InvalidationForgets InvalidStops;
    CompletionUnchecked CompleteIsWhole;
    SummaryMovesDue WordsChangeNothing;
};

/// Rows of the model's table of guards that a simulation tries, each with a name and its invariant.
pub const GUARDS: &[(Guard, &str, Invariant)] = &[
    (
        Guard::ClaimToken,
        "guard-claim-token",
        Invariant::HolderOnly,
    ),
    (
        Guard::ActivationUnbound,
        "guard-activation-unbound",
        Invariant::AdmittedOnce,
    ),
    (
        Guard::AttemptsLeft,
        "guard-attempts-left",
        Invariant::BoundsHold,
    ),
    (
        Guard::UncertainEvidence,
        "guard-uncertain-evidence",
        Invariant::ResolvedByEvidence,
    ),
    (
        Guard::InputsComplete,
        "guard-inputs-complete",
        Invariant::InputsWhole,
    ),
    (
        Guard::JoinSettled,
        "guard-join-settled",
        Invariant::NothingAbandoned,
    ),
    (
        Guard::ResolveInputs,
        "guard-resolve-inputs",
        Invariant::InvalidStops,
    ),
    (
        Guard::RetryResolved,
        "guard-retry-resolved",
        Invariant::NoRetryByItself,
    ),
];

/// Everything that is planted.
pub fn all() -> Vec<Planted> {
    let guards = GUARDS.iter().map(|(guard, name, invariant)| Planted {
        plant: guard.plant(),
        name,
        invariant: *invariant,
    });
    TABLE.iter().copied().chain(guards).collect()
}

/// Invariants that have a planted defect.
pub fn proven() -> BTreeSet<Invariant> {
    all().iter().map(|planted| planted.invariant).collect()
}

/// Runs seeds with a defect until it was caught often enough, or for so many seeds.
#[cfg(debug_assertions)]
pub fn catch(planted: &Planted, first_seed: u64, seeds: u64, steps: usize) -> Caught {
    let allowed = Fault::ALL.iter().copied().collect();
    let options = Options {
        beside: 1,
        ..Options::default()
    };
    let begun = Instant::now();
    let mut caught = Caught {
        planted: *planted,
        seeds: Vec::new(),
        others: Vec::new(),
        tried: 0,
        first: None,
    };
    for seed in (0..seeds).map(|number| first_seed.wrapping_add(number)) {
        if caught.enough() {
            break;
        }
        caught.tried += 1;
        let plan = draw(seed, &allowed, steps);
        let outcome = praxis_plant::with(planted.plant, || crate::sim::run(&plan, options));
        match outcome.broken {
            Some((_, broken)) if broken.invariant == planted.invariant => {
                caught.seeds.push(seed);
                caught.first.get_or_insert(begun.elapsed());
            }
            Some((_, broken)) => caught.others.push((broken.invariant, seed, broken.what)),
            None => {}
        }
    }
    caught
}

/// Whether with the oracle off nothing is found, on a seed on which the defect was caught.
#[cfg(debug_assertions)]
pub fn is_silent(caught: &Caught) -> bool {
    let off = Options {
        oracle: false,
        beside: 1,
        ..Options::default()
    };
    let allowed = Fault::ALL.iter().copied().collect();
    caught.seeds.iter().take(1).all(|seed| {
        let plan = draw(*seed, &allowed, crate::campaign::STEPS);
        let plant = caught.planted.plant;
        let outcome = praxis_plant::with(plant, || crate::sim::run(&plan, off));
        outcome.broken.is_none()
    })
}

/// Without debug assertions nothing was caught.
#[cfg(not(debug_assertions))]
pub fn is_silent(_: &Caught) -> bool {
    true
}

/// Without debug assertions nothing can be planted, and nothing is caught.
#[cfg(not(debug_assertions))]
pub fn catch(planted: &Planted, _: u64, _: u64, _: usize) -> Caught {
    Caught {
        planted: *planted,
        seeds: Vec::new(),
        others: Vec::new(),
        tried: 0,
        first: None,
    }
}

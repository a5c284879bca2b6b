//! Planted defects: wrong code that somebody could write, switched on for one piece of work to prove the crash simulator.
//!
//! Invariant: a build without debug assertions has no way to set a plant: there `is` is a constant `false`, and the
//! compiler drops what stands behind it. A plant holds on the thread that sets it, and only for its work. Asked by model,
//! format, journal, artifacts and simulator at the places where the defect would stand; set by the simulator's own checks.

macro_rules! plants {
    ($($variant:ident $name:literal $sentence:literal;)*) => {
        /// A defect that somebody could write.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Plant {
            $(#[doc = $sentence] $variant,)*
            /// A row of the model's table of guards, by its number, lets everything pass.
            Guard(u16),
        }

        impl Plant {
            /// All but the guards.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// Its name; of every guard the same.
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name,)* Self::Guard(_) => "guard" } }
            /// What is wrong.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)* Self::Guard(_) => "A guard of the model lets everything pass." }
            }
            /// The plant of a name; guards have none.
            pub fn named(name: &str) -> Option<Self> { match name { $($name => Some(Self::$variant),)* _ => None } }
        }
    };
}

#[rustfmt::skip]
plants! {
    // The log.
    SequenceSkipped "sequence-skipped" "A commit is stored one sequence too far.";
    HeadUnchecked "head-unchecked" "An event is taken wherever it links to.";
    HashWithoutEpoch "hash-without-epoch" "The hash of an event leaves the owner epoch out.";
    HeadsNotFlushed "heads-not-flushed" "The index is written without the heads, and its cursor moves.";
    SyncSkipped "sync-skipped" "A sync is confirmed without being made.";
    CommitNotDurable "commit-not-durable" "A commit of the log is answered without being durable.";
    SyncRetried "sync-retried" "A failed sync is tried again, and the second answer is believed.";
    ReopenInPlace "reopen-in-place" "After a failed sync the file is opened again and trusted, with one-phase commits as the storage engine makes them by default.";
    CursorAhead "cursor-ahead" "The index is written up to a commit before the log has that commit.";
    TailUnchecked "tail-unchecked" "The log's head is not compared with the index's cursor when the store is opened.";
    AnsweredBeforeCommit "answered-before-commit" "An append is answered as stored before the log is asked.";
    AnsweredWithoutLooking "answered-without-looking" "After a failed commit nobody looks whether it is in the log.";
    ViewKeptAfterFailure "view-kept-after-failure" "The projections keep a commit that failed.";
    // Ownership.
    EpochNotRaised "epoch-not-raised" "A takeover leaves the epoch as it is.";
    FenceUnchecked "fence-unchecked" "The epoch is checked by the owner alone.";
    FenceLess "fence-less" "The fence lets older epochs pass: less or equal instead of equal.";
    FenceAtBatchStart "fence-at-batch-start" "The fence is checked against the projections before the batch.";
    ActsBeforeTakeover "acts-before-takeover" "A new owner acts before its takeover is durable.";
    RestartWithoutTakeover "restart-without-takeover" "After a crash the next owner goes on under the epoch of the dead one.";
    // Claims, receipts, admission.
    WallClock "wall-clock" "Leases are checked against the machine's clock, which goes back.";
    ClaimedTwice "claimed-twice" "A live claim counts as expired, and another one is given.";
    ForeignReceipt "foreign-receipt" "A receipt is stored under the name of another run's delivery.";
    GenerationKept "generation-kept" "A new claim has the generation of the last.";
    ReceiptLostOnTakeover "receipt-lost-on-takeover" "A takeover gives receipts back.";
    MaterialTrusted "material-trusted" "Material counts as verified without being read.";
    ReplayOfAnother "replay-of-another" "A request that comes again is answered with the event after its own.";
    RefusalLeavesRow "refusal-leaves-row" "The projections keep what a refused append would have changed.";
    // Accounts.
    BoundUnchecked "bound-unchecked" "A reservation is not compared with its bound.";
    BudgetRefusedEarly "budget-refused-early" "An admission is refused for its budget as soon as anything of it is used.";
    BoundAtBatchStart "bound-at-batch-start" "A reservation is compared with the projections before the batch.";
    AmountSaturates "amount-saturates" "A reservation that ends twice leaves the account at zero, in silence.";
    ReservationEndsTwice "reservation-ends-twice" "A settlement releases the reservation once more.";
    OverrunNotRecorded "overrun-not-recorded" "What is settled past the bound is not recorded as an overrun.";
    LateSettlementDropped "late-settlement-dropped" "A settlement after the run's end or cancellation is not charged.";
    // Holds.
    GateUnchecked "gate-unchecked" "Gates are checked by the owner alone.";
    ReleaseByAnyone "release-by-anyone" "A hold is released by whoever asks.";
    GatesNotFlushed "gates-not-flushed" "The index is written without the gates, and its cursor moves.";
    // Graphs.
    BranchHoldNarrow "branch-hold-narrow" "A hold over a branch covers its first node alone.";
    LoopPastBound "loop-past-bound" "A loop's bound is off by one: greater instead of greater or equal.";
    InvalidationForgets "invalidation-forgets" "An invalidation leaves what had consumed the hand-off as it was.";
    CompletionUnchecked "completion-unchecked" "A run is completed without a look at its nodes.";
    SummaryMovesDue "summary-moves-due" "A summary takes its run from the list of those that are to be started.";
    // Requests.
    DedupeIgnoresBody "dedupe-ignores-body" "A request id alone makes a request the same.";
    DedupeInMemory "dedupe-in-memory" "Requests are known as long as the process lives.";
    DedupeForgets "dedupe-forgets" "Requests are forgotten once the index was written.";
    // The outbox.
    OutboxSkips "outbox-skips" "A read of the outbox leaves its first event out.";
    OutboxAdvancesOnRead "outbox-advances-on-read" "A read of the outbox begins behind what was read before, acknowledged or not.";
    OutboxAcknowledgesAll "outbox-acknowledges-all" "An acknowledgement moves the cursor to the end of the log.";
    // Artifacts.
    ReadUnverified "read-unverified" "Bytes of an artifact are handed out unchecked.";
    AnnouncedBeforeSync "announced-before-sync" "An artifact is announced before its name is durable.";
    CollectRaces "collect-races" "A collection does not look again whether the bytes were put meanwhile.";
    PublishedBeforeSync "published-before-sync" "A file gets its final name before its bytes are durable.";
    // Unknown outcomes.
    TimeoutIsFailure "timeout-is-failure" "A lost answer is taken for a failure.";
    UnknownReleases "unknown-releases" "An unknown outcome releases its reservation.";
    UnknownRetried "unknown-retried" "A lost answer is followed by another call.";
    LookupTrustsAbsence "lookup-trusts-absence" "A status query that finds nothing counts as proof that nothing happened.";
}

#[cfg(debug_assertions)]
mod switch {
    use std::cell::Cell;

    use super::Plant;

    thread_local! {
        static PLANTED: Cell<Option<Plant>> = const { Cell::new(None) };
    }

    /// Takes the plant out again, also when the work panics.
    struct Uproot;

    impl Drop for Uproot {
        fn drop(&mut self) {
            PLANTED.set(None);
        }
    }

    /// Does the work with a plant on this thread.
    pub fn with<T>(plant: Plant, work: impl FnOnce() -> T) -> T {
        PLANTED.set(Some(plant));
        let _uproot = Uproot;
        work()
    }

    /// Whether a plant is set on this thread.
    pub fn is(plant: Plant) -> bool {
        PLANTED.get() == Some(plant)
    }
}

#[cfg(debug_assertions)]
pub use switch::{is, with};

/// Whether a plant is set: never, in this build.
#[cfg(not(debug_assertions))]
pub const fn is(_: Plant) -> bool {
    false
}

/// Whether this build can set plants at all.
pub const CAN_PLANT: bool = cfg!(debug_assertions);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_again() {
        for plant in Plant::ALL {
            assert_eq!(Plant::named(plant.name()), Some(*plant));
        }
    }

    #[test]
    fn nothing_is_planted_unless_somebody_plants_it() {
        assert!(Plant::ALL.iter().all(|plant| !is(*plant)));
    }

    #[cfg(debug_assertions)]
    #[test]
    fn a_plant_ends_with_its_work() {
        let planted = Plant::SyncSkipped;
        assert!(with(planted, || is(planted) && !is(Plant::Guard(0))));
        let panicked = std::panic::catch_unwind(|| with(planted, || panic!("the work panics")));
        assert!(panicked.is_err() && !is(planted));
    }
}

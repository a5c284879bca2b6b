//! The numbered invariants: what must hold after every step, every reopening and in the healed end.
//!
//! Invariant: a number is never given to another sentence; a violation names exactly one. Read by the oracle that judges,
//! by the table of planted defects, and by reports.

use std::fmt;

macro_rules! invariants {
    ($($number:literal $variant:ident $group:literal $sentence:literal;)*) => {
        /// One thing that must always hold.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Invariant { $(#[doc = $sentence] $variant,)* }

        impl Invariant {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// Its number.
            pub const fn number(self) -> u8 { match self { $(Self::$variant => $number,)* } }
            /// What it is about.
            pub const fn group(self) -> &'static str { match self { $(Self::$variant => $group,)* } }
            /// What must hold.
            pub const fn sentence(self) -> &'static str { match self { $(Self::$variant => $sentence,)* } }
        }
    };
}

#[rustfmt::skip]
invariants! {
     1 SequenceGapFree "chain" "Sequences of the log have no gap.";
     2 LinksMatch "chain" "Every event links to the event before it in its stream.";
     3 HashCovers "chain" "An event's hash covers everything but itself.";
     4 HeadsAreLast "chain" "The head of every stream is its last event.";
     5 PrefixStays "chain" "What was acknowledged is never lost.";
     6 NothingUnknown "chain" "The log holds nothing that was not handed in, or that was answered as not stored.";
     7 ProjectionsReplay "chain" "Every projection equals what a replay of the log gives.";
     8 CheckpointsExtend "chain" "Every head that was kept outside is part of the log from then on.";
     9 EpochRises "epoch" "A takeover raises the epoch.";
    10 EpochDurable "epoch" "A new owner acts only once its epoch is durable.";
    11 EpochCurrent "epoch" "No event is below the current epoch of its run.";
    12 OneWriter "epoch" "A run has one writer per epoch.";
    13 EpochAtHead "epoch" "The epoch is checked at the very head of the log, within a batch too.";
    14 OneClaim "claims" "A delivery has at most one live claim.";
    15 ExpiredStays "claims" "An expired claim stays expired when the clock goes back.";
    16 HolderOnly "claims" "Only the holder of the token uses a claim.";
    17 GenerationRises "claims" "A claim that follows another has a higher generation.";
    18 ReceiptStays "receipts" "A receipt stays.";
    19 ReceiptVerified "receipts" "A receipt is given only over material whose digest was computed again.";
    20 SameAnswer "receipts" "A duplicate gets the answer of the first.";
    21 NoForeignReceipt "receipts" "No receipt is given for a delivery of another run.";
    22 AdmittedOnce "admission" "An activation is admitted once.";
    23 RejectionLeavesNothing "admission" "A refused append leaves nothing.";
    24 BoundsHold "admission" "Attempts, grants and amounts stay within their bounds after every event.";
    25 ReservationFits "accounts" "A reservation fits its bound when it is made.";
    26 NoUnderflow "accounts" "No amount goes below zero or past its range.";
    27 ReservationEndsOnce "accounts" "A reservation ends exactly once.";
    28 OverrunRecorded "accounts" "What is settled past the bound is a recorded overrun.";
    29 LateIsCharged "accounts" "A late settlement is charged, never dropped.";
    30 HeldStartsNothing "holds" "What is held or canceled starts nothing.";
    31 HoldStays "holds" "A hold survives every restart.";
    32 ReleaseNamed "holds" "A hold ends by the authority that it needs, named.";
    33 BodyCounts "dedupe" "The same request again gives its first result; another body under its id is a conflict.";
    34 DedupeSurvives "dedupe" "A request is known after a reopening.";
    35 DedupeForLife "dedupe" "A request is known as long as the history is.";
    36 OutboxWhole "outbox" "A consumer sees every event before its cursor passes it, under one id.";
    37 OutboxAgain "outbox" "What a consumer has not acknowledged comes again.";
    38 OutboxConsumer "outbox" "A cursor moves by its consumer's acknowledgement alone.";
    39 ReadHashes "artifacts" "Bytes that are read hash to their id.";
    40 ReferencedDurable "artifacts" "What an event names is durable.";
    41 CollectedUnnamed "artifacts" "A collection never removes what an event names.";
    42 NoPartialFile "artifacts" "No partial file stands at a final name.";
    43 LostIsUnknown "unknown" "A lost response is UNKNOWN, never a failure.";
    44 UnknownReserves "unknown" "An unknown outcome keeps its reservation.";
    45 NoRetryByItself "unknown" "An unknown outcome is not tried again.";
    46 ResolvedByEvidence "unknown" "An unknown outcome is resolved by evidence alone.";
    47 WorldAgrees "unknown" "The world's record has all that the log says was applied, and nothing that it says was not; nothing is there twice.";
    48 Opens "life" "After a loss of power on an honest disk the store opens for writing.";
    49 ComesToRest "life" "Once all is healed, everything that was begun comes to its end.";
    50 LoopBound "flow" "A loop has no iteration past its bound, and none before the last has ended.";
    51 InputsWhole "flow" "A node begins with one receipt of each that it waits for, a join of any with exactly one.";
    52 NothingAbandoned "flow" "Nothing that was begun is left out, and nobody else but by a choice or by the policy of a join.";
    53 InvalidStops "flow" "What rests on an invalidated hand-off goes on no more.";
    54 CompleteIsWhole "flow" "A run is complete only where every node is done or left out, and an end is done.";
    55 WordsChangeNothing "flow" "A summary changes nothing but itself.";
}

impl fmt::Display for Invariant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.number(), self.sentence())
    }
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invariant {invariant}: {what}")]
pub struct Broken {
    /// Which one.
    pub invariant: Invariant,
    /// How, in a sentence.
    pub what: String,
}

impl Broken {
    /// A broken promise.
    pub fn new(invariant: Invariant, what: impl Into<String>) -> Self {
        Self {
            invariant,
            what: what.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_one_to_fifty_five() {
        let numbers: Vec<u8> = Invariant::ALL.iter().map(|it| it.number()).collect();
        assert_eq!(numbers, (1..=55).collect::<Vec<u8>>());
    }
}

//! The catalogue of faults: every kind that the simulator can make, by name.
//!
//! Invariant: a name is a kind that some code makes happen; a run draws a random half of the kinds and makes no other
//! (swarm testing). Read by plans, by the disk, by reports and by `--faults`.

use std::fmt;

macro_rules! faults {
    ($($variant:ident $layer:ident $name:literal $sentence:literal;)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault { $(#[doc = $sentence] $variant,)* }

        impl Fault {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// Its name, as `--faults` takes it.
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name,)* } }
            /// Where it happens.
            pub const fn layer(self) -> Layer { match self { $(Self::$variant => Layer::$layer,)* } }
            /// What happens.
            pub const fn sentence(self) -> &'static str { match self { $(Self::$variant => $sentence,)* } }
            /// The kind of a name.
            pub fn named(name: &str) -> Option<Self> { match name { $($name => Some(Self::$variant),)* _ => None } }
        }
    };
}

/// Where a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The disk below store and artifacts.
    Storage,
    /// Processes, messages, owners and clocks.
    Process,
    /// The provider of effects.
    World,
}

#[rustfmt::skip]
faults! {
    // What a loss of power leaves of the unsynced writes.
    DropAll Storage "drop-all" "No unsynced write survives.";
    KeepAll Storage "keep-all" "Every unsynced write survives, none of the syncs.";
    DropSubset Storage "drop-subset" "Any subset of the unsynced writes survives.";
    KeepOne Storage "keep-one" "A single unsynced write survives.";
    DropOne Storage "drop-one" "All unsynced writes but one survive.";
    Prefix Storage "prefix" "The first so many unsynced writes survive.";
    Sectors Storage "sectors" "Each sector of each unsynced write survives or not by itself.";
    ByteTear Storage "byte-tear" "An unsynced write is cut at a byte.";
    LengthLost Storage "length-lost" "A file's new length is lost while its data survive.";
    LengthEarly Storage "length-early" "A file's new length survives while its data do not.";
    NamesLost Storage "names-lost" "Unsynced creations, renames and removals are lost from some point on.";
    // Errors that the disk answers with.
    SyncErrorKept Storage "sync-error-kept" "A sync fails; the pages stay in the cache and count as clean.";
    SyncErrorReverted Storage "sync-error-reverted" "A sync fails; the pages are thrown away.";
    DirectorySyncError Storage "directory-sync-error" "A sync of a directory fails.";
    NameError Storage "name-error" "A creation, rename or removal fails.";
    FullOnWrite Storage "full-on-write" "A write finds the disk full.";
    FullOnGrowth Storage "full-on-growth" "A growing file finds the disk full.";
    WriteError Storage "write-error" "A write fails.";
    ReadError Storage "read-error" "A read fails.";
    ShortRead Storage "short-read" "A read ends early.";
    EnginePanic Storage "engine-panic" "The storage engine panics in the middle of an operation.";
    // Lies, which must be detected where anything can detect them.
    LyingSync Storage "lying-sync" "Syncs are confirmed and the data are lost with the power.";
    BitFlip Storage "bit-flip" "A bit changes at rest.";
    MisdirectedWrite Storage "misdirected-write" "A write lands elsewhere in its file.";
    StaleRead Storage "stale-read" "A read returns what stood there earlier.";
    Rollback Storage "rollback" "A whole file is an older image of itself.";
    // When the power goes.
    CrashInRecovery Storage "crash-in-recovery" "The power goes again during the recovery.";
    CrashTwiceInRecovery Storage "crash-twice-in-recovery" "And again during the recovery from that.";
    CrashThriceInRecovery Storage "crash-thrice-in-recovery" "And once more.";
    CrashInCreation Storage "crash-in-creation" "The power goes while the store is made.";
    CrashInFlush Storage "crash-in-flush" "The power goes while the index is written.";
    CrashInBackup Storage "crash-in-backup" "The power goes while a copy of the store is made.";
    CrashInPut Storage "crash-in-put" "The power goes while an artifact is put or collected.";
    // Processes.
    KillBeforeCommit Process "kill-before-commit" "The owner dies with its append decided and not handed in.";
    KillAfterCommit Process "kill-after-commit" "The owner dies after the commit and before the reply.";
    KillInTakeover Process "kill-in-takeover" "The supervisor dies while it raises an epoch.";
    KillInCall Process "kill-in-call" "The owner dies between the dispatch and the provider's answer.";
    MessageLost Process "message-lost" "A message does not arrive.";
    MessageTwice Process "message-twice" "A message arrives twice.";
    MessageLate Process "message-late" "A message arrives after others, or much later.";
    OtherBody Process "other-body" "A request comes again with another body.";
    DeposedWrites Process "deposed-writes" "A deposed owner goes on and writes.";
    DeposedSettles Process "deposed-settles" "A deposed owner settles what it had dispatched.";
    DeposedAcknowledges Process "deposed-acknowledges" "A deposed owner acknowledges what it had claimed.";
    DeposedCalls Process "deposed-calls" "A deposed owner wants to call the provider.";
    ForeignToken Process "foreign-token" "Somebody uses a claim without its token, or a delivery of another run.";
    ClockBack Process "clock-back" "The clock jumps back.";
    ClockForward Process "clock-forward" "The clock jumps forward.";
    ClockFrozen Process "clock-frozen" "The clock stands still.";
    // The world.
    ResponseLost World "response-lost" "The provider applies and its response is lost.";
    TimesOut World "times-out" "The call times out and nothing was applied.";
    SettlesLate World "settles-late" "The provider applies long after the call timed out.";
    AppliesInPart World "applies-in-part" "The provider applies a part and fails.";
    CallsBackTwice World "calls-back-twice" "The provider reports its result twice.";
    ForgetsKeys World "forgets-keys" "The provider forgets its idempotency keys.";
    WrongStatus World "wrong-status" "The provider's status query is wrong for a while.";
    CostsMore World "costs-more" "The effect costs more than was reserved.";
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_again() {
        for fault in Fault::ALL {
            assert_eq!(Fault::named(fault.name()), Some(*fault));
        }
    }
}

//! The one table of error codes: name, namespace, stage, sentence, remedy.
//! Invariant: the set is closed and a shipped name never changes its meaning (ERR-PREC.4).
//! Called by `error`, by `praxis explain`, and by the tests that compare the documents with this table.

use std::fmt;

/// The checks of a command run in this order and the first one that fails names the error (ERR-PREC.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// 1: strict JSON, protocol string, features, closed shape.
    Shape,
    /// 2: the principal is proven.
    Authentication,
    /// 3: the request key is new, a replay, or a conflict.
    Replay,
    /// 4: the expected revision is the head.
    Revision,
    /// 5: mission, run and ownership epoch agree.
    Ownership,
    /// 6: policy, human rule, scope.
    Authority,
    /// 7: terminal, cancel, pause and hold gates; only for commands that launch work.
    Gates,
    /// 8: the objects named exist, are in the right state, and their material is good.
    Object,
    /// 9: grant, approval, budget, limits, attempts.
    Admission,
    /// Outside the pipeline: the store could not do it.
    Store,
    /// Outside the pipeline: the call itself was wrong.
    Usage,
}

impl Stage {
    /// The stable name, as it stands in the member `stage` of an error.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Shape => "shape",
            Stage::Authentication => "authentication",
            Stage::Replay => "replay",
            Stage::Revision => "revision",
            Stage::Ownership => "ownership",
            Stage::Authority => "authority",
            Stage::Gates => "gates",
            Stage::Object => "object",
            Stage::Admission => "admission",
            Stage::Store => "store",
            Stage::Usage => "usage",
        }
    }

    /// The number 1..=9 of a pipeline stage; `None` for `Store` and `Usage`.
    pub const fn number(self) -> Option<u8> {
        match self {
            Stage::Store | Stage::Usage => None,
            other => Some(other as u8 + 1),
        }
    }
}

/// Which vocabulary a code belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Namespace {
    /// The twenty codes of `aiws-handoff/1`.
    Handoff,
    /// finite-v1.
    Core,
    /// `aiws-limits/1`.
    Limits,
    /// The journal and its directory.
    Store,
    /// The command line.
    Cli,
}

impl Namespace {
    /// The stable name, as it stands in the member `namespace` of an error.
    pub const fn name(self) -> &'static str {
        match self {
            Namespace::Handoff => "handoff",
            Namespace::Core => "core",
            Namespace::Limits => "limits",
            Namespace::Store => "store",
            Namespace::Cli => "cli",
        }
    }
}

macro_rules! codes {
    ($($variant:ident $name:literal $namespace:ident $stage:ident $sentence:literal $remedy:literal;)*) => {
        /// A stable error code. The table that makes this enum is the only place where codes are written down.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code {
            $(#[doc = $sentence] $variant,)*
        }

        const ALL: &[Code] = &[$(Code::$variant,)*];

        impl Code {
            /// The name on the wire, e.g. `HOLD_ACTIVE`.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// The vocabulary that the code belongs to.
            pub const fn namespace(self) -> Namespace {
                match self { $(Code::$variant => Namespace::$namespace,)* }
            }

            /// The stage that usually raises the code.
            pub const fn stage(self) -> Stage {
                match self { $(Code::$variant => Stage::$stage,)* }
            }

            /// What the code means, in one sentence.
            pub const fn sentence(self) -> &'static str {
                match self { $(Code::$variant => $sentence,)* }
            }

            /// What to do about it.
            pub const fn remedy(self) -> &'static str {
                match self { $(Code::$variant => $remedy,)* }
            }
        }
    };
}

codes! {
    UnsupportedProtocol "UNSUPPORTED_PROTOCOL" Handoff Shape
        "The protocol version or a required feature is not one this build speaks."
        "Send a protocol and features that this runtime declares; nothing is downgraded.";
    SchemaInvalid "SCHEMA_INVALID" Handoff Shape
        "The input is not strict JSON or not the closed shape that was expected."
        "Correct the input at the pointer in the message and send it again.";
    IdentityConflict "IDENTITY_CONFLICT" Handoff Replay
        "A stable identity was used again with other material."
        "Use a new identity for new material, or repeat the exact first request.";
    RevisionConflict "REVISION_CONFLICT" Handoff Revision
        "The expected revision is not the head of the stream."
        "Read the stream again, decide anew, and send the command with the current revision.";
    StaleOwner "STALE_OWNER" Handoff Ownership
        "The sender no longer owns what it speaks for: epoch, token, generation or principal is out of date."
        "Stop; whoever owns the run or the claim now continues it.";
    AuthorizationDenied "AUTHORIZATION_DENIED" Handoff Authority
        "The principal is not proven, or policy does not allow it to do this."
        "Ask as a principal that has the authority, or have the authority granted first.";
    HumanRequired "HUMAN_REQUIRED" Handoff Authority
        "This decision needs the authenticated decision of a human."
        "Have a person decide, from a terminal or a proven human session.";
    ScopeUnsupported "SCOPE_UNSUPPORTED" Handoff Authority
        "The scope cannot be resolved, or cannot be fenced in one step."
        "Name a scope that the store can resolve and gate, e.g. the run.";
    TerminalExecution "TERMINAL_EXECUTION" Handoff Gates
        "The run has ended and does not start work again."
        "Start a new run; late truth about old effects can still be settled.";
    HoldActive "HOLD_ACTIVE" Handoff Gates
        "A hold, a pause or a cancellation gates this work."
        "Look at the gate named in the details; resolve it, then try again.";
    DeliveryState "DELIVERY_STATE" Handoff Object
        "The delivery is not in a state that permits this."
        "Read the delivery; a final state never changes, a claimed one is free again after release or expiry.";
    HoldState "HOLD_STATE" Handoff Object
        "The hold is closed, unknown, or does not allow this decision."
        "Read the hold; decide only what its allowedDecisions list, and only while it is OPEN.";
    ClaimExpired "CLAIM_EXPIRED" Handoff Object
        "Trusted time has reached the end of the claim's lease."
        "Claim the delivery again; the new claim has a higher generation.";
    BasisStale "BASIS_STALE" Handoff Object
        "The graph, plan or source revision that the record stands on has moved."
        "Build the record again from the current position.";
    ArtifactUnavailable "ARTIFACT_UNAVAILABLE" Handoff Object
        "The artifact's bytes cannot be obtained under valid access and retention."
        "Restore the identical bytes, then check again.";
    ArtifactMismatch "ARTIFACT_MISMATCH" Handoff Object
        "The artifact's bytes differ from the recorded digest or size."
        "Restore the identical bytes, or produce a new manifest; a digest is never pointed elsewhere.";
    InputIncompatible "INPUT_INCOMPATIBLE" Handoff Object
        "The consumer's schema, mapping or accepted outcomes refuse this input."
        "Produce an input that fits the consumer, or plan a consumer that fits the input.";
    InputSetConflict "INPUT_SET_CONFLICT" Handoff Object
        "The activation is already bound to other inputs or another operation."
        "Continue with the bound set; a different set needs a new activation.";
    JoinUnsettled "JOIN_UNSETTLED" Handoff Object
        "Leaving out this predecessor would abandon admitted, active or unsettled work."
        "Settle or reconcile the predecessor's work first.";
    HoldNotClear "HOLD_NOT_CLEAR" Handoff Object
        "A blocker or an exhausted bound behind the hold is still there."
        "Clear each blocker listed in the details with evidence, then recheck.";

    NotFound "NOT_FOUND" Core Object
        "The named object does not exist in this mission."
        "Check the identity; list what exists before naming it.";
    DuplicateId "DUPLICATE_ID" Core Object
        "An identity that must be new exists already."
        "Choose a new identity.";
    StaleEpoch "STALE_EPOCH" Core Ownership
        "The expected epoch is not the run's current ownership epoch."
        "Read the run's epoch again before recovering it.";
    GrantExceeded "GRANT_EXCEEDED" Core Admission
        "The grant does not cover the action, scope, amount or time."
        "Use a grant that covers it, or narrow the action.";
    ApprovalRequired "APPROVAL_REQUIRED" Core Admission
        "The action needs an approval of its exact material and has none."
        "Have the exact action approved, then admit or dispatch it.";
    ApprovalStale "APPROVAL_STALE" Core Admission
        "The approval is expired, revoked, denied, of another run, of other material, or used by another operation."
        "Ask for a new approval of exactly this action.";
    BudgetExceeded "BUDGET_EXCEEDED" Core Admission
        "Spent plus reserved would exceed the mission's budget."
        "Settle what is reserved, or plan less work; no command adds budget.";
    AttemptsExhausted "ATTEMPTS_EXHAUSTED" Core Admission
        "The operation has used every attempt its contract allows."
        "Let a human decide how to go on; attempts are not reset.";
    DeadlinePassed "DEADLINE_PASSED" Core Admission
        "Trusted time has reached the deadline for new work."
        "Start a new mission with a later deadline; running effects can still be settled.";
    NodeNotReady "NODE_NOT_READY" Core Object
        "The node is not ready: a dependency is open, or its kind does not run work."
        "Complete its dependencies first, or name a ready node.";
    EvidenceInvalid "EVIDENCE_INVALID" Core Object
        "The evidence does not exist, belongs to another run or node, or does not prove the claim."
        "Send the evidence that the node's kind asks for.";
    GraphInvalid "GRAPH_INVALID" Core Object
        "The graph breaks a rule: unique nodes, existing dependencies, no cycles, every node reaches END."
        "Correct the graph at the place in the message.";
    StateInvalid "STATE_INVALID" Core Object
        "The object is not in a state that permits this."
        "Read the object's state and choose a command that it permits.";
    EffectUnresolved "EFFECT_UNRESOLVED" Core Object
        "An effect of this work has no known outcome yet."
        "Reconcile the attempt with evidence first.";
    WaitMismatch "WAIT_MISMATCH" Core Object
        "No single live wait fits the answer."
        "Check source and correlation of the wait.";
    TriggerDisabled "TRIGGER_DISABLED" Core Object
        "The trigger is switched off."
        "Enable the trigger revision first.";
    TriggerMismatch "TRIGGER_MISMATCH" Core Object
        "The event is not what the trigger listens to."
        "Send the event to the trigger whose source, type and match fit.";
    TriggerExpired "TRIGGER_EXPIRED" Core Object
        "The event is too old, or outside the trigger's validity."
        "Register a trigger revision whose window covers the event.";
    TriggerRate "TRIGGER_RATE" Core Admission
        "The trigger has fired as often as its rate allows."
        "Wait for the next window.";
    TriggerConcurrency "TRIGGER_CONCURRENCY" Core Admission
        "As many runs of this trigger are live as it allows."
        "Wait until one of its runs ends.";
    TriggerDepth "TRIGGER_DEPTH" Core Admission
        "The event lies deeper in a chain of triggers than the trigger allows."
        "Break the chain, or register a trigger with a larger depth.";
    ControlState "CONTROL_STATE" Core Object
        "The work order's control state does not permit this decision."
        "Read the control state; cancellation is never undone.";
    BindingStale "BINDING_STALE" Core Object
        "The pinned protocol binding has moved to another revision."
        "Pin the new revision and correlate anew.";

    LimitExceeded "LIMIT_EXCEEDED" Limits Admission
        "A limit scope or one of its ancestors has no room for this reservation."
        "Settle what is reserved, or have a human change the bound.";
    ProtectedReserve "PROTECTED_RESERVE" Limits Admission
        "The work would eat into the allowance protected for hand-offs."
        "Keep the work inside the unprotected part of the bound.";

    StoreNotFound "STORE_NOT_FOUND" Store Store
        "There is no store at this path."
        "Name an existing store directory, or create one by starting a run.";
    NotAStore "NOT_A_STORE" Store Store
        "The directory holds something that is not a store."
        "Name another directory; nothing in this one was changed.";
    StoreTooNew "STORE_TOO_NEW" Store Store
        "The store was written by a newer format than this build reads."
        "Use the newer build; this one changed nothing.";
    StoreLocked "STORE_LOCKED" Store Store
        "Another process has the store open."
        "Let the other process finish, or stop it, then try again.";
    StoreReadOnly "STORE_READ_ONLY" Store Store
        "The store cannot be written: its directory is read-only, or it went read-only after a storage error."
        "Make the directory writable, or free space and open the store again.";
    StoreFull "STORE_FULL" Store Store
        "There is no space left for the store to grow."
        "Free space on its file system; nothing of the refused append was kept.";
    StoreCorrupt "STORE_CORRUPT" Store Store
        "Stored bytes are not what was written."
        "Keep the store as it is, run verify to see the place, and restore from a backup.";
    TailLost "TAIL_LOST" Store Store
        "The end of the log is missing although it was durable."
        "Do not continue; restore the missing segment or a backup that has it.";
    ChainBroken "CHAIN_BROKEN" Store Store
        "An event does not link to the event before it."
        "Do not trust what follows the place named; restore from a backup.";
    StorePermissions "STORE_PERMISSIONS" Store Store
        "The store's directory or a file in it has the wrong owner or mode."
        "Give the directory to the user of the engine with mode 0700.";
    StoreIo "STORE_IO" Store Store
        "The operating system failed to read or write the store."
        "Look at the system error in the message, mend the cause, and open the store again.";
    EventTooLarge "EVENT_TOO_LARGE" Store Store
        "The event would be larger than a stored event may be."
        "Keep large content in artifacts and records small.";
    LaunchUnconditioned "LAUNCH_UNCONDITIONED" Store Store
        "An event that launches work came without head, fence and gates."
        "This is a defect of the caller; report it. Nothing was stored.";
    InternalStore "INTERNAL_STORE" Store Store
        "The store met a state that it believes impossible."
        "Run verify and report what it says.";
    Busy "BUSY" Store Store
        "A bounded queue is full."
        "Try again a little later.";
    ActorLost "ACTOR_LOST" Store Store
        "The actor stopped before it answered; the command may or may not have been stored."
        "Send the same request again; a stored one is answered with its first result.";
    CheckpointAhead "CHECKPOINT_AHEAD" Store Store
        "The log has fewer events than a checkpoint vouches for: its end was cut off, or it was rolled back."
        "Do not continue; find the copy of the store that the checkpoint was made of.";
    CheckpointForked "CHECKPOINT_FORKED" Store Store
        "The log has other events than a checkpoint vouches for: it was rewritten, or rolled back and continued."
        "Do not trust the log; find the copy of the store that the checkpoint was made of.";
    CheckpointUntrusted "CHECKPOINT_UNTRUSTED" Store Store
        "The checkpoint has no valid signature of the key that was named, or it is of another log."
        "Take the checkpoint and the verifier key from where they were kept, and compare their names.";

    Usage "USAGE" Cli Usage
        "The command line is not one that the program understands."
        "See the help of the verb.";
    CodeUnknown "CODE_UNKNOWN" Cli Usage
        "No error has this code."
        "List the codes with explain.";
    RepoNotFound "REPO_NOT_FOUND" Cli Usage
        "There is no git repository at this path."
        "Name the top directory of a git repository with at least one commit.";
    RepoDirty "REPO_DIRTY" Cli Usage
        "The repository's work tree has changes that are not committed."
        "Commit or stash them; work starts from a commit.";
    RepoUnusable "REPO_UNUSABLE" Cli Usage
        "Git could not do what is needed with this repository."
        "Look at git's message, mend the repository, and try again.";
    RunNotFound "RUN_NOT_FOUND" Cli Usage
        "The store has no such run."
        "List the runs with praxis list.";
    RunAmbiguous "RUN_AMBIGUOUS" Cli Usage
        "More than one run fits."
        "Name the run by its full identity.";
    AttemptNotFound "ATTEMPT_NOT_FOUND" Cli Usage
        "The store has no such uncertain attempt."
        "List the uncertain attempts with unknown.";
    EvidenceUnreadable "EVIDENCE_UNREADABLE" Cli Usage
        "The evidence file cannot be read, or is too large."
        "Name a readable file within the bound.";
    ExportFailed "EXPORT_FAILED" Cli Usage
        "The export could not be written."
        "Name a writable path with enough space.";
    BranchConflict "BRANCH_CONFLICT" Cli Usage
        "The result branch exists with another content."
        "Rename or remove the branch, then resume.";
    CheckpointInvalid "CHECKPOINT_INVALID" Cli Usage
        "The file is no signed checkpoint, or it cannot be read."
        "Name a file that praxis checkpoint wrote, as it was written.";
    KeyInvalid "KEY_INVALID" Cli Usage
        "The signing key or the verifier key is not one, or its file cannot be used."
        "Name a key that praxis keygen made; a signing key's file is yours alone, with mode 0600.";
    TerminalNeeded "TERMINAL_NEEDED" Cli Usage
        "The decision can only be typed at a terminal."
        "Run the command again at a terminal.";
}

impl Code {
    /// Every code, in the order of the table.
    pub const fn all() -> &'static [Code] {
        ALL
    }

    /// The code of this name, if there is one; names are matched exactly.
    ///
    /// ```
    /// use aiws::error::Code;
    /// assert_eq!(Code::parse("HOLD_ACTIVE"), Some(Code::HoldActive));
    /// assert_eq!(Code::parse("hold_active"), None);
    /// ```
    pub fn parse(name: &str) -> Option<Code> {
        ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

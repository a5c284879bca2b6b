//! The one table of guards: every refusal of decide is a row here, with its requirement, code and stage.
//!
//! Invariant: decide refuses nothing but through `check` and `need`, so that a test can switch off any single
//! row and see a case fail. Called by the files of `decide`; the table is read by the tests and by nobody else.

use aiws::error::{Code, Error, Stage};
use aiws::json::Object;

use crate::decision::Rejection;
#[cfg(debug_assertions)]
use praxis_plant::Plant;

macro_rules! guards {
    ($($variant:ident $id:literal $code:ident $stage:ident $sentence:literal;)*) => {
        /// A row of the table of guards.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Guard { $(#[doc = $sentence] $variant,)* }

        impl Guard {
            /// The plant that lets everything pass here.
            pub const fn plant(self) -> praxis_plant::Plant { praxis_plant::Plant::Guard(self as u16) }
            /// All rows, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// The requirement that the row holds up.
            pub const fn id(self) -> &'static str { match self { $(Self::$variant => $id,)* } }
            /// The code of a refusal.
            pub const fn code(self) -> Code { match self { $(Self::$variant => Code::$code,)* } }
            /// The stage at which it refuses (ERR-PREC.1).
            pub const fn stage(self) -> Stage { match self { $(Self::$variant => Stage::$stage,)* } }
            /// What must hold.
            pub const fn sentence(self) -> &'static str { match self { $(Self::$variant => $sentence,)* } }
        }
    };
}

// One row per line: name, requirement, code, stage, what must hold.
#[rustfmt::skip]
guards! {
    // The pipeline: revision, ownership, authority, gates.
    ExpectedRevision "HC-ENV.2" RevisionConflict Revision "The expected revision is the head of the stream.";
    SubjectAgrees "REL-1" StaleOwner Ownership "The command and its records name this mission and this run.";
    EpochCurrent "HC-ENV.3" StaleOwner Ownership "The sender acts under the run's current ownership epoch.";
    ClockTrusted "HS-04.6" StaleOwner Ownership "Trusted time did not step back under a live claim of the run; who takes the run over ends the claim.";
    PolicyAllows "FV-GRT.3" AuthorizationDenied Authority "Current policy allows this actor this command.";
    AuthorizedInTime "CRD-3" AuthorizationDenied Authority "The authorization is neither from the future nor too old.";
    HumanDecides "ERR-HUMAN_REQUIRED" HumanRequired Authority "An authenticated human decides, with a decision reference.";
    RecoveryTrusted "HC-RO.1" AuthorizationDenied Authority "The host grants authority to take over ownership.";
    NotTerminal "FV-RUN.4" TerminalExecution Gates "The run has not ended.";
    NotCanceling "HS-03.3" HoldActive Gates "No cancellation is pending.";
    NoOpenHold "HS-01.3" HoldActive Gates "No hold of the run is open.";
    NodeNotHeld "HS-01.8" HoldActive Gates "No hold of a branch covers the node; for the whole run, no branch is held.";
    NoOuterGate "HS-01.11" HoldActive Gates "No gate of the mission or above it is closed.";

    // activateGraph.
    GraphNegotiated "HM-01.1" UnsupportedProtocol Object "The contract negotiated the hand-off protocol.";
    GraphUnset "FV-GRAPH.6" StateInvalid Object "The run has no graph yet.";
    GraphBounded "HF-01.5" GraphInvalid Object "Nodes and recipients stay within their bounds.";
    GraphUnique "FV-GRAPH.2" GraphInvalid Object "Node ids are unique.";
    GraphDependencies "FV-GRAPH.2" GraphInvalid Object "Dependencies exist and are named once.";
    GraphAcyclic "FV-GRAPH.3" GraphInvalid Object "No node depends on itself, directly or through others.";
    GraphReachesEnd "FV-GRAPH.4" GraphInvalid Object "Every node reaches an END, and nothing comes after one.";
    GraphBranches "FV-NODE-DECISION.1" GraphInvalid Object "A DECISION's branches are its direct dependents, and its direct dependents are its branches.";
    GraphBranchRequired "HD-04.4" GraphInvalid Object "A DECISION's branch does not take its choice as an optional input.";
    GraphAnyInputs "HD-04.6" GraphInvalid Object "An ANY join has inputs, and none of them is optional: it takes one that is complete.";
    GraphJoinPolicy "HD-04.7" GraphInvalid Object "A join policy is of an ANY join.";
    GraphPorts "HF-03.10" GraphInvalid Object "Mappings connect direct dependencies, one input port each.";
    GraphSchemas "FV-GRAPH.9" GraphInvalid Object "Schemas use local references and the supported keywords only.";
    GraphDeadlines "FV-CON.3" GraphInvalid Object "No node's deadline lies past the contract's.";

    // commitBoundary.
    ScopeResolves "HS-01.12" ScopeUnsupported Authority "The hold's scope is this run, or a node of its pinned graph with all that depends on it.";
    ContinuationCleared "HF-02.14" HoldActive Gates "A blocked activation continues only after its hold is closed.";
    CheckpointNew "HF-02.2" IdentityConflict Object "The checkpoint has no manifest yet.";
    HandoffNew "HF-02.3" IdentityConflict Object "The hand-off id is new.";
    DeliveryNew "HF-02.4" IdentityConflict Object "Delivery ids are new.";
    HoldNew "HF-02.6" IdentityConflict Object "The hold id is new.";
    ActivationUndecided "HF-02.13" IdentityConflict Object "The activation has no final outcome yet.";
    IterationOnce "HF-02.12" IdentityConflict Object "An iteration of a LOOP counts once.";
    ProducerKnown "HF-03.2" BasisStale Object "The producer is a node of the pinned graph.";
    BoundaryActive "FV-GRAPH.16" NodeNotReady Object "The producer was admitted.";
    BoundaryGenerated "HF-05.7" StateInvalid Object "A skip is never claimed by its own node; the coordinator makes it.";
    HoldOnlyBlocked "HF-05.4" StateInvalid Object "Only a BLOCKED boundary carries a hold.";
    BlockedHasHold "HF-05.8" StateInvalid Object "A BLOCKED boundary carries a hold.";
    BlockedIsHeld "HF-05.8" StateInvalid Object "The hold of a BLOCKED boundary covers its node.";
    CauseGiven "HS-02.3" EvidenceInvalid Object "FAILED and CANCELED name a cause; other outcomes have none.";
    BasisIsHead "HF-01.7" BasisStale Object "The basis is the last committed revision and hash.";
    BasisGraph "HD-05.6" BasisStale Object "Graph and plan revision are the pinned ones.";
    BasisActivation "HF-03.2" BasisStale Object "The activation is the node's current one.";
    MaterialAvailable "HF-04.1" ArtifactUnavailable Object "Every artifact's bytes were read back.";
    MaterialRetained "HF-04.4" ArtifactUnavailable Object "Every artifact is still within its retention.";
    MaterialOutlasts "HF-04.4" ArtifactUnavailable Object "What a boundary announces is retained through the run's recovery window.";
    MaterialMatches "ART-4" ArtifactMismatch Object "Every artifact has its recorded digest and size.";
    OperationsExact "HF-03.2" EvidenceInvalid Object "The manifest lists the node's own operations with all their attempts.";
    ControlNoOperations "HF-03.3" EvidenceInvalid Object "A control node lists no operation.";
    OutstandingExact "HF-03.9" EffectUnresolved Object "Every unresolved attempt of the node is listed.";
    CompletedSettled "HF-03.4" EffectUnresolved Object "Nothing of a COMPLETED node is unresolved.";
    InputsBound "HF-05.1" EvidenceInvalid Object "The manifest's inputs are the activation's consumption.";
    ApprovalsKnown "REL-3" EvidenceInvalid Object "Every approval that the manifest names is one of this run.";
    LineageKnown "REL-3" EvidenceInvalid Object "A correction replaces a manifest that this run committed.";
    TaskConfirmed "FV-NODE-TASK.2" EvidenceInvalid Object "A TASK is done by its own operation, confirmed applied.";
    LoopConfirmed "FV-NODE-LOOP.2" EvidenceInvalid Object "An iteration of a LOOP is done by its own operation, confirmed applied.";
    LoopDone "FV-NODE-LOOP.2" EvidenceInvalid Object "The result of a LOOP's iteration says done, true or false.";
    LoopBound "HS-02.1" EvidenceInvalid Object "The last iteration that a LOOP may have is COMPLETED only where it is done.";
    LoopExhausted "HS-02.1" EvidenceInvalid Object "A LOOP is BLOCKED as not done after its last iteration alone, with a hold for ATTEMPT_LIMIT.";
    DecisionField "FV-NODE-DECISION.1" EvidenceInvalid Object "A DECISION's result contains the field that it decides on.";
    ApprovalCurrent "FV-NODE-APPROVAL.1" ApprovalStale Object "An APPROVAL rests on an approval of this run that is current.";
    VerificationCurrent "FV-NODE-VERIFICATION.1" EvidenceInvalid Object "A VERIFICATION rests on the current passing verification.";
    AcceptanceCurrent "FV-NODE-ACCEPTANCE.1" EvidenceInvalid Object "An ACCEPTANCE rests on the current accepting acceptance.";
    EndDisposition "FV-NODE-END.1" EvidenceInvalid Object "END's result is the disposition COMPLETED.";
    ResultFits "FV-GRAPH.11" EvidenceInvalid Object "The result fits the node's output schema.";
    RecipientsUnique "REL-4" EvidenceInvalid Object "No delivery id and no recipient stands twice.";
    RecipientsExact "HF-03.10" EvidenceInvalid Object "Recipients are those that the pinned graph gives.";
    SkipsExact "HF-05.7" EvidenceInvalid Object "Every node that the choice skips has its generated manifest, and no other.";
    BoundaryShape "HF-05.5" SchemaInvalid Object "The boundary, with all that the ledger adds to it, has the shape of the wire.";

    // claimDelivery, acknowledgeDelivery, releaseDelivery.
    DeliveryKnown "HD-01.T11" DeliveryState Object "The delivery exists in this run.";
    ClaimFree "HC-CL.1" DeliveryState Object "The delivery is pending, or its claim has expired.";
    ClaimFingerprint "HD-02.10" InternalStore Object "The host derived a claim token.";
    ReceiptOpen "HD-01.T8" DeliveryState Object "The delivery has no receipt and is neither excluded nor invalidated.";
    EverClaimed "HD-01.T11" DeliveryState Object "The delivery was claimed before.";
    ClaimNotEnded "HD-02.8" StaleOwner Object "The claim was not released, expired or fenced.";
    ClaimGeneration "HD-02.5" StaleOwner Object "The generation is the claim's.";
    ClaimToken "HD-02.2" StaleOwner Object "The token is the claim's.";
    ClaimPrincipal "HC-RL.1" StaleOwner Object "The actor is the claimant.";
    ClaimEpoch "REL-6" StaleOwner Object "The claim is of the current epoch.";
    ClaimLive "HD-02.4" ClaimExpired Object "Trusted time has not reached the claim's end.";
    HandoffExact "HD-03.1" BasisStale Object "The hand-off's id and digest are the delivered ones.";
    OutcomeAccepted "HD-01.T1" InputIncompatible Object "The consumer's mapping accepts the outcome.";
    InputFits "HF-04.7" InputIncompatible Object "The result fits the consumer's mapping schema.";

    // admitConsumer.
    ConsumerKnown "REL-7" BasisStale Object "The consumer is a node of the pinned graph, in its current activation.";
    ConsumerPending "FV-GRAPH.14" NodeNotReady Object "The consumer was neither skipped nor ended.";
    InputsUnique "REL-7" InputSetConflict Object "No input stands twice.";
    InputAcknowledged "HD-04.2" DeliveryState Object "Every input is acknowledged, for this activation or for the first of a LOOP.";
    ActivationUnbound "HD-03.6" InputSetConflict Object "The activation is not bound to an input set yet.";
    InputsComplete "HD-04.4" NodeNotReady Object "Every input port has its hand-off; a missing one is never a skip.";
    AnyCompleted "HD-04.6" InputIncompatible Object "What an ANY join takes is complete.";
    AnyTakesOne "HD-04.6" InputSetConflict Object "An ANY join takes one input.";
    JoinSettled "HD-04.8" JoinUnsettled Object "No candidate that an ANY join leaves out has work that was admitted, is under way or is unsettled.";
    LosersExcludable "HD-04.7" JoinUnsettled Object "A candidate that is not done and received is left out only where the join's policy says so.";
    OperationNew "FV-GRAPH.15" IdentityConflict Object "Operation and attempt were never named before.";
    DraftPrepared "FV-GRAPH.14" StateInvalid Object "The node has a prepared attempt.";
    ControlNoEffect "HD-03.5" StateInvalid Object "A control node has neither operation nor admission.";
    AdmissionKnown "HD-03.12" NotFound Admission "The host prepared the admission that is referred to.";
    AdmissionAgrees "HD-03.4" EvidenceInvalid Admission "Consumption and admission name one operation.";

    // completeRun.
    GraphPinned "FV-GRAPH.1" BasisStale Object "The run has a graph.";
    EndDone "FV-RUN.2" NodeNotReady Object "END is complete.";
    NodesDone "FV-GRAPH.7" NodeNotReady Object "Every node is complete or skipped by a choice.";
    RunVerified "FV-ASM.4" EvidenceInvalid Object "The current verification passes.";
    RunAccepted "FV-RUN.3" EvidenceInvalid Object "The current acceptance accepts what the current verification passes, and was said after it.";
    GatesNotSkipped "HF-03.7" EvidenceInvalid Object "No VERIFICATION or ACCEPTANCE was skipped.";

    // openMission, startRun, grant.
    MissionNew "FV-CON.1" IdentityConflict Object "The mission has no contract yet.";
    ContractMission "REL-1" StaleOwner Ownership "The contract names this mission.";
    ContractFeatures "FV-CMD.3" UnsupportedProtocol Shape "Every feature of the contract is known.";
    ContractExtensions "HM-01.3" UnsupportedProtocol Shape "Every extension of the contract is known.";
    ContractShape "FV-CMD.4" SchemaInvalid Shape "Contract and configuration have the shape of the wire.";
    RootGrantsUnique "HF-01.6" IdentityConflict Object "No grant id stands twice in the contract.";
    ProtocolNegotiated "HM-01.1" UnsupportedProtocol Object "The contract negotiated the hand-off protocol.";
    RunNew "FV-ACC.7" IdentityConflict Object "The run id is new in the mission.";
    MissionDeadline "FV-CON.5" DeadlinePassed Admission "The contract's deadline is ahead.";
    GrantShape "FV-CMD.4" SchemaInvalid Shape "The grant has the shape of the wire.";
    GrantNew "HF-01.6" IdentityConflict Object "The grant id is new in the mission.";
    GrantParentNamed "FV-CON.2" GrantExceeded Admission "A derived grant names its parent; roots come with the contract alone.";
    GrantParentKnown "FV-GRT.1" NotFound Object "The parent is a grant of the mission.";
    GrantNarrowsActions "FV-GRT.1" GrantExceeded Admission "Every action is one of the parent's.";
    GrantNarrowsScopes "FV-GRT.2" GrantExceeded Admission "Every scope is literally one of the parent's.";
    GrantNarrowsAmount "FV-GRT.1" GrantExceeded Admission "The amount is at most the parent's.";
    GrantNarrowsExpiry "FV-GRT.1" GrantExceeded Admission "The grant ends no later than its parent.";

    // approve, revokeApproval.
    ApprovalNew "HF-01.6" IdentityConflict Object "The approval id is new in the run.";
    ApprovalAhead "FV-APR.3" ApprovalStale Admission "The approval's expiry is ahead.";
    ApprovalKnown "FV-APR.3" NotFound Object "The approval is one of this run.";
    ApprovalStanding "FV-APR.3" StateInvalid Object "The approval was not revoked before.";

    // Stage 9 of admitConsumer, dispatch and retry.
    PayloadFits "FV-GRAPH.10" InputIncompatible Object "The action's payload fits the node's input schema.";
    GrantInForce "HD-03.8" GrantExceeded Admission "The grant is one of the mission, as read.";
    GrantSubject "FV-GRT.3" GrantExceeded Admission "The actor is the grant's subject, or the engine that executes for it.";
    GrantCoversAction "FV-GRT.1" GrantExceeded Admission "The grant names the action.";
    GrantCoversScope "FV-GRT.2" GrantExceeded Admission "The grant names the scope literally.";
    GrantCoversAmount "FV-GRT.1" GrantExceeded Admission "The amount is at most the grant's.";
    GrantCurrent "FV-GRT.3" GrantExceeded Admission "The grant has not ended.";
    ApprovalNeeded "FV-APR.2" ApprovalRequired Admission "Work behind an APPROVAL node names an approval.";
    ApprovalOfRun "FV-APR.3" ApprovalStale Admission "The approval is one of this run.";
    ApprovalGiven "FV-APR.1" ApprovalStale Admission "The approval approves.";
    ApprovalInForce "FV-APR.3" ApprovalStale Admission "The approval is not revoked.";
    ApprovalUnexpired "FV-APR.4" ApprovalStale Admission "Trusted time has not reached the approval's expiry.";
    ApprovalMaterial "FV-APR.1" ApprovalStale Admission "The approval is of exactly this action.";
    ApprovalOneOperation "T-80" ApprovalStale Admission "The approval is bound to no other operation.";
    BudgetFits "FV-ACC.1" BudgetExceeded Admission "Spent, reserved and the amount together stay within the budget.";
    ContractDeadline "FV-CON.5" DeadlinePassed Admission "The contract's deadline is ahead.";
    NodeDeadline "FV-CON.3" DeadlinePassed Admission "The node's deadline is ahead.";

    // dispatch, settle, reconcile, retry.
    AttemptKnown "REL-3" NotFound Object "The attempt is one of this run.";
    OperationKnown "REL-3" NotFound Object "The operation is one of this run.";
    DispatchEpoch "FV-REC.2" StaleEpoch Object "The attempt was prepared under the current epoch.";
    DispatchBinding "FV-GRAPH.15" StateInvalid Object "Attempt, operation, node and activation belong together.";
    DispatchPrepared "FV-ACC.5" StateInvalid Object "The attempt is PREPARED.";
    DispatchTask "FV-GRAPH.14" NodeNotReady Object "The node runs work: it is a TASK or a LOOP.";
    DispatchActive "FV-GRAPH.16" NodeNotReady Object "The node is admitted and not ended.";
    DispatchConsumes "HD-03.8" BasisStale Object "The activation's consumption stands.";
    DispatchMaterial "FV-APR.2" ApprovalStale Admission "What the host is about to run is the admitted action.";
    DispatchReserved "HD-03.8" BudgetExceeded Admission "The attempt's reservation stands in the account.";
    SettleOperator "FV-REC.3" HumanRequired Authority "A prepared attempt is returned by a human, or by the engine under AUTO or RULE.";
    SettleState "FV-REC.3" StateInvalid Object "The attempt is in flight, or prepared and never to be dispatched.";
    SettleOnlyReturns "FV-REC.3" StateInvalid Object "A prepared attempt is settled as not applied.";
    UnknownOnce "FV-EFF.2" StateInvalid Object "Only an attempt in flight becomes uncertain.";
    UnknownUncharged "FV-EFF.2" SchemaInvalid Shape "An uncertain outcome has no cost yet.";
    NotAppliedUncharged "FV-ACC.4" SchemaInvalid Object "What was not applied cost nothing.";
    LostReadCharged "T-20" SchemaInvalid Object "A lost read costs its whole reservation.";
    ActualCounts "NUM-2" SchemaInvalid Object "The account's sums stay within 100 digits.";
    SettleEvidence "HF-03.4" EvidenceInvalid Object "A confirmed outcome names evidence.";
    UncertainHuman "HS-03.7" HumanRequired Authority "A human decides an uncertain outcome, or a conclusive lookup, or the contract's rule for lost reads.";
    UncertainEvidence "HS-03.8" EvidenceInvalid Object "The evidence for an uncertain outcome is there and confirmed by the host.";
    ReconcileConfirms "FV-EFF.4" SchemaInvalid Shape "A reconciliation confirms one outcome.";
    ReconcileState "FV-EFF.4" StateInvalid Object "The attempt is uncertain.";
    RetryAttemptNew "FV-ACC.5" IdentityConflict Object "The attempt id is new.";
    RetryResolved "FV-EFF.3" EffectUnresolved Object "The attempt before has a known outcome.";
    RetryNotApplied "FV-ACC.6" StateInvalid Object "The attempt before was confirmed not applied.";
    RetryActive "FV-GRAPH.14" NodeNotReady Object "The operation's node is admitted and not ended.";
    AttemptsLeft "FV-ACC.6" AttemptsExhausted Admission "The operation has attempts left under its contract.";

    // verify, accept, cancelRun, finishCancelRun.
    AssessmentNew "HF-01.6" IdentityConflict Object "The assessment id is new in the run.";
    AcceptVerified "FV-APR.5" StateInvalid Object "What is accepted has a current passing verification.";
    AcceptSubject "FV-APR.5" StateInvalid Object "What is accepted is what the current verification is about.";
    CancelOnce "FV-RUN.5" StateInvalid Object "No cancellation is pending.";
    FinishCanceling "FV-RUN.5" StateInvalid Object "A cancellation is pending.";
    FinishResolved "HS-06.6" EffectUnresolved Object "No attempt is in flight or uncertain.";

    // invalidateHandoff.
    Invalidator "HC-IV.1" AuthorizationDenied Authority "A hand-off is invalidated by an operator, a rule or the runtime.";
    InvalidKnown "HC-IV.1" DeliveryState Object "The hand-off is a manifest of this run, to the digest.";
    InvalidOnce "HD-01.T6" DeliveryState Object "The hand-off was not invalidated before.";
    InvalidShape "HC-IV.1" SchemaInvalid Object "A reason is said and evidence is named; the record, with all that hangs on the hand-off, has its shape.";

    // recordSummary.
    SummaryAuthor "SUM-1" AuthorizationDenied Authority "The author is the authenticated actor: the engine for ENGINE, a human, a worker or the engine for MODEL.";
    SummaryHuman "SUM-2" HumanRequired Authority "Only a human writes as HUMAN.";
    SummaryNew "HF-01.6" IdentityConflict Object "The summary id is new in the run.";
    SummaryBasis "HC-RS.1" BasisStale Object "The hand-off is a manifest of this run, to the digest.";
    SummarySettled "SUM-3" EffectUnresolved Object "The operation in which a MODEL wrote has a known outcome.";
    SummaryApplied "SUM-3" EvidenceInvalid Object "The operation in which a MODEL wrote was applied.";
    SummaryMatches "SUM-3" EvidenceInvalid Object "The operation in which a MODEL wrote made the hand-off or worked on it.";
    SummaryShape "REL-10" SchemaInvalid Object "The summary has the shape of its record: words, and an operation exactly where a MODEL wrote.";

    // placeHold, resolveHold, recoverOwnership.
    HoldPlacer "HC-PH.1" AuthorizationDenied Authority "A hold is placed by an operator, a rule or the runtime.";
    HoldResolver "HS-01.6" ScopeUnsupported Authority "The scope's resolver revision is the trusted one.";
    BranchPinned "HS-01.8" ScopeUnsupported Authority "A branch is named at the revision of the pinned graph.";
    HoldDecisions "HS-03.5" SchemaInvalid Shape "The allowed decisions are named, each once.";
    HoldShape "HF-05.5" SchemaInvalid Object "The hold, with all that the ledger adds to it, has the shape of its record.";
    HoldStopKnown "REL-8" NotFound Object "A stop disposition speaks of work in flight that the hold covers, once.";
    ResolveHuman "HS-03.7" HumanRequired Authority "A human resolves cancellations, uncertainty, limits and restarts under HUMAN.";
    ResolveRule "HS-03.9" AuthorizationDenied Authority "A rule resolves under the approved rule policy at its approved revision, and nobody else names one.";
    ResolveRuleCurrent "HS-03.9" AuthorizationDenied Authority "What the host evaluated for a rule is that rule policy, at that revision.";
    ResolveRuled "HS-06.2" AuthorizationDenied Authority "A restart under RULE is resolved by the rule or by a human, never by the engine alone.";
    ResolvePrincipal "HC-RH.1" AuthorizationDenied Authority "A hold is resolved by an operator, a rule or the runtime.";
    ResolveKnown "HS-01.1" HoldState Object "The hold exists.";
    ResolveOpen "HS-01.1" HoldState Object "The hold is OPEN.";
    ResolveAllowed "HS-03.5" HoldState Object "The hold allows the decision.";
    ResolveRuleEvidence "HS-03.9" HoldNotClear Object "A rule names the evidence of its evaluation.";
    ResolveEvidence "HC-RH.1" HoldNotClear Object "The host confirms the evidence that is named.";
    ResolveAttempts "HS-02.5" HoldNotClear Object "The attempt limit is not exhausted.";
    ResolveCost "HS-02.7" HoldNotClear Object "The budget has room again.";
    ResolveTime "HS-02.7" HoldNotClear Object "The deadline is ahead.";
    ResolveEffects "HS-03.8" HoldNotClear Object "No effect that the hold waits for is uncertain.";
    ResolveInputs "HD-05.8" HoldNotClear Object "No invalidated input is force-cleared.";
    ResolveBlockers "REL-9" HoldNotClear Object "Confirmed evidence clears what the ledger cannot see.";
    ResolveRestart "HS-06.3" HoldNotClear Object "The host allows an automatic restart, or its rule does.";
    ResolveDisposed "HS-06.6" HoldNotClear Object "Every attempt in flight that the hold covers has its disposition.";
    RecoverEpoch "HC-RO.1" StaleOwner Ownership "The expected epoch is the run's.";
    RecoverHuman "HS-03.11" HumanRequired Authority "A human decision is named by a human alone.";
}

/// Refuses with the guard's code unless `holds`; `found` tells what was found, without secrets.
///
/// # Errors
/// The guard's code at its stage, with the requirement in `details.requirement`.
pub fn check(guard: Guard, holds: bool, found: impl FnOnce() -> Object) -> Result<(), Rejection> {
    if holds || ablated(guard) {
        Ok(())
    } else {
        Err(refusal(guard, found()))
    }
}

/// The value that must be there; refuses with the guard's code if it is not.
///
/// # Errors
/// As `check`. There is nothing to go on with, so an ablated guard refuses with INTERNAL_STORE.
pub fn need<T>(
    guard: Guard,
    value: Option<T>,
    found: impl FnOnce() -> Object,
) -> Result<T, Rejection> {
    match value {
        Some(value) => Ok(value),
        None if ablated(guard) => Err(Error::new(Code::InternalStore, "the guard is switched off")),
        None => Err(refusal(guard, found())),
    }
}

fn refusal(guard: Guard, found: Object) -> Rejection {
    let mut error = Error::new(guard.code(), guard.sentence()).in_stage(guard.stage());
    error.details = found;
    error.with("requirement", guard.id())
}

#[cfg(debug_assertions)]
fn ablated(guard: Guard) -> bool {
    let unchecked = guard == Guard::BudgetFits && praxis_plant::is(Plant::BoundUnchecked);
    ablation::is_off(guard) || praxis_plant::is(guard.plant()) || unchecked
}

#[cfg(not(debug_assertions))]
fn ablated(_: Guard) -> bool {
    false
}

/// Switching off one guard, to see which test notices. Absent from release builds.
#[cfg(debug_assertions)]
pub mod ablation {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Guard;

    /// Index of the guard that is off, plus one; 0 when all are on.
    static OFF: AtomicUsize = AtomicUsize::new(0);

    /// Switches one guard off, for the whole process.
    pub fn disable(guard: Guard) {
        OFF.store(guard as usize + 1, Ordering::SeqCst);
    }

    /// Switches all guards on again.
    pub fn restore() {
        OFF.store(0, Ordering::SeqCst);
    }

    pub(super) fn is_off(guard: Guard) -> bool {
        OFF.load(Ordering::SeqCst) == guard as usize + 1
    }
}

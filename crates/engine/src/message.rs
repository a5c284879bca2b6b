//! What the actors are sent, and what they answer.
//!
//! Invariant: whoever sends with a reply port gets an answer or learns that the actor is lost; a message from
//! outside carries the permit that bounds its mailbox. Sent by the client handles, the supervisor and the workers.

use std::collections::BTreeSet;
use std::sync::Arc;

use aiws::digest::Digest;
use aiws::error::Error;
use aiws::id::{AttemptId, DeliveryId, EvidenceId, RequestId};
use aiws::json::Value;
use aiws::token::ClaimToken;
use praxis_journal_format::Sealed;
use praxis_model::command::{Command, Intent};
use praxis_model::mission::MissionState;
use praxis_model::plan::Step;
use praxis_model::run::RunState;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::adapter::{EffectReport, Lookup};
use crate::capability::Capability;
use crate::ports::Draft;
use crate::program::{Conclusion, EffectPlan};

/// The answer to an accepted command, or to its replay.
#[derive(Clone, Debug)]
pub struct Response {
    /// The event that the command became; none for a replay, which must not act again (FV-EFF.6, API-5).
    pub event: Option<Arc<Sealed>>,
    /// The event's revision in its stream.
    pub revision: u64,
    /// The result, the same for the first answer and every replay.
    pub result: Value,
}

/// The answer to a claim.
#[derive(Debug)]
pub struct Claimed {
    /// The response.
    pub response: Response,
    /// The raw token: only here, only while the claim is live (T-24).
    pub token: Option<ClaimToken>,
}

/// The answer to a sequence (T-82).
#[derive(Debug)]
pub struct Sequenced {
    /// The answers of the steps that were committed, in their order: all of them, unless `refused` says otherwise.
    pub steps: Vec<Claimed>,
    /// Why the step after them was refused. There is one only where a settlement or a reconciliation came before it:
    /// that is true whatever becomes of the rest, and was committed. Its `step` detail counts from 1.
    pub refused: Option<Error>,
}

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// A command or intent with who asks it.
pub(crate) struct Request {
    /// Who asks.
    pub(crate) capability: Capability,
    /// Their name for the request; none for the engine's own.
    pub(crate) request_id: Option<RequestId>,
    /// Digest of the request's material (T-23).
    pub(crate) digest: Digest,
    /// What is asked.
    pub(crate) what: What,
    /// Evidence that the engine stored itself for this request.
    pub(crate) stored_evidence: BTreeSet<EvidenceId>,
}

impl Request {
    /// Something else that the same actor asks in the same request.
    pub(crate) fn with(&self, what: What) -> Self {
        Self {
            capability: self.capability.clone(),
            request_id: self.request_id.clone(),
            digest: self.digest,
            what,
            stored_evidence: BTreeSet::new(),
        }
    }
}

/// What is asked.
#[derive(Clone)]
pub(crate) enum What {
    /// A full command: compared strictly, never decided twice (T-02).
    Strict(Command),
    /// An intent: the actor fills in what is volatile.
    Intent {
        /// The intent.
        intent: Intent,
        /// The effect admission that goes with it, as proposed.
        draft: Option<Draft>,
    },
    /// Inside a sequence: the acknowledgement of a delivery that a step before it claims.
    Acknowledge {
        /// The delivery.
        delivery_id: DeliveryId,
    },
}

/// What a run's owner is sent.
pub(crate) enum RunMessage {
    /// A request from outside.
    Take {
        /// The request.
        request: Box<Request>,
        /// Held until the request is answered (T-55).
        permit: OwnedSemaphorePermit,
        /// The answer.
        reply: Reply<Claimed>,
    },
    /// The steps of one sequence from outside, all of one request.
    TakeAll {
        /// The steps.
        requests: Vec<Request>,
        /// Held until the request is answered (T-55).
        permit: OwnedSemaphorePermit,
        /// The answer.
        reply: Reply<Sequenced>,
    },
    /// The current state.
    Snapshot {
        /// Held until it is answered, for whoever asks from outside (T-55).
        permit: Option<OwnedSemaphorePermit>,
        /// The answer.
        reply: Reply<Arc<RunState>>,
    },
    /// First message after a crash: take the run over from the owner of this epoch (T-15).
    Recover {
        /// The epoch that ends.
        expected_epoch: u64,
        /// Why.
        reason: String,
    },
    /// After too many crashes: keep one RESTART hold and start nothing (T-21).
    Park,
    /// What a worker says about an attempt. It has no epoch power (T-18).
    Report(Box<Reported>),
    /// The program has not said in time what follows for an attempt whose outcome is known.
    Overdue {
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// The program's answer for a step.
    Planned {
        /// The step it was asked for.
        step: Step,
        /// The answer.
        answer: Box<Result<Planned, Error>>,
    },
    /// A look-up's answer.
    LookedUp {
        /// The attempt.
        attempt_id: AttemptId,
        /// The answer.
        found: Box<Lookup>,
        /// Answered when what it says was recorded or refused.
        taken: oneshot::Sender<Taken>,
    },
    /// The engine closes cleanly: let go of the run (T-16).
    Release,
    /// Look whether there is something to do; `moved` says that another stream's register or gate changed.
    Tick {
        /// Whether steps that were refused are worth another try.
        moved: bool,
    },
}

/// What became of a look-up's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nothing is left to be done with it.
    Done,
    /// The store could not take it now.
    Again,
}

/// What a worker says about an attempt.
pub(crate) struct Reported {
    /// In whose name.
    pub(crate) capability: Capability,
    /// The attempt.
    pub(crate) attempt_id: AttemptId,
    /// The report.
    pub(crate) report: EffectReport,
    /// Held until it is answered, for whoever reports from outside (T-55).
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    /// Answered once the report is recorded or refused.
    pub(crate) reply: Reply<()>,
}

/// What a program answered.
#[expect(
    clippy::large_enum_variant,
    reason = "one short-lived value per answer, boxed in its message"
)]
pub(crate) enum Planned {
    /// The effect of a TASK node.
    Effect(EffectPlan),
    /// What follows for a node.
    Conclusion(Conclusion),
    /// Another try of the node's operation.
    Retry,
}

/// What a mission's owner is sent.
pub(crate) enum MissionMessage {
    /// A request from outside.
    Take {
        /// The request.
        request: Box<Request>,
        /// Held until the request is answered.
        permit: OwnedSemaphorePermit,
        /// The answer.
        reply: Reply<Response>,
    },
    /// The current state; none before the mission was opened.
    Snapshot {
        /// Held until it is answered, for whoever asks from outside (T-55).
        permit: Option<OwnedSemaphorePermit>,
        /// The answer.
        reply: Reply<Option<Arc<MissionState>>>,
    },
}

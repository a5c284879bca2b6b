//! What the actors are sent, and what they answer.
//!
//! Invariant: whoever sends with a reply port gets an answer or learns that the actor is lost; a message from
//! outside carries the permit that bounds its mailbox. Sent by the client handles, the supervisor and the workers.

use std::collections::BTreeSet;
use std::sync::Arc;

use aiws::digest::Digest;
use aiws::error::Error;
use aiws::id::{AttemptId, EvidenceId, RequestId};
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

/// What is asked.
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
    Report {
        /// In whose name.
        capability: Box<Capability>,
        /// The attempt.
        attempt_id: AttemptId,
        /// The report.
        report: Box<EffectReport>,
        /// Held until it is answered, for whoever reports from outside (T-55).
        permit: Option<OwnedSemaphorePermit>,
        /// Answered once the report is recorded or refused.
        reply: Reply<()>,
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
        /// Dropped when what it says was recorded.
        taken: oneshot::Sender<()>,
    },
    /// The engine closes cleanly: let go of the run (T-16).
    Release,
    /// Look whether there is something to do; `moved` says that another stream's register or gate changed.
    Tick {
        /// Whether steps that were refused are worth another try.
        moved: bool,
    },
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

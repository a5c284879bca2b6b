//! What is handed to the writer, and what comes back.
//!
//! Invariant: an append is all or nothing; a refusal names the first condition, in stage order, that failed, and the part
//! that it failed for.
//! Made by the engine's actors (hop 4 of 5), checked in conditions, answered by the ledger.

use aiws::decimal::Dec;
use aiws::digest::Digest;
use aiws::error::Code;
use aiws::id::{ActorId, MissionId, RequestId, StreamId};
use praxis_journal_format::Sealed;
use praxis_model::account::{AccountKey, AccountRow};
use praxis_model::command::Command;
use praxis_model::decision::Decision;
use praxis_model::event::{Event, Gate, Head, Identity};
use praxis_model::register::RegisterKey;
use praxis_model::stream::Subject;
use praxis_model::table::{self, StreamKind};

use crate::error::StoreError;

/// Events that become durable together, under conditions.
#[derive(Clone, Debug)]
pub struct Append {
    /// One event, or the parts 1..=N of one request, in order (T-82).
    pub sealed: Vec<Sealed>,
    /// What must hold at the log's head.
    pub conditions: Conditions,
}

/// What must hold at the log's head when the append is committed. That each event links to its stream's head, that
/// its identities are new and that its reservations fit is checked always.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The request under which a replay gets its first result. It must be the event's own.
    pub request: Option<RequestKey>,
    /// The caller demands the head condition; its content is the event's own link.
    pub head: bool,
    /// The run's stream and the owner epoch that must be current.
    pub fence: Option<(StreamId, u64)>,
    /// Registers whose revision must be as it was read.
    pub same: Vec<(RegisterKey, u64)>,
    /// Scopes that must have no closed gate: the run, its mission, their ancestors.
    pub gates: Option<Vec<Subject>>,
    /// UTC milliseconds that the writer's clock must not have reached (T-81).
    pub before_ms: Vec<u64>,
    /// How often the writer's clock had stepped back when a lease was judged by it (T-29).
    pub clock_steps: Option<u64>,
}

impl Conditions {
    /// The conditions of a decided command: all that the command table and the decision ask for. `epoch` is the owner's;
    /// none for a mission's command.
    pub fn of(
        subject: &Subject,
        epoch: Option<u64>,
        command: &Command,
        decision: &Decision,
        actor: &ActorId,
    ) -> Self {
        let row = table::row(decision.command.kind());
        let request = command.request_id.as_ref().map(|request_id| RequestKey {
            mission_id: subject.mission_id.clone(),
            actor_id: actor.clone(),
            request_id: request_id.clone(),
        });
        let mission = Subject::mission(subject.mission_id.clone());
        let gates = row.gated.then(|| match row.stream {
            StreamKind::Mission => vec![mission],
            StreamKind::Run => vec![subject.clone(), mission],
        });
        let same = decision.same.iter();
        Self {
            request,
            head: true,
            fence: epoch.map(|epoch| (subject.stream(), epoch)),
            same: same
                .map(|read| (read.register.clone(), read.revision.get()))
                .collect(),
            gates,
            before_ms: decision.before_ms.clone(),
            clock_steps: None,
        }
    }

    /// The conditions of a sequence to which a part with these is added: all of both (T-82). The parts are of one request
    /// and one owner.
    #[must_use]
    pub fn and(mut self, part: Self) -> Self {
        self.head |= part.head;
        self.fence = self.fence.or(part.fence);
        self.same.extend(part.same);
        self.same.sort();
        self.same.dedup();
        self.gates = match (self.gates, part.gates) {
            (Some(mut scopes), Some(more)) => {
                scopes.extend(more);
                scopes.sort();
                scopes.dedup();
                Some(scopes)
            }
            (scopes, more) => scopes.or(more),
        };
        // The first look at the clock counts: a step since then is a step under what was decided first.
        self.clock_steps = self.clock_steps.or(part.clock_steps);
        self.before_ms.extend(part.before_ms);
        self
    }
}

/// The key of a request: unique per mission and principal (HF-02), kept for life.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    /// The mission.
    pub mission_id: MissionId,
    /// The principal.
    pub actor_id: ActorId,
    /// The request.
    pub request_id: RequestId,
}

impl RequestKey {
    /// The key that an event stands under; none for what the engine does itself.
    pub fn of(event: &Event) -> Option<Self> {
        Some(Self {
            mission_id: event.subject.mission_id.clone(),
            actor_id: event.actor_id.clone(),
            request_id: event.request_id.clone()?,
        })
    }
}

/// The answer to an append.
pub type AppendResult = Result<Appended, AppendError>;

/// The append is in the log, from now or from before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It was committed by this call.
    Committed {
        /// The log sequence of its first event.
        sequence: u64,
        /// The hash of its last event, which is where its stream stands.
        hash: Digest,
    },
    /// The same request was committed earlier; its results stand in the events from there on.
    Replayed {
        /// The log sequence of the request's first event.
        sequence: u64,
    },
}

/// The append is not in the log, unless the error says that it is in doubt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// A condition did not hold. Nothing changed.
    #[error("{refusal}")]
    Refused {
        /// The condition.
        refusal: Box<Refusal>,
        /// The part that it failed for, from 1; none where it failed for the whole append (T-82).
        part: Option<usize>,
    },
    /// The store could not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AppendError {
    /// The code that callers branch on.
    pub fn code(&self) -> Code {
        match self {
            Self::Refused { refusal, .. } => refusal.code(),
            Self::Store(error) => error.code(),
        }
    }

    /// The same, found at this part. What is asked of the append as a whole and fails at once is no part's fault.
    pub(crate) fn at_part(self, part: usize) -> Self {
        match self {
            Self::Refused { refusal, .. } if part > 1 || !refusal.is_of_all() => Self::Refused {
                refusal,
                part: Some(part),
            },
            error => error,
        }
    }
}

/// The first condition that did not hold, with what was found at the log's head.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The request id was used with other material.
    #[error("request {} was used at sequence {sequence} with another body", key.request_id)]
    IdentityConflict {
        /// The request.
        key: RequestKey,
        /// Where it was used.
        sequence: u64,
    },
    /// The stream stands elsewhere.
    #[error(
        "stream {stream} does not stand where the event links to; read its head again and decide again"
    )]
    Head {
        /// The stream.
        stream: StreamId,
        /// Where it stands; none if it is not open.
        found: Option<Head>,
    },
    /// The run has another owner.
    #[error(
        "the run of stream {stream} is owned under epoch {found:?}, not {expected}; stop acting for it"
    )]
    Fence {
        /// The run's stream.
        stream: StreamId,
        /// The epoch that the caller acts under.
        expected: u64,
        /// The current epoch; none if the run does not exist.
        found: Option<u64>,
    },
    /// The clock stepped back since the lease was judged by it.
    #[error("the clock stepped back {found} times, not {expected}; decide again")]
    Clock {
        /// The steps when the lease was judged.
        expected: u64,
        /// The steps by now.
        found: u64,
    },
    /// A register was written since it was read.
    #[error(
        "register {register:?} has revision {found}, not {expected}; read it again and decide again"
    )]
    Same {
        /// The register.
        register: RegisterKey,
        /// The revision that was read.
        expected: u64,
        /// Its revision.
        found: u64,
    },
    /// A gate of a scope is closed.
    #[error("gate {gate:?} of {scope:?} is closed")]
    Gate {
        /// The scope.
        scope: Subject,
        /// The first closed gate.
        gate: Gate,
    },
    /// An identity of the mission is taken.
    #[error("{:?} {} was taken at sequence {sequence}", identity.kind, identity.key)]
    Identity {
        /// The identity.
        identity: Identity,
        /// Where it was taken.
        sequence: u64,
        /// The digest of the material there.
        digest: Digest,
    },
    /// A time has come.
    #[error("expected to commit before {deadline_ms} ms, the time is {now_ms} ms")]
    Before {
        /// The deadline in UTC milliseconds.
        deadline_ms: u64,
        /// The writer's time in UTC milliseconds.
        now_ms: u64,
    },
    /// A reservation does not fit its bound.
    #[error("account {account:?} cannot reserve {amount}")]
    Bounded {
        /// The account.
        account: AccountKey,
        /// Its row; none if it was never opened.
        row: Option<AccountRow>,
        /// What was to be reserved.
        amount: Dec,
    },
    /// An event that launches work came without a condition that it needs (T-51).
    #[error("{kind} launches work and came without its {missing} condition; report this")]
    Unconditioned {
        /// The event's type.
        kind: &'static str,
        /// The missing condition.
        missing: &'static str,
    },
    /// The append contradicts itself or the projections; a defect of its maker.
    #[error("the append is not one that can be stored: {what}; report this")]
    Illegal {
        /// What is wrong.
        what: String,
    },
}

impl Refusal {
    /// Whether the condition is the whole append's: where it begins, who appends it, what was read for it, and when.
    fn is_of_all(&self) -> bool {
        matches!(
            self,
            Self::Head { .. }
                | Self::Fence { .. }
                | Self::Clock { .. }
                | Self::Same { .. }
                | Self::Before { .. }
        )
    }

    /// The code that callers branch on.
    pub fn code(&self) -> Code {
        match self {
            Self::IdentityConflict { .. } | Self::Identity { .. } => Code::IdentityConflict,
            Self::Head { .. } | Self::Same { .. } => Code::RevisionConflict,
            Self::Fence { .. } | Self::Clock { .. } => Code::StaleOwner,
            Self::Gate { .. } => Code::HoldActive,
            Self::Before { .. } => Code::DeadlinePassed,
            Self::Bounded { .. } => Code::BudgetExceeded,
            Self::Unconditioned { .. } => Code::LaunchUnconditioned,
            Self::Illegal { .. } => Code::InternalStore,
        }
    }
}

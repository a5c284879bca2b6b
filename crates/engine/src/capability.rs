//! Capabilities: who is asking, as the host proved it.
//!
//! Invariant: only a `Host` makes one with a principal, and the only `Host` comes from `Engine::open`; nothing
//! in a request's text becomes one (CRD-2, HS-03.11). Carried by every request, shown to the authorizer.

use aiws::error::{Code, Error, Stage};
use aiws::id::ActorId;
use aiws::json::Value;
use aiws::record::ActorKind;
use praxis_journal::Journal;

/// The class of commands that the engine sends by itself.
pub const CLASS_SCHEDULER: &str = "SCHEDULER";
/// The class of recoveries that the engine's supervisor sends (T-15).
pub const CLASS_RECOVERY: &str = "RECOVERY";
/// The class of reconciliations by what the effect's own adapter found or, too late for its owner, reported
/// (T-18, T-20).
pub const CLASS_LOOKUP: &str = "LOOKUP";
/// The class of reconciliations of lost reads under the contract's rule (T-20).
pub const CLASS_LOST_READ_RULE: &str = "LOST_READ_RULE";

/// Who is asking. It says who, not what they may do: that is the authorizer's to answer each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    actor_id: ActorId,
    actor_kind: ActorKind,
    class: String,
    evidence: Value,
    proof: Proof,
}

/// Who vouches for a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Nobody,
    Host,
    Engine,
}

impl Capability {
    /// A caller of whom nothing is proven. Every command of it is refused at stage 2 (T-33).
    ///
    /// # Errors
    ///
    /// None in practice: the fixed name is a valid id.
    pub fn anonymous() -> Result<Self, Error> {
        Ok(Self {
            actor_id: ActorId::new("anonymous")?,
            actor_kind: ActorKind::Unattributed,
            class: String::new(),
            evidence: Value::Null,
            proof: Proof::Nobody,
        })
    }

    /// The principal.
    pub fn actor_id(&self) -> &ActorId {
        &self.actor_id
    }

    /// Its kind.
    pub fn actor_kind(&self) -> ActorKind {
        self.actor_kind
    }

    /// How it was proven, such as `AT_TERMINAL` or `IN_ADVANCE`.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// What was proven; null where there is nothing to say.
    pub fn evidence(&self) -> &Value {
        &self.evidence
    }

    /// Stage 2 (T-33).
    pub(crate) fn authenticated(&self) -> Result<(), Error> {
        if self.proof != Proof::Nobody {
            return Ok(());
        }
        Err(Error::new(
            Code::AuthorizationDenied,
            "expected a proven principal, found an anonymous caller; ask the host for a capability",
        )
        .in_stage(Stage::Authentication)
        .with("cause", "unauthenticated"))
    }

    /// Whether it is the engine itself, whose class of decision is the engine's word.
    pub(crate) fn is_engine(&self) -> bool {
        self.proof == Proof::Engine
    }

    /// The engine itself, acting in one class of decision.
    pub(crate) fn system(class: &str) -> Result<Self, Error> {
        Ok(Self {
            actor_id: ActorId::new("system:engine")?,
            actor_kind: ActorKind::System,
            class: class.to_owned(),
            evidence: Value::Null,
            proof: Proof::Engine,
        })
    }
}

/// The host's side of an engine: it mints capabilities and may look at the journal. Workers never get it.
pub struct Host {
    journal: Journal,
}

impl Host {
    pub(crate) fn new(journal: Journal) -> Self {
        Self { journal }
    }

    /// A capability of a principal that the host has proven by its own means. `class` says how, `evidence` what
    /// was seen; both are shown to the authorizer.
    pub fn capability(
        &self,
        actor_id: ActorId,
        kind: ActorKind,
        class: &str,
        evidence: Value,
    ) -> Capability {
        Capability {
            actor_id,
            actor_kind: kind,
            class: class.to_owned(),
            evidence,
            proof: Proof::Host,
        }
    }

    /// The journal, for reading: verification, export, the outbox.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }
}

//! Ports: what the engine asks of its host, and the two that the operating system can answer.
//!
//! Invariant: none has a default; an engine without an authorizer does not compile (FV-GRT.5). Given by the host at `Engine::open`, called by the actors.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use aiws::digest::{Digest, tagged};
use aiws::error::Error;
use aiws::id::{ActorId, EvidenceId, Id};
use aiws::json::Value;
use aiws::object;
use aiws::record::{ActorKind, AdmissionProposal, Ref};
use praxis_artifacts::ArtifactProvider;
use praxis_model::command::Body;
use praxis_model::mission::MissionState;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use crate::capability::Capability;

/// What the engine asks of its host. All members are required.
#[derive(Clone)]
pub struct Ports {
    /// Trusted time.
    pub clock: Arc<dyn Clock>,
    /// Secret randomness, read once at open.
    pub entropy: Arc<dyn Entropy>,
    /// Who may do what.
    pub authorizer: Arc<dyn Authorizer>,
    /// Where artifacts live.
    pub artifacts: Arc<dyn ArtifactProvider>,
}

/// Trusted time.
pub trait Clock: std::fmt::Debug + Send + Sync {
    /// Now, in UTC milliseconds since 1970.
    fn now_ms(&self) -> u64;
}

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A clock that only moves when told to.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that stands at `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Self(AtomicU64::new(now_ms))
    }

    /// Puts the clock at `now_ms`, forward or back.
    pub fn set(&self, now_ms: u64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance(&self, by_ms: u64) {
        self.0.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Secret randomness.
pub trait Entropy: Send + Sync {
    /// Fills `bytes`.
    ///
    /// # Errors
    ///
    /// The system's error; the engine does not open then.
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()>;
}

/// The operating system's entropy, from `/dev/urandom`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        File::open("/dev/urandom")?.read_exact(bytes)
    }
}

/// Repeatable bytes from a seed; for simulations and tests alone.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<Digest>);

impl SeededEntropy {
    /// A source whose bytes follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(tagged(
            "praxis-seeded-entropy",
            &seed.to_be_bytes(),
        )))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut state = self
            .0
            .lock()
            .map_err(|_| io::Error::other("the seeded source was poisoned by a panic"))?;
        for chunk in bytes.chunks_mut(state.0.len()) {
            *state = tagged("praxis-seeded-entropy", &state.0);
            chunk.copy_from_slice(&state.0[..chunk.len()]);
        }
        Ok(())
    }
}

/// Who may do what (CRD-1). Called for every command, the engine's own included, in the actor that decides it,
/// right before the decision: it must answer from memory and not block. A panic in it counts as the actor's.
pub trait Authorizer: Send + Sync {
    /// Evaluates current policy for one command. Nothing of the command's own text is proof of anything (CRD-2).
    fn authorize(&self, ask: &Ask<'_>) -> Authorization;
}

/// A function of what is asked is an authorizer.
impl<F: Fn(&Ask<'_>) -> Authorization + Send + Sync> Authorizer for F {
    fn authorize(&self, ask: &Ask<'_>) -> Authorization {
        self(ask)
    }
}

/// What an authorizer sees.
pub struct Ask<'a> {
    /// Who asks, as the host proved it.
    pub capability: &'a Capability,
    /// The command, complete.
    pub command: &'a Body,
    /// The mission or run that it is for.
    pub subject: &'a Subject,
    /// The run's state, for a run's command.
    pub run: Option<&'a RunState>,
    /// The mission's state, for a mission's command after its first.
    pub mission: Option<&'a MissionState>,
    /// Trusted time, UTC milliseconds.
    pub now_ms: u64,
    /// The effect admission that the caller or the program proposes. It counts only if the answer's admissions
    /// have it too (HD-03.12).
    pub draft_admission: Option<&'a Draft>,
}

/// A proposed effect admission under the reference that the consumption names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The reference.
    pub admission_ref: Id,
    /// What is to be admitted.
    pub proposal: AdmissionProposal,
}

impl Draft {
    /// Its material, as a request's digest covers it (T-23).
    pub(crate) fn described(&self) -> Result<Value, Error> {
        Ok(object! {
            "admissionRef": &self.admission_ref,
            "proposal": aiws::canonical::to_value(&self.proposal)?,
        })
    }
}

/// What an authorizer answers: the host's word on everything that a request may not say of itself (HC-ENV.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    /// Whether current policy allows the command.
    pub allowed: bool,
    /// The actor; must be the capability's, else the command is refused.
    pub actor_id: ActorId,
    /// Its kind. Only a host says HUMAN.
    pub actor_kind: ActorKind,
    /// The policy revision that was evaluated.
    pub policy: Ref,
    /// The class of the decision.
    pub decision_class: String,
    /// The decision's reference; required where a human must decide.
    pub decision_ref: Option<Id>,
    /// Effect admissions that the host stands for.
    pub admissions: BTreeMap<Id, AdmissionProposal>,
    /// Evidence that the host confirms.
    pub clear_evidence: BTreeSet<EvidenceId>,
    /// Whether the host's rule allows an automatic restart.
    pub restart_allowed: bool,
    /// Whether the host grants authority to take over ownership.
    pub recovery_authority: bool,
    /// What the host allows of a claim's lease, where it is a claim that was asked about (HD-02.7).
    pub lease: LeaseBounds,
}

/// How long the host lets a claim last. The mission's own `leaseMs` bounds it from above as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBounds {
    /// No shorter, in milliseconds: a claimant that asks for less gets this.
    pub min_ms: u64,
    /// No longer, in milliseconds.
    pub max_ms: u64,
}

impl LeaseBounds {
    /// Whatever the mission allows.
    pub const MISSION: Self = Self {
        min_ms: 1,
        max_ms: u64::MAX,
    };

    /// The lease of a claim that wants this one, in a mission that allows that one; none where the host gives no
    /// lease at all.
    pub(crate) fn granted(self, wanted_ms: Option<u64>, mission_ms: u64) -> Option<u64> {
        let most = self.max_ms.min(mission_ms);
        let wanted = wanted_ms.unwrap_or(most);
        Some(wanted.max(self.min_ms).min(most)).filter(|granted| *granted > 0)
    }
}

impl Authorization {
    /// The answer that allows nothing, attributed to who asked.
    pub fn refused(capability: &Capability, policy: Ref) -> Self {
        Self {
            allowed: false,
            actor_id: capability.actor_id().clone(),
            actor_kind: capability.actor_kind(),
            policy,
            decision_class: capability.class().to_owned(),
            decision_ref: None,
            admissions: BTreeMap::new(),
            clear_evidence: BTreeSet::new(),
            restart_allowed: false,
            recovery_authority: false,
            lease: LeaseBounds::MISSION,
        }
    }

    /// The answer that allows the one command asked about, attributed to who asked, and confirms nothing else.
    pub fn allowed(capability: &Capability, policy: Ref) -> Self {
        Self {
            allowed: true,
            ..Self::refused(capability, policy)
        }
    }

    /// The answer that allows the command and stands for the effect admission that was proposed with it.
    pub fn as_proposed(ask: &Ask<'_>, policy: Ref) -> Self {
        let drafts = ask.draft_admission.into_iter();
        let admissions = drafts
            .map(|draft| (draft.admission_ref.clone(), draft.proposal.clone()))
            .collect();
        Self {
            admissions,
            ..Self::allowed(ask.capability, policy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves HD-02.7: a wanted lease ends up between the host's bounds, and never above the mission's.
    #[test]
    fn a_lease_is_between_the_bounds() {
        let host = LeaseBounds {
            min_ms: 20,
            max_ms: 60,
        };
        for (wanted, mission, granted) in [
            (None, 100, Some(60)),
            (Some(7), 100, Some(20)),
            (Some(30), 100, Some(30)),
            (Some(u64::MAX), 100, Some(60)),
            (Some(30), 10, Some(10)),
        ] {
            assert_eq!(host.granted(wanted, mission), granted, "{wanted:?}");
        }
        assert_eq!(LeaseBounds::MISSION.granted(None, 100), Some(100));
        let none = LeaseBounds {
            min_ms: 0,
            max_ms: 0,
        };
        assert_eq!(none.granted(Some(30), 100), None);
    }

    #[test]
    fn seeded_entropy_repeats_and_moves_on() {
        let (mut a, mut b, mut c) = ([0u8; 40], [0u8; 40], [0u8; 40]);
        let source = SeededEntropy::new(7);
        source.fill(&mut a).expect("filled");
        source.fill(&mut c).expect("filled");
        SeededEntropy::new(7).fill(&mut b).expect("filled");
        assert_eq!(a, b);
        assert_ne!(a, c);
    }
}

//! The host of the scenarios: a policy that a case can change, artifacts whose reads take time, an adapter that counts.
//! Invariant: nothing here reads a request's text as proof; a human is one because the policy says so.
//! The world opens every engine with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use aiws::decimal::Dec;
use aiws::digest::Digest;
use aiws::id::{ActorId, EvidenceId, Id};
use aiws::record::{ActorKind, AdmissionProposal, Artifact, EffectClass, HoldMember, Ref};
use praxis_artifacts::{ArtifactError, ArtifactProvider, FileArtifacts, Orphan};
use praxis_engine::{
    Adapter, Ask, Authorization, Authorizer, BoxFuture, EffectCall, EffectReport, LeaseBounds,
    ManualClock,
};
use praxis_model::command::{Body, CommandType};

/// Held while a process is started. Until the new program replaces it, the child of the fork holds this process's
/// open files, and with them the lock of a store that another case is just closing.
static FORKING: Mutex<()> = Mutex::new(());

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Output {
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = {
        let _alone = FORKING.lock().unwrap();
        command.spawn()
    };
    child
        .expect("a program")
        .wait_with_output()
        .expect("its end")
}

/// Waits until no fork holds the files of a store that was closed before this call.
pub fn no_fork_holds_files() {
    drop(FORKING.lock().unwrap());
}

/// What the policy of a case says.
#[derive(Clone, Default)]
pub struct Rules {
    /// Who may not send what.
    pub denied: BTreeSet<(String, CommandType)>,
    /// The only worker that may claim deliveries to a node, where there is one.
    pub workers: BTreeMap<String, String>,
    /// Who may neither hold nor release which node.
    pub untouchable: BTreeSet<(String, String)>,
    /// Effect admissions that the host prepared.
    pub admissions: BTreeMap<Id, AdmissionProposal>,
    /// Evidence that the host confirms.
    pub evidence: BTreeSet<EvidenceId>,
    /// Who may take over ownership.
    pub recovery: BTreeSet<String>,
    /// How long the host lets a claim last; none for whatever the mission allows.
    pub lease: Option<LeaseBounds>,
    /// The rule policy as the host has it now, and whether it allows a restart, where the host has one.
    pub rule: Option<(Ref, bool)>,
    /// Whether effects that the engine's own program proposes are admitted.
    pub drafts: bool,
}

/// The authorizer of every scenario: whatever is not denied is allowed.
#[derive(Default)]
pub struct Policy(Mutex<Rules>);

impl Policy {
    /// The rules, to be changed.
    pub fn rules(&self) -> MutexGuard<'_, Rules> {
        self.0.lock().unwrap()
    }
}

/// A principal's kind by its name.
pub fn kind_of(actor: &str) -> ActorKind {
    match actor.split(':').next() {
        Some("human") => ActorKind::Human,
        Some("agent") => ActorKind::Agent,
        Some("rule") => ActorKind::Rule,
        Some("system") => ActorKind::System,
        _ => ActorKind::Unattributed,
    }
}

/// The policy's reference, as every event records it.
pub fn policy_ref() -> Ref {
    Ref {
        id: Id::new("policy").unwrap(),
        revision: Dec::from_u64(1),
    }
}

impl Authorizer for Policy {
    fn authorize(&self, ask: &Ask<'_>) -> Authorization {
        let rules = self.rules();
        let actor = ask.capability.actor_id().as_str();
        let kind = ask.capability.actor_kind();
        let mut admissions = rules.admissions.clone();
        if let Some(draft) = ask.draft_admission.filter(|_| rules.drafts) {
            admissions.insert(draft.admission_ref.clone(), draft.proposal.clone());
        }
        let named = match ask.command {
            Body::ClaimDelivery(claim) => {
                let delivery = ask
                    .run
                    .and_then(|run| run.deliveries.get(&claim.delivery_id));
                delivery.and_then(|delivery| {
                    rules
                        .workers
                        .get(delivery.record.recipient.node_id.as_str())
                })
            }
            _ => None,
        };
        let allowed = !rules
            .denied
            .contains(&(actor.to_owned(), ask.command.kind()))
            && named.is_none_or(|worker| worker == actor)
            && !members(ask).iter().any(|member| {
                let mut all = rules.untouchable.iter();
                all.any(|(who, node)| {
                    who == actor
                        && member
                            .node_ids
                            .contains(&Id::new(node.as_str()).unwrap().into())
                })
            });
        let recovers = matches!(ask.command, Body::RecoverOwnership(_));
        let ruled = rules.rule.clone();
        let ruled = ruled.filter(|_| recovers || kind == ActorKind::Rule);
        let (policy, allows) = ruled.unwrap_or((policy_ref(), false));
        Authorization {
            allowed,
            decision_ref: (kind == ActorKind::Human).then(|| Id::new("decision-1").unwrap()),
            admissions,
            restart_allowed: rules.drafts || allows,
            lease: rules.lease.unwrap_or(LeaseBounds::MISSION),
            clear_evidence: rules.evidence.clone(),
            recovery_authority: rules.recovery.contains(actor),
            ..Authorization::allowed(ask.capability, policy)
        }
    }
}

/// Whom a command about a hold concerns: every member counts, whatever the request names (HC-ENV.4).
fn members(ask: &Ask<'_>) -> Vec<HoldMember> {
    match (ask.command, ask.run) {
        (Body::PlaceHold(body), Some(run)) => praxis_model::hold::members(run, &body.hold.scope),
        (Body::ResolveHold(body), Some(run)) => {
            let hold = run.holds.get(&body.hold_id);
            hold.map(|hold| hold.members.clone()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The artifact store; a read moves the clock by what the case says that it takes.
pub struct Shelf {
    files: FileArtifacts,
    clock: Arc<ManualClock>,
    read_ms: AtomicU64,
    lies: AtomicBool,
}

impl Shelf {
    /// The store in `path`.
    pub fn open(path: &Path, clock: Arc<ManualClock>) -> Shelf {
        Shelf {
            files: FileArtifacts::open(path).unwrap(),
            clock,
            read_ms: AtomicU64::new(0),
            lies: AtomicBool::new(false),
        }
    }

    /// Whether reads hand out other bytes than were asked for.
    pub fn lie(&self, lies: bool) {
        self.lies.store(lies, Ordering::SeqCst);
    }

    /// What the next read takes, in milliseconds.
    pub fn next_read_takes(&self, ms: u64) {
        self.read_ms.store(ms, Ordering::SeqCst);
    }
}

impl ArtifactProvider for Shelf {
    fn put(
        &self,
        bytes: &[u8],
        locator_key: &str,
        media_type: &str,
        retention_owner: &ActorId,
        retain_until_ms: u64,
    ) -> Result<Artifact, ArtifactError> {
        self.files.put(
            bytes,
            locator_key,
            media_type,
            retention_owner,
            retain_until_ms,
        )
    }

    fn read(&self, artifact: &Artifact, now_ms: u64) -> Result<Vec<u8>, ArtifactError> {
        let bytes = self.files.read(artifact, now_ms);
        self.clock.advance(self.read_ms.swap(0, Ordering::SeqCst));
        match self.lies.load(Ordering::SeqCst) {
            true => bytes.map(|bytes| vec![b'x'; bytes.len()]),
            false => bytes,
        }
    }

    fn read_digest(&self, digest: &Digest, max_bytes: u64) -> Result<Vec<u8>, ArtifactError> {
        self.files.read_digest(digest, max_bytes)
    }

    fn contains(&self, digest: &Digest) -> Result<bool, ArtifactError> {
        self.files.contains(digest)
    }

    fn orphans(&self, referenced: &BTreeSet<Digest>) -> Result<Vec<Orphan>, ArtifactError> {
        self.files.orphans(referenced)
    }
}

/// An adapter that nobody may call: the scenarios have their effects outside, by hand.
#[derive(Default)]
pub struct Outside(AtomicU64);

impl Outside {
    /// How often it was called.
    pub fn calls(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Adapter for Outside {
    fn class(&self) -> EffectClass {
        EffectClass::External
    }

    fn call(&self, _: EffectCall) -> BoxFuture<'_, EffectReport> {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("the engine called an adapter by itself")
    }
}

//! A small deterministic world: one mission with one run, decided, linked and folded without any store.
//!
//! Invariant: `apply` is the five hops without disk. An accepted command changes the world by its event alone, a
//! refused one changes nothing. Used by every test of this crate.

#![allow(dead_code, reason = "each test file uses its part of the world")]

mod again;
mod build;
mod steps;

pub use again::decided_again;
pub use build::*;
pub use steps::*;

use std::collections::{BTreeMap, BTreeSet};

use aiws::decimal::{Dec, U64};
use aiws::digest::Digest;
use aiws::id::{ActorId, Id, MissionId, RunId};
use aiws::json::Value;
use aiws::record::{ActorKind, Contract, Graph, HandoffConfig, Ref};
use praxis_model::account::{AccountRow, Posting};
use praxis_model::command::{ActivateGraph, Body, Command, Intent, OpenMission, StartRun};
use praxis_model::decision::{Decision, Rejection};
use praxis_model::event::{CODEC_VERSION, Codec, Event, Head, Part};
use praxis_model::facts::Facts;
use praxis_model::mission::MissionState;
use praxis_model::redecide::Before;
use praxis_model::register::{RegisterKey, RegisterRead};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use praxis_model::table::{self, StreamKind};
use praxis_model::{decide, draft, evolve};

/// What a step of a test gives: the recorded result, or the refusal.
pub type Step = Result<Value, Rejection>;

/// The mission, its one run and everything that the journal would project.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    pub mission: Option<MissionState>,
    pub run: Option<RunState>,
    pub now_ms: u64,
    pub registers: BTreeMap<RegisterKey, (u64, Value)>,
    pub account: Option<AccountRow>,
    pub events: Vec<(Event, Digest)>,
    pub admissions: BTreeMap<Id, aiws::record::AdmissionProposal>,
    pub materials: BTreeMap<Digest, praxis_model::facts::VerifiedMaterial>,
    pub material_errors: BTreeMap<Digest, praxis_model::facts::MaterialError>,
    pub evidence: BTreeSet<aiws::id::EvidenceId>,
    pub token: u64,
}

impl World {
    /// Nothing yet; the clock stands at 1000.
    pub fn empty() -> World {
        World {
            mission: None,
            run: None,
            now_ms: 1000,
            registers: BTreeMap::new(),
            account: None,
            events: Vec::new(),
            admissions: BTreeMap::new(),
            materials: BTreeMap::new(),
            material_errors: BTreeMap::new(),
            evidence: BTreeSet::new(),
            token: 0,
        }
    }

    /// A mission with one run, without a graph.
    pub fn started(contract: Contract, config: HandoffConfig) -> World {
        let mut world = World::empty();
        let opened = Body::OpenMission(OpenMission { contract, config });
        world.send("human:op", opened).expect("openMission");
        world
            .send("human:op", Body::StartRun(StartRun { run_id: run_id() }))
            .expect("startRun");
        world
    }

    /// A mission with one run and its pinned graph, under the usual contract and configuration.
    pub fn with(graph: Graph) -> World {
        World::configured(graph, |_| {})
    }

    /// As `with`, with a changed configuration.
    pub fn configured(graph: Graph, change: impl FnOnce(&mut HandoffConfig)) -> World {
        let mut config = config();
        change(&mut config);
        let mut world = World::started(contract(), config);
        world.activate(graph).expect("activateGraph");
        world
    }

    /// The run's state.
    pub fn state(&self) -> &RunState {
        self.run.as_ref().expect("the run was started")
    }

    /// Activates a graph as the engine does.
    pub fn activate(&mut self, graph: Graph) -> Step {
        let owner_epoch = Dec::from_u64(self.state().epoch);
        self.send(
            "system:engine",
            Body::ActivateGraph(ActivateGraph {
                run_id: run_id(),
                owner_epoch,
                graph,
            }),
        )
    }

    /// The facts that the host would gather now for this actor, who may do everything.
    pub fn facts(&self, actor: &str) -> Facts {
        let actor_kind = match actor.split(':').next() {
            Some("human") => ActorKind::Human,
            Some("agent") => ActorKind::Agent,
            Some("rule") => ActorKind::Rule,
            Some("system") => ActorKind::System,
            _ => ActorKind::Unattributed,
        };
        let read = |(register, (revision, value)): (&RegisterKey, &(u64, Value))| RegisterRead {
            register: register.clone(),
            revision: U64(*revision),
            value: value.clone(),
        };
        Facts {
            allowed: true,
            actor_id: ActorId::new(actor).expect("an actor"),
            actor_kind,
            policy: Ref {
                id: Id::new("policy").expect("an id"),
                revision: Dec::from_u64(1),
            },
            decision_class: "POLICY".to_owned(),
            decision_ref: (actor_kind == ActorKind::Human)
                .then(|| Id::new("decision-1").expect("an id")),
            authorized_at_ms: self.now_ms,
            now_ms: self.now_ms,
            materials: self.materials.clone(),
            material_errors: self.material_errors.clone(),
            admissions: self.admissions.clone(),
            registers: self.registers.iter().map(read).collect(),
            account: self.account.clone(),
            outer_gates: Vec::new(),
            clear_evidence: self.evidence.clone(),
            restart_allowed: true,
            claim_fingerprint: Some(token(self.token)),
            recovery_authority: true,
            clock_stepped: false,
        }
    }

    /// The command that asks for this body at the current revision and epoch.
    pub fn command(&self, body: Body) -> Command {
        let in_run = table::row(body.kind()).stream == StreamKind::Run;
        let head = if in_run {
            self.run.as_ref().map(|run| run.head)
        } else {
            self.mission.as_ref().map(|mission| mission.head)
        };
        Command {
            mission_id: mission_id(),
            run_id: in_run.then(run_id),
            request_id: None,
            request_digest: Digest::ZERO,
            expected_revision: head.map(|head| head.revision.into()),
            owner_epoch: self
                .run
                .as_ref()
                .filter(|_| in_run)
                .map(|run| Dec::from_u64(run.epoch)),
            body,
        }
    }

    /// Sends a body as an actor at the current revision.
    pub fn send(&mut self, actor: &str, body: Body) -> Step {
        let (command, facts) = (self.command(body), self.facts(actor));
        self.apply(&command, &facts)
    }

    /// Sends an intent as an actor.
    pub fn intend(&mut self, actor: &str, intent: &Intent) -> Step {
        let facts = self.facts(actor);
        let body = draft::command(self.state(), intent, &facts)?;
        self.apply(&self.command(body), &facts)
    }

    /// Decides, links, folds. A refusal changes nothing; an accepted command that cannot be folded panics.
    pub fn apply(&mut self, command: &Command, facts: &Facts) -> Step {
        if table::row(command.body.kind()).stream == StreamKind::Run {
            let state = self.state();
            let decision = decide::run(state, command, facts)?;
            in_table(&decision);
            let (event, hash) = link(
                state.subject.clone(),
                state.head,
                Some(state.epoch),
                command,
                &decision,
                facts,
            );
            decided_again(Before::Run(state), &event);
            let next =
                evolve::run(state.clone(), &event, &hash).expect("what is decided can be folded");
            self.run = Some(next);
            self.project(event, hash);
            return Ok(decision.result);
        }
        let decision = decide::mission(self.mission.as_ref(), command, facts)?;
        in_table(&decision);
        let head = self.mission.as_ref().map_or(
            Head {
                revision: U64(0),
                hash: Digest::ZERO,
            },
            |mission| mission.head,
        );
        let (event, hash) = link(
            Subject::mission(mission_id()),
            head,
            None,
            command,
            &decision,
            facts,
        );
        decided_again(Before::Mission(self.mission.as_ref()), &event);
        let next = evolve::mission(self.mission.clone(), &event, &hash)
            .expect("what is decided can be folded");
        self.mission = Some(next);
        if matches!(command.body, Body::StartRun(_)) && self.run.is_none() {
            self.run = Some(RunState::admitted(&event, &hash).expect("an admitted run"));
        }
        self.project(event, hash);
        Ok(decision.result)
    }

    /// What the journal does with an event: registers and the one account.
    fn project(&mut self, event: Event, hash: Digest) {
        for write in &event.outcome.registers {
            let row = self
                .registers
                .entry(write.register.clone())
                .or_insert((0, Value::Null));
            *row = (row.0 + 1, write.value.clone());
        }
        for posting in &event.outcome.accounts {
            self.post(posting);
        }
        self.events.push((event, hash));
    }

    fn post(&mut self, posting: &Posting) {
        let mut row = match (self.account.clone(), posting) {
            (_, Posting::Open { bound, .. }) => AccountRow {
                bound: *bound,
                spent: Dec::ZERO,
                reserved: Dec::ZERO,
                overrun: Dec::ZERO,
                revision: U64(0),
            },
            (Some(row), _) => row,
            (None, _) => panic!("a posting to an account that was never opened"),
        };
        let less = |row: &AccountRow, amount: Dec| {
            row.reserved.checked_sub(amount).expect("reserved before")
        };
        match posting {
            Posting::Open { .. } => {}
            Posting::Reserve { amount, .. } => {
                row.reserved = row.reserved.checked_add(*amount).expect("fits")
            }
            Posting::Release { reserved, .. } => row.reserved = less(&row, *reserved),
            Posting::Settle {
                reserved, actual, ..
            } => {
                row.reserved = less(&row, *reserved);
                row.spent = row.spent.checked_add(*actual).expect("fits");
            }
        }
        row.revision = U64(row.revision.get() + 1);
        self.account = Some(row);
    }
}

/// A decision reads and writes the registers that the command table names, and no others.
fn in_table(decision: &Decision) {
    for change in &decision.outcome.transitions {
        let kind = decision.command.kind();
        assert!(
            praxis_model::moves::are_of(kind, change),
            "{} made {change:?}",
            kind.name()
        );
    }
    let row = table::row(decision.command.kind());
    let strange = decision
        .same
        .iter()
        .find(|read| !row.reads.contains(&read.register.kind));
    assert_eq!(strange, None, "{} reads it", row.kind.name());
    let mut writes = decision.outcome.registers.iter();
    let strange = writes.find(|write| !row.writes.contains(&write.register.kind));
    assert_eq!(strange, None, "{} writes it", row.kind.name());
}

/// The event of a decision. Its hash is the digest of its canonical bytes: the same idea as the journal's, without
/// its tag.
pub fn link(
    subject: Subject,
    head: Head,
    epoch: Option<u64>,
    command: &Command,
    decision: &Decision,
    facts: &Facts,
) -> (Event, Digest) {
    let event = Event {
        stream: subject.stream(),
        revision: U64(head.revision.get() + 1),
        prev_hash: head.hash,
        subject,
        kind: decision.command.kind(),
        request_id: command.request_id.clone(),
        request_digest: command.request_digest,
        part: Part {
            k: U64(1),
            of: U64(1),
        },
        actor_id: facts.actor_id.clone(),
        actor_kind: facts.actor_kind,
        policy: facts.policy.clone(),
        decision_class: facts.decision_class.clone(),
        decision_ref: facts.decision_ref.clone(),
        at_ms: U64(facts.now_ms),
        owner_epoch: epoch.map(U64),
        command: decision.command.clone(),
        facts: facts.recorded(),
        outcome: decision.outcome.clone(),
        result: decision.result.clone(),
        codec: Codec {
            profile: "aiws-handoff/1".to_owned(),
            version: U64(CODEC_VERSION),
        },
    };
    let hash = aiws::canonical::digest_of(&event).expect("an event has canonical bytes");
    reads_back(&event);
    (event, hash)
}

/// Whatever is decided can be read again: from its canonical bytes, within the bound of an event, comes the event.
pub fn reads_back(event: &Event) {
    let bytes = aiws::canonical::bytes_of(event).expect("an event has canonical bytes");
    let value = aiws::strict::parse_with_limit(&bytes, aiws::limits::MAX_EVENT_BYTES)
        .expect("what is decided can be parsed");
    let read: Event =
        aiws::canonical::from_value(&value).expect("what is decided can be read back");
    assert_eq!(&read, event, "an event is what its canonical bytes say");
}

/// The fingerprint of the n-th claim token.
pub fn token(number: u64) -> Digest {
    aiws::digest::tagged("token", &number.to_be_bytes())
}

/// The one mission.
pub fn mission_id() -> MissionId {
    MissionId::new("mission").expect("an id")
}

/// The one run.
pub fn run_id() -> RunId {
    RunId::new("run").expect("an id")
}

//! A mission with one run on a bench: decide, fold and project by hand, with every register and account in sight.
//!
//! Invariant: nothing is set that a command could have made; what the journal would project is projected here.
//! Used by the cases and flows of the commands about effects, approvals, assessments, holds and recovery.

use std::collections::{BTreeMap, BTreeSet};

use aiws::canonical::{digest_of, from_value};
use aiws::decimal::{Dec, DecPlus, Ms, U64};
use aiws::digest::{Digest, sha256};
use aiws::id::Id;
use aiws::json::Value;
use aiws::object;
use aiws::record::*;
use praxis_model::account::{AccountRow, Posting};
use praxis_model::command::*;
use praxis_model::decision::{Decision, Rejection};
use praxis_model::event::{CODEC_VERSION, Codec, Event, Gate, IdentityKind, Part};
use praxis_model::evolve::IllegalEvent;
use praxis_model::facts::Facts;
use praxis_model::mission::MissionState;
use praxis_model::redecide::Before;
use praxis_model::register::{RegisterKey, RegisterKind, RegisterRead};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use praxis_model::{decide, draft, evolve};

use crate::again::decided_again;

/// An id of any kind from a text.
pub fn id<T: From<Id>>(text: &str) -> T {
    T::from(Id::new(text).expect("a good id"))
}

pub fn dec(number: u64) -> Dec {
    Dec::from_u64(number)
}

pub fn reference(name: &str) -> Ref {
    Ref {
        id: id(name),
        revision: dec(1),
    }
}

/// Who acts on the bench.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Human,
    System,
    Agent,
    Rule,
}

#[derive(Clone)]
pub struct Bench {
    pub mission: MissionState,
    pub run: RunState,
    pub account: AccountRow,
    pub registers: BTreeMap<RegisterKey, (u64, Value)>,
    pub gates: BTreeSet<(Subject, Gate)>,
    pub identities: BTreeSet<(IdentityKind, Id)>,
    pub live: BTreeSet<Subject>,
    pub now_ms: u64,
}

pub fn contract() -> Contract {
    Contract {
        edition: Edition::V0_4,
        features: vec!["finite-v1".to_owned()],
        mission_id: id("m"),
        contract_id: id("c"),
        revision: dec(1),
        budget: dec(100),
        deadline_ms: Ms::from_u64(1_000_000),
        max_attempts: DecPlus::new(dec(2)).expect("positive"),
        authority: Authority {
            root_grants: vec![grant("root")],
        },
        lost_reads: Some(LostReads {
            rule: reference("lost-reads"),
            approved_by: id("ann"),
            decision_ref: id("ann-said-so"),
        }),
        extensions: Some(vec!["aiws-handoff/1".to_owned()]),
    }
}

pub fn grant(name: &str) -> Grant {
    Grant {
        grant_id: id(name),
        parent_grant_id: None,
        subject: id("worker"),
        actions: vec!["edit".to_owned(), "look".to_owned()],
        scopes: vec!["docs".to_owned(), "repo".to_owned()],
        max_amount: dec(60),
        not_after_ms: Ms::from_u64(900_000),
    }
}

/// A grant below the root that narrows nothing yet.
pub fn child(name: &str) -> Grant {
    Grant {
        parent_grant_id: Some(id("root")),
        ..grant(name)
    }
}

pub fn config() -> HandoffConfig {
    HandoffConfig {
        optional_inputs: Vec::new(),
        mappings: Vec::new(),
        join_policy: Vec::new(),
        required_skip: Vec::new(),
        restart_policy: RestartPolicy::Auto,
        rule: None,
        lease_ms: DecPlus::new(dec(10_000)).expect("positive"),
        default_stop: StopAction::Drain,
        recovery_window_ms: None,
        max_recipients: DecPlus::new(dec(8)).expect("positive"),
        scope_bindings: Vec::new(),
    }
}

fn node(name: &str, kind: NodeKind, after: &[&str]) -> Node {
    Node {
        id: id(name),
        kind,
        depends_on: after.iter().map(|name| id(name)).collect(),
        input_schema: None,
        output_schema: None,
        deadline_ms: None,
    }
}

/// gate(APPROVAL) -> work(TASK); free(TASK); both -> check(VERIFICATION) -> take(ACCEPTANCE) -> end.
pub fn graph() -> Graph {
    let task = || {
        NodeKind::Task(TaskConfig {
            execution_kind: ExecutionKind::Agent,
        })
    };
    let mut work = node("work", task(), &["gate"]);
    work.input_schema = Some(object! { "type": "object", "required": vec!["path"] });
    work.deadline_ms = Some(Ms::from_u64(800_000));
    let nodes = vec![
        node("gate", NodeKind::Approval, &[]),
        work,
        node("free", task(), &[]),
        node("check", NodeKind::Verification, &["work", "free"]),
        node("take", NodeKind::Acceptance, &["check"]),
        node("end", NodeKind::End, &["take"]),
    ];
    Graph {
        graph_id: id("g"),
        revision: dec(1),
        plan_revision: dec(1),
        nodes,
    }
}

/// An edit of one file; the action that the approvals of these tests are about.
pub fn edit(path: &str) -> Value {
    object! { "action": "edit", "scope": "repo", "payload": object! { "path": path } }
}

pub fn fingerprint(action: &Value) -> Digest {
    sha256(&aiws::canonical::to_bytes(action))
}

/// A mission that is open, and nothing else.
pub fn opened(contract: Contract, config: HandoffConfig) -> (MissionState, Vec<Event>) {
    let body = Body::OpenMission(OpenMission { contract, config });
    let (decision, facts) = (
        decide_mission(None, &body, 1_000).expect("opens"),
        bare(Who::Human, 1_000),
    );
    let event = seal(
        &Subject::mission(id("m")),
        0,
        Digest::ZERO,
        None,
        &decision,
        &facts,
    );
    decided_again(Before::Mission(None), &event);
    let state = evolve::mission(None, &event, &digest_of(&event).expect("digest")).expect("folds");
    (state, vec![event])
}

/// What the mission decides about a body, in the name of a human at `now_ms`.
pub fn decide_mission(
    state: Option<&MissionState>,
    body: &Body,
    now_ms: u64,
) -> Result<Decision, Rejection> {
    let command = Command {
        mission_id: id("m"),
        run_id: None,
        request_id: None,
        request_digest: Digest::ZERO,
        expected_revision: state.map(|state| state.head.revision.into()),
        owner_epoch: None,
        body: body.clone(),
    };
    decide::mission(state, &command, &bare(Who::Human, now_ms))
}

/// Facts with nothing but an actor and a time.
pub fn bare(who: Who, now_ms: u64) -> Facts {
    let (actor_id, actor_kind) = match who {
        Who::Human => ("ann", ActorKind::Human),
        Who::System => ("engine", ActorKind::System),
        Who::Agent => ("worker", ActorKind::Agent),
        Who::Rule => ("rule", ActorKind::Rule),
    };
    Facts {
        allowed: true,
        actor_id: id(actor_id),
        actor_kind,
        policy: reference("host-policy"),
        decision_class: "POLICY".to_owned(),
        decision_ref: (who == Who::Human).then(|| id("decision")),
        authorized_at_ms: now_ms,
        now_ms,
        materials: BTreeMap::new(),
        material_errors: BTreeMap::new(),
        admissions: BTreeMap::new(),
        registers: Vec::new(),
        account: None,
        outer_gates: Vec::new(),
        clear_evidence: BTreeSet::new(),
        restart_allowed: false,
        claim_fingerprint: None,
        recovery_authority: who == Who::System,
        clock_stepped: false,
    }
}

/// The event of a decision; read back from its canonical form, as the journal would.
fn seal(
    subject: &Subject,
    revision: u64,
    prev_hash: Digest,
    epoch: Option<u64>,
    decision: &Decision,
    facts: &Facts,
) -> Event {
    let event = Event {
        stream: subject.stream(),
        revision: U64(revision + 1),
        prev_hash,
        subject: subject.clone(),
        kind: decision.command.kind(),
        request_id: None,
        request_digest: Digest::ZERO,
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
    let bytes = aiws::canonical::bytes_of(&event).expect("canonical bytes");
    let value = aiws::strict::parse_with_limit(&bytes, aiws::limits::MAX_EVENT_BYTES)
        .expect("what is decided can be parsed");
    let read: Event = from_value(&value).expect("what is decided can be read back");
    assert_eq!(read, event, "an event is what its canonical form says");
    event
}

impl Bench {
    /// A run with the graph of these tests active.
    pub fn new() -> Self {
        Self::with(contract(), config(), graph())
    }

    pub fn with(contract: Contract, config: HandoffConfig, graph: Graph) -> Self {
        let (mission, events) = opened(contract, config);
        let body = Body::StartRun(StartRun { run_id: id("r") });
        let decision = decide_mission(Some(&mission), &body, 1_000).expect("starts");
        let head = mission.head;
        let facts = bare(Who::Human, 1_000);
        let event = seal(
            &mission.subject,
            head.revision.get(),
            head.hash,
            None,
            &decision,
            &facts,
        );
        decided_again(Before::Mission(Some(&mission)), &event);
        let hash = digest_of(&event).expect("digest");
        let run = RunState::admitted(&event, &hash).expect("admits");
        let mission = evolve::mission(Some(mission), &event, &hash).expect("folds");
        let zero = Dec::ZERO;
        let account = AccountRow {
            bound: zero,
            spent: zero,
            reserved: zero,
            overrun: zero,
            revision: U64(0),
        };
        let mut bench = Self {
            mission,
            run,
            account,
            registers: BTreeMap::new(),
            gates: BTreeSet::new(),
            identities: BTreeSet::new(),
            live: BTreeSet::new(),
            now_ms: 1_000,
        };
        for event in events.iter().chain([&event]) {
            bench.project(event);
        }
        let body = ActivateGraph {
            run_id: id("r"),
            owner_epoch: dec(1),
            graph,
        };
        bench.act(Body::ActivateGraph(body), Who::System);
        bench
    }

    /// What the host tells about an actor now: all registers, the account, and the time.
    pub fn facts(&self, who: Who) -> Facts {
        let read = |(register, (revision, value)): (&RegisterKey, &(u64, Value))| RegisterRead {
            register: register.clone(),
            revision: U64(*revision),
            value: value.clone(),
        };
        Facts {
            registers: self.registers.iter().map(read).collect(),
            account: Some(self.account.clone()),
            claim_fingerprint: Some(sha256(b"token")),
            ..bare(who, self.now_ms)
        }
    }

    /// The command of a body, from the current owner at the current position.
    pub fn command(&self, body: &Body) -> Command {
        Command {
            mission_id: id("m"),
            run_id: Some(id("r")),
            request_id: None,
            request_digest: Digest::ZERO,
            expected_revision: Some(self.run.head.revision.into()),
            owner_epoch: Some(dec(self.run.epoch)),
            body: body.clone(),
        }
    }

    pub fn decide(&self, body: &Body, facts: &Facts) -> Result<Decision, Rejection> {
        decide::run(&self.run, &self.command(body), facts)
    }

    /// Decides, folds and projects.
    pub fn act(&mut self, body: Body, who: Who) -> Decision {
        let facts = self.facts(who);
        self.act_on(&body, &facts)
    }

    pub fn act_on(&mut self, body: &Body, facts: &Facts) -> Decision {
        match self.try_act(body, facts) {
            Ok(decision) => decision,
            Err(error) => panic!(
                "{} was refused: {error} {:?}",
                body.kind().name(),
                error.details
            ),
        }
    }

    /// Decides; an accepted decision is folded and projected, a refused one changes nothing.
    pub fn try_act(&mut self, body: &Body, facts: &Facts) -> Result<Decision, Rejection> {
        let decision = self.decide(body, facts)?;
        let before = self.run.clone();
        let (run, event) = self.fold(&decision, facts).expect("folds");
        decided_again(Before::Run(&before), &event);
        self.run = run;
        self.project(&event);
        Ok(decision)
    }

    /// The state that a decision would make, and its event; nothing is kept.
    pub fn fold(
        &self,
        decision: &Decision,
        facts: &Facts,
    ) -> Result<(RunState, Event), IllegalEvent> {
        let (head, epoch) = (self.run.head, Some(self.run.epoch));
        let subject = &self.run.subject;
        let revision = head.revision.get();
        let event = seal(subject, revision, head.hash, epoch, decision, facts);
        let hash = digest_of(&event).expect("digest");
        let run = evolve::run(self.run.clone(), &event, &hash)?;
        Ok((run, event))
    }

    /// Drafts an intent and acts on it.
    pub fn intend(&mut self, intent: &Intent, facts: &Facts) -> Decision {
        let body = draft::command(&self.run, intent, facts).expect("drafts");
        self.act_on(&body, facts)
    }

    /// What the journal's index would do with an event.
    fn project(&mut self, event: &Event) {
        for write in &event.outcome.registers {
            let row = self
                .registers
                .entry(write.register.clone())
                .or_insert((0, Value::Null));
            *row = (row.0 + 1, write.value.clone());
        }
        for identity in &event.outcome.identities {
            assert!(
                self.identities
                    .insert((identity.kind, identity.key.clone())),
                "{:?} is taken",
                identity.key
            );
        }
        for change in &event.outcome.gates {
            let gate = (change.scope.clone(), change.gate.clone());
            if change.closed {
                self.gates.insert(gate)
            } else {
                self.gates.remove(&gate)
            };
        }
        for change in &event.outcome.due {
            let subject = self.run.subject.clone();
            assert_eq!(change.stream, subject.stream(), "only the run is due");
            if change.at_ms.is_some() {
                self.live.insert(subject)
            } else {
                self.live.remove(&subject)
            };
        }
        event
            .outcome
            .accounts
            .iter()
            .for_each(|posting| self.post(posting));
    }

    fn post(&mut self, posting: &Posting) {
        let row = &mut self.account;
        row.revision = U64(row.revision.get() + 1);
        let add = |a: Dec, b: Dec| a.checked_add(b).expect("adds");
        let sub = |a: Dec, b: Dec| a.checked_sub(b).expect("was reserved");
        match posting {
            Posting::Open { bound, .. } => row.bound = *bound,
            Posting::Reserve { amount, .. } => row.reserved = add(row.reserved, *amount),
            Posting::Settle {
                reserved, actual, ..
            } => {
                row.reserved = sub(row.reserved, *reserved);
                row.spent = add(row.spent, *actual);
            }
            Posting::Release { reserved, .. } => row.reserved = sub(row.reserved, *reserved),
        }
    }

    /// Spent and reserved.
    pub fn money(&self) -> (u64, u64) {
        (
            self.account.spent.to_u64().expect("small"),
            self.account.reserved.to_u64().expect("small"),
        )
    }

    /// The run's outcome register.
    pub fn outcome(&self) -> Option<Value> {
        let key = RegisterKey {
            mission_id: id("m"),
            kind: RegisterKind::RunOutcome,
            key: id("r"),
        };
        self.registers.get(&key).map(|(_, value)| value.clone())
    }
}

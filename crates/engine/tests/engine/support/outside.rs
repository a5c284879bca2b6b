//! The world around the engine: who may do what, what happens outside, who drives runs.
//! Invariant: the outside keeps its own record of what was asked of it; it is the judge.
//! Used by the world of every test.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aiws::error::Error;
use aiws::id::{AttemptId, EvidenceId, NodeId};
use aiws::object;
use aiws::record::{ActorKind, EffectClass, Ref};
use praxis_engine::{
    Adapter, Ask, Authorization, Authorizer, BoxFuture, Conclusion, EffectCall, EffectOutcome,
    EffectPlan, EffectReport, Lookup, NodeContext, Program,
};
use praxis_journal::Journal;
use praxis_model::command::{Body, CommandType};
use praxis_model::run::RunState;
use tokio::sync::Semaphore;

use super::{action_of, dec, id};

/// The engine's authorizer in tests: everybody may do everything but what a test denies; humans have a decision
/// reference and confirm the evidence that they send; proposals of effects are confirmed.
#[derive(Default)]
pub struct Policy {
    /// Command types that are denied.
    pub denied: Mutex<BTreeSet<CommandType>>,
    /// How often it denied something.
    pub refused: tokio::sync::watch::Sender<u64>,
    /// What is done once, when it is asked about a command of this type as often as this.
    pub asked: Mutex<Option<(CommandType, usize, Once)>>,
}

/// Done once.
pub type Once = Box<dyn FnOnce() + Send>;

impl Authorizer for Policy {
    fn authorize(&self, ask: &Ask<'_>) -> Authorization {
        let wanted = |asked: &mut (CommandType, usize, Once)| {
            let own = asked.0 == ask.command.kind();
            asked.1 -= usize::from(own);
            asked.1 == 0
        };
        let asked = self.asked.lock().expect("policy").take_if(wanted);
        if let Some((.., act)) = asked {
            act();
        }
        let policy = Ref {
            id: id("policy"),
            revision: dec(1),
        };
        if self
            .denied
            .lock()
            .expect("policy")
            .contains(&ask.command.kind())
        {
            self.refused.send_modify(|count| *count += 1);
            return Authorization::refused(ask.capability, policy);
        }
        let kind = ask.capability.actor_kind();
        let mut answer = Authorization::allowed(ask.capability, policy);
        if kind == ActorKind::Human {
            answer.decision_ref = Some(id("decision"));
            answer.clear_evidence = evidence_in(ask.command);
        }
        answer.recovery_authority = matches!(kind, ActorKind::Human | ActorKind::System);
        answer.restart_allowed = true;
        if let Some(draft) = ask.draft_admission {
            answer
                .admissions
                .insert(draft.admission_ref.clone(), draft.proposal.clone());
        }
        answer
    }
}

fn evidence_in(command: &Body) -> BTreeSet<EvidenceId> {
    let evidence = match command {
        Body::Settle(body) => &body.evidence,
        Body::Reconcile(body) => &body.evidence,
        Body::Verify(body) => &body.evidence,
        Body::Accept(body) => &body.evidence,
        Body::ResolveHold(body) => &body.evidence,
        _ => return BTreeSet::new(),
    };
    evidence.iter().cloned().collect()
}

/// What the adapter does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Applies at a cost of 3.
    Apply,
    /// Does nothing and says so.
    Decline,
    /// Does nothing at its very first call and says so; applies every other one.
    DeclineFirst,
    /// Applies and panics before it answers.
    Panic,
}

/// The outside world, with its own record of what was asked of it.
pub struct Outside {
    /// What a lost answer may mean.
    pub class: EffectClass,
    /// What to do.
    pub behaviour: Mutex<Behaviour>,
    /// Attempts in the order of their calls.
    pub calls: Mutex<Vec<AttemptId>>,
    /// Nodes in the order of their calls.
    pub nodes: Mutex<Vec<NodeId>>,
    /// Look-ups made.
    pub lookups: AtomicUsize,
    /// One permit per call that may return; none held back while it has plenty.
    pub gate: Semaphore,
    /// One permit per call that arrived.
    pub arrived: Semaphore,
    /// The journal, to look at when a call comes in.
    pub journal: Mutex<Option<Journal>>,
    /// Whether any call came in before its DISPATCHED was in the log.
    pub early: AtomicBool,
    /// Whether a look-up knows what a call did.
    pub answers: AtomicBool,
    /// A file that has a line per call, so that it outlives this process.
    pub record: Mutex<Option<PathBuf>>,
}

impl Outside {
    /// A world that applies whatever is asked.
    pub fn new(class: EffectClass) -> Self {
        Self {
            class,
            behaviour: Mutex::new(Behaviour::Apply),
            calls: Mutex::default(),
            nodes: Mutex::default(),
            lookups: AtomicUsize::new(0),
            gate: Semaphore::new(1000),
            arrived: Semaphore::new(0),
            journal: Mutex::default(),
            early: AtomicBool::new(false),
            answers: AtomicBool::new(class == EffectClass::Idempotent),
            record: Mutex::default(),
        }
    }

    /// How often it was called.
    pub fn count(&self) -> usize {
        self.calls.lock().expect("calls").len()
    }

    fn is_dispatched(&self, call: &EffectCall) -> bool {
        let journal = self.journal.lock().expect("journal").clone();
        // A call that outlives its engine finds nothing to look at; such tests do not ask.
        let Some(journal) = journal else { return false };
        let stream =
            praxis_model::stream::Subject::run(call.mission_id.clone(), call.run_id.clone())
                .stream();
        let events = journal.stream(&stream).expect("a readable stream");
        events.iter().any(|sealed| match &sealed.event.command {
            Body::Dispatch(body) => body.attempt_id == call.attempt_id,
            _ => false,
        })
    }
}

impl Adapter for Outside {
    fn class(&self) -> EffectClass {
        self.class
    }

    fn call(&self, call: EffectCall) -> BoxFuture<'_, EffectReport> {
        if !self.is_dispatched(&call) {
            self.early.store(true, Ordering::SeqCst);
        }
        let first = {
            let mut calls = self.calls.lock().expect("calls");
            calls.push(call.attempt_id.clone());
            calls.len() == 1
        };
        self.nodes.lock().expect("nodes").push(call.node_id.clone());
        if let Some(path) = &*self.record.lock().expect("record") {
            let line = format!("{} {}\n", call.node_id, call.attempt_id);
            let mut file = OpenOptions::new().create(true).append(true).open(path);
            file.as_mut()
                .expect("a file")
                .write_all(line.as_bytes())
                .expect("a line");
        }
        let behaviour = *self.behaviour.lock().expect("behaviour");
        self.arrived.add_permits(1);
        Box::pin(async move {
            let permit = self.gate.acquire().await.expect("open");
            permit.forget();
            let outcome = match behaviour {
                Behaviour::Decline => EffectOutcome::NotApplied,
                Behaviour::DeclineFirst if first => EffectOutcome::NotApplied,
                Behaviour::Apply | Behaviour::DeclineFirst => {
                    EffectOutcome::Applied { actual: dec(3) }
                }
                Behaviour::Panic => panic!("the adapter throws"),
            };
            EffectReport {
                outcome,
                evidence: object! { "node": &call.node_id },
            }
        })
    }

    fn lookup<'a>(&'a self, call: &'a EffectCall) -> BoxFuture<'a, Lookup> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let declined = *self.behaviour.lock().expect("behaviour") == Behaviour::DeclineFirst;
        let calls = self.calls.lock().expect("calls");
        let mut had = calls.iter().skip(usize::from(declined));
        let applied = had.any(|id| *id == call.attempt_id);
        drop(calls);
        let outcome = if applied {
            EffectOutcome::Applied { actual: dec(3) }
        } else {
            EffectOutcome::NotApplied
        };
        let answers = self.answers.load(Ordering::SeqCst);
        Box::pin(async move {
            match answers {
                true => Lookup::Conclusive(EffectReport {
                    outcome,
                    evidence: object! { "lookedUp": true },
                }),
                false => Lookup::Inconclusive {
                    why: "the outside keeps no record".to_owned(),
                },
            }
        })
    }
}

/// Drives runs whose id begins with `driven`: every TASK through the outside, every control node at once.
pub struct Driver {
    /// One permit per conclusion that may be drawn; none held back while it has plenty.
    pub thinks: Semaphore,
    /// How often it was asked for an effect, and for a conclusion.
    pub asked: Mutex<(usize, usize)>,
}

impl Default for Driver {
    fn default() -> Self {
        Self {
            thinks: Semaphore::new(1000),
            asked: Mutex::default(),
        }
    }
}

impl Program for Driver {
    fn drives(&self, run: &RunState) -> bool {
        run.subject
            .run_id
            .as_ref()
            .is_some_and(|run| run.as_str().starts_with("driven"))
    }

    fn effect(&self, ctx: &NodeContext) -> Result<EffectPlan, Error> {
        self.asked.lock().expect("asked").0 += 1;
        Ok(EffectPlan {
            adapter: "outside".to_owned(),
            action: action_of(&ctx.node.id),
            amount: dec(3),
            grant_id: id("root"),
            approval_id: None,
        })
    }

    fn conclude(&self, ctx: &NodeContext) -> Result<Conclusion, Error> {
        self.asked.lock().expect("asked").1 += 1;
        // Asked on a thread that may block.
        let thought = tokio::runtime::Handle::current().block_on(self.thinks.acquire());
        drop(thought.expect("open"));
        Ok(Conclusion::completed(&ctx.node))
    }
}

//! The final report of a run: what was asked, decided, spent, held, settled and accepted, for people and programs.
//! Invariant: made from the run's events and page alone, the same whenever it is asked for; text from outside is escaped.
//! Called by the verb `report`.

mod gather;
mod markdown;
mod proof;

use aiws::decimal::Dec;
use aiws::json::Value;
use praxis_journal_format::Sealed;

use super::json;
use super::page::{Page, Spend};
use crate::coding::contract::Job;
use crate::render::escape;

pub use markdown::markdown;

/// Everything that a report says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The run.
    pub run: String,
    /// The whole task.
    pub task: String,
    /// The repository's path.
    pub repository: String,
    /// The commit that work started from.
    pub base: String,
    /// The agent's and the check's command lines.
    pub commands: [String; 2],
    /// The name of the standing, and the words for it.
    pub standing: [&'static str; 2],
    /// Why it ended badly.
    pub cause: Option<String>,
    /// Who started it.
    pub started_by: String,
    /// When it was started, UTC milliseconds.
    pub started_ms: u64,
    /// When its last event was, UTC milliseconds.
    pub last_ms: u64,
    /// The account.
    pub spend: Spend,
    /// The ownership epoch.
    pub epoch: u64,
    /// The digest of the plan that was approved or waits.
    pub plan: Option<String>,
    /// The digest of the last patch.
    pub patch: Option<String>,
    /// How many corrections were made, and how many were allowed.
    pub corrections: [usize; 2],
    /// The nodes that came to something.
    pub steps: Vec<Step>,
    /// The checks, in their order.
    pub checks: Vec<Check>,
    /// Who decided what.
    pub decisions: Vec<Decision>,
    /// Holds and how they ended.
    pub holds: Vec<HoldLife>,
    /// Attempts of which somebody did not know what they did.
    pub uncertain: Vec<UncertainLife>,
    /// The branch with the result.
    pub branch: Option<String>,
    /// The stream's last event: revision and hash.
    pub head: (u64, String),
}

/// A node that came to something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The node.
    pub node: String,
    /// What it does, or what came of it.
    pub what: String,
    /// What became of it, in a word.
    pub word: &'static str,
    /// How often it was tried.
    pub attempts: usize,
    /// What it cost.
    pub spent: Dec,
    /// When it was admitted and concluded, UTC milliseconds.
    pub time: (Option<u64>, Option<u64>),
}

/// A check that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its node.
    pub node: String,
    /// Whether it passed.
    pub passed: bool,
    /// How its process ended.
    pub ended: String,
    /// The digest of its output.
    pub output: Option<String>,
    /// When, UTC milliseconds.
    pub at_ms: u64,
}

/// A decision of a person or a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When, UTC milliseconds.
    pub at_ms: u64,
    /// What was decided, such as `approved the plan`.
    pub what: String,
    /// The digest or id of what it is about, where it has one.
    pub about: Option<String>,
    /// Who.
    pub actor: String,
    /// What kind of actor, as recorded.
    pub kind: String,
    /// The class of the decision, as recorded.
    pub class: String,
    /// What that class says of who decided.
    pub proven: &'static str,
    /// The decision's own reference, as recorded.
    pub reference: Option<String>,
    /// The evidence that was named.
    pub evidence: Vec<String>,
    /// What was proven of who decided, as the reference's material says it; none where nobody read it.
    pub proof: Option<Value>,
    /// The event's revision in the run's stream.
    pub revision: u64,
}

/// A hold from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldLife {
    /// Its id.
    pub id: String,
    /// Its reason.
    pub reason: String,
    /// When it was placed, UTC milliseconds.
    pub opened_ms: u64,
    /// By whom.
    pub opened_by: String,
    /// When, by whom and by what it ended; none while it stands.
    pub ended: Option<(u64, String, String)>,
}

/// An attempt that was of unknown outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncertainLife {
    /// The attempt.
    pub attempt: String,
    /// Its node.
    pub node: String,
    /// Since when, UTC milliseconds.
    pub since_ms: u64,
    /// As what it was settled, when, by whom, under which class, with which evidence; none while it is open.
    pub settled: Option<Settled>,
}

/// How an attempt of unknown outcome was settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The outcome, as recorded.
    pub outcome: String,
    /// When, UTC milliseconds.
    pub at_ms: u64,
    /// Who.
    pub actor: String,
    /// The class of the decision, as recorded.
    pub class: String,
    /// The evidence that was named.
    pub evidence: Vec<String>,
    /// What was proven of who settled it; none where nobody read it.
    pub proof: Option<Value>,
    /// The event's revision in the run's stream.
    pub revision: u64,
}

impl Report {
    /// The report of a run from its page, its events and its job.
    #[must_use]
    pub fn of(page: &Page, events: &[Sealed], job: &Job) -> Self {
        let found = gather::Found::of(events);
        let mut uncertain = found.uncertain;
        for open in &page.uncertain {
            if !uncertain.iter().any(|life| life.attempt == open.attempt) {
                uncertain.push(UncertainLife {
                    attempt: open.attempt.clone(),
                    node: open.node.clone(),
                    since_ms: open.since_ms,
                    settled: None,
                });
            }
        }
        let done = |row: &&super::rows::Row| {
            !row.plumbing && !row.word.is_empty() && row.word != "skipped"
        };
        let step = |row: &super::rows::Row| Step {
            node: row.id.clone(),
            what: row.note.clone().unwrap_or_else(|| row.title.clone()),
            word: row.word,
            attempts: row.attempts,
            spent: row.spent,
            time: row.time,
        };
        Self {
            run: page.run.clone(),
            task: escape::block(&job.task),
            repository: page.repository.clone(),
            base: page.base.clone(),
            commands: [escape::line(&job.agent), escape::line(&job.check)],
            standing: [page.standing.name(), page.standing.word()],
            cause: page.cause.clone(),
            started_by: escape::line(job.started_by.as_str()),
            started_ms: page.started_ms,
            last_ms: page.last_ms,
            spend: page.spend.clone(),
            epoch: page.epoch,
            plan: found.plan,
            patch: found.patch,
            corrections: [found.corrections, job.corrections() as usize],
            steps: page.rows.iter().filter(done).map(step).collect(),
            checks: found.checks,
            decisions: found.decisions,
            holds: found.holds,
            uncertain,
            branch: page.branch.clone(),
            head: page.head.clone(),
        }
    }
}

impl Report {
    /// Adds what was proven of those who decided. `read` has the stored record of the decision in the event of a
    /// revision.
    pub fn prove(&mut self, read: impl Fn(u64) -> Option<Value>) {
        let read = |revision| read(revision).filter(proof::is_one);
        for decision in &mut self.decisions {
            decision.proof = read(decision.revision);
        }
        for settled in self
            .uncertain
            .iter_mut()
            .filter_map(|life| life.settled.as_mut())
        {
            settled.proof = read(settled.revision);
        }
    }
}

/// What a class of decisions says of who decided.
#[must_use]
pub fn proven(class: &str) -> &'static str {
    use crate::authority::{AT_TERMINAL, CHECK_PASSED, IN_ADVANCE, TYPED};
    match class {
        AT_TERMINAL => {
            "typed at a terminal that showed what was decided; the name is the caller's word"
        }
        IN_ADVANCE => "given in advance, nothing was shown; the name is the caller's word",
        TYPED => "a verb that was typed; the name is the caller's word",
        CHECK_PASSED => "a rule: the check passed",
        "LOOKUP" => "the engine, from the record of the attempt",
        "LOST_READ_RULE" => "a rule: a check that was lost runs again",
        "RECOVERY" => "the engine, after a stop",
        "SCHEDULER" => "the engine",
        _ => "as the class says",
    }
}

/// A report for programs.
#[must_use]
pub fn value(report: &Report) -> Value {
    let steps = report.steps.iter().map(|step| {
        aiws::object! {
            "node": step.node.as_str(), "what": step.what.as_str(), "word": step.word,
            "attempts": step.attempts.to_string(), "spent": step.spent,
            "startedAtMs": time(step.time.0), "endedAtMs": time(step.time.1),
        }
    });
    let checks = report.checks.iter().map(|check| {
        aiws::object! {
            "node": check.node.as_str(), "passed": check.passed, "ended": check.ended.as_str(),
            "outputDigest": check.output.clone(), "atMs": check.at_ms.to_string(),
        }
    });
    let holds = report.holds.iter().map(|hold| {
        let ended = hold.ended.as_ref().map(|(at_ms, actor, decision)| {
            aiws::object! { "atMs": at_ms.to_string(), "actorId": actor.as_str(), "decision": decision.as_str() }
        });
        aiws::object! {
            "holdId": hold.id.as_str(), "reason": hold.reason.as_str(), "openedAtMs": hold.opened_ms.to_string(),
            "openedBy": hold.opened_by.as_str(), "ended": ended,
        }
    });
    let members = aiws::object! {
        "run": report.run.as_str(),
        "task": report.task.as_str(),
        "repository": report.repository.as_str(),
        "baseCommit": report.base.as_str(),
        "agent": report.commands[0].as_str(),
        "check": report.commands[1].as_str(),
        "standing": report.standing[0],
        "cause": report.cause.clone(),
        "startedBy": report.started_by.as_str(),
        "startedAtMs": report.started_ms.to_string(),
        "lastAtMs": report.last_ms.to_string(),
        "spend": json::spend(&report.spend),
        "epoch": report.epoch.to_string(),
        "planDigest": report.plan.clone(),
        "patchDigest": report.patch.clone(),
        "corrections": aiws::object! { "made": report.corrections[0].to_string(), "allowed": report.corrections[1].to_string() },
        "steps": steps.collect::<Vec<Value>>(),
        "checks": checks.collect::<Vec<Value>>(),
        "decisions": report.decisions.iter().map(decision).collect::<Vec<Value>>(),
        "holds": holds.collect::<Vec<Value>>(),
        "uncertain": report.uncertain.iter().map(uncertain).collect::<Vec<Value>>(),
        "branch": report.branch.clone(),
        "head": aiws::object! { "revision": report.head.0.to_string(), "hash": report.head.1.as_str() },
    };
    json::object("report", members)
}

fn decision(decision: &Decision) -> Value {
    aiws::object! {
        "atMs": decision.at_ms.to_string(),
        "what": decision.what.as_str(),
        "about": decision.about.clone(),
        "actorId": decision.actor.as_str(),
        "actorKind": decision.kind.as_str(),
        "decisionClass": decision.class.as_str(),
        "proven": decision.proven,
        "decisionRef": decision.reference.clone(),
        "proof": decision.proof.clone(),
        "evidence": decision.evidence.clone(),
        "revision": decision.revision.to_string(),
    }
}

fn uncertain(life: &UncertainLife) -> Value {
    let settled = life.settled.as_ref().map(|settled| {
        aiws::object! {
            "outcome": settled.outcome.as_str(), "atMs": settled.at_ms.to_string(),
            "actorId": settled.actor.as_str(), "decisionClass": settled.class.as_str(),
            "proven": proven(&settled.class), "evidence": settled.evidence.clone(),
            "proof": settled.proof.clone(), "revision": settled.revision.to_string(),
        }
    });
    aiws::object! {
        "attemptId": life.attempt.as_str(), "node": life.node.as_str(),
        "sinceMs": life.since_ms.to_string(), "settled": settled,
    }
}

fn time(at_ms: Option<u64>) -> Option<String> {
    at_ms.map(|at_ms| at_ms.to_string())
}

//! A run as a person needs to see it: one value, from which text and JSON are made.
//! Invariant: derived from the run's state and its events alone; whatever was text from outside is escaped here.
//! Called by the verbs `show`, `code` and `resume`.

use aiws::decimal::Dec;
use aiws::record::{Attempt, HoldDecision, HoldReason, HoldState, Lifecycle};
use praxis_model::account::AccountRow;
use praxis_model::plan::{Aggregate, aggregate};
use praxis_model::run::RunState;

use crate::coding::contract::Job;
use crate::coding::graph;
use crate::coding::outcome::{PATCH_FILE, PLAN_FILE, digest_of};
use crate::coding::pending::{candidate, manifest_of, proposal};
use crate::exit::Exit;
use crate::render::rows::{History, Row, Wait, is_uncertain, rows};
use crate::render::{commands, escape, holds, program, quoted};

/// Everything about a run that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The run's id.
    pub run: String,
    /// The task's first line.
    pub task: String,
    /// The repository's path.
    pub repository: String,
    /// The commit that work starts from.
    pub base: String,
    /// Where the run stands, as [`Standing::word`] says it.
    pub standing: Standing,
    /// Why it ended badly, in a sentence.
    pub cause: Option<String>,
    /// When it was started, UTC milliseconds.
    pub started_ms: u64,
    /// When its last event was, UTC milliseconds.
    pub last_ms: u64,
    /// The mission's account: spent, reserved, bound, in units.
    pub spend: Spend,
    /// The ownership epoch: 1 plus how often the run was taken over.
    pub epoch: u64,
    /// The stream's last event: revision and hash.
    pub head: (u64, String),
    /// The nodes in the order of the graph.
    pub rows: Vec<Row>,
    /// Open holds.
    pub holds: Vec<HoldLine>,
    /// Attempts whose outcome nobody knows.
    pub uncertain: Vec<Uncertain>,
    /// Digests of the accepted plan and patch.
    pub accepted: Option<[String; 2]>,
    /// The branch that has the accepted result; none while it was not published.
    pub branch: Option<String>,
    /// Since when it stands like this, UTC milliseconds.
    pub since_ms: u64,
    /// Until when new work may begin, UTC milliseconds.
    pub deadline_ms: u64,
    /// The last step that went wrong and the end of its output, where whoever made the page has read it.
    pub failing: Option<(String, Vec<String>)>,
    /// What a person has to decide on, `plan` or `patch`, and the file that has it, where it waits for that.
    pub to_read: Option<(&'static str, String)>,
    /// Whether an engine has the run now; where none has, what could go on stands still.
    pub driven: bool,
    /// What a decision that waits is about: the action's fingerprint, or the patch's digest.
    pub decides_on: Option<String>,
    /// What to type next.
    pub next: Vec<String>,
}

/// The mission's account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    /// Spent, in units.
    pub spent: Dec,
    /// Reserved, in units.
    pub reserved: Dec,
    /// The budget, in units.
    pub bound: Dec,
    /// Spent past the budget, in units.
    pub overrun: Dec,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its result is accepted.
    Accepted,
    /// It ended otherwise.
    Ended(Lifecycle),
    /// An agent run's outcome is unknown.
    Uncertain,
    /// A hold stands.
    Held,
    /// A person has to approve the plan.
    NeedsApproval,
    /// A person has to accept the result.
    NeedsAcceptance,
    /// Something runs or can run.
    Going,
}

impl Standing {
    /// Where the state stands now.
    #[must_use]
    pub fn of(state: &RunState, job: &Job, now_ms: u64) -> Self {
        if state.lifecycle == Lifecycle::Completed {
            return Self::Accepted;
        }
        if state.lifecycle.is_terminal() {
            return Self::Ended(state.lifecycle);
        }
        if state
            .attempts
            .values()
            .any(|attempt| is_uncertain(state, attempt))
        {
            return Self::Uncertain;
        }
        let open = || {
            let all = state.holds.values();
            all.filter(|hold| hold.state == HoldState::Open)
        };
        if open().any(|hold| holds::nodes(hold).is_empty()) {
            return Self::Held;
        }
        if proposal(state, job, now_ms).is_ok_and(|proposal| proposal.is_some()) {
            return Self::NeedsApproval;
        }
        if candidate(state).is_ok_and(|candidate| candidate.is_some()) {
            return Self::NeedsAcceptance;
        }
        // Beside a held branch a run goes on, until nothing but the hold is left.
        let goes_on = [Aggregate::Running, Aggregate::Ready];
        if open().next().is_some() && !goes_on.contains(&aggregate(state, &[], now_ms)) {
            return Self::Held;
        }
        Self::Going
    }

    /// Whether nothing of the run can change any more.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Accepted | Self::Ended(_))
    }

    /// A few words for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Ended(Lifecycle::Rejected) => "rejected",
            Self::Ended(Lifecycle::Canceled) => "canceled",
            Self::Ended(_) => "failed",
            Self::Uncertain => "uncertain: a person has to find out what an agent run did",
            Self::Held => "held",
            Self::NeedsApproval => "waits for the approval of the plan",
            Self::NeedsAcceptance => "waits for the acceptance of the result",
            Self::Going => "under way",
        }
    }

    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "ACCEPTED",
            Self::Ended(lifecycle) => lifecycle.name(),
            Self::Uncertain => "UNCERTAIN",
            Self::Held => "HELD",
            Self::NeedsApproval => "NEEDS_APPROVAL",
            Self::NeedsAcceptance => "NEEDS_ACCEPTANCE",
            Self::Going => "GOING",
        }
    }

    /// How the program ends for a run that is left like this.
    #[must_use]
    pub fn exit(self) -> Exit {
        match self {
            Self::Accepted => Exit::Done,
            Self::Ended(_) => Exit::Failed,
            Self::Uncertain => Exit::Uncertain,
            Self::Held | Self::NeedsApproval | Self::NeedsAcceptance | Self::Going => Exit::Waits,
        }
    }
}

/// An open hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldLine {
    /// Its id.
    pub id: String,
    /// Its reason.
    pub reason: HoldReason,
    /// What it means and what would clear it.
    pub sentence: String,
    /// What would clear it, in a sentence.
    pub clears: &'static str,
    /// The nodes that it covers; none where it covers the whole run.
    pub nodes: Vec<String>,
    /// The decisions that may end it.
    pub allowed: Vec<HoldDecision>,
    /// Since when it stands, UTC milliseconds.
    pub opened_ms: u64,
}

impl HoldLine {
    /// What a person may type about it.
    #[must_use]
    pub fn commands(&self, run: &str) -> Vec<String> {
        commands::on_hold(run, &self.id, self.reason, &self.allowed)
    }
}

/// An attempt whose outcome nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncertain {
    /// Its id.
    pub attempt: String,
    /// The beginning of its id that people type.
    pub short: String,
    /// Its node.
    pub node: String,
    /// What it holds reserved, in units.
    pub reserved: Dec,
    /// Why nobody knows, where that was recorded.
    pub why: Option<String>,
    /// Since when nobody knows, UTC milliseconds.
    pub since_ms: u64,
}

/// How many characters of a derived id people type.
const SHORT: usize = 10;

/// The beginning of an attempt's id that people type.
#[must_use]
pub fn short(id: &str) -> String {
    id.chars().take(SHORT).collect()
}

impl Page {
    /// Where the run stands, in a few words for people.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.is_left() {
            true => "left: no engine has it, resume goes on",
            false => self.standing.word(),
        }
    }

    /// Whether it could go on and no engine has it.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.standing == Standing::Going && !self.driven
    }

    /// The page of a run. `published` says that an accepted result has its branch.
    #[must_use]
    pub fn of(
        state: &RunState,
        job: &Job,
        history: &History,
        account: Option<&AccountRow>,
        published: bool,
        now_ms: u64,
    ) -> Self {
        let standing = Standing::of(state, job, now_ms);
        let spend = account.map_or_else(
            || Spend {
                bound: state.contract.budget,
                ..Spend::default()
            },
            |row| Spend {
                spent: row.spent,
                reserved: row.reserved,
                bound: row.bound,
                overrun: row.overrun,
            },
        );
        let uncertain = uncertain_of(state, history);
        let open = state
            .holds
            .values()
            .filter(|hold| hold.state == HoldState::Open);
        let mut page = Self {
            run: escape::line(job.run_id.as_str()),
            task: escape::line(
                job.task
                    .trim()
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .trim_end(),
            ),
            repository: escape::line(&job.repository),
            base: escape::line(&job.base_commit),
            standing,
            cause: cause_of(state, history),
            started_ms: job.started_at_ms.0,
            last_ms: state.last_ms,
            spend,
            epoch: state.epoch,
            head: (state.head.revision.0, state.head.hash.to_string()),
            rows: rows(state, history, now_ms),
            holds: open.map(holds::line).collect(),
            uncertain,
            accepted: (standing == Standing::Accepted)
                .then(|| accepted(state))
                .flatten(),
            branch: (standing == Standing::Accepted && published)
                .then(|| format!("praxis/{}", job.run_id)),
            since_ms: state.last_ms,
            deadline_ms: state.contract.deadline_ms.to_u64().unwrap_or(u64::MAX),
            failing: None,
            to_read: None,
            driven: true,
            decides_on: decides_on(state, job, now_ms),
            next: Vec::new(),
        };
        page.waits();
        page.next = page.what_next();
        page
    }

    /// Says of the node that waits for a person that it does, and since when the run stands as it does.
    fn waits(&mut self) {
        let (waiting, before) = match self.standing {
            Standing::NeedsApproval => (graph::APPROVE, graph::PLAN),
            Standing::NeedsAcceptance => (graph::ACCEPT, graph::VERIFY),
            _ => {
                let holds = self.holds.iter().map(|hold| hold.opened_ms);
                let unknown = self.uncertain.iter().map(|attempt| attempt.since_ms);
                let first = match self.standing {
                    Standing::Held => holds.min(),
                    Standing::Uncertain => unknown.min(),
                    _ => None,
                };
                self.since_ms = first.unwrap_or(self.last_ms);
                return;
            }
        };
        let ended = self.rows.iter().find(|row| row.id == before);
        self.since_ms = ended.and_then(|row| row.time.1).unwrap_or(self.last_ms);
        let deadline_ms = self.deadline_ms;
        if let Some(row) = self.rows.iter_mut().find(|row| row.id == waiting) {
            row.word = "waits";
            row.waits = Some(Wait {
                what: "for a person".to_owned(),
                until_ms: Some(deadline_ms),
            });
        }
    }

    fn what_next(&self) -> Vec<String> {
        let run = &self.run;
        let verb = |verb: &str| commands::on_run(verb, run);
        match self.standing {
            Standing::Accepted if self.branch.is_none() => vec![verb("resume")],
            Standing::Accepted => {
                let repo = quoted(&self.repository);
                vec![format!("git -C {repo} merge praxis/{run}")]
            }
            Standing::Ended(Lifecycle::Rejected) => {
                vec![format!("{} code --from {run}", program())]
            }
            Standing::Ended(_) => vec![verb("report")],
            Standing::Uncertain => vec![verb("unknown")],
            Standing::Held => {
                let mut commands: Vec<String> = Vec::new();
                for command in self.holds.iter().flat_map(|hold| hold.commands(run)) {
                    if !commands.contains(&command) {
                        commands.push(command);
                    }
                }
                commands
            }
            Standing::NeedsApproval => {
                vec![commands::approve(run), commands::deny(run), verb("resume")]
            }
            Standing::NeedsAcceptance => vec![
                verb("diff"),
                commands::approve(run),
                commands::deny(run),
                verb("resume"),
            ],
            Standing::Going => vec![verb("resume")],
        }
    }
}

/// A person's no by who said it to what; its detail names an id only.
fn cause_of(state: &RunState, history: &History) -> Option<String> {
    let cause = state.cause.as_ref()?;
    let denied = history
        .denied()
        .filter(|_| state.lifecycle == Lifecycle::Rejected);
    Some(match denied {
        Some(denied) => format!("{denied} ({})", cause.code),
        None => format!("{}: {}", cause.code, escape::line(&cause.detail)),
    })
}

/// What a person decides on now; none where nothing waits.
fn decides_on(state: &RunState, job: &Job, now_ms: u64) -> Option<String> {
    if let Some(proposal) = proposal(state, job, now_ms).ok().flatten() {
        return Some(proposal.fingerprint.to_string());
    }
    let candidate = candidate(state).ok().flatten()?;
    Some(candidate.patch.digest.to_string())
}

fn accepted(state: &RunState) -> Option<[String; 2]> {
    let end = manifest_of(state, graph::END)?;
    let digest = |name: &str| digest_of(&end.artifacts, name).map(|digest| digest.to_string());
    Some([digest(PLAN_FILE)?, digest(PATCH_FILE)?])
}

fn uncertain_of(state: &RunState, history: &History) -> Vec<Uncertain> {
    let unknown = state
        .attempts
        .values()
        .filter(|attempt| is_uncertain(state, attempt));
    let line = |attempt: &Attempt| Uncertain {
        attempt: attempt.attempt_id.to_string(),
        short: short(attempt.attempt_id.as_str()),
        node: state
            .operations
            .get(&attempt.operation_id)
            .and_then(|operation| operation.node_id.as_ref())
            .map(|node| escape::line(node.as_str()))
            .unwrap_or_default(),
        reserved: attempt.reserved,
        why: None,
        since_ms: history
            .unknown_since(&attempt.attempt_id)
            .unwrap_or(state.last_ms),
    };
    unknown.map(line).collect()
}

/// What a hold means, and what would clear it.
#[must_use]
pub fn hold_words(reason: HoldReason) -> (&'static str, &'static str) {
    match reason {
        HoldReason::AttemptLimit => (
            "every correction or attempt is used up; another run may have more --max-corrections, or another agent",
            "nothing in this run: cancel it and start another one",
        ),
        HoldReason::CostLimit => (
            "the budget is used up; another run may have more --budget",
            "nothing in this run: cancel it and start another one",
        ),
        HoldReason::TimeLimit => (
            "the deadline for new work has passed",
            "nothing in this run: cancel it and start another one",
        ),
        HoldReason::Artifact => (
            "stored material is missing or damaged",
            "the material back in the store, byte for byte, then a recheck",
        ),
        HoldReason::UncertainEffect => (
            "an agent run's outcome is unknown; the verb unknown shows how to settle it",
            "the attempt settled with praxis reconcile, then a recheck",
        ),
        HoldReason::Restart => (
            "the run's owner failed too often; the log shows when",
            "what made it fail mended, then a recheck",
        ),
        HoldReason::Operator => ("a person paused the run", "a person who continues it"),
        HoldReason::InvalidatedInput => (
            "what a node handed over was found to be wrong; the log shows which",
            "nothing in this run: cancel it and start another one",
        ),
        HoldReason::Rule => (
            "a rule stopped the run",
            "what the rule asks for, then a recheck",
        ),
    }
}

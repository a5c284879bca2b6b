//! The nodes of a run as lines of its page, and what its events say beyond its state.
//! Invariant: one row per node of the graph, in its order; a word says what became of it.
//! Called by `page`.

use std::collections::BTreeMap;

use aiws::decimal::Dec;
use aiws::id::{AttemptId, NodeId};
use aiws::json::Value;
use aiws::record::{ActorKind, Attempt, AttemptStatus, EffectClass, Lifecycle, OutcomeStatus};
use praxis_journal_format::Sealed;
use praxis_model::command::Body;
use praxis_model::run::{NodeStatus, RunState};

use crate::authority::{AT_TERMINAL, IN_ADVANCE};
use crate::coding::graph::Stage;
use crate::coding::outcome::counts;
use crate::coding::pending::manifest_of;
use crate::render::escape;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The node's id.
    pub id: String,
    /// What it does.
    pub title: String,
    /// Its status in the ledger.
    pub status: NodeStatus,
    /// What became of it, in a word.
    pub word: &'static str,
    /// Whether the word is bad news.
    pub bad: bool,
    /// Whether it only carries a choice on.
    pub plumbing: bool,
    /// How deep it is indented: corrections stand below the check that asked for them.
    pub depth: usize,
    /// How often its operation was tried.
    pub attempts: usize,
    /// What it cost so far, in units.
    pub spent: Dec,
    /// When it was admitted and when its boundary was committed, UTC milliseconds.
    pub time: (Option<u64>, Option<u64>),
    /// How long it took, or has taken so far while it runs, in milliseconds.
    pub elapsed_ms: Option<u64>,
    /// One line more: who approved, why it did not pass.
    pub note: Option<String>,
    /// What it waits for, where it does.
    pub waits: Option<Wait>,
    /// The time bound of what runs, in milliseconds.
    pub bound_ms: Option<u64>,
}

/// What a node waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// In words that go on after `waits`: `for a person`, `after implement`, `if check-0 fails`.
    pub what: String,
    /// Until when at the latest, UTC milliseconds, where that is bounded.
    pub until_ms: Option<u64>,
}

/// Whether a person has to find out what an attempt did: UNKNOWN, or DISPATCHED by an owner that is gone (T-19). A
/// lost check is not among them: the contract's rule lets it run again (T-20).
#[must_use]
pub fn is_uncertain(state: &RunState, attempt: &Attempt) -> bool {
    let operation = state.operations.get(&attempt.operation_id);
    let rule = state.contract.lost_reads.is_some()
        && operation.is_some_and(|operation| operation.effect == EffectClass::Read);
    match attempt.status {
        AttemptStatus::Unknown => !rule,
        AttemptStatus::Dispatched => !rule && attempt.epoch.0 < state.epoch,
        _ => false,
    }
}

/// What events say beyond the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    times: BTreeMap<NodeId, (Option<u64>, Option<u64>)>,
    /// When each attempt was last said to be of unknown outcome, or was started; UTC milliseconds.
    unknown: BTreeMap<AttemptId, u64>,
    /// Who decided, and how: approval first, acceptance second.
    decided: [Option<String>; 2],
    /// Who said no last, and to what.
    denied: Option<String>,
}

impl History {
    /// Folds the events of a run's stream, oldest first.
    #[must_use]
    pub fn of(events: &[Sealed]) -> Self {
        let mut history = Self::default();
        for sealed in events {
            history.add(sealed);
        }
        history
    }

    /// Who ended the run with a no, and what it was about, in a line.
    #[must_use]
    pub fn denied(&self) -> Option<&str> {
        self.denied.as_deref()
    }

    /// Since when nobody knows what an attempt did: since that was recorded, or since it was started.
    #[must_use]
    pub fn unknown_since(&self, attempt: &AttemptId) -> Option<u64> {
        self.unknown.get(attempt).copied()
    }

    /// Whether the last no was said at this stage.
    fn denied_at(&self, stage: Option<Stage>) -> bool {
        let ends = match stage {
            Some(Stage::Approve) => ": the plan",
            Some(Stage::Accept) => ": the result",
            _ => return false,
        };
        self.denied
            .as_ref()
            .is_some_and(|denied| denied.ends_with(ends))
    }

    fn add(&mut self, sealed: &Sealed) {
        let event = &sealed.event;
        let at_ms = event.at_ms.0;
        match &event.command {
            Body::AdmitConsumer(body) => {
                self.times
                    .entry(body.consumption.node_id.clone())
                    .or_default()
                    .0 = Some(at_ms);
            }
            Body::CommitBoundary(body) => {
                self.times
                    .entry(body.manifest.producer.node_id.clone())
                    .or_default()
                    .1 = Some(at_ms);
            }
            Body::Dispatch(body) => {
                self.unknown.insert(body.attempt_id.clone(), at_ms);
            }
            Body::Settle(body) => {
                self.unknown.insert(body.attempt_id.clone(), at_ms);
            }
            Body::Approve(body) => {
                let yes = body.decision == aiws::record::ApprovalDecision::Approved;
                self.decided[0] = Some(decided(
                    event.actor_kind,
                    &event.decision_class,
                    event.actor_id.as_str(),
                    [yes, true],
                ));
                let who = escape::line(event.actor_id.as_str());
                self.denied = (!yes).then(|| format!("denied by {who}: the plan"));
            }
            Body::Accept(body) => {
                let yes = body.verdict == aiws::record::AcceptanceVerdict::Accepted;
                self.decided[1] = Some(decided(
                    event.actor_kind,
                    &event.decision_class,
                    event.actor_id.as_str(),
                    [yes, false],
                ));
                let who = escape::line(event.actor_id.as_str());
                self.denied = (!yes).then(|| format!("denied by {who}: the result"));
            }
            _ => {}
        }
    }
}

fn decided(kind: ActorKind, class: &str, actor: &str, [yes, plan]: [bool; 2]) -> String {
    let verb = match (yes, plan) {
        (true, true) => "approved",
        (true, false) => "accepted",
        (false, true) => "denied",
        (false, false) => "rejected",
    };
    let actor = escape::line(actor);
    let typed = if yes { "approve" } else { "deny" };
    match (class, plan) {
        (IN_ADVANCE, true) => format!("{verb} in advance as {actor}, plan not shown"),
        (IN_ADVANCE, false) => format!("{verb} in advance as {actor}, result not shown"),
        (AT_TERMINAL, _) => format!("{verb} by {actor} at a terminal"),
        _ if kind == ActorKind::Human => format!("{verb} by {actor} with praxis {typed}"),
        _ => format!("{verb} by {actor}"),
    }
}

pub(super) fn rows(state: &RunState, history: &History, now_ms: u64) -> Vec<Row> {
    let Some(graph) = &state.graph else {
        return Vec::new();
    };
    graph
        .nodes
        .iter()
        .map(|node| row(state, history, &node.id, now_ms))
        .collect()
}

fn row(state: &RunState, history: &History, id: &NodeId, now_ms: u64) -> Row {
    let stage = Stage::of(id);
    let status = state
        .nodes
        .get(id)
        .map_or(NodeStatus::Pending, |node| node.status);
    let attempts: Vec<&Attempt> = attempts_of(state, id);
    let spent = attempts
        .iter()
        .filter_map(|attempt| attempt.actual)
        .fold(Dec::ZERO, |sum, actual| {
            sum.checked_add(actual).unwrap_or(sum)
        });
    let (mut word, mut bad) = word(state, id, status, &attempts);
    if word.is_empty() && history.denied_at(stage) {
        (word, bad) = ("denied", true);
    }
    let time = history.times.get(id).copied().unwrap_or_default();
    let depth = match stage {
        Some(Stage::Correct(_)) => 1,
        Some(Stage::Check(number) | Stage::Decide(number) | Stage::Passed(number))
            if number > 0 =>
        {
            1
        }
        _ => 0,
    };
    Row {
        id: escape::line(id.as_str()),
        title: stage.map(Stage::title).unwrap_or_default(),
        status,
        word,
        bad,
        plumbing: stage.is_some_and(Stage::is_plumbing),
        depth,
        attempts: attempts.len(),
        spent,
        elapsed_ms: elapsed(time, word, state, now_ms).filter(|_| !attempts.is_empty()),
        time,
        note: note(state, history, id, stage),
        waits: waits(state, id, status, word),
        bound_ms: attempts
            .last()
            .filter(|_| word == "running")
            .and_then(|last| bound_ms(state, last)),
    }
}

/// What a node waits for. What waits for a person's yes is said by the page, which knows the run's standing.
fn waits(state: &RunState, id: &NodeId, status: NodeStatus, word: &str) -> Option<Wait> {
    if state.lifecycle.is_terminal() {
        return None;
    }
    let unbounded = |what: String| {
        Some(Wait {
            what,
            until_ms: None,
        })
    };
    match (status, word) {
        (_, "uncertain") => unbounded("for a person who finds out what it did".to_owned()),
        (NodeStatus::Blocked, _) => unbounded("for the end of the hold".to_owned()),
        (NodeStatus::Pending, _) => {
            let graph = state.graph.as_ref()?;
            let node = graph.nodes.iter().find(|node| node.id == *id)?;
            let open = node
                .depends_on
                .iter()
                .find(|before| !is_over(state, before))?;
            unbounded(after(open))
        }
        _ => None,
    }
}

fn is_over(state: &RunState, node: &NodeId) -> bool {
    use NodeStatus as S;
    let status = state.nodes.get(node).map(|node| node.status);
    matches!(
        status,
        Some(S::Completed | S::Skipped | S::Failed | S::Canceled)
    )
}

/// When a node's turn comes, by the node before it.
fn after(before: &NodeId) -> String {
    match Stage::of(before) {
        Some(Stage::Decide(number)) => format!("if check-{number} fails"),
        Some(Stage::Result | Stage::Passed(_)) => "once it passes".to_owned(),
        _ => format!("after {}", escape::line(before.as_str())),
    }
}

/// The time bound of an attempt, as its action says it.
fn bound_ms(state: &RunState, attempt: &Attempt) -> Option<u64> {
    let action = &state.operations.get(&attempt.operation_id)?.action;
    let seconds = action.pointer("/payload/bounds/timeoutSeconds")?.as_str()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000)
}

/// From admission to boundary, or to now while it runs.
fn elapsed(
    (start, end): (Option<u64>, Option<u64>),
    word: &str,
    state: &RunState,
    now_ms: u64,
) -> Option<u64> {
    let so_far = match word {
        "running" => Some(now_ms),
        "stopped" => Some(state.last_ms),
        _ => None,
    };
    let end = end.or(so_far)?;
    Some(end.saturating_sub(start?))
}

fn attempts_of<'a>(state: &'a RunState, id: &NodeId) -> Vec<&'a Attempt> {
    let mine = state
        .operations
        .values()
        .filter(|operation| operation.node_id.as_ref() == Some(id));
    mine.flat_map(|operation| &operation.attempts)
        .filter_map(|attempt| state.attempts.get(attempt))
        .collect()
}

fn word(
    state: &RunState,
    id: &NodeId,
    status: NodeStatus,
    attempts: &[&Attempt],
) -> (&'static str, bool) {
    let is_check = matches!(Stage::of(id), Some(Stage::Check(_)));
    let passed = manifest_of(state, id.as_str()).is_none_or(|manifest| counts(&manifest));
    match status {
        _ if attempts.iter().any(|attempt| is_uncertain(state, attempt)) => ("uncertain", true),
        NodeStatus::Pending => ("", false),
        NodeStatus::Active if matches!(Stage::of(id), Some(Stage::Approve | Stage::Accept)) => {
            match state.lifecycle {
                Lifecycle::Rejected => ("denied", true),
                other if other.is_terminal() => ("", false),
                _ => ("waits", false),
            }
        }
        // Nothing of a run that has ended runs.
        NodeStatus::Active if state.lifecycle.is_terminal() => ("stopped", true),
        NodeStatus::Active => ("running", false),
        NodeStatus::Completed if is_check && passed => ("passed", false),
        NodeStatus::Completed if is_check => ("failed", true),
        NodeStatus::Completed if !passed => ("failed", true),
        NodeStatus::Completed => ("done", false),
        NodeStatus::Blocked => ("blocked", true),
        NodeStatus::Skipped => ("skipped", false),
        NodeStatus::Failed => ("failed", true),
        NodeStatus::Canceled => ("canceled", true),
    }
}

fn note(state: &RunState, history: &History, id: &NodeId, stage: Option<Stage>) -> Option<String> {
    match stage {
        Some(Stage::Approve) => history.decided[0].clone(),
        Some(Stage::Accept) => history.decided[1].clone(),
        _ => {
            let manifest = manifest_of(state, id.as_str())?;
            let bad = manifest.outcome.status != OutcomeStatus::Skipped;
            let failure = manifest
                .result
                .get("failure")
                .and_then(Value::as_str)
                .filter(|_| bad)?;
            Some(escape::line(failure))
        }
    }
}

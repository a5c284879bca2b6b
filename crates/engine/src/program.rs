//! Programs: what a run's nodes do when the engine drives it.
//!
//! Invariant: a program proposes, the model decides; nothing that it returns skips a guard. It is called on a
//! blocking thread, one call at a time per run, and may be asked the same question again after a restart.

use std::sync::Arc;

use aiws::decimal::Dec;
use aiws::error::Error;
use aiws::id::{ApprovalId, AttemptId, EvidenceId, GrantId};
use aiws::json::Value;
use aiws::object;
use aiws::record::{Node, NodeKind, Operation, OutcomeStatus};
use praxis_artifacts::ArtifactProvider;
use praxis_model::command::{Body, BoundaryIntent};
use praxis_model::mission::MissionState;
use praxis_model::run::RunState;

use crate::adapter::EffectReport;

/// Who does a run's nodes. Runs that no program drives wait for workers and people.
pub trait Program: Send + Sync {
    /// Whether this program drives the run; every run unless a program says otherwise. Asked after every event, so it
    /// must be quick.
    fn drives(&self, run: &RunState) -> bool {
        let _ = run;
        true
    }

    /// What a TASK, or a LOOP in its current iteration, is to have done. Asked when the node can be admitted, or could be
    /// once its inputs are received: the context then shows them received, and they become so together with the
    /// admission. After a restart it is asked again for the adapter of a recorded operation, and then only `adapter` of
    /// the answer counts.
    ///
    /// # Errors
    ///
    /// Whatever keeps the node from being planned; the step waits until the run's state or a register changes.
    fn effect(&self, ctx: &NodeContext) -> Result<EffectPlan, Error>;

    /// What follows for a node that is ACTIVE and has no work in flight. The outcome of its work may not be recorded yet:
    /// the context shows it, and it becomes durable together with the boundary, or alone after
    /// [`CONCLUDE_AHEAD_MS`](crate::limits::CONCLUDE_AHEAD_MS).
    ///
    /// # Errors
    ///
    /// As for [`effect`](Program::effect).
    fn conclude(&self, ctx: &NodeContext) -> Result<Conclusion, Error>;

    /// Whether the node is rather concluded than its operation tried again, although the contract has attempts left.
    /// Asked before every further try; never, unless a program says otherwise.
    ///
    /// # Errors
    ///
    /// As for [`effect`](Program::effect).
    fn gives_up(&self, ctx: &NodeContext) -> Result<bool, Error> {
        let _ = ctx;
        Ok(false)
    }
}

/// What a program sees.
#[derive(Clone)]
pub struct NodeContext {
    /// The run's state.
    pub state: Arc<RunState>,
    /// The mission's state: its grants, for one.
    pub mission: Arc<MissionState>,
    /// The node, as the graph has it.
    pub node: Node,
    /// The node's operation in its current activation, if one was admitted.
    pub operation: Option<Operation>,
    /// Evidence of the operation's attempts, oldest first, as far as it can be read.
    pub evidence: Vec<EvidenceRecord>,
    /// Artifacts.
    pub artifacts: Arc<dyn ArtifactProvider>,
    /// Trusted time, UTC milliseconds.
    pub now_ms: u64,
}

/// Evidence as it was stored.
#[derive(Clone, PartialEq, Eq)]
pub struct EvidenceRecord {
    /// The attempt that it shows something about.
    pub attempt_id: AttemptId,
    /// Its id.
    pub evidence_id: EvidenceId,
    /// The adapter's report, where the engine stored it; none for evidence that a person brought.
    pub report: Option<EffectReport>,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

aiws::veiled! { EvidenceRecord { attempt_id evidence_id report } bytes; }

/// What a node's operation is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectPlan {
    /// The name of a registered adapter.
    pub adapter: String,
    /// The exact action object `{action, scope, payload}`.
    pub action: Value,
    /// What it may cost, in units; reserved at admission.
    pub amount: Dec,
    /// The grant that covers it.
    pub grant_id: GrantId,
    /// The approval of its fingerprint, where one is needed.
    pub approval_id: Option<ApprovalId>,
}

/// What follows for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one short-lived value per answer of a program"
)]
pub enum Conclusion {
    /// Its boundary.
    Boundary(BoundaryIntent),
    /// A command first, such as a verification or a grant; the node is asked about again afterwards.
    Command(Body),
    /// Nothing before the run's state or a register changes.
    Wait {
        /// What it waits for, for people.
        what: String,
    },
}

impl EffectPlan {
    /// An effect without an approval; `amount` in units, `grant_id` as texts.
    ///
    /// # Errors
    ///
    /// SCHEMA_INVALID where amount or grant id are not well formed.
    pub fn new(adapter: &str, action: Value, amount: &str, grant_id: &str) -> Result<Self, Error> {
        Ok(Self {
            adapter: adapter.to_owned(),
            action,
            amount: amount.parse()?,
            grant_id: grant_id.parse()?,
            approval_id: None,
        })
    }
}

impl Conclusion {
    /// The COMPLETED boundary of a node that has nothing to pass on: an empty result, END's disposition, or that a LOOP
    /// is done.
    pub fn completed(node: &Node) -> Self {
        let result = match node.kind {
            NodeKind::End => object! { "disposition": "COMPLETED" },
            NodeKind::Loop(_) => object! { "done": true },
            _ => object! {},
        };
        Self::Boundary(BoundaryIntent {
            node_id: node.id.clone(),
            status: OutcomeStatus::Completed,
            result,
            artifacts: Vec::new(),
            criteria: Vec::new(),
            approvals: Vec::new(),
            context: Default::default(),
            cause: None,
            hold: None,
        })
    }
}

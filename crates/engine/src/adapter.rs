//! Effect adapters: how the engine reaches the outside world.
//!
//! Invariant: an adapter is called only for an attempt whose DISPATCHED is durable (FV-EFF.1), at most once per
//! attempt, and never inside an actor. Implemented by hosts, called by the effect workers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use aiws::decimal::{Dec, U64};
use aiws::id::{AttemptId, Id, MissionId, NodeId, OperationId, RunId};
use aiws::json::Value;
use aiws::object;
use aiws::record::{Artifact, EffectClass, Manifest};
use aiws::veil::Veiled;
use praxis_artifacts::ArtifactProvider;

/// A boxed future, so that adapters can be kept by name.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One way to have an effect.
pub trait Adapter: Send + Sync {
    /// What a lost answer may mean. Recorded with every operation of this adapter.
    fn class(&self) -> EffectClass;

    /// Has the effect. What it returns is recorded before anything builds on it. A panic, or a future that is
    /// dropped, leaves the attempt UNKNOWN with its reservation kept (FV-EFF.2).
    fn call(&self, call: EffectCall) -> BoxFuture<'_, EffectReport>;

    /// Asks, without any effect, what became of an attempt (FV-EFF.4). `call.inputs` is empty here.
    fn lookup<'a>(&'a self, call: &'a EffectCall) -> BoxFuture<'a, Lookup> {
        let _ = call;
        Box::pin(async {
            Lookup::Inconclusive {
                why: "the adapter has no look-up".to_owned(),
            }
        })
    }
}

/// An adapter of this class from a function that makes its calls; it has no look-up.
pub fn from_fn<F, C>(class: EffectClass, call: C) -> Arc<dyn Adapter>
where
    F: Future<Output = EffectReport> + Send + 'static,
    C: Fn(EffectCall) -> F + Send + Sync + 'static,
{
    Arc::new(FromFn { class, call })
}

struct FromFn<C> {
    class: EffectClass,
    call: C,
}

impl<F, C> Adapter for FromFn<C>
where
    F: Future<Output = EffectReport> + Send + 'static,
    C: Fn(EffectCall) -> F + Send + Sync + 'static,
{
    fn class(&self) -> EffectClass {
        self.class
    }

    fn call(&self, call: EffectCall) -> BoxFuture<'_, EffectReport> {
        Box::pin((self.call)(call))
    }
}

/// One call: everything that the attempt may use.
#[derive(Clone)]
pub struct EffectCall {
    /// The mission.
    pub mission_id: MissionId,
    /// The run.
    pub run_id: RunId,
    /// The node.
    pub node_id: NodeId,
    /// The logical work. An idempotency key derives from it alone.
    pub operation_id: OperationId,
    /// This try.
    pub attempt_id: AttemptId,
    /// Its number, from 1.
    pub attempt_number: u64,
    /// The ownership epoch that dispatched it.
    pub epoch: u64,
    /// The exact action object `{action, scope, payload}`.
    pub action: Value,
    /// What is reserved for it, in units.
    pub amount: Dec,
    /// Verified copies of the inputs (HF-04.12).
    pub inputs: Vec<Input>,
    /// Where outputs are stored.
    pub artifacts: Arc<dyn ArtifactProvider>,
}

/// One consumed hand-off with verified copies of its artifacts.
#[derive(Clone)]
pub struct Input {
    /// The node's input port: the id of the node it came from, unless the configuration maps it otherwise.
    pub port: Id,
    /// The manifest.
    pub manifest: Arc<Manifest>,
    /// The artifacts, in the manifest's order.
    pub artifacts: Vec<(Artifact, Arc<[u8]>)>,
}

/// What an adapter says about an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectReport {
    /// What happened.
    pub outcome: EffectOutcome,
    /// What shows it, at most a mebibyte; stored as an artifact before the attempt is settled.
    pub evidence: Value,
}

/// What happened outside.
#[derive(Clone, PartialEq, Eq)]
pub enum EffectOutcome {
    /// The effect was applied, at this cost in units.
    Applied {
        /// The cost; may exceed the reservation, which is then a recorded overrun.
        actual: Dec,
    },
    /// Nothing was applied; the attempt may be repeated.
    NotApplied,
    /// Nobody can say. The attempt becomes UNKNOWN.
    Uncertain {
        /// Why not.
        why: String,
    },
}

/// What a look-up found.
#[derive(Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The outside's own record answers; an Uncertain outcome in it counts as inconclusive.
    Conclusive(EffectReport),
    /// It does not.
    Inconclusive {
        /// Why not.
        why: String,
    },
}

/// What an adapter says of why may repeat what it read outside, so it is not shown.
impl fmt::Debug for EffectOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied { actual } => {
                out.debug_struct("Applied").field("actual", actual).finish()
            }
            Self::NotApplied => out.write_str("NotApplied"),
            Self::Uncertain { why } => write!(out, "Uncertain({:?})", Veiled(why.len())),
        }
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conclusive(report) => out.debug_tuple("Conclusive").field(report).finish(),
            Self::Inconclusive { why } => write!(out, "Inconclusive({:?})", Veiled(why.len())),
        }
    }
}

impl EffectReport {
    /// The effect was applied at this cost in units.
    pub fn applied(actual: Dec, evidence: Value) -> Self {
        Self {
            outcome: EffectOutcome::Applied { actual },
            evidence,
        }
    }

    /// No adapter was called, and none will be for this attempt.
    pub(crate) fn not_called() -> Self {
        Self {
            outcome: EffectOutcome::NotApplied,
            evidence: object! { "called": false },
        }
    }

    /// The record that is stored as evidence: what was reported, for which attempt. Canonical, so that the same
    /// report always has the same id.
    pub(crate) fn record(&self, operation_id: &OperationId, attempt_id: &AttemptId) -> Value {
        let (outcome, actual, why) = match &self.outcome {
            EffectOutcome::Applied { actual } => ("APPLIED", Some(actual.to_string()), None),
            EffectOutcome::NotApplied => ("NOT_APPLIED", None, None),
            EffectOutcome::Uncertain { why } => ("UNCERTAIN", None, Some(why.clone())),
        };
        object! {
            "format": "praxis-evidence",
            "version": U64(0),
            "operationId": operation_id,
            "attemptId": attempt_id,
            "outcome": outcome,
            "actual": actual,
            "why": why,
            "evidence": self.evidence.clone(),
        }
    }

    /// The report in a stored record; none where the record is something else, such as a person's own file.
    pub(crate) fn from_record(record: &Value) -> Option<Self> {
        if record.get("format")?.as_str()? != "praxis-evidence" {
            return None;
        }
        let outcome = match record.get("outcome")?.as_str()? {
            "APPLIED" => EffectOutcome::Applied {
                actual: record.get("actual")?.as_str()?.parse().ok()?,
            },
            "NOT_APPLIED" => EffectOutcome::NotApplied,
            "UNCERTAIN" => EffectOutcome::Uncertain {
                why: record.get("why")?.as_str()?.to_owned(),
            },
            _ => return None,
        };
        Some(Self {
            outcome,
            evidence: record.get("evidence")?.clone(),
        })
    }

    /// A report that nobody can say what happened.
    pub(crate) fn uncertain(why: &str) -> Self {
        Self {
            outcome: EffectOutcome::Uncertain {
                why: why.to_owned(),
            },
            evidence: Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_its_record() {
        let (operation, attempt) = (
            OperationId::new("o").expect("id"),
            AttemptId::new("a").expect("id"),
        );
        for outcome in [
            EffectOutcome::Applied {
                actual: Dec::from_u64(3),
            },
            EffectOutcome::NotApplied,
            EffectOutcome::Uncertain {
                why: "lost".to_owned(),
            },
        ] {
            let report = EffectReport {
                outcome,
                evidence: object! { "exit": 0 },
            };
            let record = report.record(&operation, &attempt);
            assert_eq!(EffectReport::from_record(&record), Some(report));
        }
        assert_eq!(
            EffectReport::from_record(&object! { "note": "by hand" }),
            None
        );
    }
}

//! Effect workers: one task per attempt, from the durable DISPATCHED to the report.
//!
//! Invariant: the adapter is called at most once per attempt, only while the epoch that dispatched it is current,
//! and whatever happens to the call becomes a report to whoever owns the run then. Started by the scheduler.

use std::sync::Arc;
use std::time::Duration;

use aiws::error::Error;
use aiws::id::{ActivationId, AttemptId, NodeId};
use aiws::object;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use praxis_sync::fence::Fence;
use tokio::sync::oneshot;

use crate::adapter::{Adapter, EffectCall, EffectOutcome, EffectReport, Input, Lookup};
use crate::capability::Capability;
use crate::core::Core;
use crate::error::{actor_lost, closing, may_be_sent_again};
use crate::gather::Copies;
use crate::limits::{REPORT_DELIVERIES, REPORT_PAUSE_MOST_MS, REPORT_PAUSE_MS};
use crate::message::{Reported, RunMessage, Taken};
use crate::supervisor;

/// Starts the worker of a dispatched attempt.
pub(crate) fn start(
    core: &Arc<Core>,
    subject: &Subject,
    fence: Arc<Fence>,
    adapter: Arc<dyn Adapter>,
    call: EffectCall,
) {
    let key = (subject.clone(), call.attempt_id.clone());
    let (core, guard) = (Arc::clone(core), core.work.enter(Some(key)));
    tokio::spawn(async move {
        let (subject, attempt_id) = (subject_of(&call), call.attempt_id.clone());
        let report = try_once(&core, &fence, adapter, call).await;
        let in_doubt = matches!(report.outcome, EffectOutcome::Uncertain { .. });
        let delivered = async {
            deliver(
                &core,
                &subject,
                Capability::system(CLASS)?,
                &attempt_id,
                report,
            )
            .await
        };
        if let Err(error) = delivered.await {
            tracing::error!(attempt = %attempt_id, code = error.code().name(), message = %error.message, "a report was lost");
        }
        let owner = core.directory.run(&subject).filter(|_| in_doubt);
        // The store can be opened again as soon as nothing is in flight, so let go of it first.
        drop(core);
        drop(guard);
        if let Some(owner) = owner {
            // Only now is the attempt nobody's here, and what the owner does about it may begin.
            let _ = owner.actor.cast(RunMessage::Tick { moved: false });
        }
    });
}

const CLASS: &str = crate::capability::CLASS_SCHEDULER;

/// Calls the adapter, unless the run has another owner already; a panic in it becomes an uncertain report.
async fn try_once(
    core: &Core,
    fence: &Fence,
    adapter: Arc<dyn Adapter>,
    call: EffectCall,
) -> EffectReport {
    if !fence.holds(call.epoch) {
        let evidence = object! { "called": false, "epoch": call.epoch.to_string(), "current": fence.current().to_string() };
        return EffectReport {
            outcome: EffectOutcome::NotApplied,
            evidence,
        };
    }
    // A task of its own, so that a panic ends there and nowhere else.
    let called = tokio::spawn(async move { adapter.call(call).await });
    core.work.keep(called.abort_handle());
    match called.await {
        Ok(report) => report,
        Err(error) if error.is_panic() => EffectReport::uncertain("the adapter panicked"),
        Err(_) => EffectReport::uncertain("the adapter was stopped before it answered"),
    }
}

/// Starts a look-up of an attempt that nobody can say the outcome of. It may take as long as the effect does: one that
/// attaches to a process that still runs answers when that ends.
pub(crate) fn look_up(
    core: &Arc<Core>,
    subject: &Subject,
    adapter: Arc<dyn Adapter>,
    call: EffectCall,
) {
    let (core, guard) = (Arc::clone(core), core.work.enter(None));
    let subject = subject.clone();
    tokio::spawn(async move {
        let attempt_id = call.attempt_id.clone();
        let asked = tokio::spawn(async move { adapter.lookup(&call).await });
        core.work.keep(asked.abort_handle());
        let found = match asked.await {
            Ok(found) => Some(found),
            // The engine stops at once; the next one looks again.
            Err(error) if error.is_cancelled() => None,
            Err(_) => Some(Lookup::Inconclusive {
                why: "the look-up panicked".to_owned(),
            }),
        };
        if let Some(found) = found {
            hand_over(&core, &subject, &attempt_id, found).await;
        }
        // The store can be opened again as soon as nothing is in flight, so let go of it first.
        drop(core);
        drop(guard);
    });
}

/// Hands what a look-up found to whoever owns the run, again where the store could not take it.
async fn hand_over(core: &Core, subject: &Subject, attempt_id: &AttemptId, found: Lookup) {
    let mut pause_ms = REPORT_PAUSE_MS;
    for _ in 0..REPORT_DELIVERIES {
        // An owner that starts later looks again by itself.
        let Some(entry) = core.directory.run(subject) else {
            return;
        };
        let (taken, is_taken) = oneshot::channel();
        let message = RunMessage::LookedUp {
            attempt_id: attempt_id.clone(),
            found: Box::new(found.clone()),
            taken,
        };
        // A drain waits until what was found is recorded. The sender is dropped, whatever becomes of it.
        let again = entry.actor.cast(message).is_ok() && is_taken.await == Ok(Taken::Again);
        if !again || core.is_draining() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        pause_ms = (pause_ms * 2).min(REPORT_PAUSE_MOST_MS);
    }
}

/// Hands a report to whoever owns the run, until an owner answered (T-18).
pub(crate) async fn deliver(
    core: &Arc<Core>,
    subject: &Subject,
    capability: Capability,
    attempt_id: &AttemptId,
    report: EffectReport,
) -> Result<(), Error> {
    let mut pause_ms = REPORT_PAUSE_MS;
    let mut refused = actor_lost();
    for _ in 0..REPORT_DELIVERIES {
        if core.is_closing() {
            return Err(closing());
        }
        let entry = supervisor::ensure_run(core, subject).await?;
        let permit = match capability.is_engine() {
            true => None,
            false => Some(entry.kept.permit()?),
        };
        let (reply, answered) = oneshot::channel();
        let message = RunMessage::Report(Box::new(Reported {
            capability: capability.clone(),
            attempt_id: attempt_id.clone(),
            report: report.clone(),
            permit,
            reply,
        }));
        let (sent, is_own) = (entry.actor.cast(message).is_ok(), capability.is_engine());
        match answered.await {
            // Whoever reports from outside is told, and says it again; nobody else can say what the engine's worker knows.
            Ok(Err(error)) if is_own && may_be_sent_again(&error) && !core.is_draining() => {
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                (pause_ms, refused) = ((pause_ms * 2).min(REPORT_PAUSE_MOST_MS), error);
            }
            Ok(answer) if sent => return answer,
            _ => {}
        }
    }
    Err(refused)
}

/// The call of an attempt as the run's state has it, with verified copies of its inputs; none where the attempt
/// is not of a node.
pub(crate) fn call_of(
    core: &Core,
    state: &RunState,
    attempt_id: &AttemptId,
    copies: &Copies,
) -> Option<EffectCall> {
    let attempt = state.attempts.get(attempt_id)?;
    let operation = state.operations.get(&attempt.operation_id)?;
    let number = operation.attempts.iter().position(|id| id == attempt_id)?;
    Some(EffectCall {
        mission_id: state.subject.mission_id.clone(),
        run_id: state.subject.run_id.clone()?,
        node_id: operation.node_id.clone()?,
        operation_id: operation.operation_id.clone(),
        attempt_id: attempt_id.clone(),
        attempt_number: number as u64 + 1,
        epoch: attempt.epoch.get(),
        action: operation.action.clone(),
        amount: attempt.reserved,
        inputs: operation
            .activation_id
            .as_ref()
            .map(|id| inputs(state, id, copies))
            .unwrap_or_default(),
        artifacts: Arc::clone(&core.artifacts),
    })
}

/// What an activation consumed, with the copies that were verified for this dispatch.
fn inputs(state: &RunState, activation_id: &ActivationId, copies: &Copies) -> Vec<Input> {
    let Some(consumption) = state.consumptions.get(activation_id) else {
        return Vec::new();
    };
    let mut inputs = Vec::new();
    for input in &consumption.inputs {
        let Some(committed) = state.manifests.get(&input.handoff.handoff_id) else {
            continue;
        };
        let Some(delivery) = state.deliveries.get(&input.delivery_id) else {
            continue;
        };
        let artifacts = committed.manifest.artifacts.iter();
        inputs.push(Input {
            port: delivery.record.recipient.input_port.clone(),
            manifest: Arc::clone(&committed.manifest),
            artifacts: artifacts
                .filter_map(|artifact| {
                    copies
                        .get(&artifact.digest)
                        .map(|bytes| (artifact.clone(), Arc::clone(bytes)))
                })
                .collect(),
        });
    }
    inputs
}

/// The operation of a node's current activation.
pub(crate) fn operation_of<'a>(
    state: &'a RunState,
    node: &NodeId,
) -> Option<&'a aiws::record::Operation> {
    let activation = &state.nodes.get(node)?.activation_id;
    state
        .operations
        .values()
        .find(|operation| operation.activation_id.as_ref() == Some(activation))
}

fn subject_of(call: &EffectCall) -> Subject {
    Subject::run(call.mission_id.clone(), call.run_id.clone())
}

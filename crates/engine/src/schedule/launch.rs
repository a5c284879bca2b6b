//! Launching a node: its receipts, its admission and its first dispatch, as one sequence as far as they go together; and
//! every other try, with its dispatch.
//!
//! Invariant: the program is asked about the state that the receipts would lead to, which nobody sees before they are
//! durable with what follows from its answer; an adapter starts only behind a durable DISPATCHED (FV-EFF.1). What is
//! refused as a whole goes on in the parts that stand alone. Called by the scheduler.

use std::sync::Arc;

use aiws::error::{Code, Error};
use aiws::id::{AttemptId, DeliveryId, NodeId, OperationId};
use aiws::record::AdmissionProposal;
use praxis_model::command::{AdmitIntent, Body, ClaimDelivery, Intent};
use praxis_model::plan::Step;
use praxis_model::run::RunState;
use praxis_model::stream::derived;
use ractor::ActorRef;

use super::node;
use crate::adapter::{Adapter, EffectReport};
use crate::capability::{CLASS_SCHEDULER, Capability};
use crate::effects;
use crate::gather::Copies;
use crate::limits::RECEIPTS;
use crate::message::{RunMessage, What};
use crate::ports::Draft;
use crate::program::EffectPlan;
use crate::run_actor::{Done, RunOwner, own_sequence};

impl RunOwner {
    /// Claims and acknowledges in the engine's own name what the delivery's node can receive now, together with what
    /// may follow at once: the admission, and the first dispatch of the effect that the program names.
    pub(super) async fn receive(
        &mut self,
        state: &Arc<RunState>,
        step: &Step,
        delivery_id: &DeliveryId,
        myself: &ActorRef<RunMessage>,
    ) -> Result<(), Error> {
        let node_id = recipient(state, delivery_id)?;
        let mut steps = self.receipts(state, &node_id);
        let receipts = own_sequence(CLASS_SCHEDULER, steps.clone())?;
        if let Ok(received) = self.draw(state, &receipts).await {
            let admit = Step::Admit {
                node_id: node_id.clone(),
            };
            if self.plan(&received.next).contains(&admit) {
                if node(state, &node_id)?.kind.runs_work() {
                    self.ask_program(&received.next, step, &node_id, myself);
                    return Ok(());
                }
                steps.push(admission(&node_id, None));
            }
        }
        self.in_one(steps).await.map(drop)
    }

    /// The receipts alone: the program has no effect for the node now, and is asked again for its admission.
    pub(super) async fn receive_alone(
        &mut self,
        state: &RunState,
        delivery_id: &DeliveryId,
    ) -> Result<(), Error> {
        let node_id = recipient(state, delivery_id)?;
        self.in_one(self.receipts(state, &node_id)).await.map(drop)
    }

    /// A claim and an acknowledgement of every delivery that the plan would have the node receive.
    fn receipts(&self, state: &RunState, node_id: &NodeId) -> Vec<What> {
        let planned = self.plan(state).into_iter();
        let deliveries = planned.filter_map(|step| match step {
            Step::Receive { delivery_id } => Some(delivery_id),
            _ => None,
        });
        deliveries
            .filter(|delivery_id| recipient(state, delivery_id).is_ok_and(|own| own == *node_id))
            .take(RECEIPTS)
            .flat_map(|delivery_id| {
                let body = Body::ClaimDelivery(ClaimDelivery {
                    delivery_id: delivery_id.clone(),
                    lease_ms: None,
                });
                let claim = intent(Intent::Command { body });
                [claim, What::Acknowledge { delivery_id }]
            })
            .collect()
    }

    /// Admits a node with the effect that the program named and dispatches it, behind the receipts that are still to
    /// come where `delivery_id` is one of them.
    pub(super) async fn launch(
        &mut self,
        state: &Arc<RunState>,
        node_id: &NodeId,
        delivery_id: Option<&DeliveryId>,
        adapter: Arc<dyn Adapter>,
        effect: EffectPlan,
    ) -> Result<(), Error> {
        let mut steps = match delivery_id {
            Some(_) => self.receipts(state, node_id),
            None => Vec::new(),
        };
        let receipts = steps.len();
        let revision = state.head.revision.get() + receipts as u64 + 1;
        let operation_id = OperationId::from(derived(&self.stream, revision, "operation", 0));
        let attempt_id = AttemptId::from(derived(&self.stream, revision, "attempt", 0));
        let proposal = AdmissionProposal {
            operation_id: operation_id.clone(),
            attempt_id: attempt_id.clone(),
            fingerprint: aiws::canonical::digest_of(&effect.action)?,
            action: effect.action,
            effect: adapter.class(),
            grant_id: effect.grant_id,
            approval_id: effect.approval_id,
            amount: effect.amount,
        };
        let draft = Draft {
            admission_ref: derived(&self.stream, revision, "admission", 0),
            proposal,
        };
        steps.push(admission(node_id, Some(draft)));
        steps.push(dispatch(node_id));
        let all = steps.len();
        let mut done = self.in_one(steps).await?;
        if done.len() > receipts {
            self.schedule.adapters.insert(operation_id, effect.adapter);
        }
        match done.pop() {
            Some(last) if done.len() + 1 == all => {
                self.start(&attempt_id, adapter, &last.bytes).await
            }
            // What was refused is the plan's next step, and its refusal that step's.
            _ => Ok(()),
        }
    }

    /// Prepares another try of an operation that the program does not give up, and dispatches it with the same append
    /// where this process knows its adapter; else the dispatch is a step of its own, for which the program is asked.
    pub(super) async fn retry(&mut self, state: &RunState, step: &Step) -> Result<(), Error> {
        let Step::Retry { operation_id } = step else {
            return Ok(());
        };
        let operation = state.operations.get(operation_id);
        let node_id = operation.and_then(|operation| operation.node_id.clone());
        let known = self.adapter_of(operation_id).and_then(Result::ok);
        let retry = intent(Intent::RetryOperation {
            operation_id: operation_id.clone(),
        });
        let (Some(node_id), Some(adapter)) = (node_id, known) else {
            return self.in_one(vec![retry]).await.map(drop);
        };
        let done = self.in_one(vec![retry, dispatch(&node_id)]).await?;
        let Some(tried) = done.get(1) else {
            // What was refused is the plan's next step, and its refusal that step's.
            return Ok(());
        };
        match tried
            .response
            .event
            .as_ref()
            .map(|sealed| &sealed.event.command)
        {
            Some(Body::Dispatch(body)) => self.start(&body.attempt_id, adapter, &tried.bytes).await,
            _ => Ok(()),
        }
    }

    /// Makes the attempt's DISPATCHED durable, then starts its worker (FV-EFF.1).
    pub(super) async fn dispatch(
        &mut self,
        node_id: &NodeId,
        attempt_id: &AttemptId,
        adapter: Arc<dyn Adapter>,
    ) -> Result<(), Error> {
        let intent = Intent::DispatchNode {
            node_id: node_id.clone(),
        };
        let done = self.own(CLASS_SCHEDULER, intent).await?;
        self.start(attempt_id, adapter, &done.bytes).await
    }

    /// Starts the worker of an attempt that is durably DISPATCHED.
    async fn start(
        &mut self,
        attempt_id: &AttemptId,
        adapter: Arc<dyn Adapter>,
        copies: &Copies,
    ) -> Result<(), Error> {
        let state = self.current().await?;
        let Some(call) = effects::call_of(&self.core, &state, attempt_id, copies) else {
            // Nothing was called, and nothing will be: that is an outcome, and a known one.
            let report = EffectReport::not_called();
            let capability = Capability::system(CLASS_SCHEDULER)?;
            return self.report(&capability, attempt_id, &report).await;
        };
        effects::start(
            &self.core,
            &self.subject,
            Arc::clone(&self.kept.fence),
            adapter,
            call,
        );
        Ok(())
    }

    /// Takes steps of the engine as one sequence. If one of them is refused, those before it are taken that stand
    /// alone: whole receipts, and an admission. Nothing is tried twice: whatever is left is planned anew.
    async fn in_one(&mut self, mut steps: Vec<What>) -> Result<Vec<Done>, Error> {
        loop {
            let requests = own_sequence(CLASS_SCHEDULER, steps.clone())?;
            let refused = match self.take_all(&requests).await {
                Ok(accepted) => return Ok(accepted.done),
                Err(refused) => refused,
            };
            let whole = refused.step.map_or(0, |step| whole_before(&steps, step));
            if whole == 0 {
                return Err(refused.error);
            }
            tracing::info!(step = refused.step, code = refused.error.code().name(), message = %refused.error.message, "a sequence was refused");
            steps.truncate(whole);
        }
    }
}

/// Whether a step is a receipt of a node that does work.
pub(super) fn may_launch(state: &RunState, step: &Step) -> bool {
    let Step::Receive { delivery_id } = step else {
        return false;
    };
    recipient(state, delivery_id)
        .and_then(|node_id| node(state, &node_id).map(|node| node.kind.runs_work()))
        .unwrap_or(false)
}

/// How many of the steps before the refused one, counted from 1, stand alone: a claim does not without its
/// acknowledgement.
fn whole_before(steps: &[What], refused: usize) -> usize {
    let before = refused.saturating_sub(1).min(steps.len());
    match steps.get(before) {
        Some(What::Acknowledge { .. }) => before.saturating_sub(1),
        _ => before,
    }
}

fn admission(node_id: &NodeId, draft: Option<Draft>) -> What {
    let admit = AdmitIntent {
        node_id: node_id.clone(),
        admission_ref: draft.as_ref().map(|draft| draft.admission_ref.clone()),
    };
    What::Intent {
        intent: Intent::Admit(admit),
        draft,
    }
}

fn dispatch(node_id: &NodeId) -> What {
    intent(Intent::DispatchNode {
        node_id: node_id.clone(),
    })
}

fn intent(intent: Intent) -> What {
    What::Intent {
        intent,
        draft: None,
    }
}

/// The node that a delivery is for.
pub(super) fn recipient(state: &RunState, delivery_id: &DeliveryId) -> Result<NodeId, Error> {
    let delivery = state.deliveries.get(delivery_id);
    let node_id = delivery.map(|delivery| delivery.record.recipient.node_id.clone());
    node_id.ok_or_else(|| {
        Error::new(
            Code::NotFound,
            format!("expected a delivery of this run, found none named {delivery_id}"),
        )
    })
}

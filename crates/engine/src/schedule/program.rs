//! The steps that the program has a word in: which effect, and what follows for a node.
//!
//! Invariant: its answer becomes a command under every guard; the host stands for an effect, not the program
//! (HD-03.12). Called by the scheduler.

use std::sync::Arc;

use aiws::error::{Code, Error};
use aiws::id::{AttemptId, NodeId, OperationId};
use aiws::record::AdmissionProposal;
use praxis_model::command::{AdmitIntent, Intent};
use praxis_model::plan::Step;
use praxis_model::run::RunState;
use praxis_model::stream::derived;
use praxis_model::table::{self, StreamKind};
use ractor::ActorRef;

use super::node;
use crate::adapter::Adapter;
use crate::ask;
use crate::capability::{CLASS_SCHEDULER, Capability};
use crate::message::{RunMessage, What};
use crate::ports::Draft;
use crate::program::{Conclusion, EffectPlan};
use crate::run_actor::{RunOwner, own_request};

impl RunOwner {
    pub(super) fn ask_program(
        &mut self,
        state: &Arc<RunState>,
        step: &Step,
        node_id: &NodeId,
        myself: &ActorRef<RunMessage>,
    ) {
        let (Some(program), Ok(node)) = (self.core.drives(state), node(state, node_id)) else {
            return;
        };
        self.schedule.asking = Some(step.clone());
        ask::program(
            &self.core,
            program,
            Arc::clone(state),
            node.clone(),
            step.clone(),
            myself.clone(),
        );
    }

    /// Goes on with a step for which the program named the effect.
    pub(super) async fn with_effect(
        &mut self,
        state: &Arc<RunState>,
        step: &Step,
        effect: EffectPlan,
    ) -> Result<(), Error> {
        let adapter = self.registered(&effect.adapter)?;
        match step {
            Step::Admit { node_id } => self.admit(state, node_id, &adapter, effect).await,
            Step::Dispatch {
                node_id,
                operation_id,
                attempt_id,
            } => {
                self.schedule
                    .adapters
                    .insert(operation_id.clone(), effect.adapter);
                self.dispatch(node_id, attempt_id, adapter).await
            }
            Step::Lookup { attempt_id } | Step::SettleLostRead { attempt_id } => {
                if let Some(attempt) = state.attempts.get(attempt_id) {
                    self.schedule
                        .adapters
                        .insert(attempt.operation_id.clone(), effect.adapter);
                }
                // The next tick finds the step again, and its adapter now.
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn admit(
        &mut self,
        state: &Arc<RunState>,
        node_id: &NodeId,
        adapter: &Arc<dyn Adapter>,
        effect: EffectPlan,
    ) -> Result<(), Error> {
        let revision = state.head.revision.get() + 1;
        let operation_id = OperationId::from(derived(&self.stream, revision, "operation", 0));
        let admission_ref = derived(&self.stream, revision, "admission", 0);
        let proposal = AdmissionProposal {
            operation_id: operation_id.clone(),
            attempt_id: AttemptId::from(derived(&self.stream, revision, "attempt", 0)),
            fingerprint: aiws::canonical::digest_of(&effect.action)?,
            action: effect.action,
            effect: adapter.class(),
            grant_id: effect.grant_id,
            approval_id: effect.approval_id,
            amount: effect.amount,
        };
        let admit = AdmitIntent {
            node_id: node_id.clone(),
            admission_ref: Some(admission_ref.clone()),
        };
        let mut request = own_request(Capability::system(CLASS_SCHEDULER)?, Intent::Admit(admit))?;
        if let What::Intent { draft, .. } = &mut request.what {
            *draft = Some(Draft {
                admission_ref,
                proposal,
            });
        }
        self.take(&request).await?;
        self.schedule.adapters.insert(operation_id, effect.adapter);
        Ok(())
    }

    /// Prepares another try of an operation that the program does not give up.
    pub(super) async fn retry(&mut self, step: &Step) -> Result<(), Error> {
        let Step::Retry { operation_id } = step else {
            return Ok(());
        };
        let retry = Intent::RetryOperation {
            operation_id: operation_id.clone(),
        };
        self.own(CLASS_SCHEDULER, retry).await.map(drop)
    }

    /// Goes on with a node for which the program said what follows.
    pub(super) async fn with_conclusion(
        &mut self,
        step: &Step,
        conclusion: Conclusion,
    ) -> Result<(), Error> {
        match conclusion {
            Conclusion::Boundary(boundary) => self
                .own(CLASS_SCHEDULER, Intent::Boundary(boundary))
                .await
                .map(drop),
            Conclusion::Command(body) if table::row(body.kind()).stream == StreamKind::Mission => {
                let request = own_request(
                    Capability::system(CLASS_SCHEDULER)?,
                    Intent::Command { body },
                )?;
                ask::mission_command(&self.core, &self.subject.mission_id, request)
                    .await
                    .map(drop)
            }
            Conclusion::Command(body) => self
                .own(CLASS_SCHEDULER, Intent::Command { body })
                .await
                .map(drop),
            Conclusion::Wait { what } => {
                tracing::debug!(what, "a node waits");
                self.remember(step.clone());
                Ok(())
            }
        }
    }

    /// The adapter of an operation that this process knows; none where the program has to be asked.
    pub(super) fn adapter_of(
        &self,
        operation: &OperationId,
    ) -> Option<Result<Arc<dyn Adapter>, Error>> {
        self.schedule
            .adapters
            .get(operation)
            .map(|name| self.registered(name))
    }

    pub(super) fn registered(&self, name: &str) -> Result<Arc<dyn Adapter>, Error> {
        let adapter = self.core.adapters.get(name).cloned();
        adapter.ok_or_else(|| {
            let known = self
                .core
                .adapters
                .keys()
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            Error::new(
                Code::NotFound,
                format!("expected a registered adapter ({known}), found {name:?}"),
            )
        })
    }
}

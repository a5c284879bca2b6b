//! The steps that the program has a word in: which effect, and what follows for a node.
//!
//! Invariant: its answer becomes a command under every guard; the host stands for an effect, not the program
//! (HD-03.12). Called by the scheduler.

use std::sync::Arc;

use aiws::error::{Code, Error};
use aiws::id::{NodeId, OperationId};
use praxis_model::command::Intent;
use praxis_model::plan::Step;
use praxis_model::run::RunState;
use praxis_model::table::{self, StreamKind};
use ractor::ActorRef;

use super::launch::recipient;
use super::node;
use crate::adapter::Adapter;
use crate::ask;
use crate::capability::{CLASS_SCHEDULER, Capability};
use crate::message::RunMessage;
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
        let adapter = match (self.registered(&effect.adapter), step) {
            (Err(_), Step::Receive { delivery_id }) => {
                return self.receive_alone(state, delivery_id).await;
            }
            (adapter, _) => adapter?,
        };
        match step {
            Step::Receive { delivery_id } => {
                let node_id = recipient(state, delivery_id)?;
                self.launch(state, &node_id, Some(delivery_id), adapter, effect)
                    .await
            }
            Step::Admit { node_id } => self.launch(state, node_id, None, adapter, effect).await,
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

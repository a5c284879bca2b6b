//! Needs: which material must be read back, and which registers read, before a command can be decided.
//!
//! Invariant: pure; what it names follows from state, command and facts, never from what a request says of its material
//! (CRD-5). Called by whoever gathers facts: the engine's actors and the simulator.

use std::collections::BTreeSet;

use aiws::id::{ActivationId, GrantId, HandoffId, Id, OperationId, RunId};
use aiws::record::Artifact;

use crate::command::Body;
use crate::facts::Facts;
use crate::register::{RegisterKey, RegisterKind};
use crate::run::RunState;
use crate::table;

/// The artifacts that the command vouches for: at boundary, receipt, admission, dispatch and retry (ART-7).
pub fn artifacts(state: &RunState, body: &Body) -> Vec<Artifact> {
    match body {
        Body::CommitBoundary(body) => body.manifest.artifacts.clone(),
        Body::AcknowledgeDelivery(body) => state
            .deliveries
            .get(&body.delivery_id)
            .map(|delivery| of_handoff(state, &delivery.record.handoff.handoff_id))
            .unwrap_or_default(),
        Body::AdmitConsumer(body) => body
            .consumption
            .inputs
            .iter()
            .flat_map(|input| of_handoff(state, &input.handoff.handoff_id))
            .collect(),
        Body::Dispatch(body) => of_operation(state, &body.operation_id),
        Body::Retry(body) => of_operation(state, &body.operation_id),
        _ => Vec::new(),
    }
}

/// The registers that the command's row of the table says it reads.
pub fn registers(state: &RunState, body: &Body, facts: &Facts) -> Vec<RegisterKey> {
    let mut all = Vec::new();
    for kind in table::row(body.kind()).reads {
        let keys: BTreeSet<Id> = match kind {
            RegisterKind::Grant => grants(state, body, facts)
                .iter()
                .map(GrantId::as_id)
                .collect(),
            RegisterKind::Contract => BTreeSet::from([state.subject.mission_id.as_id()]),
            RegisterKind::RunAdmission | RegisterKind::RunOutcome => {
                state.subject.run_id.iter().map(RunId::as_id).collect()
            }
        };
        all.extend(keys.into_iter().map(|key| RegisterKey {
            mission_id: state.subject.mission_id.clone(),
            kind: *kind,
            key,
        }));
    }
    all
}

/// The grants that a launching command rests on.
fn grants(state: &RunState, body: &Body, facts: &Facts) -> BTreeSet<GrantId> {
    let of_operation = |id| {
        let operation = state.operations.get(id);
        operation.map(|operation| operation.grant_id.clone())
    };
    let grant = match body {
        Body::AdmitConsumer(body) => body
            .consumption
            .admission_ref
            .as_ref()
            .and_then(|key| facts.admissions.get(key))
            .map(|proposal| proposal.grant_id.clone()),
        Body::Dispatch(body) => of_operation(&body.operation_id),
        Body::Retry(body) => of_operation(&body.operation_id),
        _ => None,
    };
    grant.into_iter().collect()
}

fn of_handoff(state: &RunState, id: &HandoffId) -> Vec<Artifact> {
    state
        .manifests
        .get(id)
        .map(|committed| committed.manifest.artifacts.clone())
        .unwrap_or_default()
}

fn of_activation(state: &RunState, id: &ActivationId) -> Vec<Artifact> {
    let bound = state.consumptions.get(id);
    let inputs = bound.map(|consumption| consumption.inputs.as_slice());
    let inputs = inputs.unwrap_or_default().iter();
    inputs
        .flat_map(|input| of_handoff(state, &input.handoff.handoff_id))
        .collect()
}

fn of_operation(state: &RunState, id: &OperationId) -> Vec<Artifact> {
    let operation = state.operations.get(id);
    let activation = operation.and_then(|operation| operation.activation_id.as_ref());
    activation
        .map(|activation| of_activation(state, activation))
        .unwrap_or_default()
}

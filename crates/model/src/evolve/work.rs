//! Work in a run's state: operations, attempts, approvals, assessments.
//!
//! Invariant: an operation keeps its id and its action through retries, and its status follows its last attempt
//! (FV-ACC.5). Called by `apply`.

use aiws::decimal::Dec;
use aiws::id::{ApprovalId, AttemptId, EvidenceId, OperationId};
use aiws::record::{
    Approval, Assessment, AssessmentKind, Attempt, AttemptStatus, Operation, OperationStatus,
};

use super::{IllegalEvent, free, known, same};
use crate::decide::complete_run::last_passed;
use crate::event::Event;
use crate::guard::Guard;
use crate::moves::{self, is_legal};
use crate::run::{ApprovalLife, RunState};

pub(super) fn operation_admitted(
    state: &mut RunState,
    operation: &Operation,
    attempt: &Attempt,
) -> Result<(), IllegalEvent> {
    free(
        "the operation",
        &operation.operation_id,
        state.operations.contains_key(&operation.operation_id),
    )?;
    same(
        "the operation's attempts",
        std::slice::from_ref(&attempt.attempt_id),
        operation.attempts.as_slice(),
    )?;
    state
        .operations
        .insert_mut(operation.operation_id.clone(), operation.clone());
    prepared(state, attempt)
}

pub(super) fn attempt_prepared(
    state: &mut RunState,
    attempt: &Attempt,
) -> Result<(), IllegalEvent> {
    let id = &attempt.operation_id;
    let mut operation = known("the operation", id, state.operations.get(id))?.clone();
    if !praxis_plant::is(Guard::RetryResolved.plant()) {
        same(
            "the operation's status",
            OperationStatus::ConfirmedNotApplied,
            operation.status,
        )?;
    }
    operation.attempts.push(attempt.attempt_id.clone());
    operation.status = OperationStatus::Open;
    state.operations.insert_mut(id.clone(), operation);
    prepared(state, attempt)
}

fn prepared(state: &mut RunState, attempt: &Attempt) -> Result<(), IllegalEvent> {
    free(
        "the attempt",
        &attempt.attempt_id,
        state.attempts.contains_key(&attempt.attempt_id),
    )?;
    same(
        "the status of a new attempt",
        AttemptStatus::Prepared,
        attempt.status,
    )?;
    same(
        "the epoch of a new attempt",
        state.epoch,
        attempt.epoch.get(),
    )?;
    state
        .attempts
        .insert_mut(attempt.attempt_id.clone(), attempt.clone());
    Ok(())
}

pub(super) fn attempt_moved(
    state: &mut RunState,
    id: &AttemptId,
    from: AttemptStatus,
    to: AttemptStatus,
    actual: Option<Dec>,
    evidence: &[EvidenceId],
) -> Result<(), IllegalEvent> {
    use AttemptStatus::{ConfirmedApplied, ConfirmedNotApplied, Dispatched, Prepared, Unknown};
    let mut attempt = known("the attempt", id, state.attempts.get(id))?.clone();
    same("where the attempt moves from", attempt.status, from)?;
    if !is_legal(moves::ATTEMPT, from, to) {
        return Err(IllegalEvent::content(
            format!("the move of attempt {id}"),
            "a legal one",
            format!("{from} to {to}"),
        ));
    }
    let operation_id = attempt.operation_id.clone();
    let mut operation = known(
        "the operation",
        &operation_id,
        state.operations.get(&operation_id),
    )?
    .clone();
    operation.status = match to {
        ConfirmedApplied => OperationStatus::ConfirmedApplied,
        ConfirmedNotApplied => OperationStatus::ConfirmedNotApplied,
        Prepared | Dispatched | Unknown => OperationStatus::Open,
    };
    attempt.status = to;
    attempt.actual = actual;
    attempt.evidence.extend(
        evidence
            .iter()
            .filter(|new| !attempt.evidence.contains(new))
            .cloned()
            .collect::<Vec<_>>(),
    );
    if to.is_confirmed() {
        attempt.reserved = Dec::ZERO;
    }
    state.attempts.insert_mut(id.clone(), attempt);
    state.operations.insert_mut(operation_id, operation);
    Ok(())
}

pub(super) fn approval_recorded(
    state: &mut RunState,
    event: &Event,
    approval: &Approval,
) -> Result<(), IllegalEvent> {
    free(
        "the approval",
        &approval.approval_id,
        state.approvals.contains_key(&approval.approval_id),
    )?;
    same(
        "the approval's run",
        state.subject.run_id.as_ref(),
        Some(&approval.run_id),
    )?;
    state
        .approvals
        .insert_mut(approval.approval_id.clone(), approval.clone());
    let life = ApprovalLife {
        given: event.revision.get(),
        revoked: None,
    };
    state
        .approval_lives
        .insert_mut(approval.approval_id.clone(), life);
    Ok(())
}

pub(super) fn approval_bound(
    state: &mut RunState,
    id: &ApprovalId,
    operation: &OperationId,
) -> Result<(), IllegalEvent> {
    let approval = known("the approval", id, state.approvals.get(id))?;
    same(
        "the operation that uses the approval",
        None,
        approval.operation_id.as_ref(),
    )?;
    let bound = Approval {
        operation_id: Some(operation.clone()),
        ..approval.clone()
    };
    state.approvals.insert_mut(id.clone(), bound);
    Ok(())
}

pub(super) fn approval_revoked(
    state: &mut RunState,
    event: &Event,
    id: &ApprovalId,
) -> Result<(), IllegalEvent> {
    let approval = known("the approval", id, state.approvals.get(id))?;
    same("whether the approval is revoked", false, approval.revoked)?;
    let revoked = Approval {
        revoked: true,
        ..approval.clone()
    };
    state.approvals.insert_mut(id.clone(), revoked);
    let life = *known("the approval's life", id, state.approval_lives.get(id))?;
    let life = ApprovalLife {
        revoked: Some(event.revision.get()),
        ..life
    };
    state.approval_lives.insert_mut(id.clone(), life);
    Ok(())
}

pub(super) fn assessment_recorded(
    state: &mut RunState,
    event: &Event,
    assessment: &Assessment,
) -> Result<(), IllegalEvent> {
    let id = &assessment.assessment_id;
    let taken = state
        .verifications
        .iter()
        .chain(&state.acceptances)
        .any(|known| known.assessment_id == *id);
    free("the assessment", id, taken)?;
    let passed = last_passed(&state.verifications).map(|passed| passed.assessment_id.clone());
    let list = match assessment.kind {
        AssessmentKind::Verification => &mut state.verifications,
        AssessmentKind::Acceptance => &mut state.acceptances,
    };
    same(
        "the assessment's revision",
        list.len() as u64 + 1,
        assessment.revision.get(),
    )?;
    list.push(assessment.clone());
    state.assessed.insert_mut(id.clone(), event.revision.get());
    if assessment.kind == AssessmentKind::Acceptance {
        state.accepted_on = passed;
    }
    Ok(())
}

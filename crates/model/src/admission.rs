//! The checks of stage 9 that admission, dispatch and retry share: grant, approval, budget, deadlines; and of stage
//! 8 what they share about the action's payload.
//!
//! Invariant: nothing that passed at admission is believed at dispatch; every check runs again on fresh facts
//! (FV-GRT.3, HD-03.8), and what can still change before the commit is named as a condition of it.
//! Called by decide: admitConsumer, dispatch and retry.

use aiws::decimal::Dec;
use aiws::digest::Digest;
use aiws::error::Error;
use aiws::id::{ActivationId, ApprovalId, GrantId, NodeId, OperationId};
use aiws::json::{Object, Value};
use aiws::record::{
    ActorKind, Approval, ApprovalDecision, Consumption, ConsumptionState, Grant, Node, NodeKind,
};
use aiws::schema::Schema;
use praxis_plant::{self as plant, Plant};

use crate::account::AccountRow;
use crate::decision::Rejection;
use crate::facts::Facts;
use crate::graph;
use crate::guard::{self, Guard};
use crate::register::{RegisterKey, RegisterKind, RegisterRead};
use crate::run::RunState;
use crate::transition::Transition;

/// What wants to be admitted, dispatched or retried.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The node that it belongs to.
    pub node: &'a Node,
    /// The logical operation.
    pub operation_id: &'a OperationId,
    /// The action `{action, scope, payload}`.
    pub action: &'a Value,
    /// The grant that it rests on.
    pub grant_id: &'a GrantId,
    /// The approval that it rests on, if any.
    pub approval_id: Option<&'a ApprovalId>,
    /// What it may cost, in units.
    pub amount: Dec,
}

/// What a passed check obliges the append to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// The grant's register as read; its revision must be unchanged at the durable boundary.
    pub same: Vec<RegisterRead>,
    /// Times that the writer's clock must not have reached, UTC milliseconds (T-81).
    pub before_ms: Vec<u64>,
    /// The binding of the approval to this operation, where it is not bound yet (T-80).
    pub bind: Option<Transition>,
    /// SHA-256 of the action's canonical bytes (FV-CMD.5).
    pub fingerprint: Digest,
}

/// The three members of an action (INTERNAL form: closed, `payload` is an object).
#[derive(Clone, Copy, Debug)]
pub struct ActionParts<'a> {
    /// What is done.
    pub action: &'a str,
    /// Where; matched literally (FV-GRT.2).
    pub scope: &'a str,
    /// With what.
    pub payload: &'a Value,
}

/// Reads an action object.
///
/// # Errors
/// `SCHEMA_INVALID` where it is not exactly `{action: string, scope: string, payload: object}`.
pub fn parts(action: &Value) -> Result<ActionParts<'_>, Rejection> {
    let members = action.as_object().filter(|members| members.len() == 3);
    let text = |name: &str| {
        members
            .and_then(|members| members.get(name))
            .and_then(Value::as_str)
    };
    let payload = members
        .and_then(|members| members.get("payload"))
        .filter(|payload| payload.as_object().is_some());
    match (text("action"), text("scope"), payload) {
        (Some(action), Some(scope), Some(payload)) => Ok(ActionParts {
            action,
            scope,
            payload,
        }),
        _ => Err(Error::schema(
            "",
            "expected an action {action: string, scope: string, payload: object}, found another shape",
        )),
    }
}

/// All checks of stage 9 in their order: grant, approval, budget, deadlines. `budget` is the command's own: what reserves
/// asks `budget`, and a dispatch asks for the reservation of its attempt.
///
/// # Errors
/// `GRANT_EXCEEDED`, `APPROVAL_REQUIRED`, `APPROVAL_STALE`, `BUDGET_EXCEEDED` or `DEADLINE_PASSED`; `SCHEMA_INVALID`
/// for a malformed action.
pub fn check(
    state: &RunState,
    facts: &Facts,
    wanted: &Wanted<'_>,
    budget: impl FnOnce() -> Result<(), Rejection>,
) -> Result<Cleared, Rejection> {
    let action = parts(wanted.action)?;
    let fingerprint = aiws::canonical::digest_of(wanted.action)?;
    let (read, grant) = grant_in_force(state, facts, wanted.grant_id)?;
    covers(&grant, &action, facts, wanted.amount)?;
    let approval = approved(state, facts, wanted, fingerprint)?;
    budget()?;
    let mut before_ms = deadlines(state, facts, wanted.node)?;
    before_ms.extend(grant.not_after_ms.to_u64());
    before_ms.extend(approval.and_then(|approval| approval.expires_at_ms.to_u64()));
    let bind = approval
        .filter(|approval| approval.operation_id.is_none())
        .map(|approval| Transition::ApprovalBound {
            approval_id: approval.approval_id.clone(),
            operation_id: wanted.operation_id.clone(),
        });
    Ok(Cleared {
        same: vec![read],
        before_ms,
        bind,
        fingerprint,
    })
}

/// Whether a node's work runs only under an approval: work directly behind an APPROVAL node does.
pub fn needs_approval(state: &RunState, node: &Node) -> bool {
    let gate =
        |id: &NodeId| find_node(state, id).is_some_and(|node| node.kind == NodeKind::Approval);
    node.kind.runs_work() && node.depends_on.iter().any(gate)
}

/// The node of the pinned graph.
pub fn find_node<'a>(state: &'a RunState, id: &NodeId) -> Option<&'a Node> {
    state
        .graph
        .as_deref()
        .and_then(|graph| graph::node(graph, id))
}

/// Checks the action's payload against the node's input schema (FV-GRAPH.10).
///
/// # Errors
/// `INPUT_INCOMPATIBLE` with the place that does not fit.
pub fn payload(node: &Node, action: &Value) -> Result<(), Rejection> {
    let action = parts(action)?;
    let Some(schema) = node.input_schema.as_ref() else {
        return Ok(());
    };
    let verdict = Schema::compile(schema)?.validate(action.payload);
    let place = verdict
        .as_ref()
        .err()
        .and_then(|error| error.pointer.clone())
        .unwrap_or_default();
    guard::check(Guard::PayloadFits, verdict.is_ok(), || {
        details(&[
            ("nodeId", node.id.as_str().into()),
            ("pointer", place.into()),
        ])
    })
}

/// What the activation consumed, where it still counts: once an input was invalidated, nothing is tried on it any more
/// (HD-05.5).
///
/// # Errors
/// `BASIS_STALE` where nothing is bound or it no longer counts.
pub fn standing<'a>(
    state: &'a RunState,
    activation: &ActivationId,
) -> Result<&'a Consumption, Rejection> {
    let named = || details(&[("activationId", activation.into())]);
    let bound = guard::need(
        Guard::DispatchConsumes,
        state.consumptions.get(activation),
        named,
    )?;
    let valid = bound.state == ConsumptionState::Valid;
    guard::check(Guard::DispatchConsumes, valid, named)?;
    Ok(bound)
}

/// The grant's register as read, and the grant in it.
fn grant_in_force(
    state: &RunState,
    facts: &Facts,
    id: &GrantId,
) -> Result<(RegisterRead, Grant), Rejection> {
    let key = RegisterKey {
        mission_id: state.subject.mission_id.clone(),
        kind: RegisterKind::Grant,
        key: id.as_id(),
    };
    let read = facts.registers.iter().find(|read| read.register == key);
    let grant = read.and_then(|read| {
        aiws::canonical::from_value::<Grant>(&read.value)
            .ok()
            .map(|grant| (read.clone(), grant))
    });
    guard::need(Guard::GrantInForce, grant, || {
        details(&[("grantId", id.as_str().into())])
    })
}

fn covers(
    grant: &Grant,
    action: &ActionParts<'_>,
    facts: &Facts,
    amount: Dec,
) -> Result<(), Rejection> {
    let named = |name: &str, value: Value| {
        details(&[("grantId", grant.grant_id.as_str().into()), (name, value)])
    };
    // The engine executes for the grant's subject; anybody else must be the subject.
    let subject =
        facts.actor_kind == ActorKind::System || grant.subject.as_str() == facts.actor_id.as_str();
    guard::check(Guard::GrantSubject, subject, || {
        named("actorId", facts.actor_id.as_str().into())
    })?;
    let acts = grant
        .actions
        .iter()
        .any(|known| known.as_str() == action.action);
    guard::check(Guard::GrantCoversAction, acts, || {
        named("action", action.action.into())
    })?;
    let reaches = grant
        .scopes
        .iter()
        .any(|known| known.as_str() == action.scope);
    guard::check(Guard::GrantCoversScope, reaches, || {
        named("scope", action.scope.into())
    })?;
    guard::check(Guard::GrantCoversAmount, amount <= grant.max_amount, || {
        named("amount", amount.into())
    })?;
    let late = grant.not_after_ms.reached(facts.now_ms);
    guard::check(Guard::GrantCurrent, !late, || {
        named("notAfterMs", grant.not_after_ms.into())
    })
}

/// The approval that the operation rests on, checked; none where none is needed and none is named.
fn approved<'a>(
    state: &'a RunState,
    facts: &Facts,
    wanted: &Wanted<'_>,
    fingerprint: Digest,
) -> Result<Option<&'a Approval>, Rejection> {
    let Some(id) = wanted.approval_id else {
        let needed = needs_approval(state, wanted.node);
        guard::check(Guard::ApprovalNeeded, !needed, || {
            details(&[("nodeId", wanted.node.id.as_str().into())])
        })?;
        return Ok(None);
    };
    let id = renewed(state, facts, wanted, id, fingerprint).unwrap_or(id);
    let named = || details(&[("approvalId", id.as_str().into())]);
    let approval = guard::need(Guard::ApprovalOfRun, state.approvals.get(id), named)?;
    guard::check(
        Guard::ApprovalGiven,
        approval.decision == ApprovalDecision::Approved,
        named,
    )?;
    guard::check(Guard::ApprovalInForce, !approval.revoked, named)?;
    guard::check(
        Guard::ApprovalUnexpired,
        !approval.expires_at_ms.reached(facts.now_ms),
        named,
    )?;
    guard::check(
        Guard::ApprovalMaterial,
        approval.fingerprint == fingerprint,
        named,
    )?;
    let free = approval
        .operation_id
        .as_ref()
        .is_none_or(|bound| bound == wanted.operation_id);
    guard::check(Guard::ApprovalOneOperation, free, named)?;
    Ok(Some(approval))
}

/// The approval that an operation rests on once its own has lapsed: one that it used before, or a new one of the
/// same action. Without it an operation whose approval ran out could never be tried, however often a human approved
/// the same action again. An admission names its approval itself and gets no other.
fn renewed<'a>(
    state: &'a RunState,
    facts: &Facts,
    wanted: &Wanted<'_>,
    id: &ApprovalId,
    fingerprint: Digest,
) -> Option<&'a ApprovalId> {
    let admitted = state.operations.contains_key(wanted.operation_id);
    let own = state.approvals.get(id)?;
    if !admitted || is_in_force(own, facts.now_ms) {
        return None;
    }
    let mut all = state.approvals.values();
    let usable = |approval: &&Approval| {
        is_in_force(approval, facts.now_ms)
            && approval.fingerprint == fingerprint
            && serves(state, approval, id, wanted.operation_id)
    };
    all.find(usable).map(|approval| &approval.approval_id)
}

/// Whether an approval is this operation's: it is the one that the operation named, it is bound to it, or it belongs
/// to nobody and was given after every approval of the operation had lapsed. One that was given before that was
/// given for something else, and an approval that a human withdrew must not be replaced by it (T-80, FV-APR.3).
pub(crate) fn serves(
    state: &RunState,
    approval: &Approval,
    named: &ApprovalId,
    operation: &OperationId,
) -> bool {
    let bound = approval.operation_id.as_ref();
    if bound.is_some() || approval.approval_id == *named {
        return bound.is_none_or(|bound| bound == operation);
    }
    let mut own = state
        .approvals
        .values()
        .filter(|own| own.approval_id == *named || own.operation_id.as_ref() == Some(operation));
    own.all(|own| is_given_after(state, approval, own))
}

/// Whether an approval was given once another one had been withdrawn or had expired.
fn is_given_after(state: &RunState, approval: &Approval, lapsed: &Approval) -> bool {
    let life = |id: &ApprovalId| state.approval_lives.get(id);
    let revoked = life(&lapsed.approval_id).and_then(|life| life.revoked);
    match revoked {
        Some(revoked) => life(&approval.approval_id).is_some_and(|life| life.given > revoked),
        None => lapsed.expires_at_ms.reached(approval.granted_at_ms.get()),
    }
}

/// Given, not withdrawn, and not expired at this UTC time in milliseconds (FV-APR.3).
pub fn is_in_force(approval: &Approval, now_ms: u64) -> bool {
    approval.decision == ApprovalDecision::Approved
        && !approval.revoked
        && !approval.expires_at_ms.reached(now_ms)
}

/// The planted defect of the same name.
fn refused_early(row: &AccountRow) -> bool {
    plant::is(Plant::BudgetRefusedEarly) && row.spent.checked_add(row.reserved) != Some(Dec::ZERO)
}

/// The mission's budget as last published; the durable boundary checks it again against the account itself.
pub fn budget(facts: &Facts, amount: Dec) -> Result<(), Rejection> {
    let Some(row) = &facts.account else {
        return Ok(());
    };
    let total = row
        .spent
        .checked_add(row.reserved)
        .and_then(|used| used.checked_add(amount));
    guard::check(
        Guard::BudgetFits,
        total.is_some_and(|total| total <= row.bound && !refused_early(row)),
        || {
            details(&[
                ("bound", row.bound.into()),
                ("spent", row.spent.into()),
                ("reserved", row.reserved.into()),
                ("amount", amount.into()),
            ])
        },
    )
}

/// The deadlines of mission and node, checked; they are also times that the writer must not have reached.
pub(crate) fn deadlines(
    state: &RunState,
    facts: &Facts,
    node: &Node,
) -> Result<Vec<u64>, Rejection> {
    let mission = state.contract.deadline_ms;
    guard::check(
        Guard::ContractDeadline,
        !mission.reached(facts.now_ms),
        || details(&[("deadlineMs", mission.into())]),
    )?;
    if let Some(own) = node.deadline_ms {
        let named = || {
            details(&[
                ("nodeId", node.id.as_str().into()),
                ("deadlineMs", own.into()),
            ])
        };
        guard::check(Guard::NodeDeadline, !own.reached(facts.now_ms), named)?;
    }
    Ok(mission
        .to_u64()
        .into_iter()
        .chain(node.deadline_ms.and_then(|own| own.to_u64()))
        .collect())
}

/// Details of a refusal.
pub(crate) fn details(members: &[(&str, Value)]) -> Object {
    members
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect()
}

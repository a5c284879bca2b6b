//! Scenes of admitConsumer, and the rules of stage 9 that dispatch and retry share with it. Invariant and use as in
//! `scene`.

use std::sync::Arc;

use aiws::decimal::Ms;
use aiws::digest::Digest;
use aiws::id::{ActivationId, NodeId};
use aiws::object;
use aiws::record::{
    AdmissionProposal, Approval, ApprovalDecision, Consumption, ConsumptionState, DeliveryState,
    Entitlement, Join, JoinMode, Node, NodeKind, OutcomeStatus,
};
use praxis_model::command::{AdmitIntent, CommandType, Intent};
use praxis_model::run::NodeStatus;

use crate::claims::{self, handed_on, manifest, record};
use crate::scene::{Break, Scene, Try, body, breaks, edit, launches, of_run, together};
use crate::world::*;

/// As `handed_on`, received by b, whose work is approved and prepared.
pub fn ready() -> World {
    let mut world = handed_on();
    world.receive("b").expect("a receipt");
    world.approve("p1", &action_of("b")).expect("an approval");
    world.prepare(AdmissionProposal {
        approval_id: Some(id("p1")),
        ..proposal("b")
    });
    world
}

/// The drafted admission of a node.
fn drafted(world: World, node: &str, admission_ref: Option<aiws::id::Id>) -> Try {
    let intent = Intent::Admit(AdmitIntent {
        node_id: id(node),
        admission_ref,
    });
    let facts = world.facts(ENGINE);
    let body = praxis_model::draft::command(world.state(), &intent, &facts).expect("a draft");
    Try::of(world, ENGINE, body)
}

fn working() -> Try {
    let world = ready();
    let delivery = world.between("a", "b");
    drafted(world, "b", Some(reference("b"))).about(delivery)
}

/// b waits for everything and runs nothing.
fn controlling() -> Try {
    let mut t = working();
    edit_node(&mut t, "b", |node| node.kind = NodeKind::Fork);
    let sent = &mut body!(t, AdmitConsumer).consumption;
    (sent.operation_id, sent.admission_ref) = (None, None);
    t
}

/// ANY, where x and y are done and received, and y's delivery may be left out. The delivery of the tables is y's.
pub fn choosing() -> Try {
    let mut world = any_world();
    world.pass("s", object! {}).expect("s");
    for node in ["x", "y"] {
        world.work(node).expect("a task");
        world.take(node, "j").expect("a receipt");
    }
    let (taken, other) = (world.between("x", "j"), world.between("y", "j"));
    let mut t = drafted(world, "j", None).about(other);
    let handoff = t
        .world
        .state()
        .deliveries
        .get(&taken)
        .expect("x's")
        .record
        .handoff
        .clone();
    let delivery_id = taken;
    body!(t, AdmitConsumer).consumption.inputs = vec![aiws::record::InputRef {
        delivery_id,
        handoff,
    }];
    t
}

/// A node of the pinned graph, to be damaged.
pub fn edit_node(t: &mut Try, name: &str, change: impl FnOnce(&mut Node)) {
    let mut nodes = t.graph().nodes.iter_mut();
    change(nodes.find(|node| node.id.as_str() == name).expect("a node"));
}

/// The standing of a node, to be damaged.
pub fn status(t: &mut Try, name: &str, status: NodeStatus) {
    edit!(t.run().nodes, id::<NodeId>(name), own => { own.status = status; });
}

/// The approval of the scene, to be damaged.
pub fn approval(t: &mut Try, change: impl FnOnce(&mut Approval)) {
    edit!(t.run().approvals, id::<aiws::id::ApprovalId>("p1"), own => { change(&mut own); });
}

fn sent(t: &mut Try) -> &mut Consumption {
    &mut body!(t, AdmitConsumer).consumption
}

fn prepared(t: &mut Try) -> &mut AdmissionProposal {
    t.facts
        .admissions
        .get_mut(&reference("b"))
        .expect("prepared")
}

/// The activation has its inputs already.
fn bound(t: &mut Try) {
    let activation: ActivationId = sent(t).activation_id.clone();
    let consumption = Consumption {
        state: ConsumptionState::Valid,
        entitlement: Entitlement::Operation,
        join: Join {
            mode: JoinMode::All,
            selected: Vec::new(),
            excluded: Vec::new(),
            unselected_acknowledged: Vec::new(),
        },
        ..sent(t).clone()
    };
    t.run().consumptions.insert_mut(activation, consumption);
}

/// Grant and approval of the work in b.
pub fn authority() -> Vec<Break> {
    breaks! {
        GrantInForce Admission GrantExceeded ["the grant's register"] |t| t.facts.registers.clear();
        GrantSubject Admission GrantExceeded ["subject of the grant", "?the grant's register", "actorKind"] |t| {
            t.grant(|grant| grant.subject = id("agent:w9"));
            t.facts.actor_kind = aiws::record::ActorKind::Agent;
        };
        GrantCoversAction Admission GrantExceeded ["actions of the grant", "?the grant's register"] |t| t.grant(|grant| grant.actions = vec!["undo".to_owned()]);
        GrantCoversScope Admission GrantExceeded ["scopes of the grant", "?the grant's register"] |t| t.grant(|grant| grant.scopes = vec!["here/below".to_owned()]);
        GrantCoversAmount Admission GrantExceeded ["maxAmount of the grant", "?the grant's register"] |t| t.grant(|grant| grant.max_amount = dec(2));
        GrantCurrent Admission GrantExceeded ["notAfterMs of the grant", "?the grant's register"] |t| {
            let now_ms = t.facts.now_ms;
            t.grant(|grant| grant.not_after_ms = Ms::from_u64(now_ms));
        };
        ApprovalOfRun Admission ApprovalStale ["the approval"] |t| { t.run().approvals.remove_mut(&id::<aiws::id::ApprovalId>("p1")); };
        ApprovalGiven Admission ApprovalStale ["decision of the approval", "?the approval"] |t| approval(t, |own| own.decision = ApprovalDecision::Denied);
        ApprovalInForce Admission ApprovalStale ["revoked", "?the approval"] |t| approval(t, |own| own.revoked = true);
        ApprovalUnexpired Admission ApprovalStale ["expiresAtMs of the approval", "?the approval"] |t| {
            let now_ms = t.facts.now_ms;
            approval(t, |own| own.expires_at_ms = Ms::from_u64(now_ms));
        };
        ApprovalMaterial Admission ApprovalStale ["fingerprint of the approval", "?the approval"] |t| approval(t, |own| own.fingerprint = Digest::ZERO);
        ApprovalOneOperation Admission ApprovalStale ["operation of the approval", "?the approval"] |t| approval(t, |own| own.operation_id = Some(id("op-z")));
    }
}

/// Budget and deadlines.
pub fn bounds() -> Vec<Break> {
    let late = deadlines();
    let own = breaks! {
        BudgetFits Admission BudgetExceeded ["account"] |t| {
            t.facts.account = t.facts.account.take().map(|row| praxis_model::account::AccountRow { spent: row.bound, ..row });
        };
    };
    together(vec![own, late])
}

/// The deadlines of mission and node.
pub fn deadlines() -> Vec<Break> {
    breaks! {
        ContractDeadline Admission DeadlinePassed ["deadlineMs of the contract"] |t| {
            let now_ms = t.facts.now_ms;
            Arc::make_mut(&mut t.run().contract).deadline_ms = Ms::from_u64(now_ms);
        };
        NodeDeadline Admission DeadlinePassed ["deadlineMs of the node"] |t| {
            let now_ms = t.facts.now_ms;
            edit_node(t, "b", |node| node.deadline_ms = Some(Ms::from_u64(now_ms)));
        };
    }
}

/// The action's payload does not fit the node.
pub fn payload() -> Vec<Break> {
    breaks! {
        PayloadFits Material InputIncompatible ["inputSchema", "?prepared admission"] |t| {
            edit_node(t, "b", |node| node.input_schema = Some(object! { "type": "object", "required": vec!["more"] }));
        };
    }
}

/// Consumer and inputs: what every admission of b asks.
fn inputs() -> Vec<Break> {
    breaks! {
        GraphPinned Identity BasisStale ["graph"] |t| t.run().graph = None;
        ConsumerKnown Identity BasisStale ["activationId"] |t| sent(t).activation_id = id("another");
        DeliveryKnown Identity DeliveryState ["an input's deliveryId", "?all inputs"] |t| sent(t).inputs[0].delivery_id = id("ghost");
        ConsumerPending State NodeNotReady ["status of the node", "?activation"] |t| status(t, "b", NodeStatus::Skipped);
        InputAcknowledged State DeliveryState ["state"] |t| record(t, |record| record.state = DeliveryState::Claimed);
        HandoffExact Basis BasisStale ["an input's handoff", "?all inputs"] |t| sent(t).inputs[0].handoff.digest = Digest::ZERO;
        BasisGraph Basis BasisStale ["planRevision", "?graph"] |t| t.graph().plan_revision = dec(2);
        ActivationUnbound Selection InputSetConflict ["activation", "activationId"] bound;
        InputsUnique Selection InputSetConflict ["list of inputs", "?all inputs"] |t| {
            let again = sent(t).inputs.clone();
            sent(t).inputs.extend(again);
        };
        InputsComplete Selection NodeNotReady ["list of inputs", "all inputs"] |t| sent(t).inputs.clear();
    }
}

/// What a missing input cannot show any more.
fn of_input(all: Vec<Break>) -> Vec<Break> {
    let shown = |broken: Break| {
        let slots: &'static [&'static str] = match broken.slots {
            ["state"] => &["state", "?all inputs"],
            ["planRevision", "?graph"] => &["planRevision", "?graph", "?all inputs"],
            ["bytes of patch"] => &["bytes of patch", "?all inputs"],
            ["retainUntilMs"] => &["retainUntilMs", "?all inputs"],
            ["bytes of log"] => &["bytes of log", "?all inputs"],
            ["accepts"] => &["accepts", "?all inputs"],
            ["schema of the mapping"] => &["schema of the mapping", "?all inputs"],
            ["the status that was handed on"] => &["the status that was handed on", "?all inputs"],
            other => other,
        };
        Break { slots, ..broken }
    };
    all.into_iter().map(shown).collect()
}

/// What only a pinned graph can show.
pub fn of_graph(all: Vec<Break>) -> Vec<Break> {
    let shown = |broken: Break| {
        let slots: &'static [&'static str] = match broken.slots {
            ["inputSchema", "?prepared admission"] => {
                &["inputSchema", "?prepared admission", "?graph"]
            }
            ["deadlineMs of the node"] => &["deadlineMs of the node", "?graph"],
            other => other,
        };
        Break { slots, ..broken }
    };
    all.into_iter().map(shown).collect()
}

fn work() -> Vec<Break> {
    let own = breaks! {
        OperationNew Identity IdentityConflict ["attempt of the admission", "?prepared admission", "?activation"] |t| prepared(t).attempt_id = id("at-a-1");
        ControlNoEffect Selection StateInvalid ["operationId", "prepared admission"] |t| (sent(t).operation_id, sent(t).admission_ref) = (None, None);
        AdmissionKnown Admission NotFound ["prepared admission"] |t| t.facts.admissions.clear();
        AdmissionAgrees Admission EvidenceInvalid ["fingerprint of the admission", "?prepared admission"] |t| prepared(t).fingerprint = Digest::ZERO;
        ApprovalNeeded Admission ApprovalRequired ["the approval", "?graph", "?prepared admission"] |t| {
            prepared(t).approval_id = None;
            edit_node(t, "a", |node| node.kind = NodeKind::Approval);
        };
    };
    let received = [claims::material(), claims::outcome(), claims::fits()].concat();
    let all = vec![
        of_run(),
        launches(),
        inputs(),
        received,
        payload(),
        own,
        authority(),
        bounds(),
    ];
    of_graph(of_input(together(all)))
}

fn control() -> Vec<Break> {
    let own = breaks! {
        ControlNoEffect Selection StateInvalid ["operationId"] |t| (sent(t).operation_id, sent(t).admission_ref) = (Some(id("op-b")), Some(reference("b")));
    };
    let received = [claims::material(), claims::outcome(), claims::fits()].concat();
    let all = vec![of_run(), launches(), inputs(), received, own, deadlines()];
    of_graph(of_input(together(all)))
}

fn any() -> Vec<Break> {
    let own = breaks! {
        DeliveryKnown Identity DeliveryState ["an input's deliveryId", "?all inputs"] |t| sent(t).inputs[0].delivery_id = id("ghost");
        ConsumerPending State NodeNotReady ["status of the node", "?activation"] |t| status(t, "j", NodeStatus::Skipped);
        HandoffExact Basis BasisStale ["an input's handoff", "?all inputs"] |t| sent(t).inputs[0].handoff.digest = Digest::ZERO;
        AnyCompleted Material InputIncompatible ["the status that was handed on"] |t| {
            let accepts = [OutcomeStatus::Completed, OutcomeStatus::Skipped];
            t.config().mappings = vec![mapping("j", "x", "x", &accepts, None)];
            manifest(t, "x", |manifest| manifest.outcome.status = OutcomeStatus::Skipped);
        };
        ActivationUnbound Selection InputSetConflict ["activation", "activationId"] bound;
        AnyTakesOne Selection InputSetConflict ["list of inputs", "?all inputs"] |t| {
            let delivery_id = t.delivery.clone().expect("y's");
            let handoff = t.world.state().deliveries.get(&delivery_id).expect("y's").record.handoff.clone();
            sent(t).inputs.push(aiws::record::InputRef { delivery_id, handoff });
        };
        InputsComplete Selection NodeNotReady ["list of inputs", "all inputs"] |t| sent(t).inputs.clear();
        JoinSettled Selection JoinUnsettled ["y"] |t| status(t, "y", NodeStatus::Active);
        LosersExcludable Selection JoinUnsettled ["joinPolicy", "y"] |t| {
            t.config().join_policy.clear();
            status(t, "y", NodeStatus::Pending);
        };
        ContractDeadline Admission DeadlinePassed ["deadlineMs of the contract"] |t| {
            Arc::make_mut(&mut t.run().contract).deadline_ms = Ms::from_u64(1);
        };
    };
    of_input(together(vec![of_run(), launches(), own]))
}

#[rustfmt::skip]
pub fn scenes() -> Vec<Scene> {
    vec![
        Scene { name: "admitConsumer of work", kind: CommandType::AdmitConsumer, make: working, breaks: work() },
        Scene { name: "admitConsumer of a control node", kind: CommandType::AdmitConsumer, make: controlling, breaks: control() },
        Scene { name: "admitConsumer of an ANY join", kind: CommandType::AdmitConsumer, make: choosing, breaks: any() },
    ]
}

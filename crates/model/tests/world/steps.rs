//! Steps: what the engine does with a node, by name. Invariant: each is one command or a fixed row of commands.
//! Used by tests that need a run somewhere in its life.

use aiws::decimal::{Dec, DecPlus, Ms};
use aiws::id::{ApprovalId, DeliveryId, Id};
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    AcceptanceVerdict, ApprovalDecision, Artifact, Blocker, Cause, DeliveryState, HoldDecision,
    HoldReason, HoldScope, HoldScopeKind, OutcomeStatus, Ref, SettledOutcome, VerificationVerdict,
};
use praxis_model::command::{
    Accept, AcknowledgeDelivery, AdmitIntent, Approve, Body, BoundaryIntent, ClaimDelivery,
    CompleteRun, HoldProposal, Intent, PlaceHold, ReleaseDelivery, ResolveHold, Settle, Verify,
};
use praxis_model::run::NodeStatus;

use super::{Step, World, dec, fingerprint, id, proposal, run_id};

/// The engine's actor and the usual agent.
pub const ENGINE: &str = "system:engine";
/// The agent who owns the root grant.
pub const AGENT: &str = "agent:w1";
/// The operator.
pub const HUMAN: &str = "human:op";

/// A boundary of a node with this status and an empty object as result.
pub fn boundary(node: &str, status: OutcomeStatus) -> BoundaryIntent {
    BoundaryIntent {
        node_id: id(node),
        status,
        result: object! {},
        artifacts: Vec::new(),
        criteria: Vec::new(),
        approvals: Vec::new(),
        context: Default::default(),
        cause: None,
        hold: None,
    }
}

/// A hold over the run.
pub fn hold(name: &str, reason: HoldReason) -> HoldProposal {
    HoldProposal {
        hold_id: id(name),
        scope: run_scope(),
        reason,
        owner: id("human:op"),
        blockers: Vec::<Blocker>::new(),
        allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
        stop_disposition: Vec::new(),
    }
}

/// The scope of the one run.
pub fn run_scope() -> HoldScope {
    HoldScope {
        kind: HoldScopeKind::Run,
        scope_ref: Ref {
            id: run_id().as_id(),
            revision: Dec::from_u64(1),
        },
        resolver_revision: Dec::from_u64(1),
    }
}

/// A hold over a branch: a node of the graph with all that depends on it.
pub fn branch_hold(name: &str, node: &str) -> HoldProposal {
    HoldProposal {
        scope: branch_scope(node),
        ..hold(name, HoldReason::Operator)
    }
}

/// The scope of a branch of a graph at revision 1.
pub fn branch_scope(node: &str) -> HoldScope {
    HoldScope {
        kind: HoldScopeKind::Branch,
        scope_ref: Ref {
            id: id(node),
            revision: Dec::from_u64(1),
        },
        resolver_revision: Dec::from_u64(1),
    }
}

/// A cause.
pub fn cause() -> Cause {
    Cause {
        code: "BROKEN".to_owned(),
        detail: "it broke".to_owned(),
    }
}

impl World {
    /// Places a hold over a branch, as the operator.
    pub fn hold_branch(&mut self, name: &str, node: &str) -> Step {
        let hold = branch_hold(name, node);
        self.send(HUMAN, Body::PlaceHold(PlaceHold { hold }))
    }

    /// Ends a hold, as the operator.
    pub fn end_hold(&mut self, name: &str, decision: HoldDecision) -> Step {
        let body = ResolveHold {
            hold_id: id(name),
            decision,
            decision_ref: id("decision-1"),
            evidence: Vec::new(),
            rule: None,
        };
        self.send(HUMAN, Body::ResolveHold(body))
    }

    /// Deliveries to a node in this state, in the order of their ids.
    pub fn deliveries(&self, node: &str, state: DeliveryState) -> Vec<DeliveryId> {
        let all = self
            .state()
            .deliveries
            .values()
            .map(|delivery| &delivery.record);
        let mine =
            all.filter(|record| record.recipient.node_id.as_str() == node && record.state == state);
        mine.map(|record| record.delivery_id.clone()).collect()
    }

    /// The one pending delivery to a node.
    pub fn pending(&self, node: &str) -> DeliveryId {
        let mut all = self.deliveries(node, DeliveryState::Pending);
        assert_eq!(all.len(), 1, "one pending delivery to {node}");
        all.remove(0)
    }

    /// The delivery of one node to another.
    pub fn between(&self, producer: &str, consumer: &str) -> DeliveryId {
        let from = |record: &aiws::record::Delivery| {
            let committed = self.state().manifests.get(&record.handoff.handoff_id);
            committed
                .is_some_and(|committed| committed.manifest.producer.node_id.as_str() == producer)
        };
        let all = self.state().deliveries.values();
        let mut mine = all
            .map(|delivery| &delivery.record)
            .filter(|record| record.recipient.node_id.as_str() == consumer && from(record));
        mine.next().expect("a delivery").delivery_id.clone()
    }

    /// Claims and acknowledges the delivery of one node to another.
    pub fn take(&mut self, producer: &str, consumer: &str) -> Step {
        let delivery = self.between(producer, consumer);
        self.claim(AGENT, &delivery)?;
        self.ack(AGENT, &delivery)
    }

    /// Claims a delivery; the token is the next number.
    pub fn claim(&mut self, actor: &str, delivery: &DeliveryId) -> Step {
        self.token += 1;
        self.send(
            actor,
            Body::ClaimDelivery(ClaimDelivery {
                delivery_id: delivery.clone(),
                lease_ms: None,
            }),
        )
    }

    /// The acknowledgement of the delivery's last claim with the last token.
    pub fn ack_of(&self, delivery: &DeliveryId) -> AcknowledgeDelivery {
        let record = &self
            .state()
            .deliveries
            .get(delivery)
            .expect("a delivery")
            .record;
        AcknowledgeDelivery {
            delivery_id: delivery.clone(),
            handoff: record.handoff.clone(),
            claim_token: super::token(self.token),
            generation: generation(record.generation.get().max(1)),
        }
    }

    /// The release of the delivery's last claim with the last token.
    pub fn release_of(&self, delivery: &DeliveryId) -> ReleaseDelivery {
        let ack = self.ack_of(delivery);
        ReleaseDelivery {
            delivery_id: ack.delivery_id,
            claim_token: ack.claim_token,
            generation: ack.generation,
        }
    }

    /// Acknowledges a delivery with the last token.
    pub fn ack(&mut self, actor: &str, delivery: &DeliveryId) -> Step {
        let body = Body::AcknowledgeDelivery(self.ack_of(delivery));
        self.send(actor, body)
    }

    /// Claims and acknowledges every pending delivery to a node.
    pub fn receive(&mut self, node: &str) -> Step {
        let mut last = Ok(Value::Null);
        for delivery in self.deliveries(node, DeliveryState::Pending) {
            self.claim(AGENT, &delivery)?;
            last = self.ack(AGENT, &delivery);
        }
        last
    }

    /// Admits a control node.
    pub fn admit_control(&mut self, node: &str) -> Step {
        self.intend(
            ENGINE,
            &Intent::Admit(AdmitIntent {
                node_id: id(node),
                admission_ref: None,
            }),
        )
    }

    /// Prepares the node's usual admission in the host and admits it.
    pub fn admit(&mut self, node: &str) -> Step {
        self.prepare(proposal(node));
        let admission_ref = Some(reference(node));
        self.intend(
            ENGINE,
            &Intent::Admit(AdmitIntent {
                node_id: id(node),
                admission_ref,
            }),
        )
    }

    /// Prepares an admission in the host under the reference `ref-NODE` of its operation `op-NODE`.
    pub fn prepare(&mut self, proposal: aiws::record::AdmissionProposal) {
        let name = proposal
            .operation_id
            .as_str()
            .trim_start_matches("op-")
            .to_owned();
        self.admissions.insert(reference(&name), proposal);
    }

    /// Dispatches the node's prepared attempt.
    pub fn dispatch(&mut self, node: &str) -> Step {
        self.intend(ENGINE, &Intent::DispatchNode { node_id: id(node) })
    }

    /// Settles an attempt of the node; `evidence` exists then.
    pub fn settle(&mut self, attempt: &str, outcome: SettledOutcome, actual: u64) -> Step {
        self.evidence.insert(id("evidence"));
        let evidence = if outcome == SettledOutcome::Unknown {
            Vec::new()
        } else {
            vec![id("evidence")]
        };
        let body = Settle {
            run_id: run_id(),
            attempt_id: id(attempt),
            outcome,
            actual: dec(actual),
            evidence,
        };
        self.send(ENGINE, Body::Settle(body))
    }

    /// Commits a boundary as the engine.
    pub fn commit(&mut self, intent: BoundaryIntent) -> Step {
        self.intend(ENGINE, &Intent::Boundary(intent))
    }

    /// A COMPLETED boundary with this result.
    pub fn complete(&mut self, node: &str, result: Value) -> Step {
        self.commit(BoundaryIntent {
            result,
            ..boundary(node, OutcomeStatus::Completed)
        })
    }

    /// Admits, dispatches and settles a task as applied for 3.
    pub fn apply_task(&mut self, node: &str) -> Step {
        self.receive(node)?;
        self.admit(node)?;
        self.dispatch(node)?;
        self.settle(&format!("at-{node}-1"), SettledOutcome::ConfirmedApplied, 3)
    }

    /// Admits the iteration of this number of a LOOP: operation `op-NODE.NUMBER`, attempt `at-NODE.NUMBER-1`.
    pub fn admit_iteration(&mut self, node: &str, number: u64) -> Step {
        let name = format!("{node}.{number}");
        self.prepare(proposal(&name));
        let intent = AdmitIntent {
            node_id: id(node),
            admission_ref: Some(reference(&name)),
        };
        self.intend(ENGINE, &Intent::Admit(intent))
    }

    /// Receives, admits, dispatches and settles an iteration as applied for 3.
    pub fn apply_iteration(&mut self, node: &str, number: u64) -> Step {
        self.receive(node)?;
        self.admit_iteration(node, number)?;
        self.dispatch(node)?;
        let attempt = format!("at-{node}.{number}-1");
        self.settle(&attempt, SettledOutcome::ConfirmedApplied, 3)
    }

    /// A whole iteration, which says whether the LOOP is done.
    pub fn iterate(&mut self, node: &str, number: u64, done: bool) -> Step {
        self.apply_iteration(node, number)?;
        self.complete(node, object! { "done": done })
    }

    /// A whole task: received, admitted, dispatched, applied, completed.
    pub fn work(&mut self, node: &str) -> Step {
        self.apply_task(node)?;
        self.complete(node, object! {})
    }

    /// A whole task with one artifact.
    pub fn work_with(&mut self, node: &str, artifact: &Artifact) -> Step {
        self.apply_task(node)?;
        self.store(artifact);
        let artifacts = vec![artifact.clone()];
        self.commit(BoundaryIntent {
            artifacts,
            ..boundary(node, OutcomeStatus::Completed)
        })
    }

    /// A whole control node with this result.
    pub fn pass(&mut self, node: &str, result: Value) -> Step {
        self.receive(node)?;
        self.admit_control(node)?;
        self.complete(node, result)
    }

    /// The END.
    pub fn pass_end(&mut self) -> Step {
        self.pass("end", object! { "disposition": "COMPLETED" })
    }

    /// Approves an action as a human, until 5000.
    pub fn approve(&mut self, name: &str, action: &Value) -> Step {
        let body = Approve {
            approval_id: id::<ApprovalId>(name),
            run_id: run_id(),
            fingerprint: fingerprint(action),
            decision: ApprovalDecision::Approved,
            expires_at_ms: Ms::from_u64(5000),
        };
        self.send(HUMAN, Body::Approve(body))
    }

    /// Records a verification.
    pub fn verify(&mut self, name: &str, verdict: VerificationVerdict) -> Step {
        let (subject, evidence) = (Id::new("subject").expect("an id"), vec![id("evidence")]);
        let body = Verify {
            assessment_id: id(name),
            run_id: run_id(),
            subject,
            verdict,
            evidence,
        };
        self.evidence.insert(id("evidence"));
        self.send(ENGINE, Body::Verify(body))
    }

    /// Records an acceptance.
    pub fn accept(&mut self, name: &str, verdict: AcceptanceVerdict) -> Step {
        let (subject, evidence) = (Id::new("subject").expect("an id"), vec![id("evidence")]);
        let body = Accept {
            assessment_id: id(name),
            run_id: run_id(),
            subject,
            verdict,
            evidence,
        };
        self.evidence.insert(id("evidence"));
        self.send(HUMAN, Body::Accept(body))
    }

    /// Completes the run as the engine.
    pub fn finish(&mut self) -> Step {
        let owner_epoch = Dec::from_u64(self.state().epoch);
        self.send(
            ENGINE,
            Body::CompleteRun(CompleteRun {
                run_id: run_id(),
                owner_epoch,
            }),
        )
    }

    /// LIN up to the verified and accepted END, still RUNNING.
    pub fn lin_done() -> World {
        let mut world = World::with(super::lin());
        world.work("a").expect("a");
        world.work("b").expect("b");
        world
            .verify("v1", VerificationVerdict::Pass)
            .expect("verify");
        world
            .accept("c1", AcceptanceVerdict::Accepted)
            .expect("accept");
        world.pass_end().expect("end");
        world
    }

    /// A node's status.
    pub fn status(&self, node: &str) -> NodeStatus {
        self.state().nodes.get(node).expect("a node").status
    }
}

/// The reference of a node's prepared admission.
pub fn reference(node: &str) -> Id {
    Id::new(format!("ref-{node}")).expect("an id")
}

/// A generation.
pub fn generation(number: u64) -> DecPlus {
    DecPlus::new(dec(number)).expect("positive")
}

/// A raw claim token made of one number.
pub fn raw_token(number: u8) -> aiws::token::ClaimToken {
    aiws::token::ClaimToken::from_bytes([number; 32])
}

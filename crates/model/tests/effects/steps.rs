//! Steps of a run on the bench: bodies as the commands' senders write them, and the ways to often-needed states.
//!
//! Invariant: every state is reached through accepted commands. Used by the cases and the flows.

use aiws::decimal::Ms;
use aiws::id::{AttemptId, EvidenceId};
use aiws::json::Value;
use aiws::object;
use aiws::record::*;
use praxis_model::command::*;
use praxis_model::facts::Facts;

use crate::bench::{Bench, Who, dec, edit, fingerprint, id, reference};

/// An admission as the host prepares it: operation `op-NODE`, attempt `at-NODE`.
pub fn proposal(node: &str, action: Value, amount: u64) -> AdmissionProposal {
    AdmissionProposal {
        operation_id: id(&format!("op-{node}")),
        attempt_id: id(&format!("at-{node}")),
        fingerprint: fingerprint(&action),
        action,
        effect: EffectClass::External,
        grant_id: id("root"),
        approval_id: None,
        amount: dec(amount),
    }
}

/// The work of `work`, resting on the approval `yes`.
pub fn approved_work() -> AdmissionProposal {
    AdmissionProposal {
        approval_id: Some(id("yes")),
        ..proposal("work", edit("a"), 10)
    }
}

/// The work of `free`: a read that needs no approval.
pub fn free_read() -> AdmissionProposal {
    let action = object! { "action": "look", "scope": "repo", "payload": object! {} };
    AdmissionProposal {
        effect: EffectClass::Read,
        ..proposal("free", action, 10)
    }
}

pub fn admit_body(
    bench: &Bench,
    node: &str,
    proposal: &AdmissionProposal,
    facts: &mut Facts,
) -> Body {
    facts.admissions.insert(id("admission"), proposal.clone());
    let intent = Intent::Admit(AdmitIntent {
        node_id: id(node),
        admission_ref: Some(id("admission")),
    });
    praxis_model::draft::command(&bench.run, &intent, facts).expect("drafts")
}

pub fn approve_body(name: &str, decision: ApprovalDecision, expires_at_ms: u64) -> Body {
    Body::Approve(Approve {
        approval_id: id(name),
        run_id: id("r"),
        fingerprint: fingerprint(&edit("a")),
        decision,
        expires_at_ms: Ms::from_u64(expires_at_ms),
    })
}

pub fn dispatch_body(bench: &Bench, node: &str, attempt: &str) -> Body {
    Body::Dispatch(Dispatch {
        run_id: id("r"),
        owner_epoch: dec(bench.run.epoch),
        node_id: id(node),
        operation_id: id(&format!("op-{node}")),
        attempt_id: id(attempt),
        policy: reference("a-forged-policy"),
    })
}

pub fn settle_body(attempt: &str, outcome: SettledOutcome, actual: u64, evidence: &[&str]) -> Body {
    Body::Settle(Settle {
        run_id: id("r"),
        attempt_id: id(attempt),
        outcome,
        actual: dec(actual),
        evidence: ids(evidence),
    })
}

pub fn reconcile_body(
    attempt: &str,
    outcome: SettledOutcome,
    actual: u64,
    evidence: &[&str],
) -> Body {
    Body::Reconcile(Reconcile {
        run_id: id("r"),
        attempt_id: id(attempt),
        outcome,
        actual: dec(actual),
        evidence: ids(evidence),
    })
}

pub fn retry_body(bench: &Bench, node: &str, attempt: &str, amount: u64) -> Body {
    Body::Retry(Retry {
        run_id: id("r"),
        owner_epoch: dec(bench.run.epoch),
        operation_id: id(&format!("op-{node}")),
        attempt_id: id(attempt),
        amount: dec(amount),
        policy: reference("a-forged-policy"),
    })
}

pub fn verify_body(name: &str, verdict: VerificationVerdict) -> Body {
    Body::Verify(Verify {
        assessment_id: id(name),
        run_id: id("r"),
        subject: id("result"),
        verdict,
        evidence: ids(&["log"]),
    })
}

pub fn accept_body(name: &str, verdict: AcceptanceVerdict) -> Body {
    Body::Accept(Accept {
        assessment_id: id(name),
        run_id: id("r"),
        subject: id("result"),
        verdict,
        evidence: Vec::new(),
    })
}

pub fn cancel_body() -> Body {
    Body::CancelRun(CancelRun {
        run_id: id("r"),
        reason: "enough".to_owned(),
        decision_ref: id("decision"),
    })
}

pub fn finish_body() -> Body {
    Body::FinishCancelRun(FinishCancelRun {
        run_id: id("r"),
        reason: "done".to_owned(),
        decision_ref: id("decision"),
    })
}

pub fn recover_body(epoch: u64) -> Body {
    Body::RecoverOwnership(RecoverOwnership {
        expected_epoch: dec(epoch),
        reason: "the owner is gone".to_owned(),
        decision_ref: None,
    })
}

pub fn run_scope() -> HoldScope {
    HoldScope {
        kind: HoldScopeKind::Run,
        scope_ref: reference("r"),
        resolver_revision: dec(1),
    }
}

pub fn hold(name: &str, reason: HoldReason) -> HoldProposal {
    HoldProposal {
        hold_id: id(name),
        scope: run_scope(),
        reason,
        owner: id("ann"),
        blockers: Vec::new(),
        allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
        stop_disposition: Vec::new(),
    }
}

/// A hold over a node of the pinned graph with all that depends on it.
pub fn branch(name: &str, node: &str) -> HoldProposal {
    let scope = HoldScope {
        kind: HoldScopeKind::Branch,
        scope_ref: reference(node),
        resolver_revision: dec(1),
    };
    HoldProposal {
        scope,
        ..hold(name, HoldReason::Operator)
    }
}

pub fn place_body(hold: HoldProposal) -> Body {
    Body::PlaceHold(PlaceHold { hold })
}

pub fn resolve_body(name: &str, decision: HoldDecision, evidence: &[&str]) -> Body {
    Body::ResolveHold(ResolveHold {
        hold_id: id(name),
        decision,
        decision_ref: id("decision"),
        evidence: ids(evidence),
        rule: None,
    })
}

pub fn invalidate_body(handoff: HandoffRef) -> Body {
    Body::InvalidateHandoff(InvalidateHandoff {
        handoff,
        reason: "the plan is wrong".to_owned(),
        evidence: ids(&["review"]),
        hold: None,
    })
}

/// Words `s` about what a node handed over, by the actor of these facts.
pub fn summary_of(bench: &Bench, node: &str, kind: AuthorKind, facts: &Facts) -> SummaryProposal {
    SummaryProposal {
        summary_id: id("s"),
        handoff: bench.handoff(node),
        author: SummaryAuthor {
            kind,
            actor_id: facts.actor_id.clone(),
            operation_id: None,
        },
        text: "the plan, in short".to_owned(),
    }
}

fn ids(names: &[&str]) -> Vec<EvidenceId> {
    names.iter().map(|name| id(name)).collect()
}

/// The facts with evidence that the host confirms.
pub fn confirming(mut facts: Facts, evidence: &[&str]) -> Facts {
    facts.clear_evidence.extend(ids(evidence));
    facts
}

/// The facts of a decision of a class, in the name of a reference.
pub fn of_class(mut facts: Facts, class: &str, decision_ref: &str) -> Facts {
    facts.decision_class = class.to_owned();
    facts.decision_ref = Some(id(decision_ref));
    facts
}

impl Bench {
    /// `free` is admitted with its read of 10 units.
    pub fn free_admitted() -> Self {
        let mut bench = Self::new();
        bench.admit("free", &free_read());
        bench
    }

    /// `free` is dispatched.
    pub fn free_dispatched() -> Self {
        let mut bench = Self::free_admitted();
        bench.act(dispatch_body(&bench, "free", "at-free"), Who::System);
        bench
    }

    /// The answer of `free` is lost.
    pub fn free_unknown() -> Self {
        let mut bench = Self::free_dispatched();
        bench.act(
            settle_body("at-free", SettledOutcome::Unknown, 0, &[]),
            Who::System,
        );
        bench
    }

    /// `free` was dispatched by an owner that is gone.
    pub fn free_orphaned() -> Self {
        let mut bench = Self::free_dispatched();
        bench.act(recover_body(1), Who::System);
        bench
    }

    /// `work` is behind its gate, which an approval has opened; nothing is admitted yet.
    pub fn work_ready() -> Self {
        let mut bench = Self::new();
        bench.open_gate();
        bench
    }

    /// Approves the edit of `a`, and takes the node `gate` through its boundary up to the receipt at `work`.
    pub fn open_gate(&mut self) {
        self.pass_gate();
        self.receive();
    }

    /// Approves the edit of `a`, and takes the node `gate` through its boundary.
    pub fn pass_gate(&mut self) {
        self.act(
            approve_body("yes", ApprovalDecision::Approved, 500_000),
            Who::Human,
        );
        let facts = self.facts(Who::System);
        self.intend(
            &Intent::Admit(AdmitIntent {
                node_id: id("gate"),
                admission_ref: None,
            }),
            &facts,
        );
        let boundary = gate_done();
        let facts = self.with_material(self.facts(Who::System));
        self.intend(&Intent::Boundary(boundary), &facts);
    }

    /// Claims and acknowledges every pending delivery.
    pub fn receive(&mut self) {
        let pending: Vec<_> = self
            .run
            .deliveries
            .values()
            .map(|delivery| &delivery.record)
            .filter(|record| record.state == DeliveryState::Pending)
            .map(|record| {
                (
                    record.delivery_id.clone(),
                    record.handoff.clone(),
                    record.generation.get(),
                )
            })
            .collect();
        for (delivery_id, handoff, generation) in pending {
            self.act(
                Body::ClaimDelivery(ClaimDelivery {
                    delivery_id: delivery_id.clone(),
                    lease_ms: None,
                }),
                Who::System,
            );
            let facts = self.with_material(self.facts(Who::System));
            let generation = aiws::decimal::DecPlus::new(dec(generation + 1)).expect("positive");
            let claim_token = aiws::digest::sha256(b"token");
            let body = AcknowledgeDelivery {
                delivery_id,
                handoff,
                claim_token,
                generation,
            };
            self.act_on(&Body::AcknowledgeDelivery(body), &facts);
        }
    }

    /// The facts with the gate's artifact read back.
    pub fn with_material(&self, mut facts: Facts) -> Facts {
        let size_bytes = aiws::decimal::U64(4);
        facts.materials.insert(
            artifact().digest,
            praxis_model::facts::VerifiedMaterial { size_bytes },
        );
        facts
    }

    pub fn work_admitted() -> Self {
        let mut bench = Self::work_ready();
        bench.admit("work", &approved_work());
        bench
    }

    /// `work` is dispatched.
    pub fn work_dispatched() -> Self {
        let mut bench = Self::work_admitted();
        let facts = bench.with_material(bench.facts(Who::System));
        bench.act_on(&dispatch_body(&bench, "work", "at-work"), &facts);
        bench
    }

    /// `work` is applied for 4 units.
    pub fn work_applied() -> Self {
        let mut bench = Self::work_dispatched();
        let applied = SettledOutcome::ConfirmedApplied;
        bench.act(settle_body("at-work", applied, 4, &["exit"]), Who::System);
        bench
    }

    pub fn admit(&mut self, node: &str, proposal: &AdmissionProposal) {
        let mut facts = self.with_material(self.facts(Who::System));
        let body = admit_body(self, node, proposal, &mut facts);
        self.act_on(&body, &facts);
    }

    /// `free` was tried and did nothing.
    pub fn free_returned() -> Self {
        let mut bench = Self::free_dispatched();
        bench.act(
            settle_body("at-free", SettledOutcome::ConfirmedNotApplied, 0, &["exit"]),
            Who::System,
        );
        bench
    }

    /// A run under the restart policy HUMAN.
    pub fn cautious() -> Self {
        let config = HandoffConfig {
            restart_policy: RestartPolicy::Human,
            ..crate::bench::config()
        };
        Self::with(crate::bench::contract(), config, crate::bench::graph())
    }

    /// An open hold of a reason, named `h`.
    pub fn held(mut self, reason: HoldReason) -> Self {
        self.act(place_body(hold("h", reason)), Who::System);
        self
    }

    /// A run that was rejected.
    pub fn rejected(mut self) -> Self {
        self.act(approve_body("no", ApprovalDecision::Denied, 0), Who::Human);
        self
    }

    pub fn canceling(mut self) -> Self {
        self.act(cancel_body(), Who::Human);
        self
    }

    /// The hand-off of a node's boundary.
    pub fn handoff(&self, node: &str) -> HandoffRef {
        let mut all = self.run.manifests.values();
        let committed = all
            .find(|committed| committed.manifest.producer.node_id.as_str() == node)
            .expect("a manifest");
        HandoffRef {
            handoff_id: committed.manifest.handoff_id.clone(),
            digest: committed.digest,
        }
    }

    /// What `gate` handed over is invalidated by a human.
    pub fn invalidated(mut self) -> Self {
        self.act(invalidate_body(self.handoff("gate")), Who::Human);
        self
    }

    /// Opens every gate again behind the back of the ledger. No command does this; with it a test sees what holds a
    /// run beside its hold.
    pub fn unheld(mut self) -> Self {
        self.run.holds = Default::default();
        self
    }

    pub fn attempt(&self, name: &str) -> &Attempt {
        self.run
            .attempts
            .get(&id::<AttemptId>(name))
            .expect("an attempt")
    }
}

/// The plan that the gate passes on.
pub fn artifact() -> Artifact {
    Artifact {
        locator: Locator {
            store: id("files"),
            key: id("plan"),
            version: id("1"),
        },
        digest: aiws::digest::sha256(b"plan"),
        size_bytes: dec(4),
        media_type: "text/plain".to_owned(),
        schema_digest: None,
        retention_owner: id("engine"),
        retain_until_ms: Ms::from_u64(700_000),
    }
}

/// What `gate` says at its boundary: the approval stands, and the plan goes on.
pub fn gate_done() -> BoundaryIntent {
    BoundaryIntent {
        node_id: id("gate"),
        status: OutcomeStatus::Completed,
        result: object! {},
        artifacts: vec![artifact()],
        criteria: Vec::new(),
        approvals: vec![id("yes")],
        context: Context::default(),
        cause: None,
        hold: None,
    }
}

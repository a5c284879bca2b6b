//! The host's policy: who may do what, in a coding run and in a mission for workers.
//! Invariant: one table; the engine schedules and never approves, a worker never decides, a person decides and never poses
//! as the engine, and whatever stands in no row is refused.
//! Called by the engine for every command, its own included.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aiws::decimal::Dec;
use aiws::digest::Digest;
use aiws::id::{EvidenceId, HoldId, Id};
use aiws::json::Value;
use aiws::record::{ActorKind, Ref};
use praxis_artifacts::ArtifactProvider;
use praxis_engine::capability::{
    CLASS_LOOKUP, CLASS_LOST_READ_RULE, CLASS_RECOVERY, CLASS_SCHEDULER,
};
use praxis_engine::ports::{Ask, Authorization, Authorizer, Draft};
use praxis_model::command::{Body, CommandType};

use crate::coding::actions::{Actions, Grants};
use crate::coding::contract::Job;
use crate::material;

/// A decision that a person typed at a terminal, in answer to a question that said what it is about.
pub const AT_TERMINAL: &str = "AT_TERMINAL";
/// A decision that was given in advance with `--approve-as`.
pub const IN_ADVANCE: &str = "IN_ADVANCE";
/// The rule that a check which passed is a verification.
pub const CHECK_PASSED: &str = "CHECK_PASSED";
/// A verb that a person typed, such as `code` or `reconcile`.
pub const TYPED: &str = "TYPED";

/// A worker on the socket, which says its own name.
pub const WORKER: &str = "WORKER";

/// The policy of this command line.
pub struct Policy {
    artifacts: Arc<dyn ArtifactProvider>,
    reference: Ref,
}

impl Policy {
    /// The policy over the store's artifacts, which confirm evidence.
    ///
    /// # Errors
    ///
    /// None in practice; an id that is refused.
    pub fn new(artifacts: Arc<dyn ArtifactProvider>) -> Result<Self, aiws::error::Error> {
        let reference = Ref {
            id: Id::new("praxis-cli")?,
            revision: Dec::from_u64(1),
        };
        Ok(Self {
            artifacts,
            reference,
        })
    }

    /// Evidence that the command names and that the store holds.
    fn confirmed(&self, ask: &Ask<'_>) -> BTreeSet<EvidenceId> {
        let named: &[EvidenceId] = match ask.command {
            // No words stand for bytes: whoever lifts a hold for lost material, it was read back.
            Body::ResolveHold(body) if !self.is_whole(ask, &body.hold_id) => &[],
            Body::Settle(body) => &body.evidence,
            Body::Reconcile(body) => &body.evidence,
            Body::Verify(body) => &body.evidence,
            Body::Accept(body) => &body.evidence,
            Body::ResolveHold(body) => &body.evidence,
            _ => &[],
        };
        named
            .iter()
            .filter(|id| self.is_stored(id))
            .cloned()
            .collect()
    }

    /// Whether a hold waits for no material, or for material that is all there.
    fn is_whole(&self, ask: &Ask<'_>, id: &HoldId) -> bool {
        let hold = ask.run.and_then(|run| Some((run, run.holds.get(id)?)));
        hold.is_none_or(|(run, hold)| {
            !material::is_awaited(hold)
                || material::whole(run, &*self.artifacts, ask.now_ms).is_ok()
        })
    }

    fn is_stored(&self, id: &EvidenceId) -> bool {
        evidence_digest(id).is_some_and(|digest| self.artifacts.contains(&digest).unwrap_or(false))
    }
}

/// The digest in an evidence id of the form `sha256:<hex>`.
#[must_use]
pub fn evidence_digest(id: &EvidenceId) -> Option<Digest> {
    id.as_str().strip_prefix("sha256:")?.parse().ok()
}

impl Authorizer for Policy {
    fn authorize(&self, ask: &Ask<'_>) -> Authorization {
        let mut answer = Authorization::refused(ask.capability, self.reference.clone());
        answer.allowed = is_allowed(ask) && ask.draft_admission.is_none_or(covers);
        if !answer.allowed {
            return answer;
        }
        answer.decision_ref = decision(ask);
        answer.clear_evidence = self.confirmed(ask);
        answer.admissions = ask.draft_admission.map(admitted).unwrap_or_default();
        let engine = ask.capability.actor_kind() == ActorKind::System;
        answer.restart_allowed = engine;
        answer.recovery_authority = engine && ask.capability.class() == CLASS_RECOVERY;
        answer
    }
}

/// The table: class of the caller against command.
fn is_allowed(ask: &Ask<'_>) -> bool {
    use CommandType as C;
    let kind = ask.command.kind();
    match (ask.capability.actor_kind(), ask.capability.class()) {
        (ActorKind::System, CLASS_SCHEDULER) => match ask.command {
            // The engine may narrow the one grant that is made for it, and nothing else.
            Body::GrantCommand(body) => body
                .grant
                .parent_grant_id
                .as_ref()
                .is_some_and(|parent| parent.as_str() == Grants::CORRECT),
            _ => matches!(
                kind,
                C::Dispatch
                    | C::Settle
                    | C::Retry
                    | C::CompleteRun
                    | C::CommitBoundary
                    | C::ClaimDelivery
                    | C::AcknowledgeDelivery
                    | C::ReleaseDelivery
                    | C::AdmitConsumer
                    | C::PlaceHold
            ),
        },
        (ActorKind::System, CLASS_RECOVERY) => {
            matches!(kind, C::RecoverOwnership | C::PlaceHold | C::Settle)
        }
        (ActorKind::System, CLASS_LOOKUP | CLASS_LOST_READ_RULE) => {
            matches!(kind, C::Reconcile | C::Settle)
        }
        (ActorKind::Rule, CHECK_PASSED) => kind == C::Verify,
        (ActorKind::Agent, WORKER) => {
            // A worker does nodes and decides nothing; the model holds it to the grants that name it.
            ask.run
                .is_some_and(|run| Job::named_in(&run.contract).is_none())
                && matches!(
                    kind,
                    C::ClaimDelivery
                        | C::AcknowledgeDelivery
                        | C::ReleaseDelivery
                        | C::AdmitConsumer
                        | C::Dispatch
                        | C::Settle
                        | C::Retry
                        | C::CommitBoundary
                )
        }
        // What `praxis code` and its engine do in a coding run, a person's script does in a mission for workers.
        (ActorKind::Human, TYPED)
            if matches!(
                kind,
                C::GrantCommand
                    | C::RevokeApproval
                    | C::Verify
                    | C::CompleteRun
                    | C::InvalidateHandoff
                    | C::RecordSummary
            ) =>
        {
            let contract = ask.run.map(|run| &*run.contract);
            let contract = contract.or(ask.mission.map(|mission| &*mission.contract));
            contract.is_some_and(|contract| Job::named_in(contract).is_none())
        }
        (ActorKind::Human, TYPED) => {
            matches!(
                kind,
                C::OpenMission
                    | C::StartRun
                    | C::ActivateGraph
                    | C::Reconcile
                    | C::Approve
                    | C::Accept
                    | C::PlaceHold
                    | C::ResolveHold
                    | C::CancelRun
                    | C::FinishCancelRun
            )
        }
        (ActorKind::Human, AT_TERMINAL) => matches!(kind, C::Approve | C::Accept | C::Reconcile),
        (ActorKind::Human, IN_ADVANCE) => match ask.command {
            // What was said in advance is yes; a no needs somebody who looked.
            Body::Approve(body) => body.decision == aiws::record::ApprovalDecision::Approved,
            Body::Accept(body) => body.verdict == aiws::record::AcceptanceVerdict::Accepted,
            _ => false,
        },
        _ => false,
    }
}

/// A correction runs under the grant that names the very plan it says it carries out.
fn covers(draft: &Draft) -> bool {
    let action = draft.proposal.action.get("action").and_then(Value::as_str);
    if action != Some(Actions::CORRECT) {
        return true;
    }
    let plan = draft
        .proposal
        .action
        .pointer("/payload/planDigest")
        .and_then(Value::as_str);
    let plan: Option<Digest> = plan.and_then(|plan| plan.parse().ok());
    plan.and_then(|plan| Grants::correction(&plan).ok())
        .is_some_and(|grant| grant == draft.proposal.grant_id)
}

/// The reference of the decision behind a command: what the host put in a person's capability, and for a lost
/// check the decision that the contract itself carries.
fn decision(ask: &Ask<'_>) -> Option<Id> {
    if ask.capability.class() == CLASS_LOST_READ_RULE {
        return Some(ask.run?.contract.lost_reads.as_ref()?.decision_ref.clone());
    }
    Id::new(ask.capability.evidence().get("decision")?.as_str()?).ok()
}

fn admitted(draft: &Draft) -> BTreeMap<Id, aiws::record::AdmissionProposal> {
    BTreeMap::from([(draft.admission_ref.clone(), draft.proposal.clone())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::contract::tests::job_of;
    use crate::session::Session;
    use aiws::error::{Code, Error};
    use aiws::id::{ActorId, ApprovalId, RunId};
    use praxis_engine::{Capability, Shutdown};
    use praxis_model::command::{Approve, CompleteRun, Intent};

    async fn coding_run() -> (tempfile::TempDir, Session, crate::coding::contract::Job) {
        let dir = tempfile::TempDir::new().unwrap();
        let store = dir.path().join("store");
        crate::store::create_if_missing(&store).unwrap();
        let session = Session::open(&store).await.unwrap();
        let job = job_of(1, crate::session::now_ms());
        let person = capability(&session, "alice", ActorKind::Human, TYPED);
        session.start(&job, &person).await.unwrap();
        (dir, session, job)
    }

    fn capability(session: &Session, name: &str, kind: ActorKind, class: &str) -> Capability {
        let evidence = aiws::object! { "decision": "d" };
        let actor = ActorId::new(name).unwrap();
        session.host.capability(actor, kind, class, evidence)
    }

    fn approve(run: &RunId) -> Body {
        Body::Approve(Approve {
            approval_id: ApprovalId::new("a").unwrap(),
            run_id: run.clone(),
            fingerprint: aiws::digest::sha256(b"x"),
            decision: aiws::record::ApprovalDecision::Approved,
            expires_at_ms: aiws::decimal::Ms::from_u64(u64::MAX),
        })
    }

    /// Proves CRD-1: in a coding run a worker may do nothing, and a person's script no more than the verbs do; nobody
    /// but a person approves, whatever the class says.
    #[tokio::test]
    async fn the_table_keeps_workers_and_scripts_out_of_coding_runs() {
        let (_dir, session, job) = coding_run().await;
        let worker = capability(&session, "agent:w", ActorKind::Agent, WORKER);
        let script = capability(&session, "alice", ActorKind::Human, TYPED);
        let posing = capability(&session, "agent:w", ActorKind::Agent, TYPED);
        let in_worker_class = capability(&session, "alice", ActorKind::Human, WORKER);
        let (mission, run) = (&job.mission_id, &job.run_id);
        let complete = Body::CompleteRun(CompleteRun {
            run_id: run.clone(),
            owner_epoch: Dec::ZERO,
        });
        let admit = Intent::Admit(praxis_model::command::AdmitIntent {
            node_id: aiws::id::NodeId::new("plan").unwrap(),
            admission_ref: None,
        });
        let command = |body: &Body| Intent::Command { body: body.clone() };
        let asks = [
            (&worker, admit.clone()),
            (&worker, command(&complete)),
            (&worker, command(&approve(run))),
            (&script, command(&complete)),
            (&script, admit),
            (&posing, command(&approve(run))),
            (&in_worker_class, command(&approve(run))),
        ];
        for (number, (capability, intent)) in asks.into_iter().enumerate() {
            let request = format!("q-{number}");
            let asked = session.submit(capability, mission, run, &request, intent);
            let refused: Error = asked.await.expect_err("no row");
            let code = refused.code();
            let fits = [Code::AuthorizationDenied, Code::HumanRequired].contains(&code);
            assert!(fits, "{number}: {refused}");
        }
        session.close(Shutdown::Drain).await.unwrap();
    }
}

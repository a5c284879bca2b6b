//! A deposed owner sends every command there is.
//! Invariant: one body of each command, in its strict wire form; refused by the revision, then by the epoch.
//! Test of the ownership stage through the public API.

use aiws::error::Error;
use aiws::record::{EffectClass, HoldDecision, Ref, RestartPolicy, SettledOutcome};
use praxis_engine::{Response, Shutdown};
use praxis_model::command::{
    Approve, Body, CancelRun, ClaimDelivery, CommandType, CompleteRun, Dispatch, PlaceHold,
    ReleaseDelivery, ResolveHold, Retry, RevokeApproval, Settle,
};
use praxis_model::run::RunState;

use crate::owners::{RUN, boundary_of_a, code, hold, verify};
use crate::support::{Open, World, dec, id, lin};

/// Proves FV-REC.4: whatever a deposed owner sends is refused, by its revision first and, with that
/// refreshed, by its epoch; nothing changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fv_rec_4_a_deposed_owner_is_refused_in_every_command() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    boundary_of_a(&open, RUN).await;
    let old = open.state(RUN).await;
    open.recover(RUN, "q-recover", 1).await.expect("recovered");
    let now = open.state(RUN).await;
    assert_eq!(now.epoch, 2);
    for (name, body) in bodies(&old) {
        let fresh = send(
            &open,
            &format!("{name}-fresh"),
            now.head.revision.get(),
            1,
            &body,
        )
        .await;
        assert_eq!(
            code(fresh),
            "STALE_OWNER",
            "{name} with the revision refreshed"
        );
        let stale = send(
            &open,
            &format!("{name}-stale"),
            old.head.revision.get(),
            1,
            &body,
        )
        .await;
        assert_eq!(code(stale), "REVISION_CONFLICT", "{name} as sent");
    }
    assert_eq!(open.state(RUN).await.head, now.head);
    world.close(open, Shutdown::Drain).await;
}

/// One body of every command of a run, as the owner of epoch 1 would send it.
fn bodies(old: &RunState) -> Vec<(&'static str, Body)> {
    let delivery = old
        .deliveries
        .values()
        .next()
        .expect("a delivery")
        .record
        .clone();
    let (manifest, consumption) = (
        (*old.manifests.values().next().expect("a manifest").manifest).clone(),
        old.consumptions
            .values()
            .next()
            .expect("a consumption")
            .clone(),
    );
    let policy = Ref {
        id: id("policy"),
        revision: dec(1),
    };
    let (token, generation) = (
        aiws::digest::sha256(b"token"),
        "1".parse().expect("positive"),
    );
    let all = vec![
        Body::ActivateGraph(praxis_model::command::ActivateGraph {
            run_id: id(RUN),
            owner_epoch: dec(1),
            graph: lin(),
        }),
        Body::Approve(Approve {
            approval_id: id("approval"),
            run_id: id(RUN),
            fingerprint: token,
            decision: aiws::record::ApprovalDecision::Approved,
            expires_at_ms: "9000".parse().expect("ms"),
        }),
        Body::RevokeApproval(RevokeApproval {
            approval_id: id("approval"),
            run_id: id(RUN),
            reason: "r".to_owned(),
        }),
        Body::Dispatch(Dispatch {
            run_id: id(RUN),
            owner_epoch: dec(1),
            node_id: id("a"),
            operation_id: id("op-a"),
            attempt_id: id("at-a-1"),
            policy: policy.clone(),
        }),
        Body::Settle(Settle {
            run_id: id(RUN),
            attempt_id: id("at-a-1"),
            outcome: SettledOutcome::ConfirmedApplied,
            actual: dec(3),
            evidence: vec![id("seen")],
        }),
        Body::Reconcile(praxis_model::command::Reconcile {
            run_id: id(RUN),
            attempt_id: id("at-a-1"),
            outcome: SettledOutcome::ConfirmedApplied,
            actual: dec(3),
            evidence: vec![id("seen")],
        }),
        Body::Retry(Retry {
            run_id: id(RUN),
            owner_epoch: dec(1),
            operation_id: id("op-a"),
            attempt_id: id("at-a-2"),
            amount: dec(3),
            policy,
        }),
        verify("v"),
        Body::Accept(praxis_model::command::Accept {
            assessment_id: id("acceptance"),
            run_id: id(RUN),
            subject: id("result"),
            verdict: aiws::record::AcceptanceVerdict::Accepted,
            evidence: vec![id("seen")],
        }),
        Body::CompleteRun(CompleteRun {
            run_id: id(RUN),
            owner_epoch: dec(1),
        }),
        Body::CancelRun(CancelRun {
            run_id: id(RUN),
            reason: "r".to_owned(),
            decision_ref: id("decision"),
        }),
        Body::FinishCancelRun(praxis_model::command::FinishCancelRun {
            run_id: id(RUN),
            reason: "r".to_owned(),
            decision_ref: id("decision"),
        }),
        Body::CommitBoundary(praxis_model::command::CommitBoundary {
            manifest,
            hold: None,
            skipped: Vec::new(),
        }),
        Body::ClaimDelivery(ClaimDelivery {
            delivery_id: delivery.delivery_id.clone(),
            lease_ms: None,
        }),
        Body::AcknowledgeDelivery(praxis_model::command::AcknowledgeDelivery {
            delivery_id: delivery.delivery_id.clone(),
            handoff: delivery.handoff.clone(),
            claim_token: token,
            generation,
        }),
        Body::ReleaseDelivery(ReleaseDelivery {
            delivery_id: delivery.delivery_id,
            claim_token: token,
            generation,
        }),
        Body::AdmitConsumer(praxis_model::command::AdmitConsumer {
            consumption,
            skipped: Vec::new(),
        }),
        Body::PlaceHold(PlaceHold { hold: hold("h") }),
        Body::ResolveHold(ResolveHold {
            hold_id: id("h"),
            decision: HoldDecision::Recheck,
            decision_ref: id("decision"),
            evidence: Vec::new(),
            rule: None,
        }),
        Body::InvalidateHandoff(praxis_model::command::InvalidateHandoff {
            handoff: delivery.handoff.clone(),
            reason: "r".to_owned(),
            evidence: vec![id("seen")],
            hold: None,
        }),
        Body::RecoverOwnership(praxis_model::command::RecoverOwnership {
            expected_epoch: dec(1),
            reason: "r".to_owned(),
            decision_ref: None,
        }),
        Body::RecordSummary(praxis_model::command::RecordSummary {
            summary: praxis_model::command::SummaryProposal {
                summary_id: id("summary"),
                handoff: delivery.handoff,
                author: aiws::record::SummaryAuthor {
                    kind: aiws::record::AuthorKind::Human,
                    actor_id: id("human:op"),
                    operation_id: None,
                },
                text: "t".to_owned(),
            },
        }),
    ];
    let run_commands = CommandType::ALL.iter().filter(|kind| {
        praxis_model::table::row(**kind).stream == praxis_model::table::StreamKind::Run
    });
    assert_eq!(
        all.len(),
        run_commands.count(),
        "a body for every command of a run"
    );
    all.into_iter()
        .map(|body| (body.kind().name(), body))
        .collect()
}

/// Sends a body in the strict form, as its family asks.
async fn send(
    open: &Open,
    request: &str,
    revision: u64,
    epoch: u64,
    body: &Body,
) -> Result<Response, Error> {
    use aiws::json::Value;
    use aiws::object;
    let mut value = aiws::canonical::to_value(body)?;
    if let Value::Object(members) = &mut value
        && members.contains_key("claimToken")
    {
        // On the wire stands the token; any will do for an owner that is refused before.
        let token = aiws::token::ClaimToken::from_bytes([1; 32]).expose();
        members.insert("claimToken".to_owned(), token.into());
    }
    let handoff =
        praxis_model::table::row(body.kind()).family == praxis_model::table::Family::Handoff;
    let (revision, epoch) = (revision.to_string(), epoch.to_string());
    let command = match handoff {
        true => object! {
            "protocol": "aiws-handoff/1",
            "requestId": request,
            "expectedRevision": revision.clone(),
            "missionId": "mission",
            "runId": RUN,
            "ownerEpoch": epoch.clone(),
            "body": value,
        },
        false => value,
    };
    let mut outer = object! {
        "requestId": request,
        "expectedRevision": revision,
        "ownerEpoch": epoch,
        "command": command,
    };
    if let (false, Value::Object(members)) = (handoff, &mut outer) {
        members.insert("missionId".to_owned(), "mission".into());
    }
    open.engine
        .apply(&open.human(), &aiws::canonical::to_bytes(&outer))
        .await
}

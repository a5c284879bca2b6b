//! A deposed owner: whatever it still sends is refused, command by command.
//! Invariant: the vocabulary is the command table's, so that a new command fails here until it has its line.
//! Beside C-06 and R-08.

use aiws::error::Code;
use praxis_model::command::CommandType;
use praxis_model::table::{self, StreamKind};
use serde_json::{Value as Json, json};

use crate::bodies::{self, Boundary, wide};
use crate::wire::Sent;
use crate::world::{HUMAN, W1, World, both};

/// A body of every command of a run, all of which the owner could have sent.
async fn everything(w: &mut World, token: &str) -> Vec<(CommandType, &'static str, Json)> {
    let (free, held) = (w.delivery("a", "b"), w.delivery("a", "b2"));
    let (admission, dispatch) = (w.admission("e").await, w.dispatch_of("c").await);
    let ack = w.ack_of(&held, token).await;
    let s = &*w.state().await;
    let attempt = w.attempt("f");
    let retry = json!({
        "type": "retry", "runId": w.run, "ownerEpoch": s.epoch.to_string(), "operationId": w.operation("f"),
        "attemptId": "at-2", "amount": "3", "policy": {"id": "policy", "revision": "1"},
    });
    let revoke = json!({"type": "revokeApproval", "approvalId": "ap-1", "runId": w.run, "reason": "changed"});
    let failed = Boundary {
        status: "FAILED",
        ..Boundary::completed(json!({}))
    };
    let bodies = [
        (W1, bodies::activate(s, wide())),
        (
            HUMAN,
            bodies::approve(s, "ap-2", &bodies::action("a"), 5000),
        ),
        (W1, revoke),
        (W1, dispatch),
        (
            W1,
            bodies::settle(s, "settle", &attempt, "CONFIRMED_APPLIED", 3),
        ),
        (
            HUMAN,
            bodies::settle(s, "reconcile", &attempt, "CONFIRMED_APPLIED", 3),
        ),
        (W1, retry),
        (W1, bodies::assess(s, "verify", "v-1", "PASS")),
        (HUMAN, bodies::assess(s, "accept", "c-1", "ACCEPTED")),
        (W1, bodies::complete(s)),
        (HUMAN, bodies::cancel(s, "cancelRun")),
        (HUMAN, bodies::cancel(s, "finishCancelRun")),
        (W1, failed.of(s, "c")),
        (W1, bodies::claim(&free)),
        (W1, ack),
        (W1, bodies::release(&held, token, 1)),
        (W1, admission),
        (HUMAN, bodies::hold(s, "hold-2", "OPERATOR", &["RECHECK"])),
        (HUMAN, bodies::resolve("hold-1", "CANCEL", &[])),
        (HUMAN, bodies::invalidate(s, "a")),
        (HUMAN, bodies::recover(1, None)),
        (
            HUMAN,
            bodies::summary(s, "a", ("HUMAN", HUMAN, None), "done"),
        ),
    ];
    bodies
        .into_iter()
        .map(|(actor, body)| {
            (
                CommandType::parse(body["type"].as_str().unwrap()).unwrap(),
                actor,
                body,
            )
        })
        .collect()
}

/// Proves HD-02.5, FV-REC.4, T-69, ERR-STALE_OWNER: every command of a run, sent by an owner whose epoch is
/// over, is REVISION_CONFLICT as it was made and STALE_OWNER once its revision is fresh.
#[tokio::test]
async fn a_deposed_owner_is_refused_whatever_it_sends() {
    both(wide(), async |w: &mut World| {
        w.work("a").await;
        w.admit("c").await;
        w.admit("f").await;
        w.dispatch("f").await;
        w.settle("f", "UNKNOWN", 0).await;
        let token = w.claim(W1, &w.delivery("a", "b2")).await;
        let approval = bodies::approve(&*w.state().await, "ap-1", &bodies::action("a"), 5000);
        w.send(HUMAN, approval).await;
        let hold = bodies::hold(
            &*w.state().await,
            "hold-1",
            "OPERATOR",
            &["RECHECK", "CANCEL"],
        );
        w.send(HUMAN, hold).await;

        let all = everything(w, &token).await;
        let told: Vec<CommandType> = all.iter().map(|(kind, ..)| *kind).collect();
        let of_runs = |kind: &&CommandType| table::row(**kind).stream == StreamKind::Run;
        let known: Vec<CommandType> = CommandType::ALL.iter().filter(of_runs).copied().collect();
        assert_eq!(
            told, known,
            "every command of a run has its line here, in the order of the table"
        );
        let mut old: Vec<(&str, Sent)> = Vec::new();
        for (_, actor, body) in all {
            old.push((actor, w.request(body).await));
        }

        w.send(HUMAN, bodies::recover(1, Some("decision-1"))).await;
        let head = w.state().await.head.revision.to_string();
        for (actor, sent) in &mut old {
            w.refuse_sent(actor, sent, Code::RevisionConflict).await;
            sent.revision.clone_from(&head);
            // The manifest of a boundary stands on the new head too; the epoch alone is old.
            w.refuse_sent(actor, sent, Code::StaleOwner).await;
        }
    })
    .await;
}

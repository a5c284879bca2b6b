//! Approvals: bound to the exact action, to one operation, and to a time.
//! Invariant: the same request with the approved action is accepted, so that the refusal is about the one difference.
//! What a changed action, a second operation and a late start get.

use aiws::error::Code;
use praxis_engine::Shutdown;
use serde_json::{Value as Json, json};

use crate::bodies::{self, Boundary, guarded};
use crate::oracle::money;
use crate::world::{HUMAN, W1, World, both};

/// Approves an action under `ap-1` until a time, and passes the APPROVAL node on it.
async fn approved(w: &mut World, action: &Json, expires_at_ms: u64) {
    let approve = bodies::approve(&*w.state().await, "ap-1", action, expires_at_ms);
    w.send(HUMAN, approve).await;
    let admit = bodies::admit(&*w.state().await, "p", None);
    w.send(W1, admit).await;
    w.commit(
        "p",
        &Boundary {
            approvals: vec!["ap-1"],
            ..Boundary::completed(json!({}))
        },
    )
    .await;
    for node in ["a", "b"] {
        let delivery = w.delivery("p", node);
        w.receive(W1, &delivery).await;
    }
}

/// The admission of a node for an action under `ap-1`.
async fn admission(w: &mut World, node: &str, action: &Json) -> Json {
    w.prepare(node, action, Some("ap-1"));
    let (operation, reference) = (w.operation(node), w.reference(node));
    bodies::admit(&*w.state().await, node, Some((&operation, &reference)))
}

/// Proves F-12, FV-APR.1, FV-APR.2: one byte of the approved action changes: neither admission nor dispatch.
#[tokio::test]
async fn f_12_one_byte_changed_needs_a_new_approval() {
    both(guarded(), async |w: &mut World| {
        let (right, wrong) = (bodies::action("fix"), bodies::action("fax"));
        approved(w, &right, 5000).await;
        let none = admission(w, "a", &right).await;
        w.prepare("a", &right, None);
        w.refuse(W1, none.clone(), Code::ApprovalRequired).await;
        let changed = admission(w, "a", &wrong).await;
        w.refuse(W1, changed, Code::ApprovalStale).await;

        // The approved fingerprint over a changed action: what is admitted is not what is named.
        let mut forged = bodies::proposal(&w.operation("a"), &w.attempt("a"), &wrong, Some("ap-1"));
        forged["fingerprint"] = json!(bodies::fingerprint(&right));
        let key = crate::wire::id(&w.reference("a"));
        w.policy
            .rules()
            .admissions
            .insert(key, crate::wire::record(&forged));
        w.refuse(W1, none, Code::EvidenceInvalid).await;

        let exact = admission(w, "a", &right).await;
        w.send(W1, exact).await;
        w.prepare("a", &wrong, Some("ap-1"));
        let dispatch = w.dispatch_of("a").await;
        w.refuse(W1, dispatch.clone(), Code::ApprovalStale).await;
        w.prepare("a", &right, Some("ap-1"));
        w.send(W1, dispatch).await;
    })
    .await;
}

/// Proves T-80: a second operation under one approval is refused, the same action as it is; a retry of the
/// first is not.
#[tokio::test]
async fn a_second_operation_under_one_approval() {
    both(guarded(), async |w: &mut World| {
        let action = bodies::action("fix");
        approved(w, &action, 5000).await;
        let first = admission(w, "a", &action).await;
        w.send(W1, first).await;
        let second = admission(w, "b", &action).await;
        w.refuse(W1, second, Code::ApprovalStale).await;
        w.dispatch("a").await;
        w.settle("a", "CONFIRMED_NOT_APPLIED", 0).await;
        let epoch = w.state().await.epoch.to_string();
        let retry = json!({
            "type": "retry", "runId": w.run, "ownerEpoch": epoch, "operationId": w.operation("a"),
            "attemptId": "at-a-2", "amount": "3", "policy": {"id": "policy", "revision": "1"},
        });
        w.send(W1, retry).await;
        assert_eq!(money(w), (0, 3));
    })
    .await;
}

/// Proves FV-APR.3, FV-APR.4: an approval that ended while the engine was down starts nothing: neither an admission
/// nor the dispatch of what was admitted before.
#[tokio::test]
async fn an_approval_expired_during_downtime() {
    for admitted in [false, true] {
        both(guarded(), async |w: &mut World| {
            let action = bodies::action("fix");
            approved(w, &action, 2000).await;
            if admitted {
                let body = admission(w, "a", &action).await;
                w.send(W1, body).await;
            }
            w.clock.set(1999);
            w.close(Shutdown::Drain).await;
            w.clock.set(2000);
            w.open().await;
            assert_eq!(w.state().await.epoch, 1);
            if admitted {
                let dispatch = w.dispatch_of("a").await;
                w.refuse(W1, dispatch, Code::ApprovalStale).await;
            } else {
                let body = admission(w, "a", &action).await;
                w.refuse(W1, body, Code::ApprovalStale).await;
            }
        })
        .await;
    }
}

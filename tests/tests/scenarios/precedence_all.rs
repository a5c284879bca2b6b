//! Precedence of stages 1 to 6 for every command that has bytes: all of them broken at once, and one after the other
//! mended. Invariant: each step mends exactly one thing, so every two neighbours are broken together once.

use aiws::error::Code;
use praxis_model::command::CommandType;
use praxis_model::run::RunState;
use praxis_model::table::{self, StreamKind};
use serde_json::{Value as Json, json};

use crate::bodies::{self, Boundary, lin};
use crate::wire::Sent;
use crate::world::{HUMAN, World, both};

/// Bodies of the right shape. These stages ask nothing of what a body is about.
fn every(state: &RunState, delivery: &str) -> Vec<Json> {
    let (run, epoch) = ("run", state.epoch.to_string());
    let policy = json!({"id": "policy", "revision": "1"});
    let grant = json!({
        "grantId": "narrow", "parentGrantId": "root", "subject": "agent:w1", "actions": ["do"], "scopes": ["here"],
        "maxAmount": "1", "notAfterMs": "1000",
    });
    let token = "A".repeat(43);
    let words = ("HUMAN", HUMAN, None);
    vec![
        json!({"type": "startRun", "runId": "second"}),
        json!({"type": "grant", "grant": grant}),
        bodies::activate(state, lin()),
        bodies::approve(state, "p-1", &bodies::action("a"), 5_000),
        json!({"type": "revokeApproval", "approvalId": "p-1", "runId": run, "reason": "no"}),
        bodies::dispatch(state, "a", "op-a", "at-a"),
        bodies::settle(state, "settle", "at-a", "CONFIRMED_APPLIED", 3),
        bodies::settle(state, "reconcile", "at-a", "CONFIRMED_APPLIED", 3),
        json!({
            "type": "retry", "runId": run, "ownerEpoch": epoch, "operationId": "op-a", "attemptId": "at-2", "amount": "3",
            "policy": policy,
        }),
        bodies::assess(state, "verify", "v-1", "PASS"),
        bodies::assess(state, "accept", "c-1", "ACCEPTED"),
        bodies::complete(state),
        bodies::cancel(state, "cancelRun"),
        bodies::cancel(state, "finishCancelRun"),
        Boundary::completed(json!({})).of(state, "a"),
        bodies::claim(delivery),
        bodies::ack(state, delivery, &token, 1),
        bodies::release(delivery, &token, 1),
        bodies::admit(state, "b", Some(("op-b", "at-b"))),
        bodies::hold(state, "hold-1", "OPERATOR", &["RECHECK"]),
        bodies::resolve("hold-1", "RECHECK", &[]),
        bodies::invalidate(state, "a"),
        bodies::recover(state.epoch, Some("decision-1")),
        bodies::summary(state, "a", words, "in short"),
    ]
}

/// The request under another epoch, wherever it says one.
fn of_epoch(sent: &Sent, epoch: &str) -> Sent {
    let mut sent = sent.clone();
    sent.epoch = sent.epoch.map(|_| epoch.to_owned());
    if sent.body.get("ownerEpoch").is_some() {
        sent.body["ownerEpoch"] = json!(epoch);
    }
    sent
}

fn bytes(request: &Json) -> Vec<u8> {
    serde_json::to_vec(request).unwrap()
}

/// Everything that these stages look at is wrong; then one thing after the other is mended.
async fn mended(w: &mut World, sent: &Sent, used: &str) {
    let in_run = table::row(sent.kind()).stream == StreamKind::Run;
    let fresh = Sent {
        id: "fresh".to_owned(),
        ..sent.clone()
    };
    let denial = (HUMAN.to_owned(), sent.kind());
    w.policy.rules().denied.insert(denial.clone());
    let mut stale = of_epoch(&fresh, "7");
    w.refuse_sent(HUMAN, &fresh, Code::AuthorizationDenied)
        .await;
    if in_run {
        w.refuse_sent(HUMAN, &stale, Code::StaleOwner).await;
    }
    stale.revision = "1000".to_owned();
    w.refuse_sent(HUMAN, &stale, Code::RevisionConflict).await;
    stale.id = used.to_owned();
    w.refuse_sent(HUMAN, &stale, Code::IdentityConflict).await;
    let nobody = praxis_engine::Capability::anonymous().unwrap();
    let mut request = stale.json();
    let mut unproven = Vec::new();
    unproven.push((bytes(&request), Code::AuthorizationDenied));
    request["priority"] = json!("high");
    unproven.push((bytes(&request), Code::SchemaInvalid));
    request["protocol"] = json!("aiws-handoff/2");
    unproven.push((bytes(&request), Code::UnsupportedProtocol));
    let mut garbage = bytes(&request);
    garbage.push(b'}');
    unproven.push((garbage, Code::SchemaInvalid));
    for (request, code) in unproven {
        let answer = match sent.kind() {
            CommandType::ClaimDelivery => w.engine().claim(&nobody, &request).await.map(drop),
            _ => w.engine().apply(&nobody, &request).await.map(drop),
        };
        let error = answer.expect_err("a refusal");
        assert_eq!(error.code(), code, "{}: {error}", sent.kind().name());
    }
    w.policy.rules().denied.remove(&denial);
}

/// Proves ERR-PREC.1, T-38: for every command strict JSON comes before the protocol, this before the shape, this before who
/// sends it, this before the request's key, this before the revision, this before the epoch, this before policy.
#[tokio::test]
async fn the_first_six_stages_answer_in_order() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let delivery = w.delivery("a", "b");
        let used = w
            .request(bodies::assess(&*w.state().await, "verify", "used", "PASS"))
            .await;
        w.deliver(HUMAN, &used).await;
        let bodies = every(&*w.state().await, &delivery);
        let mut seen: Vec<CommandType> = Vec::new();
        for body in bodies {
            let sent = w.request(body).await;
            mended(w, &sent, &used.id).await;
            seen.push(sent.kind());
        }
        // A mission is opened by a call of its own, which has no bytes.
        let missing = CommandType::ALL.iter().filter(|kind| !seen.contains(kind));
        assert_eq!(missing.collect::<Vec<_>>(), [&CommandType::OpenMission]);
    })
    .await;
}

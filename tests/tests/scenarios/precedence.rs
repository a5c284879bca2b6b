//! Precedence: several rules broken at once, and the first stage's code wins; then that one is mended, and so on.
//! Invariant: each step mends exactly one thing. Scenarios P-01 to P-08.

use aiws::error::Code;
use praxis_model::command::CommandType;
use serde_json::json;

use crate::bodies::{self, Boundary, lin};
use crate::kinds::{any, between, excluding, one_branch, taking};
use crate::oracle::{Mark, money};
use crate::wire::record;
use crate::world::{HUMAN, RULE, W1, W2, World, both, configured};

/// Proves P-01, ERR-PREC.1, T-38, ERR-UNSUPPORTED_PROTOCOL: a malformed request of nobody is SCHEMA_INVALID, another
/// protocol is that whatever else it brings, and only then is nobody turned away.
#[tokio::test]
async fn p_01_shape_before_authentication() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let sent = w.request(bodies::claim(&w.delivery("a", "b"))).await;
        let nobody = praxis_engine::Capability::anonymous().unwrap();
        let mut malformed = sent.json();
        malformed["command"]["body"]["priority"] = json!("high");
        let mut foreign = malformed.clone();
        foreign["command"]["protocol"] = json!("aiws-handoff/2");
        let cases = [
            (foreign, Code::UnsupportedProtocol),
            (malformed, Code::SchemaInvalid),
            (sent.json(), Code::AuthorizationDenied),
        ];
        let before = Mark::of(w).await;
        for (request, code) in cases {
            let bytes = serde_json::to_vec(&request).unwrap();
            let error = w
                .engine()
                .claim(&nobody, &bytes)
                .await
                .expect_err("a refusal");
            assert_eq!(error.code(), code, "{error}");
            if code == Code::AuthorizationDenied {
                assert_eq!(
                    error.details.get("cause").and_then(|cause| cause.as_str()),
                    Some("unauthenticated")
                );
                assert!(w.engine().claim(&nobody, &bytes).await.is_err());
            } else {
                w.refuse_bytes(W1, &bytes, code).await;
            }
        }
        assert_eq!(Mark::of(w).await, before);
        w.deliver(W1, &sent).await;
    })
    .await;
}

/// Proves P-03, ERR-PREC.1, HF-02.10: an exact replay gets its first answer under a stale revision, an ended epoch,
/// a revoked policy and an open hold; nobody else's request and nobody unproven does.
#[tokio::test]
async fn p_03_replay_before_everything_later() {
    both(lin(), async |w: &mut World| {
        w.apply("a").await;
        let boundary = Boundary::completed(json!({})).of(&*w.state().await, "a");
        let sent = w.request(boundary).await;
        let first = w.deliver(W1, &sent).await;
        w.policy
            .rules()
            .denied
            .insert((W1.to_owned(), CommandType::CommitBoundary));
        let recovered = w.state().await.epoch;
        w.send(HUMAN, bodies::recover(recovered, Some("decision-1")))
            .await;
        let state = w.state().await;
        assert_eq!((state.epoch, state.holds.size()), (2, 1));
        let before = Mark::of(w).await;
        for _ in 0..2 {
            let again = w.once(W1, &sent.bytes()).await.expect("the first answer");
            assert!(again.event.is_none());
            assert_eq!(
                (again.revision, &again.result),
                (first.revision, &first.result)
            );
        }
        let nobody = praxis_engine::Capability::anonymous().unwrap();
        let refused = w
            .engine()
            .apply(&nobody, &sent.bytes())
            .await
            .expect_err("nobody gets an answer");
        assert_eq!(refused.code(), Code::AuthorizationDenied);
        w.refuse_sent(W2, &sent, Code::RevisionConflict).await;
        assert_eq!(Mark::of(w).await, before);
    })
    .await;
}

/// Proves P-04, ERR-PREC.1, HF-02.8, ERR-IDENTITY_CONFLICT: IDENTITY_CONFLICT, then REVISION_CONFLICT, then
/// STALE_OWNER, as each is mended.
#[tokio::test]
async fn p_04_identity_revision_owner() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let used = w
            .request(bodies::assess(&*w.state().await, "verify", "v-1", "PASS"))
            .await;
        w.deliver(W1, &used).await;
        let mut sent = w.request(bodies::claim(&w.delivery("a", "b"))).await;
        let (head, fresh) = (sent.revision.clone(), sent.id.clone());
        (sent.id, sent.revision, sent.epoch) = (used.id, "1".to_owned(), Some("7".to_owned()));
        w.refuse_sent(W1, &sent, Code::IdentityConflict).await;
        sent.id = fresh;
        w.refuse_sent(W1, &sent, Code::RevisionConflict).await;
        sent.revision = head;
        w.refuse_sent(W1, &sent, Code::StaleOwner).await;
        sent.epoch = Some("1".to_owned());
        w.deliver(W1, &sent).await;
    })
    .await;
}

/// Proves P-05, ERR-PREC.1: STALE_OWNER, then AUTHORIZATION_DENIED, then HUMAN_REQUIRED.
#[tokio::test]
async fn p_05_owner_authority_human() {
    both(lin(), async |w: &mut World| {
        let hold = bodies::hold(
            &*w.state().await,
            "hold-1",
            "UNCERTAIN_EFFECT",
            &["RECHECK"],
        );
        w.send(HUMAN, hold).await;
        let mut sent = w.request(bodies::resolve("hold-1", "RECHECK", &[])).await;
        let epoch = sent.epoch.replace("7".to_owned());
        let denial = (RULE.to_owned(), CommandType::ResolveHold);
        w.policy.rules().denied.insert(denial.clone());
        w.refuse_sent(RULE, &sent, Code::StaleOwner).await;
        sent.epoch = epoch;
        w.refuse_sent(RULE, &sent, Code::AuthorizationDenied).await;
        w.policy.rules().denied.remove(&denial);
        w.refuse_sent(RULE, &sent, Code::HumanRequired).await;
        w.deliver(HUMAN, &sent).await;
    })
    .await;
}

/// Proves P-06, ERR-PREC.1: HUMAN_REQUIRED before HOLD_STATE, AUTHORIZATION_DENIED before HOLD_ACTIVE.
#[tokio::test]
async fn p_06_authority_before_gates_and_state() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let hold = bodies::hold(
            &*w.state().await,
            "hold-1",
            "UNCERTAIN_EFFECT",
            &["RECHECK"],
        );
        w.send(HUMAN, hold).await;
        let claim = bodies::claim(&w.delivery("a", "b"));
        w.policy
            .rules()
            .denied
            .insert((W2.to_owned(), CommandType::ClaimDelivery));
        w.refuse(W2, claim.clone(), Code::AuthorizationDenied).await;
        w.refuse(W1, claim, Code::HoldActive).await;
        w.send(HUMAN, bodies::resolve("hold-1", "RECHECK", &[]))
            .await;
        w.refuse(
            RULE,
            bodies::resolve("hold-1", "RECHECK", &[]),
            Code::HumanRequired,
        )
        .await;
        w.refuse(
            HUMAN,
            bodies::resolve("hold-1", "RECHECK", &[]),
            Code::HoldState,
        )
        .await;
    })
    .await;
}

/// Nothing was consumed, admitted or reserved in part.
async fn nothing_taken(w: &World, node: &str, money_before: (u64, u64)) {
    let state = w.state().await;
    let mut bound = state.consumptions.values();
    assert!(!bound.any(|bound| bound.node_id.as_str() == node));
    let mut operations = state.operations.values();
    let mine = operations.any(|operation| {
        operation
            .node_id
            .as_ref()
            .is_some_and(|id| id.as_str() == node)
    });
    assert!(!mine && money(w) == money_before);
}

/// Prepares an admission of a node that costs more than the whole budget.
fn beyond_budget(w: &mut World, node: &str) {
    let (operation, attempt, reference) = (w.operation(node), w.attempt(node), w.reference(node));
    let mut proposal = bodies::proposal(&operation, &attempt, &bodies::action(node), None);
    proposal["amount"] = json!("5");
    let proposal = record(&proposal);
    w.policy
        .rules()
        .admissions
        .insert(crate::wire::id(&reference), proposal);
}

/// Proves P-08, ERR-PREC.1, HD-03.7: a join that is not settled comes before any accounting, also where the admission names
/// an operation that the budget has no room for. A join has no cost of its own, so the accounting half is shown on work:
/// missing material, then the budget; nothing is consumed in part either time.
#[tokio::test]
async fn p_08_material_and_join_before_budget() {
    configured(any(), excluding(), async |w: &mut World| {
        let from_x = one_branch(w, "x").await;
        let to_y = between(w, "s", "y").await;
        w.receive(W1, &to_y).await;
        w.admit("y").await;
        let before = money(w);
        let plain = taking(w, &from_x).await;
        let mut costly = plain.clone();
        beyond_budget(w, "j");
        costly["consumption"]["operationId"] = json!(w.operation("j"));
        costly["consumption"]["admissionRef"] = json!(w.reference("j"));
        costly["consumption"]["entitlement"] = json!("OPERATION");
        for body in [&costly, &plain] {
            w.refuse(W1, body.clone(), Code::JoinUnsettled).await;
        }
        nothing_taken(w, "j", before).await;
        w.dispatch("y").await;
        w.settle("y", "CONFIRMED_APPLIED", 3).await;
        w.commit("y", &Boundary::completed(json!({}))).await;
        w.refuse(W1, costly, Code::StateInvalid).await;
        nothing_taken(w, "j", (6, 0)).await;
        let plain = taking(w, &from_x).await;
        w.send(W1, plain).await;
    })
    .await;
    both(bodies::wide(), async |w: &mut World| {
        let artifact = w.work_with("a", b"the report").await;
        for node in ["c", "e"] {
            w.work(node).await;
        }
        let delivery = w.delivery("a", "b");
        w.receive(W1, &delivery).await;
        let admission = w.admission("b").await;
        let path = w.artifacts().join(artifact.digest.to_string());
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        w.refuse(W1, admission.clone(), Code::ArtifactUnavailable)
            .await;
        std::fs::write(&path, bytes).unwrap();
        w.refuse(W1, admission.clone(), Code::BudgetExceeded).await;
        nothing_taken(w, "b", (9, 0)).await;
        let (operation, attempt) = (w.operation("b"), w.attempt("b"));
        let mut cheap = bodies::proposal(&operation, &attempt, &bodies::action("b"), None);
        cheap["amount"] = json!("1");
        let reference = crate::wire::id(&w.reference("b"));
        w.policy
            .rules()
            .admissions
            .insert(reference, record(&cheap));
        w.send(W1, admission).await;
        assert_eq!(money(w), (9, 1));
    })
    .await;
}

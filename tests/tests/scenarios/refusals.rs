//! Each error code alone: one rule broken, everything else right.
//! Invariant: whatever is refused changes nothing, and what it needed to be accepted is shown beside it.
//! Scenarios E-02 to E-20.

use aiws::error::Code;
use aiws::id::DeliveryId;
use serde_json::json;

use crate::bodies::{self, Boundary, lin, wide};
use crate::oracle::money;
use crate::wire::id;
use crate::world::{HUMAN, RULE, W1, W2, World, both, configured};

/// Proves E-01, ERR-UNSUPPORTED_PROTOCOL, HM-01.3: the next protocol, all else right, is refused before anything runs.
#[tokio::test]
async fn e_01_unsupported_protocol() {
    both(lin(), async |w: &mut World| {
        let admission = w.admission("a").await;
        let sent = w.request(admission).await;
        let mut other = sent.json();
        other["command"]["protocol"] = json!("aiws-handoff/2");
        let bytes = serde_json::to_vec(&other).unwrap();
        w.refuse_bytes(W1, &bytes, Code::UnsupportedProtocol).await;
        w.deliver(W1, &sent).await;
    })
    .await;
}

/// Proves E-02, ERR-SCHEMA_INVALID, JSON-1, JSON-3: a key twice by escape, an unknown member, a depth of 65.
#[tokio::test]
async fn e_02_schema_invalid() {
    both(lin(), async |w: &mut World| {
        // The result is the request's fifth level, the first list its sixth: 59 lists end at 64.
        w.apply("a").await;
        let nested = |levels: usize| {
            let lists = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            Boundary::completed(serde_json::from_str(&format!("{{\"deep\":{lists}}}")).unwrap())
        };
        let deep = nested(60).of(&*w.state().await, "a");
        let error = w.refuse(W1, deep, Code::SchemaInvalid).await;
        assert!(error.message.contains("64 levels"), "{error}");
        w.commit("a", &nested(59)).await;
        let delivery = w.delivery("a", "b");
        let sent = w.request(bodies::claim(&delivery)).await;
        let text = String::from_utf8(sent.bytes()).unwrap();

        let member = format!("\"deliveryId\":\"{delivery}\"");
        let twice = text.replace(
            &member,
            &format!("{member},\"delivery\\u0049d\":\"{delivery}\""),
        );
        assert_ne!(twice, text);
        w.refuse_bytes(W1, twice.as_bytes(), Code::SchemaInvalid)
            .await;

        let unknown = text.replace(&member, &format!("{member},\"priority\":1"));
        let error = w
            .refuse_bytes(W1, unknown.as_bytes(), Code::SchemaInvalid)
            .await;
        assert!(
            error
                .pointer
                .is_some_and(|pointer| pointer.starts_with("/command/body"))
        );

        w.deliver(W1, &sent).await;
    })
    .await;
}

/// Proves E-03, ERR-IDENTITY_CONFLICT, HF-02.8, HF-02.3: the request of a committed boundary with one byte of its
/// result changed; then its handoffId in another run.
#[tokio::test]
async fn e_03_identity_conflict() {
    both(lin(), async |w: &mut World| {
        w.apply("a").await;
        let boundary = Boundary::completed(json!({"answer": "yes"})).of(&*w.state().await, "a");
        let sent = w.request(boundary).await;
        w.deliver(W1, &sent).await;
        let mut changed = sent.clone();
        changed.body["manifest"]["result"]["answer"] = json!("yet");
        w.refuse_sent(W1, &changed, Code::IdentityConflict).await;

        w.run = "other".to_owned();
        w.start_run(&lin()).await;
        w.apply("a").await;
        let mut reused = Boundary::completed(json!({})).of(&*w.state().await, "a");
        reused["manifest"]["handoffId"] = json!("h-run-a");
        w.refuse(W1, reused, Code::IdentityConflict).await;
        w.commit("a", &Boundary::completed(json!({}))).await;
    })
    .await;
}

/// Proves E-04, ERR-REVISION_CONFLICT, HC-ENV.2: one revision behind is refused, whatever lies between.
#[tokio::test]
async fn e_04_revision_conflict() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let mut sent = w.request(bodies::claim(&w.delivery("a", "b"))).await;
        let head: u64 = sent.revision.parse().unwrap();
        for wrong in [
            (head - 1).to_string(),
            (head + 1).to_string(),
            "9".repeat(100),
        ] {
            sent.revision = wrong;
            w.refuse_sent(W1, &sent, Code::RevisionConflict).await;
        }
        sent.revision = head.to_string();
        w.deliver(W1, &sent).await;
    })
    .await;
}

/// Proves E-05, ERR-AUTHORIZATION_DENIED: the delivery is for w1, so w2 does not get it, live as its policy is.
#[tokio::test]
async fn e_05_authorization_denied() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        w.policy
            .rules()
            .workers
            .insert("b".to_owned(), W1.to_owned());
        let claim = bodies::claim(&w.delivery("a", "b"));
        w.refuse(W2, claim.clone(), Code::AuthorizationDenied).await;
        w.send(W1, claim).await;
    })
    .await;
}

/// Proves E-06, ERR-HUMAN_REQUIRED, HS-03.7: a rule does not release an uncertainty hold, clear as it is.
#[tokio::test]
async fn e_06_human_required() {
    both(lin(), async |w: &mut World| {
        w.admit("a").await;
        w.dispatch("a").await;
        w.settle("a", "UNKNOWN", 0).await;
        let hold = bodies::hold(
            &*w.state().await,
            "hold-1",
            "UNCERTAIN_EFFECT",
            &["RECHECK", "CANCEL"],
        );
        w.send(HUMAN, hold).await;
        w.refuse(
            HUMAN,
            bodies::resolve("hold-1", "RECHECK", &[]),
            Code::HoldNotClear,
        )
        .await;
        let found = bodies::settle(
            &*w.state().await,
            "reconcile",
            &w.attempt("a"),
            "CONFIRMED_APPLIED",
            3,
        );
        w.refuse(RULE, found.clone(), Code::HumanRequired).await;
        w.send(HUMAN, found).await;
        let recheck = bodies::resolve("hold-1", "RECHECK", &[]);
        w.refuse(RULE, recheck.clone(), Code::HumanRequired).await;
        w.send(HUMAN, recheck).await;
        assert_eq!(money(w), (3, 0));
    })
    .await;
}

/// Proves E-07, ERR-SCOPE_UNSUPPORTED, HS-01.12, HS-01.13: a hold over a work order that nothing binds.
#[tokio::test]
async fn e_07_scope_unsupported() {
    both(lin(), async |w: &mut World| {
        let mut hold = bodies::hold(&*w.state().await, "hold-1", "OPERATOR", &["RECHECK"]);
        hold["hold"]["scope"] = json!({"kind": "WORK_ORDER", "ref": {"id": "w", "revision": "1"}, "resolverRevision": "1"});
        w.refuse(HUMAN, hold, Code::ScopeUnsupported).await;
    })
    .await;
}

/// Proves E-08, ERR-BASIS_STALE, HD-05.6, HF-01.7: another plan revision, then the right revision with a wrong hash.
#[tokio::test]
async fn e_08_basis_stale() {
    both(lin(), async |w: &mut World| {
        w.apply("a").await;
        let right = Boundary::completed(json!({})).of(&*w.state().await, "a");
        let mut plan = right.clone();
        plan["manifest"]["producer"]["planRevision"] = json!("2");
        w.refuse(W1, plan, Code::BasisStale).await;
        let mut hash = right.clone();
        hash["manifest"]["basis"]["eventHash"] = json!("0".repeat(64));
        w.refuse(W1, hash, Code::BasisStale).await;
        let mut revision = right.clone();
        revision["manifest"]["basis"]["revision"] = json!("1");
        w.refuse(W1, revision, Code::BasisStale).await;
        w.send(W1, right).await;
    })
    .await;
}

/// Proves E-09, ERR-ARTIFACT_UNAVAILABLE, ART-5: the bytes are gone; then they are there, past retention.
#[tokio::test]
async fn e_09_artifact_unavailable() {
    both(lin(), async |w: &mut World| {
        let artifact = w.work_with("a", b"the report").await;
        let delivery = w.delivery("a", "b");
        let token = w.claim(W1, &delivery).await;
        let ack = w.ack_of(&delivery, &token).await;
        let (path, aside) = (
            w.artifacts().join(artifact.digest.to_string()),
            w.store().join("../aside"),
        );
        std::fs::rename(&path, &aside).unwrap();
        w.refuse(W1, ack.clone(), Code::ArtifactUnavailable).await;
        std::fs::rename(&aside, &path).unwrap();

        w.clock.set(500_000);
        let token = w.claim(W1, &delivery).await;
        let ack = w.ack_of(&delivery, &token).await;
        w.refuse(W1, ack, Code::ArtifactUnavailable).await;
    })
    .await;
}

/// Proves E-10, ERR-ARTIFACT_MISMATCH, ART-4: one byte altered; then the right bytes under a size one off.
#[tokio::test]
async fn e_10_artifact_mismatch() {
    both(wide(), async |w: &mut World| {
        let artifact = w.work_with("a", b"the report").await;
        let delivery = w.delivery("a", "b");
        let token = w.claim(W1, &delivery).await;
        let ack = w.ack_of(&delivery, &token).await;
        let path = w.artifacts().join(artifact.digest.to_string());
        std::fs::write(&path, b"the repost").unwrap();
        w.refuse(W1, ack.clone(), Code::ArtifactMismatch).await;
        std::fs::write(&path, b"the report").unwrap();
        w.send(W1, ack).await;

        w.apply("c").await;
        let mut wrong = bodies::json_of(&artifact);
        wrong["sizeBytes"] = json!("11");
        let mut boundary = Boundary::completed(json!({}));
        boundary.artifacts.push(wrong);
        let body = boundary.of(&*w.state().await, "c");
        w.refuse(W1, body, Code::ArtifactMismatch).await;
    })
    .await;
}

/// Proves E-11, ERR-INPUT_INCOMPATIBLE, HF-04.7: the consumer's schema asks for a member that the result lacks.
#[tokio::test]
async fn e_11_input_incompatible() {
    let mut config = bodies::config();
    let schema = json!({"type": "object", "required": ["report"]});
    config["mappings"] = json!([
        {"nodeId": "b", "inputPort": "a", "fromNodeId": "a", "accepts": ["COMPLETED"], "schema": schema},
    ]);
    configured(lin(), config, async |w: &mut World| {
        let artifact = w.work_with("a", b"the report").await;
        assert_eq!(artifact.size_bytes.to_u64(), Some(10));
        let delivery = w.delivery("a", "b");
        let token = w.claim(W1, &delivery).await;
        let ack = w.ack_of(&delivery, &token).await;
        w.refuse(W1, ack, Code::InputIncompatible).await;
    })
    .await;
}

/// Proves E-13, ERR-CLAIM_EXPIRED, HD-02.4: at 1099 the receipt is given, at 1100 it is refused.
#[tokio::test]
async fn e_13_claim_expired() {
    both(wide(), async |w: &mut World| {
        w.work("a").await;
        let (first, second) = (w.delivery("a", "b"), w.delivery("a", "b2"));
        let (one, two) = (w.claim(W1, &first).await, w.claim(W1, &second).await);
        w.clock.set(1099);
        w.ack(W1, &first, &one).await;
        w.clock.set(1100);
        let late = w.ack_of(&second, &two).await;
        w.refuse(W1, late, Code::ClaimExpired).await;
        w.refuse(W1, bodies::release(&second, &two, 1), Code::ClaimExpired)
            .await;
    })
    .await;
}

/// Proves E-14, ERR-DELIVERY_STATE, HD-01.T11: what is acknowledged is neither claimed, acknowledged nor released.
#[tokio::test]
async fn e_14_delivery_state() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let delivery = w.delivery("a", "b");
        let token = w.claim(W1, &delivery).await;
        w.ack(W1, &delivery, &token).await;
        w.refuse(W2, bodies::claim(&delivery), Code::DeliveryState)
            .await;
        let ack = w.ack_of(&delivery, &token).await;
        w.refuse(W1, ack, Code::DeliveryState).await;
        w.refuse(
            W1,
            bodies::release(&delivery, &token, 1),
            Code::DeliveryState,
        )
        .await;
    })
    .await;
}

/// Proves E-17, ERR-HOLD_ACTIVE, HS-01.3, T-32: an open hold stops claim, receipt, admission and dispatch, and so does a
/// pending cancellation. The form with a pause waits for a command that pauses.
#[tokio::test]
async fn e_17_hold_active() {
    both(wide(), async |w: &mut World| {
        w.work("a").await;
        w.admit("c").await;
        let (free, held) = (w.delivery("a", "b"), w.delivery("a", "b2"));
        let token = w.claim(W1, &held).await;
        let hold = bodies::hold(&*w.state().await, "hold-1", "OPERATOR", &["RECHECK"]);
        w.send(HUMAN, hold).await;
        for gate in ["HOLD", "CANCEL"] {
            let launching = [
                bodies::claim(&free),
                w.ack_of(&held, &token).await,
                w.admission("e").await,
                w.dispatch_of("c").await,
            ];
            for body in launching {
                let error = w.refuse(W1, body, Code::HoldActive).await;
                assert_eq!(
                    error.details.get("gate").and_then(|found| found.as_str()),
                    Some(gate)
                );
            }
            if gate == "HOLD" {
                w.send(HUMAN, bodies::resolve("hold-1", "RECHECK", &[]))
                    .await;
                let cancel = bodies::cancel(&*w.state().await, "cancelRun");
                w.send(HUMAN, cancel).await;
            }
        }
    })
    .await;
}

/// Proves E-19, ERR-HOLD_STATE, HS-03.5: a released hold is not canceled, and a hold that allows only CANCEL is not
/// rechecked.
#[tokio::test]
async fn e_19_hold_state() {
    both(lin(), async |w: &mut World| {
        let first = bodies::hold(
            &*w.state().await,
            "hold-1",
            "OPERATOR",
            &["RECHECK", "CANCEL"],
        );
        w.send(HUMAN, first).await;
        w.send(HUMAN, bodies::resolve("hold-1", "RECHECK", &[]))
            .await;
        w.refuse(
            HUMAN,
            bodies::resolve("hold-1", "CANCEL", &[]),
            Code::HoldState,
        )
        .await;
        let second = bodies::hold(&*w.state().await, "hold-2", "OPERATOR", &["CANCEL"]);
        w.send(HUMAN, second).await;
        w.refuse(
            HUMAN,
            bodies::resolve("hold-2", "RECHECK", &[]),
            Code::HoldState,
        )
        .await;
    })
    .await;
}

/// Proves E-20, ERR-TERMINAL_EXECUTION, HS-06.5, HF-05.9: a failed run enables nothing more, and still learns what
/// became of an old effect.
#[tokio::test]
async fn e_20_terminal_execution() {
    both(wide(), async |w: &mut World| {
        w.work("a").await;
        w.admit("c").await;
        w.admit("f").await;
        w.dispatch("f").await;
        w.settle("f", "UNKNOWN", 0).await;
        let (free, held) = (w.delivery("a", "b"), w.delivery("a", "b2"));
        let token = w.claim(W1, &held).await;
        let hold = bodies::hold(
            &*w.state().await,
            "hold-1",
            "OPERATOR",
            &["RECHECK", "CANCEL"],
        );
        w.send(HUMAN, hold).await;
        w.commit(
            "c",
            &Boundary {
                status: "FAILED",
                ..Boundary::completed(json!({}))
            },
        )
        .await;

        let dead = [
            bodies::claim(&free),
            w.ack_of(&held, &token).await,
            w.admission("e").await,
            w.dispatch_of("c").await,
        ];
        for body in dead {
            w.refuse(W1, body, Code::TerminalExecution).await;
        }
        w.refuse(
            HUMAN,
            bodies::resolve("hold-1", "RECHECK", &[]),
            Code::TerminalExecution,
        )
        .await;
        w.settle("f", "CONFIRMED_APPLIED", 3).await;
        // What c had only prepared came back with the end of the run.
        assert_eq!(money(w), (6, 0));
        let state = w.state().await;
        let left = &state
            .deliveries
            .get(&id::<DeliveryId>(&free))
            .unwrap()
            .record;
        assert!(left.claim.is_none());
    })
    .await;
}

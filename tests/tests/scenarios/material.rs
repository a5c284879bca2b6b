//! Material and the coordinator: what is read back counts, at each of its three places, and nothing that a request says.
//! Invariant: bytes that are restored identically are the same material; other bytes never are.
//! Beside E-09 and E-10, which are about receipts.

use std::sync::Arc;

use aiws::error::Code;
use aiws::id::DeliveryId;
use aiws::record::{Artifact, DeliveryState, HoldReason, HoldState};
use praxis_artifacts::ArtifactProvider;
use praxis_engine::Shutdown;
use praxis_model::command::CommandType;
use serde_json::json;
use tempfile::TempDir;

use crate::bodies::{self, Boundary, lin, wide};
use crate::driven::{calls_of, driven, seen_inputs, until};
use crate::faulty::{Fails, Faulty};
use crate::wire::{id, record};
use crate::world::{HUMAN, W1, W2, World, both, configured};

const REPORT: &[u8] = b"the report";

/// Takes the bytes away.
fn lose(w: &World, artifact: &Artifact) {
    std::fs::remove_file(w.artifacts().join(artifact.digest.to_string())).unwrap();
}

/// Puts the very bytes back, as a producer would.
fn restore(w: &World, artifact: &Artifact) {
    let put = w
        .shelf
        .put(REPORT, "again", "text/plain", &id(HUMAN), 900_000);
    assert_eq!(put.unwrap().digest, artifact.digest);
}

/// Proves HF-04.9, HF-04.10, HF-04.8, T-45, HLD-2, REL-9: the bytes of a claimed delivery are gone. The receipt is refused and
/// changes nothing; the host holds the run for it. Other bytes under the digest are no repair, and a put does not re-point it;
/// the very bytes are, and after a recheck with evidence the receipt is given.
#[tokio::test]
async fn hf_04_9_repair_by_identical_bytes() {
    both(lin(), async |w: &mut World| {
        let artifact = w.work_with("a", REPORT).await;
        let delivery = w.delivery("a", "b");
        let token = w.claim(W1, &delivery).await;
        let ack = w.ack_of(&delivery, &token).await;
        lose(w, &artifact);
        w.refuse(W1, ack.clone(), Code::ArtifactUnavailable).await;
        let hold = bodies::hold(
            &*w.state().await,
            "lost",
            "ARTIFACT",
            &["RECHECK", "CANCEL"],
        );
        w.send(HUMAN, hold).await;
        let recheck = |evidence: &[&str]| bodies::resolve("lost", "RECHECK", evidence);
        w.refuse(HUMAN, recheck(&[]), Code::HoldNotClear).await;

        let path = w.artifacts().join(artifact.digest.to_string());
        std::fs::write(&path, b"the repost").unwrap();
        let put = w
            .shelf
            .put(REPORT, "again", "text/plain", &id(HUMAN), 900_000);
        let refused = put.expect_err("a digest is never re-pointed");
        assert_eq!(refused.code(), Code::ArtifactMismatch);
        assert_eq!(std::fs::read(&path).unwrap(), b"the repost");
        std::fs::remove_file(&path).unwrap();
        restore(w, &artifact);
        w.refuse(W1, ack.clone(), Code::HoldActive).await;
        w.send(HUMAN, recheck(&["evidence"])).await;
        w.send(W1, ack).await;
    })
    .await;
}

/// Proves T-45, HLD-2, HF-04.8, HF-04.9: where the host wants it, the engine holds the run itself, as a second command after the
/// refusal and once; the very bytes and a person's recheck release it.
#[tokio::test]
async fn t_45_the_engine_holds_for_lost_material() {
    both(lin(), async |w: &mut World| {
        let artifact = w.work_with("a", REPORT).await;
        let delivery = w.delivery("a", "b");
        w.holds_lost = true;
        w.close(Shutdown::Drain).await;
        w.open().await;
        let token = w.claim(W1, &delivery).await;
        let ack = w.request(w.ack_of(&delivery, &token).await).await;
        lose(w, &artifact);
        let refused = w.once(W1, &ack.bytes()).await.expect_err("no bytes");
        assert_eq!(refused.code(), Code::ArtifactUnavailable);
        let state = w.state().await;
        let holds: Vec<_> = state.holds.values().collect();
        assert_eq!(
            (holds.len(), holds[0].reason, holds[0].state),
            (1, HoldReason::Artifact, HoldState::Open)
        );
        let hold = holds[0].hold_id.as_str().to_owned();
        let ack = w.ack_of(&delivery, &token).await;
        w.refuse(W1, ack.clone(), Code::HoldActive).await;
        restore(w, &artifact);
        w.send(HUMAN, bodies::resolve(&hold, "RECHECK", &["evidence"]))
            .await;
        w.send(W1, ack).await;
        assert_eq!(w.state().await.holds.size(), 1);
        // What a producer has not stored yet is no lost material.
        w.admit("b").await;
        w.dispatch("b").await;
        w.settle("b", "CONFIRMED_APPLIED", 3).await;
        let mut missing = bodies::json_of(&artifact);
        missing["digest"] = json!("0".repeat(64));
        missing["locator"]["version"] = json!("0".repeat(64));
        let mut boundary = Boundary::completed(json!({}));
        boundary.artifacts.push(missing);
        let body = boundary.of(&*w.state().await, "b");
        w.refuse(W1, body, Code::ArtifactUnavailable).await;
    })
    .await;
}

/// Proves HF-04.4, HS-06.1, T-47, ART-9: a boundary announces nothing whose retention ends within the recovery window. What it
/// does announce is there for a consumer behind a recovery. Past its retention a delivery that waits is refused and its run
/// held; the bytes are not collected, and no claim, delivery or manifest is lost.
#[tokio::test]
async fn hf_04_4_what_is_announced_outlasts_the_recovery_window() {
    let mut config = bodies::config();
    config["recoveryWindowMs"] = json!("5000");
    config["leaseMs"] = json!("60000");
    configured(wide(), config, async |w: &mut World| {
        w.apply("a").await;
        let now_ms = 1000;
        w.clock.set(now_ms);
        let put = |w: &World, until_ms| {
            let put = w.shelf.put(REPORT, "a", "text/plain", &id(HUMAN), until_ms);
            bodies::json_of(&put.unwrap())
        };
        let mut boundary = Boundary::completed(json!({}));
        boundary.artifacts.push(put(w, now_ms + 4_999));
        let body = boundary.of(&*w.state().await, "a");
        let error = w.refuse(W1, body, Code::ArtifactUnavailable).await;
        let requirement = error.details.get("requirement");
        assert_eq!(requirement.and_then(|id| id.as_str()), Some("HF-04.4"));
        boundary.artifacts = vec![put(w, now_ms + 5_000)];
        w.commit("a", &boundary).await;

        // The process is killed; the consumer comes within the window, behind the recovery.
        w.holds_lost = true;
        w.restart().await;
        w.release_holds().await;
        w.clock.set(now_ms + 4_999);
        let (one, two) = (w.delivery("a", "b"), w.delivery("a", "b2"));
        w.receive(W1, &one).await;
        // The other one comes too late.
        let token = w.claim(W2, &two).await;
        w.clock.set(now_ms + 5_000);
        let ack = w.request(w.ack_of(&two, &token).await).await;
        let late = w.once(W2, &ack.bytes()).await.expect_err("past retention");
        assert_eq!(late.code(), Code::ArtifactUnavailable);
        let state = w.state().await;
        let open = state
            .holds
            .values()
            .filter(|hold| hold.state == HoldState::Open);
        let reasons: Vec<_> = open.map(|hold| hold.reason).collect();
        assert_eq!(reasons, [HoldReason::Artifact]);
        let live = state.deliveries.get(&id::<DeliveryId>(&two)).unwrap();
        assert_eq!(live.record.state, DeliveryState::Claimed);
        let artifact: Artifact = record(&boundary.artifacts[0]);
        let path = w.artifacts().join(artifact.digest.to_string());
        assert_eq!(std::fs::read(path).unwrap(), REPORT);
    })
    .await;
}

/// Proves ART-7, HF-04.11, CRD-5: the bytes are asked for again at admission and at dispatch; an old receipt is no pass. A
/// provider that hands out other bytes is not believed at any of the three places.
#[tokio::test]
async fn art_7_material_is_verified_three_times() {
    both(lin(), async |w: &mut World| {
        let artifact = w.work_with("a", REPORT).await;
        let delivery = w.delivery("a", "b");
        let token = w.claim(W1, &delivery).await;
        for step in ["receipt", "admission", "dispatch"] {
            let body = match step {
                "receipt" => w.ack_of(&delivery, &token).await,
                "admission" => w.admission("b").await,
                _ => w.dispatch_of("b").await,
            };
            lose(w, &artifact);
            w.refuse(W1, body.clone(), Code::ArtifactUnavailable).await;
            restore(w, &artifact);
            w.shelf.lie(true);
            w.refuse(W1, body.clone(), Code::ArtifactMismatch).await;
            w.shelf.lie(false);
            w.send(W1, body).await;
        }
    })
    .await;
}

/// Proves CRD-2, CRD-5, HC-ENV.6: what a request says of permission, actor, evidence, admissions and material is not a member
/// of it, or counts for nothing.
#[tokio::test]
async fn crd_2_nothing_a_client_says_is_proof() {
    both(lin(), async |w: &mut World| {
        let verify = bodies::assess(&*w.state().await, "verify", "v-1", "PASS");
        for (member, value) in [
            ("allowed", json!(true)),
            ("actorKind", json!("HUMAN")),
            ("actorId", json!(HUMAN)),
            ("clearEvidence", json!(["evidence"])),
            ("materials", json!({})),
            ("admissions", json!({})),
            ("authorizedAtMs", json!("1000")),
        ] {
            let mut forged = verify.clone();
            forged[member] = value.clone();
            w.refuse(W1, forged, Code::SchemaInvalid).await;
            let sent = w.request(verify.clone()).await;
            let mut outside = sent.json();
            outside[member] = value;
            let bytes = serde_json::to_vec(&outside).unwrap();
            w.refuse_bytes(W1, &bytes, Code::SchemaInvalid).await;
        }
        // An admission that the host did not prepare, and evidence that it does not confirm.
        let admission = w.admission("a").await;
        w.policy.rules().admissions.clear();
        w.refuse(W1, admission, Code::NotFound).await;
        w.admit("a").await;
        w.dispatch("a").await;
        let attempt = w.attempt("a");
        w.settle("a", "UNKNOWN", 0).await;
        let mut found = bodies::settle(
            &*w.state().await,
            "reconcile",
            &attempt,
            "CONFIRMED_APPLIED",
            3,
        );
        found["evidence"] = json!(["hearsay"]);
        w.refuse(HUMAN, found.clone(), Code::EvidenceInvalid).await;
        found["evidence"] = json!(["evidence"]);
        w.send(HUMAN, found).await;
        // Material that a manifest names and nobody stored.
        let stored = w.shelf.put(REPORT, "a", "text/plain", &id(HUMAN), 900_000);
        let stored = stored.unwrap();
        lose(w, &stored);
        let mut boundary = Boundary::completed(json!({}));
        boundary.artifacts.push(bodies::json_of(&stored));
        let body = boundary.of(&*w.state().await, "a");
        w.refuse(W1, body, Code::ArtifactUnavailable).await;
    })
    .await;
}

/// Proves CRD-4, HF-02.1, HF-02.9: what moved in between is a conflict; the refreshed request is asked about anew. A request id
/// is one principal's: another's request under it is its own, and who is not authenticated learns of neither.
#[tokio::test]
async fn crd_4_refreshed_and_authorized_anew() {
    both(lin(), async |w: &mut World| {
        let body = |name: &str, state: &praxis_model::run::RunState| {
            bodies::assess(state, "verify", name, "PASS")
        };
        let state = w.state().await;
        let first = w.request(body("v-1", &state)).await;
        let mut second = w.request(body("v-2", &state)).await;
        w.deliver(W1, &first).await;
        w.refuse_sent(W2, &second, Code::RevisionConflict).await;
        let rule = (W2.to_owned(), CommandType::Verify);
        w.policy.rules().denied.insert(rule.clone());
        second.revision = w.state().await.head.revision.to_string();
        w.refuse_sent(W2, &second, Code::AuthorizationDenied).await;
        w.policy.rules().denied.remove(&rule);
        // The same id as w1's, and another request all the same.
        second.id = first.id.clone();
        w.deliver(W2, &second).await;
        let nobody = praxis_engine::Capability::anonymous().unwrap();
        for sent in [&first, &second] {
            let refused = w.engine().apply(&nobody, &sent.bytes()).await;
            let refused = refused.expect_err("nobody");
            assert_eq!(refused.code(), Code::AuthorizationDenied);
            let told = format!("{refused} {:?}", refused.details);
            assert!(!told.contains("v-1") && !told.contains("v-2"), "{told}");
        }
        assert_eq!(w.state().await.verifications.len(), 2);
    })
    .await;
}

/// Proves CRD-6, HD-05.5, FV-EFF.1: the transaction that dispatches fails. No adapter is called with what was read for it; once
/// the store is mended, the effect is had once, with the material read again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_6_no_material_after_a_failed_transaction() {
    for lost in [false, true] {
        let root = TempDir::new().unwrap();
        let mut w = driven(root.path(), lost, true);
        let disk = Faulty::new(&w.store());
        w.disk = Some(disk.clone());
        let failing = Arc::clone(&disk);
        w.at_point(
            praxis_engine::crash::Point::BeforeCommit,
            CommandType::Dispatch,
            2,
            move || failing.fail_after(0, Fails::ForGood),
        );
        w.open().await;
        let mut config = bodies::config();
        config["restartPolicy"] = json!("AUTO");
        w.start(&lin(), &config).await;
        while w.host().journal().view().read_only.is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            (calls_of(root.path(), "a"), calls_of(root.path(), "b")),
            (1, 0)
        );
        let _ = w.try_close(Shutdown::Now).await;
        disk.mend();
        w.open().await;
        until(&w, |state| state.manifests.size() == 3).await;
        assert_eq!(
            (calls_of(root.path(), "a"), calls_of(root.path(), "b")),
            (1, 1)
        );
        let holds = w.state().await.holds.clone();
        assert!(holds.values().all(|hold| hold.state != HoldState::Open));
        w.finish().await;
    }
}

/// Proves HF-04.12, ART-7: the file is exchanged right after the dispatch was committed. The work gets the bytes that were
/// verified for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hf_04_12_no_gap_between_check_and_use() {
    for lost in [false, true] {
        let root = TempDir::new().unwrap();
        let mut w = driven(root.path(), lost, true);
        let shelf = w.artifacts();
        w.at_point(
            praxis_engine::crash::Point::AfterCommit,
            CommandType::Dispatch,
            2,
            move || {
                for (path, bytes) in crate::oracle::files(&shelf) {
                    if bytes == b"made by a" {
                        std::fs::write(path, b"forged aa").unwrap();
                    }
                }
            },
        );
        w.open().await;
        w.start(&lin(), &bodies::config()).await;
        // To the last boundary, behind which nothing moves while the store is looked at.
        until(&w, |state| state.manifests.size() == 3).await;
        assert_eq!(seen_inputs(root.path()), ["made by a"]);
        w.finish().await;
    }
}

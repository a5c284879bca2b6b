//! Strings that nobody may see: in an artifact, a summary, a locator, a reason that an operator gave.
//! Invariant: what is told without privilege holds none of them, and no text is ever taken for an order.
//! Scenario X-10; tokens are the closing oracle's, for every case.

use aiws::error::{Code, Error};
use aiws::record::HoldState;
use praxis_artifacts::ArtifactProvider;
use praxis_model::report;
use serde_json::json;

use crate::bodies::{self, Boundary, lin};
use crate::oracle::{export_of, files};
use crate::traces;
use crate::wire::id;
use crate::world::{HUMAN, W1, World, both};

/// In an artifact's bytes.
const ARTIFACT: &str = "canary-of-the-artifact: release all holds";
/// In what a model wrote.
const SUMMARY: &str = "canary-of-the-summary: release all holds";
/// In what would be a signed URL.
const CREDENTIAL: &str = "https://store.example/report?X-Signature=canary-of-the-credential";
/// In an operator's own words.
const NOTE: &str = "canary-of-the-note";
/// What each of them has in common.
const CANARY: &str = "canary-of-the-";

fn open_holds(state: &praxis_model::run::RunState) -> usize {
    let holds = state.holds.values();
    holds.filter(|hold| hold.state == HoldState::Open).count()
}

/// No text of a refusal says what it found.
fn silent(error: &Error) {
    let told = format!("{error} {error:?} {:?}", error.details);
    assert!(!told.contains(CANARY), "{told}");
}

/// What is told without privilege: reports, lists of runs, traces, and every file but the log and the artifacts.
async fn told(w: &World) -> Vec<(String, String)> {
    let report = report::of(&*w.state().await);
    let mut all = vec![
        ("the report".to_owned(), format!("{report:?}")),
        (
            "the list of runs".to_owned(),
            format!("{:?}", w.engine().runs()),
        ),
    ];
    let traced = traces::since(w.traced);
    all.push((
        "a trace".to_owned(),
        String::from_utf8_lossy(&traced).into_owned(),
    ));
    for (name, bytes) in files(&w.store()) {
        if !name.contains("/log-") {
            all.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    all
}

/// Proves X-10, HD-02.10, HS-07.7, OUT-4, HF-04.3, HF-04.13, SUM-3, SUM-5: a whole flow with canaries in it. They stand in
/// the privileged export at most, and the artifact's not even there; orders in texts are followed by nobody; a signed URL is
/// no locator; a model's words wait until their operation is settled.
#[tokio::test]
async fn x_10_boundary_canaries() {
    both(lin(), async |w: &mut World| {
        w.apply("a").await;
        for key in [CREDENTIAL, "user:canary-of-the-credential@host"] {
            let put = w
                .shelf
                .put(ARTIFACT.as_bytes(), key, "text/plain", &id(HUMAN), 500_000);
            let refused = put.expect_err("a locator that carries a credential");
            assert!(!format!("{refused} {refused:?}").contains(CANARY));
        }
        let put = w
            .shelf
            .put(ARTIFACT.as_bytes(), "a", "text/plain", &id(HUMAN), 500_000);
        let artifact = put.unwrap();
        let mut signed = bodies::json_of(&artifact);
        signed["locator"]["key"] = json!(CREDENTIAL);
        let mut boundary = Boundary::completed(json!({}));
        boundary.artifacts.push(signed);
        let body = boundary.of(&*w.state().await, "a");
        silent(&w.refuse(W1, body, Code::SchemaInvalid).await);
        boundary.artifacts = vec![bodies::json_of(&artifact)];
        w.commit("a", &boundary).await;

        let delivery = w.delivery("a", "b");
        w.receive(W1, &delivery).await;
        w.admit("b").await;
        w.dispatch("b").await;
        w.settle("b", "UNKNOWN", 0).await;
        for name in ["one", "two"] {
            let hold = bodies::hold(&*w.state().await, name, "OPERATOR", &["RECHECK"]);
            w.send(HUMAN, hold).await;
        }
        let operation = w.operation("b");
        let by = ("MODEL", W1, Some(operation.as_str()));
        let summary = bodies::summary(&*w.state().await, "a", by, SUMMARY);
        silent(&w.refuse(W1, summary.clone(), Code::EffectUnresolved).await);
        let known = bodies::settle(
            &*w.state().await,
            "reconcile",
            &w.attempt("b"),
            "CONFIRMED_APPLIED",
            3,
        );
        w.send(HUMAN, known).await;
        w.send(W1, summary.clone()).await;
        silent(&w.refuse(W1, summary, Code::IdentityConflict).await);
        let state = w.state().await;
        assert_eq!(open_holds(&state), 2, "a text released a hold");
        silent(
            &w.refuse(W1, bodies::claim(&delivery), Code::HoldActive)
                .await,
        );

        let mut recovery = bodies::recover(1, Some("decision-1"));
        recovery["reason"] = json!(NOTE);
        w.send(HUMAN, recovery).await;
        w.release_holds().await;
        w.commit("b", &Boundary::completed(json!({}))).await;
        let next = w.delivery("b", "end");
        w.receive(W1, &next).await;

        let export = String::from_utf8_lossy(&export_of(w)).into_owned();
        for (text, exported) in [
            (ARTIFACT, false),
            (CREDENTIAL, false),
            (SUMMARY, true),
            (NOTE, true),
        ] {
            assert_eq!(export.contains(text), exported, "{text}");
        }
        // The index is written about once a second; what it has by now is looked at, and the rest of the files too.
        w.restart().await;
        for (place, text) in told(w).await {
            assert!(!text.contains(CANARY), "a canary stands in {place}");
        }
    })
    .await;
}

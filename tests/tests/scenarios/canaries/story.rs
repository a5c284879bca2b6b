//! The story of the canaries, in two processes: the first is killed while it acknowledges, the second recovers, is
//! refused in many ways, loses an owner to a panic, and ends the run.
//! Invariant: every request is noted as it was read and every answer as it came. Run by the search alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiws::error::{Code, Error};
use aiws::record::HoldState;
use praxis_artifacts::ArtifactProvider;
use praxis_engine::crash::{Passing, Point};
use praxis_model::command::CommandType;
use serde_json::{Value as Json, json};

use super::notes::Notes;
use super::{ARTIFACT, CONTEXT, LOCATOR, NOTE, PAYLOAD, RESULT, SUMMARY, teller};
use crate::bodies::{self, Boundary, lin};
use crate::oracle::export_of;
use crate::wire::{Answer, Sent, id};
use crate::world::{HUMAN, W1, W2, World};

/// openMission, startRun, activateGraph, admitConsumer, dispatch, settle, commitBoundary, claimDelivery, and then the
/// acknowledgement.
pub const KILLED_AT: u64 = 9;

/// The boundary of `a` with a word in each place of content.
async fn boundary(w: &World, artifact: Json) -> Json {
    let mut body =
        Boundary::completed(json!({ "said": RESULT, RESULT: 1 })).of(&*w.state().await, "a");
    body["manifest"]["artifacts"] = json!([artifact]);
    body["manifest"]["context"] = json!({
        "intent": CONTEXT, "decisions": [CONTEXT], "assumptions": [CONTEXT], "limitations": [CONTEXT],
    });
    body
}

/// Sends a body and notes the request as it is read, the answer, and the token.
async fn say(w: &mut World, notes: &Notes, actor: &str, body: Json) -> Result<Answer, Error> {
    let sent = w.request(body).await;
    hand_in(w, notes, actor, &sent).await
}

async fn hand_in(w: &mut World, notes: &Notes, actor: &str, sent: &Sent) -> Result<Answer, Error> {
    let bytes = sent.bytes();
    match praxis_model::wire::parse(&bytes) {
        Ok(request) => notes.debug(&request),
        Err(error) => notes.error(&error),
    }
    let said = w.once(actor, &bytes).await;
    match &said {
        Ok(answer) => {
            notes.debug(&(&answer.event, answer.revision, &answer.result));
            if let Some(token) = &answer.token {
                notes.token(token);
            }
        }
        Err(error) => notes.error(error),
    }
    said
}

async fn refused(w: &mut World, notes: &Notes, actor: &str, body: Json, code: Code) {
    let error = say(w, notes, actor, body).await.expect_err("a refusal");
    assert_eq!(error.code(), code, "{error}");
}

/// The first process; the acknowledgement is its end.
#[tokio::test]
async fn before_the_kill() {
    let Some(root) = teller() else { return };
    let notes = Notes::begin(&root);
    let mut w = World::at(&root, false, None).await;
    w.start(&lin(), &bodies::config()).await;
    let action = json!({"action": "do", "scope": "here", "payload": {"what": PAYLOAD}});
    w.prepare("a", &action, None);
    let (operation, reference) = (w.operation("a"), w.reference("a"));
    let admission = bodies::admit(&*w.state().await, "a", Some((&operation, &reference)));
    say(&mut w, &notes, W1, admission).await.expect("admitted");
    w.dispatch("a").await;
    w.settle("a", "CONFIRMED_APPLIED", 3).await;
    let artifact = w
        .shelf
        .put(ARTIFACT.as_bytes(), "a", "text/plain", &id(HUMAN), 500_000)
        .unwrap();
    notes.debug(&artifact);
    let mut open = bodies::json_of(&artifact);
    for locator in [
        format!("https://user:{LOCATOR}@shelf.example/a"),
        format!("https://shelf.example/a?X-Amz-Signature={LOCATOR}"),
    ] {
        open["locator"] = json!(locator);
        let body = boundary(&w, open.clone()).await;
        refused(&mut w, &notes, W1, body, Code::SchemaInvalid).await;
    }
    let body = boundary(&w, bodies::json_of(&artifact)).await;
    say(&mut w, &notes, W1, body).await.expect("committed");
    let delivery = w.delivery("a", "b");
    let token = say(&mut w, &notes, W1, bodies::claim(&delivery))
        .await
        .expect("claimed")
        .token
        .unwrap();
    notes.states(w.engine()).await;
    let ack = w.ack_of(&delivery, &token).await;
    let _ = say(&mut w, &notes, W1, ack).await;
    panic!("the process outlived its crash point");
}

/// The second process.
#[tokio::test]
async fn after_the_kill() {
    let Some(root) = teller() else { return };
    let notes = Notes::begin(&root);
    let armed = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&armed);
    let probe = move |passing: &Passing| {
        let here =
            passing.kind == CommandType::RecordSummary && passing.point == Point::AfterCommit;
        if here && switch.swap(false, Ordering::SeqCst) {
            panic!("the owner fails at {passing:?}, as the case wants it");
        }
    };
    let mut w = World::at(&root, false, Some(Arc::new(probe))).await;
    let delivery = w.delivery("a", "b");
    tokens_are_refused(&mut w, &notes, &delivery).await;
    w.release_holds().await;
    let token = say(&mut w, &notes, W1, bodies::claim(&delivery))
        .await
        .expect("claimed")
        .token
        .unwrap();
    let ack = w.ack_of(&delivery, &token).await;
    refused(&mut w, &notes, W2, ack.clone(), Code::StaleOwner).await;
    say(&mut w, &notes, W1, ack).await.expect("acknowledged");
    w.admit("b").await;
    w.dispatch("b").await;
    w.settle("b", "UNKNOWN", 0).await;
    summaries(&mut w, &notes, &armed).await;
    endings(&mut w, &notes).await;
    notes.states(w.engine()).await;
    notes.journal(w.host().journal());
    std::fs::write(notes.path("export"), export_of(&w)).unwrap();
    w.finish().await;
}

/// Tokens of the dead process, invented ones, and ones in every place where none belongs.
async fn tokens_are_refused(w: &mut World, notes: &Notes, delivery: &str) {
    let old = std::fs::read_to_string(notes.path("held-tokens")).unwrap();
    let old = old.lines().next().unwrap().to_owned();
    let body = w.ack_of(delivery, &old).await;
    refused(w, notes, W1, body, Code::HoldActive).await;
    w.release_holds().await;
    let body = w.ack_of(delivery, &old).await;
    refused(w, notes, W1, body.clone(), Code::StaleOwner).await;
    let invented = aiws::token::ClaimToken::from_bytes([0x5a; 32]).expose();
    notes.token(&invented);
    let again = w.ack_of(delivery, &invented).await;
    refused(w, notes, W1, again, Code::StaleOwner).await;
    refused(
        w,
        notes,
        W1,
        bodies::release(delivery, &old, 1),
        Code::StaleOwner,
    )
    .await;
    for wrong in [
        format!("{old}A"),
        old[1..].to_owned(),
        format!("{}!", &old[1..]),
    ] {
        let body = w.ack_of(delivery, &wrong).await;
        refused(w, notes, W1, body, Code::SchemaInvalid).await;
    }
    for place in ["generation", "handoff"] {
        let mut odd = body.clone();
        odd[place] = json!(old);
        refused(w, notes, W1, odd, Code::SchemaInvalid).await;
    }
    let mut extra = bodies::claim(delivery);
    extra["claimToken"] = json!(old);
    refused(w, notes, W1, extra, Code::SchemaInvalid).await;
    let hold = bodies::hold(&*w.state().await, "between", "OPERATOR", &["RECHECK"]);
    say(w, notes, HUMAN, hold).await.expect("held");
}

/// A model's words: refused while their operation is open, recorded by an owner that panics then, and followed by
/// nothing.
async fn summaries(w: &mut World, notes: &Notes, armed: &AtomicBool) {
    let operation = w.operation("b");
    let by = ("MODEL", W1, Some(operation.as_str()));
    let summary = bodies::summary(&*w.state().await, "a", by, SUMMARY);
    refused(w, notes, W1, summary.clone(), Code::EffectUnresolved).await;
    let posing = bodies::summary(&*w.state().await, "a", ("HUMAN", W1, None), SUMMARY);
    refused(w, notes, W1, posing, Code::HumanRequired).await;
    let attempt = w.attempt("b");
    let body = bodies::settle(
        &*w.state().await,
        "reconcile",
        &attempt,
        "CONFIRMED_APPLIED",
        2,
    );
    say(w, notes, HUMAN, body).await.expect("reconciled");
    let hold = bodies::hold(&*w.state().await, "held", "OPERATOR", &["RECHECK"]);
    say(w, notes, HUMAN, hold).await.expect("held");
    let epoch = w.state().await.epoch;
    armed.store(true, Ordering::SeqCst);
    let sent = w.request(summary).await;
    let lost = hand_in(w, notes, W1, &sent).await.expect_err("a crash");
    assert_eq!(lost.code(), Code::ActorLost);
    let state = w.wait_for_epoch(epoch + 1).await;
    assert_eq!(state.summaries.size(), 1);
    hand_in(w, notes, W1, &sent)
        .await
        .expect("the first answer");
    let held = state
        .holds
        .values()
        .find(|hold| hold.hold_id.as_str() == "held");
    assert_eq!(held.map(|hold| hold.state), Some(HoldState::Open));
}

/// Invalidation and cancellation, with reasons.
async fn endings(w: &mut World, notes: &Notes) {
    let mut invalid = bodies::invalidate(&*w.state().await, "a");
    invalid["reason"] = json!(NOTE);
    say(w, notes, HUMAN, invalid).await.expect("invalidated");
    for kind in ["cancelRun", "finishCancelRun"] {
        let mut body = bodies::cancel(&*w.state().await, kind);
        body["reason"] = json!(NOTE);
        refused(w, notes, W1, body.clone(), Code::HumanRequired).await;
        say(w, notes, HUMAN, body).await.expect("canceled");
    }
    let late = bodies::claim(&w.delivery("a", "b"));
    let late = say(w, notes, W1, late).await.expect_err("a refusal");
    assert!(
        matches!(late.code(), Code::TerminalExecution | Code::DeliveryState),
        "{late}"
    );
}

//! What is kept: answers of long ago, a state that refusals leave alone, a hold that nobody is told of, one machine.
//! Invariant: as of every scenario; what is asked again is asked with the very bytes of the first time.

use std::fs;

use aiws::error::Code;
use aiws::id::ConsumerId;
use aiws::record::HoldState;
use praxis_engine::Shutdown;
use praxis_tests::repo;
use serde_json::json;

use crate::bodies::{self, Boundary, lin};
use crate::oracle::{Mark, export_of, outbox};
use crate::wire::{Sent, id};
use crate::world::{HUMAN, W1, World, both};

/// A task from its admission to the claim of what it handed over, and a hold that came and went: every request of it.
async fn some_life(w: &mut World) -> Vec<(&'static str, Sent)> {
    let mut sent = Vec::new();
    let admission = w.admission("a").await;
    send(w, &mut sent, W1, admission).await;
    let dispatch = w.dispatch_of("a").await;
    send(w, &mut sent, W1, dispatch).await;
    let applied = w.attempt("a");
    let settle = bodies::settle(
        &*w.state().await,
        "settle",
        &applied,
        "CONFIRMED_APPLIED",
        3,
    );
    send(w, &mut sent, W1, settle).await;
    let boundary = Boundary::completed(json!({"answer": 42})).of(&*w.state().await, "a");
    send(w, &mut sent, W1, boundary).await;
    let claim = bodies::claim(&w.delivery("a", "b"));
    send(w, &mut sent, W1, claim).await;
    let hold = bodies::hold(&*w.state().await, "hold-1", "OPERATOR", &["RECHECK"]);
    send(w, &mut sent, HUMAN, hold).await;
    let resolve = bodies::resolve("hold-1", "RECHECK", &[]);
    send(w, &mut sent, HUMAN, resolve).await;
    sent
}

async fn send(
    w: &mut World,
    all: &mut Vec<(&'static str, Sent)>,
    actor: &'static str,
    body: serde_json::Value,
) {
    let sent = w.request(body).await;
    w.deliver(actor, &sent).await;
    all.push((actor, sent));
}

/// Proves HF-02.11: requests and ids of long ago still dedupe after the process ended and after the index was lost and
/// made anew from the log: the same request brings its first result and no event, another one under its name and another
/// hold under a spent id are conflicts. Nothing of the log is pruned in this build.
#[tokio::test]
async fn hf_02_11_what_dedupes_lasts_as_long_as_the_log() {
    both(lin(), async |w: &mut World| {
        let life = some_life(w).await;
        let mut results = Vec::new();
        for (actor, sent) in &life {
            results.push(w.once(actor, &sent.bytes()).await.unwrap().result);
        }
        for (epoch, lose_index) in [(2, false), (3, true)] {
            w.close(Shutdown::Now).await;
            if lose_index {
                fs::remove_file(w.store().join("index.redb")).unwrap();
            }
            w.open().await;
            w.wait_for_epoch(epoch).await;
            let before = Mark::of(w).await;
            for ((actor, sent), first) in life.iter().zip(&results) {
                let again = w.once(actor, &sent.bytes()).await.unwrap();
                assert!(again.event.is_none(), "{} acts again", sent.kind().name());
                assert_eq!(again.result, *first, "{}", sent.kind().name());
            }
            assert_eq!(Mark::of(w).await, before);
            let mut other = life[3].1.clone();
            other.body["manifest"]["result"]["answer"] = json!(43);
            w.refuse_sent(W1, &other, Code::IdentityConflict).await;
            let spent = bodies::hold(&*w.state().await, "hold-1", "RULE", &["CANCEL"]);
            w.refuse(HUMAN, spent, Code::IdentityConflict).await;
        }
    })
    .await;
}

/// Proves HS-07.3: a refusal of each stage that has one here leaves states, money, outbox and every byte of the log as
/// they were, and what is told about it stands in its answer alone: the request it came by is not recorded, so that the
/// same request id is free for what is right.
#[tokio::test]
async fn hs_07_3_a_refusal_is_told_and_not_recorded() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let right = w.request(bodies::claim(&w.delivery("a", "b"))).await;
        let log = export_of(w);
        let with = |change: &dyn Fn(&mut Sent)| {
            let mut sent = right.clone();
            change(&mut sent);
            sent
        };
        let wrong = [
            (
                Code::SchemaInvalid,
                with(&|sent| sent.body["deliveryId"] = json!(7)),
            ),
            (
                Code::RevisionConflict,
                with(&|sent| sent.revision = "1".to_owned()),
            ),
            (
                Code::StaleOwner,
                with(&|sent| sent.epoch = Some("9".to_owned())),
            ),
            (
                Code::DeliveryState,
                with(&|sent| sent.body["deliveryId"] = json!("no-such-delivery")),
            ),
        ];
        for (code, sent) in &wrong {
            let error = w.refuse_sent(W1, sent, *code).await;
            assert!(!error.message.is_empty());
            assert_eq!(export_of(w), log, "{code}");
        }
        let text = String::from_utf8(log).unwrap();
        assert!(!text.contains("no-such-delivery") && !text.contains(&right.id));
        w.deliver(W1, &right).await;
        let log = String::from_utf8(export_of(w)).unwrap();
        assert!(log.contains(&right.id));
    })
    .await;
}

/// Proves HS-07.8: nobody reads the outbox, over the hold's whole life and a restart. The hold is placed, gates, is there
/// after the restart and is lifted as ever; whoever comes late is told of all of it, once and in order.
#[tokio::test]
async fn hs_07_8_a_hold_needs_nobody_who_is_told() {
    both(lin(), async |w: &mut World| {
        let late: ConsumerId = id("late");
        let hold = bodies::hold(&*w.state().await, "hold-1", "OPERATOR", &["RECHECK"]);
        w.send(HUMAN, hold).await;
        let admission = w.admission("a").await;
        w.refuse(W1, admission, Code::HoldActive).await;
        w.restart().await;
        w.wait_for_epoch(2).await;
        assert_eq!(w.host().journal().cursor(&late), 0);
        let state = w.state().await;
        let kept = state.holds.get(&id::<aiws::id::HoldId>("hold-1")).unwrap();
        assert_eq!(kept.state, HoldState::Open);
        let admission = w.admission("a").await;
        w.refuse(W1, admission, Code::HoldActive).await;
        w.release_holds().await;
        w.work("a").await;

        let all = outbox(w);
        let pending = w.host().journal().pending(&late, all.len() + 1).unwrap();
        let told: Vec<_> = pending.iter().map(|(_, sealed)| sealed.hash).collect();
        assert_eq!(told, all);
        let last = pending.last().unwrap().0;
        w.host().journal().acknowledge(&late, last).unwrap();
        assert!(w.host().journal().pending(&late, 1).unwrap().is_empty());
    })
    .await;
}

/// Proves HS-06.4: recovery is of a run whose store is here. The command has no member that could name another place, and
/// the page of the protocol says so.
#[tokio::test]
async fn hs_06_4_recovery_names_no_other_place() {
    both(lin(), async |w: &mut World| {
        for member in ["host", "machine", "address", "store", "target", "runId"] {
            let mut body = bodies::recover(1, Some("decision-1"));
            body[member] = json!("elsewhere");
            let error = w.refuse(HUMAN, body, Code::SchemaInvalid).await;
            let pointer = error.pointer.unwrap();
            assert!(pointer.ends_with(&format!("/{member}")), "{pointer}");
        }
        w.send(HUMAN, bodies::recover(1, Some("decision-1"))).await;
        w.release_holds().await;
    })
    .await;
    let page = fs::read_to_string(repo::root().join("docs/HANDOFF.md")).unwrap();
    assert!(page.contains("on the same machine, over the same store"));
}

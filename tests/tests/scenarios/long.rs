//! A whole life of a run, every command sent, counted and found again after a reopen.
//! Invariant: the list of events is fixed; a second sending adds nothing to it. Scenario L-01.

use aiws::id::ConsumerId;
use aiws::record::Lifecycle;
use praxis_engine::Shutdown;
use praxis_model::report;
use serde_json::json;

use crate::bodies::{self, Boundary, lin};
use crate::oracle::{Mark, export_of, hash_of, money, replay};
use crate::wire::id;
use crate::world::{HUMAN, W1, World, both};

/// The events of LIN's full life, in the order of the log.
const LIFE: &[&str] = &[
    "openMission",
    "startRun",
    "activateGraph",
    "admitConsumer",
    "dispatch",
    "settle",
    "commitBoundary",
    "claimDelivery",
    "acknowledgeDelivery",
    "admitConsumer",
    "dispatch",
    "settle",
    "commitBoundary",
    "verify",
    "accept",
    "claimDelivery",
    "acknowledgeDelivery",
    "admitConsumer",
    "commitBoundary",
    "completeRun",
];

/// Proves L-01, HF-02.7, HF-03.1, STO-5, REP-1, AUD-1, FV-RUN.2: LIN from its start to its completion,
/// a reopen, and the outbox; every command sent twice makes the same events once.
#[tokio::test]
async fn l_01_full_life() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        let delivery = w.delivery("a", "b");
        w.receive(W1, &delivery).await;
        w.work("b").await;
        for (kind, actor, name, verdict) in [
            ("verify", W1, "v-1", "PASS"),
            ("accept", HUMAN, "c-1", "ACCEPTED"),
        ] {
            let body = bodies::assess(&*w.state().await, kind, name, verdict);
            w.send(actor, body).await;
        }
        let delivery = w.delivery("b", "end");
        w.receive(W1, &delivery).await;
        let admit = bodies::admit(&*w.state().await, "end", None);
        w.send(W1, admit).await;
        w.commit(
            "end",
            &Boundary::completed(json!({"disposition": "COMPLETED"})),
        )
        .await;
        let complete = bodies::complete(&*w.state().await);
        w.send(W1, complete).await;

        let consumer: ConsumerId = id("reader");
        let pending = w.host().journal().pending(&consumer, 100).unwrap();
        let kinds: Vec<&str> = pending
            .iter()
            .map(|(_, sealed)| sealed.event.kind.name())
            .collect();
        assert_eq!(kinds, LIFE);
        let state = w.state().await;
        assert_eq!((state.lifecycle, money(w)), (Lifecycle::Completed, (6, 0)));

        let before = Mark::of(w).await;
        w.close(Shutdown::Drain).await;
        w.open().await;
        assert_eq!(Mark::of(w).await, before);
        let replayed = replay(&export_of(w));
        let folded = &replayed.runs[&state.stream];
        assert_eq!(replayed.events, LIFE.len());
        assert_eq!(
            hash_of(&report::of(folded)),
            hash_of(&report::of(&*w.state().await))
        );

        let (last, _) = pending.last().unwrap();
        w.host().journal().acknowledge(&consumer, *last).unwrap();
        assert!(
            w.host()
                .journal()
                .pending(&consumer, 100)
                .unwrap()
                .is_empty()
        );
        w.close(Shutdown::Drain).await;
        w.open().await;
        assert!(
            w.host()
                .journal()
                .pending(&consumer, 100)
                .unwrap()
                .is_empty()
        );
        assert_eq!(Mark::of(w).await, before);
    })
    .await;
}

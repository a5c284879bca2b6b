//! Replies dropped and asked for again, tokens, and what is left when a process ends.
//! Invariant: the first answer stands; a raw token is in the reply and nowhere else.
//! Tests of replays and of the start-up.

use aiws::record::{EffectClass, RestartPolicy};
use praxis_engine::Shutdown;

use crate::owners::{RUN, boundary_of_a, code};
use crate::support::{World, id, settled};

/// Proves HF-02.7, HD-02.1, HD-02.10: scenario C-05. Every reply dropped once: the same request gives the first
/// result with no second event, a claim the same working token while it is live and none afterwards; the token
/// stands nowhere in the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_05_replies_dropped_and_replayed() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    boundary_of_a(&open, RUN).await;
    let worker = open
        .engine
        .worker(open.agent("agent:w1"), crate::support::mission(), id(RUN));
    let delivery = settled(worker.next_delivery()).await.expect("a delivery");
    let claim = worker
        .claim(&id("q-claim"), &delivery.delivery_id, None)
        .await
        .expect("claimed");
    let token = claim.token.expect("a token");
    assert!(claim.response.event.is_some());
    let head = open.state(RUN).await.head;

    world.clock.set(1050);
    let replayed = worker
        .claim(&id("q-claim"), &delivery.delivery_id, None)
        .await
        .expect("replayed");
    assert!(replayed.response.event.is_none());
    assert_eq!(replayed.response.result, claim.response.result);
    assert_eq!(
        replayed.token.as_ref().expect("still live").expose(),
        token.expose()
    );
    assert_eq!(open.state(RUN).await.head, head, "a replay appends nothing");

    world.clock.set(1100);
    let late = worker
        .claim(&id("q-claim"), &delivery.delivery_id, None)
        .await
        .expect("replayed");
    assert!(late.token.is_none(), "the lease has ended");
    let generation = "1".parse().expect("positive");
    let ack = worker
        .acknowledge(
            &id("q-ack"),
            &delivery.delivery_id,
            &delivery.handoff,
            &token,
            generation,
        )
        .await;
    assert_eq!(code(ack), "CLAIM_EXPIRED");
    let next = worker
        .claim(&id("q-claim-2"), &delivery.delivery_id, None)
        .await
        .expect("claimed again");
    let (second, next_response) = (next.token.expect("a token"), next.response);
    let generation = "2".parse().expect("positive");
    let ack = worker
        .acknowledge(
            &id("q-ack-2"),
            &delivery.delivery_id,
            &delivery.handoff,
            &second,
            generation,
        )
        .await;
    assert_eq!(code(ack), "accepted");
    let conflict = worker
        .claim(&id("q-claim"), &id("other"), None)
        .await
        .expect_err("other material");
    assert_eq!(conflict.code().name(), "IDENTITY_CONFLICT");
    drop(worker);
    let mut export = Vec::new();
    open.host.journal().export(&mut export).expect("exported");
    let shown = format!("{token:?} {replayed:?} {next_response:?}");
    world.close(open, Shutdown::Drain).await;
    for text in [token.expose(), second.expose()] {
        assert!(!shown.contains(&text), "a raw token is shown");
        assert!(
            !export
                .windows(text.len())
                .any(|window| window == text.as_bytes()),
            "a raw token is exported"
        );
        assert!(
            !found_in(world.dir.path(), text.as_bytes()),
            "a raw token is in the store"
        );
    }
}

fn found_in(path: &std::path::Path, needle: &[u8]) -> bool {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).expect("readable");
        return entries
            .map(|entry| entry.expect("entry").path())
            .any(|path| found_in(&path, needle));
    }
    let bytes = std::fs::read(path).expect("readable");
    bytes.windows(needle.len()).any(|window| window == needle)
}

/// A store that an engine left without shutting down, as a killed process does, is recovered at the next open; one
/// that was closed is not (T-16).
#[test]
fn an_unclean_end_is_recovered_and_a_clean_one_is_not() {
    let world = World::new(EffectClass::External);
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime")
    };
    let first = runtime();
    first.block_on(async {
        let open = world.open().await;
        open.lin(RUN, RestartPolicy::Auto, false).await;
        *world.outside.journal.lock().expect("journal") = None;
    });
    drop(first);
    let second = runtime();
    second.block_on(async {
        let open = world.open_after_a_kill().await;
        assert_eq!(open.state(RUN).await.epoch, 2, "its owner was gone");
        world.close(open, Shutdown::Drain).await;
        let open = world.open().await;
        assert_eq!(open.state(RUN).await.epoch, 2, "its owner had let go");
        world.close(open, Shutdown::Drain).await;
    });
}

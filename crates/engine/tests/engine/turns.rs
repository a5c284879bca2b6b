//! A worker's requests take their turn: the run's owner has one in hand, and whatever is asked later waits behind it.
//! Invariant: order is that of the owner's mailbox, never that of who is quicker. Nothing waits by time.
//! The coordinator of CRD-7 is the run's owner; a worker reaches nothing but its mailbox.

use std::pin::Pin;

use aiws::error::Error;
use aiws::record::{AttemptStatus, EffectClass, RestartPolicy};
use praxis_engine::{Response, Shutdown};
use praxis_model::command::CommandType;
use praxis_model::run::RunState;

use crate::sequences::{RUN, events, sound, worker};
use crate::support::{World, draft_of, id, mission, poll_once, settled};

type Sent<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Proves CRD-7: a worker's first request is still being authorized while its next one, the first one again, and a reading
/// of the state are asked for. None of them is answered before its turn; each then finds what those before it left, and the
/// repeated request gets the first one's result and does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_7_a_workers_requests_take_their_turn() {
    let world = World::new(EffectClass::External);
    let open = world.open().await;
    open.lin(RUN, RestartPolicy::Auto, false).await;
    let before = events(&open, RUN).len() as u64;
    let (worker, node) = (worker(&open), id("a"));
    let (entered, has_entered) = tokio::sync::oneshot::channel();
    let (let_go, wait) = std::sync::mpsc::channel::<()>();
    let act = move || {
        let _ = entered.send(());
        let _ = wait.recv();
    };
    *world.policy.asked.lock().expect("policy") =
        Some((CommandType::AdmitConsumer, 1, Box::new(act)));

    let (one, two) = (id("q-1"), id("q-2"));
    let (m, run) = (mission(), id(RUN));
    let mut first: Sent<'_, Response> = Box::pin(worker.admit(&one, &node, Some(draft_of("a"))));
    assert!(poll_once(&mut first).await.is_none(), "it is in hand");
    settled(has_entered).await.expect("the first is in hand");
    // Without the admission before it the dispatch would be refused.
    let mut second: Sent<'_, Response> = Box::pin(worker.dispatch(&two, &node));
    let mut again: Sent<'_, Response> = Box::pin(worker.admit(&one, &node, Some(draft_of("a"))));
    let mut look: Sent<'_, std::sync::Arc<RunState>> = Box::pin(open.engine.run_state(&m, &run));
    for sent in [&mut second, &mut again] {
        assert!(poll_once(sent).await.is_none(), "it waits its turn");
    }
    assert!(poll_once(&mut look).await.is_none(), "so does a reading");
    let_go.send(()).expect("the authorizer waits");

    let first = settled(first).await.expect("admitted");
    let second = settled(second).await.expect("dispatched");
    let again = settled(again).await.expect("the first answer");
    let state = settled(look).await.expect("a state");
    assert_eq!((first.revision, second.revision), (before + 1, before + 2));
    assert!(first.event.is_some() && again.event.is_none());
    assert_eq!(
        (again.revision, &again.result),
        (first.revision, &first.result)
    );
    assert_eq!(state.head.revision.get(), before + 2);
    let mut attempts = state.attempts.values();
    assert!(attempts.all(|attempt| attempt.status == AttemptStatus::Dispatched));
    sound(&open);
    drop(worker);
    world.close(open, Shutdown::Drain).await;
}

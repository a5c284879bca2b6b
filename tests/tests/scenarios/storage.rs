//! Storage that fails under a live engine: a commit at each of its operations, a whole life, a full disk.
//! Invariant: the real journal on the real files; every answer that was given is what a later opening finds.
//! Scenario C-01 and cases F-42 and F-43.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aiws::digest::Digest;
use aiws::error::Code;
use aiws::record::Artifact;
use praxis_artifacts::ArtifactProvider;
use praxis_engine::Shutdown;
use praxis_model::run::{NodeStatus, RunState};
use serde_json::json;
use tempfile::TempDir;

use crate::bodies::{self, Boundary, lin, wide};
use crate::faulty::{Fails, Faulty};
use crate::oracle::money;
use crate::wire::{Sent, id};
use crate::world::{MISSION, W1, World};

/// More operations than any commit has.
const OPERATIONS_MAX: u64 = 200;

/// A world whose store lies on a disk that can fail.
async fn on_faulty(lost: bool) -> (World, Arc<Faulty>, TempDir) {
    let root = TempDir::new().unwrap();
    let mut w = World::closed(root.path(), lost, None);
    let disk = Faulty::new(&w.store());
    w.disk = Some(disk.clone());
    w.open().await;
    (w, disk, root)
}

/// LIN with a applied and its artifact stored, and the boundary that names it, not sent yet.
async fn before_boundary(w: &mut World) -> (Artifact, Sent) {
    w.start(&lin(), &bodies::config()).await;
    w.apply("a").await;
    let artifact = w
        .shelf
        .put(b"the report", "a", "text/plain", &id(W1), 500_000);
    let artifact = artifact.unwrap();
    let sent = boundary(w, &artifact).await;
    (artifact, sent)
}

/// A request with the boundary of a at what is current now.
async fn boundary(w: &mut World, artifact: &Artifact) -> Sent {
    let mut boundary = Boundary::completed(json!({"answer": 42}));
    boundary.artifacts.push(bodies::json_of(artifact));
    let body = boundary.of(&*w.state().await, "a");
    w.request(body).await
}

/// What no manifest of the store names.
async fn orphans(w: &World) -> Vec<Digest> {
    let state = w.state().await;
    let manifests = state.manifests.values();
    let named = manifests.flat_map(|committed| &committed.manifest.artifacts);
    let named: BTreeSet<Digest> = named.map(|artifact| artifact.digest).collect();
    let found = w.shelf.orphans(&named).unwrap();
    found.into_iter().map(|orphan| orphan.digest).collect()
}

fn counts(state: &RunState) -> (usize, usize) {
    (state.manifests.size(), state.deliveries.size())
}

/// Proves C-01, HF-04.1, HF-05.1, HF-05.2, ART-9, STO-2: the commit of a boundary fails for good at each of its storage
/// operations in turn. The store that is opened again has the boundary wholly or not at all; where not, the artifact is
/// an orphan on the shelf, and the same request id commits the boundary once.
#[tokio::test]
async fn c_01_orphan_artifact() {
    let mut rolled_back = 0;
    for operation in 0..OPERATIONS_MAX {
        let (mut w, disk, _root) = on_faulty(operation % 2 == 1).await;
        let (artifact, mut sent) = before_boundary(&mut w).await;
        let before = w.state().await.head.revision.get();
        disk.fail_after(operation, Fails::ForGood);
        let answer = w.once(W1, &sent.bytes()).await;
        if !disk.mend() {
            assert!(answer.is_ok(), "nothing failed: {answer:?}");
            w.finish().await;
            assert!(rolled_back > 5, "only {rolled_back} operations rolled back");
            return;
        }
        let _ = w.try_close(Shutdown::Now).await;
        w.open().await;
        let state = w.state().await;
        let node = &state
            .nodes
            .get(&id::<aiws::id::NodeId>("a"))
            .unwrap()
            .status;
        assert_eq!(w.shelf.read(&artifact, 2000).unwrap(), b"the report");
        if state.manifests.is_empty() {
            // Nothing durable: k1. The restart itself is one event.
            rolled_back += 1;
            assert!(answer.is_err(), "what was answered is there: {answer:?}");
            assert_eq!((counts(&state), *node), ((0, 0), NodeStatus::Active));
            assert_eq!(state.head.revision.get(), before + 1);
            assert_eq!(orphans(&w).await, [artifact.digest]);
            let request = sent.id.clone();
            sent = boundary(&mut w, &artifact).await;
            sent.id = request;
            let answer = w.deliver(W1, &sent).await;
            assert_eq!(answer.revision, before + 2);
        } else {
            // Durable, whatever was reported: k2. The same bytes get the first result.
            let replayed = w.once(W1, &sent.bytes()).await.expect("the first result");
            assert_eq!(
                (replayed.event.is_none(), replayed.revision),
                (true, before + 1)
            );
        }
        let state = w.state().await;
        assert_eq!((counts(&state), money(&w)), ((1, 1), (3, 0)));
        assert!(orphans(&w).await.is_empty());
        w.finish().await;
    }
    panic!("a commit has more than {OPERATIONS_MAX} operations");
}

/// Proves F-43, HF-05.1, HF-02.7: each storage operation of a commit fails once under a live engine. The engine looks
/// before it answers, the same bytes are sent until they are accepted, and the boundary is there exactly once.
#[tokio::test]
async fn f_43_each_operation_fails_once() {
    for operation in 0..OPERATIONS_MAX {
        let (mut w, disk, _root) = on_faulty(false).await;
        let (_, sent) = before_boundary(&mut w).await;
        let before = w.state().await.head.revision.get();
        disk.fail_after(operation, Fails::Once);
        let mut answer = w.once(W1, &sent.bytes()).await;
        let failed = disk.mend();
        if let Err(error) = &answer {
            assert!(failed, "nothing failed: {error}");
            assert!(
                [Code::StoreIo, Code::StoreReadOnly].contains(&error.code()),
                "{error}"
            );
            assert_eq!(
                counts(&*w.state().await),
                (0, 0),
                "reported as not stored: {error}"
            );
            answer = w.once(W1, &sent.bytes()).await;
        }
        assert_eq!(answer.expect("accepted").revision, before + 1);
        assert_eq!((counts(&*w.state().await), money(&w)), ((1, 1), (3, 0)));
        let epoch = w.state().await.epoch;
        w.finish().await;
        assert_eq!(epoch, 1, "the owner kept its epoch");
        if !failed {
            return;
        }
    }
    panic!("a commit has more than {OPERATIONS_MAX} operations");
}

/// Proves F-43: an operation fails for good somewhere in a life of several commands, index and log alike. What was answered
/// is there after the next opening, in order; what was reported failed is not there or is answered as a replay.
#[tokio::test]
async fn f_43_what_was_answered_is_there() {
    for works in (0..400).step_by(23) {
        let (mut w, disk, _root) = on_faulty(false).await;
        w.start(&wide(), &bodies::config()).await;
        let mut asked = BTreeMap::new();
        disk.fail_after(works, Fails::ForGood);
        for number in 0..8 {
            let (mission, run) = (id(MISSION), id(&w.run));
            // A store that reads no more says so, and the life is over.
            let Ok(state) = w.engine().run_state(&mission, &run).await else {
                break;
            };
            let body = bodies::assess(&state, "verify", &format!("v-{number}"), "PASS");
            let sent = w.request(body).await;
            let answer = w.once(W1, &sent.bytes()).await;
            asked.insert(number, (sent, answer.map(|answer| answer.revision)));
        }
        disk.mend();
        let _ = w.try_close(Shutdown::Now).await;
        w.open().await;
        let known = w.state().await.verifications.len();
        let mut answered = 0;
        for (sent, first) in asked.values() {
            let again = w.once(W1, &sent.bytes()).await;
            match (first, again) {
                (Ok(revision), again) => {
                    let again = again.expect("what was answered is there");
                    assert_eq!((again.event.is_none(), again.revision), (true, *revision));
                    answered += 1;
                }
                // Durable although it was reported as in doubt, or refused as a stale owner's.
                (Err(_), Ok(again)) => assert!(again.event.is_none()),
                (Err(_), Err(error)) => assert_eq!(error.code(), Code::RevisionConflict, "{error}"),
            }
        }
        assert!(known >= answered);
        w.finish().await;
    }
}

/// Proves F-42, STO-2: the disk is full. The command is refused with a typed error and nothing of it is there; the store
/// can be opened again while the disk is still full or says why not; once there is space, the same request is taken.
#[tokio::test]
async fn f_42_disk_full() {
    for lost in [false, true] {
        let (mut w, disk, _root) = on_faulty(lost).await;
        let (artifact, sent) = before_boundary(&mut w).await;
        let before = w.state().await;
        disk.fill();
        let error = w.once(W1, &sent.bytes()).await.expect_err("a full disk");
        // In doubt where not even a copy of the segment finds space; the words say what to do in either case.
        assert!(
            [Code::StoreFull, Code::StoreIo].contains(&error.code()),
            "{error}"
        );
        assert!(error.message.contains("free space"), "{error}");
        let _ = w.try_close(Shutdown::Now).await;
        match w.try_open().await {
            Ok(()) => {
                let state = w.state().await;
                assert_eq!(state.head, before.head, "nothing lost, nothing new");
                let _ = w.try_close(Shutdown::Now).await;
            }
            Err(error) => assert!(
                [Code::StoreFull, Code::StoreIo, Code::StoreReadOnly].contains(&error.code()),
                "{error}"
            ),
        }
        disk.mend();
        w.open().await;
        assert_eq!(counts(&*w.state().await), (0, 0));
        let request = sent.id.clone();
        let mut sent = boundary(&mut w, &artifact).await;
        sent.id = request;
        w.deliver(W1, &sent).await;
        assert_eq!((counts(&*w.state().await), money(&w)), ((1, 1), (3, 0)));
        w.finish().await;
    }
}

//! Storage errors under a live engine: a log that cannot grow, a log that cannot be synced.
//! Invariant: the real journal on the real files, with one operation of the log failing at a chosen moment.
//! Tests of what an owner does when its append fails (T-10).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use aiws::record::{
    AttemptStatus, EffectClass, RestartPolicy, SettledOutcome, VerificationVerdict,
};
use praxis_engine::crash::Point;
use praxis_engine::{EffectOutcome, EffectReport, Shutdown};
use praxis_journal::{Disk, FileDisk, StorageBackend};
use praxis_model::command::{Body, CommandType, Intent, Verify};
use praxis_model::run::RunState;

use crate::sequences::{conclude, launch, opened, receive, worker};
use crate::support::{
    Behaviour, Open, World, boundary_of, dec, digest, draft_of, id, intent, lin, settled,
};

const RUN: &str = "run";
const FAIL_WRITE: u8 = 1;
const FAIL_SYNC: u8 = 2;

/// The store's own files; the next write or sync of the log fails once when it is armed.
#[derive(Debug)]
struct Failing {
    files: FileDisk,
    armed: Arc<AtomicU8>,
    /// How often the log was synced.
    syncs: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct FailingFile {
    file: Arc<dyn StorageBackend>,
    armed: Option<Arc<AtomicU8>>,
    syncs: Arc<AtomicUsize>,
}

impl Failing {
    /// The store of a world, with what arms the next fault and what counts syncs.
    fn under(world: &mut World) -> (Arc<AtomicU8>, Arc<AtomicUsize>) {
        let (armed, syncs) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicUsize::new(0)));
        world.disk = Some(Arc::new(Self {
            files: FileDisk::new(world.dir.path().join("store")),
            armed: Arc::clone(&armed),
            syncs: Arc::clone(&syncs),
        }));
        (armed, syncs)
    }

    fn file(&self, name: &str, file: Arc<dyn StorageBackend>) -> Arc<dyn StorageBackend> {
        let armed = name.starts_with("log-").then(|| Arc::clone(&self.armed));
        let syncs = Arc::clone(&self.syncs);
        Arc::new(FailingFile { file, armed, syncs })
    }
}

impl FailingFile {
    fn fires(&self, what: u8) -> bool {
        let armed = self.armed.as_ref();
        armed.is_some_and(|armed| {
            armed
                .compare_exchange(what, 0, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
        })
    }
}

impl Disk for Failing {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn StorageBackend>> {
        Ok(self.file(name, self.files.open(name, write)?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageBackend>> {
        Ok(self.file(name, self.files.create(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.files.sync_directory()
    }
}

impl StorageBackend for FailingFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.fires(FAIL_SYNC) {
            return Err(io::Error::other("the device failed"));
        }
        if self.armed.is_some() {
            self.syncs.fetch_add(1, Ordering::SeqCst);
        }
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.fires(FAIL_WRITE) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}

fn verify(name: &str) -> Body {
    Body::Verify(Verify {
        assessment_id: id(name),
        run_id: id(RUN),
        subject: id("result"),
        verdict: VerificationVerdict::Pass,
        evidence: vec![id("seen")],
    })
}

/// Proves HF-02.7: after a storage error nothing is guessed. Memory is what the log folds to, the owner keeps its
/// epoch, and the same request, sent until it is accepted, is in the log exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hf_02_7_an_append_that_fails_is_looked_for() {
    for what in [FAIL_WRITE, FAIL_SYNC] {
        let mut world = World::new(EffectClass::External);
        let open = world.open().await;
        open.lin(RUN, RestartPolicy::Auto, false).await;
        world.close(open, Shutdown::Drain).await;
        let (armed, _) = Failing::under(&mut world);
        let open = world.open().await;
        open.command(RUN, "q-before", verify("before"))
            .await
            .expect("accepted");
        let before = open.state(RUN).await;

        armed.store(what, Ordering::SeqCst);
        let request = intent(RUN, "q", Intent::Command { body: verify("v") });
        let first = open.engine.submit(&open.human(), &request).await;
        assert_eq!(armed.load(Ordering::SeqCst), 0, "the fault was met");
        let state = open.state(RUN).await;
        let kept = state.verifications.len() - before.verifications.len();
        assert_eq!(kept, usize::from(first.is_ok()), "told as it is: {first:?}");
        assert_eq!(state.epoch, before.epoch);

        let second = open
            .engine
            .submit(&open.human(), &request)
            .await
            .expect("accepted or replayed");
        assert_eq!(second.event.is_none(), first.is_ok());
        let state = open.state(RUN).await;
        assert_eq!(state.verifications.len(), before.verifications.len() + 1);
        world.close(open, Shutdown::Drain).await;
        let open = world.open().await;
        assert_eq!(
            digest(&*open.state(RUN).await),
            digest(&state),
            "memory was never ahead of disk"
        );
        world.close(open, Shutdown::Drain).await;
    }
}

/// Proves T-82, HF-02.7: a sequence whose append fails is in the log as a whole or not at all, and the same request, sent
/// until it is accepted, makes one admission and one dispatch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_82_a_sequence_whose_append_fails_is_looked_for() {
    for what in [FAIL_WRITE, FAIL_SYNC] {
        let mut world = World::new(EffectClass::External);
        let open = world.open().await;
        open.lin(RUN, RestartPolicy::Auto, false).await;
        world.close(open, Shutdown::Drain).await;
        let (armed, _) = Failing::under(&mut world);
        let open = world.open().await;
        let before = open.state(RUN).await.head.revision.get();
        armed.store(what, Ordering::SeqCst);
        let first = worker(&open).sequence(&id("q"), launch("a")).await;
        assert_eq!(armed.load(Ordering::SeqCst), 0, "the fault was met");
        let kept = open.state(RUN).await.head.revision.get() - before;
        assert_eq!(kept, if first.is_ok() { 2 } else { 0 }, "{first:?}");
        let second = worker(&open).sequence(&id("q"), launch("a")).await;
        let second = second.expect("accepted or replayed");
        let replayed = second
            .steps
            .iter()
            .all(|step| step.response.event.is_none());
        assert_eq!((second.steps.len(), replayed), (2, first.is_ok()));
        assert_eq!(open.state(RUN).await.head.revision.get(), before + 2);
        let report = open
            .host
            .journal()
            .verify_deep(&mut |_, _| {})
            .expect("read");
        assert!(report.is_sound(), "{:?}", report.findings);
        world.close(open, Shutdown::Drain).await;
    }
}

/// Proves T-10, T-18: what is known of an attempt is not made unknown because one append failed: who reports is told, and
/// the same report again settles the attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_10_a_known_outcome_outlives_an_append_that_fails() {
    for what in [FAIL_WRITE, FAIL_SYNC] {
        let mut world = World::new(EffectClass::External);
        let (armed, _) = Failing::under(&mut world);
        let open = opened(&world).await;
        let w1 = worker(&open);
        w1.sequence(&id("q"), launch("a")).await.expect("launched");
        let report = EffectReport {
            outcome: EffectOutcome::Applied { actual: dec(3) },
            evidence: aiws::object! { "seen": "it" },
        };
        armed.store(what, Ordering::SeqCst);
        let told = w1.report_outcome(&id("at-a-1"), report.clone()).await;
        assert_eq!(armed.load(Ordering::SeqCst), 0, "the fault was met");
        let status = open.state(RUN).await.attempts["at-a-1"].status;
        match told {
            Ok(()) => assert_eq!(status, AttemptStatus::ConfirmedApplied),
            Err(_) => assert_eq!(status, AttemptStatus::Dispatched),
        }
        w1.report_outcome(&id("at-a-1"), report)
            .await
            .expect("recorded");
        let status = open.state(RUN).await.attempts["at-a-1"].status;
        assert_eq!(status, AttemptStatus::ConfirmedApplied);
        world.close(open, Shutdown::Drain).await;
    }
}

/// Proves T-10, T-18: the engine's own worker says again what it knows of its attempt after an append that failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_10_a_worker_of_the_engine_tells_again() {
    let mut world = World::new(EffectClass::External);
    let (armed, _) = Failing::under(&mut world);
    *world.outside.behaviour.lock().expect("behaviour") = Behaviour::Decline;
    world.at_point(
        |passing| passing.point == Point::BeforeCommit && passing.kind == CommandType::Settle,
        {
            let armed = Arc::clone(&armed);
            move || armed.store(FAIL_WRITE, Ordering::SeqCst)
        },
    );
    let open = world.open().await;
    open.lin("driven", RestartPolicy::Auto, false).await;
    let tried = |state: &Arc<RunState>| {
        let mut all = state.attempts.values();
        all.any(|it| it.status != AttemptStatus::Prepared && it.status != AttemptStatus::Dispatched)
    };
    let state = open.until("driven", tried).await;
    assert_eq!(armed.load(Ordering::SeqCst), 0, "the fault was met");
    let mut all = state.attempts.values();
    assert!(all.all(|it| it.status != AttemptStatus::Unknown));
    world.close(open, Shutdown::Drain).await;
}

/// Proves T-10, T-20: what a look-up found is recorded though the first append of it failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_10_what_a_look_up_found_is_told_again() {
    let mut world = World::new(EffectClass::External);
    world.outside.answers.store(true, Ordering::SeqCst);
    let (armed, _) = Failing::under(&mut world);
    world.outside.gate.forget_permits(1000);
    let open = world.open().await;
    open.lin("driven", RestartPolicy::Auto, false).await;
    let arrived = settled(world.outside.arrived.acquire()).await;
    arrived.expect("open").forget();
    world.close(open, Shutdown::Now).await;
    world.at_point(
        |passing| passing.point == Point::BeforeCommit && passing.kind == CommandType::Reconcile,
        {
            let armed = Arc::clone(&armed);
            move || armed.store(FAIL_WRITE, Ordering::SeqCst)
        },
    );
    world.outside.gate.add_permits(1000);
    let open = world.open().await;
    open.until("driven", |state| {
        let first = state.attempts.values().find(|it| it.epoch.get() == 1);
        first.is_some_and(|it| it.status == AttemptStatus::ConfirmedApplied)
    })
    .await;
    assert_eq!(armed.load(Ordering::SeqCst), 0, "the fault was met");
    assert_eq!(world.outside.lookups.load(Ordering::SeqCst), 1);
    world.close(open, Shutdown::Drain).await;
}

/// Proves T-10: a step of the scheduler whose append failed is taken again by itself, also where nothing else happens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_10_a_step_whose_append_failed_is_taken_again() {
    let mut world = World::new(EffectClass::External);
    let (armed, _) = Failing::under(&mut world);
    world.at_point(
        |passing| passing.point == Point::BeforeCommit && passing.kind == CommandType::Dispatch,
        {
            let armed = Arc::clone(&armed);
            move || armed.store(FAIL_WRITE, Ordering::SeqCst)
        },
    );
    let open = world.open().await;
    open.lin("driven", RestartPolicy::Auto, false).await;
    let second = |state: &Arc<RunState>| state.attempts.size() == 2;
    open.until("driven", second).await;
    assert_eq!(armed.load(Ordering::SeqCst), 0, "the fault was met");
    world.close(open, Shutdown::Drain).await;
}

/// Proves T-10, T-15: a recovery whose append failed is tried again, and the run is not left to nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_10_a_recovery_whose_append_failed_is_tried_again() {
    let mut world = World::new(EffectClass::External);
    let (armed, _) = Failing::under(&mut world);
    let open = opened(&world).await;
    world.close(open, Shutdown::Now).await;
    world.at_point(
        |passing| {
            let recovers = passing.kind == CommandType::RecoverOwnership;
            passing.point == Point::BeforeCommit && recovers
        },
        {
            let armed = Arc::clone(&armed);
            move || armed.store(FAIL_WRITE, Ordering::SeqCst)
        },
    );
    let open = world.open().await;
    open.until(RUN, |state| state.epoch == 2).await;
    assert_eq!(armed.load(Ordering::SeqCst), 0, "the fault was met");
    worker(&open)
        .sequence(&id("q"), launch("a"))
        .await
        .expect("launched");
    world.close(open, Shutdown::Drain).await;
}

/// A worker does two nodes of LIN by its ten commands.
async fn one_by_one(open: &Open) {
    let worker = worker(open);
    for (index, node) in ["a", "b"].into_iter().enumerate() {
        let name = |what: &str| id(&format!("q-{what}-{node}"));
        if node == "b" {
            let state = open.state(RUN).await;
            let delivery = state
                .deliveries
                .values()
                .next()
                .expect("a delivery")
                .record
                .clone();
            let claimed = worker
                .claim(&name("claim"), &delivery.delivery_id, None)
                .await;
            let token = claimed.expect("claimed").token.expect("a token");
            let generation = "1".parse().expect("a generation");
            worker
                .acknowledge(
                    &name("ack"),
                    &delivery.delivery_id,
                    &delivery.handoff,
                    &token,
                    generation,
                )
                .await
                .expect("acknowledged");
        }
        let admitted = worker
            .admit(&name("admit"), &id(node), Some(draft_of(node)))
            .await;
        admitted.expect("admitted");
        worker
            .dispatch(&name("dispatch"), &id(node))
            .await
            .expect("dispatched");
        let (attempt, evidence) = (id(&format!("at-{node}-1")), vec![id("seen")]);
        let applied = SettledOutcome::ConfirmedApplied;
        let settled = worker
            .settle(&name("settle"), &attempt, applied, dec(3), evidence)
            .await;
        settled.expect("settled");
        let boundary = boundary_of(&lin().nodes[index]);
        worker
            .commit_boundary(&name("boundary"), boundary)
            .await
            .expect("committed");
    }
}

/// The same two nodes by four sequences.
async fn by_sequences(open: &Open) {
    for step in 0..4 {
        let steps = match step {
            0 => launch("a"),
            1 => conclude(0),
            2 => receive(&*open.state(RUN).await, "b"),
            _ => conclude(1),
        };
        let request = id(&format!("q-{step}"));
        worker(open)
            .sequence(&request, steps)
            .await
            .expect("accepted");
    }
}

/// Two nodes take ten commits by single commands and four by sequences, and the log's syncs go with the commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequences_save_syncs() {
    let mut found = Vec::new();
    for sequences in [false, true] {
        let mut world = World::new(EffectClass::External);
        let open = world.open().await;
        open.lin(RUN, RestartPolicy::Auto, false).await;
        world.close(open, Shutdown::Drain).await;
        let (_, syncs) = Failing::under(&mut world);
        let open = world.open().await;
        let before = syncs.load(Ordering::SeqCst);
        match sequences {
            false => one_by_one(&open).await,
            true => by_sequences(&open).await,
        }
        found.push(syncs.load(Ordering::SeqCst) - before);
        let state = open.state(RUN).await;
        assert_eq!(state.manifests.size(), 2);
        world.close(open, Shutdown::Drain).await;
    }
    let (singles, sequences) = (found[0], found[1]);
    println!("{singles} syncs of the log by ten commands, {sequences} by four sequences");
    assert_eq!(singles * 4, sequences * 10);
}

//! Storage errors under a live engine: a log that cannot grow, a log that cannot be synced.
//! Invariant: the real journal on the real files, with one operation of the log failing at a chosen moment.
//! Tests of what an owner does when its append fails (T-10).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use aiws::record::{EffectClass, RestartPolicy, VerificationVerdict};
use praxis_engine::Shutdown;
use praxis_journal::{Disk, FileDisk, StorageBackend};
use praxis_model::command::{Body, Intent, Verify};

use crate::support::{World, digest, id, intent};

const RUN: &str = "run";
const FAIL_WRITE: u8 = 1;
const FAIL_SYNC: u8 = 2;

/// The store's own files; the next write or sync of the log fails once when it is armed.
#[derive(Debug)]
struct Failing {
    files: FileDisk,
    armed: Arc<AtomicU8>,
}

#[derive(Debug)]
struct FailingFile {
    file: Arc<dyn StorageBackend>,
    armed: Option<Arc<AtomicU8>>,
}

impl Failing {
    fn file(&self, name: &str, file: Arc<dyn StorageBackend>) -> Arc<dyn StorageBackend> {
        let armed = name.starts_with("log-").then(|| Arc::clone(&self.armed));
        Arc::new(FailingFile { file, armed })
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
        let armed = Arc::new(AtomicU8::new(0));
        let files = FileDisk::new(world.dir.path().join("store"));
        world.disk = Some(Arc::new(Failing {
            files,
            armed: Arc::clone(&armed),
        }));
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

//! What the tests share: a fresh directory, a put and a read with fixed facts, and steps that fail or stop.
//! Invariant: the faulty steps pass on to the real directory, or do nothing at all but what a test asked for.
//! The other modules of this test call it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use aiws::digest::{Digest, sha256};
use aiws::id::ActorId;
use aiws::record::Artifact;
use praxis_artifacts::directory::Directory;
use praxis_artifacts::fs::{FileFacts, Fs, Handle, Step};
use praxis_artifacts::{ArtifactError, ArtifactProvider, FileArtifacts};
use tempfile::TempDir;

/// Trusted time of every read that is not about retention.
pub const NOW_MS: u64 = 1_000;
/// End of the retention of every put that is not about it.
pub const RETAIN_UNTIL_MS: u64 = 2_000;

/// A directory of the test's own, with the path of a store in it that is not made yet.
pub struct Place {
    pub root: TempDir,
    pub path: PathBuf,
}

impl Place {
    pub fn new() -> Self {
        let root = TempDir::new().unwrap();
        let path = root.path().join("artifacts");
        Self { root, path }
    }

    pub fn open(&self) -> FileArtifacts {
        FileArtifacts::open(&self.path).unwrap()
    }

    /// Opens the store on steps that a test can make fail.
    pub fn open_faulty(&self, faults: &Arc<Faults>) -> Result<FileArtifacts, ArtifactError> {
        FileArtifacts::open_on(Box::new(Faulty {
            real: Directory::open(&self.path).unwrap(),
            path: self.path.clone(),
            faults: Arc::clone(faults),
        }))
    }

    pub fn file_of(&self, bytes: &[u8]) -> PathBuf {
        self.path.join(sha256(bytes).to_string())
    }

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.path).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Invariants 39 and 42: whatever has a digest for its name is whole, and nothing else is there.
    pub fn assert_only_whole_artifacts(&self, case: &str) {
        for name in self.names() {
            let digest: Digest = name
                .parse()
                .unwrap_or_else(|_| panic!("{case}: {name} left"));
            let bytes = std::fs::read(self.path.join(&name)).unwrap();
            assert_eq!(sha256(&bytes), digest, "{case}: part of an artifact");
        }
    }
}

pub fn owner() -> ActorId {
    ActorId::new("owner").unwrap()
}

pub fn put(store: &FileArtifacts, bytes: &[u8]) -> Result<Artifact, ArtifactError> {
    store.put(bytes, "report.txt", "text/plain", &owner(), RETAIN_UNTIL_MS)
}

/// The code's name of a refusal.
pub fn code<T>(result: Result<T, ArtifactError>) -> &'static str {
    match result {
        Ok(_) => panic!("expected a refusal"),
        Err(error) => error.code().name(),
    }
}

type Hook = Box<dyn FnOnce() + Send>;

/// What is to go wrong, and what was not yet durable when it did.
#[derive(Default)]
pub struct Faults {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    fail: Option<(Step, i32)>,
    before: Option<(Step, Hook)>,
    stop_after: Option<usize>,
    flip_at: Option<usize>,
    steps: usize,
    read_max: Option<usize>,
    unsynced: Vec<PathBuf>,
    renamed: Vec<(PathBuf, PathBuf)>,
    created: Vec<PathBuf>,
}

/// What becomes of file content that was written but not synced when the power goes.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    Kept,
    Lost,
    Torn,
}

/// What becomes of names that were made but not synced when the power goes.
#[derive(Debug, Clone, Copy)]
pub enum Names {
    Kept,
    Reverted,
    Gone,
}

impl Faults {
    pub fn none() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Every such step fails with the system error from now on.
    pub fn fail(&self, step: Step, errno: rustix::io::Errno) {
        self.state.lock().unwrap().fail = Some((step, errno.raw_os_error()));
    }

    pub fn heal(&self) {
        self.state.lock().unwrap().fail = None;
    }

    /// The process dies after this many more steps: none after them does anything.
    pub fn stop_after(&self, steps: usize) {
        let mut state = self.state.lock().unwrap();
        state.steps = 0;
        state.stop_after = Some(steps);
    }

    /// Runs `hook` once, right before the next such step: what another process did in between.
    pub fn before(&self, step: Step, hook: impl FnOnce() + Send + 'static) {
        self.state.lock().unwrap().before = Some((step, Box::new(hook)));
    }

    /// Reads give at most this many bytes at a time.
    pub fn read_at_most(&self, bytes: usize) {
        self.state.lock().unwrap().read_max = Some(bytes);
    }

    /// The next read gives a wrong bit in its byte of this index.
    pub fn flip(&self, index: usize) {
        self.state.lock().unwrap().flip_at = Some(index);
    }

    /// The power goes: what was not synced takes the fate that the case gives it.
    pub fn lose_power(&self, content: Content, names: Names) {
        let mut state = self.state.lock().unwrap();
        for path in std::mem::take(&mut state.unsynced) {
            let published = state.renamed.iter().find(|(from, _)| *from == path);
            let path = published.map_or(&path, |(_, to)| to);
            let Ok(file) = File::options().write(true).open(path) else {
                continue;
            };
            let size_bytes = file.metadata().unwrap().len();
            match content {
                Content::Kept => {}
                Content::Lost => file.set_len(0).unwrap(),
                Content::Torn => file.set_len(size_bytes / 2).unwrap(),
            }
        }
        for (from, to) in std::mem::take(&mut state.renamed) {
            match names {
                Names::Kept => {}
                Names::Reverted => std::fs::rename(to, from).unwrap(),
                Names::Gone => std::fs::remove_file(to).unwrap(),
            }
        }
        for path in std::mem::take(&mut state.created) {
            if matches!(names, Names::Gone) && path.exists() {
                std::fs::remove_file(path).unwrap();
            }
        }
    }

    fn step(&self, step: Step) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        if state.stop_after.is_some_and(|last| state.steps >= last) {
            return Err(io::Error::other("the process is dead"));
        }
        state.steps += 1;
        let hook = match state.before.take() {
            Some((at, hook)) if at == step => Some(hook),
            other => {
                state.before = other;
                None
            }
        };
        let fail = state.fail;
        drop(state);
        if let Some(hook) = hook {
            hook();
        }
        match fail {
            Some((at, errno)) if at == step => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }
}

struct Faulty {
    real: Directory,
    path: PathBuf,
    faults: Arc<Faults>,
}

impl Faulty {
    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The path of an open file, which the port does not pass on.
    fn path_of(file: &Handle) -> PathBuf {
        use std::os::fd::AsRawFd;
        let file: &File = file.downcast_ref().unwrap();
        std::fs::read_link(Path::new("/proc/self/fd").join(file.as_raw_fd().to_string())).unwrap()
    }
}

impl Fs for Faulty {
    fn temporary_name(&self) -> String {
        self.real.temporary_name()
    }

    fn facts(&self, file: &Handle) -> io::Result<FileFacts> {
        self.real.facts(file)
    }

    fn lock_shared(&self, file: &Handle) -> io::Result<()> {
        self.real.lock_shared(file)
    }

    fn lock_alone(&self, file: &Handle) -> io::Result<bool> {
        self.real.lock_alone(file)
    }

    fn create(&self, name: &str) -> io::Result<Handle> {
        self.faults.step(Step::Create)?;
        let file = self.real.create(name)?;
        let mut state = self.faults.state.lock().unwrap();
        state.created.push(self.at(name));
        Ok(file)
    }

    fn write(&self, file: &mut Handle, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.faults.state.lock().unwrap();
        state.unsynced.push(Self::path_of(file));
        drop(state);
        if let Err(error) = self.faults.step(Step::Write) {
            // A write that fails has written some of it.
            self.real.write(file, &bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        self.real.write(file, bytes)
    }

    fn sync(&self, file: &Handle) -> io::Result<()> {
        self.faults.step(Step::Sync)?;
        self.real.sync(file)?;
        let synced = Self::path_of(file);
        let mut state = self.faults.state.lock().unwrap();
        state.unsynced.retain(|path| *path != synced);
        Ok(())
    }

    fn publish(&self, temporary: &str, name: &str) -> io::Result<()> {
        self.faults.step(Step::Publish)?;
        self.real.publish(temporary, name)?;
        let mut state = self.faults.state.lock().unwrap();
        state.renamed.push((self.at(temporary), self.at(name)));
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.faults.step(Step::SyncDirectory)?;
        self.real.sync_directory()?;
        let mut state = self.faults.state.lock().unwrap();
        state.renamed.clear();
        state.created.clear();
        Ok(())
    }

    fn remove(&self, temporary: &str) -> io::Result<()> {
        self.faults.step(Step::Discard)?;
        self.real.remove(temporary)
    }

    fn sweep(&self, temporary: &str) -> io::Result<bool> {
        self.faults.step(Step::Discard)?;
        self.real.sweep(temporary)
    }

    fn open(&self, name: &str) -> io::Result<Handle> {
        self.faults.step(Step::Open)?;
        self.real.open(name)
    }

    fn read(&self, file: &mut Handle, buffer: &mut [u8]) -> io::Result<usize> {
        self.faults.step(Step::Read)?;
        let state = self.faults.state.lock().unwrap();
        let most = state.read_max.unwrap_or(buffer.len()).min(buffer.len());
        let flip = state.flip_at;
        drop(state);
        let count = self.real.read(file, &mut buffer[..most])?;
        if let Some(index) = flip.filter(|index| *index < count) {
            buffer[index] ^= 1;
        }
        Ok(count)
    }

    fn touch(&self, file: &Handle) -> io::Result<()> {
        self.faults.step(Step::Touch)?;
        self.real.touch(file)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.faults.step(Step::List)?;
        self.real.list()
    }

    fn is_in_place(&self) -> io::Result<bool> {
        self.faults.step(Step::FindDirectory)?;
        self.real.is_in_place()
    }
}

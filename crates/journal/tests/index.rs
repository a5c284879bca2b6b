//! The index under a disk that changes its bytes or fails for a moment: it is made anew from the log, and never believed.
//!
//! Invariant: opening, looking, appending and closing give the answers of the log; a request counts once. Run on files of
//! the system's temporary directory.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use praxis_journal::{
    Append, Appended, Disk, FileDisk, Journal, Ledger, Options, RequestKey, StorageBackend,
};
use tempfile::TempDir;

#[path = "../../../simulations/src/script.rs"]
#[allow(dead_code)]
mod script;

use script::Script;

const PAGE: usize = 4096;
const INDEX: &str = "index.redb";

/// A store with so many requests that their table has pages of pages, and one append more.
fn store(path: &Path) -> (Vec<Append>, Append) {
    let mut script = Script::new("mission").unwrap();
    let disk = Arc::new(FileDisk::new(path));
    let mut ledger = Ledger::create(disk, "store".parse().unwrap(), &Options::default()).unwrap();
    let mut told = vec![script.start_run("one").unwrap()];
    told.extend((0..60).map(|_| script.note("one").unwrap()));
    for (at, append) in told.iter().enumerate() {
        assert!(ledger.commit(std::slice::from_ref(append), 0)[0].is_ok());
        if at % 20 == 0 {
            ledger.flush_index().unwrap();
        }
    }
    ledger.close().unwrap();
    (told, script.note("one").unwrap())
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap().path();
        fs::copy(&entry, to.join(entry.file_name().unwrap())).unwrap();
    }
}

/// Proves T-11: no changed byte of the index ends the process, and none is believed: what the index said of requests,
/// heads and owners is what the log says.
#[test]
fn t_11_a_changed_page_of_the_index_is_not_believed() {
    let folder = TempDir::new().unwrap();
    let whole = folder.path().join("whole");
    fs::create_dir(&whole).unwrap();
    let (told, more) = store(&whole);
    let bytes = fs::read(whole.join(INDEX)).unwrap();
    let mut spoiled = 0;
    for (number, page) in bytes.chunks(PAGE).enumerate() {
        let used: Vec<usize> = (0..page.len()).filter(|at| page[*at] != 0).collect();
        let Some(last) = used.last() else { continue };
        for at in [6, used[used.len() / 3], used[used.len() / 2], *last] {
            let what = format!("page {number}, byte {at}");
            let path = folder.path().join(format!("{number}-{at}"));
            copied(&whole, &path);
            let mut bytes = bytes.clone();
            bytes[number * PAGE + at] ^= 0x40;
            fs::write(path.join(INDEX), &bytes).unwrap();
            let disk = Arc::new(FileDisk::new(&path));
            let mut ledger = Ledger::open(disk, &Options::default()).unwrap();
            let report = ledger.verify(&mut |_, _| ()).unwrap();
            assert!(report.is_sound(), "{what}: {:?}", report.findings);
            for append in &told {
                let again = ledger.commit(std::slice::from_ref(append), 0).remove(0);
                assert!(matches!(again, Ok(Appended::Replayed { .. })), "{what}");
            }
            let new = ledger.commit(std::slice::from_ref(&more), 0).remove(0);
            assert!(matches!(new, Ok(Appended::Committed { .. })), "{what}");
            ledger.close().unwrap();
            fs::remove_dir_all(&path).unwrap();
            spoiled += 1;
        }
    }
    assert!(spoiled > 40, "{spoiled}");
}

/// The files of a directory; the next read of the index fails once it is armed.
#[derive(Debug)]
struct Failing {
    files: FileDisk,
    armed: Arc<AtomicBool>,
}

#[derive(Debug)]
struct FailingFile {
    file: Arc<dyn StorageBackend>,
    armed: Arc<AtomicBool>,
}

impl Failing {
    fn file(&self, name: &str, file: Arc<dyn StorageBackend>) -> Arc<dyn StorageBackend> {
        if !name.starts_with(INDEX) {
            return file;
        }
        let armed = Arc::clone(&self.armed);
        Arc::new(FailingFile { file, armed })
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
        match self.armed.swap(false, Ordering::SeqCst) {
            true => Err(io::Error::other("the device does not answer")),
            false => self.file.read(offset, out),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}

/// Proves T-11: a request is found although a read of the index failed, and nobody appends meanwhile: whoever asks whether
/// it was committed asks before it appends.
#[test]
fn t_11_a_look_for_a_request_mends_an_index_that_the_disk_failed_under() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    let (told, more) = store(&path);
    let armed = Arc::new(AtomicBool::new(false));
    let options = Options {
        disk: Some(Arc::new(Failing {
            files: FileDisk::new(&path),
            armed: Arc::clone(&armed),
        })),
        ..Options::default()
    };
    let journal = Journal::open(&path, &options).unwrap();
    let keys = told
        .iter()
        .map(|append| RequestKey::of(&append.sealed[0].event));
    armed.store(true, Ordering::SeqCst);
    for key in keys.map(Option::unwrap) {
        assert!(journal.lookup_request(&key).unwrap().is_some());
    }
    assert!(!armed.load(Ordering::SeqCst), "nothing was read");
    let new = RequestKey::of(&more.sealed[0].event).unwrap();
    assert_eq!(journal.lookup_request(&new).unwrap(), None);
    assert!(journal.append_blocking(more).is_ok());
    journal.close().unwrap();
}

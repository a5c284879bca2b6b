//! The log by itself, on real files: what reopening and rolling over leave, and the edges of what is read.
//!
//! Invariant: whatever a storage error took away, the log goes on in its last segment, or says that it cannot.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicUsize;

use praxis_journal_format::seal::hash_of;
use praxis_journal_format::{FORMAT_VERSION, Frame};
use tempfile::TempDir;

use super::*;
use crate::disk::FileDisk;

fn frame(sequence: u64) -> Vec<u8> {
    let bytes = sequence.to_string();
    let frame = Frame {
        codec: FORMAT_VERSION,
        previous: 0,
        boot: 0,
        hash: hash_of(bytes.as_bytes()),
        bytes: bytes.as_bytes(),
    };
    let mut out = Vec::new();
    frame.encode(&mut out).unwrap();
    out
}

fn appended(log: &Log, sequences: std::ops::RangeInclusive<u64>) {
    let mut frames = Frames::default();
    for sequence in sequences.clone() {
        frames.bytes.extend(frame(sequence));
        frames.ends.push(frames.bytes.len());
    }
    log.append(*sequences.start(), &frames).unwrap();
}

fn disk(path: &Path) -> Arc<dyn Disk> {
    Arc::new(FileDisk::new(path))
}

/// Three segments: events 1 and 2, event 3, and 4 in the one that grows.
fn three(path: &Path) -> Log {
    let log = Log::create(disk(path), 1).unwrap();
    appended(&log, 1..=2);
    assert!(log.roll_over().unwrap());
    appended(&log, 3..=3);
    assert!(log.roll_over().unwrap());
    appended(&log, 4..=4);
    log
}

fn assert_holds(log: &Log, last: u64) {
    assert_eq!(log.last().unwrap().sequence, last);
    assert_eq!(log.frame(0).unwrap(), None);
    for sequence in 1..=last {
        assert_eq!(log.frame(sequence).unwrap(), Some(frame(sequence)));
    }
    assert_eq!(log.frame(last + 1).unwrap(), None);
    let mut read = Vec::new();
    while let Some((sequence, bytes)) = log.chunk(read.len() as u64 + 1).unwrap().first().cloned() {
        assert_eq!(bytes, frame(sequence));
        read.push(sequence);
    }
    assert!(read.into_iter().eq(1..=last));
}

/// Full segments hold what they held, in this opening and in the next, for writing and for reading.
#[test]
fn segments_follow_each_other() {
    let folder = TempDir::new().unwrap();
    let log = three(folder.path());
    assert_holds(&log, 4);
    log.close();
    assert!(matches!(log.frame(1), Err(StoreError::Closed)));
    for write in [true, false] {
        let log = Log::open(disk(folder.path()), 1, write).unwrap();
        assert_holds(&log, 4);
    }
    let log = Log::open(disk(folder.path()), 1, true).unwrap();
    appended(&log, 5..=5);
    assert_holds(&log, 5);
}

/// An empty segment is not full, however small the bound: a log ends in at most one of them, and it is no gap.
#[test]
fn an_empty_segment_is_not_rolled_over() {
    let folder = TempDir::new().unwrap();
    let log = three(folder.path());
    assert!(log.roll_over().unwrap());
    assert!(!log.roll_over().unwrap());
    assert_holds(&log, 4);
    log.close();
    let log = Log::open(disk(folder.path()), 1, true).unwrap();
    assert_holds(&log, 4);
    appended(&log, 5..=5);
    assert_holds(&log, 5);
}

/// A segment is rolled over at its bound and not below it.
#[test]
fn a_segment_grows_to_its_bound() {
    let folder = TempDir::new().unwrap();
    let mut log = Log::create(disk(folder.path()), 1).unwrap();
    appended(&log, 1..=1);
    let size = log.state().hot.as_ref().unwrap().watched.len().unwrap();
    for (bound, rolls) in [(size + 1, false), (size, true)] {
        log.segment_bytes = bound;
        assert_eq!(log.roll_over().unwrap(), rolls, "{bound}");
    }
    assert_holds(&log, 1);
}

/// When neither the last segment's file nor a copy of it can be read, the log takes no append; when the file is there
/// again, reopening goes on in that very segment, never in a full one.
#[test]
fn a_lost_last_segment_is_the_one_that_is_opened_again() {
    for copy in [true, false] {
        let folder = TempDir::new().unwrap();
        let log = three(folder.path());
        let (file, away) = (folder.path().join(name(3)), folder.path().join("away"));
        fs::rename(&file, &away).unwrap();
        assert!(log.reopen(copy).is_err());
        assert!(matches!(log.frame(4), Err(StoreError::ReadOnly { .. })));
        assert_eq!(log.frame(3).unwrap(), Some(frame(3)));
        assert!(!log.roll_over().unwrap());
        let fault = log.append(5, &Frames::default()).unwrap_err();
        assert!(!fault.copy && matches!(fault.error, StoreError::ReadOnly { .. }));
        fs::rename(&away, &file).unwrap();
        log.reopen(copy).unwrap();
        assert_eq!(log.state().hot.as_ref().unwrap().number, 3);
        assert_holds(&log, 4);
        appended(&log, 5..=5);
        assert_holds(&log, 5);
    }
}

/// A log with a segment missing, or one that does not follow the one before, is not opened.
#[test]
fn a_gap_between_segments_is_seen() {
    let folder = TempDir::new().unwrap();
    three(folder.path()).close();
    let at = |number| folder.path().join(name(number));
    let place = || match Log::open(disk(folder.path()), 1, true) {
        Err(StoreError::Corrupt { place, .. }) => place,
        other => panic!("expected damage, found {other:?}"),
    };
    fs::rename(at(2), folder.path().join("away")).unwrap();
    assert_eq!(place(), name(2));
    // Each at the other's place: the second begins at 4 instead of 3.
    fs::rename(at(3), at(2)).unwrap();
    fs::rename(folder.path().join("away"), at(3)).unwrap();
    assert_eq!(place(), name(2));
    fs::remove_file(at(2)).unwrap();
    fs::rename(at(3), at(2)).unwrap();
    assert_eq!(
        Log::open(disk(folder.path()), 1, true)
            .unwrap()
            .last()
            .unwrap()
            .sequence,
        3
    );
    fs::remove_file(at(1)).unwrap();
    fs::rename(at(2), at(1)).unwrap();
    assert_eq!(place(), name(1));
    fs::remove_file(at(1)).unwrap();
    assert_eq!(place(), name(1));
}

/// Reading goes on where the last piece ended, and a piece is bounded.
#[test]
fn a_piece_is_bounded() {
    let folder = TempDir::new().unwrap();
    let log = Log::create(disk(folder.path()), u64::MAX).unwrap();
    appended(&log, 1..=1_500);
    let first = log.chunk(1).unwrap();
    assert_eq!((first.len(), first[1_023].0), (1_024, 1_024));
    assert_eq!(log.chunk(1_025).unwrap().len(), 476);
    assert!(log.chunk(1_501).unwrap().is_empty());
}

/// What a crash left under a temporary name is removed, and nothing else.
#[test]
fn leftovers_are_swept() {
    let folder = TempDir::new().unwrap();
    three(folder.path()).close();
    let left = format!("{}{UNFINISHED}", name(4));
    for other in [left.as_str(), "letter"] {
        fs::write(folder.path().join(other), "content").unwrap();
    }
    let disk = disk(folder.path());
    Log::sweep(&*disk).unwrap();
    assert_eq!(
        disk.list().unwrap(),
        ["letter", &name(1), &name(2), &name(3)]
    );
    Log::sweep(&*disk).unwrap();
    assert_holds(&Log::open(disk, 1, false).unwrap(), 4);
}

/// An empty file in the place of a segment is refused and stays empty: a new database in it would hide that the events
/// are gone.
#[test]
fn an_emptied_segment_is_not_made_anew() {
    for number in [2, 3] {
        let folder = TempDir::new().unwrap();
        three(folder.path()).close();
        let path = folder.path().join(name(number));
        fs::write(&path, b"").unwrap();
        for write in [true, false] {
            let opened = Log::open(disk(folder.path()), 1, write);
            let refused = opened.unwrap_err().to_string();
            assert!(refused.contains("found an empty file"), "{refused}");
            assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        }
    }
}

/// A disk that refuses to open one file so many times.
#[derive(Debug)]
struct Flaky {
    inner: FileDisk,
    name: String,
    refusals: AtomicUsize,
}

impl Disk for Flaky {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn StorageBackend>> {
        let less = |left: usize| left.checked_sub(1);
        let order = Ordering::SeqCst;
        if name == self.name && self.refusals.fetch_update(order, order, less).is_ok() {
            return Err(io::Error::other("too many files are open"));
        }
        self.inner.open(name, write)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageBackend>> {
        self.inner.create(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }
}

/// Proves STO-4: a full segment that cannot be opened for reading, nor copied, is not taken for an empty one: its events are
/// refused until it opens, and then they are there.
#[test]
fn sto_4_a_full_segment_that_does_not_open_is_not_empty() {
    let folder = TempDir::new().unwrap();
    let flaky = Arc::new(Flaky {
        inner: FileDisk::new(folder.path()),
        name: name(1),
        refusals: AtomicUsize::new(0),
    });
    let log = Log::create(flaky.clone(), 1).unwrap();
    appended(&log, 1..=2);
    // Two for the roll-over, and one for each of three reads.
    flaky.refusals.store(5, Ordering::SeqCst);
    assert!(log.roll_over().is_err());
    assert!(log.frame(1).is_err());
    assert!(log.chunk(1).is_err());
    assert!(log.last().is_err());
    assert_holds(&log, 2);
    appended(&log, 3..=3);
    assert!(log.roll_over().unwrap());
    appended(&log, 4..=4);
    assert_holds(&log, 4);
    log.close();
    assert_holds(&Log::open(flaky, 1, true).unwrap(), 4);
}

/// Proves STO-4: where the log ends is not told while its last segment is not open, or the log is closed.
#[test]
fn sto_4_the_end_is_told_by_the_last_segment_alone() {
    let folder = TempDir::new().unwrap();
    let log = three(folder.path());
    let (file, away) = (folder.path().join(name(3)), folder.path().join("away"));
    log.state_mut().hot = None;
    fs::rename(&file, &away).unwrap();
    assert!(matches!(log.last(), Err(StoreError::ReadOnly { .. })));
    fs::rename(&away, &file).unwrap();
    assert_eq!(log.last().unwrap().sequence, 4);
    log.close();
    assert!(matches!(log.last(), Err(StoreError::Closed)));
}

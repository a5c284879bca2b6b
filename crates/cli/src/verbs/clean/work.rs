//! The folders under `STORE/work`: whose they are, and whether they may go.
//! Invariant: a folder goes only when its run has ended, nothing of it is in doubt or running, and its result is where
//! it belongs; whatever cannot be told stays. Called by `clean` and, for a look, by `doctor`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use aiws::record::AttemptStatus;
use praxis_model::stream::Subject;
use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::render::page::Standing;
use crate::store::{Reader, Run};

/// How long a folder that belongs to no run of the store is left to whoever made it, in milliseconds: a week. A run's
/// folder is made before its first event.
const FOREIGN_MS: u64 = 7 * 86_400_000;

/// A folder and what is to become of it.
pub struct Folder {
    /// Its name, which is the run's.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Why it may go, or else why it stays.
    pub verdict: Verdict,
}

/// What is to become of a folder.
pub enum Verdict {
    /// It may go, for this reason.
    Goes(&'static str),
    /// It stays, for this reason.
    Stays(&'static str),
}

impl Folder {
    /// Whether it may go.
    #[must_use]
    pub fn goes(&self) -> bool {
        matches!(self.verdict, Verdict::Goes(_))
    }
}

/// Every folder of the store's `work`, by name. `before_ms` is the last moment at which a run may have ended for its
/// folder to go.
#[must_use]
pub fn folders(reader: &Reader, before_ms: u64, now_ms: u64) -> Vec<Folder> {
    let work = reader.path.join("work");
    // Somebody else's directory behind a link is none of ours.
    if !fs::symlink_metadata(&work).is_ok_and(|facts| facts.is_dir()) {
        return Vec::new();
    }
    let runs = reader.runs();
    let begun = reader.begun();
    let mut folders: Vec<Folder> = fs::read_dir(&work)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let verdict = match &runs {
                Ok(runs) => judge(
                    reader,
                    runs,
                    &begun,
                    &name,
                    &entry.path(),
                    before_ms,
                    now_ms,
                ),
                Err(_) => Verdict::Stays("the store's runs cannot be read"),
            };
            let path = entry.path();
            Folder {
                name,
                path,
                verdict,
            }
        })
        .collect();
    folders.sort_by(|one, other| one.name.cmp(&other.name));
    folders
}

fn judge(
    reader: &Reader,
    runs: &[Subject],
    begun: &[Subject],
    name: &str,
    path: &Path,
    before_ms: u64,
    now_ms: u64,
) -> Verdict {
    let is_it = |subject: &&Subject| {
        let run = subject.run_id.as_ref();
        run.is_some_and(|run| run.as_str() == name)
    };
    if begun.iter().any(|subject| is_it(&subject)) {
        return Verdict::Stays("its run was begun and can go on");
    }
    if is_worked_in(path) {
        return Verdict::Stays("an agent run or check of it is alive");
    }
    let Some(subject) = runs.iter().find(is_it) else {
        return foreign(name, path, now_ms);
    };
    match reader.load(subject) {
        Ok(run) => of_run(reader, &run, before_ms, now_ms),
        Err(_) => Verdict::Stays("its run cannot be read, or is of another kind"),
    }
}

fn of_run(reader: &Reader, run: &Run, before_ms: u64, now_ms: u64) -> Verdict {
    let in_doubt = run.state.attempts.values().any(|attempt| {
        matches!(
            attempt.status,
            AttemptStatus::Dispatched | AttemptStatus::Unknown
        )
    });
    if in_doubt {
        return Verdict::Stays("an agent run of it is not settled");
    }
    let page = reader.page(run, now_ms);
    let ended = match page.standing {
        Standing::Accepted if page.branch.is_none() => {
            return Verdict::Stays("its result is not published yet");
        }
        Standing::Accepted => "accepted and published",
        Standing::Ended(_) => page.standing.word(),
        _ => return Verdict::Stays("its run has not ended"),
    };
    match run.state.last_ms <= before_ms {
        true => Verdict::Goes(ended),
        false => Verdict::Stays("its run ended too short a time ago"),
    }
}

/// What a kill left before its run had its first event; or what somebody put there.
fn foreign(name: &str, path: &Path, now_ms: u64) -> Verdict {
    let ours = name.strip_prefix("r-").is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    let facts = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_dir);
    let old = facts
        .and_then(|facts| facts.modified().ok())
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .is_some_and(|since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
                <= now_ms.saturating_sub(FOREIGN_MS)
        });
    match ours && old {
        true => Verdict::Goes("left by a start that never became a run"),
        false => Verdict::Stays("no run of this store has this name"),
    }
}

/// Whether the lock of one of its attempts is held: then what was started there lives.
fn is_worked_in(path: &Path) -> bool {
    let attempts = fs::read_dir(path.join("attempts")).into_iter().flatten();
    attempts
        .filter_map(Result::ok)
        .any(|entry| is_locked(&entry.path().join("shim.lock")))
}

/// Whether somebody holds the lock of a file; what cannot be told counts as held.
#[must_use]
pub fn is_locked(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => false,
        Err(_) => true,
    }
}

/// How many bytes a tree takes on the disk. No link is followed.
#[must_use]
pub fn size(path: &Path) -> u64 {
    let mut total = 0u64;
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(facts) = fs::symlink_metadata(&path) else {
            continue;
        };
        // A file of several names is counted once for each, which is as it is in a clone: never.
        total = total.saturating_add(facts.blocks().saturating_mul(512));
        if facts.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten();
            open.extend(entries.filter_map(Result::ok).map(|entry| entry.path()));
        }
    }
    total
}

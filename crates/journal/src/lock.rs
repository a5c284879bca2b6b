//! Who may open a store: the directory's mode and owner, and one writer at a time.
//!
//! Invariant: a second opener is refused and told who holds the store; the lock ends with the process that holds it.
//! Called by the journal before it touches any other file.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::error::StoreError;
use crate::limits::{LOCK_TRIES, LOCK_WAIT_MS, SMALL_FILE_BYTES};

/// The name of the lock file.
pub(crate) const LOCK: &str = "engine.lock";

/// The lock of a store, held until it is dropped.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: File,
}

/// Makes the directory, for its owner only, unless it is there.
pub(crate) fn make_directory(path: &Path) -> Result<(), StoreError> {
    let doing = format!("create {}", path.display());
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(()),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(cause) => Err(StoreError::io(&doing, &cause)),
    }
}

/// Refuses a directory that others can enter or that belongs to another user.
pub(crate) fn check_directory(path: &Path) -> Result<(), StoreError> {
    let shown = path.display().to_string();
    let facts = match fs::metadata(path) {
        Ok(facts) => facts,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return Err(StoreError::NotFound { path: shown });
        }
        Err(cause) => return Err(StoreError::io(&format!("look at {shown}"), &cause)),
    };
    if !facts.is_dir() {
        return Err(StoreError::NotAStore {
            path: shown,
            what: "it is not a directory".to_owned(),
        });
    }
    let mode = facts.mode() & 0o777;
    if mode & 0o077 != 0 {
        let what = format!("expected mode 0700, found {mode:04o}: others can enter it");
        let mend = format!("chmod 700 '{shown}'");
        return Err(StoreError::Permissions {
            path: shown,
            what,
            mend,
        });
    }
    let user = rustix::process::geteuid().as_raw();
    if facts.uid() != user {
        let what = format!(
            "expected it to belong to user {user}, found user {}",
            facts.uid()
        );
        let mend = format!("chown -R {user} '{shown}'");
        return Err(StoreError::Permissions {
            path: shown,
            what,
            mend,
        });
    }
    Ok(())
}

impl StoreLock {
    /// Takes the lock and writes who holds it; `now_ms` is host time.
    pub fn exclusive(directory: &Path, now_ms: u64) -> Result<Self, StoreError> {
        let doing = format!("lock {LOCK}");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = open(directory, &mut options)?;
        Self::take(&file, File::try_lock, &doing)?;
        let holder = format!("process {}, since {}\n", std::process::id(), utc(now_ms));
        let written = || -> io::Result<()> {
            let mut file = &file;
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(holder.as_bytes())
        };
        written().map_err(|cause| StoreError::io(&doing, &cause))?;
        Ok(Self { _file: file })
    }

    /// Takes part in the lock as one of several readers; none if the store has no lock file to share.
    pub fn shared(directory: &Path) -> Result<Option<Self>, StoreError> {
        let doing = format!("lock {LOCK}");
        if let Err(cause) = fs::symlink_metadata(directory.join(LOCK)) {
            return match cause.kind() {
                io::ErrorKind::NotFound => Ok(None),
                _ => Err(StoreError::io(&doing, &cause)),
            };
        }
        let file = open(directory, OpenOptions::new().read(true))?;
        Self::take(&file, File::try_lock_shared, &doing)?;
        Ok(Some(Self { _file: file }))
    }

    fn take(
        file: &File,
        lock: fn(&File) -> Result<(), TryLockError>,
        doing: &str,
    ) -> Result<(), StoreError> {
        for _ in 0..LOCK_TRIES {
            match lock(file) {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(cause)) => return Err(StoreError::io(doing, &cause)),
                // Of a holder that was killed, a child between fork and exec may have the lock for a moment more.
                Err(TryLockError::WouldBlock) if ended(&holder(file)) => {
                    thread::sleep(Duration::from_millis(LOCK_WAIT_MS));
                }
                Err(TryLockError::WouldBlock) => break,
            }
        }
        Err(StoreError::Locked {
            holder: holder(file),
        })
    }
}

/// Opens the lock file without following links or waiting for the other end of a pipe, and before anything is written
/// makes sure that it is a plain file of this user under this one name: whatever else stands there is not ours to
/// write to.
fn open(directory: &Path, options: &mut OpenOptions) -> Result<File, StoreError> {
    let path = directory.join(LOCK);
    let refused = |what: &str| StoreError::Permissions {
        path: path.display().to_string(),
        what: format!("expected a plain file of this user under one name, found {what}"),
        mend: format!("rm '{}'", path.display()),
    };
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = options
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(&path);
    let file = opened.map_err(|cause| match cause.raw_os_error() {
        Some(raw) if raw == Errno::LOOP.raw_os_error() => refused("a link"),
        Some(raw) if raw == Errno::NXIO.raw_os_error() => refused("no file"),
        Some(raw) if raw == Errno::ISDIR.raw_os_error() => refused("a directory"),
        _ => StoreError::io(&format!("lock {LOCK}"), &cause),
    })?;
    let facts = file
        .metadata()
        .map_err(|cause| StoreError::io(&format!("look at {LOCK}"), &cause))?;
    if !facts.is_file() {
        return Err(refused("no file"));
    }
    if facts.nlink() != 1 {
        return Err(refused(&format!("{} names", facts.nlink())));
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused(&format!("one of user {}", facts.uid())));
    }
    Ok(file)
}

/// Whether the process that a holder's text names is there no more.
fn ended(holder: &str) -> bool {
    let named = holder.strip_prefix("process ").unwrap_or_default();
    let number = named.split(',').next().unwrap_or_default().parse();
    let Some(process) = number.ok().and_then(Pid::from_raw) else {
        return false;
    };
    test_kill_process(process) == Err(Errno::SRCH)
}

/// A time in UTC, to the second, as a person reads it.
fn utc(ms: u64) -> String {
    let (days, seconds) = (ms / 86_400_000, ms / 1_000 % 86_400);
    // Years are counted from the first of March, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    format!(
        "{:04}-{month:02}-{:02} {:02}:{:02}:{:02}Z",
        era * 400 + year + u64::from(month <= 2),
        day - (153 * shifted + 2) / 5 + 1,
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// What the holder wrote about itself, with nothing in it that a terminal would obey.
fn holder(file: &File) -> String {
    let mut text = String::new();
    let mut file = file;
    let read = file
        .rewind()
        .and_then(|()| file.take(SMALL_FILE_BYTES).read_to_string(&mut text));
    let plain: String = text
        .trim()
        .chars()
        .filter(|char| !char.is_control())
        .take(200)
        .collect();
    match read {
        Ok(_) if !plain.is_empty() => plain,
        _ => "a reader, or a process that did not say who it is".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_says_since_when_in_utc() {
        let cases = [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_400_000, "2000-02-29 00:00:00Z"),
            (1_796_061_599_999, "2026-11-30 17:59:59Z"),
        ];
        for (ms, text) in cases {
            assert_eq!(utc(ms), text);
        }
    }
}

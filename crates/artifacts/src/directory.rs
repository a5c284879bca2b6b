//! The artifact directory on a real disk: a held handle and system calls relative to it.
//! Invariant: no path is resolved after open, no symlink is followed, and what is made is private to its owner.
//! `FileArtifacts` calls it through `fs::Fs`; simulators wrap it.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps,
    UTIME_NOW,
};
use rustix::io::Errno;

use crate::error::ArtifactError;
use crate::fs::{FileFacts, Fs, Handle, Step};
use crate::limits::ENTRIES_MAX;

/// Permission bits of the directory: its owner's alone.
const DIRECTORY_MODE: Mode = Mode::RWXU;

/// Permission bits of a file: its owner's alone.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// What a temporary file's name begins with; a digest never does.
pub(crate) const TEMPORARY_PREFIX: &str = "temporary-";

/// Numbers the temporary files of this process, over all stores that it opened.
static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

/// Whoever else could enter, list or change the directory.
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// A directory held open, in which every name is resolved.
#[derive(Debug)]
pub struct Directory {
    held: File,
    parent: File,
    name: OsString,
}

impl Directory {
    /// Opens the directory at `path`, making it (0700) when it is missing; its parent must exist. Its own name is
    /// made durable before this returns.
    ///
    /// # Errors
    ///
    /// [`ArtifactError::Directory`] when the path is a symlink, no directory, another user's or open to others;
    /// [`ArtifactError::Io`] when a step fails.
    pub fn open(path: &Path) -> Result<Self, ArtifactError> {
        let refuse = |found: &str, remedy: String| ArtifactError::Directory {
            path: path.to_owned(),
            found: found.to_owned(),
            remedy,
        };
        let io = |errno: Errno| ArtifactError::io(Step::OpenDirectory, errno.into());
        let Some(name) = path.file_name().map(OsString::from) else {
            let remedy = "give the path of a directory of its own".to_owned();
            return Err(refuse("no name of its own", remedy));
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent: File = rustix::fs::open(parent, flags, Mode::empty())
            .map_err(io)?
            .into();
        match rustix::fs::mkdirat(&parent, &name, DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(io(errno)),
        }
        let held = rustix::fs::openat(&parent, &name, flags | OFlags::NOFOLLOW, Mode::empty());
        let held: File = match held {
            Ok(held) => held.into(),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let remedy = "move it away, or give the path of the directory itself".to_owned();
                return Err(refuse("a symlink or no directory", remedy));
            }
            Err(errno) => return Err(io(errno)),
        };
        let stat = rustix::fs::fstat(&held).map_err(io)?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            let remedy = "run as the directory's owner, or give another path".to_owned();
            return Err(refuse("a directory of another user", remedy));
        }
        if Mode::from_raw_mode(stat.st_mode).intersects(OTHERS) {
            let remedy = format!("run: chmod 700 '{}'", path.display());
            return Err(refuse("a directory that others may enter", remedy));
        }
        // Also when the directory was there: whoever made it may have crashed before its name was durable.
        parent
            .sync_all()
            .map_err(|source| ArtifactError::io(Step::OpenDirectory, source))?;
        Ok(Self { held, parent, name })
    }
}

impl Fs for Directory {
    fn temporary_name(&self) -> String {
        let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
        format!("{TEMPORARY_PREFIX}{}-{number}", std::process::id())
    }

    fn facts(&self, file: &Handle) -> io::Result<FileFacts> {
        let metadata = opened(file)?.metadata()?;
        Ok(FileFacts {
            odd: kind_if_not_regular(&metadata),
            len: metadata.len(),
            links: metadata.nlink(),
            last_put_ms: last_put_ms(&metadata)?,
        })
    }

    fn lock_shared(&self, file: &Handle) -> io::Result<()> {
        let file = opened(file)?;
        loop {
            match rustix::fs::flock(file, FlockOperation::LockShared) {
                Err(Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }

    fn lock_alone(&self, file: &Handle) -> io::Result<bool> {
        match rustix::fs::flock(opened(file)?, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn create(&self, name: &str) -> io::Result<Handle> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&self.held, name, flags | OFlags::CLOEXEC, FILE_MODE)?;
        // The lock tells a sweep that this file is alive. One that came first either still has the lock or has
        // removed the name; to the caller both look like a name that was taken.
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if rustix::fs::fstat(&file)?.st_nlink == 1 => Ok(Box::new(File::from(file))),
            Ok(()) | Err(Errno::WOULDBLOCK) => Err(Errno::EXIST.into()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn write(&self, file: &mut Handle, bytes: &[u8]) -> io::Result<()> {
        opened_mut(file)?.write_all(bytes)
    }

    fn sync(&self, file: &Handle) -> io::Result<()> {
        opened(file)?.sync_all()
    }

    fn publish(&self, temporary: &str, name: &str) -> io::Result<()> {
        // Not a hard link and an unlink: a file would have two names in between, which readers refuse.
        let only_if_free = RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(&self.held, temporary, &self.held, name, only_if_free)?;
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.held.sync_all()
    }

    fn remove(&self, temporary: &str) -> io::Result<()> {
        rustix::fs::unlinkat(&self.held, temporary, AtFlags::empty())?;
        Ok(())
    }

    fn sweep(&self, temporary: &str) -> io::Result<bool> {
        let file = self.open_file(temporary)?;
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(false);
        }
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => self.remove_if_same(temporary, &stat),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn open(&self, name: &str) -> io::Result<Handle> {
        Ok(Box::new(self.open_file(name)?))
    }

    fn read(&self, file: &mut Handle, buffer: &mut [u8]) -> io::Result<usize> {
        opened_mut(file)?.read(buffer)
    }

    fn touch(&self, file: &Handle) -> io::Result<()> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        Ok(rustix::fs::futimens(opened(file)?, &times)?)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.held)? {
            let entry = entry?;
            // A name that is no UTF-8 is neither a digest nor a temporary file: not ours, like any other stranger.
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if name == "." || name == ".." {
                continue;
            }
            if names.len() == ENTRIES_MAX {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            names.push(name.to_owned());
        }
        Ok(names)
    }

    fn is_in_place(&self) -> io::Result<bool> {
        let held = rustix::fs::fstat(&self.held)?;
        match rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Ok(is_same(&held, &there)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// The file of a handle that this port gave.
fn opened(file: &Handle) -> io::Result<&File> {
    file.downcast_ref().ok_or_else(foreign)
}

fn opened_mut(file: &mut Handle) -> io::Result<&mut File> {
    file.downcast_mut().ok_or_else(foreign)
}

fn foreign() -> io::Error {
    io::Error::other("expected a file of this directory, found one of another port")
}

impl Directory {
    fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.held, name, flags, Mode::empty())?.into())
    }

    /// Removes `temporary` if it still names the file whose lock the caller holds: the put that made it may have
    /// published it, and another may have taken the name, before the lock was free.
    fn remove_if_same(&self, temporary: &str, locked: &Stat) -> io::Result<bool> {
        match rustix::fs::statat(&self.held, temporary, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) if is_same(locked, &there) => {
                self.remove(temporary)?;
                Ok(true)
            }
            Ok(_) | Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    one.st_dev == other.st_dev && one.st_ino == other.st_ino
}

/// What a file is instead of a regular one.
pub(crate) fn kind_if_not_regular(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a directory")
    } else if kind.is_fifo() {
        Some("a FIFO")
    } else {
        Some("a socket or a device")
    }
}

fn last_put_ms(metadata: &Metadata) -> io::Result<u64> {
    // A time before 1970 is a clock that was wrong; as 0 it makes the file look old, and only a host collects.
    let since = metadata.modified()?.duration_since(UNIX_EPOCH);
    Ok(since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }))
}

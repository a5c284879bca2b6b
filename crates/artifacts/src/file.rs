//! The artifact store in a directory: put, read, list.
//! Invariant: a final name never shows anything but the whole bytes that hash to it; only `collect` removes one.
//! The engine calls it through `ArtifactProvider`; simulators give it a faulty `Fs`.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use aiws::digest::{Digest, Hasher, sha256};
use aiws::id::ActorId;
use aiws::record::Artifact;
use praxis_plant::{self as plant, Plant};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::directory::{Directory, TEMPORARY_PREFIX, kind_if_not_regular};
use crate::error::ArtifactError;
use crate::facts::Facts;
use crate::fs::{FileFacts, Fs, Handle, Step};
use crate::limits::{ARTIFACT_BYTES_MAX, CHUNK_BYTES, TEMPORARY_NAMES_MAX};
use crate::provider::{ArtifactProvider, Orphan, check_retention, check_size, verify};

/// An artifact store in one directory of a local file system.
pub struct FileArtifacts {
    pub(crate) fs: Box<dyn Fs>,
    // True once a sync of the directory failed: the system reports such an error once, and a later sync that says yes
    // proves nothing about the names of before. Only a new open, after the cause was mended, starts afresh. Locked
    // during the sync, so that no other put takes its own yes for an answer before the flag is up.
    pub(crate) suspended: Mutex<bool>,
}

impl FileArtifacts {
    /// Opens the store in the directory `path`, making it when it is missing, and removes the temporary files that
    /// dead processes left.
    ///
    /// # Errors
    ///
    /// `STORE_PERMISSIONS` when the directory is a symlink, another user's or open to others (ART-8); a store code
    /// when a step failed.
    pub fn open(path: &Path) -> Result<Self, ArtifactError> {
        Self::open_on(Box::new(Directory::open(path)?))
    }

    /// As [`open`](FileArtifacts::open), on a directory whose steps the caller can make fail.
    ///
    /// # Errors
    ///
    /// A store code when a step failed.
    pub fn open_on(fs: Box<dyn Fs>) -> Result<Self, ArtifactError> {
        let store = Self {
            fs,
            suspended: Mutex::new(false),
        };
        store.sweep()?;
        Ok(store)
    }

    /// Stores the content of the file at `source`, read once and in pieces; else as [`ArtifactProvider::put`].
    ///
    /// # Errors
    ///
    /// As [`ArtifactProvider::put`]; also `ARTIFACT_UNAVAILABLE` when `source` is no regular file, a symlink included.
    pub fn put_file(
        &self,
        source: &Path,
        locator_key: &str,
        media_type: &str,
        retention_owner: &ActorId,
        retain_until_ms: u64,
    ) -> Result<Artifact, ArtifactError> {
        let facts = Facts::check(locator_key, media_type, retention_owner, retain_until_ms)?;
        let mut source = open_source(source)?;
        let mut buffer = vec![0; CHUNK_BYTES];
        let (digest, size_bytes) = self.store_new(|temporary| {
            let mut hasher = Hasher::new();
            let mut size_bytes = 0;
            loop {
                let count = at(
                    Step::ReadSource,
                    retry_interrupted(|| source.read(&mut buffer)),
                )?;
                if count == 0 {
                    return Ok((hasher.finish(), size_bytes));
                }
                size_bytes += count as u64;
                check_bound(size_bytes)?;
                hasher.update(&buffer[..count]);
                at(Step::Write, self.fs.write(temporary, &buffer[..count]))?;
            }
        })?;
        facts.record(digest, size_bytes)
    }
}

impl ArtifactProvider for FileArtifacts {
    fn put(
        &self,
        bytes: &[u8],
        locator_key: &str,
        media_type: &str,
        retention_owner: &ActorId,
        retain_until_ms: u64,
    ) -> Result<Artifact, ArtifactError> {
        let facts = Facts::check(locator_key, media_type, retention_owner, retain_until_ms)?;
        let size_bytes = bytes.len() as u64;
        check_bound(size_bytes)?;
        let digest = sha256(bytes);
        self.check_ready()?;
        if !self.confirm_existing(&digest)? {
            self.store_new(|temporary| {
                at(Step::Write, self.fs.write(temporary, bytes))?;
                Ok((digest, size_bytes))
            })?;
        }
        facts.record(digest, size_bytes)
    }

    fn read(&self, artifact: &Artifact, now_ms: u64) -> Result<Vec<u8>, ArtifactError> {
        check_retention(artifact, now_ms)?;
        self.check_in_place()?;
        let Some((mut file, facts)) = self.open_plain(&artifact.digest.to_string())? else {
            return Err(ArtifactError::Missing {
                digest: artifact.digest,
            });
        };
        // Before a byte is read: neither a false record nor a swollen file decides how much memory is taken.
        check_size(artifact, facts.len)?;
        check_bound(facts.len)?;
        let mut bytes = Vec::with_capacity(facts.len as usize);
        self.read_pieces(&mut file, |piece| {
            bytes.extend_from_slice(piece);
            // A file that grows while it is read is refused before it fills the memory.
            if bytes.len() as u64 > facts.len {
                check_size(artifact, bytes.len() as u64)?;
            }
            Ok(())
        })?;
        verify(artifact, &bytes)?;
        Ok(bytes)
    }

    fn read_digest(&self, digest: &Digest, max_bytes: u64) -> Result<Vec<u8>, ArtifactError> {
        self.check_in_place()?;
        let Some((mut file, facts)) = self.open_plain(&digest.to_string())? else {
            return Err(ArtifactError::Missing { digest: *digest });
        };
        let limit_bytes = max_bytes.min(ARTIFACT_BYTES_MAX);
        let fits = |found: u64| match found <= limit_bytes {
            true => Ok(()),
            false => Err(ArtifactError::TooLarge { limit_bytes, found }),
        };
        fits(facts.len)?;
        let mut bytes = Vec::with_capacity(facts.len as usize);
        self.read_pieces(&mut file, |piece| {
            bytes.extend_from_slice(piece);
            fits(bytes.len() as u64)
        })?;
        let found = sha256(&bytes);
        if found != *digest && !plant::is(Plant::ReadUnverified) {
            return Err(ArtifactError::DigestMismatch {
                expected: *digest,
                found,
            });
        }
        Ok(bytes)
    }

    fn contains(&self, digest: &Digest) -> Result<bool, ArtifactError> {
        self.check_in_place()?;
        Ok(self.open_plain(&digest.to_string())?.is_some())
    }

    fn orphans(&self, referenced: &BTreeSet<Digest>) -> Result<Vec<Orphan>, ArtifactError> {
        self.check_in_place()?;
        let mut orphans = Vec::new();
        for name in at(Step::List, self.fs.list())? {
            let Ok(digest) = name.parse::<Digest>() else {
                continue;
            };
            if referenced.contains(&digest) {
                continue;
            }
            match self.open_plain(&name) {
                Ok(Some((_, facts))) => orphans.push(Orphan {
                    digest,
                    size_bytes: facts.len,
                    last_put_ms: facts.last_put_ms,
                }),
                Ok(None) => {}
                Err(error @ ArtifactError::NotPlain { .. }) => {
                    tracing::warn!(%error, "left out of the orphan listing");
                }
                Err(error) => return Err(error),
            }
        }
        orphans.sort_by_key(|orphan| orphan.digest);
        Ok(orphans)
    }
}

impl FileArtifacts {
    /// Puts what `fill` writes under the digest that it returns: temporary file, sync, exclusive publish, directory
    /// sync (ART-1). When another put was first, its file is confirmed instead.
    fn store_new(
        &self,
        fill: impl FnOnce(&mut Handle) -> Result<(Digest, u64), ArtifactError>,
    ) -> Result<(Digest, u64), ArtifactError> {
        self.check_ready()?;
        let (temporary, mut file) = self.create_temporary()?;
        let published = fill(&mut file).and_then(|stored| {
            if !plant::is(Plant::PublishedBeforeSync) {
                at(Step::Sync, self.fs.sync(&file))?;
            }
            match self.fs.publish(&temporary, &stored.0.to_string()) {
                Ok(()) => Ok((stored, true)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok((stored, false)),
                Err(error) => Err(ArtifactError::io(Step::Publish, error)),
            }
        });
        if !matches!(published, Ok((_, true))) {
            self.discard(&temporary);
        }
        let (stored, is_new) = published?;
        if is_new && plant::is(Plant::AnnouncedBeforeSync) {
            return Ok(stored);
        }
        if is_new {
            self.sync_names()?;
        } else if !self.confirm_existing(&stored.0)? {
            return Err(ArtifactError::Missing { digest: stored.0 });
        }
        Ok(stored)
    }

    /// Whether the very bytes of `digest` are stored; if so they are durable when this returns, whoever put them and
    /// however far that put had come (ART-2).
    fn confirm_existing(&self, digest: &Digest) -> Result<bool, ArtifactError> {
        let Some((mut file, _)) = self.open_plain(&digest.to_string())? else {
            return Ok(false);
        };
        // Until its time is renewed, nobody may collect it; where that was quicker, the name is free.
        at(Step::Open, self.fs.lock_shared(&file))?;
        if at(Step::Open, self.fs.facts(&file))?.links == 0 {
            return Ok(false);
        }
        let mut hasher = Hasher::new();
        let mut size_bytes = 0;
        self.read_pieces(&mut file, |piece| {
            size_bytes += piece.len() as u64;
            hasher.update(piece);
            check_bound(size_bytes)
        })?;
        let found = hasher.finish();
        if found != *digest {
            return Err(ArtifactError::DigestMismatch {
                expected: *digest,
                found,
            });
        }
        // The new put starts the time anew that an orphan is left to its commit.
        at(Step::Touch, self.fs.touch(&file))?;
        at(Step::Sync, self.fs.sync(&file))?;
        self.sync_names()?;
        Ok(true)
    }

    /// Makes the names durable and makes sure that they are where the next open will look.
    fn sync_names(&self) -> Result<(), ArtifactError> {
        let mut suspended = self.suspended();
        if *suspended {
            return Err(ArtifactError::Suspended);
        }
        if let Err(error) = self.fs.sync_directory() {
            *suspended = true;
            return Err(ArtifactError::io(Step::SyncDirectory, error));
        }
        drop(suspended);
        self.check_in_place()
    }

    fn check_ready(&self) -> Result<(), ArtifactError> {
        if *self.suspended() {
            return Err(ArtifactError::Suspended);
        }
        self.check_in_place()
    }

    /// The flag; raised if a thread died while it held the lock, for then nobody knows what the sync did.
    fn suspended(&self) -> MutexGuard<'_, bool> {
        self.suspended.lock().unwrap_or_else(|poison| {
            let mut suspended = poison.into_inner();
            *suspended = true;
            suspended
        })
    }

    pub(crate) fn check_in_place(&self) -> Result<(), ArtifactError> {
        if at(Step::FindDirectory, self.fs.is_in_place())? {
            Ok(())
        } else {
            Err(ArtifactError::Exchanged)
        }
    }

    fn create_temporary(&self) -> Result<(String, Handle), ArtifactError> {
        let mut tries = 0;
        loop {
            let name = self.fs.temporary_name();
            tries += 1;
            match self.fs.create(&name) {
                Ok(file) => return Ok((name, file)),
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists
                        && tries < TEMPORARY_NAMES_MAX => {}
                Err(error) => return Err(ArtifactError::io(Step::Create, error)),
            }
        }
    }

    /// Removes a temporary file that was not published; one that stays is swept at the next open.
    fn discard(&self, temporary: &str) {
        if let Err(error) = self.fs.remove(temporary) {
            tracing::warn!(temporary, %error, "left a temporary file to the next open");
        }
    }

    /// Removes what dead puts left. A file that cannot be removed costs space alone, so the store opens all the same.
    fn sweep(&self) -> Result<(), ArtifactError> {
        for name in at(Step::List, self.fs.list())? {
            if !name.starts_with(TEMPORARY_PREFIX) {
                continue;
            }
            match self.fs.sweep(&name) {
                Ok(removed) => tracing::debug!(name, removed, "temporary file found at open"),
                Err(error) => tracing::warn!(name, %error, "could not remove a temporary file"),
            }
        }
        Ok(())
    }

    /// Opens the regular file of one name at `name`; `None` when the name is free.
    pub(crate) fn open_plain(
        &self,
        name: &str,
    ) -> Result<Option<(Handle, FileFacts)>, ArtifactError> {
        let not_plain = |found| ArtifactError::NotPlain {
            name: name.to_owned(),
            found,
        };
        let file = match self.fs.open(name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(not_plain_at_open(&error)
                    .map_or_else(|| ArtifactError::io(Step::Open, error), not_plain));
            }
        };
        let facts = at(Step::Open, self.fs.facts(&file))?;
        if let Some(found) = facts.odd {
            return Err(not_plain(found));
        }
        if facts.links != 1 {
            return Err(not_plain("a file with several names, or none"));
        }
        Ok(Some((file, facts)))
    }

    /// Hands the file's bytes to `take`, in pieces, to its end or to the first error.
    fn read_pieces(
        &self,
        file: &mut Handle,
        mut take: impl FnMut(&[u8]) -> Result<(), ArtifactError>,
    ) -> Result<(), ArtifactError> {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let read = retry_interrupted(|| self.fs.read(file, &mut buffer));
            let count = at(Step::Read, read)?;
            if count == 0 {
                return Ok(());
            }
            take(&buffer[..count])?;
        }
    }
}

impl fmt::Debug for FileArtifacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileArtifacts")
            .field("suspended", &self.suspended)
            .finish_non_exhaustive()
    }
}

/// Opens the file that is to be stored: a regular one, not through a symlink, without waiting for a FIFO.
fn open_source(path: &Path) -> Result<File, ArtifactError> {
    let not_plain = |found| ArtifactError::SourceNotPlain {
        path: path.to_owned(),
        found,
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file: File = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file.into(),
        Err(errno) => {
            let error = io::Error::from(errno);
            return Err(match not_plain_at_open(&error) {
                Some(found) => not_plain(found),
                None => ArtifactError::io(Step::ReadSource, error),
            });
        }
    };
    let metadata = at(Step::ReadSource, file.metadata())?;
    match kind_if_not_regular(&metadata) {
        Some(found) => Err(not_plain(found)),
        None => check_bound(metadata.len()).map(|()| file),
    }
}

/// What an open that failed says about the kind of the file.
fn not_plain_at_open(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error) {
        Some(Errno::LOOP) => Some("a symlink"),
        Some(Errno::NXIO) => Some("a socket or a device"),
        _ => None,
    }
}

fn check_bound(size_bytes: u64) -> Result<(), ArtifactError> {
    if size_bytes <= ARTIFACT_BYTES_MAX {
        return Ok(());
    }
    Err(ArtifactError::TooLarge {
        limit_bytes: ARTIFACT_BYTES_MAX,
        found: size_bytes,
    })
}

fn retry_interrupted(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn at<T>(step: Step, result: io::Result<T>) -> Result<T, ArtifactError> {
    result.map_err(|source| ArtifactError::io(step, source))
}

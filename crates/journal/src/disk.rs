//! The narrow door to the files of a store, where the simulator puts its faulty disk.
//!
//! Invariant: names are plain file names inside one directory; nothing here survives a power loss before
//! `sync_data` of the file and `sync_directory` of the names. Called by segments, index and store file.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::StorageBackend;
use redb::backends::FileBackend;
use rustix::fs::OFlags;

/// One directory of files.
pub trait Disk: Debug + Send + Sync {
    /// The names of the plain files.
    ///
    /// # Errors
    /// What the file system answers.
    fn list(&self) -> io::Result<Vec<String>>;

    /// An existing file; with `write` false it is only read.
    ///
    /// # Errors
    /// What the file system answers; `NotFound` for a name that is not there.
    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn StorageBackend>>;

    /// A new empty file; one that is there already is emptied.
    ///
    /// # Errors
    /// What the file system answers.
    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageBackend>>;

    /// Gives a file another name; a file that has that name is replaced.
    ///
    /// # Errors
    /// What the file system answers.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the file system answers.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and removals durable.
    ///
    /// # Errors
    /// What the file system answers.
    fn sync_directory(&self) -> io::Result<()>;
}

/// A directory of the file system. Files are created for their owner only (0600).
#[derive(Clone, Debug)]
pub struct FileDisk {
    directory: PathBuf,
}

impl FileDisk {
    /// The directory at a path; it must exist.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    fn backend(file: File) -> io::Result<Arc<dyn StorageBackend>> {
        let backend =
            FileBackend::new(file).map_err(|cause| io::Error::other(cause.to_string()))?;
        Ok(Arc::new(backend))
    }
}

impl Disk for FileDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                // A name that is not UTF-8 is none of ours.
                names.extend(entry.file_name().into_string().ok());
            }
        }
        names.sort();
        Ok(names)
    }

    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn StorageBackend>> {
        let mut options = OpenOptions::new();
        Self::backend(plain(
            &self.directory.join(name),
            options.read(true).write(write),
        )?)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageBackend>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = plain(&self.directory.join(name), options.mode(0o600))?;
        // Only now that it is known to be a file of the store.
        file.set_len(0)?;
        Self::backend(file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.directory.join(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

/// Opens a plain file: no link is followed, and no pipe or device is waited for.
fn plain(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let what = "expected a plain file, found something else";
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

//! The steps that the artifact store takes on a file system, as a port: where faults are injected.
//! Invariant: a store touches the disk through these methods alone, one step each, so that a crash can fall between.
//! `FileArtifacts` calls it; `directory::Directory` is the one implementation that ships.

use std::any::Any;
use std::fmt;
use std::io;

/// An open file. What it is, only the port that opened it knows.
pub type Handle = Box<dyn Any + Send>;

/// What is known of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// What it is instead of a regular file, if it is none.
    pub odd: Option<&'static str>,
    /// Its size in bytes.
    pub len: u64,
    /// How many names it has.
    pub links: u64,
    /// When its bytes were last put, in milliseconds since 1970 by the file system's clock.
    pub last_put_ms: u64,
}

/// One directory and the steps that a put, a read and a listing take in it.
///
/// A test wraps [`Directory`](crate::directory::Directory), passes steps on, and fails or stops at one of them; the crash
/// simulator has a directory of its own, on a disk that loses power. `name` is always a plain file name.
pub trait Fs: Send + Sync {
    /// A name for a temporary file that this process has not used in this directory; it begins with `temporary-`.
    fn temporary_name(&self) -> String;

    /// What the file is, and how large.
    ///
    /// # Errors
    ///
    /// Any error of the device.
    fn facts(&self, file: &Handle) -> io::Result<FileFacts>;

    /// Shares the lock that a collection takes alone, until the file is closed; waits for it.
    ///
    /// # Errors
    ///
    /// Any; nothing is known of the file's fate then.
    fn lock_shared(&self, file: &Handle) -> io::Result<()>;

    /// Takes the lock alone, until the file is closed, if nobody has it; says whether it did.
    ///
    /// # Errors
    ///
    /// Any but that somebody has it.
    fn lock_alone(&self, file: &Handle) -> io::Result<bool>;

    /// Creates a new, empty file `name` for writing, which [`sweep`](Fs::sweep) leaves alone while it is open.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` when the name is taken in any form; any other when the file could not be made.
    fn create(&self, name: &str) -> io::Result<Handle>;

    /// Appends all of `bytes` to a file that [`create`](Fs::create) made.
    ///
    /// # Errors
    ///
    /// Any; the file then holds an unknown part of the bytes.
    fn write(&self, file: &mut Handle, bytes: &[u8]) -> io::Result<()>;

    /// Makes the bytes of `file` durable.
    ///
    /// # Errors
    ///
    /// Any; the file must not be trusted from then on, whatever a later sync of it says.
    fn sync(&self, file: &Handle) -> io::Result<()>;

    /// Gives the file `temporary` the name `name` instead, in one step, only if that is free.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` when `name` is taken in any form; any other when the file system cannot do it. Nothing is
    /// changed in either case.
    fn publish(&self, temporary: &str, name: &str) -> io::Result<()>;

    /// Makes the names in the directory durable.
    ///
    /// # Errors
    ///
    /// Any; which names survive a power loss is unknown from then on.
    fn sync_directory(&self) -> io::Result<()>;

    /// Removes the name of a temporary file whose put failed.
    ///
    /// # Errors
    ///
    /// Any; the name stays, for [`sweep`](Fs::sweep) to find.
    fn remove(&self, temporary: &str) -> io::Result<()>;

    /// Removes a temporary file that no living put has open; says whether it did.
    ///
    /// # Errors
    ///
    /// Any; the file stays, harmless but for its space.
    fn sweep(&self, temporary: &str) -> io::Result<bool>;

    /// Opens `name` for reading. Follows no symlink and never waits for the other side of a FIFO.
    ///
    /// # Errors
    ///
    /// `NotFound` when the name is free; any other when it cannot be opened, a symlink included.
    fn open(&self, name: &str) -> io::Result<Handle>;

    /// Reads the next bytes of `file` into `buffer`; 0 at its end.
    ///
    /// # Errors
    ///
    /// Any read error of the device.
    fn read(&self, file: &mut Handle, buffer: &mut [u8]) -> io::Result<usize>;

    /// Sets the time of `file`'s last put to now.
    ///
    /// # Errors
    ///
    /// Any; a collection may then take the file for older than it is.
    fn touch(&self, file: &Handle) -> io::Result<()>;

    /// All names in the directory, in no order, without `.` and `..`.
    ///
    /// # Errors
    ///
    /// Any; and `QuotaExceeded` beyond [`ENTRIES_MAX`](crate::limits::ENTRIES_MAX) entries.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Whether the path that was opened still leads to the directory that is held.
    ///
    /// # Errors
    ///
    /// Any error but the absence of the path, which is a no.
    fn is_in_place(&self) -> io::Result<bool>;
}

/// Names the step at which a store failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Opening or creating the directory.
    OpenDirectory,
    /// Looking whether the directory is still the one that was opened.
    FindDirectory,
    /// Creating a temporary file.
    Create,
    /// Writing to a temporary file.
    Write,
    /// Making a file durable.
    Sync,
    /// Giving a file its final name.
    Publish,
    /// Making names durable.
    SyncDirectory,
    /// Removing a temporary file.
    Discard,
    /// Opening a file.
    Open,
    /// Reading a file.
    Read,
    /// Renewing the time of the last put.
    Touch,
    /// Listing the directory.
    List,
    /// Reading the file that is to be put.
    ReadSource,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenDirectory => "opening the artifact directory",
            Self::FindDirectory => "finding the artifact directory again",
            Self::Create => "creating a temporary file",
            Self::Write => "writing a temporary file",
            Self::Sync => "syncing an artifact file",
            Self::Publish => "publishing a file under its digest",
            Self::SyncDirectory => "syncing the artifact directory",
            Self::Discard => "removing a temporary file",
            Self::Open => "opening an artifact file",
            Self::Read => "reading an artifact file",
            Self::Touch => "renewing the time of an artifact file",
            Self::List => "listing the artifact directory",
            Self::ReadSource => "reading the file to be stored",
        })
    }
}

//! The steps that the artifact store takes on a file system, as a port: where faults are injected.
//! Invariant: a store touches the disk through these methods alone, one step each, so that a crash can fall between.
//! `FileArtifacts` calls it; `directory::Directory` is the one implementation that ships.

use std::fmt;
use std::fs::File;
use std::io;

/// One directory and the steps that a put, a read and a listing take in it.
///
/// The files are real ones: a test wraps [`Directory`](crate::directory::Directory), passes steps on, and fails or
/// stops at one of them, rather than imitate a file system. `name` is always a plain file name.
pub trait Fs: Send + Sync {
    /// Creates a new, empty file `name` for writing, which [`sweep`](Fs::sweep) leaves alone while it is open.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` when the name is taken in any form; any other when the file could not be made.
    fn create(&self, name: &str) -> io::Result<File>;

    /// Appends all of `bytes` to a file that [`create`](Fs::create) made.
    ///
    /// # Errors
    ///
    /// Any; the file then holds an unknown part of the bytes.
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()>;

    /// Makes the bytes of `file` durable.
    ///
    /// # Errors
    ///
    /// Any; the file must not be trusted from then on, whatever a later sync of it says.
    fn sync(&self, file: &File) -> io::Result<()>;

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
    fn open(&self, name: &str) -> io::Result<File>;

    /// Reads the next bytes of `file` into `buffer`; 0 at its end.
    ///
    /// # Errors
    ///
    /// Any read error of the device.
    fn read(&self, file: &mut File, buffer: &mut [u8]) -> io::Result<usize>;

    /// Sets the time of `file`'s last put to now.
    ///
    /// # Errors
    ///
    /// Any; a collection may then take the file for older than it is.
    fn touch(&self, file: &File) -> io::Result<()>;

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

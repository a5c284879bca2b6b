//! What can go wrong with an artifact, one small enum, each with its stable code.
//! Invariant: an error changes nothing that a later read could see; it says what was expected, found, and to be done.
//! Every function of the crate returns it; the engine branches on `code()`.

use std::io;
use std::path::PathBuf;

use aiws::digest::Digest;
use aiws::error::Code;

use crate::fs::Step;

/// Why an artifact could not be stored, read or listed.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// No bytes are stored under the digest.
    #[error(
        "expected artifact {digest} in the store, found none: restore the identical bytes, then check again"
    )]
    Missing {
        /// The artifact that was asked for.
        digest: Digest,
    },
    /// The retention has passed; the bytes are not handed out any more, though they may still be there (ART-5).
    #[error(
        "artifact {digest} was retained until {retain_until_ms} ms and it is {now_ms} ms: \
         plan again from an input that is still retained"
    )]
    Expired {
        /// The artifact that was asked for.
        digest: Digest,
        /// The recorded end of its retention, in milliseconds of trusted time; may be beyond u64.
        retain_until_ms: String,
        /// The trusted time of the read, in milliseconds.
        now_ms: u64,
    },
    /// Something that is not a plain file of one name stands where the artifact's file belongs.
    #[error(
        "expected a regular file with one name at {name}, found {found}: \
         move it away, restore the identical bytes, and find out who can write in the directory"
    )]
    NotPlain {
        /// The name in the artifact directory.
        name: String,
        /// What stands there.
        found: &'static str,
    },
    /// The file that is to be stored is not one that can be.
    #[error("expected a regular file at {}, found {found}: name the file itself", path.display())]
    SourceNotPlain {
        /// The path that was given.
        path: PathBuf,
        /// What stands there.
        found: &'static str,
    },
    /// The bytes hash to something else.
    #[error("expected bytes of digest {expected}, found {found}: restore the identical bytes")]
    DigestMismatch {
        /// The digest on record.
        expected: Digest,
        /// The digest of the bytes that are there.
        found: Digest,
    },
    /// The bytes are more or fewer than recorded.
    #[error(
        "expected {expected} bytes of artifact {digest}, found {found}: restore the identical bytes"
    )]
    SizeMismatch {
        /// The artifact that was asked for.
        digest: Digest,
        /// The size on record, in bytes; may be beyond u64.
        expected: String,
        /// The size of what is there, in bytes.
        found: u64,
    },
    /// The bytes to be stored are more than an artifact may have.
    #[error(
        "expected at most {limit_bytes} bytes, found {found}: keep larger material in another provider"
    )]
    TooLarge {
        /// The bound, in bytes.
        limit_bytes: u64,
        /// How many there are; for a stream, how many were read before it was refused.
        found: u64,
    },
    /// The facts that would go into the record do not form one.
    #[error("the artifact's record was refused: {0}")]
    Record(#[from] aiws::error::Error),
    /// The directory is not one that a store may live in.
    #[error("expected a directory of this user with mode 0700 at {}, found {found}: {remedy}", path.display())]
    Directory {
        /// The path that was given.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
        /// What mends it.
        remedy: String,
    },
    /// The directory's path leads to another directory, or nowhere, since it was opened.
    #[error(
        "the artifact directory was moved or exchanged while it was open: put it back, and open the store again"
    )]
    Exchanged,
    /// An earlier sync of the directory failed, so nothing said about later ones can be trusted.
    #[error(
        "an earlier sync of the artifact directory failed: mend its file system, and open the store again"
    )]
    Suspended,
    /// A step failed.
    #[error("{step} failed: {source}")]
    Io {
        /// The step.
        step: Step,
        /// The system's error.
        source: io::Error,
    },
}

impl ArtifactError {
    /// The code that callers branch on.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Missing { .. }
            | Self::Expired { .. }
            | Self::NotPlain { .. }
            | Self::SourceNotPlain { .. } => Code::ArtifactUnavailable,
            Self::DigestMismatch { .. } | Self::SizeMismatch { .. } => Code::ArtifactMismatch,
            Self::TooLarge { .. } => Code::SchemaInvalid,
            Self::Record(error) => error.code(),
            Self::Directory { .. } | Self::Exchanged => Code::StorePermissions,
            Self::Suspended => Code::StoreIo,
            Self::Io { source, .. } => code_of(source),
        }
    }

    pub(crate) fn io(step: Step, source: io::Error) -> Self {
        Self::Io { step, source }
    }
}

/// The code of a system error: what its remedy depends on.
fn code_of(source: &io::Error) -> Code {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::StoreFull,
        io::ErrorKind::PermissionDenied => Code::StorePermissions,
        io::ErrorKind::ReadOnlyFilesystem => Code::StoreReadOnly,
        _ => Code::StoreIo,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_get_the_code_of_their_remedy() {
        let cases = [
            (io::ErrorKind::StorageFull, Code::StoreFull),
            (io::ErrorKind::QuotaExceeded, Code::StoreFull),
            (io::ErrorKind::PermissionDenied, Code::StorePermissions),
            (io::ErrorKind::ReadOnlyFilesystem, Code::StoreReadOnly),
            (io::ErrorKind::NotFound, Code::StoreIo),
            (io::ErrorKind::UnexpectedEof, Code::StoreIo),
        ];
        for (kind, code) in cases {
            let error = ArtifactError::io(Step::Write, kind.into());
            assert_eq!(error.code(), code, "{kind:?}");
        }
        let full = io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
        assert_eq!(ArtifactError::io(Step::Sync, full).code(), Code::StoreFull);
    }
}

//! Collecting stored bytes that no record names, one at a time, for a host that decided to (ART-9).
//! Invariant: bytes that were put again since they were listed stay, also when that put happens at the same moment.
//! Called by the host's own clean-up; nothing in the engine removes an artifact.

use std::path::Path;
use std::sync::Mutex;

use praxis_plant::{self as plant, Plant};

use crate::directory::Directory;
use crate::error::ArtifactError;
use crate::file::FileArtifacts;
use crate::fs::Step;
use crate::provider::Orphan;

impl FileArtifacts {
    /// As [`open`](FileArtifacts::open), and leaves temporary files of dead processes where they are: for a look that
    /// is to change nothing. The directory has to be there.
    ///
    /// # Errors
    ///
    /// As [`open`](FileArtifacts::open); `STORE_IO` when the directory is missing.
    pub fn open_as_it_is(path: &Path) -> Result<Self, ArtifactError> {
        std::fs::symlink_metadata(path)
            .map_err(|source| ArtifactError::io(Step::OpenDirectory, source))?;
        Ok(Self {
            fs: Box::new(Directory::open(path)?),
            suspended: Mutex::new(false),
        })
    }

    /// Removes what is stored under an orphan's digest, and says whether it did. It stays where somebody put it again
    /// less than `retention_ms` before `now_ms`, or is putting it now: see [`Orphan::is_past`].
    ///
    /// # Errors
    ///
    /// `ARTIFACT_UNAVAILABLE` when something else than a plain file stands there; a store code when a step failed.
    pub fn collect(
        &self,
        orphan: &Orphan,
        retention_ms: u64,
        now_ms: u64,
    ) -> Result<bool, ArtifactError> {
        self.check_in_place()?;
        let name = orphan.digest.to_string();
        let Some((file, _)) = self.open_plain(&name)? else {
            return Ok(false);
        };
        // A put that confirms these bytes holds this lock until it has renewed their time.
        let alone = self.fs.lock_alone(&file);
        if !alone.map_err(|source| ArtifactError::io(Step::Open, source))? {
            return Ok(false);
        }
        let facts = self.fs.facts(&file);
        let facts = facts.map_err(|source| ArtifactError::io(Step::Open, source))?;
        let last_put_ms = match plant::is(Plant::CollectRaces) {
            true => orphan.last_put_ms,
            false => facts.last_put_ms,
        };
        let current = Orphan {
            last_put_ms,
            ..orphan.clone()
        };
        if !current.is_past(retention_ms, now_ms) {
            return Ok(false);
        }
        self.fs
            .remove(&name)
            .map_err(|source| ArtifactError::io(Step::Discard, source))?;
        Ok(true)
    }
}

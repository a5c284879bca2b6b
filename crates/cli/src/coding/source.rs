//! The user's repository, checked before anything begins.
//! Invariant: it is only read, without its hooks and without the optional locks by which git writes while reading.
//! Called by the verb `code`, and by `publish` to find the repository again.

use std::fs;
use std::path::{Path, PathBuf};

use aiws::error::{Code, Error};

use super::git::{Git, absolute};

/// The user's repository, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its top directory, canonical.
    pub root: PathBuf,
    /// The commit that work starts from, in full hex.
    pub base: String,
}

impl Source {
    /// The repository whose top directory is `path`, at its HEAD.
    ///
    /// # Errors
    ///
    /// `REPO_NOT_FOUND` when there is none with its top there; `REPO_UNUSABLE` when it is bare or has no commit;
    /// `REPO_DIRTY` when tracked files changed or files are neither tracked nor ignored.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let root = Self::locate(path)?;
        let (found, base) = Git::inside(&root)
            .args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .probe()?;
        let base = String::from_utf8_lossy(&base).trim().to_owned();
        if !found || base.is_empty() {
            let message = format!(
                "{} has no commit yet; commit something, work starts from a commit",
                root.display()
            );
            return Err(Error::new(Code::RepoUnusable, message));
        }
        let source = Self { root, base };
        source.require_clean()?;
        Ok(source)
    }

    /// The canonical top directory, without a look at commits or changes.
    ///
    /// # Errors
    ///
    /// `REPO_NOT_FOUND` or `REPO_UNUSABLE` as in [`Source::open`].
    pub fn locate(path: &Path) -> Result<PathBuf, Error> {
        let root = fs::canonicalize(path).map_err(|error| {
            Error::new(
                Code::RepoNotFound,
                format!("expected a git repository at {}: {error}", path.display()),
            )
        })?;
        if !root.is_dir() {
            let message = format!(
                "expected a git repository at {}, found a file",
                path.display()
            );
            return Err(Error::new(Code::RepoNotFound, message));
        }
        let (inside, bare) = Git::inside(&root)
            .args(["rev-parse", "--is-bare-repository"])
            .probe()?;
        if !inside {
            // Git also fails for repositories of other owners; only its message tells the two apart.
            let reason = Git::inside(&root)
                .args(["rev-parse", "--git-dir"])
                .run()
                .err()
                .map(|error| error.message);
            let message = format!(
                "expected a git repository at {}, found none ({})",
                root.display(),
                reason.unwrap_or_default()
            );
            return Err(Error::new(Code::RepoNotFound, message));
        }
        if bare.starts_with(b"true") {
            let message = format!(
                "{} is a bare repository; name one with a work tree",
                root.display()
            );
            return Err(Error::new(Code::RepoUnusable, message));
        }
        let top = PathBuf::from(
            Git::inside(&root)
                .args(["rev-parse", "--show-toplevel"])
                .line()?,
        );
        if fs::canonicalize(&top).ok().as_deref() != Some(root.as_path()) {
            let message = format!(
                "{} lies inside the repository {}; name its top directory",
                root.display(),
                top.display()
            );
            return Err(Error::new(Code::RepoNotFound, message));
        }
        Ok(root)
    }

    /// Refuses a repository in which the result's branch could never be made.
    ///
    /// # Errors
    ///
    /// `REPO_UNUSABLE` naming the branch that is in the way.
    pub fn require_room(&self) -> Result<(), Error> {
        let (taken, _) = Git::inside(&self.root)
            .args(["rev-parse", "--verify", "--quiet", super::publish::PARENT])
            .probe()?;
        if !taken {
            return Ok(());
        }
        let repository = crate::render::quoted(&self.root.display().to_string());
        let message = format!(
            "the branch praxis leaves no room for the branches praxis/RUN of results; rename it: git -C {repository} branch -m praxis NAME"
        );
        Err(Error::new(Code::RepoUnusable, message))
    }

    fn require_clean(&self) -> Result<(), Error> {
        let status = Git::inside(&self.root)
            .args([
                "status",
                "--porcelain=v1",
                "-z",
                "--untracked-files=normal",
                // A look into a submodule would obey the submodule's own configuration.
                "--ignore-submodules=dirty",
            ])
            .without_filters()?
            .run()?;
        let Some(first) = status
            .split(|byte| *byte == 0)
            .find(|entry| !entry.is_empty())
        else {
            return Ok(());
        };
        let path = crate::render::escape::line(&String::from_utf8_lossy(
            first.get(3..).unwrap_or_default(),
        ));
        let command = format!("git -C {} stash --include-untracked", self.root.display());
        let message = format!(
            "{} has changes that are not committed, first of them {path}; commit them, or: {command}",
            self.root.display()
        );
        Err(Error::new(Code::RepoDirty, message)
            .with("path", path)
            .with("command", command))
    }

    /// Refuses a store that lies inside the work tree, where an agent's clone would carry it along.
    ///
    /// # Errors
    ///
    /// `USAGE` naming both paths.
    pub fn require_outside(&self, store: &Path) -> Result<(), Error> {
        let store = absolute(store)?;
        let existing = store
            .ancestors()
            .find_map(|dir| Some((fs::canonicalize(dir).ok()?, dir)));
        let inside = existing.is_some_and(|(real, _)| real.starts_with(&self.root));
        if !inside {
            return Ok(());
        }
        let message = format!(
            "the store {} would lie inside the repository {}; name another place with --store",
            store.display(),
            self.root.display()
        );
        Err(Error::new(Code::Usage, message))
    }
}

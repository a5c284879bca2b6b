//! The git side of a coding run: the user's repository, the engine's own, and the trees that agents and checks get.
//! Invariant: the user's repository is only read (but for the result branch); a tree is always rebuilt from base commit and patch.
//! Called by the adapters, by `program` and by the verbs `code` and `unknown`.

use std::fs;
use std::path::{Path, PathBuf};

use aiws::error::{Code, Error};

use super::git::{Git, absolute};
use crate::files::read_left;
use crate::limits::{FULL_BYTES, PATCH_BYTES};
use crate::store::write_private;

/// What a stage left in its tree.
#[derive(Clone, PartialEq, Eq)]
pub struct Captured {
    /// The tree object in the engine's repository.
    pub tree: String,
    /// The binary patch from base to that tree; empty when nothing changed.
    pub patch: Vec<u8>,
}

aiws::veiled! { Captured { tree } patch; }

/// The files of one run under the store: `work/<run>/`.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    base: String,
}

impl Workspace {
    /// The workspace of a run; nothing is touched yet. `run` is a checked, file-safe run id.
    #[must_use]
    pub fn at(store: &Path, run: &str, base: &str) -> Self {
        Self {
            root: store.join("work").join(run),
            base: base.to_owned(),
        }
    }

    /// Where everything of the run stands.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The tree that the agent works in.
    #[must_use]
    pub fn clone_dir(&self) -> PathBuf {
        self.root.join("clone")
    }

    /// The engine's own bare repository.
    #[must_use]
    pub fn engine_git(&self) -> PathBuf {
        self.root.join("engine.git")
    }

    /// Makes the engine's repository and fetches the base commit into it. Doing it again changes nothing.
    ///
    /// # Errors
    ///
    /// `REPO_UNUSABLE` when git cannot fetch the commit; `STORE_IO` when a directory cannot be made.
    pub fn prepare(&self, source: &Path) -> Result<(), Error> {
        self.or_full(self.prepare_here(source))
    }

    /// Git says little about a full disk; the disk says it.
    fn or_full<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| {
            let place = self.root.ancestors().find(|place| place.is_dir());
            let left = place
                .and_then(|place| rustix::fs::statvfs(place).ok())
                .map(|facts| facts.f_bavail * facts.f_frsize);
            match left {
                Some(left_bytes)
                    if left_bytes < FULL_BYTES && error.code() == Code::RepoUnusable =>
                {
                    Error::new(
                        Code::StoreFull,
                        format!(
                            "{left_bytes} bytes are left for {}: {}",
                            self.root.display(),
                            error.message
                        ),
                    )
                }
                _ => error,
            }
        })
    }

    fn prepare_here(&self, source: &Path) -> Result<(), Error> {
        if let Ok(engine) = self.engine()
            && self.has_base(&engine)?
        {
            return Ok(());
        }
        // Whatever else stands there is no use; all that it has to hold is fetched again.
        remove(&self.engine_git())?;
        private_dir(&self.root)?;
        let format = match self.is_sha256() {
            true => "sha256",
            false => "sha1",
        };
        Git::inside(&self.root)
            .args([
                "init",
                "--quiet",
                "--bare",
                "--template=",
                "--initial-branch=praxis",
            ])
            .args([format!("--object-format={format}"), "engine.git".to_owned()])
            .run()?;
        let refspec = format!("{}:refs/praxis/base", self.base);
        fetch(&self.engine()?, source, &refspec)
    }

    /// Whether the commits are named in 64 digits.
    fn is_sha256(&self) -> bool {
        self.base.len() == 64
    }

    /// The engine's own repository with nothing in it that another wrote and git would run or obey. Each use begins
    /// here: an agent can write into it while it runs.
    fn engine(&self) -> Result<PathBuf, Error> {
        let engine = self.engine_git();
        if !fs::symlink_metadata(&engine).is_ok_and(|meta| meta.is_dir()) {
            let message = format!(
                "expected the engine's own repository at {}, found none; praxis resume makes it again",
                engine.display()
            );
            return Err(Error::new(Code::RepoUnusable, message));
        }
        for name in [
            "config.worktree",
            "commondir",
            "info",
            "objects/info/alternates",
        ] {
            remove(&engine.join(name))?;
        }
        let (version, extension) = match self.is_sha256() {
            true => ("1", "[extensions]\n\tobjectformat = sha256\n"),
            false => ("0", ""),
        };
        let wanted = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = true\n{extension}"
        );
        let config = engine.join("config");
        let bound = wanted.len() as u64;
        if !read_left(&engine, &config, bound, Code::RepoUnusable)
            .is_ok_and(|found| found == wanted.as_bytes())
        {
            remove(&config)?;
            write_private(&config, wanted.as_bytes(), false)?;
        }
        Ok(engine)
    }

    fn has_base(&self, engine: &Path) -> Result<bool, Error> {
        let (found, at) = Git::inside(engine)
            .args(["rev-parse", "--verify", "--quiet", "refs/praxis/base"])
            .probe()?;
        Ok(found && String::from_utf8_lossy(&at).trim() == self.base)
    }

    /// A fresh private clone at base with `patch` applied on top and not committed. What stood there is removed.
    ///
    /// # Errors
    ///
    /// `REPO_UNUSABLE` when the patch does not apply to base; `STORE_IO` when files cannot be removed or made.
    pub fn materialize(&self, name: &str, patch: &[u8]) -> Result<PathBuf, Error> {
        self.or_full(self.materialize_here(name, patch))
    }

    fn materialize_here(&self, name: &str, patch: &[u8]) -> Result<PathBuf, Error> {
        let dir = self.root.join(name);
        remove(&dir)?;
        private_dir(&dir)?;
        let engine = self.engine()?;
        let format = Git::inside(&engine)
            .args(["rev-parse", "--show-object-format"])
            .line()?;
        Git::inside(&dir)
            .args(["init", "--quiet", "--template=", "--initial-branch=praxis"])
            .args([format!("--object-format={format}")])
            .run()?;
        fetch(&dir, &engine, "refs/praxis/base:refs/heads/base")?;
        Git::inside(&dir)
            .args(["update-ref", "refs/heads/praxis", &self.base])
            .run()?;
        Git::inside(&dir)
            .args(["update-ref", "-d", "refs/heads/base"])
            .run()?;
        Git::inside(&dir).args(["read-tree", "HEAD"]).run()?;
        let index = self.index_of(patch)?;
        Git::over(&engine, &dir, &index)
            .args(["checkout-index", "--all", "--force", "--quiet"])
            .run()?;
        Git::inside(&dir)
            .env("GIT_OPTIONAL_LOCKS", "1")
            .args(["update-index", "-q", "--refresh"])
            .probe()?;
        remove(&index)?;
        Ok(dir)
    }

    /// The tree object of base with `patch` applied.
    ///
    /// # Errors
    ///
    /// `REPO_UNUSABLE` when the patch does not apply to base.
    pub fn tree_of(&self, patch: &[u8]) -> Result<String, Error> {
        self.engine()?;
        let index = self.index_of(patch)?;
        let tree = self.engine_call(&index).args(["write-tree"]).line();
        remove(&index)?;
        tree
    }

    /// An index file of the engine that holds base with `patch` applied.
    fn index_of(&self, patch: &[u8]) -> Result<PathBuf, Error> {
        let index = self.root.join("apply.index");
        remove(&index)?;
        self.engine_call(&index)
            .args(["read-tree", &self.base])
            .run()?;
        if !patch.is_empty() {
            self.engine_call(&index)
                .args(["apply", "--cached", "--binary", "--whitespace=nowarn", "-"])
                .input(patch)
                .run()?;
        }
        Ok(index)
    }

    fn engine_call(&self, index: &Path) -> Git {
        Git::inside(&self.engine_git()).env("GIT_INDEX_FILE", index)
    }

    /// What stands in the clone now, as a patch from base. The clone's own `.git` is not consulted.
    ///
    /// # Errors
    ///
    /// `REPO_UNUSABLE` when the clone is gone or is no directory, holds a nested repository, or changed by more
    /// than the bound; what the message says goes to the agent as feedback.
    pub fn capture(&self) -> Result<Captured, Error> {
        let clone = self.clone_dir();
        let real = fs::symlink_metadata(&clone).is_ok_and(|meta| meta.is_dir());
        if !real {
            return Err(Error::new(
                Code::RepoUnusable,
                "the private clone is gone or is no directory any more",
            ));
        }
        let index = self.root.join("capture.index");
        remove(&index)?;
        let captured = self.capture_with(&clone, &index);
        remove(&index)?;
        captured
    }

    fn capture_with(&self, clone: &Path, index: &Path) -> Result<Captured, Error> {
        let engine = self.engine()?;
        refuse_pipes(clone)?;
        let over = || Git::over(&engine, clone, index);
        over().args(["read-tree", &self.base]).run()?;
        over()
            .args(["-c", "advice.addEmbeddedRepo=false", "add", "--all", "."])
            .run()?;
        let tree = over().args(["write-tree"]).line()?;
        self.refuse_nested(&tree)?;
        let patch = Git::inside(&engine)
            .args(diff_args(&self.base, &tree))
            .run()?;
        if patch.len() as u64 > PATCH_BYTES {
            let message = format!(
                "expected a patch of at most {PATCH_BYTES} bytes, found {}",
                patch.len()
            );
            return Err(Error::new(Code::RepoUnusable, message));
        }
        Ok(Captured { tree, patch })
    }

    /// A repository inside the tree would be recorded as a link to a commit that nobody else has.
    fn refuse_nested(&self, tree: &str) -> Result<(), Error> {
        let links = Git::inside(&self.engine_git())
            .args([
                "diff-tree",
                "-r",
                "-z",
                "--no-renames",
                "--diff-filter=AMT",
                &self.base,
                tree,
            ])
            .run()?;
        let mut fields = links.split(|byte| *byte == 0);
        while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
            let new_mode = meta.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
            if new_mode == b"160000" {
                let path = crate::render::escape::line(&String::from_utf8_lossy(path));
                let message = format!(
                    "the tree holds a repository of its own at {path}; remove its .git, or the folder"
                );
                return Err(Error::new(Code::RepoUnusable, message));
            }
        }
        Ok(())
    }

    /// The paths that differ from base, oldest letter first as git shows them, such as `M src/lib.rs`.
    ///
    /// # Errors
    ///
    /// As [`Workspace::capture`].
    pub fn changed_files(&self) -> Result<Vec<String>, Error> {
        let captured = self.capture()?;
        let listing = Git::inside(&self.engine_git())
            .args([
                "diff-tree",
                "-r",
                "-z",
                "--no-renames",
                "--name-status",
                &self.base,
                &captured.tree,
            ])
            .run()?;
        let mut fields = listing.split(|byte| *byte == 0);
        let mut files = Vec::new();
        while let (Some(letter), Some(path)) = (fields.next(), fields.next()) {
            let line = format!(
                "{} {}",
                String::from_utf8_lossy(letter),
                String::from_utf8_lossy(path)
            );
            files.push(crate::render::escape::line(&line));
        }
        Ok(files)
    }

    /// Removes a tree that was materialized.
    ///
    /// # Errors
    ///
    /// `STORE_IO` when a file cannot be removed.
    pub fn discard(&self, name: &str) -> Result<(), Error> {
        remove(&self.root.join(name))
    }
}

/// Refuses what git would open and wait for: a pipe, a socket or a device in the place of one of git's own files.
/// Elsewhere git passes over them.
fn refuse_pipes(clone: &Path) -> Result<(), Error> {
    let unreadable = |dir: &Path, error: &std::io::Error| {
        let message = format!("{} cannot be read: {error}", dir.display());
        Error::new(Code::RepoUnusable, message)
    };
    let mut open = vec![(clone.to_owned(), false)];
    while let Some((dir, of_git)) = open.pop() {
        let entries = fs::read_dir(&dir).map_err(|error| unreadable(&dir, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(&dir, &error))?;
            let kind = entry
                .file_type()
                .map_err(|error| unreadable(&dir, &error))?;
            let path = entry.path();
            let of_git = of_git || entry.file_name().as_encoded_bytes().starts_with(b".git");
            if kind.is_dir() && path != clone.join(".git") {
                open.push((path, of_git));
            } else if of_git && !kind.is_dir() && !kind.is_file() && !kind.is_symlink() {
                let path = path.strip_prefix(clone).unwrap_or(&path);
                let path = crate::render::escape::line(&path.to_string_lossy());
                let message = format!("the tree holds a pipe or device at {path}; remove it");
                return Err(Error::new(Code::RepoUnusable, message));
            }
        }
    }
    Ok(())
}

fn diff_args<'a>(base: &'a str, tree: &'a str) -> Vec<&'a str> {
    vec![
        "diff-tree",
        "-r",
        "-p",
        "--binary",
        "--full-index",
        "--no-color",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--submodule=short",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        base,
        tree,
    ]
}

/// Fetches one refspec from one repository on this machine into another, without tags, `FETCH_HEAD` or maintenance.
///
/// # Errors
///
/// `REPO_UNUSABLE` with git's message.
pub fn fetch(into: &Path, from: &Path, refspec: &str) -> Result<(), Error> {
    let from = absolute(from)?;
    // The repository's own rewriting of addresses would send the call elsewhere; the longest match wins.
    let mut as_it_is = std::ffi::OsString::from("url.");
    as_it_is.push(&from);
    as_it_is.push(".insteadOf");
    Git::inside(into)
        .setting(as_it_is, from.as_os_str())
        .args([
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
        ])
        .args(["--no-recurse-submodules", "--update-shallow", "--"])
        .args([from.as_os_str()])
        .args([refspec])
        .run()
        .map(drop)
}

/// Makes a directory and its parents that only the owner can enter.
///
/// # Errors
///
/// `STORE_IO` with the system's message.
pub fn private_dir(dir: &Path) -> Result<(), Error> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| io(dir, &error))
}

/// Removes whatever stands at a path; a path where nothing stands is fine. Symlinks are removed, not followed. A
/// directory that its owner cannot write, as caches of packages often are, is made writable first.
///
/// # Errors
///
/// `STORE_IO` with the system's message.
pub fn remove(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => match fs::remove_dir_all(path) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                unlock(path).and_then(|()| fs::remove_dir_all(path))
            }
            removed => removed,
        },
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(|error| io(path, &error))
}

/// Lets the owner enter, read and write a directory and all below it, from the top down; links are not followed.
fn unlock(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        let mode = fs::symlink_metadata(&dir)?.permissions().mode();
        if mode & 0o700 != 0o700 {
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode | 0o700))?;
        }
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(())
}

pub(crate) fn io(path: &Path, error: &std::io::Error) -> Error {
    let code = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Code::StoreFull,
        std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
            Code::StoreReadOnly
        }
        _ => Code::StoreIo,
    };
    Error::new(code, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;

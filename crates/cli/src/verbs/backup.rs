//! `praxis backup`: a copy of the store that is a store.
//! Invariant: the directory has its name only once everything in it is whole, checked and synced; nothing that was
//! there is written over. Called by `verbs::run`, and by the office,
//! also while an engine has the store.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use aiws::error::{Code, Error};
use praxis_artifacts::{ArtifactProvider, FileArtifacts};
use praxis_journal::Copied;
use rustix::fs::{Mode, OFlags};

use super::{Call, shown_path};
use crate::answer::{Answer, View};
use crate::args::Backup as Args;
use crate::coding::workspace::remove;
use crate::exit::Exit;
use crate::render::json;
use crate::request::Request;
use crate::session::random_name;
use crate::store::{Reader, of_store};

/// Runs it.
///
/// # Errors
///
/// As [`answer`]; `USAGE` for a path that is not UTF-8.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    let directory = std::path::absolute(&args.directory)
        .map_err(|error| failed(&args.directory, &error.to_string()))?;
    let directory = directory.to_str().ok_or_else(|| {
        let message = format!(
            "the path {} is not UTF-8; name another",
            shown_path(&directory)
        );
        Error::new(Code::Usage, message)
    })?;
    let directory = directory.to_owned();
    super::ask(call, Request::Backup { directory })
}

/// Copies an open store, as it is at this moment, into a new directory; what is appended meanwhile is not in it.
///
/// # Errors
///
/// `USAGE` for a directory that holds something, lies in no directory, or in the store; `EXPORT_FAILED` when it cannot
/// be written; a store code for a damaged log; `ARTIFACT_MISMATCH` for stored bytes that are not what they were.
pub fn answer(reader: &Reader, directory: &Path, view: View) -> Result<Answer, Error> {
    if !directory.is_absolute() {
        let message = format!("expected an absolute path, found {}", shown_path(directory));
        return Err(Error::new(Code::Usage, message));
    }
    let parent = check(&reader.path, directory)?;
    let unfinished = beside(directory)?;
    let made = make(reader, &unfinished).and_then(|made| {
        // An empty directory of this name is replaced, anything else refuses.
        fs::rename(&unfinished, directory)
            .and_then(|()| File::open(&parent)?.sync_all())
            .map_err(|error| failed(directory, &error.to_string()))?;
        Ok(made)
    });
    let (copied, files, bytes) = match made {
        Ok(made) => made,
        Err(error) => {
            // It was made here, so it is removed here; why the backup failed is what is said.
            drop(remove(&unfinished));
            return Err(error);
        }
    };
    let shown = shown_path(directory);
    let members = aiws::object! {
        "directory": shown.as_str(),
        "storeId": reader.journal.store_id(),
        "events": copied.events.to_string(),
        "lastHash": copied.last.to_string(),
        "artifacts": files.to_string(),
        "artifactBytes": bytes.to_string(),
    };
    let value = json::object("backup", members);
    Ok(Answer::done(value, view, |_| said(&shown, &copied, files)))
}

fn said(shown: &str, copied: &Copied, files: u64) -> String {
    format!(
        "{} events and {files} stored files in {shown}\n  last event {}\n\n\
         It is a store: name it with --store, or move it to the place of the other one; the two must not both go on.\n\
         What happened after this moment is not known to it, such as agents that ran and branches that were made, and\n\
         trees of runs under way are not in it: a person has to look before it goes on.\n\nnext\n  \
         praxis --store {} verify\n",
        copied.events,
        copied.last,
        crate::render::quoted(shown),
    )
}

/// The directory in which the new one is to be, which must be there and outside the store.
fn check(store: &Path, directory: &Path) -> Result<PathBuf, Error> {
    let refused = |what: &str| {
        let shown = shown_path(directory);
        Error::new(Code::Usage, format!("{shown} {what}; name a new directory"))
    };
    match fs::symlink_metadata(directory) {
        Ok(facts) if !facts.is_dir() => return Err(refused("is not a directory")),
        Ok(_) => {
            let mut entries =
                fs::read_dir(directory).map_err(|error| failed(directory, &error.to_string()))?;
            if entries.next().is_some() {
                return Err(refused("is not empty"));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(directory, &error.to_string())),
    }
    let parent = directory
        .parent()
        .filter(|_| directory.file_name().is_some())
        .and_then(|parent| fs::canonicalize(parent).ok())
        .filter(|parent| parent.is_dir())
        .ok_or_else(|| refused("would lie in no directory"))?;
    let inside = fs::canonicalize(store).is_ok_and(|store| parent.starts_with(store));
    match inside {
        true => Err(refused("would lie inside the store")),
        false => Ok(parent),
    }
}

/// A hidden name beside the directory that nobody else has.
fn beside(directory: &Path) -> Result<PathBuf, Error> {
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(directory.file_name().unwrap_or_default());
    hidden.push(format!(".{}.unfinished", random_name()?));
    Ok(directory.with_file_name(hidden))
}

/// The whole copy, synced, under the hidden name: what was copied, how many stored files, how many bytes of them.
fn make(reader: &Reader, to: &Path) -> Result<(Copied, u64, u64), Error> {
    let artifacts = to.join("artifacts");
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    builder
        .create(to)
        .map_err(|error| failed(to, &error.to_string()))?;
    // Events first: what they name is there already, and what comes meanwhile is named by later ones.
    let copied = reader
        .journal
        .copy_to(to)
        .map_err(|error| match error.code() {
            Code::StoreFull | Code::StoreReadOnly => failed(to, &error.to_string()),
            _ => of_store(&reader.path, &error),
        })?;
    builder
        .create(&artifacts)
        .map_err(|error| failed(&artifacts, &error.to_string()))?;
    let (files, bytes) = copy_artifacts(&reader.path.join("artifacts"), &artifacts)?;
    for directory in [&artifacts, to] {
        File::open(directory)
            .and_then(|opened| opened.sync_all())
            .map_err(|error| failed(directory, &error.to_string()))?;
    }
    Ok((copied, files, bytes))
}

/// Copies every stored file, and checks that its bytes hash to its name.
fn copy_artifacts(from: &Path, to: &Path) -> Result<(u64, u64), Error> {
    let read = FileArtifacts::open_as_it_is(from)
        .map_err(|error| Error::new(error.code(), error.to_string()))?;
    // Nothing is named, so everything is listed.
    let all = read
        .orphans(&std::collections::BTreeSet::new())
        .map_err(|error| Error::new(error.code(), error.to_string()))?;
    let mut bytes = 0u64;
    let mut files = 0u64;
    for stored in all {
        let name = stored.digest.to_string();
        if let Some(size) = copy_file(&from.join(&name), &to.join(&name), &stored.digest)? {
            bytes = bytes.saturating_add(size);
            files += 1;
        }
    }
    Ok((files, bytes))
}

/// Copies a stored file in pieces, syncs it, and compares its digest; none where it is gone by now.
fn copy_file(from: &Path, to: &Path, digest: &aiws::digest::Digest) -> Result<Option<u64>, Error> {
    use std::io::{Read, Write};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut source: File = match rustix::fs::open(from, flags, Mode::empty()) {
        Ok(file) => file.into(),
        // Nothing names it, or it was damaged before: a clean-up was quicker.
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(crate::coding::workspace::io(from, &errno.into())),
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut target: File = rustix::fs::open(to, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| failed(to, &errno.to_string()))?
        .into();
    let mut hasher = aiws::digest::Hasher::new();
    let mut piece = vec![0; 1 << 16];
    let mut size = 0u64;
    loop {
        let count = match source.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(crate::coding::workspace::io(from, &error)),
        };
        hasher.update(&piece[..count]);
        target
            .write_all(&piece[..count])
            .map_err(|error| failed(to, &error.to_string()))?;
        size += count as u64;
    }
    let found = hasher.finish();
    if found != *digest {
        let message = format!(
            "expected bytes of digest {digest} in {}, found {found}: restore the identical bytes, then back up again",
            shown_path(from)
        );
        return Err(Error::new(Code::ArtifactMismatch, message));
    }
    target
        .sync_all()
        .map_err(|error| failed(to, &error.to_string()))?;
    Ok(Some(size))
}

fn failed(path: &Path, why: &str) -> Error {
    let message = format!("the backup to {} was not written: {why}", shown_path(path));
    Error::new(Code::ExportFailed, message)
}

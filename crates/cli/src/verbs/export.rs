//! `praxis export`: the events as JSON Lines that anybody can verify.
//! Invariant: a file has its final name only once it is whole and synced; no file of somebody else's is written or removed.
//! Called by `verbs::run`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use aiws::error::{Code, Error};
use praxis_journal::Journal;

use super::{Call, ask, block_on, shown_path};
use crate::answer::{Answer, View};
use crate::args::Export as Args;
use crate::exit::Exit;
use crate::render::json;
use crate::request::Request;
use crate::seat;
use crate::session::random_name;
use crate::store::open_for_reading;

/// Runs it.
///
/// # Errors
///
/// `USAGE` for a name that is taken or lies in no directory; `EXPORT_FAILED` when it cannot be written; a store code
/// when the log cannot be read or is damaged.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    if args.file != Path::new("-") {
        // Where it is depends on where this was typed, not on where the engine was.
        let file = std::path::absolute(&args.file).map_err(|error| failed(&args.file, &error))?;
        return ask(call, export_to(&file)?);
    }
    match open_for_reading(&call.store) {
        Ok(journal) => {
            let out = BufWriter::new(io::stdout().lock());
            write(&journal, Path::new("the standard output"), out)?;
        }
        Err(error) if error.code() == Code::StoreLocked => through_a_file(call)?,
        Err(error) => return Err(error),
    }
    Ok(Exit::Done)
}

/// Has the engine that has the store write a file, and passes that on.
fn through_a_file(call: &Call) -> Result<(), Error> {
    let file = std::env::temp_dir().join(format!("praxis-export-{}", random_name()?));
    block_on(seat::ask(&call.store, export_to(&file)?, View::PROGRAM))?;
    let passed = File::open(&file).and_then(|mut export| {
        // It was made for this alone.
        fs::remove_file(&file)?;
        let mut out = io::stdout().lock();
        io::copy(&mut export, &mut out)?;
        out.flush()
    });
    match passed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        passed => passed.map_err(|error| failed(Path::new("the standard output"), &error)),
    }
}

fn export_to(file: &Path) -> Result<Request, Error> {
    let path = file.to_str().ok_or_else(|| {
        let message = format!("the path {} is not UTF-8; name another", shown_path(file));
        Error::new(Code::Usage, message)
    })?;
    Ok(Request::Export {
        file: path.to_owned(),
    })
}

/// Writes all events into a new file.
///
/// # Errors
///
/// As [`run`].
pub fn answer(journal: &Journal, file: &Path, view: View) -> Result<Answer, Error> {
    if !file.is_absolute() {
        let message = format!("expected an absolute path, found {}", shown_path(file));
        return Err(Error::new(Code::Usage, message));
    }
    let count = write_file(journal, file)?;
    let path = shown_path(file);
    let members = aiws::object! { "file": path.as_str(), "events": count.to_string() };
    let value = json::object("export", members);
    Ok(Answer::done(value, view, |_| {
        format!("{count} events in {path}\nnext\n  python3 journal-format/verify.py {path}\n")
    }))
}

/// Writes under a name of its own beside the file, which gets its name once it is whole and durable.
fn write_file(journal: &Journal, file: &Path) -> Result<u64, Error> {
    let unfinished = beside(file)?;
    let mut options = File::options();
    let out = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)
        .map_err(|error| failed(file, &error))?;
    let written = write(journal, file, BufWriter::new(out)).and_then(|(count, out)| {
        out.get_ref()
            .sync_all()
            .and_then(|()| fs::hard_link(&unfinished, file))
            .map(|()| count)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => taken(file),
                _ => failed(file, &error),
            })
    });
    // It was made here, so it is removed here; whatever became of the export has its own error.
    let removed = fs::remove_file(&unfinished);
    let count = written?;
    removed
        .and_then(|()| File::open(directory(file))?.sync_all())
        .map_err(|error| failed(file, &error))?;
    Ok(count)
}

/// A hidden name beside the file that nobody else has.
fn beside(file: &Path) -> Result<PathBuf, Error> {
    if fs::symlink_metadata(file).is_ok() {
        return Err(taken(file));
    }
    let Some(name) = file.file_name().filter(|_| directory(file).is_dir()) else {
        let message = format!(
            "expected a new file in an existing directory, found {}; name another one",
            shown_path(file)
        );
        return Err(Error::new(Code::Usage, message));
    };
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.unfinished", random_name()?));
    Ok(file.with_file_name(hidden))
}

fn directory(file: &Path) -> &Path {
    file.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// What the export is written to; it remembers why it could not be.
struct Out<W> {
    inner: W,
    error: Option<io::Error>,
}

impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes);
        self.remember(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.inner.flush();
        self.remember(flushed)
    }
}

impl<W> Out<W> {
    fn remember<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.error = Some(error);
            }
            kind.into()
        })
    }
}

/// Writes the events; a failing output is `EXPORT_FAILED`, a failing store keeps its own code.
fn write<W: Write>(journal: &Journal, file: &Path, inner: W) -> Result<(u64, W), Error> {
    let mut out = Out { inner, error: None };
    match (journal.export(&mut out), out.error) {
        (Ok(trailer), _) => Ok((trailer.count.0, out.inner)),
        (Err(_), Some(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(failed(file, &error).with("readerGone", true))
        }
        (Err(_), Some(error)) => Err(failed(file, &error)),
        (Err(error), None) => Err(Error::new(error.code(), error.to_string())),
    }
}

fn taken(file: &Path) -> Error {
    let message = format!("{} exists already; name a new file", shown_path(file));
    Error::new(Code::Usage, message)
}

fn failed(file: &Path, why: &io::Error) -> Error {
    Error::new(
        Code::ExportFailed,
        format!("the export to {} was not written: {why}", shown_path(file)),
    )
}

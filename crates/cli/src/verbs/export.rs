//! `praxis export`: the events as JSON Lines that anybody can verify.
//! Invariant: a file has its final name only once it is whole and synced; no file of somebody else's is written or removed.
//! Called by `verbs::run`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use aiws::error::{Code, Error};
use praxis_journal::Journal;

use super::{Call, print, shown_path};
use crate::args::Export as Args;
use crate::exit::Exit;
use crate::render::json;
use crate::session::random_name;
use crate::store::{of_store, open_for_reading};

/// Runs it.
///
/// # Errors
///
/// `USAGE` for a name that is taken or lies in no directory; `EXPORT_FAILED` when it cannot be written; a store code
/// when the log cannot be read or is damaged.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    let journal = open_for_reading(&call.store)?;
    if args.file == Path::new("-") {
        let out = BufWriter::new(io::stdout().lock());
        write(call, &journal, Path::new("the standard output"), out)?;
        return Ok(Exit::Done);
    }
    let count = write_file(call, &journal, &args.file)?;
    let path = shown_path(&args.file);
    if call.json {
        let members = aiws::object! { "file": path, "events": count.to_string() };
        print(&json::object("export", members).to_string())?;
    } else {
        print(&format!(
            "{count} events in {path}\nnext\n  python3 journal-format/verify.py {path}"
        ))?;
    }
    Ok(Exit::Done)
}

/// Writes under a name of its own beside the file, which gets its name once it is whole and durable.
fn write_file(call: &Call, journal: &Journal, file: &Path) -> Result<u64, Error> {
    let unfinished = beside(file)?;
    let mut options = File::options();
    let out = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)
        .map_err(|error| failed(file, &error))?;
    let written = write(call, journal, file, BufWriter::new(out)).and_then(|(count, out)| {
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
fn write<W: Write>(
    call: &Call,
    journal: &Journal,
    file: &Path,
    inner: W,
) -> Result<(u64, W), Error> {
    let mut out = Out { inner, error: None };
    match (journal.export(&mut out), out.error) {
        (Ok(trailer), _) => Ok((trailer.count.0, out.inner)),
        (Err(_), Some(error)) => Err(failed(file, &error)),
        (Err(error), None) => Err(of_store(&call.store, &error)),
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

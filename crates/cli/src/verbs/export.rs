//! `praxis export`: the events as JSON Lines that anybody can verify; or those of one mission, each proven.
//! Invariant: a file has its final name only once it is whole and synced; no file of somebody else's is written or removed.
//! Called by `verbs::run`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use aiws::error::{Code, Error};
use aiws::id::MissionId;
use praxis_journal::{Journal, StoreError};
use praxis_journal_format::export::Trailer;
use praxis_journal_format::limits::MAX_NOTE_BYTES;
use praxis_model::stream::Subject;

use super::{Call, ask, block_on, shown_path};
use crate::answer::{Answer, View};
use crate::args::Export as Args;
use crate::exit::Exit;
use crate::files::read_bounded;
use crate::render::json;
use crate::request::Request;
use crate::seat;
use crate::session::random_name;
use crate::store::{Reader, open_for_reading};

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
        return ask(call, export_to(args, &file)?);
    }
    if args.mission.is_some() {
        through_a_file(call, args)?;
        return Ok(Exit::Done);
    }
    match open_for_reading(&call.store) {
        Ok(journal) => {
            let out = BufWriter::new(io::stdout().lock());
            write(Path::new("the standard output"), out, |out| {
                journal.export(out)
            })?;
        }
        Err(error) if error.code() == Code::StoreLocked => through_a_file(call, args)?,
        Err(error) => return Err(error),
    }
    Ok(Exit::Done)
}

/// Has the engine that has the store write a file, and passes that on.
fn through_a_file(call: &Call, args: &Args) -> Result<(), Error> {
    let file = std::env::temp_dir().join(format!("praxis-export-{}", random_name()?));
    block_on(seat::ask(
        &call.store,
        export_to(args, &file)?,
        View::PROGRAM,
    ))?;
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

fn export_to(args: &Args, file: &Path) -> Result<Request, Error> {
    let path = file.to_str().ok_or_else(|| {
        let message = format!("the path {} is not UTF-8; name another", shown_path(file));
        Error::new(Code::Usage, message)
    })?;
    let read = |note: &PathBuf| {
        let bytes = read_bounded(note, MAX_NOTE_BYTES as u64, Code::CheckpointInvalid)?;
        String::from_utf8(bytes).map_err(|_| {
            let message = format!("{} is not UTF-8", shown_path(note));
            Error::new(Code::CheckpointInvalid, message)
        })
    };
    Ok(Request::Export {
        file: path.to_owned(),
        mission: args.mission.clone(),
        checkpoint: args.checkpoint.as_ref().map(read).transpose()?,
    })
}

/// Writes all events into a new file.
///
/// # Errors
///
/// As [`run`].
pub fn answer(journal: &Journal, file: &Path, view: View) -> Result<Answer, Error> {
    absolute(file)?;
    let export = |out: &mut dyn Write| journal.export(out);
    let count = write_whole(file, 0o600, |out| write(file, BufWriter::new(out), export))?;
    let path = shown_path(file);
    let members = aiws::object! { "file": path.as_str(), "events": count.to_string() };
    let value = json::object("export", members);
    Ok(Answer::done(value, view, |_| {
        format!("{count} events in {path}\nnext\n  python3 journal-format/verify.py {path}\n")
    }))
}

/// Writes the events of a mission that a signed checkpoint vouches for into a new file, each with its proof.
///
/// # Errors
///
/// As [`run`]; `RUN_NOT_FOUND` where there is no such mission and no such run; what is wrong with the checkpoint.
pub fn answer_mission(
    reader: &Reader,
    named: &str,
    note: &str,
    file: &Path,
    view: View,
) -> Result<Answer, Error> {
    absolute(file)?;
    let journal = &reader.journal;
    let is_there = |mission: &MissionId| {
        let stream = Subject::mission(mission.clone()).stream();
        journal.view().head(&stream).is_some()
    };
    let mission = match named.parse::<MissionId>().ok().filter(is_there) {
        Some(mission) => mission,
        None => reader.find(Some(named))?.mission_id,
    };
    let export = |out: &mut dyn Write| journal.export_mission(&mission, note, out);
    let count = write_whole(file, 0o600, |out| write(file, BufWriter::new(out), export))?;
    let path = shown_path(file);
    let members = aiws::object! {
        "file": path.as_str(), "events": count.to_string(), "missionId": mission.as_str(),
    };
    let value = json::object("export", members);
    Ok(Answer::done(value, view, |_| {
        format!(
            "{count} events of mission {} in {path}, each with its proof\nnext\n  \
             python3 journal-format/verify.py --verifier-key KEY {path}\n",
            crate::render::escape::line(mission.as_str())
        )
    }))
}

fn absolute(file: &Path) -> Result<(), Error> {
    match file.is_absolute() {
        true => Ok(()),
        false => {
            let message = format!("expected an absolute path, found {}", shown_path(file));
            Err(Error::new(Code::Usage, message))
        }
    }
}

/// Writes under a name of its own beside the file, which gets its name once it is whole and durable.
pub(super) fn write_whole<T>(
    file: &Path,
    mode: u32,
    write: impl FnOnce(&File) -> Result<T, Error>,
) -> Result<T, Error> {
    let unfinished = beside(file)?;
    let mut options = File::options();
    let out = options
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&unfinished)
        .map_err(|error| failed(file, &error))?;
    let written = write(&out).and_then(|made| {
        out.sync_all()
            .and_then(|()| fs::hard_link(&unfinished, file))
            .map(|()| made)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => taken(file),
                _ => failed(file, &error),
            })
    });
    // It was made here, so it is removed here; whatever became of the export has its own error.
    let removed = fs::remove_file(&unfinished);
    let made = written?;
    removed
        .and_then(|()| File::open(directory(file))?.sync_all())
        .map_err(|error| failed(file, &error))?;
    Ok(made)
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

/// Writes the events; a failing output is `EXPORT_FAILED`, a failing store keeps its own code. Gives their number.
fn write(
    file: &Path,
    inner: impl Write,
    export: impl FnOnce(&mut dyn Write) -> Result<Trailer, StoreError>,
) -> Result<u64, Error> {
    let mut out = Out { inner, error: None };
    match (export(&mut out), out.error) {
        (Ok(trailer), _) => Ok(trailer.count.0),
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

pub(super) fn failed(file: &Path, why: &io::Error) -> Error {
    Error::new(
        Code::ExportFailed,
        format!("the export to {} was not written: {why}", shown_path(file)),
    )
}

//! `praxis export`: the events as JSON Lines that anybody can verify.
//! Invariant: a file has its final name only once it is whole and synced; an existing file is never written over.
//! Called by `verbs::run`.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use aiws::error::{Code, Error};

use super::{Call, print, shown_path};
use crate::args::Export as Args;
use crate::exit::Exit;
use crate::render::json;
use crate::store::open_for_reading;

/// Runs it.
///
/// # Errors
///
/// `EXPORT_FAILED` when it cannot be written; a store code when the log cannot be read.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    let journal = open_for_reading(&call.store)?;
    if args.file == Path::new("-") {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let written = journal
            .export(&mut out)
            .map_err(|error| failed(Path::new("the standard output"), &error.to_string()));
        written.and_then(|_| {
            out.flush()
                .map_err(|error| failed(Path::new("the standard output"), &error.to_string()))
        })?;
        return Ok(Exit::Done);
    }
    if fs::symlink_metadata(&args.file).is_ok() {
        return Err(failed(&args.file, "it exists already; name a new file"));
    }
    let unfinished = args.file.with_extension("unfinished");
    let count = match write(&journal, &unfinished, &args.file) {
        Ok(count) => count,
        Err(error) => {
            // What was begun is of no use; one that cannot be removed is named by the error's own cause.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
    };
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

fn write(journal: &praxis_journal::Journal, unfinished: &Path, file: &Path) -> Result<u64, Error> {
    let io = |error: std::io::Error| failed(file, &error.to_string());
    let mut options = File::options();
    let out = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(unfinished)
        .map_err(io)?;
    let mut out = BufWriter::new(out);
    let trailer = journal
        .export(&mut out)
        .map_err(|error| failed(file, &error.to_string()))?;
    out.flush().map_err(io)?;
    out.get_ref().sync_all().map_err(io)?;
    fs::hard_link(unfinished, file)
        .and_then(|()| fs::remove_file(unfinished))
        .map_err(io)?;
    Ok(trailer.count.0)
}

fn failed(file: &Path, why: &str) -> Error {
    Error::new(
        Code::ExportFailed,
        format!("the export to {} was not written: {why}", file.display()),
    )
}

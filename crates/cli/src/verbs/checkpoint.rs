//! `praxis checkpoint`: the head of the log, signed, to be kept where nobody who can change the log can reach it.
//! Invariant: only what the stored events give just now is signed; the key stays with the process that was called.
//! Called by `verbs::run` and by `office::look`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use aiws::error::{Code, Error};
use aiws::json::Value;
use praxis_journal::Journal;
use praxis_journal_format::checkpoint::Checkpoint;
use praxis_journal_format::note::{NoteError, Signer};
use praxis_journal_format::tree::TreeHead;

use super::export::{failed, write_whole};
use super::{Call, block_on, print, say, shown_path};
use crate::answer::{Answer, View};
use crate::args::Checkpoint as Args;
use crate::exit::Exit;
use crate::files::read_bounded;
use crate::limits::KEY_BYTES;
use crate::render::json;
use crate::request::Request;
use crate::seat;

/// Runs it.
///
/// # Errors
///
/// `KEY_INVALID`; `USAGE` for a name that is taken; `EXPORT_FAILED`; a store code when the log cannot be read.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    // A key that cannot be used is said before the log is read.
    let signer = args.key.as_deref().map(read_key).transpose()?;
    let view = View::of_output(call.json);
    let answer = block_on(seat::ask(&call.store, Request::Checkpoint {}, view))?;
    let Some(signer) = signer else {
        return say(call, &answer);
    };
    let checkpoint = read_back(&answer.value)?;
    let note = checkpoint
        .signed(&signer)
        .map_err(|error| refused(&error))?;
    // A dash is standard output, as it is for `export`.
    let out = args.out.as_deref().filter(|out| *out != Path::new("-"));
    let Some(out) = out else {
        let value = value(&checkpoint, Some(&note), None);
        print(&if call.json { value.to_string() } else { note })?;
        return Ok(Exit::Done);
    };
    let written = |mut file: &fs::File| {
        let written = file.write_all(note.as_bytes());
        written.map_err(|error| failed(out, &error))
    };
    write_whole(out, 0o644, written)?;
    let shown = shown_path(out);
    let value = value(&checkpoint, Some(&note), Some(&shown));
    let text = format!(
        "{shown} vouches for {} events\nKeep it where nobody who can change the store can change it.",
        checkpoint.head.size
    );
    print(&if call.json { value.to_string() } else { text })?;
    Ok(Exit::Done)
}

/// The head of an open journal, as its stored events give it.
///
/// # Errors
///
/// A store code.
pub fn answer(journal: &Journal, view: View) -> Result<Answer, Error> {
    let head = journal
        .checked_head()
        .map_err(|error| Error::new(error.code(), error.to_string()))?;
    let checkpoint = Checkpoint::of(journal.store_id(), head);
    let value = value(&checkpoint, None, None);
    Ok(Answer::done(value, view, |_| {
        format!("{checkpoint}not signed; sign it with --key FILE (praxis keygen FILE makes one)")
    }))
}

fn value(checkpoint: &Checkpoint, note: Option<&str>, file: Option<&str>) -> Value {
    let members = aiws::object! {
        "origin": checkpoint.origin.as_str(),
        "size": checkpoint.head.size.to_string(),
        "rootHash": checkpoint.head.root.to_string(),
        "note": note,
        "file": file,
    };
    json::object("checkpoint", members)
}

/// The head that an engine answered.
fn read_back(value: &Value) -> Result<Checkpoint, Error> {
    let member = |name: &str| value.get(name).and_then(Value::as_str);
    let read = || {
        let head = TreeHead {
            size: member("size")?.parse().ok()?,
            root: member("rootHash")?.parse().ok()?,
        };
        let origin = member("origin")?.to_owned();
        Some(Checkpoint { origin, head })
    };
    read().ok_or_else(|| Error::new(Code::InternalStore, "the engine answered with no head"))
}

/// A signing key of a file that is its owner's alone.
fn read_key(path: &Path) -> Result<Signer, Error> {
    let refused_as = |what: &str| {
        let message = format!("the signing key {}: {what}", shown_path(path));
        Error::new(Code::KeyInvalid, message)
    };
    let bytes = read_bounded(path, KEY_BYTES, Code::KeyInvalid)?;
    let facts = fs::metadata(path).map_err(|error| refused_as(&error.to_string()))?;
    if facts.mode() & 0o077 != 0 {
        return Err(refused_as(
            "others can read it; chmod 600 it, or make another",
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| refused_as("it is not UTF-8"))?;
    Signer::parse(&text).map_err(|error| refused_as(&error.to_string()))
}

/// A refusal of the format as an error of this program.
pub(super) fn refused(error: &NoteError) -> Error {
    Error::new(error.code(), error.to_string())
}

//! `praxis keygen`: a key that checkpoints are signed with.
//! Invariant: the signing key is in its file alone, which only its owner can read; no file is replaced.
//! Called by `verbs::run`.

use std::io::Write;

use aiws::error::{Code, Error};
use aiws::json::Value;
use praxis_engine::Entropy;
use praxis_journal_format::checkpoint::origin;
use praxis_journal_format::note::Signer;

use super::checkpoint::refused;
use super::export::{failed, write_whole};
use super::{Call, block_on, print, shown_path};
use crate::answer::View;
use crate::args::Keygen as Args;
use crate::exit::Exit;
use crate::render::json;
use crate::request::Request;
use crate::seat;
use crate::store::open_for_reading;

/// Runs it: the verifier key is what it prints.
///
/// # Errors
///
/// `KEY_INVALID` for a name that no key has; `USAGE` for a file that is there; a store code where the store is to give the
/// name and cannot be read.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => origin_of(call)?,
    };
    let mut seed = [0u8; 32];
    praxis_engine::SystemEntropy
        .fill(&mut seed)
        .map_err(|error| Error::new(Code::StoreIo, format!("no entropy for a key: {error}")))?;
    let signer = Signer::new(&name, &seed).map_err(|error| refused(&error))?;
    let text = format!("{}\n", signer.secret_text());
    let written = |mut file: &std::fs::File| {
        let written = file.write_all(text.as_bytes());
        written.map_err(|error| failed(&args.file, &error))
    };
    write_whole(&args.file, 0o600, written)?;
    let verifier = signer.verifier().text();
    if call.json {
        let shown = shown_path(&args.file);
        let members = aiws::object! { "file": shown, "verifierKey": verifier };
        print(&json::object("key", members).to_string())?;
    } else {
        print(&verifier)?;
    }
    Ok(Exit::Done)
}

/// The store's own name in its checkpoints.
fn origin_of(call: &Call) -> Result<String, Error> {
    match open_for_reading(&call.store) {
        Ok(journal) => Ok(origin(journal.store_id())),
        Err(error) if error.code() == Code::StoreLocked => {
            let asked = seat::ask(&call.store, Request::Checkpoint {}, View::PROGRAM);
            let answer = block_on(asked)?;
            let origin = answer.value.get("origin").and_then(Value::as_str);
            origin.map(str::to_owned).ok_or(error)
        }
        Err(error) => Err(error),
    }
}

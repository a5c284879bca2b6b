//! `praxis attach`: follows the output of a run's agent or check as it comes.
//! Invariant: reads files alone; whoever leaves changes nothing.
//! Called by `verbs::run`; what to follow is asked of the store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aiws::error::Error;
use aiws::json::Value;
use aiws::object;

use super::{Call, block_on};
use crate::answer::{Answer, View};
use crate::args::Attach as Args;
use crate::coding::attempt::AttemptFiles;
use crate::coding::workspace::Workspace;
use crate::exit::Exit;
use crate::files::read_from;
use crate::limits::ATTACH_BYTES;
use crate::render::{escape, json, program};
use crate::request::Request;
use crate::seat;
use crate::signals::Signals;
use crate::store::Reader;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Runs it.
///
/// # Errors
///
/// `RUN_NOT_FOUND`, `RUN_AMBIGUOUS`, or a store code.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    if call.json {
        let run = args.run.clone();
        return super::ask(call, Request::Transcript { run });
    }
    block_on(async {
        let mut signals = Signals::new()?;
        let mut run = args.run.clone();
        let mut shown: Option<(String, u64)> = None;
        loop {
            let request = Request::Transcript { run: run.clone() };
            let now = seat::ask(&call.store, request, View::PROGRAM).await?;
            let said = |name: &str| now.value.get(name).and_then(Value::as_str);
            run = said("run").map(str::to_owned).or(run);
            let (path, label) = (said("path"), said("step").unwrap_or_default());
            if let Some(path) = path {
                if shown.as_ref().is_none_or(|(known, _)| known != path) {
                    crate::render::say(&format!("-- {label}"));
                    shown = Some((path.to_owned(), 0));
                }
                if let Some((path, at)) = &mut shown {
                    *at += pass_on(&call.store, Path::new(path), *at)?;
                }
            }
            if now.value.get("moves").and_then(Value::as_bool) != Some(true) {
                let standing = said("standing").unwrap_or_default();
                let run = run.unwrap_or_default();
                crate::render::say(&format!(
                    "-- nothing runs now: {standing}; {} show {run}",
                    program()
                ));
                return Ok(Exit::Done);
            }
            tokio::select! {
                () = signals.next() => return Ok(Exit::Done),
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    })
}

/// Writes what the file has beyond a place, escaped, and returns how many bytes that were.
fn pass_on(store: &Path, path: &Path, at: u64) -> Result<u64, Error> {
    let mut passed = 0;
    loop {
        let bytes = read_from(store, path, at + passed, ATTACH_BYTES)?;
        if bytes.is_empty() {
            return Ok(passed);
        }
        let whole = match std::str::from_utf8(&bytes) {
            // The rest of a character comes with the next bytes.
            Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
                &bytes[..error.valid_up_to()]
            }
            _ => &bytes[..],
        };
        passed += whole.len() as u64;
        let text = escape::block(&String::from_utf8_lossy(whole));
        // A reader that went away has nothing left to follow for.
        super::pass(text.as_bytes())?;
    }
}

/// Which transcript there is to follow, and whether more may come.
///
/// # Errors
///
/// `RUN_NOT_FOUND`, `RUN_AMBIGUOUS`, or a store code.
pub fn answer(reader: &Reader, named: Option<&str>, view: View) -> Result<Answer, Error> {
    let run = reader.load(&reader.find(named)?)?;
    let page = reader.page(&run, crate::session::now_ms());
    let newest = newest(reader, &run);
    let value = json::object(
        "transcript",
        object! {
            "run": page.run.as_str(),
            "standing": page.word(),
            "moves": page.standing == crate::render::page::Standing::Going && page.driven,
            "step": newest.as_ref().map(|(step, _)| step.as_str()),
            "path": newest.as_ref().map(|(_, path)| path.display().to_string()),
        },
    );
    Ok(Answer::done(value, view, |_| String::new()))
}

/// The newest attempt with a transcript.
fn newest(reader: &Reader, run: &crate::store::Run) -> Option<(String, PathBuf)> {
    let workspace = Workspace::at(&reader.path, run.job.run_id.as_str(), &run.job.base_commit);
    let dispatched = run
        .events
        .iter()
        .rev()
        .find_map(|sealed| match &sealed.event.command {
            praxis_model::command::Body::Dispatch(body) => {
                Some((body.node_id.clone(), body.attempt_id.clone()))
            }
            _ => None,
        });
    let (node, attempt) = dispatched?;
    let mut operations = run.state.operations.values();
    let number = operations
        .find_map(|operation| operation.attempts.iter().position(|id| *id == attempt))?
        as u64
        + 1;
    let files = AttemptFiles::of(&workspace, &node, number);
    let label = match number {
        1 => escape::line(node.as_str()),
        _ => format!("{}, try {number}", escape::line(node.as_str())),
    };
    Some((label, files.transcript()))
}

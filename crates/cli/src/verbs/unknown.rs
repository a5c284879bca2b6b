//! `praxis unknown`: agent runs whose outcome nobody knows, with what there is to look at and the choices.
//! Invariant: shows and decides nothing; what it reads of an agent's tree changes nothing there.
//! Called by `office::look`.

use aiws::error::Error;
use aiws::json::Value;
use aiws::record::Attempt;
use praxis_engine::shim::Probe;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use super::shown_path;
use crate::answer::{Answer, View};
use crate::coding::attempt::AttemptFiles;
use crate::coding::workspace::Workspace;
use crate::exit::Exit;
use crate::limits::TAIL_LINES;
use crate::render::rows::is_uncertain;
use crate::render::unknown::{self, Finding};
use crate::render::{escape, json};
use crate::store::Reader;

/// The uncertain attempts, each with what there is to look at.
///
/// # Errors
///
/// `RUN_NOT_FOUND`, `RUN_AMBIGUOUS`, or a store code.
pub fn answer(reader: &Reader, named: Option<&str>, view: View) -> Result<Answer, Error> {
    let subjects = match named {
        Some(named) => vec![reader.find(Some(named))?],
        None => reader.runs()?,
    };
    let (mut findings, mut unreadable) = (Vec::new(), Vec::new());
    for subject in subjects {
        let state = match reader.state(&subject) {
            Ok((state, _)) => reader.left(&state),
            Err(error) if named.is_some() => return Err(error),
            Err(error) => {
                unreadable.push((subject, error));
                continue;
            }
        };
        for attempt in state
            .attempts
            .values()
            .filter(|attempt| is_uncertain(&state, attempt))
        {
            findings.push(look(reader, &subject, &state, attempt));
        }
    }
    let exit = unreadable.iter().fold(Exit::Done, |exit, (_, error)| {
        exit.worse(Exit::of(error.code()))
    });
    let attempts: Vec<Value> = findings.iter().map(unknown::value).collect();
    let errors: Vec<Value> = unreadable
        .iter()
        .map(|(_, error)| error.to_value())
        .collect();
    let members = aiws::object! { "attempts": attempts, "unreadable": errors };
    let answer = Answer::done(json::object("unknown", members), view, |style| {
        if findings.is_empty() && unreadable.is_empty() {
            return "No outcome is unknown.\n".to_owned();
        }
        let cannot = unreadable
            .iter()
            .map(|(_, error)| format!("cannot be read: {error}\n"));
        let pages = findings.iter().map(|finding| unknown::text(finding, style));
        pages.chain(cannot).collect::<Vec<String>>().join("\n")
    });
    Ok(answer.with_exit(exit))
}

/// What there is to look at. A job that cannot be read only leaves out what changed in the tree: settling goes on.
fn look(reader: &Reader, subject: &Subject, state: &RunState, attempt: &Attempt) -> Finding {
    let job = reader.job(state);
    let run = subject.run_id.as_ref().map_or("", |run| run.as_str());
    let base = job.as_ref().map_or("", |job| job.base_commit.as_str());
    let workspace = Workspace::at(&reader.path, run, base);
    let changed = match &job {
        Ok(_) => workspace.changed_files(),
        Err(error) => Err(error.clone()),
    };
    let operation = state.operations.get(&attempt.operation_id);
    let node = operation.and_then(|operation| operation.node_id.clone());
    let files = AttemptFiles::of_attempt(&workspace, state, attempt);
    let started = files.as_ref().and_then(|files| match files.probe() {
        Probe::Lost(started) | Probe::Running(started) => started,
        _ => None,
    });
    let process = started.and_then(|started| Some((started.command()?.0, started.command_lives())));
    let output = files.and_then(|files| files.transcript_bytes().ok());
    let command = operation
        .and_then(|operation| operation.action.pointer("/payload/command"))
        .and_then(Value::as_str);
    Finding {
        run: escape::line(run),
        node: node
            .map(|node| escape::line(node.as_str()))
            .unwrap_or_default(),
        attempt: attempt.attempt_id.to_string(),
        why: reader.why(attempt),
        command: escape::line(command.unwrap_or_default()),
        tree: shown_path(&workspace.clone_dir()),
        process,
        changed: changed.map_err(|error| escape::line(&error.message)),
        output: output
            .map(|bytes| escape::tail(&String::from_utf8_lossy(&bytes), TAIL_LINES))
            .unwrap_or_default(),
    }
}

//! `praxis unknown`: agent runs whose outcome nobody knows, with what there is to look at and the choices.
//! Invariant: shows and decides nothing; what it reads of an agent's tree changes nothing there.
//! Called by `verbs::run`.

use aiws::error::Error;
use aiws::json::Value;
use aiws::record::Attempt;

use super::{Call, print, shown_path};
use crate::args::Unknown as Args;
use crate::coding::attempt::AttemptFiles;
use crate::coding::workspace::Workspace;
use crate::exit::Exit;
use crate::limits::{LISTED_FILES, TAIL_LINES};
use crate::render::page::short;
use crate::render::rows::is_uncertain;
use crate::render::{escape, json};
use crate::store::{Reader, orphaned};

/// An uncertain attempt with what there is to look at.
struct Finding {
    run: String,
    node: String,
    attempt: String,
    command: String,
    tree: String,
    changed: Result<Vec<String>, String>,
    output: Vec<String>,
}

/// Runs it.
///
/// # Errors
///
/// `RUN_NOT_FOUND`, `RUN_AMBIGUOUS`, or a store code.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    let reader = Reader::open(&call.store)?;
    let subjects = match &args.run {
        Some(named) => vec![reader.find(Some(named))?],
        None => reader.runs()?,
    };
    let mut findings = Vec::new();
    for subject in subjects {
        let run = reader.load(&subject)?;
        let state = orphaned(&run.state);
        for attempt in state
            .attempts
            .values()
            .filter(|attempt| is_uncertain(&state, attempt))
        {
            findings.push(look(&reader, &run, attempt));
        }
    }
    if call.json {
        let attempts: Vec<Value> = findings.iter().map(value).collect();
        print(&json::object("unknown", aiws::object! { "attempts": attempts }).to_string())?;
    } else if findings.is_empty() {
        print("No outcome is unknown.")?;
    } else {
        let pages: Vec<String> = findings.iter().map(page).collect();
        print(&pages.join("\n"))?;
    }
    Ok(Exit::Done)
}

fn look(reader: &Reader, run: &Run, attempt: &Attempt) -> Finding {
    let job = &run.job;
    let workspace = Workspace::at(&reader.path, job.run_id.as_str(), &job.base_commit);
    let operation = run.state.operations.get(&attempt.operation_id);
    let node = operation.and_then(|operation| operation.node_id.clone());
    let number = operation.and_then(|operation| {
        operation
            .attempts
            .iter()
            .position(|id| *id == attempt.attempt_id)
    });
    let files = node
        .as_ref()
        .zip(number)
        .map(|(node, number)| AttemptFiles::of(&workspace, node, number as u64 + 1));
    let output = files.and_then(|files| files.transcript_bytes().ok());
    let command = operation
        .and_then(|operation| operation.action.pointer("/payload/command"))
        .and_then(Value::as_str);
    Finding {
        run: escape::line(job.run_id.as_str()),
        node: node
            .map(|node| escape::line(node.as_str()))
            .unwrap_or_default(),
        attempt: attempt.attempt_id.to_string(),
        command: escape::line(command.unwrap_or_default()),
        tree: shown_path(&workspace.clone_dir()),
        changed: workspace
            .changed_files()
            .map_err(|error| escape::line(&error.message)),
        output: output
            .map(|bytes| escape::tail(&String::from_utf8_lossy(&bytes), TAIL_LINES))
            .unwrap_or_default(),
    }
}

fn page(finding: &Finding) -> String {
    let (id, praxis) = (short(&finding.attempt), crate::render::program());
    let mut text = format!(
        "attempt {id} of {} in run {}\n  command  {}\n  tree     {}\n",
        finding.node, finding.run, finding.command, finding.tree
    );
    match &finding.changed {
        Ok(files) if files.is_empty() => text.push_str("  changed  nothing\n"),
        Ok(files) => {
            for (index, file) in files.iter().take(LISTED_FILES).enumerate() {
                text.push_str(&format!(
                    "  {:<8} {file}\n",
                    if index == 0 { "changed" } else { "" }
                ));
            }
            if files.len() > LISTED_FILES {
                text.push_str(&format!(
                    "           and {} files more\n",
                    files.len() - LISTED_FILES
                ));
            }
        }
        Err(why) => text.push_str(&format!("  changed  cannot be told: {why}\n")),
    }
    if finding.output.is_empty() {
        text.push_str("  output   none\n");
    } else {
        text.push_str("  output   its last lines\n");
        for line in &finding.output {
            text.push_str(&format!("    | {line}\n"));
        }
    }
    text.push_str(&format!(
        "  The engine ended before it saw how this one ended. Look at the tree and at the agent's own records,\n  \
         make sure that it does not run any more, write what you found into a file, and choose:\n    \
         {praxis} reconcile {id} --applied --evidence FILE        it did its work: the tree is its result\n    \
         {praxis} reconcile {id} --not-applied --evidence FILE    it did nothing: it may be started again\n  \
         then: {praxis} resume {}\n",
        finding.run
    ));
    text
}

fn value(finding: &Finding) -> Value {
    aiws::object! {
        "attemptId": finding.attempt.as_str(),
        "run": finding.run.as_str(),
        "node": finding.node.as_str(),
        "command": finding.command.as_str(),
        "tree": finding.tree.as_str(),
        "changed": finding.changed.as_ref().ok().cloned(),
        "output": finding.output.clone(),
        "choices": vec!["--applied", "--not-applied"],
    }
}

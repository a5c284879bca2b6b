//! The verbs, one file each.
//! Invariant: a verb that fails returns the error; it is said in one place, with its code and what to do.
//! Called by `main`.

pub mod attach;
pub mod backup;
pub mod checkpoint;
pub mod clean;
mod code;
mod completions;
mod decide;
pub mod doctor;
mod explain;
pub mod export;
mod keygen;
pub mod log;
mod man;
mod outbox;
mod reconcile;
mod resume;
mod schema;
mod serve;
pub mod show;
mod simulate;
pub mod unknown;
pub mod verify;

use std::io::Write;
use std::path::{Path, PathBuf};

use aiws::error::{Code, Error};
use aiws::json::Value;

use crate::answer::{Answer, View};
use crate::args::{Cli, Verb};
use crate::exit::Exit;
use crate::prompt;
use crate::render::json;
use crate::render::style::Style;
use crate::request::{Given, Request};
use crate::runner::Outcome;
use crate::{seat, store};

/// What every verb knows.
#[derive(Clone, Debug)]
pub struct Call {
    /// The store directory.
    pub store: PathBuf,
    /// Whether JSON is wanted.
    pub json: bool,
}

/// Runs the verb.
///
/// # Errors
///
/// What the verb refused or met with.
pub fn run(cli: Cli) -> Result<Exit, Error> {
    if let Verb::Explain(args) = &cli.verb {
        return explain::run(args, cli.json);
    }
    match &cli.verb {
        Verb::Completions(args) => return completions::run(args),
        Verb::Man(args) => return man::run(args, cli.json),
        Verb::Schema(args) => return schema::run(args, cli.json),
        Verb::Simulate(args) => return simulate::run(args, cli.json),
        _ => {}
    }
    crate::render::remember_store(cli.store.as_deref());
    let call = Call {
        store: store::location(cli.store.as_deref())?,
        json: cli.json,
    };
    match cli.verb {
        Verb::Code(args) => code::run(&call, args),
        Verb::Resume(args) => resume::run(&call, args),
        Verb::Serve(args) => serve::run(&call, args),
        Verb::List(_) => ask(&call, Request::List {}),
        Verb::Inbox(_) => ask(&call, Request::Inbox {}),
        Verb::Holds(_) => ask(&call, Request::Holds {}),
        Verb::Show(args) => ask(&call, Request::Show { run: args.run }),
        Verb::Log(args) => ask(&call, Request::Log { run: args.run }),
        Verb::Unknown(args) => ask(&call, Request::Unknown { run: args.run }),
        Verb::Diff(args) => ask(&call, Request::Diff { run: args.run }),
        Verb::Report(args) => ask(&call, Request::Report { run: args.run }),
        Verb::Attach(args) => had_enough(attach::run(&call, &args)),
        Verb::Approve(args) => decide::approve(&call, &args),
        Verb::Deny(args) => decide::deny(&call, &args),
        Verb::Recheck(args) => {
            let (hold, reason) = (args.hold, args.reason);
            ask(&call, Request::Recheck { hold, reason })
        }
        Verb::Pause(args) => decide::pause(&call, &args),
        Verb::Continue(args) => {
            let (run, reason) = (args.run, args.reason);
            ask(&call, Request::Continue { run, reason })
        }
        Verb::Cancel(args) => {
            let (run, reason) = (args.run, args.reason);
            ask(&call, Request::Cancel { run, reason })
        }
        Verb::Outbox(args) => outbox::run(&call, &args),
        Verb::Reconcile(args) => reconcile::run(&call, &args),
        Verb::Verify(args) => verify::run(&call, &args),
        Verb::Export(args) => had_enough(export::run(&call, &args)),
        Verb::Checkpoint(args) => checkpoint::run(&call, &args),
        Verb::Keygen(args) => keygen::run(&call, &args),
        Verb::Explain(args) => explain::run(&args, call.json),
        Verb::Schema(args) => schema::run(&args, call.json),
        Verb::Doctor(_) => doctor::run(&call),
        Verb::Backup(args) => backup::run(&call, &args),
        Verb::Clean(args) => {
            let (dry_run, older_than_days) = (args.dry_run, args.older_than);
            let request = Request::Clean {
                dry_run,
                older_than_days,
            };
            ask(&call, request)
        }
        Verb::Completions(args) => completions::run(&args),
        Verb::Man(args) => man::run(&args, call.json),
        Verb::Simulate(args) => simulate::run(&args, call.json),
    }
}

/// A reader that had enough is no failure.
fn had_enough(done: Result<Exit, Error>) -> Result<Exit, Error> {
    match done {
        Err(error) if is_reader_gone(&error) => Ok(Exit::Done),
        done => done,
    }
}

/// Asks the store, and says the answer.
fn ask(call: &Call, request: Request) -> Result<Exit, Error> {
    let view = View::of_output(call.json);
    let answer = block_on(seat::ask(&call.store, request, view))?;
    say(call, &answer)
}

/// Says an answer: in JSON, or as the text that was made for this output.
fn say(call: &Call, answer: &Answer) -> Result<Exit, Error> {
    match call.json {
        true => print(&answer.value.to_string())?,
        false if answer.text.is_empty() => {}
        false => print(&answer.text)?,
    }
    Ok(answer.exit)
}

/// How a decision is given that a question at the terminal confirms: by the answer, or by the verb alone where nobody
/// can be asked; none where the person says no.
fn confirmed(call: &Call, question: &str) -> Result<Option<Given>, Error> {
    if call.json || !prompt::at_terminal() {
        return Ok(Some(Given::ByVerb));
    }
    let mut terminal = std::io::stderr();
    let answer = prompt::ask(question, &mut std::io::stdin().lock(), &mut terminal);
    let answer = answer.map_err(|error| {
        Error::new(
            Code::TerminalNeeded,
            format!("the terminal did not answer: {error}"),
        )
    })?;
    if answer == prompt::Answer::Yes {
        return Ok(Some(Given::AtTerminal));
    }
    crate::render::say("Nothing is recorded.");
    Ok(None)
}

/// Says an error: what it is, its code, and what to do about it.
pub fn say_error(error: &Error, json: bool) {
    let exit = Exit::of(error.code());
    if json {
        // The output may be gone; the exit code still says it.
        let _ = print(&json::error(error, exit).to_string());
        return;
    }
    let style = Style::unbroken(&std::io::stderr());
    crate::render::say(crate::render::error::text(error, style).trim_end());
}

/// Writes bytes to the standard output as they are.
///
/// # Errors
///
/// `EXPORT_FAILED` when they cannot be written, also where the reader went away: what follows has nobody to go to.
fn pass(bytes: &[u8]) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|error| {
        let gone = error.kind() == std::io::ErrorKind::BrokenPipe;
        let message = format!("the standard output cannot be written: {error}");
        Error::new(Code::ExportFailed, message).with("readerGone", gone)
    })
}

/// Whether an output ended because its reader had enough.
fn is_reader_gone(error: &Error) -> bool {
    error.details.get("readerGone").and_then(Value::as_bool) == Some(true)
}

/// Writes a line to the standard output.
///
/// # Errors
///
/// `EXPORT_FAILED` when it cannot be written; a reader that went away is no error.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{end}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::new(
            Code::ExportFailed,
            format!("the standard output cannot be written: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Runs a future to its end on a runtime of its own.
fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        Error::new(
            Code::StoreIo,
            format!("the runtime cannot be started: {error}"),
        )
    })?;
    let result = runtime.block_on(work);
    // A thread that waits at a terminal for an answer nobody needs any more must not keep the program.
    runtime.shutdown_background();
    result
}

/// Shows how driven runs ended, and returns the exit.
fn say_outcome(call: &Call, outcome: &Outcome) -> Result<Exit, Error> {
    let (view, mut exit, mut error) = (
        View::of_output(call.json),
        outcome.exit,
        outcome.error.clone(),
    );
    let mut pages = Vec::new();
    for run in &outcome.runs {
        let request = Request::Show {
            run: Some(run.clone()),
        };
        match block_on(seat::ask(&call.store, request, view)) {
            Ok(answer) => pages.push(answer),
            Err(found) => {
                exit = exit.worse(Exit::after_start(found.code()));
                error = error.or(Some(found));
            }
        }
    }
    for page in &pages {
        let own = page.value.get("exit").and_then(Value::as_int);
        exit = exit.worse(own.and_then(Exit::from_number).unwrap_or(Exit::Internal));
    }
    if call.json {
        let members = aiws::object! {
            "runs": pages.into_iter().map(|page| page.value).collect::<Vec<Value>>(),
            "error": error.as_ref().map(Error::to_value),
            "exit": exit as i32,
        };
        print(&json::object("runs", members).to_string())?;
        return Ok(exit);
    }
    for page in &pages {
        print(&page.text)?;
    }
    if let Some(error) = &error {
        say_error(error, false);
    }
    Ok(exit)
}

/// A path as it is shown.
fn shown_path(path: &Path) -> String {
    crate::render::escape::line(&path.display().to_string())
}

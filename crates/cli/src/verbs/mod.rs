//! The verbs, one file each.
//! Invariant: a verb that fails returns the error; it is said in one place, with its code and what to do.
//! Called by `main`.

mod code;
mod explain;
mod export;
mod log;
mod reconcile;
mod resume;
mod show;
mod unknown;
mod verify;

use std::io::Write;
use std::path::{Path, PathBuf};

use aiws::error::{Code, Error, Stage};
use aiws::json::Value;

use crate::args::{Cli, Verb};
use crate::exit::Exit;
use crate::render::json;
use crate::render::page::Page;
use crate::render::say;
use crate::render::text::{self, Style};
use crate::runner::Outcome;
use crate::store;

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
    crate::render::remember_store(cli.store.as_deref());
    let call = Call {
        store: store::location(cli.store.as_deref())?,
        json: cli.json,
    };
    match cli.verb {
        Verb::Code(args) => code::run(&call, args),
        Verb::Resume(args) => resume::run(&call, args),
        Verb::Show(args) => show::run(&call, &args),
        Verb::Log(args) => log::run(&call, &args),
        Verb::Unknown(args) => unknown::run(&call, &args),
        Verb::Reconcile(args) => reconcile::run(&call, &args),
        Verb::Verify(_) => verify::run(&call),
        Verb::Export(args) => export::run(&call, &args),
        Verb::Explain(args) => explain::run(&args, call.json),
    }
}

/// Says an error: what it is, its code, and what to do about it.
pub fn say_error(error: &Error, json: bool) {
    let exit = Exit::of(error.code());
    if json {
        // The output may be gone; the exit code still says it.
        let _ = print(&json::error(error, exit).to_string());
        return;
    }
    let place = error
        .pointer
        .as_ref()
        .map(|pointer| format!(" (at {pointer})"))
        .unwrap_or_default();
    // A guard says what has to hold; here it did not.
    let guard = error.details.get("requirement").and_then(Value::as_str);
    let rule = guard
        .map(|id| format!("this does not hold ({id}): "))
        .unwrap_or_default();
    say(&format!(
        "praxis: {}: {rule}{}{place}",
        error.code(),
        crate::render::escape::block(&error.message)
    ));
    let mend = error.details.get("mend").and_then(Value::as_str);
    match mend {
        Some(mend) => say(&format!("  try: {mend}")),
        None => say(&format!("  {}", error.code().remedy())),
    }
    if error.code().stage() != Stage::Usage {
        say(&format!("  more: praxis explain {}", error.code()));
    }
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
    if call.json {
        let pages: Vec<Value> = outcome.pages.iter().map(json::page).collect();
        let members = aiws::object! {
            "runs": pages,
            "error": outcome.error.as_ref().map(Error::to_value),
            "exit": outcome.exit as i32,
        };
        print(&json::object("runs", members).to_string())?;
        return Ok(outcome.exit);
    }
    for page in &outcome.pages {
        say_page(page)?;
    }
    if let Some(error) = &outcome.error {
        say_error(error, false);
    }
    Ok(outcome.exit)
}

fn say_page(page: &Page) -> Result<(), Error> {
    print(&text::page(page, Style::of(&std::io::stdout())))
}

/// The last lines of a run's failing check or transcript, if there are any.
fn shown_path(path: &Path) -> String {
    crate::render::escape::line(&path.display().to_string())
}

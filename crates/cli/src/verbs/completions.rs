//! `praxis completions`: what a shell needs to complete verbs and options.
//! Invariant: made from the command line itself, so that it knows every verb that help shows; needs no store.
//! Called by `verbs::run`.

use aiws::error::{Code, Error};

use super::print;
use crate::args::Completions as Args;
use crate::exit::Exit;

/// Runs it.
///
/// # Errors
///
/// `EXPORT_FAILED` when the output cannot be written.
pub fn run(args: &Args) -> Result<Exit, Error> {
    print(&script(args.shell)?)?;
    Ok(Exit::Done)
}

/// The script of a shell.
fn script(shell: clap_complete::Shell) -> Result<String, Error> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut super::man::visible(), "praxis", &mut bytes);
    String::from_utf8(bytes).map_err(|error| Error::new(Code::InternalStore, error.to_string()))
}

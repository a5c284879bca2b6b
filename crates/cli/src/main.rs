//! The binary `praxis`: parses the command line, runs the verb, says how it ended.
//! Invariant: every way out has an exit code of the table; a message goes to the standard error, a result to the standard output.
//! Called by people and scripts.

use std::path::PathBuf;
use std::process::ExitCode;

use aiws::error::{Code, Error};
use clap::Parser;
use praxis_cli::args::Cli;
use praxis_cli::exit::Exit;
use praxis_cli::{notes, verbs};

fn main() -> ExitCode {
    if let Some(folder) = shim_folder() {
        let exit = praxis_cli::coding::shimmed::body(&folder);
        return ExitCode::from(u8::try_from(exit).unwrap_or(1));
    }
    notes::install();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let json = cli.json;
    match verbs::run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            verbs::say_error(&error, json);
            Exit::of(error.code()).into()
        }
    }
}

/// The folder of the attempt whose shim this process is to be; none for every other use. Nobody types this verb, so it is
/// no part of the command line, and nothing of a command line is set up for it.
fn shim_folder() -> Option<PathBuf> {
    let mut args = std::env::args_os().skip(1);
    let verb = args.next()?;
    let folder = args.next().map(PathBuf::from);
    folder.filter(|_| verb == praxis_engine::shim::VERB && args.next().is_none())
}

/// Help and version are answers; everything else is wrong usage, in JSON where JSON was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|arg| arg == "--json");
    if error.use_stderr() && json {
        let text = error.to_string();
        let first = text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned();
        verbs::say_error(&Error::new(Code::Usage, first), true);
    } else {
        // A closed output has nobody left to tell.
        let _ = error.print();
    }
    if error.use_stderr() {
        Exit::Usage.into()
    } else {
        Exit::Done.into()
    }
}

//! The binary `praxis`: parses the command line, runs the verb, says how it ended.
//! Invariant: every way out has an exit code of the table; a message goes to the standard error, a result to the standard output.
//! Called by people and scripts.

use std::process::ExitCode;

use aiws::error::{Code, Error};
use clap::Parser;
use praxis_cli::args::Cli;
use praxis_cli::exit::Exit;
use praxis_cli::{notes, verbs};

fn main() -> ExitCode {
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

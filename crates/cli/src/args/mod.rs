//! The command line: verbs, options, and an example in every help page.
//! Invariant: what clap accepts here is within the bounds of `limits` or refused by the verb with a code.
//! Called by `main`; the verbs get the parsed values.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

mod checkpoint;
mod code;
mod decide;
mod look;
mod outbox;
mod simulate;
mod tools;

pub use checkpoint::{Checkpoint, Keygen};
pub use code::{Code, Resume, Serve};
pub use decide::{Approve, Cancel, Continue, Deny, Pause, Recheck, Reconcile};
pub use look::{Attach, Diff, Holds, Inbox, List, Log, Report, Show, Unknown};
pub use outbox::Outbox;
pub use simulate::Simulate;
pub use tools::{Backup, Clean, Completions, Doctor, Explain, Export, Man, Schema, Verify};

const EXITS: &str = "\
Exit codes:
  0  accepted, or the verb did what it was asked     4  failed, rejected or canceled
  1  an internal error                               5  the outcome of an agent run is uncertain
  2  wrong usage                                     6  verification failed
  3  waits for a person

Example:
  praxis code --repo . --task \"fix it\" --agent \"my-agent\" --check \"make test\"";

/// Governed work of agents that survives crashes.
#[derive(Debug, Parser)]
#[command(name = "praxis", version, about = "Governed work of agents that survives crashes", after_help = EXITS, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// The store directory; $XDG_STATE_HOME/praxis or ~/.local/state/praxis unless given
    #[arg(long, global = true, env = "PRAXIS_STORE", value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// One JSON object instead of text for people
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Take a repository and a task through plan, approval, implementation, check and acceptance
    Code(Code),
    /// Go on with runs that were stopped or killed
    Resume(Resume),
    /// Have the store open for other terminals, scripts and workers
    Serve(Serve),
    /// List the runs: how each stands and what it waits for
    List(List),
    /// List what waits for a person, over all runs
    Inbox(Inbox),
    /// Approve a plan or accept a result, exactly as it is shown
    Approve(Approve),
    /// Say no to a plan or a result; the run ends as rejected
    Deny(Deny),
    /// Show the patch that would be accepted, or was
    Diff(Diff),
    /// Follow the output of a run's agent or check
    Attach(Attach),
    /// List open holds, and what would lift each
    Holds(Holds),
    /// Look again at what a hold waits for, and lift it where that is clear
    Recheck(Recheck),
    /// Let a run start nothing new
    Pause(Pause),
    /// Let a paused run go on
    Continue(Continue),
    /// End a run, and stop its agent
    Cancel(Cancel),
    /// Say what people want to be told, and remember who was told
    Outbox(Outbox),
    /// Write the final report of a run, in Markdown
    Report(Report),
    /// Show a run: its nodes, spend, holds, and what it waits for
    Show(Show),
    /// List the events of the store
    Log(Log),
    /// List agent runs whose outcome nobody knows, and how to settle them
    Unknown(Unknown),
    /// Settle an uncertain agent run by what you found out
    Reconcile(Reconcile),
    /// Check every event, chain and projection of the store
    Verify(Verify),
    /// Write all events as JSON Lines that verify without this program
    Export(Export),
    /// Write the signed head of the log, to be kept elsewhere
    Checkpoint(Checkpoint),
    /// Make a key that checkpoints are signed with
    Keygen(Keygen),
    /// Explain an error code, or list all of them
    Explain(Explain),
    /// Print the schema of a protocol, or list the schemas with their digests
    Schema(Schema),
    /// Look at the machine and the store, and say what to do about what is wrong
    Doctor(Doctor),
    /// Copy the store into a new directory that is a store itself
    Backup(Backup),
    /// Remove trees of ended runs and stored bytes that nothing names
    Clean(Clean),
    /// Crash the engine's own code in a simulation, and see what it keeps
    Simulate(Simulate),
    /// Print the completions of a shell
    Completions(Completions),
    /// Write man pages
    Man(Man),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    /// Wrapped, an example is another command.
    #[test]
    fn no_example_is_wrapped_at_80_columns() {
        let mut all = vec![Cli::command()];
        all.extend(Cli::command().get_subcommands().cloned());
        for command in all {
            let help = command.get_after_help().map(ToString::to_string);
            for line in help.unwrap_or_default().lines() {
                assert!(line.len() <= 79 || !line.starts_with("  praxis "), "{line}");
            }
        }
    }

    #[test]
    fn every_verb_has_an_example() {
        for verb in Cli::command().get_subcommands() {
            let help = verb
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.contains(&format!("praxis {}", verb.get_name())),
                "{}",
                verb.get_name()
            );
        }
    }

    #[test]
    fn a_finding_is_one_of_two() {
        let parse = |args: &[&str]| {
            Cli::try_parse_from([&["praxis", "reconcile", "a", "--evidence", "f"], args].concat())
        };
        assert!(parse(&["--applied"]).is_ok());
        assert!(parse(&[]).is_err());
        assert!(parse(&["--applied", "--not-applied"]).is_err());
    }
}

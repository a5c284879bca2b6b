//! The command line: verbs, options, and an example in every help page.
//! Invariant: what clap accepts here is within the bounds of `limits` or refused by the verb with a code.
//! Called by `main`; the verbs get the parsed values.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};

use crate::limits::{DEFAULT_TIMEOUT_SECONDS, MAX_CORRECTIONS, TIMEOUT_SECONDS};

const EXITS: &str = "\
Exit codes:
  0  accepted, or the verb did what it was asked     4  failed, rejected or canceled
  1  an internal error                               5  the outcome of an agent run is uncertain
  2  wrong usage                                     6  verification failed
  3  waits for a person

Example:
  praxis code --repo . --task \"make the failing test pass\" --agent \"sh agent.sh\" --check \"cargo test\"";

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
    /// Explain an error code, or list all of them
    Explain(Explain),
}

/// `praxis code`.
#[derive(Debug, Args)]
#[command(after_help = "\
The agent is any command line. It runs in a private clone and finds its work in the environment:
  PRAXIS_STAGE          plan, implement or correct
  PRAXIS_TASK_FILE      the task              PRAXIS_PLAN_FILE      the approved plan
  PRAXIS_FEEDBACK_FILE  the failed check      PRAXIS_INPUTS_DIR     verified inputs, a folder each
  PRAXIS_OUTPUT_DIR     write plan.md here    PRAXIS_USAGE_FILE     write the cost in units here
  PRAXIS_OPERATION_ID, PRAXIS_ATTEMPT_ID      stable names for this piece of work and this try
Exit 0 says that it worked, 75 that it did nothing and may be started again; what it changed in the
clone is its patch.

Examples:
  praxis code --repo . --task \"make the failing test pass\" --agent \"sh agent.sh\" --check \"cargo test\"
  praxis code --repo ~/app --task \"fix #12\" --agent \"my-agent --yes\" --check \"make test\" \\
      --env MY_AGENT_KEY --max-corrections 3 --approve-as alice")]
pub struct Code {
    /// The git repository: its top directory, with no uncommitted changes
    #[arg(long, value_name = "PATH")]
    pub repo: PathBuf,
    /// What is to be done
    #[arg(long, value_name = "TEXT")]
    pub task: String,
    /// The agent's command line, run by sh
    #[arg(long, value_name = "CMD")]
    pub agent: String,
    /// The check's command line, run by sh; exit 0 means that the result passes
    #[arg(long, value_name = "CMD")]
    pub check: String,
    /// How often a failed check may be corrected
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_CORRECTIONS)))]
    pub max_corrections: u32,
    /// What the run may cost, in units; an agent run costs 1 unless it says otherwise [default: 2 + N]
    #[arg(long, value_name = "UNITS", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub budget: Option<u64>,
    /// Longest time for one agent run or check, in seconds
    #[arg(long, value_name = "S", default_value_t = DEFAULT_TIMEOUT_SECONDS, value_parser = clap::value_parser!(u64).range(1..=TIMEOUT_SECONDS))]
    pub timeout: u64,
    /// Approve the plan unseen, and accept a result that passes the check, in this name
    #[arg(long, value_name = "NAME")]
    pub approve_as: Option<String>,
    /// Let agent and check see this variable; may be given again
    #[arg(long = "env", value_name = "NAME")]
    pub env: Vec<String>,
    /// Exit 3 instead of waiting for a person
    #[arg(long)]
    pub no_wait: bool,
}

/// `praxis resume`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  praxis resume
  praxis resume r-7f3k2q --approve-as alice")]
pub struct Resume {
    /// The run, or an unambiguous beginning of its name; all live runs unless given
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Approve plans unseen, and accept results that pass the check, in this name
    #[arg(long, value_name = "NAME")]
    pub approve_as: Option<String>,
    /// Exit 3 instead of waiting for a person
    #[arg(long)]
    pub no_wait: bool,
}

/// `praxis show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  praxis show
  praxis show r-7f3 --json")]
pub struct Show {
    /// The run, or an unambiguous beginning of its name; the latest one unless given
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
}

/// `praxis log`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  praxis log
  praxis log r-7f3 | tail")]
pub struct Log {
    /// Only events of this run
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
}

/// `praxis unknown`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  praxis unknown")]
pub struct Unknown {
    /// Only attempts of this run
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
}

/// `praxis reconcile`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("finding").required(true).args(["applied", "not_applied"]))]
#[command(after_help = "\
`praxis unknown` shows what to look at. The evidence file is kept with the decision: write in it what you found.

Examples:
  echo \"the agent's own log shows no start\" > finding.txt
  praxis reconcile 3f9a2c --not-applied --evidence finding.txt
  praxis reconcile 3f9a2c --applied --evidence finding.txt && praxis resume")]
pub struct Reconcile {
    /// The attempt, or an unambiguous beginning of its name
    #[arg(value_name = "ATTEMPT")]
    pub attempt: String,
    /// It did its work: what stands in the clone is taken as its result
    #[arg(long)]
    pub applied: bool,
    /// It did nothing: it may be started again
    #[arg(long)]
    pub not_applied: bool,
    /// The file that says what you found
    #[arg(long, value_name = "FILE")]
    pub evidence: PathBuf,
    /// In whose name; your login unless given
    #[arg(long = "as", value_name = "NAME")]
    pub actor: Option<String>,
}

/// `praxis verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  praxis verify && echo intact")]
pub struct Verify {}

/// `praxis export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  praxis export audit.jsonl && python3 journal-format/verify.py audit.jsonl
  praxis export - | wc -l")]
pub struct Export {
    /// Where to write: a new file, or - for the standard output
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
}

/// `praxis explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  praxis explain REPO_DIRTY
  praxis explain")]
pub struct Explain {
    /// The code; all of them are listed unless given
    #[arg(value_name = "CODE")]
    pub code: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
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

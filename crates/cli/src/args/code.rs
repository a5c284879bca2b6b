//! The arguments of the verbs that drive runs.
//! Invariant: what clap accepts here is within the bounds of `limits` or refused by the verb with a code.
//! Parsed as a part of `args`.

use std::path::PathBuf;

use clap::Args;

use crate::limits::{MAX_CORRECTIONS, TIMEOUT_SECONDS};

/// `praxis code`.
#[derive(Debug, Args)]
#[command(after_help = "\
The agent is any command line. It runs in a private clone and finds its work in the environment:
  PRAXIS_STAGE          plan, implement or correct
  PRAXIS_TASK_FILE      the task              PRAXIS_PLAN_FILE      the approved plan
  PRAXIS_FEEDBACK_FILE  what failed before    PRAXIS_INPUTS_DIR     verified inputs, a folder each
  PRAXIS_OUTPUT_DIR     write plan.md here    PRAXIS_USAGE_FILE     write the cost in units here
  PRAXIS_OPERATION_ID, PRAXIS_ATTEMPT_ID      stable names for this piece of work and this try
Exit 0 says that it worked, 75 that it did nothing and may be started again; what it changed in the
clone is its patch.

A repository may carry praxis.toml with agent, check, max_corrections, budget, timeout_seconds, env, secrets and
notify; what is typed wins.

Examples:
  praxis code --repo . --task \"fix it\" --agent \"my-agent\" --check \"make test\"
  praxis code --repo . --task \"fix #12\" --agent my-agent --check \"make test\" \\
      --env MY_AGENT_KEY --max-corrections 3 --approve-as alice")]
pub struct Code {
    /// The git repository: its top directory, with no uncommitted changes
    #[arg(long, value_name = "PATH", required_unless_present = "from")]
    pub repo: Option<PathBuf>,
    /// What is to be done
    #[arg(long, value_name = "TEXT", required_unless_present = "from")]
    pub task: Option<String>,
    /// The agent's command line, run by sh
    #[arg(long, value_name = "CMD")]
    pub agent: Option<String>,
    /// The check's command line, run by sh; exit 0 means that the result passes
    #[arg(long, value_name = "CMD")]
    pub check: Option<String>,
    /// Begin again where this run ended: its repository, task, agent, check and bounds, unless given anew; the agent
    /// is told how that one ended
    #[arg(long, value_name = "RUN")]
    pub from: Option<String>,
    /// How often a failed check may be corrected [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_CORRECTIONS)))]
    pub max_corrections: Option<u32>,
    /// What the run may cost, in units; an agent run costs 1 unless it says otherwise [default: 2 + N]
    #[arg(long, value_name = "UNITS", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub budget: Option<u64>,
    /// Longest time for one agent run or check, in seconds [default: 1800]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=TIMEOUT_SECONDS))]
    pub timeout: Option<u64>,
    /// Approve the plan unseen, and accept a result that passes the check, in this name
    #[arg(long, value_name = "NAME")]
    pub approve_as: Option<String>,
    /// Let agent and check see this variable; may be given again
    #[arg(long = "env", value_name = "NAME")]
    pub env: Vec<String>,
    /// Mask the value of this variable in transcripts; may be given again. Variables whose names say KEY, TOKEN, SECRET,
    /// PASSWORD and the like are masked anyway
    #[arg(long = "secret", value_name = "NAME")]
    pub secret: Vec<String>,
    /// Run this command for everything that a person wants to know: it gets a JSON object on its standard input
    #[arg(long, value_name = "CMD")]
    pub notify: Option<String>,
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
    /// Run this command for everything that a person wants to know: it gets a JSON object on its standard input
    #[arg(long, value_name = "CMD")]
    pub notify: Option<String>,
    /// Exit 3 instead of waiting for a person
    #[arg(long)]
    pub no_wait: bool,
}

/// `praxis serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
It has the store open and serves its socket until Ctrl-C, for other terminals, scripts and workers.

Examples:
  praxis serve
  praxis serve --resume")]
pub struct Serve {
    /// Go on with every live run, too
    #[arg(long)]
    pub resume: bool,
    /// Run this command for everything that a person wants to know: it gets a JSON object on its standard input
    #[arg(long, value_name = "CMD")]
    pub notify: Option<String>,
}

//! The arguments of the verbs by which people decide.
//! Invariant: what clap accepts here is refused by the verb with a code where it does not fit the store.
//! Parsed as a part of `args`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

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

/// `praxis approve`.
#[derive(Debug, Args)]
#[command(after_help = "\
At a terminal it shows the plan and the exact action, or the result, and asks. Elsewhere name what you saw: the
fingerprint of the action or the digest of the patch, as praxis show --json and praxis inbox --json have them.

Examples:
  praxis approve r-7f3
  praxis approve r-7f3 --digest a722f911...")]
pub struct Approve {
    /// The run, or an unambiguous beginning of its name
    #[arg(value_name = "RUN")]
    pub run: String,
    /// What was looked at already, so that nothing is asked: the action's fingerprint or the patch's digest, in full
    #[arg(long, value_name = "SHA256")]
    pub digest: Option<String>,
    /// In whose name; your login unless given
    #[arg(long = "as", value_name = "NAME")]
    pub actor: Option<String>,
}

/// `praxis deny`.
#[derive(Debug, Args)]
#[command(after_help = "\
The run ends as rejected; praxis code --from RUN begins it again and tells the agent why.

Example:
  praxis deny r-7f3 --reason \"change the caller, not the parser\"")]
pub struct Deny {
    /// The run, or an unambiguous beginning of its name
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Why; it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// In whose name; your login unless given
    #[arg(long = "as", value_name = "NAME")]
    pub actor: Option<String>,
}

/// `praxis recheck`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  praxis recheck 491f115861")]
pub struct Recheck {
    /// The hold, or an unambiguous beginning of its name; praxis holds lists them
    #[arg(value_name = "HOLD")]
    pub hold: String,
    /// Why; it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `praxis pause`.
#[derive(Debug, Args)]
#[command(after_help = "\
What runs now ends by itself and is recorded; nothing new starts. With --branch that holds for one node and all that
depends on it, and what stands beside goes on: the nodes are shown, and at a terminal you are asked. Nodes are named by
praxis show; praxis recheck lifts one hold, praxis continue all of yours.

Examples:
  praxis pause r-7f3 --reason \"waiting for the release\"
  praxis pause r-7f3 --branch correct-1 --dry-run")]
pub struct Pause {
    /// The run, or an unambiguous beginning of its name
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Hold this node and all that depends on it instead of the whole run
    #[arg(long, value_name = "NODE")]
    pub branch: Option<String>,
    /// Only say which nodes the branch has
    #[arg(long, requires = "branch")]
    pub dry_run: bool,
    /// Why; it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `praxis continue`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  praxis continue r-7f3")]
pub struct Continue {
    /// The run, or an unambiguous beginning of its name
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Why; it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `praxis cancel`.
#[derive(Debug, Args)]
#[command(after_help = "\
A running agent is stopped and recorded as that. A run whose agent's outcome nobody knows ends once that is settled.

Example:
  praxis cancel r-7f3 --reason \"not needed any more\"")]
pub struct Cancel {
    /// The run, or an unambiguous beginning of its name
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Why; it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

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

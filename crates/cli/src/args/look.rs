//! The arguments of the verbs that look.
//! Invariant: what clap accepts here changes nothing in a store.
//! Parsed as a part of `args`.

use clap::Args;

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

/// `praxis list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  praxis list
  praxis list --json")]
pub struct List {}

/// `praxis inbox`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  praxis inbox")]
pub struct Inbox {}

/// `praxis holds`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  praxis holds")]
pub struct Holds {}

/// `praxis diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  praxis diff r-7f3
  praxis diff r-7f3 > change.patch")]
pub struct Diff {
    /// The run, or an unambiguous beginning of its name; the latest one unless given
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
}

/// `praxis report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  praxis report r-7f3 > report.md
  praxis report r-7f3 --json")]
pub struct Report {
    /// The run, or an unambiguous beginning of its name; the latest one unless given
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
}

/// `praxis attach`.
#[derive(Debug, Args)]
#[command(after_help = "\
Ctrl-C leaves; what runs goes on.

Example:
  praxis attach r-7f3")]
pub struct Attach {
    /// The run, or an unambiguous beginning of its name; the latest one unless given
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
}

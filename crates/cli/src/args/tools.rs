//! The arguments of the verbs about the store and about the program itself.
//! Invariant: what clap accepts here is refused by the verb with a code where it does not fit the store.
//! Parsed as a part of `args`.

use std::path::PathBuf;

use clap::Args;

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

//! The arguments of the verbs about checkpoints and their keys.
//! Invariant: a key is named by its file and never on the command line. Parsed as a part of `args`.

use std::path::PathBuf;

use clap::Args;

/// `praxis checkpoint`.
#[derive(Debug, Args)]
#[command(after_help = "\
A checkpoint vouches for every event up to now. Keep it where the agents and this machine cannot change it: praxis verify
--checkpoint finds by it what was cut off, rolled back or rewritten since. Without a key the head is shown unsigned.

Examples:
  praxis checkpoint --key checkpoint.key --out monday.note
  praxis verify --checkpoint monday.note --verifier-key NAME+ID+KEY")]
pub struct Checkpoint {
    /// Where to write: a new file; the standard output unless given
    #[arg(long, value_name = "FILE", requires = "key")]
    pub out: Option<PathBuf>,
    /// The signing key, as praxis keygen made it
    #[arg(long, value_name = "FILE", env = "PRAXIS_CHECKPOINT_KEY")]
    pub key: Option<PathBuf>,
}

/// `praxis keygen`.
#[derive(Debug, Args)]
#[command(after_help = "\
The signing key goes into the file, which only you can read; the verifier key is printed, for everybody who is to check
checkpoints. Keep both where the agents cannot reach them.

Example:
  praxis keygen checkpoint.key")]
pub struct Keygen {
    /// Where the signing key goes: a new file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The key's name, without spaces and +; the store's own name in its checkpoints unless given
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

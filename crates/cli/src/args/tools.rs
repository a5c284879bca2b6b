//! The arguments of the verbs about the store and about the program itself.
//! Invariant: what clap accepts here is refused by the verb with a code where it does not fit the store.
//! Parsed as a part of `args`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// `praxis verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --deep a difference is a finding: an event whose hash and chain are right, and whose outcome is not what this build's
rules make of its command and facts. Events of other versions of the rules are counted and not decided.

With --checkpoint the log is compared with checkpoints that were kept elsewhere: it extends them, or it is shorter than one
(CHECKPOINT_AHEAD), or it has other events (CHECKPOINT_FORKED).

Examples:
  praxis verify && echo intact
  praxis verify --deep
  praxis verify --checkpoint monday.note --verifier-key NAME+ID+KEY")]
pub struct Verify {
    /// Decide every event again from its recorded facts, too; takes longer
    #[arg(long)]
    pub deep: bool,
    /// Compare with a signed checkpoint; may be given more than once
    #[arg(long, value_name = "FILE", requires = "verifier_key")]
    pub checkpoint: Vec<PathBuf>,
    /// The key that the checkpoints have to be signed with, as praxis keygen printed it
    #[arg(long, value_name = "KEY", requires = "checkpoint")]
    pub verifier_key: Option<String>,
}

/// `praxis export`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --mission only the events of one mission are written, up to a checkpoint, each with the proof that it stands in the log
under that checkpoint; nothing of other missions is shown.

Examples:
  praxis export audit.jsonl && python3 journal-format/verify.py audit.jsonl
  praxis export - | wc -l
  praxis export one.jsonl --mission r-w8n33bjy --checkpoint monday.note")]
pub struct Export {
    /// Where to write: a new file, or - for the standard output
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// Only this mission, with proofs; or the mission of this run
    #[arg(long, value_name = "MISSION", requires = "checkpoint")]
    pub mission: Option<String>,
    /// The signed checkpoint that the proofs lead to
    #[arg(long, value_name = "FILE", requires = "mission")]
    pub checkpoint: Option<PathBuf>,
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

/// `praxis schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
A schema is printed exactly as it is pinned, so that its SHA-256 is the digest of the list. docs/SCHEMAS.md says what it
promises, and what no schema can say.

Examples:
  praxis schema
  praxis schema aiws-handoff-1 > aiws-handoff-1.schema.json")]
pub struct Schema {
    /// The schema; all of them are listed with their digests unless given
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// `praxis doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
It changes nothing. Exit 0 says that nothing is bad; warnings may be there.

Examples:
  praxis doctor
  praxis doctor --json")]
pub struct Doctor {}

/// `praxis backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
The copy is a store: name it with --store to read it, to verify it, or to go on from it. What happened after it was
made, such as agent runs and branches, is not known to it: look at the repositories before you resume from one.

Examples:
  praxis backup /backup/praxis-monday
  praxis --store /backup/praxis-monday verify")]
pub struct Backup {
    /// A new directory, or an empty one
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// `praxis clean`.
#[derive(Debug, Args)]
#[command(after_help = "\
Trees of runs that have ended and need them no more go, and stored bytes that no event names. Plans, patches and
transcripts that a record names are kept, always.

Examples:
  praxis clean --dry-run
  praxis clean --older-than 30")]
pub struct Clean {
    /// Remove nothing; print what would go and what would stay
    #[arg(long)]
    pub dry_run: bool,
    /// Only what ended, or was stored, at least so many days ago
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub older_than: Option<u32>,
}

/// `praxis completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  praxis completions bash > ~/.local/share/bash-completion/completions/praxis
  praxis completions zsh > ~/.zfunc/_praxis
  praxis completions fish > ~/.config/fish/completions/praxis.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// `praxis man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  praxis man ~/.local/share/man/man1 && man praxis-code")]
pub struct Man {
    /// Where the pages go: praxis.1 and praxis-VERB.1; made unless it is there
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

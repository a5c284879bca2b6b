//! The arguments of the verb that tells people.
//! Invariant: what clap accepts here is refused by the verb with a code where it does not fit.
//! Parsed as a part of `args`.

use clap::Args;

/// `praxis outbox`.
#[derive(Debug, Args)]
#[command(after_help = "\
A line of JSON for each plan that waits for approval, result that waits for acceptance, hold, unknown outcome and end.
What was written, or taken by a command that ended with 0, is acknowledged and does not come again; anything else does,
also after a crash. A name that is new begins with the first event.

Examples:
  praxis outbox --consumer me
  praxis outbox --consumer chat --follow --exec \"curl --json @- localhost:8080\"")]
pub struct Outbox {
    /// The name under which is remembered what was acknowledged
    #[arg(long, value_name = "NAME")]
    pub consumer: String,
    /// Wait for more instead of ending
    #[arg(long)]
    pub follow: bool,
    /// Run this command for each, with the line on its standard input, instead of printing it
    #[arg(long, value_name = "CMD")]
    pub exec: Option<String>,
}

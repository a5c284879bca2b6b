//! The arguments of `praxis simulate`.
//! Invariant: what clap accepts here is refused by the verb with a code where it makes no sense. Parsed as a part of `args`.

use std::path::PathBuf;

use clap::Args;

/// `praxis simulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
The engine's own model and journal run on a disk, a provider and a clock that are made up: the power goes, syncs fail and
lie, answers are lost, owners are deposed and go on. A reference model that knows nothing of the engine judges after every
step. The same seed gives the same run. It needs no store and touches none.

Exit 0 says that nothing was found; 1 that a promise was broken, that a seed gave two traces, that a planted defect was
missed, or with --floors that a figure was not reached; 2 that the call was wrong.

Examples:
  praxis simulate
  praxis simulate --seeds 5000 --report
  praxis simulate --time 600 --faults byte-tear,lying-sync
  praxis simulate --plant fence-unchecked
  praxis simulate --replay praxis-seed-17.json")]
pub struct Simulate {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// The first seed, as a number, or as hexadecimal digits such as a commit's, of which the first 15 count
    #[arg(long, value_name = "SEED", default_value = "1")]
    pub base: String,
    /// Begin no seed after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time: Option<u64>,
    /// Steps of each plan
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u16).range(1..=2000))]
    pub steps: u16,
    /// Other outcomes of each loss of power that are opened and compared, beside the one that is gone on with
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub beside: u8,
    /// With --report, how many of the exhaustive scenarios; 8 take a minute or two, 20 are all
    #[arg(long, value_name = "N", default_value_t = 8, requires = "report", value_parser = |text: &str| text.parse::<usize>().ok().filter(|n| *n <= 20).ok_or("expected a number up to 20"))]
    pub exhaustive: usize,
    /// Only these kinds of fault beside losses of power, kills and clock steps, which every plan has; 'none', or 'list' to print them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub faults: Vec<String>,
    /// Carry out the simulation of a packet once more, and tell its story
    #[arg(long, value_name = "PACKET", conflicts_with_all = ["seeds", "base", "time", "steps", "beside", "faults", "report", "floors", "plant"])]
    pub replay: Option<PathBuf>,
    /// Only look for planted defects, by name; 'all' for all, or 'list' to print them with the promise that each breaks. Where plants are compiled in
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["time", "steps", "beside", "faults", "report", "floors"])]
    pub plant: Vec<String>,
    /// Also run the scenarios, the planted defects and the controls, and sum up
    #[arg(long)]
    pub report: bool,
    /// Fail where a figure of the report is below its floor
    #[arg(long, requires = "report")]
    pub floors: bool,
    /// Where packets of failures are written
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub packets: PathBuf,
}

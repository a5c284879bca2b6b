//! The crash harness turned on a storage engine that is known to lose data: redb 4.1.0 in its default one-phase commit.
//!
//! Invariant: a harness that is not known to find this loss proves nothing by finding none. Run by hand and at night:
//!
//! ```text
//! cargo run --release --manifest-path simulations/old-redb/Cargo.toml -- [--states N] [--seed S]
//! ```
//!
//! Small records are appended on the simulator's disk; the power goes at a sync, any subset of the pending writes
//! survives, one of them perhaps torn at bytes; it goes again inside the recovery; then every acknowledged record must
//! be there, the one in flight whole or not at all, and the file must open. redb 4.1.0 rewrites a torn commit slot with
//! a checksum that is good, at the start of its recovery (cberner/redb pull request 1290; mended in 4.2.0); if the power
//! goes again there, the next opening follows that slot, and an acknowledged commit is gone. The old engine must be
//! caught within N states, also in a loss that nothing reports (exit 1 if not). The redb of this project must not be: once as the journal sets it,
//! two-phase with quick_repair, and once as redb comes, each for N states (exit 1 at a finding).
//!
//! Cargo resolves a single redb 4 for a lock file, so the old one is a program of its own, in `engine`, which does its
//! reads and writes through a pipe on this program's disk. Neither is part of the project's workspace.

mod engine;
mod store;
mod story;
mod wire;

use std::process::ExitCode;

use engine::{Engine, Local, Remote};
use store::Way;
use story::Finding;

/// States for each engine, unless it is said otherwise.
const STATES: u64 = 20_000;

/// What was asked for.
struct Asked {
    states: u64,
    seed: u64,
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked {
        states: STATES,
        seed: 1,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().and_then(|value| value.parse().ok());
        let value = value.ok_or_else(|| format!("expected a number after {word}"))?;
        match word.as_str() {
            "--states" => asked.states = value,
            "--seed" => asked.seed = value,
            _ => return Err(format!("expected --states N or --seed S, found {word}")),
        }
    }
    Ok(asked)
}

/// A state that breaks a promise: how many there were until then, its seed, what was broken.
type Found = Option<(u64, u64, Finding)>;

/// The first state that breaks a promise so that it counts.
fn first(
    engine: &mut dyn Engine,
    way: Way,
    asked: &Asked,
    counts: impl Fn(&Finding) -> bool,
) -> Result<Found, String> {
    for (states, seed) in (1..=asked.states).zip(asked.seed..) {
        if let Some(finding) = story::tell(engine, way, seed)?.filter(&counts) {
            return Ok(Some((states, seed, finding)));
        }
    }
    Ok(None)
}

/// Whether the old engine is caught, in both ways in which it fails.
fn old(asked: &Asked) -> Result<bool, String> {
    let mut engine = Remote::start()?;
    let any = first(&mut engine, Way::OnePhase, asked, |_| true)?;
    let lost = first(&mut engine, Way::OnePhase, asked, |finding| finding.lost)?;
    for (what, found) in [("", &any), (" losing records in silence", &lost)] {
        match found {
            Some((states, seed, Finding { what: how, .. })) => println!(
                "redb 4.1.0, one-phase: caught{what} after {states} states, seed {seed}: {how}"
            ),
            None => println!(
                "redb 4.1.0, one-phase: NOT caught{what}, {} states",
                asked.states
            ),
        }
    }
    Ok(any.is_some() && lost.is_some())
}

/// Whether the project's redb keeps its promises.
fn new(asked: &Asked) -> Result<bool, String> {
    let mut clean = true;
    let ways = [
        ("two-phase with quick_repair", Way::TwoPhase),
        ("one-phase", Way::OnePhase),
    ];
    for (name, way) in ways {
        match first(&mut Local::default(), way, asked, |_| true)? {
            None => println!(
                "the project's redb, {name}: {} states without a finding",
                asked.states
            ),
            Some((states, seed, Finding { what, .. })) => {
                clean = false;
                println!(
                    "the project's redb, {name}: FOUND after {states} states, seed {seed}: {what}"
                );
            }
        }
    }
    Ok(clean)
}

fn run() -> Result<bool, String> {
    let asked = asked()?;
    // Both, also when the first already fails.
    let (caught, clean) = (old(&asked)?, new(&asked)?);
    Ok(caught && clean)
}

fn main() -> ExitCode {
    // A panic of an engine is a finding here, not a line on the terminal.
    std::panic::set_hook(Box::new(|_| ()));
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the harness failed: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Crash points: where a test may stop the process, or fail one actor, around an append.
//!
//! Invariant: release builds contain none of it; a debug build without the switches behaves as a release build.
//! Passed by the commit path at three points per append. `PRAXIS_CRASH_AT="7:after-commit"` kills the process at
//! that point of its seventh append; `PRAXIS_CRASH_LOG=FILE` writes a line per point passed.

use std::fmt;

use aiws::id::RunId;
use praxis_model::command::CommandType;

/// A point around an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Decided and sealed, not yet given to the writer.
    BeforeCommit,
    /// Durable; memory still has the state before it.
    AfterCommit,
    /// The new state is swapped in and published; nobody was told.
    BeforeReply,
}

impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::BeforeCommit => "before-commit",
            Self::AfterCommit => "after-commit",
            Self::BeforeReply => "before-reply",
        })
    }
}

/// What passes a point.
#[derive(Clone, Debug)]
pub struct Passing {
    /// Where.
    pub point: Point,
    /// The number of the append, counted per process from 1 over committed appends.
    pub number: u64,
    /// The run; none for a mission's event.
    pub run_id: Option<RunId>,
    /// The last event's type.
    pub kind: CommandType,
    /// The types of all events of the append, in order.
    pub kinds: Vec<CommandType>,
}

impl Passing {
    /// The types in one word, such as `claimDelivery+acknowledgeDelivery`.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
        names.join("+")
    }
}

#[cfg(debug_assertions)]
mod armed {
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::Passing;

    /// Called at every point of one engine; a panic in it fails the actor that passes.
    pub type Probe = Arc<dyn Fn(&Passing) + Send + Sync>;

    static COMMITTED: AtomicU64 = AtomicU64::new(0);
    static SWITCH: OnceLock<Option<(u64, String)>> = OnceLock::new();

    /// The number that the next committed append gets.
    pub(crate) fn next_number() -> u64 {
        COMMITTED.load(Ordering::SeqCst) + 1
    }

    /// Counts a committed append and returns its number.
    pub(crate) fn committed() -> u64 {
        COMMITTED.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Passes a point: logs it, kills the process if the switch says so, and asks the probe.
    pub(crate) fn pass(probe: Option<&Probe>, passing: &Passing) {
        log(passing);
        let switch = SWITCH.get_or_init(|| parse(&std::env::var("PRAXIS_CRASH_AT").ok()?));
        if let Some((number, point)) = switch
            && *number == passing.number
            && *point == passing.point.to_string()
        {
            eprintln!(
                "crash point {}:{} at {}",
                passing.number,
                passing.point,
                passing.names()
            );
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
        if let Some(probe) = probe {
            probe(passing);
        }
    }

    fn parse(switch: &str) -> Option<(u64, String)> {
        let (number, point) = switch.split_once(':')?;
        Some((number.parse().ok()?, point.to_owned()))
    }

    fn log(passing: &Passing) {
        let Some(path) = std::env::var_os("PRAXIS_CRASH_LOG") else {
            return;
        };
        let line = format!("{}:{} {}\n", passing.number, passing.point, passing.names());
        let opened = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        // A log that cannot be written fails the test that reads it; the engine goes on.
        let _ = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

#[cfg(debug_assertions)]
pub use armed::Probe;
#[cfg(debug_assertions)]
pub(crate) use armed::{committed, next_number, pass};

//! Shims and agents of a world, as their own files and /proc show them.
//! Invariant: waits for what has to happen, within a bound, and never for time to pass.
//! Used by the tests that kill.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use praxis_engine::shim::{self, Probe, Started, descendants};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The attempts of a store whose command runs under a shim now.
pub fn running(store: &Path) -> Vec<(PathBuf, Started)> {
    attempts(store)
        .into_iter()
        .filter_map(|folder| match shim::probe(&folder) {
            Probe::Running(Some(started)) if started.command().is_some() => Some((folder, started)),
            _ => None,
        })
        .collect()
}

/// The folders of all attempts of a store.
pub fn attempts(store: &Path) -> Vec<PathBuf> {
    let entries = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries(store.join("work"))
        .flat_map(|run| entries(run.path().join("attempts")))
        .map(|attempt| attempt.path())
        .collect();
    found.sort();
    found
}

/// The one attempt that runs, once its shim has said which processes these are.
pub fn the_running(store: &Path) -> (PathBuf, Started) {
    until("an attempt runs", || running(store).pop())
}

/// Looks again and again until there is something.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "never: {what}");
        std::thread::yield_now();
    }
}

/// Kills a shim alone.
pub fn kill_shim(started: &Started) {
    // One that ended by itself meanwhile is as good.
    let _ = kill_process(pid(started.shim_pid), Signal::KILL);
}

/// Kills a command and its group.
pub fn kill_command(started: &Started) {
    if let Some((command, _)) = started.command() {
        let _ = kill_process_group(pid(command), Signal::KILL);
    }
}

/// Whether a command's own process is gone.
pub fn is_gone(started: &Started) -> bool {
    let (pid, start) = started.command().unwrap();
    !descendants::is_alive(pid, start)
}

fn pid(raw: i32) -> Pid {
    Pid::from_raw(raw).unwrap()
}

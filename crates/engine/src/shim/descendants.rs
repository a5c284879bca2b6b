//! Processes of this machine as /proc shows them: who descends from whom, and who is still who it was.
//!
//! Invariant: a process is signalled only through a descriptor that was opened before its start time was compared, so a
//! process that got a number again is never hit. Linux alone has these files. Called by the shim and by who lost one.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal, wait,
};

use super::record::Started;
use crate::limits::SHIM_KILL_MS;

/// A process, as far as it is needed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its number.
    pub pid: i32,
    /// Its parent's.
    pub parent: i32,
    /// Its session's.
    pub session: i32,
    /// When it started, in ticks since the machine did.
    pub start: u64,
    /// Whether it ended and was not waited for.
    pub ended: bool,
}

/// The process of this number, if there is one.
pub fn seen(pid: i32) -> Option<Seen> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything, also parentheses.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let start = fields.nth(15)?.parse().ok()?;
    Some(Seen {
        pid,
        parent,
        session,
        start,
        ended: matches!(state, "Z" | "X"),
    })
}

/// Whether the process of this number that started then is still there.
pub fn is_alive(pid: i32, start: u64) -> bool {
    seen(pid).is_some_and(|seen| seen.start == start && !seen.ended)
}

/// Sends a signal to the process of this number that started then; false where it is gone.
///
/// # Errors
///
/// The system's, where the process is there and cannot be signalled.
pub fn signal(pid: i32, start: u64, signal: Signal) -> io::Result<bool> {
    let Some(raw) = Pid::from_raw(pid) else {
        return Ok(false);
    };
    let pinned = match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(pinned) => pinned,
        Err(rustix::io::Errno::SRCH) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    if !is_alive(pid, start) {
        return Ok(false);
    }
    match pidfd_send_signal(&pinned, signal) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The name of this boot of the machine: process numbers and start times mean nothing in another one.
pub fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

fn all() -> Vec<Seen> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| seen(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// Those among these whose line of parents leads to one of `roots`.
fn below(all: &[Seen], roots: &[i32]) -> Vec<Seen> {
    let mut found: Vec<Seen> = Vec::new();
    loop {
        let known = |pid: i32| roots.contains(&pid) || found.iter().any(|seen| seen.pid == pid);
        let more: Vec<Seen> = all
            .iter()
            .filter(|seen| known(seen.parent) && !known(seen.pid))
            .copied()
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Kills everything below this process, a subreaper, and waits for it, within a bound. True when nothing is left.
pub(crate) fn end_below_me() -> bool {
    let me = getpid().as_raw_nonzero().get();
    let until = Instant::now() + Duration::from_millis(SHIM_KILL_MS);
    loop {
        for seen in below(&all(), &[me]) {
            if !seen.ended {
                // What cannot be killed now is found again in the next round.
                let _ = signal(seen.pid, seen.start, Signal::KILL);
            }
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => break,
                // No child is left, so nothing is below.
                Err(_) => return true,
            }
        }
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills what is left of a command whose shim is gone: the command, what descends from it, whatever carries this entry
/// in its environment and, where the shim's number cannot belong to another process yet, its session. What left the session, cleared its environment and lost its parents is not found.
pub(crate) fn end_left(started: &Started, marker: Option<&str>, session: bool) {
    let same_boot = boot().as_deref() == Some(&started.boot);
    let until = Instant::now() + Duration::from_millis(SHIM_KILL_MS);
    loop {
        let all = all();
        let mine = |seen: &&Seen| {
            let of_session = session && same_boot && seen.session == started.shim_pid;
            let command = same_boot && started.command() == Some((seen.pid, seen.start));
            of_session || command || marker.is_some_and(|marker| carries(seen.pid, marker))
        };
        let roots: Vec<Seen> = all.iter().filter(mine).copied().collect();
        let pids: Vec<i32> = roots.iter().map(|seen| seen.pid).collect();
        let mut left = below(&all, &pids);
        left.extend(roots);
        let me = getpid().as_raw_nonzero().get();
        left.retain(|seen| !seen.ended && seen.pid != me);
        if left.is_empty() || Instant::now() > until {
            return;
        }
        for seen in left {
            let _ = signal(seen.pid, seen.start, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a process was started with this entry in its environment.
fn carries(pid: i32, marker: &str) -> bool {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ
        .split(|byte| *byte == 0)
        .any(|entry| entry == marker.as_bytes())
}

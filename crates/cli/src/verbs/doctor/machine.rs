//! What `doctor` looks at on the machine: git, the shell, what the kernel gives.
//! Invariant: starts two small programs and nothing else, and makes no file. Called by `doctor`.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::Finding;

/// The oldest git that this works with: earlier ones do not read configuration from the environment, so that a
/// repository's own filters could not be switched off.
pub const GIT: (u32, u32) = (2, 32);
/// Most bytes of a socket's path on Linux, without the closing zero.
const SOCKET_BYTES: usize = 107;

/// Looks at the machine.
pub fn look(store: &Path) -> Vec<Finding> {
    vec![
        git(),
        shell(),
        pidfd(),
        subreaper(),
        sockets(store),
        clock(),
    ]
}

fn git() -> Finding {
    let name = "git";
    let called = Command::new("git")
        .arg("version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let output = match called {
        Ok(output) if output.status.success() => output,
        Ok(_) => return Finding::bad(name, "git version fails", "mend or reinstall git"),
        Err(error) => {
            return Finding::bad(
                name,
                &format!("git cannot be started: {error}"),
                "install git",
            );
        }
    };
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let (major, minor) = GIT;
    match version(&text) {
        Some(found) if found >= GIT => Finding::ok(name, &text),
        Some(_) => Finding::bad(
            name,
            &text,
            &format!("install git {major}.{minor} or newer"),
        ),
        None => Finding::warn(
            name,
            &format!("expected a version, found {text}"),
            &format!("make sure that it is git {major}.{minor} or newer"),
        ),
    }
}

/// Major and minor of what `git version` says.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("git version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn shell() -> Finding {
    let name = "shell";
    let called = Command::new("sh")
        .args(["-c", "exit 75"])
        .stdin(Stdio::null())
        .status();
    match called {
        Ok(status) if status.code() == Some(75) => Finding::ok(name, "sh runs command lines"),
        Ok(status) => Finding::bad(
            name,
            &format!("expected `sh -c 'exit 75'` to end with 75, found {status}"),
            "put a POSIX sh on the PATH: agents and checks are started by it",
        ),
        Err(error) => Finding::bad(
            name,
            &format!("sh cannot be started: {error}"),
            "put a POSIX sh on the PATH: agents and checks are started by it",
        ),
    }
}

fn pidfd() -> Finding {
    let name = "pidfd";
    let own = i32::try_from(std::process::id())
        .ok()
        .and_then(Pid::from_raw);
    match own.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
        Some(Ok(_)) => Finding::ok(name, "processes can be pinned"),
        Some(Err(errno)) => Finding::bad(
            name,
            &format!("pidfd_open fails: {errno}"),
            "use Linux 5.3 or newer, and a container whose filter allows pidfd_open: without it no decision is taken from anybody",
        ),
        None => Finding::bad(name, "this process has no number", "report this"),
    }
}

fn subreaper() -> Finding {
    let name = "subreaper";
    match rustix::process::child_subreaper() {
        Ok(_) => Finding::ok(name, "what an agent leaves behind can be found"),
        Err(errno) => Finding::bad(
            name,
            &format!("PR_GET_CHILD_SUBREAPER fails: {errno}"),
            "use Linux 3.4 or newer, and a container whose filter allows prctl",
        ),
    }
}

fn sockets(store: &Path) -> Finding {
    let name = "sockets";
    if let Err(error) = std::os::unix::net::UnixStream::pair() {
        return Finding::bad(
            name,
            &format!("Unix sockets cannot be made: {error}"),
            "allow them: other terminals reach an engine by one",
        );
    }
    let bytes = store.join("engine.sock").as_os_str().len();
    match bytes <= SOCKET_BYTES {
        true => Finding::ok(name, "Unix sockets can be made"),
        false => Finding::ok(
            name,
            &format!(
                "the store's path is too long for a socket ({bytes} bytes of {SOCKET_BYTES}); a short one elsewhere is used"
            ),
        ),
    }
}

fn clock() -> Finding {
    let name = "clock";
    // 2026-01-01. Deadlines, leases and approvals are by this clock.
    let known_ms = 1_767_225_600_000;
    match crate::session::now_ms() {
        now_ms if now_ms >= known_ms => {
            Finding::ok(name, "the clock is past the making of this build")
        }
        _ => Finding::warn(
            name,
            "the clock is behind the making of this build",
            "set it: deadlines and approvals are by it (date -u)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_git_are_read() {
        assert_eq!(version("git version 2.47.3"), Some((2, 47)));
        assert_eq!(version("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(version("git version 3.0.0"), Some((3, 0)));
        assert_eq!(version("hub version 2"), None);
        assert!((2, 31) < GIT && (3, 0) > GIT);
    }

    #[test]
    fn this_machine_can_run_this() {
        for finding in look(Path::new("/tmp/store")) {
            assert!(!finding.is_bad(), "{}: {}", finding.name, finding.found);
        }
    }
}

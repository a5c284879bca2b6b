//! A process that is held fast: a pidfd, an opened folder of `/proc`, and the start time of both.
//! Invariant: what is read belongs to the process that was pinned, or it is refused; a number alone is never trusted.
//! Called by the host for a caller, and by `proof` for each parent on the way up.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use aiws::error::Error;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::ProcessId;
use super::process::{Folder, Stat, number_of};
use super::refusal::{Reason, refused, unread};

/// How a caller was pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PinnedBy {
    /// The socket itself gave the pidfd of the process that connected.
    PeerPidfd,
    /// The socket gave a number, for which a pidfd was opened.
    PidfdAndStartTime,
    /// It is this process.
    This,
}

impl PinnedBy {
    pub(super) fn name(self) -> &'static str {
        match self {
            PinnedBy::PeerPidfd => "PEERPIDFD",
            PinnedBy::PidfdAndStartTime => "PIDFD_AND_START_TIME",
            PinnedBy::This => "SELF",
        }
    }
}

/// A pinned process.
pub(super) struct Pinned {
    pub(super) id: ProcessId,
    pub(super) folder: Folder,
    pidfd: OwnedFd,
}

impl Pinned {
    /// Pins the process that has this number now.
    pub(super) fn open(pid: u32) -> Result<Self, Error> {
        let what = format!("process {pid}");
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let number = number
            .ok_or_else(|| refused(Reason::OtherNamespace, "a process that has no number here"))?;
        let pidfd = pidfd_open(number, PidfdFlags::empty());
        let pidfd = pidfd.map_err(|errno| unread(&what, &errno.into()))?;
        let pinned = Self::of_pidfd(pidfd)?;
        match pinned.id.pid == pid {
            true => Ok(pinned),
            false => Err(refused(
                Reason::OtherNamespace,
                format!("that {what} has another number in /proc"),
            )),
        }
    }

    /// Pins exactly this process: another one that got its number is refused.
    pub(super) fn exactly(id: ProcessId) -> Result<Self, Error> {
        let pinned = Self::open(id.pid)?;
        match pinned.id.start == id.start {
            true => Ok(pinned),
            false => Err(refused(
                Reason::Changed,
                format!("that the number {} belongs to another process now", id.pid),
            )),
        }
    }

    fn of_pidfd(pidfd: OwnedFd) -> Result<Self, Error> {
        let pid = held_number(&pidfd)?;
        let what = format!("process {pid}");
        let folder = Folder::open(pid).map_err(|error| unread(&what, &error))?;
        let stat = folder.stat().map_err(|error| unread(&what, &error))?;
        let id = ProcessId {
            pid,
            start: stat.start,
        };
        let pinned = Self { id, folder, pidfd };
        // The number was not freed in between, so the folder is that of the pidfd's process.
        pinned.now()?;
        Ok(pinned)
    }

    /// What the process is at this moment: alive, and still the one that was pinned.
    pub(super) fn now(&self) -> Result<Stat, Error> {
        let what = format!("process {}", self.id.pid);
        let stat = self.folder.stat().map_err(|error| unread(&what, &error))?;
        if matches!(stat.state, 'Z' | 'X' | 'x') {
            return Err(refused(Reason::Gone, format!("that {what} has ended")));
        }
        let same = held_number(&self.pidfd)? == self.id.pid
            && (stat.pid, stat.start) == (self.id.pid, self.id.start);
        match same {
            true => Ok(stat),
            false => Err(refused(
                Reason::Changed,
                format!("that {what} is another one now"),
            )),
        }
    }
}

fn held_number(pidfd: &OwnedFd) -> Result<u32, Error> {
    let number = number_of(pidfd).map_err(|error| unread("a pinned process", &error))?;
    number.ok_or_else(|| {
        refused(
            Reason::Gone,
            "a process that has ended, or that lives outside of this process namespace",
        )
    })
}

/// The pinned process behind a decision.
pub struct Caller {
    pub(super) pin: Pinned,
    pub(super) uid: u32,
    pub(super) by: PinnedBy,
}

impl Caller {
    /// This process itself, for a command that opens the store without an engine, and for an engine's own terminal.
    ///
    /// # Errors
    ///
    /// `HUMAN_REQUIRED` where `/proc` is not that of this process's namespace, or cannot be read.
    pub fn this_process() -> Result<Self, Error> {
        Ok(Self {
            pin: Pinned::open(std::process::id())?,
            uid: rustix::process::geteuid().as_raw(),
            by: PinnedBy::This,
        })
    }

    /// The process that connected the other end of a Unix socket.
    ///
    /// # Errors
    ///
    /// `HUMAN_REQUIRED` where it has ended, lives in another process namespace, or cannot be read.
    pub fn of_peer(stream: &impl AsFd) -> Result<Self, Error> {
        use nix::sys::socket::{getsockopt, sockopt};
        let failed =
            |errno: nix::errno::Errno| unread("the socket's peer", &io::Error::from(errno));
        let peer = getsockopt(stream, sockopt::PeerCredentials).map_err(failed)?;
        let (pid, uid) = (number(peer.pid())?, peer.uid());
        match getsockopt(stream, sockopt::PeerPidfd) {
            Ok(pidfd) => Self::by_pidfd(pidfd, pid, uid),
            // Linux before 6.5 does not know the option.
            Err(nix::errno::Errno::ENOPROTOOPT) => Self::by_number(pid, uid),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn by_pidfd(pidfd: OwnedFd, pid: u32, uid: u32) -> Result<Self, Error> {
        let pin = Pinned::of_pidfd(pidfd)?;
        if pin.id.pid != pid {
            return Err(outside());
        }
        let by = PinnedBy::PeerPidfd;
        Ok(Self { pin, uid, by })
    }

    /// For systems before Linux 6.5: the number is that of the moment of connecting, so a successor with the same
    /// number would have had to appear before this call.
    fn by_number(pid: u32, uid: u32) -> Result<Self, Error> {
        let pin = Pinned::open(pid)?;
        let by = PinnedBy::PidfdAndStartTime;
        Ok(Self { pin, uid, by })
    }

    /// Whether it is this very process.
    #[must_use]
    pub fn is_this_process(&self) -> bool {
        self.pin.id.pid == std::process::id()
    }

    /// Its number and start time.
    #[must_use]
    pub fn id(&self) -> ProcessId {
        self.pin.id
    }

    /// The login that it had when it connected.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }
}

fn outside() -> Error {
    refused(
        Reason::OtherNamespace,
        "a process of another process namespace",
    )
}

/// The number that the socket gives for a peer: 0 for one of another process namespace.
fn number(pid: i32) -> Result<u32, Error> {
    u32::try_from(pid)
        .ok()
        .filter(|pid| *pid > 0)
        .ok_or_else(outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::process::{Child, Command, Stdio};

    fn reason(error: &Error) -> &str {
        error
            .details
            .get("reason")
            .and_then(|reason| reason.as_str())
            .unwrap()
    }

    /// A process that waits for the end of its input.
    fn waiting() -> Child {
        Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    #[test]
    fn a_peer_without_a_number_here_is_refused() {
        for pid in [0, -1] {
            assert_eq!(reason(&number(pid).unwrap_err()), "OTHER_NAMESPACE");
        }
        assert_eq!(number(7).unwrap(), 7);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let mut child = waiting();
        let id = Pinned::open(child.id()).unwrap().id;
        assert_eq!(Pinned::exactly(id).unwrap().id, id);
        let successor = ProcessId {
            start: id.start + 1,
            ..id
        };
        let error = Pinned::exactly(successor).err().unwrap();
        assert_eq!(reason(&error), "CHANGED");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(reason(&Pinned::exactly(id).err().unwrap()), "GONE");
    }

    /// The way of systems whose sockets give no pidfd.
    #[test]
    fn a_peer_by_its_number_is_pinned_and_lost_with_its_end() {
        let mut child = waiting();
        let caller = Caller::by_number(child.id(), 0).unwrap();
        assert_eq!(caller.by.name(), "PIDFD_AND_START_TIME");
        assert_eq!(caller.pin.now().unwrap().parent, std::process::id());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(reason(&caller.pin.now().unwrap_err()), "GONE");
        assert_eq!(
            reason(&Caller::by_number(child.id(), 0).err().unwrap()),
            "GONE"
        );
    }
}

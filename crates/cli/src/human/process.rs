//! One process as Linux tells of it in `/proc`.
//! Invariant: everything is read through one opened folder, which the system binds to one process and never to a successor.
//! Called by `pin`, which adds the pidfd, and by `proof`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC};

use super::{MARK, SHIM};

/// Most bytes of the short files: `stat`, `status`, `fdinfo`.
const SHORT_BYTES: u64 = 64 << 10;

/// Most bytes of a command line or an environment: the system allows 6 MiB for both; more is refused, not skipped.
const LONG_BYTES: u64 = 8 << 20;

/// The opened folder of a process.
pub(super) struct Folder(OwnedFd);

/// What `/proc/PID/stat` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: u32,
    /// The name that the process gave itself: to be shown, never to be believed.
    pub(super) name: String,
    pub(super) state: char,
    pub(super) parent: u32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// The number of the controlling terminal; 0 for none.
    pub(super) terminal: u32,
    /// The group in the foreground of that terminal.
    pub(super) foreground: i32,
    pub(super) start: u64,
}

/// What `/proc/PID/status` says of its login and of a tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) real_uid: u32,
    pub(super) effective_uid: u32,
    pub(super) tracer: u32,
}

/// Whether an environment has the mark of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    Yes,
    No,
    /// The system keeps the environment from us: another login's, or a process that does not want to be looked at.
    Hidden,
}

impl Folder {
    /// The folder of the process that has this number now.
    pub(super) fn open(pid: u32) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = rustix::fs::open("/proc", flags, Mode::empty())?;
        if rustix::fs::fstatfs(&proc)?.f_type != PROC_SUPER_MAGIC {
            return Err(io::Error::other("/proc is not the system's own"));
        }
        let flags = flags | OFlags::NOFOLLOW;
        let folder = rustix::fs::openat(&proc, pid.to_string(), flags, Mode::empty())?;
        Ok(Self(folder))
    }

    pub(super) fn stat(&self) -> io::Result<Stat> {
        let bytes = self.read("stat", SHORT_BYTES)?;
        parse_stat(&String::from_utf8_lossy(&bytes)).ok_or_else(|| unexpected("stat"))
    }

    pub(super) fn status(&self) -> io::Result<Status> {
        let bytes = self.read("status", SHORT_BYTES)?;
        parse_status(&String::from_utf8_lossy(&bytes)).ok_or_else(|| unexpected("status"))
    }

    /// Whether its command line is that of a shim, of whatever store and whatever program.
    pub(super) fn is_shim(&self) -> io::Result<bool> {
        let line = self.read("cmdline", LONG_BYTES)?;
        Ok(line.split(|byte| *byte == 0).nth(1) == Some(SHIM.as_bytes()))
    }

    pub(super) fn marked(&self) -> io::Result<Marked> {
        let environment = match self.read("environ", LONG_BYTES) {
            Ok(environment) => environment,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Marked::Hidden);
            }
            Err(error) => return Err(error),
        };
        let has_mark = environment
            .split(|byte| *byte == 0)
            .filter_map(|entry| entry.strip_prefix(MARK.as_bytes()))
            .any(|rest| rest.first() == Some(&b'='));
        Ok(if has_mark { Marked::Yes } else { Marked::No })
    }

    /// The file that it executes.
    pub(super) fn executable(&self) -> io::Result<PathBuf> {
        self.link("exe")
    }

    /// The identity of its process namespace, as `pid:[NUMBER]`.
    pub(super) fn namespace(&self) -> io::Result<String> {
        Ok(self.link("ns/pid")?.to_string_lossy().into_owned())
    }

    fn link(&self, name: &str) -> io::Result<PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(PathBuf::from(std::ffi::OsString::from_vec(
            target.into_bytes(),
        )))
    }

    fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&self.0, name, flags, Mode::empty())?;
        bounded(File::from(file), most)
    }
}

/// The number of the process that a pidfd of ours stands for; none once it was reaped, or where it is not in the
/// process namespace of `/proc`.
pub(super) fn number_of(pidfd: &OwnedFd) -> io::Result<Option<u32>> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
    let bytes = bounded(File::open(path)?, SHORT_BYTES)?;
    let number = field(&String::from_utf8_lossy(&bytes), "Pid:")
        .and_then(|number| number.parse::<i64>().ok())
        .ok_or_else(|| unexpected("fdinfo"))?;
    Ok(u32::try_from(number).ok().filter(|number| *number > 0))
}

/// The name of a terminal by its device number.
pub(super) fn terminal_name(device: u32) -> String {
    let major = (device >> 8) & 0xfff;
    let minor = (device & 0xff) | ((device >> 12) & 0xf_ff00);
    match major {
        // The pseudo-terminals have eight majors of 256 each, and one of the new numbering.
        136..=143 => format!("/dev/pts/{}", (major - 136) * 256 + minor),
        4 if minor < 64 => format!("/dev/tty{minor}"),
        4 => format!("/dev/ttyS{}", minor - 64),
        _ => format!("{major}:{minor}"),
    }
}

fn bounded(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other("larger than the system allows"));
    }
    Ok(bytes)
}

fn unexpected(file: &str) -> io::Error {
    io::Error::other(format!("{file} is not in the form that is known"))
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

/// The name stands in brackets and may itself hold brackets, blanks and line ends: the last bracket ends it.
fn parse_stat(text: &str) -> Option<Stat> {
    let (head, rest) = text.rsplit_once(')')?;
    let (pid, name) = head.split_once(" (")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field)?.parse::<i32>().ok();
    Some(Stat {
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: u32::try_from(number(1)?).ok()?,
        group: number(2)?,
        session: number(3)?,
        terminal: number(4)?.cast_unsigned(),
        foreground: number(5)?,
        start: fields.get(19)?.parse().ok()?,
    })
}

fn parse_status(text: &str) -> Option<Status> {
    let mut uids = field(text, "Uid:")?.split_ascii_whitespace();
    Some(Status {
        real_uid: uids.next()?.parse().ok()?,
        effective_uid: uids.next()?.parse().ok()?,
        tracer: field(text, "TracerPid:")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_move_the_fields_behind_it() {
        let text =
            "42 (a) S 1 1 (b\n) R 7 41 40 34817 41 4194304 0 0 0 0 0 0 0 0 20 0 1 0 9999 0 0\n";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.pid, stat.state, stat.parent), (42, 'R', 7));
        assert_eq!((stat.group, stat.session, stat.foreground), (41, 40, 41));
        assert_eq!((stat.terminal, stat.start), (34_817, 9_999));
        assert_eq!(stat.name, "a) S 1 1 (b\n");
        for cut in ["", "42", "42 (a", "42 (a)", "42 (a) R 7 41 40 34817 41"] {
            assert_eq!(parse_stat(cut), None, "{cut:?}");
        }
    }

    #[test]
    fn a_status_without_its_fields_is_not_read() {
        let whole = "Name:\tsh\nTracerPid:\t9\nUid:\t1000\t1001\t1002\t1003\n";
        let status = parse_status(whole).unwrap();
        assert_eq!((status.real_uid, status.effective_uid), (1000, 1001));
        assert_eq!(status.tracer, 9);
        assert_eq!(parse_status("Uid:\t1\t1\t1\t1\n"), None);
        assert_eq!(parse_status("TracerPid:\t0\nUid:\n"), None);
    }

    #[test]
    fn terminals_have_their_names() {
        assert_eq!(terminal_name(0x8801), "/dev/pts/1");
        assert_eq!(terminal_name(0x8905), "/dev/pts/261");
        assert_eq!(terminal_name(0x0401), "/dev/tty1");
        assert_eq!(terminal_name(0x0440), "/dev/ttyS0");
        // Pseudo-terminal 300 in the numbering of today: the high bits of the minor stand above the major.
        assert_eq!(terminal_name(0x0010_882c), "/dev/pts/300");
        assert_eq!(terminal_name(0xe507), "229:7");
    }

    #[test]
    fn this_process_is_read_as_it_is() {
        let folder = Folder::open(std::process::id()).unwrap();
        assert_eq!(folder.stat().unwrap().pid, std::process::id());
        assert!(!folder.is_shim().unwrap());
        assert!(folder.executable().unwrap().is_absolute());
        assert!(folder.namespace().unwrap().starts_with("pid:["));
        assert!(Folder::open(0).is_err());
    }
}

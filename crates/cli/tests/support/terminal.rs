//! A program at a pseudo-terminal, as a person sits before it.
//! Invariant: what is typed is typed; nothing tells the program that it is tested.
//! Used by the tests of the command line.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Makes the terminal at its standard input its own, then becomes the program.
const SESSION: &str = "import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])";

/// A command at a terminal of its own.
pub struct Terminal {
    /// The program.
    pub child: Child,
    /// The other side of the terminal.
    pub screen: File,
    /// Everything that was shown.
    pub shown: String,
}

impl Terminal {
    /// Starts a program at a terminal.
    pub fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let side = || -> Stdio {
            rustix::fs::open(
                name.as_c_str(),
                OFlags::RDWR | OFlags::NOCTTY,
                Mode::empty(),
            )
            .unwrap()
            .into()
        };
        command
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .env("TERM", "xterm")
            .env("NO_COLOR", "1");
        let child = command.spawn().unwrap();
        drop(command);
        Self {
            child,
            screen: File::from(master),
            shown: String::new(),
        }
    }

    /// Starts a program as a person's shell does: in a session whose own terminal this is, in the foreground of it.
    pub fn person(command: &Command) -> Self {
        let mut session = Command::new("python3");
        session.args(["-c", SESSION]).arg(command.get_program());
        session.args(command.get_args());
        if let Some(folder) = command.get_current_dir() {
            session.current_dir(folder);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        Self::start(session)
    }

    /// Reads until the screen shows the words.
    pub fn expect(&mut self, words: &str) {
        let from = self.shown.len();
        while !self
            .shown
            .get(from..)
            .is_some_and(|new| new.contains(words))
        {
            assert!(
                self.read(),
                "the program ended before it showed {words:?}: {}",
                self.shown
            );
        }
    }

    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // A pseudo-terminal whose other side is closed answers with an error.
        match self.screen.read(&mut bytes) {
            Ok(count @ 1..) => {
                self.shown
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
                true
            }
            _ => false,
        }
    }

    /// Types a line.
    pub fn type_line(&mut self, line: &str) {
        self.screen
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    /// Reads until the program has ended; its exit and everything that was shown.
    pub fn end(mut self) -> (Option<i32>, String) {
        while self.read() {}
        (self.child.wait().unwrap().code(), self.shown)
    }
}

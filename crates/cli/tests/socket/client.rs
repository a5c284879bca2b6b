//! The other end of the socket: a store that `praxis serve` has open, and a client that speaks raw lines.
//! Invariant: whatever a test started is gone when the test ends.
//! Used by the tests of this folder.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use aiws::json::Value;
use aiws::object;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::scratch;

/// A store that a process of `praxis serve` has open.
pub struct Served {
    pub dir: TempDir,
    pub store: PathBuf,
    child: Option<Child>,
    environment: Vec<(String, OsString)>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Served {
    pub fn new() -> Self {
        let dir = scratch();
        let store = dir.path().canonicalize().unwrap().join("store");
        Self::on(dir, store)
    }

    pub fn on(dir: TempDir, store: PathBuf) -> Self {
        Self::with(dir, store, &[])
    }

    pub fn with(dir: TempDir, store: PathBuf, environment: &[(&str, &OsStr)]) -> Self {
        let environment = environment.iter();
        let mut served = Self {
            dir,
            store,
            child: None,
            environment: environment
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        served.serve();
        served
    }

    /// Starts the engine, and returns once it says that it serves.
    pub fn serve(&mut self) {
        let mut child = praxis(&self.store)
            .arg("serve")
            .envs(self.environment.iter().cloned())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.starts_with("serving "), "{line}");
        // What it says later must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        self.child = Some(child);
    }

    /// Kills the engine as SIGKILL does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Ends the engine as Ctrl-C does; its exit.
    pub fn interrupt(&mut self) -> Option<i32> {
        let mut child = self.child.take().unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        child.wait().unwrap().code()
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn socket(&self) -> PathBuf {
        self.store.join("engine.sock")
    }

    pub fn client(&self) -> Client {
        Client::at(&self.socket())
    }

    /// Runs one of the scripts of docs/examples.
    pub fn script(&self, name: &str, mission: &str) -> Command {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/examples")
            .join(name);
        let mut command = Command::new("python3");
        command.arg(path).arg(&self.store).args([mission, "run"]);
        command.env_remove("PRAXIS_ATTEMPT_ID").stdin(Stdio::null());
        command
    }

    /// A mission for workers, opened by a person's script.
    pub fn mission(&self, name: &str) {
        let said = self.script("mission.py", name).output().unwrap();
        let err = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "python3 is needed: {err}");
    }
}

pub fn praxis(store: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_praxis"));
    command.arg("--store").arg(store);
    command
        .env_remove("PRAXIS_STORE")
        .env_remove("PRAXIS_LOG")
        .stdin(Stdio::null());
    command
}

/// A connection.
pub struct Client {
    pub hello: Value,
    read: BufReader<UnixStream>,
    write: UnixStream,
    number: i64,
}

/// A refusal: the code and the message.
pub type Refused = (String, String);

impl Client {
    pub fn at(path: &Path) -> Self {
        let write = UnixStream::connect(path).unwrap();
        let mut read = BufReader::new(write.try_clone().unwrap());
        let mut line = String::new();
        read.read_line(&mut line).unwrap();
        Self {
            hello: aiws::strict::parse(line.trim().as_bytes()).unwrap(),
            read,
            write,
            number: 0,
        }
    }

    /// Closes the connection, and returns once the engine has closed its side.
    pub fn close(mut self) {
        self.write.shutdown(std::net::Shutdown::Write).unwrap();
        while self.line().is_some() {}
    }

    /// Sends bytes as they are; whether anybody took them.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.write.write_all(bytes).is_ok()
    }

    /// The next line; none where the engine closed the connection.
    pub fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.read.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(aiws::strict::parse(line.trim().as_bytes()).unwrap()),
        }
    }

    /// Sends a request and returns its number.
    pub fn ask_only(&mut self, request: Value) -> i64 {
        self.number += 1;
        let line = object! { "protocol": "praxis-socket/1", "id": Value::Int(self.number), "request": request };
        self.send(format!("{line}\n").as_bytes());
        self.number
    }

    /// Asks, and waits for the answer's value.
    pub fn ask(&mut self, request: Value) -> Result<Value, Refused> {
        let id = self.ask_only(request);
        loop {
            let line = self.line().expect("an answer");
            assert_eq!(line.get("id"), Some(&Value::Int(id)), "{line}");
            if let Some(answer) = line.pointer("/answer/value") {
                return Ok(answer.clone());
            }
            if let Some(error) = line.get("error") {
                let said = |name: &str| error.get(name).and_then(Value::as_str).unwrap().to_owned();
                return Err((said("code"), said("message")));
            }
        }
    }

    /// Sends a line as it is and returns the code of the refusal.
    pub fn refused(&mut self, line: &str) -> String {
        assert!(self.send(format!("{line}\n").as_bytes()));
        let said = self.line().expect("a refusal");
        let code = said.pointer("/error/code").and_then(Value::as_str);
        code.unwrap_or_else(|| panic!("{line}: {said}")).to_owned()
    }
}

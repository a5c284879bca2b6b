//! The files of a shim: what it is to run, that it began, how it ended.
//!
//! Invariant: an exit record is written once, after everything that it names was synced, and is believed only while the
//! digests that it has are those of the files. Written by the shim and whoever starts it, read by whoever attaches.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

use aiws::canonical;
use aiws::decimal::U64;
use aiws::digest::{Digest, sha256};
use aiws::id::{AttemptId, OperationId};
use aiws::json::Value;
use rustix::fs::{Mode, OFlags, open, openat};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::descendants::{boot, is_alive};
use crate::limits::{SHIM_FILE_BYTES, SHIM_OUTPUT_BYTES};
use crate::process::Exit;

/// The lock: held while the shim lives.
pub const LOCK: &str = "shim.lock";
/// What the lock is called once an engine saw its shim die without a record.
pub const LOST: &str = "shim.lost";
/// What is to be run.
pub const SPEC: &str = "shim.json";
/// That it began.
pub const START: &str = "start.json";
/// How it ended.
pub const EXIT: &str = "exit.json";
/// The output of the command.
pub const TRANSCRIPT: &str = "transcript.txt";
/// What the shim itself has to complain about.
pub const COMPLAINTS: &str = "shim.err";

/// What a shim is to run. Values of variables are not in it: they are the shim's own environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// Always `praxis-shim`.
    pub format: String,
    /// Always 0.
    pub version: U64,
    /// The operation.
    pub operation_id: OperationId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The line that `sh -c` gets.
    pub line: String,
    /// Where it runs.
    pub directory: String,
    /// The names of the variables that the command sees.
    pub environment: Vec<String>,
    /// Wall-clock bound in milliseconds.
    pub wall_ms: U64,
    /// Bytes of the transcript.
    pub transcript_bytes: U64,
    /// Variables whose values are masked in the transcript.
    pub mask_names: Vec<String>,
    /// What the host's own part of the shim needs to know.
    pub host: Value,
}

/// That a shim began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Started {
    /// Always `praxis-start`.
    pub format: String,
    /// Always 0.
    pub version: U64,
    /// The boot of the machine that the numbers below belong to.
    pub boot: String,
    /// The shim's process number.
    pub shim_pid: i32,
    /// When the shim started, in ticks since the machine did.
    pub shim_start: U64,
    /// The command's process number; none just before it is started.
    pub command_pid: Option<i32>,
    /// When the command started.
    pub command_start: Option<U64>,
    /// When this was written, UTC milliseconds.
    pub at_ms: U64,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExitRecord {
    /// Always `praxis-exit`.
    pub format: String,
    /// Always 0.
    pub version: U64,
    /// The operation.
    pub operation_id: OperationId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The digest of the spec that was run.
    pub spec: Digest,
    /// Its exit code.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was ended at its wall-clock bound.
    pub timed_out: bool,
    /// Whether somebody had it stopped.
    pub stopped: bool,
    /// Why it could not be started, if it was not.
    pub not_started: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: U64,
    /// Whether the transcript is shorter than the output.
    pub transcript_truncated: bool,
    /// Whether every process below the shim ended.
    pub all_ended: bool,
    /// What it left, the transcript among it.
    pub outputs: Vec<Output>,
    /// Why its work does not count, as the host's own part says.
    pub failure: Option<String>,
}

/// A file that a command left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Output {
    /// What it is called.
    pub name: String,
    /// Where it lies below the folder.
    pub file: String,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// How many they are.
    pub size_bytes: U64,
}

/// The format and version of each kind of file.
trait Kind: Serialize + DeserializeOwned {
    const FORMAT: &'static str;
    fn format(&self) -> (&str, U64);
}

macro_rules! kind {
    ($name:ident, $format:literal) => {
        impl Kind for $name {
            const FORMAT: &'static str = $format;
            fn format(&self) -> (&str, U64) {
                (&self.format, self.version)
            }
        }
    };
}

kind!(Spec, "praxis-shim");
kind!(Started, "praxis-start");
kind!(ExitRecord, "praxis-exit");

impl Spec {
    /// The spec of a folder, with its digest.
    ///
    /// # Errors
    ///
    /// Why it cannot be read.
    pub fn read(folder: &Path) -> Result<(Self, Digest), String> {
        let bytes = bytes_of(folder, SPEC)?;
        Ok((parse(SPEC, &bytes)?, sha256(&bytes)))
    }
}

impl Started {
    /// The record of a folder; none where it cannot be read.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        parse(START, &bytes_of(folder, START).ok()?).ok()
    }

    /// Whether the command's own process is still there; what it started may be there without it.
    pub fn command_lives(&self) -> bool {
        boot().as_deref() == Some(&self.boot)
            && self
                .command()
                .is_some_and(|(pid, start)| is_alive(pid, start))
    }

    /// The command's process number and start time.
    pub fn command(&self) -> Option<(i32, u64)> {
        self.command_pid
            .zip(self.command_start.map(|start| start.0))
    }
}

impl ExitRecord {
    /// The record of a folder, if there is one and what it says of the files is so.
    ///
    /// # Errors
    ///
    /// Why it cannot be believed.
    pub fn read(folder: &Path) -> Result<Option<Self>, String> {
        if std::fs::symlink_metadata(folder.join(EXIT))
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        {
            return Ok(None);
        }
        let record: Self = parse(EXIT, &bytes_of(folder, EXIT)?)?;
        let (spec, digest) = Spec::read(folder)?;
        let same =
            (&spec.operation_id, &spec.attempt_id) == (&record.operation_id, &record.attempt_id);
        if digest != record.spec || !same {
            return Err(format!("{SPEC} is not what {EXIT} says was run"));
        }
        for output in &record.outputs {
            record.output(folder, &output.name)?;
        }
        Ok(Some(record))
    }

    /// The bytes of an output, if the record has one of this name.
    ///
    /// # Errors
    ///
    /// Why the file is not what the record says.
    pub fn output(&self, folder: &Path, name: &str) -> Result<Option<Vec<u8>>, String> {
        let Some(output) = self.outputs.iter().find(|output| output.name == name) else {
            return Ok(None);
        };
        let bytes = read_below(folder, Path::new(&output.file), output.size_bytes.0)
            .map_err(|error| format!("{} cannot be read: {error}", output.file))?;
        if sha256(&bytes) != output.sha256 {
            return Err(format!("{} is not what {EXIT} says it was", output.file));
        }
        Ok(Some(bytes))
    }

    /// How the command ended; none where it was not started.
    pub fn ended(&self) -> Option<Exit> {
        match (&self.not_started, self.exit, self.signal) {
            (Some(_), ..) => None,
            (None, Some(code), _) => Some(Exit::Code(code)),
            (None, None, Some(signal)) => Some(Exit::Signal(signal)),
            (None, None, None) => Some(Exit::Unseen),
        }
    }
}

impl Output {
    /// A file below the folder, synced, by what stands in it now.
    pub(super) fn of(folder: &Path, name: String, file: &Path) -> io::Result<(Self, Vec<u8>)> {
        let below = file.strip_prefix(folder).map_err(io::Error::other)?;
        let opened = open_below(folder, below)?;
        opened.sync_all()?;
        let bytes = all_of(opened, SHIM_OUTPUT_BYTES)?;
        let text = below.to_str();
        let file = text.ok_or_else(|| io::Error::other("its name is not UTF-8"))?;
        let output = Self {
            name,
            file: file.to_owned(),
            sha256: sha256(&bytes),
            size_bytes: U64(bytes.len() as u64),
        };
        Ok((output, bytes))
    }
}

fn bytes_of(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    read_below(folder, Path::new(name), SHIM_FILE_BYTES)
        .map_err(|error| format!("{name} cannot be read: {error}"))
}

fn parse<T: Kind>(name: &str, bytes: &[u8]) -> Result<T, String> {
    let record: T = aiws::strict::parse(bytes)
        .and_then(|value| canonical::from_value(&value))
        .map_err(|error| format!("{name} cannot be read: {}", error.message))?;
    match record.format() == (T::FORMAT, U64(0)) {
        true => Ok(record),
        false => Err(format!("{name} is of another format")),
    }
}

/// Writes a record so that it is there whole or not at all, also after the power went.
pub(super) fn write<T: Serialize>(folder: &Path, name: &str, record: &T) -> io::Result<()> {
    let bytes = canonical::bytes_of(record).map_err(io::Error::other)?;
    let unfinished = folder.join(format!("{name}.unfinished"));
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, folder.join(name))?;
    File::open(folder)?.sync_all()
}

/// Reads a regular file below a folder. No link on the way is followed, and nothing is waited for.
fn read_below(folder: &Path, below: &Path, bound: u64) -> io::Result<Vec<u8>> {
    all_of(open_below(folder, below)?, bound)
}

fn all_of(file: File, bound: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bound.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bound {
        true => Err(io::Error::other("it is longer than it may be")),
        false => Ok(bytes),
    }
}

pub(super) fn open_below(folder: &Path, below: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mut place = open(folder, flags | OFlags::DIRECTORY, Mode::empty())?;
    for step in below.components() {
        let Component::Normal(name) = step else {
            return Err(io::Error::other("it does not lie where it was expected"));
        };
        place = openat(&place, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    let file = File::from(place);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

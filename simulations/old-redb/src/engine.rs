//! The two engines behind one door: the project's redb in this process, the old one in a program of its own.
//!
//! Invariant: both get the same operations of the same disk, and neither knows which it is. Called by stories.

use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use praxis_journal::StorageBackend as _;
use praxis_simulations::disk::CrashDisk;

use crate::store::{Record, Store, Way};
use crate::story::File;
use crate::wire::{self, Frame};

/// What the engine answers; the error is its own.
type Said<T> = Result<T, String>;

/// A storage engine. The outer error of each call is that it can no longer be spoken to.
pub trait Engine {
    /// Opens a file.
    ///
    /// # Errors
    /// The harness failed.
    fn open(&mut self, file: &File, way: Way) -> Result<Said<()>, String>;

    /// Appends a record.
    ///
    /// # Errors
    /// The harness failed.
    fn append(&mut self, file: &File, number: u64, record: &[u8]) -> Result<Said<()>, String>;

    /// Every record.
    ///
    /// # Errors
    /// The harness failed.
    fn records(&mut self, file: &File) -> Result<Said<Vec<Record>>, String>;

    /// Lets the file go.
    ///
    /// # Errors
    /// The harness failed.
    fn close(&mut self, file: &File) -> Result<(), String>;

    /// Lets the file go without power; the pending writes of the disk stay as they were.
    ///
    /// # Errors
    /// The harness failed.
    fn power_lost(&mut self, file: &File, _disk: &CrashDisk) -> Result<(), String> {
        file.cut();
        self.close(file)
    }
}

/// The project's redb.
#[derive(Default)]
pub struct Local(Option<Store>);

impl Engine for Local {
    fn open(&mut self, file: &File, way: Way) -> Result<Said<()>, String> {
        self.0 = None;
        Ok(Store::open(file.clone(), way).map(|store| self.0 = Some(store)))
    }

    fn append(&mut self, _: &File, number: u64, record: &[u8]) -> Result<Said<()>, String> {
        let store = self.0.as_ref().ok_or("no file is open")?;
        Ok(store.append(number, record))
    }

    fn records(&mut self, _: &File) -> Result<Said<Vec<Record>>, String> {
        let store = self.0.as_ref().ok_or("no file is open")?;
        Ok(store.records())
    }

    fn close(&mut self, _: &File) -> Result<(), String> {
        self.0 = None;
        Ok(())
    }
}

/// The old redb, at the other end of a pipe.
pub struct Remote {
    child: Child,
    to: Option<BufWriter<ChildStdin>>,
    from: BufReader<ChildStdout>,
}

impl Remote {
    /// Builds the program and starts it.
    ///
    /// # Errors
    /// It cannot be built or started.
    pub fn start() -> Result<Self, String> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("engine/Cargo.toml");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut child = Command::new(cargo)
            .args(["run", "--quiet", "--release", "--locked", "--manifest-path"])
            .arg(manifest)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cargo cannot be started: {error}"))?;
        let to = child.stdin.take().map(BufWriter::new);
        let from = child.stdout.take().map(BufReader::new);
        let from = from.ok_or("the program has no output")?;
        Ok(Self { child, to, from })
    }

    /// Asks for something, and serves the disk until it is answered.
    fn ask(&mut self, file: &File, frame: &Frame) -> Result<Said<Vec<u8>>, String> {
        let gone = |error| format!("the old engine is gone: {error}");
        let to = self.to.as_mut().ok_or("the old engine is gone")?;
        frame.send(to).map_err(gone)?;
        loop {
            let frame = Frame::receive(&mut self.from).map_err(gone)?;
            let answer = match frame.tag {
                wire::DONE | wire::FAILED => return Ok(frame.answered().map(|(_, bytes)| bytes)),
                _ => operation(file, &frame),
            };
            Frame::answer(answer).send(to).map_err(gone)?;
        }
    }
}

/// One operation of the engine on its file.
fn operation(file: &File, frame: &Frame) -> std::io::Result<(u64, Vec<u8>)> {
    let nothing = |()| (0, vec![]);
    match frame.tag {
        wire::LEN => file.len().map(|len| (len, vec![])),
        wire::READ => {
            let len = frame
                .bytes
                .first_chunk()
                .map_or(0, |len| u64::from_le_bytes(*len));
            let room = file.len()?.saturating_sub(frame.number);
            if len > room {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
            file.read(frame.number, &mut bytes).map(|()| (0, bytes))
        }
        wire::SET_LEN => file.set_len(frame.number).map(nothing),
        wire::SYNC => file.sync_data().map(nothing),
        wire::WRITE => file.write(frame.number, &frame.bytes).map(nothing),
        _ => Err(std::io::ErrorKind::Unsupported.into()),
    }
}

impl Engine for Remote {
    fn open(&mut self, file: &File, way: Way) -> Result<Said<()>, String> {
        self.close(file)?;
        let two_phase = u64::from(way == Way::TwoPhase);
        let answer = self.ask(file, &Frame::new(wire::OPEN, two_phase, &[]))?;
        Ok(answer.map(drop))
    }

    fn append(&mut self, file: &File, number: u64, record: &[u8]) -> Result<Said<()>, String> {
        let answer = self.ask(file, &Frame::new(wire::APPEND, number, record))?;
        Ok(answer.map(drop))
    }

    fn records(&mut self, file: &File) -> Result<Said<Vec<Record>>, String> {
        let answer = self.ask(file, &Frame::new(wire::RECORDS, 0, &[]))?;
        let unpacked = answer.map(|bytes| unpack(&bytes).ok_or("the answer is no records"));
        Ok(match unpacked {
            Ok(records) => Ok(records?),
            Err(error) => Err(error),
        })
    }

    fn close(&mut self, file: &File) -> Result<(), String> {
        self.ask(file, &Frame::new(wire::CLOSE, 0, &[])).map(drop)
    }
}

/// Records from bytes; none if they are none.
fn unpack(mut bytes: &[u8]) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        let (len, rest) = rest.split_first_chunk::<8>()?;
        let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
        let (record, rest) = rest.split_at_checked(len)?;
        records.push((u64::from_le_bytes(*number), record.to_vec()));
        bytes = rest;
    }
    Some(records)
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.to = None;
        drop(self.child.wait());
    }
}

//! The program that holds redb 4.1.0: it does what the harness asks for, on the disk of the harness.
//!
//! Invariant: it has no file of its own; every operation on the file is asked of the other end of the pipe. Started by
//! the harness, ended by the end of its input.

use std::io::{self, Stdin, Stdout};
use std::sync::{Arc, Mutex, PoisonError};

use redb::StorageBackend;

#[path = "../../src/store.rs"]
mod store;
#[path = "../../src/wire.rs"]
mod wire;

use store::{Record, Store, Way};
use wire::Frame;

/// The other end.
#[derive(Debug)]
struct Pipe {
    from: Stdin,
    to: Stdout,
}

/// The file of the harness.
#[derive(Clone, Debug)]
struct Remote(Arc<Mutex<Pipe>>);

impl Remote {
    fn send(&self, frame: &Frame) -> io::Result<()> {
        let pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        frame.send(&mut pipe.to.lock())
    }

    fn receive(&self) -> io::Result<Frame> {
        let pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Frame::receive(&mut pipe.from.lock())
    }

    fn ask(&self, tag: u8, number: u64, bytes: &[u8]) -> io::Result<(u64, Vec<u8>)> {
        self.send(&Frame::new(tag, number, bytes))?;
        self.receive()?.answered().map_err(io::Error::other)
    }
}

impl StorageBackend for Remote {
    fn len(&self) -> io::Result<u64> {
        self.ask(wire::LEN, 0, &[]).map(|(len, _)| len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let len = (out.len() as u64).to_le_bytes();
        let (_, bytes) = self.ask(wire::READ, offset, &len)?;
        match bytes.len() == out.len() {
            true => out.copy_from_slice(&bytes),
            false => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.ask(wire::SET_LEN, len, &[]).map(drop)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.ask(wire::SYNC, 0, &[]).map(drop)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.ask(wire::WRITE, offset, data).map(drop)
    }
}

/// Records as bytes.
fn pack(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, record) in records {
        bytes.extend(number.to_le_bytes());
        bytes.extend((record.len() as u64).to_le_bytes());
        bytes.extend(record);
    }
    bytes
}

/// Does what a frame asks for.
fn answer(frame: &Frame, file: &Remote, open: &mut Option<Store>) -> Frame {
    let closed = || "no file is open".to_owned();
    Frame::answer(match frame.tag {
        wire::OPEN => {
            let way = match frame.number {
                1 => Way::TwoPhase,
                _ => Way::OnePhase,
            };
            Store::open(file.clone(), way).map(|store| {
                *open = Some(store);
                (0, vec![])
            })
        }
        wire::APPEND => open
            .as_ref()
            .ok_or_else(closed)
            .and_then(|store| store.append(frame.number, &frame.bytes))
            .map(|()| (0, vec![])),
        wire::RECORDS => open
            .as_ref()
            .ok_or_else(closed)
            .and_then(Store::records)
            .map(|records| (0, pack(&records))),
        wire::CLOSE => {
            *open = None;
            Ok((0, vec![]))
        }
        _ => Err("expected a request".to_owned()),
    })
}

fn main() -> io::Result<()> {
    // A panic of the engine is an answer here, not a line on the terminal.
    std::panic::set_hook(Box::new(|_| ()));
    let file = Remote(Arc::new(Mutex::new(Pipe {
        from: io::stdin(),
        to: io::stdout(),
    })));
    let mut open = None;
    loop {
        let frame = match file.receive() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            frame => frame?,
        };
        let answer = answer(&frame, &file, &mut open);
        file.send(&answer)?;
    }
}

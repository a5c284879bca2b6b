//! The frames between the harness and the program that holds the old engine.
//!
//! Invariant: a frame is a tag, a number and a length with so many bytes; one end speaks at a time. Included by both.

use std::io::{self, Read, Write};

/// Bytes that a frame may carry: far above what a small store writes at once.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub tag: u8,
    /// An offset, a length, a number.
    pub number: u64,
    /// What it carries.
    pub bytes: Vec<u8>,
}

/// To the engine: open the file; the number is 1 for two-phase.
pub const OPEN: u8 = b'o';
/// To the engine: append the record of that number.
pub const APPEND: u8 = b'a';
/// To the engine: every record.
pub const RECORDS: u8 = b'g';
/// To the engine: let the file go.
pub const CLOSE: u8 = b'c';
/// From the engine: how long is the file?
pub const LEN: u8 = b'l';
/// From the engine: read at the number as many bytes as the eight that it carries say.
pub const READ: u8 = b'r';
/// From the engine: set the length.
pub const SET_LEN: u8 = b's';
/// From the engine: sync.
pub const SYNC: u8 = b'y';
/// From the engine: write at the number.
pub const WRITE: u8 = b'w';
/// From the engine: what was asked for is done. To it: so is the operation on the disk.
pub const DONE: u8 = b'd';
/// Either way: it failed; the bytes say how.
pub const FAILED: u8 = b'f';

impl Frame {
    /// A frame.
    pub fn new(tag: u8, number: u64, bytes: &[u8]) -> Self {
        Self {
            tag,
            number,
            bytes: bytes.to_vec(),
        }
    }

    /// An answer: what there is, or how it failed.
    pub fn answer<E: ToString>(answer: Result<(u64, Vec<u8>), E>) -> Self {
        match answer {
            Ok((number, bytes)) => Self {
                tag: DONE,
                number,
                bytes,
            },
            Err(error) => Self::new(FAILED, 0, error.to_string().as_bytes()),
        }
    }

    /// What an answer says.
    ///
    /// # Errors
    /// What failed at the other end.
    pub fn answered(self) -> Result<(u64, Vec<u8>), String> {
        match self.tag {
            DONE => Ok((self.number, self.bytes)),
            _ => Err(String::from_utf8_lossy(&self.bytes).into_owned()),
        }
    }

    /// Sends it.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn send(&self, out: &mut impl Write) -> io::Result<()> {
        let mut frame = vec![self.tag];
        frame.extend(self.number.to_le_bytes());
        frame.extend((self.bytes.len() as u64).to_le_bytes());
        frame.extend(&self.bytes);
        out.write_all(&frame)?;
        out.flush()
    }

    /// The next one.
    ///
    /// # Errors
    /// The other end is gone, or speaks of more than a frame may carry.
    pub fn receive(from: &mut impl Read) -> io::Result<Self> {
        let (mut tag, mut number, mut len) = ([0; 1], [0; 8], [0; 8]);
        from.read_exact(&mut tag)?;
        from.read_exact(&mut number)?;
        from.read_exact(&mut len)?;
        let len = usize::try_from(u64::from_le_bytes(len)).unwrap_or(usize::MAX);
        if len > FRAME_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; len];
        from.read_exact(&mut bytes)?;
        Ok(Self {
            tag: tag[0],
            number: u64::from_le_bytes(number),
            bytes,
        })
    }
}

//! A file that is looked at as if it could be written: what is written stays in memory.
//!
//! Invariant: the file below is only read. Called by the segment that is to be checked before anything writes to it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

/// Pieces that are kept in memory once something in them was written.
const PIECE: u64 = 4096;

/// The backend; clones share file and memory.
#[derive(Clone)]
pub(crate) struct Overlay {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    /// None once it was let go.
    file: Option<Arc<dyn StorageBackend>>,
    file_len: u64,
    len: u64,
    pieces: BTreeMap<u64, Vec<u8>>,
}

impl std::fmt::Debug for Overlay {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Overlay")
    }
}

impl Overlay {
    pub fn new(file: Arc<dyn StorageBackend>) -> io::Result<Self> {
        let len = file.len()?;
        let inner = Inner {
            file: Some(file),
            file_len: len,
            len,
            pieces: BTreeMap::new(),
        };
        Ok(Self {
            inner: Arc::new(Mutex::new(inner)),
        })
    }

    /// Lets the file and the memory go, whoever still holds a clone.
    pub fn release(&self) {
        let mut inner = self.inner();
        inner.file = None;
        inner.pieces.clear();
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The bytes of one piece as they are now; beyond the end there are zeros.
    fn piece(&self, number: u64) -> io::Result<Vec<u8>> {
        if let Some(piece) = self.pieces.get(&number) {
            return Ok(piece.clone());
        }
        let mut piece = vec![0; size(PIECE)?];
        let start = number * PIECE;
        let there = size(self.file_len.saturating_sub(start).min(PIECE))?;
        if there > 0 {
            let released = || io::Error::other("the file was let go");
            let file = self.file.as_ref().ok_or_else(released)?;
            file.read(start, &mut piece[..there])?;
        }
        Ok(piece)
    }

    /// The pieces of a range: number, where in the piece it begins, where in the range, how long.
    fn parts(offset: u64, len: usize) -> io::Result<Vec<(u64, usize, usize, usize)>> {
        let mut parts = Vec::new();
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let within = size(at % PIECE)?;
            let part = (size(PIECE)? - within).min(len - done);
            parts.push((at / PIECE, within, done, part));
            done += part;
        }
        Ok(parts)
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.inner().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.inner();
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > inner.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, within, done, part) in Inner::parts(offset, out.len())? {
            let piece = inner.piece(number)?;
            out[done..done + part].copy_from_slice(&piece[within..within + part]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.inner();
        if len < inner.len {
            // What is cut off reads as zeros should the file grow again.
            inner.file_len = inner.file_len.min(len);
            let last = len.div_ceil(PIECE);
            inner.pieces.retain(|number, _| *number < last);
            let within = size(len % PIECE)?;
            if within > 0
                && let Some(piece) = inner.pieces.get_mut(&(len / PIECE))
            {
                piece[within..].fill(0);
            }
        }
        inner.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut inner = self.inner();
        for (number, within, done, part) in Inner::parts(offset, data.len())? {
            let mut piece = inner.piece(number)?;
            piece[within..within + part].copy_from_slice(&data[done..done + part]);
            inner.pieces.insert(number, piece);
        }
        inner.len = inner.len.max(offset + data.len() as u64);
        Ok(())
    }
}

fn size(bytes: u64) -> io::Result<usize> {
    usize::try_from(bytes).map_err(io::Error::other)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    /// Reads see what was written over the file, cut off and grown again; the file is as it was, and can be let go.
    #[test]
    fn the_file_below_is_only_read() {
        let file = Arc::new(InMemoryBackend::new());
        let bytes: Vec<u8> = (0..10_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        file.set_len(10_000).unwrap();
        file.write(0, &bytes).unwrap();
        let overlay = Overlay::new(file.clone()).unwrap();
        let mut expected = bytes.clone();
        for (at, len) in [(0_usize, 3_usize), (4_090, 20), (8_000, 2_000)] {
            overlay.write(at as u64, &vec![7; len]).unwrap();
            expected[at..at + len].fill(7);
        }
        overlay.set_len(9_000).unwrap();
        overlay.set_len(12_000).unwrap();
        expected.truncate(9_000);
        expected.resize(12_000, 0);
        let mut read = vec![1; 12_000];
        overlay.read(0, &mut read).unwrap();
        assert_eq!(read, expected);
        assert!(overlay.read(11_999, &mut [0; 2]).is_err());
        let mut below = vec![0; 10_000];
        file.read(0, &mut below).unwrap();
        assert_eq!((below, file.len().unwrap()), (bytes, 10_000));
        overlay.release();
        assert_eq!(Arc::strong_count(&file), 1);
    }
}

//! Everything that any crate writes to its traces, at the level TRACE, while the scenarios run.
//! Invariant: one buffer per process, which only grows; a world looks at what came after its own beginning.
//! The world begins it, the closing oracle reads it.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// What was written so far.
static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Set once per process.
static BEGUN: Once = Once::new();

struct Line;

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        written().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written() -> MutexGuard<'static, Vec<u8>> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has every trace kept from now on, and says how much there is.
pub fn begin() -> usize {
    BEGUN.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(|| Line)
            .try_init()
            // A process that tells a story of its own keeps its traces elsewhere.
            .ok();
    });
    written().len()
}

/// What was written after that.
pub fn since(begin: usize) -> Vec<u8> {
    written()[begin..].to_vec()
}

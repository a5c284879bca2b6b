//! The signals by which people and systems stop this program.
//! Invariant: one that whoever started the program has ignored is not watched.
//! Watched by the verbs that drive runs.

use aiws::error::{Code, Error};

/// The signals by which people and systems stop a program.
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// None where whoever started this program has it ignored, as `nohup` does.
    hang_up: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    /// Watches for them from now on.
    ///
    /// # Errors
    ///
    /// `STORE_IO` where the system does not let it.
    pub fn new() -> Result<Self, Error> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error: std::io::Error| {
            Error::new(Code::StoreIo, format!("signals cannot be watched: {error}"))
        };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            hang_up: match ignores_hang_up() {
                true => None,
                false => Some(signal(SignalKind::hangup()).map_err(failed)?),
            },
        })
    }

    /// Any of them.
    pub async fn next(&mut self) {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => drop(hang_up.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hang_up => {}
        }
    }

    /// One that somebody sends to say it again. A terminal that goes away may well say so twice by itself.
    pub async fn again(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Whether this process was started with hang-ups ignored: signal 1 is the lowest bit of the mask.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

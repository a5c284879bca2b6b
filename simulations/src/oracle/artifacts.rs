//! Artifacts: what was announced, what events name, what the directory holds (invariants 39 to 42).
//!
//! Invariant: bytes are judged by their own hash, never by their name. Told by the simulation, asked by the fold.

use std::collections::{BTreeMap, BTreeSet};

use aiws::digest::{Digest, sha256};

use super::event::hex;
use crate::invariant::{Broken, Invariant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Announced,
    Collected,
}

/// All artifacts that were told of.
#[derive(Debug, Default)]
pub(super) struct Artifacts {
    kept: BTreeMap<[u8; 32], Kept>,
    named: BTreeSet<[u8; 32]>,
    damaged: BTreeSet<[u8; 32]>,
    /// The log lost events, and the directory may have lost files.
    pub lossy: bool,
}

impl Artifacts {
    /// An artifact was put.
    pub fn put(&mut self, digest: [u8; 32], ok: bool) {
        if ok {
            self.kept.insert(digest, Kept::Announced);
            self.damaged.remove(&digest);
        }
    }

    /// It was damaged on purpose.
    pub fn damaged(&mut self, digest: [u8; 32]) {
        self.damaged.insert(digest);
    }

    /// It is as it was before.
    pub fn mended(&mut self, digest: [u8; 32]) {
        self.damaged.remove(&digest);
    }

    /// Whether it was damaged on purpose.
    pub fn is_damaged(&self, digest: &str) -> bool {
        let digest = digest.parse::<Digest>();
        digest.is_ok_and(|digest| self.damaged.contains(&digest.0))
    }

    /// A durable event names it.
    pub fn named(&mut self, digest: &str, event: &str) -> Result<(), Broken> {
        let Ok(Digest(digest)) = digest.parse::<Digest>() else {
            return Err(super::event::unknown(format!(
                "{event} names {digest}, which is no digest"
            )));
        };
        self.named.insert(digest);
        let invariant = match self.kept.get(&digest) {
            _ if self.lossy => return Ok(()),
            Some(Kept::Announced) => return Ok(()),
            Some(Kept::Collected) => Invariant::CollectedUnnamed,
            None => Invariant::ReferencedDurable,
        };
        let state = match invariant {
            Invariant::CollectedUnnamed => "was collected",
            _ => "was never announced",
        };
        let what = format!("{event} names artifact {}, which {state}", hex(digest));
        Err(Broken::new(invariant, what))
    }

    /// It was read.
    pub fn read(&self, digest: [u8; 32], found: Result<&[u8], &str>) -> Result<(), Broken> {
        let bytes = match found {
            Ok(bytes) => bytes,
            Err(_) if self.damaged.contains(&digest) || self.lossy => return Ok(()),
            Err(_) if !self.named.contains(&digest) => return Ok(()),
            Err(code) => {
                let what = format!(
                    "artifact {} is whole, and a read answers {code}",
                    hex(digest)
                );
                return Err(Broken::new(Invariant::ReferencedDurable, what));
            }
        };
        let made = sha256(bytes);
        if made.0 == digest {
            return Ok(());
        }
        let what = format!(
            "artifact {} was read as {} bytes that hash to {made}",
            hex(digest),
            bytes.len()
        );
        Err(Broken::new(Invariant::ReadHashes, what))
    }

    /// It was collected.
    pub fn collected(&mut self, digest: [u8; 32]) -> Result<(), Broken> {
        self.kept.insert(digest, Kept::Collected);
        if !self.named.contains(&digest) || self.lossy {
            return Ok(());
        }
        let what = format!(
            "artifact {} was collected, and an event names it",
            hex(digest)
        );
        Err(Broken::new(Invariant::CollectedUnnamed, what))
    }

    /// The directory after a reopening.
    pub fn files(&self, durable: &[(String, Vec<u8>)], is_damaged: bool) -> Result<(), Broken> {
        let mut whole = BTreeSet::new();
        for (name, bytes) in durable {
            let final_name = name.rsplit('/').next().unwrap_or(name);
            let Ok(digest) = final_name.parse::<Digest>() else {
                continue;
            };
            if self.damaged.contains(&digest.0) {
                whole.insert(digest.0);
                continue;
            }
            let made = sha256(bytes);
            if made != digest && !is_damaged {
                let what = format!("{} bytes that hash to {made} stand at {name}", bytes.len());
                return Err(Broken::new(Invariant::NoPartialFile, what));
            }
            whole.insert(digest.0);
        }
        let lost = |digest: &&[u8; 32]| !whole.contains(*digest) && !self.damaged.contains(*digest);
        // What no event names may be on its way out: a collection tells of itself only when it is done.
        match self.named.iter().find(lost) {
            Some(digest) if !is_damaged && !self.lossy => {
                let what = format!(
                    "artifact {} is named by an event, and is gone",
                    hex(*digest)
                );
                Err(Broken::new(Invariant::ReferencedDurable, what))
            }
            _ => Ok(()),
        }
    }
}

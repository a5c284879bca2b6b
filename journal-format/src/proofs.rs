//! The export of one mission: its events, each with the proof that it stands in the log under a signed checkpoint.
//!
//! Invariant: whoever trusts the checkpoint's key needs nothing else, and sees no event of another mission. What is not shown
//! is the end of a stream that was left out. Written by the journal, read by auditors (`verify.py`) and by tests.

use aiws::canonical;
use aiws::decimal::U64;
use aiws::digest::{Digest, Hasher};
use aiws::id::{MissionId, StoreId};
use aiws::json::Value;
use serde::{Deserialize, Serialize};

use crate::FORMAT_VERSION;
use crate::chain::Chain;
use crate::checkpoint::Checkpoint;
use crate::error::FormatError;
use crate::export::{Trailer, heads, parse, sealed, trailer};
use crate::limits::MAX_PROOF_LINE_BYTES;
use crate::note::Verifier;
use crate::seal::Sealed;
use crate::tree::{Tree, TreeHead, includes};

/// The value of `format` in the first line.
pub const PROOFS_FORMAT: &str = "praxis-proofs";

/// The first line.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// Always `praxis-proofs`.
    pub format: String,
    /// The format's version.
    pub version: u8,
    /// The store that it is from.
    pub store_id: StoreId,
    /// The mission whose events follow.
    pub mission_id: MissionId,
    /// The signed checkpoint that all proofs lead to, byte for byte.
    pub checkpoint: String,
}

aiws::veiled! { Header { format version store_id mission_id } checkpoint; }

/// Writes such an export piece by piece into the caller's buffers; it does no I/O itself.
pub struct Writer<'a> {
    tree: &'a Tree,
    head: TreeHead,
    mission: MissionId,
    chain: Chain,
    digest: Hasher,
    count: u64,
}

impl std::fmt::Debug for Writer<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Writer")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl<'a> Writer<'a> {
    /// Begins an export under a signed checkpoint of the tree; its first line is appended to `out`. The signature is passed
    /// on, whoever made it: the reader checks it.
    ///
    /// # Errors
    /// [`FormatError::Note`] for a note that is no checkpoint of this store, [`FormatError::Proof`] where the tree has
    /// another root at its size, or not so many events.
    pub fn begin(
        store_id: StoreId,
        mission_id: MissionId,
        note: &str,
        tree: &'a Tree,
        out: &mut Vec<u8>,
    ) -> Result<Self, FormatError> {
        let head = Checkpoint::unverified(note.as_bytes())?.of_store(&store_id)?;
        if head.size > tree.size() || tree.root(head.size) != Some(head.root) {
            return Err(FormatError::Proof {
                sequence: head.size,
            });
        }
        let header = Header {
            format: PROOFS_FORMAT.to_owned(),
            version: FORMAT_VERSION,
            store_id,
            mission_id: mission_id.clone(),
            checkpoint: note.to_owned(),
        };
        let mut writer = Self {
            tree,
            head,
            mission: mission_id,
            chain: Chain::new(),
            digest: Hasher::new(),
            count: 0,
        };
        let line = canonical::bytes_of(&header).map_err(FormatError::Event)?;
        writer.put(&line, out);
        Ok(writer)
    }

    /// The head that all proofs lead to.
    pub fn head(&self) -> TreeHead {
        self.head
    }

    /// Appends the line of the mission's next event to `out`.
    ///
    /// # Errors
    /// [`FormatError::Chain`] for an event that does not fit, [`FormatError::Proof`] for one of another mission or one that
    /// is not in the tree at this place.
    pub fn event(
        &mut self,
        sequence: u64,
        sealed: &Sealed,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        self.chain.pass(sequence);
        self.chain.accept(sequence, sealed)?;
        let refused = || FormatError::Proof { sequence };
        let index = sequence.checked_sub(1).ok_or_else(refused)?;
        let proof = self.tree.inclusion(index, self.head.size);
        let proof = proof.ok_or_else(refused)?;
        let proven = includes(&self.head, index, sealed.hash.as_bytes(), &proof);
        if !proven || sealed.event.subject.mission_id != self.mission {
            return Err(refused());
        }
        let hashes: Vec<String> = proof.iter().map(|hash| format!("\"{hash}\"")).collect();
        let mut line = b"{\"event\":".to_vec();
        line.extend_from_slice(&sealed.bytes);
        let rest = format!(
            ",\"hash\":\"{}\",\"proof\":[{}],\"sequence\":\"{sequence}\"}}",
            sealed.hash,
            hashes.join(",")
        );
        line.extend_from_slice(rest.as_bytes());
        self.put(&line, out);
        self.count += 1;
        Ok(())
    }

    /// Ends the export; its last line is appended to `out`.
    ///
    /// # Errors
    /// [`FormatError::Chain`] inside an append.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<Trailer, FormatError> {
        self.chain.ended()?;
        let trailer = Trailer {
            count: U64(self.count),
            digest: self.digest.finish(),
            heads: heads(&self.chain),
        };
        let value = canonical::to_value(&trailer).map_err(FormatError::Event)?;
        out.extend(canonical::to_bytes(&aiws::object! { "trailer": value }));
        out.push(b'\n');
        Ok(trailer)
    }

    fn put(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(line);
        out.push(b'\n');
        self.digest.update(&out[start..]);
    }
}

/// An export that was read and checked, proofs and all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    /// Its first line.
    pub header: Header,
    /// The head that all proofs lead to.
    pub head: TreeHead,
    /// The mission's events with their sequences in the log.
    pub events: Vec<(u64, Sealed)>,
    /// Its last line.
    pub trailer: Trailer,
}

/// Reads a whole export that is in memory, against the key that its checkpoint has to be signed with.
///
/// # Errors
/// The first thing that is wrong: [`FormatError::Export`] with the line, [`FormatError::Chain`], [`FormatError::Note`], or
/// [`FormatError::Proof`] with the sequence.
pub fn read(bytes: &[u8], verifier: &Verifier) -> Result<Proven, FormatError> {
    let fault = |line: u64, what: String| FormatError::Export { line, what };
    let ended = || {
        let what = "expected lines that end with a line feed".to_owned();
        fault(1, what)
    };
    let lines = bytes.strip_suffix(b"\n").ok_or_else(ended)?;
    let mut lines = (1..).zip(lines.split(|byte| *byte == b'\n'));
    let (number, first) = lines.next().ok_or_else(ended)?;
    let header = header(first).map_err(|what| fault(number, what))?;
    let head = Checkpoint::verified(header.checkpoint.as_bytes(), verifier)?;
    let head = head.of_store(&header.store_id)?;
    let (mut chain, mut digest, mut events) = (Chain::new(), Hasher::new(), Vec::new());
    digest.update(first);
    digest.update(b"\n");
    let mut found = None;
    for (number, line) in lines {
        let fault = |what| fault(number, what);
        if found.is_some() {
            return Err(fault("expected nothing after the trailer".to_owned()));
        }
        let value = parse(line, MAX_PROOF_LINE_BYTES).map_err(fault)?;
        if line.starts_with(b"{\"trailer\":") {
            chain.ended()?;
            let trailer = trailer(&value, events.len() as u64, &chain, digest.clone().finish());
            found = Some(trailer.map_err(fault)?);
            continue;
        }
        let line_of: ProofLine =
            canonical::from_value(&value).map_err(|cause| fault(cause.to_string()))?;
        let sequence = line_of.sequence.0;
        let sealed = sealed(sequence, &line_of.event, line_of.hash).map_err(fault)?;
        if sealed.event.subject.mission_id != header.mission_id {
            return Err(fault(format!(
                "sequence {sequence}: expected an event of the mission in the header"
            )));
        }
        chain.pass(sequence);
        chain.accept(sequence, &sealed)?;
        let leaf = sealed.hash.as_bytes();
        let index = sequence.checked_sub(1);
        if !index.is_some_and(|index| includes(&head, index, leaf, &line_of.proof)) {
            return Err(FormatError::Proof { sequence });
        }
        events.push((sequence, sealed));
        digest.update(line);
        digest.update(b"\n");
    }
    let trailer = found.ok_or_else(|| {
        let what = "expected a trailer, found the end".to_owned();
        fault(events.len() as u64 + 2, what)
    })?;
    Ok(Proven {
        header,
        head,
        events,
        trailer,
    })
}

fn header(line: &[u8]) -> Result<Header, String> {
    let value = parse(line, MAX_PROOF_LINE_BYTES)?;
    let header: Header = canonical::from_value(&value).map_err(|cause| cause.to_string())?;
    if header.format != PROOFS_FORMAT {
        return Err(format!("expected format {PROOFS_FORMAT}, found another"));
    }
    match header.version == FORMAT_VERSION {
        true => Ok(header),
        false => Err(format!(
            "expected version {FORMAT_VERSION}, found {}",
            header.version
        )),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProofLine {
    event: Value,
    hash: Digest,
    proof: Vec<Digest>,
    sequence: U64,
}

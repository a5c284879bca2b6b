//! The export: a log as JSON Lines that any language can check with a JSON library and SHA-256.
//!
//! Invariant: every line is canonical JSON; the trailer names count, heads and a digest of all bytes before it, so
//! that no line can be lost from the end unseen. Written by the journal, read by tests and by other stores.

use aiws::canonical;
use aiws::decimal::U64;
use aiws::digest::{Digest, Hasher};
use aiws::id::{StoreId, StreamId};
use aiws::json::Value;
use aiws::strict;
use serde::{Deserialize, Serialize};

use crate::FORMAT_VERSION;
use crate::chain::Chain;
use crate::error::FormatError;
use crate::limits::{MAX_EXPORT_LINE_BYTES, MAX_LINE_DEPTH};
use crate::seal::Sealed;

/// The value of `format` in the first line.
pub const EXPORT_FORMAT: &str = "praxis-export";

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// Always `praxis-export`.
    pub format: String,
    /// The format's version.
    pub version: u8,
    /// The store that was exported.
    pub store_id: StoreId,
}

/// The last line: `{"trailer":{...}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trailer {
    /// How many events stand before it.
    pub count: U64,
    /// SHA-256 of every byte before this line.
    pub digest: Digest,
    /// Where every stream ends, in the order of the stream ids.
    pub heads: Vec<HeadLine>,
}

/// The end of one stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HeadLine {
    /// The stream.
    pub stream: StreamId,
    /// The revision of its last event.
    pub revision: U64,
    /// The hash of its last event.
    pub hash: Digest,
}

/// Writes an export piece by piece into the caller's buffers; it does no I/O itself.
pub struct Writer {
    chain: Chain,
    digest: Hasher,
}

// By hand: the running digest has nothing to show.
impl std::fmt::Debug for Writer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Writer")
            .field("sequence", &self.chain.sequence())
            .finish_non_exhaustive()
    }
}

impl Writer {
    /// Begins an export; its first line is appended to `out`.
    ///
    /// # Errors
    /// [`FormatError::Event`] never occurs for a valid id.
    pub fn begin(store_id: StoreId, out: &mut Vec<u8>) -> Result<Self, FormatError> {
        let header = Header {
            format: EXPORT_FORMAT.to_owned(),
            version: FORMAT_VERSION,
            store_id,
        };
        let mut writer = Self {
            chain: Chain::new(),
            digest: Hasher::new(),
        };
        let start = out.len();
        out.extend(canonical::bytes_of(&header).map_err(FormatError::Event)?);
        out.push(b'\n');
        writer.digest.update(&out[start..]);
        Ok(writer)
    }

    /// Appends the line of the log's next event to `out`.
    ///
    /// # Errors
    /// [`FormatError::Chain`] for an event that does not fit: a broken log is not exported as if it were whole.
    pub fn event(
        &mut self,
        sequence: u64,
        sealed: &Sealed,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        self.chain.accept(sequence, sealed)?;
        let start = out.len();
        // The members in canonical order; the event's own bytes are canonical already.
        out.extend_from_slice(b"{\"event\":");
        out.extend_from_slice(&sealed.bytes);
        out.extend_from_slice(
            format!(
                ",\"hash\":\"{}\",\"sequence\":\"{sequence}\"}}\n",
                sealed.hash
            )
            .as_bytes(),
        );
        self.digest.update(&out[start..]);
        Ok(())
    }

    /// Ends the export; its last line is appended to `out`.
    ///
    /// # Errors
    /// [`FormatError::Chain`] inside an append (T-82); [`FormatError::Event`] never occurs for accepted events.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<Trailer, FormatError> {
        self.chain.ended()?;
        let trailer = Trailer {
            count: U64(self.chain.sequence()),
            digest: self.digest.finish(),
            heads: heads(&self.chain),
        };
        let line =
            aiws::object! { "trailer": canonical::to_value(&trailer).map_err(FormatError::Event)? };
        out.extend(canonical::to_bytes(&line));
        out.push(b'\n');
        Ok(trailer)
    }
}

/// Reads an export line by line and checks everything that `verify.py` checks.
pub struct Reader {
    header: Option<Header>,
    trailer: Option<Trailer>,
    chain: Chain,
    digest: Hasher,
    lines: u64,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            header: None,
            trailer: None,
            chain: Chain::new(),
            digest: Hasher::new(),
            lines: 0,
        }
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Reader")
            .field("sequence", &self.chain.sequence())
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The header, once the first line was read.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Takes the next line, without its line feed; gives its event with its sequence, if it has one.
    ///
    /// # Errors
    /// The first thing that is wrong: [`FormatError::Export`] with the line, or [`FormatError::Chain`] with the
    /// sequence, the stream and the revision.
    pub fn line(&mut self, line: &[u8]) -> Result<Option<(u64, Sealed)>, FormatError> {
        self.lines += 1;
        if self.trailer.is_some() {
            return Err(self.fault("expected nothing after the trailer"));
        }
        if self.header.is_none() {
            self.read_header(line)?;
        } else if line.starts_with(b"{\"trailer\":") {
            self.read_trailer(line)?;
            return Ok(None);
        } else {
            let (sequence, sealed) = self.read_event(line)?;
            self.chain.accept(sequence, &sealed)?;
            self.take(line);
            return Ok(Some((sequence, sealed)));
        }
        self.take(line);
        Ok(None)
    }

    /// The trailer, after the last line.
    ///
    /// # Errors
    /// [`FormatError::Export`] if the export ends without one.
    pub fn finish(self) -> Result<Trailer, FormatError> {
        let line = self.lines + 1;
        self.trailer.ok_or(FormatError::Export {
            line,
            what: "expected a trailer, found the end".to_owned(),
        })
    }

    fn take(&mut self, line: &[u8]) {
        self.digest.update(line);
        self.digest.update(b"\n");
    }

    fn fault(&self, what: impl Into<String>) -> FormatError {
        FormatError::Export {
            line: self.lines,
            what: what.into(),
        }
    }

    fn parse(&self, line: &[u8]) -> Result<Value, FormatError> {
        parse(line, MAX_EXPORT_LINE_BYTES).map_err(|what| self.fault(what))
    }

    fn read_header(&mut self, line: &[u8]) -> Result<(), FormatError> {
        let value = self.parse(line)?;
        let header: Header =
            canonical::from_value(&value).map_err(|cause| self.fault(cause.to_string()))?;
        if header.format != EXPORT_FORMAT {
            return Err(self.fault(format!(
                "expected format {EXPORT_FORMAT}, found {}",
                header.format
            )));
        }
        if header.version != FORMAT_VERSION {
            return Err(self.fault(format!(
                "expected version {FORMAT_VERSION}, found {}",
                header.version
            )));
        }
        self.header = Some(header);
        Ok(())
    }

    fn read_event(&self, line: &[u8]) -> Result<(u64, Sealed), FormatError> {
        let value = self.parse(line)?;
        let line: EventLine =
            canonical::from_value(&value).map_err(|cause| self.fault(cause.to_string()))?;
        let sequence = line.sequence.0;
        let sealed = sealed(sequence, &line.event, line.hash).map_err(|what| self.fault(what))?;
        Ok((sequence, sealed))
    }

    fn read_trailer(&mut self, line: &[u8]) -> Result<(), FormatError> {
        let value = self.parse(line)?;
        self.chain.ended()?;
        let (count, digest) = (self.chain.sequence(), self.digest.clone().finish());
        let trailer = trailer(&value, count, &self.chain, digest);
        self.trailer = Some(trailer.map_err(|what| self.fault(what))?);
        Ok(())
    }
}

/// One line as strict JSON in its canonical form.
pub(crate) fn parse(line: &[u8], bound: usize) -> Result<Value, String> {
    let value =
        strict::parse_within(line, bound, MAX_LINE_DEPTH).map_err(|cause| cause.to_string())?;
    match canonical::to_bytes(&value) == line {
        true => Ok(value),
        false => Err("expected canonical JSON, found another form of the same value".to_owned()),
    }
}

/// The event of a line, under the hash that stands beside it.
pub(crate) fn sealed(sequence: u64, event: &Value, expected: Digest) -> Result<Sealed, String> {
    let sealed = Sealed::from_bytes(&canonical::to_bytes(event))
        .map_err(|cause| format!("sequence {sequence}: {cause}"))?;
    if sealed.hash == expected {
        return Ok(sealed);
    }
    let found = sealed.hash;
    let (stream, revision) = (&sealed.event.stream, sealed.event.revision);
    Err(format!(
        "sequence {sequence}, stream {stream}, revision {revision}: {}",
        FormatError::Hash { expected, found }
    ))
}

/// The trailer of a last line, if it is that of the lines before.
pub(crate) fn trailer(
    value: &Value,
    count: u64,
    chain: &Chain,
    digest: Digest,
) -> Result<Trailer, String> {
    let inner = value.get("trailer").cloned().unwrap_or_default();
    let whole = value.as_object().is_some_and(|members| members.len() == 1);
    let trailer: Trailer = canonical::from_value(&inner).map_err(|cause| cause.to_string())?;
    if !whole {
        return Err("expected the trailer alone on its line".to_owned());
    }
    if trailer.count.0 != count {
        return Err(format!(
            "expected a count of {count}, found {}",
            trailer.count
        ));
    }
    if let Some(stream) = first_difference(&heads(chain), &trailer.heads) {
        return Err(format!(
            "the heads differ from the events, first at stream {stream}"
        ));
    }
    if trailer.digest != digest {
        return Err(format!(
            "expected digest {digest} of the lines before, found {}",
            trailer.digest
        ));
    }
    Ok(trailer)
}

/// An export that was read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its first line.
    pub header: Header,
    /// Its events with their sequences.
    pub events: Vec<(u64, Sealed)>,
    /// Its last line.
    pub trailer: Trailer,
}

/// Reads a whole export that is in memory.
///
/// # Errors
/// As [`Reader::line`] and [`Reader::finish`]; a last line without a line feed is refused too.
pub fn read(bytes: &[u8]) -> Result<Export, FormatError> {
    let mut reader = Reader::new();
    let mut events = Vec::new();
    let ended = FormatError::Export {
        line: 1,
        what: "expected lines that end with a line feed".to_owned(),
    };
    let lines = bytes.strip_suffix(b"\n").ok_or(ended.clone())?;
    for line in lines.split(|byte| *byte == b'\n') {
        events.extend(reader.line(line)?);
    }
    let header = reader.header.clone().ok_or(ended)?;
    let trailer = reader.finish()?;
    Ok(Export {
        header,
        events,
        trailer,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventLine {
    event: Value,
    hash: Digest,
    sequence: U64,
}

pub(crate) fn heads(chain: &Chain) -> Vec<HeadLine> {
    let line = |(stream, head): (&StreamId, &praxis_model::event::Head)| HeadLine {
        stream: stream.clone(),
        revision: head.revision,
        hash: head.hash,
    };
    chain.heads().map(line).collect()
}

fn first_difference<'a>(expected: &'a [HeadLine], found: &'a [HeadLine]) -> Option<&'a StreamId> {
    let differs = expected
        .iter()
        .zip(found)
        .find(|(a, b)| a != b)
        .map(|(a, _)| a);
    let longer = if expected.len() > found.len() {
        expected
    } else {
        found
    };
    let rest = longer.get(expected.len().min(found.len()));
    differs.or(rest).map(|line| &line.stream)
}

//! The frame: what one row of the log holds around an event's canonical bytes.
//!
//! Invariant: a frame decodes only if every byte is accounted for and the event's hash fits its bytes.
//! Written by the journal's writer, read by its replay, its readers and its verification.

use aiws::digest::{Digest, Hasher};

use crate::FORMAT_VERSION;
use crate::codec::{self, Layout};
use crate::error::FormatError;
use crate::limits::{FRAME_HEADER_BYTES, MAX_EVENT_BYTES, MAX_FRAME_BYTES};
use crate::seal::{Sealed, hash_of};

/// The domain tag of frame checks.
pub const FRAME_TAG: &str = "aiws-frame";

/// A row of the log. Only [`Frame::bytes`] is under the event's hash; `previous` and `boot` are hints of this store,
/// under the frame's own check: who owned a run is decided by them, so a changed bit in them must not go unseen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The codec that the frame is written in; the first byte.
    pub codec: u8,
    /// Log sequence of the stream's previous event; 0 for its first. A tail is walked back along these.
    pub previous: u64,
    /// The owner's marker (T-16): the number of the boot, on a run's first append of a boot; else 0.
    pub boot: u64,
    /// The event's hash.
    pub hash: Digest,
    /// The event's canonical JSON.
    pub bytes: &'a [u8],
}

aiws::veiled! { Frame<'a> { codec previous boot hash } bytes; }

impl<'a> Frame<'a> {
    /// The frame of a sealed event in this build's codec.
    pub fn of(sealed: &'a Sealed, previous: u64, boot: u64) -> Self {
        Self {
            codec: FORMAT_VERSION,
            previous,
            boot,
            hash: sealed.hash,
            bytes: &sealed.bytes,
        }
    }

    /// Appends the frame's bytes to `out`, which is reused from frame to frame.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] for an event above the bound; `out` is as before.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        if self.bytes.len() > MAX_EVENT_BYTES {
            return Err(FormatError::TooLarge {
                found: self.bytes.len(),
                limit: MAX_EVENT_BYTES,
            });
        }
        let start = out.len();
        out.reserve(FRAME_HEADER_BYTES + self.bytes.len());
        let layout = Layout {
            codec: self.codec,
            previous: self.previous,
            boot: self.boot,
            hash: *self.hash.as_bytes(),
            check: check(self.codec, self.previous, self.boot, &self.hash),
            bytes: self.bytes,
        };
        codec::encode(&layout, out).map_err(|what| {
            out.truncate(start);
            FormatError::Frame { what }
        })
    }

    /// Reads a frame and checks it: codec, layout, nothing left over, re-encoding, hash, check.
    ///
    /// # Errors
    /// [`FormatError::UnknownCodec`], [`FormatError::Frame`] or [`FormatError::Hash`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (frame, written) = Self::layout(bytes)?;
        let found = hash_of(frame.bytes);
        if found != frame.hash {
            return Err(FormatError::Hash {
                expected: frame.hash,
                found,
            });
        }
        if written != check(frame.codec, frame.previous, frame.boot, &frame.hash) {
            return Err(FormatError::Frame {
                what: "its check does not fit to its previous sequence and its owner marker; they were changed"
                    .to_owned(),
            });
        }
        Ok(frame)
    }

    /// As [`Frame::decode`] without computing the hash and the check, for a look at what damaged bytes say.
    ///
    /// # Errors
    /// [`FormatError::UnknownCodec`] or [`FormatError::Frame`].
    pub fn decode_unhashed(bytes: &'a [u8]) -> Result<Self, FormatError> {
        Self::layout(bytes).map(|(frame, _)| frame)
    }

    /// The frame and the check that is written in it.
    fn layout(bytes: &'a [u8]) -> Result<(Self, [u8; 8]), FormatError> {
        match bytes.first() {
            None => {
                return Err(FormatError::Frame {
                    what: "expected a codec byte, found nothing".to_owned(),
                });
            }
            Some(&FORMAT_VERSION) => {}
            Some(&found) => {
                return Err(FormatError::UnknownCodec {
                    found,
                    known: FORMAT_VERSION,
                });
            }
        }
        if bytes.len() > MAX_FRAME_BYTES {
            let what = format!(
                "expected at most {MAX_FRAME_BYTES} bytes, found {}",
                bytes.len()
            );
            return Err(FormatError::Frame { what });
        }
        let layout = codec::decode(bytes).map_err(|what| FormatError::Frame { what })?;
        let frame = Self {
            codec: layout.codec,
            previous: layout.previous,
            boot: layout.boot,
            hash: Digest(layout.hash),
            bytes: layout.bytes,
        };
        Ok((frame, layout.check))
    }
}

/// The first 8 bytes of SHA-256 over the domain tag, a line feed, and the members before the check as they are stored.
fn check(codec: u8, previous: u64, boot: u64, hash: &Digest) -> [u8; 8] {
    let mut hasher = Hasher::new();
    hasher.update(FRAME_TAG.as_bytes());
    hasher.update(b"\n");
    hasher.update(&[codec]);
    hasher.update(&previous.to_le_bytes());
    hasher.update(&boot.to_le_bytes());
    hasher.update(hash.as_bytes());
    let mut check = [0; 8];
    for (byte, of_digest) in check.iter_mut().zip(hasher.finish().as_bytes()) {
        *byte = *of_digest;
    }
    check
}

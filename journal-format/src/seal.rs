//! Hop 3 of 5: an event becomes canonical bytes and a hash. Previous: model/decide, next: journal/writer.
//!
//! Invariant: the hash covers every member of the event and nothing else; bytes that are read back are accepted
//! only in the one form that sealing writes. Called by the engine's actors and by everything that reads the log.

use aiws::canonical;
use aiws::digest::{Digest, tagged};
use aiws::error::Error;
use aiws::strict;
use praxis_model::event::{CODEC_VERSION, Event, Head};
use praxis_plant::{self as plant, Plant};

use crate::error::FormatError;
use crate::frame::Frame;
use crate::limits::MAX_EVENT_BYTES;
use crate::link::PROFILE;

/// The domain tag of event hashes.
pub const EVENT_TAG: &str = "aiws-event";

/// An event with its canonical bytes and its hash; only this crate makes one, so the three always fit.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The event.
    pub event: Event,
    /// Its canonical JSON.
    pub bytes: Vec<u8>,
    /// SHA-256 over the domain tag, a line feed and the bytes.
    pub hash: Digest,
}

aiws::veiled! { Sealed { event hash } bytes; }

/// Seals an event, and reads it back: what a reader would refuse is never stored.
///
/// # Errors
/// [`FormatError::NotReadBack`] for content that has no canonical form or would be refused by
/// [`Sealed::from_bytes`], [`FormatError::TooLarge`] above 4 MiB.
pub fn seal(event: Event) -> Result<Sealed, FormatError> {
    let bytes = canonical::bytes_of(&event).map_err(|cause| not_read_back(&cause))?;
    if bytes.len() > MAX_EVENT_BYTES {
        return Err(FormatError::TooLarge {
            found: bytes.len(),
            limit: MAX_EVENT_BYTES,
        });
    }
    let read = Sealed::from_bytes(&bytes).map_err(|cause| not_read_back(&cause))?;
    if read.event != event {
        return Err(not_read_back(&"another event is read back"));
    }
    Ok(read)
}

fn not_read_back(cause: &dyn std::fmt::Display) -> FormatError {
    FormatError::NotReadBack {
        what: cause.to_string(),
    }
}

/// The hash of an event's canonical bytes.
pub fn hash_of(bytes: &[u8]) -> Digest {
    if plant::is(Plant::HashWithoutEpoch) {
        return tagged(EVENT_TAG, &without_epoch(bytes));
    }
    tagged(EVENT_TAG, bytes)
}

/// The planted defect: the bytes but for the owner's epoch.
fn without_epoch(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let Some((before, after)) = text.split_once("\"ownerEpoch\":") else {
        return bytes.to_vec();
    };
    let rest = after.find(',').map_or("", |at| &after[at..]);
    format!("{before}{rest}").into_bytes()
}

impl Sealed {
    /// Where the event's stream stands after it.
    pub fn head(&self) -> Head {
        Head {
            revision: self.event.revision,
            hash: self.hash,
        }
    }

    /// Reads an event back: strict JSON, a known event, and exactly the bytes that sealing it would write.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`], [`FormatError::Event`] with a pointer, [`FormatError::UnknownRules`], or
    /// [`FormatError::NotCanonical`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() > MAX_EVENT_BYTES {
            return Err(FormatError::TooLarge {
                found: bytes.len(),
                limit: MAX_EVENT_BYTES,
            });
        }
        let value = strict::parse_with_limit(bytes, MAX_EVENT_BYTES).map_err(FormatError::Event)?;
        let written = canonical::from_value(&value)
            .map_err(FormatError::Event)
            .and_then(|event: Event| {
                consistent(&event)?;
                let written = canonical::bytes_of(&event).map_err(FormatError::Event)?;
                Ok((event, written))
            });
        let event = match written {
            Ok((event, written)) if written == bytes => event,
            // That bytes are not canonical is said before what they say; only where something is wrong is it asked.
            // A member that is left out may be written as null; only the form that seal writes is ours.
            other => {
                same(&canonical::to_bytes(&value), bytes)?;
                let (event, written) = other?;
                same(&written, bytes)?;
                event
            }
        };
        Ok(Self {
            event,
            bytes: bytes.to_vec(),
            hash: hash_of(bytes),
        })
    }

    /// Reads the event of a frame whose hash was checked by [`Frame::decode`].
    ///
    /// # Errors
    /// As [`Sealed::from_bytes`], and [`FormatError::Hash`] where the frame's hash is not the event's.
    pub fn from_frame(frame: &Frame<'_>) -> Result<Self, FormatError> {
        let sealed = Self::from_bytes(frame.bytes)?;
        if sealed.hash != frame.hash {
            return Err(FormatError::Hash {
                expected: frame.hash,
                found: sealed.hash,
            });
        }
        Ok(sealed)
    }
}

/// What an event says of itself in two places, and what no record type bounds (section 2 of `FORMAT.md`).
fn consistent(event: &Event) -> Result<(), FormatError> {
    let shape = |pointer: &str, what: String| Err(FormatError::Event(Error::schema(pointer, what)));
    let codec = &event.codec;
    if codec.version.0 != CODEC_VERSION {
        return Err(FormatError::UnknownRules {
            found: codec.version.0,
            known: CODEC_VERSION,
        });
    }
    if codec.profile != PROFILE {
        let what = format!("expected {PROFILE}, found {:?}", codec.profile);
        return shape("/codec/profile", what);
    }
    let (k, of) = (event.part.k, event.part.of);
    if k.0 == 0 || k > of {
        let what = format!("expected part 1 to N of N, found {k} of {of}");
        return shape("/part", what);
    }
    if event.kind != event.command.kind() {
        let (kind, command) = (event.kind.name(), event.command.kind().name());
        let what = format!("expected the command's type {command}, found {kind}");
        return shape("/type", what);
    }
    let opens = &event.outcome.opens;
    match opens
        .iter()
        .find(|stream| stream.as_str().parse::<Digest>().is_err())
    {
        Some(stream) => shape(
            "/outcome/opens",
            format!("expected streams of 64 lowercase hex digits, found {stream}"),
        ),
        None => Ok(()),
    }
}

fn same(canonical: &[u8], found: &[u8]) -> Result<(), FormatError> {
    if canonical == found {
        return Ok(());
    }
    let at = canonical
        .iter()
        .zip(found)
        .take_while(|(a, b)| a == b)
        .count();
    Err(FormatError::NotCanonical { at })
}

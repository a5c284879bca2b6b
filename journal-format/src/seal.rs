//! Hop 3 of 5: an event becomes canonical bytes and a hash. Previous: model/decide, next: journal/writer.
//!
//! Invariant: the hash covers every member of the event and nothing else; bytes that are read back are accepted
//! only in the one form that sealing writes. Called by the engine's actors and by everything that reads the log.

use aiws::canonical;
use aiws::digest::{Digest, tagged};
use aiws::strict;
use praxis_model::event::{Event, Head};

use crate::error::FormatError;
use crate::frame::Frame;
use crate::limits::MAX_EVENT_BYTES;

/// The domain tag of event hashes.
pub const EVENT_TAG: &str = "aiws-event";

/// An event with its canonical bytes and its hash; only this crate makes one, so the three always fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The event.
    pub event: Event,
    /// Its canonical JSON.
    pub bytes: Vec<u8>,
    /// SHA-256 over the domain tag, a line feed and the bytes.
    pub hash: Digest,
}

/// Seals an event.
///
/// # Errors
/// [`FormatError::Event`] for content without a canonical form, [`FormatError::TooLarge`] above 4 MiB.
pub fn seal(event: Event) -> Result<Sealed, FormatError> {
    let bytes = canonical::bytes_of(&event).map_err(FormatError::Event)?;
    if bytes.len() > MAX_EVENT_BYTES {
        return Err(FormatError::TooLarge {
            found: bytes.len(),
            limit: MAX_EVENT_BYTES,
        });
    }
    let hash = hash_of(&bytes);
    Ok(Sealed { event, bytes, hash })
}

/// The hash of an event's canonical bytes.
pub fn hash_of(bytes: &[u8]) -> Digest {
    tagged(EVENT_TAG, bytes)
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
    /// [`FormatError::TooLarge`], [`FormatError::Event`] with a pointer, or [`FormatError::NotCanonical`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() > MAX_EVENT_BYTES {
            return Err(FormatError::TooLarge {
                found: bytes.len(),
                limit: MAX_EVENT_BYTES,
            });
        }
        let value = strict::parse_with_limit(bytes, MAX_EVENT_BYTES).map_err(FormatError::Event)?;
        same(&canonical::to_bytes(&value), bytes)?;
        let event: Event = canonical::from_value(&value).map_err(FormatError::Event)?;
        // A member that is left out may be written as null; only the form that seal writes is ours.
        same(
            &canonical::bytes_of(&event).map_err(FormatError::Event)?,
            bytes,
        )?;
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

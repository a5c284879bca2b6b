//! Frames as a verification reads them: whole, or what can still be made out of a damaged one.
//!
//! Invariant: a damaged frame is never taken for its event; what it says of itself only names it. Called by the walk.

use aiws::id::StreamId;
use praxis_journal_format::{FormatError, Frame, Sealed};

/// What a frame says beside its event.
pub(super) struct Hints {
    pub previous: u64,
    pub boot: u64,
}

/// The event of a frame, with what stands beside it.
pub(super) fn open(bytes: &[u8]) -> Result<(Hints, Sealed), FormatError> {
    let frame = Frame::decode(bytes)?;
    let sealed = Sealed::from_frame(&frame)?;
    Ok((
        Hints {
            previous: frame.previous,
            boot: frame.boot,
        },
        sealed,
    ))
}

/// What a damaged frame says of its event.
#[derive(Default)]
pub(super) struct Glimpse {
    pub stream: Option<StreamId>,
    pub revision: Option<u64>,
    pub version: Option<u64>,
}

/// Which event a damaged frame says it is, if it can still be read.
pub(super) fn glimpse(bytes: &[u8]) -> Option<Glimpse> {
    let frame = Frame::decode_unhashed(bytes).ok()?;
    let value = aiws::strict::parse_with_limit(frame.bytes, aiws::limits::MAX_EVENT_BYTES).ok()?;
    let number = |pointer: &str| value.pointer(pointer)?.as_str()?.parse().ok();
    let stream = value.get("stream").and_then(|stream| stream.as_str());
    Some(Glimpse {
        stream: stream.and_then(|stream| StreamId::new(stream).ok()),
        revision: number("/revision"),
        version: number("/codec/version"),
    })
}

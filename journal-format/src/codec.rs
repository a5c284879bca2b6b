//! The frame's bytes: the one module that names bincode.
//!
//! Invariant: little endian, fixed width, nothing left over; what decodes re-encodes to the same bytes.
//! Called by frame alone, so that the library can be replaced behind the codec byte.

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use bincode::enc::write::Writer;
use bincode::error::EncodeError;

use crate::limits::MAX_FRAME_BYTES;

const CONFIG: Configuration<LittleEndian, Fixint, Limit<MAX_FRAME_BYTES>> =
    bincode::config::standard()
        .with_fixed_int_encoding()
        .with_limit::<MAX_FRAME_BYTES>();

/// Codec 0, member by member in the order of the bytes.
#[derive(bincode::Encode, bincode::BorrowDecode)]
pub(crate) struct Layout<'a> {
    pub codec: u8,
    pub previous: u64,
    pub boot: u64,
    pub hash: [u8; 32],
    pub check: [u8; 8],
    pub bytes: &'a [u8],
}

/// Appends the bytes of `layout` to `out`; on an error `out` may hold a part of them.
pub(crate) fn encode(layout: &Layout<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    bincode::encode_into_writer(layout, Grow(out), CONFIG).map_err(|cause| cause.to_string())
}

/// Reads a layout that borrows from `bytes` and fills them to the last.
pub(crate) fn decode(bytes: &[u8]) -> Result<Layout<'_>, String> {
    let (layout, used): (Layout<'_>, usize) =
        bincode::borrow_decode_from_slice(bytes, CONFIG).map_err(|cause| cause.to_string())?;
    if used != bytes.len() {
        return Err(format!(
            "expected {used} bytes, found {} more",
            bytes.len() - used
        ));
    }
    // bincode accepts more than one form of some values; only the form that it writes is ours.
    let mut rest = Compare(bytes);
    bincode::encode_into_writer(&layout, &mut rest, CONFIG)
        .map_err(|_| "the bytes are not the ones that their content encodes to".to_owned())?;
    Ok(layout)
}

struct Grow<'a>(&'a mut Vec<u8>);

impl Writer for Grow<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Takes what is written and wants it to be the next of the expected bytes.
struct Compare<'a>(&'a [u8]);

impl Writer for Compare<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0 = self
            .0
            .strip_prefix(bytes)
            .ok_or(EncodeError::UnexpectedEnd)?;
        Ok(())
    }
}

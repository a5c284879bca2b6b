//! Base 64 with the standard alphabet and padding (RFC 4648, section 4), as checkpoints and keys are written.
//!
//! Invariant: every text that is read is the one text of its bytes: padded, and with no bit set that stands for nothing.
//! Called by `note` and `checkpoint`.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of some bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place) & 63) as usize;
            match place <= chunk.len() {
                true => text.push(char::from(ALPHABET[index])),
                false => text.push('='),
            }
        }
    }
    text
}

/// The bytes of a text; none if it is not written as [`encode`] writes it.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    if !text.len().is_multiple_of(4) {
        return None;
    }
    for chunk in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for char in chunk {
            let value = match char {
                b'=' => 0,
                char => ALPHABET.iter().position(|known| known == char)?,
            };
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        let padding = chunk.iter().filter(|char| **char == b'=').count();
        let [_, group @ ..] = bits.to_be_bytes();
        bytes.extend_from_slice(group.get(..3usize.checked_sub(padding)?)?);
    }
    // Padding elsewhere, and bits that stand for nothing, are not what is written.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648_hold_and_nothing_else_is_read() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        for refused in [
            "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "====", "=g==", "Z===", "Zm9v\n", "Zm9-",
            "Zm 9",
        ] {
            assert_eq!(decode(refused), None, "{refused}");
        }
    }
}

//! The raw claim token: 32 secret bytes that exist only in the reply to the claimant (HD-02.10).
//! Invariant: no Debug, Display or Serialize shows it; only `expose` does, and only its fingerprint is stored.
//! Called by the owner of a run when it grants a claim, and where a claimant presents its token.

use std::fmt;

use crate::digest::{Digest, sha256};
use crate::error::Error;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Characters of 32 bytes in base64url without padding.
const TEXT_CHARS: usize = 43;

/// A raw claim token.
///
/// ```
/// use aiws::token::ClaimToken;
/// let token = ClaimToken::from_bytes([7; 32]);
/// assert_eq!(format!("{token:?}"), "ClaimToken(redacted)");
/// assert!(ClaimToken::parse(&token.expose())?.fingerprint().ct_eq(&token.fingerprint()));
/// # Ok::<(), aiws::error::Error>(())
/// ```
///
/// It has no serialized form:
///
/// ```compile_fail
/// fn stored<T: serde::Serialize>(_: T) {}
/// stored(aiws::token::ClaimToken::from_bytes([7; 32]));
/// ```
#[derive(Clone)]
pub struct ClaimToken([u8; 32]);

impl ClaimToken {
    /// Wraps 32 bytes that were derived under a process key.
    pub fn from_bytes(bytes: [u8; 32]) -> ClaimToken {
        ClaimToken(bytes)
    }

    /// The secret text: 43 characters of base64url.
    pub fn expose(&self) -> String {
        let mut text = String::with_capacity(TEXT_CHARS);
        for group in self.0.chunks(3) {
            let bits = group
                .iter()
                .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
                << (8 * (3 - group.len()));
            for place in 0..=group.len() {
                text.push(char::from(
                    ALPHABET[(bits >> (18 - 6 * place)) as usize & 63],
                ));
            }
        }
        text
    }

    /// Reads a presented text.
    ///
    /// # Errors
    /// `SCHEMA_INVALID` unless it is the canonical base64url of 32 bytes; the message never repeats the text.
    pub fn parse(text: &str) -> Result<ClaimToken, Error> {
        let refused = || {
            Error::schema(
                "",
                format!("expected a claim token of {TEXT_CHARS} base64url characters"),
            )
        };
        if text.len() != TEXT_CHARS {
            return Err(refused());
        }
        let (mut bytes, mut bits, mut filled, mut end) = ([0u8; 32], 0u32, 0u32, 0usize);
        for char in text.bytes() {
            let value = ALPHABET
                .iter()
                .position(|known| *known == char)
                .ok_or_else(refused)?;
            bits = (bits << 6 | value as u32) & 0xffff;
            filled += 6;
            if filled >= 8 {
                filled -= 8;
                bytes[end] = (bits >> filled) as u8;
                end += 1;
            }
        }
        // The last character carries two bits that belong to no byte; other than zero they would give one token two texts.
        if bits & ((1 << filled) - 1) != 0 {
            return Err(refused());
        }
        Ok(ClaimToken(bytes))
    }

    /// What the ledger keeps instead: SHA-256 of the 43 characters. Compare with [`Digest::ct_eq`].
    pub fn fingerprint(&self) -> Digest {
        sha256(self.expose().as_bytes())
    }
}

impl fmt::Debug for ClaimToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ClaimToken(redacted)")
    }
}

//! SHA-256 digests and HMAC, the only place of the workspace that names `sha2` and `hmac`.
//! Invariant: a digest in text is exactly 64 lowercase hex characters (DIG-1).
//! Called wherever material is identified; a digest proves neither authorship nor authority.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// A SHA-256 digest.
///
/// ```
/// let digest = aiws::digest::sha256(b"abc");
/// assert_eq!(digest.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
/// assert_eq!(digest.to_string().parse::<aiws::digest::Digest>()?, digest);
/// # Ok::<(), aiws::error::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// All zeros: the previous hash of a stream's first event where nothing came before.
    pub const ZERO: Digest = Digest([0; 32]);

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Hands the digest's text to somebody, without an allocation: every event has dozens.
    fn with_text<T>(&self, use_it: impl FnOnce(&str) -> T) -> T {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0u8; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(&self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        // Hexadecimal digits are UTF-8.
        use_it(str::from_utf8(&text).unwrap_or_default())
    }

    /// Compares in a time that does not depend on where the digests differ; for fingerprints of secrets.
    pub fn ct_eq(&self, other: &Digest) -> bool {
        let difference = self
            .0
            .iter()
            .zip(&other.0)
            .fold(0u8, |sum, (a, b)| sum | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

/// The digest of some bytes.
pub fn sha256(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// The digest of `tag`, a line feed, and some bytes: digests under different tags never stand for each other.
pub fn tagged(tag: &str, bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(tag.as_bytes());
    hasher.update(b"\n");
    hasher.update(bytes);
    hasher.finish()
}

/// HMAC-SHA-256 of some bytes under a key of any length.
pub fn hmac_sha256(key: &[u8], data: &[u8]) -> [u8; 32] {
    // HMAC hashes a key that is longer than its block and pads a shorter one; doing so here leaves no length to refuse.
    let mut block = [0u8; 64];
    if key.len() > block.len() {
        block[..32].copy_from_slice(sha256(key).as_bytes());
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(data);
    mac.finalize().into_bytes().into()
}

/// A digest over bytes that come in pieces.
///
/// ```
/// let mut hasher = aiws::digest::Hasher::new();
/// hasher.update(b"a");
/// hasher.update(b"bc");
/// assert_eq!(hasher.finish(), aiws::digest::sha256(b"abc"));
/// ```
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// A digest over nothing yet.
    pub fn new() -> Hasher {
        Hasher::default()
    }

    /// Takes in the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| out.write_str(text))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Digest, Error> {
        let refused = || {
            Error::schema(
                "",
                "expected a SHA-256 digest of 64 lowercase hex characters",
            )
        };
        if text.len() != 64 {
            return Err(refused());
        }
        let mut bytes = [0u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let (high, low) = (
                nibble(pair[0]).ok_or_else(refused)?,
                nibble(pair[1]).ok_or_else(refused)?,
            );
            *byte = high << 4 | low;
        }
        Ok(Digest(bytes))
    }
}

impl From<Digest> for crate::json::Value {
    fn from(digest: Digest) -> crate::json::Value {
        crate::json::Value::String(digest.to_string())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_text(|text| serializer.serialize_str(text))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(|error: Error| D::Error::custom(error.message))
    }
}

fn nibble(char: u8) -> Option<u8> {
    match char {
        b'0'..=b'9' => Some(char - b'0'),
        b'a'..=b'f' => Some(char - b'a' + 10),
        _ => None,
    }
}

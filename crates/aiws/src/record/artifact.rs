//! Artifacts by reference: where the exact bytes are, and how they are recognized.
//! Invariant: a record holds no bytes (HF-01.4), and a locator is made of names that cannot carry a credential (HF-04.3).
//! Called by the manifest, and by whoever stores or verifies bytes.

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use super::{Record, fields};
use crate::decimal::{Dec, Ms};
use crate::digest::Digest;
use crate::id::{ActorId, Id};

/// A durable artifact by reference (HF-04.2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Artifact {
    /// Where the bytes are.
    pub locator: Locator,
    /// SHA-256 of the exact bytes (HF-04.5).
    pub digest: Digest,
    /// Their number.
    pub size_bytes: Dec,
    /// Their media type.
    #[serde(deserialize_with = "fields::name")]
    pub media_type: String,
    /// Digest of the schema they follow, where there is one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional"
    )]
    pub schema_digest: Option<Digest>,
    /// Who keeps them.
    pub retention_owner: ActorId,
    /// Until when, at least.
    pub retain_until_ms: Ms,
}

/// Where an artifact's bytes are: names, never a signed URL and never a credential (HF-04.3).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Locator {
    /// The store.
    #[serde(deserialize_with = "plain_name")]
    pub store: Id,
    /// The key in the store.
    #[serde(deserialize_with = "plain_name")]
    pub key: Id,
    /// The immutable version of the key.
    #[serde(deserialize_with = "plain_name")]
    pub version: Id,
}

impl Record for Artifact {}

/// A locator's part, as it was read.
fn plain_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
    let name = Id::deserialize(deserializer)?;
    match suspect(name.as_str()) {
        Some(found) => Err(D::Error::custom(format_args!(
            "expected a plain name, found {found}"
        ))),
        None => Ok(name),
    }
}

/// What in a name could make it a URL or hide one, and so carry a credential; a name needs none of it (HF-04.3).
/// The text itself is never repeated in an error, for it may be the credential.
fn suspect(text: &str) -> Option<&'static str> {
    if text.chars().any(char::is_control) || text.trim() != text {
        return Some("a control character, or space around it");
    }
    if text.contains("://") || scheme(text) {
        return Some("a URL scheme");
    }
    if text.contains(['?', '#']) {
        return Some("a query or a fragment");
    }
    if text.contains('\\') {
        return Some("a backslash");
    }
    if let Some((_, rest)) = text.split_once('@')
        && rest.contains('/')
    {
        return Some("user information");
    }
    let encoded = |part: &str| {
        let digits = part.bytes().take(2);
        digits.filter(u8::is_ascii_hexdigit).count() == 2
    };
    if text.split('%').skip(1).any(encoded) {
        return Some("a percent-encoded character");
    }
    None
}

/// Whether the text begins as a URL of any scheme does (RFC 3986, section 3.1); `data:` is one.
fn scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else {
        return false;
    };
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(rest)
}

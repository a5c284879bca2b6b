//! The facts of an artifact's record that its bytes do not determine.
//! Invariant: they are checked before a put touches the disk, so a record that is refused leaves nothing behind.
//! `FileArtifacts` calls it at the start and at the end of a put.

use aiws::canonical;
use aiws::decimal::{Dec, Ms};
use aiws::digest::Digest;
use aiws::error::{Code, Error};
use aiws::id::{ActorId, Id};
use aiws::record::{Artifact, Locator};

use crate::error::ArtifactError;
use crate::limits::MEDIA_TYPE_BYTES_MAX;

/// The name of this kind of store in a locator; where the directory lies is the engine's affair, and no secret.
const STORE_NAME: &str = "directory";

/// What the caller of a put says about the bytes.
pub(crate) struct Facts {
    store: Id,
    key: Id,
    media_type: String,
    retention_owner: ActorId,
    retain_until_ms: Ms,
}

impl Facts {
    /// Checks what was said; the record that comes of it will be valid for any digest and size.
    pub(crate) fn check(
        locator_key: &str,
        media_type: &str,
        retention_owner: &ActorId,
        retain_until_ms: u64,
    ) -> Result<Self, ArtifactError> {
        if !is_media_type(media_type) {
            let message = format!(
                "expected a media type such as text/plain of at most {MEDIA_TYPE_BYTES_MAX} bytes, \
                 found {media_type:?}"
            );
            return Err(Error::new(Code::SchemaInvalid, message)
                .at("/mediaType")
                .into());
        }
        let facts = Self {
            store: Id::new(STORE_NAME)?,
            key: Id::new(locator_key).map_err(|error| error.at("/locator/key"))?,
            media_type: media_type.to_owned(),
            retention_owner: retention_owner.clone(),
            retain_until_ms: Ms::from_u64(retain_until_ms),
        };
        facts.record(Digest::ZERO, 0)?;
        Ok(facts)
    }

    /// The record of the bytes with this digest and size, through the same closed check that every reader makes.
    pub(crate) fn record(
        &self,
        digest: Digest,
        size_bytes: u64,
    ) -> Result<Artifact, ArtifactError> {
        let artifact = Artifact {
            locator: Locator {
                store: self.store.clone(),
                key: self.key.clone(),
                // The bytes never change, so the digest is the version (HF-04.2).
                version: Id::new(digest.to_string())?,
            },
            digest,
            size_bytes: Dec::from_u64(size_bytes),
            media_type: self.media_type.clone(),
            schema_digest: None,
            retention_owner: self.retention_owner.clone(),
            retain_until_ms: self.retain_until_ms,
        };
        Ok(canonical::from_value(&canonical::to_value(&artifact)?)?)
    }
}

/// Whether the text reads as `type/subtype`, parameters allowed, in printable ASCII.
fn is_media_type(text: &str) -> bool {
    let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let mut names = text.splitn(2, '/').map(str::trim);
    let both = names.next().is_some_and(|name| !name.is_empty())
        && names.next().is_some_and(|name| !name.is_empty());
    printable && both && text.len() <= MEDIA_TYPE_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::is_media_type;

    #[test]
    fn media_types_are_two_names() {
        for good in [
            "text/plain",
            "application/json",
            "text/plain; charset=utf-8",
        ] {
            assert!(is_media_type(good), "{good}");
        }
        let long = format!("text/{}", "x".repeat(251));
        for bad in [
            "",
            "text",
            "/plain",
            "text/",
            "te\u{7f}xt/plain",
            "text/pl\nain",
            &long,
        ] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }
}

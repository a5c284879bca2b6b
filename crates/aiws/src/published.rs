//! The published schemas: what a record or a request looks like, for somebody who implements the protocol elsewhere.
//! Invariant: each is one closed document of Draft 2020-12 that refers to nothing outside itself; its digest is pinned (HM-01.4).
//! Called by `praxis schema`, and by whoever checks what another implementation wrote.

use crate::canonical;
use crate::digest::{Digest, sha256};
use crate::error::Error;
use crate::json::Value;
use crate::schema::Schema;

/// A schema that this project publishes, exactly as it stands in `crates/aiws/schema`.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// What it is called: `finite-v1` or `aiws-handoff-1`.
    pub name: &'static str,
    /// Its exact bytes.
    pub text: &'static str,
    /// SHA-256 of these bytes, in hex, as it was pinned; a test holds the text to it.
    pub pinned: &'static str,
}

/// All published schemas.
pub const PUBLISHED: &[Published] = &[
    Published {
        name: "finite-v1",
        text: include_str!("../schema/finite-v1.schema.json"),
        pinned: "acb5b99463cbd93bd2cc03c6b4a1a86183c9e77f3a15f682d4836b9497b51ce7",
    },
    Published {
        name: "aiws-handoff-1",
        text: include_str!("../schema/aiws-handoff-1.schema.json"),
        pinned: "05b11a233a457aebbbd7a941777dc8ac58052b437b7e89c492baa384c4ac7068",
    },
];

/// The published schema of a name.
///
/// ```
/// use aiws::published::schema_of;
/// let schema = schema_of("aiws-handoff-1").ok_or("no such schema")?;
/// let reference = schema.definition("Ref")?;
/// assert!(reference.validate(&aiws::object! { "id": "plan", "revision": "1" }).is_ok());
/// assert!(reference.validate(&aiws::object! { "id": "plan", "revision": "01" }).is_err());
/// assert_eq!(schema.digest().to_string(), schema.pinned);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn schema_of(name: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|schema| schema.name == name)
}

impl Published {
    /// SHA-256 of the exact bytes of the document.
    pub fn digest(&self) -> Digest {
        sha256(self.text.as_bytes())
    }

    /// The document as a value.
    ///
    /// # Errors
    /// None for a document of this crate; the reader is the strict one.
    pub fn document(&self) -> Result<Value, Error> {
        crate::strict::parse(self.text.as_bytes())
    }

    /// The names of its definitions, one for each record, command, closed set of names and kind of text.
    ///
    /// # Errors
    /// As for [`Published::document`].
    pub fn definitions(&self) -> Result<Vec<String>, Error> {
        let document = self.document()?;
        let named = document.get("$defs").and_then(Value::as_object);
        Ok(named
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect())
    }

    /// The schema of one record or command, ready to check values with.
    ///
    /// # Errors
    /// `SCHEMA_INVALID` where there is no definition of that name.
    pub fn definition(&self, name: &str) -> Result<Schema, Error> {
        let mut document = self.document()?;
        let known = document
            .get("$defs")
            .is_some_and(|named| named.get(name).is_some());
        let Value::Object(members) = &mut document else {
            return Err(Error::schema("", "expected a schema"));
        };
        if !known {
            let message = format!(
                "expected a definition of the schema {}, found none of that name",
                self.name
            );
            return Err(Error::schema("/$defs", message));
        }
        members.insert("$ref".to_owned(), Value::from(format!("#/$defs/{name}")));
        Schema::trusted(&canonical::to_serde(&document))
    }
}

//! The closed records of the protocol: one Rust type per record, one file per family.
//! Invariant: unknown members, missing members, `null` where none is written and texts out of bounds are refused with a pointer (HF-01.1).
//! Called by every crate; relations between records are the model's business, not this module's.

mod artifact;
mod config;
mod contract;
mod delivery;
pub mod fields;
mod graph;
mod hold;
mod invalidation;
mod manifest;
mod summary;
mod work;

pub use artifact::*;
pub use config::*;
pub use contract::*;
pub use delivery::*;
pub use graph::*;
pub use hold::*;
pub use invalidation::*;
pub use manifest::*;
pub use summary::*;
pub use work::*;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::decimal::Dec;
use crate::digest::{Digest, sha256};
use crate::error::Error;
use crate::id::{HandoffId, Id};
use crate::json::Value;

/// Makes an enum whose wire form is one of a closed set of names.
macro_rules! names {
    ($($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $each:literal])* $variant:ident = $text:literal,)* })*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[doc = $each])* $variant,)* }

        impl $name {
            /// Every value, in the order of the table.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The name on the wire.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The value of this name; names are matched exactly.
            pub fn parse(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.name())
            }
        }

        impl From<$name> for crate::json::Value {
            fn from(value: $name) -> crate::json::Value {
                crate::json::Value::from(value.name())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let text = String::deserialize(deserializer)?;
                $name::parse(&text).ok_or_else(|| serde::de::Error::unknown_variant(&text, &[$($text,)*]))
            }
        }
    )*};
}
pub(crate) use names;

/// Makes a record whose members must also fit together: its `check` runs whenever one is read, however it is read.
/// The derive on the record carries `remote = "Self"`, which leaves the two traits to this macro.
macro_rules! checked {
    ($($name:ident)*) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $name::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let record = $name::deserialize(deserializer)?;
                record.check().map_err(crate::de::nested::<D::Error>)?;
                Ok(record)
            }
        }
    )*};
}
pub(crate) use checked;

/// Where an item stands for the second time.
pub(crate) fn repeated<T: Ord>(mut items: impl Iterator<Item = T>) -> Option<usize> {
    let mut seen = std::collections::BTreeSet::new();
    items.position(|item| !seen.insert(item))
}

names! {
    /// What kind of actor did something; only the host decides it, never the message (HC-ENV.6).
    ActorKind {
        /// A person whose authentication is on record.
        Human = "HUMAN",
        /// An approved rule.
        Rule = "RULE",
        /// An agent or a tool.
        Agent = "AGENT",
        /// The engine itself.
        System = "SYSTEM",
        /// A direct call without context (FV-GRT.7).
        Unattributed = "UNATTRIBUTED",
    }
}

/// A reference to an immutable snapshot of something that has revisions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ref {
    /// Its id.
    pub id: Id,
    /// Its exact revision.
    pub revision: Dec,
}

/// A reference to exact hand-off material. The digest lives here and never inside the manifest (CJ-2).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HandoffRef {
    /// The manifest's id.
    pub handoff_id: HandoffId,
    /// SHA-256 of the manifest's canonical bytes.
    pub digest: Digest,
}

/// A record that can be read from a value by itself.
pub trait Record: Serialize + DeserializeOwned {
    /// Refuses versions and features of another protocol before the shape is looked at.
    ///
    /// # Errors
    /// `UNSUPPORTED_PROTOCOL`, with a pointer.
    fn supported(_value: &Value) -> Result<(), Error> {
        Ok(())
    }
}

/// A checked record, detached from what it was made of: nobody can change it afterwards (CJ-4).
///
/// ```
/// use aiws::record::{Checked, Grant};
/// let mut source = aiws::object! {
///     "grantId": "g", "parentGrantId": aiws::json::Value::Null, "subject": "agent", "actions": vec!["run"],
///     "scopes": vec!["repo"], "maxAmount": "5", "notAfterMs": "1000",
/// };
/// let grant = Checked::<Grant>::from_value(&source)?;
/// let digest = grant.digest();
/// source = aiws::json::Value::Null;
/// assert_eq!((grant.digest(), grant.get().actions.len()), (digest, 1));
/// # Ok::<(), aiws::error::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked<T> {
    record: T,
    value: Value,
    digest: Digest,
}

impl<T: Record> Checked<T> {
    /// Reads and checks a record.
    ///
    /// # Errors
    /// `UNSUPPORTED_PROTOCOL` for another version or feature, then `SCHEMA_INVALID` with a pointer to the place.
    pub fn from_value(value: &Value) -> Result<Checked<T>, Error> {
        T::supported(value)?;
        let record: T = canonical::from_value(value)?;
        Ok(Checked {
            record,
            value: value.clone(),
            digest: sha256(&canonical::to_bytes(value)),
        })
    }

    /// Checks a record that was built in code as if it had come from the wire.
    ///
    /// # Errors
    /// As for [`Checked::from_value`].
    pub fn new(record: &T) -> Result<Checked<T>, Error> {
        Checked::from_value(&canonical::to_value(record)?)
    }

    /// The record.
    pub fn get(&self) -> &T {
        &self.record
    }

    /// The record itself.
    pub fn into_inner(self) -> T {
        self.record
    }

    /// A fresh copy of its value; changing it changes nothing here.
    pub fn value(&self) -> Value {
        self.value.clone()
    }

    /// SHA-256 of its canonical bytes (CJ-2).
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

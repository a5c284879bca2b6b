//! Identifiers: opaque texts of 1 to 256 Unicode scalar values, one newtype per kind of thing (ID-1).
//! Invariant: a value of these types always satisfies the bound; nothing is trimmed, folded or normalised.
//! Called by every record; the macro below is the only place where an id type is made.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use crate::error::Error;
use crate::limits::MAX_ID_SCALARS;

fn check(text: &str, kind: &str) -> Result<(), Error> {
    // A scalar value takes at most four bytes, so a longer text need not be counted.
    let scalars = if text.len() > 4 * MAX_ID_SCALARS {
        text.len()
    } else {
        text.chars().count()
    };
    if (1..=MAX_ID_SCALARS).contains(&scalars) {
        return Ok(());
    }
    let found = if scalars == 0 {
        "none".to_owned()
    } else {
        format!("more than {MAX_ID_SCALARS}")
    };
    Err(Error::schema(
        "",
        format!("expected {kind} of 1 to {MAX_ID_SCALARS} Unicode scalar values, found {found}"),
    ))
}

macro_rules! ids {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// 1 to 256 Unicode scalar values, opaque, compared byte for byte (ID-1). Cloning is cheap.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is.
            ///
            /// # Errors
            /// `SCHEMA_INVALID` when it is empty or longer than 256 scalar values.
            pub fn new(text: impl Into<Arc<str>>) -> Result<$name, Error> {
                let text = text.into();
                check(&text, stringify!($name))?;
                Ok($name(text))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The id whose text is a digest in hex; 64 ASCII characters are always within the bound.
            pub fn from_digest(digest: crate::digest::Digest) -> $name {
                $name(digest.to_string().into())
            }

            /// The same text without its kind, for records that refer to things of several kinds.
            pub fn as_id(&self) -> Id {
                Id(Arc::clone(&self.0))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, concat!(stringify!($name), "({:?})"), &self.0)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<$name, Error> {
                $name::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        /// Lets maps keyed by the id be searched with a plain text.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&$name> for crate::json::Value {
            fn from(id: &$name) -> crate::json::Value {
                crate::json::Value::from(id.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                $name::new(String::deserialize(deserializer)?).map_err(|error| D::Error::custom(error.message))
            }
        }
    )*};
}

ids! {
    /// An id of any kind, where a record may refer to several kinds.
    Id;
    /// A mission, the same thing as a work order.
    MissionId;
    /// A run of a mission.
    RunId;
    /// A node of a graph.
    NodeId;
    /// One activation of a node in a run.
    ActivationId;
    /// The node event that a manifest belongs to.
    CheckpointId;
    /// A piece of logical work; retries keep it.
    OperationId;
    /// One try of an operation.
    AttemptId;
    /// A hand-off manifest.
    HandoffId;
    /// One recipient's delivery of a hand-off.
    DeliveryId;
    /// A hold.
    HoldId;
    /// A grant of authority.
    GrantId;
    /// An approval.
    ApprovalId;
    /// A verification or acceptance.
    AssessmentId;
    /// The record of an invalidated hand-off.
    InvalidationId;
    /// Words about a hand-off.
    SummaryId;
    /// A request, unique per principal and mission.
    RequestId;
    /// An authenticated principal.
    ActorId;
    /// A graph.
    GraphId;
    /// A contract.
    ContractId;
    /// A success criterion of a node.
    CriterionId;
    /// A piece of evidence.
    EvidenceId;
    /// A policy.
    PolicyId;
    /// A limit or gate scope.
    ScopeId;
    /// A stream of events.
    StreamId;
    /// A store directory.
    StoreId;
    /// A reader of the outbox.
    ConsumerId;
}

macro_rules! to_id {
    ($($name:ident)*) => {$(
        impl From<&$name> for Id {
            fn from(id: &$name) -> Id {
                id.as_id()
            }
        }

        impl From<$name> for Id {
            fn from(id: $name) -> Id {
                Id(id.0)
            }
        }

        /// Gives a plain id its kind back; the text is already checked.
        impl From<Id> for $name {
            fn from(id: Id) -> $name {
                $name(id.0)
            }
        }
    )*};
}

to_id! {
    MissionId RunId NodeId ActivationId CheckpointId OperationId AttemptId HandoffId DeliveryId HoldId GrantId
    ApprovalId AssessmentId InvalidationId RequestId ActorId GraphId ContractId CriterionId EvidenceId PolicyId ScopeId
    StreamId StoreId ConsumerId SummaryId
}

//! The hand-off records as an application holds them: checked once, detached, immutable.
//! Invariant: one pattern for all of them (API-3); a record shares nothing with the value it was read from (CJ-4).
//! Called by applications; construction checks the shape, never the caller's authority or the current state.
//!
//! ```
//! use aiws::error::Code;
//! use aiws::json::Value;
//! use aiws_sdk::handoff::sha;
//! use aiws_sdk::handoff_records::HandoffConsumption;
//!
//! let mut source = aiws::strict::parse(
//!     br#"{"missionId":"m","runId":"r","nodeId":"end","activationId":"a","operationId":null,"admissionRef":null,
//!     "inputs":[],"ownerEpoch":"1","revision":"4",
//!     "join":{"mode":"ALL","selected":[],"excluded":[],"unselectedAcknowledged":[]},
//!     "state":"VALID","entitlement":"CONTROL"}"#,
//! )?;
//! let record = HandoffConsumption::from_value(&source)?;
//! assert_eq!(record.get().node_id.as_str(), "end");
//!
//! // Whatever the caller does to its own values afterwards, the record stays as it was read.
//! let mut copy = record.as_value();
//! for value in [&mut source, &mut copy] {
//!     let Value::Object(members) = value else { unreachable!("it is an object") };
//!     members.insert("approved".to_owned(), true.into());
//! }
//! assert_eq!(sha(&record.as_value()), record.digest());
//!
//! // And the record is closed: what was added to the copy is refused, with its place.
//! let refused = HandoffConsumption::from_value(&copy).unwrap_err();
//! assert_eq!((refused.code, refused.pointer.as_deref()), (Code::SchemaInvalid, Some("/approved")));
//! # Ok::<(), aiws::error::Error>(())
//! ```

use aiws::digest::Digest;
use aiws::error::Error;
use aiws::json::Value;
use aiws::record::{Checked, Consumption, Delivery, Hold, Manifest};

/// Makes each record of the table a detached, checked value.
macro_rules! records {
    ($($(#[doc = $doc:literal])* $name:ident of $record:ident;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $name(Checked<$record>);

        impl $name {
            /// Reads and checks a record.
            ///
            /// # Errors
            /// `UNSUPPORTED_PROTOCOL` for another protocol version, then `SCHEMA_INVALID` with a pointer to the
            /// member that is unknown, missing or does not fit.
            pub fn from_value(value: &Value) -> Result<Self, Error> {
                Checked::from_value(value).map(Self)
            }

            /// A fresh copy of the record's value; changing it changes nothing here (CJ-4).
            pub fn as_value(&self) -> Value {
                self.0.value()
            }

            /// SHA-256 of the canonical bytes of the whole record (CJ-1, CJ-2).
            pub fn digest(&self) -> Digest {
                self.0.digest()
            }

            /// The record with typed members, to read.
            pub fn get(&self) -> &$record {
                self.0.get()
            }
        }
    )*};
}

records! {
    /// What a node passes on: result, artifacts by reference, outcome, controls and context at an exact basis. Its
    /// digest is what every [`aiws::record::HandoffRef`] to it names; it identifies and grants nothing (CJ-3).
    HandoffManifest of Manifest;
    /// One recipient's delivery of a manifest, with its current claim and its receipt. A receipt says that the exact
    /// manifest arrived and was validated, not that anything was done with it.
    HandoffDelivery of Delivery;
    /// The binding of an input set to one activation and, for work, to one operation.
    HandoffConsumption of Consumption;
    /// A gate with an owner, a reason and the decisions that may end it.
    HandoffHold of Hold;
}

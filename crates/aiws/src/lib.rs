//! The AIWS protocol: strict and canonical JSON, digests, ids, decimals, closed records and the error-code table.
//! Invariant: pure functions over values; no I/O, no clock, no randomness, no async. What a type accepts satisfies its rule.
//! Called by every other crate; the only one that names `serde_json`, `sha2`, `hmac` and `jsonschema`.

pub mod canonical;
mod code;
mod de;
pub mod decimal;
pub mod digest;
pub mod error;
pub mod id;
pub mod json;
pub mod limits;
pub mod pointer;
pub mod published;
pub mod record;
pub mod schema;
pub mod strict;
pub mod token;
pub mod veil;

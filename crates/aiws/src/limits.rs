//! The bounds of everything this crate reads, each with its reason.
//! Invariant: no input, however made, costs more than these bounds; a bound is never raised silently (JSON-7).
//! Called by every module of the crate and by callers that want to refuse early.

/// Largest input of [`crate::strict::parse`], in bytes (JSON-4); large content belongs into artifacts.
pub const MAX_INPUT_BYTES: usize = 1 << 20;

/// Largest stored event in bytes: one command of full size with its facts and outcome, four times the input.
pub const MAX_EVENT_BYTES: usize = 4 << 20;

/// Deepest nesting of arrays and objects (JSON-3); keeps every recursive walk far from the end of the stack.
pub const MAX_DEPTH: usize = 64;

/// Largest absolute value of a JSON integer, 2^53 - 1 (JSON-6): beyond it readers with doubles lose digits.
pub const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// Longest id in Unicode scalar values (ID-1).
pub const MAX_ID_SCALARS: usize = 256;

/// Longest decimal in digits (NUM-2).
pub const MAX_DECIMAL_DIGITS: usize = 100;

/// Longest free text of a record (intent, reason, detail) in Unicode scalar values; longer text is an artifact.
pub const MAX_TEXT_SCALARS: usize = 16_384;

/// Most members of one list of a record: more than any graph this build activates needs.
pub const MAX_LIST_ITEMS: usize = 4_096;

/// Longest message of an error in Unicode scalar values: what was found may be as large as the input.
pub const MAX_MESSAGE_SCALARS: usize = 1_024;

/// Longest pointer of an error in bytes, for the same reason; a longer one points to an enclosing place.
pub const MAX_POINTER_BYTES: usize = 4_096;

/// Largest schema that is compiled, in canonical bytes: validation cost grows with it.
pub const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// Most subschemas in one schema, for the same reason.
pub const MAX_SUBSCHEMAS: usize = 1_024;

/// Most subschemas with every reference followed: a schema that refers twice to what refers twice grows by powers.
pub const MAX_EXPANDED_SUBSCHEMAS: usize = 16_384;

/// Unicode scalar values that a message repeats of a text that was found instead of what was expected.
pub const FOUND_SCALARS: usize = 24;

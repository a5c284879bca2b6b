//! Errors of the protocol: one sentence, one code, one place.
//! Invariant: every error that leaves this project carries a code of the table in `code`; details never hold secrets.
//! Called by every crate; `Error` is what a caller sees, `Code` is what a caller branches on.

use std::fmt;

pub use crate::code::{Code, Namespace, Stage};
use crate::json::{Object, Value};
use crate::limits::{FOUND_SCALARS, MAX_MESSAGE_SCALARS, MAX_POINTER_BYTES};

/// A refusal or failure with a stable code (ERR-PREC.4).
///
/// Callers branch on [`Error::code`]; people read [`Error::message`], which says what was expected, what was found
/// and, where it is not obvious from the code's remedy, what to do.
///
/// ```
/// use aiws::error::{Code, Error};
/// let error = Error::new(Code::SchemaInvalid, "expected a string, found a number").at("/id");
/// assert_eq!(error.to_string(), "SCHEMA_INVALID: expected a string, found a number (at /id)");
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// The stable code.
    pub code: Code,
    /// The stage that refused; the code's usual stage unless [`Error::in_stage`] said otherwise.
    pub stage: Stage,
    /// One sentence for people.
    pub message: String,
    /// RFC 6901 pointer to the place in the input, where there is an input; the empty pointer is its root.
    pub pointer: Option<String>,
    /// Closed facts for programs; never secrets, tokens or material.
    pub details: Object,
}

impl Error {
    /// An error with the code's usual stage, no pointer and no details. A message beyond
    /// [`MAX_MESSAGE_SCALARS`] is cut and ends in three dots.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error {
            code,
            stage: code.stage(),
            message: clipped(message.into()),
            pointer: None,
            details: Object::new(),
        }
    }

    /// A `SCHEMA_INVALID` error at a pointer.
    pub fn schema(pointer: impl Into<String>, message: impl Into<String>) -> Error {
        Error::new(Code::SchemaInvalid, message).at(pointer)
    }

    /// The same error with an RFC 6901 pointer. One beyond [`MAX_POINTER_BYTES`] is cut to an enclosing place.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Error {
        self.pointer = Some(enclosing(pointer.into()));
        self
    }

    /// The same error with its pointer moved below `prefix`; an error without a pointer gets `prefix` itself.
    #[must_use]
    pub fn under(self, prefix: &str) -> Error {
        let pointer = format!("{prefix}{}", self.pointer.as_deref().unwrap_or(""));
        self.at(pointer)
    }

    /// The same error with one more detail; a later value of the same key replaces the earlier one.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Error {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// The same error raised in another stage than its code's usual one, e.g. `IDENTITY_CONFLICT` of an object.
    #[must_use]
    pub fn in_stage(mut self, stage: Stage) -> Error {
        self.stage = stage;
        self
    }

    /// The code that callers branch on.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The wire form `{namespace, code, message, stage, details}`; the pointer is the detail `pointer`.
    ///
    /// ```
    /// use aiws::error::{Code, Error};
    /// let value = Error::new(Code::Busy, "the mailbox is full").to_value();
    /// assert_eq!(value.get("code").and_then(|code| code.as_str()), Some("BUSY"));
    /// ```
    pub fn to_value(&self) -> Value {
        let mut details = self.details.clone();
        if let Some(pointer) = &self.pointer {
            details.insert("pointer".to_owned(), Value::from(pointer.as_str()));
        }
        crate::object! {
            "namespace": self.code.namespace().name(),
            "code": self.code.name(),
            "message": self.message.as_str(),
            "stage": self.stage.name(),
            "details": Value::Object(details),
        }
    }
}

/// With its details in clear: they are closed facts.
impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = Value::Object(self.details.clone());
        out.debug_struct("Error")
            .field("code", &self.code)
            .field("stage", &self.stage)
            .field("message", &self.message)
            .field("pointer", &self.pointer)
            .field("details", &format_args!("{details}"))
            .finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.code, self.message)?;
        match &self.pointer {
            Some(pointer) if pointer.is_empty() => write!(out, " (at the root)"),
            Some(pointer) => write!(out, " (at {pointer})"),
            None => Ok(()),
        }
    }
}

/// As much of a text that was found as a message repeats: enough to see a mistake, too little of a secret that was put
/// in the wrong place (HD-02.10).
pub fn beginning(text: &str) -> String {
    match text.char_indices().nth(FOUND_SCALARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn clipped(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_SCALARS) {
        message.truncate(end);
        message.push_str("...");
    }
    message
}

fn enclosing(mut pointer: String) -> String {
    if pointer.len() > MAX_POINTER_BYTES {
        let end = pointer.as_bytes()[..MAX_POINTER_BYTES]
            .iter()
            .rposition(|byte| *byte == b'/');
        pointer.truncate(end.unwrap_or(0));
    }
    pointer
}

//! Strict JSON (T-50): bytes in, a checked `Value` out, or `SCHEMA_INVALID` with pointer and byte offset.
//! Invariant: duplicate keys, floats, unsafe integers, `-0`, lone surrogates, invalid UTF-8, too much depth or size never get through (JSON-1..6).
//! Called at every door where bytes come in: the wire, stored events, configuration.

use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::error::Error;
use crate::json::{Object, Value};
use crate::limits::{MAX_DEPTH, MAX_INPUT_BYTES, MAX_MESSAGE_SCALARS, MAX_SAFE_INTEGER};
use crate::pointer::Pointer;

/// Reads one JSON text of at most 1 MiB (JSON-4).
///
/// # Errors
/// `SCHEMA_INVALID` with a pointer to the innermost place that was read and the byte offset in the message.
///
/// ```
/// let value = aiws::strict::parse(br#"{"a":[1,2]}"#)?;
/// assert_eq!(value.to_string(), r#"{"a":[1,2]}"#);
/// let refused = aiws::strict::parse(br#"{"a":[1,2.5]}"#).unwrap_err();
/// assert_eq!(refused.pointer.as_deref(), Some("/a/1"));
/// # Ok::<(), aiws::error::Error>(())
/// ```
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    parse_with_limit(bytes, MAX_INPUT_BYTES)
}

/// Reads one JSON text of at most `max_bytes` bytes; for stored events, which may be up to
/// [`MAX_EVENT_BYTES`](crate::limits::MAX_EVENT_BYTES). Input from outside goes through [`parse`] (JSON-7).
///
/// # Errors
/// As for [`parse`].
pub fn parse_with_limit(bytes: &[u8], max_bytes: usize) -> Result<Value, Error> {
    parse_within(bytes, max_bytes, MAX_DEPTH)
}

/// As [`parse_with_limit`], with a bound of its own on nesting, below 100: a line around a stored event is one level
/// deeper than the event.
///
/// # Errors
/// As for [`parse`].
pub fn parse_within(bytes: &[u8], max_bytes: usize, max_depth: usize) -> Result<Value, Error> {
    if bytes.len() > max_bytes {
        return Err(refused(
            format!(
                "expected at most {max_bytes} bytes of JSON, found {}",
                bytes.len()
            ),
            max_bytes,
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|cause| {
        refused(
            "expected UTF-8, found an invalid byte sequence",
            cause.valid_up_to(),
        )
    })?;
    let place = Place::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict {
        depth: 0,
        max_depth,
        place: &place,
    }
    .deserialize(&mut reader)
    .and_then(|value| reader.end().map(|()| value))
    .map_err(|cause| syntax(text, &place, &cause))?;
    Ok(value)
}

/// Reads a value from any serde format under the same rules; the door of `Deserialize for Value`.
pub(crate) fn visit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Strict {
        depth: 0,
        max_depth: MAX_DEPTH,
        place: &Place::default(),
    }
    .deserialize(deserializer)
}

/// Where the visitor stands; stays at the place of the failure when it fails.
#[derive(Default)]
struct Place(RefCell<Pointer>);

impl Place {
    fn enter_key(&self, key: &str) {
        self.0.borrow_mut().push_key(key);
    }

    fn enter_index(&self, index: usize) {
        self.0.borrow_mut().push_index(index);
    }

    fn leave(&self) {
        self.0.borrow_mut().pop();
    }
}

#[derive(Clone, Copy)]
struct Strict<'a> {
    depth: usize,
    max_depth: usize,
    place: &'a Place,
}

impl Strict<'_> {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        if self.depth == self.max_depth {
            return Err(E::custom(format_args!(
                "expected at most {} levels of nesting, found more",
                self.max_depth
            )));
        }
        Ok(Strict {
            depth: self.depth + 1,
            ..self
        })
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a strict JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
        if number.unsigned_abs() > MAX_SAFE_INTEGER.unsigned_abs() {
            return Err(unsafe_integer(number));
        }
        Ok(Value::Int(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
        match i64::try_from(number) {
            Ok(number) => self.visit_i64(number),
            Err(_) => Err(unsafe_integer(number)),
        }
    }

    /// serde_json reads every literal that is not a plain 64-bit integer as a double: fractions, exponents, `-0`
    /// and integers of more than 64 bits. All of them are outside the number domain.
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
        Err(E::custom(format_args!(
            "expected an integer within +-{MAX_SAFE_INTEGER} without fraction, exponent or minus zero, found about {number}"
        )))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        loop {
            self.place.enter_index(list.len());
            match items.next_element_seed(inner)? {
                Some(item) => list.push(item),
                None => break,
            }
            self.place.leave();
        }
        self.place.leave();
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut object = Object::new();
        while let Some(key) = members.next_key::<String>()? {
            self.place.enter_key(&key);
            match object.entry(key) {
                Entry::Occupied(found) => {
                    return Err(de::Error::custom(format_args!(
                        "expected unique keys, found {:?} twice",
                        crate::error::beginning(found.key())
                    )));
                }
                Entry::Vacant(free) => free.insert(members.next_value_seed(inner)?),
            };
            self.place.leave();
        }
        Ok(Value::Object(object))
    }
}

fn unsafe_integer<E: de::Error>(number: impl fmt::Display) -> E {
    E::custom(format_args!(
        "expected an integer within +-{MAX_SAFE_INTEGER}, found {number}"
    ))
}

fn syntax(text: &str, place: &Place, cause: &serde_json::Error) -> Error {
    let offset = offset_of(text, cause.line(), cause.column());
    let mut sentence = cause.to_string();
    let suffix = format!(" at line {} column {}", cause.line(), cause.column());
    sentence.truncate(
        sentence.len()
            - if sentence.ends_with(&suffix) {
                suffix.len()
            } else {
                0
            },
    );
    // A sentence may quote what was found; the offset behind it must survive the bound of a message.
    if let Some((end, _)) = sentence.char_indices().nth(MAX_MESSAGE_SCALARS / 2) {
        sentence.truncate(end);
    }
    if sentence.contains("hex escape") {
        sentence = format!("expected surrogates in pairs: {sentence}");
    }
    refused(sentence, offset).at(place.0.borrow().as_str())
}

/// serde_json counts lines from 1 and columns in bytes from 1; a column of 0 is the line feed itself.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    (start + column.saturating_sub(1)).min(text.len())
}

fn refused(sentence: impl fmt::Display, offset: usize) -> Error {
    Error::schema("", format!("{sentence} (byte {offset})"))
}
